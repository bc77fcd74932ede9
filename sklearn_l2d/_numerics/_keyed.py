"""Random numbers that belong to an item and a number, so that a row alone gets what it gets in a batch."""

import math

import numpy as np
from scipy.sparse import csr_array

from ._matrices import row_chunks

_ODD, _STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x632BE59BD9B4E019)
_MIX = (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB))


def row_keys(array, seed):
    """Keys (n,) of the rows of an array of floats: equal rows have equal keys, whatever the other rows are."""
    array = np.asarray(array)
    flat = array.reshape(len(array), math.prod(array.shape[1:]))  # where there are no rows, -1 would be refused
    odd = np.random.default_rng(seed).integers(1 << 63, size=flat.shape[1], dtype=np.uint64) * np.uint64(2)
    sums = np.empty(len(flat), dtype=np.uint64)
    for rows in row_chunks(*flat.shape):
        some = np.ascontiguousarray(flat[rows]) + 0.0  # without negative zeros
        block = some.view(f"u{some.itemsize}").astype(np.uint64)
        block ^= block >> np.uint64(32)  # floats of small whole numbers end in zeros, which products would, too
        sums[rows] = block @ (odd + np.uint64(1))
    return _mixed(sums)


def sparse_keys(matrix, seed):
    """Keys (n,) of the rows of a sparse matrix: rows of equal entries have equal keys, however they are stored."""
    matrix = csr_array(matrix, dtype=np.float64, copy=not _is_canonical(matrix))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    entries = _mixed(number_keys(matrix.indices) + matrix.data.view(np.uint64) * _ODD)
    sums = np.append(np.uint64(0), entries.cumsum())
    return sum_keys([sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]], matrix.shape[0], seed)


def _is_canonical(matrix):
    return matrix.format == "csr" and matrix.has_canonical_format and matrix.data.all()


def sum_keys(columns, n_rows, seed):
    """Keys (n,) of rows by the keys (n,) of what each of their columns holds."""
    total = np.zeros(n_rows, dtype=np.uint64)
    odd = np.random.default_rng(seed)
    for column in columns:
        total += _mixed(column ^ odd.integers(1 << 63, dtype=np.uint64))
    return _mixed(total)


def number_keys(numbers):
    """Keys (n,) of whole numbers."""
    return _mixed(np.atleast_1d(numbers).astype(np.uint64) * _STEP)


def keyed_uniforms(rows, columns):
    """Uniform random numbers in [0, 1) for pairs of keys, which are broadcast."""
    return (_mixed(rows + columns * _ODD) >> np.uint64(11)) * 2.0**-53


def _mixed(keys):
    """Keys whose bits depend on all bits of the given ones (splitmix64)."""
    for shift, factor in _MIX:
        keys = (keys ^ (keys >> shift)) * factor
    return keys ^ (keys >> np.uint64(31))
