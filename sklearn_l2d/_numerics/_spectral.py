"""Confusion matrices by linear algebra: rank-one covariances of two classes, and the tensor of three groups."""

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize

from ._co_labels import (
    as_distributions,
    dominant_order,
    first_moments,
    in_odd_circles,
    pair_moments,
    parts_of,
)

_N_STARTS, _N_STEPS = 20, 200  # of the tensor power method
_N_SPLITS = 8  # ways to make three groups, of which that counts whose moments are farthest from losing a rank
_SINGULAR = 1e-6  # share of the largest singular value below which a moment is taken to have lost a rank


def first_rank_one(first, second, value, weight, n_annotators):
    """Vector (n_annotators,) to start from: mean values, scaled in each linked part, as if most signs were positive."""
    part = parts_of(first, second, n_annotators)
    row = np.bincount(first, weight * value, n_annotators)
    total = np.bincount(first, weight, n_annotators)
    mean = np.divide(row, total, out=np.zeros(n_annotators), where=total > 0)
    size = np.bincount(part, total)
    overall = np.divide(np.bincount(part, row), size, out=np.zeros(len(size)), where=size > 0)
    return mean / np.sqrt(np.maximum(np.abs(overall), 0.01))[part]


def towards_the_majority(vector, first, second, weight):
    """A vector with the sign of every linked part chosen so that most of it is positive."""
    part = parts_of(first, second, len(vector))
    total = np.bincount(first, weight, len(vector))
    return vector * np.where(np.bincount(part, total * vector) < 0, -1.0, 1.0)[part]


def rank_one(first, second, value, weight, n_annotators):
    """Vector whose products fit the entries of a matrix off its diagonal, by weighted least squares.

    This is the leading eigenvector, scaled by the root of its eigenvalue, of the matrix whose unknown entries, among
    them the diagonal, are imputed with those products.

    Parameters
    ----------
    first, second : ndarray of int of shape (P,)
        Rows and columns of the known entries, in both orders.
    value : ndarray of shape (P,)
        Entries.
    weight : ndarray of shape (P,)
        How much each of them counts.
    n_annotators : int
        Number of rows.

    Returns
    -------
    vector : ndarray of shape (n_annotators,)
        Mostly positive in each linked part; 0 where a row has no entry.
    """
    scale = np.sqrt(np.maximum(np.bincount(first, weight, n_annotators), 1e-300))  # so that all rows are as steep

    def loss(scaled):
        vector = scaled / scale
        wrong = weight * (vector[first] * vector[second] - value)
        gradient = np.bincount(first, wrong * vector[second], n_annotators)
        return 0.25 * wrong @ (vector[first] * vector[second] - value), gradient / scale

    start = first_rank_one(first, second, value, weight, n_annotators) * scale
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 1000})
    return towards_the_majority(found.x / scale, first, second, weight)


def elementary_symmetric_3(values):
    """Sums (n,) of the products of all triples of different entries in each row of a sparse matrix."""
    power = [(values**k).sum(1) for k in (1, 2, 3)]
    return (power[0] ** 3 - 3 * power[0] * power[1] + 2 * power[2]) / 6


def two_class_confusion(answers, weight):
    """Confusion matrices of two classes from the first three moments (Parisi et al. 2014, Jaffe et al. 2015).

    With answers of -1 and 1, the covariance of two annotators is the product of their balanced accuracies, as
    ``2 p - 1``, times ``1 - b**2``, where b is the difference of the class probabilities; the third moment tells b.

    Parameters
    ----------
    answers : csr_array of shape (n, M * 2)
        As returned by `answer_matrix`.
    weight : ndarray of shape (n,)
        Weights of the items.

    Returns
    -------
    confusion : ndarray of shape (M, 2, 2)
        Probability of an answer (last axis) given the truth.
    identified : ndarray of bool of shape (M,)
        Whom the covariances identify.
    class_prior : ndarray of shape (2,)
        Probabilities of the classes.
    """
    moments, pairs = first_moments(answers, weight, 2), pair_moments(answers, weight, 2)
    total = moments.sum(1)
    n_annotators = len(total)
    mean = np.divide(moments[:, 1] - moments[:, 0], total, out=np.zeros(n_annotators), where=total > 0)
    first, second = pairs.first, pairs.second
    covariance = np.einsum("pkl,k,l->p", pairs.joint, [-1, 1], [-1, 1]) - mean[first] * mean[second]
    skill = rank_one(first, second, covariance, pairs.shared, n_annotators)
    identified = in_odd_circles(first, second, n_annotators)
    skill[~identified] = 0
    centred, squares = answers.copy(), answers.copy()
    annotator, label = np.divmod(answers.indices, 2)
    centred.data = (2 * label - 1 - mean[annotator]) * skill[annotator]
    squares.data = skill[annotator] ** 2
    found, possible = weight @ elementary_symmetric_3(centred), weight @ elementary_symmetric_3(squares)
    skewness = found / possible if possible > 0 else 0.0
    balance = -skewness / np.sqrt(4 + skewness**2)
    accuracy = np.clip(skill / np.sqrt(1 - balance**2), -1, 1)
    bias = mean - balance * accuracy
    right = np.clip((1 + accuracy[:, None] + np.array([-1, 1]) * bias[:, None]) / 2, 0, 1)
    confusion = np.stack([np.stack([right[:, 0], 1 - right[:, 0]], 1), np.stack([1 - right[:, 1], right[:, 1]], 1)], 1)
    return confusion, identified, np.array([1 - balance, 1 + balance]) / 2


