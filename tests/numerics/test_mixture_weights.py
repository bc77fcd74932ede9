"""Memberships against a general solver, and their spread against integration on a grid."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp

from sklearn_l2d._numerics import _mixture_weights
from sklearn_l2d._numerics._mixture_weights import mixture_weights, weight_deviations


def objective(weights, log_f, prior):
    """Nats per annotation of one expert; pseudo-counts of zero leave weights of zero alone."""
    weights = np.maximum(weights, 1e-300)
    penalty = (prior * np.log(weights)).sum() / len(log_f)
    return logsumexp(log_f + np.log(weights), axis=1).mean() + penalty


def slsqp(log_f, prior):
    """Best objective that scipy finds, with the analytic gradient."""
    n, n_components = log_f.shape
    f = np.exp(log_f - log_f.max(1, keepdims=True))

    def loss(a):
        mix = f @ a
        value = -np.log(mix).mean() - (prior * np.log(a)).sum() / n
        return value, -(f / mix[:, None]).mean(0) - prior / a / n

    found = minimize(
        loss,
        np.full(n_components, 1 / n_components),
        jac=True,
        method="SLSQP",
        bounds=[(1e-12, 1)] * n_components,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return objective(found.x / found.x.sum(), log_f, prior)


def random_experts(n_experts, n_components, seed, largest=60):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, largest, n_experts)
    expert = rng.permutation(np.repeat(np.arange(n_experts), sizes))
    log_f = rng.normal(scale=rng.uniform(0.1, 3), size=(len(expert), n_components)) - 2
    return log_f, expert


def certificate(weights, log_f, prior):
    f = np.exp(log_f - log_f.max(1, keepdims=True))
    slope = (f / (f @ weights)[:, None]).mean(0)
    pull = np.divide(prior, weights, out=np.zeros_like(weights), where=prior > 0)
    return (slope + pull / len(f)).max() - 1 - prior.sum() / len(f)


@pytest.mark.parametrize("n_components", [2, 3, 6])
@pytest.mark.parametrize("strength", [0.0, 1.0, 20.0])
def test_optimum_of_a_general_solver(n_components, strength):
    prior = strength * np.random.default_rng(1).dirichlet(np.ones(n_components))
    log_f, expert = random_experts(12, n_components, seed=n_components)
    weights, gap = mixture_weights(log_f, expert, 12, prior=prior)
    assert_allclose(weights.sum(1), 1, rtol=1e-12)
    assert (weights >= 0).all()
    assert (gap <= 1e-6).all()
    for m in range(12):
        mine = log_f[expert == m]
        assert abs(objective(weights[m], mine, prior) - slsqp(mine, prior)) < 1e-6
        assert_allclose(gap[m], certificate(weights[m], mine, prior), atol=1e-9)


def test_prior_none_is_maximum_likelihood():
    log_f, expert = random_experts(5, 3, seed=8)
    assert_array_equal(*[mixture_weights(log_f, expert, 5, prior=p)[0] for p in (None, np.zeros(3))])


def test_every_expert_may_have_a_prior_of_its_own():
    log_f, expert = random_experts(9, 3, seed=4)
    prior = np.random.default_rng(2).gamma(1.0, 2.0, (9, 3))
    weights, gap = mixture_weights(log_f, expert, 9, prior=prior)
    std = weight_deviations(log_f, expert, 9, prior)
    assert (gap <= 1e-6).all()
    for m in range(9):
        mine = log_f[expert == m]
        assert abs(objective(weights[m], mine, prior[m]) - slsqp(mine, prior[m])) < 1e-6
        alone = weight_deviations(mine, np.zeros(len(mine), int), 1, prior[m])
        assert_allclose(std[m], alone[0], rtol=1e-5)


def test_known_optima():
    # behaviours that never overlap: the weights are the shares of the annotations, pseudo-counts included
    log_f = np.log(np.where(np.eye(3)[[0, 0, 0, 1, 2]], 1.0, 1e-300))
    assert_allclose(mixture_weights(log_f, np.zeros(5, int), 1)[0][0], [0.6, 0.2, 0.2], atol=1e-3)
    prior = np.array([0.0, 4.0, 1.0])
    assert_allclose(mixture_weights(log_f, np.zeros(5, int), 1, prior=prior)[0][0], [0.3, 0.5, 0.2], atol=1e-3)


def test_duplicate_behaviours_share_what_one_of_them_has():
    log_f, expert = random_experts(8, 2, seed=3)
    single, _ = mixture_weights(log_f, expert, 8)
    doubled, gap = mixture_weights(log_f[:, [0, 0, 1]], expert, 8)
    assert (gap <= 1e-6).all()
    for m in range(8):
        mine = log_f[expert == m]
        pooled = np.array([doubled[m, :2].sum(), doubled[m, 2]])
        assert abs(objective(pooled, mine, np.zeros(2)) - objective(single[m], mine, np.zeros(2))) < 1e-6


def test_behaviours_that_are_all_alike_leave_the_prior():
    log_f, prior = np.full((7, 3), -1.2), np.array([1.0, 2.0, 5.0])
    weights, gap = mixture_weights(log_f, np.zeros(7, int), 1, prior=prior)
    assert_allclose(weights[0], prior / 8, atol=2e-3)
    assert gap[0] <= 1e-6


@pytest.mark.parametrize("ratio", [1.0, 30.0, 800.0, 1e5])
def test_huge_log_ratios(ratio):
    log_f = np.array([[0.0, -ratio], [-ratio, 0.0], [0.0, -ratio]]) - 1000
    expert = np.array([0, 0, 1])
    for prior in (np.zeros(2), np.array([0.5, 0.5])):
        weights, gap = mixture_weights(log_f, expert, 2, prior=prior)
        assert np.isfinite(weights).all()
        assert (gap <= 1e-6).all()
    assert_allclose(mixture_weights(log_f, expert, 2)[0], [[0.5, 0.5], [1, 0]], atol=1e-3)


def test_one_annotation_goes_to_the_behaviour_that_gives_it_most():
    weights, gap = mixture_weights(np.log([[0.2, 0.7, 0.1]]), np.array([0]), 1)
    assert_allclose(weights[0], [0, 1, 0], atol=1e-5)
    assert gap[0] <= 1e-6


def test_experts_without_annotations_are_nan():
    log_f, expert = random_experts(3, 2, seed=0)
    weights, gap = mixture_weights(log_f, expert + 1, 5)
    assert_array_equal(np.isnan(weights).all(1), [True, False, False, False, True])
    assert_array_equal(np.isnan(gap), [True, False, False, False, True])
    none, _ = mixture_weights(np.empty((0, 2)), np.empty(0, int), 2)
    assert np.isnan(none).all()


def test_blocks_do_not_matter(monkeypatch):
    log_f, expert = random_experts(40, 3, seed=5)
    together = mixture_weights(log_f, expert, 40, prior=np.ones(3))[0]
    monkeypatch.setattr(_mixture_weights, "_BLOCK", 50)
    assert_allclose(mixture_weights(log_f, expert, 40, prior=np.ones(3))[0], together, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_every_expert_of_a_large_roster_is_certified(seed):
    log_f, expert = random_experts(500, 4, seed=seed, largest=20)
    _, gap = mixture_weights(log_f, expert, 500, prior=0.01 * np.ones(4))
    assert (gap <= 1e-6).all()


KINDS = {
    "no evidence": lambda rng, n: np.tile([0.3, 0.3], (n, 1)),
    "weak": lambda rng, n: rng.uniform(0.4, 0.6, (n, 2)),
    "mixed": lambda rng, n: rng.dirichlet([1, 1], n),
    "all for one": lambda rng, n: np.tile([0.95, 0.05], (n, 1)),
    "separate": lambda rng, n: np.where(rng.random((n, 1)) < 0.6, [[1, 1e-9]], [[1e-9, 1]]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prior", [(0.0, 0.0), (0.5, 0.5), (0.99, 0.01)], ids=str)
def test_deviations_are_those_of_the_posterior_on_a_grid(kind, prior):
    rng = np.random.default_rng(0)
    sizes = [0, 1, 2, 5, 10, 30, 100, 1000]
    f = np.concatenate([KINDS[kind](rng, n) for n in sizes])
    expert = np.repeat(np.arange(len(sizes)), sizes)
    std = weight_deviations(np.log(f), expert, len(sizes), np.array(prior))
    assert_allclose(std[:, 0], std[:, 1], rtol=1e-9)
    a = (np.arange(20_001) + 0.5) / 20_001
    grid = np.stack([a, 1 - a], 1)
    for m in range(len(sizes)):
        log_p = np.log(f[expert == m] @ grid.T).sum(0) + np.log(grid) @ prior
        p = np.exp(log_p - log_p.max())
        mean = (p @ a) / p.sum()
        assert_allclose(std[m, 0], np.sqrt(p @ (a - mean) ** 2 / p.sum()), rtol=0.15)


def test_deviations_of_the_prior_are_exact():
    prior = np.array([0.2, 1.0, 3.0])
    a = 1 + prior
    p = a / a.sum()
    std = weight_deviations(np.empty((0, 3)), np.empty(0, int), 2, prior)
    assert_allclose(std, np.tile(np.sqrt(p * (1 - p) / (a.sum() + 1)), (2, 1)))


def test_one_behaviour_is_certain():
    assert_array_equal(weight_deviations(np.zeros((4, 1)), np.array([0, 0, 1, 1]), 3, np.ones(1)), np.zeros((3, 1)))
    assert_array_equal(mixture_weights(np.zeros((2, 1)), np.zeros(2, int), 1)[0], [[1.0]])
