import tracemalloc

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array, csr_matrix, eye_array

from sklearn_l2d._numerics._assignment import _Cells, _within_capacity, assign_members
from sklearn_l2d._numerics._shares import project_onto_shares


def assign(*args, seed=0, **kwargs):
    return assign_members(*args, rng=np.random.default_rng(seed), **kwargs)


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


@given(assignments(max_rows=60))
def test_counts_of_a_block_are_within_a_row_of_their_quotas(problem):
    targets, weights, available, _, seed = problem
    experts = assign(targets, weights, available, seed=seed)
    usable = weights[targets] * available * (targets >= 0)[:, None]
    quotas = usable / np.maximum(usable.sum(axis=1, keepdims=True), 1e-300)
    blocks = np.unique(np.column_stack([targets, available]), axis=0, return_inverse=True)[1].reshape(-1)
    for block in range(blocks.max() + 1):
        counts = np.bincount(experts[blocks == block] + 1, minlength=weights.shape[1] + 1)[1:]
        assert (np.abs(counts - quotas[blocks == block].sum(axis=0)) < 1 + 1e-9).all()


def test_the_mean_over_seeds_is_the_quota():
    rng = np.random.default_rng(0)
    weights, targets = rng.dirichlet(np.ones(4), 2), np.repeat([0, 1], 6)
    available = rng.random((12, 4)) < 0.7
    chosen = np.stack([assign(targets, weights, csr_array(available), seed=seed) for seed in range(1000)])
    usable = weights[targets] * available
    expected = usable / usable.sum(axis=1, keepdims=True)
    np.testing.assert_allclose((chosen[..., None] == np.arange(4)).mean(axis=0), expected, atol=0.08)


@given(st.data())
def test_quotas_within_capacity_are_the_dense_projection(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n_blocks, n_experts = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 6))
    weights = rng.dirichlet(np.full(n_experts, data.draw(st.sampled_from([0.1, 1.0, 5.0]))), n_blocks)
    weights *= rng.random(weights.shape) < data.draw(st.sampled_from([0.3, 0.7, 1.0]))
    sizes = rng.integers(1, 50, n_blocks)
    tightness = data.draw(st.sampled_from([0.3, 0.9, 1.0, 1.1, 2.0]))
    capacity = np.clip(tightness * sizes.sum() * rng.dirichlet(np.full(n_experts, 5.0)), 1, sizes.sum()).astype(int)
    nobody = weights.sum(axis=1, keepdims=True) == 0
    block, expert = np.nonzero(np.hstack([weights > 0, np.ones_like(nobody)]))
    cells = _Cells(np.searchsorted(block, np.arange(n_blocks + 1)), block, expert)
    prior = np.hstack([weights, nobody])
    quotas = np.zeros_like(prior)
    quotas[block, expert] = _within_capacity(prior[block, expert], cells, sizes, np.append(capacity, sizes.sum()))
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior / prior.sum(axis=1, keepdims=True))
    log_prior[:, -1] = np.maximum(log_prior[:, -1], -30)
    limit = np.append(capacity / sizes.sum(), 1.0)
    expected, *_, violation = project_onto_shares(log_prior, np.zeros(n_experts + 1), limit, sample_weight=sizes)
    assume(violation < 1e-8)  # its iterations can run out
    share = sizes[:, None] / sizes.sum()
    np.testing.assert_allclose(share * quotas, share * expected, atol=1e-5)


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


def test_quotas_follow_the_weights_exactly():
    experts = assign(np.repeat([0, 1, -1], [100, 50, 7]), np.array([[0.2, 0.8, 0.0], [0.0, 0.5, 0.5]]))
    assert np.bincount(experts + 1).tolist() == [7, 20, 105, 25]
    assert (experts[150:] == -1).all()


def test_rounding_is_fair_on_average():
    weights = np.array([[0.55, 0.3, 0.15]])
    counts = [np.bincount(assign(np.zeros(3, int), weights, seed=s), minlength=3) for s in range(800)]
    np.testing.assert_allclose(np.mean(counts, axis=0), 3 * weights[0], atol=0.07)
    first = [assign(np.zeros(3, int), weights, seed=s)[0] for s in range(800)]
    np.testing.assert_allclose(np.bincount(first) / 800, weights[0], atol=0.07)


def test_rows_with_their_own_availability_still_share_evenly():
    rng = np.random.default_rng(0)
    available = rng.random((3000, 6)) < 0.7
    experts = assign(np.zeros(3000, int), np.full((1, 6), 1 / 6), available)
    served = experts >= 0
    assert available[served, experts[served]].all()
    np.testing.assert_array_equal(served, available.any(axis=1))
    assert np.ptp(np.bincount(experts[served])) < 150


def test_full_experts_pass_work_on_in_proportion():
    experts = assign(np.zeros(100, int), np.array([[0.6, 0.2, 0.2]]), capacity=np.array([20, 100, 100]))
    np.testing.assert_allclose(np.bincount(experts), [20, 40, 40], atol=1)


def test_without_a_limit_is_with_a_limit_of_all_rows():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        targets, available = rng.integers(0, 2, 30), rng.random((30, 4)) < 0.6
        weights, unlimited = rng.dirichlet(np.ones(4), 2), np.iinfo(np.int64).max // 2
        got = [assign(targets, weights, available, np.array([3, 4, many, 5]), seed=seed) for many in (unlimited, 30)]
        np.testing.assert_array_equal(*got)


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
