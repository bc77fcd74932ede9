"""Items as users give them: what they are, their keys, and the numbers by which nets tell them apart."""

import numbers
import pickle
from hashlib import blake2b
from itertools import chain

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.utils import check_array, indexable
from sklearn.utils.validation import validate_data

from ._encoding import is_frame, is_na
from ._numerics._keyed import number_keys, row_keys, sparse_keys, sum_keys
from ._numerics._matrices import row_blocks
from ._sklearn import count_rows, take_rows


class Items:
    """Checked items.

    Parameters
    ----------
    given : array-like, sparse matrix or DataFrame of n rows
        Items as given, for a classifier that may take anything.
    array : ndarray of shape (n, ...), default=None
        Items in the floating type of the estimator, where its nets see them as they are.
    see : callable, default=None
        Makes the array of other items when it is asked for.
    are_numbers : bool, default=True
        Whether the items are numbers, as those of `fit` were.

    Attributes
    ----------
    proba : ndarray of shape (n, C) or None
        Probabilities of the classifier where they are known: those of the rows that it was fitted on are out of fold.
    """

    def __init__(self, given, array=None, see=None, are_numbers=True):
        self.given, self.are_numbers, self.proba = given, are_numbers, None
        self._array, self._is_given, self._see = array, array is not None, see

    def __len__(self):
        return count_rows(self.given)

    @property
    def array(self):
        """Numbers (n, ...) by which nets tell the items apart."""
        if self._array is None:
            self._array = self._see(self)
        return self._array

    def keys(self, seed):
        """Keys (n,) of what the items hold: equal items have equal keys, whatever the others are."""
        return row_keys(self._array, seed) if self._is_given else content_keys(self.given, seed, self.are_numbers)

    def blocks(self, width):
        """Yield consecutive items, so few at a time that arrays of `width` numbers for each stay small."""
        blocks = row_blocks(len(self), width)
        yield from [self] if len(blocks) == 1 else (self[rows] for rows in blocks)

    def __getitem__(self, rows):
        """Some of the items, by position."""
        array, proba = (None if part is None else part[rows] for part in (self._array, self.proba))
        some = Items(take_rows(self.given, rows), array, self._see, self.are_numbers)
        some.proba, some._is_given = proba, self._is_given
        return some


def check_items(estimator, X, *, reset=False, form=None, see=None, are_numbers=True):
    """Check items; with `reset`, set `n_features_in_` and `feature_names_in_` of the estimator.

    Parameters
    ----------
    estimator : estimator
    X : array-like, sparse matrix or DataFrame of n rows
        Items.
    reset : bool, default=False
        Whether the estimator is fitted to them.
    form : dict, default=None
        `dtype` and `allow_nd` of the array that its nets see. None does not look into the items: who sees them does.
    see, are_numbers
        As for `Items`.
    """
    if form is None:
        if are_numbers and not reset and getattr(X, "ndim", 2) == 1:
            raise ValueError(
                f"X has 1 dimension, but {type(estimator).__name__} was fitted to a table. Reshape your data: "
                "X.reshape(1, -1) is one item."
            )
        if are_numbers or hasattr(X, "shape"):
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        elif reset:  # there are no columns
            for name in ("n_features_in_", "feature_names_in_"):
                vars(estimator).pop(name, None)
        return Items(indexable(X)[0], None, see, are_numbers)
    array = validate_data(estimator, X if is_frame(X) else as_array(X), reset=reset, **form)
    return Items(indexable(X)[0], array, see)


def as_array(X):
    """`X` as an array without a copy; sparse matrices, and polars frames for their names, stay as they are."""
    if issparse(X) or hasattr(X, "columns"):
        return X
    return np.asarray(X.detach().cpu() if hasattr(X, "detach") else X)


