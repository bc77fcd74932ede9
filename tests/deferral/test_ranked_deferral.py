import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d.annotations import AnnotatedTarget
from sklearn_l2d.deferral import (
    BestExpert,
    ClassifierOnly,
    ClusterDeferral,
    ConfidenceDeferral,
    MixtureOfExpertsDeferral,
    OneStageDeferral,
    RankedDeferral,
    TwoStageDeferral,
)
from sklearn_l2d.metrics import coverage_accuracy_auc


class Crowd:
    """Three Gaussian classes; experts a and b know classes 0 and 1, expert c knows class 2."""

    def __init__(self, n=240, seed=0):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(3, size=n)
        self.X = rng.normal(size=(n, 4)) + 1.5 * np.eye(3, 4)[self.y]
        knows = np.where(self.y[:, None] == 2, [0, 0, 1], [1, 1, 0])
        wrong = (self.y[:, None] + rng.integers(1, 3, size=(n, 3))) % 3
        answers = np.where(rng.random((n, 3)) < np.where(knows, 0.95, 0.3), self.y[:, None], wrong)
        self.annotations = pd.DataFrame(answers, columns=list("abc"))

    @property
    def labelled(self):
        return self.X, self.y, self.annotations


class RandomDeferral(ClassifierOnly):
    """The one target of everybody, with a score that has nothing to do with who is right."""

    def _scores(self, X):
        noise = np.sin(1e4 * X.given.sum(1))
        return np.column_stack([noise, np.zeros(len(X))])


@pytest.fixture(scope="module")
def crowd():
    return Crowd()


@pytest.fixture(scope="module")
def unseen():
    return Crowd(n=1000, seed=1)


@pytest.fixture(scope="module")
def classifier(crowd):
    return FrozenEstimator(LogisticRegression(C=0.05).fit(crowd.X[:60], crowd.y[:60]))


@pytest.fixture(scope="module")
def gate(classifier):
    return ClusterDeferral(
        omega=np.eye(3), grouping="hard", classifier=classifier, max_epochs=10, batch_size=32, random_state=0
    )


@pytest.fixture(scope="module")
def fitted_gate(gate, crowd):
    return clone(gate).fit(*crowd.labelled)


def coverage_of(model, X):
    return np.mean(model.predict_deferral(X) < 0)


# ------------------------------------------------------------------------------------------ ranking


def test_the_items_that_stay_are_those_the_classifier_wins_by_most(fitted_gate, crowd, unseen):
    scores = fitted_gate.decision_function(unseen.X)
    margin = scores[:, -1] - scores[:, :-1].max(1)
    for coverage in (0.0, 0.137, 0.5, 0.9, 1.0):
        model = RankedDeferral(FrozenEstimator(fitted_gate), coverage=coverage)
        model.fit(*crowd.labelled, X_unlabeled=unseen.X)
        kept = np.argsort(-margin)[: round(coverage * 1000)]
        expected = scores[:, :-1].argmax(1)
        expected[kept] = -1
        assert_array_equal(model.predict_deferral(unseen.X), expected)
        assert model.coverage_ == pytest.approx(coverage)
        assert_allclose(model.target_shares_[:-1], [np.mean(expected == k) for k in range(3)])
        assert model.constraint_violation_ == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("items", [True, False])
def test_the_path_is_the_ranking_curve(gate, crowd, unseen, items):
    model = RankedDeferral(gate).fit(*crowd.labelled, X_unlabeled=unseen.X)
    assert_array_equal(model.predict_deferral(unseen.X), model.deferrer_.predict_deferral(unseen.X))  # no request
    requests = [0.0, 0.05, 0.3, 0.77, 1.0]
    path = model.coverage_path(requests, unseen.X if items else None)
    assert_allclose([coverage_of(at, unseen.X) for at in path], requests, atol=0.0006 if items else 0.002)
    assert_allclose([at.coverage_ for at in path], requests, atol=0.002)
    assert all(at.deferrer_ is model.deferrer_ for at in path)


def test_a_range_leaves_what_lies_inside(fitted_gate, crowd, unseen):
    natural = coverage_of(fitted_gate, unseen.X)

    def achieved(low, high):
        model = RankedDeferral(FrozenEstimator(fitted_gate), coverage=(low, high))
        return coverage_of(model.fit(*crowd.labelled, X_unlabeled=unseen.X), unseen.X)

    assert 0.05 < natural < 0.8
    assert achieved(0.0, natural + 0.1) == natural
    assert achieved(natural + 0.1, 1.0) == pytest.approx(natural + 0.1, abs=0.001)


