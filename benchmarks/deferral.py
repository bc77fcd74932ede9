"""Figures of `ClusterDeferral`, each beside its simplest rivals, and its speed as ratios.

    python benchmarks/deferral.py [TABLE ...] [--seeds 5] > benchmarks/results/deferral.md

The real sets are found through SKLEARN_L2D_DATA. Seeds from 0 are reported; the default parameters were tuned on
seeds from 100 upwards. Weak classifiers are logistic regressions of 80 rows of the archive (300 of the images), frozen.
Areas are those of one gate, fitted at coverage .5 and shifted by offsets, with both ends. It is the gate of the papers,
`prior_weight=0`, so that targets are all that differs; the onboarding benchmark has the default gate beside it.
`underfitting` is about `OneStageDeferral`, with areas by ranking. Of the weight decays .03 and .1, the second had the
larger area in all four variants on seeds 100 and 101.
"""

from functools import partial

import numpy as np
from _fista import solve_both
from _report import cpu_seconds, run, table
from _worlds import (
    area,
    area_of,
    areas,
    by_confidence,
    cifar10,
    cut_by_accuracy,
    digits,
    fit,
    people,
    with_experts,
)

from sklearn_l2d.benchmark._curves import COVERAGES, fit_and_measure, team_point
from sklearn_l2d.benchmark._tables import yes
from sklearn_l2d.benchmark._worlds import images
from sklearn_l2d.datasets import make_expert_groups, make_expert_pairs, make_specialists
from sklearn_l2d.deferral import OneStageDeferral
from sklearn_l2d.metrics import workload_distribution

REQUESTS = (0.1, 0.3, 0.5, 0.7, 0.9)
JOINT = {"weight_decay": 0.1}  # of one net for a classifier and up to 100 experts
LONG = {"max_epochs": 150, "weight_decay": 0.03}  # as a gate over a hundred targets likes it


def single(n_experts):
    """Everybody is a target."""
    return {"omega": np.eye(n_experts), "grouping": "soft"}


def together(n_experts):
    """One target of everybody."""
    return {"omega": np.ones((n_experts, 1)), "grouping": "soft"}


def cuts(omega):
    """Ready groups."""
    return {"omega": omega, "grouping": "soft"}


def coverage(seeds):
    """Requested and achieved shares of the classifier."""
    for name, build, bound in (
        ("digits, 6 experts, N'=100", lambda s: digits(make_expert_pairs, s, n_archive=1197, C=0.01), None),
        ("cifar10 features, 6 simulated experts, N'=500", lambda s: cifar10(make_expert_pairs, s), 0.015),
    ):
        raw, calibrated = [], []
        for seed in seeds[:5]:
            world = build(seed)
            labels = world.identified(100 if bound is None else 500)
            fitted = [fit(world, labels, n_groups=3, coverage=c) for c in REQUESTS]
            calibrated.append([achieved(d, world) - c for d, c in zip(fitted, REQUESTS, strict=True)])
            for deferrer in fitted:
                deferrer.offsets_ = np.zeros_like(deferrer.offsets_)
            raw.append([achieved(d, world) - c for d, c in zip(fitted, REQUESTS, strict=True)])
        c = np.array(REQUESTS)
        limit = 3 * np.sqrt(c * (1 - c) * (1 / len(world.archive) + 1 / len(world.test))) if bound is None else bound
        worst, mean = np.abs(calibrated).max(0), np.abs(calibrated).mean()
        good = (worst <= limit).all() and (bound is not None or mean <= 0.02)
        rows = [[*row, ""] for row in (
            ["raw gate, largest error", *np.abs(raw).max(0), np.abs(raw).mean()],
            ["calibrated, largest error", *worst, mean],
            ["limit", *np.broadcast_to(limit, len(c)), 0.02 if bound is None else ""],
        )]  # fmt: skip
        rows[1][-1] = yes(good)
        title = f"Achieved minus requested coverage, {name}, {len(world.test):,} unseen rows, {len(raw)} seeds"
        table(title, ["", *REQUESTS, "mean", "reached"], rows)


