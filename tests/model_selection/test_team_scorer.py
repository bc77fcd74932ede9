import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, zero_one_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d.annotations import AnnotatedTarget
from sklearn_l2d.deferral import ClusterDeferral
from sklearn_l2d.model_selection import make_team_scorer

CV = KFold(2, shuffle=True, random_state=0)
SCORING = {
    "classifier": "accuracy",
    "expected": make_team_scorer(decision="expected"),
    "draw": make_team_scorer(),
    "vote": make_team_scorer(f1_score, decision="vote", average="macro"),
}


class FirstExpert(ClassifierMixin, BaseEstimator):
    """A team without any learning: the classifier says 0, the first expert decides every item she answered."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def predict_team(self, X, annotations=None, decision="draw"):
        answers = np.asarray(annotations)[:, 0]
        return np.where(answers >= 0, answers, 0)


class FirstColumnZeroed(BaseEstimator):
    """A step that shows whether items reach the last step transformed."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return np.hstack([np.zeros((len(X), 1)), X[:, 1:]])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 1] > 0).astype(int)
    annotations = np.where(rng.random((60, 2)) < [0.9, 0.6], y[:, None], 1 - y[:, None])
    annotations[::7, 0] = -1
    return X, y, annotations


@pytest.fixture
def team():
    return ClusterDeferral(
        omega=np.eye(2),
        grouping="hard",
        classifier=LogisticRegression(),
        cv=2,
        coverage=0.5,
        max_epochs=3,
        hidden_layer_sizes=(3,),
        random_state=0,
    )


def test_judges_the_team_and_not_the_classifier(data):
    X, y, annotations = data
    labels = np.where(annotations[:, 0] >= 0, annotations[:, 0], 0)
    estimator = FirstExpert().fit(X, y)
    weights = np.arange(60.0)
    assert make_team_scorer()(estimator, X, y, annotations) == np.mean(labels == y)
    assert make_team_scorer()(estimator, X, AnnotatedTarget(y, annotations)) == np.mean(labels == y)
    assert_allclose(
        make_team_scorer()(estimator, X, y, annotations, sample_weight=weights), weights @ (labels == y) / weights.sum()
    )
    loss = make_team_scorer(zero_one_loss, greater_is_better=False, normalize=False)
    assert loss(estimator, X, y, annotations) == -np.sum(labels != y)


def test_expected_is_the_score_of_the_deferrer(data, team):
    X, y, annotations = data
    team.fit(X, y, annotations=annotations)
    assert make_team_scorer(decision="expected")(team, X, y, annotations) == team.score(X, y, annotations)
    for decision in ("draw", "vote"):
        labels = team.predict_team(X, annotations, decision=decision)
        assert make_team_scorer(decision=decision)(team, X, y, annotations) == accuracy_score(y, labels)


def test_transforms_along_pipelines_and_searches(data):
    class Watched(FirstExpert):
        def predict_team(self, X, annotations=None, decision="draw"):
            assert (X[:, 0] == 0).all()
            return super().predict_team(X, annotations, decision)

    X, y, annotations = data
    target = AnnotatedTarget(y, annotations)
    inner = make_pipeline(FirstColumnZeroed(), Watched())
    expected = make_team_scorer()(FirstExpert(), X, target)
    for estimator in (inner, make_pipeline(inner), make_pipeline(StandardScaler(), inner)):
        assert make_team_scorer()(estimator.fit(X, y), X, target) == expected
    search = GridSearchCV(inner, {}, cv=2, scoring=make_team_scorer()).fit(X, target)
    assert make_team_scorer()(search, X, target) == expected


@pytest.mark.parametrize("pipeline", [False, True])
def test_same_scores_with_routing_and_with_annotated_targets(data, team, pipeline):
    X, y, annotations = data
    estimator = make_pipeline(StandardScaler(), team) if pipeline else team
    carried = cross_validate(estimator, X, AnnotatedTarget(y, annotations), scoring=SCORING, cv=CV)
    with config_context(enable_metadata_routing=True):
        routed = cross_validate(estimator, X, y, params={"annotations": annotations}, scoring=SCORING, cv=CV)
    for name in SCORING:
        assert_allclose(routed[f"test_{name}"], carried[f"test_{name}"], err_msg=name)
    if not pipeline:
        by_hand = [
            team.fit(X[train], y[train], annotations=annotations[train]).score(X[test], y[test], annotations[test])
            for train, test in CV.split(X)
        ]
        assert_allclose(carried["test_expected"], by_hand)


@pytest.mark.parametrize("routing", [False, True])
def test_grid_search_refits_by_the_team(data, team, routing):
    X, y, annotations = data
    pipeline = make_pipeline(StandardScaler(), team)
    search = GridSearchCV(pipeline, {"clusterdeferral__coverage": [0.2, 0.8]}, scoring=SCORING, refit="draw", cv=CV)
    with config_context(enable_metadata_routing=routing):
        if routing:
            search.fit(X, y, annotations=annotations)
        else:
            search.fit(X, AnnotatedTarget(y, annotations))
    classifier, draw = search.cv_results_["mean_test_classifier"], search.cv_results_["mean_test_draw"]
    assert classifier[0] == classifier[1]  # coverage matters to the team only
    assert draw[0] != draw[1]
    assert search.best_index_ == draw.argmax()


def test_sample_weight_on_request(data, team):
    X, y, annotations = data
    weights = np.arange(60.0)
    weighted = make_team_scorer().set_score_request(sample_weight=True)
    metadata = {"annotations": annotations, "sample_weight": weights}
    with config_context(enable_metadata_routing=True):
        alike = team.set_fit_request(sample_weight=False)
        got = cross_validate(alike, X, y, params=metadata, scoring=weighted, cv=CV, return_estimator=True)
    for score, fitted, (_, test) in zip(got["test_score"], got["estimator"], CV.split(X), strict=True):
        labels = fitted.predict_team(X[test], annotations[test])
        assert_allclose(score, np.average(labels == y[test], weights=weights[test]))


def test_can_be_pickled(data):
    X, y, annotations = data
    scorer = make_team_scorer(f1_score, decision="vote", average="macro")
    copy = pickle.loads(pickle.dumps(scorer))
    estimator = FirstExpert().fit(X, y)
    assert copy(estimator, X, y, annotations) == scorer(estimator, X, y, annotations)
    assert repr(copy) == "make_team_scorer(f1_score, decision='vote')"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"decision": "mean"}, "decision='mean' is unknown"),
        ({"decision": "expected", "metric": f1_score}, "leave metric out"),
        ({"decision": "expected", "greater_is_better": False}, "leave metric out"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_team_scorer(**arguments)


def test_bad_calls(data, team):
    X, y, annotations = data
    with pytest.raises(TypeError, match="LogisticRegression has no predict_team"):
        make_team_scorer()(LogisticRegression().fit(X, y), X, y, annotations)
    team.fit(X, y, annotations=annotations)
    for decision in ("draw", "vote", "expected"):
        with pytest.raises(ValueError, match="received no annotations"):
            make_team_scorer(decision=decision)(team, X, y)
