"""Fuzzy c-means with scikit-learn's interface.

No package is suitable: scikit-fuzzy (0.5.0) has no estimator and seeds numpy's global generator; fuzzy-c-means (2.3.1)
requires numpy below 2 and four further packages.
"""

import numbers
from typing import ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._numerics._fuzzy import fuzzy_c_means, log_memberships, squared_distances
from .._persistence import Estimator
from .._sklearn import Interval, atomic_fit, warn


class FuzzyCMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """Fuzzy c-means clustering (Dunn 1973, Bezdek 1981).

    This is k-means with memberships: every point belongs to every cluster, with a larger membership the closer the
    centre. It minimises ``sum_nk u_nk^m |x_n - c_k|^2`` over centres and memberships. In L2D-Clusters section 5.1, it
    clusters the encodings of experts.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters K.

    m : float, default=2.0
        Fuzzifier, above 1. As it approaches 1, the clusters become those of k-means; large values make the memberships
        of all points alike, except those of a point that coincides with a centre.

    n_init : int, default=10
        Number of starts by k-means++. The result with the lowest objective is kept.

    max_iter : int, default=300
        Largest number of iterations per start.

    tol : float, default=1e-5
        Iterations stop when no membership changes by more than this.

    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the points in `fit`; rows sum to 1.
    labels_ : ndarray of shape (n_samples,)
        Cluster of every point, by the largest membership.
    objective_ : float
        Smallest value of the objective.
    n_iter_ : int
        Number of iterations of the best start.
    history_ : list of float
        Objective after each iteration of the best start.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    BetaExpertEncoder : Encodings of experts to cluster.
    sklearn.cluster.KMeans : The limit of hard clusters.
    sklearn_l2d.inspection.MembershipDisplay : Plots the memberships.

    References
    ----------
    Bezdek, Pattern recognition with fuzzy objective function algorithms, 1981, theorem 11.1.

    Examples
    --------
    >>> from sklearn_l2d.cluster import FuzzyCMeans
    >>> X = [[0.0], [1.0], [9.0], [10.0], [5.0]]
    >>> fcm = FuzzyCMeans(n_clusters=2, random_state=0).fit(X)
    >>> fcm.transform([[5.0]]).round(2)
    array([[0.5, 0.5]])
    """

    _parameter_constraints: ClassVar = {
        "n_clusters": [Interval(numbers.Integral, 1, None, closed="left")],
        "m": [Interval(numbers.Real, 1, None, closed="neither")],
        "n_init": [Interval(numbers.Integral, 1, None, closed="left")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, n_clusters=2, *, m=2.0, n_init=10, max_iter=300, tol=1e-5, random_state=None):
        self.n_clusters = n_clusters
        self.m = m
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @atomic_fit(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Find the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points, for instance one encoding per expert.
        y : object, default=None
            Ignored.

        Returns
        -------
        self : FuzzyCMeans
            The fitted estimator. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If there are fewer points than clusters, or `X` is not finite.

        Warns
        -----
        ConvergenceWarning
            If the best start has not converged after `max_iter` iterations.
        """
        points = validate_data(self, X, dtype=np.float64)
        if len(points) < self.n_clusters:
            raise ValueError(f"n_samples={len(points)} should be >= n_clusters={self.n_clusters}; lower n_clusters.")
        random_state = check_random_state(self.random_state)
        runs = []
        for _ in range(self.n_init):
            start, _ = kmeans_plusplus(points, self.n_clusters, random_state=random_state.randint(2**31 - 1))
            runs.append(fuzzy_c_means(points, start, self.m, self.max_iter, self.tol))
        centers, log_u, history, converged = min(runs, key=lambda run: run[2][-1])
        if not converged:
            warn(
                f"memberships still changed by more than tol={self.tol} after max_iter={self.max_iter} iterations; "
                "raise either.",
                ConvergenceWarning,
            )
        self.cluster_centers_ = centers
        self.memberships_ = np.exp(log_u)
        self.labels_ = log_u.argmax(1)
        self.objective_, self.n_iter_, self.history_ = history[-1], len(history), history

    def transform(self, X):
        """Find the memberships of points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        memberships : ndarray of shape (n_samples, n_clusters)
            Rows sum to 1.
        """
        return np.exp(self._log_memberships(X))

    def predict(self, X):
        """Predict the cluster of the largest membership, which has the nearest centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Positions of the clusters.
        """
        return self._log_memberships(X).argmax(1)

    @property
    def _n_features_out(self):
        return len(self.cluster_centers_)

    def _log_memberships(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return log_memberships(squared_distances(X, self.cluster_centers_), self.m)
