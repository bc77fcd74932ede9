"""Labels by the classifier and all answers together, for every deferrer."""

import copy

import numpy as np
import pandas as pd
import pytest
from _instances import fit, make_crowd, of_kind, without_people
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.naive_bayes import GaussianNB

from sklearn_l2d._numerics._fusion import Exponents
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import (
    ClusterDeferral,
    ConfidenceDeferral,
    RandomExpertDeferral,
    RankedDeferral,
    _answer_model,
)
from sklearn_l2d.model_selection import make_team_scorer

deferrers = pytest.mark.parametrize("instance", of_kind("deferrer"), ids=str)
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(n_samples=120)


@pytest.fixture
def team(crowd):
    return ConfidenceDeferral(LogisticRegression(), cv=3, random_state=0).fit(crowd.X, crowd.y, crowd.annotations)


@quiet
@deferrers
def test_every_deferrer_puts_all_answers_together(instance):
    crowd = make_crowd()
    fitted = fit(instance, clone(instance.estimator), crowd)
    proba = fitted.predict_team_proba(crowd.X, crowd.annotations)
    assert proba.shape == (len(crowd.X), 3)
    assert_allclose(proba.sum(1), 1)
    labels = fitted.predict_team(crowd.X, crowd.annotations, decision="combine")
    assert_array_equal(labels, fitted.classes_[proba.argmax(1)])
    votes = encode_votes(crowd.annotations, classes=fitted.classes_)
    assert_array_equal(fitted.predict_team_proba(crowd.X, votes), proba)
    order = np.random.default_rng(0).permutation(len(crowd.X))
    assert_allclose(fitted.predict_team_proba(crowd.X[order], crowd.annotations[order]), proba[order], atol=1e-6)
    alone = [fitted.predict_team_proba(crowd.X[[i]], crowd.annotations[[i]])[0] for i in range(5)]
    assert_allclose(alone, proba[:5], atol=1e-6)
    # nobody answered: the classifier, calibrated
    silent = fitted.predict_team_proba(crowd.X, np.full_like(crowd.annotations, -1))
    sharper = fitted.predict_proba(crowd.X) ** (1 / fitted.temperature_)
    assert_allclose(silent, sharper / sharper.sum(1, keepdims=True), atol=2e-5)
    if not hasattr(fitted, "replay"):  # for which it is usual that nobody has answered yet
        with pytest.raises(ValueError, match="predict_team_proba received no annotations"):
            fitted.predict_team_proba(crowd.X)


@quiet
@deferrers
def test_without_experts_the_classifier_is_the_team(instance):
    if hasattr(instance.estimator, "surrogate"):
        pytest.skip("its classifier is part of a net with outputs for experts, tested elsewhere")
    crowd = make_crowd()
    fitted = without_people(instance.estimator).fit(crowd.X, crowd.y)
    assert_allclose(fitted.predict_team_proba(crowd.X), fitted.predict_proba(crowd.X), atol=2e-5)
    assert_array_equal(fitted.predict_team(crowd.X, decision="combine"), fitted.predict(crowd.X))


def test_the_posterior_is_that_of_dawid_and_skene(team, crowd):
    team._exponents = Exponents()
    model = team._roster.answer_model
    confusion = np.empty((5, 3, 3))  # expert, truth, answer
    codes, y = crowd.annotations, crowd.y
    for m, c in np.ndindex(5, 3):
        own = np.bincount(codes[(y == c) & (codes[:, m] >= 0), m], minlength=3)
        right = (own[c] + model.strength * model.accuracy[m, c]) / (own.sum() + model.strength)
        made = own.sum() - own[c]
        confusion[m, c] = (own + model.wrong_strength * model.wrong[c]) / (made + model.wrong_strength) * (1 - right)
        confusion[m, c, c] = right
    expected = team.predict_team_proba(crowd.X, np.full_like(codes, -1))
    for i, m in np.argwhere(codes >= 0):
        expected[i] *= confusion[m, :, codes[i, m]]
    expected /= expected.sum(1, keepdims=True)
    assert_allclose(team.predict_team_proba(crowd.X, codes), expected, rtol=1e-9)


def test_answers_are_matched_by_name_and_in_blocks(team, crowd, monkeypatch):
    frame = pd.DataFrame(crowd.annotations)
    expected = team.predict_team_proba(crowd.X, frame)
    assert_allclose(team.predict_team_proba(crowd.X, frame[[3, 0, 4, 2, 1]]), expected, rtol=1e-10)
    some = frame.copy()
    some[[1, 2]] = -1
    assert_allclose(team.predict_team_proba(crowd.X, frame[[3, 0, 4]]), team.predict_team_proba(crowd.X, some))
    monkeypatch.setattr(_answer_model, "BLOCK", 10)
    assert_allclose(team.predict_team_proba(crowd.X, frame), expected, rtol=1e-10)


