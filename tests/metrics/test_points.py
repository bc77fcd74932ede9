import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d.annotations import AnnotatedTarget
from sklearn_l2d.deferral import BestExpert, ClassifierOnly, ConfidenceDeferral, OneStageDeferral, RankedDeferral
from sklearn_l2d.metrics import coverage_accuracy_auc, coverage_accuracy_points
from sklearn_l2d.model_selection import make_team_scorer


class Crowd:
    """Two overlapping classes on a line; expert a is the better one, but not on class 1; b skips every fifth item."""

    def __init__(self, seed, n=300):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(2, size=n)
        self.X = rng.normal(size=(n, 2)) + self.y[:, None]
        right = np.where(self.y[:, None] == 1, [0.75, 0.9], [0.95, 0.6])
        answers = np.where(rng.random((n, 2)) < right, self.y[:, None], 1 - self.y[:, None])
        answers[::5, 1] = -1
        self.annotations = pd.DataFrame(answers, columns=["a", "b"])

    def accuracy(self, labels):
        return np.mean(labels == self.y)


@pytest.fixture(scope="module")
def train():
    return Crowd(0)


@pytest.fixture(scope="module")
def test():
    return Crowd(1)


@pytest.fixture(scope="module")
def classifier(train):
    return FrozenEstimator(LogisticRegression().fit(train.X, train.y))


def test_one_point_and_both_ends(train, test, classifier):
    team = ConfidenceDeferral(classifier, consultation_cost=0.05)
    team.fit(train.X, train.y, annotations=train.annotations)
    coverage, accuracy = coverage_accuracy_points(team, test.X, test.y, test.annotations)
    own, answers = classifier.predict(test.X), test.annotations.to_numpy()
    scores = team.predict_deferral_proba(test.X)
    preferred, chosen = scores[:, :-1].argmax(1), scores.argmax(1)
    assert set(preferred) == {0, 1}
    assert set(chosen) == {0, 1, 2}
    labels = []
    for who in (preferred, chosen):
        row = np.arange(len(own))
        answer = np.where(who == 2, own, answers[row, who.clip(max=1)])
        labels.append(np.where(answer < 0, own, answer))
    assert_allclose(coverage, [0, np.mean(chosen == 2), 1])
    assert_allclose(accuracy, [test.accuracy(labels[0]), test.accuracy(labels[1]), test.accuracy(own)])


def test_requested_coverages_follow_the_path(train, test, classifier):
    team = ConfidenceDeferral(classifier, coverage=0.5).fit(train.X, train.y, annotations=train.annotations)
    coverage, accuracy = coverage_accuracy_points(
        team, test.X, test.y, test.annotations, coverages=[0.3, 0.6], X_unlabeled=test.X
    )
    assert_allclose(coverage, [0, 0.3, 0.6, 1], atol=0.002)
    (at_30,) = team.coverage_path([0.3], test.X)
    assert accuracy[1] == at_30.score(test.X, test.y, annotations=test.annotations)


@pytest.mark.parametrize("certain", [0.0, 1.0])
def test_the_human_end_does_not_depend_on_how_certain_the_classifier_is(train, test, classifier, certain):
    team = ConfidenceDeferral(classifier, consultation_cost=0.05)
    team.fit(train.X, train.y, annotations=train.annotations, X_unlabeled=test.X)
    free = coverage_accuracy_points(team, test.X, test.y, test.annotations)[1]
    ranked = RankedDeferral(FrozenEstimator(team), coverage=certain)
    ranked.fit(train.X, train.y, train.annotations, X_unlabeled=test.X)
    coverage, accuracy = coverage_accuracy_points(ranked, test.X, test.y, test.annotations)
    assert coverage.tolist() == [0, 1]
    assert accuracy.tolist() == free[[0, -1]].tolist()


def test_the_two_references_are_straight_lines(train, test, classifier):
    def points(kind):
        team = kind(classifier).fit(train.X, train.y, annotations=train.annotations)
        return coverage_accuracy_points(team, test.X, test.y, test.annotations, coverages=[0.3])

    own, answers = test.accuracy(classifier.predict(test.X)), test.annotations.to_numpy()
    best = test.accuracy(answers[:, 0])
    second = np.where(answers[:, 1] < 0, answers[:, 0], answers[:, 1])  # who skipped leaves the item to the other
    for kind, people in ((BestExpert, best), (ClassifierOnly, (best + test.accuracy(second)) / 2)):
        coverage, accuracy = points(kind)
        assert coverage.tolist() == [0, 1]
        assert_allclose(accuracy, [people, own])
        assert coverage_accuracy_auc(coverage, accuracy) == pytest.approx((people + own) / 2)


def test_searches_pipelines_and_annotated_targets(train, test, classifier):
    y = AnnotatedTarget(train.y, train.annotations)
    pipeline = make_pipeline(StandardScaler(), RankedDeferral(OneStageDeferral(max_epochs=2, random_state=0)))
    search = GridSearchCV(pipeline, {"rankeddeferral__coverage": [0.4]}, cv=2, scoring=make_team_scorer())
    search.fit(train.X, y)
    coverage, accuracy = coverage_accuracy_points(
        search, test.X, AnnotatedTarget(test.y, test.annotations), coverages=[0.5], X_unlabeled=test.X
    )
    assert_allclose(coverage, [0, 0.5, 1], atol=0.002)
    items = search.best_estimator_[0].transform(test.X)
    (half,) = search.best_estimator_[-1].coverage_path([0.5], items)
    assert accuracy[1] == half.score(items, test.y, annotations=test.annotations)
    drawn = half.predict_team(items, test.annotations)
    assert make_team_scorer()(half, items, test.y, test.annotations) == test.accuracy(drawn)


def test_there_is_no_curve_without_experts(train, test, classifier):
    team = ConfidenceDeferral(classifier).fit(train.X, train.y)
    with pytest.raises(ValueError, match="ConfidenceDeferral has no experts"):
        coverage_accuracy_points(team, test.X, test.y)
