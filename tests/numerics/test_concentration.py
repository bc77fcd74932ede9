"""The learnt concentration against grids of the exact likelihood, and against the truth of simulated experts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, minimize
from scipy.stats import gamma

from sklearn_l2d._numerics._concentration import MAX_ITEMS, CastTerms, exact_items, learn_concentration, log_likelihood
from sklearn_l2d._numerics._marginal_likelihood import expand, log_marginal_exact, single_votes


def simulated(alpha, n=200, n_votes=20, seed=0, n_classes=6):
    """Votes of units, each with a mixture of its own, for known behaviours."""
    rng = np.random.default_rng(seed)
    f = rng.dirichlet(np.full(n_classes, 0.4), (n, len(alpha)))
    mixed = (rng.dirichlet(alpha, n)[:, :, None] * f).sum(1)
    votes = np.stack([rng.multinomial(n_votes, p / p.sum()) for p in mixed])
    return np.log(f).transpose(0, 2, 1), votes.astype(float)


def log_posterior(alpha, log_f, votes, mean):
    """Density of ln alpha by the likelihood of `score` and scipy's Gamma distribution."""
    prior = gamma.logpdf(alpha, 1, scale=mean) + np.log(alpha)
    return log_marginal_exact(log_f, votes, alpha).sum() + prior.sum()


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("alpha", [(1.0, 1.0), (0.3, 0.3), (5.0, 5.0), (1.0, 2.0, 4.0), (0.5, 1.0, 0.2)], ids=str)
def test_the_truth_of_200_experts_within_a_factor_of_two(alpha, seed):
    learnt = learn_concentration(*simulated(alpha, seed=seed), np.full(len(alpha), 50.0))
    assert (np.abs(np.log(learnt / alpha)) < np.log(2)).all()


def test_the_optimum_of_a_grid():
    log_f, votes = simulated((0.6, 2.0), n=40, n_votes=6, seed=4)
    mean = np.array([3.0, 5.0])
    grid = np.geomspace(0.05, 20, 30)
    values = [[log_posterior(np.array([a, b]), log_f, votes, mean) for b in grid] for a in grid]
    best = np.unravel_index(np.argmax(values), (30, 30))
    learnt = learn_concentration(log_f, votes, mean)
    assert (np.abs(np.log(learnt / grid[list(best)])) < np.log(grid[1] / grid[0])).all()
    assert log_posterior(learnt, log_f, votes, mean) >= np.max(values)


@pytest.mark.parametrize("seed", range(4))
def test_no_general_optimiser_finds_more(seed):
    rng = np.random.default_rng(seed)
    mean = rng.uniform(0.5, 30, 3)
    log_f, votes = simulated(rng.uniform(0.2, 4, 3), n=60, n_votes=5, seed=seed)
    learnt = learn_concentration(log_f, votes, mean)
    found = minimize(lambda u: -log_posterior(np.exp(u), log_f, votes, mean), np.log(learnt), tol=1e-10)
    assert log_posterior(learnt, log_f, votes, mean) > -found.fun - 1e-5


def test_derivatives_are_those_of_the_likelihood():
    log_f, votes = simulated((1.0, 2.0, 4.0), n=30, n_votes=4, seed=2)
    votes[::3, 0] += 3  # items of different sizes
    votes[1] = 0
    terms = [
        CastTerms(*expand(factors, lambda cast, vote: np.ones(cast.shape))[:2])
        for _, factors, _ in single_votes(log_f, votes)
    ]
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
    assert_allclose(learn_concentration(*one_vote, mean), mean, rtol=1e-3)
    assert_allclose(learn_concentration(np.zeros((0, 1, 2)), np.zeros((0, 1)), mean), mean, rtol=1e-3)


def test_items_that_cannot_be_exact_are_left_out():
    votes = np.array([[1.0, 2.0], [0.5, 1.0], [0.0, 0.0], [400.0, 0.0], [3.0, 0.0]])
    assert_array_equal(exact_items(votes, 3, np.arange(5)), [0, 4])  # 400 votes have 80,601 terms
    assert_array_equal(exact_items(votes, 2, np.arange(5)[::-1]), [0, 3, 4])
    assert len(exact_items(votes[1:3], 2, np.arange(2))) == 0
    many = np.ones((3 * MAX_ITEMS, 1))
    assert_array_equal(exact_items(many, 2, np.arange(len(many))[::-1]), np.arange(2 * MAX_ITEMS, 3 * MAX_ITEMS))
    heavy = np.full((200, 1), 190.0)  # 18,336 terms each, of a million
    assert len(exact_items(heavy, 3, np.arange(200))) == 54
