"""What pairs of annotators have in common, and low-rank tables behind it with some entries unknown."""

import numpy as np
from scipy.linalg import eigh

from ._crowd_em import answer_matrix


def pair_agreement(votes, weight=None):
    """Number of common items (M, M) of every pair of annotators, and of those with equal answers, by weight."""
    answers, n_classes = answer_matrix(votes), len(votes.classes)
    if weight is not None:
        answers.data *= np.sqrt(weight)[votes.item]
    by_class = [answers[:, c::n_classes] for c in range(n_classes)]
    answered = sum(by_class[1:], by_class[0])
    alike = sum((mine.T @ mine).toarray() for mine in by_class)
    return (answered.T @ answered).toarray(), alike


def complete(table, known, rank, max_iter, tol, start=0.0):
    """Low-rank fit to the known entries of a symmetric table, the others imputed by the fit itself.

    Parameters
    ----------
    table : ndarray of shape (m, m)
        Symmetric table.
    known : ndarray of bool of shape (m, m)
        Entries to fit.
    rank : int
        Rank of the fit, which has no negative eigenvalue.
    max_iter : int
        Largest number of rounds.
    tol : float
        Largest change of an imputed entry at which the rounds end.
    start : float, default=0.0
        What is imputed first.

    Returns
    -------
    factor : ndarray of shape (m, rank)
        The fit is ``factor @ factor.T``.
    n_iter : int
        Number of rounds.
    converged : bool
        Whether they ended before `max_iter`.
    """
    m = len(table)
    filled = np.where(known, table, start)
    for n_iter in range(1, max_iter + 1):
        value, vector = eigh(filled, subset_by_index=(max(m - rank, 0), m - 1))
        factor = vector * np.sqrt(np.maximum(value, 0.0))
        before, filled = filled, np.where(known, table, factor @ factor.T)
        if np.abs(filled - before).max() <= tol:
            return factor, n_iter, True
    return factor, max_iter, False
