"""From identified annotations to the membership of each expert."""

import warnings

import numpy as np

from .._numerics._mixture_weights import mixture_weights


def observed_log_proba(batches, codes):
    """Log-probability that each behaviour gives to each annotation that was made.

    Parameters
    ----------
    batches : iterable of (slice, ndarray of shape (b, K, C))
        Log-probabilities of consecutive rows.
    codes : ndarray of shape (n, M)
        Encoded annotations, -1 missing.

    Returns
    -------
    log_f : ndarray of shape (n_annotations, K)
        One row per annotation.
    expert : ndarray of shape (n_annotations,)
        Who made it.
    """
    log_f, expert = [], []
    for rows, log_proba in batches:
        item, who = np.nonzero(codes[rows] >= 0)
        log_f.append(log_proba[item, :, codes[rows][item, who]])
        expert.append(who)
    return np.concatenate(log_f), np.concatenate(expert)


def expert_weights(log_f, expert, names, cluster_weights, prior):
    """Membership (M, K) of every expert; who has no annotation gets the cluster weights and a warning.

    Parameters
    ----------
    log_f, expert : ndarrays
        As returned by `observed_log_proba`.
    names : ndarray of shape (M,)
        Names of the experts.
    cluster_weights : ndarray of shape (K,)
        What is known about an expert of whom nothing is known.
    prior : ndarray of shape (K,)
        Dirichlet pseudo-counts.
    """
    weights, _ = mixture_weights(log_f, expert, len(names), prior=prior)
    silent = np.bincount(expert, minlength=len(names)) == 0
    if silent.any():
        warnings.warn(
            f"no annotations of the experts {list(names[silent])}: their membership is cluster_weights_. Give them "
            "some items to label, or leave their columns out.",
            stacklevel=3,
        )
        weights[silent] = cluster_weights
    return weights
