"""Dawid and Skene's model without iterations: from moments of two or three annotators."""

import numbers
from typing import ClassVar

from .._numerics._spectral import tensor_confusion, two_class_confusion
from .._sklearn import Interval, StrOptions
from ._moments import MomentAggregator


class SpectralDawidSkene(MomentAggregator):
    """Confusion matrices from the spectrum of what annotators answer together (Parisi et al. 2014, Zhang et al. 2016).

    It has no local optima: on many items it finds the matrices wherever they are identified, which expectation and
    maximisation need not do. With few answers for each pair its estimates are rougher; `DawidSkene` with
    ``init="spectral"`` refines them. It takes annotators to be right more often than not on the whole.

    Parameters
    ----------
    method : {"auto", "eigenvector", "tensor"}, default="auto"
        "eigenvector" is for two classes: balanced accuracies are a leading eigenvector of the covariance of the
        answers, whose diagonal is imputed, and the third moment tells how frequent the classes are. "tensor"
        decomposes the third moment of three groups of annotators, and takes any number of classes. "auto" is the
        eigenvector for two classes.

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
    DawidSkene : Maximises the likelihood, from this start if asked for.
    CoupledNMF : Needs pairs of annotators only, for any number of classes.

    References
    ----------
    Parisi, Strino, Nadler and Kluger, Ranking and combining multiple predictors without labeled data, 2014.

    Jaffe, Nadler and Kluger, Estimating the accuracies of multiple classifiers without labeled data, 2015.

    Zhang, Chen, Zhou and Jordan, Spectral methods meet EM: a provably optimal algorithm for crowdsourcing, 2016.

    Examples
    --------
    The third annotator contradicts the others, and is believed to the contrary:

    >>> from sklearn_l2d.aggregation import SpectralDawidSkene
    >>> votes = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0], [1, None, 0]]
    >>> consensus = SpectralDawidSkene().fit(votes)
    >>> consensus.predict([[None, None, 0]]).tolist()
    [1]
    """

    _parameter_constraints: ClassVar = {
        **MomentAggregator._parameter_constraints,
        "method": [StrOptions({"auto", "eigenvector", "tensor"})],
        "prior": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        method="auto",
        prior=1.0,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.method = method
        self.prior = prior
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _check_settings(self, votes):
        if self.method == "eigenvector" and len(votes.classes) > 2:
            raise ValueError(
                f"method='eigenvector' has one accuracy above and one below chance, of 2 classes, but there are "
                f"{len(votes.classes)}; use 'tensor'."
            )

    def _estimate(self, answers, weight, n_classes):
        if n_classes == 2 and self.method != "tensor":
            found = two_class_confusion(answers, weight)
        else:
            found = tensor_confusion(answers, weight, n_classes)
        return *found, [], True
