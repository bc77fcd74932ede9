import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from sklearn_l2d._numerics._assignment import assign_members


def assign(*args, seed=0, **kwargs):
    return assign_members(*args, rng=np.random.default_rng(seed), **kwargs)


def most_served(allowed, capacity):
    slots = np.repeat(np.arange(allowed.shape[1]), capacity)
    rows, columns = linear_sum_assignment(allowed[:, slots], maximize=True)
    return allowed[rows, slots[columns]].sum()


@pytest.mark.parametrize("seed", range(40))
def test_serves_as_many_as_possible_within_capacity(seed):
    rng = np.random.default_rng(seed)
    weights = rng.random((2, 4)) * (rng.random((2, 4)) < 0.6)
    targets = rng.integers(-1, 2, 14)
    available = rng.random((14, 4)) < 0.6
    capacity = rng.integers(0, 4, 4)
    experts = assign(targets, weights, available, capacity, seed=seed)
    allowed = (weights[targets] > 0) & available & (targets >= 0)[:, None]
    served = experts >= 0
    assert allowed[served, experts[served]].all()
    assert (np.bincount(experts[served], minlength=4) <= capacity).all()
    assert served.sum() == most_served(allowed, capacity)


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
