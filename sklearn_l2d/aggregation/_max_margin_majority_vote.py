"""Weighted votes whose margins are large."""

import numbers
from typing import ClassVar

import numpy as np

from .._numerics._crowd_em import answer_matrix
from .._sklearn import Interval
from ._base import warn_unless
from ._weighted import WeightedAggregator

_N_STEPS = 500  # largest number of steps for the weights of given labels
_N_POWERS = 20  # steps of the power method
_GAP = 1e-2  # share of the objective within which these must be


def onto_simplices(rows, size):
    """Nearest rows (n, C) without negative entries whose sums are no larger than `size` (n,)."""
    clipped = np.maximum(rows, 0.0)
    excess = clipped.sum(1) > size
    if excess.any():
        ordered = -np.sort(-rows[excess], axis=1)
        level = (np.cumsum(ordered, axis=1) - size[excess, None]) / np.arange(1, rows.shape[1] + 1)
        last = (ordered > level).cumsum(1).argmax(1)
        clipped[excess] = np.maximum(rows[excess] - np.take_along_axis(level, last[:, None], axis=1), 0.0)
    return clipped


def max_margin_weights(votes, label, limit, dual=None):
    """Weights of annotators for given labels, by accelerated projected gradient ascent on the dual.

    They minimise ``|weights - 1|**2 / 2`` and, for each item, `limit` times the shortfall from 1 of the margin between
    the weighted votes for its label and those for its strongest rival.

    Parameters
    ----------
    votes : Votes
        Answers to n items by M annotators, with C classes.
    label : ndarray of int of shape (n,)
        Positions of the labels.
    limit : ndarray of shape (n,)
        Price of the shortfall of each item.
    dual : ndarray of shape (n, C), default=None
        Where to start: what was returned for similar labels.

    Returns
    -------
    weights : ndarray of shape (M,)
        Weights.
    objective : float
        What they minimise, at these weights.
    dual : ndarray of shape (n, C)
        Multipliers of the rivals of each label.
    """
    n_items, n_classes, n_annotators = len(votes), len(votes.classes), len(votes.annotators)
    answers, own = answer_matrix(votes), np.arange(n_classes) == label[:, None]

    def pulled(dual):
        pull = np.where(own, dual.sum(1, keepdims=True), -dual)
        return np.bincount(votes.annotator, pull[votes.item, votes.label], n_annotators)

    def lead(weights):
        score = answers @ np.kron(weights[:, None], np.eye(n_classes))
        return score[np.arange(n_items), label][:, None] - score

    def missing_of(weights):
        return np.where(own, -np.inf, 1 - lead(weights))

    direction = np.bincount(votes.annotator, minlength=n_annotators).astype(float)
    for _ in range(_N_POWERS):  # the largest curvature of the dual
        direction = pulled(lead(direction / np.linalg.norm(direction)))
    step = 1 / (1.1 * np.linalg.norm(direction)) if direction.any() else 1.0

    def value(weights, missing):
        return float(((weights - 1) ** 2).sum() / 2 + limit @ np.maximum(missing.max(1), 0))

    dual = np.zeros((n_items, n_classes)) if dual is None else onto_simplices(np.where(own, 0.0, dual), limit)
    ahead, momentum, best = dual, 1.0, (np.inf, np.ones(n_annotators))
    for turn in range(_N_STEPS):
        if turn % 10 == 0:
            weights = 1 + pulled(dual)
            missing = missing_of(weights)
            best = min(best, (value(weights, missing), weights), key=lambda pair: pair[0])
            bound = (dual * np.where(own, 0.0, missing)).sum() + ((weights - 1) ** 2).sum() / 2
            if best[0] - bound <= _GAP * best[0]:
                break
        uphill = np.where(own, 0.0, missing_of(1 + pulled(ahead)))
        moved = onto_simplices(ahead + step * uphill, limit)
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead, dual, momentum = moved + (momentum - 1) / faster * (moved - dual), moved, faster
    return best[1], best[0], dual


class MaxMarginMajorityVote(WeightedAggregator):
    """Votes weighted such that labels win by large margins (Tian & Zhu 2015, M3V).

    Every label is to have a lead of 1 over its strongest rival. Labels and weights are found in turns, from the
    majority vote and weights of 1: a support vector machine without truth. Corrected: weights are kept close to 1
    instead of 0, so that a small `C` is the majority vote, and one annotator's votes are not worth less than nothing
    for want of evidence.

    Parameters
    ----------
    C : float, default=0.05
        Price of each missing vote of a lead, beside the squared distance of the weights from 1. With a small one the
        weights stay equal.

    max_iter : int, default=200
        Largest number of iterations.

    ties : {"lowest", "random"}, default="lowest"
        What `predict` answers where several classes are equally probable: the first of them, or one that is drawn by
        `random_state` and the answers to the item. Where ties are many, either is partly luck: see
        :func:`sklearn_l2d.metrics.consensus_accuracy`.

    missing_label : object, default=None
        Marker of a missing annotation. None stands for NaN, None, pandas.NA, masked entries and -1.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None and pandas.NA.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws among tied classes; they are the same in every call, and all but an integer stand for 0.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    confusion_matrices_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability of an answer (last axis) given the true class, of every annotator.
    prior_confusion_ : ndarray of shape (n_classes, n_classes)
        The same for an annotator without votes.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities of the classes before any answer.
    items_without_votes_ : ndarray
        Items of the fit that nobody answered, by name where they have names.
    n_iter_ : int
        Number of iterations.
    history_ : ndarray of shape (`n_iter_`,)
        Objective of every iteration.
    converged_ : bool
        Whether the iterations ended before their limit.
    annotator_weights_ : ndarray of shape (n_annotators,)
        Weight of the votes of each annotator; that of a new one is 0.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    MajorityVote : Its limit where `C` is small.
    MinimaxEntropy : Explains errors by annotators and items.

    References
    ----------
    Tian and Zhu, Max-margin majority voting for learning from crowds, 2015.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import MaxMarginMajorityVote
    >>> votes = [[0, 0, 1], [1, 1, 0], [0, None, 1], [1, 1, 0], [None, 0, 1]]
    >>> consensus = MaxMarginMajorityVote(C=1.0).fit(votes)
    >>> consensus.predict([[0, None, 1]]).tolist()
    [0]
    >>> bool(consensus.annotator_weights_[2] < consensus.annotator_weights_[:2].min())
    True
    """

    _parameter_constraints: ClassVar = {
        **WeightedAggregator._parameter_constraints,
        "C": [Interval(numbers.Real, 0, None, closed="left")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        C=0.05,
        max_iter=200,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.C = C
        self.max_iter = max_iter
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        answers, identity = answer_matrix(votes), np.eye(len(votes.classes))
        dual = None
        weights, history, label, converged = np.ones(len(votes.annotators)), [], None, False
        for _ in range(self.max_iter):
            score = answers @ np.kron(weights[:, None], identity)
            last, label = label, np.where(allowed, score, -np.inf).argmax(1)
            if last is not None and np.array_equal(label, last):
                converged = True
                break
            if len(identity) == 1:
                continue
            found, objective, dual = max_margin_weights(votes, label, self.C * weight, dual)
            if history and -objective <= history[-1]:
                converged = True
                break
            weights = found
            history.append(-objective)
        warn_unless(converged, self.max_iter)
        return self._weighted(votes, allowed, weight, weights, history, converged)
