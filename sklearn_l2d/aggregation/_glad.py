"""GLAD: able annotators and difficult items (Whitehill et al. 2009)."""

import numbers
from typing import ClassVar

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.sparse import csr_array
from scipy.special import expit, log_expit, logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from .._numerics._crowd_em import posterior_of, run_em, vote_shares
from .._sklearn import Interval, StrOptions
from ._base import BaseAggregator, learnt, warn_unless

_NODES = 9  # of the quadrature over difficulties
_STEPS = 5  # of Newton's method in an M-step, at most
_STEPS_ALONE = 50  # for the easiness of items whose annotators are known
_STILL = 1e-6  # step of Newton's method after which a variable rests
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


def climb(place, evaluate, n_steps):
    """Maximise a sum of functions of one variable each, by Newton's method; no step makes any of them worse.

    Parameters
    ----------
    place : ndarray of shape (m,)
        Start.
    evaluate : callable
        ``evaluate(place)`` returns the functions (m,), their slopes (m,), and how much they bend (m,), positive.
    n_steps : int
        Number of steps at most.

    Returns
    -------
    place : ndarray of shape (m,)
        Where every variable came to rest, or was after the last step.
    """
    value, slope, bend = evaluate(place)
    moving = np.ones(len(place), dtype=bool)
    for _ in range(n_steps):
        step = np.where(moving, slope / bend, 0.0)
        for _ in range(20):  # a full step may lead too far where few answers are far from expectation
            after, slope, bend = evaluate(place + step)
            worse = after < value - 1e-12 * (1 + np.abs(value))
            if not worse.any():
                break
            step = np.where(worse, step / 2, step)
        place, value = np.where(worse, place, place + step), np.where(worse, value, after)
        moving &= ~worse & (np.abs(step) > _STILL)  # each rests on its own: an item alone gets what it gets in a batch
        if not moving.any():
            break
    return place


def able(ability, annotator, easiness, right, answered):
    """Most probable abilities (M,), by Newton's method from those before.

    Parameters
    ----------
    ability : ndarray of shape (M,)
        Start.
    annotator : ndarray of int of shape (K,)
        Whose the answers are.
    easiness : ndarray of shape (K,)
        Of the items that were answered.
    right, answered : ndarrays of shape (K,)
        Expected number of right answers to such items, and number of answers.
    """

    def evaluate(ability):
        logit, away = ability[annotator] * easiness, ability - _PRIOR_MEAN
        proba = expit(logit)
        likely = np.bincount(annotator, right * logit + answered * log_expit(-logit), len(ability))
        slope = np.bincount(annotator, (right - answered * proba) * easiness, len(ability))
        bend = np.bincount(annotator, answered * proba * (1 - proba) * easiness**2, len(ability))
        return likely - away**2 / 2, slope - away, bend + 1

    return climb(ability, evaluate, _STEPS)


def with_easiness(votes, allowed, ability, spread, deviation=None, n_steps=_STEPS_ALONE):
    """Most probable easiness of items, each by its own answers and the prior, and what follows from it.

    Parameters
    ----------
    votes : Votes
        Answers to n items by M annotators, with C classes.
    allowed : ndarray of bool of shape (n, C)
        Classes that an item may have: one where its truth is known.
    ability : ndarray of shape (M,)
        Of the annotators.
    spread : float
        Standard deviation of the logarithm of easiness.
    deviation : ndarray of shape (n,), default=None
        Start. None is the best point of a coarse grid, since there may be several peaks.
    n_steps : int, default=50
        Number of steps of Newton's method at most.

    Returns
    -------
    deviation : ndarray of shape (n,)
        Logarithm of easiness, in standard deviations of its prior.
    truth : ndarray of shape (n, C)
        Distribution of the truth.
    evidence : ndarray of shape (n,)
        Log-probability of the answers, and of the easiness relative to that of the middle of its prior.
    """
    n_items, n_classes = allowed.shape
    log_others, cell = np.log(max(n_classes - 1, 1)), votes.item * np.int64(n_classes) + votes.label

    def of_classes(values):  # sums (n, C) over the answers for a class
        return np.bincount(cell, values, n_items * n_classes).reshape(n_items, n_classes)

    def expect(deviation):
        logit = ability[votes.annotator] * np.exp(spread * deviation)[votes.item]
        wrong = np.bincount(votes.item, log_expit(-logit) - log_others, n_items)
        truth, evidence = posterior_of(of_classes(logit + log_others), allowed)
        return logit, truth, evidence + wrong - np.log(n_classes) - deviation**2 / 2

    def evaluate(deviation):
        logit, truth, evidence = expect(deviation)
        proba, growth = expit(logit), spread * logit
        of_class = of_classes(growth)
        mean = (truth * of_class).sum(1)
        unsure = (truth * (of_class - mean[:, None]) ** 2).sum(1)
        surplus = mean - np.bincount(votes.item, proba * growth, n_items)
        if_sure = np.bincount(votes.item, proba * (1 - proba) * growth**2, n_items) + 1
        slope, bend = surplus - deviation, if_sure - spread * surplus - unsure
        # far from a peak it may bend the other way; and no step is longer than 1
        return evidence, slope, np.maximum(np.where(bend > 0, bend, if_sure), np.abs(slope))

    if deviation is None:
        grid, _ = hermegauss(_NODES)
        log_joint = log_joint_with_easiness(*vote_matrices(votes), ability, np.exp(spread * grid), -(grid**2) / 2)
        log_joint[~allowed] = -np.inf
        deviation = grid[logsumexp(log_joint, axis=1).argmax(1)]
    deviation = climb(deviation, evaluate, n_steps)
    return deviation, *expect(deviation)[1:]


