"""GLAD: able annotators and difficult items (Whitehill et al. 2009)."""

import numbers
from typing import ClassVar

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.sparse import csr_array
from scipy.special import expit, log_expit, logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from .._numerics._crowd_em import run_em, vote_shares
from .._sklearn import Interval
from ._base import BaseAggregator, learnt, warn_unless

_NODES = 9  # of the quadrature over difficulties
_STEPS = 5  # of Newton's method in an M-step, at most
_PRIOR_MEAN = 1.0  # of abilities, whose variance is 1


def easiness_grid(spread):
    """Easiness of items (T,), and its log-probabilities (T,), as a quadrature of its log-normal distribution."""
    nodes, weights = hermegauss(_NODES) if spread else (np.zeros(1), np.ones(1))
    return np.exp(spread * nodes), np.log(weights / weights.sum())


def vote_matrices(votes):
    """Who answered what, sparse: a row for every item and class (n * C, M), and one for every item (n, M)."""
    n_items, n_classes, n_annotators = len(votes), len(votes.classes), len(votes.annotators)
    ones = np.ones(len(votes.item))
    row = votes.item * np.int64(n_classes) + votes.label
    return (
        csr_array((ones, (row, votes.annotator)), (n_items * n_classes, n_annotators)),
        csr_array((ones, (votes.item, votes.annotator)), (n_items, n_annotators)),
    )


def log_joint_with_easiness(for_class, for_item, ability, easiness, log_weight):
    """Log-probabilities (n, C, T) of the answers together with the true class and the easiness.

    Parameters
    ----------
    for_class, for_item : csr_arrays
        As returned by `vote_matrices`.
    ability : ndarray of shape (M,)
        Of the annotators.
    easiness, log_weight : ndarrays of shape (T,)
        As returned by `easiness_grid`.
    """
    n_items = for_item.shape[0]
    n_classes = for_class.shape[0] // n_items
    logit = ability[:, None] * easiness
    wrong = log_expit(-logit) - np.log(max(n_classes - 1, 1))
    right = (for_class @ (log_expit(logit) - wrong)).reshape(n_items, n_classes, len(easiness))
    return right + (for_item @ wrong)[:, None] + log_weight - np.log(n_classes)


def able(ability, right, answered, easiness):
    """Most probable abilities (M,), by Newton's method from those before.

    Parameters
    ----------
    ability : ndarray of shape (M,)
        Start.
    right, answered : ndarrays of shape (M, T)
        Expected right answers, and answers, to items of every easiness.
    easiness : ndarray of shape (T,)
        The grid.
    """

    def gain(ability):
        logit = ability[:, None] * easiness
        likely = right * log_expit(logit) + (answered - right) * log_expit(-logit)
        return likely.sum(1) - (ability - _PRIOR_MEAN) ** 2 / 2

    value = gain(ability)
    for _ in range(_STEPS):
        proba = expit(ability[:, None] * easiness)
        slope = ((right - answered * proba) * easiness).sum(1) - (ability - _PRIOR_MEAN)
        bend = (answered * proba * (1 - proba) * easiness**2).sum(1) + 1
        step = slope / bend
        for _ in range(20):  # a full step may lead too far where few answers are far from expectation
            after = gain(ability + step)
            worse = after < value - 1e-12 * (1 + np.abs(value))
            if not worse.any():
                break
            step = np.where(worse, step / 2, step)
        better = after >= value
        ability, value = np.where(better, ability + step, ability), np.where(better, after, value)
    return ability


