"""Spammers, colluders and copies: what the detectors of `sklearn_l2d.aggregation` find, and what consensus gains.

    python benchmarks/adversaries.py [TABLE ...] [--seeds 5] > benchmarks/results/adversaries.md

The crowds are those of the crowd tutorial, part III: its slides state what it saw in pictures without figures. The real
sets are found through SKLEARN_L2D_DATA.
"""

import resource
import time

import numpy as np
from _report import run, table

from sklearn_l2d.aggregation import (
    MMSR,
    ColluderDetector,
    CommunityDawidSkene,
    DawidSkene,
    GroupAwareDawidSkene,
    MajorityVote,
    SpammerDetector,
)
from sklearn_l2d.annotations import Votes, encode_votes
from sklearn_l2d.datasets import load_crowd


def draw(proba, rng):
    """Labels with probabilities on the last axis."""
    return (rng.random((*proba.shape[:-1], 1)) > proba.cumsum(-1)[..., :-1]).sum(-1)


def some_matrices(n, n_classes, rng, skill=0.5):
    """Confusion matrices (n, C, C) between chance and truth."""
    return (1 - skill) * rng.dirichlet(np.ones(n_classes), (n, n_classes)) + skill * np.eye(n_classes)


def accuracy(consensus, votes, truth):
    """Share of right labels, of the items whose truth is known."""
    known = truth >= 0
    return np.mean(consensus.fit_predict(votes)[known] == truth[known])


def mean(values):
    """Mean over seeds with three decimals; a dash where there is nothing to find."""
    return "-" if np.isnan(values).all() else f"{np.nanmean(values):.3f}"


def found(labels, adversaries):
    """Sensitivity and specificity of flags."""
    flagged = labels == -1
    return flagged[adversaries].mean() if adversaries.any() else np.nan, (~flagged[~adversaries]).mean()


def spammers(seeds):
    """N = 10,000, K = 4, M = 20; the slides: a few spammers pass for honest, all honest are found to be honest."""
    rows = []
    for share in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9):
        figures = []
        for seed in seeds:
            rng = np.random.default_rng(seed)
            truth, adversaries = rng.integers(4, size=10_000), np.arange(20) < round(share * 20)
            confusion = some_matrices(20, 4, rng)
            confusion[adversaries] = rng.dirichlet(np.ones(4), (adversaries.sum(), 1))
            votes = draw(confusion[:, truth], rng).T
            detector = SpammerDetector().fit(votes)
            rest = detector.remove_flagged(votes)
            consensus = [accuracy(c, v, truth) for c in (MajorityVote(), DawidSkene()) for v in (votes, rest)]
            figures.append([*found(detector.labels_, adversaries), *consensus])
        rows.append([f"{share:.1f}", *map(mean, np.transpose(figures))])
    columns = ["share", "sensitivity", "specificity", "majority", "without flagged", "Dawid-Skene", "without flagged"]
    title = "Spammers, 20 annotators, 4 classes, 10,000 items (tutorial: a few are missed, nobody honest is flagged)"
    table(title, columns, rows)


def colluders(seeds):
    """N = 5,000, M = 60, K = 3: honest annotators beside colluders, without and with one who is trusted."""
    rows = []
    for n_honest in (60, 54, 45, 33, 12, 9, 6):
        for p_corr in (0.3, 0.9) if n_honest < 60 else (0.0,):
            figures = []
            for seed in seeds:
                rng = np.random.default_rng(seed)
                truth, adversaries = rng.integers(3, size=5000), np.arange(60) < 60 - n_honest
                votes = draw(some_matrices(60, 3, rng)[:, truth], rng).T
                plan = np.where(rng.random(5000) < p_corr, (truth + rng.integers(1, 3, 5000)) % 3, truth)
                follows = (rng.random(votes.shape) < 0.95) & adversaries
                votes = np.where(follows, plan[:, None], votes)
                detector, helped = ColluderDetector().fit(votes), ColluderDetector(trusted=[59]).fit(votes)
                rest = detector.remove_flagged(votes)
                methods = MajorityVote(), DawidSkene(), MMSR(trim=0.45)
                consensus = [*(accuracy(c, votes, truth) for c in methods), accuracy(DawidSkene(), rest, truth)]
                figures.append([*found(detector.labels_, adversaries), *found(helped.labels_, adversaries), *consensus])
            rows.append([n_honest, "yes" if n_honest > 9 else "no", p_corr, *map(mean, np.transpose(figures))])
    columns = ["honest", "> K^2", "p_corr", "sensitivity", "specificity", "one trusted: sens.", "spec."]
    columns += ["majority", "Dawid-Skene", "MMSR, trim .45", "Dawid-Skene without flagged"]
    title = "Colluders, 60 annotators, 3 classes, 5,000 items (tutorial: needs more than K^2 = 9 honest ones)"
    table(title, columns, rows)


