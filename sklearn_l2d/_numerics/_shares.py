"""Offsets on a gate's logits that make the shares of its hard decisions meet bounds."""

from itertools import pairwise

import numpy as np

from ._feasibility import check_share_sums
from ._projection import normalised_weight, project_onto_shares, share_violation

# Temperatures fall by this factor until about `_SOFT_ROWS` rows are still undecided between two columns.
_COOLING = 8.0
_SOFT_ROWS = 20.0


def coverage_offsets(logits, coverages, *, column=-1, sample_weight=None):
    """Offsets that give one column each of several shares of the hard decisions, from a single sort.

    Parameters
    ----------
    logits : ndarray of shape (n_rows, n_columns)
        Gate logits of the rows to calibrate on.
    coverages : array-like of shape (n_coverages,)
        Requested shares of `column`, within [0, 1].
    column : int, default=-1
        The column whose share is set, by default the last: the classifier.
    sample_weight : ndarray of shape (n_rows,), default=None
        Row weights.

    Returns
    -------
    offsets : ndarray of shape (n_coverages, n_columns)
        To add to the logits; `-inf` shuts a column out (coverage 0, or every other column at 1).
    achieved : ndarray of shape (n_coverages,)
        The shares that the argmax then gives to `column`, the nearest that ties leave possible.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d._numerics._shares import coverage_offsets
    >>> offsets, achieved = coverage_offsets(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 5.0]]), [1 / 3])
    >>> offsets
    array([[ 0. , -3.5]])
    """
    logits = np.asarray(logits, dtype=np.float64)
    coverages = np.asarray(coverages, dtype=np.float64)
    thresholds, shares = _cuts(logits, column, normalised_weight(sample_weight, len(logits)))
    above = np.clip(np.searchsorted(shares, coverages), 1, len(shares) - 1)
    nearest = above - (coverages - shares[above - 1] <= shares[above] - coverages)
    offsets = np.zeros((len(coverages), logits.shape[1]))
    offsets[:, column] = -thresholds[nearest]
    others = np.arange(logits.shape[1]) != column % logits.shape[1]
    offsets[np.ix_(coverages >= 1, others)] = -np.inf
    offsets[coverages >= 1, column] = 0.0
    offsets[coverages <= 0, column] = -np.inf
    return offsets, shares[nearest]


def calibrate_offsets(logits, lower, upper, *, sample_weight=None):
    """Offsets on the logits under which the shares of the argmax meet bounds.

    They are the prices of the assignment of rows to columns that maximises the total logit within the
    bounds. One bounded column is solved by sorting; several through the dual of the share projection at
    falling temperature (L2D-Clusters Eq. 44 with hard decisions), then exchanges of single rows along
    cheapest paths until no exchange brings a share closer, then prices half-way between their limits.

    Parameters
    ----------
    logits : ndarray of shape (n_rows, n_columns)
        Finite gate logits of the rows to calibrate on.
    lower, upper : array-like of shape (n_columns,)
        Bounds of the hard shares; equal bounds ask for an exact share.
    sample_weight : ndarray of shape (n_rows,), default=None
        Row weights.

    Returns
    -------
    offsets : ndarray of shape (n_columns,)
        To add to the logits; `-inf` shuts out a column whose upper bound is 0.
    achieved : ndarray of shape (n_columns,)
        Shares of `argmax(logits + offsets)`. Without ties each is within half a row of its bounds or as
        near as whole rows allow; rows that tie for every choice of offsets go to one column together.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d._numerics._shares import calibrate_offsets
    >>> logits = np.random.default_rng(0).normal(size=(1000, 3))
    >>> calibrate_offsets(logits, [0.2, 0.0, 0.5], [0.2, 1.0, 0.5])[1]
    array([0.2, 0.3, 0.5])
    """
    lower, upper = check_share_sums(lower, upper)
    logits = np.asarray(logits, dtype=np.float64)
    weight = normalised_weight(sample_weight, len(logits))
    rows = np.flatnonzero(weight)
    open_ = np.flatnonzero(upper > 0)
    offsets = np.where(upper > 0, 0.0, -np.inf)
    offsets[open_] = _prices(logits[np.ix_(rows, open_)], lower[open_], upper[open_], weight[rows])
    return offsets, _hard_shares(logits + offsets, weight)


def _prices(logits, lower, upper, weight):
    bounds = lower, upper
    if len(lower) == 2:
        bounds = np.maximum(lower, 1 - upper[::-1]), np.minimum(upper, 1 - lower[::-1])
        bounds[0][0], bounds[1][0] = 0.0, 1.0
    bounded = np.flatnonzero((bounds[0] > 0) | (bounds[1] < 1))
    shares = _hard_shares(logits, weight)
    if share_violation(shares, lower, upper) <= 1e-12 or len(lower) == 1:
        return np.zeros(len(lower))
    if bounded.size == 1:
        return _single_price(logits, bounded[0], bounds[0][bounded[0]], bounds[1][bounded[0]], shares, weight)
    prices = _annealed_prices(logits, lower, upper, weight)
    candidates = [prices, _polished_prices(logits, prices, lower, upper, weight)]
    return min(candidates, key=lambda prices: share_violation(_hard_shares(logits + prices, weight), lower, upper))


def _hard_shares(scores, weight):
    return np.bincount(scores.argmax(axis=1), weights=weight, minlength=scores.shape[1])