def stacked(X, others):
    """Items and others of the same kind, one after the other; rows of tables lose their names."""
    if issparse(X):
        return vstack([X, others]).tocsr()
    if is_frame(X) and is_frame(others):
        import pandas as pd

        return pd.concat([X, others], ignore_index=True)
    if hasattr(X, "vstack"):  # of polars
        return X.vstack(others)
    if isinstance(X, list):
        return X + list(others)
    return np.concatenate([as_array(X), as_array(others)])


def kind_of_items(X):
    """Whether `X` is numbers in a dense array or table, and its number of dimensions."""
    if issparse(X):
        return False, 2
    if is_frame(X):
        columns = [X.iloc[:, j] for j in range(X.shape[1])]
        return all(map(_is_numeric, columns)), 2
    try:
        array = np.asarray(as_array(X))
    except (TypeError, ValueError):  # rows of several lengths
        return False, 1
    return _holds_numbers(array) and not (array.dtype == object and array.ndim < 2), array.ndim


def _is_numeric(column):
    """Whether a column of pandas holds numbers; those of categories stand for something else."""
    if column.dtype.kind in "biufc":
        return True
    return column.dtype == object and _holds_numbers(column.to_numpy())


def _holds_numbers(array):
    if array.dtype != object:
        return array.dtype.kind in "biufc"
    return all(isinstance(value, numbers.Number) or _is_gap(value) for value in array.flat)


def _is_gap(value):
    return not hasattr(value, "__len__") and is_na(value)  # arrays have no single answer


def made_features(make, X, form):
    """What a callable makes of items, as an array of floats."""
    made = make(X)
    made = made.toarray() if issparse(made) else as_array(made)
    made = check_array(made, input_name="gate_features(X)", ensure_min_samples=0, **form)
    if len(made) != count_rows(X):
        raise ValueError(f"gate_features made {len(made)} rows of {count_rows(X)} items; it must return one for each.")
    return made


def content_keys(X, seed, are_numbers):
    """Keys (n,) of the rows of anything: equal rows have equal keys, whatever the other rows are.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of n rows
        Items.
    seed : int
        Seed of the keys.
    are_numbers : bool
        Whether the items are numbers in a dense array or table.
    """
    if issparse(X):
        return sparse_keys(X, seed)
    if are_numbers:
        return row_keys(_floats(X), seed)
    if hasattr(X, "columns"):
        return sum_keys(map(_column_keys, _columns(X)), count_rows(X), seed)
    rows = X.detach().cpu().numpy() if hasattr(X, "detach") else X
    return sum_keys([_value_keys(rows.tolist() if hasattr(rows, "tolist") else rows)], count_rows(X), seed)


def _floats(X):
    if is_frame(X):
        return X.to_numpy(dtype=np.float64, na_value=np.nan)
    array = np.asarray(as_array(X))
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _columns(X):
    if is_frame(X):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    return X.get_columns() if hasattr(X, "get_columns") else X.columns  # of polars or Arrow


def _column_keys(column):
    if getattr(column.dtype if hasattr(column, "dtype") else None, "kind", "O") in "biuf":
        values = column.to_numpy(dtype=np.float64, na_value=np.nan) + 0.0  # without negative zeros
        return number_keys(values.view(np.uint64))
    name = next(name for name in ("tolist", "to_list", "to_pylist") if hasattr(column, name))
    return _value_keys(getattr(column, name)())


def _value_keys(values):
    digests = b"".join(blake2b(_content(value), digest_size=8).digest() for value in values)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def _content(value):
    """Bytes that say what a value holds."""
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if isinstance(value, numbers.Number):
        return b"n" + repr(value if value else 0).encode()
    if isinstance(value, list | tuple | dict):
        parts = chain.from_iterable(value.items()) if isinstance(value, dict) else value
        return b"l" + b"".join(blake2b(_content(part)).digest() for part in parts)
    if hasattr(value, "__array__") and getattr(value, "shape", ()):  # images, embeddings, tensors
        array = np.ascontiguousarray(as_array(value))
        return b"a" + repr((array.shape, array.dtype.str)).encode() + array.tobytes()
    return b"o" if _is_gap(value) else pickle.dumps(value)
