"""Annotators and items that both cause errors, held back by what held-out votes tell."""

import numbers
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_softmax, softmax

from .._numerics._crowd_em import posterior_of, vote_shares
from .._sklearn import Interval, StrOptions
from ._base import BaseAggregator, learnt, warn_unless

_STRENGTHS = 2.0 ** np.arange(-4, 3)  # among which held-out votes choose
_N_FOLDS = 3
_N_ROUNDS = 30  # for the errors of an item whose annotators are known


class Sums:
    """Sums over the votes of each item and each annotator, as products with sparse matrices."""

    def __init__(self, votes, n_annotators):
        n_votes = len(votes.item)
        ones, rows = np.ones(n_votes), np.arange(n_votes)
        self.item = csr_array((ones, (votes.item, rows)), shape=(len(votes), n_votes))
        self.annotator = csr_array((ones, (votes.annotator, rows)), shape=(n_annotators, n_votes))


def log_likelihoods(votes, logits):
    """Log-probability (L, C) of every vote for each truth, from logits (L, C, C) of truth by answer."""
    return log_softmax(logits, axis=2)[np.arange(len(votes.item)), :, votes.label]


def ascent(votes, logits, truth, sums, penalty, now):
    """One step for some parameters (G, C, C) that the logits add up, which never lowers the objective.

    The curvature of a softmax is at most 1/2, so that the step needs no line search.

    Parameters
    ----------
    votes : Votes
        L votes on items of C classes.
    logits : ndarray of shape (L, C, C)
        Of truth by answer, for every vote.
    truth : ndarray of shape (L, C)
        Probability of the truth of the item of every vote, times its weight.
    sums : csr_array of shape (G, L)
        Which votes the parameters take part in.
    penalty : float
        Half of it times the square of the parameters is subtracted.
    now : ndarray of shape (G, C, C)
        Parameters.
    """
    n_votes, n_classes = truth.shape
    answered = np.arange(n_classes) == votes.label[:, None]
    left = truth[:, :, None] * (answered[:, None] - softmax(logits, axis=2))
    slope = (sums @ left.reshape(n_votes, -1)).reshape(now.shape) - penalty * now
    curvature = (sums @ truth)[:, :, None] / 2 + penalty
    return now + np.divide(slope, curvature, out=np.zeros_like(now), where=curvature > 0)


def fit_minimax(votes, allowed, weight, strength, max_iter, tol):
    """Parameters of annotators and items by generalised EM.

    Parameters
    ----------
    votes : Votes
        Answers to n items by M annotators, with C classes.
    allowed : ndarray of bool of shape (n, C)
        Classes that an item may have.
    weight : ndarray of shape (n,)
        Weights of the items.
    strength : float
        Strength of the penalties.
    max_iter : int
        Largest number of rounds.
    tol : float
        Gain in nats per item, by weight, below which they end.

    Returns
    -------
    honesty : float
        Logit of the right answer that all share.
    annotator, item : ndarray of shape (M, C, C) and (n, C, C)
        Logits of truth by answer that join it.
    truth : ndarray of shape (n, C)
        Distribution of the truth.
    penalty : float
        Of items.
    history : list of float
        Objective of every round.
    converged : bool
        Whether the rounds ended before `max_iter`.
    """
    n_annotators, n_classes, total = len(votes.annotators), len(votes.classes), weight.sum()
    sums, weighed = Sums(votes, n_annotators), weight[votes.item][:, None]
    identity, classes = np.eye(n_classes), np.arange(n_classes)
    penalty = strength * n_classes**2, strength * n_classes**2 * total / n_annotators
    honesty = np.zeros((1, 1, 1))
    annotator = np.zeros((n_annotators, n_classes, n_classes))
    item = np.zeros((len(votes), n_classes, n_classes))
    truth, history = vote_shares(votes, allowed), []

    def logits():
        return honesty * identity + annotator[votes.annotator] + item[votes.item]

    for _ in range(max_iter):
        of_vote = truth[votes.item] * weighed
        for _ in range(3):  # of one parameter, whose logits are the identity
            right = softmax(logits(), axis=2)[:, classes, classes]
            slope = (of_vote * ((classes == votes.label[:, None]) - right)).sum()
            honesty = honesty + slope / max(of_vote.sum() / 4, 1e-300)
        annotator = ascent(votes, logits(), of_vote, sums.annotator, penalty[0], annotator)
        item = ascent(votes, logits(), truth[votes.item], sums.item, penalty[1], item)
        truth, evidence = posterior_of(sums.item @ log_likelihoods(votes, logits()), allowed)
        lost = penalty[0] * (annotator**2).sum() + penalty[1] * weight @ (item**2).sum((1, 2))
        history.append(float(weight @ evidence - lost / 2))
        if len(history) > 1 and history[-1] - history[-2] < tol * total:
            return float(honesty[0, 0, 0]), annotator, item, truth, penalty[1], history, True
    return float(honesty[0, 0, 0]), annotator, item, truth, penalty[1], history, False


