"""Majority vote in which some annotators count more than others: given weights, agreement, and skill."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from .._by_name import by_name
from .._encoding import some
from .._numerics._crowd_em import tied_classes
from .._sklearn import StrOptions
from ._base import BaseAggregator
from ._majority_vote import learnt_from_labels, shares

_ROUNDS = 100  # of repeated agreement
_HALVED_EVERY = 20  # rounds after which steps towards the agreement are half as large
_STILL = 1e-9  # difference of agreement and weight below which weights stand still


def weighted_totals(votes, weights):
    """Weight of the answers for every class, in which a negative one counts for all other classes.

    Parameters
    ----------
    votes : Votes
        Answers to n items by M annotators, with C classes.
    weights : ndarray of shape (M,)
        Of the annotators.

    Returns
    -------
    totals : ndarray of shape (n, C)
        None is negative.
    """
    n_classes = len(votes.classes)
    weight = weights[votes.annotator]
    cells = votes.item * np.int64(n_classes) + votes.label
    totals = np.bincount(cells, weight, len(votes) * n_classes).reshape(len(votes), n_classes)
    against = np.bincount(votes.item, np.maximum(-weight, 0.0), len(votes))
    return np.maximum(totals + against[:, None], 0.0)


def winners(totals, allowed):
    """Distribution (n, C) of the label of the largest total among the classes that are allowed, tied ones sharing."""
    relative = totals / np.maximum(totals.max(1, keepdims=True), np.finfo(float).tiny)
    return shares(tied_classes(np.where(allowed, relative, -1.0)))


def agreement(votes, truth, item_weight):
    """Share (M,) of the answers of every annotator that are the label of the item, and the share of all answers.

    Parameters
    ----------
    votes : Votes
        Answers to n items by M annotators, with C classes.
    truth : ndarray of shape (n, C)
        Distribution of the labels.
    item_weight : ndarray of shape (n,)
        Weights of the items.
    """
    n_annotators = len(votes.annotators)
    weight = item_weight[votes.item]
    agreed = np.bincount(votes.annotator, weight * truth[votes.item, votes.label], n_annotators)
    given = np.bincount(votes.annotator, weight, n_annotators)
    everybody = agreed.sum() / given.sum()
    return np.divide(agreed, given, out=np.full(n_annotators, everybody), where=given > 0), everybody


def agreement_weights(votes, allowed, item_weight, n_rounds):
    """Weights (M,) by agreement with the weighted vote before, which is at first the majority's.

    Parameters
    ----------
    votes : Votes
        Answers to n items by M annotators, with C classes.
    allowed : ndarray of bool of shape (n, C)
        Classes that an item may have: one where its truth is known.
    item_weight : ndarray of shape (n,)
        Weights of the items.
    n_rounds : int
        Largest number of rounds.

    Returns
    -------
    weights : ndarray of shape (M,)
    everybody : float
        Agreement of all annotators together.
    history : list of float
        The same in every round.
    converged : bool
        Whether one round was asked for, or the weights stand still.
    """
    weights, history, moved = np.ones(len(votes.annotators)), [], 0.0
    for k in range(n_rounds):
        found, everybody = agreement(votes, winners(weighted_totals(votes, weights), allowed), item_weight)
        history.append(float(everybody))
        step = 0.5 ** (k // _HALVED_EVERY)
        moved = np.abs(found - weights).max()
        weights = weights + step * (found - weights)
        if moved <= _STILL:
            break
    return weights, float(everybody), history, n_rounds == 1 or bool(moved <= _STILL)


def given_weights(weights, annotators):
    """Weights (M,) that are given in the order of the annotators, or by their names."""
    names, weights = annotators.tolist(), by_name(weights, annotators, "weights")
    if hasattr(weights, "items"):
        lacking = [name for name in names if name not in weights]
        unknown = [name for name in weights if name not in set(names)]
        if lacking or unknown:
            raise ValueError(
                f"weights must name all annotators and nobody else: lacking are {some(lacking)}, unknown are "
                f"{some(unknown)}; correct the names."
            )
        weights = [weights[name] for name in names]
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (len(names),) or not np.isfinite(weights).all() or not weights.any():
        raise ValueError(
            f"weights must hold {len(names)} finite numbers, one per annotator and not all zero, but has shape "
            f"{weights.shape}; correct it, or name the annotators in a mapping."
        )
    return weights


class WeightedMajorityVote(BaseAggregator):
    """The answer with the largest sum of weights of those who gave it (crowd tutorial, part I).

    The logarithm of ``(n_classes - 1) p / (1 - p)`` as weight of an annotator who is right with probability p makes it
    the most probable label if all classes are equally frequent and errors evenly spread. Agreement with others
    takes the place of such knowledge: it is simple, and safer than a model where annotators err alike.

    Parameters
    ----------
    weights : {"agreement", "zero_based_skill"}, array-like of shape (n_annotators,) or mapping, default="agreement"
        "agreement" is the share of an annotator's answers that are the majority's (known as Wawa, worker agreement with
        aggregate). "zero_based_skill" repeats it with the label of the weighted vote until weights stand still, in
        steps that become smaller. Else weights in the order of the columns of `X`, or by name. A negative weight speaks
        for all other classes.

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
    weights_ : ndarray of shape (n_annotators,)
        Weights of the annotators.
    prior_weight_ : float
        Weight of an annotator without votes: of agreement, that of everybody together; else the mean of the weights.
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
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    MajorityVote : Trusts everybody alike.
    DawidSkene : Learns whom to trust in which class.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import WeightedMajorityVote
    >>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]]
    >>> consensus = WeightedMajorityVote().fit(votes)
    >>> consensus.weights_
    array([1. , 1. , 0.5])
    >>> consensus.predict_proba([[0, None, 1]]).round(2)
    array([[0.67, 0.33]])
    """

    _parameter_constraints: ClassVar = {
        **BaseAggregator._parameter_constraints,
        "weights": [StrOptions({"agreement", "zero_based_skill"}), "array-like", Mapping],
    }

    def __init__(
        self, weights="agreement", *, ties="lowest", missing_label=None, unlabeled_label=None, random_state=None
    ):
        self.weights = weights
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        history, converged = [], True
        if isinstance(self.weights, str):
            n_rounds = 1 if self.weights == "agreement" else _ROUNDS
            weights, prior_weight, history, converged = agreement_weights(votes, allowed, weight, n_rounds)
        else:
            weights = given_weights(self.weights, votes.annotators)
            prior_weight = float(weights.mean())
        totals = np.where(allowed, weighted_totals(votes, weights), 0.0)
        truth = shares(np.where(totals.sum(1, keepdims=True) > 0, totals, allowed)) * weight[:, None]
        return learnt_from_labels(votes, truth, history, converged) | {
            "weights_": weights,
            "prior_weight_": prior_weight,
        }

    def _proba(self, votes):
        n_new = len(votes.annotators) - len(self.annotators_)
        weights = np.append(self.weights_, np.full(n_new, self.prior_weight_))
        totals = weighted_totals(votes, weights)
        return shares(np.where(totals.sum(1, keepdims=True) > 0, totals, self.class_prior_))
