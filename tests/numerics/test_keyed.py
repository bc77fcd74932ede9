"""Random numbers that belong to an item."""

import numpy as np
from numpy.testing import assert_array_equal

from sklearn_l2d._numerics._keyed import keyed_uniforms, number_keys, row_keys


def test_a_row_alone_has_the_key_that_it_has_among_others():
    X = np.random.default_rng(0).normal(size=(50, 3))
    assert_array_equal(np.concatenate([row_keys(x[None], 7) for x in X]), row_keys(X, 7))
    assert len(np.unique(row_keys(X, 7))) == 50
    assert not np.isin(row_keys(X, 8), row_keys(X, 7)).any()
    assert_array_equal(row_keys(np.array([[0.0, 1.0]]), 0), row_keys(np.array([[-0.0, 1.0]]), 0))


def test_no_rows_have_no_keys():
    assert row_keys(np.empty((0, 4)), 7).shape == (0,)


def test_items_of_small_whole_numbers_are_told_apart():
    """Their floats end in zeros, which multiplication passes on."""
    bits = (np.arange(1 << 14)[:, None] >> np.arange(14)) & 1
    for dtype in (np.float32, np.float64):
        assert len(np.unique(row_keys(bits.astype(dtype), 0))) == len(bits)


def test_numbers_are_uniform_and_unrelated():
    X = np.arange(4000.0)[:, None]  # items that hardly differ
    uniform = keyed_uniforms(row_keys(X, 0)[:, None], number_keys(np.arange(6)))
    assert ((uniform >= 0) & (uniform < 1)).all()
    counts = np.apply_along_axis(lambda u: np.histogram(u, bins=10, range=(0, 1))[0], 0, uniform)
    assert np.abs(counts - 400).max() < 5 * np.sqrt(400 * 0.9)
    correlation = np.corrcoef(np.column_stack([uniform[:-1], uniform[1:]]).T) - np.eye(12)
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)
