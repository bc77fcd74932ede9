"""Confusion matrices from triples of annotators."""

import numbers
from typing import ClassVar

import numpy as np

from .._numerics._co_labels import dominant_order, first_moments, in_odd_circles, pair_moments, triple_moments
from .._numerics._coupled_tensors import choose_triples, coupled_tensors
from .._numerics._spectral import tensor_confusion
from .._sklearn import Interval
from ._base import warn_unless
from ._moments import MomentAggregator

_N_EACH = 10  # least number of triples for each annotator


class TensorADMM(MomentAggregator):
    """Confusion matrices as coupled factors of triples of annotators (Traganitis et al. 2018).

    The joint distribution of the answers of three annotators is a tensor whose rank is the number of classes; all of
    them are fitted together by least squares, each factor by the alternating direction method of multipliers, from the
    tensor start of `SpectralDawidSkene`. Triples identify the matrices where pairs leave a choice, but there are many:
    beyond `max_triples` some are drawn, among people who share many items, and too many annotators are refused.

    Parameters
    ----------
    max_triples : int, default=2000
        Largest number of triples; at least ten for each annotator must be left.

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
    SpectralDawidSkene : Its start, from three groups of annotators.
    CoupledNMF : Needs pairs only.

    References
    ----------
    Traganitis, Pagès-Zamora and Giannakis, Blind multiclass ensemble classification, 2018.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import TensorADMM
    >>> votes = [
    ...     [0, 0, 1, 0],
    ...     [1, 1, 1, 1],
    ...     [0, 0, 0, 0],
    ...     [1, 1, 0, 1],
    ...     [0, 0, 0, 0],
    ...     [1, 1, 1, 1],
    ... ] * 5
    >>> consensus = TensorADMM().fit(votes)
    >>> consensus.predict([[None, 1, 0, None]]).tolist()
    [1]
    """

    _parameter_constraints: ClassVar = {
        **MomentAggregator._parameter_constraints,
        "max_triples": [Interval(numbers.Integral, 1, None, closed="left")],
        "prior": [Interval(numbers.Real, 0, None, closed="left")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        max_triples=2000,
        prior=1.0,
        max_iter=200,
        tol=1e-6,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.max_triples = max_triples
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _check_settings(self, votes):
        n_annotators = len(votes.annotators)
        n_all = n_annotators * (n_annotators - 1) * (n_annotators - 2) // 6
        if n_all > self.max_triples < _N_EACH * n_annotators:
            raise ValueError(
                f"TensorADMM of {n_annotators} annotators has {n_all} triples, of which max_triples={self.max_triples} "
                f"leave fewer than {_N_EACH} for each; raise max_triples, or fit it to the columns of the busiest "
                "annotators."
            )

    def _estimate(self, answers, weight, n_classes):
        pairs, moments = pair_moments(answers, weight, n_classes), first_moments(answers, weight, n_classes)
        n_annotators = len(moments)
        shared = np.zeros((n_annotators, n_annotators))
        shared[pairs.first, pairs.second] = pairs.shared
        triples = choose_triples(shared, self.max_triples)
        n_shared, joint = triple_moments(answers, weight, triples, n_classes)
        triples, n_shared, joint = triples[n_shared > 0], n_shared[n_shared > 0], joint[n_shared > 0]
        identified = np.bincount(triples.ravel(), minlength=n_annotators) > 0
        identified &= in_odd_circles(pairs.first, pairs.second, n_annotators)
        start, sure, class_prior = tensor_confusion(answers, weight, n_classes)
        if not identified.any():
            return start, identified, None, [], True
        start[~sure] += (np.eye(n_classes) - start[~sure]) / 2
        class_prior = moments.sum(0) / moments.sum() if class_prior is None else class_prior
        confusion, class_prior, history, converged = coupled_tensors(
            triples, n_shared, joint, start, class_prior, self.max_iter, self.tol
        )
        warn_unless(converged, self.max_iter)
        order = dominant_order(confusion, moments.sum(1) * identified)
        return confusion[:, order], identified, class_prior[order], history, converged
