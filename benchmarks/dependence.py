"""Forms of dependence between people, and between people and the classifier, beside the one that deferrers have.

    python benchmarks/dependence.py --seeds 5 > benchmarks/results/dependence.md

Each form learns its numbers from the labels by name, each answer judged by all others, as `fit` does, and is judged on
test items that T people answered: random ones, or those who are expected to be the most accurate, as a panel asks.
"""

from typing import NamedTuple

import numpy as np
from _report import run, table
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit, logsumexp

from sklearn_l2d._numerics import _answer_model, _fusion
from sklearn_l2d._numerics._answer_model import answer_log_likelihood, fit_answer_model
from sklearn_l2d._numerics._fusion import _SPREAD
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.benchmark._tables import standard_error
from sklearn_l2d.benchmark._worlds import SETS
from sklearn_l2d.benchmark.experiments import _answers
from sklearn_l2d.deferral._classifier import fit_classifier, judge_classifier, tempered_proba

CHOSEN = "cue_conflict", "music_genre", "medical_relation_treat"
N_ANSWERS = 1, 2, 3
SIZE = 25
GRID = 0.25, 0.5, 0.9, 1, 1.1, 1.5, 2, 3  # answers per item that panels are asked for
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
LOWEST = 1e-4
CORRELATION = 0.25  # center of the prior of the forms that are compared


class Answers(NamedTuple):
    """Answers to items in the order of the items, and what is known before them."""

    item: np.ndarray
    expert: np.ndarray
    label: np.ndarray
    log_likelihood: np.ndarray
    accuracy: np.ndarray
    log_prior: np.ndarray
    y: np.ndarray

    @property
    def is_right(self):
        return self.label[:, None] == np.arange(self.log_prior.shape[1])

    def moved(self, change):
        """Log-likelihoods where the logit of the accuracy changes."""
        accuracy = expit(logit(self.accuracy) + change).clip(LOWEST, 1 - LOWEST)
        factor = np.where(self.is_right, accuracy / self.accuracy, (1 - accuracy) / (1 - self.accuracy))
        return self.log_likelihood + np.log(factor)


class Form:
    """One correlation r of all people: ``(a ln p(y | x) + b sum ln p(answer | y)) / (1 + r (T - 1))``.

    `start` and `bounds` are those of a, b (in logs), r and further numbers.
    """

    start, bounds = (0.0, 0.0, CORRELATION), ((-3, 3), (-3, 3), (0, 1))

    def __init__(self, spread=_SPREAD):
        self.spread = spread

    def log_likelihood(self, answers, extra):
        return answers.log_likelihood

    def combined(self, evidence, b, extra):
        return b * evidence

    def far(self, point):
        """Penalty of numbers."""
        return 2 * (point[:2] @ point[:2]) + np.log1p(((point[2] - CORRELATION) / self.spread) ** 2)

    def pairs(self, answers, before, point):
        """Sum of the correlations (n_answers,) of everybody before and each answer with one another."""
        return point[2] * before * (before + 1) / 2

    def posterior(self, answers, order, point):
        """Size, and log posterior, given the answers to an item up to each one in an order."""
        (a, b), extra, item = np.exp(point[:2]), point[3:], answers.item[order]
        first = np.searchsorted(item, item)
        total = np.cumsum(self.log_likelihood(answers, extra)[order], axis=0)
        evidence = total - np.where(first > 0, total[first - 1].T, 0.0).T
        size = np.arange(len(item)) - first + 1
        design = 1 + 2 * self.pairs(answers, size - 1, point) / size
        joint = a * answers.log_prior[item] + self.combined(evidence, b, extra)
        return size, log_softmax(joint / design[:, None], axis=1)

    def fitted(self, answers, seed):
        """Numbers by penalised likelihood, as `fit_exponents` weighs answers."""
        rng = np.random.default_rng(seed)
        orders = [np.lexsort((rng.random(len(answers.item)), answers.item)) for _ in range(3)]

        def loss(point):
            total = 0.0
            for order in orders:
                size, log_posterior = self.posterior(answers, order, point)
                item = answers.item[order]
                weight = 1 / size
                weight /= np.bincount(item, weight, len(answers.y))[item]
                total -= weight @ log_posterior[np.arange(len(item)), answers.y[item]] / len(orders)
            return total + self.far(point)

        options = {"maxiter": 30}
        return minimize(loss, self.start, method="L-BFGS-B", bounds=self.bounds, options=options).x


