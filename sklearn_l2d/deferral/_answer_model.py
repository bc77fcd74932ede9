"""How each person of a team answers given the truth, and labels by the classifier and all answers together."""

import numpy as np
from scipy.sparse import csr_array

from .._numerics._answer_model import BLOCK, complete_truth, count_answers, told, with_share
from .._numerics._difficulty import n_difficulties
from .._numerics._fusion import Exponents, fit_exponents, fuse

_ENOUGH_ANSWERS, _ENOUGH_ITEMS, _MOST_OF_AN_ITEM = 5_000, 500, 20  # from which a few numbers are learnt


def count_votes(votes, truth):
    """What a `Roster` counts of the annotators of votes on items with a distribution (n, C) of the truth: a dict."""
    n_experts, n_classes = len(votes.annotators), truth.shape[1]
    own, right, seen = count_answers(votes.item, votes.annotator, votes.label, n_experts, truth)
    return {"right": right, "seen": seen, "answers": csr_array(own.reshape((n_experts, n_classes**2)))}


def completed(votes, truth, priors=None, likely=None, sample_weight=None):
    """Distribution (n, C) of the truth of items given all answers.

    Parameters
    ----------
    votes : Votes
        Answers to n items.
    truth : ndarray of shape (n, C)
        Distribution before any answer: one-hot where the truth is known, else the classifier's.
    priors, likely, sample_weight
        As in `complete_truth`.
    """
    with np.errstate(divide="ignore"):
        log_prior = np.log(truth)
    n_experts = len(votes.annotators)
    answers = votes.item, votes.annotator, votes.label
    return complete_truth(log_prior, *answers, n_experts, priors, likely, sample_weight=sample_weight)[0]


def few_answers(votes, seed):
    """Enough of many votes to learn a few numbers that concern everybody.

    Returns
    -------
    rows : ndarray of int or slice
        Items, all of them where answers are few.
    some : Votes
        At most 20 answers to each of these items.
    """
    if len(votes.item) <= _ENOUGH_ANSWERS:
        return slice(None), votes
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(votes.item)), votes.item))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - votes.starts[votes.item]
    some = votes.select(place < _MOST_OF_AN_ITEM)
    # items count, not answers: there must be enough of them, however many answer each
    n_items = max(_ENOUGH_ANSWERS * len(votes) // len(some.item), _ENOUGH_ITEMS)
    if n_items >= len(votes):
        return slice(None), some
    rows = np.sort(rng.choice(len(votes), n_items, replace=False))
    return rows, some[rows]


def learn_weights(model, votes, truth, log_prior, shape):
    """How much the shape of errors, the classifier and the answers count, learnt from rows of a fit.

    Parameters
    ----------
    model : AnswerModel
        Learnt from these votes and perhaps others; every answer is judged by the others.
    votes : Votes
        n items.
    truth : ndarray of shape (n, C)
        One-hot, times the weights of the items.
    log_prior : ndarray of shape (n, C) or None
        Out-of-fold log-probabilities of the classifier; None where there are none, which leaves its exponent at 1.
    shape : ndarray of shape (n_answers, C) or None
        What people answer at the items.

    Returns
    -------
    model : AnswerModel
        With the share of the errors that is shaped.
    exponents : Exponents
    """
    if not len(votes.item):
        return model, Exponents()
    item, truth_of = votes.item, truth[votes.item]
    if shape is not None:
        model = with_share(model, votes.annotator, votes.label, shape, truth_of)
    heard = told(model, votes.annotator, votes.label, shape, truth_of)
    if log_prior is not None:
        return model, fit_exponents(log_prior, item, votes.annotator, heard, truth)
    frequency = np.log(truth.sum(0) + 1) - np.log(truth.sum() + truth.shape[1])
    exponents = fit_exponents(np.tile(frequency, (len(truth), 1)), item, votes.annotator, heard, truth)
    return model, exponents._replace(prior=1.0)


def fused_proba(model, exponents, log_prior, votes, shape_of):
    """Probabilities (n, C) of the truth given the classifier and all answers.

    `shape_of(rows, votes)` returns the shape of the errors for the votes on a slice of rows, or None.
    """
    proba = np.empty(log_prior.shape)
    size = len(votes.item) * n_difficulties(exponents.difficulty) * log_prior.shape[1]
    step = max(1, int(BLOCK * len(votes) / max(size, 1)))
    for start in range(0, len(votes), step):
        rows = slice(start, start + step)
        some = votes[rows]
        heard = told(model, some.annotator, some.label, shape_of(rows, some))
        proba[rows] = np.exp(fuse(log_prior[rows], some.item, heard, exponents))
    return proba
