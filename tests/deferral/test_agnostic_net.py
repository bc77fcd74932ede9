"""The net of EA-L2D, piece by piece."""

from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_l2d._torch._losses import pair_loss
from sklearn_l2d._torch._modules import AgnosticRejector
from sklearn_l2d._torch._net import build_net
from sklearn_l2d._torch._seeding import own_generator
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.deferral import _expert_agnostic_deferral
from sklearn_l2d.deferral._expert_agnostic_deferral import (
    AgnosticNet,
    competence_moments,
    predict_agnostic,
    train_agnostic,
)

N, M, C = 20, 3, 4
SETTINGS = {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.0, "batch_size": 8, "device": "cpu"}


@pytest.fixture
def net():
    return build_net(AgnosticNet, partial(AgnosticRejector, (5, 6)), SETTINGS | {"dtype": "float64"}, 0, n_experts=2)


@pytest.fixture
def inputs():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(C), size=N), (rng.random((M, C)), 0.1 * rng.random((M, C)))


def test_it_starts_at_the_expected_correctness(net, inputs):
    proba, (mean, spread) = inputs
    assert_allclose(predict_agnostic(net, proba, (mean, spread)), np.log(proba @ mean.T))


def test_order_and_number_of_classes_do_not_matter(net, inputs, monkeypatch):
    proba, moments = inputs
    torch.nn.init.normal_(net.module_.of_pair.weights[-1], generator=own_generator(1))
    logits = predict_agnostic(net, proba, moments)
    assert not np.allclose(logits, np.log(proba @ moments[0].T))
    order = np.array([2, 0, 3, 1])
    assert_allclose(predict_agnostic(net, proba[:, order], [part[:, order] for part in moments]), logits)
    # a class that cannot be is as good as none
    more = [np.pad(part, ((0, 0), (0, 1)), constant_values=0.3) for part in moments]
    assert_allclose(predict_agnostic(net, np.pad(proba, ((0, 0), (0, 1))), more), logits)
    # neither do the others beside an expert, nor how many are predicted at once
    monkeypatch.setattr(_expert_agnostic_deferral, "_CHUNK", 1)
    assert_allclose(predict_agnostic(net, proba, [part[[1]] for part in moments]), logits[:, [1]])


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

    monkeypatch.setattr(_expert_agnostic_deferral, "competence_moments", spy)
    monkeypatch.setattr(_expert_agnostic_deferral, "pair_loss", loss)
    net.n_experts = M
    history = train_agnostic(
        net, proba, y, encode_votes(codes, classes=range(C)), prior=(0.5, (2.0, 2.0)), max_epochs=4, seed=0, verbose=0
    )
    per_epoch = np.reshape(learnt, (4, 25)).sum(1)
    assert_array_equal(per_epoch + counted, np.full(4, (codes >= 0).sum()))
    assert len(set(counted)) == 4
    assert [epoch["phase"] for epoch in history] == 4 * ["expert-agnostic"]
    assert net.competence is None
