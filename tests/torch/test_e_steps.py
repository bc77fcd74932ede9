"""The E-step against scipy, and its bound against the bound of a brute-force maximiser."""

import numpy as np
import pytest
import torch
from _oracles import evidence_lower_bound
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, softmax

from sklearn_l2d._torch._e_steps import responsibilities


def random_items(n=20, n_slots=3, n_components=3, seed=0, largest=6):
    rng = np.random.default_rng(seed)
    log_f = np.log(rng.dirichlet(np.ones(n_components), (n, n_slots)) * rng.random((n, n_slots, 1)))
    votes = rng.integers(0, largest, (n, n_slots)).astype(float)
    return log_f, votes, rng.uniform(0.3, 3, n_components)


def tensors(*arrays):
    return [torch.as_tensor(a) for a in arrays]


def solve(log_f, votes, alpha, **options):
    return [t.numpy() for t in responsibilities(*tensors(log_f, votes, alpha), **options)]


def annotation_fixed_point(log_f, votes, alpha, n_sweeps=2000):
    """Coordinate ascent of one item with one factor per single vote, as the paper has it."""
    votes = votes.astype(int)
    single = np.repeat(log_f, votes, axis=0)
    rho = alpha + len(single) / len(alpha)
    for _ in range(n_sweeps):
        zeta = softmax(single + digamma(rho), axis=1)
        rho = alpha + zeta.sum(0)
    return rho


def bound(log_f, votes, zeta, rho, alpha):
    """ELBO of one item, written out from its definition with the digamma terms."""
    log_u = digamma(rho) - digamma(rho.sum())
    entropy_u = gammaln(rho).sum() - gammaln(rho.sum()) - ((rho - 1) * log_u).sum()
    log_prior = gammaln(alpha.sum()) - gammaln(alpha).sum() + ((alpha - 1) * log_u).sum()
    per_vote = (zeta * (log_f + log_u - np.log(zeta))).sum(1)
    return (votes * per_vote).sum() + log_prior + entropy_u


def test_counts_give_the_fixed_point_of_single_votes():
    log_f, votes, alpha = random_items()
    _, rho = solve(log_f, votes, alpha, max_sweeps=2000, tol=1e-12)
    expected = [annotation_fixed_point(f, t, alpha) for f, t in zip(log_f, votes, strict=True)]
    assert_allclose(rho, expected, rtol=1e-8)


def test_real_valued_votes_scale_the_same_equations():
    log_f, votes, alpha = random_items(seed=1)
    votes = votes * 0.37
    zeta, rho = solve(log_f, votes, alpha, max_sweeps=5000, tol=1e-13)
    assert_allclose(zeta, softmax(log_f + digamma(rho)[:, None], axis=2), rtol=1e-7)
    assert_allclose(rho, alpha + (votes[:, :, None] * zeta).sum(1), rtol=1e-12)


def test_bound_is_the_definition():
    log_f, votes, alpha = random_items(seed=2)
    zeta, rho = solve(log_f, votes, alpha, max_sweeps=3)
    elbo = evidence_lower_bound(*tensors(log_f, votes, zeta, rho, alpha)).numpy()
    expected = [bound(log_f[i], votes[i], zeta[i], rho[i], alpha) for i in range(len(votes))]
    assert_allclose(elbo, expected, rtol=1e-10, atol=1e-10)


def test_bound_is_a_maximum_over_all_factors():
    log_f, votes, alpha = random_items(n=3, n_slots=2, n_components=2, seed=3, largest=4)
    votes += 1
    zeta, rho = solve(log_f, votes, alpha, max_sweeps=5000, tol=1e-12)
    elbo = evidence_lower_bound(*tensors(log_f, votes, zeta, rho, alpha)).numpy()

    for i in range(3):

        def loss(v, i=i):
            q = 1 / (1 + np.exp(-np.clip(v[:2], -500, 500)))
            q = np.clip(np.stack([q, 1 - q], 1), 1e-300, None)
            return -bound(log_f[i], votes[i], q, np.exp(v[2:]), alpha)

        best = max(
            -minimize(loss, start, method="Nelder-Mead", options={"maxiter": 4000, "fatol": 1e-12}).fun
            for start in (np.zeros(4), np.array([3.0, -3, 1, 1]), np.array([-3.0, 3, 1, 1]))
        )
        assert elbo[i] <= best + 1e-9
        assert elbo[i] >= best - 1e-5


def test_item_without_votes_keeps_the_prior():
    log_f, votes, alpha = random_items()
    votes[4] = 0
    zeta, rho = solve(log_f, votes, alpha)
    assert_array_equal(rho[4], alpha)
    assert evidence_lower_bound(*tensors(log_f, votes, zeta, rho, alpha))[4] == 0


@pytest.mark.parametrize("gap", [50.0, 700.0, 1e4])
def test_huge_log_ratios_stay_finite(gap):
    log_f = np.array([[[0.0, -gap], [-gap, 0.0]]])
    votes = np.array([[2.0, 1.0]])
    zeta, rho = solve(log_f, votes, np.array([1.0, 1.0]))
    assert_allclose(rho, [[3.0, 2.0]], atol=1e-8)
    elbo = evidence_lower_bound(*tensors(log_f, votes, zeta, rho, np.ones(2)))
    # every vote is certain of its behaviour: E[u1^2 u2] = B(3, 2) / B(1, 1)
    assert_allclose(elbo.numpy(), [np.log(1 / 12)], atol=1e-8)


def test_sweeps_and_tolerance_stop_each_item_by_itself():
    log_f, votes, alpha = random_items(n=50, seed=4)
    zeta, rho = solve(log_f, votes, alpha, max_sweeps=30, tol=1e-3)
    for i in (0, 7, 31):
        alone_zeta, alone_rho = solve(log_f[i : i + 1], votes[i : i + 1], alpha, max_sweeps=30, tol=1e-3)
        assert_allclose(alone_rho[0], rho[i], rtol=1e-12)
        assert_allclose(alone_zeta[0], zeta[i], rtol=1e-12)
