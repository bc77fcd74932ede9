"""Weights of the items in `fit` of every deferrer, and in what it learns from them."""

import numpy as np
import pandas as pd
import pytest
from _instances import fit, make_crowd, of_kind, outputs
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from sklearn_l2d import AnnotatedTarget, AnnotatorLDA
from sklearn_l2d._numerics._answer_model import complete_truth
from sklearn_l2d._numerics._answers import fit_temperature
from sklearn_l2d._numerics._crowdlab import fit_crowdlab
from sklearn_l2d._numerics._difficulty import Told
from sklearn_l2d._numerics._fusion import fit_exponents
from sklearn_l2d._numerics._gate_posterior import gate_posterior
from sklearn_l2d._numerics._shares import calibrate_offsets
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.crowd import NetClassifier
from sklearn_l2d.deferral import BestExpert, ClassifierOnly, ConfidenceDeferral, RandomExpertDeferral
from sklearn_l2d.deferral._coverage import QUANTILES, _quantiles

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

each_deferrer = pytest.mark.parametrize("instance", of_kind("deferrer"), ids=str)


@pytest.fixture(scope="module")
def crowd():
    return make_crowd()


def weighted(instance, crowd, weight):
    estimator = clone(instance.estimator)
    return estimator.fit(crowd.X, crowd.y, annotations=crowd.annotations, sample_weight=weight)


def rows_of(crowd, rows):
    return Bunch(**{name: crowd[name][rows] for name in ("X", "y", "counts", "annotations")})


@each_deferrer
def test_rows_of_weight_zero_are_absent(instance, crowd):
    weight = (np.arange(60) % 3 > 0) * np.linspace(0.5, 2, 60)
    rows = np.flatnonzero(weight)
    marked = Bunch(**(crowd | {"y": np.where(weight > 0, crowd.y, 9)}))  # nor is their label a class
    expected = outputs(instance, weighted(instance, rows_of(crowd, rows), weight[rows]), crowd)
    got = outputs(instance, weighted(instance, marked, weight), crowd)
    for name in expected:
        assert_array_equal(got[name], expected[name], err_msg=name)


@each_deferrer
def test_equal_weights_are_none(instance, crowd):
    expected = outputs(instance, fit(instance, clone(instance.estimator), crowd), crowd)
    got = outputs(instance, weighted(instance, crowd, np.ones(60)), crowd)
    for name in expected:
        assert_allclose(got[name], expected[name], rtol=1e-4, atol=1e-6, err_msg=name)


@each_deferrer
def test_answers_count_by_the_weights_of_their_items(instance, crowd):
    weight = np.random.default_rng(0).integers(1, 4, 60)
    team = weighted(instance, crowd, weight)
    assert team.score(crowd.X, crowd.y, annotations=crowd.annotations) > 0
    of_class = (crowd.y[:, None] == np.arange(3)) * weight[:, None]
    assert_allclose(team._roster.seen, (crowd.annotations >= 0).T @ of_class)
    assert_allclose(team._roster.right, (crowd.annotations == crowd.y[:, None]).T @ of_class)


@each_deferrer
def test_weights_decide(instance, crowd):
    one, other = (outputs(instance, weighted(instance, crowd, 1 + 9.0 * (crowd.y == c)), crowd) for c in (0, 1))
    assert any(not np.array_equal(one[name], other[name]) for name in one)
    proba, deferral = one["predict_proba"], one["predict_deferral_proba"]
    assert np.isfinite(proba).all()
    assert np.isfinite(deferral).all()


FROZEN = FrozenEstimator(LogisticRegression(C=0.1).fit(make_crowd(random_state=3).X, make_crowd(random_state=3).y))
# All that they learn beside the classifier are counts and shares, for which a row twice is a row of weight 2.
COUNTING = [
    BestExpert(FROZEN, random_state=0),
    ClassifierOnly(FROZEN, random_state=0),
    ConfidenceDeferral(FROZEN, random_state=0),
    ConfidenceDeferral(FROZEN, coverage=0.4, random_state=0),
]


