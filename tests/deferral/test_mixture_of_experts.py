import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from sklearn_l2d.deferral import MixtureOfExpertsDeferral, OneStageDeferral

SETTINGS = {"hidden_layer_sizes": (), "lr": 0.1, "weight_decay": 0.0, "batch_size": 200, "random_state": 0}


def make_halves(n=1500, seed=0):
    """Two halves of the items: in the first the class is certain, in the second one of two experts knows it."""
    rng = np.random.default_rng(seed)
    half = rng.integers(2, size=n)
    y = np.where(half == 0, 2, rng.integers(3, size=n))
    annotations = np.column_stack([np.where(half == 0, 0, y), rng.integers(3, size=n)])
    return np.eye(2)[half], y, annotations


def test_allocates_to_whoever_knows():
    X, y, annotations = make_halves()
    annotations = np.where(np.random.default_rng(1).random(annotations.shape) < 0.5, -1, annotations)
    model = MixtureOfExpertsDeferral(max_epochs=30, **SETTINGS).fit(X, y, annotations=annotations)
    assert model.predict_deferral(np.eye(2)).tolist() == [-1, 0]
    assert model.predict(np.eye(2))[0] == 2
    assert model.predict_deferral_proba(np.eye(2)).max(1).min() > 0.9


def test_answers_follow_from_the_logits():
    X, y, annotations = make_halves(200)
    model = MixtureOfExpertsDeferral(max_epochs=2, **SETTINGS).fit(X, y, annotations=annotations)
    X = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    with torch.no_grad():
        logits = model.net_.module_(torch.tensor(X).double()).numpy()
    assert logits.shape == (50, 3 + 2 + 1)
    assert_allclose(model.predict_proba(X), softmax(logits[:, :3], axis=1), rtol=1e-9)
    assert_allclose(model.predict_deferral_proba(X), softmax(logits[:, 3:], axis=1), rtol=1e-9)
    assert_array_equal(model.predict_deferral(X), np.array([0, 1, -1])[logits[:, 3:].argmax(1)])


def test_keeps_items_that_a_consistent_loss_defers():
    # four equally likely classes and an expert who is right half the time: see the loss in its own tests
    rng = np.random.default_rng(0)
    X, y = np.ones((4000, 1)), rng.integers(4, size=4000)
    annotations = np.where(rng.random(4000) < 0.5, y, (y + 1) % 4)[:, None]
    mixture = MixtureOfExpertsDeferral(max_epochs=10, **SETTINGS).fit(X, y, annotations=annotations)
    assert mixture.coverage_ == 1
    assert mixture.predict_deferral_proba(X[:1])[0, -1] == pytest.approx(2 / 3, abs=0.05)
    assert OneStageDeferral(max_epochs=10, **SETTINGS).fit(X, y, annotations=annotations).coverage_ == 0


def test_without_experts_it_is_a_classifier():
    X, y, _ = make_halves(300)
    model = MixtureOfExpertsDeferral(max_epochs=20, **SETTINGS).fit(X, y)
    assert (model.predict_deferral(X) == -1).all()
    assert model.predict(np.eye(2))[0] == 2
    assert model.coverage_ == 1
