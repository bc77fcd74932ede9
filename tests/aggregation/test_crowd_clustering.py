"""Clusters from votes on pairs: exact blocks, noise, and the likelihood by hand."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad
from scipy.special import softmax
from sklearn.metrics import adjusted_rand_score

import sklearn_l2d
from sklearn_l2d.aggregation import CrowdClustering
from sklearn_l2d.aggregation._crowd_clustering import similarity_loss


def votes_on(truth, n_votes, noise=0.0, random_state=0):
    rng = np.random.default_rng(random_state)
    pairs = np.array([rng.choice(len(truth), 2, replace=False) for _ in range(n_votes)])
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    return pairs, same ^ (rng.random(n_votes) < noise)


def test_two_blocks_are_exact():
    pairs = np.array(list(combinations(range(8), 2)))
    truth = np.array([0, 0, 0, 1, 1, 1, 0, 1])
    model = CrowdClustering(random_state=0).fit(pairs, truth[pairs[:, 0]] == truth[pairs[:, 1]])
    assert_array_equal(model.labels_, truth)
    assert_allclose(model.predict_proba(pairs), truth[pairs[:, 0]] == truth[pairs[:, 1]], atol=0.1)


@pytest.mark.parametrize(("n_items", "noise"), [(60, 0.0), (60, 0.2), (250, 0.1)])
def test_partitions_are_recovered_from_some_pairs(n_items, noise):
    truth = np.arange(n_items) % 3
    pairs, same = votes_on(truth, 20 * n_items, noise)
    model = CrowdClustering(3, random_state=0).fit(pairs, same)
    assert adjusted_rand_score(truth, model.labels_) >= (0.9 if noise == 0.2 else 1)
    together = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    proba = model.predict_proba(pairs)
    assert proba[together].mean() > proba[~together].mean() + 0.6 - 2 * noise


def test_likelihood_by_hand_and_its_gradient():
    rng = np.random.default_rng(0)
    logits, pairs, same = rng.normal(size=12), np.array([[0, 1], [1, 2], [0, 3]]), np.array([True, False, True])
    f = softmax(logits.reshape(4, 3), axis=1)
    expected = -np.log(f[0] @ f[1]) - np.log(1 - f[1] @ f[2]) - np.log(f[0] @ f[3]) + 0.05 * (logits**2).sum()
    arguments = *pairs.T, same, 3, 0.1
    assert_allclose(similarity_loss(logits, *arguments)[0], expected)
    assert check_grad(*(lambda x, k=k: similarity_loss(x, *arguments)[k] for k in (0, 1)), logits) < 1e-5


def test_the_seed_decides_and_a_file_keeps_names(tmp_path):
    truth = np.arange(20) % 2
    pairs, same = votes_on(truth, 150, 0.1)
    names = np.array([f"item {k:02}" for k in range(20)], dtype=object)
    model, again = (CrowdClustering(random_state=0).fit(names[pairs], same) for _ in range(2))
    assert_array_equal(model.membership_, again.membership_)
    assert model.items_.tolist() == names.tolist()
    pytest.importorskip("skops", reason="skops is in the extras named save and test")
    model.save(tmp_path / "file")
    assert_array_equal(
        sklearn_l2d.load(tmp_path / "file").predict_proba(names[pairs]), model.predict_proba(names[pairs])
    )


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="one boolean"):
        CrowdClustering().fit([["a", "b"]], [2])
    with pytest.raises(ValueError, match="with itself"):
        CrowdClustering().fit([["a", "a"]], [True])
    with pytest.raises(ValueError, match="n_clusters=3"):
        CrowdClustering(3).fit([["a", "b"]], [True])
    with pytest.raises(ValueError, match="fit did not see"):
        CrowdClustering().fit([["a", "b"], ["b", "c"]], [True, False]).predict_proba([["a", "x"]])
