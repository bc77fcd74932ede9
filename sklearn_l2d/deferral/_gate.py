"""Base of the deferrers with a gate that is trained by EM, its net and its training."""

import copy
import numbers
from collections.abc import Callable
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import log_softmax, logsumexp, softmax

from .._annotated_target import matched_target
from .._folds import FOLDS
from .._numerics._answers import expected_correctness
from .._numerics._evidence import Evidence, answer_evidence
from .._numerics._gate_posterior import gate_log_likelihood, gate_posterior, target_log_likelihood
from .._numerics._matrices import dense_if_small, identity, is_small, row_blocks
from .._sklearn import HasMethods, Interval, StrOptions, atomic_fit
from .._torch._batches import RowTable
from .._torch._modules import Single, ensemble_for
from .._torch._net import NET_CONSTRAINTS, TargetNet, build_net, check_net, check_outputs, predict_log_proba, train
from .._validation import check_all_known, check_answers, row_weights, weighted_rows
from ._answer_model import count_votes
from ._base import BaseDeferrer
from ._coverage import CoverageMixin, coverage_tilt, starting_offsets, two_sides
from ._duel import Duel
from ._settings import (
    ShareBounds,
    check_error_cost,
    check_in_one_target,
    consultation_nats,
    error_costs,
    of_roster,
    share_bounds,
    with_classifier,
)
from ._sight import GATE_FEATURES

_LEAST = 1e-3  # smallest probability of being right in a prior


class GateNet(TargetNet):
    """Gate trained by cross-entropy; prior logits may be added to its own.

    Attributes
    ----------
    prior_weight : float
        If it is above 0, every item has prior logits, to which the net adds its own.
    """

    def batch_loss(self, logits, targets, X):
        q, *prior = targets
        return super().batch_loss(self.with_prior(logits, *prior), [q], X)

    def with_prior(self, logits, prior=None):
        """Logits (B, n_outputs) with those of the prior added."""
        if prior is None:
            return logits
        module = self.module_
        return logits + self.prior_weight * module.log_weight.exp() * prior.to(logits) + module.offset.to(logits)


def predict_log_gate(net, X, prior=None):
    """Log-probabilities (n, n_outputs) of a gate, float64; `prior` holds prior logits of the same shape."""
    own = predict_log_proba(net, X)
    if prior is None:
        return own
    logits = net.with_prior(net.tensor(own), net.tensor(prior)).detach()
    check_outputs(logits)
    return log_softmax(logits.cpu().numpy(), axis=1)


