"""Coupled cross-entropy with annotators who are taken to err as much as the answers allow."""

import numbers
from typing import ClassVar

from .._sklearn import Interval
from .._torch._annotator_modules import AnnotatorNet
from ._base import ConfusionNetClassifier


def diagonals(log_confusion):
    """Diagonal entries (..., C) of matrices (..., C, C) of log-probabilities, as probabilities."""
    return log_confusion.diagonal(dim1=-2, dim2=-1).exp()


class TraceNet(AnnotatorNet):
    """Net whose loss has a `trace_weight` on the mean diagonal entry of the confusion matrices."""

    def penalty(self, log_f, learnt):
        right = diagonals(learnt)
        return self.trace_weight * right.sum() / max(1, right.numel())


class TraceRegClassifier(ConfusionNetClassifier):
    """Coupled cross-entropy with a penalty on the annotators' accuracy (Tanno et al. 2019).

    The loss is that of `CCEMClassifier` and ``weight`` times the mean diagonal entry of the confusion matrices: of the
    solutions that explain the answers equally well, that one is sought whose annotators err most, so that the
    classifier errs least. Where the average annotator is right more often than not in every class, that is the truth
    (crowd tutorial, part II). The start matters, since the penalty alone would take any annotator for a bad one.


    Parameters
    ----------
    weight : float, default=0.01
        Weight of the mean diagonal entry, at least 0; with 0, the classifier is `CCEMClassifier`.

    hidden_layer_sizes, module, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the net, as in `NetClassifier`.

    init : {"majority", "dawid_skene"} or float, default="majority"
        Where the annotators start: at their agreement with the majority, or with the consensus of Dawid and Skene,
        which goes astray where people have few votes; a number between 0 and 1 is everybody's accuracy.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    device, dtype, verbose, random_state
        As in `NetClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    confusion_matrices_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability of an answer (last axis) given the true class, of every annotator.
    n_iter_ : int
        Number of epochs of the net.
    history_ : list of dict
        Phase, loss and duration (seconds) of every epoch.
    net_ : object
        The trained net; its interface is private.
    device_ : str
        Device of the net.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    CCEMClassifier : Without the penalty.
    InstanceDependentCrowdNet : With matrices that depend on the item.

    References
    ----------
    Tanno, Saeedi, Sankaranarayanan, Alexander and Silberman, Learning from noisy labels by regularized estimation of
    annotator confusion, CVPR 2019.

    Examples
    --------
    >>> from sklearn_l2d.crowd import TraceRegClassifier
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> model = TraceRegClassifier(max_epochs=20, random_state=0)
    >>> model.fit(crowd.X_identified, annotations=crowd.annotations).score(
    ...     crowd.X_test, crowd.y_test
    ... ) > 0.8
    True
    """

    _parameter_constraints: ClassVar = {
        **ConfusionNetClassifier._parameter_constraints,
        "weight": [Interval(numbers.Real, 0, None, closed="left")],
    }
    _kind = TraceNet

    def __init__(
        self,
        weight=0.01,
        *,
        hidden_layer_sizes=(64,),
        module=None,
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        weight_decay=0.001,
        batch_size=64,
        max_epochs=60,
        init="majority",
        missing_label=None,
        unlabeled_label=None,
        device="auto",
        dtype="float32",
        verbose=0,
        random_state=None,
    ):
        super().__init__(
            hidden_layer_sizes,
            module=module,
            optimizer=optimizer,
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
            batch_size=batch_size,
            max_epochs=max_epochs,
            init=init,
            missing_label=missing_label,
            unlabeled_label=unlabeled_label,
            device=device,
            dtype=dtype,
            verbose=verbose,
            random_state=random_state,
        )
        self.weight = weight

    def _context(self, votes):
        return {"trace_weight": self.weight}
