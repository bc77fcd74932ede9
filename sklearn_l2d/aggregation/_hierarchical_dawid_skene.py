"""Dawid & Skene's model with a population of annotators, whose common errors count as evidence in part only."""

import numbers
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import digamma, softmax

from .._numerics._answer_model import dirichlet_strength
from .._numerics._crowd_em import (
    answer_matrix,
    count_answers_of,
    log_joint_of,
    pooled_counts,
    posterior_of,
    safe_log,
    tied_classes,
    vote_shares,
)
from .._numerics._shares import project_onto_shares
from .._sklearn import Interval, StrOptions
from ._base import BaseAggregator, check_distribution, learnt, warn_unless

_SETTLED = 10  # rounds after which the strength of the population stays
_LEAST_COUNT = 1e-6  # expected answers below which a cell says nothing about the strength; labels of every class
_WEAKEST = 0.02  # discount
_SAMPLE = 100_000  # answers that the discount is learnt from


def population_of(counts):
    """Confusion matrix (C, C) of the population, and one of the same accuracy with errors spread evenly.

    Parameters
    ----------
    counts : ndarray of shape (M, C, C)
        Expected answers (last axis) for every true class.
    """
    n_classes = counts.shape[1]
    pooled = pooled_counts(counts)
    accuracy = np.trace(pooled) / pooled.sum()
    pooled /= pooled.sum(1, keepdims=True)
    symmetric = np.full((n_classes, n_classes), (1 - accuracy) / max(n_classes - 1, 1))
    np.fill_diagonal(symmetric, accuracy)
    return pooled, symmetric


def strength_of(counts, pooled):
    """Answers that the population's rows count as in everybody's, by marginal likelihood of counts (M, C, C)."""
    seen = counts > _LEAST_COUNT
    prior = np.broadcast_to(pooled, counts.shape)[seen]
    return dirichlet_strength(prior, counts[seen], counts.sum(2)[seen.any(2)])[1]


def evidence_of(counts, pooled, symmetric, strength, common):
    """What an answer (last axis) says about every class, in nats: (M, C, C).

    The expected logarithm of everybody's row, in which ``1 - common`` of the population's asymmetry is replaced by
    symmetric errors. Who has no answers is the population.
    """
    rows = counts + strength * pooled
    expected = digamma(rows) - digamma(rows.sum(2, keepdims=True))
    expected = np.where(counts.any((1, 2), keepdims=True), expected, safe_log(pooled))
    return expected + (1 - common) * (safe_log(symmetric) - safe_log(pooled))


