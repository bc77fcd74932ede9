"""Clusters of items from votes on whether two of them belong together."""

import numbers
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh
from scipy.special import softmax
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._persistence import Estimator
from .._sklearn import Interval, atomic_fit
from ._base import warn_unless
from ._pairs import codes_of_names, named_pairs, places_of

_DENSE = 200  # items up to which all eigenvectors are computed
_SURE = 2.0  # logit of the cluster from which an item starts


def similarity_loss(logits, first, second, same, n_clusters, alpha):
    """Negative log-likelihood of votes on pairs, with the penalty of the logits, and its gradient.

    Parameters
    ----------
    logits : ndarray of shape (n_items * n_clusters,)
        Of the memberships f.
    first, second : ndarrays of int of shape (n_votes,)
        Items i and j that were compared.
    same : ndarray of bool of shape (n_votes,)
        Whether they were said to belong together, with probability ``f_i' f_j``.
    n_clusters : int
        Number of clusters.
    alpha : float
        Weight of half the squared logits.
    """
    table = logits.reshape(-1, n_clusters)
    member = softmax(table, axis=1)
    together = np.einsum("vk,vk->v", member[first], member[second])
    said = np.maximum(np.where(same, together, 1 - together), 1e-12)
    pull = np.where(same, -1, 1) / said
    slope = np.zeros_like(member)
    np.add.at(slope, first, pull[:, None] * member[second])
    np.add.at(slope, second, pull[:, None] * member[first])
    slope = member * (slope - (slope * member).sum(1, keepdims=True)) + alpha * table
    return -np.log(said).sum() + alpha * (logits @ logits) / 2, slope.ravel()


class CrowdClustering(ClusterMixin, Estimator):
    """Clusters that nobody has named, from votes "these two belong together" (crowd tutorial, part III).

    Items have memberships, and a vote on two of them is positive with the probability that both fall in the same
    cluster, the product of their memberships; the likelihood is maximised from a spectral clustering of the votes.
    Items between which no chain of votes leads cannot be told from one another.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.

    alpha : float, default=0.01
        Weight of half the squared logits of the memberships, which keeps these from being certain.

    max_iter : int, default=500
        Largest number of iterations.

    random_state : int, RandomState instance or None, default=None
        Seed of the starts of the spectral clustering.

    Attributes
    ----------
    items_ : ndarray of shape (n_items,), dtype=object
        Sorted names of the items.
    labels_ : ndarray of int of shape (n_items,)
        Cluster of every item, numbered by the first item of each.
    membership_ : ndarray of shape (n_items, n_clusters)
        Probabilities of the clusters; rows sum to 1.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the iterations ended before their limit.

    See Also
    --------
    sklearn_l2d.cluster.AgreementClustering : Clusters of people.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import CrowdClustering
    >>> pairs = [["ant", "bee"], ["bee", "fly"], ["cat", "dog"], ["ant", "cat"], ["fly", "dog"]]
    >>> model = CrowdClustering(2, random_state=0).fit(pairs, [True, True, True, False, False])
    >>> dict(zip(model.items_.tolist(), model.labels_.tolist()))
    {'ant': 0, 'bee': 0, 'cat': 1, 'dog': 1, 'fly': 0}
    """

    _parameter_constraints: ClassVar = {
        "n_clusters": [Interval(numbers.Integral, 1, None, closed="left")],
        "alpha": [Interval(numbers.Real, 0, None, closed="left")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, n_clusters=2, *, alpha=0.01, max_iter=500, random_state=None):
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.max_iter = max_iter
        self.random_state = random_state

    @atomic_fit(prefer_skip_nested_validation=True)
    def fit(self, X, y):
        """Find the clusters.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_votes, 2)
            Names of two items.
        y : array-like of bool of shape (n_votes,)
            Whether somebody said that they belong together.

        Returns
        -------
        self : CrowdClustering
            The fitted estimator. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If `X` is no table of two columns, compares an item with itself, or names fewer items than clusters, or `y`
            does not hold one boolean for each row.
        """
        pairs, same = named_pairs(X), np.asarray(y)
        if same.shape != (len(pairs),) or not np.isin(same, [0, 1]).all():
            raise ValueError(f"y has shape {same.shape}; pass one boolean, or 0 or 1, for each of {len(pairs)} rows.")
        same = same.astype(bool)
        self.items_, (first, second) = codes_of_names(pairs.T)
        n_items, n_clusters = len(self.items_), self.n_clusters
        if n_items < n_clusters:
            raise ValueError(f"X names {n_items} items for n_clusters={n_clusters}; ask for fewer clusters.")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        start = _SURE * np.eye(n_clusters)[_spectral(first, second, same, n_items, n_clusters, seed)]
        found = minimize(
            similarity_loss,
            start.ravel(),
            (first, second, same, n_clusters, self.alpha),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter},
        )
        self.n_iter_, self.converged_ = int(found.nit), bool(found.nit < self.max_iter)
        warn_unless(self.converged_, self.max_iter)
        member = softmax(found.x.reshape(n_items, n_clusters), axis=1)
        best = member.argmax(1)
        present, seen = np.unique(best, return_index=True)
        order = np.append(present[np.argsort(seen)], np.setdiff1d(np.arange(n_clusters), present))
        self.membership_ = member[:, order]
        self.labels_ = self.membership_.argmax(1)

    def predict_proba(self, X):
        """Probability that two items belong together.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_pairs, 2)
            Names of two items of the fit.

        Returns
        -------
        proba : ndarray of shape (n_pairs,)
            Probabilities.
        """
        check_is_fitted(self)
        pairs, place = named_pairs(X), {name: k for k, name in enumerate(self.items_.tolist())}
        first, second = places_of(pairs, place).T
        return np.einsum("vk,vk->v", self.membership_[first], self.membership_[second])


def _spectral(first, second, same, n_items, n_clusters, seed):
    """Cluster (n_items,) of every item, from the leading eigenvectors of the votes: 1 for together, -1 for apart."""
    vote = np.where(same, 1.0, -1.0)
    table = csr_array((vote, (first, second)), shape=(n_items, n_items))
    table = table + table.T
    if n_items <= max(_DENSE, n_clusters + 1):
        vectors = np.linalg.eigh(table.toarray())[1][:, -n_clusters:]
    else:
        rng = np.random.default_rng(seed)
        vectors = eigsh(table, n_clusters, which="LA", v0=rng.normal(size=n_items))[1]
    return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(vectors)
