"""Rows that are held out, by whole groups where rows have some."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, StratifiedKFold, TimeSeriesSplit

from sklearn_l2d._folds import folds_left, folds_of, given_folds, hold_out

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


@given(group_lists, st.integers(0, 9))
def test_splits_that_a_user_gives_are_kept(numbers, seed):
    numbers = np.array(numbers)
    expected = np.unique(numbers, return_inverse=True)[1]
    everybody = np.arange(len(numbers))
    assert_array_equal(given_folds(PredefinedSplit(numbers), everybody, None), expected)
    splits = list(PredefinedSplit(numbers).split())
    order = np.random.default_rng(seed).permutation(len(splits))
    of_rows = given_folds([splits[i] for i in order], everybody, None)
    assert_array_equal(of_rows, np.argsort(order)[expected])
    masks = [(numbers != name, numbers == name) for name in np.unique(numbers)]
    assert_array_equal(given_folds(masks, everybody, None), expected)


def test_splits_are_of_all_rows_and_splitters_of_those_that_are_labelled():
    splits = list(KFold(3).split(np.zeros(9)))
    place = np.array([0, 2, 3, 4, 8])
    assert given_folds(splits, place, None).tolist() == [0, 0, 1, 1, 2]
    assert given_folds(KFold(5), place, None).tolist() == [0, 1, 2, 3, 4]
    groups = np.array([5, 6, 5, 6, 7])
    assert [len(some) for some in places(given_folds(GroupKFold(3), place, None, groups), groups)] == [1, 1, 1]
    assert folds_left(np.array([4, 2, 4])).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (TimeSeriesSplit(2), "number 0, that neither trains nor tests on some labelled items"),
        ([([0, 1, 2], [3, 4, 5])], "tests 3 of 6 labelled items not once"),
        ([([0, 1, 2], [3, 4, 5]), ([0, 1, 2], [3, 4, 5])], "tests 6 of 6 labelled items not once"),
        ([([3, 4, 5], [0, 1, 2, 3, 4, 5])], "or does both"),
        ([([], np.arange(6))], "into one fold"),
        ([3, 4], "cv holds 3, which is no split"),
    ],
)
def test_splits_that_are_no_partition_are_refused(cv, message):
    with pytest.raises(ValueError, match=message):
        given_folds(cv, np.arange(6), np.zeros(6, dtype=int))
