"""Who is right where: correctness of each expert per class, shrunk by empirical Bayes."""

import numpy as np


def tally_answers(codes, truth):
    """Right and total answers of each expert per class.

    Parameters
    ----------
    codes : ndarray of shape (n, M)
        Encoded annotations, -1 missing.
    truth : ndarray of shape (n, C)
        Distribution of the true class: one-hot where it is known.

    Returns
    -------
    right, seen : ndarrays of shape (M, C)
        Expected numbers of right answers and of answers.
    """
    item, who = np.nonzero(codes >= 0)
    n_experts, n_classes = codes.shape[1], truth.shape[1]
    seen, right = np.zeros((n_experts, n_classes)), np.zeros((n_experts, n_classes))
    np.add.at(seen, who, truth[item])
    answered = codes[item, who]
    np.add.at(right, (who, answered), truth[item, answered])
    return right, seen


def shrunken_correctness(right, seen, center, strength):
    """Correctness (M, C) per class, shrunk towards each expert's own mean and that towards everybody's.

    Parameters
    ----------
    right, seen : ndarrays of shape (M, C)
        As returned by `tally_answers`.
    center : float
        Correctness of everybody.
    strength : tuple of float
        Rows that everybody's correctness counts as in an expert's mean, and that this mean counts as in a class.
    """
    own = own_correctness(right, seen, center, strength[0])
    return (right + strength[1] * own[:, None]) / (seen + strength[1])


def own_correctness(right, seen, center, strength):
    """Correctness (M,) of each expert over all classes, shrunk towards that of everybody.

    Parameters
    ----------
    right, seen : ndarrays of shape (M, C)
        As returned by `tally_answers`.
    center, strength : float
        Correctness of everybody, and the rows that it counts as.
    """
    return (right.sum(1) + strength * center) / (seen.sum(1) + strength)


def prior_strengths(right, seen):
    """Center and strengths for `shrunken_correctness`, by the method of moments.

    The spread of the correctness beyond binomial noise, between experts and between the classes of one expert,
    says how much an expert's or a class's own rows are to be trusted. Where classes make no difference the
    profile becomes the expert's mean, where they do it keeps its shape.

    Returns
    -------
    center : float
    strengths : tuple of float
        Between half a row and a thousand rows.
    """
    total = seen.sum(1)
    center = right.sum() / max(seen.sum(), 1e-12)
    noise = max(center * (1 - center), 1e-6)
    experts = np.flatnonzero(total > 0)
    own = np.full(len(total), center)
    own[experts] = right.sum(1)[experts] / total[experts]
    between_experts = _excess_variance(own[experts], np.full(len(experts), center), total[experts], noise)
    who, which = np.nonzero(seen > 0)
    cells = seen[who, which]
    # classes differ in difficulty for everybody: only what is particular to an expert tells experts apart
    difficulty = right.sum(0) / np.maximum(seen.sum(0), 1e-12) - center
    rate = right[who, which] / cells
    expected = np.clip(own[who] + difficulty[which], 0, 1)
    # an expert's own mean has used up part of the noise of each of its classes
    free = np.maximum(1 - cells / total[who], 1e-3)
    between_classes = _excess_variance(rate, expected, cells / free, noise)
    strengths = tuple(float(np.clip(noise / max(v, 1e-12), 0.5, 1000.0)) for v in (between_experts, between_classes))
    return center, strengths


def _excess_variance(rate, expected, sizes, noise):
    """Weighted variance of rates around their expectation, less the binomial noise."""
    if len(rate) == 0:
        return 0.0
    return float(np.average((rate - expected) ** 2 - noise / sizes, weights=sizes))


def expected_correctness(proba, correctness):
    """How often every target, and last the classifier itself, is expected to be right on items (n, n_targets + 1).

    Parameters
    ----------
    proba : ndarray of shape (n, C)
        Probabilities of the classes by the classifier.
    correctness : ndarray of shape (n_targets, C)
        How often the targets are right on each class.
    """
    return np.column_stack([proba @ correctness.T, proba.max(1)])
