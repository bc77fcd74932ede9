"""Surrogate losses against formulas written out row by row, and at extreme logits."""

from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from sklearn_l2d._torch._losses import (
    curve_loss,
    mixture_loss,
    most_confident_loss,
    one_vs_all_loss,
    pair_loss,
    realizable_loss,
    softmax_loss,
)
from sklearn_l2d.deferral._surrogate import less_price, one_vs_all_link, softmax_link

NAN = np.nan
N_CLASSES = 3


def sigmoid(g):
    return 1 / (1 + np.exp(-g))


def naive(name, g, label, right, alpha=0.3):
    """Loss of one row as printed: class logits, then those of the experts; `right` holds 0, 1 or NaN."""
    here = [j for j, r in enumerate(right) if r == r]
    if name.startswith("most confident, "):
        who = max((j for j in here if right[j] == 1), key=lambda j: g[N_CLASSES + j], default=None)
        kept = [r if r != r else float(j == who) for j, r in enumerate(right)]
        return naive(name.removeprefix("most confident, "), g, label, kept)
    if name == "ova":
        loss = -sum(np.log(sigmoid(g[c]) if c == label else 1 - sigmoid(g[c])) for c in range(N_CLASSES))
        for j in here:
            chance = sigmoid(g[N_CLASSES + j])
            loss -= right[j] * np.log(chance) + (1 - right[j]) * np.log(1 - chance)
        return loss
    e = np.exp(g)
    if name == "mixture":
        weights = e[N_CLASSES:]
        total = sum(weights[j] for j in here) + weights[-1]
        explained = weights[-1] * e[label] / e[:N_CLASSES].sum() + sum(weights[j] * right[j] for j in here)
        return -np.log(explained / total)
    total = e[:N_CLASSES].sum() + sum(e[N_CLASSES + j] for j in here)
    if name == "softmax":
        return -np.log(e[label] / total) - sum(right[j] * np.log(e[N_CLASSES + j] / total) for j in here)
    alone = -np.log(e[label] / e[:N_CLASSES].sum())
    team = -np.log((e[label] + sum(right[j] * e[N_CLASSES + j] for j in here)) / total)
    return alpha * team + (1 - alpha) * alone


LOSSES = {
    "softmax": softmax_loss,
    "ova": one_vs_all_loss,
    "realizable": partial(realizable_loss, n_classes=N_CLASSES, alpha=0.3),
    "mixture": partial(mixture_loss, n_classes=N_CLASSES),
    "most confident, softmax": partial(most_confident_loss, loss=softmax_loss, n_classes=N_CLASSES),
    "most confident, ova": partial(most_confident_loss, loss=one_vs_all_loss, n_classes=N_CLASSES),
}
each_loss = pytest.mark.parametrize("name", list(LOSSES))


def n_outputs(name, n_experts):
    return N_CLASSES + n_experts + (name == "mixture")


def rows(name, seed=0, scale=2.0, n=60):
    """Random logits, labels and right answers with missing ones."""
    rng = np.random.default_rng(seed)
    n_experts = 1 if name == "realizable" else 3
    right = rng.choice([0.0, 1.0, NAN], size=(n, n_experts))
    return rng.normal(0, scale, (n, n_outputs(name, n_experts))), rng.integers(N_CLASSES, size=n), right


def loss_of(name, g, label, right):
    value = np.column_stack([np.eye(N_CLASSES)[label], right])
    return LOSSES[name](torch.as_tensor(g), torch.as_tensor(value, dtype=torch.as_tensor(g).dtype))


@each_loss
def test_loss_is_the_printed_formula(name):
    g, label, right = rows(name)
    expected = [naive(name, *row) for row in zip(g, label, right, strict=True)]
    assert_allclose(loss_of(name, g, label, right).numpy(), expected, rtol=1e-10, atol=1e-12)


@each_loss
def test_a_missing_annotation_is_an_expert_who_is_not_there(name):
    g, label, right = rows(name)
    right[:, -1] = NAN
    column = N_CLASSES + right.shape[1] - 1
    without = loss_of(name, np.delete(g, column, axis=1), label, right[:, :-1])
    assert_allclose(loss_of(name, g, label, right).numpy(), without.numpy(), rtol=1e-12)
    logits = torch.tensor(g, requires_grad=True)
    loss_of(name, logits, label, right).sum().backward()
    assert (logits.grad[:, column] == 0).all()
    assert (logits.grad[:, :column] != 0).any()