def test_random_deferral_has_the_mean_of_both_ends_as_its_area(classifier, crowd):
    test = Crowd(n=20_000, seed=2)
    model = RankedDeferral(RandomDeferral(classifier)).fit(*crowd.labelled, X_unlabeled=test.X)
    path = model.coverage_path(np.linspace(0, 1, 6), test.X)
    accuracy = [at.score(test.X, test.y, annotations=test.annotations) for at in path]
    people = np.mean(test.annotations.to_numpy() == test.y[:, None])
    alone = np.mean(classifier.predict(test.X) == test.y)
    assert abs(people - alone) > 0.05
    area = coverage_accuracy_auc([coverage_of(at, test.X) for at in path], accuracy)
    assert area == pytest.approx((people + alone) / 2, abs=0.005)
    assert_allclose(accuracy, people + (alone - people) * np.linspace(0, 1, 6), atol=0.01)


@pytest.mark.parametrize("reference", [ClassifierOnly, BestExpert])
def test_who_scores_all_items_alike_is_moved_as_a_whole(reference, classifier, crowd, unseen):
    model = RankedDeferral(reference(classifier)).fit(*crowd.labelled, X_unlabeled=unseen.X)
    for items in (None, unseen.X):
        path = model.coverage_path([0.0, 0.2, 0.7, 1.0], items)
        achieved = [coverage_of(at, unseen.X) for at in path]
        assert set(achieved) == {0.0, 1.0}
        assert achieved == sorted(achieved)
        assert_allclose([at.coverage_ for at in path], achieved)
        assert_allclose([at.constraint_violation_ for at in path], np.abs(np.subtract(achieved, [0, 0.2, 0.7, 1])))
    assert RankedDeferral(reference(classifier)).fit(*crowd.labelled).coverage_ == (reference is ClassifierOnly)


@pytest.mark.parametrize("kind", [OneStageDeferral, TwoStageDeferral, MixtureOfExpertsDeferral])
def test_deferrers_without_any_control_get_one(kind, crowd, unseen):
    deferrer = kind(hidden_layer_sizes=(4,), max_epochs=5, random_state=0)
    model = RankedDeferral(deferrer, coverage=0.4).fit(*crowd.labelled, X_unlabeled=unseen.X)
    assert coverage_of(model, unseen.X) == 0.4
    assert_allclose([coverage_of(at, unseen.X) for at in model.coverage_path([0, 0.7, 1])], [0, 0.7, 1], atol=0.002)
    assert_array_equal(model.predict(unseen.X), model.deferrer_.predict(unseen.X))
    assert 0.4 < model.score(unseen.X, unseen.y, annotations=unseen.annotations) < 1
    assert set(model.explain_deferral(unseen.X)["chosen"]) <= {"a", "b", "c", "classifier"}
    assert_array_equal(model.requested_bounds_.target_lower, [0, 0, 0, 0.4])


# ------------------------------------------------------------------------------------------ the team behind it


def test_everything_but_the_threshold_is_the_deferrers(fitted_gate, crowd, unseen):
    frozen = FrozenEstimator(fitted_gate)
    X, y, annotations = crowd.labelled
    with pytest.raises(ValueError, match="y holds labels that are not among classes_"):
        RankedDeferral(frozen).fit(X, np.asarray(y) + 100, annotations)
    with pytest.raises(ValueError, match=r"X_unlabeled cannot be used: .*features"):
        RankedDeferral(frozen).fit(X, y, annotations, X_unlabeled=X[:, :-1])
    before = pickle.dumps(vars(fitted_gate))
    model = RankedDeferral(frozen).fit(*crowd.labelled)
    X, y, annotations = unseen.X, unseen.y, unseen.annotations
    for name in ("classes_", "experts_", "targets_", "omega_", "selection_", "history_", "n_iter_", "n_features_in_"):
        assert_array_equal(getattr(model, name), getattr(fitted_gate, name), err_msg=name)
    assert_array_equal(model.predict(X), fitted_gate.predict(X))
    assert_array_equal(model.predict_proba(X), fitted_gate.predict_proba(X))
    assert_array_equal(model.predict_deferral_proba(X), fitted_gate.predict_deferral_proba(X))
    assert_array_equal(model.assign_experts(X, capacity=900), fitted_gate.assign_experts(X, capacity=900))
    assert_array_equal(model.predict_team(X, annotations), fitted_gate.predict_team(X, annotations))
    assert model.score(X, y, annotations=annotations) == fitted_gate.score(X, y, annotations=annotations)
    pd.testing.assert_frame_equal(model.route(X), fitted_gate.route(X))
    pd.testing.assert_frame_equal(model.explain_deferral(X), fitted_gate.explain_deferral(X))
    model.offboard("a")
    assert pickle.dumps(vars(fitted_gate)) == before


