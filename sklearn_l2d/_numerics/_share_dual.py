"""Orthant-wise Newton method for the convex dual of share constraints, shared by all I-projections."""

import numpy as np

_RIDGE = 1e-12
_MAX_HALVINGS = 30
# A longer Newton step comes from a flat stretch, where its length means nothing.
_LONGEST_STEP = 30.0


def minimise_share_dual(evaluate, curvature, lower, upper, start, *, overlap=1, tol=1e-8, max_iter=200):
    r"""Minimise `F(t) = L(t) - sum_j (lower_j max(t_j, 0) + upper_j min(t_j, 0))`.

    `L` is a mean log-normaliser whose gradient is the vector of mean shares. `F` has a kink at `t_j = 0`
    wherever the bounds differ, and its minimum satisfies share = lower where `t > 0`, share = upper where
    `t < 0` and lower <= share <= upper where `t = 0`. Newton steps are taken on the multipliers that are
    active, each kept on its side of zero; where such a step fails, a majorisation step (iterative scaling
    with bounds) is taken, which always descends.

    Parameters
    ----------
    evaluate : callable
        `evaluate(t) -> (L(t), shares, state)`.
    curvature : callable
        `curvature(state, active) -> H`, the Hessian of `L` over the columns `active`.
    lower, upper, start : ndarray of shape (n_multipliers,)
        Bounds of the shares and the starting multipliers.
    overlap : int, default=1
        Largest number of shares that one outcome counts towards; the majorisation step divides by it.
    tol : float, default=1e-8
        Largest allowed error of a share.
    max_iter : int, default=200
        Largest number of steps.

    Returns
    -------
    t : ndarray of shape (n_multipliers,)
    shares : ndarray of shape (n_multipliers,)
    state : object
        What `evaluate` returned at `t`.
    n_iter : int
        Steps taken.
    """
    pinned = lower == upper
    # A multiplier on the wrong side of an absent bound could never leave it.
    t = np.where((start > 0) & (lower <= 0) | (start < 0) & (upper >= 1), 0.0, start)
    value, shares, state = evaluate(t)
    value -= _penalty(t, lower, upper)
    residual = _residual(t, shares, lower, upper)
    n_iter = 0
    while residual.max(initial=0.0) > tol and n_iter < max_iter:
        n_iter += 1
        side = np.where(t != 0, np.sign(t), (shares < lower) * 1.0 - (shares > upper))
        active = np.flatnonzero(pinned | (side != 0))
        target = np.where(side > 0, lower, upper)[active]
        gradient = shares[active] - target
        hessian = curvature(state, active)
        hessian[np.diag_indices_from(hessian)] += _RIDGE
        direction = np.zeros_like(t)
        direction[active] = -np.linalg.solve(hessian, gradient)
        for halving in range(_MAX_HALVINGS + 1):
            trial = t + 0.5**halving * direction
            trial[~pinned & (np.sign(trial) != side)] = 0.0
            if halving == _MAX_HALVINGS or np.abs(trial - t).max() > _LONGEST_STEP:
                trial = _majorisation_step(t, shares, lower, upper, overlap)
            new_value, new_shares, new_state = evaluate(trial)
            new_value -= _penalty(trial, lower, upper)
            new_residual = _residual(trial, new_shares, lower, upper)
            slope = gradient @ (trial - t)[active]
            # Close to the minimum the value drowns in rounding while the residual still tells progress.
            if new_value <= value + 1e-4 * slope or new_residual.max() <= 0.5 * residual.max():
                break
        t, value, shares, state, residual = trial, new_value, new_shares, new_state, new_residual
    return t, shares, state, n_iter


def _penalty(t, lower, upper):
    return lower @ np.maximum(t, 0.0) + upper @ np.minimum(t, 0.0)


def _residual(t, shares, lower, upper):
    """How far each multiplier is from its optimality condition, in units of a share."""
    outside = np.maximum(np.maximum(lower - shares, shares - upper), 0.0)
    return np.where(t > 0, np.abs(shares - lower), np.where(t < 0, np.abs(shares - upper), outside))


def _majorisation_step(t, shares, lower, upper, overlap):
    log_share = np.log(np.maximum(shares, np.finfo(float).tiny))
    untilted = log_share - overlap * t
    with np.errstate(divide="ignore"):
        reached = np.clip(untilted, np.log(lower), np.log(upper))
    return (reached - untilted) / overlap
