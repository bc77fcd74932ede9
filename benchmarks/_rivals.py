"""Simple rivals of a membership, each a score of every expert or a grouping of them."""

from copy import copy

import numpy as np

from sklearn_l2d.annotations import to_counts
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.metrics import consensus_agreement


def fit(n_clusters, seed, X, counts, **settings):
    """`AnnotatorLDA` with the default parameters, apart from `settings`."""
    return AnnotatorLDA(n_clusters, random_state=seed, **settings).fit(X, counts)


def membership(n_clusters, seed, X, counts, X_identified, annotations, **settings):
    """Memberships of experts under a fresh fit."""
    return fit(n_clusters, seed, X, counts, **settings).transform(X_identified, annotations)


def likeliest(model, X, annotations):
    """Memberships without a prior."""
    return copy(model).set_params(membership_prior=0).transform(X, annotations)


def drawn_to_average(model, X, annotations):
    """Memberships with one pseudo-label for everybody, however many labels people gave."""
    return copy(model).set_params(membership_prior=1).transform(X, annotations)


def one_net_agreement(seed, X, counts, X_identified, annotations):
    """The rival that needs one net only."""
    return net_agreement(fit(1, seed, X, counts), X_identified, annotations)


def net_agreement(model, X, annotations):
    """Mean probability that a fitted one-cluster model gives to each expert's labels."""
    return consensus_agreement(annotations, model.predict_annotation_proba(X)[:, 0])


def linear_agreement(model, X, annotations, n_classes):
    """The same with a classifier that has seen majority labels, some classes of which may be missing."""
    proba = np.zeros((len(X), n_classes))
    proba[:, model.classes_] = model.predict_proba(X)
    return consensus_agreement(annotations, proba)


def majority_agreement(annotations, n_classes, counts=None):
    """Share of each expert's labels that are the majority label, of these annotations unless `counts` are given."""
    counts = to_counts(annotations, classes=np.arange(n_classes)) if counts is None else counts
    return accuracy(annotations, counts.argmax(1))


def accuracy(annotations, y):
    """Share of each expert's labels that are right."""
    seen = annotations >= 0
    return ((annotations == y[:, None]) & seen).sum(0) / seen.sum(0)


def halves(score):
    """Two groups, cut in the middle of the range of a score."""
    return score < (score.min() + score.max()) / 2