class GateProblem(NamedTuple):
    """Data from which a gate learns.

    Attributes
    ----------
    X : ndarray of shape (n, ...)
        Items.
    log_likelihood : ndarray or RowTable of shape (n, n_experts + 1), or Evidence
        ``ln p(y | answer)`` of every expert and, last, the classifier, less the cost of asking. With a `RowTable`, only
        the classifier has bounds, and no table of items and targets is held.
    omega : ndarray or csr_array of shape (n_targets, n_experts)
        Within-target selection of the human targets, rows sum to 1.
    bounds : ShareBounds
        On targets and experts.
    weight : ndarray of shape (n,)
        Row weights.
    prior : ndarray or RowTable of shape (n, n_targets + 1), or None
        Prior logits, to which the gate adds its own.
    sample_weight : ndarray of shape (n,) or None
        Weights of the rows in the shares; None if all count alike.
    refresh : callable or None
        Called before every epoch but the first with the responsibilities of the last E-step for the columns of
        `evidence`, an array or a `RowTable`; nets that provide evidence may learn from them. Returns a mapping with new
        values of `log_likelihood` and `prior`. Called with None, it returns their current values. None keeps them as
        they are.
    of_targets : bool
        Whether the columns of `log_likelihood` are the targets: what a member is worth depends on the target.
    """

    X: np.ndarray
    log_likelihood: np.ndarray | Evidence
    omega: np.ndarray
    bounds: ShareBounds
    weight: np.ndarray
    prior: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    refresh: Callable | None = None
    of_targets: bool = False

    def rows(self, index):
        """The same problem on some rows, with the current evidence."""
        now = self.now()
        return self._replace(
            X=self.X[index],
            log_likelihood=now.log_likelihood[index],
            weight=self.weight[index],
            prior=None if now.prior is None else now.prior[index],
            sample_weight=None if self.sample_weight is None else self.sample_weight[index],
            refresh=None,
        )

    def now(self, responsibilities=None):
        """The same problem with refreshed evidence."""
        if self.refresh is None:
            return self
        return self._replace(**self.refresh(responsibilities))

    def evidence(self):
        """Selection (K + 1, J), log-likelihood (n, J) and bounds of the J columns of the E-step.

        The columns are the experts if experts have bounds. Otherwise the experts are summed out once instead of before
        every epoch, and the columns are the targets. Where every expert is a target, bounds on one are on the other.
        Evidence of targets stays as it is.
        """
        selection, log_likelihood = with_classifier(self.omega), self.log_likelihood
        if self.bounds.bind_experts and self.of_targets:
            return selection.toarray() if issparse(selection) else selection, log_likelihood, self.bounds.experts
        if self.bounds.bind_experts and not issparse(self.omega):
            return selection, log_likelihood, self.bounds.experts
        if self.of_targets:
            of_targets = log_likelihood
        elif self.by_rows:
            shape, member = (len(self.X), selection.shape[0]), csr_array(selection)
            of_targets = RowTable(lambda rows: target_log_likelihood(member, np.asarray(log_likelihood[rows])), shape)
        else:
            of_targets = target_log_likelihood(selection, log_likelihood)
        return dense_if_small(identity(selection.shape[0])), of_targets, None

    @property
    def by_rows(self):
        """Whether tables of items and targets are made for a few rows at a time."""
        return isinstance(self.log_likelihood, RowTable)

    def log_gate(self, net):
        """Log-probabilities (n, n_targets + 1) of a gate, as a `RowTable`."""
        X, prior = self.X, self.prior

        def make(rows):
            return predict_log_gate(net, X[rows], None if prior is None else np.asarray(prior[rows]))

        return RowTable(make, (len(X), self.omega.shape[0] + 1))


def start_at_bounds(net, problem):
    """Offset the prior of an untrained gate so that its shares meet the bounds of the targets at the start.

    A gate that starts far from a requested coverage reaches it by lowering the weight of its prior, and then knows less
    about single items.
    """
    if problem.prior is None or not problem.bounds.bind_targets:
        return
    log_gate = problem.log_gate(net)
    if problem.by_rows:
        offset, _ = coverage_tilt(
            two_sides(log_gate), problem.omega.shape[0], problem.bounds, sample_weight=problem.sample_weight
        )
        offset[~np.isfinite(offset)] = 0.0
    else:
        offset = starting_offsets(np.asarray(log_gate), problem.bounds, problem.sample_weight)
    net.module_.offset.copy_(net.tensor(offset))


class Inference(NamedTuple):
    """What an E-step says about the items.

    Attributes
    ----------
    targets : ndarray or RowTable of shape (n, n_targets + 1)
        From which the gate learns.
    experts : ndarray or RowTable of shape (n, J)
        Responsibilities for the columns of the evidence.
    duals : dict
        Multipliers to start from in the next E-step.
    record : dict
        Mean log-likelihood and constraint violation.
    """

    targets: np.ndarray | RowTable
    experts: np.ndarray | RowTable
    duals: dict
    record: dict