class GLAD(BaseAggregator):
    """Annotators of different ability and items of different difficulty (Whitehill et al. 2009).

    An annotator of ability a gives the right answer to an item of easiness b with probability ``1 / (1 + exp(-a b))``,
    and errors are evenly spread over the other classes. Ability has a normal prior around 1 with variance 1, the
    logarithm of easiness one around 0. The paper maximises over easiness; here EM sums over a grid of it, so that
    the difficulty of an item follows from its own answers, and new items are labelled as those of the fit.

    Parameters
    ----------
    spread : float, default=1.0
        Standard deviation of the logarithm of easiness. With 0, all items are equally difficult: a model of one
        accuracy per annotator.

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
    abilities_ : ndarray of shape (n_annotators,)
        Ability of the annotators: 0 guesses between right and wrong, negative ones are wrong more often than right.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    DawidSkene : Annotators with confusion matrices, and no difficulty.

    References
    ----------
    Whitehill et al., Whose vote should count more: optimal integration of labels from labelers of unknown expertise,
    2009.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import GLAD
    >>> votes = [[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0], [1, 1, 1]]
    >>> consensus = GLAD().fit(votes)
    >>> consensus.predict(votes).tolist()
    [0, 1, 0, 1, 1]
    >>> consensus.abilities_.argmin()
    np.int64(2)
    """

    _parameter_constraints: ClassVar = {
        **BaseAggregator._parameter_constraints,
        "spread": [Interval(numbers.Real, 0, 3, closed="both")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        spread=1.0,
        max_iter=200,
        tol=1e-6,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.spread = spread
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        for_class, for_item = vote_matrices(votes)
        n_items, n_classes = allowed.shape
        easiness, log_weight = easiness_grid(self.spread)
        ability = np.full(len(votes.annotators), _PRIOR_MEAN)
        # before the first E-step, nothing is known of easiness
        joint = vote_shares(votes, allowed)[:, :, None] * np.exp(log_weight)

        def maximise(truth):
            nonlocal ability
            weighted = joint * weight[:, None, None]
            right = for_class.T @ weighted.reshape(n_items * n_classes, -1)
            ability = able(ability, right, for_item.T @ weighted.sum(1), easiness)
            return ability, -float(((ability - _PRIOR_MEAN) ** 2).sum()) / 2

        def expect(ability):
            nonlocal joint
            log_joint = log_joint_with_easiness(for_class, for_item, ability, easiness, log_weight)
            log_joint[~allowed] = -np.inf
            evidence = logsumexp(log_joint, axis=(1, 2))
            joint = np.exp(log_joint - evidence[:, None, None])
            return joint.sum(2), evidence

        ability, _, history, converged = run_em(joint.sum(2), maximise, expect, weight, self.max_iter, self.tol)
        warn_unless(converged, self.max_iter)
        matrices = self._matrices(np.append(ability, _PRIOR_MEAN), n_classes)
        equal = np.full(n_classes, 1 / n_classes)
        return learnt(matrices[:-1], matrices[-1], equal, history, converged) | {"abilities_": ability}

    def item_difficulty(self, X):
        """Expected difficulty of items, the negative logarithm of easiness, given the answers to them.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            As in `predict`.

        Returns
        -------
        difficulty : ndarray of shape (n_items,)
            0 for an item without votes.
        """
        check_is_fitted(self)
        log_joint = self._log_joint_with_easiness(self._votes(X))
        of_easiness = softmax(logsumexp(log_joint, axis=1), axis=1)
        return -of_easiness @ np.log(easiness_grid(self.spread)[0])

    def _matrices(self, ability, n_classes):
        """Confusion matrices (M, C, C) on items of unknown easiness."""
        easiness, log_weight = easiness_grid(self.spread)
        right = expit(ability[:, None] * easiness) @ np.exp(log_weight)
        wrong = (1 - right) / max(n_classes - 1, 1)
        if n_classes == 1:
            return np.ones((len(ability), 1, 1))
        return np.where(np.eye(n_classes, dtype=bool), right[:, None, None], wrong[:, None, None])

    def _log_joint(self, votes):
        return logsumexp(self._log_joint_with_easiness(votes), axis=2)

    def _log_joint_with_easiness(self, votes):
        n_new = len(votes.annotators) - len(self.annotators_)
        ability = np.append(self.abilities_, np.full(n_new, _PRIOR_MEAN))
        return log_joint_with_easiness(*vote_matrices(votes), ability, *easiness_grid(self.spread))
