"""The curve of the perplexity, against fits and scores by hand."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatorLDA
from sklearn_l2d.model_selection import perplexity_curve
from sklearn_l2d.model_selection._perplexity_curve import _score


def small_lda(**settings):
    fast = {"max_epochs": 2, "init": "random", "hidden_layer_sizes": (4,)}
    return AnnotatorLDA(**fast | {"random_state": 0} | settings)


@pytest.fixture(scope="module")
def archive():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)), rng.integers(0, 4, (60, 3))


def score_by_hand(lda, X, y, splits):
    return [clone(lda).fit(X[train], y[train]).score(X[test], y[test]) for train, test in splits]


@pytest.mark.parametrize("scaled", [False, True])
def test_it_is_what_fits_and_scores_by_hand_give(archive, scaled):
    X, y = archive
    lda = make_pipeline(StandardScaler(), small_lda()) if scaled else small_lda()
    curve = perplexity_curve(lda, X, y, n_clusters=[3, 1], cv=3)
    assert_array_equal(curve.n_clusters, [1, 3])
    for row, k in enumerate([1, 3]):
        by_hand = lda.set_params(**{"annotatorlda__n_clusters" if scaled else "n_clusters": k})
        scores = score_by_hand(by_hand, X, y, KFold(3, shuffle=True, random_state=0).split(X))
        assert_allclose(curve.fold_perplexity[row], np.exp(-np.array(scores)))
        assert_allclose(curve.perplexity[row], np.exp(-np.mean(scores)))
        assert_allclose(curve.perplexity_std[row], np.std(np.exp(-np.array(scores))))
    fall = max(0, (curve.perplexity[0] - curve.perplexity[1]) / 2)
    assert_allclose(curve.rate, [np.nan, fall])
    assert curve.lowest == curve.n_clusters[curve.perplexity.argmin()]


def test_the_estimator_is_only_cloned(archive):
    lda = small_lda(n_clusters=5)
    before = lda.get_params()
    perplexity_curve(lda, *archive, n_clusters=2, cv=2)
    assert lda.get_params() == before
    assert not hasattr(lda, "net_")


def test_folds_of_an_archive_sorted_by_class_are_shuffled():
    y = np.repeat(np.eye(3, dtype=int), 20, axis=0)
    X = y + 0.01
    lda = small_lda(lr=0.5, max_epochs=40)
    sorted_folds = perplexity_curve(lda, X, y, n_clusters=[1], cv=KFold(3))
    assert perplexity_curve(lda, X, y, n_clusters=[1], cv=3).perplexity[0] < 2 < 3 < sorted_folds.perplexity[0]


def test_one_likelihood_for_all_numbers(archive):
    X, y = archive[0], archive[1] + 6  # 24 votes and more: exact for two behaviours, not for eight
    few = perplexity_curve(small_lda(alpha=1.0), X, y, n_clusters=[2], cv=2)
    many = perplexity_curve(small_lda(alpha=1.0), X, y, n_clusters=[2, 8], cv=2)
    assert few.likelihood == "exact"
    assert many.likelihood == "sobol"
    fixed = perplexity_curve(small_lda(alpha=1.0, likelihood="sobol"), X, y, n_clusters=[2], cv=2)
    assert_allclose(many.fold_perplexity[0], fixed.fold_perplexity[0])
    assert (many.fold_perplexity[0] != few.fold_perplexity[0]).all()


def test_groups_and_routing(archive):
    X, y = archive
    groups = np.arange(60) // 5
    scores = score_by_hand(small_lda(n_clusters=2), X, y, GroupKFold(3).split(X, groups=groups))
    for routing in (False, True):
        with config_context(enable_metadata_routing=routing):
            curve = perplexity_curve(small_lda(), X, y, n_clusters=[2], cv=GroupKFold(3), groups=groups)
        assert_allclose(curve.fold_perplexity[0], np.exp(-np.array(scores)))


def test_labels_and_frames_are_counts(archive):
    X, labels = archive[0], np.arange(60) % 4
    from_labels = perplexity_curve(small_lda(), X, labels, n_clusters=[2], cv=2)
    frame = pd.DataFrame(np.eye(4, dtype=int)[labels], columns=list("abcd"))
    from_frame = perplexity_curve(small_lda(), pd.DataFrame(X), frame, n_clusters=[2], cv=2)
    assert_allclose(from_labels.perplexity, from_frame.perplexity)


def test_it_counts_the_behaviours_that_are_used(archive):
    lda = small_lda(n_clusters=4, max_epochs=30).fit(*archive)
    assert _score(lda, *archive)["n_used"] == 4
    lda.cluster_weights_ = np.array([0.5, 0.3, 0.19, 0.01])
    assert _score(lda, *archive)["n_used"] == 4
    lda.cluster_weights_ = np.array([0.5, 0.3, 0.195, 0.005])
    assert _score(lda, *archive)["n_used"] == 3
    first, second = lda._order[:2]  # a copy of a behaviour that is used, then also of one that is not
    with torch.no_grad():
        for parameter in lda.net_.module_.members.parameters():
            parameter[second] = parameter[first]
    assert _score(lda, *archive)["n_used"] == 2
    lda.cluster_weights_ = np.array([0.005, 0.5, 0.3, 0.195])
    assert _score(lda, *archive)["n_used"] == 3


def test_a_collapse_is_a_result_not_a_warning():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.tile([1, 1, 0], (40, 1))
    lda = small_lda(init="consensus", n_consensus_epochs=1, n_anchor_epochs=1, hidden_layer_sizes=(), lr=1e-6)
    with pytest.warns(match="clusters collapsed"):
        clone(lda).set_params(n_clusters=3).fit(X, y)
    curve = perplexity_curve(lda, X, y, n_clusters=[1, 3], cv=2)
    assert_array_equal(curve.n_used, [1, 1])


def test_bad_arguments(archive):
    X, y = archive
    with pytest.raises(TypeError, match="LogisticRegression"):
        perplexity_curve(make_pipeline(StandardScaler(), LogisticRegression()), X, y)
    for wrong in ([], [0, 1], [1.5], "3", [[1, 2]]):
        with pytest.raises(ValueError, match="n_clusters="):
            perplexity_curve(small_lda(), X, y, n_clusters=wrong)
    with pytest.raises(ValueError, match="y has 59 rows"):
        perplexity_curve(small_lda(), X, y[:-1])
