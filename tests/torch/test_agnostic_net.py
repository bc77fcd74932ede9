"""The net of EA-L2D, piece by piece."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar

from sklearn_l2d._torch import _agnostic_net
from sklearn_l2d._torch._agnostic_net import (
    build_agnostic_net,
    competence_moments,
    pair_loss,
    predict_agnostic,
    train_agnostic,
)
from sklearn_l2d._torch._seeding import seeded
from sklearn_l2d._torch._surrogate_losses import softmax_loss

N, M, C = 20, 3, 4
SETTINGS = {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.0, "batch_size": 8, "device": "cpu"}


@pytest.fixture
def net():
    with seeded(0, "cpu"):
        return build_agnostic_net((5, 6), 2, **SETTINGS)


@pytest.fixture
def inputs():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(C), size=N), (rng.random((M, C)), 0.1 * rng.random((M, C)))


def test_it_starts_at_the_expected_correctness(net, inputs):
    proba, (mean, spread) = inputs
    assert_allclose(predict_agnostic(net, proba, (mean, spread)), np.log(proba @ mean.T))


def test_order_and_number_of_classes_do_not_matter(net, inputs, monkeypatch):
    proba, moments = inputs
    with seeded(1, "cpu"):
        torch.nn.init.normal_(net.module_.of_pair.weights[-1])
    logits = predict_agnostic(net, proba, moments)
    assert not np.allclose(logits, np.log(proba @ moments[0].T))
    order = np.array([2, 0, 3, 1])
    assert_allclose(predict_agnostic(net, proba[:, order], [part[:, order] for part in moments]), logits)
    # a class that cannot be is as good as none
    more = [np.pad(part, ((0, 0), (0, 1)), constant_values=0.3) for part in moments]
    assert_allclose(predict_agnostic(net, np.pad(proba, ((0, 0), (0, 1))), more), logits)
    # neither do the others beside an expert, nor how many are predicted at once
    monkeypatch.setattr(_agnostic_net, "_CHUNK", 1)
    assert_allclose(predict_agnostic(net, proba, [part[[1]] for part in moments]), logits[:, [1]])


def test_the_loss_of_a_pair_is_the_softmax_surrogate(inputs):
    proba = torch.as_tensor(inputs[0])
    logit, right = torch.linspace(-4, 3, N).double(), torch.arange(N) % 2.0
    right[3] = torch.nan
    truth = torch.eye(C)[torch.arange(N) % C].double()
    full = softmax_loss(torch.column_stack([proba.log(), logit]), torch.column_stack([truth, right]))
    alone = -(truth * proba.log()).sum(1)
    assert_allclose(pair_loss(logit, right), full - alone, atol=1e-12)
    assert pair_loss(logit, right)[3] == 0
    # and is least where the logit is the logarithm of how often the expert is right
    outcomes, share = torch.tensor([1.0, 0.0]), torch.tensor([0.7, 0.3])
    best = minimize_scalar(lambda g: float(share @ pair_loss(torch.full((2,), g), outcomes))).x
    assert best == pytest.approx(np.log(0.7), abs=1e-3)


def test_an_answer_is_counted_or_learnt_from(net, monkeypatch):
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(C), size=200), rng.integers(C, size=200)
    codes = rng.integers(-1, C, size=(200, M))
    counted, learnt = [], []

    def spy(right, seen, prior):
        counted.append(seen.sum())
        return competence_moments(right, seen, prior)

    def loss(logit, right):
        learnt.append(int((~right.isnan()).sum()))
        return pair_loss(logit, right)

    monkeypatch.setattr(_agnostic_net, "competence_moments", spy)
    monkeypatch.setattr(_agnostic_net, "pair_loss", loss)
    net.n_experts = M
    history = train_agnostic(net, proba, y, codes, prior=(0.5, (2.0, 2.0)), max_epochs=4, seed=0, verbose=0)
    per_epoch = np.reshape(learnt, (4, 25)).sum(1)
    assert_array_equal(per_epoch + counted, np.full(4, (codes >= 0).sum()))
    assert len(set(counted)) == 4
    assert [epoch["phase"] for epoch in history] == 4 * ["expert-agnostic"]
    assert net.competence is None
