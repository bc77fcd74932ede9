"""Message passing: by loops over single messages, on random regular designs, and its limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from sklearn_l2d.aggregation import KOS, MajorityVote


def regular_crowd(n_items=600, per_item=9, per_annotator=18, random_state=0):
    """Votes on a random regular design by experts (0.9) and guessers, the truth, and who is right how often."""
    rng = np.random.default_rng(random_state)
    n_annotators = n_items * per_item // per_annotator
    accuracy = np.where(rng.random(n_annotators) < 0.4, 0.9, 0.5)
    truth = rng.integers(2, size=n_items)
    votes = np.full((n_items, n_annotators), -1)
    author = rng.permutation(np.repeat(np.arange(n_annotators), per_annotator)).reshape(n_items, per_item)
    for item, people in enumerate(author):  # of the few who are drawn twice for an item, one vote is kept
        right = rng.random(per_item) < accuracy[people]
        votes[item, people] = np.where(right, truth[item], 1 - truth[item])
    return votes, truth, accuracy


def messages_by_loops(votes, n_rounds):
    """Reliabilities after some rounds, from dictionaries of messages."""
    edges = [(i, a) for i, a in zip(*np.nonzero(votes >= 0), strict=True)]
    sign = {edge: 2 * votes[edge] - 1 for edge in edges}
    to_item = dict.fromkeys(edges, 1.0)
    for _ in range(n_rounds):
        to_annotator = {
            (i, a): sum(sign[j, b] * to_item[j, b] for j, b in edges if j == i and b != a) for i, a in edges
        }
        to_item = {
            (i, a): sum(sign[j, b] * to_annotator[j, b] for j, b in edges if b == a and j != i) for i, a in edges
        }
    return np.array([sum(sign[i, b] * to_annotator[i, b] for i, b in edges if b == a) for a in range(votes.shape[1])])


@pytest.mark.parametrize("n_rounds", [1, 2, 4])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_messages_by_loops(n_rounds):
    votes = regular_crowd(8, 3, 4)[0]
    expected = messages_by_loops(votes, n_rounds)
    expected *= np.sign((votes >= 0).sum(0) @ expected)  # most are taken to be right
    found = KOS(max_iter=n_rounds).fit(votes).annotator_weights_
    assert_allclose(found / np.linalg.norm(found), expected / np.linalg.norm(expected), atol=1e-9)


def test_near_the_oracle_on_a_random_regular_design():
    votes, truth, accuracy = regular_crowd()
    consensus = KOS().fit(votes)
    error = np.mean(consensus.predict(votes) != truth)
    signs = np.where(votes < 0, 0, 2 * votes - 1)
    oracle = np.mean((signs @ np.log(accuracy / (1 - accuracy)) > 0) != truth)
    majority = np.mean(MajorityVote().fit_predict(votes) != truth)
    assert error < oracle + 0.04
    assert error < majority / 2
    assert_allclose(consensus.annotator_accuracy_[accuracy == 0.9].mean(), 0.9, atol=0.1)
    assert_allclose(consensus.annotator_accuracy_[accuracy == 0.5].mean(), 0.5, atol=0.1)


def test_many_rounds_do_not_overflow():
    votes = regular_crowd(200, 15, 30)[0]
    with pytest.warns(ConvergenceWarning, match="max_iter=2000"):
        consensus = KOS(max_iter=2000, tol=0).fit(votes)
    assert np.isfinite(consensus.predict_proba(votes)).all()
    assert_allclose(consensus.annotator_weights_, KOS().fit(votes).annotator_weights_, rtol=1e-4, atol=1e-4)


def test_weights_repeat_items():
    votes = regular_crowd(40, 5, 10)[0]
    weight = np.arange(40) % 3
    weighed, repeated = KOS().fit(votes, sample_weight=weight), KOS().fit(np.repeat(votes, weight, axis=0))
    assert_allclose(weighed.predict_proba(votes), repeated.predict_proba(votes), atol=1e-6)


def test_known_truth_turns_the_signs():
    """Most annotators are wrong, which only the truth can tell."""
    votes, truth, _ = regular_crowd()
    votes = np.where(votes < 0, -1, 1 - votes)
    known = np.where(np.arange(600) < 300, truth.astype(float), np.nan)
    assert np.mean(KOS().fit_predict(votes) == truth) < 0.1
    assert np.mean(KOS().fit_predict(votes, known) == truth) > 0.9


def test_votes_that_nobody_shares_are_a_majority():
    votes = [[0, None], [None, 1], [1, None]]
    assert_array_equal(KOS().fit_predict(votes), [0, 1, 1])


def test_more_than_two_classes_are_refused():
    with pytest.raises(ValueError, match="KOS is for 2 classes, but there are 3: to split more of them they must have"):
        KOS().fit([[0, 1, 2]])
