"""Dawid & Skene's model of annotators: by EM, by variational inference, and online."""

import numbers
from typing import ClassVar

import numpy as np
from scipy.special import digamma, gammaln
from sklearn.exceptions import ConvergenceWarning

from .._encoding import check_classes
from .._numerics._co_labels import first_moments, shrunk, with_truth
from .._numerics._crowd_em import (
    answer_matrix,
    count_answers_of,
    log_joint_of,
    posterior_of,
    run_em,
    safe_log,
    vote_shares,
)
from .._numerics._spectral import tensor_confusion
from .._sklearn import Interval, StrOptions, atomic_fit, warn
from ._base import BaseAggregator, allowed_classes, check_distribution, item_weights, learnt, warn_unless

_STEP = 0.6  # power of the number of batches by which a new one weighs less


def free_counts(counts, model):
    """Counts (..., R) of the R outcomes of each free distribution of a model: all answers, or right and wrong.

    Parameters
    ----------
    counts : ndarray of shape (M, C, C)
        Expected answers (last axis) for every true class.
    model : {"full", "confusion_vector", "one_coin"}
        "full" has a distribution for each true class, "confusion_vector" a coin for each, "one_coin" one for all.
    """
    if model == "full":
        return counts
    right = np.einsum("acc->ac", counts)
    coins = np.stack([right, counts.sum(2) - right], axis=2)
    return coins if model == "confusion_vector" else coins.sum(1, keepdims=True)


def spread_evenly(right, wrong, n_classes):
    """Matrices (M, C, C) with `right` on the diagonal and `wrong` elsewhere, both of shape (M, C) or (M, 1)."""
    return np.where(np.eye(n_classes, dtype=bool), right[:, :, None], wrong[:, :, None])


def estimate(free, prior, variational):
    """Distributions from counts: the mean, what an E-step takes for their logarithms, and the objective's part.

    Parameters
    ----------
    free : ndarray of shape (..., R)
        Counts.
    prior : ndarray of shape (R,)
        Pseudo-counts.
    variational : bool
        False maximises the posterior, True takes the expectation over it.
    """
    total = (free + prior).sum(-1, keepdims=True)
    mean = np.divide(free + prior, total, out=np.full(free.shape, 1 / free.shape[-1]), where=total > 0)
    if not variational:
        return mean, safe_log(mean), float((safe_log(mean) * prior).sum())
    expected = digamma(free + prior) - digamma(total)
    gain = gammaln(free + prior).sum(-1) - gammaln(total[..., 0]) - gammaln(prior).sum() + gammaln(prior.sum())
    return mean, expected, float((gain - (free * expected).sum(-1)).sum())


def spectral_start(answers, allowed, weight, fallback):
    """Distribution (n, C) of the truth by third moments of three groups of annotators, unless `fallback` is likelier.

    Where the moments tell nothing, it is `fallback` with a warning.

    Parameters
    ----------
    answers : csr_array of shape (n, M * C)
        As returned by `answer_matrix`.
    allowed : ndarray of bool of shape (n, C)
        Classes that an item may have: one where its truth is known.
    weight : ndarray of shape (n,)
        Weights of the items.
    fallback : ndarray of shape (n, C)
        The same from something simpler.
    """
    n_classes = allowed.shape[1]
    with_known = with_truth(answers, allowed)
    confusion, identified, class_prior = tensor_confusion(with_known, weight, n_classes)
    if not identified.any():
        warn(
            "init='spectral' found no start, since too few items are answered by three annotators for so many classes; "
            "EM starts at the shares of the votes instead.",
            ConvergenceWarning,
        )
        return fallback
    n_answers = first_moments(with_known, weight, n_classes).sum(1)
    confusion = np.where(identified[:, None, None], confusion, 1 / n_classes)
    n_annotators = answers.shape[1] // n_classes
    confusion = shrunk(confusion, class_prior, n_answers, 1.0)[:n_annotators]
    counts = count_answers_of(answers, fallback * weight[:, None], n_annotators) + 1
    shares = weight @ fallback / weight.sum()
    starts = [
        posterior_of(log_joint_of(answers, safe_log(matrices), safe_log(prior)), allowed)
        for matrices, prior in ((confusion, class_prior), (counts / counts.sum(2, keepdims=True), shares))
    ]
    return starts[0][0] if weight @ starts[0][1] >= weight @ starts[1][1] else fallback


