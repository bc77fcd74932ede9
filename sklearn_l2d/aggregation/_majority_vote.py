"""Majority vote: the rule that every other method must beat."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse

from .._encoding import check_counts, counts_table, is_frame
from .._numerics._crowd_em import answer_matrix, count_answers_of, safe_log, vote_shares
from .._numerics._keyed import row_keys
from .._sklearn import StrOptions
from ._base import BaseAggregator, allowed_classes, item_weights, learnt


@dataclass(frozen=True)
class _Counts:
    """Answers without names: what `BaseAggregator` reads of `Votes`, for as many people as it likes.

    Attributes
    ----------
    counts : ndarray of shape (n, C)
        Answers for every class.
    classes : ndarray of shape (C,)
        Sorted classes.
    tasks : ndarray of shape (n,), dtype=object, or None
        Names of the items.
    """

    counts: np.ndarray
    classes: np.ndarray
    tasks: np.ndarray | None
    annotators = np.empty(0, dtype=object)

    def __len__(self):
        return len(self.counts)

    @property
    def starts(self):
        return np.append(0, np.cumsum(self.counts.sum(1)))

    def to_counts(self):
        return self.counts


def shares(counts):
    """Counts as distributions over the last axis."""
    return counts / counts.sum(-1, keepdims=True)


def learnt_from_labels(votes, truth, history, converged):
    """What an aggregator has learnt that describes annotators beside its own labels, with one pseudo-count each.

    Parameters
    ----------
    votes : Votes
        Answers to n items, with C classes.
    truth : ndarray of shape (n, C)
        Distribution of the labels, by weight.
    history, converged
        As in `learnt`.
    """
    n_classes = len(votes.classes)
    confusion = shares(count_answers_of(answer_matrix(votes), truth, len(votes.annotators)) + 1)
    return learnt(
        confusion, np.full((n_classes, n_classes), 1 / n_classes), shares(truth.sum(0) + 1), history, converged
    )


class MajorityVote(BaseAggregator):
    """The most frequent answer (crowd tutorial, part I: "averaging").

    It trusts everybody alike. What it learns, from its own labels, serves `score` and `annotator_accuracy_` only.

    Parameters
    ----------
    input : {"annotations", "counts"}, default="annotations"
        What `X` is: who answered what; or, where nobody knows who answered, how many answers every class got, of shape
        (n_items, n_classes), as :func:`sklearn_l2d.annotations.encode_counts` reads them. The columns of a DataFrame
        are then the classes. Without names there are no annotators, and `prior_confusion_` describes all.

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
    n_features_in_ : int
        Number of columns of `X`: annotators, or classes of counts.

    See Also
    --------
    DawidSkene : Learns whom to trust in which class.
    WeightedMajorityVote : Counts some annotators more than others.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import MajorityVote
    >>> votes = [["cat", "cat", "dog"], ["dog", None, "dog"]]
    >>> MajorityVote().fit_predict(votes).tolist()
    ['cat', 'dog']

    From counts:

    >>> MajorityVote("counts").fit_predict([[3, 1, 0], [0, 0, 2]]).tolist()
    [0, 2]
    """

    _parameter_constraints: ClassVar = {
        **BaseAggregator._parameter_constraints,
        "input": [StrOptions({"annotations", "counts"})],
    }

    def __init__(
        self, input="annotations", *, ties="lowest", missing_label=None, unlabeled_label=None, random_state=None
    ):
        self.input = input
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        truth = vote_shares(votes, allowed) * weight[:, None]
        if self.input == "counts":
            n_classes = len(votes.classes)
            everybody = shares(truth.T @ votes.counts + 1)
            nobody = np.empty((0, n_classes, n_classes))
            return learnt(nobody, everybody, shares(truth.sum(0) + 1), [], True) | {"n_features_in_": n_classes}
        return learnt_from_labels(votes, truth, [], True)

    def _log_joint(self, votes):
        if self.input == "annotations":
            return super()._log_joint(votes)
        return votes.counts @ safe_log(self.prior_confusion_).T + safe_log(self.class_prior_)

    def _proba(self, votes):
        everything = np.ones((len(votes), len(self.classes_)), dtype=bool)
        return vote_shares(votes, everything, self.class_prior_)

    def _read(self, X, y, sample_weight):
        if self.input == "annotations":
            return super()._read(X, y, sample_weight)
        votes = self._counts(X)
        labels, known = self._truth(votes, y)
        return votes, allowed_classes(labels, known, votes.classes), item_weights(votes, sample_weight)

    def _votes(self, X):
        return super()._votes(X) if self.input == "annotations" else self._counts(X, self.classes_)

    def _item_keys(self, votes):
        return super()._item_keys(votes) if self.input == "annotations" else row_keys(votes.counts, 0)

    def _counts(self, X, classes=None):
        """`_Counts` of a table, of which a fit wants some answers; the classes are those given, if any."""
        may_be_empty, tasks = classes is not None, None
        if is_frame(X):
            tasks = X.index.to_numpy(dtype=object)
        X, classes = counts_table(X, classes, "X")
        if issparse(X) or np.ndim(X) != 2:
            raise ValueError("X must be a dense table of counts, (n_items, n_classes); see encode_counts.")
        return _Counts(*check_counts(np.asarray(X), classes, "X", may_be_empty), tasks)
