"""Confusion matrices that explain what all pairs of annotators answer."""

import numbers
from typing import ClassVar

from .._numerics._co_labels import first_moments, pair_moments
from .._numerics._pair_factors import coupled_nmf
from .._sklearn import Interval
from ._base import warn_unless
from ._moments import MomentAggregator


class CoupledNMF(MomentAggregator):
    """Confusion matrices as coupled factors of all pairs of annotators (Ibrahim et al. 2019).

    The joint distribution of the answers of two annotators is a product of their matrices and the class prior; all of
    them are fitted together, by the Kullback-Leibler divergence and mirror descent, from the start of `MultiSPA`. Pairs
    tell less than whole rows of answers, but are many where items are few for each person. Two classes are identified
    by triples of annotators only, for which `SpectralDawidSkene` is made: pairs leave a choice there.

    Parameters
    ----------
    min_answers : float, default=5.0
        Weight of the items on which somebody else gave an answer, below which what that answer tells is left out: the
        corners of few answers are noise.

    prior : float, default=1.0
        Pseudo-count of every answer in each estimated distribution, beside the answers that it is made of.

    max_iter : int, default=200
        Largest number of iterations.

    tol : float, default=1e-6
        Gain of the objective, in nats per pair of answers, below which the iterations end.

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
    MultiSPA : Its start.
    SymmetricNMF : Takes all pairs for one matrix, whose missing blocks it imputes.

    References
    ----------
    Ibrahim, Fu, Kargas and Huang, Crowdsourcing via pairwise co-occurrences: identifiability and algorithms, 2019.

    Kunstner, Kumar and Schmidt, Homeomorphic-invariance of EM: non-asymptotic convergence in KL divergence for
    exponential families via mirror descent, 2021.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import CoupledNMF
    >>> votes = [
    ...     [0, 0, 1, 0],
    ...     [1, 1, 1, 1],
    ...     [0, 0, 0, 0],
    ...     [1, 1, 0, 1],
    ...     [0, 0, 0, 0],
    ...     [1, 1, 1, 1],
    ... ] * 5
    >>> consensus = CoupledNMF().fit(votes)
    >>> consensus.predict([[None, 1, 0, None]]).tolist()
    [1]
    >>> consensus.annotator_accuracy_.round(1)
    array([0.9, 0.9, 0.6, 0.9])
    """

    _parameter_constraints: ClassVar = {
        **MomentAggregator._parameter_constraints,
        "min_answers": [Interval(numbers.Real, 0, None, closed="left")],
        "prior": [Interval(numbers.Real, 0, None, closed="left")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        min_answers=5.0,
        prior=1.0,
        max_iter=200,
        tol=1e-6,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.min_answers = min_answers
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _estimate(self, answers, weight, n_classes):
        pairs, moments = pair_moments(answers, weight, n_classes), first_moments(answers, weight, n_classes)
        found = coupled_nmf(pairs, moments, self.min_answers, self.max_iter, self.tol)
        warn_unless(found[-1], self.max_iter)
        return found
