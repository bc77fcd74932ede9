"""The worth of an answer, against its definition."""

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_l2d._numerics import _matrices
from sklearn_l2d._numerics._answer_model import answer_log_likelihood, fit_answer_model
from sklearn_l2d._numerics._answer_worth import accuracy_with_answer, answer_worth, mean_likelihood, worth_of_some
from sklearn_l2d._numerics._fusion import Exponents

N_EXPERTS = 4


def random_case(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    item, expert = np.repeat(np.arange(60), 2), rng.integers(N_EXPERTS, size=120)
    y = rng.integers(n_classes, size=60)
    label = np.where(rng.random(120) < 0.4 + expert / 8, y[item], rng.integers(n_classes, size=120))
    model = fit_answer_model(item, expert, label, N_EXPERTS, np.eye(n_classes)[y])
    return model, rng.dirichlet(np.ones(n_classes), size=7), rng.integers(4, size=7)


def by_definition(q, expert, n_answers, model, exponents, cost):
    """Expected fall of the cost of the best decision, and mutual information, by loops over truths and answers."""
    n_classes = len(q)
    power = exponents.answers / (1 + exponents.correlation * n_answers)
    likelihood = np.empty((n_classes, n_classes))  # answer, truth
    for answer in range(n_classes):
        row = answer_log_likelihood(model, np.array([expert]), np.array([answer]))[0]
        likelihood[answer] = np.exp(row) ** power
    likelihood /= likelihood.sum(0)
    before = min(sum(q[y] * cost[y, d] for y in range(n_classes)) for d in range(n_classes))
    after, information = 0.0, 0.0
    for answer in range(n_classes):
        chance = sum(q[y] * likelihood[answer, y] for y in range(n_classes))
        posterior = [q[y] * likelihood[answer, y] / chance for y in range(n_classes)]
        after += chance * min(sum(posterior[y] * cost[y, d] for y in range(n_classes)) for d in range(n_classes))
        information += sum(chance * p * np.log(p / q[y]) for y, p in enumerate(posterior))
    mean_cost = np.mean([cost[y, d] for y, d in product(range(n_classes), repeat=2) if y != d])
    return before - after + 0.1 * mean_cost * information


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("with_cost", [False, True])
def test_equals_the_definition(n_classes, with_cost, monkeypatch):
    monkeypatch.setattr(_matrices, "_CHUNK", 40)  # several blocks of items and of experts
    model, proba, size = random_case(n_classes)
    exponents = Exponents(0.9, 1.2, 0.3)
    cost = np.random.default_rng(1).random((n_classes, n_classes)) * (1 - np.eye(n_classes)) if with_cost else None
    loss = 1 - np.eye(n_classes) if cost is None else cost
    expected = [
        [by_definition(q, j, t, model, exponents, loss) for j in range(N_EXPERTS)]
        for q, t in zip(proba, size, strict=True)
    ]
    worth = answer_worth(proba, size, model, exponents, cost)
    assert_allclose(worth, expected, atol=1e-12)
    who = np.array([[2, -1], [0, 3], [1, 2], [3, 0], [0, 0], [2, 1], [3, 3]])
    some = worth_of_some(proba, size, who, model, exponents, cost)
    named = who >= 0
    assert_allclose(some[named], np.take_along_axis(worth, np.maximum(who, 0), axis=1)[named], atol=1e-12)


def test_nothing_is_worth_less_than_nothing():
    model, _, size = random_case(3)
    certain = np.eye(3)[[0, 1, 2, 0, 1, 2, 0]]
    assert_allclose(answer_worth(certain, size, model, Exponents()), 0.0, atol=1e-12)
    anything = np.random.default_rng(2).dirichlet([0.3] * 3, size=500)
    assert (answer_worth(anything, np.zeros(500, dtype=int), model, Exponents()) > -1e-12).all()


def test_another_answer_is_worth_less_if_people_err_alike():
    model, proba, _ = random_case(3)
    worth = [answer_worth(proba, np.full(7, t), model, Exponents(correlation=0.3)) for t in range(4)]
    for more, less in pairwise(worth):
        assert (less <= more + 1e-12).all()
        assert less.sum() < more.sum()
    alone = [answer_worth(proba, np.full(7, t), model, Exponents()) for t in (0, 3)]
    assert_allclose(*alone)


def test_accuracy_with_an_answer_is_that_of_the_mean_member(monkeypatch):
    monkeypatch.setattr(_matrices, "_CHUNK", 40)
    model, proba, _ = random_case(3)
    selection = np.array([[0.5, 0.5, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    likelihood = mean_likelihood(model, selection)  # truth, group, answer
    assert_allclose(likelihood[:, :2].sum(2), 1)
    for j, a in product(range(N_EXPERTS), range(3)):
        one = np.exp(answer_log_likelihood(model, np.array([j]), np.array([a]))[0])
        assert_allclose(mean_likelihood(model, np.eye(N_EXPERTS)[[j]])[:, 0, a], one)
    accuracy = accuracy_with_answer(proba, likelihood)
    for i, group in product(range(len(proba)), range(2)):
        expected = sum(max(proba[i, y] * likelihood[y, group, a] for y in range(3)) for a in range(3))
        assert accuracy[i, group] == pytest.approx(expected)
