"""How an EM deferrer learns: evidence of everybody, EM gate, and offsets that meet the bounds."""

import copy

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from .._numerics._answers import expected_correctness, tally_answers
from .._numerics._gate_posterior import gate_posterior
from .._torch._target_net import TargetNet, predict_log_proba
from ._answers import absent_likelihood, check_error_cost, consultation_nats, team_log_likelihood
from ._bounds import plain_selection
from ._coverage import CoverageMixin
from ._gating import GateProblem, cross_fitted_logits, new_gate, start_at_bounds, train_gate

_LEAST = 1e-3  # probability of being right below which a target is not ranked any lower


class GateTrainingMixin(CoverageMixin):
    """Training and calibration of a gate; a subclass sets the targets in `_form_targets`."""

    _gate_net = TargetNet
    _e_step = staticmethod(gate_posterior)

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
        self._answer_likelihood()
        self._check_bounds()

    def _learn(self, team):
        self._form_targets(team)
        bounds, price = self._bounds(), self._price()
        weight = compute_sample_weight(self.class_weight, team.y)
        selection = plain_selection(self.omega_)
        self._target_correctness = selection @ self._correctness()  # of now: the gate stays when people come and go
        evidence = self._gather_evidence(team, weight, price)
        problem = GateProblem(X=team.items, omega=selection, bounds=bounds, weight=weight, **evidence)
        if self._continues(team.items):
            self.gate_ = copy.deepcopy(self.gate_)
        else:
            self.gate_, self.history_, self.n_iter_ = self._new_gate(problem), [], 0
        self._train(problem, self.max_epochs)
        if team.unlabeled is not None:
            self._calibrate(self._free_scores(team.unlabeled))
        elif bounds.bind:
            self._calibrate(self._cross_fitted_logits(problem))
        else:
            # the prior of the problem is out of fold: the classifier is surer of rows that it has seen than of others
            self._calibrate(predict_log_proba(self.gate_, team.items, problem.now().prior))

    def _gather_evidence(self, team, weight, price):
        """Fit the classifier; returns what a `GateProblem` is to know about everybody, `refresh` included."""
        return self._evidence(team.items, team.codes, team.y_codes, self._judge_classifier(team), price)

    def _evidence(self, items, codes, y_codes, proba, price):
        """`log_likelihood` and `prior` of a `GateProblem`, from honest probabilities of the classifier."""
        log_likelihood = self._log_likelihood(items, codes, y_codes, proba, price)
        return {"log_likelihood": log_likelihood, "prior": self._prior(proba)}

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self._set_no_offsets()
        self.gate_, self._target_correctness = None, np.empty((0, len(self.classes_)))

    def _learn_more(self, X, y, annotations):
        """One epoch on feedback."""
        items = self._check_array(X)
        if len(self.experts_) == 0:
            return self
        codes, truth = self._check_answers(annotations, len(items), "partial_fit"), self._known_truth(X, y)
        draft = self._copy_with(gate_=copy.deepcopy(self.gate_))
        proba = self._classifier_proba(X)
        evidence = self._evidence(items, codes, truth.argmax(1), proba, self._price())
        weight = compute_sample_weight(self.class_weight, y)
        problem = GateProblem(X=items, omega=self.selection_, bounds=self._bounds(), weight=weight, **evidence)
        draft._train(problem, 1, cosine=False)
        right, seen = tally_answers(codes, truth)
        draft._right, draft._seen = self._right + right, self._seen + seen
        draft._margins = None  # they are those of the gate before
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

    def _continues(self, items):
        """Whether training goes on from the previous gate, which must fit the present data."""
        if not self._warm() or self.gate_ is None:
            return False
        before = self.gate_.module_
        same_size = (before.n_features, before.n_outputs) == (items.shape[1], len(self.targets_) + 1)
        return same_size and self.gate_.prior_weight == self.prior_weight

    def _new_gate(self, problem):
        gate = new_gate(
            problem.X.shape[1],
            len(problem.omega),
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
            prior_weight=self.prior_weight,
            net_class=self._gate_net,
        )
        start_at_bounds(gate, problem)
        return gate

    def _train(self, problem, n_epochs, cosine=True):
        seed = self._seed + self.n_iter_
        history = train_gate(
            self.gate_,
            problem,
            n_epochs,
            seed=seed,
            dtype=self.dtype,
            verbose=self.verbose,
            cosine=cosine,
            e_step=self._e_step,
        )
        self.history_ = self.history_ + history
        self.n_iter_ = len(self.history_)

    def _cross_fitted_logits(self, problem):
        return cross_fitted_logits(self._new_gate, problem, self.max_epochs, self.cv, seed=self._seed, dtype=self.dtype)

    def _free_scores(self, X):
        prior = None if self.prior_weight == 0 else self._prior(self._classifier_proba(X))
        return predict_log_proba(self.gate_, self._check_array(X), prior)

    def _prior(self, proba):
        """Log of how often every target and the classifier are expected to be right, (n, n_targets + 1), if asked."""
        if self.prior_weight == 0:
            return None
        return np.log(np.maximum(expected_correctness(proba, self._target_correctness), _LEAST))