def workload(seeds):
    """A bound on the best expert, on rows that were not seen."""
    rows = []
    for grouping in ("profile", "soft"):
        served = []
        for seed in seeds[:5]:
            world = digits(make_expert_pairs, seed, n_archive=1197, C=0.01)
            labels, lda = world.identified(100), world.behaviours(2)
            row = []
            for bounds in (None, {0: (0.0, 0.05)}):
                deferrer = fit(world, labels, clusterer=lda, grouping=grouping, coverage=0.3, workload=bounds)
                deferral = deferrer.predict_deferral(world.X[world.test])
                row.append(workload_distribution(deferral, deferrer.selection_)[0])
            served.append(row)
        free, bounded = np.mean(served, 0)
        worst = np.max(served, 0)[1]
        rows.append([grouping, free, bounded, worst, "<= .06", yes(worst <= 0.06)])
    table(
        "Share served by the best of 6 experts on unseen rows, coverage .3, bound .05",
        ["grouping", "no bound", "bound, mean", "bound, largest", "must reach", "reached"],
        rows,
    )


def dual(seeds):
    """Whole-set share constraint against FISTA with back-tracking; one problem."""
    rows = []
    for name, balanced, goal in (("coverage pinned", False, 5), ("balanced", True, 10)):
        ours, violation, rival, off = solve_both(100_000, 50, 0.5, balanced)
        ratio = rival / ours
        rows.append([name, ours, f"{violation:.0e}", rival, f"{off:.0e}", f"{ratio:.1f}", f">= {goal}",
                     yes(ratio >= goal)])  # fmt: skip
    columns = ["bounds", "ours [s]", "violation", "FISTA [s]", "violation", "times faster", "must reach", "reached"]
    table("Share constraint, 100,000 rows, 50 experts and the classifier", columns, rows)


def pairs(seeds):
    """Three pairs of experts, as in the paper."""
    figures = []
    for seed in seeds:
        world = digits(make_expert_pairs, seed, n_archive=1197, C=0.01)
        lda = world.behaviours(2)
        systems = {
            "hard clusters": {"clusterer": lda, "grouping": "hard"},
            "soft clusters": {"clusterer": lda, "grouping": "soft"},
            "profile groups": {"clusterer": lda, "n_groups": 3},
            "single experts": single(6),
            "one cluster": together(6),
        }
        figures.append(areas(world, world.identified(100), systems))
    means = np.mean(figures, 0)
    hard, soft, _, _, one = means
    good = hard > soft > one and hard - one >= 0.02
    spread = np.std(figures, 0, ddof=min(1, len(figures) - 1))
    rows = [[name, mean, sd, ""] for name, mean, sd in zip(systems, means, spread, strict=True)]
    rows[0][3] = f"hard - one = {hard - one:.3f}: {yes(good)}"
    table(
        f"Digits, 6 experts, N'=100, area over {len(figures)} seeds; hard > soft > one, hard - one >= .02",
        ["targets", "mean", "sd", "reached"],
        rows,
    )


def hundred(seeds):
    """100 experts in 10 ability groups; the number of groups was chosen among 4 to 20 on seeds 100 to 103."""
    sizes = (25, 50, 100)
    for same in (True, False):
        figures = []
        for seed in seeds[:5]:
            world = digits(make_expert_groups, seed, n_archive=1097, C=0.003)
            lda, row = world.behaviours(4), []
            for size in sizes:
                labels = world.identified(size, same)
                systems = {
                    "profile groups, at most 8": {"clusterer": lda, "n_groups": 8},
                    "8 equal cuts along accuracy": cuts(cut_by_accuracy(labels, world.y[world.pool], 8)),
                    "soft clusters": {"clusterer": lda, "grouping": "soft"},
                    "hard clusters": {"clusterer": lda, "grouping": "hard"},
                    "one cluster": together(100),
                    "single experts": single(100),
                    "single experts, long training": single(100) | LONG,
                    "profile groups, at most 8, long training": {"clusterer": lda, "n_groups": 8} | LONG,
                    "profile groups, at most 4": {"clusterer": lda},
                }
                row.append(areas(world, labels, systems))
            figures.append(row)
        means = np.mean(figures, 0).T
        rows = [[name, *row, "", ""] for name, row in zip(systems, means, strict=True)]
        for i, goal in [(1, -0.015)] + [(i, 0.03) for i in range(2, 7)]:
            rows[i][4:] = f"profile leads by {goal}", " / ".join(verdict3(means[0] - means[i], goal))
        table(
            f"Digits, 100 experts in 10 ability groups, {'the same N' if same else 'N'}' items "
            f"{'for everybody' if same else 'of 200, different ones for each expert'}: area, {len(figures)} seeds",
            ["targets", *(f"N'={size}" for size in sizes), "must reach", "reached"],
            rows,
        )


