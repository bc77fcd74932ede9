"""Fuzzy c-means: exact limits, the formulas cell by cell, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from property.strategies import points
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from sklearn_l2d._numerics._fuzzy import fuzzy_c_means, log_memberships, objective
from sklearn_l2d.cluster import FuzzyCMeans


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, centers=[[0, 0], [6, 0], [0, 7]], cluster_std=0.8, random_state=0)[0]


def textbook_memberships(X, centers, m):
    """Bezdek's formula, cell by cell."""
    d = [[np.linalg.norm(x - c) for c in centers] for x in X]
    return [[1 / sum((dk / dj) ** (2 / (m - 1)) for dj in row) for dk in row] for row in d]


@pytest.mark.parametrize("m", [1.3, 2.0, 4.0])
def test_formulas(blobs, m):
    fcm = FuzzyCMeans(3, m=m, tol=1e-10, max_iter=2000, random_state=0).fit(blobs)
    u = np.array(textbook_memberships(blobs, fcm.cluster_centers_, m))
    assert_allclose(fcm.memberships_, u, rtol=1e-8)
    assert_allclose(fcm.transform(blobs), u, rtol=1e-8)
    centers = [(u[:, [k]] ** m * blobs).sum(0) / (u[:, k] ** m).sum() for k in range(3)]
    assert_allclose(fcm.cluster_centers_, centers, rtol=1e-6)
    distance = ((blobs[:, None] - fcm.cluster_centers_) ** 2).sum(2)
    assert fcm.objective_ == pytest.approx((u**m * distance).sum())
    assert_array_equal(fcm.labels_, distance.argmin(1))
    assert_array_equal(fcm.predict(blobs), fcm.labels_)


def test_a_general_optimiser_finds_nothing_better(blobs):
    fcm = FuzzyCMeans(3, random_state=0, tol=1e-9, max_iter=2000).fit(blobs)

    def value(centers):
        squared = ((blobs[:, None] - centers.reshape(3, 2)) ** 2).sum(2)
        return (1 / (1 / squared).sum(1)).sum()  # the objective at the best memberships, for m = 2

    found = minimize(value, KMeans(3, n_init=5, random_state=0).fit(blobs).cluster_centers_.ravel())
    assert fcm.objective_ <= found.fun * (1 + 1e-7)


def test_near_one_it_is_k_means(blobs):
    fcm = FuzzyCMeans(3, m=1.001, random_state=0).fit(blobs)
    kmeans = KMeans(3, n_init=5, random_state=0).fit(blobs)
    assert adjusted_rand_score(fcm.labels_, kmeans.labels_) == 1
    assert fcm.objective_ == pytest.approx(kmeans.inertia_, rel=1e-3)
    assert fcm.memberships_.max(1) == pytest.approx(1)


def test_large_fuzzifiers_make_memberships_alike(blobs):
    fcm = FuzzyCMeans(3, m=1e3, random_state=0).fit(blobs)
    alike = np.abs(fcm.memberships_ - 1 / 3).max(1) < 0.01
    assert alike.sum() >= len(blobs) - 3  # a centre may sit on a point
    assert_allclose(fcm.memberships_[~alike].max(1, initial=1), 1)


def test_a_point_on_a_centre_belongs_to_it_alone():
    squared = np.array([[0.0, 4.0, 1.0], [0.0, 0.0, 9.0], [1e-300, 1.0, 1.0]])
    with np.errstate(all="raise"):
        u = np.exp(log_memberships(squared, 2.0))
    assert_array_equal(u[:2], [[1, 0, 0], [0.5, 0.5, 0]])
    assert_allclose(u[2], [1, 0, 0], atol=1e-12)
    assert objective(squared[:1], np.log([[1.0, 1e-300, 1e-300]]), 2.0) == 0


def test_as_many_clusters_as_points():
    X = np.array([[0.0], [1.0], [5.0]])
    fcm = FuzzyCMeans(3, random_state=0).fit(X)
    assert fcm.objective_ == pytest.approx(0, abs=1e-12)
    assert_allclose(fcm.memberships_[fcm.labels_.argsort()], np.eye(3), atol=1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn")
def test_points_that_are_all_alike():
    fcm = FuzzyCMeans(2, random_state=0).fit(np.ones((5, 3)))
    assert_allclose(fcm.cluster_centers_, np.ones((2, 3)))
    assert_allclose(fcm.memberships_, np.full((5, 2), 0.5))


@given(X=points(), m=st.sampled_from([1.01, 1.5, 2.0, 5.0]), n_clusters=st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_the_objective_never_rises(X, m, n_clusters):
    _, log_u, history, _ = fuzzy_c_means(X, X[:n_clusters], m, max_iter=40, tol=0.0)
    size = 1 + (X**2).sum()
    assert (np.diff(history) <= 1e-9 * size).all()
    assert_allclose(np.exp(log_u).sum(1), 1)
    assert np.isfinite(history).all()


def test_more_starts_are_never_worse(blobs):
    X = np.vstack([blobs, blobs + 20, blobs + 50])
    one = FuzzyCMeans(9, n_init=1, random_state=1, max_iter=1000).fit(X)
    many = FuzzyCMeans(9, n_init=20, random_state=1, max_iter=1000).fit(X)
    assert many.objective_ <= one.objective_
    assert many.n_iter_ == len(many.history_)


def test_warns_without_convergence(blobs):
    with pytest.warns(ConvergenceWarning, match="after max_iter=1"):
        FuzzyCMeans(3, max_iter=1, random_state=0).fit(blobs)


@pytest.mark.parametrize("params", [{"m": 1.0}, {"m": 0.5}, {"n_clusters": 0}, {"n_init": 0}])
def test_bad_parameters(blobs, params):
    with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter"):
        FuzzyCMeans(**params).fit(blobs)


def test_more_clusters_than_points():
    with pytest.raises(ValueError, match="n_samples=2 should be >= n_clusters=3"):
        FuzzyCMeans(3).fit([[0.0], [1.0]])
