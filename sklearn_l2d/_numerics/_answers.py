"""Correctness of experts, likelihoods of the truth given answers, and calibration of probabilities."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

_ENOUGH_ROWS = 100_000  # for one temperature
_FEW_ROWS, _MANY_BEST = 50, 2_000  # rows, and undominated ones, with which a search for others is not worth its time


def tally_votes(votes, truth):
    """Count right answers and answers of each expert per class.

    Parameters
    ----------
    votes : Votes
        Answers of M experts to n items, with C classes.
    truth : ndarray of shape (n, C)
        Distribution of the true class, one-hot if it is known.

    Returns
    -------
    right, seen : ndarrays of shape (M, C)
        Expected numbers of right answers and of answers.
    """
    n_experts, n_classes = len(votes.annotators), truth.shape[1]
    cell = votes.annotator * np.int64(n_classes) + votes.label
    right = np.bincount(cell, truth[votes.item, votes.label], minlength=n_experts * n_classes)
    # all classes at once would take n_classes numbers for every answer
    seen = [np.bincount(votes.annotator, of_class[votes.item], minlength=n_experts) for of_class in truth.T]
    return right.reshape(n_experts, n_classes), np.column_stack(seen)


def prior_strengths(right, seen):
    """Center and strengths for `competence_posterior`, by the method of moments.

    The strengths follow from the variance of the correctness beyond binomial noise, between experts and between the
    classes of an expert. If the classes do not differ, the correctness per class becomes the expert's mean; if they
    differ, it is hardly shrunk.

    Returns
    -------
    center : float
    strengths : tuple of float
        Numbers of answers, between 0.5 and 1000.
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
    # the difficulty of a class is the same for all experts and does not tell them apart
    difficulty = right.sum(0) / np.maximum(seen.sum(0), 1e-12) - center
    rate = right[who, which] / cells
    expected = np.clip(own[who] + difficulty[which], 0, 1)
    # the mean of an expert contains part of the noise of each class
    free = np.maximum(1 - cells / total[who], 1e-3)
    between_classes = _excess_variance(rate, expected, cells / free, noise)
    strengths = tuple(float(np.clip(noise / max(v, 1e-12), 0.5, 1000.0)) for v in (between_experts, between_classes))
    return center, strengths


def _excess_variance(rate, expected, sizes, noise):
    """Weighted variance of rates around their expectation, less binomial noise."""
    if len(rate) == 0:
        return 0.0
    return float(np.average((rate - expected) ** 2 - noise / sizes, weights=sizes))


def expected_correctness(proba, correctness):
    """Probability (n, n_targets + 1) that each target and, last, the classifier is right on items.

    Parameters
    ----------
    proba : ndarray of shape (n, C)
        Class probabilities of the classifier.
    correctness : ndarray of shape (n_targets, C)
        Correctness of the targets on each class.
    """
    return np.column_stack([proba @ correctness.T, proba.max(1)])


def undominated(values):
    """Positions of the rows of `values` (M, C) that no other row reaches in every column; the first of equal rows.

    Only they can have the largest mean of their columns, whatever the weights. Where a search for them would not be
    worth its time, all rows are returned.
    """
    if len(values) <= _FEW_ROWS:
        return np.arange(len(values))
    rest = np.argsort(-values.sum(1), kind="stable")  # a row can only be reached by one with a larger sum
    positions = []
    while len(rest):
        if len(positions) >= _MANY_BEST:
            return np.arange(len(values))
        positions.append(rest[0])
        rest = rest[(values[rest] > values[rest[0]]).any(1)]
    return np.sort(np.array(positions, dtype=np.intp))


def competence_posterior(right, seen, center, strengths):
    """Mean and variance of the competence of each expert per class.

    The competence in a class has a Beta prior around the expert's correctness, which has a Beta prior around the
    correctness of all experts.

    Parameters
    ----------
    right, seen : ndarrays of shape (M, C)
        Right answers and answers, as returned by `tally_votes`.
    center : float
        Correctness of all experts.
    strengths : tuple of float
        Numbers of answers that the prior of an expert and the prior of a class count as. If the first is infinite, the
        classes of an expert are independent, each with the prior
        ``Beta(strengths[1] * center, strengths[1] * (1 - center))``.

    Returns
    -------
    mean, variance : ndarrays of shape (M, C)
    """
    if np.isinf(strengths[0]):
        own, own_variance = np.full((len(right), 1), center), 0.0
    else:
        own = ((right.sum(1) + strengths[0] * center) / (seen.sum(1) + strengths[0]))[:, None]
        own_variance = own * (1 - own) / (seen.sum(1, keepdims=True) + strengths[0] + 1)
    size = seen + strengths[1]
    mean = (right + strengths[1] * own) / size
    inherited = (strengths[1] / size) ** 2 * own_variance  # variance from the uncertainty about the expert
    return mean, (mean * (1 - mean) - inherited) / (size + 1) + inherited


