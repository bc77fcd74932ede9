"""The learnt concentration against grids of the exact likelihood, and against the truth of simulated experts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, minimize
from scipy.stats import beta, dirichlet, gamma

from sklearn_l2d._numerics._concentration import (
    MAX_ITEMS,
    cast_terms,
    exact_votes,
    gamma_prior,
    learn_concentration,
    log_likelihood,
    needed,
    weight_prior,
    without,
)
from sklearn_l2d._numerics._marginal_likelihood import log_marginal_exact


def simulated(alpha, n=200, n_votes=20, seed=0, n_classes=6):
    """Votes of units, each with a mixture of its own, for known behaviours."""
    rng = np.random.default_rng(seed)
    f = rng.dirichlet(np.full(n_classes, 0.4), (n, len(alpha)))
    mixed = (rng.dirichlet(alpha, n)[:, :, None] * f).sum(1)
    votes = np.stack([rng.multinomial(n_votes, p / p.sum()) for p in mixed])
    return np.log(f).transpose(0, 2, 1), votes.astype(float)


def learnt(log_f, votes, mean):
    return learn_concentration(cast_terms(log_f, votes), gamma_prior(mean), mean)[0]


def log_posterior(alpha, log_f, votes, mean):
    """Density of ln alpha by the likelihood of `score` and scipy's Gamma distribution."""
    prior = gamma.logpdf(alpha, 1, scale=mean) + np.log(alpha)
    return log_marginal_exact(log_f, votes, alpha).sum() + prior.sum()


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("alpha", [(1.0, 1.0), (0.3, 0.3), (5.0, 5.0), (1.0, 2.0, 4.0), (0.5, 1.0, 0.2)], ids=str)
def test_the_truth_of_200_experts_within_a_factor_of_two(alpha, seed):
    found = learnt(*simulated(alpha, seed=seed), np.full(len(alpha), 50.0))
    assert (np.abs(np.log(found / alpha)) < np.log(2)).all()


def test_the_optimum_of_a_grid():
    log_f, votes = simulated((0.6, 2.0), n=40, n_votes=6, seed=4)
    mean = np.array([3.0, 5.0])
    grid = np.geomspace(0.05, 20, 30)
    values = [[log_posterior(np.array([a, b]), log_f, votes, mean) for b in grid] for a in grid]
    best = np.unravel_index(np.argmax(values), (30, 30))
    found = learnt(log_f, votes, mean)
    assert (np.abs(np.log(found / grid[list(best)])) < np.log(grid[1] / grid[0])).all()
    assert log_posterior(found, log_f, votes, mean) >= np.max(values)


@pytest.mark.parametrize("seed", range(4))
def test_no_general_optimiser_finds_more(seed):
    rng = np.random.default_rng(seed)
    mean = rng.uniform(0.5, 30, 3)
    log_f, votes = simulated(rng.uniform(0.2, 4, 3), n=60, n_votes=5, seed=seed)
    found = learnt(log_f, votes, mean)
    other = minimize(lambda u: -log_posterior(np.exp(u), log_f, votes, mean), np.log(found), tol=1e-10)
    assert log_posterior(found, log_f, votes, mean) > -other.fun - 1e-5


def test_derivatives_are_those_of_the_likelihood():
    log_f, votes = simulated((1.0, 2.0, 4.0), n=30, n_votes=4, seed=2)
    votes[::3, 0] += 3  # items of different sizes
    votes[1] = 0
    terms = cast_terms(log_f, votes)
    a, b = np.array([0.7, 1.3, 3.0]), np.array([2.0, 0.1, 9.0])
    expected = log_marginal_exact(log_f, votes, a).sum() - log_marginal_exact(log_f, votes, b).sum()
    assert_allclose(log_likelihood(terms, a)[0] - log_likelihood(terms, b)[0], expected, rtol=1e-10)
    assert_allclose(
        log_likelihood(terms, a)[1], approx_fprime(a, lambda x: log_marginal_exact(log_f, votes, x).sum()), rtol=1e-3
    )
    assert_allclose(log_likelihood(terms, a)[2], approx_fprime(a, lambda x: log_likelihood(terms, x)[1]), rtol=1e-4)


