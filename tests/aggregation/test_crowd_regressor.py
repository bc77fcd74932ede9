"""Numbers: limits in closed form, the evidence by brute force, recovery, and errors in common."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from sklearn_l2d._numerics._crowd_numbers import Numbers, numbers_posterior
from sklearn_l2d.aggregation import CrowdRegressor


def simulate(n_items=1000, sigma=(0.3, 0.6, 1.0, 2.0, 0.5), bias=(0, 0, 0, 0, 0), missing=0.25, random_state=0):
    rng = np.random.default_rng(random_state)
    truth = rng.normal(5, 2, n_items)
    answers = truth[:, None] + bias + rng.normal(size=(n_items, len(sigma))) * sigma
    return np.where(rng.random(answers.shape) < missing, np.nan, answers), truth


def answers_of(table):
    item, annotator = np.nonzero(~np.isnan(table))
    return item, annotator, table[item, annotator]


def test_known_variances_weigh_by_precision():
    answers, _ = simulate(50)
    variance = np.array([0.09, 0.36, 1, 4, 0.25])
    vague = Numbers(0.0, 1e12, np.zeros(5), variance, np.zeros((5, 0)))
    mean, covariance, _ = numbers_posterior(vague, *answers_of(answers), 50)
    weight = np.where(np.isnan(answers), 0, 1 / variance)
    told = weight.sum(1) > 0
    expected = np.nansum(answers * weight, 1)[told] / weight.sum(1)[told]
    assert_allclose(mean[told, 0], expected, rtol=1e-6)
    assert_allclose(covariance[told, 0, 0], 1 / weight.sum(1)[told], rtol=1e-6)


@pytest.mark.parametrize("known", [False, True])
def test_posterior_by_brute_force(known):
    """All that is known of an item is jointly Gaussian."""
    rng = np.random.default_rng(0)
    loadings, variance, bias = rng.normal(size=(4, 2)), rng.uniform(0.5, 2, 4), rng.normal(size=4)
    model = Numbers(1.5, 2.5, bias, variance, loadings)
    answers = np.where(rng.random((6, 4)) < 0.3, np.nan, rng.normal(size=(6, 4)))
    truth = np.where(np.arange(6) % 2 == 0, rng.normal(size=6), np.nan) if known else np.full(6, np.nan)
    mean, covariance, evidence = numbers_posterior(model, *answers_of(answers), 6, truth)
    design = np.column_stack([np.ones(4), loadings])
    prior = np.diag([2.5, 1, 1])
    for i in range(6):
        seen = ~np.isnan(answers[i])
        rows = design[seen]
        joint = np.append(rows, np.eye(3)[:1], axis=0) if not np.isnan(truth[i]) else rows
        noise = np.append(variance[seen], 0)[: len(joint)]
        told = np.append(answers[i, seen], truth[i])[: len(joint)]
        expected = np.append(1.5 + bias[seen], 1.5)[: len(joint)]
        spread = joint @ prior @ joint.T + np.diag(noise)
        gain = prior @ joint.T @ np.linalg.pinv(spread)
        assert_allclose(mean[i], [1.5, 0, 0] + gain @ (told - expected), atol=1e-8)
        assert_allclose(covariance[i], prior - gain @ joint @ prior, atol=1e-8)
        if len(joint):
            assert_allclose(evidence[i], multivariate_normal(expected, spread).logpdf(told))


def test_variances_and_biases_are_recovered():
    answers, truth = simulate(3000, bias=(0.5, -0.5, 0, 1, -1))
    model = CrowdRegressor(bias=True).fit(answers)
    assert_allclose(model.sigma_, [0.3, 0.6, 1.0, 2.0, 0.5], rtol=0.1)
    assert_allclose(model.bias_ - model.bias_.mean(), [0.5, -0.5, 0, 1, -1], atol=0.1)
    errors = [
        np.mean((CrowdRegressor(method, bias=method == "gaussian").fit(answers).predict(answers) - truth) ** 2)
        for method in ("mean", "gaussian")
    ]
    assert errors[1] < errors[0] / 2


def test_the_standard_deviation_is_that_of_the_error():
    answers, truth = simulate(3000)
    for method in ("gaussian", "low_rank", "mean"):
        mean, std = CrowdRegressor(method).fit(answers).predict(answers, return_std=True)
        assert_allclose(np.sqrt(np.mean(((mean - truth) / std) ** 2)), 1, atol=0.15 if method != "mean" else 0.6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["gaussian", "low_rank"])
@pytest.mark.parametrize("bias", [False, True])
def test_the_objective_never_falls(method, bias):
    answers, truth = simulate(60)
    for y in (None, np.where(np.arange(60) < 20, truth, np.nan)):
        history = CrowdRegressor(method, bias=bias, tol=0, max_iter=60).fit(answers, y).history_
        assert np.diff(history).min() > -1e-8


def test_people_who_err_alike_are_not_independent():
    rng = np.random.default_rng(0)
    truth, shared = rng.normal(0, 2, 1000), rng.normal(0, 1, (1000, 1))
    copies = truth[:, None] + shared + rng.normal(0, 0.2, (1000, 4))
    answers = np.concatenate([copies, truth[:, None] + rng.normal(0, 0.7, (1000, 4))], axis=1)
    errors = {
        method: np.mean((CrowdRegressor(method).fit(answers).predict(answers) - truth) ** 2)
        for method in ("mean", "gaussian", "low_rank")
    }
    assert errors["gaussian"] > errors["mean"]  # which is how plain precision goes wrong
    assert errors["low_rank"] < 0.65 * errors["mean"]


def test_known_truth_tells_biases():
    answers, truth = simulate(500, bias=(1, 1, 1, 1, 1))
    model = CrowdRegressor(bias=True).fit(answers, truth)
    assert_allclose(model.bias_, 1, atol=0.3)
    residual = answers - truth[:, None]
    assert_allclose(model.bias_, np.nansum(residual, 0) / ((~np.isnan(residual)).sum(0) + 1))


def test_annotators_come_by_name():
    answers, _ = simulate(200)
    table = pd.DataFrame(answers, columns=list("abcde"))
    model = CrowdRegressor().fit(table)
    assert_allclose(model.predict(table[list("edcba")]), model.predict(table))
    lone = model.predict(table.assign(c=np.nan, new=np.nan).drop(columns="c"))
    assert_allclose(lone, model.predict(table.assign(c=np.nan)))
    mean, std = model.predict(pd.DataFrame({"new": [3.0, np.nan]}), return_std=True)
    assert mean[1] == model.center_
    assert std[0] < std[1] == model.spread_
    one = [model.predict(table.iloc[[i]])[0] for i in range(5)]
    assert_allclose(one, model.predict(table)[:5])


def test_what_is_no_number_is_refused():
    with pytest.raises(ValueError, match="holds no answer"):
        CrowdRegressor().fit([[np.nan, np.nan]])
    with pytest.raises(ValueError, match="inconsistent"):
        CrowdRegressor().fit([[1.0, 2.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="expecting 2 features"):
        CrowdRegressor().fit([[1.0, 2.0]]).predict([[1.0]])
