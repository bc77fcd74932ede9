"""From identified annotations to the membership of each expert."""

import warnings

import numpy as np

from .._numerics._dirichlet_membership import average_membership, variational_membership
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


def one_column(annotations):
    """Annotations of one expert as a table of one column, from shape (n,) or (n, 1)."""
    if hasattr(annotations, "iloc"):  # pandas, of which nothing else is needed
        table = annotations if hasattr(annotations, "columns") else annotations.to_frame()
    elif hasattr(annotations, "shape"):
        table = annotations[:, None] if len(annotations.shape) == 1 else annotations
    else:
        table = np.array(annotations, dtype=object)
        table = table[:, None] if table.ndim == 1 else table
    if len(table.shape) != 2 or table.shape[1] != 1:
        raise ValueError(
            f"annotations has shape {tuple(table.shape)}, but items are suggested to one expert at a time; pass one "
            "column."
        )
    return table


def solve_membership(method, log_f, expert, n_experts, *, prior, alpha, start, n_iter):
    """Membership (M, K) of every expert; anything for an expert without annotations.

    Parameters
    ----------
    method : {"map", "variational", "average"}
        Optimal mixture weights, Algorithm 1 of L2D-Clusters, or its appendix F.
    log_f, expert : ndarrays
        As returned by `observed_log_proba`.
    n_experts : int
        M.
    prior : ndarray of shape (K,)
        "map": Dirichlet pseudo-counts.
    alpha : ndarray of shape (K,)
        "average": concentration of the items' mixtures.
    start, n_iter : float, int
        "variational": entries of alpha at the start, and iterations.
    """
    if method == "map":
        return mixture_weights(log_f, expert, n_experts, prior=prior)[0]
    if method == "variational":
        dirichlet = variational_membership(log_f, expert, n_experts, start=start, n_iter=n_iter)
    else:
        dirichlet = average_membership(log_f, expert, n_experts, alpha)
    return dirichlet / dirichlet.sum(1, keepdims=True)


def place_the_silent(weights, expert, names, cluster_weights):
    """Give experts without annotations the cluster weights, in place, with a warning that names them."""
    silent = np.bincount(expert, minlength=len(names)) == 0
    if silent.any():
        warnings.warn(
            f"no annotations of the experts {list(names[silent])}: their membership is cluster_weights_. Give them "
            "some items to label, or leave their columns out.",
            stacklevel=3,
        )
        weights[silent] = cluster_weights
