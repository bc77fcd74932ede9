"""suggest_items: what it refuses, what it accepts as nothing known, and what it chooses."""

from copy import copy

import numpy as np
import pandas as pd
import pytest
from _instances import make_crowd
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from sklearn_l2d import AnnotatorLDA

FAST = {"hidden_layer_sizes": (8,), "max_epochs": 10, "n_anchor_epochs": 5, "n_consensus_epochs": 10, "batch_size": 32}


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(n_samples=120)


@pytest.fixture(scope="module")
def fitted(crowd):
    return AnnotatorLDA(**FAST, random_state=0).fit(crowd.X, crowd.counts)


def expected_variance(f, log_f, prior, n=2001):
    """Expected posterior variance of the first of two weights after each item, by sums over answers and a grid."""
    a = (np.arange(n) + 0.5) / n
    grid = np.stack([a, 1 - a], axis=1)
    posterior = np.exp(np.log(grid) @ prior + np.log(np.exp(log_f) @ grid.T).sum(0))
    posterior /= posterior.sum()
    left = np.zeros(len(f))
    for answer in range(f.shape[2]):
        joint = posterior * (f[:, :, answer] @ grid.T)
        total = joint.sum(1)
        mean = joint @ a / total
        left += joint @ a**2 - total * mean**2
    return left


@pytest.mark.parametrize("n_labels", [0, 1, 4, 30])
@pytest.mark.parametrize("membership_prior", [0.0, 1.0, 5.0, "auto"])
def test_the_suggestion_leaves_almost_the_least_expected_variance(crowd, fitted, n_labels, membership_prior):
    lda = copy(fitted).set_params(membership_prior=membership_prior)
    f = lda.predict_annotation_proba(crowd.X).astype(float)
    known = np.flatnonzero(crowd.annotations[:, 0] >= 0)[:n_labels]
    answers = crowd.annotations[known, 0]
    log_f = np.log(f[known, :, answers])
    strength = 0.1 * n_labels if membership_prior == "auto" else membership_prior
    left = expected_variance(f, log_f, strength * lda.cluster_weights_)
    chosen = lda.suggest_items(crowd.X, crowd.X[known], answers)[0]
    assert left[chosen] - left.min() < 0.05 * (left.max() - left.min())


def test_suggested_labels_are_worth_more_than_random_ones(crowd, fitted):
    """Answers are drawn from the model, for newcomers who follow the consensus more or less."""
    rng = np.random.default_rng(0)
    f = fitted.predict_annotation_proba(crowd.X)
    suggested = fitted.suggest_items(crowd.X, n_items=12)
    spread = []
    for share in np.linspace(0.1, 0.9, 25):
        cumulated = (share * f[:, 0] + (1 - share) * f[:, 1]).cumsum(1)
        answers = (rng.random((len(f), 1)) > cumulated[:, :-1]).sum(1)[:, None]
        choices = suggested, rng.choice(len(f), 12, replace=False)
        spread.append([fitted.transform(crowd.X[c], answers[c], return_std=True)[1].mean() for c in choices])
    by_suggestion, by_chance = np.mean(spread, axis=0)
    assert by_suggestion < 0.95 * by_chance