def groups(seeds):
    """N = 5,000, M = 40, K = 3, J = 5 groups; the slides: group-aware labels beat plain ones."""
    rows, names = [], ["majority", "Dawid-Skene", "group-aware, J = 5", "group-aware, J found", "groups given"]
    figures = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        truth, group = rng.integers(3, size=5000), rng.integers(5, size=40)
        hidden = draw(some_matrices(5, 3, rng)[:, truth], rng)
        votes = draw(some_matrices(40, 3, rng, 0.7)[np.arange(40)[:, None], hidden[group]], rng).T
        methods = [MajorityVote(), DawidSkene(), GroupAwareDawidSkene(5), GroupAwareDawidSkene()]
        figures.append([accuracy(c, votes, truth) for c in [*methods, GroupAwareDawidSkene(groups=group)]])
    rows = [
        [name, mean(values), f"{np.std(values):.3f}"] for name, values in zip(names, np.transpose(figures), strict=True)
    ]
    title = "Dependent annotators: 40 in 5 groups, 3 classes, 5,000 items (tutorial: group-aware beats plain)"
    table(title, ["method", "accuracy", "sd"], rows)


def real_sets(seeds):
    """Accuracies on real sets, with one pseudo-count; published figures in brackets."""
    rows = []
    published = {"bluebird": ".852 / .899 (22)", "dog": ".819 / .834 (12)", "web": ".841 / .91 (158)"}
    for name in ("bluebird", "dog", "web", "rte"):
        crowd = load_crowd(f"label_only_{name}")
        votes = encode_votes(crowd.annotations)
        detector = SpammerDetector().fit(votes)
        rest = detector.remove_flagged(votes)
        lost = len(np.unique(votes.item)) - len(np.unique(rest.item))
        methods = [
            (c, v) for c in (MajorityVote(), DawidSkene(), DawidSkene(class_prior="uniform")) for v in (votes, rest)
        ]
        figures = [f"{accuracy(c, v, crowd.y):.4f}" for c, v in methods]
        rows.append([name, (detector.labels_ == -1).sum(), lost, *figures, published.get(name, "-")])
    columns = ["set", "flagged", "items lost", "majority", "rest", "Dawid-Skene", "rest", "equal classes", "rest"]
    table("Real sets without those flagged", [*columns, "tutorial: majority / EM (dropped)"], rows)
    rows = []
    for name in ("bluebird", "dog", "web", "rte"):
        crowd = load_crowd(f"label_only_{name}")
        methods = DawidSkene(), GroupAwareDawidSkene(), GroupAwareDawidSkene(7, prior=0.01, class_prior="uniform")
        methods = *methods, CommunityDawidSkene(), CommunityDawidSkene(assignment="hard"), MMSR()
        rows.append([name, *(f"{accuracy(c, crowd.annotations, crowd.y):.4f}" for c in methods)])
    columns = [
        "set",
        "Dawid-Skene",
        "group-aware",
        "7 groups, prior .01, equal classes",
        "3 communities",
        "hard",
        "MMSR",
    ]
    table("Dependence and adversaries on real sets (tutorial: .916 on bluebird with 7 groups)", columns, rows)


def scale(seeds):
    """MMSR on 50,000 items with 5 votes each by 500 people."""
    rng = np.random.default_rng(seeds[0])
    truth, right = rng.integers(3, size=50_000), rng.uniform(0.4, 0.95, 500)
    who = np.argpartition(rng.random((50_000, 500), dtype=np.float32), 5, axis=1)[:, :5]
    wrong = (truth[:, None] + rng.integers(1, 3, who.shape)) % 3
    label = np.where(rng.random(who.shape) < right[who], truth[:, None], wrong)
    votes = Votes(np.repeat(np.arange(50_000), 5), who.ravel(), label.ravel(), 50_000, [0, 1, 2], np.arange(500))
    rows = []
    for consensus in (MMSR(), DawidSkene()):
        start = time.process_time()
        figure = accuracy(consensus, votes, truth)
        seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        rows.append([type(consensus).__name__, f"{figure:.4f}", f"{seconds:.2f}", f"{peak:.2f}"])
    table("50,000 items, 500 people, 5 votes each", ["method", "accuracy", "CPU seconds", "peak GB"], rows)


if __name__ == "__main__":
    tables = {f.__name__: f for f in (spammers, colluders, groups, real_sets, scale)}
    run(tables, "Spammers, colluders and copies")
