"""Moments of the answers that annotators give to the same items, and what is common to the methods that use them.

Given the truth, two annotators answer independently, so that the joint distribution of their answers is
``A[a].T @ diag(prior) @ A[b]``, with confusion matrices of truth (rows) by answer. Pairs without shared items have no
moments: they are left out, and not taken for zeros.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment, nnls
from scipy.sparse import csr_array, hstack
from scipy.sparse.csgraph import connected_components


class PairMoments(NamedTuple):
    """Second moments of P ordered pairs of annotators who share items, sorted by the first and then the second.

    `shared` (P,) is the weight of the shared items, and `joint` (P, C, C) the distribution of the first one's answer
    (rows) and the second one's on them.
    """

    first: np.ndarray
    second: np.ndarray
    shared: np.ndarray
    joint: np.ndarray


def with_truth(answers, allowed):
    """Answers (n, M * C) with the known truth as one more annotator, who is always right; M is the same if none is.

    Parameters
    ----------
    answers : csr_array of shape (n, M * C)
        As returned by `answer_matrix`.
    allowed : ndarray of bool of shape (n, C)
        Classes that an item may have: one where its truth is known.
    """
    known = allowed.sum(1) == 1
    if not known.any():
        return answers
    return csr_array(hstack([answers, csr_array((allowed & known[:, None]).astype(float))]))


def first_moments(answers, weight, n_classes):
    """Weight of the answers (M, C) that each annotator gave for each class."""
    return (answers.T @ weight).reshape(-1, n_classes)


def pair_moments(answers, weight, n_classes):
    """Second moments of all pairs with shared items.

    Parameters
    ----------
    answers : csr_array of shape (n, M * C)
        As returned by `answer_matrix`.
    weight : ndarray of shape (n,)
        Weights of the items.
    n_classes : int
        Number C of classes.

    Returns
    -------
    pairs : PairMoments
        Both orders of every pair.
    """
    n_annotators = answers.shape[1] // n_classes
    products = (answers.T @ answers.multiply(weight[:, None])).tocoo()
    rows, columns = products.coords
    (first, answer), (second, other) = np.divmod(rows.astype(np.int64), n_classes), np.divmod(columns, n_classes)
    apart = (first != second) & (products.data > 0)
    key, pair = np.unique((first * n_annotators + second)[apart], return_inverse=True)
    cell = (pair * n_classes + answer[apart]) * n_classes + other[apart]
    joint = np.bincount(cell, products.data[apart], len(key) * n_classes**2).reshape(-1, n_classes, n_classes)
    shared = joint.sum((1, 2))
    return PairMoments(key // n_annotators, key % n_annotators, shared, joint / shared[:, None, None])


def triple_moments(answers, weight, triples, n_classes):
    """Third moments of some triples of annotators.

    Parameters
    ----------
    answers : csr_array of shape (n, M * C)
        As returned by `answer_matrix`.
    weight : ndarray of shape (n,)
        Weights of the items.
    triples : ndarray of int of shape (T, 3)
        Three different annotators each, sorted by the first and then the second.
    n_classes : int
        Number C of classes.

    Returns
    -------
    shared : ndarray of shape (T,)
        Weight of the items that all three answered.
    joint : ndarray of shape (T, C, C, C)
        Distribution of their answers on them; zeros where they share none.
    """
    annotator, label = np.divmod(answers.indices, n_classes)
    rows = np.repeat(np.arange(answers.shape[0]), np.diff(answers.indptr))
    order = np.argsort(annotator, kind="stable")
    bounds = np.searchsorted(annotator[order], np.arange(answers.shape[1] // n_classes + 1))
    items, labels = ([side[order[a:b]] for a, b in pairwise(bounds)] for side in (rows, label))
    counts = np.zeros((len(triples), n_classes**3))
    _, start = np.unique(triples[:, :2], axis=0, return_index=True)
    for begin, end in pairwise([*start, len(triples)]):
        first, second = triples[begin, :2]
        both, one, two = np.intersect1d(items[first], items[second], assume_unique=True, return_indices=True)
        pair = labels[first][one] * n_classes + labels[second][two]
        for place, third in enumerate(triples[begin:end, 2], begin):
            rows, all_two, three = np.intersect1d(both, items[third], assume_unique=True, return_indices=True)
            cell = pair[all_two] * n_classes + labels[third][three]
            counts[place] = np.bincount(cell, weight[rows], n_classes**3)
    counts = counts.reshape(-1, n_classes, n_classes, n_classes)
    shared = counts.sum((1, 2, 3))
    return shared, np.divide(counts, shared[:, None, None, None], out=counts, where=shared[:, None, None, None] > 0)


def in_odd_circles(first, second, n_annotators):
    """Who (M,) is linked with an odd circle of annotators with shared items, without whom scales are not identified.

    A circle is odd where one can walk from an annotator back to the same in an odd number of steps, which is where an
    annotator's two nodes in the graph of alternating steps are linked.
    """
    ends = first, second + n_annotators
    graph = csr_array((np.ones(len(first)), ends), shape=(2 * n_annotators, 2 * n_annotators))
    part = connected_components(graph, directed=False)[1]
    return part[:n_annotators] == part[n_annotators:]


def parts_of(first, second, n_annotators):
    """Number (M,) of the part of the annotators, linked by shared items, that each belongs to."""
    graph = csr_array((np.ones(len(first)), (first, second)), shape=(n_annotators, n_annotators))
    return connected_components(graph, directed=False)[1]


def dominant_order(confusion, weight):
    """Order of the true classes in which the diagonals of confusion matrices are largest (Hungarian assignment).

    What moments tell is the same for every order, so that it is chosen as if annotators were rather right than wrong.

    Parameters
    ----------
    confusion : ndarray of shape (M, C, C)
        Matrices whose true classes (rows) are in one unknown order.
    weight : ndarray of shape (M,)
        How much each of them counts.

    Returns
    -------
    order : ndarray of int of shape (C,)
        ``confusion[:, order]`` is aligned.
    """
    return linear_sum_assignment(np.tensordot(weight, confusion, 1).T, maximize=True)[1]


def likeliest_prior(confusion, moments):
    """Class prior (C,) that explains best what annotators answer on the whole, by non-negative least squares.

    Parameters
    ----------
    confusion : ndarray of shape (M, C, C)
        Probability of an answer (last axis) given the truth.
    moments : ndarray of shape (M, C)
        As returned by `first_moments`.
    """
    total = moments.sum(1)
    seen = total > 0
    root = np.sqrt(total[seen] / total.sum())[:, None]
    design = (confusion[seen] * root[:, None]).transpose(0, 2, 1).reshape(-1, confusion.shape[1])
    prior = nnls(design, (moments[seen] / total[seen, None] * root).ravel())[0]
    return prior / prior.sum()


def as_distributions(matrices):
    """Rows (last axis) without their negative entries, and with sum 1; rows without positive ones are uniform."""
    positive = np.maximum(matrices, 0.0)
    total = positive.sum(-1, keepdims=True)
    return np.divide(positive, total, out=np.full(matrices.shape, 1 / matrices.shape[-1]), where=total > 0)


def shrunk(confusion, class_prior, n_answers, prior):
    """Matrices (M, C, C) after `prior` pseudo-counts per cell, beside the `n_answers` (M,) that they are made of."""
    counts = n_answers[:, None, None] * class_prior[:, None] * confusion + prior
    total = counts.sum(2, keepdims=True)
    return np.divide(counts, total, out=confusion.copy(), where=total > 0)
