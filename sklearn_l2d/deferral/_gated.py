"""What all EM deferrers share: their parameters, learning from feedback, and other coverages."""

import numbers
from typing import ClassVar

from sklearn.utils.validation import check_is_fitted

from .._sklearn import HasMethods, Interval, StrOptions, fit_context
from .._torch._net import OPTIMIZER_NAMES
from .._torch._target_net import predict_log_proba
from ..annotations import split_target
from ._base import BaseDeferrer
from ._fitting import FittingMixin
from ._roster import RosterMixin
from ._training import GateTrainingMixin


class GatedDeferrer(GateTrainingMixin, FittingMixin, RosterMixin, BaseDeferrer):
    """Base of the deferrers with a gate that is trained by EM; they differ in who belongs to which target."""

    _parameter_constraints: ClassVar = {
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "cv": [Interval(numbers.Integral, 2, None, closed="left")],
        "coverage": [Interval(numbers.Real, 0, 1, closed="both"), "array-like", None],
        "workload": ["array-like", dict, None],
        "annotation_smoothing": [Interval(numbers.Real, 0, 0.5, closed="neither")],
        "consultation_cost": [numbers.Real, "array-like", dict, None],
        "error_cost": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "missing_label": "no_validation",
        "module": [callable, None],
        "hidden_layer_sizes": ["array-like"],
        "optimizer": [StrOptions(set(OPTIMIZER_NAMES)), callable],
        "lr": [Interval(numbers.Real, 0, None, closed="neither")],
        "momentum": [Interval(numbers.Real, 0, 1, closed="left")],
        "weight_decay": [Interval(numbers.Real, 0, None, closed="left")],
        "batch_size": [Interval(numbers.Integral, 1, None, closed="left")],
        "max_epochs": [Interval(numbers.Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "device": [str],
        "dtype": [StrOptions({"float32", "float64"})],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        classifier=None,
        cv=5,
        coverage=None,
        workload=None,
        annotation_smoothing=0.001,
        consultation_cost=None,
        error_cost=None,
        class_weight=None,
        missing_label=None,
        module=None,
        hidden_layer_sizes=(32,),
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        weight_decay=0.01,
        batch_size=128,
        max_epochs=60,
        warm_start=False,
        device="auto",
        dtype="float32",
        verbose=0,
        random_state=None,
    ):
        self.classifier = classifier
        self.cv = cv
        self.coverage = coverage
        self.workload = workload
        self.annotation_smoothing = annotation_smoothing
        self.consultation_cost = consultation_cost
        self.error_cost = error_cost
        self.class_weight = class_weight
        self.missing_label = missing_label
        self.module = module
        self.hidden_layer_sizes = hidden_layer_sizes
        self.optimizer = optimizer
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.warm_start = warm_start
        self.device = device
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def partial_fit(self, X, y, annotations=None, classes=None):
        """Let the gate and the profiles learn from feedback that arrives later, one epoch per call.

        Classifier, groups and offsets stay; call `recalibrate` after much feedback.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples,)
            True labels.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            What the experts answered; the columns of a DataFrame are matched by name.
        classes : array-like of shape (n_classes,), default=None
            All classes; in the first call, which is a `fit`, where `y` does not show them all.

        Returns
        -------
        self : object
            The deferrer, one epoch further.
        """
        y, annotations = split_target(y, annotations)
        if not self.__sklearn_is_fitted__():
            return self._fit_draft(X, y, annotations, None, () if classes is None else classes)
        return self._learn_more(X, y, annotations)

    def recalibrate(self, X_unlabeled):
        """Move the offsets so that the hard shares meet the bounds on other items; the gate stays as it is.

        Parameters
        ----------
        X_unlabeled : array-like of shape (n_unlabeled, n_features)
            Items like those to come.

        Returns
        -------
        self : object
            The deferrer with new offsets.
        """
        check_is_fitted(self)
        items = self._check_items(X_unlabeled)
        if self.n_experts_:
            self._calibrate(predict_log_proba(self.gate_, items))
        return self

    def coverage_path(self, coverages, X_unlabeled=None):
        """Deferrers at several coverages that share everything but the offsets; a gate fitted at 0.5 suits best.

        Parameters
        ----------
        coverages : array-like of float
            Requested shares of the classifier.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Items on which the shares are calibrated. None uses the margins of the calibration rows of `fit`; bounds
            on experts or groups need items, and so do groups that have lost everybody.

        Returns
        -------
        deferrers : list
            Fitted copies.
        """
        check_is_fitted(self)
        coverages = [float(c) for c in coverages]
        outside = [c for c in coverages if not 0 <= c <= 1]
        if outside:
            raise ValueError(f"coverages holds {outside}, outside of [0, 1]; they are shares of the items.")
        if self.n_experts_ == 0:
            return [self._copy_with(coverage=c) for c in coverages]
        if X_unlabeled is not None:
            return [self._copy_with(coverage=c).recalibrate(X_unlabeled) for c in coverages]
        if self.workload is not None or self.cluster_workload is not None or (self.selection_.sum(1) <= 0).any():
            raise ValueError(
                "X_unlabeled is None, but bounds on experts or groups, and groups that have lost everybody, are "
                "calibrated on items; pass some."
            )
        return [self._copy_with(coverage=c, **self._shifted(c)) for c in coverages]
