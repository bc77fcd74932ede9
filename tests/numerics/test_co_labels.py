"""Moments of shared answers: by counting, on enumerated crowds, and what is not identified."""

import numpy as np
import pytest
from _crowds import draw_confusion, enumerate_crowd, simulate_crowd
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_l2d._numerics._co_labels import (
    as_distributions,
    dominant_order,
    first_moments,
    in_odd_circles,
    likeliest_prior,
    pair_moments,
    parts_of,
    triple_moments,
    with_truth,
)
from sklearn_l2d._numerics._crowd_em import answer_matrix
from sklearn_l2d._votes import make_votes


@pytest.fixture(scope="module")
def sparse():
    """Few answers, so that some pairs share no item, with weights."""
    votes, _ = simulate_crowd(draw_confusion(6, 3), np.full(3, 1 / 3), 12, missing=0.75)
    weight = np.random.default_rng(1).uniform(0.5, 2, 12)
    return votes, weight, answer_matrix(make_votes(votes, np.arange(3)))


def test_second_moments_by_counting(sparse):
    votes, weight, answers = sparse
    pairs = pair_moments(answers, weight, 3)
    found = {(a, b): place for place, (a, b) in enumerate(zip(pairs.first, pairs.second, strict=True))}
    assert len(found) == len(pairs.first) < 30
    for a in range(6):
        for b in range(6):
            both = (votes[:, a] >= 0) & (votes[:, b] >= 0)
            if a == b or not both.any():
                assert (a, b) not in found  # missing, not zero
                continue
            table = np.zeros((3, 3))
            np.add.at(table, (votes[both, a], votes[both, b]), weight[both])
            assert_allclose(pairs.shared[found[a, b]], weight[both].sum())
            assert_allclose(pairs.joint[found[a, b]], table / table.sum())


def test_third_moments_by_counting(sparse):
    votes, weight, answers = sparse
    triples = np.array([(a, b, c) for a in range(6) for b in range(a + 1, 6) for c in range(b + 1, 6)])
    shared, joint = triple_moments(answers, weight, triples, 3)
    assert (shared == 0).any()
    for (a, b, c), total, found in zip(triples, shared, joint, strict=True):
        rows = (votes[:, [a, b, c]] >= 0).all(1)
        table = np.zeros((3, 3, 3))
        np.add.at(table, tuple(votes[rows][:, [a, b, c]].T), weight[rows])
        assert_allclose(total, weight[rows].sum())
        assert_allclose(found * total, table)


def test_moments_of_an_enumerated_crowd_are_those_of_the_model():
    confusion, prior = draw_confusion(4, 3), np.array([0.2, 0.3, 0.5])
    votes, weight = enumerate_crowd(confusion, prior)
    answers = answer_matrix(make_votes(votes))
    assert_allclose(first_moments(answers, weight, 3), np.einsum("c,ack->ak", prior, confusion))
    pairs = pair_moments(answers, weight, 3)
    assert_allclose(pairs.joint, np.einsum("c,pck,pcl->pkl", prior, confusion[pairs.first], confusion[pairs.second]))
    shared, joint = triple_moments(answers, weight, np.array([[0, 1, 2], [1, 2, 3]]), 3)
    assert_allclose(shared, 1)
    assert_allclose(joint[1], np.einsum("c,ck,cl,cm->klm", prior, *confusion[1:]))
    assert_allclose(likeliest_prior(confusion, first_moments(answers, weight, 3)), prior)


def test_known_truth_is_one_more_annotator():
    votes = np.array([[0, 1], [1, 1], [-1, 0]])
    answers = answer_matrix(make_votes(votes))
    assert with_truth(answers, np.ones((3, 2), dtype=bool)) is answers
    allowed = np.array([[True, True], [False, True], [True, False]])
    expected = answer_matrix(make_votes(np.column_stack([votes, [-1, 1, 0]])))
    assert_array_equal(with_truth(answers, allowed).toarray(), expected.toarray())


def test_scales_are_identified_in_odd_circles_only():
    links = np.array([(0, 1), (1, 2), (2, 0), (2, 3), (4, 5), (5, 6), (6, 7), (7, 4)])
    first, second = np.concatenate([links, links[:, ::-1]]).T
    assert in_odd_circles(first, second, 9).tolist() == [True] * 4 + [False] * 5
    assert parts_of(first, second, 9).tolist() == [0] * 4 + [1] * 4 + [2]


def test_the_order_of_classes_is_that_of_the_diagonals():
    confusion = draw_confusion(5, 4)
    shuffled = confusion[:, [2, 0, 3, 1]]
    assert_array_equal(shuffled[:, dominant_order(shuffled, np.ones(5))], confusion)
    confusion[0] = confusion[0][[1, 0, 2, 3]]  # who errs does not change it, unless he counts most
    shuffled = confusion[:, [2, 0, 3, 1]]
    assert_array_equal(shuffled[:, dominant_order(shuffled, np.ones(5))], confusion)
    order = dominant_order(shuffled, np.array([100.0, 1, 1, 1, 1]))
    assert not np.array_equal(shuffled[:, order], confusion)


def test_rows_become_distributions():
    assert_array_equal(as_distributions(np.array([[3.0, -1, 1], [-1, -2, 0]])), [[0.75, 0, 0.25], [1 / 3] * 3])