def specialists(seeds):
    """12 experts of equal accuracy in 3 sets of classes."""
    sizes = (50, 100)
    for same in (True, False):
        figures = []
        for seed in seeds[:5]:
            world = digits(make_specialists, seed, n_archive=1097, C=0.003)
            row = []
            for size in sizes:
                labels = world.identified(size, same)
                systems = {
                    "profile groups, at most 3": {"n_groups": 3},
                    "profile groups, at most 4": {},
                    "the true groups": cuts(np.eye(3)[world.groups]),
                    "single experts": single(12),
                    "one cluster": together(12),
                }
                row.append(areas(world, labels, systems))
            figures.append(row)
        means = np.mean(figures, 0).T
        rows = [[name, *row, "", ""] for name, row in zip(systems, means, strict=True)]
        for i, goal in ((3, 0.015), (4, 0.04)):
            rows[i][3:] = f"profile leads by {goal}", " / ".join(verdict3(means[0] - means[i], goal))
        table(
            f"Digits, 12 specialists of equal accuracy, {'the same' if same else 'different'} N' items: area, "
            f"{len(figures)} seeds",
            ["targets", *(f"N'={size}" for size in sizes), "must reach", "reached"],
            rows,
        )


def roster(seeds):
    """Half of the experts leave, new ones of the same groups come."""
    figures = []
    for seed in seeds[:5]:
        world = digits(make_expert_groups, seed, n_archive=1097, C=0.003, n_groups=5, n_per_group=8)
        old = np.flatnonzero(np.arange(40) % 8 < 4)
        new = np.setdiff1d(np.arange(40), old)
        stay = old[old % 4 < 2]
        labels = world.identified(100)
        few = world.identified(25)
        lda = with_experts(world, old).behaviours(4)
        start = fit(world, labels[:, old], clusterer=lda)
        names, leavers = [f"new{m}" for m in new], [i for i, m in enumerate(old) if m not in stay]
        row = [accuracy(start, world, old)]
        now = np.concatenate([stay, new])
        joined = np.hstack([labels[:, stay], few[:, new]])
        for y in (world.y[world.pool], None):
            deferrer = fit(world, labels[:, old], clusterer=lda).offboard(leavers)
            seen = (few[:, new] >= 0).any(1)
            deferrer.onboard(names, world.X[world.pool[seen]], few[seen][:, new], None if y is None else y[seen])
            row.append(accuracy(deferrer, world, now))
        row.append(accuracy(fit(world, joined, clusterer=lda), world, now))
        row.append(accuracy(fit(world, joined, **together(30)), world, now))
        figures.append(row)
    before, told, untold, rival, one = np.mean(figures, 0)
    table(
        "Digits, 20 experts in 5 groups; 10 leave, 20 of the same groups join with 25 labels each: team accuracy at "
        f"coverage .5, {len(figures)} seeds",
        ["roster", "accuracy", "below the rival", "must reach", "reached"],
        [
            ["before the change", before, "", "", ""],
            ["onboard with y", told, rival - told, "<= .01", yes(rival - told <= 0.01)],
            ["onboard without y", untold, rival - untold, "<= .03", yes(rival - untold <= 0.03)],
            ["rival: retrained on the same labels", rival, "", "", ""],
            ["one cluster, retrained", one, "", "", ""],
        ],
    )


def crowds(seeds):
    """Real people."""
    rows = []
    for name, least, size in (
        ("sentiment_polarity", 30, 200),
        ("medical_relation_treat", 10, 100),
        ("cue_conflict", 30, 25),
    ):
        figures = []
        for seed in seeds[:5]:
            world = people(name, seed, least=least)
            labels, n_experts = world.identified(size), world.annotations.shape[1]
            fitted = [fit(world, labels, **settings) for settings in ({}, {"grouping": "soft"}, together(n_experts))]
            own = fitted[0].predict(world.X[world.test]) == world.y[world.test]
            figures.append([*(area(world, d) for d in fitted), by_confidence(world, fitted[0]), own.mean()])
        means = np.mean(figures, 0)
        rows.append([name, n_experts, *means, yes(means[0] >= means[2])])
    table(
        "Real people: area; profile groups must not be below one cluster. Deferred items go to the preferred target "
        "that somebody answers for",
        ["set", "people", "profile groups", "soft clusters", "one cluster", "by classifier confidence",
         "classifier alone", "reached"],
        rows,
    )  # fmt: skip