@pytest.mark.parametrize("estimator", COUNTING, ids=str)
@pytest.mark.parametrize("unknown", [0, 15])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=3, deadline=None)
def test_a_row_of_weight_two_is_a_row_twice(estimator, unknown, seed):
    crowd, weight = make_crowd(), np.random.default_rng(seed).integers(0, 4, 60)
    crowd.y = np.where(np.arange(60) < unknown, np.nan, crowd.y)
    twice = np.repeat(np.arange(60), weight)
    one = clone(estimator).fit(crowd.X, crowd.y, annotations=crowd.annotations, sample_weight=weight)
    other = clone(estimator).fit(crowd.X[twice], crowd.y[twice], annotations=crowd.annotations[twice])
    new = make_crowd(random_state=1)
    assert one.temperature_ == pytest.approx(other.temperature_, rel=1e-3)
    assert_allclose(one._roster.seen, other._roster.seen, atol=1e-4)
    assert_allclose(one._roster.right, other._roster.right, atol=1e-4)
    assert_allclose(one.coverage_, other.coverage_, atol=1e-9)
    assert_allclose(one.predict_expert_correctness(new.X), other.predict_expert_correctness(new.X), atol=1e-3)
    finite = np.isfinite(other.decision_function(new.X))
    assert_allclose(one.decision_function(new.X)[finite], other.decision_function(new.X)[finite], atol=2e-3)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=8, deadline=None)
def test_numerics_take_a_row_of_weight_two_for_a_row_twice(seed):
    rng = np.random.default_rng(seed)
    n, weight = 30, np.append(1, rng.integers(1, 4, 29))
    twice = np.repeat(np.arange(n), weight)
    logits, y = rng.normal(size=(n, 3)), rng.integers(3, size=n)
    log_proba = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    assert fit_temperature(log_proba, y, weight) == pytest.approx(fit_temperature(log_proba[twice], y[twice]), rel=1e-3)

    assert_allclose(_quantiles(logits[:, 0], weight / 2), np.quantile(logits[twice, 0], QUANTILES), atol=1e-12)

    lower, upper = [0, 0, 0.4], [1, 1, 0.4]
    offsets, shares = calibrate_offsets(logits, lower, upper, weight)
    again, expected = calibrate_offsets(logits[twice], lower, upper)
    assert_allclose(offsets, again)
    assert_allclose(shares, expected)

    selection, log_likelihood = np.eye(3), np.log(rng.uniform(0.1, 1, size=(n, 3)))
    for bounds in (
        {"target_bounds": (lower, upper)},
        {"target_bounds": (lower, upper), "expert_bounds": ([0] * 3, [0.5] * 3)},
    ):
        one = gate_posterior(log_proba, selection, log_likelihood, **bounds, sample_weight=weight)
        other = gate_posterior(log_proba[twice], selection, log_likelihood[twice], **bounds)
        assert_allclose(one.targets[twice], other.targets, atol=1e-6)

    item, label = np.repeat(np.arange(n), 2), rng.integers(3, size=2 * n)
    answers = np.flatnonzero(np.ones(2 * n))  # the answers to each item, item by item
    answers = np.concatenate([answers.reshape(n, 2)[row] for row in twice])
    of = np.repeat(np.arange(len(twice)), 2)
    one = fit_crowdlab(item, label, np.exp(log_proba), y, 0.5, weight)
    other = fit_crowdlab(of, label[answers], np.exp(log_proba[twice]), y[twice], 0.5)
    assert_allclose(one, other)

    expert = np.tile([0, 1], n)
    one = complete_truth(log_proba, item, expert, label, 2, sample_weight=weight)
    other = complete_truth(log_proba[twice], of, expert[answers], label[answers], 2)
    assert_allclose(one[0][twice], other[0], atol=1e-3)

    truth, accuracy = np.eye(3)[y], rng.random((n, 3))
    heard = Told(rng.normal(size=(n, 3)), accuracy, rng.integers(3, size=n))
    again = Told(*(column[twice] for column in heard))
    one = fit_exponents(log_proba, np.arange(n), label[:n], heard, truth * weight[:, None])
    other = fit_exponents(log_proba[twice], np.arange(len(twice)), label[:n][twice], again, truth[twice])
    assert_allclose(one, other, rtol=1e-2, atol=1e-3)


