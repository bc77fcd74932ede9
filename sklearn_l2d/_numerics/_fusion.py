"""One posterior of the truth from a classifier and any number of answers, calibrated for every number of answers."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from ._answer_model import sum_by_item
from ._difficulty import over_difficulties
from ._keyed import number_keys

_PENALTY = 2.0  # on the squared logarithms of the exponents a and b
_SPREAD = 0.12  # scale of the prior of the correlation
_DIFFICULTY, _RANGE = 1.0, 1.0  # and center and scale of that of the deviation of the difficulty of items, in logits
_DIFFICULTIES = 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0  # deviations that are tried


class Exponents(NamedTuple):
    """How much the classifier and the answers count in the posterior.

    Attributes
    ----------
    prior : float
        Exponent a of the classifier's probabilities, once there are answers.
    answers : float
        Exponent b of the likelihood of the answers.
    correlation : float
        Correlation r, given the truth, of the answers to an item: what is hard for one is hard for all. Where T answer,
        all evidence is divided by Kish's design effect ``1 + r (T - 1)``, the classifier's too, so that the most
        probable class is that of independent answers and only the confidence is less.
    difficulty : float
        Standard deviation of the difficulty of an item, in logits of the chance to be right; see `Told`.
    """

    prior: float = 1.0
    answers: float = 1.0
    correlation: float = 0.0
    difficulty: float = 0.0


def fuse(log_prior, item, told, exponents):
    """Log posterior ``(a ln p(y | x) + b ln p(answers | y)) / (1 + r (T - 1)) - const`` given T answers.

    The answers are independent given the truth and the difficulty of the item, over which they are integrated.

    Parameters
    ----------
    log_prior : ndarray of shape (n_items, n_classes)
        Log-probabilities of the classifier.
    item : ndarray of int of shape (n_answers,)
        Item of every answer.
    told : Told
        By every answer.
    exponents : Exponents
        As returned by `fit_exponents`; ``Exponents()`` is Bayes' rule for independent answers.

    Returns
    -------
    log_posterior : ndarray of shape (n_items, n_classes)
        An item without answers keeps the classifier's probabilities.
    """
    size = np.bincount(item, minlength=len(log_prior))
    evidence = over_difficulties(sum_by_item(told.at_difficulties(exponents.difficulty), item, len(log_prior)))
    return posterior(log_prior, evidence, size, exponents)


def posterior(log_prior, evidence, n_answers, exponents):
    """As `fuse`, from the log-likelihood `evidence` (n_items, n_classes) of `n_answers` (n_items,)."""
    size = n_answers[:, None]
    design = 1 + exponents.correlation * (size - 1)
    fused = (exponents.prior * log_prior + exponents.answers * evidence) / np.where(size > 0, design, 1.0)
    return log_softmax(np.where(size > 0, fused, log_prior), axis=1)


def fit_exponents(log_prior, item, expert, told, truth):
    """Exponents by penalised maximum likelihood of the truth, given the first one, two, three ... answers to an item.

    First comes whoever is most likely to be right, as a team asks: the best seem better than they are, and depend more
    on one another than anybody. Every item counts alike, and its first T answers in proportion to 1 / T, so that few
    answers matter as much as many.

    The truth of a few items hardly tells a dependence from chance, but all answers to them do: where people are right
    about the same items, these differ in difficulty, which is learnt first, from the answers given the truth. It is
    also what can be known of the correlation, which has a Cauchy prior of scale .12 around `expected_correlation`.

    Parameters
    ----------
    log_prior : ndarray of shape (n_items, n_classes)
        Log-probabilities of the classifier on items that it was not fitted on.
    item, expert : ndarrays of int of shape (n_answers,)
        Item and expert of every answer.
    told : Told
        By a model without the answer itself: `left_out` of `answer_log_likelihood`.
    truth : ndarray of shape (n_items, n_classes)
        Distribution of the true class, one-hot if it is known, times the weight of the item.

    Returns
    -------
    exponents : Exponents
    """
    expected = _alike((np.exp(log_prior[item]) * told.accuracy).sum(1), item, expert)
    order = np.lexsort((_lots(log_prior[item, told.label], expected, item), -expected, item))
    of = item[order]
    size = np.arange(len(of)) - np.searchsorted(of, of) + 1
    weight = 1 / size
    weight /= np.bincount(of, weight, len(log_prior))[of]
    prior, target = log_prior[of], truth[of] * weight[:, None]
    weight *= truth.sum(1)[of]

    difficulty = fit_difficulty(item, told, truth)
    evidence = _of_prefixes(of, told.at_difficulties(difficulty)[order])
    usual = expected_correlation(difficulty, truth.shape[1])

    def loss(point):
        a, b, design = *np.exp(point[:2]), 1 + point[2] * (size - 1)
        known, heard = a / design[:, None] * prior, b / design[:, None] * evidence
        log_posterior = log_softmax(known + heard, axis=1)
        error = weight[:, None] * np.exp(log_posterior) - target
        by_prior, by_answers = (error * known).sum(1), (error * heard).sum(1)
        slope = np.array([by_prior.sum(), by_answers.sum(), -(by_prior + by_answers) @ ((size - 1) / design)])
        logs, far = np.append(point[:2], 0.0), (point[2] - usual) / _SPREAD
        slope += 2 * _PENALTY * logs
        slope[2] += 2 * far / (1 + far**2) / _SPREAD
        return _PENALTY * logs @ logs + np.log1p(far**2) - (target * log_posterior).sum(), slope

    bounds = [(-6, 3), (-6, 3), (0, 1)]
    log_a, log_b, correlation = minimize(loss, [0.0, 0.0, usual], jac=True, method="L-BFGS-B", bounds=bounds).x
    return Exponents(float(np.exp(log_a)), float(np.exp(log_b)), float(correlation), difficulty)


def fit_difficulty(item, told, truth):
    """Standard deviation of the difficulty of items by penalised maximum likelihood of all answers to each of them.

    It has a Cauchy prior around 1 of scale 1. Parameters are those of `fit_exponents`.
    """

    def likelihood(difficulty):
        evidence = over_difficulties(sum_by_item(told.at_difficulties(difficulty), item, len(truth)))
        return (truth * evidence).sum() - np.log1p(((difficulty - _DIFFICULTY) / _RANGE) ** 2)

    return max(_DIFFICULTIES, key=likelihood)


def expected_correlation(difficulty, n_classes):
    """Correlation of answers, beyond difficulty, to expect where items differ in difficulty.

    What misleads one on a hard item misleads others to the same wrong class. This is taken to be as frequent as being
    wrong about the same items is, whose correlation within an item is that of a logistic model with a random effect,
    but for chance: the wrong answers among two classes are all the same, and their difficulty says everything.
    """
    if n_classes <= 2:
        return 0.0
    return difficulty**2 / (difficulty**2 + np.pi**2 / 3) * (n_classes - 2) / (n_classes - 1)


def _lots(log_prior, expected, item):
    """Lots (n_answers,) by which answers that are expected to be as good come one after the other.

    They follow from the classifier's log-probability of the answer, from those of all answers to the item, and from the
    number of the answer among all that say the same: each has its own, whatever the order of people is, and a label
    that many give seldom comes last.
    """
    lot = number_keys(np.round(1e6 * np.minimum(-log_prior, 700)))
    of_item = np.zeros(item.max(initial=-1) + 1, dtype=np.uint64)
    np.add.at(of_item, item, lot)
    lot += number_keys(of_item)[item]
    order = np.lexsort((lot, -expected, item))
    same = [part[order][1:] == part[order][:-1] for part in (lot, expected, item)]
    begins = np.append(True, ~np.logical_and.reduce(same))[: len(order)]
    place = np.arange(len(order))
    lot[order] += (place - np.maximum.accumulate(np.where(begins, place, 0))).astype(np.uint64)
    return number_keys(lot)


def _alike(values, item, expert):
    """Mean of the values (n_answers,) of all answers to an item that count as one expert's.

    Each of them is judged by the others, so that those of them that are wrong seem the best.
    """
    pair = np.unique(np.column_stack([item, expert]), axis=0, return_inverse=True)[1]
    return (np.bincount(pair, values) / np.bincount(pair))[pair]


def _of_prefixes(item, log_likelihood):
    """Log-likelihood (n_answers, n_classes) of the first 1, 2, 3 ... answers to every item, in the order of items."""
    total = np.cumsum(log_likelihood, axis=0)
    first = np.searchsorted(item, item)
    if len(item):
        total -= np.where(first[:, None, None] > 0, total[first - 1], 0.0)
    return over_difficulties(total)
