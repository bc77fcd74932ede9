"""How everybody answers: what experts got right, how well an answer explains the truth, and honest probabilities."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp


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


def competence_posterior(right, seen, center, strengths):
    """Mean and variance of the competence of each expert per class.

    The competence in a class has a Beta prior around the expert's own correctness, which in turn has one around the
    correctness of everybody.

    Parameters
    ----------
    right, seen : ndarrays of shape (M, C)
        Right answers and answers, as returned by `tally_answers`.
    center : float
        Correctness of everybody.
    strengths : tuple of float
        Answers that the prior of an expert and the prior of a class count as. With an infinite first one nothing is
        learnt about an expert from other classes: the classes then have the prior
        ``Beta(strengths[1] * center, strengths[1] * (1 - center))`` each.

    Returns
    -------
    mean, variance : ndarrays of shape (M, C)
    """
    if np.isinf(strengths[0]):
        own, own_variance = np.full((len(right), 1), center), 0.0
    else:
        own = own_correctness(right, seen, center, strengths[0])[:, None]
        own_variance = own * (1 - own) / (seen.sum(1, keepdims=True) + strengths[0] + 1)
    size = seen + strengths[1]
    mean = (right + strengths[1] * own) / size
    inherited = (strengths[1] / size) ** 2 * own_variance  # what the doubt about the expert adds to that about a class
    return mean, (mean * (1 - mean) - inherited) / (size + 1) + inherited


def answer_likelihood(n_classes, smoothing, error_cost=None):
    """Likelihood (C, C) of the true class (row) given an answer (column).

    Parameters
    ----------
    n_classes : int
        C, at least 2.
    smoothing : float
        Probability s that the truth is not what was answered: the likelihood is ``1 - s`` for a right answer and
        ``s / (C - 1)`` for a wrong one (L2D-Clusters 3.3, step 5).
    error_cost : ndarray of shape (C, C), default=None
        Cost of answering the column where the row is true, in units of one ordinary error: the logarithm falls in
        proportion. None is 0 on the diagonal and 1 elsewhere, which gives the smoothed one-hot exactly.

    Returns
    -------
    likelihood : ndarray of shape (C, C)
    """
    if error_cost is None:
        error_cost = 1.0 - np.eye(n_classes)
    return np.exp(np.log1p(-smoothing) - error_nats(n_classes, smoothing) * np.asarray(error_cost, dtype=float))


def error_nats(n_classes, smoothing):
    """What one ordinary error costs, in nats."""
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
        Likelihood of the truth integrated over what the absent expert would have answered; None takes an expert
        who answers at random.
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


def absent_likelihood(codes, y_codes, likelihood, correctness):
    """Likelihood (n, M) of the truth given what an expert would have answered; None where nobody is missing.

    It is integrated over the answer (PL2D Eq. 17, corrected: exact, no mean field), which is right with the expert's
    own correctness on the true class; mistakes are spread evenly. The behaviours of a clusterer, which do not know
    the truth, were measured to tell experts apart less well.
    """
    if (codes >= 0).all():
        return None
    right = correctness.T[y_codes]
    when_right = np.diagonal(likelihood)[y_codes, None]
    when_wrong = (likelihood[y_codes].sum(1, keepdims=True) - when_right) / (len(likelihood) - 1)
    return right * when_right + (1 - right) * when_wrong


def fit_temperature(log_proba, y_codes):
    """Temperature that makes ``softmax(log_proba / T)`` the most likely; 1 where it cannot be told.

    Parameters
    ----------
    log_proba : ndarray of shape (n, C)
        Finite log-probabilities.
    y_codes : ndarray of shape (n,)
        Encoded truth.

    Returns
    -------
    temperature : float
        Between 0.05 and 20.
    """
    weight = np.full(len(y_codes), 1 / len(y_codes))
    rows = np.arange(len(y_codes))

    def loss(log_temperature):
        return -(weight * temper(log_proba, np.exp(log_temperature))[rows, y_codes]).sum()

    best = minimize_scalar(loss, bounds=np.log([0.05, 20]), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(best.x)) if best.fun < loss(0.0) else 1.0


def temper(log_proba, temperature):
    """Log-probabilities at another temperature."""
    scaled = log_proba / temperature
    return scaled - logsumexp(scaled, axis=1, keepdims=True)