NOTHING = {
    "None": lambda X: (None, None),
    "no rows": lambda X: (X[:0], np.empty((0, 1))),
    "no labels": lambda X: (X[:0], []),
    "all missing": lambda X: (X[:4], np.full(4, -1)),
    "all NaN": lambda X: (X[:4], np.full((4, 1), np.nan)),
    "all None": lambda X: (X[:4], [None] * 4),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_nothing_known(crowd, fitted, kind):
    expected = fitted.suggest_items(crowd.X, n_items=4)
    assert expected.dtype.kind == "i"
    assert expected.shape == (4,)
    assert_array_equal(fitted.suggest_items(crowd.X, *NOTHING[kind](crowd.X), n_items=4), expected)


SHAPES = {
    "1-D": lambda labels: labels,
    "list": lambda labels: [None if label < 0 else label for label in labels.tolist()],
    "column": lambda labels: labels[:, None],
    "list of rows": lambda labels: labels[:, None].tolist(),
    "Series": lambda labels: pd.Series(labels, dtype="Int64").mask(labels < 0),
    "DataFrame": lambda labels: pd.DataFrame({"ann": labels}),
    "masked": lambda labels: np.ma.masked_array(labels, labels < 0),
    "only those given": None,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_forms_of_the_annotations(crowd, fitted, shape):
    X, labels = crowd.X[:40], crowd.annotations[:40, 2]
    assert (labels < 0).any()
    expected = fitted.suggest_items(crowd.X[40:], X, labels[:, None], n_items=3)
    if SHAPES[shape] is None:
        X, given = X[labels >= 0], labels[labels >= 0]
    else:
        given = SHAPES[shape](labels)
    assert_array_equal(fitted.suggest_items(crowd.X[40:], X, given, n_items=3), expected)


def test_labels_change_the_suggestion(crowd, fitted):
    """One who agrees and one who never does are asked different things, else the labels are not used."""
    f = fitted.predict_annotation_proba(crowd.X[:40])[:, 0]
    follow, oppose = (
        fitted.suggest_items(crowd.X[40:], crowd.X[:40], labels, n_items=30) for labels in (f.argmax(1), f.argmin(1))
    )
    assert follow.tolist() != oppose.tolist()


def test_a_batch_starts_with_the_single_suggestion_and_has_no_repeats(crowd, fitted):
    everything = fitted.suggest_items(crowd.X, n_items=len(crowd.X))
    assert_array_equal(np.sort(everything), np.arange(len(crowd.X)))
    assert_array_equal(fitted.suggest_items(crowd.X, n_items=np.int64(5)), everything[:5])
    assert_array_equal(fitted.suggest_items(crowd.X), everything[:1])


def test_one_cluster_takes_the_pool_in_its_order(crowd):
    lda = AnnotatorLDA(1, **FAST, random_state=0).fit(crowd.X, crowd.counts)
    assert_array_equal(lda.suggest_items(crowd.X, n_items=3), [0, 1, 2])


def test_nothing_is_changed(crowd, fitted):
    before = {name: np.copy(value) for name, value in vars(fitted).items() if isinstance(value, np.ndarray)}
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    fitted.suggest_items(crowd.X, crowd.X[:9], crowd.annotations[:9, 0], n_items=5)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    for name, value in before.items():
        assert_array_equal(getattr(fitted, name), value)


FAULTS = {
    "two experts": (lambda c: {"X": c.X, "annotations": c.annotations[:, :2]}, ValueError, r"shape \(120, 2\)"),
    "labels alone": (lambda c: {"annotations": c.annotations[:, 0]}, ValueError, "X is None although annotations"),
    "items alone": (lambda c: {"X": c.X}, ValueError, "annotations is None although X"),
    "one row less": (lambda c: {"X": c.X, "annotations": c.annotations[1:, 0]}, ValueError, "119 rows, but X has 120"),
    "no labels": (lambda c: {"X": c.X, "annotations": []}, ValueError, "0 rows, but X has 120"),
    "unknown class": (lambda c: {"X": c.X[:1], "annotations": [99]}, ValueError, "not in classes"),
    "none asked": (lambda c: {"n_items": 0}, ValueError, "n_items=0 is not between 1 and the 120 rows of X_pool"),
    "too many": (lambda c: {"n_items": 121}, ValueError, "n_items=121 is not between"),
    "half": (lambda c: {"n_items": 1.5}, TypeError, "n_items=1.5 is no integer"),
    "truth": (lambda c: {"n_items": True}, TypeError, "n_items=True is no integer"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_refused(crowd, fitted, fault):
    spoil, kind, message = FAULTS[fault]
    with pytest.raises(kind, match=message):
        fitted.suggest_items(crowd.X, **spoil(crowd))


def test_a_pool_of_other_columns_and_an_unfitted_model(crowd, fitted):
    with pytest.raises(ValueError, match="features"):
        fitted.suggest_items(crowd.X[:, 1:])
    with pytest.raises(NotFittedError):
        AnnotatorLDA().suggest_items(crowd.X)
