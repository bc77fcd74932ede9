"""AgreementClustering: groups that are there, pairs that cannot be compared, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score

from sklearn_l2d.cluster import AgreementClustering
from sklearn_l2d.metrics import pairwise_agreement


@pytest.fixture(scope="module")
def schools():
    """Three groups of four experts; each group has its own opinion and strays from it one time in five."""
    rng = np.random.default_rng(0)
    opinions = rng.integers(0, 4, size=(80, 3))
    groups = np.repeat(np.arange(3), 4)
    stray = rng.random((80, 12)) < 0.2
    annotations = np.where(stray, rng.integers(0, 4, size=stray.shape), opinions[:, groups])
    return np.where(rng.random(stray.shape) < 0.5, -1, annotations), groups


@pytest.mark.parametrize("measure", ["kappa", "alpha", "accuracy"])
@pytest.mark.parametrize("method", ["average", "complete", "single"])
def test_finds_groups_and_equals_scipy(schools, measure, method):
    annotations, groups = schools
    clustering = AgreementClustering(3, measure=measure, linkage=method).fit(annotations)
    assert_array_equal(clustering.agreement_, pairwise_agreement(annotations, measure=measure))
    tree = linkage(squareform(1 - clustering.agreement_, checks=False), method)
    assert adjusted_rand_score(clustering.labels_, fcluster(tree, 3, "maxclust")) == 1
    if method == "average":
        assert adjusted_rand_score(clustering.labels_, groups) == 1


def test_pairs_without_overlap_are_imputed(schools, monkeypatch):
    annotations, groups = schools
    annotations = annotations.copy()
    annotations[:40, 0] = annotations[40:, 4] = -1  # 0 and 4 share no item
    annotations[:, 11] = -1
    seen = []

    def record(self, distance, y=None):
        seen.append(distance)
        return np.zeros(len(distance), dtype=int)

    monkeypatch.setattr("sklearn.cluster.AgglomerativeClustering.fit_predict", record)
    agreement = AgreementClustering(3).fit(annotations).agreement_
    assert np.isnan(agreement[0, 4])
    means = [np.nanmean([agreement[i, j] for j in range(12) if j != i]) for i in range(11)]
    assert_allclose(1 - seen[0][0, 4], (means[0] + means[4]) / 2)
    everybody = np.nanmean(agreement[np.triu_indices(12, 1)])
    assert_allclose(1 - seen[0][11, 2], (everybody + means[2]) / 2)
    assert_array_equal(np.diag(seen[0]), 0)
    monkeypatch.undo()
    assert adjusted_rand_score(AgreementClustering(3).fit(annotations).labels_[:11], groups[:11]) == 1


def test_names_and_labels_of_a_frame(schools):
    annotations, _ = schools
    names = [f"expert {m}" for m in range(12)]
    words = np.append(list("abcd"), None)[annotations]
    clustering = AgreementClustering(3).fit(pd.DataFrame(words, columns=names))
    assert clustering.experts_.tolist() == names
    assert_array_equal(clustering.labels_, AgreementClustering(3).fit_predict(annotations))


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ([[0, -1], [-1, 1], [1, -1]], "none share min_overlap=2 items"),
        ([[0, 0], [0, 0], [0, 0]], "none share min_overlap=2 items with different answers"),
        ([[0], [1]], "has 1 expert"),
        ([[0, 1, 0], [1, 0, 1]], "a minimum of 4 is required"),
    ],
)
def test_refuses(annotations, message):
    n_clusters = 4 if len(annotations[0]) == 3 else 2
    with pytest.raises(ValueError, match=message):
        AgreementClustering(n_clusters).fit(annotations)
