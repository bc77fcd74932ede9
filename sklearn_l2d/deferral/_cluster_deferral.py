"""Learning to defer to clusters of experts."""

import copy
import numbers
import warnings
from typing import ClassVar

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from .._encoding import count_votes, is_frame
from .._numerics._profiles import prior_strengths, tally_answers
from .._numerics._projection import share_violation
from .._sklearn import HasMethods, Interval, StrOptions, fit_context
from .._torch._modules import check_module
from .._torch._net import OPTIMIZER_NAMES
from .._torch._target_net import predict_log_proba
from ..annotations import encode_annotations, split_target
from ._answers import absent_likelihood, check_error_cost, check_omega, consultation_nats, team_log_likelihood
from ._base import BaseDeferrer
from ._behaviours import expert_membership, fit_clusterer, known_classes
from ._bounds import check_feasible, share_bounds
from ._classifier import fit_classifier, judge_classifier
from ._gating import GateProblem, calibrate, coverage_offset, cross_fitted_logits, new_gate, train_gate
from ._grouping import make_grouping
from ._net_classifier import NetClassifier
from ._roster import RosterMixin


class ClusterDeferral(RosterMixin, BaseDeferrer):
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
        Of the gate, as in `AnnotatorLDA`; defaults None, (32,), "sgd", 0.05, 0.9, 0.001, 128 and 150.

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
    the behaviours would have answered. Within a group, members are drawn by weights that are themselves tilted onto
    the experts' bounds, since the paper's draw meets them in training only.

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
        weight_decay=0.001,
        batch_size=128,
        max_epochs=150,
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
        """
        y, annotations = split_target(y, annotations)
        if not self.__sklearn_is_fitted__():
            return self._fit_draft(X, y, annotations, None, () if classes is None else classes)
        items = self._check_items(X)
        if len(self.experts_) == 0:
            return self
        codes = self._check_answers(annotations, len(items), "partial_fit")
        truth = self._truth(X, y)
        draft = self._copy_with(gate_=copy.deepcopy(self.gate_))
        log_likelihood = self._log_likelihood(X, codes, truth.argmax(1), self._classifier_proba(X))
        problem = GateProblem(
            items, log_likelihood, self.selection_, self._bounds(), compute_sample_weight(self.class_weight, y)
        )
        draft._train(problem, 1, cosine=False)
        right, seen = tally_answers(codes, truth)
        draft._right, draft._seen = self._right + right, self._seen + seen
        return self._take_over(draft)

    def recalibrate(self, X_unlabeled):
        """Move the offsets so that the hard shares meet the bounds on other items; the gate stays as it is.

        Parameters
        ----------
        X_unlabeled : array-like of shape (n_unlabeled, n_features)
            Items like those to come.

        Returns
        -------
        self : ClusterDeferral
        """
        check_is_fitted(self)
        self._calibrate(predict_log_proba(self.gate_, self._check_items(X_unlabeled)))
        return self

    def coverage_path(self, coverages, X_unlabeled=None):
        """Deferrers at several coverages that share everything but the offsets; a gate fitted at 0.5 suits best.

        Parameters
        ----------
        coverages : array-like of float
            Requested shares of the classifier.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Items on which the shares are calibrated. None uses the margins of the calibration rows of `fit`; bounds
            on experts or targets need items.

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
        if X_unlabeled is not None:
            return [self._copy_with(coverage=c).recalibrate(X_unlabeled) for c in coverages]
        if self.workload is not None or self.cluster_workload is not None:
            raise ValueError("X_unlabeled is None, but bounds on experts or groups are calibrated on items; pass some.")
        return [self._copy_with(**self._shifted(c)) for c in coverages]

    def _shifted(self, coverage):
        """Fitted attributes at another coverage, from the margins of the calibration rows."""
        offset = coverage_offset(self._margins, coverage)
        humans = self.target_shares_[:-1]
        rest = humans / humans.sum() if humans.sum() else np.full(len(humans), 1 / max(len(humans), 1))
        shares = np.append((1 - coverage) * rest, coverage)
        return {
            "coverage": coverage,
            "offsets_": np.append(self.offsets_[:-1], offset),
            "target_shares_": shares,
            "coverage_": coverage,
            "workload_": shares[:-1] @ self.selection_,
        }

    def _take_over(self, draft):
        vars(self).update(vars(draft))
        return self

    def _fit_draft(self, X, y, annotations, X_unlabeled, classes=()):
        """Fit a copy, so that a fit that fails leaves the estimator as it was."""
        draft = self._copy_with()
        draft._fit(X, y, annotations, X_unlabeled, classes, self.warm_start and self.__sklearn_is_fitted__())
        return self._take_over(draft)

    def _fit(self, X, y, annotations, X_unlabeled, classes, warm):
        check_module(self.module)
        items = validate_data(self, X, dtype=self.dtype)
        y = column_or_1d(y, warn=True)
        check_consistent_length(items, y)
        check_classification_targets(y)
        if len(np.unique(y)) < 2 and not isinstance(self.classifier, FrozenEstimator):
            raise ValueError(f"y holds one class only, {y[0]!r}; a classifier needs at least two.")
        known = [classes, known_classes(self.classifier), known_classes(self.clusterer)]
        self.classes_ = np.unique(np.concatenate([y, *(c for c in known if len(c))]))
        codes, self.experts_ = self._check_experts(annotations, len(items))
        unlabeled = None if X_unlabeled is None else self._check_items(X_unlabeled)
        share_bounds(self.coverage, self.workload, None, self.experts_, [])
        membership = None if self.omega is None else check_omega(self.omega, len(self.experts_))

        y_codes = np.searchsorted(self.classes_, y)
        if not warm:
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        classifier = self.classifier
        if classifier is None:
            classifier = NetClassifier(class_weight=self.class_weight, device=self.device)
        X = X if is_frame(X) else items
        self.classifier_ = fit_classifier(classifier, X, y, self._seed)
        if len(self.experts_) == 0:
            return self._fit_nobody()
        proba, self.temperature_ = judge_classifier(
            classifier, self.classifier_, X, y, self.classes_, self.cv, self._seed
        )
        self._right, self._seen = tally_answers(codes, np.eye(len(self.classes_))[y_codes])
        self._strengths = prior_strengths(self._right, self._seen)
        self._fit_groups(X, codes, membership)
        log_likelihood = self._log_likelihood(X, codes, y_codes, proba)
        plain = self._plain_selection(self.omega_)
        problem = GateProblem(items, log_likelihood, plain, self._bounds(), compute_sample_weight(self.class_weight, y))
        check_feasible(problem.bounds, plain, self.experts_, self.targets_)
        if not warm or self.gate_ is None or self.gate_.module_.n_outputs != len(self.targets_) + 1:
            self.gate_, self.history_, self.n_iter_ = self._new_gate(items.shape[1]), [], 0
        else:
            self.gate_ = copy.deepcopy(self.gate_)
        self._train(problem, self.max_epochs)
        if unlabeled is None and problem.bounds.bind:
            self._calibrate(self._cross_fitted_logits(problem))
        else:
            self._calibrate(predict_log_proba(self.gate_, items if unlabeled is None else unlabeled))

    def _fit_nobody(self):
        """Without experts there is nobody to defer to."""
        self.clusterer_, self.grouping_, self.gate_, self.temperature_ = None, None, None, 1.0
        self.targets_, self.omega_, self.selection_ = self.experts_, np.empty((0, 0)), np.empty((0, 0))
        self.offsets_, self.target_shares_, self.coverage_ = np.zeros(1), np.ones(1), 1.0
        self.workload_, self.constraint_violation_ = np.empty(0), 0.0
        self.n_iter_, self.history_ = 0, []

    def _fit_groups(self, X, codes, membership):
        """Find the behaviours, unless memberships are given, and the groups."""
        self.clusterer_ = None
        if membership is None:
            counts = count_votes(codes, len(self.classes_))
            self.clusterer_ = fit_clusterer(self.clusterer, X, counts, self.classes_, self._seed)
            membership = expert_membership(self.clusterer_, X, codes, self.classes_)
        # a clusterer that was not asked for serves missing annotations and newcomers only
        joins = self.omega is not None or self.clusterer is not None
        self.grouping_ = make_grouping(
            self.grouping, self.n_groups, self._right, self._seen, membership, joins, self._seed
        )
        self._membership, self.omega_ = membership, self.grouping_.assign(self._right, self._seen, membership)
        self.targets_ = np.array([f"group{k}" for k in range(self.omega_.shape[1])], dtype=object)
        self._bounded_experts = self.experts_

    def _log_likelihood(self, X, codes, y_codes, proba):
        """Evidence (n, n_experts + 1) of the E-step, less the costs of asking."""
        likelihood = check_error_cost(self.error_cost, len(self.classes_), self.annotation_smoothing)
        absent = absent_likelihood(
            X, codes, y_codes, self.classes_, likelihood, self.clusterer_, self._membership, self._correctness()
        )
        log_likelihood = team_log_likelihood(codes, y_codes, proba, likelihood, absent)
        log_likelihood[:, :-1] -= consultation_nats(
            self.consultation_cost,
            self.experts_,
            self.targets_,
            self.omega_,
            len(self.classes_),
            self.annotation_smoothing,
        )
        return log_likelihood

    def _bounds(self):
        return share_bounds(
            self.coverage,
            self._workload_of(self.experts_),
            self.cluster_workload,
            self.experts_,
            self.targets_,
        )

    def _new_gate(self, n_features):
        return new_gate(
            n_features,
            len(self.targets_),
            self._seed,
            module=self.module,
            hidden_layer_sizes=self.hidden_layer_sizes,
            optimizer=self.optimizer,
            lr=self.lr,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            batch_size=self.batch_size,
            dtype=self.dtype,
            device=self.device,
        )

    def _train(self, problem, n_epochs, cosine=True):
        history, _ = train_gate(
            self.gate_,
            problem,
            n_epochs,
            seed=self._seed + self.n_iter_,
            dtype=self.dtype,
            verbose=self.verbose,
            cosine=cosine,
        )
        self.history_ = self.history_ + history
        self.n_iter_ = len(self.history_)

    def _cross_fitted_logits(self, problem):
        return cross_fitted_logits(
            lambda: self._new_gate(problem.X.shape[1]),
            problem,
            self.max_epochs,
            self.cv,
            seed=self._seed,
            dtype=self.dtype,
        )

    def _calibrate(self, logits):
        """Set the offsets and everything that follows from them."""
        bounds = self._bounds()
        offsets, shares, selection, self._margins = calibrate(logits, self._plain_selection(self.omega_), bounds)
        self.offsets_, self.target_shares_, self.coverage_ = offsets, shares, float(shares[-1])
        self.selection_, self.workload_ = selection, shares[:-1] @ selection
        self.constraint_violation_ = max(
            share_violation(shares, *bounds.targets),
            share_violation(np.append(self.workload_, shares[-1]), *bounds.experts),
        )

    def _target_scores(self, X):
        if len(self.targets_) == 0:
            return np.zeros((len(X), 1))
        scores = predict_log_proba(self.gate_, X) + self.offsets_
        scores[:, :-1][:, self.selection_.sum(1) <= 0] = -np.inf  # a group that has lost everybody
        return scores

    def _check_experts(self, annotations, n_rows):
        """Encoded annotations (n, n_experts) and the experts' names; none without annotations."""
        if annotations is None:
            return np.empty((n_rows, 0), dtype=np.int8), np.empty(0, dtype=object)
        codes, _, experts = encode_annotations(annotations, classes=self.classes_, missing_label=self.missing_label)
        if len(codes) != n_rows:
            raise ValueError(f"annotations has {len(codes)} rows, but X has {n_rows}; give one row per item.")
        silent = experts[(codes < 0).all(0)]
        if len(silent):
            warnings.warn(
                f"the experts {list(silent)} have no annotation: what they would answer is taken from everybody's.",
                stacklevel=4,
            )
        return codes, experts
