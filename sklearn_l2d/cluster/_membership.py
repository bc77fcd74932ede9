"""Memberships of experts in behaviours, from the answers that behaviours and experts give to the same items."""

import numpy as np

from .._numerics._dirichlet_membership import average_membership, variational_membership
from .._numerics._mixture_weights import mixture_weights

_SHARE = 0.1  # of the labels of an expert that the prior counts as, by default


def observed_log_proba(batches, votes):
    """Log-probability that each behaviour gives to each annotation that was made.

    Parameters
    ----------
    batches : iterable of (slice, ndarray of shape (b, K, C))
        Log-probabilities of consecutive rows.
    votes : Votes
        The annotations of these rows.

    Returns
    -------
    log_f : ndarray of shape (n_annotations, K)
        One row per annotation, in the order of the votes.
    """
    starts = votes.starts
    log_f = []
    for rows, log_proba in batches:
        answers = slice(starts[rows.start], starts[rows.stop])
        log_f.append(log_proba[votes.item[answers] - np.int64(rows.start), :, votes.label[answers]])
    return np.concatenate(log_f)


def pseudo_counts(strength, weights, n_labels):
    """Dirichlet pseudo-counts (M, K) of experts with `n_labels` (M,) each, in proportion to `weights` (K,).

    A number is the same for all. "auto" is a share of the labels of each: what a fixed number takes from the membership
    of an expert depends on how many labels there are, so that it ranks experts by their labels instead of by their
    answers.
    """
    total = _SHARE * n_labels if isinstance(strength, str) else np.full(len(n_labels), float(strength))
    return total[:, None] * weights


def solve_membership(method, log_f, expert, n_experts, *, prior, alpha, start, n_iter):
    """Memberships (M, K) of the experts; undefined for an expert without annotations.

    Parameters
    ----------
    method : {"map", "variational", "average"}
        Optimal mixture weights, Algorithm 1 of L2D-Clusters, or its appendix F.
    log_f, expert : ndarrays
        As returned by `observed_log_proba`.
    n_experts : int
        M.
    prior : ndarray of shape (M, K)
        Dirichlet pseudo-counts, for "map".
    alpha : ndarray of shape (K,)
        Concentration of the items' mixtures, for "average".
    start, n_iter : float, int
        Entries of alpha at the start, and number of iterations, for "variational".
    """
    if method == "map":
        return mixture_weights(log_f, expert, n_experts, prior=prior)[0]
    if method == "variational":
        dirichlet = variational_membership(log_f, expert, n_experts, start=start, n_iter=n_iter)
    else:
        dirichlet = average_membership(log_f, expert, n_experts, alpha)
    return dirichlet / dirichlet.sum(1, keepdims=True)
