"""Can the requested shares be met at all? Checked before any work, with the offending bound by name."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, hstack, vstack
from scipy.sparse import eye_array as identity_array

_ROUNDING = 1e-9


def check_share_sums(lower, upper, names=None):
    """Validate share bounds on their own and return them as float arrays, exhausted ones pinned.

    Parameters
    ----------
    lower, upper : array-like of shape (n_columns,)
        Bounds of the shares.
    names : sequence of str, default=None
        What to call the columns in messages; their positions by default.

    Returns
    -------
    lower, upper : ndarray of shape (n_columns,)
        Copies. Where the lower bounds add up to 1, or the upper bounds do, they are the only solution, and
        both arrays hold it.

    Raises
    ------
    ValueError
        If a bound leaves [0, 1], a lower bound exceeds its upper bound, the lower bounds add up to more
        than 1, or the upper bounds to less than 1.
    """
    lower, upper = (np.array(bound, dtype=np.float64) for bound in (lower, upper))
    names = range(len(lower)) if names is None else names
    for name, low, high in zip(names, lower, upper, strict=True):
        if not (0 <= low <= 1 and 0 <= high <= 1):
            raise ValueError(f"The share bounds of {name!r} are ({low:g}, {high:g}). Choose them within [0, 1].")
        if low > high:
            raise ValueError(f"The lower share bound {low:g} of {name!r} exceeds its upper bound {high:g}. Swap them.")
    if lower.sum() > 1 + _ROUNDING:
        raise ValueError(
            f"The lower share bounds add up to {lower.sum():g}, more than the whole work. "
            f"Reduce them by {lower.sum() - 1:g} in total; the largest is that of {names[lower.argmax()]!r}."
        )
    if upper.sum() < 1 - _ROUNDING:
        raise ValueError(
            f"The upper share bounds add up to {upper.sum():g}, less than the whole work. "
            f"Raise them by {1 - upper.sum():g} in total; the smallest is that of {names[upper.argmin()]!r}."
        )
    if lower.sum() >= 1 - _ROUNDING:
        return lower, lower.copy()
    if upper.sum() <= 1 + _ROUNDING:
        return upper, upper.copy()
    return lower, upper


def check_share_bounds(
    lower, upper, support=None, names=None, *, target_lower=None, target_upper=None, target_names=None
):
    """Refuse share bounds that no routing can meet, naming the bound to change and by how much.

    A linear programme looks for shares `x_km >= 0` of the work that target `k` hands to expert `m`, zero
    outside the support, whose sums respect every bound. Sums of bounds alone do not decide this: two
    experts that only one small target can reach cannot both be busy.

    Parameters
    ----------
    lower, upper : array-like of shape (n_experts,)
        Bounds of the experts' shares, the classifier included.
    support : array-like of shape (n_targets, n_experts), default=None
        True where the target can reach the expert; everywhere by default, from a single target.
    names, target_names : sequence of str, default=None
        What to call experts and targets in messages; their positions by default.
    target_lower, target_upper : array-like of shape (n_targets,), default=None
        Bounds of the targets' shares; none by default.

    Raises
    ------
    ValueError
        If the bounds cannot be met.

    Examples
    --------
    >>> from sklearn_l2d._numerics._feasibility import check_share_bounds
    >>> support = [[1, 1, 0], [0, 0, 1]]  # ann and bob, then the classifier
    >>> check_share_bounds([0.3, 0.3, 0], [1, 1, 1], support, target_upper=[0.7, 1])
    >>> check_share_bounds(
    ...     [0.3, 0.3, 0], [1, 1, 1], support, target_upper=[0.5, 1]
    ... )  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    ValueError: These share bounds cannot be met together: ...
    """
    lower, upper = check_share_sums(lower, upper, names)
    support = np.ones((1, len(lower)), bool) if support is None else np.asarray(support) > 0
    n_targets, n_experts = support.shape
    target_lower = np.zeros(n_targets) if target_lower is None else target_lower
    target_upper = np.ones(n_targets) if target_upper is None else target_upper
    target_lower, target_upper = check_share_sums(target_lower, target_upper, target_names)
    totals = _total_matrix(support)
    n_totals = n_experts + n_targets
    low = np.concatenate([lower, target_lower])
    high = np.concatenate([upper, target_upper])
    # One slack per bound: their smallest sum is 0 exactly where the bounds can be met.
    n_cells = totals.shape[1]
    slack, none = identity_array(n_totals), coo_array((n_totals, n_totals))
    result = linprog(
        np.repeat([0.0, 1.0], [n_cells, 2 * n_totals]),
        A_ub=vstack([hstack([totals, -slack, none]), hstack([-totals, none, -slack])]),
        b_ub=np.concatenate([high, -low]),
        A_eq=np.repeat([[1.0, 0.0]], [n_cells, 2 * n_totals], axis=1),
        b_eq=[1.0],
        method="highs",
    )
    if result.fun <= 1e-7:
        return
    labels = [repr(name) for name in names] if names is not None else [f"expert {m}" for m in range(n_experts)]
    labels += [f"target {name!r}" for name in (range(n_targets) if target_names is None else target_names)]
    bounds = [f"the upper bound {bound:g} of {label}" for bound, label in zip(high, labels, strict=True)]
    bounds += [f"the lower bound {bound:g} of {label}" for bound, label in zip(low, labels, strict=True)]
    at_odds = [bounds[i] for i in np.flatnonzero(np.abs(result.ineqlin.marginals) > 1e-7)]
    change = np.split(result.x, [n_cells])[1]
    fixes = [
        f"{'raise' if i < n_totals else 'reduce'} {bounds[i]} by at least {change[i]:.3g}"
        for i in np.flatnonzero(change > 1e-7)
    ]
    raise ValueError(f"These share bounds cannot be met together: {', '.join(at_odds)}. Try to {' and '.join(fixes)}.")


def nearest_target_shares(shares, lower, upper, support, *, target_lower=None, target_upper=None):
    """Target shares closest to `shares` (in absolute differences) that leave the experts' bounds attainable.

    Parameters are those of `check_share_bounds`, which should have passed. Returns an array of shape
    (n_targets,) that sums to 1.
    """
    lower, upper = check_share_sums(lower, upper)
    support = np.asarray(support) > 0
    n_targets, n_experts = support.shape
    low = np.concatenate([lower, np.zeros(n_targets) if target_lower is None else target_lower])
    high = np.concatenate([upper, np.ones(n_targets) if target_upper is None else target_upper])
    totals = _total_matrix(support)
    n_cells = totals.shape[1]
    target_totals = totals.tocsr()[n_experts:]
    gap, blank = identity_array(n_targets), coo_array((n_experts + n_targets, 2 * n_targets))
    result = linprog(
        np.repeat([0.0, 1.0], [n_cells, 2 * n_targets]),
        A_ub=vstack([hstack([totals, blank]), hstack([-totals, blank])]),
        b_ub=np.concatenate([high, -low]),
        A_eq=vstack(
            [
                hstack([target_totals, -gap, gap]),
                coo_array(np.repeat([[1.0, 0.0]], [n_cells, 2 * n_targets], axis=1)),
            ]
        ),
        b_eq=np.append(shares, 1.0),
        method="highs",
    )
    return np.maximum(target_totals @ result.x[:n_cells], 0.0)


def _total_matrix(support):
    """Sums over the supported pairs in the order of `np.nonzero`: one row per expert, then one per target."""
    target, expert = np.nonzero(support)
    cells = np.arange(len(target))
    n_targets, n_experts = support.shape
    rows = np.concatenate([expert, n_experts + target])
    return coo_array((np.ones(2 * len(cells)), (rows, np.tile(cells, 2))), shape=(n_experts + n_targets, len(cells)))
