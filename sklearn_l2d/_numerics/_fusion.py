"""One posterior of the truth from a classifier and any number of answers, calibrated for every number of answers."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from ._answer_model import sum_by_item

_N_ORDERS = 3  # in which the answers of an item are taken one after the other
_PENALTY = 2.0  # on the squared logarithms of the exponents a and b
_CORRELATION, _SPREAD = 0.25, 0.12  # of people in published sets: center and scale of the prior


class Exponents(NamedTuple):
    """How much the classifier and the answers count in the posterior.

    Attributes
    ----------
    prior : float
        Exponent a of the classifier's probabilities, once there are answers.
    answers : float
        Exponent b of the likelihood of the answers.
    correlation : float
        Correlation r, given the truth, of the answers to an item: what is hard for one is hard for all. Where T answer,
        all evidence is divided by Kish's design effect ``1 + r (T - 1)``, the classifier's too, so that the most
        probable class is that of independent answers and only the confidence is less.
    """

    prior: float = 1.0
    answers: float = 1.0
    correlation: float = 0.0


def fuse(log_prior, item, log_likelihood, exponents):
    """Log posterior ``(a ln p(y | x) + b sum_j ln p(answer_j | y)) / (1 + r (T - 1)) - const`` given T answers.

    Parameters
    ----------
    log_prior : ndarray of shape (n_items, n_classes)
        Log-probabilities of the classifier.
    item : ndarray of int of shape (n_answers,)
        Item of every answer.
    log_likelihood : ndarray of shape (n_answers, n_classes)
        Of every answer, as returned by `answer_log_likelihood`.
    exponents : Exponents
        As returned by `fit_exponents`; ``Exponents()`` is Bayes' rule for independent answers.

    Returns
    -------
    log_posterior : ndarray of shape (n_items, n_classes)
        An item without answers keeps the classifier's probabilities.
    """
    size = np.bincount(item, minlength=len(log_prior))
    return posterior(log_prior, sum_by_item(log_likelihood, item, len(log_prior)), size, exponents)


def posterior(log_prior, evidence, n_answers, exponents):
    """As `fuse`, from the sum `evidence` (n_items, n_classes) of the log-likelihoods of `n_answers` (n_items,)."""
    size = n_answers[:, None]
    design = 1 + exponents.correlation * (size - 1)
    fused = (exponents.prior * log_prior + exponents.answers * evidence) / np.where(size > 0, design, 1.0)
    return log_softmax(np.where(size > 0, fused, log_prior), axis=1)


def fit_exponents(log_prior, item, log_likelihood, truth, seed):
    """Exponents by penalised maximum likelihood of the truth, given the first one, two, three ... answers to an item.

    The answers to an item are taken in a few random orders. Every item counts alike, and its first T answers in
    proportion to 1 / T, so that few answers matter as much as many. The correlation has a Cauchy prior around .25 of
    scale .12: few items of a fit were answered by several people, and would hardly tell it from 0.

    Parameters
    ----------
    log_prior : ndarray of shape (n_items, n_classes)
        Log-probabilities of the classifier on items that it was not fitted on.
    item : ndarray of int of shape (n_answers,)
        Item of every answer.
    log_likelihood : ndarray of shape (n_answers, n_classes)
        From a model without the answer itself: `left_out` of `answer_log_likelihood`.
    truth : ndarray of shape (n_items, n_classes)
        Distribution of the true class, one-hot if it is known, times the weight of the item.
    seed : int
        Seed of the orders.

    Returns
    -------
    exponents : Exponents
    """
    rng = np.random.default_rng(seed)
    parts = [_prefixes(item, log_likelihood, rng) for _ in range(_N_ORDERS)]
    of, size, evidence = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    weight = 1 / size
    weight /= np.bincount(of, weight, len(log_prior))[of]
    prior, target = log_prior[of], truth[of] * weight[:, None]
    weight *= truth.sum(1)[of]

    def loss(point):
        a, b, design = *np.exp(point[:2]), 1 + point[2] * (size - 1)
        told, heard = a / design[:, None] * prior, b / design[:, None] * evidence
        log_posterior = log_softmax(told + heard, axis=1)
        error = weight[:, None] * np.exp(log_posterior) - target
        by_prior, by_answers = (error * told).sum(1), (error * heard).sum(1)
        slope = np.array([by_prior.sum(), by_answers.sum(), -(by_prior + by_answers) @ ((size - 1) / design)])
        logs, far = np.append(point[:2], 0.0), (point[2] - _CORRELATION) / _SPREAD
        slope += 2 * _PENALTY * logs
        slope[2] += 2 * far / (1 + far**2) / _SPREAD
        return _PENALTY * logs @ logs + np.log1p(far**2) - (target * log_posterior).sum(), slope

    start, bounds = [0.0, 0.0, _CORRELATION], [(-6, 3), (-6, 3), (0, 1)]
    best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Exponents(*np.exp(best[:2]).tolist(), float(best[2]))


def _prefixes(item, log_likelihood, rng):
    """Item, size and summed log-likelihood of the first 1, 2, 3 ... answers to every item, in a random order."""
    order = np.lexsort((rng.random(len(item)), item))
    item, total = item[order], np.cumsum(log_likelihood[order], axis=0)
    first = np.searchsorted(item, item)
    before = np.where(first[:, None] > 0, total[first - 1], 0.0) if len(item) else total
    return item, np.arange(len(item)) - first + 1, total - before
