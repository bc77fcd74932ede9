"""How well an answer explains the truth: ln p(y | answer), for experts, absent experts and the classifier."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp


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


def fit_temperature(log_proba, y_codes, sample_weight=None):
    """Temperature that makes ``softmax(log_proba / T)`` the most likely; 1 where it cannot be told.

    Parameters
    ----------
    log_proba : ndarray of shape (n, C)
        Finite log-probabilities.
    y_codes : ndarray of shape (n,)
        Encoded truth.
    sample_weight : ndarray of shape (n,), default=None
        Row weights.

    Returns
    -------
    temperature : float
        Between 0.05 and 20.
    """
    weight = np.full(len(y_codes), 1 / len(y_codes)) if sample_weight is None else sample_weight / sample_weight.sum()
    rows = np.arange(len(y_codes))

    def loss(log_temperature):
        return -(weight * temper(log_proba, np.exp(log_temperature))[rows, y_codes]).sum()

    best = minimize_scalar(loss, bounds=np.log([0.05, 20]), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(best.x)) if best.fun < loss(0.0) else 1.0


def temper(log_proba, temperature):
    """Log-probabilities at another temperature."""
    scaled = log_proba / temperature
    return scaled - logsumexp(scaled, axis=1, keepdims=True)
