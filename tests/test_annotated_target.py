import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.model_selection import GridSearchCV, cross_validate, train_test_split
from sklearn.pipeline import make_pipeline

from sklearn_l2d.annotations import AnnotatedTarget, split_target


def make_target(container):
    y = np.array([2, 0, 1, 2, 0, 1])
    annotations = np.column_stack([y, np.arange(6)])
    if container is pd.DataFrame:  # an index that would mislead a selection by label
        return AnnotatedTarget(y, pd.DataFrame(annotations, index=np.arange(6)[::-1]))
    return AnnotatedTarget(y, container(annotations))


def row_ids(target):
    return np.asarray(target.annotations)[:, 1].tolist()


CONTAINERS = pytest.mark.parametrize("container", [np.array, np.ma.array, pd.DataFrame, np.ndarray.tolist])


@CONTAINERS
@pytest.mark.parametrize(
    ("select", "rows"),
    [
        (lambda y: y[1:4], [1, 2, 3]),
        (lambda y: y[::-2], [5, 3, 1]),
        (lambda y: y[[4, 0, 0]], [4, 0, 0]),
        (lambda y: y[np.array([-1, 2])], [5, 2]),
        (lambda y: y[y == 2], [0, 3]),
        (lambda y: y[np.array([3, 1]), ...], [3, 1]),
        (lambda y: y[...], [0, 1, 2, 3, 4, 5]),
        (lambda y: y.take([2, 5]), [2, 5]),
        (lambda y: y.take([7], mode="wrap"), [1]),
        (lambda y: np.take(y, [5, 0]), [5, 0]),
        (lambda y: y[2:][[0, 3]], [2, 5]),
        (lambda y: pickle.loads(pickle.dumps(y)), [0, 1, 2, 3, 4, 5]),
        (copy.deepcopy, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_selection_carries_annotations(container, select, rows):
    y = make_target(container)
    part = select(y)
    assert type(part) is AnnotatedTarget
    assert row_ids(part) == rows
    assert_array_equal(np.asarray(part.annotations)[:, 0], np.asarray(part))
    assert row_ids(y) == [0, 1, 2, 3, 4, 5]
    if container is not np.ndarray.tolist:
        assert isinstance(part.annotations, type(y.annotations))


@pytest.mark.parametrize(
    "operation",
    [
        lambda y: y + 1,
        lambda y: y == 1,
        np.sort,
        lambda y: np.partition(y, 2),
        lambda y: np.concatenate([y, y]),
        np.unique,
        np.argsort,
        np.asarray,
    ],
)
def test_other_operations_give_plain_arrays(operation):
    y = make_target(np.array)
    result = operation(y)
    assert type(result) is np.ndarray
    assert_array_equal(result, operation(np.array([2, 0, 1, 2, 0, 1])))
    assert row_ids(y) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "operation", [np.ndarray.copy, lambda y: y.astype(float), lambda y: y[:, None], np.ndarray.ravel]
)
def test_other_methods_drop_annotations(operation):
    assert operation(make_target(np.array)).annotations is None


def test_sorting_in_place_drops_annotations():
    y = make_target(np.array)
    assert type(y.sort()) is np.ndarray
    assert np.asarray(y).tolist() == [0, 0, 1, 1, 2, 2]
    assert y.annotations is None
    z = make_target(np.array)
    z.partition(0)
    assert z[0] == 0
    assert z.annotations is None


def test_scalars_and_reductions():
    y = make_target(np.array)
    assert list(y) == [2, 0, 1, 2, 0, 1]
    assert isinstance(y[0], np.integer)
    assert isinstance(y.sum(), np.integer)
    assert y.mean() == 1


@pytest.mark.parametrize(
    ("y", "annotations", "match"),
    [
        ([0, 1], [[0]], "annotations has 1 rows but y has 2"),
        ([[0], [1]], [[0], [1]], "y must be 1-D"),
        ([0, 1], [0, 1], "2-D"),
        ([0, 1], None, "annotations is None"),
    ],
)
def test_bad_targets(y, annotations, match):
    with pytest.raises(ValueError, match=match):
        AnnotatedTarget(y, annotations)


def test_split_target():
    y = make_target(np.array)
    plain, annotations = split_target(y)
    assert type(plain) is np.ndarray
    assert annotations is y.annotations
    labels = [0, 1]
    assert split_target(labels, "A") == (labels, "A")
    assert split_target(labels) == (labels, None)
    with pytest.raises(ValueError, match="one of the two"):
        split_target(y, annotations)
    with pytest.raises(ValueError, match="lost its annotations"):
        split_target(y.copy())
    assert split_target(y.copy(), annotations)[1] is annotations


class Recorder(ClassifierMixin, BaseEstimator):
    """Checks in fit and score that the annotations belong to the rows."""

    def __init__(self, c=0):
        self.c = c

    def check(self, y, annotations):
        y, annotations = split_target(y, annotations)
        assert type(y) is np.ndarray
        assert_array_equal(np.asarray(annotations)[:, 0], y)
        return y, np.asarray(annotations)[:, 1]

    def fit(self, X, y, annotations=None):
        y, rows = self.check(y, annotations)
        self.classes_, self.seen_ = np.unique(y), rows
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y, annotations=None, sample_weight=None):
        _, rows = self.check(y, annotations)
        return float(not set(rows) & set(self.seen_))


@pytest.fixture
def crowd():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 10)
    X = rng.normal(size=(30, 4)) + y[:, None]
    return X, AnnotatedTarget(y, pd.DataFrame(np.column_stack([y, np.arange(30)])))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_target_through_grid_search(crowd, n_jobs):
    X, y = crowd
    pipeline = make_pipeline(SelectKBest(f_classif, k=2), Recorder())
    search = GridSearchCV(pipeline, {"recorder__c": [0, 1]}, cv=3, n_jobs=n_jobs, error_score="raise")
    search.fit(X, y)
    assert_array_equal(search.cv_results_["mean_test_score"], [1, 1])
    assert_array_equal(search.best_estimator_[-1].seen_, np.arange(30))


