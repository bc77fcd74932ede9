"""Confusion matrices by successive projection of what pairs of annotators answer."""

import numbers
from typing import ClassVar

from .._numerics._co_labels import pair_moments
from .._numerics._pair_factors import multi_spa
from .._sklearn import Interval
from ._moments import MomentAggregator


class MultiSPA(MomentAggregator):
    """Confusion matrices from pairs of annotators, by successive projection (Ibrahim et al. 2019).

    Given the answer of somebody else, an annotator's answers are a mixture of the rows of the confusion matrix; where
    that other person is sure of a class, they are one row. The corners of all mixtures are found one after the other,
    without iterations and without starts. Exact where there is somebody sure for every class; else `CoupledNMF` goes
    on from here. The classes of each annotator are aligned alone, so that nobody is taken to be wrong on purpose.

    Parameters
    ----------
    min_answers : float, default=5.0
        Weight of the items on which somebody else gave an answer, below which what that answer tells is left out: the
        corners of few answers are noise.

    prior : float, default=1.0
        Pseudo-count of every answer in each estimated distribution, beside the answers that it is made of.

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
    CoupledNMF : Fits all pairs together.
    SpectralDawidSkene : Needs nobody who is sure.

    References
    ----------
    Ibrahim, Fu, Kargas and Huang, Crowdsourcing via pairwise co-occurrences: identifiability and algorithms, 2019.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import MultiSPA
    >>> votes = [
    ...     [0, 0, 1, 0],
    ...     [1, 1, 1, 1],
    ...     [0, 0, 0, 0],
    ...     [1, 1, 0, 1],
    ...     [0, 0, 0, 0],
    ...     [1, 1, 1, 1],
    ... ] * 5
    >>> consensus = MultiSPA().fit(votes)
    >>> consensus.predict([[None, 1, 0, None]]).tolist()
    [1]
    >>> consensus.annotator_accuracy_.round(1)
    array([0.9, 0.9, 0.6, 0.9])
    """

    _parameter_constraints: ClassVar = {
        **MomentAggregator._parameter_constraints,
        "min_answers": [Interval(numbers.Real, 0, None, closed="left")],
        "prior": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        min_answers=5.0,
        prior=1.0,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.min_answers = min_answers
        self.prior = prior
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _estimate(self, answers, weight, n_classes):
        pairs = pair_moments(answers, weight, n_classes)
        found = multi_spa(pairs, answers.shape[1] // n_classes, n_classes, self.min_answers)
        return *found, None, [], True
