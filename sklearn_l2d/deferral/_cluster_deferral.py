"""Learning to defer to groups of experts: how they form, and the deferrer."""

import numbers
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from .._numerics._answer_model import answer_log_likelihood
from .._numerics._answer_worth import accuracy_with_answer, mean_likelihood
from .._numerics._evidence import combined_evidence
from .._numerics._matrices import dense_if_small
from .._sklearn import HasMethods, Interval, StrOptions, atomic
from ._behaviours import BehavioursMixin, expert_membership, fit_clusterer
from ._gate import GatedDeferrer, table_if_small
from ._settings import check_omega

_MEMBERSHIP_WEIGHT = 0.1  # of the memberships beside the correctness, in the distances between experts


class Grouping(NamedTuple):
    """Rule that assigns experts, including newcomers, to targets.

    Attributes
    ----------
    kind : {"profile", "soft", "hard"}
    uses_membership : bool
        Whether the rule uses the memberships in behaviours; always True for "soft" and "hard".
    keep : ndarray of shape (n_targets,)
        Behaviours that became targets, for "soft" and "hard".
    centers : ndarray of shape (n_targets, n_coordinates)
        Coordinates of the groups, for "profile".
    scale : ndarray of shape (n_classes,)
        Weight of each class in the coordinates, the square root of its frequency, for "profile".
    """

    kind: str
    uses_membership: bool
    keep: np.ndarray
    centers: np.ndarray
    scale: np.ndarray

    def assign(self, correctness, membership):
        """Memberships (M, n_targets) of experts in the targets; rows sum to 1.

        Parameters
        ----------
        correctness : ndarray of shape (M, n_classes)
            Correctness of the experts on each class.
        membership : ndarray of shape (M, K)
            Memberships of the experts in the behaviours.
        """
        if self.kind == "profile":
            coordinates = self.coordinates(correctness, membership)
            nearest = ((coordinates[:, None] - self.centers) ** 2).sum(2).argmin(1)
            return np.eye(len(self.centers))[nearest]
        chosen = np.eye(membership.shape[1])[membership.argmax(1)] if self.kind == "hard" else membership
        kept = chosen[:, self.keep]
        # an expert who belongs only to dropped behaviours joins the kept one of the largest membership
        homeless = kept.sum(1) <= 0
        kept[homeless] = np.eye(len(self.keep))[membership[homeless][:, self.keep].argmax(1)]
        return kept / kept.sum(1, keepdims=True)

    def coordinates(self, correctness, membership):
        """Coordinates of experts: the correctness per class and, if used, the memberships."""
        profile = correctness * self.scale
        return np.hstack([profile, _MEMBERSHIP_WEIGHT * membership]) if self.uses_membership else profile


def make_grouping(kind, n_groups, correctness, seen, membership, uses_membership, random_state):
    """Learn the rule that assigns experts to targets.

    Parameters
    ----------
    kind : {"profile", "soft", "hard"}
        Groups of experts with a similar correctness per class, or by behaviours, by the memberships or by their largest
        entry (L2D-Clusters 3.3).
    n_groups : int
        Largest number of profile groups.
    correctness, seen : ndarrays of shape (n_experts, n_classes)
        Correctness of the experts on each class, and their numbers of answers.
    membership : ndarray of shape (n_experts, K)
        Memberships of the experts in the behaviours.
    uses_membership : bool
        Whether "profile" uses the memberships.
    random_state : int
        Seed of k-means.

    Returns
    -------
    grouping : Grouping
    """
    if kind != "profile":
        mass = membership if kind == "soft" else np.eye(membership.shape[1])[membership.argmax(1)]
        keep = np.flatnonzero(mass.sum(0) > 1e-3)
        return Grouping(kind, True, keep, np.empty((0, 0)), np.empty(0))
    scale = np.sqrt(seen.sum(0) / max(seen.sum(), 1e-12))
    grouping = Grouping(kind, uses_membership, np.empty(0, dtype=int), np.empty((0, 0)), scale)
    coordinates = grouping.coordinates(correctness, membership)
    n_groups = min(n_groups, len(np.unique(coordinates, axis=0)))
    with threadpool_limits(1):  # for few experts, threads cost more than they save
        centers = KMeans(n_groups, n_init=10, random_state=random_state).fit(coordinates).cluster_centers_
    grouping = grouping._replace(centers=centers)
    used = np.flatnonzero(grouping.assign(correctness, membership).sum(0) > 0)
    return grouping._replace(centers=centers[used])