def three_groups(n_answers, order=None):
    """Group (M,) 0, 1 or 2 of each annotator, dealt in an order: by default, groups gave similar numbers of answers."""
    group = np.empty(len(n_answers), dtype=np.int64)
    order = np.argsort(-n_answers, kind="stable") if order is None else order
    group[order] = np.resize([0, 1, 2, 2, 1, 0], len(n_answers))
    return group


def shares_of_groups(answers, group, n_classes):
    """Shares (3, n, C) of the answers of each group, zeros where it gave none, and where it gave some (3, n)."""
    n_annotators = len(group)
    of_group = np.zeros((n_annotators, n_classes, 3, n_classes))
    of_group[np.arange(n_annotators), :, group] = np.eye(n_classes)
    counts = (answers @ of_group.reshape(n_annotators * n_classes, -1)).reshape(-1, 3, n_classes).transpose(1, 0, 2)
    total = counts.sum(2)
    return np.divide(counts, total[:, :, None], out=counts, where=total[:, :, None] > 0), total > 0


def rank_left(shares, answered, weight):
    """Smallest singular value of the moments of pairs of groups: what is small drowns in noise."""
    rows = answered.all(0)
    if not rows.any():
        return 0.0
    part = weight[rows, None] / weight[rows].sum()
    sides = [(0, 1), (0, 2), (1, 2)]
    return min(np.linalg.svd((shares[a, rows] * part).T @ shares[b, rows], compute_uv=False)[-1] for a, b in sides)


def eigenpairs_of(tensor):
    """Eigenvalues (C,) and eigenvectors (C, C), as rows, of a symmetric tensor that is the sum of C orthogonal powers.

    By the tensor power method with deflation (Anandkumar et al. 2014); the best of some fixed starts is taken.
    """
    n_classes = len(tensor)
    rng = np.random.default_rng(0)  # the starts are the same in every call
    values, vectors = np.empty(n_classes), np.empty((n_classes, n_classes))
    for h in range(n_classes):
        starts = np.concatenate([np.eye(n_classes), rng.normal(size=(_N_STARTS, n_classes))])
        found = starts / np.linalg.norm(starts, axis=1, keepdims=True)
        for _ in range(_N_STEPS):
            last = found
            found = np.einsum("abc,rb,rc->ra", tensor, found, found, optimize=True)
            found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300)
            if np.abs(found - last).max() < 1e-13:
                break
        value = np.einsum("abc,ra,rb,rc->r", tensor, found, found, found, optimize=True)
        values[h], vectors[h] = value.max(), found[value.argmax()]
        tensor = tensor - values[h] * np.einsum("a,b,c->abc", vectors[h], vectors[h], vectors[h])
    return values, vectors


def mixture_of(shares, weight):
    """Rows of a group by class (C, C) and class probabilities (C,) from the moments of three groups, or None.

    Parameters
    ----------
    shares : sequence of three ndarrays of shape (n, C)
        Shares of the answers of the groups, of which the last one is decomposed.
    weight : ndarray of shape (n,)
        Weights of the items, with sum 1.
    """
    one, two, last = shares
    with_weight = one * weight[:, None], two * weight[:, None]
    cross = with_weight[0].T @ two
    singular = np.linalg.svd(cross, compute_uv=False)
    if singular[-1] < _SINGULAR * singular[0]:
        return None
    as_last = (
        one @ np.linalg.solve(cross.T, with_weight[1].T @ last),
        two @ np.linalg.solve(cross, with_weight[0].T @ last),
    )
    second = (as_last[0] * weight[:, None]).T @ as_last[1]
    value, vector = np.linalg.eigh((second + second.T) / 2)
    if value[0] < _SINGULAR * value[-1]:
        return None
    white = vector / np.sqrt(value)
    third = np.einsum("n,na,nb,nc->abc", weight, as_last[0] @ white, as_last[1] @ white, last @ white, optimize=True)
    turns = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    size, direction = eigenpairs_of(sum(third.transpose(turn) for turn in turns) / 6)
    if size[-1] <= 0 or size.min() <= 0:
        return None
    return as_distributions(size[:, None] * direction @ (vector * np.sqrt(value)).T), size**-2 / (size**-2).sum()