class DawidSkene(BaseAggregator):
    """Annotators with confusion matrices, and the truth behind their answers (Dawid & Skene 1979).

    Given the true class of an item, every annotator answers independently by the row of an own confusion matrix. EM
    finds the truth and the matrices together; a pseudo-count in every cell keeps annotators with few votes from
    extremes (crowd tutorial, part I, and its Bayesian version).

    Parameters
    ----------
    model : {"full", "confusion_vector", "one_coin", "two_coin"}, default="full"
        "full" learns whole confusion matrices, "confusion_vector" one accuracy for each class, with errors spread
        evenly, and "one_coin" one accuracy. "two_coin", sensitivity and specificity, is "full" for two classes, and
        refuses more.

    prior : float, default=1.0
        Pseudo-count of every answer in each distribution that is learnt; the wrong answers of a coin share theirs.

    class_prior : {"estimate", "uniform"} or array-like of shape (n_classes,), default="estimate"
        Probabilities of the classes: learnt with one pseudo-count each, equal, or given.

    inference : {"map", "variational"}, default="map"
        "map" maximises the posterior; "variational" takes expectations over it, which keeps the uncertainty of
        annotators with few votes. It needs a positive `prior`.

    init : {"majority", "spectral"}, default="majority"
        Where `fit` starts: at the shares of the votes, or at the labels of the moments of three groups of annotators
        (Zhang et al. 2016), from which EM is optimal on many items. Where the shares are likelier, as on few items, it
        starts there; where the moments tell nothing, a warning says so.

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
    n_batches_ : int
        Number of batches that `partial_fit` has seen; a `fit` counts as one.
    n_items_seen_ : float
        Number of items, by weight.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    MajorityVote : Trusts everybody alike.
    SpectralDawidSkene : Learns the same from moments, without iterations.

    References
    ----------
    Dawid and Skene, Maximum likelihood estimation of observer error-rates using the EM algorithm, 1979.

    Zhang, Chen, Zhou and Jordan, Spectral methods meet EM: a provably optimal algorithm for crowdsourcing, 2016.

    Examples
    --------
    The third annotator contradicts the others, and is believed to the contrary:

    >>> from sklearn_l2d.aggregation import DawidSkene
    >>> votes = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0], [1, None, 0]]
    >>> consensus = DawidSkene().fit(votes)
    >>> consensus.predict([[None, None, 0]]).tolist()
    [1]
    >>> consensus.annotator_accuracy_.round(1)
    array([0.7, 0.7, 0.3])
    """

    _parameter_constraints: ClassVar = {
        **BaseAggregator._parameter_constraints,
        "model": [StrOptions({"full", "confusion_vector", "one_coin", "two_coin"})],
        "prior": [Interval(numbers.Real, 0, None, closed="left")],
        "class_prior": [StrOptions({"estimate", "uniform"}), "array-like"],
        "inference": [StrOptions({"map", "variational"})],
        "init": [StrOptions({"majority", "spectral"})],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        model="full",
        *,
        prior=1.0,
        class_prior="estimate",
        inference="map",
        init="majority",
        max_iter=200,
        tol=1e-6,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.model = model
        self.prior = prior
        self.class_prior = class_prior
        self.inference = inference
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        self._check_settings(len(votes.classes))
        answers, n_annotators = answer_matrix(votes), len(votes.annotators)

        def maximise(truth):
            return self._m_step(count_answers_of(answers, truth, n_annotators), truth.sum(0))

        def expect(parameters):
            _, log_confusion, _, log_prior = parameters
            return posterior_of(log_joint_of(answers, log_confusion, log_prior), allowed)

        start = vote_shares(votes, allowed)
        if self.init == "spectral" and len(votes.classes) > 1:
            start = spectral_start(answers, allowed, weight, start)
        (confusion, _, class_prior, _), truth, history, converged = run_em(
            start, maximise, expect, weight, self.max_iter, self.tol
        )
        warn_unless(converged, self.max_iter)
        truth, total = truth * weight[:, None], weight.sum()
        return {
            **learnt(confusion, self._prior_confusion(len(class_prior)), class_prior, history, converged),
            "n_batches_": 1,
            "n_items_seen_": float(total),
            "_answers_per_item": count_answers_of(answers, truth, n_annotators) / total,
            "_classes_per_item": truth.sum(0) / total,
        }

    @atomic_fit(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, classes=None, sample_weight=None):
        """Learn from one more batch of items, by online EM (Cappé & Moulines 2009).

        The expected answers of batch t join those of the batches before with weight ``t^-.6``. New annotators join
        by their names; `confusion_matrices_` and the rest follow each batch.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            Who answered what, on new items.
        y : array-like of shape (n_items,), default=None
            As in `fit`.
        classes : array-like of shape (n_classes,), default=None
            Sorted class labels; needed in the first call, unless its items show all of them.
        sample_weight : array-like of shape (n_items,), default=None
            As in `fit`.

        Returns
        -------
        self : DawidSkene
            The fitted estimator. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            As `fit`.
        """
        if not hasattr(self, "classes_"):
            votes, allowed, weight = self._read(
                X, y, sample_weight, None if classes is None else check_classes(classes)
            )
            self._check_settings(len(votes.classes))
            truth, before = vote_shares(votes, allowed), (0, 0.0, 0.0, 0.0)
        else:
            votes = self._votes(X)
            allowed = allowed_classes(*self._truth(votes, y), self.classes_)
            truth, _ = posterior_of(self._log_joint(votes), allowed)
            n_new = len(votes.annotators) - len(self.annotators_)
            answers = np.pad(self._answers_per_item, ((0, n_new), (0, 0), (0, 0)))
            before = self.n_batches_, self.n_items_seen_, answers, self._classes_per_item
            weight = item_weights(votes, sample_weight)
        truth, total, n_batches = truth * weight[:, None], weight.sum(), before[0] + 1
        step = n_batches**-_STEP
        found = count_answers_of(answer_matrix(votes), truth, len(votes.annotators)), truth.sum(0)
        per_item = [(1 - step) * old + step * new / total for old, new in zip(before[2:], found, strict=True)]
        seen = before[1] + total
        (confusion, _, class_prior, _), _ = self._m_step(per_item[0] * seen, per_item[1] * seen)
        state = {
            "n_batches_": n_batches,
            "n_items_seen_": float(seen),
            "_answers_per_item": per_item[0],
            "_classes_per_item": per_item[1],
        }
        prior_confusion = self._prior_confusion(len(class_prior))
        self._set(votes, learnt(confusion, prior_confusion, class_prior, [], True) | state)

    def _check_settings(self, n_classes):
        if self.model == "two_coin" and n_classes > 2:
            raise ValueError(
                f"model='two_coin' describes sensitivity and specificity, of 2 classes, but there are {n_classes}; use "
                "'confusion_vector', or 'full'."
            )
        if self.inference == "variational" and self.prior == 0:
            raise ValueError("prior=0 has no expectation; give inference='variational' a positive prior.")
        if not isinstance(self.class_prior, str):
            check_distribution(self.class_prior, n_classes, "class_prior")

    def _m_step(self, counts, class_counts):
        """Confusion matrices and class prior, what an E-step takes for their logarithms, and the objective's part."""
        n_classes = len(class_counts)
        variational = self.inference == "variational"
        model = "full" if self.model == "two_coin" else self.model
        prior = np.full(n_classes, self.prior) if model == "full" else self.prior * np.array([1, n_classes - 1])
        mean, log_mean, gain = estimate(free_counts(counts, model), prior, variational)
        if model != "full":
            others = max(n_classes - 1, 1)
            log_mean = spread_evenly(log_mean[..., 0], log_mean[..., 1] - np.log(others), n_classes)
            mean = spread_evenly(mean[..., 0], mean[..., 1] / others, n_classes)
        if isinstance(self.class_prior, str) and self.class_prior == "estimate":
            class_prior, log_prior, more = estimate(class_counts, np.ones(n_classes), variational)
            gain += more
        else:
            given = np.full(n_classes, 1 / n_classes) if isinstance(self.class_prior, str) else self.class_prior
            class_prior = np.asarray(given, dtype=float)
            log_prior = np.log(class_prior)
        return (mean, log_mean, class_prior, log_prior), gain

    def _prior_confusion(self, n_classes):
        """Confusion matrix (C, C) of an annotator without votes."""
        return self._m_step(np.zeros((1, n_classes, n_classes)), np.ones(n_classes))[0][0][0]
