"""Held-out likelihood against the sum over all assignments of votes to behaviours."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import beta

from sklearn_l2d._numerics import _marginal_likelihood
from sklearn_l2d._numerics._marginal_likelihood import (
    dirichlet_draws,
    log_marginal,
    log_marginal_draws,
    log_marginal_exact,
    n_exact_terms,
)


def random_items(n, n_slots, n_components, largest, seed, sharp=1.0):
    rng = np.random.default_rng(seed)
    log_f = np.log(rng.dirichlet(np.full(n_components, sharp), (n, n_slots)) * rng.random((n, n_slots, 1)))
    return log_f, rng.integers(0, largest, (n, n_slots)).astype(float)


def enumerate_assignments(log_f, votes, alpha):
    """Sum over who cast every single vote; the mixture of the item is integrated by the Dirichlet-multinomial."""
    single = np.exp(np.repeat(log_f, votes.astype(int), axis=0))
    n_votes, n_components = single.shape
    total = 0.0
    for assignment in product(range(n_components), repeat=n_votes):
        sizes = np.bincount(np.array(assignment, int), minlength=n_components)
        urn = gammaln(alpha.sum()) - gammaln(alpha.sum() + n_votes) + (gammaln(alpha + sizes) - gammaln(alpha)).sum()
        total += np.exp(urn) * np.prod([single[i, k] for i, k in enumerate(assignment)])
    return np.log(total)


def by_integration(log_f, votes, alpha):
    """Two behaviours: integrate over the weight of the first, real-valued votes allowed."""

    def integrand(u):
        return np.exp((votes * np.log(u * np.exp(log_f[:, 0]) + (1 - u) * np.exp(log_f[:, 1]))).sum())

    return np.log(quad(lambda u: integrand(u) * beta.pdf(u, *alpha), 0, 1, epsabs=0, epsrel=1e-11, limit=400)[0])


@pytest.mark.parametrize("n_components", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [0.1, 1.0, 50.0])
def test_exact_is_the_enumeration(n_components, scale):
    log_f, votes = random_items(12, 3, n_components, 3, seed=n_components)
    alpha = scale * np.random.default_rng(9).uniform(0.5, 2, n_components)
    expected = [enumerate_assignments(f, t, alpha) for f, t in zip(log_f, votes, strict=True)]
    assert_allclose(log_marginal_exact(log_f, votes, alpha), expected, rtol=1e-10, atol=1e-14)


def test_item_without_votes_has_no_evidence():
    log_f, votes = random_items(4, 2, 3, 3, seed=0)
    votes[2] = 0
    for method in ("exact", "sobol"):
        assert_allclose(log_marginal(log_f, votes, np.ones(3), method)[2], 0, atol=1e-13)


@pytest.mark.parametrize("gap", [20.0, 700.0, 5000.0])
def test_exact_with_huge_log_ratios(gap):
    log_f = np.array([[[0.0, -gap], [-gap, 0.0]]])
    # the votes name their behaviours: E[u1^2 u2] = B(3, 2) / B(1, 1)
    assert_allclose(log_marginal_exact(log_f, np.array([[2.0, 1.0]]), np.ones(2)), np.log(1 / 12), rtol=1e-7)


@pytest.mark.parametrize("scale", [0.05, 1.0, 50.0])
@pytest.mark.parametrize("n_votes", [300, 1500])
def test_exact_for_items_with_very_many_votes(scale, n_votes):
    alpha = scale * np.array([1.0, 2.0])
    # behaviours that agree: whatever the mixture, every vote has the probability .3
    log_f = np.log(np.full((1, 1, 2), 0.3))
    got = log_marginal_exact(log_f, np.array([[float(n_votes)]]), alpha)
    assert_allclose(got, n_votes * np.log(0.3), rtol=1e-10)
    # behaviours that never overlap: the votes are a Dirichlet-multinomial draw
    log_f = np.array([[[0.0, -1e4], [-1e4, 0.0]]])
    a, b = n_votes // 3, n_votes - n_votes // 3
    expected = gammaln(alpha.sum()) - gammaln(alpha.sum() + n_votes)
    expected += gammaln(alpha[0] + a) - gammaln(alpha[0]) + gammaln(alpha[1] + b) - gammaln(alpha[1])
    assert_allclose(log_marginal_exact(log_f, np.array([[a, b]], dtype=float), alpha), [expected], rtol=1e-10)


@pytest.mark.parametrize(("n_components", "largest"), [(2, 12), (3, 6), (5, 3)])
@pytest.mark.parametrize("scale", [0.5, 2.0, 50.0])
def test_draws_are_close_to_exact(n_components, largest, scale):
    log_f, votes = random_items(200, 3, n_components, largest, seed=largest)
    alpha = np.full(n_components, scale)
    total = votes.sum()
    error = (log_marginal_draws(log_f, votes, alpha) - log_marginal_exact(log_f, votes, alpha)).sum() / total
    assert abs(error) < 0.002


def test_draws_with_real_votes():
    log_f, votes = random_items(25, 3, 2, 6, seed=4)
    votes *= 0.43
    alpha = np.array([0.8, 2.5])
    expected = np.array([by_integration(f, t, alpha) for f, t in zip(log_f, votes, strict=True)])
    per_vote = np.abs(log_marginal_draws(log_f, votes, alpha) - expected) / np.maximum(votes.sum(1), 1)
    assert per_vote.max() < 0.002


def test_exact_refuses_real_votes():
    log_f, votes = random_items(4, 2, 2, 4, seed=0)
    with pytest.raises(ValueError, match="whole numbers of votes"):
        log_marginal(log_f, votes + 0.5, np.ones(2), "exact")


@pytest.mark.parametrize("method", ["exact", "sobol"])
def test_items_do_not_depend_on_one_another(method, monkeypatch):
    log_f, votes = random_items(57, 4, 3, 5, seed=6)
    alpha = np.array([0.5, 1.0, 4.0])
    together = log_marginal(log_f, votes, alpha, method)
    chunks = np.array_split(np.arange(57), [3, 4, 30])
    apart = np.concatenate([log_marginal(log_f[c], votes[c], alpha, method) for c in chunks])
    assert_allclose(apart, together, rtol=1e-12, atol=1e-13)
    padded = log_marginal(np.pad(log_f, ((0, 0), (0, 2), (0, 0))), np.pad(votes, ((0, 0), (0, 2))), alpha, method)
    assert_allclose(padded, together, rtol=1e-12, atol=1e-13)
    monkeypatch.setattr(_marginal_likelihood, "_BLOCK", 100)
    assert_allclose(log_marginal(log_f, votes, alpha, method), together, rtol=1e-12, atol=1e-13)


def test_draws_are_fixed_and_follow_the_dirichlet():
    alpha = (0.5, 2.0, 7.5)
    draws = dirichlet_draws(alpha)
    assert draws.shape == (1024, 3)
    dirichlet_draws.cache_clear()
    assert_array_equal(dirichlet_draws(alpha), draws)
    assert_allclose(draws.sum(1), 1)
    mean = np.array(alpha) / 10
    assert_allclose(draws.mean(0), mean, atol=2e-3)
    assert_allclose(draws.var(0), mean * (1 - mean) / 11, rtol=0.02)
    assert_array_equal(dirichlet_draws((3.0,)), [[1.0]])


def test_number_of_terms_is_that_of_the_ways_to_share_the_votes():
    ways = {tuple(np.bincount(z, minlength=3)) for z in product(range(3), repeat=5)}
    assert n_exact_terms(5, 3) == len(ways)
