"""Random numbers that belong to an item and a name, so that a row alone gets what it gets in a batch."""

import zlib

import numpy as np

_ODD, _STEP = np.uint64(0x9E3779B97F4A7C15), 0x632BE59BD9B4E019
_MIX = (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB))


def row_keys(array, seed):
    """Keys (n,) of the rows of an array of floats: equal rows have equal keys, whatever the other rows are."""
    flat = np.ascontiguousarray(array).reshape(len(array), -1) + 0.0  # without negative zeros
    bits = flat.view(f"u{flat.itemsize}").astype(np.uint64)
    odd = np.random.default_rng(seed).integers(1 << 63, size=bits.shape[1], dtype=np.uint64) * np.uint64(2)
    return _mixed((bits * (odd + np.uint64(1))).sum(1, dtype=np.uint64))


def name_keys(names):
    """Keys (n,) of names."""
    return _mixed(np.array([zlib.crc32(str(name).encode()) for name in names], dtype=np.uint64))


def step_key(step):
    """Key of a whole number."""
    return _mixed(np.array([step * _STEP % (1 << 64)], dtype=np.uint64))


def keyed_uniforms(rows, columns):
    """Uniform random numbers in [0, 1) for pairs of keys, which are broadcast."""
    return (_mixed(rows + columns * _ODD) >> np.uint64(11)) * 2.0**-53


def _mixed(keys):
    """Keys whose bits depend on all bits of the given ones (splitmix64)."""
    for shift, factor in _MIX:
        keys = (keys ^ (keys >> shift)) * factor
    return keys ^ (keys >> np.uint64(31))
