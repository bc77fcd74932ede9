"""Held-out likelihood of vote counts, ln Pr(t | x, alpha) (L2D-Clusters Eq. 45), exact or by fixed draws.

The multinomial coefficient is left out: it does not depend on the model.
"""

from functools import lru_cache
from math import comb

import numpy as np
from scipy.special import betaincinv, binom, logsumexp
from scipy.stats import qmc

MAX_EXACT_TERMS = 20_000
N_DRAWS = 1024
_BLOCK = 4_000_000  # floats in one block of items, about 32 MB


def check_alpha(alpha, n_clusters):
    """Concentration (n_clusters,) for the parameter `alpha`, a number or one number per cluster."""
    values = np.asarray(alpha, dtype=float)
    if values.ndim > 1 or (values.ndim == 1 and len(values) != n_clusters):
        raise ValueError(
            f"alpha has shape {values.shape}; pass a number, or one number for each of n_clusters={n_clusters}."
        )
    if not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"alpha={alpha!r} has entries that are not positive and finite; raise them above 0.")
    return np.broadcast_to(values, (n_clusters,)).copy()


def n_exact_terms(n_votes, n_components):
    """Number of terms that the exact likelihood of an item with `n_votes` votes expands into."""
    return comb(n_votes + n_components - 1, n_components - 1)


def is_whole(votes):
    """Whether all votes are whole numbers."""
    return bool((votes == np.round(votes)).all())


def likelihood_method(votes, n_components):
    """Say "exact" where the expansion of the item with the most votes is affordable and votes are whole, else "sobol".

    Parameters
    ----------
    votes : ndarray of shape (n, D)
        Votes of the items for their distinct classes.
    n_components : int
        Number of behaviours K.
    """
    n_terms = n_exact_terms(int(np.ceil(votes.sum(1).max())), n_components)
    return "exact" if n_terms <= MAX_EXACT_TERMS and is_whole(votes) else "sobol"


def log_marginal(log_f, votes, alpha, method):
    """ln Pr(t | x, alpha) of items by the `method` "exact" or "sobol", with the parameters of `log_marginal_exact`."""
    if method == "exact" and not is_whole(votes):
        raise ValueError("the exact likelihood needs whole numbers of votes; use 'sobol' for weighted votes.")
    return {"exact": log_marginal_exact, "sobol": log_marginal_draws}[method](log_f, votes, alpha)


def log_marginal_exact(log_f, votes, alpha):
    """Exact ln Pr(t | x, alpha) of items with integer vote counts.

    The votes of an item are drawn one after the other from an urn, which integrates its mixture out: a behaviour
    casts the next vote with probability proportional to ``alpha_k + n_k``, where n_k is what it has cast so far.
    The sum over all n is carried along.

    Parameters
    ----------
    log_f : ndarray of shape (n, D, K)
        Log-probability that each behaviour gives to the d-th distinct class of an item.
    votes : ndarray of shape (n, D)
        Integer-valued votes for that class; 0 is padding.
    alpha : ndarray of shape (K,)
        Dirichlet concentration.

    Returns
    -------
    log_marginal : ndarray of shape (n,)
        In nats; 0 for an item without votes.
    """
    out = np.zeros(len(log_f))

    def drawn(cast, vote):
        return (alpha + cast) / (alpha.sum() + vote)

    for part, factors, scale in single_votes(log_f, votes):
        out[part] = expand(factors, drawn)[2] + scale
    return out