def test_target_through_cross_validate_and_split(crowd):
    X, y = crowd
    result = cross_validate(Recorder(), X, y, cv=5, error_score="raise", return_estimator=True)
    assert_array_equal(result["test_score"], np.ones(5))
    assert {len(estimator.seen_) for estimator in result["estimator"]} == {24}
    scores = cross_validate(Recorder(), X, y, cv=3, scoring="accuracy", error_score="raise")["test_score"]
    assert scores.mean() == pytest.approx(1 / 3)
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    assert_array_equal(X[row_ids(y_test)], X_test)
    assert Recorder().fit(X_train, y_train).score(X_test, y_test) == 1


class MeanAnnotation(TransformerMixin, BaseEstimator):
    """A step of a pipeline that learns from the annotations that travel with y."""

    def fit(self, X, y):
        self.mean_ = float(np.asarray(split_target(y)[1])[:, 1].astype(float).mean())
        return self

    def transform(self, X):
        return np.full((len(X), 1), self.mean_)


@CONTAINERS
def test_cache_of_a_pipeline_tells_annotations_apart(container, tmp_path):
    """joblib hashes arrays by their buffer, which is the same here."""
    X, y, other = np.zeros((6, 1)), make_target(container), make_target(container)
    changed = np.asarray(other.annotations) + np.array([0, 10])
    other = AnnotatedTarget(
        np.asarray(other), changed.tolist() if container is np.ndarray.tolist else container(changed)
    )
    pipeline = make_pipeline(MeanAnnotation(), "passthrough", memory=str(tmp_path))
    means = [pipeline.fit(X, target)[0].mean_ for target in (y, other, y)]
    assert means == [2.5, 12.5, 2.5]


@CONTAINERS
def test_hash_of_equal_targets_is_the_same(container):
    assert joblib.hash(make_target(container)) == joblib.hash(make_target(container))
    if container is not pd.DataFrame:  # pickling changes the hash of any frame
        assert joblib.hash(make_target(container)) == joblib.hash(pickle.loads(pickle.dumps(make_target(container))))


def test_hash_sees_the_mask():
    y, table = np.array([0, 1]), np.array([[0, 1], [1, 1]])
    targets = [AnnotatedTarget(y, np.ma.masked_equal(table, value)) for value in (0, 1, 2)]
    assert len({joblib.hash(target) for target in targets}) == 3


def test_strides_are_those_of_the_labels():
    y = make_target(np.array)
    assert y.strides == np.asarray(y).strides
    assert y[::2].strides == np.asarray(y)[::2].strides