def test_a_roster_that_changes_keeps_what_is_known_of_each(crowd):
    team = ConfidenceDeferral(LogisticRegression(), cv=3, random_state=0).fit(crowd.X, crowd.y, crowd.annotations)
    others = copy.copy(team).offboard([1])
    rest = np.delete(crowd.annotations, 1, axis=1)
    silent = crowd.annotations.copy()
    silent[:, 1] = -1
    again = copy.copy(others).onboard([1], crowd.X, crowd.annotations[:, [1]], crowd.y)
    assert_array_equal(again.experts_, [0, 2, 3, 4, 1])
    whole = crowd.annotations[:, [0, 2, 3, 4, 1]]
    for decision in ("combine", "crowdlab"):
        expected = team.predict_team_proba(crowd.X, silent, decision)
        assert_allclose(others.predict_team_proba(crowd.X, rest, decision), expected)
        expected = team.predict_team_proba(crowd.X, crowd.annotations, decision)
        assert_allclose(again.predict_team_proba(crowd.X, whole, decision), expected)
    stranger = RandomExpertDeferral(classifier=LogisticRegression(), max_epochs=1, random_state=0)
    stranger.fit(crowd.X, crowd.y, crowd.annotations).onboard("new")
    answers = np.column_stack([crowd.annotations, crowd.y])
    assert stranger.predict_team_proba(crowd.X, answers).shape == (120, 3)


def test_feedback_is_counted(crowd):
    half = slice(0, 60), slice(60, None)
    gate = ClusterDeferral(AnnotatorLDA(n_consensus_epochs=1, n_anchor_epochs=1, max_epochs=1, random_state=0))
    gate.set_params(classifier=LogisticRegression(), cv=2, max_epochs=1, random_state=0)
    gate.fit(*(part[half[0]] for part in (crowd.X, crowd.y, crowd.annotations)))
    gate.partial_fit(*(part[half[1]] for part in (crowd.X, crowd.y, crowd.annotations)))
    whole = clone(gate).fit(crowd.X, crowd.y, crowd.annotations)
    got, expected = gate._roster.answer_model, whole._roster.answer_model
    assert_array_equal(got.own.toarray(), expected.own.toarray())
    assert_array_equal(got.seen, expected.seen)


def test_errors_of_unlike_cost_move_the_decision(crowd):
    cost = np.array([[0, 1, 1], [20, 0, 1], [1, 1, 0]])
    gate = ClusterDeferral(omega=np.eye(5)[:, :2] + 0.1, error_cost=cost, classifier=LogisticRegression())
    gate.set_params(cv=2, max_epochs=1, random_state=0).fit(crowd.X, crowd.y, crowd.annotations)
    few = np.where(np.arange(5) == 4, crowd.annotations, -1)
    proba = gate.predict_team_proba(crowd.X, few)
    labels = gate.predict_team(crowd.X, few, decision="combine")
    assert_array_equal(labels, (proba @ cost).argmin(1))
    assert (labels != proba.argmax(1)).any()
    ranked = RankedDeferral(FrozenEstimator(gate)).fit(crowd.X, crowd.y, crowd.annotations)
    assert_array_equal(ranked.predict_team(crowd.X, few, decision="combine"), labels)
    assert_array_equal(ranked.predict_team_proba(crowd.X, few), proba)


def test_all_answers_beat_one_and_the_majority():
    digits = load_digits_crowd(random_state=1)
    team = ConfidenceDeferral(LogisticRegression(C=0.01), random_state=0)
    team.fit(digits.X_identified, digits.y_identified, digits.annotations)
    answers = np.where(
        np.random.default_rng(0).random(digits.annotations_test.shape) < 0.5, digits.annotations_test, -1
    )
    truth = digits.y_test
    right = {d: (team.predict_team(digits.X_test, answers, decision=d) == truth).mean() for d in ("draw", "combine")}
    majority = encode_votes(answers, classes=team.classes_).to_counts().argmax(1)
    assert right["combine"] > right["draw"] + 0.03
    assert right["combine"] > (team.classes_[majority] == truth).mean() + 0.03
    score = make_team_scorer(decision="combine")
    assert score(team, digits.X_test, truth, annotations=answers) == right["combine"]
    f1 = make_team_scorer(f1_score, decision="combine", average="macro")
    assert 0.5 < f1(team, digits.X_test, truth, annotations=answers) < 1


def test_unknown_decisions_are_refused(team, crowd):
    with pytest.raises(ValueError, match="decision='panel' is none of 'draw', 'vote', 'combine' and 'crowdlab'"):
        team.predict_team(crowd.X, crowd.annotations, decision="panel")
    with pytest.raises(ValueError, match="decision='vote' is neither 'combine' nor 'crowdlab'"):
        team.predict_team_proba(crowd.X, crowd.annotations, decision="vote")