class ClusterDeferral(BehavioursMixin, GatedDeferrer):
    """Train a gate that defers each item to the classifier or to a group of similar experts.

    By default, the members of a group are right on the same classes. The gate is the upper level of a mixture of
    experts whose lower level draws a member of the group (L2D-Clusters, section 3.3). It is trained by exact EM on a
    small set of items that the experts have annotated, under bounds on the shares of the classifier and the experts.
    Its offsets are then calibrated so that the hard decisions meet the bounds. Experts may skip items, and may leave
    and join without retraining.

    `predict` and `predict_proba` use the classifier alone; `predict_deferral`, `assign_experts`, `predict_team` and
    `score` use the team.

    Parameters
    ----------
    clusterer : AnnotatorLDA, FrozenEstimator or None, default=None
        Estimator of the experts' behaviours. An `AnnotatorLDA` is cloned and fitted to the counts of the annotations;
        ``FrozenEstimator(lda)`` is one that was trained on a larger anonymous archive. None is an `AnnotatorLDA` with
        default parameters, fitted to at most 20,000 random items. If a clusterer is given, ``grouping="profile"`` uses
        the memberships too.

    omega : array-like or DataFrame of shape (n_experts, n_clusters), default=None
        Memberships of the experts, used instead of a clusterer. The index of a DataFrame names the experts.

    grouping : {"profile", "soft", "hard"}, default="profile"
        "profile" groups experts by their correctness per class, shrunk by empirical Bayes. "soft" and "hard" are the
        clusters of the paper, by the memberships or by their largest entry: if there are many experts of mixed ability,
        these clusters tend to hold almost all of them, and such a target is no better than a random expert.

    n_groups : int, default=4
        Largest number of groups of ``grouping="profile"``. There are never more groups than experts.

    classifier : classifier, default=None
        Classifier with `predict_proba`. It is cloned and fitted, unless it is a `FrozenEstimator`, which is used as it
        is. None is a small neural net, a `NetClassifier` or, with `votes_unlabeled`, a `CountsClassifier`.

    cv : int, splitter or list of splits, default=5
        Folds of the classifier's out-of-fold probabilities and, without `X_unlabeled`, of the gate's: their number, a
        splitter, or splits as positions in `X`.

    coverage : float, pair of float or None, default=None
        Share of the items that the classifier decides, or a pair of a lower and an upper bound. None sets no bound.

    workload : pair, array-like of shape (n_experts, 2), mapping or None, default=None
        Lower and upper bound of the share of all items that each expert serves: one pair for all experts, one pair per
        expert, or a mapping from names to pairs, such as a Series or DataFrame. None sets no bound.

    cluster_workload : pair, array-like of shape (n_targets, 2), mapping or None, default=None
        Lower and upper bound of the share of all items that each group serves: one pair for all groups, one pair per
        group, or a mapping from names to pairs, such as a Series or DataFrame. None sets no bound.

    evidence : {"answer", "combined"}, default="answer"
        What speaks for a group in training: that the answer of a member is right, or that the label by the classifier
        and this answer together is right. Take "combined" if `predict_team` will be called with
        ``decision="combine"``: groups are then chosen for what they add to the classifier. `error_cost` has no part in
        it.

    gate_features : {"X", "proba"}, callable or None, default=None
        Numbers by which a gate, net or `AnnotatorLDA` inside the deferrer tells items apart: "X" is `X` itself, "proba"
        the probabilities of the classifier, and a callable is given `X` and returns an array or sparse matrix of a row
        per item, for instance the `transform` of a fitted vectoriser. None is "X" where `X` is numbers without gaps: a
        dense table or, for those with a `module`, an array of more dimensions; and "proba" for text, categories, sparse
        matrices and all else that only the classifier understands. The classifier always sees `X` as it is.

    prior_weight : float, default=5.0
        Weight of the gate's prior before training. The prior logit of a target is the log of the probability that the
        target is right, given its correctness per class and the classifier's probabilities of the classes; that of the
        classifier is the log of its largest probability. The net learns what to add to the prior, and the weight. Where
        shares are bounded, the logits are offset so that they start within the bounds. 0 is the gate of the papers,
        which sees the item only.

    annotation_smoothing : float, default=0.001
        Probability, in the E-step, that the true label is not what an expert answered.

    consultation_cost : float, array-like of shape (n_experts,), mapping or None, default=None
        Cost of asking an expert, in units of one error: one cost for all experts, one per expert, or a mapping from
        names of experts or targets to costs, such as a Series. It may be negative.

    error_cost : array-like of shape (n_classes, n_classes), default=None
        Cost, in units of one error, of deciding for the class of the column where the class of the row is true, in the
        order of `classes_`; a DataFrame may name the classes instead. None is 0 on the diagonal and 1 elsewhere.

    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes in the training of the gate and of the default classifier.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    module, hidden_layer_sizes, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the gate, as in `AnnotatorLDA`. The defaults are None, (32,), "sgd", 0.05, 0.9, 0.01, 128 and 60.

    warm_start : bool, default=False
        Whether `fit` continues the training of the previous gate, if the numbers of features and targets and
        `prior_weight` are the same.

    device : str, default="auto"
        Device of the training: "auto", "cpu", "cuda", "cuda:1", and so on. "auto" is CUDA if there is a CUDA device,
        else the CPU.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, the clusterer unless it has its own, the grouping, the gate, the draws of `assign_experts`,
        and the classifier unless it has its own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of `y` and `annotations`, and those that a frozen classifier or clusterer knows.
    classifier_ : classifier
        The fitted classifier.
    clusterer_ : AnnotatorLDA or None
        The fitted or frozen clusterer.
    temperature_ : float
        Temperature that calibrates the probabilities of the classifier.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    targets_ : ndarray of shape (n_targets,)
        Names of the targets: the groups of experts.
    omega_ : ndarray or csr_array of shape (n_experts, n_targets)
        Memberships of the experts in the targets. Rows sum to 1. It is sparse if every expert is a target and it has
        more than ten million entries.
    selection_ : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members, within the bounds of `workload`. Rows sum to 1; a target
        without members has a row of zeros. It is sparse if `omega_` is.
    gate_ : object
        The trained gate, None without experts; its interface is private.
    offsets_ : ndarray of shape (n_targets + 1,)
        Offsets that are added to the logits of the gate so that the shares meet their bounds.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    constraint_violation_ : float
        Largest distance of a share from its bounds; 0 if all bounds are met.
    n_iter_ : int
        Number of epochs of the gate.
    history_ : list of dict
        Phase, loss, duration (seconds), log-likelihood and constraint violation of every epoch.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    sklearn_l2d.cluster.AnnotatorLDA : Behaviours from anonymous annotations.
    sklearn_l2d.metrics.deferral_report : Workload and accuracy of the classifier and the experts.

    Notes
    -----
    The E-step is exact: ``q(v=k, w=m)`` is proportional to ``g_k(x) S_km p(y | answer of m)`` (appendix G), tilted onto
    the bounds on all rows at once (Eq. 36 to 44, corrected). A missing annotation is integrated out over the answer
    that the expert would have given, by the expert's own correctness. Within a group, members are drawn by weights that
    are also tilted onto the experts' bounds; in the paper, the draw meets these bounds in training only.

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
    ...     n_groups=3,
    ...     coverage=0.5,
    ...     classifier=LogisticRegression(C=0.01),
    ...     max_epochs=50,
    ...     random_state=0,
    ... )
    >>> gate.fit(
    ...     crowd.X_identified,
    ...     crowd.y_identified,
    ...     annotations=crowd.annotations,
    ...     X_unlabeled=crowd.X_anonymous,
    ... )
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
        "evidence": [StrOptions({"answer", "combined"})],
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
        evidence="answer",
        gate_features=None,
        prior_weight=5.0,
        annotation_smoothing=0.001,
        consultation_cost=None,
        error_cost=None,
        class_weight=None,
        missing_label=None,
        unlabeled_label=None,
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
            gate_features=gate_features,
            prior_weight=prior_weight,
            annotation_smoothing=annotation_smoothing,
            consultation_cost=consultation_cost,
            error_cost=error_cost,
            class_weight=class_weight,
            missing_label=missing_label,
            unlabeled_label=unlabeled_label,
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
        self.evidence = evidence

    @atomic
    def onboard(self, experts, X, annotations, y=None):
        """Add experts to the most similar groups, without training.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names of the experts. An expert who is already on the roster is replaced.
        X : array-like of shape (n_samples, n_features)
            Items that they annotated.
        annotations : array-like or DataFrame of shape (n_samples, len(experts))
            Annotations of these experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        y : array-like of shape (n_samples,), default=None
            True labels, of which some may be unknown, as in `fit`; None means that all are. Answers to these items
            count by the probability of the truth given the classifier, the consensus of the behaviours and the
            newcomers' answers; newcomers are expected to be as accurate as the experts of similar memberships until
            their own answers tell more.

        Returns
        -------
        self : ClusterDeferral
            The deferrer with a larger roster.

        Raises
        ------
        ValueError
            If the deferrer was fitted without experts or with `omega`, or if shapes or labels do not match.
        """
        check_is_fitted(self)
        if len(self.targets_) == 0:
            raise ValueError("fitted without experts: there are no groups to join; call fit with annotations.")
        if self.clusterer_ is None:
            raise ValueError("fitted with a ready omega, which says nothing about newcomers; give a clusterer instead.")
        names, items, votes, y = self._check_newcomers(experts, X, annotations, y)
        met = self._meet(X, items, votes, y)
        newcomers = self._roster.newcomers(names, None, met.counts, {"membership": met.membership}, met.likely)
        omega = self.grouping_.assign(newcomers.correctness, met.membership)
        self._set_roster(self._roster.joined_by(newcomers.replace(omega=omega)))

    def _answer_shape(self, items, votes):
        shape = None if self.clusterer is None else self._shape_at(items)  # one that was not asked for says little
        return None if shape is None else shape[votes.item]

    def _log_likelihood(self, items, votes, y_codes, proba, price, counted=None):
        if self._target_likelihood is None:
            return super()._log_likelihood(items, votes, y_codes, proba, price, counted)
        left_out = self._left_out(y_codes, counted)
        left_out = None if left_out is None else left_out[votes.item]
        told = answer_log_likelihood(self._roster.answer_model, votes.annotator, votes.label, None, left_out)
        return table_if_small(combined_evidence(votes, y_codes, proba, told, price, self.annotation_smoothing))

    def _set_target_correctness(self):
        super()._set_target_correctness()
        self._target_likelihood = None
        if self.evidence == "combined" and self._roster.answering is not None:
            selection = dense_if_small(self._plain_selection())
            self._target_likelihood = mean_likelihood(self._roster.answer_model, selection)

    def _known_at_fit(self, proba):
        if self._target_likelihood is None:
            return super()._known_at_fit(proba)
        return np.column_stack([accuracy_with_answer(proba, self._target_likelihood), proba.max(1)])

    def _group_bounds(self):
        return self.cluster_workload if len(self.targets_) else None

    def _form_targets(self, team):
        """Find the behaviours, unless memberships are given, and form the groups."""
        self.clusterer_ = None
        if self.omega is not None:
            membership = check_omega(self.omega, self.experts_)
        else:
            X, votes = self._shown(team.annotated), team.annotations  # behaviours need no truth
            self.clusterer_ = fit_clusterer(self.clusterer, X, votes, self._seed, team.weights)
            membership = expert_membership(self.clusterer_, X, votes)
        # a clusterer that was not asked for serves newcomers only
        joins = self.omega is not None or self.clusterer is not None
        right, seen = self._correctness, self._roster.seen
        self.grouping_ = make_grouping(self.grouping, self.n_groups, right, seen, membership, joins, self._seed)
        omega = self.grouping_.assign(right, membership)
        names = np.array([f"group{k}" for k in range(omega.shape[1])], dtype=object)
        self._set_targets(names, omega, membership=membership)

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.clusterer_, self.grouping_, self._target_likelihood = None, None, None
