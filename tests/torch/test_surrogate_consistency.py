"""Surrogate losses at the minimum of their expectation, against the best rule.

The populations are small tables: items x, a distribution of the class, and who is right. Expectations are sums over all
outcomes, minimised over one row of logits per item, and compared with the best rule found by looking at the table.
"""

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from sklearn_l2d._torch._losses import (
    mixture_loss,
    most_confident_loss,
    one_vs_all_loss,
    realizable_loss,
    softmax_loss,
)
from sklearn_l2d.deferral._surrogate import less_price, one_vs_all_link, softmax_link

NAN = np.nan
N_CLASSES = 3


class Population:
    """Items x with a distribution of the class, and experts who are right with a probability per item and class.

    The experts' annotations are missing half the time, whatever they would have been, unless `answered` is 1.
    """

    def __init__(self, class_proba, right_proba, answered=0.5):
        self.answered = answered
        self.class_proba, self.right_proba = np.asarray(class_proba, float), np.asarray(right_proba, float)
        self.correctness = np.einsum("xc,xjc->xj", self.class_proba, self.right_proba)

    def outcomes(self):
        """Item, label, right answers and probability of everything that can happen."""
        n_experts = self.right_proba.shape[1]
        for x, label in itertools.product(range(len(self.class_proba)), range(self.class_proba.shape[1])):
            for right in itertools.product([1.0, 0.0, NAN], repeat=n_experts):
                chance = self.class_proba[x, label]
                for j, r in enumerate(right):
                    p = self.right_proba[x, j, label]
                    chance *= 1 - self.answered if r != r else self.answered * (p if r else 1 - p)
                if chance > 0:
                    yield x, label, right, chance

    def minimise(self, row_loss, width, value_of, features=None, start=None):
        """Logits (n_items, width) at the minimum of the expected loss, linear in the features if there are any.

        `start` are the first logits of the experts, the last columns; they start at 0 as the classes do.
        """
        items, labels, right, chance = (np.array(a) for a in zip(*self.outcomes(), strict=True))
        value, weight = torch.tensor(value_of(items, labels, right)), torch.tensor(chance)
        basis = torch.eye(len(self.class_proba)).double() if features is None else torch.tensor(features)
        weights = torch.zeros(basis.shape[1], width, dtype=torch.float64)
        if start is not None:
            weights[:, width - start.shape[1] :] = torch.tensor(start)
        weights.requires_grad_()
        optimizer = torch.optim.LBFGS(
            [weights], max_iter=2000, tolerance_grad=1e-9, tolerance_change=1e-14, line_search_fn="strong_wolfe"
        )

        def closure():
            optimizer.zero_grad()
            loss = (weight * row_loss((basis @ weights)[items], value)).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return (basis @ weights).detach().numpy()


def one_hot_and_right(items, labels, right):
    return np.column_stack([np.eye(labels.max() + 1)[labels], right])


def random_population(seed, n_items=12, n_experts=2):
    rng = np.random.default_rng(seed)
    return Population(
        rng.dirichlet(np.ones(N_CLASSES), n_items), rng.uniform(0.02, 0.98, (n_items, n_experts, N_CLASSES))
    )


def best_rule(population, price=0.0):
    """The Bayes rule by brute force: position of the best decision maker, the classifier last."""
    gains = np.column_stack([population.correctness - price, population.class_proba.max(1)])
    assert len(set(gains.argmax(1))) > 1
    return gains.argmax(1)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("loss", "link"), [(softmax_loss, softmax_link), (one_vs_all_loss, one_vs_all_link)], ids=["softmax", "ova"]
)
def test_one_stage_minimum_is_the_bayes_rule_with_true_estimates(loss, link, seed):
    population = random_population(seed)
    logits = population.minimise(loss, N_CLASSES + 2, one_hot_and_right)
    log_class, log_right = link(logits, N_CLASSES)
    assert_allclose(np.exp(log_class), population.class_proba, atol=1e-5)
    assert_allclose(np.exp(log_right), population.correctness, atol=1e-5)  # Eq. 12 and Eq. 13
    # the largest output decides, as in the paper
    outputs = np.column_stack([logits[:, N_CLASSES:], logits[:, :N_CLASSES].max(1)])
    assert_array_equal(outputs.argmax(1), best_rule(population))
    for price in ([0.0, 0.0], [0.15, 0.0], [0.05, 0.3]):
        scores = np.column_stack([less_price(log_right, np.array(price)), log_class.max(1)])
        assert_array_equal(scores.argmax(1), best_rule(population, price))


