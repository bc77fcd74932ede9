"""How people answer given the truth: the probabilities of their answers, learnt from answers to items of known truth.

The model is that of Dawid & Skene (1979): given the true class of an item, the answer of an expert follows the expert's
own row of probabilities for that class. The right answer of a row has a Beta prior around the accuracy of the expert,
and its wrong answers a Dirichlet prior around those of the whole roster; how far people differ in each is learnt apart.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.sparse import csr_array
from scipy.special import betaln, digamma, expit, gammaln, logit, logsumexp, softmax, xlogy

from ._difficulty import Told
from ._matrices import log_sum_exp, rows_of

_FLOOR = 1e-3  # least probability of a right and of a wrong answer in a prior row
_STRENGTHS = (0.5, 2000.0)  # of the prior rows, in answers
BLOCK = 1 << 21  # log-likelihoods, of an answer and a class, that are computed at once
_LEAST = 1e-4  # probability of a truth below which it is ruled out
_STILL = 1e-3  # change of the distribution of the truth of an item, on average, below which it stands still
_ENOUGH_EXPERTS = 4  # to be of two kinds
_LARGEST_SHARE = 0.3  # of the shaped errors: the archive often holds the votes on the labelled items, which flatters it


class People(NamedTuple):
    """Prior of the accuracy of an expert: one Beta distribution, or two where experts are of two kinds.

    Attributes
    ----------
    share : tuple of float
        Share of the experts of each kind.
    accuracy : tuple of float
        Mean accuracy of each kind.
    strength : tuple of float
        Number of answers that each mean counts as.
    """

    share: tuple
    accuracy: tuple
    strength: tuple

    @property
    def center(self):
        """Mean accuracy of all experts."""
        return float(np.dot(self.share, self.accuracy))

    @property
    def overall_strength(self):
        """Strength of the single Beta distribution of the same mean and variance."""
        share, accuracy, strength = map(np.asarray, self)
        square = share @ (accuracy * (accuracy * strength + 1) / (strength + 1))
        return float((self.center - square) / (square - self.center**2))

    def expected(self, right, seen):
        """Expected accuracy (n,) of people with so many right answers among so many."""
        share, accuracy, strength = map(np.asarray, self)
        right, seen = right[:, None], seen[:, None]
        of_kind = (right + strength * accuracy) / (seen + strength)
        if len(share) == 1:
            return of_kind[:, 0]
        return (softmax(np.log(share) + _beta_gain(right, seen, accuracy, strength), axis=1) * of_kind).sum(1)


class AnswerModel(NamedTuple):
    """Probabilities of the answers of M experts, given each of C classes.

    The row of an expert for a true class holds ``(right + strength * accuracy) / (seen + strength)`` at this class. It
    divides the rest among the others as ``own + wrong_strength * wrong``, where `wrong` are the wrong answers of the
    roster. Rows are never built: the memory is that of three arrays (M, C), one (C, C), and one number for each triple
    of expert, answer and true class that was seen.

    Attributes
    ----------
    own : csr_array of shape (n_experts * n_classes, n_classes)
        Answers seen: row ``expert * n_classes + answer``, column the true class.
    right, seen : ndarrays of shape (n_experts, n_classes)
        Right answers and answers per true class.
    accuracy : ndarray of shape (n_experts, n_classes)
        Probability of the right answer before any to a true class.
    errors : ndarray of shape (n_classes, n_classes)
        Wrong answers of the roster per true class (row), 0 on the diagonal.
    error_strength : float
        Number of answers, spread evenly over the wrong ones, that join `errors`.
    strength : float
        Number of answers that `accuracy` counts as.
    wrong_strength : float
        Number of wrong answers of an expert to a class that those of the roster count as.
    people : People
        Prior of the accuracy of an expert over all classes.
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
    wrong_strength: float
    people: People
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
    Beta prior around that of the roster, and the accuracy in a class one around that of the expert; the wrong answers
    of the expert and of the roster have Dirichlet priors. Classes differ in difficulty, and experts are of two kinds,
    only if the marginal likelihood says so.

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
    n_wrong = seen - right
    wrong_answers = _wrong_answers(own, _shrunken_errors(errors, error_strength))
    wrong_strength = dirichlet_strength(*wrong_answers, n_wrong.ravel())[1]
    people = fit_people(right.sum(1), seen.sum(1))
    easy = (pooled.diagonal() + 10 * people.center) / (pooled.sum(1) + 10)
    fits, count = [], np.stack([right, n_wrong])
    for offset in (np.zeros(n_classes), logit(easy) - logit(people.center)):
        accuracy = _class_accuracy(right.sum(1), seen.sum(1), people, offset)
        prior = np.stack([accuracy, 1 - accuracy])
        fits.append((*dirichlet_strength(prior[count > 0], count[count > 0], seen), accuracy, offset))
    _, strength, accuracy, offset = max(fits, key=lambda fit: fit[0])
    rest = errors, error_strength, strength, wrong_strength, people, offset
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
    accuracy = _class_accuracy(right.sum(1), seen.sum(1), model.people, model.offset)
    if likely is not None and (told := np.isfinite(likely).all(1)).any():
        likely, right_of, met = likely[told], right[told].sum(1), seen[told] + 1e-9
        expected = (met * likely).sum(1) / met.sum(1)
        strength = model.people.overall_strength
        found = (right_of + strength * expected) / (seen[told].sum(1) + strength)
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
        the priors' strengths, means and offset as they are. None takes the answers as new.

    Returns
    -------
    log_likelihood : ndarray of shape (n_answers, n_classes)
        ``ln p(answer | truth, expert)`` in nats; the column is the truth.
    """
    return told(model, expert, label, shape, left_out).log_likelihood


def told(model, expert, label, shape=None, left_out=None):
    """`Told` by answers; parameters as in `answer_log_likelihood`."""
    n_classes = len(model.offset)
    is_right = label[:, None] == np.arange(n_classes)
    own, seen, right = model.own[_row(expert, label, n_classes)].toarray(), model.seen[expert], model.right[expert]
    accuracy, wrong = model.accuracy[expert], model.wrong.T[label]
    if left_out is not None:
        own, seen, right = own - left_out, seen - left_out, right - left_out * is_right
        accuracy = _class_accuracy(right.sum(1), seen.sum(1), model.people, model.offset)
        size = model.errors.sum(1) + model.error_strength
        errors = np.where(is_right, 0.0, left_out)
        wrong = (wrong * size - errors) / (size - errors)
    accuracy = (right + model.strength * accuracy) / (seen + model.strength)
    wrong = (own + model.wrong_strength * wrong) / (np.maximum(seen - right, 0.0) + model.wrong_strength)
    proba = np.where(is_right, accuracy, (1 - accuracy) * wrong)
    if shape is not None and model.share > 0:
        shape = shape.astype(float) + 1e-9
        shaped = (1 - accuracy) * (shape[is_right][:, None] / (shape.sum(1, keepdims=True) - shape))
        proba = np.where(is_right, proba, (1 - model.share) * proba + model.share * shaped)
    return Told(np.log(np.maximum(proba, 1e-300)), accuracy, label)


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
    less the divergences of every row from its priors, times their strengths; it never falls within a round. Truths that
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
            objective.append((weight * evidence).sum() - _divergence(model))
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
    """Sum of the entries of `values` (n_answers, ...) of every item: (n_items, ...)."""
    answers = csr_array((np.ones(len(item)), (item, np.arange(len(item)))), (n_items, len(item)))
    size = int(np.prod(values.shape[1:]))
    return (answers @ values.reshape(len(item), size)).reshape(n_items, *values.shape[1:])


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


def fit_people(right, seen):
    """Prior of the accuracy of experts by marginal likelihood, from their right answers and answers (n_experts,).

    Where some guess, or answer something else, and the others know, a single Beta distribution has to be so wide that
    it hardly shrinks the best of them, who are asked most. Two are taken if they are better by the Bayesian information
    criterion.

    Every mean has a prior that counts as one right and one wrong answer, and so has the share of a kind; the logarithm
    of every strength has a normal one around 10 answers with deviation 1.5: a few experts tell little about either.
    """
    (right, seen), size = _distinct(right[seen > 0], seen[seen > 0])
    one, gain = _fit_kinds(right, seen, size, [[(right @ size + 1) / (seen @ size + 2)]])
    n_experts = size.sum()
    if n_experts < _ENOUGH_EXPERTS:
        return one
    rate = (right + 1) / (seen + 2)
    lower, upper = np.quantile(rate, [0.1, 0.5, 0.25]), np.quantile(rate, [0.5, 0.9, 0.75])
    two, gain_of_two = _fit_kinds(right, seen, size, np.column_stack([lower, np.maximum(upper, (1 + lower) / 2)]))
    return two if gain_of_two - gain > 1.5 * np.log(n_experts) else one


def _fit_kinds(right, seen, size, starts):
    """`People` of as many kinds as each start has means, and their log marginal likelihood."""
    n_kinds = len(starts[0])
    right, seen = right[:, None], seen[:, None]

    def unpacked(point):
        strength = np.exp(point[n_kinds : 2 * n_kinds])
        return softmax(np.append(point[2 * n_kinds :], 0.0)), expit(point[:n_kinds]), strength

    def loss(point):
        share, accuracy, strength = unpacked(point)
        p, q = accuracy * strength, (1 - accuracy) * strength
        joint = np.log(share) + _beta_gain(right, seen, accuracy, strength)
        gain = log_sum_exp(joint, axis=1)
        kind = size[:, None] * np.exp(joint - gain[:, None])
        rise = digamma(strength) - digamma(strength + seen)
        slope_p = (kind * (digamma(p + right) - digamma(p) + rise)).sum(0) + 1 / p
        slope_q = (kind * (digamma(q + seen - right) - digamma(q) + rise)).sum(0) + 1 / q
        far = (np.log(strength) - np.log(10)) / 1.5
        prior = np.log(accuracy) + np.log1p(-accuracy) - far**2 / 2 + np.log(share)
        by_share = kind.sum(0) + 1 - share * (kind.sum() + n_kinds)
        slope = accuracy * q * (slope_p - slope_q), p * slope_p + q * slope_q - 2 - far / 1.5, by_share[:-1]
        return -(size @ gain + prior.sum()), -np.concatenate(slope)

    bounds = [(-7, 7)] * n_kinds + [(-3, 9)] * n_kinds + [(-5, 5)] * (n_kinds - 1)
    settings = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "options": {"ftol": 1e-13, "gtol": 1e-6}}
    points = ([*logit(start), *[np.log(10)] * n_kinds, *[0.0] * (n_kinds - 1)] for start in starts)
    best = min((minimize(loss, point, **settings) for point in points), key=lambda found: found.fun)
    share, accuracy, strength = unpacked(best.x)
    gain = size @ log_sum_exp(np.log(share) + _beta_gain(right, seen, accuracy, strength), axis=1)
    return People(tuple(share.tolist()), tuple(accuracy.tolist()), tuple(strength.tolist())), float(gain)


def _beta_gain(right, seen, accuracy, strength):
    """Log marginal likelihood of right answers among those seen, if the accuracy has this Beta distribution."""
    p, q = accuracy * strength, (1 - accuracy) * strength
    return betaln(p + right, q + np.maximum(seen - right, 0.0)) - betaln(p, q)


def _distinct(*columns):
    """Distinct rows of columns of numbers, as columns, and how often each occurs."""
    rows, size = np.unique(np.column_stack(columns), axis=0, return_counts=True)
    return rows.T, size


def _class_accuracy(right, seen, people, offset):
    """Accuracy (n, n_classes) per class of people with so many right answers among so many."""
    return np.clip(expit(logit(people.expected(right, seen))[:, None] + offset), _FLOOR, 1 - _FLOOR)


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


def _wrong_answers(own, wrong):
    """Probabilities of the wrong answers seen among all wrong ones, as those of the roster are, and their counts."""
    answer = rows_of(own) % len(wrong)
    made = (answer != own.indices) & (own.data > 0)
    return wrong[own.indices[made], answer[made]], own.data[made]


def _divergence(model):
    """Kullback-Leibler divergences of the rows of all experts from their priors, times the strengths of these."""
    p, q, n_wrong = model.accuracy, model.correctness, np.maximum(model.seen - model.right, 0.0)
    of_right = xlogy(p, p / q) + xlogy(1 - p, (1 - p) / (1 - q))
    prior, count = _wrong_answers(model.own, model.wrong)
    of_wrong = np.log1p(n_wrong / model.wrong_strength).sum() - prior @ np.log1p(count / (model.wrong_strength * prior))
    return model.strength * of_right.sum() + model.wrong_strength * of_wrong
