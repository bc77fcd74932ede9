"""Moments of the competence of experts, against integrals of the model that they come from."""

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from sklearn_l2d._numerics._competence import competence_posterior
from sklearn_l2d._numerics._profiles import shrunken_correctness

RIGHT = np.array([[3.0, 0.0, 1.0], [0.0, 0.0, 0.0], [10.0, 2.0, 0.0]])
SEEN = np.array([[4.0, 0.0, 5.0], [0.0, 0.0, 0.0], [10.0, 2.0, 3.0]])


def test_a_flat_prior_gives_the_moments_of_the_beta_posterior():
    mean, variance = competence_posterior(RIGHT, SEEN, 0.4, (np.inf, 5.0))
    posterior = stats.beta(RIGHT + 2, SEEN - RIGHT + 3)
    assert_allclose(mean, posterior.mean(), rtol=1e-12)
    assert_allclose(variance, posterior.var(), rtol=1e-12)


def test_two_levels_give_the_moments_of_the_mixture_of_betas():
    center, strengths = 0.7, (3.0, 2.5)
    mean, variance = competence_posterior(RIGHT, SEEN, center, strengths)
    for expert in range(3):
        n_right, n = RIGHT[expert].sum(), SEEN[expert].sum()
        own = stats.beta(3.0 * center + n_right, 3.0 * (1 - center) + n - n_right)
        # equally probable values of the expert's own correctness
        grid = own.ppf((np.arange(20000) + 0.5) / 20000)[:, None]
        posterior = stats.beta(RIGHT[expert] + 2.5 * grid, SEEN[expert] - RIGHT[expert] + 2.5 * (1 - grid))
        first, second = posterior.mean().mean(0), (posterior.var() + posterior.mean() ** 2).mean(0)
        assert_allclose(mean[expert], first, rtol=1e-6)
        assert_allclose(variance[expert], second - first**2, rtol=1e-4)


def test_the_mean_is_the_shrunken_correctness_and_the_variance_falls_with_data():
    mean, variance = competence_posterior(RIGHT, SEEN, 0.7, (3.0, 2.5))
    assert_allclose(mean, shrunken_correctness(RIGHT, SEEN, 0.7, (3.0, 2.5)), rtol=1e-12)
    more = competence_posterior(100 * RIGHT, 100 * SEEN, 0.7, (3.0, 2.5))[1]
    assert (more[SEEN > 0] < variance[SEEN > 0]).all()