def infer(net, problem, evidence, duals, e_step):
    """E-step on all rows at once; `e_step` has the signature of `gate_posterior`."""
    selection, log_likelihood, expert_bounds = evidence
    log_prior = log_gate = np.asarray(problem.log_gate(net))
    if problem.of_targets:  # within a target, all members are alike
        log_prior, log_likelihood = log_gate + log_likelihood, np.zeros((len(log_gate), selection.shape[1]))
    bounds = {"target_bounds": problem.bounds.targets, "expert_bounds": expert_bounds}
    weights = {} if problem.sample_weight is None else {"sample_weight": problem.sample_weight}
    posterior = e_step(log_prior, selection, log_likelihood, **bounds, **duals, **weights)
    reached = gate_log_likelihood(log_prior, selection, log_likelihood, problem.sample_weight)
    return Inference(
        with_idle(posterior.targets, log_gate, problem.omega) * problem.weight[:, None],
        posterior.targets if problem.of_targets else posterior.experts,
        {"target_dual": posterior.target_dual, "expert_dual": posterior.expert_dual},
        {"log_likelihood": reached, "constraint_violation": posterior.violation},
    )


def infer_by_rows(net, problem, evidence, duals):
    """E-step of a few rows at a time, which are computed again for every batch that learns from them.

    One pass over all rows finds the tilt with which the classifier meets its bounds. All else depends on single rows.
    """
    _, log_likelihood, _ = evidence
    log_gate = problem.log_gate(net.frozen())
    shape = log_gate.shape

    def log_target(rows):
        own = np.asarray(log_gate[rows])
        return own, own + np.asarray(log_likelihood[rows])

    sides = two_sides(RowTable(lambda rows: log_target(rows)[1], shape))
    tilt, violation = coverage_tilt(sides, shape[1] - 1, problem.bounds, duals.get("tilt"), problem.sample_weight)

    def targets(rows):
        own, log_q = log_target(rows)
        return with_idle(softmax(log_q + tilt, axis=1), own, problem.omega) * problem.weight[rows][:, None]

    posterior = RowTable(lambda rows: softmax(log_target(rows)[1] + tilt, axis=1), shape)
    reached = float(np.average(logsumexp(sides, axis=1), weights=problem.sample_weight))
    record = {"log_likelihood": reached, "constraint_violation": violation}
    return Inference(RowTable(targets, shape), posterior, {"tilt": tilt}, record)


def with_idle(targets, log_gate, omega):
    """Posterior (n, n_targets + 1) in which targets without members keep the probability that the gate gives them."""
    deserted = np.append(omega.sum(1) <= 0, False)
    idle = np.exp(log_gate) * deserted
    return targets * (1 - idle.sum(1, keepdims=True)) + idle


def train_gate(net, problem, n_epochs, *, seed, verbose=0, cosine=True, e_step=gate_posterior):
    """Train a gate by EM: an E-step on all rows before every epoch, stochastic gradient descent as M-step.

    `e_step` has the signature of `gate_posterior`, and is used where all rows are in memory.

    Returns
    -------
    history : list of dict
        Records of the epochs, with the mean log-likelihood of the truth under the mixture and the constraint violation.
    """
    evidence = problem.evidence()
    prior = () if problem.prior is None else (problem.prior,)
    nothing = np.broadcast_to(0.0, (len(problem.X), problem.omega.shape[0] + 1))
    rows = net.rows(problem.X, nothing, *prior)
    infer_now = infer_by_rows if problem.by_rows else partial(infer, e_step=e_step)
    found, records = None, []

    def start_epoch(_):
        nonlocal problem, evidence, found
        if problem.refresh is not None and found is not None:
            problem = problem.now(found.experts)
            evidence = problem.evidence()
            if problem.prior is not None:
                rows.set_target(problem.prior, 1)
        found = infer_now(net, problem, evidence, {} if found is None else found.duals)
        records.append(found.record)
        rows.set_target(found.targets)
        return "gate"

    history = train(net, rows, n_epochs, seed=seed, cosine=cosine, verbose=verbose, label="gate", on_epoch=start_epoch)
    return [record | extra for record, extra in zip(history, records, strict=False)]


