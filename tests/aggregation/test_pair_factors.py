"""Confusion matrices from pairs of annotators: MultiSPA and CoupledNMF."""

import numpy as np
import pytest
from _crowds import draw_confusion, enumerate_crowd, simulate_crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from sklearn_l2d._numerics._co_labels import pair_moments
from sklearn_l2d._numerics._crowd_em import answer_matrix
from sklearn_l2d._numerics._pair_factors import fit_coupled, successive_projection
from sklearn_l2d._votes import make_votes
from sklearn_l2d.aggregation import CoupledNMF, MajorityVote, MultiSPA
from sklearn_l2d.datasets import load_crowd

PRIOR = np.array([0.2, 0.3, 0.5])


def separable(n_annotators=6, n_sure=3, random_state=0):
    """Confusion matrices of a crowd in which the first ones say a class, each another, only where it is true."""
    confusion = draw_confusion(n_annotators, 3, random_state)
    for sure in range(n_sure):
        others = np.arange(3) != sure % 3
        confusion[sure, others, sure % 3] = 0
        confusion[sure, others] /= confusion[sure, others].sum(1, keepdims=True)
    return confusion


def test_corners_of_mixtures_are_found():
    rng = np.random.default_rng(0)
    corners = rng.dirichlet(np.ones(4), 4)
    mixtures = rng.dirichlet(np.ones(4), 50) @ corners
    points = np.concatenate([mixtures[:20], corners, mixtures[20:]])
    assert sorted(successive_projection(points, 4)) == [20, 21, 22, 23]
    assert len(successive_projection(mixtures[:2], 4)) == 2  # no more than they span


def test_projection_is_exact_where_the_crowd_is_separable():
    confusion = separable(n_annotators=7, n_sure=6)
    votes, weight = enumerate_crowd(confusion, PRIOR)
    consensus = MultiSPA(prior=0, min_answers=0).fit(votes, sample_weight=weight)
    assert_allclose(consensus.confusion_matrices_, confusion, atol=1e-9)
    assert_allclose(consensus.class_prior_, PRIOR, atol=1e-9)
    assert consensus.identified_.all()


def test_factors_are_exact_where_the_crowd_is_separable():
    """Nobody else is sure for the first three, so that projection is off where all pairs together are not."""
    confusion = separable()
    votes, weight = enumerate_crowd(confusion, PRIOR)
    factors = CoupledNMF(prior=0, min_answers=0, tol=1e-12, max_iter=10_000).fit(votes, sample_weight=weight)
    assert_allclose(factors.confusion_matrices_, confusion, atol=0.01)
    assert_allclose(factors.class_prior_, PRIOR, atol=0.01)
    projected = MultiSPA(prior=0, min_answers=0).fit(votes, sample_weight=weight)
    assert np.abs(projected.confusion_matrices_ - confusion).max() > 0.03


def test_objective_by_brute_force_and_it_never_falls():
    votes, _ = simulate_crowd(draw_confusion(4, 3), PRIOR, 200, missing=0.3)
    answers = answer_matrix(make_votes(votes))
    pairs = pair_moments(answers, np.ones(200), 3)
    confusion, prior, history, converged = fit_coupled(pairs, draw_confusion(4, 3, 1), np.full(3, 1 / 3), 40, 0)
    assert not converged
    assert np.diff(history).min() > 0
    once = fit_coupled(pairs, confusion, prior, 1, 0)[2][0]
    expected = 0.0
    for row in votes:
        for a in range(4):
            for b in range(a + 1, 4):
                if row[a] >= 0 and row[b] >= 0:
                    expected += np.log(prior @ (confusion[a, :, row[a]] * confusion[b, :, row[b]]))
    assert_allclose(once, expected)
    assert once > history[-1]


def test_blocks_of_pairs_are_the_whole(monkeypatch):
    votes, _ = simulate_crowd(draw_confusion(5, 3), PRIOR, 200)
    whole = CoupledNMF().fit(votes)
    monkeypatch.setattr("sklearn_l2d._numerics._pair_factors._BLOCK", 27)
    assert_allclose(CoupledNMF().fit(votes).confusion_matrices_, whole.confusion_matrices_)


@pytest.mark.parametrize("estimator", [MultiSPA(), CoupledNMF()], ids=str)
def test_errors_fall_with_items(estimator):
    confusion, errors = separable(9, 6), []
    for n_items in (500, 5000, 50_000):
        votes, _ = simulate_crowd(confusion, PRIOR, n_items, missing=0.2)
        # noise of the corners falls with the answers of each mixture
        estimator.set_params(min_answers=n_items / 50)
        errors.append(np.abs(estimator.fit(votes).confusion_matrices_ - confusion).mean())
    assert errors[0] > 1.3 * errors[1] > 1.3**2 * errors[2]


def test_whom_pairs_do_not_identify():
    votes, _ = simulate_crowd(draw_confusion(5, 3), PRIOR, 300)
    votes = np.where(np.arange(5) == 4, np.where(np.arange(300)[:, None] < 3, votes, -1), votes)
    consensus = MultiSPA().fit(votes)
    assert consensus.identified_.tolist() == [True] * 4 + [False]
    assert_array_equal(consensus.confusion_matrices_[4], consensus.prior_confusion_)
    assert CoupledNMF().fit(votes).identified_.all()
    with pytest.warns(ConvergenceWarning, match="nobody's reliability"):
        CoupledNMF().fit(votes[:, :2])


@pytest.mark.data
@pytest.mark.parametrize("name", ["bluebird", "rte", "dog", "web"])
def test_factors_beat_the_majority_on_real_votes(name):
    crowd = load_crowd(f"label_only_{name}")
    known = crowd.y >= 0
    accuracy = [
        np.mean(consensus.fit_predict(crowd.annotations)[known] == crowd.y[known])
        for consensus in (MajorityVote(), CoupledNMF())
    ]
    assert accuracy[1] > accuracy[0]
