"""The choice of panels before anybody answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sklearn_l2d.deferral._fixed_panel import answer_levels, panels_within

WORTH = npst.arrays(float, npst.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6), elements=st.floats(-9, 9))


@given(WORTH, st.floats(-20, 20))
def test_levels_above_a_toll_are_the_best_number_of_answers(worth, toll):
    net = worth - toll * np.arange(worth.shape[1])
    size = (answer_levels(worth) > toll).sum(1)
    assert net[np.arange(len(net)), size] == pytest.approx(net.max(1), abs=1e-9)


@given(WORTH)
def test_levels_fall(worth):
    assert (np.diff(answer_levels(worth), axis=1) <= 1e-9).all()


def test_nobody_is_worth_an_answer_who_is_not_there():
    level = answer_levels(np.array([[0.0, 1.0, -np.inf], [0.0, -np.inf, -np.inf]]))
    np.testing.assert_array_equal(level, [[1, -np.inf], [-np.inf, -np.inf]])


def test_panels_keep_capacities_and_go_on_to_the_next_in_line():
    order = np.array([[0, 1, 2], [0, 1, 2], [0, 2, -1]])
    found = panels_within(order, np.array([2, 1, 2]), np.array([1, 2, 9]))
    np.testing.assert_array_equal(found, [[0, 1, -1], [1, -1, -1], [2, -1, -1]])


def test_panels_without_a_tight_capacity_are_the_first_in_line():
    rng = np.random.default_rng(0)
    order, size = np.argsort(rng.random((50, 7)), axis=1), rng.integers(0, 8, 50)
    found = panels_within(order, size, np.full(7, 50))
    wanted = np.where(np.arange(7) < size[:, None], order, -1)
    np.testing.assert_array_equal(found, wanted[:, : found.shape[1]])
