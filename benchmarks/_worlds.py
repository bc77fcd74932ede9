"""Teams to benchmark: simulated experts on the digits, real crowds, and the area under their curves."""

from dataclasses import replace

import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sklearn_l2d.annotations import to_counts
from sklearn_l2d.benchmark._curves import COVERAGES, team_point
from sklearn_l2d.benchmark._worlds import World, hold_out
from sklearn_l2d.datasets import load_crowd
from sklearn_l2d.deferral import ClusterDeferral
from sklearn_l2d.metrics import coverage_accuracy_auc


def digits(make, seed, *, n_archive, C, **options):
    """Simulated experts on the digits; 200 items to label by name, the rest for the test."""
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    roster = make(X, y, random_state=seed, **options)
    order = np.random.default_rng(seed).permutation(len(y))
    parts = np.split(order, [n_archive, n_archive + 200])
    return _simulated(seed, X, y, roster, *parts, n_known=80, weak=LogisticRegression(C=C, max_iter=500))


def cifar10(make, seed):
    """Simulated experts on features of images: 30,000 items in the archive, 1,000 to label, 10,000 for the test."""
    crowd = load_crowd("cifar10")
    rng = np.random.default_rng(seed)
    seen = rng.permutation(np.flatnonzero(crowd.split == 0))[:31_000]
    rows = np.concatenate([seen, np.flatnonzero(crowd.split == 1)])
    X, y = StandardScaler().fit_transform(crowd.X[rows]), crowd.y[rows]
    roster = make(X, y, random_state=seed)
    parts = np.split(np.arange(len(y)), [30_000, 31_000])
    return _simulated(seed, X, y, roster, *parts, n_known=300, weak=LogisticRegression(C=0.01, max_iter=200))


def _simulated(seed, X, y, roster, archive, pool, test, *, n_known, weak):
    """The weak classifier is trained on the first rows of the archive and frozen."""
    known = archive[:n_known]
    return World(
        seed=seed, X=X, y=y, annotations=roster.annotations,
        counts=to_counts(roster.annotations, classes=np.unique(y)), groups=roster.groups, archive=archive, pool=pool,
        test=test, unlabeled=archive, known=known, classifier=FrozenEstimator(weak.fit(X[known], y[known])),
    )  # fmt: skip


def people(name, seed, *, least):
    """Real people with at least so many labels of known truth, on all items that are not tested.

    The classifier is trained on the items that people have labelled by name.
    """
    crowd = load_crowd(name)
    items, held_out = hold_out(crowd, np.random.default_rng(seed))
    annotations = crowd.annotations[items]
    annotations = annotations[:, (annotations[~held_out] >= 0).sum(0) >= least]
    archive = np.flatnonzero(~held_out)
    return World(
        seed=seed, X=StandardScaler().fit_transform(crowd.X[items]), y=crowd.y[items], annotations=annotations,
        counts=np.asarray(crowd.counts)[items], groups=None, archive=archive, pool=archive,
        test=np.flatnonzero(held_out), unlabeled=archive, known=np.empty(0, dtype=int),
        classifier=LogisticRegression(C=0.001, max_iter=500),
    )  # fmt: skip


def with_experts(world, experts):
    """The world of some of its experts, whose votes alone fill the archive."""
    annotations = world.annotations[:, experts]
    return replace(world, annotations=annotations, counts=to_counts(annotations, classes=np.unique(world.y)))


def fit(world, labels, **settings):
    """Deferrer with the papers' gate, at coverage .5 unless said otherwise, calibrated on the archive."""
    given = {"coverage": 0.5, "prior_weight": 0.0, "classifier": world.classifier, "random_state": world.seed}
    return ClusterDeferral(**(given | settings)).fit(**world.labelled(labels))


def areas(world, labels, systems):
    """Area of every system, given as settings."""
    return [area(world, fit(world, labels, **settings)) for settings in systems.values()]


def area(world, deferrer):
    """Area under the coverage-accuracy curve of one gate and offsets only."""
    return area_of(world, deferrer.coverage_path(COVERAGES, X_unlabeled=world.X[world.unlabeled]))


def area_of(world, deferrers):
    """Area under the points of several deferrers."""
    return coverage_accuracy_auc(*zip(*(team_point(world, d) for d in deferrers), strict=True))


def by_confidence(world, deferrer):
    """Area of deferring the items on which the classifier is least confident to anybody who answered."""
    X, y, annotations = world.X[world.test], world.y[world.test], world.annotations[world.test]
    rows = np.flatnonzero((annotations >= 0).any(1))
    right = (annotations == y[:, None]).sum(1)[rows] / (annotations >= 0).sum(1)[rows]
    proba, own = deferrer.predict_proba(X)[rows], (deferrer.predict(X) == y)[rows]
    rank = np.argsort(np.argsort(-proba.max(1))) / len(rows)
    points = [(c, np.where(rank < c, own, right).mean()) for c in COVERAGES]
    return coverage_accuracy_auc(*zip(*points, strict=True))


def cut_by_accuracy(labels, y, n_groups):
    """Memberships of equal cuts along plain accuracy."""
    accuracy = (labels == y[:, None]).sum(0) / (labels >= 0).sum(0)
    return np.eye(n_groups)[np.argsort(np.argsort(-accuracy, kind="stable")) * n_groups // len(accuracy)]
