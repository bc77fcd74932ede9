"""Third moments of triples of annotators as coupled tensors of rank C, whose factors are confusion matrices."""

from itertools import combinations

import numpy as np

_N_NEAR = 30  # people with whom an annotator shares most items, among whom triples are drawn
_N_INNER = 20  # ADMM steps for one factor


def choose_triples(shared, max_triples):
    """Triples (T, 3) of annotators who share items by pairs: all of them, or about as many for each annotator.

    Parameters
    ----------
    shared : ndarray of shape (M, M)
        Weights of shared items.
    max_triples : int
        Largest number.
    """
    n_annotators = len(shared)
    if n_annotators * (n_annotators - 1) * (n_annotators - 2) // 6 <= max_triples:
        triples = np.array(list(combinations(range(n_annotators), 3)), dtype=np.int64).reshape(-1, 3)
    else:
        rng = np.random.default_rng(0)  # the same in every call
        near = np.argsort(-shared, axis=1, kind="stable")[:, :_N_NEAR]
        n_each = max_triples // n_annotators
        drawn = rng.integers(near.shape[1], size=(n_annotators, n_each, 2))
        owner = np.repeat(np.arange(n_annotators)[:, None], n_each, axis=1)
        triples = np.sort(np.stack([owner, *(near[owner, drawn[:, :, k]] for k in range(2))], 2).reshape(-1, 3), axis=1)
        triples = np.unique(triples[(np.diff(triples, axis=1) > 0).all(1)], axis=0)
    a, b, c = triples.T
    return triples[(shared[a, b] > 0) & (shared[b, c] > 0) & (shared[a, c] > 0)]


def onto_distributions(rows):
    """Nearest rows (last axis) without negative entries and with sum 1."""
    ordered = -np.sort(-rows, axis=-1)
    level = (np.cumsum(ordered, axis=-1) - 1) / np.arange(1, rows.shape[-1] + 1)
    last = (ordered > level).sum(-1, keepdims=True) - 1
    return np.maximum(rows - np.take_along_axis(level, last, axis=-1), 0)


def least_squares_rows(gram, right, now):
    """Distributions in the rows of a factor that lower ``trace(x.T @ gram @ x) / 2 - sum(right * x)``, by ADMM.

    Parameters
    ----------
    gram : ndarray of shape (C, C)
        Normal matrix.
    right : ndarray of shape (C, K)
        Right-hand side.
    now : ndarray of shape (C, K)
        Where to start; returned where nothing better is found.
    """

    def cost(x):
        return (x * (gram @ x / 2 - right)).sum()

    speed = max(np.trace(gram) / len(gram), 1e-300)
    inverse = np.linalg.inv(gram + speed * np.eye(len(gram)))
    best, copy, dual = now, now, np.zeros_like(now)
    for _ in range(_N_INNER):
        free = inverse @ (right + speed * (copy - dual))
        copy = onto_distributions(free + dual)
        dual = dual + free - copy
        if cost(copy) < cost(best):
            best = copy
    return best


def coupled_tensors(triples, shared, joint, confusion, class_prior, max_iter, tol):
    """Confusion matrices and class prior whose products fit third moments, by turns over annotators.

    Parameters
    ----------
    triples : ndarray of int of shape (T, 3)
        Annotators.
    shared : ndarray of shape (T,)
        Weight of the items of each triple.
    joint : ndarray of shape (T, C, C, C)
        Distributions of their answers.
    confusion : ndarray of shape (M, C, C)
        Start.
    class_prior : ndarray of shape (C,)
        Start.
    max_iter : int
        Largest number of rounds.
    tol : float
        Share of the objective below whose gain they end.

    Returns
    -------
    confusion : ndarray of shape (M, C, C)
        Probability of an answer (last axis) given the truth.
    class_prior : ndarray of shape (C,)
        Probabilities of the classes.
    history : list of float
        Weighted mean square of what is left, negative, of every round.
    converged : bool
        Whether the rounds ended before `max_iter`.
    """
    confusion, weight, history = confusion.copy(), shared / shared.sum(), []
    views = []
    for m in range(len(confusion)):
        place = [np.flatnonzero(triples[:, side] == m) for side in range(3)]
        others = [np.delete(triples[rows], side, axis=1) for side, rows in enumerate(place)]
        turned = [np.moveaxis(joint[rows], 1 + side, 1) for side, rows in enumerate(place)]
        views.append((np.concatenate(others), np.concatenate(turned), weight[np.concatenate(place)]))
    for _ in range(max_iter):
        for m, (others, tensor, share) in enumerate(views):
            if not len(others):
                continue
            one, two = confusion[others[:, 0]], confusion[others[:, 1]]
            gram = np.einsum("t,tcd->cd", share, (one @ one.transpose(0, 2, 1)) * (two @ two.transpose(0, 2, 1)))
            gram *= np.outer(class_prior, class_prior)
            right = np.einsum("t,tkij,tci,tcj->ck", share, tensor, one, two, optimize=True) * class_prior[:, None]
            confusion[m] = least_squares_rows(gram, right, confusion[m])
        a, b, c = (confusion[triples[:, side]] for side in range(3))
        products = (a @ a.transpose(0, 2, 1)) * (b @ b.transpose(0, 2, 1)) * (c @ c.transpose(0, 2, 1))
        gram = np.einsum("t,tcd->cd", weight, products)
        right = np.einsum("t,tijk,tci,tcj,tck->c", weight, joint, a, b, c, optimize=True)
        class_prior = prior_of(gram, right, class_prior)
        fitted = np.einsum("c,tci,tcj,tck->tijk", class_prior, a, b, c, optimize=True)
        history.append(-float(weight @ ((joint - fitted) ** 2).sum((1, 2, 3))))
        if -history[-1] < 1e-20 or (len(history) > 1 and history[-1] - history[-2] <= -tol * history[-1]):
            return confusion, class_prior, history, True
    return confusion, class_prior, history, False


def prior_of(gram, right, now):
    """Class prior (C,) of least squares, by projected gradient steps from the one before."""
    step = 1 / max(np.linalg.eigvalsh(gram)[-1], 1e-300)
    for _ in range(_N_INNER):
        now = onto_distributions(now - step * (gram @ now - right))
    return now
