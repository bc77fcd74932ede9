"""The sets of the benchmark: items, annotations, and splits of the rows."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ..annotations import to_counts
from ..cluster import AnnotatorLDA
from ..crowd import NetClassifier
from ..datasets import load_crowd, make_expert_groups, make_expert_pairs, sample_identified


@dataclass
class World:
    """One draw of a set.

    Attributes
    ----------
    seed : int
        Seed of the draw.
    X, y : ndarrays of n rows
        Scaled features and true labels.
    annotations : ndarray of shape (n, n_experts)
        Annotations of all experts, -1 where missing.
    counts : ndarray of shape (n, C)
        Votes of all annotators, including the experts, without names.
    groups : ndarray of shape (n_experts,) or None
        Groups of similar experts, if the experts are simulated.
    archive, pool, test : ndarrays of int
        Rows with votes, rows with named annotations, and rows on which teams are tested.
    unlabeled : ndarray of int
        Rows of the archive without named annotations, on which the coverage is calibrated.
    known : ndarray of int
        Rows with true labels but without named annotations, on which the classifier was trained.
    classifier : classifier
        Frozen if it was trained on `known`; otherwise it is fitted on the labelled rows.
    sources : ndarray of shape (n,), default=None
        What several items come from. Those of the test rows are others.
    """

    seed: int
    X: np.ndarray
    y: np.ndarray
    annotations: np.ndarray
    counts: np.ndarray
    groups: np.ndarray
    archive: np.ndarray
    pool: np.ndarray
    test: np.ndarray
    unlabeled: np.ndarray
    known: np.ndarray
    classifier: object
    sources: np.ndarray | None = None
    _behaviours: dict = field(default_factory=dict, init=False, repr=False)

    @property
    def n_experts(self):
        """Number of experts."""
        return self.annotations.shape[1]

    @property
    def cv(self):
        """Number of folds; where whole sources are held out, so many that what is judged knows nearly all others."""
        return 5 if self.sources is None else 20

    def behaviours(self, n_clusters, alpha=50.0):
        """Frozen `AnnotatorLDA` of the archive, which is trained once per world."""
        key = n_clusters, alpha
        if key not in self._behaviours:
            lda = AnnotatorLDA(n_clusters, alpha=alpha, random_state=self.seed)
            self._behaviours[key] = FrozenEstimator(lda.fit(self.X[self.archive], self.counts[self.archive]))
        return self._behaviours[key]

    def identified(self, size, same_items=False):
        """Named annotations of the pool: at most `size` of each expert, and -1 elsewhere."""
        labels = self.annotations[self.pool]
        size = size if same_items else np.minimum(size, (labels >= 0).sum(0))
        return sample_identified(labels, size, same_items=same_items, random_state=self.seed)

    def labelled(self, labels, *, with_known=False):
        """Arguments of `fit`: rows with annotations and, if requested, the training rows of the classifier."""
        heard = (labels >= 0).any(1)
        rows, annotations = self.pool[heard], labels[heard]
        if with_known:
            rows = np.concatenate([rows, self.known])
            annotations = np.concatenate([annotations, np.full((len(self.known), self.n_experts), -1)])
        return {
            "X": self.X[rows],
            "y": self.y[rows],
            "annotations": annotations,
            "X_unlabeled": self.X[self.unlabeled],
        } | ({} if self.sources is None else {"groups": self.sources[rows]})


@dataclass(frozen=True)
class WorldSet:
    """A set of the benchmark.

    Attributes
    ----------
    build : callable
        Returns a `World` for a seed.
    same_items : bool
        Whether all experts annotate the same items, as in the paper, or different ones.
    largest : int
        Largest sensible number of named annotations per expert, since most experts have no more; for negative controls,
        the smallest number of an expert.
    stands_for : str
        Set of the papers that it replaces, and why.
    """

    build: Callable
    same_items: bool
    largest: int
    stands_for: str


def digits(make, seed, *, n_archive=797, n_pool=500):
    """Simulated experts on scikit-learn's digits, of which only the experts see more than four components."""
    X, y = load_digits(return_X_y=True)
    seen = PCA(4, random_state=0).fit_transform(X)
    order = np.random.default_rng(seed).permutation(len(y))
    parts = np.split(order, [n_archive, n_archive + n_pool])
    return _simulated(make, seed, X, seen, y, *parts, n_known=200)


def images(make, seed, *, n_components, n_archive=6000, n_test=2000):
    """Simulated experts on features of CIFAR-10, of which only the experts see more than the first components."""
    crowd = load_crowd("cifar10")
    rng = np.random.default_rng(seed)
    seen = rng.permutation(np.flatnonzero(crowd.split == 0))[: n_archive + 1000]
    rows = np.concatenate([seen, rng.permutation(np.flatnonzero(crowd.split == 1))[:n_test]])
    X, y = crowd.X[rows, :64], crowd.y[rows]
    parts = np.split(np.arange(len(y)), [n_archive, n_archive + 1000])
    return _simulated(make, seed, X, X[:, :n_components], y, *parts, n_known=300)


