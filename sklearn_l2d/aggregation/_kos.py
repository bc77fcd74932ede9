"""Message passing between items and annotators, for two classes."""

import numbers
from typing import ClassVar

import numpy as np

from .._sklearn import Interval
from ._base import warn_unless
from ._weighted import WeightedAggregator


def pass_messages(item, annotator, sign, shape, weight, told, max_iter, tol):
    """Iterate the messages of Karger, Oh and Shah.

    Parameters
    ----------
    item, annotator : ndarray of int of shape (L,)
        Whose answer each message goes along with.
    sign : ndarray of shape (L,)
        Answers, -1 or 1.
    shape : tuple of int
        Numbers of items and annotators.
    weight : ndarray of shape (n,)
        Weights of the items.
    told : ndarray of shape (n,)
        Truth of each item, -1 or 1, and 0 where it is not known.
    max_iter : int
        Largest number of rounds.
    tol : float
        Change of the messages, whose mean square is 1, below which the rounds end.

    Returns
    -------
    reliability : ndarray of shape (M,)
        How far the answers of each annotator agree with what all others answered, weighted by their reliability;
        mostly positive, unless the known truth has it otherwise.
    history : list of float
        Growth of the messages in every round.
    converged : bool
        Whether the rounds ended before `max_iter`.
    """
    n_items, n_annotators = shape
    share = weight[item] / weight[item].sum()

    def scaled(messages):  # without which they overflow
        size = np.sqrt(share @ messages**2)
        return (messages / size if size > 0 else messages), size

    to_item, history, known = np.ones(len(item)), [], told[item] != 0
    for _ in range(max_iter):
        spoken = sign * to_item
        to_annotator, growth = scaled(np.bincount(item, spoken, n_items)[item] - spoken)
        to_annotator[known] = told[item[known]]
        heard = sign * to_annotator
        reliability = np.bincount(annotator, weight[item] * heard, n_annotators)
        last = to_item
        to_item, factor = scaled(reliability[annotator] - heard)
        history.append(float(growth * factor))
        if np.abs(to_item - last).max() < tol:
            break
    if not known.any() and np.bincount(annotator, weight[item], n_annotators) @ reliability < 0:
        reliability = -reliability
    return reliability, history, bool(np.abs(to_item - last).max() < tol)


class KOS(WeightedAggregator):
    """Two classes by messages between items and annotators (Karger, Oh & Shah 2011).

    Items tell each annotator what the others answered, annotators tell each item how reliable they were on all other
    items, and so on; labels are votes weighted by reliability. It is optimal, up to constants, where every item has
    equally many answers, every annotator gave equally many, and who answers what was drawn at random; weights grow
    with the number of answers, so that elsewhere the busiest count most. The first messages are those of a majority
    vote. Classes beyond two would have to be cut in order, which nominal classes have not; they are refused.

    Parameters
    ----------
    max_iter : int, default=200
        Largest number of iterations.

    tol : float, default=1e-6
        Change of the messages, whose mean square is 1, below which the iterations end.

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
    ProjectedGradientOneCoin : One accuracy each, for any design and number of classes.
    MajorityVote : Its first iteration.

    References
    ----------
    Karger, Oh and Shah, Iterative learning for reliable crowdsourcing systems, 2011.

    Examples
    --------
    The last annotator contradicts the others:

    >>> from sklearn_l2d.aggregation import KOS
    >>> votes = [[0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1]]
    >>> consensus = KOS().fit(votes)
    >>> consensus.predict([[0, None, 1], [None, None, 0]]).tolist()
    [0, 1]
    >>> (consensus.annotator_weights_ > 0).tolist()
    [True, True, False]
    """

    _parameter_constraints: ClassVar = {
        **WeightedAggregator._parameter_constraints,
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        max_iter=200,
        tol=1e-6,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        n_classes, n_annotators = len(votes.classes), len(votes.annotators)
        if n_classes > 2:
            raise ValueError(
                f"KOS is for 2 classes, but there are {n_classes}: to split more of them they must have an order; use "
                "ProjectedGradientOneCoin or DawidSkene."
            )
        told = np.where(allowed.all(1), 0.0, allowed[:, -1] - allowed[:, 0].astype(float))
        sign = 2.0 * votes.label - 1
        weights, history, converged = pass_messages(
            votes.item, votes.annotator, sign, (len(votes), n_annotators), weight, told, self.max_iter, self.tol
        )
        warn_unless(converged, self.max_iter)
        if not weights.any():  # no two share an item
            weights = np.ones(n_annotators)
        return self._weighted(votes, allowed, weight, weights, history, converged)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