class Independent(Form):
    """Bayes' rule."""

    def fitted(self, answers, seed):
        return np.zeros(3)


class Pairs(Form):
    """A correlation for every pair, from how often both err beyond what is expected; five items count as the prior."""

    def fitted(self, answers, seed):
        point = super().fitted(answers, seed)
        chance = answers.accuracy[np.arange(len(answers.item)), answers.y[answers.item]]
        shape = len(answers.y), answers.expert.max() + 1
        residual, deviation = np.zeros(shape), np.zeros(shape)
        where = answers.item, answers.expert
        residual[where] = (answers.label == answers.y[answers.item]) - chance
        deviation[where] = np.sqrt(chance * (1 - chance))
        both, told = residual.T @ residual, deviation.T @ deviation
        n_common = (deviation > 0).T.astype(float) @ (deviation > 0)
        apart = ~np.eye(shape[1], dtype=bool)
        mean = both[apart].sum() / told[apart].sum()
        share = n_common / (n_common + 5)
        self.of_pair = (point[2] + share * (both / np.maximum(told, 1e-9) - mean)).clip(0, 1)
        self.known = True
        return point

    def posterior(self, answers, order, point):
        self.order = order
        return super().posterior(answers, order, point)

    def pairs(self, answers, before, point):
        if not hasattr(self, "known"):
            return super().pairs(answers, before, point)
        expert = answers.expert[self.order]
        new = np.zeros(len(expert))
        for back in range(1, before.max() + 1):
            some = np.flatnonzero(before >= back)
            new[some] += self.of_pair[expert[some], expert[some - back]]
        total = np.cumsum(new)
        start = np.arange(len(expert)) - before
        return total - np.where(start > 0, total[start - 1], 0.0)


class Difficulty(Form):
    """All are better or worse at an item by a normal difficulty, which is integrated out."""

    start, bounds = (*Form.start, 0.7), (*Form.bounds, (0, 4))

    def log_likelihood(self, answers, extra):
        keep = (np.sqrt(1 + 0.346 * extra[0] ** 2) - 1) * logit(answers.accuracy)  # about the same mean accuracy
        return np.concatenate([answers.moved(keep + extra[0] * node) for node in NODES], axis=1)

    def combined(self, evidence, b, extra):
        by_node = evidence.reshape(len(evidence), len(NODES), -1)
        return b * logsumexp(by_node, axis=1, b=WEIGHTS[:, None] / WEIGHTS.sum())


class OnlyDifficulty(Difficulty):
    """The same in place of the correlation."""

    bounds = (*Form.bounds[:2], (0, 0), (0, 4))
    start = 0.0, 0.0, 0.0, 0.7

    def far(self, point):
        return 2 * (point[:2] @ point[:2])


class Apparent(Form):
    """All see the same class, which is not always the true one; answers are independent given what is seen."""

    start, bounds = (0.0, 0.0, 0.0, 0.05), (*Form.bounds[:2], (0, 0), (0, 0.5))

    def __init__(self, wrong):
        self.wrong = wrong

    def far(self, point):
        return 2 * (point[:2] @ point[:2])

    def combined(self, evidence, b, extra):
        evidence = b * (evidence - evidence.max(1, keepdims=True))
        seen = (1 - extra[0]) * np.eye(len(self.wrong)) + extra[0] * self.wrong
        return np.log(np.exp(evidence) @ seen.T + 1e-300)


