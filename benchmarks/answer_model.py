"""Accuracy and calibration of labels fused from the classifier and a few random answers to every item.

    python benchmarks/answer_model.py > benchmarks/results/answer_model.md

An item counts at T answers if T experts or more answered it. Excess is mean confidence minus accuracy.
"""

import time
import tracemalloc

import numpy as np
from _report import run, table
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from sklearn_l2d._numerics._answer_model import answer_log_likelihood, fit_answer_model, told
from sklearn_l2d._numerics._difficulty import Told
from sklearn_l2d._numerics._fusion import Exponents, fit_exponents, fuse
from sklearn_l2d.annotations import Votes, encode_votes
from sklearn_l2d.benchmark._tables import standard_error
from sklearn_l2d.benchmark._worlds import SETS
from sklearn_l2d.deferral import PanelDeferral
from sklearn_l2d.deferral._classifier import fit_classifier, judge_classifier, tempered_proba

SIZES = 25, 50
N_ANSWERS = 1, 2, 3
FUSED = "classifier and answers"


def accuracy(seeds):
    """One table for every set and number of labels by name."""
    for name, world_set in SETS.items():
        worlds = [world_set.build(seed) for seed in seeds]
        for size in (s for s in SIZES if s <= world_set.largest):
            figures = [one_world(world, size, world_set.same_items) for world in worlds]
            rows = [[method, *np.ravel([summary(figures, method, t) for t in N_ANSWERS])] for method in figures[0]]
            columns = [f"{what}, T={t}" for t in N_ANSWERS for what in ("accuracy", "excess")]
            table(f"{name}, N'={size}", ["", *columns], rows)


def one_world(world, size, same_items):
    """Accuracy and excess confidence, NaN without confidence, of every method for every number of answers."""
    classes = np.unique(world.y)
    given = world.labelled(world.identified(size, same_items))
    X, y = given["X"], given["y"]
    fitted = fit_classifier(world.classifier, X, y, world.seed)
    proba, temperature, _ = judge_classifier(world.classifier, fitted, X, y, classes, 5, world.seed)
    votes = encode_votes(given["annotations"], classes=np.arange(len(classes)))
    truth = np.eye(len(classes))[np.searchsorted(classes, y)]
    X_test, y_test = world.X[world.test], np.searchsorted(classes, world.y[world.test])
    answers = encode_votes(world.annotations[world.test], classes=np.arange(len(classes)))
    log_prior = np.log(tempered_proba(fitted, X_test, classes, temperature))
    model = fit_answer_model(votes.item, votes.annotator, votes.label, world.n_experts, truth)
    competence = model.people.expected(model.right.sum(1), model.seen.sum(1))
    weight = np.log(competence * (len(classes) - 1) / (1 - competence)).clip(0)
    by_answers = {}
    for n_behaviours in (0, 1, 2):
        shape, shape_test = (behaviour(world, n_behaviours, X_, v) for X_, v in ((X, votes), (X_test, answers)))
        model = fit_answer_model(votes.item, votes.annotator, votes.label, world.n_experts, truth, shape)
        unseen = told(model, votes.annotator, votes.label, shape, truth[votes.item])
        exponents = fit_exponents(np.log(proba), votes.item, votes.annotator, unseen, truth)
        heard = told(model, answers.annotator, answers.label, shape_test)
        if n_behaviours == 0:
            by_answers["as independent answers"] = heard, Exponents()
        by_answers[f"{FUSED}, K={n_behaviours}" if n_behaviours else FUSED] = heard, exponents
    figures = {}
    for t in N_ANSWERS:
        kept = some_answers(answers.item, t, np.random.default_rng(world.seed))
        item, expert, label = answers.item[kept], answers.annotator[kept], answers.label[kept]
        rows = np.unique(item)
        faint, right = 1e-3 * np.exp(log_prior), y_test[rows]
        figures["classifier alone", t] = judged(log_prior[rows], right)
        for method, votes_for in (("majority vote", np.ones(len(item))), ("weighted vote", weight[expert])):
            tally = faint.copy()
            np.add.at(tally, (item, label), votes_for)
            figures[method, t] = (tally[rows].argmax(1) == right).mean(), np.nan
        for method, (heard, exponents) in by_answers.items():
            some = Told(*(column[kept] for column in heard))
            figures[method, t] = judged(fuse(log_prior, item, some, exponents)[rows], right)
    return {method: {t: figures[method, t] for t in N_ANSWERS} for method, _ in figures}


def behaviour(world, n_behaviours, X, votes):
    """What the last of so many behaviours of the archive answers at the item of every answer; None for none."""
    if n_behaviours == 0:
        return None
    return world.behaviours(n_behaviours).predict_annotation_proba(X)[votes.item, -1]


