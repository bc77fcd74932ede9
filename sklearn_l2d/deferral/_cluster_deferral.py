"""Learning to defer to clusters of experts."""

import numbers
from typing import ClassVar

from sklearn.utils.validation import check_is_fitted

from .._sklearn import HasMethods, Interval, StrOptions, fit_context
from .._torch._net import OPTIMIZER_NAMES
from .._torch._target_net import predict_log_proba
from ..annotations import split_target
from ._base import BaseDeferrer
from ._roster import RosterMixin
from ._training import GateTrainingMixin


class ClusterDeferral(GateTrainingMixin, RosterMixin, BaseDeferrer):
    """Let a gate decide per item: the classifier, or a group of experts who are right in the same places.

    The gate is the upper level of a mixture of experts whose lower level draws a member of the group
    (L2D-Clusters, section 3.3). It is trained by exact EM on a small set that experts have labelled, under bounds on
    what the classifier and the experts decide, and its offsets are then calibrated so that the decisions themselves
    meet the bounds. Experts may skip items, leave, and join later without retraining.

    `predict` and `predict_proba` are the classifier alone; `predict_deferral`, `assign_experts`, `predict_team` and
    `score` are the team.

    Parameters
    ----------
    clusterer : AnnotatorLDA, FrozenEstimator or None, default=None
        Finds the behaviours of the experts. An `AnnotatorLDA` is cloned and fitted to the counts of the annotations;
        ``FrozenEstimator(lda)`` brings one that was trained on a larger anonymous archive. None builds an
        `AnnotatorLDA` with default parameters. With a clusterer given, memberships also take part in
        ``grouping="profile"``.

    omega : array-like of shape (n_experts, n_clusters), default=None
        Ready memberships instead of a clusterer.

    grouping : {"profile", "soft", "hard"}, default="profile"
        "profile" groups experts by their correctness per class, shrunk by empirical Bayes. "soft" and "hard" are the
        clusters of the paper, by membership or its largest entry: with many experts of mixed ability they tend to
        hold almost everybody, and such a target is no better than a random expert.

    n_groups : int, default=4
        Largest number of groups for "profile"; never more than there are experts.

    classifier : classifier, default=None
        Any scikit-learn classifier with `predict_proba`, cloned and fitted; a `FrozenEstimator` is taken as it is.
        None is a small neural net.

    cv : int, default=5
        Folds of the classifier's out-of-fold probabilities, and of the gate's where no unlabelled rows are given.

    coverage : float, pair of float or None, default=None
        Share of the items that the classifier is to decide, or its lower and upper bound. None leaves it free.

    workload : pair, array-like of shape (n_experts, 2), mapping or None, default=None
        Lower and upper bound of the share of all items that each expert serves, for everybody, in order, or by name.

    cluster_workload : pair, array-like of shape (n_targets, 2), mapping or None, default=None
        The same for groups.

    annotation_smoothing : float, default=0.001
        Probability that the truth is not what an expert answered, in the E-step.

    consultation_cost : float, array-like of shape (n_experts,), mapping or None, default=None
        Cost of asking, in units of one error; a mapping has names of experts or of targets as keys.

    error_cost : array-like of shape (n_classes, n_classes), default=None
        Cost of deciding for the column where the row is true, in units of one error. None is 0 on the diagonal and 1
        elsewhere.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the training of the gate and of the default classifier.

    missing_label : object, default=None
        Marker of a missing annotation; None takes NaN, None, pandas.NA, masked entries and -1 unless it is a class.

    module, hidden_layer_sizes, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Of the gate, as in `AnnotatorLDA`; defaults None, (32,), "sgd", 0.05, 0.9, 0.01, 128 and 60.

    warm_start : bool, default=False
        Continue with the previous gate where the number of targets is the same.

    device : str, default="auto"
        "auto" takes CUDA when there is one.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training of the gate.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, the grouping, the gate and the draws of `assign_experts`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in `y`, and those that a frozen classifier or clusterer knows.
    classifier_ : classifier
        The fitted classifier.
    clusterer_ : AnnotatorLDA or None
        The fitted or frozen clusterer.
    temperature_ : float
        Temperature of the classifier's probabilities in the E-step.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    targets_ : ndarray of shape (n_targets,)
        Names of the groups.
    omega_ : ndarray of shape (n_experts, n_targets)
        Membership of every expert, rows sum to 1.
    selection_ : ndarray of shape (n_targets, n_experts)
        Weights with which a group picks its members, under the workload bounds.
    gate_ : object
        The trained gate; private in everything but name.
    offsets_ : ndarray of shape (n_targets + 1,)
        Calibrated offsets of the gate's logits.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Achieved hard shares on the calibration rows, the classifier last.
    coverage_ : float
        Achieved share of the classifier on the calibration rows.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    constraint_violation_ : float
        Largest amount by which an achieved share leaves its bounds.
    n_iter_ : int
        Epochs of the gate.
    history_ : list of dict
        Loss, log-likelihood and constraint violation of every epoch.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    sklearn_l2d.cluster.AnnotatorLDA : Behaviours from anonymous annotations.
    sklearn_l2d.metrics.deferral_report : Who got what, and how well it was done.

    Notes
    -----
    The E-step is exact: ``q(v=k, w=m)`` is proportional to ``g_k(x) S_km p(y | answer of m)`` (appendix G), tilted
    onto the bounds on all rows at once (Eq. 36 to 44, corrected). A missing annotation is integrated out over what
    the expert would have answered, by the expert's own correctness. Within a group, members are drawn by weights
    that are themselves tilted onto the experts' bounds, since the paper's draw meets them in training only.

    References
    ----------
    L2D-Clusters: Learning to defer on anonymously-annotated data, sections 3.3 and 5.2, appendices G and H.

    Examples
    --------
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ClusterDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> gate = ClusterDeferral(
    ...     n_groups=3, coverage=0.5, classifier=LogisticRegression(C=0.01), max_epochs=50, random_state=0
    ... )
    >>> gate.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations, X_unlabeled=crowd.X_anonymous)
    ClusterDeferral(...)
    >>> print(f"{gate.coverage_:.2f}")
    0.50
    >>> gate.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > 0.8
    True
    """

    _parameter_constraints: ClassVar = {
        "clusterer": [HasMethods(["fit", "transform"]), None],
        "omega": ["array-like", None],
        "grouping": [StrOptions({"profile", "soft", "hard"})],
        "n_groups": [Interval(numbers.Integral, 1, None, closed="left")],
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "cv": [Interval(numbers.Integral, 2, None, closed="left")],
        "coverage": [Interval(numbers.Real, 0, 1, closed="both"), "array-like", None],
        "workload": ["array-like", dict, None],
        "cluster_workload": ["array-like", dict, None],
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
        clusterer=None,
        *,
        omega=None,
        grouping="profile",
        n_groups=4,
        classifier=None,
        cv=5,
        coverage=None,
        workload=None,
        cluster_workload=None,
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
        self.clusterer = clusterer
        self.omega = omega
        self.grouping = grouping
        self.n_groups = n_groups
        self.classifier = classifier
        self.cv = cv
        self.coverage = coverage
        self.workload = workload
        self.cluster_workload = cluster_workload
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

    def set_params(self, **params):
        """Set parameters of the deferrer and, by ``clusterer__x`` and ``classifier__x``, of its parts.

        Parameters
        ----------
        **params : dict
            Names and values.

        Returns
        -------
        self : ClusterDeferral
            The estimator itself.
        """
        for part in ("clusterer", "classifier"):
            nested = [name for name in params if name.startswith(part + "__")]
            if nested and params.get(part, getattr(self, part)) is None:
                raise ValueError(
                    f"{nested[0]} cannot be set while {part} is None; give one first, for instance "
                    + ("clusterer=AnnotatorLDA()." if part == "clusterer" else "classifier=LogisticRegression().")
                )
        return super().set_params(**params)

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, annotations=None, X_unlabeled=None):
        """Fit the classifier, the groups and the gate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Labelled items.
        y : array-like of shape (n_samples,)
            True labels; an `AnnotatedTarget` brings its annotations along.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            What the experts answered, with missing entries. None means that there are no experts: the classifier
            decides everything.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Further items on which the shares are calibrated. None calibrates on the labelled items, by
            cross-fitting the gate.

        Returns
        -------
        self : ClusterDeferral
            The fitted deferrer.

        Raises
        ------
        ValueError
            If the data or the bounds are not as described, or the bounds cannot be met.
        """
        y, annotations = split_target(y, annotations)
        return self._fit_draft(X, y, annotations, X_unlabeled)

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
        self : ClusterDeferral
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
        self : ClusterDeferral
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
        deferrers : list of ClusterDeferral
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