def held_out(votes, allowed, weight, strength, max_iter, tol):
    """Log-likelihood of votes that were left out, in turns, where the others were explained."""
    fold = np.random.default_rng(0).permutation(len(votes.item)) % _N_FOLDS
    total = 0.0
    for number in range(_N_FOLDS):
        rest, out = votes.select(fold != number), votes.select(fold == number)
        honesty, annotator, item, truth, *_ = fit_minimax(rest, allowed, weight, strength, max_iter, tol)
        logits = honesty * np.eye(truth.shape[1]) + annotator[out.annotator] + item[out.item]
        likelihood = (truth[out.item] * np.exp(log_likelihoods(out, logits))).sum(1)
        total += weight[out.item] @ np.log(likelihood)
    return float(total)


def explain(votes, honesty, annotator, penalty):
    """Log-probabilities (n, C) of the truth together with all votes on every item, each explained alone.

    The errors of an item are fitted to its own votes, by a fixed number of steps.
    """
    sums, n_classes = Sums(votes, len(annotator)), annotator.shape[1]
    known = honesty * np.eye(n_classes) + annotator[votes.annotator]
    item = np.zeros((len(votes), n_classes, n_classes))
    joint = sums.item @ log_likelihoods(votes, known)
    for _ in range(_N_ROUNDS):
        truth = posterior_of(joint)[0][votes.item]
        item = ascent(votes, known + item[votes.item], truth, sums.item, penalty, item)
        joint = sums.item @ log_likelihoods(votes, known + item[votes.item])
    return joint - penalty / 2 * (item**2).sum((1, 2))[:, None] - np.log(n_classes)


class MinimaxEntropy(BaseAggregator):
    """Errors explained by annotators and by items (Zhou et al. 2012, 2014).

    Minimax conditional entropy: among all explanations that keep what each annotator answered, and what each item got,
    as closely as the votes warrant, the answers are taken to be as random as can be. Its dual has a logit of every
    answer for each annotator and truth, and for each item and truth, both held back by penalties, whose strength the
    likelihood of held-out votes chooses. Corrected: logits add to one of the right answer that all share, which is not
    held back; strong penalties then are the majority vote, and who gave few votes counts as an average annotator.
    `score` is the log-likelihood less the penalties of the items.

    Parameters
    ----------
    strength : {"held-out"} or float, default="held-out"
        Strength s of the penalties: annotators have ``s * n_classes**2`` and items that times the number of items per
        annotator. "held-out" chooses it among 1/16, 1/8, ..., 4 by the likelihood of votes that are left out.

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
    n_iter_ : int
        Number of iterations.
    history_ : ndarray of shape (`n_iter_`,)
        Objective of every iteration.
    converged_ : bool
        Whether the iterations ended before their limit.
    strength_ : float
        Strength of the penalties.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    DawidSkene : Blames annotators only.
    MaxMarginMajorityVote : Weighs votes, without a model of errors.

    References
    ----------
    Zhou, Platt, Basu and Mao, Learning from the wisdom of crowds by minimax entropy, 2012.

    Zhou, Liu, Platt and Meek, Aggregating ordinal labels from crowds by minimax conditional entropy, 2014.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import MinimaxEntropy
    >>> votes = [[0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1]] * 4
    >>> consensus = MinimaxEntropy(strength=0.1, tol=1e-4).fit(votes)
    >>> consensus.predict([[0, None, 1], [None, None, 0]]).tolist()
    [0, 1]
    """

    _parameter_constraints: ClassVar = {
        **BaseAggregator._parameter_constraints,
        "strength": [StrOptions({"held-out"}), Interval(numbers.Real, 0, None, closed="neither")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        strength="held-out",
        max_iter=200,
        tol=1e-6,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.strength = strength
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        n_classes, strength = len(votes.classes), self.strength
        if strength == "held-out":
            scores = [held_out(votes, allowed, weight, s, _N_ROUNDS, self.tol) for s in _STRENGTHS]
            strength = float(_STRENGTHS[np.argmax(scores)])
        honesty, annotator, _, _, penalty, history, converged = fit_minimax(
            votes, allowed, weight, strength, self.max_iter, self.tol
        )
        warn_unless(converged, self.max_iter)
        shared = honesty * np.eye(n_classes)
        class_prior = np.full(n_classes, 1 / n_classes)
        return {
            **learnt(softmax(shared + annotator, 2), softmax(shared, 1), class_prior, history, converged),
            "strength_": strength,
            "_honesty": honesty,
            "_annotator_logits": annotator,
            "_item_penalty": penalty,
        }

    def _log_joint(self, votes):
        n_new = len(votes.annotators) - len(self.annotators_)
        annotator = np.pad(self._annotator_logits, ((0, n_new), (0, 0), (0, 0)))
        return explain(votes, self._honesty, annotator, self._item_penalty)
