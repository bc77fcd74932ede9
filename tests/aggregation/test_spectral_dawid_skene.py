"""Spectral methods: exact on enumerated crowds, better with more items, and as a start of EM."""

import numpy as np
import pytest
from _crowds import draw_confusion, enumerate_crowd, simulate_crowd
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from sklearn_l2d._numerics._spectral import eigenpairs_of, rank_one, three_groups
from sklearn_l2d.aggregation import DawidSkene, MajorityVote, SpectralDawidSkene
from sklearn_l2d.datasets import load_crowd


@pytest.mark.parametrize(
    ("method", "n_annotators", "prior"),
    [
        ("eigenvector", 5, [0.3, 0.7]),
        ("eigenvector", 3, [0.9, 0.1]),
        ("tensor", 5, [0.3, 0.7]),
        ("tensor", 6, [0.2, 0.3, 0.5]),
        ("tensor", 3, [0.1, 0.2, 0.3, 0.4]),
    ],
)
def test_exact_on_an_enumerated_crowd(method, n_annotators, prior):
    confusion = draw_confusion(n_annotators, len(prior), random_state=1)
    votes, weight = enumerate_crowd(confusion, prior)
    consensus = SpectralDawidSkene(method=method, prior=0).fit(votes, sample_weight=weight)
    assert_allclose(consensus.confusion_matrices_, confusion, atol=1e-6)
    assert_allclose(consensus.class_prior_, prior, atol=1e-6)
    assert consensus.identified_.all()


def test_one_who_contradicts_is_recovered_too():
    confusion = draw_confusion(5, 2)
    confusion[2] = confusion[2][::-1]
    votes, weight = enumerate_crowd(confusion, [0.4, 0.6])
    for method in ("eigenvector", "tensor"):
        consensus = SpectralDawidSkene(method=method, prior=0).fit(votes, sample_weight=weight)
        assert_allclose(consensus.confusion_matrices_, confusion, atol=1e-6)


def test_vector_of_a_matrix_of_rank_one_without_diagonal_and_with_gaps():
    rng = np.random.default_rng(0)
    vector = rng.uniform(-0.2, 1, 30)
    first, second = np.nonzero(~np.eye(30, dtype=bool) & (np.add.outer(np.arange(30), np.arange(30)) % 3 > 0))
    weight = rng.uniform(1, 5, (30, 30))
    weight = (weight + weight.T)[first, second]
    found = rank_one(first, second, vector[first] * vector[second], weight, 31)
    assert_allclose(found[:30], vector, atol=1e-5)
    assert found[30] == 0


def test_eigenpairs_of_a_tensor():
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    values = np.array([1.0, 1.1, 2.0, 3.0])
    found, directions = eigenpairs_of(np.einsum("h,ha,hb,hc->abc", values, vectors, vectors, vectors))
    order = np.argsort(found)
    assert_allclose(found[order], values)
    assert_allclose(directions[order], vectors, atol=1e-9)


def test_groups_are_of_similar_size():
    answers = np.array([50, 3, 40, 2, 1, 30, 20, 10])
    group = three_groups(answers)
    assert np.bincount(group, answers).tolist() == [50 + 3 + 2, 40 + 10 + 1, 30 + 20]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_fall_with_items_and_accuracies_are_ordered(n_classes):
    confusion, prior = draw_confusion(9, n_classes), np.full(n_classes, 1 / n_classes)
    errors = []
    for n_items in (500, 5000, 50_000):
        votes, _ = simulate_crowd(confusion, prior, n_items, missing=0.3)
        consensus = SpectralDawidSkene().fit(votes)
        errors.append(np.abs(consensus.confusion_matrices_ - confusion).mean())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    balanced = np.einsum("acc->a", confusion)
    apart = np.abs(np.subtract.outer(balanced, balanced)) > 0.1
    learnt = np.einsum("acc->a", consensus.confusion_matrices_)
    assert (np.subtract.outer(learnt, learnt) * np.subtract.outer(balanced, balanced) > 0)[apart].all()


def test_the_spectral_start_avoids_an_optimum_of_the_majority():
    """Three good annotators among many who agree on nothing but a bias: EM from the majority may be led astray."""
    confusion = np.concatenate([np.full((3, 3, 3), 0.05) + 0.85 * np.eye(3), np.tile([0.8, 0.1, 0.1], (8, 3, 1))])
    votes, truth = simulate_crowd(confusion, np.full(3, 1 / 3), 1500)
    accuracy = {init: np.mean(DawidSkene(init=init).fit_predict(votes) == truth) for init in ("majority", "spectral")}
    assert accuracy["spectral"] >= accuracy["majority"]
    assert accuracy["spectral"] > 0.95


def test_the_spectral_start_reaches_the_same_optimum_on_easy_votes():
    votes, truth = simulate_crowd(draw_confusion(6, 3), np.full(3, 1 / 3), 2000, missing=0.2)
    known = np.where(np.arange(2000) < 20, truth.astype(float), np.nan)
    scores = [DawidSkene(init=init, tol=1e-9).fit(votes, known).history_[-1] for init in ("majority", "spectral")]
    assert_allclose(scores[1], scores[0], rtol=1e-6)


def test_whom_moments_do_not_identify():
    votes, _ = simulate_crowd(draw_confusion(5, 2), [0.5, 0.5], 300)
    apart = np.full((310, 6), -1)
    apart[:300, :5] = votes
    apart[300:, 5] = 1  # shares no item with anybody
    consensus = SpectralDawidSkene().fit(apart)
    assert consensus.identified_.tolist() == [True] * 5 + [False]
    assert_allclose(consensus.confusion_matrices_[5], 0.5)
    with pytest.warns(ConvergenceWarning, match="nobody's reliability"):
        two = SpectralDawidSkene().fit(votes[:, :2])  # of two, one may be good and the other bad, or the reverse
    assert_allclose(two.predict_proba(votes[:, :2]), np.tile(two.class_prior_, (300, 1)))
    with pytest.warns(ConvergenceWarning, match="found no start"):
        DawidSkene(init="spectral").fit(votes[:, :2])


def test_known_truth_helps():
    confusion = draw_confusion(4, 3, honest=0.2)
    votes, truth = simulate_crowd(confusion, np.full(3, 1 / 3), 3000)
    plain, helped = SpectralDawidSkene().fit(votes), SpectralDawidSkene().fit(votes, truth)
    errors = [np.abs(consensus.confusion_matrices_ - confusion).mean() for consensus in (plain, helped)]
    assert errors[1] < 0.75 * errors[0]


def test_more_than_two_classes_have_no_eigenvector():
    with pytest.raises(ValueError, match=r"of 2 classes, but there are 3; use 'tensor'"):
        SpectralDawidSkene(method="eigenvector").fit([[0, 1, 2], [0, 1, 1]])


@pytest.mark.data
@pytest.mark.parametrize("name", ["bluebird", "rte", "dog", "web"])
def test_better_than_the_majority_on_real_votes(name):
    crowd = load_crowd(f"label_only_{name}")
    known = crowd.y >= 0
    accuracy = [
        np.mean(consensus.fit_predict(crowd.annotations)[known] == crowd.y[known])
        for consensus in (MajorityVote(), SpectralDawidSkene(), DawidSkene(init="spectral"))
    ]
    assert min(accuracy[1:]) > accuracy[0]
