"""One set of defaults on seven sets: does the recipe of `AnnotatorLDA` hold, and where do its rivals win?

    python benchmarks/robustness.py > benchmarks/results/robustness.md

Every model has the default parameters, K=2 included, on standardised features. The behaviours learn from the
anonymous counts of 70 % of the items; experts are placed, and perplexity is taken, on the others. Where everybody
labels nearly everything (digits, cue_conflict) an expert is placed from 25 labels, for with all of them every score is
right; in the other sets from all held-out labels, five or more.
"""

from typing import NamedTuple

import numpy as np
from _references import cue_sessions, digits_roster
from _report import run, table
from _rivals import accuracy, fit, halves, majority_agreement, net_agreement
from scipy.stats import spearmanr
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from sklearn_l2d.annotations import to_counts
from sklearn_l2d.benchmark._worlds import shapes_apart
from sklearn_l2d.datasets import load_crowd, make_expert_pairs, sample_identified

N_SEEDS = 5
N_PLACED = 25
METHOD, RANDOM, ONE_NET, MAJORITY = "consensus start", "random start", "one net", "majority"


class Split(NamedTuple):
    """Items to learn from, items held out, and what is known of the experts placed on the latter."""

    X: np.ndarray
    counts: np.ndarray
    X_held: np.ndarray
    counts_held: np.ndarray
    annotations: np.ndarray | None = None
    ability: np.ndarray | None = None
    groups: np.ndarray | None = None


def digits(seed):
    """Three simulated pairs."""
    X, y, roster, learnt, held = digits_roster(make_expert_pairs, seed, n_anonymous=1258)
    counts = to_counts(roster.annotations, classes=roster.classes)
    kept = sample_identified(roster.annotations[held], N_PLACED, random_state=seed)
    ability = accuracy(roster.annotations, y)
    return Split(X[learnt], counts[learnt], X[held], counts[held], kept, ability, roster.groups)


def cue_conflict(seed):
    """Sessions of real subjects, 7 of 30 by texture; 40 of 160 shapes held out.

    128 principal components, as there are more columns, 1,280, than items to learn from.
    """
    X, y, shape, annotations, n_classes = cue_sessions()
    rng = np.random.default_rng(seed)
    held = shapes_apart(shape, rng)
    counts = to_counts(annotations, classes=np.arange(n_classes))
    kept = sample_identified(annotations[held], N_PLACED, random_state=rng)
    ability = accuracy(annotations, y)
    return Split(X[~held], counts[~held], X[held], counts[held], kept, ability, ability < 0.3)


def crowd_of(name):
    """Reader of a set whose annotators labelled what they liked; those with 20 labels of known truth are placed."""

    def split(seed):
        crowd = load_crowd(name)
        labelled = np.flatnonzero(crowd.counts.sum(1))
        X, y = StandardScaler().fit_transform(crowd.X[labelled]), crowd.y[labelled]
        counts, annotations = crowd.counts[labelled], crowd.annotations[labelled]
        held = held_out(len(X), seed)
        known = y >= 0
        placed = ((annotations[known] >= 0).sum(0) >= 20) & ((annotations[held] >= 0).sum(0) >= 5)
        annotations = annotations[:, placed]
        ability = accuracy(annotations[known], y[known])
        return Split(X[~held], counts[~held], X[held], counts[held], annotations[held], ability)

    return split


def cifar10(seed):
    """10,000 train images, each with three anonymous labels."""
    crowd = load_crowd("cifar10")
    rows = np.random.default_rng(seed).choice(np.flatnonzero(crowd.split == 0), 10_000, replace=False)
    X, counts = StandardScaler().fit_transform(crowd.X[rows]), crowd.counts[rows]
    held = held_out(len(X), seed)
    return Split(X[~held], counts[~held], X[held], counts[held])


def held_out(n_items, seed):
    """Mask of 30 % of the items."""
    return np.random.default_rng(seed).permutation(n_items) < 0.3 * n_items


SETS = {
    "digits": digits,
    "cue_conflict": cue_conflict,
    **{name: crowd_of(name) for name in ("music_genre", "labelme", "sentiment_polarity", "medical_relation_treat")},
    "cifar10": cifar10,
}


