"""Dirichlet concentration of the mixtures of items, learnt from vote counts (L2D-Clusters Eq. 19 to 23, corrected).

The paper maximises the bound of the E-step, with a wrong sign. The bound is no guide: it is the looser, the wider the
mixtures of the items are, so that its maximum can be far above that of the likelihood. Here the likelihood is exact.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, polygamma, psi

from ._marginal_likelihood import expand, n_exact_terms, single_votes

MAX_TERMS, MAX_ITEMS = 1_000_000, 5_000  # of all items together: thousands say as much of K numbers as millions
_MAX_ITEM_TERMS = 2_000  # of an item, so that there are hundreds of items
_SCALES = np.geomspace(1e-2, 1e2, 9)  # of the given start, where the search begins
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


def whole_rows(votes):
    """Items (n,) that have votes (n, D), all of them in whole numbers."""
    return (votes.sum(1) > 0) & (votes == np.round(votes)).all(1)


def exact_votes(votes, n_components, rng):
    """Items and votes of them whose exact likelihood is affordable, drawn at random where there are too many.

    The votes of an item are exchangeable, so that some of them have the same concentration as all.

    Parameters
    ----------
    votes : ndarray of shape (n, D)
        Votes of the items for their distinct classes.
    n_components : int
        Number of behaviours K.
    rng : Generator
        Of the draws.

    Returns
    -------
    items : ndarray of shape (m,), int
        Sorted positions. Empty if no item has votes in whole numbers.
    votes : ndarray of shape (m, D), int
        Of these items.
    """
    most = 1
    while n_exact_terms(most + 1, n_components) <= _MAX_ITEM_TERMS and most < MAX_TERMS:
        most += 1
    items = rng.permutation(np.flatnonzero(whole_rows(votes)))[:MAX_ITEMS]
    totals = np.minimum(votes[items].sum(1).astype(int), most)
    distinct, place = np.unique(totals, return_inverse=True)
    terms = np.array([n_exact_terms(int(total), n_components) for total in distinct], dtype=int)[place]
    items = np.sort(items[np.cumsum(terms) <= MAX_TERMS])
    chosen = votes[items].astype(int)
    for row in np.flatnonzero(chosen.sum(1) > most):
        chosen[row] = rng.multivariate_hypergeometric(chosen[row], most)
    return items, chosen


def cast_terms(log_f, votes):
    """Expand the likelihood of items, ``sum_n g_n DirMult(n; alpha)``: the g_n do not depend on alpha.

    Parameters
    ----------
    log_f : ndarray of shape (n, D, K)
        Log-probability that each behaviour gives to the d-th distinct class of an item.
    votes : ndarray of shape (n, D)
        Whole numbers of votes for that class; 0 is padding.

    Returns
    -------
    terms : list of CastTerms
        Items by their numbers of votes.
    """
    return [CastTerms(*expand(factors, _once)[:2]) for _, factors, _ in single_votes(log_f, votes)]


def _once(cast, vote):
    return np.ones(cast.shape)


def without(terms, k):
    """The terms in which behaviour k has cast nothing: those of the other behaviours alone."""
    left = []
    for cast, weight in terms:
        idle = cast[:, k] == 0
        left.append(CastTerms(np.delete(cast[idle], k, axis=1), weight[:, idle]))
    return left


def log_likelihood(terms, alpha):
    """Exact log-likelihood of all items up to a constant, with its first and second derivatives in alpha.

    Parameters
    ----------
    terms : list of CastTerms
        As returned by `cast_terms`.
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
        urn = np.exp(log_urn - log_urn.max())
        likelihood = np.maximum(weight @ urn, 1e-300)
        slope = psi(alpha + cast) - psi(alpha)  # of each way
        mean_slope = weight @ (urn[:, None] * slope) / likelihood[:, None]
        share = urn * ((1 / likelihood) @ weight)
        value += np.log(likelihood).sum() + n_items * log_urn.max()
        gradient += mean_slope.sum(0) + n_items * (psi(whole) - psi(whole + total))
        curvature += slope.T @ (share[:, None] * slope) - mean_slope.T @ mean_slope
        curvature += np.diag(share @ (polygamma(1, alpha + cast) - polygamma(1, alpha)))
        curvature += n_items * (polygamma(1, whole) - polygamma(1, whole + total))
    return value, gradient, curvature


def gamma_prior(mean):
    """Independent Gamma priors of shape 1: a function of alpha with the density of ln alpha and its derivatives.

    ``ln p = ln alpha - alpha / mean`` has its mode at the mean.
    """

    def prior(alpha):
        return (np.log(alpha) - alpha / mean).sum(), 1 - alpha / mean, np.diag(-alpha / mean)

    return prior


