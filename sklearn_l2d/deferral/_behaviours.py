"""The clusterer of a deferrer: fitted or frozen, spoken to in the classes of the team."""

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from ..cluster import AnnotatorLDA
from ._classifier import with_seed


def fit_clusterer(clusterer, X, counts, classes, seed):
    """Fitted `AnnotatorLDA`: the one inside a `FrozenEstimator`, or a clone trained on these counts.

    Parameters
    ----------
    clusterer : None, AnnotatorLDA or FrozenEstimator
        None is an `AnnotatorLDA` with default parameters.
    X : array-like of n rows
        Items.
    counts : ndarray of shape (n, C)
        Votes of the identified experts, made anonymous.
    classes : ndarray of shape (C,)
        Labels of the columns.
    seed : int
        Seed where the clusterer has none.
    """
    if isinstance(clusterer, FrozenEstimator):
        return clusterer.estimator
    model = clone(with_seed(AnnotatorLDA() if clusterer is None else clusterer, seed)).fit(X, counts)
    model.classes_ = classes  # counts without names were fitted as 0, 1, ...
    return model


def expert_membership(clusterer, X, codes, classes):
    """Membership (M, K) of the experts behind encoded annotations; the clusters' weights for those without any."""
    unknown = ~np.isin(classes, clusterer.classes_)  # to a frozen clusterer, which can learn nothing from them
    labels = np.ma.masked_array(classes[codes.clip(0)], mask=(codes < 0) | unknown[codes])
    membership = np.tile(clusterer.cluster_weights_, (codes.shape[1], 1))
    heard = ~labels.mask.all(0)
    if heard.any():
        membership[heard] = clusterer.transform(X, labels[:, heard])
    return membership


def behaviour_proba(clusterer, X, classes):
    """What each behaviour would answer, (n, K, C) in the order of `classes`."""
    proba = clusterer.predict_annotation_proba(X)
    full = np.zeros((*proba.shape[:2], len(classes)))
    full[:, :, np.searchsorted(classes, clusterer.classes_)] = proba
    return full
