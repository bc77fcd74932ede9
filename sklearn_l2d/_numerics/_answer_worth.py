"""How much the next answer to an item is worth before it is given."""

import numpy as np

from ._answer_model import answer_log_likelihood
from ._matrices import row_chunks

_INFORMATION = 0.1  # worth of a nat, in errors, where other answers may follow


def answer_worth(proba, n_answers, model, exponents, cost=None, told=None, information=_INFORMATION):
    """Worth of the answer of every expert about every item.

    The expected gain in accuracy of the decision, or the fall of its expected cost, and a tenth of the mutual
    information of answer and truth, in nats: one answer rarely overturns a decision on its own, but prepares the next.
    The answer counts by Bayes' rule with the power ``b / (1 + r n_answers)`` of its likelihood: the more people have
    answered, the less is another worth, since people err alike. `fuse` also weakens what was known before; then an
    answer could seem worth less than nothing, and the current probabilities would not be the mean of the later ones.

    Parameters
    ----------
    proba : ndarray of shape (n, n_classes)
        Current probabilities of the truth.
    n_answers : ndarray of int of shape (n,)
        Number of answers that they contain.
    model : AnswerModel
    exponents : Exponents
    cost : ndarray of shape (n_classes, n_classes), default=None
        Cost of deciding for the class of the column where that of the row is true; None if every error costs 1.
    told : ndarray of shape (n_classes, n_experts, n_classes), default=None
        `all_answers` of the model, if they are known.
    information : float, default=0.1
        Worth of a nat, in errors.

    Returns
    -------
    worth : ndarray of shape (n, n_experts)
        In errors, at least 0.
    """
    n_experts, n_classes = model.seen.shape
    worth = np.empty((len(proba), n_experts))
    for experts in row_chunks(n_experts, n_classes**2):
        log_likelihood = _of_answers(model, np.arange(n_experts)[experts]) if told is None else told[:, experts]
        for size in np.unique(n_answers):
            likelihood = _tempered(log_likelihood, exponents, size)
            flat = likelihood.reshape(n_classes, 1, -1)
            noise = _entropy(likelihood, 2)
            rows = np.flatnonzero(n_answers == size)
            for part in row_chunks(len(rows), flat.size):
                some = proba[rows[part]]
                joint = some.T[:, :, None] * flat
                shape = len(some), -1, n_classes
                answer = (some @ flat[:, 0]).reshape(shape)
                gain = _told(joint.reshape(n_classes, *shape), answer, some @ noise, some, cost, information)
                worth[rows[part], experts] = gain
    return worth


def worth_of_some(proba, n_answers, experts, model, exponents, cost=None, information=_INFORMATION):
    """As `answer_worth`, of the answers of a few experts about every item: `experts` is (n, k), -1 for nobody."""
    n_classes = proba.shape[1]
    worth = np.empty(experts.shape)
    for part in row_chunks(len(proba), experts.shape[1] * n_classes**2):
        some, who = proba[part], experts[part]
        log_likelihood = _of_answers(model, np.maximum(who, 0).ravel())
        size = np.repeat(n_answers[part], who.shape[1])[:, None]
        likelihood = _tempered(log_likelihood, exponents, size).reshape(n_classes, *who.shape, n_classes)
        joint = some.T[:, :, None, None] * likelihood
        noise = (some.T[:, :, None] * _entropy(likelihood, 3)).sum(0)
        worth[part] = _told(joint, joint.sum(0), noise, some, cost, information)
    return worth


def accuracy_with_answer(proba, likelihood):
    """Expected accuracy (n, K) of the most probable class given one more answer.

    Parameters
    ----------
    proba : ndarray of shape (n, n_classes)
        Probabilities of the truth.
    likelihood : ndarray of shape (n_classes, K, n_classes)
        Probabilities of the answers (last) of K people or groups, given the truth (first).
    """
    n_classes, n_groups = likelihood.shape[:2]
    flat, accuracy = likelihood.reshape(n_classes, 1, -1), np.empty((len(proba), n_groups))
    for rows in row_chunks(len(proba), flat.size):
        best = (proba[rows].T[:, :, None] * flat).max(0)
        accuracy[rows] = best.reshape(len(best), n_groups, n_classes).sum(2)
    return accuracy


def all_answers(model):
    """Log-likelihoods (n_classes, n_experts, n_classes) by truth, expert and answer."""
    return _of_answers(model, np.arange(len(model.seen)))


def tempered_likelihood(model, exponents, n_answers):
    """Likelihood (n_classes, M, n_classes), by truth, person and answer, as it counts after so many answers."""
    return _tempered(all_answers(model), exponents, n_answers)


def accuracy_with_each(proba, model):
    """As `accuracy_with_answer`, (n, n_experts) for each expert of an `AnswerModel`."""
    n_experts, n_classes = model.seen.shape
    accuracy = np.empty((len(proba), n_experts))
    for experts in row_chunks(n_experts, n_classes**2):
        accuracy[:, experts] = accuracy_with_answer(proba, answering_likelihood(model, experts))
    return accuracy


def answering_likelihood(model, experts=slice(None)):
    """Probabilities (n_classes, n, n_classes) of the answers (last) of all or some experts, given the truth (first)."""
    return np.exp(_of_answers(model, np.arange(len(model.seen))[experts]))


def mean_likelihood(model, selection):
    """Probabilities (n_classes, K, n_classes) of the answers of members of K groups, drawn by weights (K, M)."""
    n_experts, n_classes = model.seen.shape
    mean = np.zeros((n_classes, len(selection), n_classes))
    for experts in row_chunks(n_experts, n_classes**2):
        mean += selection[:, experts] @ answering_likelihood(model, experts)
    return mean


def _told(joint, answer, noise, proba, cost, worth_of_nat):
    """Worth (n, k) by the joint probabilities (n_classes, n, k, n_classes) of truth and answer.

    `answer` (n, k, n_classes) are the probabilities of the answer, `noise` (n, k) is its entropy given the truth.
    """
    information = worth_of_nat * np.maximum(_entropy(answer, 2) - noise, 0.0)
    if cost is None:
        return joint.max(0).sum(2) - proba.max(1, keepdims=True) + information
    least = np.tensordot(cost.T, joint, 1).min(0).sum(2)
    n_classes = len(cost)
    error = (cost.sum() - cost.trace()) / (n_classes * (n_classes - 1))
    return (proba @ cost).min(1)[:, None] - least + error * information


def _of_answers(model, experts):
    """Log-likelihoods (n_classes, n, n_classes) by truth, expert and answer, without what is known of an item."""
    n_classes = len(model.offset)
    who, label = np.repeat(experts, n_classes), np.tile(np.arange(n_classes), len(experts))
    return answer_log_likelihood(model, who, label).T.reshape(n_classes, len(experts), n_classes)


def _tempered(log_likelihood, exponents, n_answers):
    """Likelihood of answers, of which each row is a distribution, to the power that they will have."""
    power = exponents.answers / (1 + exponents.correlation * n_answers)
    likelihood = np.exp(power * log_likelihood)
    return likelihood / likelihood.sum(-1, keepdims=True)


def _entropy(proba, axis):
    return -(proba * np.log(np.maximum(proba, 1e-300))).sum(axis)
