"""Dirichlet concentration of the mixtures of items, learnt from vote counts (L2D-Clusters Eq. 19 to 23, corrected).

The paper maximises the bound of the E-step, with a wrong sign. The bound is no guide: it is the looser, the wider the
mixtures of the items are, so that its maximum can be far above that of the likelihood. Here the likelihood is exact.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, polygamma, psi

from ._marginal_likelihood import MAX_EXACT_TERMS, expand, n_exact_terms, single_votes

MAX_TERMS, MAX_ITEMS = 1_000_000, 5_000  # of all items together: thousands say as much of K numbers as millions
_SCALES = np.geomspace(1e-2, 1e2, 9)  # of the mean of the prior, where the search starts
_MAX_STEPS, _TOLERANCE = 100, 1e-6  # nats by which a step may still gain


class CastTerms(NamedTuple):
    """Items of equal numbers of votes: ways in which the behaviours may have cast them, and what each is worth.

    Attributes
    ----------
    cast : ndarray of shape (T, K), int
        Votes that each behaviour has cast.
    weight : ndarray of shape (n, T)
        Probability of the votes of an item if they were cast so, times the number of orders, up to a factor per item.
    """

    cast: np.ndarray
    weight: np.ndarray


def exact_items(votes, n_components, order):
    """First items in an order whose exact likelihood is affordable, one by one and together.

    Parameters
    ----------
    votes : ndarray of shape (n, D)
        Votes of the items for their distinct classes.
    n_components : int
        Number of behaviours K.
    order : ndarray of shape (n,), int
        Items, those to take first in front.

    Returns
    -------
    items : ndarray of int
        Sorted positions. Empty if no item has votes that are whole numbers and few enough.
    """
    votes = votes[order]
    totals = votes.sum(1)
    able = (totals > 0) & (votes == np.round(votes)).all(1)
    distinct, place = np.unique(np.where(able, totals, 0).astype(int), return_inverse=True)
    terms = np.array([n_exact_terms(int(total), n_components) for total in distinct], dtype=float)[place]
    able &= terms <= MAX_EXACT_TERMS
    return np.sort(order[able][:MAX_ITEMS][np.cumsum(terms[able][:MAX_ITEMS]) <= MAX_TERMS])


def learn_concentration(log_f, votes, mean):
    """Concentration of the largest posterior density of its logarithm, under the exact likelihood and a Gamma prior.

    The votes of an item have the likelihood ``sum_n g_n DirMult(n; alpha)``, over the numbers n of votes that the
    behaviours have cast. The g_n do not depend on alpha and are computed once. Each entry of alpha has a Gamma prior of
    shape 1, ``ln p = ln alpha - alpha / mean`` in terms of its logarithm, whose mode is `mean`.

    Newton steps are taken in ln alpha, which keeps alpha positive, with the curvature made positive definite and the
    step halved until it gains. The search starts at the best of some multiples of `mean`.

    Parameters
    ----------
    log_f : ndarray of shape (n, D, K)
        Log-probability that each behaviour gives to the d-th distinct class of an item.
    votes : ndarray of shape (n, D)
        Whole numbers of votes for that class; 0 is padding.
    mean : ndarray of shape (K,)
        Mean of the prior.

    Returns
    -------
    alpha : ndarray of shape (K,)
    """
    terms = [CastTerms(*expand(factors, _once)[:2]) for _, factors, _ in single_votes(log_f, votes)]
    start = max(_SCALES, key=lambda scale: _posterior(terms, scale * mean, mean)[0])
    alpha = start * mean
    value, gradient, curvature = _posterior(terms, alpha, mean)
    for _ in range(_MAX_STEPS):
        step, gain = _ascent(gradient, curvature)
        if gain < _TOLERANCE:
            break
        for _ in range(60):
            trial = alpha * np.exp(step)
            found = _posterior(terms, trial, mean)
            if found[0] >= value + 1e-4 * gradient @ step:
                break
            step = step / 2
        else:
            break  # rounding hides what is left
        alpha, (value, gradient, curvature) = trial, found
    return alpha


def _once(cast, vote):
    return np.ones(cast.shape)


def _posterior(terms, alpha, mean):
    """Log posterior density of ln alpha up to a constant, its gradient and its second derivatives."""
    value, slope, curvature = log_likelihood(terms, alpha)
    gradient = alpha * slope + 1 - alpha / mean
    curvature = curvature * np.outer(alpha, alpha) + np.diag(alpha * slope - alpha / mean)
    return value + (np.log(alpha) - alpha / mean).sum(), gradient, curvature


def log_likelihood(terms, alpha):
    """Exact log-likelihood of all items up to a constant, with its first and second derivatives in alpha.

    Parameters
    ----------
    terms : list of CastTerms
        Items by their numbers of votes.
    alpha : ndarray of shape (K,)
        Concentration.

    Returns
    -------
    value : float
    gradient : ndarray of shape (K,)
    curvature : ndarray of shape (K, K)
    """
    value, gradient, curvature = 0.0, np.zeros(len(alpha)), np.zeros((len(alpha), len(alpha)))
    whole = alpha.sum()
    for cast, weight in terms:
        n_items, total = len(weight), cast[0].sum()
        log_urn = (gammaln(alpha + cast) - gammaln(alpha)).sum(1) + gammaln(whole) - gammaln(whole + total)
        with np.errstate(divide="ignore"):  # a way of casting that cannot be has weight 0
            log_terms = np.log(weight) + log_urn
        log_sum = logsumexp(log_terms, axis=1)
        posterior = np.exp(log_terms - log_sum[:, None])
        slope = psi(alpha + cast) - psi(alpha)  # of each way
        mean_slope = posterior @ slope
        share = posterior.sum(0)
        value += log_sum.sum()
        gradient += mean_slope.sum(0) + n_items * (psi(whole) - psi(whole + total))
        curvature += slope.T @ (share[:, None] * slope) - mean_slope.T @ mean_slope
        curvature += np.diag(share @ (polygamma(1, alpha + cast) - polygamma(1, alpha)))
        curvature += n_items * (polygamma(1, whole) - polygamma(1, whole + total))
    return value, gradient, curvature


def _ascent(gradient, curvature):
    """Newton step uphill, at most a factor e^2 for any entry, and what the quadratic model promises of it."""
    steepness, axes = np.linalg.eigh(-curvature)
    steepness = np.maximum(np.abs(steepness), 1e-8 * max(1.0, np.abs(steepness).max()))
    step = axes @ ((axes.T @ gradient) / steepness)
    return step * min(1.0, 2 / max(np.abs(step).max(), 1e-300)), gradient @ step / 2