def right_where_nobody_ahead_is(population, logits):
    """Probability (n_items, n_experts) that an expert who answers is right, and nobody with a larger output is."""
    got, asked = np.zeros(logits.shape), np.zeros(logits.shape)
    for x, _, right, chance in population.outcomes():
        for j, r in enumerate(right):
            ahead = [right[i] for i in range(len(right)) if logits[x, i] > logits[x, j]]
            asked[x, j] += chance * (r == r)
            got[x, j] += chance * (r == 1 and 1 not in ahead)
    return got / asked


@pytest.mark.parametrize(
    ("loss", "link", "answered"),
    [
        (softmax_loss, softmax_link, 1.0),
        (one_vs_all_loss, one_vs_all_link, 1.0),
        (one_vs_all_loss, one_vs_all_link, 0.5),
    ],
    ids=["softmax", "ova", "ova, half missing"],
)
def test_most_confident_minimum_is_the_best_rule_but_estimates_correctness_of_the_first_only(loss, link, answered):
    random = random_population(0)
    population = Population(random.class_proba, random.right_proba, answered)
    row_loss = partial(most_confident_loss, loss=loss, n_classes=N_CLASSES)
    logits = population.minimise(row_loss, N_CLASSES + 2, one_hot_and_right, start=population.correctness)
    log_class, log_right = link(logits, N_CLASSES)
    people = logits[:, N_CLASSES:]
    assert_allclose(np.exp(log_class), population.class_proba, atol=1e-5)
    assert_allclose(np.exp(log_right), right_where_nobody_ahead_is(population, people), atol=1e-5)
    assert_array_equal(people.argmax(1), population.correctness.argmax(1))
    assert_allclose(np.exp(log_right.max(1)), population.correctness.max(1), atol=1e-5)
    assert (np.exp(log_right.min(1)) < population.correctness.min(1) - 0.05).any()
    assert_array_equal(np.column_stack([people, logits[:, :N_CLASSES].max(1)]).argmax(1), best_rule(population))


def test_most_confident_outputs_of_a_published_counterexample():
    # experts who are right with 3/4 and 1/2: the share of the first is 2/5, not the 7/20 of the paper's theorem
    population = Population([[0.6, 0.4]], [[[0.75, 0.75], [0.5, 0.5]]], answered=1.0)
    row_loss = partial(most_confident_loss, loss=softmax_loss, n_classes=2)
    shares, expected = {}, []
    for first, start in enumerate(([[1.0, 0.0]], [[0.0, 1.0]])):
        logits = torch.tensor(population.minimise(row_loss, 4, one_hot_and_right, start=np.array(start)))
        shares[first] = logits.softmax(1).numpy()[0, 2:]
        outcomes = [(y, r, p) for _, y, r, p in population.outcomes()]
        values = torch.tensor(np.array([[y == 0, y == 1, *r] for y, r, _ in outcomes], dtype=float))
        weight = torch.tensor([p for *_, p in outcomes])
        expected.append(float(weight @ row_loss(logits.expand(len(outcomes), 4), values)))
    assert_allclose(shares[0], np.array([0.75, 0.125]) / 1.875, atol=1e-5)
    # the loss is not convex: with the worse expert ahead, descent ends in a worse minimum that keeps this order
    assert_allclose(shares[1], np.array([0.375, 0.5]) / 1.875, atol=1e-5)
    assert expected[0] < expected[1] - 0.01


