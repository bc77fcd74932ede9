"""Fuzzy c-means on plain arrays, in log space so that fuzzifiers near 1 and points on centres are exact."""

import numpy as np
from scipy.special import logsumexp

from .._sklearn import one_blas_thread


def log_memberships(squared, m):
    """Logarithm of the memberships that are best for given centres, ``u_k ∝ d_k^(-2 / (m - 1))``.

    Parameters
    ----------
    squared : ndarray of shape (n, K)
        Squared distances to the centres. A point on a centre belongs to it alone; to several, in equal parts.
    m : float
        Fuzzifier, above 1.

    Returns
    -------
    log_u : ndarray of shape (n, K)
        Rows of ``exp(log_u)`` sum to 1.
    """
    with np.errstate(divide="ignore"):
        closeness = -np.log(squared) / (m - 1)
    on_centre = np.isposinf(closeness)
    closeness = np.where(on_centre.any(1, keepdims=True), np.where(on_centre, 0.0, -np.inf), closeness)
    return closeness - logsumexp(closeness, axis=1, keepdims=True)


def weighted_centers(X, log_u, m):
    """Centres (K, D) that are best for given memberships, ``sum u^m x / sum u^m``."""
    weights = np.exp(m * (log_u - log_u.max(0)))  # a centre that is far from all points still has weights to share
    return (weights.T @ X) / weights.sum(0)[:, None]


def objective(squared, log_u, m):
    """``sum u^m d^2``, which both steps of the algorithm lower."""
    return float((np.exp(m * log_u) * squared).sum())


def squared_distances(X, centers):
    """Squared Euclidean distances (n, K), exactly zero for a point on a centre."""
    return np.stack([((X - center) ** 2).sum(1) for center in centers], axis=1)


@one_blas_thread
def fuzzy_c_means(X, centers, m, max_iter, tol):
    """Alternate between memberships and centres.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Points.
    centers : ndarray of shape (K, D)
        Where to start.
    m : float
        Fuzzifier, above 1.
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when no membership changes by more than this.

    Returns
    -------
    centers : ndarray of shape (K, D)
    log_u : ndarray of shape (n, K)
        Memberships for these centres.
    history : list of float
        Objective after each iteration; it never rises.
    converged : bool
    """
    log_u = log_memberships(squared_distances(X, centers), m)
    history, converged = [], False
    while len(history) < max_iter and not converged:
        centers = weighted_centers(X, log_u, m)
        squared = squared_distances(X, centers)
        before, log_u = log_u, log_memberships(squared, m)
        history.append(objective(squared, log_u, m))
        converged = bool(np.abs(np.exp(log_u) - np.exp(before)).max() <= tol)
    return centers, log_u, history, converged
