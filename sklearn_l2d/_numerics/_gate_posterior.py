"""Exact E-step of the two-level mixture: which target, and which expert in it, answered each item."""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from .._sklearn import one_blas_thread
from ._shares import (
    check_share_sums,
    minimise_share_dual,
    normalised_weight,
    project_onto_shares,
    restricts,
    row_exponentials,
    share_violation,
    start_dual,
)

# Keeps a reachable target alive in the linear domain, whatever the gate thinks of it.
_TINY = 1e-300


class GatePosterior(NamedTuple):
    """Projected posterior: `targets` (n, K), `experts` (n, M), the multipliers and their certificate."""

    targets: np.ndarray
    experts: np.ndarray
    target_dual: np.ndarray
    expert_dual: np.ndarray
    n_iter: int
    violation: float


def gate_log_likelihood(log_gate, selection, log_likelihood):
    """Mean log-probability of the true labels under the mixture, the objective of L2D-Clusters Eq. 34.

    Parameters are those of `gate_posterior`, with `log_gate` normalised. Returns a float.
    """
    likelihood, peak = row_exponentials(log_likelihood, 0.0)
    with np.errstate(divide="ignore"):
        log_target = log_gate + np.log(likelihood @ selection.T)
    return float(normalised_weight(None, len(peak)) @ (logsumexp(log_target, axis=1) + peak))


@one_blas_thread
def gate_posterior(
    log_gate,
    selection,
    log_likelihood,
    *,
    target_bounds=None,
    expert_bounds=None,
    target_dual=None,
    expert_dual=None,
):
    r"""Posterior over targets and experts, tilted so that their mean shares respect bounds.

    Without bounds `q(k, m)` is proportional to `g_k S_km p(y | annotation_m)` (L2D-Clusters appendix G,
    E-step); with bounds it is its I-projection (Eq. 40-44, corrected: on all items, with bounds on targets
    too). The classifier is a target of its own with itself as the only member, so bounding its target
    bounds the coverage. The pairs (target, expert) are never spelt out item by item.

    Parameters
    ----------
    log_gate : ndarray of shape (n_items, n_targets)
        Log-probabilities of the gate, the classifier's target included.
    selection : ndarray of shape (n_targets, n_experts)
        Selection weights within each target, rows sum to 1; the classifier counts as an expert.
    log_likelihood : ndarray of shape (n_items, n_experts)
        `ln p(y | annotation)` of each expert and of the classifier.
    target_bounds, expert_bounds : tuple (lower, upper) of array-like, default=None
        Bounds of the mean shares of targets and of experts; None sets no bounds.
    target_dual, expert_dual : ndarray, default=None
        Multipliers to start from.

    Returns
    -------
    posterior : GatePosterior
        `targets` is what the gate learns from.
    """
    n_targets, n_experts = selection.shape
    target_bounds = check_share_sums(*(target_bounds or (np.zeros(n_targets), np.ones(n_targets))))
    expert_bounds = check_share_sums(*(expert_bounds or (np.zeros(n_experts), np.ones(n_experts))))
    if not restricts(*expert_bounds):
        likelihood, _ = row_exponentials(log_likelihood, 0.0)
        reached = likelihood @ selection.T
        with np.errstate(divide="ignore"):
            log_target = log_gate + np.log(reached)
        targets, dual, n_iter, violation = project_onto_shares(log_target, *target_bounds, dual=target_dual)
        experts = likelihood * (_safe_divide(targets, reached) @ selection)
        return GatePosterior(targets, experts, dual, np.zeros(n_experts), n_iter, violation)
    if not restricts(*target_bounds):
        gate = _gate_exponentials(log_gate, 0.0)
        reached = gate @ selection
        with np.errstate(divide="ignore"):
            log_expert = log_likelihood + np.log(reached)
        experts, dual, n_iter, violation = project_onto_shares(log_expert, *expert_bounds, dual=expert_dual)
        targets = gate * (_safe_divide(experts, reached) @ selection.T)
        return GatePosterior(targets, experts, np.zeros(n_targets), dual, n_iter, violation)

    weight = normalised_weight(None, len(log_gate))
    lower, upper = (np.concatenate(pair) for pair in zip(target_bounds, expert_bounds, strict=True))
    start = np.concatenate([start_dual(target_dual, *target_bounds), start_dual(expert_dual, *expert_bounds)])
    open_ = np.flatnonzero(np.isfinite(start))
    evaluate, curvature = _pair_moments(log_gate, selection, log_likelihood, weight, start, open_)
    dual, shares, (targets, experts, _), n_iter = minimise_share_dual(
        evaluate, curvature, lower[open_], upper[open_], start[open_], overlap=2
    )
    start[open_] = dual
    violation = share_violation(shares, lower[open_], upper[open_])
    return GatePosterior(targets, experts, start[:n_targets], start[n_targets:], n_iter, violation)


def _safe_divide(numerator, denominator):
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def _gate_exponentials(log_gate, tilt):
    gate, _ = row_exponentials(log_gate, tilt)
    return np.maximum(gate, _TINY, out=gate, where=np.isfinite(log_gate + tilt))


def _pair_moments(log_gate, selection, log_likelihood, weight, start, open_):
    """Functions for the dual of bounds on targets and experts at once: multipliers of targets come first."""
    n_targets = len(selection)
    full = start.copy()

    def evaluate(dual):
        full[open_] = dual
        gate, gate_peak = row_exponentials(log_gate, full[:n_targets])
        likelihood, peak = row_exponentials(log_likelihood, full[n_targets:])
        experts = (gate @ selection) * likelihood
        sums = experts.sum(axis=1, keepdims=True)
        experts /= sums
        gate /= sums
        targets = gate * (likelihood @ selection.T)
        shares = np.concatenate([weight @ targets, weight @ experts])[open_]
        value = weight @ (gate_peak + peak + np.log(sums[:, 0]))
        return value, shares, (targets, experts, (gate, likelihood))

    def curvature(state, active):
        targets, experts, (gate, likelihood) = state
        both = np.hstack([targets, experts])[:, open_[active]]
        pairs = selection * ((gate * weight[:, None]).T @ likelihood)
        mean = np.block([[np.diag(pairs.sum(axis=1)), pairs], [pairs.T, np.diag(pairs.sum(axis=0))]])
        return mean[np.ix_(open_[active], open_[active])] - (both * weight[:, None]).T @ both

    return evaluate, curvature