class Sure(Form):
    """People are better where the classifier is sure."""

    start, bounds = (*Form.start, 0.0), (*Form.bounds, (-2, 2))

    def log_likelihood(self, answers, extra):
        confidence = logit(np.exp(answers.log_prior).max(1).clip(0.01, 0.99))
        return answers.moved(extra[0] * (confidence - confidence.mean())[answers.item, None])

    def far(self, point):
        return super().far(point) + 2 * point[3] ** 2


class Score(Sure):
    """People are better the more probable the classifier finds the true class (Wei et al., 2024)."""

    def log_likelihood(self, answers, extra):
        mean = (np.exp(answers.log_prior) * answers.log_prior).sum(1).mean()
        return answers.moved(extra[0] * (answers.log_prior[answers.item] - mean))


def forms(model):
    """All forms by name."""
    return {
        "independent": Independent(),
        "one correlation, no prior": Form(spread=np.inf),
        "one correlation": Form(),
        "a correlation for each pair": Pairs(),
        "difficulty of the item": OnlyDifficulty(),
        "difficulty and correlation": Difficulty(),
        "apparent class": Apparent(model.wrong),
        "better where the classifier is sure": Sure(),
        "better where the classifier is right": Score(),
    }


def calibration(seeds):
    """One table for every set."""
    for name in CHOSEN:
        figures = [figure for seed in seeds for figure in [one_world(SETS[name], seed)]]
        rows = []
        for key in figures[0]:
            values = np.array([figure[key] for figure in figures])  # seeds, T, (excess, loss, accuracy)
            cells = [f"{values[:, t, 0].mean():+.3f} ({standard_error(values[:, t, 0]):.3f})" for t in range(3)]
            rows.append([*key, *cells, *values[:, 1:, 1].mean(0), *values[:, 1:, 2].mean(0)])
        columns = [
            "asked", "prior of accuracy", "dependence", *[f"excess, T={t}" for t in N_ANSWERS],
            "log loss, T=2", "T=3", "accuracy, T=2", "T=3",
        ]  # fmt: skip
        table(f"{name}, N'={SIZE}", columns, rows)


def asking(seeds):
    """A panel that chooses whom to ask, with each prior of accuracy and less and more of its model of dependence."""
    budgets, enough, tried = _answers._budgets, _answer_model._ENOUGH_EXPERTS, _fusion._DIFFICULTIES
    _answers._budgets = lambda most: [b for b in GRID if b < most + 0.01]
    for name in CHOSEN:
        figures = {}
        for seed in seeds:
            world = SETS[name].build(seed)
            task = _answers.Task.of(world, world.identified(SIZE, SETS[name].same_items))
            for least, of_people in ((np.inf, "one Beta"), (enough, "one or two")):
                for key, spread, difficulties in (
                    ("one correlation, no prior", np.inf, (0.0,)),
                    ("a correlation near 0", _SPREAD, (0.0,)),
                    ("correlation and difficulty", _SPREAD, tried),
                ):
                    _answer_model._ENOUGH_EXPERTS, _fusion._SPREAD, _fusion._DIFFICULTIES = least, spread, difficulties
                    points = [point[:3] for point in _answers.METHODS["panel"](task)]
                    figures.setdefault((of_people, key), []).append(points)
            _answer_model._ENOUGH_EXPERTS, _fusion._SPREAD, _fusion._DIFFICULTIES = enough, _SPREAD, tried
        rows = []
        for key, of_seeds in figures.items():
            _, accuracy, excess = np.transpose(np.array(of_seeds, dtype=float), (2, 1, 0))
            cells = [f"{values.mean():+.3f} ({standard_error(values):.3f})" for values in excess[2:]]
            rows.append([*key, *cells, *accuracy[2:].mean(1)])
        columns = [f"{what}, {b:g}" for what in ("excess", "accuracy") for b in _answers.BUDGETS[2:]]
        columns = ["prior of accuracy", "dependence", *columns]
        table(f"A panel, by answers per item, {name}, N'={SIZE}", columns, rows)
    _answers._budgets = budgets


