"""Learning to defer to clusters of experts."""

import numbers
from typing import ClassVar

import numpy as np

from .._encoding import count_votes
from .._sklearn import HasMethods, Interval, StrOptions
from ._answers import check_omega
from ._behaviours import expert_membership, fit_clusterer
from ._gated import GatedDeferrer
from ._grouping import make_grouping
from ._onboarding import OnboardingMixin


class ClusterDeferral(OnboardingMixin, GatedDeferrer):
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

    prior_weight : float, default=5.0
        Weight, before training, of what is expected of everybody: the gate's logits start from this weight times the
        log of the probability that a target, by its correctness per class and the classifier's probabilities of the
        classes, or the classifier, by its largest probability, is right. Where shares are bounded, the logits are
        offset so that they start within the bounds. The net learns what it adds, and the weight. 0 is the gate of the
        papers, which knows nothing but the item.

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
        **GatedDeferrer._parameter_constraints,
        "clusterer": [HasMethods(["fit", "transform"]), None],
        "omega": ["array-like", None],
        "grouping": [StrOptions({"profile", "soft", "hard"})],
        "n_groups": [Interval(numbers.Integral, 1, None, closed="left")],
        "cluster_workload": ["array-like", dict, None],
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
        super().__init__(
            classifier=classifier,
            cv=cv,
            coverage=coverage,
            workload=workload,
            prior_weight=prior_weight,
            annotation_smoothing=annotation_smoothing,
            consultation_cost=consultation_cost,
            error_cost=error_cost,
            class_weight=class_weight,
            missing_label=missing_label,
            module=module,
            hidden_layer_sizes=hidden_layer_sizes,
            optimizer=optimizer,
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
            batch_size=batch_size,
            max_epochs=max_epochs,
            warm_start=warm_start,
            device=device,
            dtype=dtype,
            verbose=verbose,
            random_state=random_state,
        )
        self.clusterer = clusterer
        self.omega = omega
        self.grouping = grouping
        self.n_groups = n_groups
        self.cluster_workload = cluster_workload

    def _check_settings(self):
        super()._check_settings()
        if self.omega is not None and len(self.experts_):
            check_omega(self.omega, len(self.experts_))

    def _form_targets(self, team):
        """Find the behaviours, unless memberships are given, and the groups."""
        self.clusterer_ = None
        if self.omega is not None:
            membership = check_omega(self.omega, len(self.experts_))
        else:
            counts = count_votes(team.codes, len(self.classes_))
            self.clusterer_ = fit_clusterer(self.clusterer, team.X, counts, self.classes_, self._seed)
            membership = expert_membership(self.clusterer_, team.X, team.codes, self.classes_)
        # a clusterer that was not asked for serves newcomers only
        joins = self.omega is not None or self.clusterer is not None
        self.grouping_ = make_grouping(
            self.grouping, self.n_groups, self._right, self._seen, membership, joins, self._seed
        )
        self._membership, omega = membership, self.grouping_.assign(self._right, self._seen, membership)
        self._set_targets(np.array([f"group{k}" for k in range(omega.shape[1])], dtype=object), omega)

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.clusterer_, self.grouping_, self._membership = None, None, np.empty((0, 0))
