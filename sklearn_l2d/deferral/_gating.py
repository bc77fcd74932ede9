"""The EM gate that every EM deferrer shares: training, cross-fitted logits and hard-share calibration."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from sklearn.model_selection import KFold

from .._numerics._gate_posterior import gate_log_likelihood, gate_posterior
from .._numerics._shares import calibrate_offsets, nearest_target_shares, project_onto_shares, restricts
from .._torch._batches import Rows
from .._torch._net import train
from .._torch._seeding import resolve_device, seeded
from .._torch._target_net import build_target_net, predict_log_proba
from ._bounds import select_members, with_classifier

QUANTILES = np.linspace(0, 1, 2001)  # resolution of a coverage path without unlabelled rows


class GateProblem(NamedTuple):
    """What a gate learns from.

    Attributes
    ----------
    X : ndarray of shape (n, ...)
        Items.
    log_likelihood : ndarray of shape (n, n_experts + 1)
        ``ln p(y | answer)`` of every expert and, last, of the classifier, less what asking them costs.
    omega : ndarray of shape (n_targets, n_experts)
        Within-target selection of the human targets, rows sum to 1.
    bounds : ShareBounds
        On targets and experts.
    weight : ndarray of shape (n,)
        Row weights.
    prior : ndarray of shape (n, n_targets + 1) or None
        Logits to which the gate adds its own.
    refresh : callable or None
        Called before every epoch but the first with the responsibilities of the last E-step, for those whom `evidence`
        tells apart; whatever gives evidence may learn from them. Returns a mapping with what has changed of
        `log_likelihood` and `prior`; called with None, it only says what they are. None keeps them as they are.
    """

    X: np.ndarray
    log_likelihood: np.ndarray
    omega: np.ndarray
    bounds: tuple
    weight: np.ndarray
    prior: np.ndarray | None = None
    refresh: Callable | None = None

    def rows(self, index):
        """The same problem on some rows, with the evidence of now."""
        now = self.now()
        return self._replace(
            X=self.X[index],
            log_likelihood=now.log_likelihood[index],
            weight=self.weight[index],
            prior=None if now.prior is None else now.prior[index],
            refresh=None,
        )

    def now(self, responsibilities=None):
        """The same problem with refreshed evidence."""
        if self.refresh is None:
            return self
        return self._replace(**self.refresh(responsibilities))

    def evidence(self):
        """Selection (K + 1, J), log-likelihood (n, J) and bounds of those whom the E-step has to tell apart.

        Who answers within a target matters to bounds on experts only: without any, experts are summed out once
        instead of before every epoch, and every target is its own decision maker.
        """
        selection = with_classifier(self.omega)
        if restricts(*self.bounds.experts):
            return selection, self.log_likelihood, self.bounds.experts
        peak = self.log_likelihood.max(1, keepdims=True)
        with np.errstate(divide="ignore"):
            log_likelihood = np.log(np.exp(self.log_likelihood - peak) @ selection.T) + peak
        return np.eye(len(selection)), log_likelihood, None


def new_gate(n_features, n_targets, seed, *, module, hidden_layer_sizes, dtype, device, **settings):
    """Untrained gate over the human targets and, last, the classifier."""
    device = resolve_device(device)
    with seeded(seed, device):
        return build_target_net(
            module,
            n_features,
            n_targets + 1,
            hidden_layer_sizes,
            getattr(torch, dtype),
            device=device,
            **settings,
        )


def start_at_bounds(net, problem):
    """Offset the prior of an untrained gate so that its shares meet the bounds of the targets from the first epoch on.

    A gate that starts far from a coverage that it is asked for gets there by trusting its prior less, and then knows
    less about single items.
    """
    if problem.prior is None or not restricts(*problem.bounds.targets):
        return
    dual = project_onto_shares(predict_log_proba(net, problem.X, problem.prior), *problem.bounds.targets)[1]
    offset = np.where(np.isfinite(dual), dual, 0.0)  # whoever is shut out, or decides everything, needs none
    net.module_.offset.copy_(torch.from_numpy(offset))


def train_gate(net, problem, n_epochs, *, seed, dtype, verbose=0, cosine=True, e_step=gate_posterior):
    """EM with the E-step on all rows before every epoch and stochastic gradient descent as M-step.

    Another `e_step` than `gate_posterior` has its signature.

    Returns
    -------
    history : list of dict
        Of every epoch, with the mean log-likelihood of the truth under the mixture and the constraint violation.
    """
    selection, log_likelihood, expert_bounds = problem.evidence()
    prior = () if problem.prior is None else (problem.prior,)
    targets = np.zeros((len(problem.X), len(selection)))
    rows = Rows(problem.X, targets, *prior, dtype=getattr(torch, dtype), device=net.device)
    deserted = np.append(problem.omega.sum(1) <= 0, False)  # nothing is learnt, or forgotten, about them
    duals, records = {"target_dual": None, "expert_dual": None}, []
    experts = None

    def start_epoch(_):
        nonlocal problem, log_likelihood, experts
        if problem.refresh is not None and experts is not None:
            problem = problem.now(experts)
            log_likelihood = problem.evidence()[1]
            if problem.prior is not None:
                rows.set_target(problem.prior, 1)
        log_gate = predict_log_proba(net, problem.X, problem.prior)
        posterior = e_step(
            log_gate,
            selection,
            log_likelihood,
            target_bounds=problem.bounds.targets,
            expert_bounds=expert_bounds,
            **duals,
        )
        duals.update(target_dual=posterior.target_dual, expert_dual=posterior.expert_dual)
        experts = posterior.experts
        reached = gate_log_likelihood(log_gate, selection, log_likelihood)
        records.append({"log_likelihood": reached, "constraint_violation": posterior.violation})
        idle = np.exp(log_gate) * deserted
        targets = posterior.targets * (1 - idle.sum(1, keepdims=True)) + idle
        rows.set_target(targets * problem.weight[:, None])
        return "gate"

    history = train(net, rows, n_epochs, seed=seed, cosine=cosine, verbose=verbose, label="gate", on_epoch=start_epoch)
    return [record | extra for record, extra in zip(history, records, strict=False)]


def cross_fitted_logits(build, problem, n_epochs, n_folds, *, seed, dtype):
    """Logits of the rows of a problem from gates that did not see them, for calibration without unlabelled rows.

    Parameters
    ----------
    build : callable
        From a problem to an untrained gate.
    problem : GateProblem
    n_epochs, n_folds, seed, dtype
        As for the gate itself.
    """
    logits = np.empty((len(problem.X), len(problem.omega) + 1))
    folds = KFold(min(n_folds, len(problem.X)), shuffle=True, random_state=seed)
    for seen, unseen in folds.split(problem.X):
        learnt = problem.rows(seen)
        net = build(learnt)
        train_gate(net, learnt, n_epochs, seed=seed, dtype=dtype)
        held_out = problem.rows(unseen)
        logits[unseen] = predict_log_proba(net, held_out.X, held_out.prior)
    return logits


class Calibration(NamedTuple):
    """Offsets that make hard shares meet their bounds, and the selection weights that go with them.

    Attributes
    ----------
    offsets : ndarray of shape (n_targets + 1,)
        Added to the gate's logits; -inf shuts a target out.
    shares : ndarray of shape (n_targets + 1,)
        Achieved hard shares on the calibration rows.
    selection : ndarray of shape (n_targets, n_experts)
        Who of a target is asked.
    margins : ndarray of shape (2001,)
        Quantiles of the classifier's margin over the best human target, from which a coverage path is cut.
    """

    offsets: np.ndarray
    shares: np.ndarray
    selection: np.ndarray
    margins: np.ndarray


def calibrate(logits, omega, bounds):
    """Make the shares of the argmax meet the bounds on some rows.

    Parameters
    ----------
    logits : ndarray of shape (n, n_targets + 1)
        Gate logits of rows that the gate was not trained on.
    omega : ndarray of shape (n_targets, n_experts)
        Within-target selection, rows sum to 1; a zero row is a target without members.
    bounds : ShareBounds
        On targets and experts; 0 for targets without members.

    Returns
    -------
    calibration : Calibration
    """
    offsets, shares = calibrate_offsets(logits, *bounds.targets)
    selection = omega
    if restricts(*bounds.experts):
        # the experts' bounds may not be attainable at these shares of their targets: then those move too
        support, (lower, upper) = with_classifier(omega) > 0, bounds.targets
        wanted = nearest_target_shares(shares, *bounds.experts, support, target_lower=lower, target_upper=upper)
        if np.abs(wanted - shares).max() > 1e-9:
            offsets, shares = calibrate_offsets(logits, wanted, wanted)
        selection = select_members(omega, wanted, bounds)
    if bounds.target_lower[-1] > 1 - 0.5 / len(logits):
        # holds on other rows, too; an infinite offset of the classifier leaves the others comparable at other coverages
        offsets = np.append(np.where(bounds.target_upper[:-1] > 0, 0.0, -np.inf), np.inf)
    offsets[:-1][omega.sum(1) <= 0] = 0.0  # empty targets are shut out by having no members, until somebody joins
    return Calibration(offsets, shares, selection, _margin_quantiles(logits, offsets))


def coverage_offset(margins, coverage):
    """Offset on the classifier's logit that gives it a share of the rows whose margins have these quantiles."""
    if coverage <= 0:
        return -np.inf
    if coverage >= 1:
        return np.inf
    return -np.interp(1 - coverage, QUANTILES, margins)


def _margin_quantiles(logits, offsets):
    """Quantiles of the classifier's margin over the best human target, before any offset of its own."""
    open_ = np.flatnonzero(np.isfinite(offsets[:-1]))
    if not open_.size:
        return np.zeros(len(QUANTILES))
    return np.quantile(logits[:, -1] - (logits[:, open_] + offsets[open_]).max(1), QUANTILES)
