"""Deferral by the prediction sets of a classifier."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_l2d._numerics._conformal import n_scores_needed, set_threshold
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import ConformalDeferral


@pytest.fixture(scope="module")
def crowd():
    return load_digits_crowd(random_state=0)


@pytest.fixture(scope="module")
def team(crowd):
    team = ConformalDeferral(LogisticRegression(C=0.01), random_state=0)
    return team.fit(
        crowd.X_identified, crowd.y_identified, annotations=crowd.annotations, X_unlabeled=crowd.X_anonymous
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0.05, 0.95))
def test_threshold_is_the_split_conformal_quantile(proba, level):
    scores, n = np.sort(1 - np.array(proba)), len(proba)
    rank = int(np.ceil(level * (n + 1) - 1e-9))
    threshold = set_threshold(np.array(proba), level, np.ones(n))
    if rank > n:
        assert threshold == -1
        assert n < n_scores_needed(level)
    else:
        assert 1 - threshold == pytest.approx(scores[rank - 1])
        assert n >= n_scores_needed(level)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 4)), min_size=1, max_size=20), st.floats(0.05, 0.95))
def test_weight_is_repetition(rows, level):
    proba, weight = (np.array(column) for column in zip(*rows, strict=True))
    repeated = np.repeat(proba, weight)
    assert set_threshold(proba, level, weight) == set_threshold(repeated, level, np.ones(len(repeated)))


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10_000))
def test_sets_hold_the_truth_as_often_as_promised(seed):
    """Coverage of split conformal sets over many draws of calibration and new items: a known law, not our output."""
    rng, level, n = np.random.default_rng(seed), 0.8, 19
    held = [
        rng.random() >= set_threshold(rng.random(n), level, np.ones(n)) for _ in range(4000)
    ]  # exchangeable: exactly ceil(level (n + 1)) / (n + 1)
    assert np.mean(held) == pytest.approx(np.ceil(level * (n + 1)) / (n + 1), abs=4 * np.sqrt(0.16 / 4000))


def test_asks_where_several_classes_are_plausible(crowd, team):
    several = team.predict_set(crowd.X_test).sum(1) > 1
    np.testing.assert_array_equal(team.predict_deferral(crowd.X_test) >= 0, several)
    np.testing.assert_array_equal(team.consult(crowd.X_test).sum(1), several)
    assert several.mean() == pytest.approx(team.answers_, abs=0.1)


def test_sets_of_the_classifier_hold_the_truth(crowd, team):
    held = team.predict_set(crowd.X_test)[np.arange(300), np.searchsorted(team.classes_, crowd.y_test)]
    assert held.mean() > 0.85


def test_asks_whoever_tells_the_plausible_classes_apart():
    """Two specialists, each certain about one pair of classes and blind between the other two."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=4000)
    pair = y // 2
    X = np.column_stack([pair * 4.0 - 2, np.zeros(len(y))]) + rng.normal(0, 0.3, (len(y), 2))  # tells pairs apart
    guess = rng.integers(2, size=len(y))
    first = np.where(pair == 0, y, 2 + guess)
    second = np.where(pair == 1, y, guess)
    fitted = LogisticRegression().fit(X[:1000], y[:1000])
    team = ConformalDeferral(FrozenEstimator(fitted), confidence_level=0.99, random_state=0)
    team.fit(X[1000:1400], y[1000:1400], annotations=np.column_stack([second, first])[1000:1400])
    asked = team.assign_experts(X[1400:])
    assert (asked >= 0).mean() > 0.9
    np.testing.assert_array_equal(asked[asked >= 0], np.where(pair[1400:] == 0, 1, 0)[asked >= 0])
    answers = np.column_stack([second, first])[1400:]
    assert (team.predict_team(X[1400:], answers) == y[1400:]).mean() > 0.99
    assert team.score(X[1400:], y[1400:], answers) > 0.97


def test_segregativity_by_brute_force(crowd, team):
    from sklearn_l2d._numerics._answer_model import answer_log_likelihood

    X, model = crowd.X_test[:20], team._roster.answer_model
    proba = team._classifier_proba(team._check_items(X))
    for row, asked in enumerate(team.assign_experts(X)):
        if asked < 0:
            continue
        second = np.sort(proba[row])[-2]
        plausible = np.flatnonzero(proba[row] >= min(team.set_threshold_, second))
        told = []
        for expert in range(6):
            of = np.exp(answer_log_likelihood(model, np.full(10, expert), np.arange(10)))
            told.append(sum(of[answer, plausible].max() for answer in range(10)) / len(plausible))
        assert told[asked] == pytest.approx(max(told))


@pytest.mark.parametrize("answers", [0.0, 0.3, 0.8])
def test_meets_a_mean_number_of_answers(crowd, answers):
    team = ConformalDeferral(LogisticRegression(C=0.01), answers=answers, random_state=0)
    team.fit(crowd.X_identified, crowd.y_identified, crowd.annotations, X_unlabeled=crowd.X_anonymous)
    assert team.answers_ == pytest.approx(answers, abs=0.01)
    assert team.consult(crowd.X_test).sum(1).mean() == pytest.approx(answers, abs=0.08)


def test_path_shares_what_is_learnt(crowd, team):
    path = team.answers_path([0.0, 0.25, 1.0], crowd.X_anonymous)
    assert [at.answers_ for at in path] == pytest.approx([0, 0.25, 1], abs=0.01)
    assert path[0].score(crowd.X_test, crowd.y_test, crowd.annotations_test) == pytest.approx(
        (team.predict(crowd.X_test) == crowd.y_test).mean()
    )
    assert len({id(at.classifier_) for at in path}) == 1


def test_one_item_gets_what_it_gets_in_a_batch(crowd, team):
    together = team.consult(crowd.X_test[:30])
    alone = np.concatenate([team.consult(crowd.X_test[[i]]) for i in range(30)])
    np.testing.assert_array_equal(together, alone)


def test_newcomers_without_truth_join_by_their_behaviour(crowd):
    lda = AnnotatorLDA(2, max_epochs=5, random_state=0).fit(crowd.X_anonymous, crowd.counts)
    team = ConformalDeferral(LogisticRegression(C=0.01), clusterer=FrozenEstimator(lda), random_state=0)
    team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations[:, 1:])
    team.onboard("new", crowd.X_identified, crowd.annotations[:, :1])
    assert team.experts_[-1] == "new"
    assert (team.assign_experts(crowd.X_test) == team.n_experts_ - 1).any()


def test_too_few_items_for_the_level(crowd):
    team = ConformalDeferral(LogisticRegression(C=0.01), confidence_level=0.999, random_state=0)
    with pytest.warns(UserWarning, match="confidence_level=0.999 takes 999 labelled items"):
        team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    assert team.predict_set(crowd.X_test).all()


def test_more_than_one_answer_is_refused(crowd):
    with pytest.raises(ValueError, match=r"answers=1\.5 per item, but 6 experts are asked for 0 to 1"):
        ConformalDeferral(LogisticRegression(), answers=1.5).fit(
            crowd.X_identified, crowd.y_identified, annotations=crowd.annotations
        )