def one_world(world_set, seed):
    """Excess, log loss and accuracy by whom was asked, the prior of accuracy, and the form."""
    world = world_set.build(seed)
    classes, figures = np.unique(world.y), {}
    given = world.labelled(world.identified(SIZE, world_set.same_items))
    X, y = given["X"], np.searchsorted(classes, given["y"])
    fitted = fit_classifier(world.classifier, X, given["y"], seed)
    proba, temperature, _ = judge_classifier(world.classifier, fitted, X, given["y"], classes, 5, seed)
    votes, truth = encode_votes(given["annotations"], classes=classes), np.eye(len(classes))[y]
    rows = world.test[(world.annotations[world.test] >= 0).any(1)]
    new = encode_votes(world.annotations[rows], classes=classes)
    log_prior = np.log(tempered_proba(fitted, world.X[rows], classes, temperature))
    y_new = np.searchsorted(classes, world.y[rows])
    enough = _answer_model._ENOUGH_EXPERTS
    for prior, least in (("one Beta", np.inf), ("one or two", enough)):
        _answer_model._ENOUGH_EXPERTS = least
        model = fit_answer_model(votes.item, votes.annotator, votes.label, world.n_experts, truth)
        _answer_model._ENOUGH_EXPERTS = enough
        known = answers_of(model, votes, np.log(proba), y, truth[votes.item])
        unseen = answers_of(model, new, log_prior, y_new)
        for name, form in forms(model).items():
            point = form.fitted(known, seed)
            for asked, key in (("random", 0.0), ("best", -unseen.accuracy.mean(1))):
                order = np.lexsort((np.random.default_rng(seed).random(len(unseen.item)), key + 0 * unseen.item,
                                    unseen.item))  # fmt: skip
                size = np.arange(len(order)) - np.searchsorted(unseen.item[order], unseen.item[order]) + 1
                figures[asked, prior, name] = judged(form, unseen, order[size <= N_ANSWERS[-1]], point)
    return dict(sorted(figures.items(), key=lambda entry: entry[0][:2], reverse=True))


def answers_of(model, votes, log_prior, y, left_out=None):
    """`Answers` of votes."""
    expert, label, n_classes = votes.annotator, votes.label, log_prior.shape[1]
    told = answer_log_likelihood(model, expert, label, None, left_out)
    if left_out is None:
        accuracy = model.correctness[expert]
    else:  # the likelihood of the right answer, whatever the answer was
        seen = model.seen[expert] - left_out
        right = model.right[expert] - left_out * (label[:, None] == np.arange(n_classes))
        own = _answer_model._class_accuracy(right.sum(1), seen.sum(1), model.people, model.offset)
        accuracy = (right + model.strength * own) / (seen + model.strength)
    return Answers(votes.item, expert, label, told, accuracy.clip(LOWEST, 1 - LOWEST), log_prior, y)


def judged(form, answers, order, point):
    """Excess, log loss and accuracy (3, 3) of the posterior given one, two and three answers."""
    size, log_posterior = form.posterior(answers, order, point)
    y, figures = answers.y[answers.item[order]], []
    for t in N_ANSWERS:
        told, truth = log_posterior[size == t], y[size == t]
        accuracy = (told.argmax(1) == truth).mean()
        excess = np.exp(told.max(1)).mean() - accuracy
        figures.append([excess, -told[np.arange(len(told)), truth].mean(), accuracy])
    return figures


if __name__ == "__main__":
    run(
        {"calibration": calibration, "asking": asking},
        "Dependence of answers on one another and on the classifier",
        "Excess is mean confidence minus accuracy (standard error over seeds) on the items with T answers or more, by "
        "random people or by those who are expected to be the most accurate; log loss and accuracy are means. The "
        "accuracy of people has one Beta prior, or one of two kinds of people where they are. Deferrers have one "
        "correlation, with a prior, and one or two kinds; the shape of errors by an archive is left out here.",
    )
