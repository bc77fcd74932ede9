"""Skills of annotators by completion of their agreements, robust against some that are corrupted."""

import numbers
from typing import ClassVar

import numpy as np

from .._numerics._crowd_em import answer_matrix, count_answers_of
from .._numerics._pair_moments import pair_agreement
from .._sklearn import Interval
from ._base import BaseAggregator, learnt, warn_unless
from ._dawid_skene import spread_evenly

_LEAST = 1e-3  # skill by which an agreement is divided at least


def trimmed_mean(values, weights, own, n_trimmed):
    """Weighted mean of every row, but for some of the values above the own one, and of those below.

    Parameters
    ----------
    values, weights : ndarrays of shape (M, M)
        Where the weight is 0, the value does not count.
    own : ndarray of shape (M,)
        Own values, which stay where nothing is left.
    n_trimmed : ndarray of int of shape (M,)
        How many of the largest, and of the smallest values, are left out, if they are above, or below.
    """
    values = np.where(weights > 0, values, np.inf)  # what does not count comes last
    order = values.argsort(axis=1)
    first = np.minimum(n_trimmed, (values < own[:, None]).sum(1))
    above = ((values > own[:, None]) & (weights > 0)).sum(1)
    last = (weights > 0).sum(1) - np.minimum(n_trimmed, above)
    position = np.arange(values.shape[1])
    kept = (position >= first[:, None]) & (position < last[:, None])
    weights = np.where(kept, np.take_along_axis(weights, order, axis=1), 0.0)
    total = weights.sum(1)
    mean = (weights * np.where(kept, np.take_along_axis(values, order, axis=1), 0.0)).sum(1)
    return np.where(total > 0, mean / np.where(total > 0, total, 1.0), own)


def robust_rank_one(table, weights, trim, max_iter, tol):
    """Vector s with ``table = s s'`` off the diagonal, when some of the known entries of each row are arbitrary.

    Parameters
    ----------
    table : ndarray of shape (M, M)
        Symmetric table.
    weights : ndarray of shape (M, M)
        Evidence for its entries, 0 where they are unknown.
    trim : float
        Share of a row's known entries that may be corrupted.
    max_iter, tol : int, float
        Largest number of rounds, and largest change at which they end.

    Returns
    -------
    skill : ndarray of shape (M,)
        Up to its sign; 0 for rows without known entries.
    history : list of float
        Largest change in every round.
    """
    known = weights > 0
    n_trimmed = np.floor(trim * known.sum(1)).astype(int)
    start = np.sqrt(max(np.average(table, weights=weights), 0.01)) if known.any() else 0.0
    skill, history = np.where(known.any(1), start, 0.0), []
    while len(history) < max_iter and not (history and history[-1] <= tol):
        other = np.where(np.abs(skill) < _LEAST, _LEAST, skill)
        found = trimmed_mean(table / other, weights * other**2, skill, n_trimmed)
        # whole steps overshoot, for everybody moves at once; what is trimmed can go in circles, which small steps end
        step = (np.clip(found, -1.0, 1.0) - skill) / (2 + len(history) / 20)
        skill = skill + step
        history.append(float(np.abs(step).max()))
    return skill, history


class MMSR(BaseAggregator):
    """Skills by robust rank-one completion of agreements (Ma & Olshevsky 2020).

    Every annotator is right with one probability p, and spreads errors evenly over the C classes. With the skill
    ``s = (C p - 1) / (C - 1)``, two annotators agree with probability ``(1 - 1 / C) s_a s_b + 1 / C``, so that the
    agreements of all pairs give a table of rank one. It is completed in rounds that leave out extreme entries of each
    row: adversaries, who answer whatever they like, spoil only entries of their own. Labels follow by the log-odds of
    the annotators, with equal probabilities of the classes.

    Corrected: entries are weighted by the common items and by the square of the partner's skill, as least squares has
    it. The plain mean of the paper is ruled by partners whose skill is near zero, and by pairs with an item or two.

    A truth in `y` counts as the answers of one more annotator.

    Parameters
    ----------
    trim : float, default=0.2
        Share of an annotator's partners whose agreements may be corrupted: as many of the largest entries of a row, and
        of the smallest, are left out.

    max_iter : int, default=500
        Largest number of iterations.

    tol : float, default=1e-3
        Largest change of a skill at which the iterations end.

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
    skills_ : ndarray of shape (n_annotators,)
        1 for who is always right, 0 for who guesses, negative for who is right less often; as they are completed,
        before `confusion_matrices_` are kept from extremes.
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
        Largest change of a skill in every iteration.
    converged_ : bool
        Whether the iterations ended before their limit.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    DawidSkene : Learns whom to trust in which class, but believes everybody to be independent.
    ColluderDetector : Names the adversaries.

    References
    ----------
    Ma and Olshevsky, Adversarial crowdsourcing through robust rank-one matrix completion, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d.aggregation import MMSR
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(3, size=(400, 1))
    >>> wrong = (truth + rng.integers(1, 3, (400, 9))) % 3
    >>> X = np.where(rng.random((400, 9)) < 0.8, truth, wrong)
    >>> X[:, 0] = rng.integers(3, size=400)
    >>> MMSR().fit(X).annotator_accuracy_.round(1)
    array([0.4, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8])
    """

    _parameter_constraints: ClassVar = {
        **BaseAggregator._parameter_constraints,
        "trim": [Interval(numbers.Real, 0, 0.5, closed="left")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        trim=0.2,
        max_iter=500,
        tol=1e-3,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.trim = trim
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        n_annotators, n_classes = len(votes.annotators), len(votes.classes)
        common, alike = pair_agreement(votes, weight)
        truth = allowed * (weight * (allowed.sum(1) == 1) * (n_classes > 1))[:, None]  # the row of one annotator more
        seen = count_answers_of(answer_matrix(votes), truth, n_annotators)
        with_truth, right = seen.sum((1, 2)), np.einsum("acc->a", seen)
        common = np.block([[common, with_truth[:, None]], [with_truth[None], truth.sum()[None, None]]])
        alike = np.block([[alike, right[:, None]], [right[None], truth.sum()[None, None]]])
        np.fill_diagonal(common, 0.0)
        share = alike / np.where(common > 0, common, 1.0)
        odds = max(n_classes - 1, 1)
        skill, history = robust_rank_one((n_classes * share - 1) / odds, common, self.trim, self.max_iter, self.tol)
        direction = skill[-1] if with_truth.any() else skill.sum()
        skill = skill[:-1] if direction >= 0 else -skill[:-1]
        converged = history[-1] <= self.tol
        warn_unless(converged, self.max_iter)
        least = 1 / (votes.n_answers + 2)  # nobody is surer than one error in more than all answers
        right = np.clip((odds * skill + 1) / n_classes, least, 1 - least) if n_classes > 1 else np.ones(n_annotators)
        uniform = np.full((n_classes, n_classes), 1 / n_classes)
        confusion = spread_evenly(right[:, None], (1 - right[:, None]) / odds, n_classes)
        return {"skills_": skill, **learnt(confusion, uniform, uniform[0], history, converged)}
