"""Clusters of experts who agree on common items."""

import numbers
from typing import ClassVar

import numpy as np
from sklearn.cluster import AgglomerativeClustering

from .._encoding import expert_names
from .._persistence import Estimator
from .._sklearn import Interval, StrOptions, atomic_fit
from .._votes import table_or_votes
from ..metrics._agreement import MEASURES, pairwise_agreement


class AgreementClustering(Estimator):
    """Cluster experts by their agreement with one another on common items.

    The earlier way to group annotators (L2D-Clusters appendix B): compute a coefficient of agreement for every pair of
    experts, then apply agglomerative clustering to ``1 - agreement``. It needs neither features nor true labels, but
    overlap: experts who annotated different items cannot be compared, and a newcomer needs a new clustering.

    Note the axes: the experts are the *columns* of the annotations, and there is one cluster label per column.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters K.

    measure : {"kappa", "alpha", "accuracy"}, default="kappa"
        Cohen's kappa, Krippendorff's alpha or the share of equal answers, see
        :func:`sklearn_l2d.metrics.pairwise_agreement`.

    linkage : {"average", "complete", "single"}, default="average"
        How the distance of two clusters is computed from the distances of their experts.

    min_overlap : int, default=2
        Smallest number of common items for which two experts are compared. The agreement of other pairs is imputed by
        the mean of the two experts' mean agreements with the other experts; an expert without any comparison has the
        mean of all pairs.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA,
        masked entries and -1.

    Attributes
    ----------
    labels_ : ndarray of shape (n_experts,)
        Cluster of every expert.
    agreement_ : ndarray of shape (n_experts, n_experts)
        Agreement of every pair of experts, NaN where it was imputed.
    experts_ : ndarray of shape (n_experts,), dtype=object
        Names of the experts.
    n_features_in_ : int
        Number of experts, the columns of the annotations.

    See Also
    --------
    AnnotatorLDA : Needs no overlap, and finds memberships of newcomers.
    sklearn_l2d.metrics.pairwise_agreement : The coefficients of agreement.

    References
    ----------
    L2D-Clusters: Learning to defer on anonymously-annotated data, appendix B.

    Examples
    --------
    >>> from sklearn_l2d.cluster import AgreementClustering
    >>> annotations = [[0, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, -1], [1, -1, 0, 0], [1, 1, 0, 0]]
    >>> labels = AgreementClustering(n_clusters=2).fit_predict(annotations)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    _parameter_constraints: ClassVar = {
        "n_clusters": [Interval(numbers.Integral, 1, None, closed="left")],
        "measure": [StrOptions(set(MEASURES))],
        "linkage": [StrOptions({"average", "complete", "single"})],
        "min_overlap": [Interval(numbers.Integral, 1, None, closed="left")],
        "missing_label": "no_validation",
    }

    def __init__(self, n_clusters=2, *, measure="kappa", linkage="average", min_overlap=2, missing_label=None):
        self.n_clusters = n_clusters
        self.measure = measure
        self.linkage = linkage
        self.min_overlap = min_overlap
        self.missing_label = missing_label

    @atomic_fit(prefer_skip_nested_validation=True)
    def fit(self, annotations, y=None):
        """Cluster the experts.

        Parameters
        ----------
        annotations : array-like or DataFrame of shape (n_samples, n_experts)
            Annotations of the experts, one column per expert, with missing entries.
        y : object, default=None
            Ignored.

        Returns
        -------
        self : AgreementClustering
            The fitted estimator. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If there are fewer than two experts or fewer than clusters, no two experts share `min_overlap` items, or
            `annotations` is no table of labels.
        """
        annotations = table_or_votes(annotations, self.missing_label)
        n_experts = annotations.shape[1]
        if n_experts < max(2, self.n_clusters):
            raise ValueError(
                f"annotations has {n_experts} expert(s), {n_experts} feature(s) (shape={tuple(annotations.shape)}) "
                f"while a minimum of {max(2, self.n_clusters)} is required; lower n_clusters, or pass more experts."
            )
        agreement = pairwise_agreement(
            annotations, measure=self.measure, min_overlap=self.min_overlap, missing_label=self.missing_label
        )
        if not np.isfinite(agreement[~np.eye(n_experts, dtype=bool)]).any():
            raise ValueError(
                f"no two experts can be compared by measure={self.measure!r} (n_samples={len(annotations)}): none "
                f"share min_overlap={self.min_overlap} items with different answers among them. Lower min_overlap, try "
                "measure='accuracy', or use AnnotatorLDA, which needs no overlap."
            )
        distance = 1 - impute_agreement(agreement)
        clustering = AgglomerativeClustering(self.n_clusters, metric="precomputed", linkage=self.linkage)
        labels = clustering.fit_predict(distance)
        self.labels_ = labels
        self.agreement_, self.experts_, self.n_features_in_ = agreement, expert_names(annotations), n_experts

    def fit_predict(self, annotations, y=None):
        """Cluster the experts and return their clusters.

        Parameters
        ----------
        annotations : array-like or DataFrame of shape (n_samples, n_experts)
            As in `fit`.
        y : object, default=None
            Ignored.

        Returns
        -------
        labels : ndarray of shape (n_experts,)
            Cluster of every expert.
        """
        return self.fit(annotations).labels_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def impute_agreement(agreement):
    """Agreement with imputed values for pairs that could not be compared; 1 on the diagonal."""
    known = np.isfinite(agreement) & ~np.eye(len(agreement), dtype=bool)
    everybody = agreement[known].mean()
    mean = np.where(known, agreement, 0.0).sum(1) / np.maximum(known.sum(1), 1)
    mean = np.where(known.any(1), mean, everybody)
    complete = np.where(known, agreement, (mean[:, None] + mean) / 2)
    np.fill_diagonal(complete, 1.0)
    return complete
