import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array, csr_matrix, eye_array

from sklearn_l2d._numerics._assignment import assign_members
from sklearn_l2d._numerics._keyed import number_keys


def keys_of(targets, seed):
    return number_keys(np.arange(len(targets)) + (seed << 20))


def assign(targets, weights, *args, seed=0, **kwargs):
    return assign_members(targets, weights, keys_of(targets, seed), *args, **kwargs)


def most_served(allowed, capacity):
    slots = np.repeat(np.arange(allowed.shape[1]), capacity)
    rows, columns = linear_sum_assignment(allowed[:, slots], maximize=True)
    return allowed[rows, slots[columns]].sum()


def sparse(table, kind):
    """A sparse copy that also stores some zeros."""
    rows, columns = np.nonzero(np.ones(table.shape))
    stored = (table != 0)[rows, columns] | ((rows + columns) % 3 == 0)
    return kind((table[rows, columns][stored], (rows[stored], columns[stored])), shape=table.shape)


@st.composite
def assignments(draw, max_rows=14):
    """Arguments of `assign_members` with an availability by row, and a seed."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n_rows, n_targets, n_experts = (
        draw(st.integers(1, max_rows)),
        draw(st.integers(1, 3)),
        draw(st.sampled_from([1, 2, 3, 4, 70])),
    )
    density = st.sampled_from([0.1, 0.6, 1.0])
    weights = rng.random((n_targets, n_experts)) * (rng.random((n_targets, n_experts)) < draw(density))
    targets = rng.integers(-1, n_targets, n_rows)
    # Few different rows, so that some of them form a block.
    kinds = rng.random((draw(st.integers(1, n_rows)), n_experts)) < draw(density)
    available = kinds[rng.integers(0, len(kinds), n_rows)]
    return targets, weights, available, rng.integers(0, draw(st.integers(1, 5)), n_experts), seed


@given(assignments())
def test_serves_as_many_as_possible_within_capacity(problem):
    targets, weights, available, capacity, seed = problem
    experts = assign(targets, weights, available, capacity, seed=seed)
    allowed = (weights[targets] > 0) & available & (targets >= 0)[:, None]
    served = experts >= 0
    assert allowed[served, experts[served]].all()
    assert (np.bincount(experts[served], minlength=len(capacity)) <= capacity).all()
    assert served.sum() == most_served(allowed, capacity)


@given(assignments(max_rows=60), st.booleans(), st.sampled_from([csr_array, coo_array, csr_matrix]))
def test_sparse_tables_mean_the_same_as_dense_ones(problem, limited, kind):
    targets, weights, available, capacity, seed = problem
    capacity = capacity if limited else None
    tables = sparse(weights, csr_array), sparse(available.astype(int), kind)
    stored = [table.nnz for table in tables]
    for who, sparse_who in [(available, tables[1]), (available[0], available[0]), (None, None)]:
        expected = assign(targets, weights, who, capacity, seed=seed)
        np.testing.assert_array_equal(assign(targets, weights, sparse_who, capacity, seed=seed), expected)
        np.testing.assert_array_equal(assign(targets, tables[0], sparse_who, capacity, seed=seed), expected)
    assert [table.nnz for table in tables] == stored


@given(assignments(max_rows=60))
def test_everybody_can_be_said_in_three_ways(problem):
    targets, weights, available, capacity, seed = problem
    for limit in (None, capacity):
        expected = assign(targets, weights, None, limit, seed=seed)
        for everybody in (np.ones_like(available[0]), np.ones_like(available)):
            np.testing.assert_array_equal(assign(targets, weights, everybody, limit, seed=seed), expected)


@given(assignments(max_rows=30), st.booleans())
def test_a_row_alone_gets_what_it_gets_among_others(problem, by_row):
    targets, weights, available, _, seed = problem
    who = available if by_row else available[0]
    together = assign(targets, weights, who, seed=seed)
    keys = keys_of(targets, seed)
    for row in range(len(targets)):
        one = slice(row, row + 1)
        alone = assign_members(targets[one], weights, keys[one], who[one] if by_row else who)
        np.testing.assert_array_equal(alone, together[one])


@given(assignments(max_rows=30), st.booleans())
def test_the_order_of_rows_does_not_matter(problem, limited):
    targets, weights, available, capacity, seed = problem
    order, keys = np.random.default_rng(seed).permutation(len(targets)), keys_of(targets, seed)
    if limited:  # unless rows have to change hands, where many solutions serve as many
        weights, available = np.ones((1, weights.shape[1])), available[0]
        targets, limit = np.minimum(targets, 0), capacity
        shuffled = assign_members(targets[order], weights, keys[order], available, limit)
    else:
        limit, shuffled = None, assign_members(targets[order], weights, keys[order], available[order])
    np.testing.assert_array_equal(shuffled, assign_members(targets, weights, keys, available, limit)[order])


@given(assignments(max_rows=60))
def test_rows_keep_their_expert_while_others_are_away(problem):
    targets, weights, available, _, seed = problem
    everybody = assign(targets, weights, seed=seed)
    there = (everybody >= 0) & available[np.arange(len(targets)), everybody]
    np.testing.assert_array_equal(assign(targets, weights, available, seed=seed)[there], everybody[there])


def test_the_mean_over_rows_is_the_weight_of_those_who_are_there():
    rng = np.random.default_rng(0)
    weights, targets = rng.dirichlet(np.ones(4), 2), np.repeat([0, 1], 6)
    available = rng.random((12, 4)) < 0.7
    n = 4000
    chosen = assign(np.tile(targets, n), weights, csr_array(np.tile(available, (n, 1)))).reshape(n, 12)
    usable = weights[targets] * available
    expected = usable / usable.sum(axis=1, keepdims=True)
    error = np.sqrt(expected * (1 - expected) / n)
    assert (np.abs((chosen[..., None] == np.arange(4)).mean(axis=0) - expected) <= 4 * error + 1e-12).all()


def test_thousands_of_single_people_take_little_memory():
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 10_000, 100_000)
    tracemalloc.start()
    experts = assign(targets, csr_array(eye_array(10_000)), capacity=np.full(10_000, 3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ((experts == targets) | (experts < 0)).all()
    expected = np.minimum(np.bincount(targets, minlength=10_000), 3)
    np.testing.assert_array_equal(np.bincount(experts[experts >= 0], minlength=10_000), expected)
    assert peak < 1e8


def test_thousands_of_rows_with_their_own_few_people():
    rng = np.random.default_rng(0)
    asked = rng.integers(0, 300, (20_000, 5))
    available = csr_array((np.ones(asked.size), asked.ravel(), np.arange(0, asked.size + 1, 5)), shape=(20_000, 300))
    experts = assign(np.zeros(20_000, int), rng.random((1, 300)), available, np.full(300, 67))
    assert (experts[:, None] == asked).any(axis=1).all()
    assert np.bincount(experts).max() <= 67


def test_shares_follow_the_weights_up_to_chance():
    experts = assign(np.repeat([0, 1, -1], [10000, 5000, 7]), np.array([[0.2, 0.8, 0.0], [0.0, 0.5, 0.5]]))
    counts = np.bincount(experts + 1)
    assert counts[0] == 7
    np.testing.assert_allclose(counts[1:], [2000, 10500, 2500], atol=4 * np.sqrt(10000 * 0.25))
    assert (experts[15000:] == -1).all()


def test_tiny_weights_serve_where_nobody_else_can():
    weights = np.array([[1.0, 1e-30, 1e-300]])
    assert (assign(np.zeros(50, int), weights) == 0).all()
    assert (assign(np.zeros(50, int), weights, np.array([False, True, True])) == 1).all()
    experts = assign(np.zeros(50, int), weights, capacity=np.array([20, 20, 20]))
    assert np.bincount(experts).tolist() == [20, 20, 10]


def test_rows_with_their_own_availability_still_share_evenly():
    rng = np.random.default_rng(0)
    available = rng.random((3000, 6)) < 0.7
    experts = assign(np.zeros(3000, int), np.full((1, 6), 1 / 6), available)
    served = experts >= 0
    assert available[served, experts[served]].all()
    np.testing.assert_array_equal(served, available.any(axis=1))
    assert np.ptp(np.bincount(experts[served])) < 150


def test_full_experts_pass_work_on_in_proportion():
    experts = assign(np.zeros(10000, int), np.array([[0.6, 0.2, 0.2]]), capacity=np.array([2000, 10000, 10000]))
    np.testing.assert_allclose(np.bincount(experts), [2000, 4000, 4000], atol=4 * np.sqrt(8000 * 0.25))


def test_capacities_that_are_not_reached_change_nothing():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        targets, available = rng.integers(0, 2, 30), rng.random((30, 4)) < 0.6
        weights, unlimited = rng.dirichlet(np.ones(4), 2), np.iinfo(np.int64).max // 2
        got = [assign(targets, weights, available, np.array([3, 4, many, 5]), seed=seed) for many in (unlimited, 30)]
        np.testing.assert_array_equal(*got)
        free = assign(targets, weights, available, seed=seed)
        counts = np.bincount(free[free >= 0], minlength=4) + 1
        np.testing.assert_array_equal(assign(targets, weights, available, counts, seed=seed), free)


def test_overflow_and_absence_go_to_the_classifier():
    weights = np.array([[0.5, 0.5]])
    assert (assign(np.zeros(5, int), weights, capacity=np.array([1, 2])) == -1).sum() == 2
    assert (assign(np.zeros(5, int), weights, np.array([False, False])) == -1).all()
    assert (assign(np.full(5, -1), weights) == -1).all()
    assert (assign(np.zeros(5, int), weights, capacity=np.array([0, 0])) == -1).all()


def test_same_seed_same_answer():
    args = np.zeros(50, int), np.array([[0.5, 0.5]])
    np.testing.assert_array_equal(assign(*args, seed=3), assign(*args, seed=3))
    assert (assign(*args, seed=3) != assign(*args, seed=4)).any()
