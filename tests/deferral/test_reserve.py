"""A reserve of the experts' time in a shift, by prices that follow from the items that are expected."""

import pickle

import numpy as np
import pytest
from _instances import make_crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import ConfidenceDeferral, ConformalDeferral, OneStageDeferral, PanelDeferral, RankedDeferral
from sklearn_l2d.deferral._shift import Reserve


@pytest.fixture(scope="module")
def team():
    crowd = make_crowd()
    model = ConfidenceDeferral(LogisticRegression(C=0.01), cv=2, coverage=0.2, random_state=0)
    return model.fit(crowd.X, crowd.y, annotations=crowd.annotations)


def serve(reserve, gains, left):
    left, who = np.array(left), []
    for gain in gains:
        who.append(reserve.choose(gain, left))
        left[who[-1]] -= who[-1] >= 0
    return np.array(who)


def test_time_is_kept_for_the_items_that_gain_most():
    expected = np.repeat([[0.1], [0.5]], 50, axis=0)  # one person, half of the items gain five times as much
    gains = np.vstack([np.full((10, 1), 0.1), np.full((10, 1), 0.5)])
    assert_array_equal(serve(Reserve(expected, 20), gains, [10]), [-1] * 10 + [0] * 10)
    assert_array_equal(serve(Reserve(expected, 20), gains, [20]), [0] * 20)  # there is time for all


def test_whoever_is_needed_elsewhere_is_spared():
    # the first person is slightly better on the first kind, and the only one on the second
    easy, hard = [0.3, 0.28], [0.5, -0.5]
    gains = np.array([easy, hard] * 10)
    assert_array_equal(serve(Reserve(gains, 20), gains, [10, 10]), [1, 0] * 10)


def test_what_was_not_used_by_the_end_is_used():
    gains = np.full((12, 1), 0.1)
    reserve = Reserve(np.repeat([[0.1], [0.9]], [1, 9], axis=0), 10)  # the items that were expected do not come
    assert (serve(reserve, gains, [5]) == 0).sum() == 5


def test_a_shift_with_a_reserve_keeps_its_capacities_and_can_be_pickled(team):
    coming, X = make_crowd(200, random_state=1).X, make_crowd(60, random_state=2).X
    capacity = np.array([3, 5, 0, 4, 2])
    shift = team.start_shift(capacity, X_expected=coming, n_expected=60)
    first = [shift.assign_experts(X[[row]])[0] for row in range(20)]
    other = pickle.loads(pickle.dumps(shift))
    rest = [shift.assign_experts(X[[row]])[0] for row in range(20, 60)]
    assert_array_equal(other.route(X[20:])["expert"].to_numpy(), np.append(team.experts_, "classifier")[rest])
    who = np.array(first + rest)
    assert_array_equal(shift.served_, np.bincount(who[who >= 0], minlength=5))
    assert (shift.served_ <= capacity).all()
    assert (team.predict_deferral(X)[who >= 0] >= 0).all()
    away = team.start_shift(capacity, available={0: False}, X_expected=coming)
    assert not (away.assign_experts(X) == 0).any()


def test_a_reserve_gains_where_time_is_short(team):
    n, gained = 60, []
    for seed in range(4):
        coming, X = make_crowd(300, random_state=10 + seed).X, make_crowd(n, random_state=20 + seed).X
        items = team._check_items(X)
        gain = team.predict_expert_correctness(X) - team._classifier_proba(items).max(1)[:, None]

        def worth(shift, X=X, gain=gain):
            who = np.concatenate([shift.assign_experts(X[[row]]) for row in range(n)])
            return gain[np.arange(n), who][who >= 0].sum()

        capacity = np.full(5, 3)
        with pytest.warns(UserWarning, match="found nobody"):
            plain = worth(team.start_shift(capacity))
        gained.append(worth(team.start_shift(capacity, X_expected=coming, n_expected=n)) - plain)
    assert np.mean(gained) > 0


