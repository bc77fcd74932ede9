"""Exact E-step of the two-level mixture: which target, and which expert in it, answered each item."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import csr_array, hstack
from scipy.special import logsumexp

from .._sklearn import one_blas_thread
from ._evidence import Evidence, Mixture
from ._shares import (
    Curvature,
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
# From this many multipliers on, a matrix of their curvature takes longer than a few products with it.
_MANY_MULTIPLIERS = 2_000


class GatePosterior(NamedTuple):
    """Projected posterior: `targets` (n, K), `experts` (n, M) or None, the multipliers and their certificate."""

    targets: np.ndarray
    experts: np.ndarray | None
    target_dual: np.ndarray
    expert_dual: np.ndarray
    n_iter: int
    violation: float


def gate_log_likelihood(log_gate, selection, log_likelihood, sample_weight=None):
    """Mean log-probability of the true labels under the mixture, the objective of L2D-Clusters Eq. 34.

    Parameters are those of `gate_posterior`, with `log_gate` normalised. Returns a float.
    """
    log_target = log_gate + target_log_likelihood(selection, log_likelihood)
    return float(normalised_weight(sample_weight, len(log_gate)) @ logsumexp(log_target, axis=1))


def target_log_likelihood(selection, log_likelihood):
    """Log-likelihood (n, K) of the mixture of the members of each target; parameters as in `gate_posterior`."""
    if isinstance(log_likelihood, Evidence):
        return log_likelihood.of_targets(selection)
    likelihood, peak = row_exponentials(log_likelihood, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(likelihood @ selection.T) + peak[:, None]


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
    sample_weight=None,
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
    log_likelihood : ndarray of shape (n_items, n_experts) or Evidence
        `ln p(y | annotation)` of each expert and of the classifier. With an `Evidence`, the cost grows with the number
        of annotations, and the posterior of the experts is not returned.
    target_bounds, expert_bounds : tuple (lower, upper) of array-like, default=None
        Bounds of the mean shares of targets and of experts; None sets no bounds.
    target_dual, expert_dual : ndarray, default=None
        Multipliers to start from.
    sample_weight : ndarray of shape (n_items,), default=None
        Weights of the items in the mean shares; equal by default.

    Returns
    -------
    posterior : GatePosterior
        `targets` is what the gate learns from.
    """
    n_targets, n_experts = selection.shape
    target_bounds = check_share_sums(*(target_bounds or (np.zeros(n_targets), np.ones(n_targets))))
    expert_bounds = check_share_sums(*(expert_bounds or (np.zeros(n_experts), np.ones(n_experts))))
    weight = normalised_weight(sample_weight, len(log_gate))
    both = log_gate, selection, log_likelihood, (target_bounds, expert_bounds), (target_dual, expert_dual), weight
    if isinstance(log_likelihood, Evidence):
        return _posterior_of_both(_sparse_moments, *both)
    if not restricts(*expert_bounds):
        likelihood, _ = row_exponentials(log_likelihood, 0.0)
        reached = likelihood @ selection.T
        with np.errstate(divide="ignore"):
            log_target = log_gate + np.log(reached)
        targets, dual, n_iter, violation = project_onto_shares(
            log_target, *target_bounds, dual=target_dual, sample_weight=sample_weight
        )
        experts = likelihood * (_safe_divide(targets, reached) @ selection)
        return GatePosterior(targets, experts, dual, np.zeros(n_experts), n_iter, violation)
    if not restricts(*target_bounds):
        gate = _gate_exponentials(log_gate, 0.0)
        reached = gate @ selection
        with np.errstate(divide="ignore"):
            log_expert = log_likelihood + np.log(reached)
        experts, dual, n_iter, violation = project_onto_shares(
            log_expert, *expert_bounds, dual=expert_dual, sample_weight=sample_weight
        )
        targets = gate * (_safe_divide(experts, reached) @ selection.T)
        return GatePosterior(targets, experts, np.zeros(n_targets), dual, n_iter, violation)

    return _posterior_of_both(_pair_moments, *both)


def _posterior_of_both(moments, log_gate, selection, log_likelihood, bounds, duals, weight):
    """Posterior under bounds on targets and experts at once; `bounds` and `duals` hold those of the targets first."""
    n_targets = len(selection)
    lower, upper = (np.concatenate(pair) for pair in zip(*bounds, strict=True))
    start = np.concatenate([start_dual(dual, *pair) for dual, pair in zip(duals, bounds, strict=True)])
    open_ = np.flatnonzero(np.isfinite(start))
    evaluate, curvature = moments(log_gate, selection, log_likelihood, weight, start, open_)
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


def _sparse_moments(log_gate, selection, evidence, weight, start, open_):
    """The functions of `_pair_moments` from `Evidence`; where multipliers are many, the curvature is a product."""
    n_targets = len(selection)
    full = start.copy()

    def evaluate(dual):
        full[open_] = dual
        gate, gate_peak = row_exponentials(log_gate, full[:n_targets])
        mixture = Mixture(evidence, selection, full[n_targets:])
        sums = (gate * mixture.of_targets).sum(axis=1, keepdims=True)
        gate /= sums
        targets = gate * mixture.of_targets
        pairs = selection * mixture.total(gate * weight[:, None])
        shares = np.concatenate([pairs.sum(axis=1), pairs.sum(axis=0)])
        value = weight @ (gate_peak + mixture.peak + np.log(sums[:, 0]))
        return value, shares[open_], (targets, None, (gate, mixture, pairs, shares))

    def curvature(state, active):
        targets, _, (gate, mixture, pairs, shares) = state
        places = open_[active]
        people = places[places >= n_targets] - n_targets
        some = places[places < n_targets]
        experts = mixture.posterior(gate, people)
        both = experts._replace(table=hstack([csr_array(targets[:, some]), experts.table]).tocsr())
        both = both._replace(rows=block_diag(np.eye(len(some)), experts.rows), cells=_after(len(some), experts.cells))
        of_pairs = pairs[np.ix_(some, people)]

        def product(direction):
            moved = weight * both.times(direction)
            mean = shares[places] * direction
            mean[: len(some)] += of_pairs @ direction[len(some) :]
            mean[len(some) :] += direction[: len(some)] @ of_pairs
            return mean - both.transposed_times(moved)

        if len(active) > _MANY_MULTIPLIERS:
            return Curvature(product, shares[places])
        mean = np.diag(shares[places])
        mean[: len(some), len(some) :] = of_pairs
        mean[len(some) :, : len(some)] = of_pairs.T
        return mean - both.gram(weight)

    return evaluate, curvature


def _after(n, matrix):
    """A sparse matrix behind n columns of zeros."""
    return csr_array((matrix.data, matrix.indices + n, matrix.indptr), shape=(matrix.shape[0], matrix.shape[1] + n))
