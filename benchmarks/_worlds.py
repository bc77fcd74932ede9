"""Teams to benchmark: simulated experts on the digits, real crowds, and the area under their curves."""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sklearn_l2d.annotations import to_counts
from sklearn_l2d.benchmark._curves import COVERAGES, team_point
from sklearn_l2d.benchmark._worlds import hold_out
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.datasets import load_crowd, sample_identified
from sklearn_l2d.deferral import ClusterDeferral
from sklearn_l2d.metrics import coverage_accuracy_auc


@dataclass
class World:
    """Items and everybody's labels, in an archive without names, a pool that experts label by name, and a test set."""

    seed: int
    X: np.ndarray
    y: np.ndarray
    annotations: np.ndarray
    groups: np.ndarray
    archive: np.ndarray
    pool: np.ndarray
    test: np.ndarray
    classifier: object

    def lda(self, n_clusters, experts=slice(None)):
        """Behaviours of the archive, frozen."""
        counts = to_counts(self.annotations[self.archive][:, experts], classes=np.unique(self.y))
        return FrozenEstimator(AnnotatorLDA(n_clusters, random_state=self.seed).fit(self.X[self.archive], counts))

    def identified(self, size, same_items=False):
        """Labels of the pool: so many of each expert, or all that there are, and -1 elsewhere."""
        if not same_items:
            size = np.minimum(size, (self.annotations[self.pool] >= 0).sum(0))
        return sample_identified(self.annotations[self.pool], size, same_items=same_items, random_state=self.seed)

    def fit(self, labels, **settings):
        """Deferrer with the papers' gate, at coverage .5 unless said otherwise, calibrated on the archive."""
        rows = self.pool[(labels >= 0).any(1)]
        given = {"coverage": 0.5, "prior_weight": 0.0, "classifier": self.classifier, "random_state": self.seed}
        settings = given | settings
        return ClusterDeferral(**settings).fit(
            self.X[rows],
            self.y[rows],
            annotations=labels[(labels >= 0).any(1)],
            X_unlabeled=self.X[self.archive],
        )

    def score(self, deferrer, experts=slice(None)):
        """Team accuracy on the test set."""
        return deferrer.score(self.X[self.test], self.y[self.test], annotations=self.annotations[self.test][:, experts])

    def coverage(self, deferrer):
        """Achieved coverage on the test set."""
        return (deferrer.predict_deferral(self.X[self.test]) < 0).mean()

    def area(self, deferrer):
        """Area under the coverage-accuracy curve of one gate and offsets only."""
        path = deferrer.coverage_path(COVERAGES, X_unlabeled=self.X[self.archive])
        return coverage_accuracy_auc([self.coverage(d) for d in path], [self.score(d) for d in path])

    def areas(self, labels, systems):
        """Area of every system, given as settings."""
        return [self.area(self.fit(labels, **settings)) for settings in systems.values()]


def digits(make, seed, *, n_archive, C, **options):
    """Simulated experts on the digits; 200 items to label by name, the rest for the test."""
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    roster = make(X, y, random_state=seed, **options)
    order = np.random.default_rng(seed).permutation(len(y))
    archive, pool, test = np.split(order, [n_archive, n_archive + 200])
    weak = LogisticRegression(C=C, max_iter=500).fit(X[archive[:80]], y[archive[:80]])
    return World(seed, X, y, roster.annotations, roster.groups, archive, pool, test, FrozenEstimator(weak))


def cifar10(make, seed):
    """Simulated experts on features of images: 30,000 items in the archive, 1,000 to label, 10,000 for the test."""
    crowd = load_crowd("cifar10")
    rng = np.random.default_rng(seed)
    seen = rng.permutation(np.flatnonzero(crowd.split == 0))[:31_000]
    rows = np.concatenate([seen, np.flatnonzero(crowd.split == 1)])
    X, y = StandardScaler().fit_transform(crowd.X[rows]), crowd.y[rows]
    roster = make(X, y, random_state=seed)
    archive, pool, test = np.split(np.arange(len(y)), [30_000, 31_000])
    weak = LogisticRegression(C=0.01, max_iter=200).fit(X[archive[:300]], y[archive[:300]])
    return World(seed, X, y, roster.annotations, roster.groups, archive, pool, test, FrozenEstimator(weak))


def people(name, seed, *, least, size):
    """Real people with at least so many labels of known truth.

    Each person has up to `size` labels by name. The classifier is trained on the items that people have labelled.
    """
    crowd = load_crowd(name)
    items, held_out = hold_out(crowd, np.random.default_rng(seed))
    annotations = crowd.annotations[items]
    annotations = annotations[:, (annotations[~held_out] >= 0).sum(0) >= least]
    X, y = StandardScaler().fit_transform(crowd.X[items]), crowd.y[items]
    known = np.flatnonzero(~held_out)
    weak = LogisticRegression(C=0.001, max_iter=500)
    return World(seed, X, y, annotations, None, known, known, np.flatnonzero(held_out), weak)


def reachable_area(world, deferrer):
    """As `World.area`, for people of whom most have not seen an item: the best target that somebody answers for."""
    path = deferrer.coverage_path(COVERAGES, X_unlabeled=world.X[world.archive])
    return coverage_accuracy_auc(*zip(*(team_point(world, system) for system in path), strict=True))


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