def log_prior(ability):
    """Of abilities, without constants."""
    return -float(((ability - _PRIOR_MEAN) ** 2).sum()) / 2


class GLAD(BaseAggregator):
    """Annotators of different ability and items of different difficulty (Whitehill et al. 2009).

    An annotator of ability a gives the right answer to an item of easiness b with probability ``1 / (1 + exp(-a b))``,
    and errors are evenly spread over the other classes. Ability has a normal prior around 1 with variance 1, the
    logarithm of easiness one around 0. The difficulty of an item follows from its own answers, so that new items are
    labelled as those of the fit.

    Parameters
    ----------
    difficulty : {"integrated", "estimated"}, default="integrated"
        What is done about the unknown difficulty of an item: "integrated" sums over a grid of it, "estimated" takes
        the most probable one together with the abilities, as the paper does. Their labels are nearly the same, and
        right equally often; but where few answers tell the difficulty, taking it for known makes abilities too high
        and labels too certain, so that the probabilities of "integrated" are better. Take "estimated" for comparisons
        with the paper and other implementations of it.

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

    Notes
    -----
    With "estimated", `history_` has the log-likelihood of the answers given the most probable difficulties, together
    with the priors of both. `score` sums over difficulty all the same: difficulties that were fitted to the very
    answers which they explain would make it too high.

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
        "difficulty": [StrOptions({"integrated", "estimated"})],
        "spread": [Interval(numbers.Real, 0, 3, closed="both")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        difficulty="integrated",
        spread=1.0,
        max_iter=200,
        tol=1e-6,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.difficulty = difficulty
        self.spread = spread
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        if self.difficulty == "estimated":
            steps = self._steps_with_estimates(votes, allowed, weight)
        else:
            steps = self._steps_with_sums(votes, allowed, weight)
        start = vote_shares(votes, allowed)
        ability, _, history, converged = run_em(start, *steps, weight, self.max_iter, self.tol)
        warn_unless(converged, self.max_iter)
        n_classes = len(votes.classes)
        matrices = self._matrices(np.append(ability, _PRIOR_MEAN), n_classes)
        equal = np.full(n_classes, 1 / n_classes)
        return learnt(matrices[:-1], matrices[-1], equal, history, converged) | {"abilities_": ability}

    def _steps_with_sums(self, votes, allowed, weight):
        """M-step and E-step over truth and easiness together."""
        for_class, for_item = vote_matrices(votes)
        n_items, n_classes = allowed.shape
        easiness, log_weight = easiness_grid(self.spread)
        ability = np.full(len(votes.annotators), _PRIOR_MEAN)
        places = np.repeat(np.arange(len(ability)), len(easiness)), np.tile(easiness, len(ability))
        # before the first E-step, nothing is known of easiness
        joint = vote_shares(votes, allowed)[:, :, None] * np.exp(log_weight)

        def maximise(truth):
            nonlocal ability
            weighted = joint * weight[:, None, None]
            right = for_class.T @ weighted.reshape(n_items * n_classes, -1)
            answered = for_item.T @ weighted.sum(1)
            ability = able(ability, *places, right.ravel(), answered.ravel())
            return ability, log_prior(ability)

        def expect(ability):
            nonlocal joint
            log_joint = log_joint_with_easiness(for_class, for_item, ability, easiness, log_weight)
            log_joint[~allowed] = -np.inf
            evidence = logsumexp(log_joint, axis=(1, 2))
            joint = np.exp(log_joint - evidence[:, None, None])
            return joint.sum(2), evidence

        return maximise, expect

    def _steps_with_estimates(self, votes, allowed, weight):
        """M-step and E-step over the truth, each with the most probable easiness of the items so far."""
        ability, deviation = np.full(len(votes.annotators), _PRIOR_MEAN), None

        def maximise(truth):
            nonlocal ability
            easiness = np.ones(len(votes)) if deviation is None else np.exp(self.spread * deviation)
            answers = easiness[votes.item], truth[votes.item, votes.label], weight[votes.item]
            ability = able(ability, votes.annotator, *answers)
            return ability, log_prior(ability)

        def expect(ability):
            nonlocal deviation
            # a step is enough, since the next round has another
            deviation, truth, evidence = with_easiness(votes, allowed, ability, self.spread, deviation, 1)
            return truth, evidence

        return maximise, expect

    def item_difficulty(self, X):
        """Difficulty of items, the negative logarithm of easiness, given the answers to them.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            As in `predict`.

        Returns
        -------
        difficulty : ndarray of shape (n_items,)
            The expected one, or with ``difficulty="estimated"`` the most probable one. 0 for an item without votes.
        """
        check_is_fitted(self)
        votes = self._votes(X)
        if self.difficulty == "estimated":
            return -self.spread * self._with_easiness(votes)[0]
        log_joint = self._log_joint_with_easiness(votes)
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
        return log_joint_with_easiness(*vote_matrices(votes), self._abilities(votes), *easiness_grid(self.spread))

    def _proba(self, votes):
        if self.difficulty == "estimated":
            return self._with_easiness(votes)[1]
        return super()._proba(votes)

    def _with_easiness(self, votes):
        allowed = np.ones((len(votes), len(self.classes_)), dtype=bool)
        return with_easiness(votes, allowed, self._abilities(votes), self.spread)

    def _abilities(self, votes):
        """Abilities of the annotators of the fit, and of new ones."""
        return np.append(self.abilities_, np.full(len(votes.annotators) - len(self.annotators_), _PRIOR_MEAN))
