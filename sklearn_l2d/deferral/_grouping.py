"""From experts to targets: the groups that a gate can defer to."""

from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from .._numerics._answers import prior_strengths, shrunken_correctness

_MEMBERSHIP_WEIGHT = 0.1  # of a behaviour beside correctness, in the distances between experts


class Grouping(NamedTuple):
    """How experts, newcomers included, are turned into memberships of targets.

    Attributes
    ----------
    kind : {"profile", "soft", "hard"}
    uses_membership : bool
        Whether behaviours take part; always for "soft" and "hard".
    keep : ndarray of shape (n_targets,)
        "soft" and "hard": which clusters became targets.
    centers : ndarray of shape (n_targets, n_coordinates)
        "profile": coordinates of the groups.
    scale : ndarray of shape (n_classes,)
        "profile": weight of each class in a coordinate, the square root of its frequency.
    center, strengths : float, tuple of float
        "profile": how correctness is shrunk.
    """

    kind: str
    uses_membership: bool
    keep: np.ndarray
    centers: np.ndarray
    scale: np.ndarray
    center: float
    strengths: tuple

    def assign(self, right, seen, membership):
        """Membership (M, n_targets) of experts, rows sum to 1.

        Parameters
        ----------
        right, seen : ndarrays of shape (M, n_classes)
            Tally of their answers.
        membership : ndarray of shape (M, K)
            Their behaviours.
        """
        if self.kind == "profile":
            coordinates = self.coordinates(right, seen, membership)
            nearest = ((coordinates[:, None] - self.centers) ** 2).sum(2).argmin(1)
            return np.eye(len(self.centers))[nearest]
        chosen = np.eye(membership.shape[1])[membership.argmax(1)] if self.kind == "hard" else membership
        kept = chosen[:, self.keep]
        # whoever belongs only to dropped clusters goes to the kept one that suits best
        homeless = kept.sum(1) <= 0
        kept[homeless] = np.eye(len(self.keep))[membership[homeless][:, self.keep].argmax(1)]
        return kept / kept.sum(1, keepdims=True)

    def coordinates(self, right, seen, membership):
        """Coordinates of experts: correctness per class, and behaviours where they are known."""
        profile = shrunken_correctness(right, seen, self.center, self.strengths) * self.scale
        return np.hstack([profile, _MEMBERSHIP_WEIGHT * membership]) if self.uses_membership else profile


def make_grouping(kind, n_groups, right, seen, membership, uses_membership, random_state):
    """Learn how experts become targets.

    Parameters
    ----------
    kind : {"profile", "soft", "hard"}
        Groups of experts who are right in the same places, or the clusters of their memberships, soft or by the
        largest entry (L2D-Clusters 3.3).
    n_groups : int
        Largest number of profile groups.
    right, seen : ndarrays of shape (n_experts, n_classes)
        Tally of the answers.
    membership : ndarray of shape (n_experts, K)
        Behaviours.
    uses_membership : bool
        Whether they take part in profiles.
    random_state : int
        Seed of k-means.

    Returns
    -------
    grouping : Grouping
    """
    if kind != "profile":
        mass = membership if kind == "soft" else np.eye(membership.shape[1])[membership.argmax(1)]
        keep = np.flatnonzero(mass.sum(0) > 1e-3)
        return Grouping(kind, True, keep, np.empty((0, 0)), np.empty(0), np.nan, ())
    scale = np.sqrt(seen.sum(0) / max(seen.sum(), 1e-12))
    center, strengths = prior_strengths(right, seen)
    grouping = Grouping(kind, uses_membership, np.empty(0, dtype=int), np.empty((0, 0)), scale, center, strengths)
    coordinates = grouping.coordinates(right, seen, membership)
    n_groups = min(n_groups, len(np.unique(coordinates, axis=0)))
    with threadpool_limits(1):  # k-means on some experts: threads cost more than they bring
        centers = KMeans(n_groups, n_init=10, random_state=random_state).fit(coordinates).cluster_centers_
    grouping = grouping._replace(centers=centers)
    used = np.flatnonzero(grouping.assign(right, seen, membership).sum(0) > 0)
    return grouping._replace(centers=centers[used])
