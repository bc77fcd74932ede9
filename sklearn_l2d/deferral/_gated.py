"""What all EM deferrers share: their parameters, learning from feedback, and other coverages."""

import numbers
from typing import ClassVar

from .._net_parameters import NET_CONSTRAINTS
from .._sklearn import HasMethods, Interval, StrOptions, fit_context
from ..annotations import split_target
from ._base import BaseDeferrer
from ._fitting import FittingMixin
from ._roster import RosterMixin
from ._training import GateTrainingMixin


class GatedDeferrer(GateTrainingMixin, FittingMixin, RosterMixin, BaseDeferrer):
    """Base of the deferrers with a gate that is trained by EM; they differ in who belongs to which target."""

    _parameter_constraints: ClassVar = {
        **NET_CONSTRAINTS,
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "cv": [Interval(numbers.Integral, 2, None, closed="left")],
        "coverage": [Interval(numbers.Real, 0, 1, closed="both"), "array-like", None],
        "workload": ["array-like", dict, None],
        "prior_weight": [Interval(numbers.Real, 0, None, closed="left")],
        "annotation_smoothing": [Interval(numbers.Real, 0, 0.5, closed="neither")],
        "consultation_cost": [numbers.Real, "array-like", dict, None],
        "error_cost": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "missing_label": "no_validation",
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        classifier=None,
        cv=5,
        coverage=None,
        workload=None,
        prior_weight=5.0,
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
        self.prior_weight = prior_weight
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
