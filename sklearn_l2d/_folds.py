"""Rows that are held out to judge what others teach: folds, or one part; by whole groups where rows have some."""

import numbers

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from ._sklearn import HasMethods, Interval

FOLDS = [  # constraints of a parameter `cv`; an iterator of splits would be spent after one fit
    Interval(numbers.Integral, 2, None, closed="left"),
    HasMethods(["split", "get_n_splits"]),
    "array-like",
]


def folds_of(n_rows, cv, seed, y_codes=None, groups=None):
    """Number of the fold of every row (n_rows,).

    Parameters
    ----------
    n_rows : int
    cv : int, splitter or list of splits
        Number of folds; fewer if there are fewer rows, or groups. Others are as in `given_folds`.
    seed : int
        Seed of the folds.
    y_codes : ndarray of int of shape (n_rows,), default=None
        Labels by which the folds are stratified where all of them are frequent enough, and there are no groups.
    groups : ndarray of int of shape (n_rows,), default=None
        Rows of the same number are in the same fold.
    """
    if not isinstance(cv, numbers.Integral):
        return given_folds(cv, np.arange(n_rows), y_codes, groups)
    if groups is not None:
        splitter = GroupKFold(min(cv, len(np.unique(groups))), shuffle=True, random_state=seed)
    else:
        n_folds, kind = min(cv, n_rows), KFold
        if y_codes is not None:
            counts = np.bincount(y_codes)
            kind = StratifiedKFold if counts[counts > 0].min() >= n_folds else KFold
        splitter = kind(n_folds, shuffle=True, random_state=seed)
    fold = np.empty(n_rows, dtype=np.intp)
    for number, (_, unseen) in enumerate(splitter.split(np.zeros(n_rows), y_codes, groups)):
        fold[unseen] = number
    return fold


def given_folds(cv, place, y_codes, groups=None):
    """Number of the fold of every labelled row (n_rows,), by a splitter or by splits.

    Parameters
    ----------
    cv : splitter or list of splits
        A splitter of scikit-learn, or pairs of positions of training and test rows among all that the user gave.
    place : ndarray of int of shape (n_rows,)
        Positions of the labelled rows among those.
    y_codes, groups : ndarrays of int of shape (n_rows,)
        As in `folds_of`.
    """
    n_rows, splits = len(place), cv
    if hasattr(cv, "split"):
        place, splits = np.arange(n_rows), cv.split(np.zeros(n_rows), y_codes, groups)
    fold, n_left_out = np.full(n_rows, -1), np.zeros(n_rows, dtype=int)
    for number, split in enumerate(splits):
        if not hasattr(split, "__len__") or len(split) != 2:
            raise ValueError(
                f"cv holds {split!r}, which is no split; give pairs of the positions of training and test items, a "
                "splitter such as KFold(), or a number of folds."
            )
        seen, unseen = split
        held = np.isin(place, _positions(unseen))
        if (held == np.isin(place, _positions(seen))).any():
            raise ValueError(
                f"cv has a split, number {number}, that neither trains nor tests on some labelled items, or does both; "
                "give splits whose training items are all that they do not test, such as those of KFold."
            )
        fold[held] = number
        n_left_out += held
    if (n_left_out != 1).any():
        raise ValueError(
            f"cv tests {(n_left_out != 1).sum()} of {n_rows} labelled items not once, but never or several times; give "
            "splits whose test items are a partition, such as those of KFold."
        )
    return folds_left(fold)


def folds_left(fold):
    """Numbers 0, 1, ... of the folds of some rows (n,), of which there must be two."""
    names, number = np.unique(fold, return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            "cv puts all labelled items that are learnt from into one fold, so that nothing is left to train on; give "
            "more folds."
        )
    return number


def _positions(rows):
    """Positions of rows, which a split may mark by booleans."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows


def hold_out(n_rows, n_held, seed, groups=None):
    """Which rows are held out: bool (n_rows,), so many at random, or random groups of about as many rows."""
    rng = np.random.default_rng(seed)
    if groups is None:
        held = np.zeros(n_rows, dtype=bool)
        held[rng.permutation(n_rows)[:n_held]] = True
        return held
    size, left = np.bincount(groups), n_held
    taken = np.zeros(len(size), dtype=bool)
    for group in rng.permutation(np.flatnonzero(size)):
        if abs(left - size[group]) < left:  # a group that is too large stays
            taken[group] = True
            left -= size[group]
    return taken[groups]