def test_weights_of_the_labelled_items_count_in_their_shares(crowd):
    weight = np.where(crowd.y == 0, 5.0, 1.0)
    team = ConfidenceDeferral(FROZEN, coverage=0.4, random_state=0)
    team.fit(crowd.X, crowd.y, annotations=crowd.annotations, sample_weight=weight)
    alone = team.predict_deferral(crowd.X) == -1
    assert team.coverage_ == pytest.approx(np.average(alone, weights=weight))
    assert team.coverage_ == pytest.approx(0.4, abs=2.5 / weight.sum())
    other = make_crowd(n_samples=200, random_state=1)
    team.fit(crowd.X, crowd.y, annotations=crowd.annotations, X_unlabeled=other.X, sample_weight=weight)
    assert np.mean(team.predict_deferral(other.X) == -1) == pytest.approx(0.4, abs=0.0026)
    gate = RandomExpertDeferral(classifier=LogisticRegression(), cv=2, coverage=0.4, max_epochs=3, random_state=0)
    gate.fit(crowd.X, crowd.y, annotations=crowd.annotations, sample_weight=weight)
    assert gate.coverage_ == pytest.approx(0.4, abs=2.5 / weight.sum())
    assert gate.history_[-1]["constraint_violation"] < 1e-6


def test_the_classifier_gets_the_weights_where_it_takes_some(crowd):
    weight = np.random.default_rng(0).uniform(0.1, 3, 60)
    plain = LogisticRegression().fit(crowd.X, crowd.y, sample_weight=weight)

    def proba(classifier):
        team = BestExpert(classifier, random_state=0)
        return team.fit(crowd.X, crowd.y, annotations=crowd.annotations, sample_weight=weight).predict_proba(crowd.X)

    assert_array_equal(proba(LogisticRegression()), plain.predict_proba(crowd.X))
    piped = make_pipeline("passthrough", make_pipeline(LogisticRegression()))
    assert_array_equal(proba(piped), plain.predict_proba(crowd.X))
    with config_context(enable_metadata_routing=True):
        asking = LogisticRegression().set_fit_request(sample_weight=True)
        assert_array_equal(proba(make_pipeline(asking)), plain.predict_proba(crowd.X))
        assert_array_equal(proba(LogisticRegression()), plain.predict_proba(crowd.X))
    with pytest.warns(
        UserWarning, match="the fit of the classifier KNeighborsClassifier takes no sample_weight"
    ) as told:
        proba(KNeighborsClassifier())
    assert len(told) == 1


def test_weights_are_matched_by_name(crowd):
    items = [f"item {i}" for i in range(60)]
    weight, order = pd.Series(np.linspace(0, 2, 60), items), np.random.default_rng(0).permutation(60)
    X = pd.DataFrame(crowd.X, index=items).add_prefix("x")
    team = ConfidenceDeferral(LogisticRegression(), cv=2, coverage=0.5, random_state=0)
    team.fit(X, crowd.y, annotations=crowd.annotations, sample_weight=weight.iloc[order])
    expected = clone(team).fit(X, crowd.y, annotations=crowd.annotations, sample_weight=weight.to_numpy())
    assert_array_equal(team.decision_function(X), expected.decision_function(X))
    with pytest.raises(ValueError, match="sample_weight has other rows than X"):
        team.fit(X, crowd.y, annotations=crowd.annotations, sample_weight=weight.add_prefix("no "))


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (np.ones(59), "inconsistent|shape"),
        (-np.ones(60), "[Nn]egative"),
        (np.full(60, np.nan), "NaN"),
        (0.0, "zero|all"),
    ],
    ids=str,
)
def test_weights_that_are_none(crowd, weight, match):
    team = BestExpert(LogisticRegression())
    with pytest.raises(ValueError, match=match):
        team.fit(
            crowd.X,
            crowd.y,
            annotations=crowd.annotations,
            sample_weight=np.broadcast_to(weight, np.shape(weight) or 60),
        )
    assert not hasattr(team, "classes_")


