"""Confusion matrices as factors of the second moments of pairs of annotators."""

from itertools import pairwise

import numpy as np

from ._co_labels import as_distributions, dominant_order, in_odd_circles

_FLAT = 1e-6  # length below which what is left of points, after projection, is taken for nothing
_HONEST = 0.5  # share of right answers, beside guesses, that those start with of whom nothing is known
_MIXED = 0.1  # share of guesses in a start: a probability of zero would stay one
_BLOCK = 1 << 20  # numbers of the arrays that are made for a block of pairs


def successive_projection(points, n_corners):
    """Points that are nearest to the corners of their convex hull (Araújo et al. 2001).

    Parameters
    ----------
    points : ndarray of shape (P, D)
        Points, P >= 1.
    n_corners : int
        How many to find.

    Returns
    -------
    corners : ndarray of int of shape (n,)
        Rows of `points`; less than `n_corners` where these span less.
    """
    left, corners = points.copy(), []
    for _ in range(n_corners):
        length = np.einsum("pd,pd->p", left, left)
        longest = int(length.argmax())
        if length[longest] < _FLAT**2:
            break
        corners.append(longest)
        direction = left[longest] / np.sqrt(length[longest])
        left = left - np.outer(left @ direction, direction)
    return np.array(corners, dtype=np.int64)


def multi_spa(pairs, n_annotators, n_classes, min_answers):
    """Confusion matrices by successive projection, annotator by annotator (Ibrahim et al. 2019).

    Given the answer of somebody else, the distribution of an annotator's answers is a mixture of the rows of the
    confusion matrix. Where others are sure of a class, it is a row: a corner of all these mixtures.

    Parameters
    ----------
    pairs : PairMoments
        Second moments.
    n_annotators : int
        Number M of annotators.
    n_classes : int
        Number C of classes.
    min_answers : float
        Mixtures that are known from a smaller weight of items are left out.

    Returns
    -------
    confusion : ndarray of shape (M, C, C)
        Probability of an answer (last axis) given the truth.
    identified : ndarray of bool of shape (M,)
        Whose mixtures have as many corners as there are classes.
    """
    confusion = np.full((n_annotators, n_classes, n_classes), 1 / n_classes)
    identified = np.zeros(n_annotators, dtype=bool)
    bounds = np.searchsorted(pairs.first, np.arange(n_annotators + 1))
    for annotator, (begin, end) in enumerate(pairwise(bounds)):
        counts = (pairs.joint[begin:end] * pairs.shared[begin:end, None, None]).transpose(0, 2, 1)
        counts = counts.reshape(-1, n_classes)
        total = counts.sum(1)
        enough = (total >= min_answers) & (total > 0)
        if not enough.any():
            continue
        points = counts[enough] / total[enough, None]
        corners = successive_projection(points, n_classes)
        if len(corners) == n_classes:
            found = points[corners]
            confusion[annotator] = found[dominant_order(found[None], np.ones(1))]
            identified[annotator] = True
    return confusion, identified


def fit_coupled(pairs, confusion, class_prior, max_iter, tol):
    """Factors of all second moments together that minimise their Kullback-Leibler divergence.

    Each step is that of EM for pairs of answers, which is mirror descent whose step size needs no choice (Kunstner et
    al. 2021): the objective never falls.

    Parameters
    ----------
    pairs : PairMoments
        Second moments, in both orders.
    confusion : ndarray of shape (M, C, C)
        Start, positive.
    class_prior : ndarray of shape (C,)
        Start, positive.
    max_iter : int
        Largest number of steps.
    tol : float
        Gain in nats per pair of answers below which they end.

    Returns
    -------
    confusion : ndarray of shape (M, C, C)
        Probability of an answer (last axis) given the truth.
    class_prior : ndarray of shape (C,)
        Probabilities of the classes.
    history : list of float
        Log-likelihood of the pairs at every step.
    converged : bool
        Whether the steps ended before `max_iter`.
    """
    counts = pairs.shared[:, None, None] * pairs.joint
    total = pairs.shared.sum()
    size = max(1, _BLOCK // len(class_prior) ** 2)
    history = []
    for _ in range(max_iter):
        gain, expected = 0.0, np.zeros_like(confusion)
        for begin in range(0, len(counts), size):
            end = begin + size
            first, observed = pairs.first[begin:end], counts[begin:end]
            other = confusion[pairs.second[begin:end]] * class_prior[:, None]
            fitted = np.maximum(confusion[first].transpose(0, 2, 1) @ other, 1e-300)
            gain += (observed * np.log(fitted)).sum()
            part = other @ (observed / fitted).transpose(0, 2, 1)  # by truth and the first one's answer
            start = np.flatnonzero(np.diff(first, prepend=-1))
            expected[first[start]] += np.add.reduceat(part, start)
        expected *= confusion
        history.append(float(gain / 2))
        confusion = as_distributions(expected)
        class_prior = expected.sum((0, 2)) / expected.sum()
        if len(history) > 1 and history[-1] - history[-2] < tol * total / 2:
            return confusion, class_prior, history, True
    return confusion, class_prior, history, False


def coupled_nmf(pairs, moments, min_answers, max_iter, tol):
    """Confusion matrices and class prior by `fit_coupled`, started at those of `multi_spa` and aligned.

    Parameters
    ----------
    pairs : PairMoments
        Second moments, in both orders.
    moments : ndarray of shape (M, C)
        As returned by `first_moments`.
    min_answers : float
        As in `multi_spa`.
    max_iter : int
        Largest number of steps.
    tol : float
        As in `fit_coupled`.

    Returns
    -------
    confusion : ndarray of shape (M, C, C)
        Probability of an answer (last axis) given the truth.
    identified : ndarray of bool of shape (M,)
        Who shares items with others such that scales are identified.
    class_prior : ndarray of shape (C,)
        Probabilities of the classes.
    history : list of float
        Log-likelihood of the pairs at every step.
    converged : bool
        Whether the steps ended before `max_iter`.
    """
    n_annotators, n_classes = moments.shape
    identified = in_odd_circles(pairs.first, pairs.second, n_annotators)
    if not identified.any():
        return np.empty((n_annotators, n_classes, n_classes)), identified, None, [], True
    start, sure = multi_spa(pairs, n_annotators, n_classes, min_answers)
    start[~sure] += _HONEST * (np.eye(n_classes) - start[~sure])
    start += _MIXED * (1 / n_classes - start)
    uniform = np.full(n_classes, 1 / n_classes)
    confusion, class_prior, history, converged = fit_coupled(pairs, start, uniform, max_iter, tol)
    order = dominant_order(confusion, moments.sum(1) * identified)
    return confusion[:, order], identified, class_prior[order], history, converged
