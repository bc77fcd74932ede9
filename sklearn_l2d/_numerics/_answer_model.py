"""How people answer given the truth: the probabilities of their answers, learnt from answers to items of known truth.

The model is that of Dawid & Skene (1979): given the true class of an item, the answer of an expert follows the expert's
own row of probabilities for that class. A row has a Dirichlet prior around the row of somebody who is right with a
certain probability and whose wrong answers are those of the whole roster.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.sparse import csr_array
from scipy.special import betaln, digamma, expit, gammaln, logit, logsumexp

from ._matrices import rows_of

_FLOOR = 1e-3  # least probability of a right and of a wrong answer in a prior row
_STRENGTHS = (0.5, 2000.0)  # of the prior rows, in answers
BLOCK = 1 << 21  # log-likelihoods, of an answer and a class, that are computed at once
_LEAST = 1e-4  # probability of a truth below which it is ruled out
_STILL = 1e-3  # change of the distribution of the truth of an item, on average, below which it stands still
_LARGEST_SHARE = 0.3  # of the shaped errors: the archive often holds the votes on the labelled items, which flatters it


class AnswerModel(NamedTuple):
    """Probabilities of the answers of M experts, given each of C classes.

    The row of an expert for a true class is ``(own + strength * prior) / (seen + strength)``. The prior row holds
    `accuracy` at the true class and divides the rest among the other classes as the `wrong` answers of the roster. Rows
    are never built: the memory is that of three arrays (M, C), one (C, C), and one number for each triple of expert,
    answer and true class that was seen.

    Attributes
    ----------
    own : csr_array of shape (n_experts * n_classes, n_classes)
        Answers seen: row ``expert * n_classes + answer``, column the true class.
    right, seen : ndarrays of shape (n_experts, n_classes)
        Right answers and answers per true class.
    accuracy : ndarray of shape (n_experts, n_classes)
        Probability of the right answer in the prior row of a true class.
    errors : ndarray of shape (n_classes, n_classes)
        Wrong answers of the roster per true class (row), 0 on the diagonal.
    error_strength : float
        Number of answers, spread evenly over the wrong ones, that join `errors`.
    strength : float
        Number of answers that a prior row counts as.
    center, center_strength : float
        Accuracy of the roster, and the number of answers that it counts as in the accuracy of an expert.
    offset : ndarray of shape (n_classes,)
        How much easier a class is for everybody, in logits; 0 if the answers do not call for it.
    share : float
        Share of the wrong answers that the behaviours at the item shape; 0 if none were given.
    """

    own: csr_array
    right: np.ndarray
    seen: np.ndarray
    accuracy: np.ndarray
    errors: np.ndarray
    error_strength: float
    strength: float
    center: float
    center_strength: float
    offset: np.ndarray
    share: float

    @property
    def wrong(self):
        """Distribution (n_classes, n_classes) of the wrong answers per true class (row), 0 on the diagonal."""
        return _shrunken_errors(self.errors, self.error_strength)

    @property
    def correctness(self):
        """Probability (n_experts, n_classes) of the right answer per true class."""
        return (self.right + self.strength * self.accuracy) / (self.seen + self.strength)


def fit_answer_model(item, expert, label, n_experts, truth, shape=None):
    """Learn how experts answer from their answers to items whose truth is known, or has a distribution.

    All strengths maximise the marginal likelihood of the answers (empirical Bayes): the accuracy of an expert has a
    Beta prior around that of the roster, the rows and the wrong answers of the roster have Dirichlet priors. Classes
    differ in difficulty only if the marginal likelihood says so.

    Parameters
    ----------
    item, expert, label : ndarrays of int of shape (n_answers,)
        Item, expert and class of every answer.
    n_experts : int
        Number of experts M, of whom some may not have answered.
    truth : ndarray of shape (n_items, n_classes)
        Distribution of the true class, one-hot if it is known.
    shape : ndarray of shape (n_answers, n_classes), default=None
        As in `answer_log_likelihood`. The share of the wrong answers that it shapes maximises the likelihood of answers
        that are left out.

    Returns
    -------
    model : AnswerModel
    """
    model = fit_counts(*count_answers(item, expert, label, n_experts, truth))
    return model if shape is None else with_share(model, expert, label, shape, truth[item])


def fit_counts(own, right, seen):
    """As `fit_answer_model` without `shape`, from answers that are counted, in the form of an `AnswerModel`."""
    n_classes = own.shape[1]
    pooled = np.bincount(own.indices * n_classes + rows_of(own) % n_classes, own.data, n_classes**2)
    pooled = pooled.reshape(n_classes, n_classes)
    errors = pooled * (1 - np.eye(n_classes))
    made = errors > 0
    error_strength = dirichlet_strength(_evenly(n_classes)[made], errors[made], errors.sum(1))[1]
    center, center_strength = _beta_prior(right.sum(1), seen.sum(1))
    easy = (pooled.diagonal() + 10 * center) / (pooled.sum(1) + 10)
    fits = []
    for offset in (np.zeros(n_classes), logit(easy) - logit(center)):
        accuracy = _class_accuracy(right.sum(1), seen.sum(1), center, center_strength, offset)
        prior = _prior_of_own(own, accuracy, _shrunken_errors(errors, error_strength))
        fits.append((*dirichlet_strength(prior, own.data, seen), accuracy, offset))
    _, strength, accuracy, offset = max(fits, key=lambda fit: fit[0])
    rest = errors, error_strength, strength, center, center_strength, offset
    return AnswerModel(own, right, seen, accuracy, *rest, share=0.0)


def with_answers(model, item, expert, label, truth):
    """The model with other answers of its experts, all priors as they are; parameters as in `fit_answer_model`."""
    own, right, seen = count_answers(item, expert, label, len(model.seen), truth)
    return model._replace(own=own, right=right, seen=seen)


def with_experts(model, own, right, seen, likely=None):
    """The model of other experts, from their answers in the form of an `AnswerModel`; all priors as they are.

    Parameters
    ----------
    model : AnswerModel
    own, right, seen
        As in `AnswerModel`.
    likely : ndarray of shape (n_experts, n_classes), default=None
        Accuracy to expect of experts before their own answers, as `likely_accuracy` tells it; NaN, for whole rows, and
        None stand for that of everybody. Own answers take over first in the accuracy over all classes, then in every
        row.
    """
    accuracy = _class_accuracy(right.sum(1), seen.sum(1), model.center, model.center_strength, model.offset)
    if likely is not None and (told := np.isfinite(likely).all(1)).any():
        likely, right_of, met = likely[told], right[told].sum(1), seen[told] + 1e-9
        expected = (met * likely).sum(1) / met.sum(1)
        found = (right_of + model.center_strength * expected) / (seen[told].sum(1) + model.center_strength)
        moved = expit(logit(likely) + (logit(found) - logit(expected))[:, None])
        accuracy[told] = moved.clip(_FLOOR, 1 - _FLOOR)
    return model._replace(own=own, right=right, seen=seen, accuracy=accuracy)


def likely_accuracy(model, omega, omega_new):
    """Accuracy (n_new, n_classes) to expect of people by their memberships in behaviours alone.

    A behaviour is as accurate as the experts who belong to it, and a newcomer as the behaviours, weighed by
    memberships.

    Parameters
    ----------
    model : AnswerModel
        Of the M experts of the roster.
    omega, omega_new : ndarrays of shape (M, K) and (n_new, K)
        Memberships of the roster and of the newcomers. A behaviour without members counts as the whole roster.
    """
    weight = omega + 1e-9
    return omega_new @ (weight / weight.sum(0)).T @ model.correctness


def answer_log_likelihood(model, expert, label, shape=None, left_out=None):
    """Log-probability of every answer, for every possible truth.

    Parameters
    ----------
    model : AnswerModel
    expert, label : ndarrays of int of shape (n_answers,)
        Expert and class of every answer.
    shape : ndarray of shape (n_answers, n_classes), default=None
        Probabilities of what people answer at the item, as behaviours learnt from anonymous votes predict them. Without
        the truth and renormalised, they shape the model's share of the wrong answers: people err alike on an item.
    left_out : ndarray of shape (n_answers, n_classes), default=None
        Distributions of the truth with which `fit_answer_model` has seen these answers, times the weights of the items:
        each is judged by all others,
        the priors' strengths, center and offset as they are. None takes the answers as new.

    Returns
    -------
    log_likelihood : ndarray of shape (n_answers, n_classes)
        ``ln p(answer | truth, expert)`` in nats; the column is the truth.
    """
    n_classes = len(model.offset)
    is_right = label[:, None] == np.arange(n_classes)
    own, seen, right = model.own[_row(expert, label, n_classes)].toarray(), model.seen[expert], model.right[expert]
    accuracy, wrong = model.accuracy[expert], model.wrong.T[label]
    if left_out is not None:
        own, seen, right = own - left_out, seen - left_out, right - left_out * is_right
        accuracy = _class_accuracy(right.sum(1), seen.sum(1), model.center, model.center_strength, model.offset)
        size = model.errors.sum(1) + model.error_strength
        errors = np.where(is_right, 0.0, left_out)
        wrong = (wrong * size - errors) / (size - errors)
    total = seen + model.strength
    proba = (own + model.strength * np.where(is_right, accuracy, (1 - accuracy) * wrong)) / total
    if shape is not None and model.share > 0:
        mistaken = 1 - (right + model.strength * accuracy) / total
        shape = shape.astype(float) + 1e-9
        shaped = mistaken * (shape[is_right][:, None] / (shape.sum(1, keepdims=True) - shape))
        proba = np.where(is_right, proba, (1 - model.share) * proba + model.share * shaped)
    return np.log(np.maximum(proba, 1e-300))


def complete_truth(
    log_prior,
    item,
    expert,
    label,
    n_experts,
    priors=None,
    likely=None,
    *,
    sample_weight=None,
    n_rounds=5,
    n_iter=20,
    tol=1e-6,
):
    """Learn how experts answer where the truth of some or of all items is unknown, by EM (Dawid & Skene 1979).

    A round learns all priors from the current distribution of the truth and then repeats, priors fixed, the posterior
    of the truth (E) and the most probable rows of the experts (M). The objective is the log-likelihood of the answers
    less ``strength`` times the divergence of every row from its prior row; it never falls within a round. Truths that
    are nearly impossible when a round starts are ruled out, or all answers would count a little for all classes, in
    memory and in the priors.

    Parameters
    ----------
    log_prior : ndarray of shape (n_items, n_classes)
        Log-probabilities of the truth before any answer, as of a classifier; one-hot (0 and -inf) where it is known.
    item, expert, label, n_experts
        As in `fit_answer_model`.
    priors : AnswerModel, default=None
        Of a roster, whose priors hold for these experts, too; a round then learns the experts' accuracy only.
    likely : ndarray of shape (n_experts, n_classes), default=None
        As in `with_experts`, beside `priors`.
    sample_weight : ndarray of shape (n_items,), default=None
        How often the answers to each item count; once by default.
    n_rounds, n_iter : int
        Largest numbers of rounds, which end when the truth hardly changes, and of steps in each.
    tol : float
        Gain per item, in nats, below which a round ends.

    Returns
    -------
    truth : ndarray of shape (n_items, n_classes)
        Posterior of the truth.
    model : AnswerModel
        Learnt from it.
    objective : list of float
        Of the steps of the last round.
    """
    n_items, n_classes = log_prior.shape
    weight = np.ones((n_items, 1)) if sample_weight is None else sample_weight[:, None]
    votes = np.bincount(_row(item, label, n_classes), minlength=n_items * n_classes).reshape(n_items, n_classes)
    known = np.isneginf(log_prior).any(1, keepdims=True)
    truth = np.exp(log_prior - logsumexp(log_prior, axis=1, keepdims=True))
    truth = np.where(known, truth, (truth + votes) / (1 + votes.sum(1, keepdims=True)))
    for _ in range(n_rounds):
        truth = np.where(truth < _LEAST, 0.0, truth)
        truth /= truth.sum(1, keepdims=True)
        before, ruled_out = truth, truth == 0
        counts, objective = count_answers(item, expert, label, n_experts, truth * weight), []
        model = fit_counts(*counts) if priors is None else with_experts(priors, *counts, likely)
        for _ in range(n_iter):
            log_joint = log_prior + _log_evidence(model, item, expert, label, n_items)
            log_joint[ruled_out] = -np.inf
            evidence = logsumexp(log_joint, axis=1, keepdims=True)
            objective.append((weight * evidence).sum() - model.strength * _divergence(model))
            truth = np.exp(log_joint - evidence)
            model = with_answers(model, item, expert, label, truth * weight)
            if len(objective) > 1 and objective[-1] - objective[-2] < tol * weight.sum():
                break
        if (weight * np.abs(truth - before)).sum() < _STILL * weight.sum():
            break
    return truth, model, objective


def _log_evidence(model, item, expert, label, n_items):
    """Log-likelihood (n_items, n_classes) of all answers to every item, computed for some answers at a time."""
    total = np.zeros((n_items, len(model.offset)))
    step = max(1, BLOCK // len(model.offset))
    for start in range(0, len(item), step):
        some = slice(start, start + step)
        total += sum_by_item(answer_log_likelihood(model, expert[some], label[some]), item[some], n_items)
    return total


def sum_by_item(values, item, n_items):
    """Sum of the rows of `values` (n_answers, n) of every item: (n_items, n)."""
    ones = np.ones(len(item))
    return csr_array((ones, (item, np.arange(len(item)))), (n_items, len(item))) @ values


def count_answers(item, expert, label, n_experts, truth):
    """Answers seen, sparse as in `AnswerModel`, and right answers and answers (n_experts, n_classes) per true class."""
    n_items, n_classes = truth.shape
    place = _row(expert, label, n_classes), item
    answers = csr_array((np.ones(len(item)), place), (n_experts * n_classes, n_items))
    own = csr_array(answers @ csr_array(truth))
    cell = rows_of(own) // n_classes * n_classes + own.indices
    seen = np.bincount(cell, own.data, n_experts * n_classes).reshape(n_experts, n_classes)
    is_right = rows_of(own) % n_classes == own.indices
    right = np.bincount(cell[is_right], own.data[is_right], n_experts * n_classes).reshape(n_experts, n_classes)
    return own, right, seen


def _row(expert, label, n_classes):
    """Number of the row of an expert and an answer, in a type that holds it."""
    return np.asarray(expert, dtype=np.int64) * n_classes + label


def _beta_prior(right, seen):
    """Mean and strength of the Beta prior of the accuracy of experts, by marginal likelihood.

    The mean has a prior that counts as one right and one wrong answer, the logarithm of the strength a normal one
    around 10 answers with deviation 1.5: a few experts tell little about either.
    """
    (right, seen), size = _distinct(right[seen > 0], seen[seen > 0])

    def loss(point):
        mean, strength = expit(point[0]), np.exp(point[1])
        p, q = mean * strength, (1 - mean) * strength
        gain = betaln(p + right, q + seen - right) - betaln(p, q)
        rise = digamma(strength) - digamma(strength + seen)
        slope_p = size @ (digamma(p + right) - digamma(p) + rise) + 1 / p
        slope_q = size @ (digamma(q + seen - right) - digamma(q) + rise) + 1 / q
        prior = np.log(mean) + np.log1p(-mean) - 0.5 * ((point[1] - np.log(10)) / 1.5) ** 2
        slope = mean * q * (slope_p - slope_q), p * slope_p + q * slope_q - 2 - (point[1] - np.log(10)) / 1.5**2
        return -(size @ gain + prior), -np.array(slope)

    start = [logit((right @ size + 1) / (seen @ size + 2)), np.log(10)]
    mean, strength = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-6}).x
    return float(expit(mean)), float(np.exp(strength))


def _distinct(*columns):
    """Distinct rows of columns of numbers, as columns, and how often each occurs."""
    rows, size = np.unique(np.column_stack(columns), axis=0, return_counts=True)
    return rows.T, size


def _class_accuracy(right, seen, center, center_strength, offset):
    """Accuracy (n, n_classes) per class of people with so many right answers among so many."""
    own = (right + center_strength * center) / (seen + center_strength)
    return np.clip(expit(logit(own)[:, None] + offset), _FLOOR, 1 - _FLOOR)


def dirichlet_strength(prior, count, total):
    """Log marginal likelihood of counts in rows, and the strength of their Dirichlet prior that maximises it.

    The logarithm of the strength has a normal prior around 10 answers with deviation 3: it matters where rows hold
    single answers, which any strength explains alike.

    Parameters
    ----------
    prior, count : ndarrays of shape (n_cells,)
        Mean of the prior and count, of the cells with a positive count.
    total : ndarray
        Counts of the rows.
    """
    total = total[total > 0]

    def loss(log_strength):
        strength = np.exp(log_strength)
        rows = gammaln(strength + total).sum() - gammaln(strength) * len(total)
        unlikely = 0.5 * ((log_strength - np.log(10)) / 3) ** 2
        return unlikely + rows - (gammaln(strength * prior + count) - gammaln(strength * prior)).sum()

    best = minimize_scalar(loss, bounds=np.log(_STRENGTHS), method="bounded", options={"xatol": 1e-3})
    return -best.fun, float(np.exp(best.x))


def _evenly(n_classes):
    """Even distribution (n_classes, n_classes) of the wrong answers per true class."""
    return (1 - np.eye(n_classes)) / max(n_classes - 1, 1)


def _shrunken_errors(errors, strength):
    return (errors + strength * _evenly(len(errors))) / (errors.sum(1, keepdims=True) + strength)


def with_share(model, expert, label, shape, truth):
    """The model with a share of shaped errors, by the likelihood of answers of the fit that are left out.

    Parameters
    ----------
    model : AnswerModel
        As returned by `fit_answer_model`.
    expert, label, shape
        Answers of the fit, all or some, as in `answer_log_likelihood`.
    truth : ndarray of shape (n_answers, n_classes)
        Distributions of the truth with which the fit has seen them.

    Returns
    -------
    model : AnswerModel
        Two classes have one wrong answer and no share.
    """
    if len(model.offset) == 2:
        return model
    plain, shaped = (
        np.exp(answer_log_likelihood(model._replace(share=share), expert, label, shape, truth))[truth > 0]
        for share in (0.0, 1.0)
    )
    weight = truth[truth > 0]

    def loss(share):
        return -(weight @ np.log((1 - share) * plain + share * shaped))

    share = minimize_scalar(loss, bounds=(0, _LARGEST_SHARE), method="bounded", options={"xatol": 1e-4}).x
    return model._replace(share=float(share))


def _prior_of_own(own, accuracy, wrong):
    """Probabilities that the prior rows give to the answers seen, in the order of ``own.data``."""
    n_classes = len(wrong)
    expert, answer = np.divmod(rows_of(own), n_classes)
    right = accuracy[expert, own.indices]
    return np.where(answer == own.indices, right, (1 - right) * wrong[own.indices, answer])


def _divergence(model):
    """Kullback-Leibler divergence of the rows of all experts from their prior rows, summed over experts and classes."""
    prior = _prior_of_own(model.own, model.accuracy, model.wrong)
    rows = np.log1p(model.seen / model.strength).sum()
    return rows - prior @ np.log1p(model.own.data / (model.strength * prior))
