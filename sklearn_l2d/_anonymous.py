"""Votes whose authors do not matter: counts, labels, or answers by name, beside items."""

import numpy as np
from scipy.sparse import issparse

from ._encoding import as_frame, check_row_count, has_names, some
from ._long_tables import is_long
from ._rows import same_rows
from ._sklearn import count_rows
from ._validation import votes_beside
from ._votes import Votes
from .annotations import encode_counts

_HINT = "answers of named people are given as encode_votes(answers)"


def are_named(votes):
    """Whether votes say who gave them: `Votes`, a sparse matrix or a long table."""
    return isinstance(votes, Votes) or issparse(votes) or is_long(votes)


def named_votes(votes, X, known, missing_label, name="counts", of="X"):
    """`Votes` in the rows of `X`, for the known classes (n_known,) and all others that occur."""
    extend = len(known) > 0
    return votes_beside(X, votes, known if extend else None, missing_label, extend=extend, name=name, of=of)


def anonymous_counts(counts, X, known, name="counts", of="X"):
    """Votes (n, C) for each class in the rows of `X`, and the classes: those that are known, and those of the votes.

    Parameters
    ----------
    counts : array-like or DataFrame of shape (n, n_classes), or array-like of shape (n,)
        As `encode_counts` reads it. Columns without names are the known classes if they are as many, else 0, 1, ...
    X : array-like of n rows
        Items.
    known : ndarray of shape (n_known,)
        Known labels, which may be none.
    name, of : str
        What errors call the votes and the items.
    """
    _, counts = same_rows(**{of: X, name: counts})
    counts = counts if hasattr(counts, "shape") else np.asarray(counts)
    if len(known) and isinstance(known[0], str):
        counts = as_frame(counts)  # whose names are text, whole numbers too
    n_dims = len(counts.shape)
    check_row_count(counts, count_rows(X), name)
    without_names = n_dims == 2 and not has_names(counts)
    as_many = without_names and counts.shape[1] == len(known)
    try:
        values, classes = encode_counts(counts, classes=known if as_many else None)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} cannot be used: {error} ({_HINT}.)") from error
    if not len(known) or np.array_equal(known, classes):
        return values, classes
    same_kind = isinstance(known[0], str) == isinstance(classes[0], str)
    fit_known = np.isin(known, classes).all() if without_names else np.isin(classes, known).any() or n_dims == 1
    if not (same_kind and fit_known):
        what = "columns without names, which stand for" if without_names else "votes for"
        raise ValueError(
            f"{name} holds {what} {some(classes.tolist())}, but the labels are {some(known.tolist())}; name its "
            f"columns by the classes, in a DataFrame ({_HINT})."
        )
    every = np.union1d(known, classes)
    full = np.zeros((len(values), len(every)))
    full[:, np.searchsorted(every, classes)] = values
    return full, every