@pytest.mark.parametrize("price", [[0.0, 0.0], [0.1, 0.25]], ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_two_stage_minimum_is_the_bayes_rule_of_its_classifier(seed, price):
    population = random_population(seed)
    decided = np.random.default_rng(seed).integers(N_CLASSES, size=12)  # a classifier that is not the best one

    def value_of(items, labels, right):
        return np.column_stack([right - price, decided[items] == labels]) + max(price)

    logits = population.minimise(softmax_loss, 3, value_of)
    gains = np.column_stack([population.correctness - price, population.class_proba[np.arange(12), decided]])
    assert_array_equal(logits.argmax(1), gains.argmax(1))
    assert_allclose(
        np.exp(logits[:, 0] - logits[:, 2]), (gains[:, 0] + max(price)) / (gains[:, 2] + max(price)), rtol=1e-4
    )


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_realizable_minimum_makes_no_errors_where_none_are_needed(alpha):
    sure, uniform, skewed = [1.0, 0.0, 0.0], [1 / 3] * 3, [0.7, 0.2, 0.1]
    right = [[[p] * 3] for p in (0.3, 1.0, 0.0, 1.0)]
    population = Population([sure, uniform, sure, skewed], right)
    logits = population.minimise(partial(realizable_loss, n_classes=3, alpha=alpha), 4, one_hot_and_right)
    assert logits.argmax(1).tolist() == [0, 3, 0, 3]


def system_error(population, logits):
    """Probability that whoever has the largest of the outputs errs, for a single expert."""
    chosen = logits.argmax(1)
    right = np.column_stack([population.class_proba, population.correctness])
    return 1 - right[np.arange(len(chosen)), chosen].mean()


@pytest.mark.parametrize("seed", [1, 3, 7])
def test_only_the_realizable_loss_finds_the_linear_rule_without_errors(seed):
    # its minimum is meant: the loss is not convex, and from other seeds of 0 to 7 descent ends in a local one (0 and 5)
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.normal(size=(30, 2)), np.ones(30)])
    rule = (features @ rng.normal(size=(3, 3))).argmax(1)  # 2 is the expert, who errs elsewhere
    class_proba = np.where(rule[:, None] == 2, rng.dirichlet([1, 1], 30), np.eye(3)[rule][:, :2])
    right = np.where(rule[:, None, None] == 2, 1.0, rng.uniform(0.5, 0.9, (30, 1, 2)))
    population = Population(class_proba, right)
    surrogates = (softmax_loss, partial(realizable_loss, n_classes=2, alpha=1.0))
    softmax, realizable = (
        system_error(population, population.minimise(loss, 3, one_hot_and_right, features)) for loss in surrogates
    )
    assert realizable == pytest.approx(0.0, abs=1e-12)
    assert softmax > 0.05


@pytest.mark.parametrize("correctness", [0.5, 0.58])
def test_mixture_of_experts_keeps_what_the_expert_does_better(correctness):
    # four equally likely classes: the Bayes rule defers above 1/4, the mixture above 1/2 + 1/8 only
    population = Population([[0.25] * 4], np.full((1, 1, 4), correctness))
    logits = population.minimise(partial(mixture_loss, n_classes=4), 6, one_hot_and_right)
    weight = expit(logits[0, 5] - logits[0, 4])
    assert weight == pytest.approx(4 * (1 - correctness) / 3, abs=1e-6)
    assert weight > 0.5
    surrogate = population.minimise(softmax_loss, 5, one_hot_and_right)
    assert surrogate[0, 4] > surrogate[0, :4].max()


def test_realizable_loss_is_not_consistent_elsewhere():
    # it defers above 2 / (C + 1), the Bayes rule above 1 / C
    for correctness, defers in ((0.35, False), (0.45, True)):
        population = Population([[0.25] * 4], np.full((1, 1, 4), correctness))
        logits = population.minimise(partial(realizable_loss, n_classes=4, alpha=0.5), 5, one_hot_and_right)
        assert (logits[0, 4] > logits[0, :4].max()) == defers
