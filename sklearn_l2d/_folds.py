"""Rows that are held out to judge what others teach: folds, or one part; by whole groups where rows have some."""

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold


def folds_of(n_rows, cv, seed, y_codes=None, groups=None):
    """Number of the fold of every row (n_rows,).

    Parameters
    ----------
    n_rows : int
    cv : int
        Number of folds; fewer if there are fewer rows, or groups.
    seed : int
        Seed of the folds.
    y_codes : ndarray of int of shape (n_rows,), default=None
        Labels by which the folds are stratified where all of them are frequent enough, and there are no groups.
    groups : ndarray of int of shape (n_rows,), default=None
        Rows of the same number are in the same fold.
    """
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


def hold_out(n_rows, n_held, seed, groups=None):
    """Which rows are held out: bool (n_rows,), so many at random, or random groups of about as many rows."""
    rng, held = np.random.default_rng(seed), np.zeros(n_rows, dtype=bool)
    if groups is None:
        held[rng.permutation(n_rows)[:n_held]] = True
        return held
    size = np.bincount(groups)
    left = n_held
    for group in rng.permutation(np.flatnonzero(size)):
        if abs(left - size[group]) < left:  # a group that is too large stays
            held[groups == group] = True
            left -= size[group]
    return held
