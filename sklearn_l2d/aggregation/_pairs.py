"""Pairs of items that are compared, by their names."""

import numpy as np

from .._encoding import is_na, some


def named_pairs(X):
    """Names of two items in every row, as an object array (n, 2)."""
    pairs = np.asarray(X, dtype=object)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(f"X has shape {pairs.shape}; pass one row with the names of two items for each comparison.")
    if any(is_na(name) for name in pairs.ravel()):
        raise ValueError("X holds a missing item; leave such rows out.")
    itself = pairs[:, 0] == pairs[:, 1]
    if itself.any():
        raise ValueError(f"X compares {pairs[itself][0, 0]!r} with itself; drop such rows.")
    return pairs


def codes_of_names(names):
    """Sorted names, as objects, and the position of every entry."""
    found = sorted(set(names.ravel().tolist()))
    place = {name: k for k, name in enumerate(found)}
    known = np.empty(len(found), dtype=object)
    known[:] = found
    return known, places_of(names, place)


def places_of(names, place):
    """Positions of names, by a mapping of those that are known."""
    flat = names.ravel().tolist()
    unknown = [name for name in flat if name not in place]
    if unknown:
        raise ValueError(f"X names {some(unknown)}, which fit did not see; fit with them.")
    return np.array([place[name] for name in flat], dtype=np.int64).reshape(names.shape)
