"""Minimax conditional entropy: its objective and its optimum by brute force, its limits, and its choice of strength."""

import numpy as np
import pytest
from _crowds import draw_confusion, simulate_crowd
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from sklearn_l2d._votes import make_votes
from sklearn_l2d.aggregation import DawidSkene, MajorityVote, MinimaxEntropy
from sklearn_l2d.aggregation._minimax_entropy import fit_minimax
from sklearn_l2d.datasets import load_crowd


def objective(z, votes, penalties):
    """Penalised log-likelihood, vote by vote, of a vector of all parameters."""
    n_annotators = votes.shape[1]
    honesty, annotator, item = z[0], *np.split(z[1:], [n_annotators * 4])
    annotator, item = annotator.reshape(-1, 2, 2), item.reshape(-1, 2, 2)
    total = -penalties[0] / 2 * (annotator**2).sum() - penalties[1] / 2 * (item**2).sum()
    for i, row in enumerate(votes):
        joint = np.zeros(2)
        for a, answer in enumerate(row):
            if answer >= 0:
                joint += log_softmax(honesty * np.eye(2) + annotator[a] + item[i], axis=1)[:, answer]
        total += logsumexp(joint)
    return total


def test_it_ends_where_the_objective_is_flat():
    votes, _ = simulate_crowd(draw_confusion(4, 2), [0.5, 0.5], 10, missing=0.2)
    everything = np.ones((10, 2), dtype=bool)
    honesty, annotator, item, _, penalty, history, _ = fit_minimax(
        make_votes(votes), everything, np.ones(10), 0.3, 3000, 0
    )
    assert_allclose(penalty, 0.3 * 4 * 10 / 4)
    found = np.concatenate([[honesty], annotator.ravel(), item.ravel()])
    penalties = 0.3 * 4, penalty
    assert_allclose(history[-1], objective(found, votes, penalties))
    assert np.diff(history).min() > -1e-9
    best = minimize(lambda z: -objective(z, votes, penalties), found)
    assert_allclose(-best.fun, history[-1], atol=1e-5)  # no better one is near


def test_strong_penalties_are_the_majority():
    votes, _ = simulate_crowd(draw_confusion(5, 2), [0.5, 0.5], 200)
    consensus = MinimaxEntropy(strength=1e6).fit(votes)
    assert_array_equal(consensus.predict(votes), MajorityVote().fit_predict(votes))
    assert_allclose(consensus.confusion_matrices_, np.broadcast_to(consensus.prior_confusion_, (5, 2, 2)), atol=1e-3)


def test_without_errors_of_items_it_learns_confusion_matrices():
    """Items are few for each annotator's penalty, and held back by so much that their errors vanish."""
    confusion = draw_confusion(6, 3, honest=0.6)
    votes, truth = simulate_crowd(confusion, np.full(3, 1 / 3), 1000)
    consensus = MinimaxEntropy(strength=0.5, tol=1e-4).fit(votes)
    assert_allclose(consensus.confusion_matrices_, confusion, atol=0.12)
    agreed = consensus.predict(votes) == DawidSkene(class_prior="uniform").fit_predict(votes)
    assert agreed.mean() > 0.97
    assert np.mean(consensus.predict(votes) == truth) > np.mean(MajorityVote().fit_predict(votes) == truth)


def test_held_out_votes_choose_the_strength():
    """Equal annotators need none of their own errors; very different ones do."""
    equal = simulate_crowd(np.tile([[0.7, 0.3], [0.3, 0.7]], (20, 1, 1)), [0.5, 0.5], 60)[0]
    different = np.concatenate([np.tile([[0.95, 0.05], [0.05, 0.95]], (5, 1, 1)), np.full((15, 2, 2), 0.5)])
    different = simulate_crowd(different, [0.5, 0.5], 60)[0]
    strengths = [MinimaxEntropy(tol=1e-3).fit(votes).strength_ for votes in (equal, different)]
    assert strengths[0] > strengths[1]


def test_known_truth_and_weights():
    votes, truth = simulate_crowd(draw_confusion(4, 3), np.full(3, 1 / 3), 60, missing=0.2)
    weight = np.arange(60) % 3
    weighed = MinimaxEntropy(strength=0.5, tol=1e-9).fit(votes, sample_weight=weight)
    repeated = MinimaxEntropy(strength=0.5, tol=1e-9).fit(np.repeat(votes, weight, axis=0))
    assert_allclose(weighed.confusion_matrices_, repeated.confusion_matrices_, atol=1e-6)
    wrong = MinimaxEntropy(strength=0.5).fit(votes, (truth + 1) % 3)  # what is told is believed
    assert wrong.annotator_accuracy_.max() < 0.5


@pytest.mark.data
def test_items_that_mislead_are_explained_on_real_votes():
    """Bluebirds: 99 of 108 items, one more than Dawid and Skene's model gets with the best smoothing."""
    crowd = load_crowd("label_only_bluebird")
    assert np.mean(MinimaxEntropy(strength=0.25).fit_predict(crowd.annotations) == crowd.y) > 0.9