def discount_of(votes, log_joint, evidence, confusion, open_items, weight):
    """Factor of the evidence under which the other answers to an item predict each of them best.

    Annotators who err alike say less together than independent ones would; a factor below 1 says how much less.

    Parameters
    ----------
    votes : Votes
        Answers to n items by M annotators, with C classes.
    log_joint : ndarray of shape (n, C)
        Sum of the evidence of all answers to an item.
    evidence, confusion : ndarrays of shape (M, C, C)
        What an answer (last axis) says about every class, and its probability.
    open_items : ndarray of bool of shape (n,)
        Items of unknown truth.
    weight : ndarray of shape (n,)
        Weights of the items.
    """
    several = np.flatnonzero((open_items & (np.diff(votes.starts) > 1))[votes.item])
    if not len(several):
        return 1.0
    chosen = several[:: -(-len(several) // _SAMPLE)]
    item, who, label = votes.item[chosen], votes.annotator[chosen], votes.label[chosen]
    others, likely = log_joint[item] - evidence[who, :, label], confusion[who, :, label]

    def loss(log_factor):
        return -weight[item] @ safe_log((softmax(np.exp(log_factor) * others, axis=1) * likely).sum(1))

    return float(np.exp(minimize_scalar(loss, bounds=(np.log(_WEAKEST), 0.0), method="bounded").x))


def shares_of_majority(shares, weight):
    """Shares (C,) of the labels of the majority, where tied classes share an item, from shares (n, C) of votes."""
    best = tied_classes(shares)
    counts = weight @ (best / best.sum(1, keepdims=True)) + _LEAST_COUNT
    return counts / counts.sum()


def offset_for(log_joint, shares, weight, start):
    """Log-odds (C,) for which the mean of the posteriors of items (n, C) is `shares`: they change as little as can be.

    `start` are those of the last iteration.
    """
    offset = project_onto_shares(log_joint, shares, shares, dual=start, sample_weight=weight, tol=1e-6)[1]
    return offset - offset.mean()


class HierarchicalDawidSkene(BaseAggregator):
    """Annotators who vary around a population, whose common errors are trusted in part: the recommended consensus.

    As in Dawid and Skene's model, every annotator answers by a row of an own confusion matrix. A row has a Dirichlet
    prior around that of the population, with a strength by marginal likelihood, so that few answers tell little. The
    iterations are variational, with three departures that keep the consensus close to the votes where it could drift:

    - What all annotators have in common, the asymmetry of the population's matrix, is not told apart by votes alone
      from items that many find hard; only the share `common` of it counts as evidence. With 0, a crowd of equal
      annotators has the majority as consensus.
    - Before any answer, an item's classes are equally probable: shares that are learnt draw hard items to one class.
    - Annotators err alike on hard items. The evidence of an item is multiplied by a discount, with which the other
      answers to an item predict each answer best. Probabilities become cautious, labels stay.

    How frequent the classes are, votes alone do not tell: of two crowds whose votes look alike, one overlooks a class,
    and the other sees it where it is not. Compare the shares of the labels with those of the majority, and with what is
    known of the classes. Where they are known, pass `class_shares`; where people judge something else than the truth,
    such as an event that comes later, the majority is the better choice, or ``class_shares="majority"``.

    Parameters
    ----------
    common : float, default=0.25
        Share of the errors that all have in common that counts as evidence, from 0 to 1. Larger ones gain where most
        annotators confuse a class alike, and lose where items are hard; the default is a compromise of many crowds.

    class_shares : "majority", array-like of shape (n_classes,) or None, default=None
        Shares that the classes have among the items of `fit`: in every iteration the probabilities change as little as
        they must for their means to be these, by the same log-odds for all items. "majority" takes the shares of its
        labels, where tied classes share an item; None learns them. Items of known truth and items without votes do not
        count.

    max_iter : int, default=200
        Largest number of iterations.

    tol : float, default=1e-4
        Mean change of the probabilities of an item's labels below which the iterations end.

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
        Mean change of the probabilities of an item's labels in every iteration.
    converged_ : bool
        Whether the iterations ended before their limit.
    strength_ : float
        Number of answers that the population counts as in the row of an annotator.
    discount_ : float
        Factor of the evidence of all answers to an item, 1 if they are as good as independent.
    class_offset_ : ndarray of shape (n_classes,)
        Log-odds that give the classes their shares, 0 where these are learnt.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    DawidSkene : The model without a population.
    MajorityVote : Trusts everybody alike.

    References
    ----------
    Dawid and Skene, Maximum likelihood estimation of observer error-rates using the EM algorithm, 1979.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import HierarchicalDawidSkene
    >>> votes = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 1], [1, None, 0]]
    >>> consensus = HierarchicalDawidSkene().fit(votes)
    >>> consensus.predict(votes).tolist()
    [0, 1, 0, 1, 1]
    >>> consensus.annotator_accuracy_.argmin()
    np.int64(2)
    """

    _parameter_constraints: ClassVar = {
        **BaseAggregator._parameter_constraints,
        "common": [Interval(numbers.Real, 0, 1, closed="both")],
        "class_shares": [StrOptions({"majority"}), "array-like", None],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        common=0.25,
        class_shares=None,
        max_iter=200,
        tol=1e-4,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.common = common
        self.class_shares = class_shares
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        answers, n_annotators, n_classes = answer_matrix(votes), len(votes.annotators), len(votes.classes)
        truth, history, converged = vote_shares(votes, allowed), [], False
        offset = np.zeros(n_classes)
        voted, open_items = np.diff(votes.starts) > 0, allowed.all(1)
        free = np.flatnonzero(voted & open_items)
        told = weight * (voted | ~open_items)  # the others say nothing about the classes
        shares = self._shares(truth[free], weight[free])
        while not converged and len(history) < self.max_iter:
            counts = count_answers_of(answers, truth * weight[:, None], n_annotators)
            pooled, symmetric = population_of(counts)
            if len(history) < _SETTLED:
                strength = strength_of(counts, pooled)
            evidence = evidence_of(counts, pooled, symmetric, strength, self.common)
            log_joint = log_joint_of(answers, evidence, 0.0)
            if shares is not None and len(free):
                offset = offset_for(log_joint[free], shares, weight[free], offset)
                log_joint += offset
            before, truth = truth, posterior_of(log_joint, allowed)[0]
            history.append(float(told @ np.abs(truth - before).sum(1) / told.sum()))
            converged = history[-1] <= self.tol
        warn_unless(converged, self.max_iter)
        rows = counts + strength * pooled
        confusion = rows / rows.sum(2, keepdims=True)
        class_prior = (told @ truth + 1) / (told.sum() + n_classes)
        newcomer = evidence_of(np.zeros((1, n_classes, n_classes)), pooled, symmetric, strength, self.common)
        return learnt(confusion, pooled, class_prior, history, converged) | {
            "strength_": strength,
            "discount_": discount_of(votes, log_joint, evidence, confusion, open_items, weight),
            "class_offset_": offset,
            "_evidence": np.concatenate([evidence, newcomer]),
        }

    def _shares(self, truth, weight):
        """Shares (C,) that the labels of items are to have, from the shares (n, C) of their votes, or None."""
        if self.class_shares is None:
            return None
        if isinstance(self.class_shares, str):
            return shares_of_majority(truth, weight)
        return check_distribution(self.class_shares, truth.shape[1], "class_shares")

    def _proba(self, votes):
        place = np.minimum(np.arange(len(votes.annotators)), len(self.annotators_))  # newcomers share the last one
        total = log_joint_of(answer_matrix(votes), self._evidence[place], self.class_offset_)
        silent = np.diff(votes.starts) == 0
        return np.where(silent[:, None], self.class_prior_, posterior_of(self.discount_ * total)[0])
