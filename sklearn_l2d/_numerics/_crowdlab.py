"""CROWDLAB: the label as a weighted average of a classifier and people (Goh, Tkachenko and Mueller, 2022).

The paper knows no truth. It takes a majority for the consensus, judges the classifier by it, and every person by the
others on the same items. Here the truth of the items of a fit is known, and stands in place of both.
"""

from typing import NamedTuple

import numpy as np

_LEAST = 1e-6  # weight of whoever is no better than the most frequent class


class Crowdlab(NamedTuple):
    """What the weights of people and the classifier follow from.

    Attributes
    ----------
    right : float
        Probability P that an answer is right, whoever gives it.
    base_error : float
        Share of the items that are not of the most frequent class, with which all errors are compared.
    classifier : float
        Weight of the classifier beside one answer.
    """

    right: float
    base_error: float
    classifier: float


def fit_crowdlab(item, label, proba, truth, expected_right, sample_weight=None):
    """Learn the weights from answers to items of known truth.

    Parameters
    ----------
    item, label : ndarrays of int of shape (n_answers,)
        Item and class of every answer.
    proba : ndarray of shape (n_items, n_classes)
        Probabilities of the classifier on items that it was not fitted on.
    truth : ndarray of int of shape (n_items,)
        True classes.
    expected_right : float
        Probability that an answer is right, for want of any answer.
    sample_weight : ndarray of shape (n_items,), default=None
        Weights of the items; equal by default.

    Returns
    -------
    crowdlab : Crowdlab
    """
    weight = np.ones(len(truth)) if sample_weight is None else sample_weight
    size = np.bincount(item, minlength=len(truth))
    answered = size > 0
    share = np.bincount(item, label == truth[item], minlength=len(truth))[answered] / size[answered]
    base_error = max(1 - np.bincount(truth, weight).max() / weight.sum(), _LEAST)
    error = np.average(proba.argmax(1) != truth, weights=weight)
    right = np.average(share, weights=weight[answered]) if share.size else expected_right
    return Crowdlab(float(right), float(base_error), float(_weight(error, base_error)))


def crowdlab_proba(crowdlab, right, seen, item, expert, label, proba):
    """Average of the classifier's probabilities and one distribution for each answer: P at the answer, the rest evenly.

    A person weighs ``1 - error / base_error``, and so does the classifier, times the square root of the number of
    answers to the item. The paper takes the mean of these numbers over all items; where they differ, the label of an
    item would then depend on the others.

    Parameters
    ----------
    crowdlab : Crowdlab
    right, seen : ndarrays of shape (n_experts,)
        Right answers and answers of each person to items of known truth; who has none is taken to err as all do.
    item, expert, label : ndarrays of int of shape (n_answers,)
        Item, person and class of every answer.
    proba : ndarray of shape (n_items, n_classes)
        Probabilities of the classifier.

    Returns
    -------
    proba : ndarray of shape (n_items, n_classes)
        Those of the classifier where nobody answered.
    """
    n_items, n_classes = proba.shape
    rate = np.divide(right, seen, out=np.full(len(seen), crowdlab.right), where=seen > 0)
    weight = _weight(1 - rate, crowdlab.base_error)[expert]
    cell = item.astype(np.int64) * n_classes + label
    ballots = np.bincount(cell, weight, minlength=n_items * n_classes).reshape(n_items, n_classes)
    people = ballots.sum(1, keepdims=True)
    elsewhere = (1 - crowdlab.right) / max(n_classes - 1, 1)
    own = crowdlab.classifier * np.sqrt(np.bincount(item, minlength=n_items))[:, None]
    own[own == 0] = 1.0
    return (own * proba + crowdlab.right * ballots + elsewhere * (people - ballots)) / (own + people)


def _weight(error, base_error):
    return np.maximum(1 - error / base_error, _LEAST)
