"""What behaviours are after training: their shares of the votes, and which of them are idle or copies of others."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._sklearn import warn
from .._torch._net import predict_batches
from .._torch._seeding import own_state
from ._annotation_net import gather

_IDLE = 0.01  # clusters below this share of the votes are idle; clusters below this distance answer alike


def largest_distance(proba):
    """Largest total variation (K, K) between two behaviours over the items of a batch (K, B, C)."""
    return np.stack([((proba - behaviour).abs().sum(-1).amax(-1) / 2).cpu().numpy() for behaviour in proba])


def distances(net, X):
    """The same (K, K) over all items, for a trained net."""
    distance = 0.0
    for _, log_proba in predict_batches(net.module_.members, X, net.device):
        distance = np.maximum(distance, largest_distance(log_proba.exp()))
    return distance


@own_state(grad=False)
def survey(net, X, labels, votes):
    """One pass over the training rows with the final behaviours.

    Returns
    -------
    weights : ndarray of shape (K,)
        Share of the votes that each behaviour accounts for, ``sum T zeta / sum T``.
    agreement : ndarray of shape (K,)
        Mean probability that each behaviour gives to a vote.
    distance : ndarray of shape (K, K)
        As returned by `largest_distance`, over all items.
    """
    n_members = len(net.alpha)
    weights, agreement = np.zeros(n_members), np.zeros(n_members)
    distance = np.zeros((n_members, n_members))
    for rows, log_proba in predict_batches(net.module_.members, X, net.device):
        distance = np.maximum(distance, largest_distance(log_proba.exp()))
        log_f = gather(log_proba, net.tensor(labels[rows]))
        batch_votes = net.tensor(votes[rows])
        weights += (batch_votes.unsqueeze(-1) * net.e_step(log_f, batch_votes)).sum((0, 1)).cpu().numpy()
        agreement += (batch_votes.unsqueeze(-1) * log_f.exp()).sum((0, 1)).cpu().numpy()
    total = votes.sum(dtype=float)
    return weights / total, agreement / total, distance


def used(weights, distance):
    """Mask (K,) of the clusters with these weights that are neither idle nor like an earlier one that is not."""
    carries = weights >= _IDLE
    alike = np.triu(distance < _IDLE, k=1)
    return carries & ~(alike & carries[:, None]).any(0)


def warn_of_collapse(weights, distance):
    """Warn of clusters with less than 1 % of the votes, and of pairs that answer alike on all items."""
    idle = np.flatnonzero(weights < _IDLE)
    twins = np.argwhere(np.triu(distance < _IDLE, k=1))
    problems = []
    if len(idle):
        problems.append(f"clusters {idle.tolist()} carry less than 1 % of the votes")
    if len(twins):
        problems.append(f"the clusters of the pairs {twins.tolist()} answer alike everywhere")
    if problems:
        warn(
            "clusters collapsed: " + "; ".join(problems) + ". Lower n_clusters, raise alpha, or train longer.",
            ConvergenceWarning,
        )
