"""A consensus of ordered classes, from one model of two classes for each cut between them."""

import numbers
from typing import ClassVar

import numpy as np

from .._encoding import some
from .._numerics._crowd_em import answer_matrix, count_answers_of
from .._sklearn import Interval
from ._base import BaseAggregator, learnt
from ._dawid_skene import DawidSkene


def falling(values):
    """Closest rows (n, C) that never rise, in the sense of least squares: averages of what violates the order."""
    n_cuts = values.shape[1]
    sums = np.concatenate([np.zeros((len(values), 1)), values.cumsum(1)], axis=1)
    means = np.full((n_cuts, n_cuts, len(values)), -np.inf)
    for first in range(n_cuts):
        for last in range(first, n_cuts):
            means[first, last] = (sums[:, last + 1] - sums[:, first]) / (last + 1 - first)
    # min over starts of the max over ends: the formula of isotonic regression, for a falling order
    columns = [means[: j + 1, j:].max(1).min(0) for j in range(n_cuts)]
    return np.stack(columns, axis=1)


class OrdinalConsensus(BaseAggregator):
    """Dawid and Skene for ordered classes: K - 1 questions "is it more than this?" (crowd tutorial, part III).

    Each cut between two classes has a `DawidSkene` model of its own, with two classes; their probabilities are made
    to fall from cut to cut, and the differences are those of the classes. It needs fewer parameters than whole
    confusion matrices, and knows that neighbours are more easily confused. For two classes, it is `DawidSkene`. The
    confusion matrices serve `score` and `annotator_accuracy_` only.

    Parameters
    ----------
    order : array-like of shape (n_classes,), default=None
        Class labels from the lowest to the highest, at least those that occur. None sorts them, which is alphabetical
        for text.

    prior : float, default=1.0
        Pseudo-count of every answer in each distribution that is learnt.

    max_iter : int, default=200
        Largest number of iterations.

    tol : float, default=1e-6
        Gain of the objective, in nats per item, below which the iterations end.

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
    cuts_ : list of DawidSkene
        Models of whether the class is higher than the first, the second, ... of the order.
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
    DawidSkene : For classes without order.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import OrdinalConsensus
    >>> votes = [["low", "low", "mid"], ["mid", "high", "mid"], ["high", "high", None]]
    >>> model = OrdinalConsensus(order=["low", "mid", "high"], prior=0.1)
    >>> model.fit_predict(votes).tolist()
    ['low', 'mid', 'high']
    """

    _parameter_constraints: ClassVar = {
        **BaseAggregator._parameter_constraints,
        "order": ["array-like", None],
        "prior": [Interval(numbers.Real, 0, None, closed="left")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        order=None,
        *,
        prior=1.0,
        max_iter=200,
        tol=1e-6,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.order = order
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        n_classes = len(votes.classes)
        rank = self._ranks(votes.classes)
        cuts = []
        for cut in range(max(n_classes - 1, 1)):
            model = DawidSkene(prior=self.prior, max_iter=self.max_iter, tol=self.tol)
            binary = _above(votes, rank, cut)
            above = np.stack([allowed[:, rank <= cut].any(1), allowed[:, rank > cut].any(1)], axis=1)
            model._set(binary, model._learn(binary, above, weight))
            cuts.append(model)
        truth = _classes_of(cuts, votes, rank) * allowed
        truth *= (weight / np.maximum(truth.sum(1), np.finfo(float).tiny))[:, None]
        counts = count_answers_of(answer_matrix(votes), truth, len(votes.annotators)) + 1
        class_prior = (truth.sum(0) + 1) / (weight.sum() + n_classes)
        history = [value for model in cuts for value in model.history_]
        converged = all(model.converged_ for model in cuts)
        prior = np.full((n_classes, n_classes), 1 / n_classes)
        attributes = learnt(counts / counts.sum(2, keepdims=True), prior, class_prior, history, converged)
        return {**attributes, "cuts_": cuts, "_rank": rank}

    def _proba(self, votes):
        return _classes_of(self.cuts_, votes, self._rank)

    def _ranks(self, classes):
        """Position of every class in the order."""
        if self.order is None:
            return np.arange(len(classes))
        place = {label: position for position, label in enumerate(np.asarray(self.order).tolist())}
        lacking = [label for label in classes.tolist() if label not in place]
        if lacking or len(place) < len(self.order):
            raise ValueError(
                f"order={some(list(self.order))} must hold every class once, and lacks {some(lacking)}; the classes "
                f"are {some(classes.tolist())}."
            )
        return np.argsort(np.argsort([place[label] for label in classes.tolist()]))


def _above(votes, rank, cut):
    """Votes on whether the class is higher than a cut."""
    return votes.with_labels((rank > cut).astype(np.int64)[votes.label], np.arange(2))


def _classes_of(cuts, votes, rank):
    """Probabilities (n, C) of the classes, in the order of the votes' classes."""
    n_classes = len(votes.classes)
    if n_classes == 1:
        return np.ones((len(votes), 1))
    above = np.stack([model._proba(_above(votes, rank, cut))[:, 1] for cut, model in enumerate(cuts)], axis=1)
    edges = np.pad(falling(above), ((0, 0), (1, 1)), constant_values=(0, 0))
    edges[:, 0] = 1.0
    return (edges[:, :-1] - edges[:, 1:])[:, rank]