def _cuts(logits, column, weight):
    """Thresholds on the margin of `column`, and the increasing shares of rows whose margin lies above."""
    others = np.delete(logits, column, axis=1).max(axis=1)
    margin = logits[:, column] - others
    order = np.argsort(-margin)
    margin, shares = margin[order], np.cumsum(weight[order])
    last = np.append(np.flatnonzero(np.diff(margin)), len(margin) - 1)
    pad = max(1.0, margin[0] - margin[-1]) / len(margin)
    edges = np.concatenate([[margin[0] + 2 * pad], margin[last], [margin[-1] - 2 * pad]])
    return (edges[:-1] + np.append(margin[0], edges[2:])) / 2, np.append(0.0, shares[last])


def _single_price(logits, column, low, high, shares, weight):
    thresholds, cuts = _cuts(logits, column, weight)
    distance = np.maximum(np.maximum(low - cuts, cuts - high), 0.0)
    best = np.flatnonzero(distance <= distance.min() + 1e-12)
    prices = np.zeros(logits.shape[1])
    prices[column] = -thresholds[best[np.abs(cuts[best] - shares[column]).argmin()]]
    return prices


def _annealed_prices(logits, lower, upper, weight):
    """Zero-temperature limit of the multipliers of soft shares."""
    runner_up, best = np.partition(logits, -2, axis=1)[:, -2:].T
    scale = (best - runner_up).mean() or 1.0
    coldest = min(scale, scale * _SOFT_ROWS / len(logits))
    temperatures = scale * _COOLING ** -np.arange(0.0, np.log(scale / coldest) / np.log(_COOLING) + 1.0)
    prices = np.zeros(len(lower))
    for temperature in temperatures:
        _, dual, *_ = project_onto_shares(
            logits / temperature,
            lower,
            upper,
            dual=prices / temperature,
            sample_weight=weight,
            tol=0.1 / len(logits),
            max_iter=30,
        )
        prices = temperature * dual
    return prices


def _polished_prices(logits, prices, lower, upper, weight):
    """Move rows along cheapest paths between columns while that brings shares closer to their bounds.

    The prices stay consistent with the assignment (each row sits in its best column), as in the method of
    successive shortest paths, so that the final assignment is one that some prices produce.
    """
    n_columns = logits.shape[1]
    scores = logits + prices
    assigned = scores.argmax(axis=1)
    shares = np.bincount(assigned, weights=weight, minlength=n_columns)
    typical = weight.mean()
    cheapest = np.full((n_columns, n_columns), np.inf)
    movers = np.zeros((n_columns, n_columns), dtype=np.intp)
    stale = range(n_columns)
    while True:
        for column in stale:
            members = np.flatnonzero(assigned == column)
            if members.size:
                costs = logits[members, column, None] - logits[members]
                movers[column] = members[costs.argmin(axis=0)]
                cheapest[column] = costs.min(axis=0)
            else:
                cheapest[column] = np.inf
        reduced = np.maximum(cheapest + prices[:, None] - prices, 0.0)
        distance, step = _shortest_paths(reduced)
        outside = np.maximum(lower - shares, shares - upper).clip(0.0)
        leave = np.maximum(lower - shares + typical, shares - typical - upper).clip(0.0) - outside
        enter = np.maximum(lower - shares - typical, shares + typical - upper).clip(0.0) - outside
        gain = leave[:, None] + enter
        np.fill_diagonal(gain, 0.0)
        cost = np.where(gain < -1e-12, distance - prices[:, None] + prices, np.inf)
        source, sink = np.unravel_index(cost.argmin(), cost.shape)
        if not np.isfinite(cost[source, sink]):
            break
        path = [source]
        while path[-1] != sink:
            path.append(step[path[-1], sink])
        moved = [movers[pair] for pair in pairwise(path)]
        trial = assigned.copy()
        trial[moved] = path[1:]
        trial_shares = np.bincount(trial, weights=weight, minlength=n_columns)
        trial_outside = np.maximum(lower - trial_shares, trial_shares - upper).clip(0.0)
        if trial_outside.sum() > outside.sum() - 1e-12:
            break
        prices = prices + np.minimum(distance[source], distance[source, sink])
        assigned, shares, stale = trial, trial_shares, path
    # Every row of a distance table is a set of prices at the limit where some row changes its column, and
    # every column the opposite limit; their mean is strictly inside unless rows tie.
    reach = np.abs(reduced[np.isfinite(reduced)]).max(initial=1.0)
    distance, _ = _shortest_paths(np.minimum(reduced, reach))
    middle = prices + (distance.mean(axis=0) - distance.mean(axis=1)) / 2
    unbounded = (lower <= 0) & (upper >= 1)
    return middle - (middle[unbounded].mean() if unbounded.any() else 0.0)


def _shortest_paths(cost):
    """All-pairs distances of non-negative costs, and the first step of each path (Floyd-Warshall)."""
    distance = cost.copy()
    np.fill_diagonal(distance, 0.0)
    step = np.tile(np.arange(len(cost)), (len(cost), 1))
    for middle in range(len(cost)):
        detour = distance[:, middle, None] + distance[middle]
        shorter = detour < distance
        distance = np.where(shorter, detour, distance)
        step = np.where(shorter, step[:, middle, None], step)
    return distance, step
