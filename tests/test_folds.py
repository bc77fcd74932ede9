"""Rows that are held out, by whole groups where rows have some."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.model_selection import StratifiedKFold

from sklearn_l2d._folds import folds_of, hold_out

group_lists = st.lists(st.integers(0, 6), min_size=2, max_size=40).filter(lambda groups: len(set(groups)) > 1)


def places(numbers, groups):
    """Numbers at which the rows of every group are."""
    return [set(numbers[groups == group].tolist()) for group in np.unique(groups)]


@given(group_lists, st.integers(2, 6), st.integers(0, 9))
def test_the_rows_of_a_group_are_in_one_fold_and_no_fold_is_empty(groups, cv, seed):
    groups = np.array(groups)
    fold = folds_of(len(groups), cv, seed, np.arange(len(groups)) % 2, groups)
    assert all(len(some) == 1 for some in places(fold, groups))
    assert_array_equal(np.unique(fold), np.arange(min(cv, len(np.unique(groups)))))


@given(group_lists, st.integers(0, 9))
def test_the_order_of_rows_changes_no_fold_of_a_group(groups, seed):
    groups = np.array(groups)
    order = np.random.default_rng(seed).permutation(len(groups))
    assert_array_equal(
        folds_of(len(groups), 3, seed, groups=groups)[order], folds_of(len(groups), 3, seed, groups=groups[order])
    )


def test_without_groups_folds_are_those_of_scikit_learn():
    y = np.repeat([0, 1], [12, 8])
    expected = StratifiedKFold(4, shuffle=True, random_state=3)
    for number, (_, unseen) in enumerate(expected.split(y, y)):
        assert_array_equal(np.flatnonzero(folds_of(20, 4, 3, y) == number), unseen)


@given(group_lists, st.floats(0.1, 0.9), st.integers(0, 9))
def test_groups_are_held_out_whole_until_no_other_one_fits(groups, share, seed):
    groups = np.array(groups)
    held = hold_out(len(groups), round(share * len(groups)), seed, groups)
    assert all(len(some) == 1 for some in places(held, groups))
    off = held.sum() - round(share * len(groups))
    rest = np.bincount(groups[~held])
    assert (np.abs(off + rest[rest > 0]) >= abs(off)).all()  # no other group would bring their number nearer


def test_so_many_rows_are_held_out():
    held = hold_out(40, 12, 0)
    assert held.sum() == 12
    assert (held != hold_out(40, 12, 1)).any()
