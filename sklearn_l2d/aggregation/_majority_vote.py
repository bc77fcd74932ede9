"""Majority vote: the rule that every other method must beat."""

from typing import ClassVar

import numpy as np

from .._numerics._crowd_em import answer_matrix, count_answers_of, vote_shares
from ._base import BaseAggregator, learnt


class MajorityVote(BaseAggregator):
    """The most frequent answer (crowd tutorial, part I: "averaging").

    It trusts everybody alike. What it learns, from its own labels, serves `score` and `annotator_accuracy_` only.

    Parameters
    ----------
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
    history_ : list of float
        Objective of every iteration.
    converged_ : bool
        Whether the iterations ended before their limit.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    DawidSkene : Learns whom to trust in which class.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import MajorityVote
    >>> votes = [["cat", "cat", "dog"], ["dog", None, "dog"]]
    >>> MajorityVote().fit_predict(votes).tolist()
    ['cat', 'dog']
    """

    _parameter_constraints: ClassVar = BaseAggregator._parameter_constraints

    def __init__(self, *, ties="lowest", missing_label=None, unlabeled_label=None, random_state=None):
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        truth = vote_shares(votes, allowed) * weight[:, None]
        n_classes = len(votes.classes)
        class_prior = (truth.sum(0) + 1) / (weight.sum() + n_classes)
        counts = count_answers_of(answer_matrix(votes), truth, len(votes.annotators)) + 1
        confusion = counts / counts.sum(2, keepdims=True)
        return learnt(confusion, np.full((n_classes, n_classes), 1 / n_classes), class_prior, [], True)

    def _proba(self, votes):
        everything = np.ones((len(votes), len(self.classes_)), dtype=bool)
        return vote_shares(votes, everything, self.class_prior_)
