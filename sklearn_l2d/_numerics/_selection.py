"""Selection weights within targets that keep the experts' share bounds when the targets' shares are known."""

import numpy as np

from ._feasibility import check_share_bounds
from ._projection import project_onto_shares


def selection_weights(omega, target_shares, lower=None, upper=None, *, names=None, target_names=None):
    """Weights with which each target picks its members, as close to the memberships as the bounds allow.

    I-projection of `h_k Omega~_km` onto the expert bounds with the target totals `h_k` kept: the tilt of
    the experts is the same in every target, and each row stays a distribution (L2D-Clusters 3.3 and
    appendix H, corrected: the paper drops the experts' multipliers at test time, and the bounds with them).

    Parameters
    ----------
    omega : array-like of shape (n_targets, n_experts)
        Non-negative memberships, one row per target; the classifier's row and column are included where
        the bounds count it.
    target_shares : array-like of shape (n_targets,)
        Share `h` of the items that goes to each target; they sum to 1.
    lower, upper : array-like of shape (n_experts,), default=None
        Bounds of the share of the items that each expert answers; none by default.
    names, target_names : sequence of str, default=None
        What to call experts and targets in messages.

    Returns
    -------
    selection : ndarray of shape (n_targets, n_experts)
        Rows sum to 1; the row-normalised `omega` where no bound is tight.

    Raises
    ------
    ValueError
        If a target has no member, or if the bounds cannot be met at these target shares.

    Examples
    --------
    >>> from sklearn_l2d._numerics._selection import selection_weights
    >>> selection_weights([[3.0, 1.0]], [1.0], [0.0, 0.0], [0.5, 1.0]).round(6)
    array([[0.5, 0.5]])
    """
    omega = np.asarray(omega, dtype=np.float64)
    totals = omega.sum(axis=1, keepdims=True)
    if (totals <= 0).any():
        target = int(np.flatnonzero(totals <= 0)[0])
        name = target if target_names is None else target_names[target]
        raise ValueError(f"omega: target {name!r} has no member. Drop the target or give it one.")
    normalised = omega / totals
    if lower is None and upper is None:
        return normalised
    lower = np.zeros(omega.shape[1]) if lower is None else lower
    upper = np.ones(omega.shape[1]) if upper is None else upper
    target_shares = np.asarray(target_shares, dtype=np.float64)
    check_share_bounds(
        lower,
        upper,
        omega > 0,
        names,
        target_lower=target_shares,
        target_upper=target_shares,
        target_names=target_names,
    )
    with np.errstate(divide="ignore"):
        selection, *_ = project_onto_shares(np.log(normalised), lower, upper, sample_weight=target_shares)
    return selection