@each_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_logits_give_finite_losses_and_gradients(name, dtype):
    g, label, right = rows(name, scale=1.0)
    logits = torch.tensor(1e4 * np.sign(g), dtype=dtype, requires_grad=True)
    loss = loss_of(name, logits, label, right)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert loss.max() > 9e3
    assert logits.grad.isfinite().all()
    assert (loss >= 0).all()


@pytest.mark.parametrize("name", ["softmax", "ova"])
def test_the_most_confident_of_few_is_everybody(name):
    g, label, right = rows(name)
    few = np.where(np.cumsum(right == 1, axis=1) > 1, NAN, right)  # at most one expert is right
    both = loss_of(name, g, label, few), loss_of(f"most confident, {name}", g, label, few)
    assert_allclose(*both, rtol=0)
    alone = (
        loss_of(name, g[:, :4], label, right[:, :1]),
        loss_of(f"most confident, {name}", g[:, :4], label, right[:, :1]),
    )
    assert_allclose(*alone, rtol=0)
    # of equal outputs it does not matter who is kept
    tied, right = np.tile(g[:, :1], (1, 6)), np.ones((60, 3))
    orders = [loss_of(f"most confident, {name}", tied, label, np.roll(right, k, axis=1)) for k in range(3)]
    assert_allclose(orders[0], orders[1], rtol=1e-12)


def test_price_in_the_realizable_loss_mixes_a_right_and_a_wrong_answer():
    g, label, _ = rows("realizable")
    free, wrong, paid = (loss_of("realizable", g, label, np.full((60, 1), v)).numpy() for v in (1.0, 0.0, 0.75))
    assert_allclose(paid, 0.75 * free + 0.25 * wrong, rtol=1e-10)


def test_a_curve_is_learnt_by_the_logistic_loss_of_its_points():
    rng = np.random.default_rng(0)
    outputs, given, basis = rng.normal(size=(3, 2)), rng.normal(size=(3, 4)), rng.normal(size=(2, 4))
    right = np.array([[1.0, 0, np.nan, 1], [0, 0, 1, np.nan], [np.nan] * 4])
    chance = sigmoid(given + outputs @ basis)
    expected = -np.log(np.where(right == 1, chance, np.where(right == 0, 1 - chance, 1.0))).sum(1)
    value = torch.tensor(np.hstack([given, right]))
    assert_allclose(curve_loss(torch.tensor(outputs), value, basis=basis), expected)


def test_the_loss_of_a_pair_is_the_softmax_surrogate():
    n, n_classes = 20, 4
    proba = torch.as_tensor(np.random.default_rng(0).dirichlet(np.ones(n_classes), size=n))
    logit, right = torch.linspace(-4, 3, n).double(), torch.arange(n) % 2.0
    right[3] = torch.nan
    truth = torch.eye(n_classes)[torch.arange(n) % n_classes].double()
    full = softmax_loss(torch.column_stack([proba.log(), logit]), torch.column_stack([truth, right]))
    alone = -(truth * proba.log()).sum(1)
    assert_allclose(pair_loss(logit, right), full - alone, atol=1e-12)
    assert pair_loss(logit, right)[3] == 0
    # and is least where the logit is the logarithm of how often the expert is right
    outcomes, share = torch.tensor([1.0, 0.0]), torch.tensor([0.7, 0.3])
    best = minimize_scalar(lambda g: float(share @ pair_loss(torch.full((2,), g), outcomes))).x
    assert best == pytest.approx(np.log(0.7), abs=1e-3)


def test_links_at_extreme_logits_and_prices():
    logits = np.array([[1e4, 0.0, 2e4, -1e4]])
    for link in (softmax_link, one_vs_all_link):
        log_class, log_right = link(logits, 2)
        assert np.isfinite(log_class).all()
        assert np.isfinite(log_right).all()
    log_right = np.log([[0.5, 0.2, 0.3]])
    assert_allclose(np.exp(less_price(log_right, np.array([0.1, 0.2, 0.0]))), [[0.4, 0.0, 0.3]], atol=1e-15)
    assert less_price(log_right, np.array([0.0, 1.0, 0.0]))[0, 1] == -np.inf