def answer_likelihood(n_classes, smoothing, error_cost=None):
    """Likelihood (C, C) of the true class (row) given an answer (column).

    Parameters
    ----------
    n_classes : int
        C, at least 2.
    smoothing : float
        Probability s that the truth is not the answer: the likelihood is ``1 - s`` for a right answer and
        ``s / (C - 1)`` for a wrong one (L2D-Clusters 3.3, step 5).
    error_cost : ndarray of shape (C, C), default=None
        Cost, in units of one error, of deciding for the class of the column where the class of the row is true; the
        log-likelihood falls in proportion. None is 0 on the diagonal and 1 elsewhere, which is exactly the smoothed
        one-hot.

    Returns
    -------
    likelihood : ndarray of shape (C, C)
    """
    if error_cost is None:
        error_cost = 1.0 - np.eye(n_classes)
    return np.exp(np.log1p(-smoothing) - error_nats(n_classes, smoothing) * np.asarray(error_cost, dtype=float))


def error_nats(n_classes, smoothing):
    """Cost of one error, in nats."""
    return np.log1p(-smoothing) - np.log(smoothing / (n_classes - 1))


def log_likelihood_of_answers(codes, y_codes, likelihood, absent=None):
    """``ln p(y | answer)`` (n, M) of encoded annotations; a missing one takes the entry of `absent`.

    Parameters
    ----------
    codes : ndarray of shape (n, M)
        Encoded annotations, -1 missing.
    y_codes : ndarray of shape (n,)
        Encoded truth.
    likelihood : ndarray of shape (C, C)
        As returned by `answer_likelihood`.
    absent : ndarray of shape (n, M), default=None
        Likelihood of the truth for a missing annotation, integrated over the answer. None assumes random answers.
    """
    if absent is None:
        absent = likelihood[y_codes].mean(1, keepdims=True)
    return np.log(np.where(codes >= 0, likelihood[y_codes[:, None], codes], absent))


def expected_likelihood(proba, y_codes, likelihood):
    """Likelihood of the truth integrated over an answer with distribution `proba` (n, ..., C): (n, ...)."""
    rows = likelihood[y_codes]
    return (proba * rows.reshape(len(rows), *(1,) * (proba.ndim - 2), -1)).sum(-1)


def team_log_likelihood(codes, y_codes, classifier_proba, likelihood, absent):
    """``ln p(y | answer)`` (n, M + 1) of the experts and, last, of the classifier."""
    people = log_likelihood_of_answers(codes, y_codes, likelihood, absent)
    return np.column_stack([people, np.log(expected_likelihood(classifier_proba, y_codes, likelihood))])


def fit_temperature(log_proba, y_codes, sample_weight=None):
    """Temperature that maximises the likelihood of ``softmax(log_proba / T)``; 1 if none is better.

    Parameters
    ----------
    log_proba : ndarray of shape (n, C)
        Finite log-probabilities.
    y_codes : ndarray of shape (n,)
        Encoded truth.
    sample_weight : ndarray of shape (n,), default=None
        Weights of the rows; equal by default.

    Returns
    -------
    temperature : float
        Between 0.05 and 20. Of more than 100,000 rows, as many random ones tell it.
    """
    weight = np.ones(len(y_codes)) if sample_weight is None else sample_weight
    if len(y_codes) > _ENOUGH_ROWS:
        rows = np.random.default_rng(0).choice(len(y_codes), _ENOUGH_ROWS, replace=False)
        log_proba, y_codes, weight = log_proba[rows], y_codes[rows], weight[rows]
    weight = weight / weight.sum()
    rows = np.arange(len(y_codes))

    def loss(log_temperature):
        return -(weight * temper(log_proba, np.exp(log_temperature))[rows, y_codes]).sum()

    best = minimize_scalar(loss, bounds=np.log([0.05, 20]), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(best.x)) if best.fun < loss(0.0) else 1.0


def temper(log_proba, temperature):
    """Log-probabilities at another temperature."""
    return log_softmax(log_proba / temperature, axis=1)
