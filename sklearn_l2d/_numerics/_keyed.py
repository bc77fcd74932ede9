"""Random numbers that belong to an item and a number, so that a row alone gets what it gets in a batch."""

import numpy as np

from ._matrices import row_blocks

_ODD, _STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x632BE59BD9B4E019)
_MIX = (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB))


def row_keys(array, seed):
    """Keys (n,) of the rows of an array of floats: equal rows have equal keys, whatever the other rows are."""
    flat = np.ascontiguousarray(array).reshape(len(array), -1) + 0.0  # without negative zeros
    bits = flat.view(f"u{flat.itemsize}")
    odd = np.random.default_rng(seed).integers(1 << 63, size=bits.shape[1], dtype=np.uint64) * np.uint64(2)
    sums = np.empty(len(bits), dtype=np.uint64)
    for rows in row_blocks(*bits.shape):
        block = bits[rows].astype(np.uint64)
        block ^= block >> np.uint64(32)  # floats of small whole numbers end in zeros, which products would, too
        sums[rows] = block @ (odd + np.uint64(1))
    return _mixed(sums)


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