def test_weights_are_routed_where_they_are_asked_for(crowd):
    weight = np.linspace(0.5, 2, 60)
    team = ConfidenceDeferral(LogisticRegression(), cv=2, coverage=0.5, random_state=0)
    scaled = StandardScaler().fit_transform(crowd.X)
    expected = clone(team).fit(scaled, crowd.y, annotations=crowd.annotations, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        asking = make_pipeline(StandardScaler(), clone(team).set_fit_request(sample_weight=True))
        asking[0].set_fit_request(sample_weight=False)
        asking.fit(crowd.X, crowd.y, annotations=crowd.annotations, sample_weight=weight)
        assert_array_equal(asking.decision_function(crowd.X), expected.decision_function(scaled))
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            make_pipeline(clone(team)).fit(crowd.X, crowd.y, annotations=crowd.annotations, sample_weight=weight)
    search = GridSearchCV(clone(team), {"coverage": [0.5]}, cv=2, error_score="raise")
    search.fit(scaled, AnnotatedTarget(crowd.y, crowd.annotations), sample_weight=weight)
    assert_array_equal(search.best_estimator_.decision_function(scaled), expected.decision_function(scaled))


def test_feedback_has_weights(crowd):
    gate = RandomExpertDeferral(classifier=LogisticRegression(), cv=2, max_epochs=2, random_state=0)
    gate.fit(crowd.X, crowd.y, annotations=crowd.annotations)
    before, weight = gate._roster.seen.sum(), np.arange(60) % 3
    gate.partial_fit(crowd.X, crowd.y, crowd.annotations, sample_weight=weight)
    assert gate._roster.seen.sum() - before == (crowd.annotations >= 0).sum(1) @ weight


def test_balanced_classes_count_their_weights(crowd):
    weight = np.where(crowd.y == 0, 3.0, 1.0)
    mass = np.bincount(crowd.y, weight)
    params = {"max_epochs": 3, "random_state": 0}
    balanced = NetClassifier(class_weight="balanced", **params).fit(crowd.X, crowd.y, sample_weight=weight)
    by_hand = NetClassifier(class_weight=dict(enumerate(1 / mass)), **params)
    by_hand.fit(crowd.X, crowd.y, sample_weight=weight)
    assert_allclose(balanced.predict_proba(crowd.X), by_hand.predict_proba(crowd.X), rtol=1e-4)


def test_weights_scale_the_votes_of_an_archive(crowd):
    weight = np.arange(60) % 3
    lda = AnnotatorLDA(hidden_layer_sizes=(4,), n_consensus_epochs=2, n_anchor_epochs=1, max_epochs=3, random_state=0)
    rows = weight > 0
    one = clone(lda).fit(crowd.X, crowd.counts, sample_weight=weight)
    other = clone(lda).fit(crowd.X[rows], (crowd.counts * weight[:, None])[rows])
    assert_array_equal(one.predict_annotation_proba(crowd.X), other.predict_annotation_proba(crowd.X))


def test_items_of_unknown_truth_have_weights(crowd):
    y = np.where(np.arange(60) < 20, np.nan, crowd.y)
    weight = np.where(np.arange(60) < 20, 4.0, 1.0)
    team = BestExpert(FROZEN, random_state=0).fit(crowd.X, y, encode_votes(crowd.annotations), sample_weight=weight)
    assert_allclose(team._roster.seen.sum(1), (crowd.annotations >= 0).T @ weight)
