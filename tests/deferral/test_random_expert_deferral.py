"""One group of everybody: what it decides, and who joins it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.deferral import ClusterDeferral, RandomExpertDeferral

RNG = np.random.default_rng(0)
Y = RNG.integers(3, size=200)
X = RNG.normal(size=(200, 4)) + 2 * np.eye(3, 4)[Y]
ANSWERS = np.where(RNG.random((200, 3)) < [0.9, 0.7, 0.5], Y[:, None], (Y[:, None] + 1) % 3)
WEAK = FrozenEstimator(LogisticRegression(C=0.02).fit(X[:20], Y[:20]))
FAST = {"classifier": WEAK, "coverage": 0.4, "batch_size": 32, "max_epochs": 10, "random_state": 0}


@pytest.fixture
def model():
    return RandomExpertDeferral(**FAST).fit(X, Y, ANSWERS, X_unlabeled=X)


def test_it_is_one_group_of_everybody(model):
    one_group = ClusterDeferral(omega=np.ones((3, 1)), grouping="soft", **FAST).fit(X, Y, ANSWERS, X_unlabeled=X)
    assert_array_equal(model.predict_deferral_proba(X), one_group.predict_deferral_proba(X))
    assert model.targets_.tolist() == ["anybody"]
    assert_allclose(model.selection_, np.full((1, 3), 1 / 3))
    deferred = model.predict_deferral(X) == 0
    expected = np.where(deferred, (Y[:, None] == ANSWERS).mean(1), model.predict(X) == Y)
    assert model.score(X, Y, ANSWERS) == pytest.approx(expected.mean())


def test_newcomers_join_without_a_single_label(model):
    before = model.predict_deferral(X)
    assert model.onboard(["new", 1]) is model
    assert model.experts_.tolist() == [0, 2, "new", 1]
    assert_allclose(model.selection_, np.full((1, 4), 0.25))
    assert_allclose(model.workload_, 0.15, atol=0.01)
    assert_array_equal(model.predict_deferral(X), before)
    assert set(model.assign_experts(X)) == {-1, 0, 1, 2, 3}
    assert model.predict_team(X, np.column_stack([ANSWERS, ANSWERS[:, 0]])).shape == (200,)


def test_answers_of_newcomers_are_counted_where_the_truth_is_known(model):
    model.onboard("right", X, Y[:, None], Y)
    model.onboard("unjudged", X, Y[:, None])
    assert model.experts_[-2:].tolist() == ["right", "unjudged"]
    correctness = model._correctness
    assert (correctness[-2] > 0.95).all()
    people = model._roster.answering.people
    assert_allclose(correctness[-1].mean(), people.center, atol=0.02)  # that of everybody, class by class


def test_the_group_may_be_left_by_all_and_joined_again(model):
    model.offboard([0, 1, 2])
    assert_array_equal(model.predict_deferral(X), -1)
    model.onboard("back")
    assert np.mean(model.predict_deferral(X) == -1) == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a", "a"],), "holds a name twice"),
        ((["a"], None, ANSWERS[:, :1]), "X is None, but annotations are answers to items"),
        ((["a"], X, ANSWERS), r"annotations has shape \(200, 3\)"),
        ((["a"], X, ANSWERS[:, :1], Y + 7), "not among classes_"),
    ],
)
def test_bad_newcomers_are_refused(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.onboard(*arguments)
    assert model.n_experts_ == 3


def test_without_experts_there_is_no_group():
    with pytest.raises(ValueError, match="there is no group to join"):
        RandomExpertDeferral(**FAST | {"coverage": None}).fit(X, Y).onboard("a")


def test_shares_are_not_those_of_a_classifier_that_has_seen_the_items():
    seen, unseen = slice(0, 100), slice(100, 200)
    forest = RandomForestClassifier(20, random_state=0)
    model = RandomExpertDeferral(**FAST | {"classifier": forest, "coverage": None})
    model.fit(X[seen], Y[seen], ANSWERS[seen])
    assert np.mean(model.predict_deferral(X[unseen]) == -1) == pytest.approx(model.coverage_, abs=0.15)
    for half in model.coverage_path([0.5]):
        assert np.mean(half.predict_deferral(X[unseen]) == -1) == pytest.approx(0.5, abs=0.15)


def test_margins_of_a_gate_that_has_learnt_since_are_not_used(model):
    before = model.predict_deferral_proba(X)
    for _ in range(10):
        model.partial_fit(X, Y, (Y[:, None] + [0, 1, 2]) % 3)
    assert np.abs(model.predict_deferral_proba(X) - before).max() > 0.05
    with pytest.raises(ValueError, match="a gate that has learnt since are calibrated on items"):
        model.coverage_path([0.5])
    (half,) = model.coverage_path([0.5], X)
    assert np.mean(half.predict_deferral(X) == -1) == pytest.approx(0.5, abs=0.01)
    (half,) = model.recalibrate(X).coverage_path([0.5])
    assert np.mean(half.predict_deferral(X) == -1) == pytest.approx(0.5, abs=0.01)
