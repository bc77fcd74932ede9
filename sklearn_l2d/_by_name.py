"""Tables and settings of experts, matched by name."""

import numbers

import numpy as np
from scipy.sparse import issparse

from ._encoding import as_frame, is_frame, some
from ._rows import has_index, same_rows
from ._sklearn import count_rows

UNLIMITED = np.iinfo(np.int64).max // 2  # capacity of those whom a mapping does not name


def are_numbers(names, experts):
    """Whether names 0, 1, ... are what pandas gives to tables without names: no expert is called by an integer."""
    return list(names) == list(range(len(names))) and not any(isinstance(name, numbers.Integral) for name in experts)


def expert_places(names, experts, what):
    """Positions in `experts` of the names in a table or mapping; None if they are no names.

    Raises
    ------
    ValueError
        If a name is unknown or given twice.
    """
    place = {name: position for position, name in enumerate(experts)}
    unknown = [name for name in names if name not in place]
    if unknown and are_numbers(names, experts):
        return None
    if unknown:
        raise ValueError(
            f"{what} names unknown experts {some(unknown)}; the experts are {some(list(experts))}. Correct the names, "
            "or onboard() newcomers first."
        )
    places = np.array([place[name] for name in names], dtype=np.int64)
    if len(np.unique(places)) < len(places):
        raise ValueError(f"{what} names an expert twice in {some(list(names))}; name everybody once.")
    return places


def check_available(available, experts, X):
    """Who is available, as a table of bool of shape (M,) or (n, M), or None for everybody.

    Parameters
    ----------
    available : None, array-like, sparse table, mapping, Series or DataFrame
        What has names is matched by them, and may leave out experts who are available.
    experts : ndarray of shape (M,)
        Names.
    X : array-like or DataFrame of n rows, or None
        Items; None if only a table of shape (M,) will do.
    """
    if available is None:
        return None
    names, available = None, as_frame(available)
    if is_frame(available):
        available, names = same_rows(X=X, available=available)[1], available.columns.tolist()
    elif hasattr(available, "items"):  # a Series, too
        names, available = zip(*available.items(), strict=True) if len(available) else ((), ())
    if not issparse(available):
        available = np.asarray(available)
        if available.dtype == object or not available.size:  # columns of several types of booleans
            available = np.array(available.tolist(), dtype=None if available.size else bool)
    if names is not None and (places := expert_places(names, experts, "available")) is not None:
        everybody = np.ones((*available.shape[:-1], len(experts)), dtype=available.dtype)
        everybody[..., places] = available
        available = everybody
    shapes = [(len(experts),)] if X is None else [(len(experts),), (count_rows(X), len(experts))]
    if available.dtype != bool or available.shape not in shapes:
        raise ValueError(
            f"available has shape {available.shape} and type {available.dtype}; pass booleans of shape "
            f"{' or '.join(map(str, shapes))}, or name the experts in a mapping or in the columns of a DataFrame."
        )
    return available


def available_for(available, rows):
    """Who is available for some items, as booleans that have or broadcast to the shape (len(rows), n_experts).

    `available` is what `check_available` returns.
    """
    if available is None or np.ndim(available) == 1:
        return True if available is None else available
    return available[rows].toarray() > 0 if issparse(available) else available[rows]


def check_capacity(capacity, experts):
    """How many items each expert can take, (M,) int, or None for no limit; names that a mapping leaves out have none.

    Parameters
    ----------
    capacity : None, int, array-like, mapping or Series
        What has names is matched by them.
    experts : ndarray of shape (M,)
        Names.
    """
    if capacity is None:
        return None
    capacity = by_name(capacity, experts, "capacity")
    if hasattr(capacity, "items"):
        expert_places(capacity, experts, "capacity")
        capacity = [capacity.get(name, UNLIMITED) for name in experts]
    values = np.asarray(capacity)
    if values.ndim == 0:
        values = np.full(len(experts), values)
    if values.shape != (len(experts),) or values.dtype.kind not in "iu" or (values < 0).any():
        raise ValueError(
            f"capacity={capacity!r} is not a non-negative whole number for each of {len(experts)} experts; correct it."
        )
    return values


def by_name(setting, names, parameter):
    """A setting as a mapping where pandas names its entries, else as it is.

    Parameters
    ----------
    setting : object
        Of which a Series holds a value, and a DataFrame a row, for each of some names.
    names : sequence
        Names that a mapping may have.
    parameter : str
        Name of the setting.
    """
    if not has_index(setting):
        return setting
    given, values = setting.index.tolist(), setting.to_numpy().tolist()
    if given and are_numbers(given, names):
        return values
    if len(set(given)) < len(given):
        raise ValueError(f"{parameter} holds a name twice in {some(given)}; name everybody once.")
    return dict(zip(given, values, strict=True))


def bounds_table(bounds, names, parameter):
    """Array (n, 2) of lower and upper bounds for these names; None, or a name that is left out, is unbounded."""
    table, bounds = np.tile([0.0, 1.0], (len(names), 1)), by_name(bounds, names, parameter)
    if bounds is None:
        return table
    if hasattr(bounds, "items"):
        place = {name: i for i, name in enumerate(names)}
        unknown = [name for name in bounds if name not in place]
        if unknown:
            raise ValueError(f"{parameter} names {unknown}, but the names are {list(names)}; correct the keys.")
        for name, pair in bounds.items():
            table[place[name]] = check_pair(pair, f"{parameter}[{name!r}]")
        return table
    values = as_floats(bounds, parameter)
    if values.shape == (2,):
        return np.tile(check_pair(bounds, parameter), (len(names), 1)) if len(names) else table
    if values.shape != table.shape:
        raise ValueError(
            f"{parameter} has shape {values.shape}; pass a pair (lower, upper), an array of shape {table.shape}, or a "
            "mapping from names to pairs."
        )
    return np.array([check_pair(pair, f"{parameter}[{i}]") for i, pair in enumerate(values)]).reshape(table.shape)


def check_pair(pair, parameter):
    """A lower and an upper bound of a share as an array."""
    values = as_floats(pair, parameter)
    if values.shape != (2,) or not (0 <= values[0] <= values[1] <= 1):
        raise ValueError(f"{parameter}={pair!r} is not a pair with 0 <= lower <= upper <= 1; correct it.")
    return values


def as_floats(values, name):
    """Array of the floats in a setting.

    Raises
    ------
    ValueError
        If something in it is not a number, or its rows have unlike lengths.
    """
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}={values!r} must hold numbers, in rows of one length; correct it.") from error
