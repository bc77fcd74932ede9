"""Stable matching within capacities."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sklearn_l2d._numerics._matching import match_within


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
