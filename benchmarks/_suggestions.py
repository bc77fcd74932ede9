"""How many labels of a newcomer `AnnotatorLDA.suggest_items` saves."""

import numpy as np
from _references import cue_sessions, digits_roster
from _report import table, verdict
from _rivals import fit
from scipy.stats import entropy

from sklearn_l2d.annotations import to_counts
from sklearn_l2d.benchmark._worlds import shapes_apart
from sklearn_l2d.datasets import make_expert_pairs

N_LABELS = 80
SIZES = (10, 20, 40)
N_RANDOM = 10


def suggest(seeds):
    """Labels needed for what so many random items give, in standard error and in true error."""
    rows = []
    for name, world in (("digits, three pairs", digits), ("cue_conflict, 30 sessions", cue)):
        for n_clusters in (2, 3):
            figures = [curves(*world(seed, n_clusters), seed) for seed in seeds[:5]]
            mean = {way: np.mean([figure[way] for figure in figures], axis=0) for way in figures[0]}
            for way in list(mean)[1:]:
                ratios = [
                    [needed(mean[way][:, column], mean["random"][size - 1, column]) / size for size in SIZES]
                    for column in (0, 1)
                ]
                bound = ", ".join(verdict(-ratio, -0.8) for ratio in ratios[0]) if way.startswith("suggested") else ""
                rows.append([name, n_clusters, way, *map(ratio_text, np.concatenate(ratios)), bound])
    table(
        f"Labels of a newcomer needed for what {SIZES} random items give, as a ratio, up to {N_LABELS} labels, at most "
        "five seeds: the standard error must come to .80 or less",
        ["set", "K", "items", *(f"std, {n}" for n in SIZES), *(f"true error, {n}" for n in SIZES), "reached"],
        rows,
    )


def digits(seed, n_clusters):
    """Behaviours and one net from anonymous digits, and the identified rows."""
    X, _, roster, anonymous, pool = digits_roster(make_expert_pairs, seed, n_anonymous=1197)
    counts = to_counts(roster.annotations[anonymous], classes=roster.classes)
    return *nets(n_clusters, seed, X[anonymous], counts), X[pool], roster.annotations[pool]


def cue(seed, n_clusters):
    """The same for the sessions, placed on other shapes than the anonymous answers are to."""
    X, _, shape, annotations, n_classes = cue_sessions()
    held_out = shapes_apart(shape, np.random.default_rng(seed))
    counts = to_counts(annotations[~held_out], classes=np.arange(n_classes))
    return *nets(n_clusters, seed, X[~held_out], counts), X[held_out], annotations[held_out]


def nets(n_clusters, seed, X, counts):
    """The behaviours, and the consensus alone."""
    return fit(n_clusters, seed, X, counts), fit(1, seed, X, counts)


def curves(lda, one, X, annotations, seed):
    """Standard error and true error (N_LABELS, 2) for every way to choose items, mean over the experts.

    The true error is the total variation between the membership so far and that from all labels of the expert.
    """
    rng = np.random.default_rng(seed)
    doubt = entropy(one.predict_annotation_proba(X)[:, 0], axis=1)
    figures = []
    for labels in annotations.T:
        rows = np.flatnonzero(labels >= 0)
        pool, answers = X[rows], labels[rows]
        goal = lda.transform(pool, answers[:, None])

        def judged(order, pool=pool, answers=answers, goal=goal):
            order = order[:N_LABELS]
            # one column for each number of labels
            first = np.where(np.tri(N_LABELS, dtype=bool).T, answers[order, None], -1)
            weights, std = lda.transform(pool[order], first, return_std=True)
            return np.stack([std.mean(1), np.abs(weights - goal).sum(1) / 2], axis=1)

        figures.append(
            {
                "random": np.mean([judged(rng.permutation(len(rows))) for _ in range(N_RANDOM)], axis=0),
                "suggested one by one": judged(asked(lda, pool, answers, 1)),
                "suggested in tens": judged(asked(lda, pool, answers, 10)),
                "most uncertain consensus": judged(np.argsort(-doubt[rows], kind="stable")),
            }
        )
    return {way: np.mean([figure[way] for figure in figures], axis=0) for way in figures[0]}


def asked(lda, pool, answers, n_items):
    """Rows of the pool in the order in which they are suggested."""
    order, left = np.empty(0, dtype=int), np.arange(len(pool))
    while len(order) < N_LABELS:
        order = np.append(order, left[lda.suggest_items(pool[left], pool[order], answers[order], n_items=n_items)])
        left = np.setdiff1d(left, order)
    return order


def needed(curve, level):
    """Fewest labels from which on the curve stays at the level or below; infinite where it never does."""
    above = np.flatnonzero(curve > level)
    last = above[-1] + 1 if len(above) else 0
    return last + 1 if last < len(curve) else np.inf


def ratio_text(ratio):
    """Two decimals, or that the level is not reached."""
    return f"{ratio:.2f}" if np.isfinite(ratio) else "not reached"