@pytest.mark.parametrize("ranked", [False, True])
def test_a_team_without_estimates_of_its_net_goes_by_answers_per_class(ranked):
    crowd, X = make_crowd(200, n_experts=1), make_crowd(60, random_state=2).X
    team = OneStageDeferral("realizable", hidden_layer_sizes=(4,), lr=0.1, max_epochs=10, random_state=0)
    team = RankedDeferral(team, coverage=0.5, random_state=0) if ranked else team
    team.fit(crowd.X, crowd.y, annotations=crowd.annotations)
    shift = team.start_shift(5, X_expected=crowd.X, n_expected=60)
    who = np.concatenate([shift.assign_experts(X[[row]]) for row in range(60)])
    assert shift.served_[0] == (who == 0).sum()
    # by hand: how often she is right about each class, weighted by the classifier's probabilities
    one = team.deferrer_ if ranked else team
    expected = one.predict_proba(X) @ one._correctness[0] - one.predict_proba(X).max(1)
    deferred = team.predict_deferral(X) >= 0
    assert deferred.any()
    gain = shift._gain(team._check_items(X), team.predict_deferral(X))[:, 0]
    assert_allclose(gain, np.where(deferred, expected, -np.inf), atol=1e-6)


def test_what_a_reserve_needs(team):
    X = make_crowd(30).X
    with pytest.raises(ValueError, match="capacity is None"):
        team.start_shift(X_expected=X)
    with pytest.raises(ValueError, match="n_expected=5 comes without X_expected"):
        team.start_shift(3, n_expected=5)
    with pytest.raises(ValueError, match="n_expected=0 is no whole number"):
        team.start_shift(3, X_expected=X, n_expected=0)
    with pytest.raises(ValueError, match="has no meaning where a reserve is kept"):
        team.start_shift(3, X_expected=X).assign_experts(X, on_overflow="raise")
    crowd = make_crowd(600)
    for panel, why in (
        (PanelDeferral(LogisticRegression(), target_accuracy=0.5), "has promised target_accuracy=0.5"),
        (ConformalDeferral(LogisticRegression()), "ConformalDeferral chooses several people about an item at once"),
    ):
        panel.fit(crowd.X, crowd.y, annotations=crowd.annotations)
        with pytest.raises(ValueError, match=why):
            panel.start_shift(3, X_expected=X)


@pytest.fixture(scope="module")
def panel():
    crowd = load_digits_crowd(random_state=0)
    team = PanelDeferral(LogisticRegression(C=0.01), answers=1.0, random_state=0)
    team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations, X_unlabeled=crowd.X_anonymous)
    return team, crowd


def served(shift, crowd):
    """Labels of the test items, which come one by one, about each of which people are asked until it is sure."""
    labels = []
    for row in range(len(crowd.X_test)):
        X, answers = crowd.X_test[[row]], np.full((1, 6), -1)
        while (who := shift.next_expert(X, answers)[0]) >= 0:
            answers[0, who] = crowd.annotations_test[row, who]
        labels.append(shift.team.predict_team(X, answers)[0])
    return np.array(labels)


def test_a_panel_keeps_time_for_the_items_that_need_it(panel):
    team, crowd = panel
    capacity = 20  # of 300 items, while the panel would ask 50 times on average
    plain, sparing = (
        team.start_shift(capacity),
        team.start_shift(capacity, X_expected=crowd.X_anonymous, n_expected=300),
    )
    right = [served(shift, crowd) == crowd.y_test for shift in (plain, sparing)]
    for shift in (plain, sparing):
        assert (shift.served_ <= capacity).all()
    assert sparing.served_.sum() > 100
    assert right[1].mean() > right[0].mean()
    assert right[1][150:].mean() > right[0][150:].mean() + 0.05  # the first half took all the time before
    other = pickle.loads(pickle.dumps(sparing))
    np.testing.assert_array_equal(other.next_expert(crowd.X_test[:9]), sparing.next_expert(crowd.X_test[:9]))
