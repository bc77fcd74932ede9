"""How an EM deferrer learns: evidence of everybody, EM gate, and offsets that meet the bounds."""

import copy
import warnings

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from .._numerics._profiles import tally_answers
from .._numerics._projection import share_violation
from .._torch._target_net import predict_log_proba
from ._answers import absent_likelihood, check_error_cost, consultation_nats, team_log_likelihood
from ._bounds import check_feasible, plain_selection, select_members, share_bounds
from ._gating import GateProblem, calibrate, coverage_offset, cross_fitted_logits, new_gate, train_gate


class GateTrainingMixin:
    """Training and calibration of a gate; a subclass sets the targets in `_form_targets`."""

    cluster_workload = None  # a parameter where targets are groups

    def _form_targets(self, team):
        """Set `targets_`, `omega_` and what else says who belongs to which target."""
        raise NotImplementedError

    def _draw_seed(self):
        if self._warm():
            return self._seed
        return super()._draw_seed()

    def _warm(self):
        return self.warm_start and hasattr(self, "gate_")

    def _check_settings(self):
        """Refuse what must fail whatever the targets turn out to be."""
        self._answer_likelihood()
        bounds = share_bounds(self.coverage, self.workload, None, self.experts_, [])
        if len(self.experts_):
            anybody = bounds.in_one_target()
            check_feasible(anybody, np.ones((1, len(self.experts_))), self.experts_, ["the experts"])

    def _learn(self, team):
        self._form_targets(team)
        bounds, price = self._bounds(), self._price()
        weight = compute_sample_weight(self.class_weight, team.y)
        log_likelihood, refresh = self._gather_evidence(team, weight, price)
        problem = GateProblem(team.items, log_likelihood, plain_selection(self.omega_), bounds, weight, refresh)
        if self._continues(team.items):
            self.gate_ = copy.deepcopy(self.gate_)
        else:
            self.gate_, self.history_, self.n_iter_ = self._new_gate(team.items), [], 0
        self._train(problem, self.max_epochs)
        if team.unlabeled is None and bounds.bind:
            self._calibrate(self._cross_fitted_logits(problem))
        else:
            self._calibrate(predict_log_proba(self.gate_, team.items if team.unlabeled is None else team.unlabeled))

    def _gather_evidence(self, team, weight, price):
        """Evidence of the E-step, and what refreshes it between epochs; fits the classifier."""
        proba = self._judge_classifier(team)
        return self._log_likelihood(team.items, team.codes, team.y_codes, proba, price), None

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.gate_, self.offsets_, self._margins, self.constraint_violation_ = None, np.zeros(1), np.empty(0), 0.0

    def _learn_more(self, X, y, annotations):
        """One epoch on feedback."""
        items = self._check_items(X)
        if len(self.experts_) == 0:
            return self
        codes, truth = self._check_answers(annotations, len(items), "partial_fit"), self._known_truth(X, y)
        draft = self._copy_with(gate_=copy.deepcopy(self.gate_))
        log_likelihood = self._log_likelihood(items, codes, truth.argmax(1), self._classifier_proba(X), self._price())
        weight = compute_sample_weight(self.class_weight, y)
        draft._train(GateProblem(items, log_likelihood, self.selection_, self._bounds(), weight), 1, cosine=False)
        right, seen = tally_answers(codes, truth)
        draft._right, draft._seen = self._right + right, self._seen + seen
        return self._take_over(draft)

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

    def _answer_likelihood(self):
        """Likelihood (C, C) of the true class, the row, given an answer."""
        return check_error_cost(self.error_cost, len(self.classes_), self.annotation_smoothing)

    def _absent_likelihood(self, items, codes, y_codes):
        """Likelihood (n, n_experts) of the truth where an expert did not answer."""
        return absent_likelihood(codes, y_codes, self._answer_likelihood(), self._correctness())

    def _log_likelihood(self, items, codes, y_codes, proba, price):
        """Evidence (n, n_experts + 1) of the E-step, less the price of asking."""
        likelihood, absent = self._answer_likelihood(), self._absent_likelihood(items, codes, y_codes)
        log_likelihood = team_log_likelihood(codes, y_codes, proba, likelihood, absent)
        log_likelihood[:, :-1] -= price
        return log_likelihood

    def _bounds(self):
        """Bounds of today's roster, refused where they cannot be met; nothing is asked of a group without members."""
        workload = self._of_roster(self.workload, self.experts_, common_ndim=1)
        bounds = share_bounds(self.coverage, workload, self.cluster_workload, self.experts_, self.targets_)
        plain = plain_selection(self.omega_)
        bounds = bounds.without_targets(plain.sum(1) <= 0)
        check_feasible(bounds, plain, self.experts_, self.targets_)
        return bounds

    def _continues(self, items):
        """Whether training goes on from the previous gate, which must fit the present data."""
        if not self._warm() or self.gate_ is None:
            return False
        before = self.gate_.module_
        return (before.n_features, before.n_outputs) == (items.shape[1], len(self.targets_) + 1)

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
        self.offsets_, shares, self.selection_, self._margins = calibrate(logits, plain_selection(self.omega_), bounds)
        self._report_shares(shares)
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

    def _scores(self, X):
        return predict_log_proba(self.gate_, X) + self.offsets_

    def _select(self, experts, omega):
        """Selection weights (n_targets, n_experts) of a roster; zero rows for targets without members."""
        plain = plain_selection(omega)
        workload = self._of_roster(self.workload, experts, common_ndim=1)
        bounds = share_bounds(None, workload, None, experts, self.targets_)
        if not bounds.bind:
            return plain
        try:
            return select_members(plain, self.target_shares_, bounds, names=[*experts, "classifier"])
        except ValueError as error:
            warnings.warn(
                f"the workload bounds cannot be kept by this roster ({error}); its members share the work by their "
                "memberships. Call recalibrate, which also moves work between groups, or onboard more experts.",
                stacklevel=4,
            )
            return plain

    def _of_roster(self, setting, experts, common_ndim):
        """What is set for each expert, for a roster: by name after `fit`, so that it stays with its owner."""
        if setting is None or hasattr(setting, "items"):
            present = {*experts, *self.targets_}
            gone = set(self._fit_experts) - present
            return {name: value for name, value in (setting or {}).items() if name not in gone} or None
        values = np.asarray(setting, dtype=float)
        if values.ndim == common_ndim or len(values) != len(self._fit_experts):
            return setting
        return self._of_roster(dict(zip(self._fit_experts, values, strict=True)), experts, common_ndim)
