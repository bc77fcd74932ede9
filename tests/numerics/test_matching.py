"""Stable and exact matching within capacities."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sklearn_l2d._numerics import _matching, _matrices
from sklearn_l2d._numerics._matching import can_match_exactly, match_exactly, match_many, match_within


def greedily(worth, capacity):
    """The stable matching where nobody is worth the same: the pair that is worth most, then the next, ..."""
    matched, left = np.full(len(worth), -1), np.array(capacity)
    for cell in np.argsort(-worth, axis=None, kind="stable"):
        row, person = divmod(int(cell), worth.shape[1])
        if matched[row] < 0 and left[person] and np.isfinite(worth[row, person]):
            matched[row] = person
            left[person] -= 1
    return matched


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 5))
def test_nobody_would_rather_have_one_another(seed, n_rows, n_people):
    rng = np.random.default_rng(seed)
    worth = np.where(rng.random((n_rows, n_people)) < 0.2, -np.inf, rng.random((n_rows, n_people)))
    capacity = rng.integers(0, 4, size=n_people)
    matched = match_within(worth, None, capacity)
    load = np.bincount(matched[matched >= 0], minlength=n_people)
    assert (load <= capacity).all()
    own = np.where(matched >= 0, worth[np.arange(n_rows), matched], -np.inf)
    assert np.isfinite(own[matched >= 0]).all()
    for row in range(n_rows):
        for person in np.flatnonzero(worth[row] > own[row]):
            held = own[matched == person]
            assert load[person] == capacity[person]
            assert capacity[person] == 0 or held.min() >= worth[row, person]


@given(st.integers(0, 10_000))
def test_columns_may_be_named_row_by_row(seed):
    rng = np.random.default_rng(seed)
    worth, capacity = rng.random((6, 4)), rng.integers(0, 3, size=4)
    who = rng.permuted(np.tile(np.arange(4), (6, 1)), axis=1)
    shuffled = np.take_along_axis(worth, who, axis=1)
    assert_array_equal(match_within(shuffled, who, capacity), match_within(worth, None, capacity))


def test_without_limits_everybody_has_the_best():
    worth = np.random.default_rng(0).random((50, 6))
    assert_array_equal(match_within(worth, None, np.full(6, 50)), worth.argmax(1))
    assert_array_equal(match_within(worth, None, np.zeros(6, dtype=int)), np.full(50, -1))


@given(st.integers(0, 10_000), st.booleans())
def test_the_pairs_that_are_worth_most_come_first(seed, agreed):
    """Also where all rows want the same people, so that they are refused more often than people are searched for."""
    rng = np.random.default_rng(seed)
    worth = np.outer(rng.random(40), rng.random(30)) if agreed else rng.random((40, 30))
    worth[rng.random(worth.shape) < 0.1] = -np.inf
    capacity = rng.integers(0, 3, size=30)
    before = worth.copy()
    assert_array_equal(match_within(worth, None, capacity), greedily(worth, capacity))
    assert_array_equal(worth, before)
    assert_array_equal(match_many(lambda rows, people: worth[rows][:, people], 40, capacity), greedily(worth, capacity))


def test_work_for_many_is_compared_with_few_of_them(monkeypatch):
    """And nearly as much is gained as by a table of all rows and people."""
    monkeypatch.setattr(_matching, "_MANY", 100)
    monkeypatch.setattr(_matrices, "_BLOCK", 1 << 14)
    rng = np.random.default_rng(0)
    proba, skill = rng.dirichlet(np.full(5, 0.5), size=1500), rng.beta(6, 3, size=(400, 5))
    confidence, capacity = proba.max(1), rng.integers(0, 9, size=400)
    sizes = []

    def gain(rows, people):
        sizes.append(len(rows) * len(people))
        return proba[rows] @ skill[people].T - confidence[rows, None]

    def most(rows, people):
        return (proba[rows] @ skill[people].T).max(1) - confidence[rows]

    matched = match_many(gain, 1500, capacity, most)
    assert max(sizes) <= 1 << 14
    assert sum(sizes) < 1500 * 400 / 2
    whole = gain(np.arange(1500), np.arange(400))
    load = np.bincount(matched[matched >= 0], minlength=400)
    assert (load <= capacity).all()
    assert (whole[matched < 0][:, load < capacity] <= 0).all()
    assert (whole[matched >= 0, matched[matched >= 0]] > 0).all()
    best = match_within(np.where(whole > 0, whole, -np.inf), None, capacity)
    gained = [whole[who >= 0, who[who >= 0]].sum() for who in (matched, best)]
    assert gained[0] >= 0.99 * gained[1]


def test_nobody_is_asked_of_a_team_that_cannot_take_any():
    assert_array_equal(match_within(np.empty((3, 0)), None, np.empty(0, dtype=int)), [-1, -1, -1])
    assert_array_equal(match_many(lambda rows, people: 1 / 0, 3, np.zeros(2, dtype=int)), [-1, -1, -1])


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 3))
def test_the_largest_sum_of_gains_by_brute_force(seed, n_rows, n_people):
    rng = np.random.default_rng(seed)
    gain = rng.normal(size=(n_rows, n_people))
    gain[rng.random(gain.shape) < 0.2] = -np.inf
    capacity = rng.integers(0, 3, size=n_people)
    matched = match_exactly(gain, capacity)
    assert (np.bincount(matched[matched >= 0], minlength=n_people) <= capacity).all()
    assert (gain[np.arange(n_rows), matched][matched >= 0] > 0).all()

    def total(who):
        return sum(gain[row, person] for row, person in enumerate(who) if person >= 0)

    def is_within(who):
        return (np.bincount(np.array(who) + 1, minlength=n_people + 1)[1:] <= capacity).all()

    best = max(total(who) for who in itertools.product(range(-1, n_people), repeat=n_rows) if is_within(who))
    assert total(matched) == pytest.approx(best)


def test_exactness_is_for_what_takes_little_time():
    assert can_match_exactly(1000, np.full(20, 100))
    assert not can_match_exactly(1001, np.full(20, 100))
    assert can_match_exactly(1000, np.array([2**62, 0, 0]))  # nobody takes more than all rows
