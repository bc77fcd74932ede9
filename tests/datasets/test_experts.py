"""Rosters: who is right where, and how often."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from sklearn_l2d.datasets import (
    load_digits_crowd,
    make_class_experts,
    make_expert_groups,
    make_expert_pairs,
    make_specialists,
    make_superclass_experts,
)


@pytest.fixture(scope="module")
def data():
    X, y = load_digits(return_X_y=True)
    return np.tile(X, (5, 1)), np.tile(y, 5)


def right(roster, y):
    return roster.annotations == y[:, None]


def test_pairs(data):
    roster = make_expert_pairs(*data, random_state=0)
    assert roster.experts.tolist() == ["5A", "5B", "20C", "20D", "35E", "35F"]
    assert roster.groups.tolist() == [0, 0, 1, 1, 2, 2]
    # Means of the truncated normal, as published for the generator.
    np.testing.assert_allclose(roster.realized_rates, np.repeat([0.101, 0.206, 0.350], 2), atol=0.02)
    np.testing.assert_allclose(1 - right(roster, data[1]).mean(axis=0), roster.realized_rates)


def test_members_of_a_pair_err_alike_only_on_request(data):
    X, y = data
    for share, low, high in ((False, 0.0, 0.35), (True, 0.5, 1.0)):
        labels = make_expert_pairs(X, y, share_confusion=share, random_state=0).annotations[:, 4:]
        both_wrong = (labels != y[:, None]).all(axis=1)
        assert low < (labels[both_wrong, 0] == labels[both_wrong, 1]).mean() < high


def test_groups():
    roster = make_expert_groups(*load_digits(return_X_y=True), random_state=0)
    assert roster.annotations.shape == (1797, 100)
    np.testing.assert_array_equal(roster.groups, np.repeat(np.arange(10), 10))
    np.testing.assert_allclose(roster.rates[::10], np.arange(0.05, 0.51, 0.05))
    assert len(set(roster.experts)) == 100
    by_group = roster.realized_rates.reshape(10, 10).mean(axis=1)
    assert (np.diff(by_group) > 0.01).all()
    assert by_group[-1] == pytest.approx(0.5, abs=0.015)


def test_specialists_are_equal_overall_and_right_on_their_own(data):
    X, y = data
    roster = make_specialists(X, y, random_state=0)
    assert roster.groups.tolist() == np.repeat(np.arange(3), 4).tolist()
    assert np.sort(np.concatenate(roster.specialties)).tolist() == list(range(10))
    expected = roster.p_correct[:, y].mean(axis=1)
    np.testing.assert_allclose(expected, 0.5 + 0.4 / 3)
    np.testing.assert_allclose(roster.rates, 1 - expected)
    np.testing.assert_allclose(roster.realized_rates, roster.rates, atol=4 * np.sqrt(0.25 / len(y)))
    for g, mine in enumerate(roster.specialties):
        own = np.isin(y, mine)
        skill = right(roster, y)[:, roster.groups == g]
        assert skill[own].mean() == pytest.approx(0.9, abs=0.02)
        assert skill[~own].mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("noise", ["class", "instance"])
def test_specialists_keep_their_rates_under_any_noise(data, noise):
    roster = make_specialists(*data, noise=noise, random_state=0)
    np.testing.assert_allclose(roster.realized_rates, roster.rates, atol=0.025)


def test_specialists_of_unbalanced_classes_are_equal_too():
    y = np.repeat([0, 1, 2, 3], [500, 300, 150, 50])
    roster = make_specialists(y[:, None], y, n_experts=2, n_groups=2, p_in=0.8, p_out=0.4, random_state=0)
    np.testing.assert_allclose(roster.p_correct[:, y].mean(axis=1), 0.6)
    with pytest.raises(ValueError, match="no equal accuracy"):
        make_specialists(y[:, None], y, n_experts=4, n_groups=4, p_in=1.0, p_out=0.0)


@pytest.mark.parametrize("options", [{"n_groups": 1}, {"n_groups": 11}, {"n_groups": 3, "n_experts": 2}])
def test_specialists_refuse_impossible_groups(data, options):
    with pytest.raises(ValueError, match="n_groups"):
        make_specialists(*data, **options)


def test_superclass_experts_follow_pl2d():
    y = np.tile(np.arange(100), 200)
    roster = make_superclass_experts(y, superclasses=y // 5, random_state=0)
    first_half = y // 5 < 10
    correct = right(roster, y)
    assert correct[first_half, 0].all()
    assert correct[~first_half, 1].all()
    np.testing.assert_allclose([correct[~first_half, 0].mean(), correct[first_half, 1].mean()], 0.5, atol=0.02)
    np.testing.assert_allclose(roster.realized_rates, 0.25, atol=0.01)
    assert (roster.annotations // 5 == (y // 5)[:, None]).all()  # mistakes stay in the superclass
    for c in (0, 4, 99):  # and always hit the same class
        assert len(np.unique(roster.annotations[y == c])) == 2


def test_superclass_experts_without_superclasses():
    y = np.array(["a", "b", "c", "d"] * 50)
    roster = make_superclass_experts(y, error_rate=1.0, random_state=0)
    np.testing.assert_array_equal(roster.annotations[:4], [["a", "b"], ["b", "c"], ["d", "c"], ["a", "d"]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"superclasses": [0, 0, 0, 0]}, "single value"),
        ({"superclasses": [0, 1, 1, 0]}, "two superclasses"),
        ({"superclasses": [0, 1]}, "inconsistent numbers"),
        ({"error_rate": 2}, "error_rate"),
    ],
)
def test_superclass_experts_refuse(options, message):
    with pytest.raises(ValueError, match=message):
        make_superclass_experts([0, 1, 0, 1], **options)


def test_class_experts_cover_the_simulations_of_multi_l2d():
    y = np.tile(np.arange(10), 3000)
    everything, p = range(10), 0.75
    roster = make_class_experts(
        y,
        [[], everything, everything, [4, 5], range(3), [7]],
        p_in=[1, p + (1 - p) / 10, 1 - 0.3, 0.7, 1, 1],
        p_out=[0.1, 0, 0, 0.15, 0, 0.95],
        random_state=0,
    )
    correct = right(roster, y)
    assert correct[:, 0].mean() == pytest.approx(0.1, abs=0.01)  # random
    assert correct[:, 1].mean() == pytest.approx(0.775, abs=0.01)  # probabilistic
    assert correct[:, 2].mean() == pytest.approx(0.7, abs=0.01)  # flipping
    assert correct[np.isin(y, [4, 5]), 3].mean() == pytest.approx(0.7, abs=0.03)  # specialised
    assert correct[~np.isin(y, [4, 5]), 3].mean() == pytest.approx(0.15, abs=0.01)
    np.testing.assert_array_equal(correct[:, 4], y < 3)  # oracle on the first k classes, else wrong
    assert correct[y == 7, 5].all()  # overlapping
    assert correct[y != 7, 5].mean() == pytest.approx(0.95, abs=0.01)
    chance = make_class_experts(y, [range(3)], random_state=0)
    assert right(chance, y)[y >= 3].mean() == pytest.approx(0.1, abs=0.01)


def test_class_experts_group_equal_abilities():
    roster = make_class_experts(["x", "y"] * 5, [["x"], [], ["x"]], random_state=0)
    assert roster.groups[0] == roster.groups[2] != roster.groups[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"specialties": [[0], [9]]}, r"expert 1 hold \[9\]"),
        ({"specialties": [[0]], "p_in": 1.1}, "p_in"),
        ({"specialties": []}, "specialties"),
        ({"specialties": [[0]], "p_in": [0.1, 0.2]}, "p_in"),
    ],
)
def test_class_experts_refuse(options, message):
    with pytest.raises(ValueError, match=message):
        make_class_experts([0, 1, 2], **options)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (make_expert_pairs, {"rates": [0.1] * 14}, "names run out"),
        (make_expert_pairs, {"rates": [20]}, "percentages"),
        (make_expert_groups, {"n_groups": 0}, "n_groups=0"),
    ],
)
def test_rosters_refuse(data, make, options, message):
    with pytest.raises(ValueError, match=message):
        make(*data, **options)


def test_rosters_repeat_with_the_seed(data):
    X, y = data
    for make in (
        lambda s: make_expert_pairs(X, y, random_state=s),
        lambda s: make_specialists(X, y, random_state=s),
        lambda s: make_superclass_experts(y, random_state=s),
        lambda s: make_class_experts(y, [[1], [2]], random_state=s),
    ):
        np.testing.assert_array_equal(make(3).annotations, make(3).annotations)
        assert (make(3).annotations != make(4).annotations).any()


def test_digits_crowd_is_three_disjoint_parts():
    crowd = load_digits_crowd()
    X = load_digits().data / 16
    assert crowd.X_anonymous.shape == (1197, 64)
    assert crowd.counts.shape == (1197, 10)
    assert (crowd.counts.sum(axis=1) == 6).all()
    assert crowd.X_test.shape == (300, 64)
    assert (crowd.annotations_test >= 0).all()
    np.testing.assert_array_equal((crowd.annotations != -1).sum(axis=0), [100] * 6)
    assert ((crowd.annotations != -1).any(axis=1)).all()
    rows = {x.tobytes() for x in X}
    parts = [{x.tobytes() for x in part} for part in (crowd.X_anonymous, crowd.X_identified, crowd.X_test)]
    assert all(part <= rows for part in parts)
    assert sum(map(len, parts)) == len(set.union(*parts))


def test_digits_crowd_labels_agree_with_the_roster():
    crowd = load_digits_crowd(n_identified=200)
    identified = np.ma.masked_equal(crowd.annotations, -1)
    wrong = (identified != crowd.y_identified[:, None]).mean(axis=0)
    np.testing.assert_allclose(wrong, crowd.realized_rates, atol=0.11)
    votes_for_truth = crowd.counts[np.arange(1197), crowd.y_anonymous].mean()
    assert votes_for_truth == pytest.approx(6 - crowd.realized_rates.sum(), abs=0.1)
    np.testing.assert_allclose(
        (crowd.annotations_test != crowd.y_test[:, None]).mean(axis=0), crowd.realized_rates, atol=0.08
    )


def test_digits_crowd_same_items_and_seed():
    crowd = load_digits_crowd(same_items=True, random_state=1)
    assert crowd.annotations.shape == (100, 6)
    assert (crowd.annotations >= 0).all()
    again, other = load_digits_crowd(random_state=1), load_digits_crowd(random_state=2)
    np.testing.assert_array_equal(crowd.counts, again.counts)
    assert (crowd.counts != other.counts).any()


@pytest.mark.parametrize("options", [{"n_identified": 301}, {"n_anonymous": 1797}, {"n_test": 0}])
def test_digits_crowd_refuses_parts_that_do_not_fit(options):
    with pytest.raises(ValueError, match="every part needs"):
        load_digits_crowd(**options)
