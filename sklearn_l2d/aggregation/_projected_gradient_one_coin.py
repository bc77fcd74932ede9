"""One accuracy each, from how often pairs of annotators agree."""

import numbers
from typing import ClassVar

import numpy as np

from .._numerics._co_labels import in_odd_circles, pair_moments
from .._numerics._spectral import first_rank_one, towards_the_majority
from .._sklearn import Interval
from ._base import warn_unless
from ._moments import MomentAggregator


def descend(pairs, agreement, lowest, n_annotators, max_iter, tol):
    """Skills (M,) between `lowest` and 1 whose products fit the agreement of pairs, by projected gradient descent.

    Parameters
    ----------
    pairs : PairMoments
        Pairs, in both orders.
    agreement : ndarray of shape (P,)
        Agreement beyond chance: 1 where they always agree, 0 where as by chance.
    lowest : float
        Skill of somebody who is always wrong.
    n_annotators : int
        Number M of annotators.
    max_iter : int
        Largest number of steps.
    tol : float
        Share of the objective that a step must win; else they end.

    Returns
    -------
    skill : ndarray of shape (M,)
        Mostly positive in each part that shared items link.
    history : list of float
        Weighted mean square of what is left, negative, at every step.
    converged : bool
        Whether the steps ended before `max_iter`.
    """
    first, second, weight = pairs.first, pairs.second, pairs.shared / pairs.shared.sum()
    busy = np.maximum(np.bincount(first, weight, n_annotators), 1e-300)

    def loss(skill):
        wrong = skill[first] * skill[second] - agreement
        return float(weight @ wrong**2), np.bincount(first, weight * wrong * skill[second], n_annotators) / busy

    skill = np.clip(first_rank_one(first, second, agreement, weight, n_annotators), lowest, 1)
    (value, gradient), step, history = loss(skill), 1.0, []
    for _ in range(max_iter):
        while True:
            moved = np.clip(skill - step * gradient, lowest, 1)
            now, slope = loss(moved)
            if now <= value or step < 1e-9:
                break
            step /= 2
        skill, gradient, gain, value = moved, slope, value - now, now
        history.append(-value)
        step *= 1.5
        if gain <= tol * value or value < 1e-15:
            return towards_the_majority(skill, first, second, weight), history, True
    return towards_the_majority(skill, first, second, weight), history, False


class ProjectedGradientOneCoin(MomentAggregator):
    """One accuracy each, by projected gradient descent on the agreement of pairs (Ma et al. 2018).

    How often two annotators agree, beyond chance, is the product of their skills, whatever the class prior is: a
    matrix of rank one of which the pairs with shared items are known. They may be few, as long as an odd circle of
    annotators links them. Errors are taken to be spread evenly over the other classes.

    Parameters
    ----------
    prior : float, default=1.0
        Pseudo-count of every answer in each estimated distribution, beside the answers that it is made of.

    max_iter : int, default=200
        Largest number of iterations.

    tol : float, default=1e-6
        Share of what is left of the squared error below whose gain the iterations end.

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
    identified_ : ndarray of bool of shape (n_annotators,)
        Whose matrices are identified; the others answer as `prior_confusion_` has it.
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
    DawidSkene : ``model="one_coin"`` maximises the likelihood of the same model.
    SpectralDawidSkene : Learns an accuracy for each class.

    References
    ----------
    Ma, Olshevsky, Saligrama and Szepesvari, Gradient descent for sparse rank-one matrix completion for crowd-sourced
    aggregation of sparsely interacting workers, 2018.

    Examples
    --------
    The last annotator contradicts the others:

    >>> from sklearn_l2d.aggregation import ProjectedGradientOneCoin
    >>> votes = [[0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1]]
    >>> consensus = ProjectedGradientOneCoin().fit(votes)
    >>> consensus.predict([[0, None, 1], [None, None, 0]]).tolist()
    [0, 1]
    """

    _parameter_constraints: ClassVar = {
        **MomentAggregator._parameter_constraints,
        "prior": [Interval(numbers.Real, 0, None, closed="left")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        prior=1.0,
        max_iter=200,
        tol=1e-6,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _estimate(self, answers, weight, n_classes):
        pairs, n_annotators = pair_moments(answers, weight, n_classes), answers.shape[1] // n_classes
        identified = in_odd_circles(pairs.first, pairs.second, n_annotators)
        if not identified.any():
            return np.empty((n_annotators, n_classes, n_classes)), identified, None, [], True
        agreement = (n_classes * np.einsum("pcc->p", pairs.joint) - 1) / (n_classes - 1)
        skill, history, converged = descend(
            pairs, agreement, -1 / (n_classes - 1), n_annotators, self.max_iter, self.tol
        )
        warn_unless(converged, self.max_iter)
        guess = np.full((n_classes, n_classes), 1 / n_classes)
        confusion = guess + skill[:, None, None] * (np.eye(n_classes) - guess)
        return confusion, identified, None, history, converged
