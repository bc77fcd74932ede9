"""MACE: annotators who know, or spam (Hovy et al. 2013)."""

import numbers
from typing import ClassVar

import numpy as np
from scipy.special import expit

from .._numerics._crowd_em import answer_matrix, count_answers_of, log_joint_of, posterior_of, run_em, vote_shares
from .._sklearn import Interval, StrOptions
from ._base import BaseAggregator, learnt, warn_unless
from ._dawid_skene import estimate


def knowing_or_spamming(knows, spams):
    """Confusion matrices (M, C, C) of annotators who know with some probability.

    Parameters
    ----------
    knows : ndarray of shape (M,)
        Probability of knowing the true class.
    spams : ndarray of shape (M, C)
        Probability of spamming and of then giving an answer.
    """
    n_classes = spams.shape[1]
    return np.eye(n_classes) * knows[:, None, None] + spams[:, None, :]


class MACE(BaseAggregator):
    """Annotators who know the true class, or spam (Hovy et al. 2013: multi-annotator competence estimation).

    With a probability of their own, annotators give the true class; else an answer by a distribution of their own,
    whatever the item. EM tells from the consensus who knows how often, and what spammers prefer to answer.

    Parameters
    ----------
    prior : float, default=0.5
        Pseudo-count of knowing and of spamming.

    answer_prior : float, default=10.0
        Pseudo-count of every answer of a spammer.

    inference : {"map", "variational"}, default="variational"
        "map" maximises the posterior; "variational" takes expectations over it, which keeps the uncertainty of
        annotators with few votes. It needs positive priors.

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
    competences_ : ndarray of shape (n_annotators,)
        Probability that an annotator knows.
    spam_answers_ : ndarray of shape (n_annotators, n_classes)
        Probability of an answer of an annotator who does not.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    DawidSkene : Annotators with confusion matrices.

    References
    ----------
    Hovy, Berg-Kirkpatrick, Vaswani and Hovy, Learning whom to trust with MACE, 2013.

    Examples
    --------
    The third annotator answers 0 to everything:

    >>> from sklearn_l2d.aggregation import MACE
    >>> votes = [[0, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 0], [2, 2, 0], [2, 2, 0]]
    >>> consensus = MACE(answer_prior=1.0).fit(votes)
    >>> consensus.competences_.round(1)
    array([0.9, 0.9, 0.1])
    """

    _parameter_constraints: ClassVar = {
        **BaseAggregator._parameter_constraints,
        "prior": [Interval(numbers.Real, 0, None, closed="left")],
        "answer_prior": [Interval(numbers.Real, 0, None, closed="left")],
        "inference": [StrOptions({"map", "variational"})],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        prior=0.5,
        answer_prior=10.0,
        inference="variational",
        max_iter=200,
        tol=1e-6,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.prior = prior
        self.answer_prior = answer_prior
        self.inference = inference
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        variational = self.inference == "variational"
        if variational and not (self.prior and self.answer_prior):
            raise ValueError(
                f"prior={self.prior} and answer_prior={self.answer_prior} must be positive: a prior of 0 has no "
                "expectation. Use inference='map'."
            )
        answers, n_annotators, n_classes = answer_matrix(votes), len(votes.annotators), len(votes.classes)
        knowledge = np.full((n_annotators, n_classes), 0.5)  # share of the right answers that is no luck
        equal = np.full(n_classes, 1 / n_classes)

        def m_step(counts, knowledge):
            known = np.einsum("acc->ac", counts) * knowledge
            spam = counts.sum(1) - known
            free = np.stack([known.sum(1), spam.sum(1)], axis=1)
            competence, log_competence, gain = estimate(free, np.full(2, self.prior), variational)
            answer, log_answer, more = estimate(spam, np.full(n_classes, self.answer_prior), variational)
            return (competence[:, 0], answer, log_competence, log_answer), gain + more

        def maximise(truth):
            return m_step(count_answers_of(answers, truth, n_annotators), knowledge)

        def expect(parameters):
            nonlocal knowledge
            _, _, log_competence, log_answer = parameters
            log_spam = log_competence[:, 1:] + log_answer
            knowledge = expit(log_competence[:, :1] - log_spam)
            log_confusion = np.log(knowing_or_spamming(np.exp(log_competence[:, 0]), np.exp(log_spam)))
            return posterior_of(log_joint_of(answers, log_confusion, np.log(equal)), allowed)

        (competence, answer, *_), _, history, converged = run_em(
            vote_shares(votes, allowed), maximise, expect, weight, self.max_iter, self.tol
        )
        warn_unless(converged, self.max_iter)
        (half, even, *_), _ = m_step(np.zeros((1, n_classes, n_classes)), np.zeros((1, n_classes)))
        newcomer = knowing_or_spamming(half, (1 - half)[:, None] * even)[0]
        confusion = knowing_or_spamming(competence, (1 - competence)[:, None] * answer)
        return learnt(confusion, newcomer, equal, history, converged) | {
            "competences_": competence,
            "spam_answers_": answer,
        }
