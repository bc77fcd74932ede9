"""Matrices of experts and targets: sparse where every expert is a target, since nearly all entries are then zero.

Those of a few hundred experts are arrays all the same, with which numpy is faster.
"""

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

LARGEST_DENSE, LARGEST_FAST = 10_000_000, 100_000  # entries of arrays that are no burden, and that are faster

_BLOCK, _CHUNK = 1 << 21, 1 << 17  # numbers of the arrays that are made for a block of rows, and that fit in a cache


def is_small(shape):
    """Whether an array of this shape is no burden."""
    return shape[0] * shape[1] <= LARGEST_DENSE


def dense_if_small(matrix):
    """A matrix as an array, unless it is sparse and large."""
    return matrix.toarray() if issparse(matrix) and is_small(matrix.shape) else matrix


def identity(n):
    """Identity matrix of n rows."""
    return one_hot(np.arange(n), n)


def one_hot(columns, n_columns):
    """Matrix (len(columns), n_columns) with a 1 in each row, in these columns."""
    n_rows = len(columns)
    if n_rows * n_columns <= LARGEST_FAST:
        matrix = np.zeros((n_rows, n_columns))
        matrix[np.arange(n_rows), columns] = 1.0
        return matrix
    return csr_array((np.ones(n_rows), np.asarray(columns), np.arange(n_rows + 1)), shape=(n_rows, n_columns))


def normalised_rows(matrix):
    """Rows of a non-negative matrix divided by their sums; rows of zeros stay as they are."""
    totals = matrix.sum(axis=1)
    if issparse(matrix):
        matrix = csr_array(matrix)
        scale = np.divide(1.0, totals, out=np.zeros(len(totals)), where=totals > 0)
        return csr_array((matrix.data * scale[rows_of(matrix)], matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.divide(matrix, totals[:, None], out=np.zeros(matrix.shape), where=totals[:, None] > 0)


def weighted_columns(matrix, weights):
    """A matrix with its columns multiplied by weights."""
    return csr_array(matrix.multiply(weights)) if issparse(matrix) else matrix * weights


def stacked(upper, lower):
    """Two matrices, one above the other."""
    if issparse(upper) or issparse(lower):
        return csr_array(vstack([csr_array(upper), csr_array(lower)]))
    return np.concatenate([upper, lower])


def widened(matrix, n_more):
    """A matrix with further columns of zeros."""
    if issparse(matrix):
        n_rows, n_columns = matrix.shape
        return csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(n_rows, n_columns + n_more))
    return np.pad(matrix, ((0, 0), (0, n_more)))


def narrowed(matrix, n_columns):
    """A sparse matrix whose rows are cut into rows of `n_columns`, as `reshape` does, in a fourth of its time."""
    if not matrix.has_sorted_indices:
        matrix = matrix.sorted_indices()
    n_rows, n_parts = matrix.shape[0], matrix.shape[1] // n_columns
    part, column = np.divmod(matrix.indices, n_columns)
    starts = np.searchsorted(rows_of(matrix) * n_parts + part, np.arange(n_rows * n_parts + 1))
    return csr_array((matrix.data, column, starts), shape=(n_rows * n_parts, n_columns))


def entries(matrix, rows, columns):
    """Entries of a matrix at some places."""
    if issparse(matrix) and matrix.shape[0] * matrix.shape[1] <= len(rows):
        matrix = matrix.toarray()
    if not issparse(matrix):
        return matrix[rows, columns]
    matrix = csr_array(matrix)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    places, width = rows_of(matrix) * np.int64(matrix.shape[1]) + matrix.indices, np.int64(matrix.shape[1])
    wanted = np.asarray(rows) * width + columns
    if not len(places):
        return np.zeros(len(wanted), dtype=matrix.dtype)
    found = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    return matrix.data[found] * (places[found] == wanted)


def answer_weights(selection, deferral, votes):
    """Weight (n_answers,) by which the target of an item selects the author of each answer; 0 for the classifier's.

    Parameters
    ----------
    selection : ndarray or csr_array of shape (n_targets, n_experts)
        Selection weights.
    deferral : ndarray of int of shape (n_items,)
        Target of each item, -1 for the classifier.
    votes : Votes
        Answers of the experts.
    """
    target = deferral[votes.item]
    return entries(selection, np.maximum(target, 0), votes.annotator) * (target >= 0)


def row_blocks(n_rows, width):
    """Slices of consecutive rows, so few at a time that arrays of `width` numbers for each stay small; at least one."""
    return _slices(n_rows, rows_per_block(width))


def rows_per_block(width):
    """How many rows of `width` numbers stay small together; at least one."""
    return max(1, _BLOCK // max(1, width))


def row_chunks(n_rows, width):
    """Like `row_blocks`, so few rows at a time that arrays between the steps stay in the processor's cache."""
    return _slices(n_rows, max(1, _CHUNK // max(1, width)))


def _slices(n_rows, step):
    return [slice(start, min(start + step, n_rows)) for start in range(0, max(1, n_rows), step)]


def ragged_rows(starts, rows):
    """Entries of some rows of a ragged array, one after the other.

    Parameters
    ----------
    starts : ndarray of int of shape (n + 1,)
        Where the entries of each row start, and last their number.
    rows : index
        Slice, positions or mask of rows.

    Returns
    -------
    row, entry : ndarrays of int of shape (n_entries,)
        Number of the row among the selected ones, and place of the entry.
    """
    first = starts[:-1][rows]
    size = starts[1:][rows] - first
    row = np.repeat(np.arange(len(size)), size)
    return row, np.arange(len(row)) + (first - np.cumsum(size) + size)[row]


def rows_of(matrix):
    """Row of every stored entry of a `csr_array`."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def log_sum_exp(values, axis):
    """Logarithm of the sum of exponentials of finite numbers: SciPy's, without what its general form costs."""
    largest = values.max(axis, keepdims=True)
    return np.log(np.exp(values - largest).sum(axis)) + largest.squeeze(axis)