def _simulated(make, seed, X, seen, y, archive, pool, test, *, n_known):
    """World of simulated experts; its classifier is a net like those of joint methods, limited by the features.

    Methods that train their own classifier then differ in how they defer, not in the classifier.
    """
    roster = make(X, y, random_state=seed)
    seen, known = StandardScaler().fit_transform(seen), archive[:n_known]
    classifier = FrozenEstimator(NetClassifier((32,), weight_decay=0.01, random_state=seed).fit(seen[known], y[known]))
    counts = to_counts(roster.annotations, classes=np.unique(y))
    return World(
        seed, seen, y, roster.annotations, counts, roster.groups, archive, pool, test, archive, known, classifier
    )


def hold_out(crowd, rng):
    """Items of known truth, and a mask of the test items: half of them, or those of 40 shapes."""
    items = np.flatnonzero(crowd.y >= 0)
    if "shape_id" not in crowd:
        return items, rng.random(len(items)) < 0.5
    items = items[crowd.stimulus_set[items] == 0]
    return items, shapes_apart(crowd.shape_id[items], rng)


def shapes_apart(shape, rng):
    """Mask of the rows of 40 shapes, so that training and test items have different shapes."""
    return np.isin(shape, rng.permutation(np.unique(shape))[:40])


def people(name, seed, *, least, n_components=None):
    """World of real people with at least `least` annotations of known truth.

    A fifth of the training items has no named annotations; the classifier is fitted on the annotated items of the
    others. With `n_components`, the features are reduced to their first principal components.
    """
    crowd = load_crowd(name)
    rng = np.random.default_rng(seed)
    items, held_out = hold_out(crowd, rng)
    archive = np.flatnonzero(~held_out)
    unlabeled, pool = np.split(rng.permutation(archive), [len(archive) // 5])
    annotations = crowd.annotations[items]
    annotations = annotations[:, (annotations[pool] >= 0).sum(0) >= least]
    reduce = PCA(n_components, random_state=0) if n_components else FunctionTransformer()
    X = crowd.X[items]
    X = make_pipeline(reduce, StandardScaler()).fit(X[archive]).transform(X)
    return World(
        seed, X, crowd.y[items], annotations, np.asarray(crowd.counts)[items], None, archive, pool,
        np.flatnonzero(held_out), unlabeled, np.empty(0, dtype=int), LogisticRegression(C=0.1, max_iter=500),
        crowd.shape_id[items] if "shape_id" in crowd else None,
    )  # fmt: skip


def _digits_pairs(seed):
    return digits(make_expert_pairs, seed)


def _digits_hundred(seed):
    return digits(make_expert_groups, seed)


def _images_pairs(seed):
    return images(make_expert_pairs, seed, n_components=32)


def _images_hundred(seed):
    return images(make_expert_groups, seed, n_components=16)


def _crowd(name, least, n_components=None):
    def build(seed):
        return people(name, seed, least=least, n_components=n_components)

    return build


SETS = {
    "digits, 6 experts": WorldSet(_digits_pairs, True, 500, "CIFAR-100 with three pairs of simulated experts"),
    "digits, 100 experts": WorldSet(_digits_hundred, True, 500, "CIFAR-100 with 100 simulated experts (Fig. 9)"),
    "cifar10, 6 experts": WorldSet(_images_pairs, True, 500, "CIFAR-100 with three pairs of simulated experts"),
    "cifar10, 100 experts": WorldSet(_images_hundred, True, 500, "CIFAR-100 with 100 simulated experts (Fig. 9)"),
    "cue_conflict": WorldSet(_crowd("cue_conflict", 30, 64), False, 500, "dopanim: many people, unlike policies"),
    "sentiment_polarity": WorldSet(_crowd("sentiment_polarity", 25, 64), False, 50, "NIH-AO: two classes, few overlap"),
    "music_genre": WorldSet(_crowd("music_genre", 25), False, 100, "dopanim: ten classes, people of all abilities"),
    "medical_relation_treat": WorldSet(
        _crowd("medical_relation_treat", 10), False, 100, "Chaoyang and MiceBone: medical labels, adjudicated truth"
    ),
    "product_match": WorldSet(_crowd("product_match", 25), False, 25, "negative control: the classifier is better"),
    "recidivism_compas": WorldSet(_crowd("recidivism_compas", 20), False, 25, "negative control: people add nothing"),
}


def _calibration_digits(seed):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return StandardScaler().fit_transform(X), y, order[:900], order[900:]


def _calibration_images(seed):
    crowd = load_crowd("cifar10")
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(crowd.split == 0))[:6000]
    return StandardScaler().fit_transform(crowd.X[rows, :64]), crowd.y[rows], np.arange(2000), np.arange(2000, 6000)


# functions of a seed that return X, y, and the rows of training and test
CALIBRATION_SETS = {"digits": _calibration_digits, "cifar10": _calibration_images}
