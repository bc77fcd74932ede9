"""How a deferrer with groups learns: classifier, groups, EM gate, and offsets that meet the bounds."""

import copy
import warnings

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from .._encoding import check_row_count, count_votes, is_frame
from .._numerics._profiles import prior_strengths, tally_answers
from .._numerics._projection import share_violation
from .._torch._modules import check_module
from .._torch._target_net import predict_log_proba
from ..annotations import encode_annotations
from ._answers import absent_likelihood, check_error_cost, check_omega, consultation_nats, team_log_likelihood
from ._behaviours import expert_membership, fit_clusterer
from ._bounds import check_feasible, share_bounds
from ._classifier import fit_classifier, judge_classifier, team_classes
from ._gating import GateProblem, calibrate, coverage_offset, cross_fitted_logits, new_gate, train_gate
from ._grouping import make_grouping
from ._net_classifier import NetClassifier


class GateTrainingMixin:
    """Training and calibration; every change is made on a copy, so that a failure leaves the estimator as it was."""

    def _fit_draft(self, X, y, annotations, X_unlabeled, classes=()):
        draft = self._copy_with()
        draft._fit(X, y, annotations, X_unlabeled, classes, self.warm_start and self.__sklearn_is_fitted__())
        return self._take_over(draft)

    def _take_over(self, draft):
        self.__dict__ = vars(draft)
        return self

    def _fit(self, X, y, annotations, X_unlabeled, classes, warm):
        check_module(self.module)
        old_features = getattr(self, "n_features_in_", None)
        items = validate_data(self, X, dtype=self.dtype, allow_nd=self.module is not None)
        X = X if is_frame(X) else np.asarray(X)
        y = column_or_1d(y, warn=True)
        check_consistent_length(items, y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if len(np.unique(y)) < 2 and not isinstance(self.classifier, FrozenEstimator):
            raise ValueError(f"y holds one class only, {y[0]!r}; a classifier needs at least two.")
        self.classes_ = team_classes(y, classes=classes, classifier=self.classifier, clusterer=self.clusterer)
        codes, self.experts_ = self._check_experts(annotations, len(items))
        unlabeled = None if X_unlabeled is None else self._check_items(X_unlabeled)
        self._check_early()
        nobody = len(self.experts_) == 0
        membership = None if self.omega is None or nobody else check_omega(self.omega, len(self.experts_))
        if not warm:
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        classifier = self.classifier
        if classifier is None:
            classifier = NetClassifier(class_weight=self.class_weight, device=self.device)
        if nobody:
            self.classifier_ = fit_classifier(classifier, X, y, self._seed)
            return self._fit_nobody()

        y_codes = np.searchsorted(self.classes_, y)
        self._right, self._seen = tally_answers(codes, np.eye(len(self.classes_))[y_codes])
        self._strengths = prior_strengths(self._right, self._seen)
        self._fit_groups(X, codes, membership)
        bounds, price = self._bounds(), self._price()
        self.classifier_ = fit_classifier(classifier, X, y, self._seed)
        proba, self.temperature_ = judge_classifier(
            classifier, self.classifier_, X, y, self.classes_, self.cv, self._seed
        )
        problem = GateProblem(
            items,
            self._log_likelihood(codes, y_codes, proba, price),
            self._plain_selection(self.omega_),
            bounds,
            compute_sample_weight(self.class_weight, y),
        )
        if warm and self._continues(old_features):
            self.gate_ = copy.deepcopy(self.gate_)
        else:
            self.gate_, self.history_, self.n_iter_ = self._new_gate(items), [], 0
        self._train(problem, self.max_epochs)
        if unlabeled is None and bounds.bind:
            self._calibrate(self._cross_fitted_logits(problem))
        else:
            self._calibrate(predict_log_proba(self.gate_, items if unlabeled is None else unlabeled))

    def _fit_nobody(self):
        """Without experts there is nobody to defer to."""
        nobody = np.empty((0, 0))
        self.clusterer_, self.grouping_, self.gate_, self.temperature_ = None, None, None, 1.0
        self.targets_, self._fit_experts = self.experts_, self.experts_
        self.omega_, self.selection_, self._membership = nobody, nobody, nobody
        self._right = self._seen = np.empty((0, len(self.classes_)))
        self._strengths, self._margins = prior_strengths(self._right, self._seen), np.empty(0)
        self.offsets_, self.target_shares_, self.coverage_ = np.zeros(1), np.ones(1), 1.0
        self.workload_, self.constraint_violation_ = np.empty(0), 0.0
        self.n_iter_, self.history_ = 0, []

    def _learn_more(self, X, y, annotations):
        """One epoch on feedback."""
        items = self._check_items(X)
        if len(self.experts_) == 0:
            return self
        codes, truth = self._check_answers(annotations, len(items), "partial_fit"), self._truth(X, y)
        draft = self._copy_with(gate_=copy.deepcopy(self.gate_))
        log_likelihood = self._log_likelihood(codes, truth.argmax(1), self._classifier_proba(X), self._price())
        weight = compute_sample_weight(self.class_weight, y)
        draft._train(GateProblem(items, log_likelihood, self.selection_, self._bounds(), weight), 1, cosine=False)
        right, seen = tally_answers(codes, truth)
        draft._right, draft._seen = self._right + right, self._seen + seen
        return self._take_over(draft)

    def _check_experts(self, annotations, n_rows):
        """Encoded annotations (n, n_experts) and the experts' names; none without annotations."""
        if annotations is None:
            return np.empty((n_rows, 0), dtype=np.int8), np.empty(0, dtype=object)
        codes, _, experts = encode_annotations(annotations, classes=self.classes_, missing_label=self.missing_label)
        check_row_count(codes, n_rows, "annotations")
        silent = experts[(codes < 0).all(0)]
        if len(silent) and len(silent) == len(experts):
            raise ValueError("annotations are all missing; pass some, or None to go without experts.")
        if len(silent):
            warnings.warn(
                f"the experts {list(silent)} have no annotation: what they would answer is taken from everybody's.",
                stacklevel=6,
            )
        return codes, experts

    def _check_early(self):
        """Refuse what must fail whatever the groups turn out to be."""
        check_error_cost(self.error_cost, len(self.classes_), self.annotation_smoothing)
        bounds = share_bounds(self.coverage, self.workload, None, self.experts_, [])
        if len(self.experts_):
            anybody = bounds.in_one_target()
            check_feasible(anybody, np.ones((1, len(self.experts_))), self.experts_, ["the experts"])

    def _fit_groups(self, X, codes, membership):
        """Find the behaviours, unless memberships are given, and the groups."""
        self.clusterer_ = None
        if membership is None:
            counts = count_votes(codes, len(self.classes_))
            self.clusterer_ = fit_clusterer(self.clusterer, X, counts, self.classes_, self._seed)
            membership = expert_membership(self.clusterer_, X, codes, self.classes_)
        # a clusterer that was not asked for serves newcomers only
        joins = self.omega is not None or self.clusterer is not None
        self.grouping_ = make_grouping(
            self.grouping, self.n_groups, self._right, self._seen, membership, joins, self._seed
        )
        self._membership, self.omega_ = membership, self.grouping_.assign(self._right, self._seen, membership)
        self.targets_ = np.array([f"group{k}" for k in range(self.omega_.shape[1])], dtype=object)
        self._fit_experts = self.experts_

    def _price(self):
        """What asking each expert costs, in nats."""
        return consultation_nats(
            self._of_roster(self.consultation_cost, self.experts_, common_ndim=0),
            self.experts_,
            self.targets_,
            self.omega_,
            len(self.classes_),
            self.annotation_smoothing,
        )

    def _log_likelihood(self, codes, y_codes, proba, price):
        """Evidence (n, n_experts + 1) of the E-step, less the price of asking."""
        likelihood = check_error_cost(self.error_cost, len(self.classes_), self.annotation_smoothing)
        absent = absent_likelihood(codes, y_codes, likelihood, self._correctness())
        log_likelihood = team_log_likelihood(codes, y_codes, proba, likelihood, absent)
        log_likelihood[:, :-1] -= price
        return log_likelihood

    def _bounds(self):
        """Bounds of today's roster, refused where they cannot be met; nothing is asked of a group without members."""
        workload = self._of_roster(self.workload, self.experts_, common_ndim=1)
        bounds = share_bounds(self.coverage, workload, self.cluster_workload, self.experts_, self.targets_)
        plain = self._plain_selection(self.omega_)
        bounds = bounds.without_targets(plain.sum(1) <= 0)
        check_feasible(bounds, plain, self.experts_, self.targets_)
        return bounds

    def _continues(self, old_features):
        """Whether the previous gate fits the present data."""
        same = self.gate_ is not None and old_features == self.n_features_in_
        return same and self.gate_.module_.n_outputs == len(self.targets_) + 1

    def _new_gate(self, items):
        return new_gate(
            items.shape[1],
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
        seed = self._seed + self.n_iter_
        history = train_gate(
            self.gate_, problem, n_epochs, seed=seed, dtype=self.dtype, verbose=self.verbose, cosine=cosine
        )
        self.history_ = self.history_ + history
        self.n_iter_ = len(self.history_)

    def _cross_fitted_logits(self, problem):
        return cross_fitted_logits(
            lambda: self._new_gate(problem.X), problem, self.max_epochs, self.cv, seed=self._seed, dtype=self.dtype
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

    def _shifted(self, coverage):
        """Fitted attributes at another coverage, from the margins of the calibration rows."""
        humans = self.target_shares_[:-1]
        rest = humans / humans.sum() if humans.sum() else np.full(len(humans), 1 / len(humans))
        shares = np.append((1 - coverage) * rest, coverage)
        return {
            "offsets_": np.append(self.offsets_[:-1], coverage_offset(self._margins, coverage)),
            "target_shares_": shares,
            "coverage_": coverage,
            "workload_": shares[:-1] @ self.selection_,
            "constraint_violation_": 0.0,
        }

    def _target_scores(self, X):
        if len(self.targets_) == 0:
            return np.zeros((len(X), 1))
        scores = predict_log_proba(self.gate_, X) + self.offsets_
        scores[:, :-1][:, self.selection_.sum(1) <= 0] = -np.inf  # a group that has lost everybody
        scores[np.isneginf(scores).all(1), -1] = 0.0  # whoever was to decide has left
        return scores
