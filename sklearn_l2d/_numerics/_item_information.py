"""What the answer to an item would tell about the mixture weights of an expert."""

import numpy as np


def variance_reduction(proba, mean, covariance):
    """Expected fall of the total posterior variance of the mixture weights when an item is answered.

    With ``Pr(t | a) = f_t' a``, the mean of the weights moves to ``m + V f_t / (f_t' m)`` after answer t, whatever
    the shape of their distribution. By the law of total variance the expected fall of ``tr V`` is the variance of
    that mean, ``sum_t |V f_t|^2 / (f_t' m)``.

    Parameters
    ----------
    proba : ndarray of shape (n_items, K, C)
        Probability of every answer under each behaviour, f.
    mean : ndarray of shape (K,)
        Mean m of the weights, on the simplex.
    covariance : ndarray of shape (K, K)
        Covariance V of the weights.

    Returns
    -------
    reduction : ndarray of shape (n_items,)
        At least 0, and at most ``trace(covariance)`` where the moments are those of a distribution on the simplex.
    """
    moves = np.square(covariance @ proba).sum(1)
    answer = _answer_proba(proba, mean)
    return np.divide(moves, answer, out=np.zeros_like(moves), where=answer > 0).sum(1)


def covariance_after(proba, mean, covariance):
    """Covariance of the mixture weights once an item's Fisher information joins its inverse.

    ``(V^-1 + F)^-1`` with ``F = sum_t f_t f_t' / (f_t' m)``, written so that V may be singular, as it is on the
    simplex.

    Parameters
    ----------
    proba : ndarray of shape (K, C)
        Answers to the item.
    mean, covariance
        As in `variance_reduction`.

    Returns
    -------
    covariance : ndarray of shape (K, K)
        Symmetric, never above the one before.
    """
    answer = _answer_proba(proba, mean)
    root = proba / np.sqrt(np.where(answer > 0, answer, np.inf))
    seen = covariance @ root
    after = covariance - seen @ np.linalg.solve(np.eye(root.shape[1]) + root.T @ seen, seen.T)
    return (after + after.T) / 2


def most_informative(proba, mean, covariance, n_items):
    """Items chosen one after the other by `variance_reduction`, under the covariance that the earlier ones leave.

    Parameters
    ----------
    proba : ndarray of shape (n_pool, K, C)
        Probability of every answer under each behaviour.
    mean, covariance
        As in `variance_reduction`.
    n_items : int
        How many, at most n_pool.

    Returns
    -------
    indices : ndarray of shape (n_items,)
        In the order of choice; the first of equal items.
    """
    indices, left = np.empty(n_items, dtype=np.intp), np.ones(len(proba), dtype=bool)
    for place in range(n_items):
        reduction = np.where(left, variance_reduction(proba, mean, covariance), -np.inf)
        chosen = indices[place] = reduction.argmax()
        left[chosen] = False
        covariance = covariance_after(proba[chosen], mean, covariance)
    return indices


def _answer_proba(proba, mean):
    return np.einsum("...kc,k->...c", proba, mean)