def weight_prior(kind, concentration, mean):
    """Prior of the weights ``alpha / sum(alpha)``, with a Gamma prior of shape 1 of the sum.

    Parameters
    ----------
    kind : {"dirichlet_process", "dirichlet_distribution"}
        Stick-breaking, ``Beta(1, concentration)`` for the share of each behaviour in what larger ones leave, the last
        one taking the rest; or a Dirichlet distribution with this parameter for every behaviour.
    concentration : float
        Of the weights.
    mean : float
        Of the sum.

    Returns
    -------
    prior : callable
        As that of `gamma_prior`, for any number of behaviours.
    """

    def prior(alpha):
        whole, share = alpha.sum(), alpha / alpha.sum()
        spread = np.diag(share) - np.outer(share, share)
        value, gradient, curvature = np.log(whole) - whole / mean, share - alpha / mean, spread - np.diag(alpha / mean)
        counts = np.full(len(alpha), float(concentration))
        if kind == "dirichlet_process":
            order = np.argsort(-alpha, kind="stable")
            counts[order[:-1]] = 1.0
            for place in range(len(alpha) - 1):
                left = order[place:]  # ln v = ln alpha - ln of what is left; (1 - v) ** concentration telescopes
                part = np.zeros(len(alpha))
                part[left] = alpha[left] / alpha[left].sum()
                value -= np.log(alpha[left].sum())
                gradient, curvature = gradient - part, curvature - np.diag(part) + np.outer(part, part)
            n_relative = concentration
        else:
            n_relative = concentration * len(alpha)
        value += counts @ np.log(alpha) - n_relative * np.log(whole)
        return value, gradient + counts - n_relative * share, curvature - n_relative * spread

    return prior


def learn_concentration(terms, prior, start, scales=_SCALES):
    """Concentration of the largest posterior density of its logarithm, under the exact likelihood.

    Newton steps are taken in ln alpha, which keeps alpha positive, with the curvature made positive definite and the
    step halved until it gains.

    Parameters
    ----------
    terms : list of CastTerms
        As returned by `cast_terms`.
    prior : callable
        As returned by `gamma_prior` or `weight_prior`.
    start : ndarray of shape (K,)
        Where the search begins, multiplied by the best of the `scales`.
    scales : array-like of float
        Factors that are tried.

    Returns
    -------
    alpha : ndarray of shape (K,)
    value : float
        Log posterior density, up to a constant of the items.
    """

    def posterior(alpha):
        value, slope, curvature = log_likelihood(terms, alpha)
        at_prior = prior(alpha)
        curvature = curvature * np.outer(alpha, alpha) + np.diag(alpha * slope)
        return value + at_prior[0], alpha * slope + at_prior[1], curvature + at_prior[2]

    alpha = start * max(scales, key=lambda scale: posterior(scale * start)[0])
    value, gradient, curvature = posterior(alpha)
    for _ in range(_MAX_STEPS):
        step, gain = _ascent(gradient, curvature)
        if gain < _TOLERANCE:
            break
        for _ in range(60):
            trial = np.clip(alpha * np.exp(step), 1e-8, 1e8)
            found = posterior(trial)
            if found[0] >= value + 1e-4 * gradient @ step:
                break
            step = step / 2
        else:
            break  # rounding hides what is left
        alpha, (value, gradient, curvature) = trial, found
    return alpha, value


def needed(terms, prior, alpha, least):
    """Behaviours without which the votes are less likely, and the concentration that is learnt for them.

    The behaviour that the votes need least is left out and the concentration learnt anew, as long as this costs no
    more than some nats.

    Parameters
    ----------
    terms, prior
        As in `learn_concentration`.
    alpha : ndarray of shape (K,)
        Learnt concentration.
    least : float
        Nats that each behaviour must bring.

    Returns
    -------
    kept : ndarray of int
        Positions, at least one.
    alpha : ndarray
        Of these.
    """
    kept, value = np.arange(len(alpha)), log_likelihood(terms, alpha)[0]
    while len(kept) > 1:
        trials = []
        for k in range(len(kept)):
            fewer, start = without(terms, k), np.delete(alpha, k)
            found = learn_concentration(fewer, prior, start * alpha.sum() / start.sum(), scales=[1.0])[0]
            trials.append((log_likelihood(fewer, found)[0], -k, fewer, found))
        best = max(trials, key=lambda trial: trial[:2])
        if value - best[0] > least:
            break
        value, terms, alpha = best[0], best[2], best[3]
        kept = np.delete(kept, -best[1])
    return kept, alpha


def _ascent(gradient, curvature):
    """Newton step uphill, at most a factor e^2 for any entry, and what the quadratic model promises of it."""
    steepness, axes = np.linalg.eigh(-curvature)
    steepness = np.maximum(np.abs(steepness), 1e-8 * max(1.0, np.abs(steepness).max()))
    step = axes @ ((axes.T @ gradient) / steepness)
    return step * min(1.0, 2 / max(np.abs(step).max(), 1e-300)), gradient @ step / 2