def tensor_confusion(answers, weight, n_classes):
    """Confusion matrices from the third moments of three groups of annotators (Zhang et al. 2016, Algorithm 1).

    Which groups is free; of some ways to make them, that is taken whose moments are farthest from singular.

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
    confusion : ndarray of shape (M, C, C)
        Probability of an answer (last axis) given the truth.
    identified : ndarray of bool of shape (M,)
        Who shares items with other groups; nobody where the moments of the groups have lost a rank.
    class_prior : ndarray of shape (C,)
        Probabilities of the classes.
    """
    n_answers = first_moments(answers, weight, n_classes).sum(1)
    rng = np.random.default_rng(0)  # the splits are the same in every call
    splits = [three_groups(n_answers)]
    splits += [three_groups(n_answers, rng.permutation(len(n_answers))) for _ in range(_N_SPLITS - 1)]
    left = [rank_left(*shares_of_groups(answers, group, n_classes), weight) for group in splits]
    for split in np.argsort(-np.array(left), kind="stable"):
        found = split_confusion(answers, weight, splits[split], n_classes) if left[split] > 0 else None
        if found is not None:
            confusion, identified, class_prior = found
            order = dominant_order(confusion, n_answers * identified)
            return confusion[:, order], identified, class_prior[order]
    nobody = np.zeros(len(n_answers), dtype=bool)
    return np.full((len(n_answers), n_classes, n_classes), 1 / n_classes), nobody, None


def split_confusion(answers, weight, group, n_classes):
    """What `tensor_confusion` returns, for given groups (M,) and in any order of the classes, or None."""
    shares, answered = shares_of_groups(answers, group, n_classes)
    rows = answered.all(0)
    seen, part = shares[:, rows], weight[rows] / weight[rows].sum()
    matrices, prior = [], []
    for last in range(3):
        found = mixture_of([*np.delete(seen, last, axis=0), seen[last]], part)
        if found is None:
            return None
        own, own_prior = found
        if matrices:  # in the order of the first group, which its moments with this one tell
            joint = (seen[0] * part[:, None]).T @ seen[last]
            expected = np.linalg.lstsq((prior[0][:, None] * matrices[0]).T, joint, rcond=None)[0]
            distance = np.abs(expected[:, None] - own).sum(2)
            order = linear_sum_assignment(distance)[1]
            own, own_prior = own[order], own_prior[order]
        matrices.append(own)
        prior.append(own_prior)
    class_prior = np.mean(prior, axis=0)
    confusion, identified = regress_on_groups(answers, weight, shares, answered, group, matrices, class_prior)
    return confusion, identified, class_prior


def regress_on_groups(answers, weight, shares, answered, group, matrices, class_prior):
    """Matrices (M, C, C) of annotators from the moments that they share with the groups of others, and who has some.

    Parameters
    ----------
    answers : csr_array of shape (n, M * C)
        As returned by `answer_matrix`.
    weight : ndarray of shape (n,)
        Weights of the items.
    shares : ndarray of shape (3, n, C)
        Shares of the answers of each group, zeros where it gave none.
    answered : ndarray of bool of shape (3, n)
        Where it gave some.
    group : ndarray of int of shape (M,)
        Group of each annotator.
    matrices : list of three ndarrays of shape (C, C)
        Confusion matrices of the groups.
    class_prior : ndarray of shape (C,)
        Probabilities of the classes.
    """
    n_classes = len(class_prior)
    gram = np.zeros((len(group), n_classes, n_classes))
    right, shared = gram.copy(), np.zeros(len(group))
    for g in range(3):
        design = class_prior[:, None] * matrices[g]
        others = group != g
        moment = (answers.T @ (shares[g] * weight[:, None])).reshape(-1, n_classes, n_classes) * others[:, None, None]
        number = first_moments(answers, weight * answered[g], n_classes).sum(1) * others
        gram += number[:, None, None] * (design @ design.T)
        right += design @ moment.transpose(0, 2, 1)
        shared += number
    identified = shared > 0
    confusion = np.zeros_like(gram)
    confusion[identified] = np.linalg.pinv(gram[identified], hermitian=True) @ right[identified]
    return as_distributions(confusion), identified
