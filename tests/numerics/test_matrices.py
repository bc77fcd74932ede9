"""Sparse matrices of experts and targets against the arrays that they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_array, issparse

from sklearn_l2d._numerics import _answers, _matrices
from sklearn_l2d._numerics._answers import undominated
from sklearn_l2d._numerics._matrices import (
    dense_if_small,
    entries,
    identity,
    narrowed,
    normalised_rows,
    one_hot,
    ragged_rows,
    stacked,
    weighted_columns,
    widened,
)

shapes = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)
matrices = hnp.arrays(np.float64, shapes, elements=st.sampled_from([0.0, 0.0, 0.25, 1.0, 3.0]))


def dense(matrix):
    return matrix.toarray() if issparse(matrix) else matrix


@given(matrices, st.data())
def test_a_sparse_matrix_is_the_array(matrix, data):
    sparse = csr_array(matrix)
    rows, columns = (data.draw(hnp.arrays(np.int64, 9, elements=st.integers(0, n - 1))) for n in matrix.shape)
    for wanted in (1, 9):  # sought one by one, or as many as the matrix has
        assert_array_equal(entries(sparse, rows[:wanted], columns[:wanted]), matrix[rows[:wanted], columns[:wanted]])
    assert_allclose(dense(normalised_rows(sparse)), normalised_rows(matrix), atol=1e-15)
    weights = np.arange(matrix.shape[1]) % 3
    assert_array_equal(dense(weighted_columns(sparse, weights)), matrix * weights)
    assert_array_equal(dense(widened(sparse, 2)), np.pad(matrix, ((0, 0), (0, 2))))
    assert_array_equal(dense(widened(matrix, 2)), np.pad(matrix, ((0, 0), (0, 2))))
    for upper, lower in ((sparse, matrix), (matrix, sparse), (matrix, matrix)):
        assert_array_equal(dense(stacked(upper, lower)), np.vstack([matrix, matrix]))


def test_entries_add_up_what_is_stored_twice():
    matrix = coo_array(([1.0, 2.0, 5.0], ([0, 0, 1], [1, 1, 0])), shape=(40, 2))
    given = csr_array((matrix.data, matrix.coords[1], np.array([0, 2, *[3] * 39])), shape=(40, 2))
    assert_array_equal(entries(given, np.array([0, 1, 1]), np.array([1, 0, 1])), [3.0, 5.0, 0.0])
    assert not given.has_canonical_format  # the argument stays as it was
    assert_array_equal(entries(csr_array((5, 5)), np.array([1]), np.array([2])), [0.0])


def test_rows_with_a_one_are_sparse_where_that_saves_memory(monkeypatch):
    assert_array_equal(one_hot([2, 0], 3), [[0, 0, 1], [1, 0, 0]])
    assert identity(10_000).nnz == 10_000
    monkeypatch.setattr(_matrices, "LARGEST_FAST", 0)
    assert_array_equal(one_hot([2, 0], 3).toarray(), [[0, 0, 1], [1, 0, 0]])
    assert_array_equal(dense_if_small(identity(4)), np.eye(4))
    monkeypatch.setattr(_matrices, "LARGEST_DENSE", 15)
    assert issparse(dense_if_small(identity(4)))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
def test_rows_of_a_ragged_array(sizes, data):
    starts = np.append(0, np.cumsum(sizes))
    rows = np.array(data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=6)), dtype=int)
    row, entry = ragged_rows(starts, rows)
    expected = [(i, e) for i, r in enumerate(rows) for e in range(starts[r], starts[r + 1])]
    assert list(zip(row.tolist(), entry.tolist(), strict=True)) == expected


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=st.integers(0, 3)),
    st.integers(0, 2**32 - 1),
)
def test_whoever_is_best_for_some_weights_is_undominated(values, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_answers, "_FEW_ROWS", 0)
        kept = undominated(values)
        patch.setattr(_answers, "_MANY_BEST", 1)
        assert_array_equal(undominated(values) if len(kept) > 1 else np.arange(len(values)), np.arange(len(values)))
    weights = np.random.default_rng(seed).dirichlet(np.ones(values.shape[1]), size=50)
    scores = weights @ values.T
    assert_allclose(scores[:, kept].max(1), scores.max(1), rtol=1e-12)
    for i in kept:
        others = np.delete(np.arange(len(values)), i)
        reached = (values[others] >= values[i]).all(1)
        assert (values[others][reached] == values[i]).all()  # by equal rows only, of which the first is kept
        assert (others[reached] > i).all()
    assert_array_equal(undominated(values), np.arange(len(values)))  # few rows are not searched


@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_rows_are_cut_as_reshape_cuts_them(density):
    rng = np.random.default_rng(0)
    table = rng.random((5, 12)) * (rng.random((5, 12)) < density)
    matrix = csr_array(table)
    upset = csr_array((matrix.data[::-1], matrix.indices[::-1], matrix.indptr[-1] - matrix.indptr[::-1]), table.shape)
    assert_array_equal(narrowed(matrix, 3).toarray(), table.reshape(20, 3))
    assert_array_equal(narrowed(upset, 3).toarray(), table[::-1].reshape(20, 3))  # with indices in no order
