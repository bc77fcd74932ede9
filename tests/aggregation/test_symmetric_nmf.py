"""One matrix of all pairs: imputation is exact on exact moments, and so is the factor where the crowd is separable."""

import numpy as np
import pytest
from _crowds import draw_confusion, enumerate_crowd, simulate_crowd
from numpy.testing import assert_allclose

from sklearn_l2d._numerics._symmetric_factor import imputed
from sklearn_l2d.aggregation import MajorityVote, SymmetricNMF

PRIOR = np.array([0.2, 0.3, 0.5])


def sure_pairs():
    """Confusion matrices of seven annotators; two each say a class only where it is true."""
    confusion = draw_confusion(7, 3)
    for sure in range(6):
        others = np.arange(3) != sure % 3
        confusion[sure, others, sure % 3] = 0
        confusion[sure, others] /= confusion[sure, others].sum(1, keepdims=True)
    return confusion


@pytest.mark.parametrize("absent", [[], [(1, 4)], [(0, 1), (0, 2), (3, 6)]])
def test_missing_blocks_are_recovered_from_exact_moments(absent):
    confusion = draw_confusion(7, 3)
    exact = np.einsum("c,ack,bcl->abkl", PRIOR, confusion, confusion)
    blocks, shared = exact.copy(), np.ones((7, 7))
    for a, b in [*absent, *((a, a) for a in range(7))]:
        blocks[a, b] = blocks[b, a] = shared[a, b] = shared[b, a] = 0
    found, left = imputed(blocks, shared)
    assert not left.any()
    assert_allclose(found, exact, atol=1e-9)


def test_blocks_that_nobody_can_bridge_stay_missing():
    blocks, shared = np.full((4, 4, 2, 2), 0.25), np.zeros((4, 4))
    shared[0, 1] = shared[1, 0] = 1
    assert imputed(blocks * shared[:, :, None, None], shared)[1].sum() == 14


def test_exact_where_the_crowd_is_separable():
    confusion = sure_pairs()
    votes, weight = enumerate_crowd(confusion, PRIOR)
    consensus = SymmetricNMF(prior=0, min_answers=0, tol=1e-13, max_iter=3000).fit(votes, sample_weight=weight)
    assert_allclose(consensus.confusion_matrices_, confusion, atol=1e-4)
    assert_allclose(consensus.class_prior_, PRIOR, atol=1e-4)


def test_errors_fall_with_items_also_where_pairs_are_missing():
    confusion, errors = sure_pairs(), []
    for n_items in (700, 7000, 70_000):
        votes, truth = simulate_crowd(confusion, PRIOR, n_items)
        duty = np.arange(n_items)[:, None] % 7
        votes = np.where((np.arange(7) - duty) % 7 < 4, votes, -1)
        votes = np.where((np.arange(7) == 6) & (votes[:, :1] >= 0), -1, votes)  # the last never meets the first
        consensus = SymmetricNMF().fit(votes)
        errors.append(np.abs(consensus.confusion_matrices_ - confusion).mean())
    assert errors[0] > 1.5 * errors[1] > 1.5**2 * errors[2]
    assert np.mean(consensus.predict(votes) == truth) > np.mean(MajorityVote().fit_predict(votes) == truth)


def test_too_many_annotators_are_refused_with_a_way_out(monkeypatch):
    monkeypatch.setattr("sklearn_l2d._validation.free_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"3 annotators and 2 classes.*busiest annotators, or use CoupledNMF"):
        SymmetricNMF().fit([[0, 1, 1], [1, 1, 0]])