def cross_fitted_logits(build, problem, n_epochs, fold, *, seed):
    """Out-of-fold logits of the rows of a problem, for calibration without unlabelled rows, as a `RowTable`.

    Parameters
    ----------
    build : callable
        Returns an untrained gate for a problem.
    problem : GateProblem
    n_epochs, seed
        As for the gate itself.
    fold : ndarray of int of shape (n,)
        Of every row, as `folds_of` returns them.
    """
    problem = problem.now()._replace(refresh=None)
    of_fold = []
    for number in range(fold.max() + 1):
        learnt = problem.rows(np.flatnonzero(fold != number))
        net = build(learnt)
        train_gate(net, learnt, n_epochs, seed=seed)
        of_fold.append(problem.log_gate(net))

    def make(rows):
        rows = np.arange(len(fold))[rows]
        logits = np.empty((len(rows), problem.omega.shape[0] + 1))
        for number, log_gate in enumerate(of_fold):
            mine = fold[rows] == number
            logits[mine] = np.asarray(log_gate[rows[mine]])
        return logits

    return RowTable(make, of_fold[0].shape)


def table_if_small(evidence):
    """`Evidence` as an array, unless it is large."""
    return evidence.table() if is_small(evidence.shape) else evidence


class GatedDeferrer(CoverageMixin, BaseDeferrer):
    """Base of the deferrers with a gate that is trained by EM; a subclass defines the targets.

    `_gate_net` is the class of the gate, and `_e_step` its E-step.
    """

    _gate_net = GateNet
    _e_step = staticmethod(gate_posterior)

    _parameter_constraints: ClassVar = {
        **NET_CONSTRAINTS,
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "cv": FOLDS,
        "coverage": [Interval(numbers.Real, 0, 1, closed="both"), "array-like", None],
        "workload": ["array-like", dict, None],
        "gate_features": GATE_FEATURES,
        "prior_weight": [Interval(numbers.Real, 0, None, closed="left")],
        "annotation_smoothing": [Interval(numbers.Real, 0, 0.5, closed="neither")],
        "consultation_cost": [numbers.Real, "array-like", dict, None],
        "error_cost": ["array-like", None],
        "class_weight": [dict, HasMethods(["items"]), StrOptions({"balanced"}), None],
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        classifier=None,
        cv=5,
        coverage=None,
        workload=None,
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
        self.classifier = classifier
        self.cv = cv
        self.coverage = coverage
        self.workload = workload
        self.gate_features = gate_features
        self.prior_weight = prior_weight
        self.annotation_smoothing = annotation_smoothing
        self.consultation_cost = consultation_cost
        self.error_cost = error_cost
        self.class_weight = class_weight
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
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

    @atomic_fit(prefer_skip_nested_validation=False)
    def partial_fit(self, X, y, annotations=None, classes=None, sample_weight=None):
        """Train the gate for one epoch on feedback, and add the feedback to the experts' correctness.

        The classifier, the targets and the offsets do not change; call `recalibrate` after much feedback. The first
        call of an unfitted deferrer is a `fit`; all others need every true label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples,)
            True labels; an `AnnotatedTarget` also brings the annotations.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        classes : array-like of shape (n_classes,), default=None
            All classes, for the first call if `y` does not have them all.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the items, as in `fit`.

        Returns
        -------
        self : object
            The deferrer after one more epoch.
        """
        if self.__sklearn_is_fitted__():
            rows = weighted_rows(X, *matched_target(X, y, annotations), sample_weight)
            self._learn_more(rows.X, rows.y, rows.annotations, rows.weights)
        else:
            self._fit(X, y, annotations, sample_weight=sample_weight, classes=() if classes is None else classes)

    def _form_targets(self, team):
        """Set the targets and the memberships of the experts."""
        raise NotImplementedError

    def _draw_seed(self):
        if self._warm():
            return self._seed
        return super()._draw_seed()

    def _warm(self):
        return self.warm_start and hasattr(self, "gate_")

    def _check_settings(self, y):
        super()._check_settings(y)
        check_net(self.get_params(deep=False))
        row_weights(self.class_weight, y)
        self._answer_likelihood()
        check_in_one_target(share_bounds(self.coverage, self.workload, None, self.experts_, []), self.experts_)

    def _array_form(self):
        return {"dtype": self.dtype, "allow_nd": self.module is not None}

    def _net_settings(self):
        return {"class_weight": self.class_weight, "device": self.device}

    def _bounds(self, roster):
        return share_bounds(
            self.coverage, self._of_roster("workload", roster, 1), self._group_bounds(), roster.experts, self.targets_
        )

    def _group_bounds(self):
        """Requested bounds on the shares of the human targets."""
        return None

    def _of_roster(self, parameter, roster, common_ndim):
        return of_roster(getattr(self, parameter), parameter, self._fit_experts, roster, common_ndim)

    def _learn(self, team):
        self._prepare_sight(team, self.cv)
        self._form_targets(team)
        bounds, price = self._feasible(self._bounds(self._roster)), self._price()
        weight, sample_weight = row_weights(self.class_weight, team.y, team.weight_if_any), team.weight_if_any
        selection = dense_if_small(self._plain_selection())
        self._set_target_correctness()
        evidence = self._gather_evidence(team, weight, price)
        problem = GateProblem(
            X=team.items.array,
            omega=selection,
            bounds=bounds,
            weight=weight,
            sample_weight=sample_weight,
            **evidence,
        )
        if self._continues(team.items.array):
            self.gate_ = copy.deepcopy(self.gate_)
        else:
            self.gate_, self.history_, self.n_iter_ = self._new_gate(problem), [], 0
        self._train(problem, self.max_epochs)
        if team.unlabeled is not None:
            contest = self._contest(team.unlabeled, bounds)
        else:
            if bounds.bind:
                fold = team.folds(self.cv, self._seed, stratified=False)
                scores = cross_fitted_logits(self._new_gate, problem, self.max_epochs, fold, seed=self._seed)
            else:
                # out-of-fold prior: the classifier is surer of rows that it was fitted on than of others
                scores = problem.now().log_gate(self.gate_)
            contest = np.asarray(scores) if self._bind_people(bounds) else self._duel_of(scores)
        self._calibrate(contest, bounds, sample_weight if team.unlabeled is None else None)

    def _duel_of(self, scores):
        """`Duel` by a `RowTable` of scores, some rows at a time."""
        blocks = row_blocks(*scores.shape)
        return Duel.joined((Duel.of(self._masked(np.asarray(scores[rows]))) for rows in blocks), len(scores))

    def _gather_evidence(self, team, weight, price):
        """Fit the classifier and return `log_likelihood`, `prior` and, if used, `refresh` of a `GateProblem`."""
        proba = self._judge_classifier(team, self.cv)
        return self._evidence(team.items, team.votes, team.y_codes, proba, price, team.weight)

    def _evidence(self, items, votes, y_codes, proba, price, counted=None):
        """`log_likelihood` and `prior` of a `GateProblem`, from calibrated probabilities of the classifier.

        `counted` (n,) are the weights with which the roster has counted the answers to each item, None if it has not.
        """
        log_likelihood = self._log_likelihood(items, votes, y_codes, proba, price, counted)
        return {"log_likelihood": log_likelihood, "prior": self._prior(proba)}

    def _judge_classifier(self, team, cv):
        proba = super()._judge_classifier(team, cv)
        self._set_target_correctness()  # by all answers, which count now
        return proba

    def _set_target_correctness(self):
        """Fix the correctness of the targets in the prior: the gate does not change with the roster."""
        self._target_correctness = dense_if_small(self._plain_selection()) @ self._correctness

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self._set_no_offsets()
        self.gate_, self._target_correctness = None, np.empty((0, len(self.classes_)))

    def _learn_more(self, X, y, annotations, sample_weight):
        """Train for one epoch on feedback."""
        items = self._check_items(X)
        if self.n_experts_ == 0:
            return
        check_all_known(y, self.unlabeled_label, "partial_fit")
        votes = check_answers(annotations, items.given, self, "partial_fit", "refused")
        y_codes = self._check_truth(X, y)[0]
        self.gate_ = copy.deepcopy(self.gate_)
        proba = self._classifier_proba(items)
        evidence = self._evidence(items, votes, y_codes, proba, self._price())
        weight = row_weights(self.class_weight, y, sample_weight)
        bounds = self._feasible(self._bounds(self._roster))
        self._train(
            GateProblem(
                items.array,
                omega=dense_if_small(self._selection),
                bounds=bounds,
                weight=weight,
                sample_weight=sample_weight,
                **evidence,
            ),
            1,
            False,
        )
        truth = np.eye(len(self.classes_))[y_codes]
        truth = truth if sample_weight is None else truth * sample_weight[:, None]
        before, counts = self._roster, count_votes(votes, truth)
        self._roster = before.replace(**{name: getattr(before, name) + more for name, more in counts.items()})
        self._margins = None  # these were margins of the previous gate

    def _decision_cost(self):
        return error_costs(self.error_cost, self.classes_)

    def _price(self):
        """Cost of asking each expert, in nats."""
        return consultation_nats(
            self._of_roster("consultation_cost", self._roster, 0),
            self.experts_,
            self.targets_,
            self._roster.omega,
            len(self.classes_),
            self.annotation_smoothing,
        )

    def _answer_likelihood(self):
        """Likelihood (C, C) of the true class, the row, given an answer."""
        return check_error_cost(self.error_cost, self.classes_, self.annotation_smoothing)

    def _left_out(self, y_codes, counted):
        """Truth (n, C) of items with which the roster has counted the answers to them, None if it has not."""
        return None if counted is None else np.eye(len(self.classes_))[y_codes] * counted[:, None]

    def _log_likelihood(self, items, votes, y_codes, proba, price, counted=None):
        """Log-likelihood of the experts and the classifier for the E-step, less the cost of asking."""
        evidence = answer_evidence(votes, y_codes, proba, self._answer_likelihood(), self._correctness, price)
        return table_if_small(evidence)

    def _continues(self, items):
        """Whether training continues with the previous gate, which must have the right size."""
        if not self._warm() or self.gate_ is None:
            return False
        before = self.gate_.module_
        same_size = (before.n_features, before.n_outputs) == (items.shape[1], len(self.targets_) + 1)
        return same_size and self.gate_.prior_weight == self.prior_weight

    def _new_gate(self, problem):
        params = self.get_params(deep=False)
        build = ensemble_for(params, problem.X, problem.omega.shape[0] + 1)
        module = partial(Single, build, with_prior=self.prior_weight > 0)
        gate = build_net(self._gate_net, module, params, self._seed, prior_weight=self.prior_weight)
        start_at_bounds(gate, problem)
        return gate

    def _train(self, problem, n_epochs, cosine=True):
        seed, e_step = self._seed + self.n_iter_, self._e_step
        history = train_gate(
            self.gate_, problem, n_epochs, seed=seed, verbose=self.verbose, cosine=cosine, e_step=e_step
        )
        self.history_ = self.history_ + history
        self.n_iter_ = len(self.history_)

    def _scores(self, items):
        return self._free_scores(items) + self.offsets_

    def _explain_bounds(self, names, items, chosen):
        return self._explain_offsets(names, items, chosen)

    def _free_scores(self, items):
        prior = None if self.prior_weight == 0 else self._prior(self._classifier_proba(items))
        return predict_log_gate(self.gate_, items.array, prior)

    def _prior(self, proba):
        """Log of the expected correctness (n, n_targets + 1) of targets and classifier; None without a prior."""
        if self.prior_weight == 0:
            return None
        return np.log(np.maximum(self._known_at_fit(proba), _LEAST))

    def _known_at_fit(self, proba):
        """Expected correctness (n, n_targets + 1) of targets and classifier by what the gate started from."""
        return expected_correctness(proba, self._target_correctness)