def test_without_evidence_the_prior_decides():
    mean = np.array([2.0, 30.0])
    one_vote = np.log(np.full((5, 1, 2), 0.5)), np.ones((5, 1))  # behaviours that answer alike
    assert_allclose(learnt(*one_vote, mean), mean, rtol=1e-3)
    assert_allclose(learnt(np.zeros((0, 1, 2)), np.zeros((0, 1)), mean), mean, rtol=1e-3)


def test_votes_that_are_affordable():
    rng = np.random.default_rng(0)
    votes = np.array([[1.0, 2.0], [0.5, 1.0], [0.0, 0.0], [400.0, 100.0], [3.0, 0.0]])
    items, chosen = exact_votes(votes, 3, rng)
    assert_array_equal(items, [0, 3, 4])
    assert_array_equal(chosen[[0, 2]], votes[[0, 4]])
    assert chosen[1].sum() == 61  # of 500: 62 have 2,016 terms
    assert 40 < chosen[1, 0] < 58  # four of five in the mean
    assert_array_equal(exact_votes(votes, 2, rng)[1][1], [400, 100])
    assert len(exact_votes(votes[1:3], 2, rng)[0]) == 0
    assert len(exact_votes(np.ones((3 * MAX_ITEMS, 1)), 2, rng)[0]) == MAX_ITEMS
    assert len(exact_votes(np.full((2000, 1), 190.0), 3, rng)[0]) == 512  # 1,953 terms each, of a million


@pytest.mark.parametrize("kind", ["dirichlet_process", "dirichlet_distribution"])
@pytest.mark.parametrize("concentration", [0.2, 3.0])
def test_prior_of_the_weights(kind, concentration):
    prior = weight_prior(kind, concentration, 7.0)

    def density(alpha):
        """In the logarithm of the sum and the log-odds of the sticks, or of the weights against the last."""
        weights = np.sort(alpha / alpha.sum())[::-1]
        value = gamma.logpdf(alpha.sum(), 1, scale=7.0) + np.log(alpha.sum())
        if kind == "dirichlet_distribution":
            return value + dirichlet.logpdf(weights, np.full(4, concentration)) + np.log(weights).sum()
        sticks = weights[:-1] / (1 - np.concatenate([[0], np.cumsum(weights)[:-2]]))
        return value + (beta.logpdf(sticks, 1, concentration) + np.log(sticks) + np.log1p(-sticks)).sum()

    a, b = np.array([0.5, 4.0, 2.0, 0.1]), np.array([1.0, 0.2, 7.0, 3.0])
    assert_allclose(prior(a)[0] - prior(b)[0], density(a) - density(b), rtol=1e-8)
    for alpha in (a, b):
        at = np.log(alpha)
        assert_allclose(prior(alpha)[1], approx_fprime(at, lambda u: prior(np.exp(u))[0], 1e-7), atol=1e-5)
        assert_allclose(prior(alpha)[2], approx_fprime(at, lambda u: prior(np.exp(u))[1], 1e-7), atol=1e-5)


def test_terms_without_a_behaviour_are_those_of_the_others():
    log_f, votes = simulated((1.0, 2.0, 4.0), n=20, n_votes=5, seed=3)
    terms, alpha, others = cast_terms(log_f, votes), np.array([0.7, 1.3, 3.0]), [0, 2]
    expected = log_marginal_exact(log_f, votes, alpha) - log_marginal_exact(log_f[:, :, others], votes, alpha[others])
    got = log_likelihood(terms, alpha)[0] - log_likelihood(without(terms, 1), alpha[others])[0]
    assert_allclose(got, expected.sum(), rtol=1e-10)


def test_behaviours_that_the_votes_do_not_need_are_left_out():
    log_f, votes = simulated((1.0, 2.0), seed=5)
    twice = log_f[:, :, [0, 1, 1, 0]]
    prior = weight_prior("dirichlet_process", 0.25, 4.0)
    terms = cast_terms(twice, np.minimum(votes, 3))
    alpha, _ = learn_concentration(terms, prior, np.ones(4))
    kept, left = needed(terms, prior, alpha, np.log(4))
    assert sorted(k % 3 > 0 for k in kept) == [False, True]  # one of 0 and 3, one of 1 and 2
    assert len(left) == 2
    assert len(needed(terms, prior, alpha, 1e6)[0]) == 1
    assert_array_equal(needed(terms, prior, alpha, -1e6)[0], np.arange(4))