def test_experts_come_and_go(classifier, crowd, unseen):
    X, y, annotations = crowd.labelled
    model = RankedDeferral(ConfidenceDeferral(classifier), coverage=0.5)
    model.fit(X, y, annotations[["a", "c"]], X_unlabeled=unseen.X)
    model.onboard("b", X, annotations[["b"]], y)
    assert model.targets_.tolist() == ["a", "c", "b"]
    assert model.offsets_.shape == model.target_shares_.shape == (4,)
    with pytest.raises(ValueError, match="a roster that has changed"):
        model.coverage_path([0.5])
    model.recalibrate(unseen.X)
    assert coverage_of(model, unseen.X) == 0.5
    model.offboard(["a", "b"])
    assert set(model.predict_deferral(unseen.X)) <= {-1, 1}
    assert coverage_of(model.recalibrate(unseen.X), unseen.X) == 0.5
    assert 0.3 < model.score(X, y, annotations=annotations[["c"]]) < 1
    model.offboard("c")
    assert_array_equal(model.predict_deferral(unseen.X), -1)
    assert model.recalibrate(unseen.X).coverage_ == 1
    assert not hasattr(RankedDeferral(FrozenEstimator(LogisticRegression())), "onboard")


def test_annotations_and_unlabelled_items_reach_the_deferrer(gate, crowd, unseen):
    by_hand = RankedDeferral(clone(gate), coverage=0.3).fit(*crowd.labelled, X_unlabeled=unseen.X)
    carried = RankedDeferral(clone(gate), coverage=0.3)
    carried.fit(crowd.X, AnnotatedTarget(crowd.y, crowd.annotations), X_unlabeled=unseen.X)
    assert_array_equal(carried.predict_deferral(unseen.X), by_hand.predict_deferral(unseen.X))
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), RankedDeferral(clone(gate), coverage=0.3))
    with config_context(enable_metadata_routing=True):
        pipeline.set_params(transform_input=["X_unlabeled"])
        pipeline.fit(crowd.X, crowd.y, annotations=crowd.annotations, X_unlabeled=unseen.X)
        score = pipeline.score(unseen.X, unseen.y, annotations=unseen.annotations)
    assert_array_equal(pipeline[-1].offsets_, by_hand.offsets_)
    assert score == by_hand.score(unseen.X, unseen.y, annotations=unseen.annotations)
    assert_allclose(pipeline[-1].deferrer_.coverage_, by_hand.deferrer_.coverage_)


def test_a_random_state_reaches_what_has_none(gate, crowd, unseen):
    def deferral(seed):
        open_ = clone(gate).set_params(random_state=None)
        return RankedDeferral(open_, random_state=seed).fit(*crowd.labelled).predict_deferral_proba(unseen.X)

    assert_array_equal(deferral(0), deferral(0))
    assert (deferral(0) != deferral(1)).any()


def test_without_experts_nothing_is_controlled(gate, crowd):
    model = RankedDeferral(clone(gate).set_params(coverage=None)).fit(crowd.X, crowd.y)
    assert_array_equal(model.predict_deferral(crowd.X), -1)
    assert model.coverage_ == 1


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"coverage": (0.6, 0.4)}, "coverage="),
        ({"deferrer": LogisticRegression()}, "'deferrer' parameter"),
    ],
)
def test_settings_that_do_not_go_together(gate, crowd, params, message):
    model = RankedDeferral(clone(gate), coverage=0.5).set_params(**params)
    with pytest.raises(ValueError, match=message):
        model.fit(*crowd.labelled)
