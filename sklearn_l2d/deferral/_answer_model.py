"""How each person of a team answers given the truth, and labels by the classifier and all answers together."""

import numpy as np
from scipy.sparse import csr_array

from .._numerics._answer_model import answer_log_likelihood, count_answers, fit_answer_model
from .._numerics._fusion import Exponents, fit_exponents, fuse

_ENOUGH_ANSWERS = 5_000  # for three exponents
_BLOCK = 1 << 19  # answers whose likelihoods are computed at once


def answers_of(votes, truth):
    """Answers (n_experts, C * C) of the annotators of votes, sparse, by answer and true class."""
    n_experts, n_classes = len(votes.annotators), truth.shape[1]
    own, _, _ = count_answers(votes.item, votes.annotator, votes.label, n_experts, truth)
    return csr_array(own.reshape((n_experts, n_classes**2)))


def learn_answers(votes, truth, shape=None):
    """`AnswerModel` of the annotators of votes on items of known truth (n, C), one-hot.

    `shape` (n_answers, C) is what people answer at the items, or None if that is unknown.
    """
    return fit_answer_model(votes.item, votes.annotator, votes.label, len(votes.annotators), truth, shape)


def learn_exponents(model, votes, truth, log_prior, shape, seed):
    """How much the classifier and the answers count, learnt from the rows of a fit.

    Parameters
    ----------
    model : AnswerModel
        Learnt from these votes; every answer is judged by the others.
    votes : Votes
        n items.
    truth : ndarray of shape (n, C)
        One-hot.
    log_prior : ndarray of shape (n, C) or None
        Out-of-fold log-probabilities of the classifier; None where there are none, which leaves its exponent at 1.
    shape : ndarray of shape (n_answers, C) or None
    seed : int
        Seed of the items, where there are more answers than are needed, and of the order of the answers.
    """
    if not len(votes.item):
        return Exponents()
    kept = np.flatnonzero(_some_items(votes, seed)[votes.item])
    item, truth_of = votes.item[kept], truth[votes.item[kept]]
    shape = None if shape is None else shape[kept]
    log_likelihood = answer_log_likelihood(model, votes.annotator[kept], votes.label[kept], shape, truth_of)
    if log_prior is not None:
        return fit_exponents(log_prior, item, log_likelihood, truth, seed)
    frequency = np.log(truth.sum(0) + 1) - np.log(len(truth) + truth.shape[1])
    return fit_exponents(np.tile(frequency, (len(truth), 1)), item, log_likelihood, truth, seed)._replace(prior=1.0)


def _some_items(votes, seed):
    share = _ENOUGH_ANSWERS / len(votes.item)
    return np.random.default_rng(seed).random(len(votes)) < share if share < 1 else np.ones(len(votes), dtype=bool)


def fused_proba(model, exponents, log_prior, votes, shape_of):
    """Probabilities (n, C) of the truth given the classifier and all answers.

    `shape_of(rows, votes)` returns the shape of the errors for the votes on a slice of rows, or None.
    """
    proba = np.empty(log_prior.shape)
    step = max(1, int(_BLOCK * len(votes) / max(len(votes.item), 1)))
    for start in range(0, len(votes), step):
        rows = slice(start, start + step)
        some = votes[rows]
        log_likelihood = answer_log_likelihood(model, some.annotator, some.label, shape_of(rows, some))
        proba[rows] = np.exp(fuse(log_prior[rows], some.item, log_likelihood, exponents))
    return proba
