"""One matrix of all second moments, its missing blocks imputed, as a product of a factor with itself."""

import numpy as np

from ._co_labels import as_distributions, dominant_order, in_odd_circles
from ._pair_factors import multi_spa

_N_NEAR = 20  # people with whom an annotator shares most items, among whom others are looked for
_N_BRIDGES = 3  # pairs of annotators by whom a missing block is imputed, the best ones


def moment_blocks(pairs, n_annotators, n_classes):
    """Second moments as an array (M, M, C, C), and the weight (M, M) of their items: 0 where they are missing."""
    blocks, shared = np.zeros((n_annotators, n_annotators, n_classes, n_classes)), np.zeros((n_annotators,) * 2)
    blocks[pairs.first, pairs.second], shared[pairs.first, pairs.second] = pairs.joint, pairs.shared
    return blocks, shared


def imputed(blocks, shared):
    """Blocks with those that are missing, first the diagonal ones, made of others; and where some are missing still.

    ``R[m, j] = R[m, r] @ inv(R[l, r]) @ R[l, j]`` for others l and r; the average over the best of them is
    taken, those with many shared items whose block in the middle is far from singular.

    Parameters
    ----------
    blocks : ndarray of shape (M, M, C, C)
        Second moments.
    shared : ndarray of shape (M, M)
        Weights of shared items, 0 where a block is missing.
    """
    blocks, known = blocks.copy(), shared > 0
    least = np.linalg.svd(blocks, compute_uv=False)[..., -1] * known
    inverse = np.linalg.pinv(blocks, rcond=1e-6)
    missing = np.argwhere(np.triu(~known))
    filled = known.copy()
    near = np.argsort(-shared, axis=1, kind="stable")[:, :_N_NEAR]
    for m, j in missing[np.argsort(missing[:, 0] != missing[:, 1], kind="stable")]:
        left, right = (side.ravel() for side in np.meshgrid(near[j], near[m], indexing="ij"))
        possible = known[left, j] & known[m, right] & (left != m) & (right != j)
        steps = np.minimum(np.minimum(shared[left, j], shared[m, right]), shared[left, right])
        worth = np.where(possible, least[left, right] * np.sqrt(steps), 0.0)
        best = np.argsort(-worth, kind="stable")[:_N_BRIDGES]
        best = best[worth[best] > 0]
        if not len(best):
            continue
        left, right = left[best], right[best]
        guess = blocks[m, right] @ inverse[left, right] @ blocks[left, j]
        found = np.average(guess, axis=0, weights=worth[best])
        blocks[m, j], blocks[j, m] = (found, found.T) if m != j else ((found + found.T) / 2,) * 2
        filled[m, j] = filled[j, m] = True
    return blocks, ~filled


def symmetric_factor(matrix, start, max_iter, tol):
    """Non-negative factor (D, C) whose product with itself is close to a symmetric matrix (Huang et al. 2014).

    The leading eigenvectors, scaled, are such a factor up to a rotation; it is turned until its entries are as good as
    non-negative, by Procrustes steps.

    Parameters
    ----------
    matrix : ndarray of shape (D, D)
        Symmetric matrix.
    start : ndarray of shape (D, C)
        Factor to start from.
    max_iter : int
        Largest number of steps.
    tol : float
        Gain, as a share of the squared size of the factor, below which they end.

    Returns
    -------
    factor : ndarray of shape (D, C)
        Non-negative.
    history : list of float
        Share of the factor that is not negative, at every step.
    converged : bool
        Whether the steps ended before `max_iter`.
    """
    value, vector = np.linalg.eigh(matrix)
    root = vector[:, -start.shape[1] :] * np.sqrt(np.maximum(value[-start.shape[1] :], 0))
    factor, history, size = start, [], max((root**2).sum(), 1e-300)
    for _ in range(max_iter):
        left, _, right = np.linalg.svd(root.T @ factor)
        turned = root @ left @ right
        factor = np.maximum(turned, 0)
        history.append(float(1 - ((turned - factor) ** 2).sum() / size))
        if len(history) > 1 and history[-1] - history[-2] < tol:
            return factor, history, True
    return factor, history, False


def symmetric_nmf(pairs, moments, min_answers, max_iter, tol):
    """Confusion matrices and class prior from one matrix of all second moments.

    Parameters
    ----------
    pairs : PairMoments
        Second moments, in both orders.
    moments : ndarray of shape (M, C)
        As returned by `first_moments`.
    min_answers, max_iter, tol : float, int and float
        As in `multi_spa` and `symmetric_factor`.

    Returns
    -------
    confusion : ndarray of shape (M, C, C)
        Probability of an answer (last axis) given the truth.
    identified : ndarray of bool of shape (M,)
        Whose blocks are all known or imputed from others.
    class_prior : ndarray of shape (C,) or None
        Probabilities of the classes.
    history : list of float
        As returned by `symmetric_factor`.
    converged : bool
        Whether the steps ended before `max_iter`.
    """
    n_annotators, n_classes = moments.shape
    identified = in_odd_circles(pairs.first, pairs.second, n_annotators)
    blocks, absent = imputed(*moment_blocks(pairs, n_annotators, n_classes))
    identified &= ~np.diagonal(absent)
    confusion = np.full((n_annotators, n_classes, n_classes), 1 / n_classes)
    if not identified.any():
        return confusion, identified, None, [], True
    among = np.flatnonzero(identified)
    marginal = as_distributions(moments[among])
    chance = marginal[:, None, :, None] * marginal[None, :, None, :]
    inner = np.where(absent[np.ix_(among, among)][:, :, None, None], chance, blocks[np.ix_(among, among)])
    matrix = inner.transpose(0, 2, 1, 3).reshape(len(among) * n_classes, -1)
    start, sure = multi_spa(pairs, n_annotators, n_classes, min_answers)
    start[~sure] += (np.eye(n_classes) - start[~sure]) / 2
    start = start[among].transpose(0, 2, 1).reshape(-1, n_classes) / np.sqrt(n_classes)
    factor, history, converged = symmetric_factor((matrix + matrix.T) / 2, start, max_iter, tol)
    rows = factor.reshape(len(among), n_classes, n_classes).transpose(0, 2, 1)  # root of the prior times the matrix
    confusion[among] = as_distributions(rows)
    prior = np.median(rows.sum(2), axis=0) ** 2
    order = dominant_order(confusion, moments.sum(1) * identified)
    return confusion[:, order], identified, (prior / prior.sum())[order], history, converged
