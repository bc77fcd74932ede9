import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from sklearn_l2d._numerics._answers import (
    answer_likelihood,
    competence_posterior,
    error_nats,
    expected_likelihood,
    fit_temperature,
    log_likelihood_of_answers,
    temper,
)

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


def test_the_mean_is_shrunk_twice_and_the_variance_falls_with_data():
    mean, variance = competence_posterior(RIGHT, SEEN, 0.7, (3.0, 2.5))
    for expert, (right, seen) in enumerate(zip(RIGHT, SEEN, strict=True)):
        own = (right.sum() + 3.0 * 0.7) / (seen.sum() + 3.0)
        assert_allclose(mean[expert], (right + 2.5 * own) / (seen + 2.5), rtol=1e-12)
    more = competence_posterior(100 * RIGHT, 100 * SEEN, 0.7, (3.0, 2.5))[1]
    assert (more[SEEN > 0] < variance[SEEN > 0]).all()


def test_answers_by_hand():
    codes = np.array([[0, 2, -1], [1, -1, 1]], dtype=np.int8)
    absent = np.array([[np.nan, np.nan, 0.592], [np.nan, 0.01, np.nan]])
    likelihood = answer_likelihood(3, 0.02)
    got = np.exp(log_likelihood_of_answers(codes, np.array([0, 1]), likelihood, absent))
    np.testing.assert_allclose(got, [[0.98, 0.01, 0.592], [0.98, 0.01, 0.98]])
    unknown = log_likelihood_of_answers(codes, np.array([0, 1]), likelihood)
    assert np.exp(unknown[0, 2]) == pytest.approx(1 / 3)


def test_an_expected_answer_equals_the_sum_over_answers():
    rng = np.random.default_rng(6)
    answers, y = rng.dirichlet(np.ones(4), size=(5, 2)), rng.integers(0, 4, 5)
    likelihood = np.full((4, 4), 0.1 / 3)
    np.fill_diagonal(likelihood, 0.9)
    expected = [[sum(answers[i, k, c] * likelihood[y[i], c] for c in range(4)) for k in range(2)] for i in range(5)]
    np.testing.assert_allclose(expected_likelihood(answers, y, answer_likelihood(4, 0.1)), expected)
    one = expected_likelihood(answers[:, 0], y, answer_likelihood(4, 0.1))
    np.testing.assert_allclose(one, np.array(expected)[:, 0])


def test_costs_are_in_units_of_one_error():
    cost = np.array([[0.0, 2.0, 0.5], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    likelihood = answer_likelihood(3, 0.02, cost)
    nats = np.log(0.98) - np.log(0.01)
    assert error_nats(3, 0.02) == pytest.approx(nats)
    np.testing.assert_allclose(np.log(likelihood), np.log(0.98) - nats * cost)
    assert likelihood[2, 0] == pytest.approx(likelihood[2, 2])  # a mistake that is free


def test_temperature_is_the_most_likely_one():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(400, 3)) * 2
    y = (np.cumsum(np.exp(log_softmax(logits / 3, axis=1)), axis=1) > rng.random((400, 1))).argmax(1)

    def loss(temperature):
        return -np.average(log_softmax(logits / temperature, axis=1)[np.arange(400), y])

    expected = minimize_scalar(loss, bounds=(0.5, 10), method="bounded").x
    assert fit_temperature(log_softmax(logits, axis=1), y) == pytest.approx(expected, rel=1e-3)
    assert expected == pytest.approx(3, abs=0.6)
    np.testing.assert_allclose(temper(logits, 3.0), log_softmax(logits / 3, axis=1))
