"""Low-rank factors behind the covariances of one-hot answers, fitted without a table of all pairs."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ._crowd_em import answer_matrix

_RIDGE = 2.0  # weight of a factor of zero, as of so many answers: what an item or two say is no evidence


class AnswerFactors(NamedTuple):
    """Factors V of M annotators: the covariance of the answers of a and b is about ``V[a] @ V[b].T``.

    Attributes
    ----------
    factor : ndarray of shape (M, C, C - 1)
        Rows are answers; what C probabilities of the truth explain has C - 1 columns.
    noise : ndarray of shape (M,)
        Expected squared norm of the factor of somebody who answers as often, but by chance.
    n_shared : ndarray of shape (M,)
        Number of answers to items that somebody else answered, too.
    n_iter : int
        Number of rounds.
    converged : bool
        Whether they ended before their limit.
    """

    factor: np.ndarray
    noise: np.ndarray
    n_shared: np.ndarray
    n_iter: int
    converged: bool


def answer_factors(votes, max_iter, tol):
    """Fit the covariances of the one-hot answers of all pairs of two annotators by factors.

    Alternating least squares, where a pair counts by its number of common items. The squares of the diagonal, of an
    annotator with himself, are left out: they hold the own noise. A round costs as much as the answers times C^2.

    Parameters
    ----------
    votes : Votes
        L answers of M annotators, with C classes.
    max_iter : int
        Largest number of rounds.
    tol : float
        Largest change of an entry at which they end.

    Returns
    -------
    factors : AnswerFactors
    """
    answers, n_annotators, n_classes = answer_matrix(votes), len(votes.annotators), len(votes.classes)
    who = csr_array(
        (np.ones(len(votes.item)), votes.annotator.astype(np.int64), votes.starts), shape=(len(votes), n_annotators)
    )
    rank, n_answers = max(n_classes - 1, 1), votes.n_answers.astype(float)
    counts = np.asarray(answers.sum(0)).reshape(n_annotators, n_classes)
    mean = counts / np.maximum(n_answers, 1.0)[:, None]
    own_covariance = mean[:, :, None] * (np.eye(n_classes) - mean[:, None, :])

    def evidence(factor):
        """What each answer adds to its item, the sums (n, C) of these, and the inverse Gram matrices of the others."""
        part = factor - np.einsum("ac,acr->ar", mean, factor)[:, None]
        square = np.einsum("acr,acs->ars", factor, factor)
        everybody = who.T @ (who @ square.reshape(n_annotators, -1))
        gram = everybody.reshape(square.shape) - n_answers[:, None, None] * square
        return part, answers @ part.reshape(-1, rank), np.linalg.inv(gram + _RIDGE * np.eye(rank))

    contrasts = np.linalg.svd(np.eye(n_classes) - 1 / n_classes)[0][:, :rank]
    factor, converged, n_iter = np.tile(contrasts / 2, (n_annotators, 1, 1)), False, 0  # everybody mostly right
    while n_iter < max_iter and not converged:
        _, total, inverse = evidence(factor)
        cross = (answers.T @ total).reshape(factor.shape) - mean[:, :, None] * (who.T @ total)[:, None]
        cross -= n_answers[:, None, None] * own_covariance @ factor
        step = (cross @ inverse - factor) / 2  # whole steps overshoot, for all annotators move at once
        factor, converged, n_iter = factor + step, bool(np.abs(step).max() <= tol), n_iter + 1

    part, total, inverse = evidence(factor)
    others = total[votes.item] - part[votes.annotator, votes.label]
    chance = np.zeros(n_annotators)
    for r in range(rank):
        effect = (others * inverse[votes.annotator, :, r]).sum(1)
        chance += np.bincount(votes.annotator, effect**2, minlength=n_annotators)
    noise = np.einsum("acc->a", own_covariance) * chance
    shared = (np.bincount(votes.item, minlength=len(votes)) > 1)[votes.item]
    n_shared = np.bincount(votes.annotator[shared], minlength=n_annotators)
    return AnswerFactors(factor, noise, n_shared, n_iter, converged)


def two_means(values):
    """Values in two clusters with the least sum of squares: which are in the upper one (equal ones stay together)."""
    order = np.sort(values)
    n_lower = np.arange(1, len(order))
    lower = np.cumsum(order)[:-1]
    between = lower**2 / n_lower + (order.sum() - lower) ** 2 / (len(order) - n_lower)
    between[order[1:] == order[:-1]] = -np.inf
    return values >= order[between.argmax() + 1] if np.isfinite(between).any() else np.ones(len(values), dtype=bool)