@quiet
@deferrers
def test_every_deferrer_averages_as_crowdlab_does(instance):
    crowd = make_crowd()
    fitted = fit(instance, clone(instance.estimator), crowd)
    proba = fitted.predict_team_proba(crowd.X, crowd.annotations, decision="crowdlab")
    assert_allclose(proba.sum(1), 1)
    labels = fitted.predict_team(crowd.X, crowd.annotations, decision="crowdlab")
    assert_array_equal(labels, fitted.classes_[proba.argmax(1)])
    score = make_team_scorer(decision="crowdlab")
    assert score(fitted, crowd.X, crowd.y, annotations=crowd.annotations) == (labels == crowd.y).mean()
    alone = [fitted.predict_team_proba(crowd.X[[i]], crowd.annotations[[i]], "crowdlab")[0] for i in range(5)]
    assert_allclose(alone, proba[:5], atol=1e-6)
    silent = np.full_like(crowd.annotations, -1)
    nobody = fitted.predict_team_proba(crowd.X, silent, decision="crowdlab")
    assert_allclose(nobody, fitted.predict_team_proba(crowd.X, silent))


def test_crowdlab_weighs_everybody_by_the_rows_of_fit(team, crowd):
    base = 1 - np.bincount(crowd.y).max() / len(crowd.y)
    answered = crowd.annotations >= 0
    right = answered & (crowd.annotations == crowd.y[:, None])
    weight = np.maximum(1 - (1 - right.sum(0) / answered.sum(0)) / base, 1e-6)
    known = np.mean(right.sum(1)[answered.any(1)] / answered.sum(1)[answered.any(1)])
    proba = team.predict_team_proba(crowd.X, np.full_like(crowd.annotations, -1))
    one = np.full_like(crowd.annotations, -1)
    one[:, 2] = 0
    own = team._crowdlab.classifier  # judged out of fold
    expected = own * proba + weight[2] * np.where(np.arange(3) == 0, known, (1 - known) / 2)
    assert_allclose(team.predict_team_proba(crowd.X, one, decision="crowdlab"), expected / (own + weight[2]))


def test_few_of_many_answers_tell_how_much_they_count(team, crowd, monkeypatch):
    monkeypatch.setattr(_answer_model, "_ENOUGH_ANSWERS", 100)
    monkeypatch.setattr(_answer_model, "_ENOUGH_ITEMS", 10)
    fewer = clone(team).fit(crowd.X, crowd.y, crowd.annotations)
    assert fewer._exponents != team._exponents
    assert_allclose(fewer._exponents, team._exponents, atol=0.5)


def test_enough_items_are_learnt_from_however_many_answer_each(monkeypatch):
    rng = np.random.default_rng(0)
    votes = encode_votes(rng.integers(-1, 3, size=(60, 300)), classes=range(3))
    rows, some = _answer_model.few_answers(votes, 0)
    assert rows == slice(None)
    assert_array_equal(np.bincount(some.item), np.full(60, 20))
    codes, kept = votes.to_codes(), some.to_codes()
    assert_array_equal(kept[kept >= 0], codes[kept >= 0])
    many = encode_votes(rng.integers(-1, 3, size=(4000, 5)), classes=range(3))
    rows, some = _answer_model.few_answers(many, 0)
    assert 500 <= len(rows) < 4000
    assert len(some.item) == pytest.approx(5000, rel=0.1)
    assert_array_equal(some.to_codes(), many.to_codes()[rows])
    assert _answer_model.few_answers(many, 0)[1].item.tolist() == some.item.tolist()


def test_everybody_on_the_same_few_items_is_learnt_alike_by_every_seed():
    """Sixty items, hard or easy for all 300 people alike: what they say together must not pass for certain."""
    rng = np.random.default_rng(0)

    def answers(y, n_people):
        right = rng.random((len(y), n_people)) < rng.choice([0.25, 0.9], size=(len(y), 1))
        return np.where(right, y[:, None], (y[:, None] + rng.integers(1, 3, size=right.shape)) % 3)

    y, y_new = rng.integers(3, size=60), rng.integers(3, size=400)
    X, X_new = (rng.normal(size=(len(truth), 4)) + np.eye(3, 4)[truth] for truth in (y, y_new))
    given, new = answers(y, 300), np.full((400, 300), -1)
    new[:, :15] = answers(y_new, 15)
    for seed in range(4):
        team = ConfidenceDeferral(LogisticRegression(), random_state=seed).fit(X, y, given)
        proba = team.predict_team_proba(X_new, new)
        assert team._exponents.difficulty >= 1
        assert abs(proba.max(1).mean() - (proba.argmax(1) == y_new).mean()) < 0.12


def test_one_class_is_certain(crowd):
    only = FrozenEstimator(GaussianNB().fit(crowd.X, np.ones(len(crowd.X), dtype=int)))
    ones = np.ones_like(crowd.annotations)
    team = ConfidenceDeferral(only, random_state=0).fit(crowd.X, ones[:, 0], ones)
    assert_allclose(team.predict_team_proba(crowd.X, ones), 1)