def some_answers(item, n_answers, rng):
    """Positions of `n_answers` random answers to every item that has as many; `item` is sorted."""
    order = np.lexsort((rng.random(len(item)), item))
    place = np.arange(len(item)) - np.searchsorted(item, item)
    enough = np.bincount(item)[item] >= n_answers
    return np.sort(order[(place < n_answers) & enough])


def judged(log_posterior, y):
    """Accuracy, and mean confidence less accuracy."""
    right = (log_posterior.argmax(1) == y).mean()
    return right, np.exp(log_posterior.max(1)).mean() - right


def summary(figures, method, n_answers):
    """Mean and standard error over seeds of accuracy and excess."""
    columns = zip(*(f[method][n_answers] for f in figures), strict=True)
    return [
        "" if np.isnan(values).any() else f"{np.mean(values):.3f} ({standard_error(values):.3f})" for values in columns
    ]


def scale(_):
    """Seconds and memory on simulated answers, 70 % of them right."""
    rows = []
    for n_experts, n_classes, n_answers in ((10_000, 10, 1_000_000), (1_000, 2, 1_000_000), (10_000, 100, 50_000)):
        rng = np.random.default_rng(0)
        y = rng.integers(n_classes, size=n_answers // 5)
        item, expert = np.arange(n_answers) // 5, rng.integers(n_experts, size=n_answers)
        label = np.where(rng.random(n_answers) < 0.7, y[item], rng.integers(n_classes, size=n_answers))
        truth = np.eye(n_classes)[y]
        model, fit = timed(lambda: fit_answer_model(item, expert, label, n_experts, truth))  # noqa: B023
        _, judge = timed(lambda: answer_log_likelihood(model, expert, label))  # noqa: B023
        tracemalloc.start()
        answer_log_likelihood(fit_answer_model(item, expert, label, n_experts, truth), expert, label)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        rows.append([n_experts, n_classes, n_answers, fit, judge, f"{peak:.0f}"])
    table("Scale", ["experts", "classes", "answers", "fit [s]", "log-likelihood [s]", "peak of both [MB]"], rows)


def asking(_):
    """CPU seconds of `PanelDeferral` on simulated answers, 70 % of them right, and memory beyond items and votes."""
    rows = []
    for n_experts, n_classes, n_items, n_asked in (
        (6, 3, 2_000, 10_000),
        (100, 10, 2_000, 10_000),
        (10_000, 100, 10_000, 100),
    ):
        rng = np.random.default_rng(0)
        centers = 2 * rng.normal(size=(n_classes, 20))
        y = rng.integers(n_classes, size=n_items + n_asked)
        X = centers[y] + rng.normal(size=(len(y), 20))
        item, expert = np.arange(5 * n_items) // 5, rng.integers(n_experts, size=5 * n_items)
        pairs = np.unique(item * n_experts + expert)
        item, expert = np.divmod(pairs, n_experts)
        label = np.where(rng.random(len(item)) < 0.7, y[item], rng.integers(n_classes, size=len(item)))
        votes = Votes(item, expert, label, n_items, np.arange(n_classes), np.arange(n_experts))
        classifier = FrozenEstimator(GaussianNB().fit(X[:n_items], y[:n_items]))
        team = PanelDeferral(classifier, random_state=0)
        fit = cpu_seconds(lambda: team.fit(X[:n_items], y[:n_items], votes, X_unlabeled=X[n_items:]))  # noqa: B023
        team.next_expert(X[n_items : n_items + 1])
        one = [cpu_seconds(lambda: team.next_expert(X[[i]])) for i in range(n_items, n_items + 100)]  # noqa: B023
        many = cpu_seconds(lambda: team.next_expert(X[n_items:]))  # noqa: B023
        tracemalloc.start()
        team.fit(X[:n_items], y[:n_items], votes, X_unlabeled=X[n_items:]).next_expert(X[n_items:])
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        one = [f"{1e3 * np.quantile(one, q):.1f}" for q in (0.5, 0.99)]
        rows.append([n_experts, n_classes, n_items, fit, *one, f"{n_asked}: {many:.2f}", f"{peak:.0f}"])
    columns = ["experts", "classes", "labelled items", "fit [s]", "next_expert, 1 row: median [ms]", "99 % [ms]"]
    table("Asking one by one", [*columns, "rows: next_expert [s]", "peak of all [MB]"], rows)


def cpu_seconds(function):
    """CPU seconds of a call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def timed(function):
    """Return value and seconds of the second call."""
    function()
    start = time.perf_counter()
    return function(), time.perf_counter() - start


if __name__ == "__main__":
    run(
        {"accuracy": accuracy, "scale": scale, "asking": asking},
        "Labels fused from the classifier and T random answers",
        "Means over seeds with standard errors. Excess is mean confidence minus accuracy, on the items with T answers "
        "or more. K behaviours of the archive shape up to .3 of the wrong answers; with two classes they cannot.",
    )
