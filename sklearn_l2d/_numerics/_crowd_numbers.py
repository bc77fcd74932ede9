"""Latent numbers from the noisy answers of several annotators: EM for biases, variances and shared errors.

An answer of annotator m to item i is ``t_i + b_m + l_m' f_i + e``: the truth, a bias, what the annotators' errors have
in common (factors of the item, loadings of the annotator), and noise of variance ``s_m^2``.
"""

from typing import NamedTuple

import numpy as np


class Numbers(NamedTuple):
    """Parameters of the model.

    Attributes
    ----------
    center, spread : float
        Mean and variance of the truth.
    bias, variance : ndarrays of shape (M,)
        Of every annotator.
    loadings : ndarray of shape (M, r)
        What the errors of an annotator take from the factors.
    """

    center: float
    spread: float
    bias: np.ndarray
    variance: np.ndarray
    loadings: np.ndarray


def numbers_posterior(numbers, item, annotator, value, n_items, truth=None):
    """Truth and factors of items given the answers to them.

    Parameters
    ----------
    numbers : Numbers
    item, annotator : ndarrays of int of shape (L,)
        Item and annotator of every answer.
    value : ndarray of shape (L,)
        The answers.
    n_items : int
        Number of items.
    truth : ndarray of shape (n_items,), default=None
        Truth where it is known, else NaN. None knows none.

    Returns
    -------
    mean : ndarray of shape (n_items, 1 + r)
        Expected truth and factors.
    covariance : ndarray of shape (n_items, 1 + r, 1 + r)
    evidence : ndarray of shape (n_items,)
        Log-density of all that is known of every item.
    """
    n_latent = 1 + numbers.loadings.shape[1]
    design = np.concatenate([np.ones((len(numbers.bias), 1)), numbers.loadings], axis=1)[annotator]
    weight = 1 / numbers.variance[annotator]
    start = np.zeros(n_latent)
    start[0] = numbers.center
    residual = value - numbers.bias[annotator] - numbers.center
    before = np.diag(1 / np.append(numbers.spread, np.ones(n_latent - 1)))
    precision = np.tile(before, (n_items, 1, 1))
    np.add.at(precision, item, weight[:, None, None] * design[:, :, None] * design[:, None, :])
    pull = np.zeros((n_items, n_latent))
    np.add.at(pull, item, (weight * residual)[:, None] * design)
    covariance = np.linalg.inv(precision)
    shift = np.einsum("nij,nj->ni", covariance, pull)
    fit = np.bincount(item, weight * residual**2 - np.log(weight / (2 * np.pi)), n_items)
    log_det = np.linalg.slogdet(covariance)[1] - np.log(numbers.spread)
    evidence = (np.einsum("ni,ni->n", shift, pull) - fit + log_det) / 2
    mean = shift + start
    if truth is not None and (known := ~np.isnan(truth)).any():
        variance = covariance[known, 0, 0]
        gap = truth[known] - mean[known, 0]
        evidence[known] -= (gap**2 / variance + np.log(2 * np.pi * variance)) / 2
        gain = covariance[known, :, 0] / variance[:, None]
        mean[known] += gain * gap[:, None]
        covariance[known] -= gain[:, :, None] * covariance[known, 0][:, None, :]
    return mean, covariance, evidence


def update_numbers(item, annotator, value, mean, covariance, n_annotators, *, bias, prior, scale, width):
    """Maximise over the parameters, given the posterior of truth and factors.

    Parameters
    ----------
    item, annotator, value, mean, covariance
        As for, and from, `numbers_posterior`.
    n_annotators : int
        Number M of annotators.
    bias : bool
        Whether annotators have one.
    prior : float
        Pseudo-answers of variance `scale` for the noise, at zero for biases and loadings, in units of the noise; and
        pseudo-items of variance `width`.
    scale : float
        Variance that annotators have for want of answers.
    width : float
        Variance that the truth has for want of items.

    Returns
    -------
    numbers : Numbers
    log_prior : float
        Logarithm of the density of the parameters, up to a constant.
    """
    n_factors = mean.shape[1] - 1
    columns = [np.ones((len(item), 1))] * bias + [mean[item, 1:]]
    design = np.concatenate(columns, axis=1)
    size = design.shape[1]
    gap = value - mean[item, 0]
    # expected squares and products: of means, and of what is uncertain about truth and factors
    gram = np.tile(prior * np.eye(size), (n_annotators, 1, 1))
    products = design[:, :, None] * design[:, None, :]
    products[:, bias:, bias:] += covariance[item, 1:, 1:]
    np.add.at(gram, annotator, products)
    pull = np.zeros((n_annotators, size))
    cross = design * gap[:, None]
    cross[:, bias:] -= covariance[item, 1:, 0]
    np.add.at(pull, annotator, cross)
    weight = np.linalg.solve(gram + 1e-12 * np.eye(size), pull[:, :, None])[:, :, 0] if size else pull
    squares = np.bincount(annotator, gap**2 + covariance[item, 0, 0], n_annotators) - (weight * pull).sum(1)
    degrees = np.bincount(annotator, minlength=n_annotators) + prior + size
    variance = np.maximum(squares + prior * scale, 1e-12 * scale) / degrees
    log_prior = -0.5 * (
        (prior + size) * np.log(variance).sum() + (prior * (scale + (weight**2).sum(1)) / variance).sum()
    )
    center = float(mean[:, 0].mean())
    squares = float((covariance[:, 0, 0] + (mean[:, 0] - center) ** 2).sum())
    spread = (squares + prior * width) / (len(mean) + prior)
    log_prior -= prior * (np.log(spread) + width / spread) / 2
    numbers = Numbers(
        center,
        spread,
        weight[:, 0] if bias else np.zeros(n_annotators),
        variance,
        weight[:, bias:] if n_factors else np.zeros((n_annotators, 0)),
    )
    return numbers, float(log_prior)
