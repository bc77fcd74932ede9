"""CROWDLAB: the label as a weighted average of a classifier and people (Goh, Tkachenko and Mueller, 2022).

The paper knows no truth. It takes a majority for the consensus, judges the classifier by it, and every person by the
others on the same items: `crowdlab_consensus`. Where the truth of the items of a fit is known, it stands in place of
both.
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


def fit_crowdlab(item, label, proba, truth, expected_right):
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

    Returns
    -------
    crowdlab : Crowdlab
    """
    size = np.bincount(item)
    share = np.bincount(item, label == truth[item])[size > 0] / size[size > 0]
    base_error = max(1 - np.bincount(truth).max() / len(truth), _LEAST)
    error = np.mean(proba.argmax(1) != truth)
    right = share.mean() if share.size else expected_right
    return Crowdlab(float(right), float(base_error), float(_weight(error, base_error)))


def crowdlab_consensus(votes, proba, truth):
    """Learn the weights, and label the items, where the truth is unknown or known in part.

    The consensus is first the majority, the classifier breaking ties, then what the weights make of it.

    Parameters
    ----------
    votes : Votes
        Answers of M people to n items, with C classes.
    proba : ndarray of shape (n, C)
        Probabilities of the classifier on items that it was not fitted on.
    truth : ndarray of int of shape (n,)
        True classes, -1 where they are unknown.

    Returns
    -------
    crowdlab : Crowdlab
    right, seen : ndarrays of shape (M,)
        How often a person agrees with each of the others on the same item, or with its truth, and how often they meet.
    consensus : ndarray of shape (n, C)
        Probabilities of the labels.

    Raises
    ------
    ValueError
        If no item has two answers or a known truth.
    """
    item, annotator, label = votes.item.astype(np.int64), votes.annotator, votes.label
    counts = votes.to_counts()
    size, known = counts.sum(1), truth >= 0
    judged = known | (size > 1)
    if not judged.any():
        raise ValueError("no item has two answers or a known truth, so that nobody can be judged; pass some.")
    meets = np.where(known, np.maximum(size - 1, 1), size - 1)[item]
    agrees = np.where(known[item], meets * (label == truth[item]), counts[item, label] - 1)
    n_people = len(votes.annotators)
    right, seen = np.bincount(annotator, agrees, n_people), np.bincount(annotator, meets, n_people)
    place, told = np.cumsum(judged) - 1, judged[item]
    best = np.where(known, truth, (counts + proba / 2).argmax(1))
    for _ in range(2):
        crowdlab = fit_crowdlab(place[item[told]], label[told], proba[judged], best[judged], 1 / proba.shape[1])
        consensus = crowdlab_proba(crowdlab, right, seen, item, annotator, label, proba)
        best = np.where(known, truth, consensus.argmax(1))
    consensus[known] = np.eye(proba.shape[1])[truth[known]]
    return crowdlab, right, seen, consensus


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
