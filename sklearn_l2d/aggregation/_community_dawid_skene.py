"""Annotators who belong to few communities, each with one confusion matrix."""

import numbers
from typing import ClassVar

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.special import entr

from .._numerics._crowd_em import (
    answer_matrix,
    count_answers_of,
    log_joint_of,
    posterior_of,
    run_em,
    safe_log,
    vote_shares,
)
from .._sklearn import Interval, StrOptions
from ._base import BaseAggregator, learnt, warn_unless
from ._dawid_skene import estimate


def first_memberships(counts, n_communities):
    """Communities (M, G) of annotators whose answers (M, C, C) are alike, by Ward's clustering of their rates."""
    n_annotators, n_classes, _ = counts.shape
    rates = (counts + 1) / (counts.sum(2, keepdims=True) + n_classes)
    label = np.ones(n_annotators, dtype=int)
    if n_communities > 1 and n_annotators > 1:
        label = fcluster(linkage(rates.reshape(n_annotators, -1), "ward"), n_communities, "maxclust")
    return np.eye(n_communities)[label - 1]


def memberships_of(log_joint, assignment):
    """Memberships (M, G) from log-probabilities of communities and answers.

    Parameters
    ----------
    log_joint : ndarray of shape (M, G)
        Of a community, and of all answers of an annotator.
    assignment : {"soft", "hard"}
        Whether a membership is a distribution, or the best community.
    """
    if assignment == "soft":
        return posterior_of(log_joint)[0]
    return np.eye(log_joint.shape[1])[log_joint.argmax(1)]


class CommunityDawidSkene(BaseAggregator):
    """Dawid and Skene's model with few confusion matrices, shared by communities of annotators (Venanzi et al. 2014).

    Where many annotators answer a few items each, none of them shows a confusion matrix of their own. Here everybody
    belongs to one of G communities, whose members answer alike, and G matrices are learnt from all answers together.
    EM with independent distributions of truths and of memberships finds both. Hard memberships are the worker clusters
    of Imamura et al. (2018). Corrected: the original lets members differ from their community, by one more parameter.

    Parameters
    ----------
    n_communities : int, default=3
        Number of communities G; for fewer annotators, one for each.

    assignment : {"soft", "hard"}, default="soft"
        Whether a membership is a distribution over the communities, or one of them.

    prior : float, default=1.0
        Pseudo-count of every answer in each distribution that is learnt.

    class_prior : {"estimate", "uniform"}, default="estimate"
        Probabilities of the classes: learnt with one pseudo-count each, or equal.

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
    memberships_ : ndarray of shape (n_annotators, n_communities)
        Probability that an annotator belongs to a community.
    community_shares_ : ndarray of shape (n_communities,)
        Probability that somebody new does.
    community_confusion_matrices_ : ndarray of shape (n_communities, n_classes, n_classes)
        Probability of an answer (last axis) given the true class, in every community.
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
    DawidSkene : A matrix for everybody.
    GroupAwareDawidSkene : Groups whose members share errors, not only habits.

    References
    ----------
    Venanzi et al., Community-based Bayesian aggregation models for crowdsourcing, 2014.
    Imamura, Sato and Sugiyama, Analysis of minimax error rate for crowdsourcing and its application to worker
    clustering model, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d.aggregation import CommunityDawidSkene
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(200, 1))
    >>> accuracy = np.repeat([0.9, 0.55], 5)
    >>> X = np.where(rng.random((200, 10)) < accuracy, truth, 1 - truth)
    >>> consensus = CommunityDawidSkene(2).fit(X)
    >>> first = consensus.memberships_[:, consensus.memberships_[0].argmax()]
    >>> first.round(1)
    array([1., 1., 1., 1., 1., 0., 0., 0., 0., 0.])
    """

    _parameter_constraints: ClassVar = {
        **BaseAggregator._parameter_constraints,
        "n_communities": [Interval(numbers.Integral, 1, None, closed="left")],
        "assignment": [StrOptions({"soft", "hard"})],
        "prior": [Interval(numbers.Real, 0, None, closed="left")],
        "class_prior": [StrOptions({"estimate", "uniform"})],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_communities=3,
        *,
        assignment="soft",
        prior=1.0,
        class_prior="estimate",
        max_iter=200,
        tol=1e-6,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.n_communities = n_communities
        self.assignment = assignment
        self.prior = prior
        self.class_prior = class_prior
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        answers, n_annotators, n_classes = answer_matrix(votes), len(votes.annotators), len(votes.classes)
        start = vote_shares(votes, allowed)
        counts = count_answers_of(answers, start * weight[:, None], n_annotators)
        n_communities = min(self.n_communities, n_annotators)
        pseudo, uniform = np.full(n_classes, float(self.prior)), np.full(n_classes, 1 / n_classes)
        members = [first_memberships(counts, n_communities)]  # of the last round

        def maximise(truth):
            class_prior, log_prior, gain = estimate(truth.sum(0), np.ones(n_classes), False)
            if self.class_prior == "uniform":
                class_prior, log_prior, gain = uniform, np.log(uniform), 0.0
            counts = count_answers_of(answers, truth, n_annotators)
            of_community = np.einsum("mg,mcd->gcd", members[0], counts)
            community, log_community, more = estimate(of_community, pseudo, False)
            share, log_share, again = estimate(members[0].sum(0), np.ones(n_communities), False)
            log_joint = log_share + np.einsum("mcd,gcd->mg", counts, log_community)
            members[0] = memberships_of(log_joint, self.assignment)
            gain += more + again + float((members[0] * log_share + entr(members[0])).sum())
            return (members[0], community, share, class_prior, log_prior), gain

        def expect(parameters):
            membership, community, _, _, log_prior = parameters
            log_confusion = np.einsum("mg,gcd->mcd", membership, safe_log(community))
            return posterior_of(log_joint_of(answers, log_confusion, log_prior), allowed)

        (membership, community, share, class_prior, _), _, history, converged = run_em(
            start, maximise, expect, weight, self.max_iter, self.tol
        )
        warn_unless(converged, self.max_iter)
        confusion = np.einsum("mg,gcd->mcd", membership, community)
        confusion[votes.n_answers == 0] = newcomer = np.einsum("g,gcd->cd", share, community)
        return {
            **learnt(confusion, newcomer, class_prior, history, converged),
            "memberships_": membership,
            "community_shares_": share,
            "community_confusion_matrices_": community,
        }

    def _log_joint(self, votes):
        n_new = len(votes.annotators) - len(self.annotators_)
        log_confusion = np.einsum("mg,gcd->mcd", self.memberships_, safe_log(self.community_confusion_matrices_))
        newcomers = np.tile(safe_log(self.prior_confusion_), (n_new, 1, 1))
        everybody = np.concatenate([log_confusion, newcomers])
        return log_joint_of(answer_matrix(votes), everybody, safe_log(self.class_prior_))