def path(seeds):
    """One gate and offsets against a gate for every coverage, and what a fit costs."""
    figures = []
    for seed in seeds[:3]:
        world = digits(make_expert_groups, seed, n_archive=1097, C=0.003)
        labels = world.identified(100)
        settings = cuts(cut_by_accuracy(labels, world.y[world.pool], 4))
        one = fit(world, labels, **settings)
        each = [fit(world, labels, coverage=c, **settings) for c in COVERAGES]
        seconds = cpu_seconds(lambda world=world, labels=labels, settings=settings: fit(world, labels, **settings))
        figures.append([area(world, one), area_of(world, each), seconds])
    table(
        f"One gate at coverage .5 and offsets against one gate per coverage: 100 experts, N'=100, {len(figures)} seeds",
        ["area, one gate", "area, seven gates", "CPU seconds of a fit: 200 rows, 100 experts"],
        [np.mean(figures, 0)],
    )


def underfitting(seeds):
    """One net for a classifier and many experts, of whom all who are right count, or the most confident one (PiCCE)."""
    surrogates, kinds, nobody = ("softmax", "ova"), ("all", "most_confident_correct"), {}
    for ability, rates in (("weak", (0.5, 0.8)), ("able", (0.05, 0.5))):
        rows = []
        for n_experts in (10, 50, 100):
            figures = []
            for seed in seeds[:5]:
                make = partial(make_expert_groups, n_groups=5, n_per_group=n_experts // 5, rates=rates)
                world = images(make, seed, n_components=64)
                data = world.labelled(world.identified(1000, same_items=True), with_known=True)
                row = []
                for surrogate in surrogates:
                    one = partial(OneStageDeferral, surrogate, random_state=seed, **JOINT)
                    if (seed, surrogate) not in nobody:  # the items are the same, whoever annotates them
                        alone = one().fit(**data | {"annotations": None})
                        nobody[seed, surrogate] = alone.score(world.X[world.test], world.y[world.test])
                    each = [fit_and_measure(world, one(experts=kind), data) for kind in kinds]
                    row.append([[f["area"], f["accuracy"], f["classifier"], nobody[seed, surrogate]] for f in each])
                figures.append(row)
            figures = np.array(figures)  # seeds, surrogates, kinds, figures
            for k, surrogate in enumerate(surrogates):
                every, one = figures[:, k, 0].T, figures[:, k, 1].T
                pairs = [figure.mean() for pair in zip(every[:3], one[:3], strict=True) for figure in pair]
                reached = yes((one[3] - one[2]).mean() <= 0.005) if (ability, n_experts) == ("weak", 50) else ""
                rows.append(
                    [n_experts, surrogate, *pairs[:2], paired(one[0] - every[0]), *pairs[2:], one[3].mean(),
                     paired(one[2] - one[3]), reached]
                )  # fmt: skip
        table(
            f"Many {ability} experts, who err on {rates[0]:.0%} to {rates[1]:.0%}: one net, cifar10, 1,000 items that "
            "everybody annotates and 300 without annotations. Area, accuracy of the team at its own coverage and of "
            f"the classifier in the net; paired means and standard errors, {len(figures)} seeds",
            ["experts", "surrogate", "area", "area, PiCCE", "PiCCE - all", "team", "team, PiCCE", "classifier",
             "classifier, PiCCE", "without experts", "PiCCE - without", "lost <= .005"],
            rows,
        )  # fmt: skip


def paired(differences):
    """Mean and standard error of paired differences."""
    error = differences.std(ddof=1) / len(differences) ** 0.5 if len(differences) > 1 else np.nan
    return f"{differences.mean():+.3f} +- {error:.3f}"


def achieved(deferrer, world):
    """Coverage on the test set."""
    return (deferrer.predict_deferral(world.X[world.test]) < 0).mean()


def accuracy(deferrer, world, experts):
    """Of a team of these experts."""
    return team_point(with_experts(world, experts), deferrer)[1]


def verdict3(leads, goal):
    """Whether leads reach a bound, to three decimals."""
    return [yes(round(lead, 3) >= goal) for lead in leads]


TABLES = {
    f.__name__: f for f in (coverage, workload, dual, pairs, hundred, specialists, roster, crowds, path, underfitting)
}


if __name__ == "__main__":
    run(TABLES, "Figures of ClusterDeferral")