def robustness(seeds):
    """Rank correlation with true accuracy, known groups and held-out perplexity on every set."""
    seeds = seeds[:N_SEEDS]
    found, sizes = {}, {}
    for name, split in SETS.items():
        for seed in seeds:
            for measure, figures in one_split(split(seed), seed, sizes.setdefault(name, [])).items():
                found.setdefault((measure, name), []).append(figures)
    placed = {name: f"{min(n)} to {max(n)}" if n and min(n) < max(n) else str(*n[:1]) for name, n in sizes.items()}
    lines = []
    for title, measures, sign in MEASURES:
        rows = []
        for (measure, name), runs in found.items():
            if measure in measures:
                scores = {way: np.array([figures[way] for figures in runs]) for way in runs[0]}
                outcome, rival = compare(scores, sign)
                columns = [shown(scores[way]) if way in scores else "" for way in WAYS]
                ahead = {"wins": METHOD, "even": f"even with {rival}", "loses": rival}[outcome]
                rows.append([name, placed[name], measure, *columns, ahead])
                lines.append((outcome, measure, name, rival))
        used = [way for way in WAYS if any(row[3 + WAYS.index(way)] for row in rows)]
        keep = [0, 1, 2, *(3 + WAYS.index(way) for way in used), -1]
        heads = ["set", "experts placed", "measure", *WAYS, "ahead"]
        note = f"mean (sd) of seeds {seeds[0]} to {seeds[-1]}"
        table(f"{title}, K=2, {note}", [heads[i] for i in keep], [[row[i] for i in keep] for row in rows])
    print(f"\n{summary(lines)}")


def one_split(split, seed, sizes):
    """Figures of one split, ``{measure: {way: figure}}``; the number of experts placed is added to `sizes`."""
    models = {
        METHOD: fit(2, seed, split.X, split.counts),
        RANDOM: fit(2, seed, split.X, split.counts, init="random"),
        ONE_NET: fit(1, seed, split.X, split.counts),
    }
    perplexity = {
        way: model.perplexity(split.X_held, split.counts_held, method="sobol") for way, model in models.items()
    }
    figures = {PERPLEXITY: perplexity}
    if split.annotations is None:
        return figures
    sizes.append(split.annotations.shape[1])
    place = split.X_held, split.annotations
    score = {way: models[way].transform(*place)[:, 0] for way in (METHOD, RANDOM)}
    score[ONE_NET] = net_agreement(models[ONE_NET], *place)
    score[MAJORITY] = majority_agreement(split.annotations, split.counts.shape[1])
    # a score that is the same for everybody ranks nobody
    figures[RANK] = {way: np.nan_to_num(spearmanr(values, split.ability)[0]) for way, values in score.items()}
    if split.groups is not None:
        hard = {way: v < 0.5 if way in (METHOD, RANDOM) else halves(v) for way, v in score.items()}
        figures[GROUPS] = {way: adjusted_rand_score(split.groups, found) for way, found in hard.items()}
    return figures


def compare(scores, sign):
    """Whether the method wins, loses or is even with the best of the others, and the name of that rival.

    Even is a mean difference over the seeds within twice its standard error.
    """
    rival = max((way for way in scores if way != METHOD), key=lambda way: sign * scores[way].mean())
    lead = sign * (scores[METHOD] - scores[rival])
    if abs(lead.mean()) <= 2 * lead.std(ddof=1) / np.sqrt(len(lead)):
        return "even", rival
    return ("wins" if lead.mean() > 0 else "loses"), rival


def shown(values):
    """Mean and standard deviation."""
    return f"{values.mean():.3f} ({values.std(ddof=1):.3f})"


def summary(lines):
    """Sentences on where the method wins, is even and loses, each set with the best rival."""
    sentences = []
    for measure in dict.fromkeys(measure for _, measure, _, _ in lines):
        said = []
        for outcome, verb in (("loses", "loses on"), ("even", "is even on"), ("wins", "wins on")):
            names = [f"{name} ({rival})" for found, of, name, rival in lines if (found, of) == (outcome, measure)]
            said.append(f"{verb} {', '.join(names) or 'no set'}")
        sentences.append(f"By {measure}, the {METHOD} with K=2 {'; '.join(said)}.")
    return " ".join(sentences) + " In brackets the best rival; even is within twice the standard error over the seeds."


RANK, GROUPS, PERPLEXITY = "rank correlation with accuracy", "ARI of the known groups", "held-out perplexity"
WAYS = (METHOD, RANDOM, ONE_NET, MAJORITY)
MEASURES = (
    ("Placing experts, higher is better", (RANK, GROUPS), 1),
    ("Held-out perplexity, lower is better", (PERPLEXITY,), -1),
)

if __name__ == "__main__":
    run({"robustness": robustness}, "One set of defaults on seven sets")