def single_votes(log_f, votes):
    """Yield items of equal numbers of votes as ``(items, factors, scale)``; items without votes are left out.

    `factors` of shape (n, L, K) are the probabilities that the behaviours give to single votes, relative to the largest
    of each vote; `scale` (n,) is the sum of the logarithms of these.
    """
    votes = votes.astype(np.intp)
    totals = votes.sum(1)
    for total in np.unique(totals[totals > 0]):
        items = np.flatnonzero(totals == total)
        for part in np.array_split(items, 1 + len(items) * n_exact_terms(int(total), log_f.shape[2]) // _BLOCK):
            column = np.repeat(np.tile(np.arange(votes.shape[1]), len(part)), votes[part].ravel())
            factors = np.take_along_axis(log_f[part], column.reshape(len(part), total, 1), axis=1)
            scale = factors.max(2, keepdims=True)
            yield part, np.exp(factors - scale), scale.sum((1, 2))


def expand(factors, drawn):
    """Expand ``prod_l sum_k drawn_k factors[:, l, k]`` into a sum over how many votes each behaviour has cast.

    Parameters
    ----------
    factors : ndarray of shape (n, L, K)
        As yielded by `single_votes`.
    drawn : callable
        Called with what was cast so far, (T, K), and how many votes that is; returns what the next vote of each
        behaviour counts, of shape (T, K).

    Returns
    -------
    cast : ndarray of shape (T, K), int
        Votes that each behaviour has cast, in all ways that sum to L.
    weight : ndarray of shape (n, T)
        Terms of the expansion, relative to their sum.
    log_total : ndarray of shape (n,)
        Logarithm of the sum.
    """
    n_items, n_votes, n_components = factors.shape
    unit = np.eye(n_components, dtype=int)
    cast, weight, log_total = np.zeros((1, n_components), dtype=int), np.ones((1, n_items)), np.zeros(n_items)
    by_vote = np.ascontiguousarray(factors.transpose(1, 2, 0))  # terms are moved by rows, which is twice as fast
    for vote in range(n_votes):
        n_terms, share = n_exact_terms(vote + 1, n_components), drawn(cast, vote)
        grown, grown_cast = np.zeros((n_terms, n_items)), np.empty((n_terms, n_components), dtype=int)
        for k in range(n_components):
            place = _rank(cast + unit[k])
            grown_cast[place] = cast + unit[k]
            grown[place] += weight * by_vote[vote, k] * share[:, k, None]
        total = grown.sum(0)  # kept apart, so that many votes do not underflow
        grown /= total
        cast, weight, log_total = grown_cast, grown, log_total + np.log(total)
    return cast, weight.T, log_total


def _rank(cast):
    """Position of each row among the rows of non-negative integers with its sum, in decreasing lexical order."""
    n_components = cast.shape[1]
    left = np.cumsum(cast[:, :0:-1], axis=1)[:, ::-1]  # what the later behaviours have cast
    later = np.arange(n_components - 1, 0, -1)
    return np.rint(binom(left + later - 1, later).sum(1)).astype(np.intp)


def log_marginal_draws(log_f, votes, alpha):
    """ln Pr(t | x, alpha) by the same 1,024 Sobol draws of Dir(alpha) for every item.

    Right for real-valued votes, and independent of how items are batched. Parameters and return value are those
    of `log_marginal_exact`.
    """
    draws = dirichlet_draws(tuple(alpha))
    out = np.empty(len(log_f))
    n_parts = 1 + log_f.shape[0] * log_f.shape[1] * len(draws) // _BLOCK
    for part in np.array_split(np.arange(len(log_f)), n_parts):
        scale = log_f[part].max(2, keepdims=True)
        mix = np.exp(log_f[part] - scale) @ draws.T
        per_draw = (votes[part][:, None] @ np.log(mix))[:, 0]
        out[part] = logsumexp(per_draw, axis=1) - np.log(len(draws)) + (votes[part] * scale[:, :, 0]).sum(1)
    return out


@lru_cache(maxsize=16)
def dirichlet_draws(alpha, n_draws=N_DRAWS):
    """Scrambled Sobol draws of Dir(alpha), of shape (n_draws, K), the same ones in every call.

    The draws are built by stick-breaking, which needs K - 1 dimensions.
    """
    if len(alpha) == 1:
        return np.ones((1, 1))
    uniform = qmc.Sobol(len(alpha) - 1, rng=np.random.default_rng(0)).random(n_draws)
    rest = np.append(np.cumsum(alpha[::-1])[::-1][1:], 0.0)
    draws, stick = np.empty((n_draws, len(alpha))), np.ones(n_draws)
    for k in range(len(alpha) - 1):
        draws[:, k] = stick * betaincinv(alpha[k], rest[k], uniform[:, k])
        stick = stick - draws[:, k]
    draws[:, -1] = stick
    return np.clip(draws, 1e-300, None)
