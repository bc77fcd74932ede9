"""Bounds on shares of the items: feasibility, projection of soft shares, and offsets for hard decisions."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, hstack, issparse, vstack
from scipy.sparse import eye_array as identity_array

from .._sklearn import one_blas_thread
from ._matrices import row_chunks

_ROUNDING = 1e-9
_RIDGE = 1e-12
# Newton steps of many multipliers are found by conjugate gradients, which need not be exact.
_CG_TOL, _CG_ITERATIONS, _FLAT = 1e-6, 200, 1e-6
_MAX_HALVINGS = 30
# Longer Newton steps are not taken: they come from flat regions, where their length means nothing.
_LONGEST_STEP = 30.0
# Exponentials are computed once and reused while the tilts are this close to those of the computation.
_REFERENCE_RADIUS = 50.0
# From this many exponentials on, a first solution for every stride-th row saves time.
_SUBSET_CELLS = 500_000
_SUBSET_STRIDE = 16
# After this many Newton steps, rows whose log-responsibilities span more than `_SHARP` are softened.
_PATIENCE = 40
_SHARP = 20.0
_SOFTENING = 2.0
# Rows are first softened to about this span, so that few rounds suffice whatever they hold.
_SHARPEST = 1e8
# Temperatures fall by this factor until about `_SOFT_ROWS` rows are still undecided between two columns.
_COOLING = 8.0
_SOFT_ROWS = 20.0


def check_share_sums(lower, upper, names=None):
    """Validate share bounds and return them as float arrays; if they have one solution only, both hold it.

    Parameters
    ----------
    lower, upper : array-like of shape (n_columns,)
        Bounds of the shares.
    names : sequence of str, default=None
        Names of the columns for error messages; their positions by default.

    Returns
    -------
    lower, upper : ndarray of shape (n_columns,)
        Copies. If the lower or the upper bounds add up to 1, they are the only solution, and both arrays hold it.

    Raises
    ------
    ValueError
        If a bound is outside [0, 1], a lower bound exceeds its upper bound, the lower bounds add up to more than 1, or
        the upper bounds add up to less than 1.
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
    """Refuse share bounds that no routing can meet; the error names the bounds to change, and by how much.

    A linear programme looks for shares `x_km >= 0` of the items that target `k` gives to expert `m`, zero outside the
    support, whose sums meet every bound. The sums of the bounds do not decide this: two experts of one small target
    cannot both have large shares.

    Parameters
    ----------
    lower, upper : array-like of shape (n_experts,)
        Bounds of the experts' shares, including the classifier.
    support : array-like or sparse array of shape (n_targets, n_experts), default=None
        True where the expert is a member of the target; by default one target that has all experts.
    names, target_names : sequence of str, default=None
        Names of experts and targets for error messages; their positions by default.
    target_lower, target_upper : array-like of shape (n_targets,), default=None
        Bounds of the targets' shares; none by default.

    Raises
    ------
    ValueError
        If the bounds cannot be met.

    Examples
    --------
    >>> from sklearn_l2d._numerics._shares import check_share_bounds
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
    support = np.ones((1, len(lower)), bool) if support is None else _as_support(support)
    n_targets, n_experts = support.shape
    target_lower = np.zeros(n_targets) if target_lower is None else target_lower
    target_upper = np.ones(n_targets) if target_upper is None else target_upper
    target_lower, target_upper = check_share_sums(target_lower, target_upper, target_names)
    totals = _total_matrix(support)
    n_totals = n_experts + n_targets
    low = np.concatenate([lower, target_lower])
    high = np.concatenate([upper, target_upper])
    # One slack per bound: their smallest sum is 0 if and only if the bounds can be met.
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
    """Target shares closest to `shares`, by absolute differences, at which the experts' bounds are feasible.

    The parameters are those of `check_share_bounds`, which must have passed. Returns an array (n_targets,) that sums to
    1.
    """
    lower, upper = check_share_sums(lower, upper)
    support = _as_support(support)
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


def _as_support(support):
    return support > 0 if issparse(support) else np.asarray(support) > 0


def _total_matrix(support):
    """Sums over the supported pairs in the order of `np.nonzero`: one row per expert, then one per target."""
    target, expert = support.nonzero()
    cells = np.arange(len(target))
    n_targets, n_experts = support.shape
    rows = np.concatenate([expert, n_experts + target])
    return coo_array((np.ones(2 * len(cells)), (rows, np.tile(cells, 2))), shape=(n_experts + n_targets, len(cells)))


class Curvature(NamedTuple):
    """Hessian of many shares, as a product.

    Attributes
    ----------
    product : callable
        Returns the product of the Hessian and a vector.
    shares : ndarray of shape (n_columns,)
        Mean shares of its columns, which are roughly its diagonal.
    """

    product: Callable
    shares: np.ndarray

    def solve(self, gradient):
        """Roughly the Newton step, which ends where the function is flat."""
        scale = np.maximum(self.shares, _RIDGE)
        return conjugate_gradients(self.product, gradient, scale, tol=_CG_TOL, max_iter=_CG_ITERATIONS, flat=_FLAT)


def conjugate_gradients(product, right, scale, *, tol, max_iter, flat=0.0):
    """Roughly solve ``product(x) = right`` for a symmetric matrix without negative eigenvalues.

    Parameters
    ----------
    product : callable
        Returns the product of the matrix and a vector.
    right : ndarray of shape (n,)
        Right-hand side.
    scale : ndarray of shape (n,) or float
        Roughly the diagonal of the matrix.
    tol : float
        Norm of the error, relative to that of `right`, that is small enough.
    max_iter : int
        Largest number of products.
    flat : float, default=0.0
        Curvature, relative to `scale`, of directions in which no step is taken; the steps so far are returned then.

    Returns
    -------
    x : ndarray of shape (n,)
    """
    x, residual = np.zeros(len(right)), right.copy()
    direction = preconditioned = residual / scale
    slope = residual @ preconditioned
    for _ in range(max_iter):
        image = product(direction)
        curvature = direction @ image
        if curvature <= flat * (direction * scale) @ direction:
            return x if x.any() else preconditioned
        x += slope / curvature * direction
        residual -= slope / curvature * image
        if np.linalg.norm(residual) <= tol * np.linalg.norm(right):
            break
        preconditioned = residual / scale
        before, slope = slope, residual @ preconditioned
        direction = preconditioned + slope / before * direction
    return x


def minimise_share_dual(evaluate, curvature, lower, upper, start, *, overlap=1, tol=1e-8, max_iter=200):
    r"""Minimise `F(t) = L(t) - sum_j (lower_j max(t_j, 0) + upper_j min(t_j, 0))`.

    `L` is a mean log-normaliser whose gradient is the vector of mean shares. `F` has a kink at `t_j = 0` wherever the
    bounds differ, and its minimum satisfies share = lower where `t > 0`, share = upper where `t < 0` and lower <= share
    <= upper where `t = 0`. Newton steps are taken for the active multipliers, each of which keeps its sign; if a Newton
    step fails, a majorisation step (iterative scaling with bounds) is taken, which always descends.

    Parameters
    ----------
    evaluate : callable
        `evaluate(t) -> (L(t), shares, state)`.
    curvature : callable
        `curvature(state, active) -> H`, the Hessian of `L` over the columns `active`: an array, or, where there are too
        many columns for one, a `Curvature`.
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
        State that `evaluate` returned at `t`.
    n_iter : int
        Steps taken.
    """
    pinned = lower == upper
    # A multiplier with the sign of an absent bound could never change its sign.
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
        direction = np.zeros_like(t)
        direction[active] = -_solve(curvature(state, active), gradient)
        for halving in range(_MAX_HALVINGS + 1):
            trial = t + 0.5**halving * direction
            trial[~pinned & (np.sign(trial) != side)] = 0.0
            length = np.abs(trial - t).max()
            if length > _LONGEST_STEP:
                trial = _to_first_kink(t, direction, pinned)
                length = np.abs(trial - t).max()
            if halving == _MAX_HALVINGS or length == 0 or length > _LONGEST_STEP:
                trial = _majorisation_step(t, shares, lower, upper, overlap)
            new_value, new_shares, new_state = evaluate(trial)
            new_value -= _penalty(trial, lower, upper)
            new_residual = _residual(trial, new_shares, lower, upper)
            slope = gradient @ (trial - t)[active]
            # Close to the minimum, the value is lost in rounding, but the residual still shows progress.
            if new_value <= value + 1e-4 * slope or new_residual.max() <= 0.5 * residual.max():
                break
        t, value, shares, state, residual = trial, new_value, new_shares, new_state, new_residual
    return t, shares, state, n_iter


def _solve(hessian, gradient):
    if isinstance(hessian, np.ndarray):
        hessian[np.diag_indices_from(hessian)] += _RIDGE
        return np.linalg.solve(hessian, gradient)
    return hessian.solve(gradient)


def _penalty(t, lower, upper):
    return lower @ np.maximum(t, 0.0) + upper @ np.minimum(t, 0.0)


def _residual(t, shares, lower, upper):
    """How far each multiplier is from its optimality condition, in units of a share."""
    outside = np.maximum(np.maximum(lower - shares, shares - upper), 0.0)
    return np.where(t > 0, np.abs(shares - lower), np.where(t < 0, np.abs(shares - upper), outside))


def _to_first_kink(t, direction, pinned):
    """The point in a direction where the first multiplier reaches zero; `t` itself if none does.

    If all shares are active and their targets do not add up, the function falls in proportion to the step until then.
    """
    falling = np.flatnonzero(~pinned & (t * direction < 0))
    if not falling.size:
        return t
    reach = -t[falling] / direction[falling]
    trial = t + reach.min() * direction
    trial[falling[reach.argmin()]] = 0.0
    return trial


def _majorisation_step(t, shares, lower, upper, overlap):
    log_share = np.log(np.maximum(shares, np.finfo(float).tiny))
    untilted = log_share - overlap * t
    with np.errstate(divide="ignore"):
        reached = np.clip(untilted, np.log(lower), np.log(upper))
    return (reached - untilted) / overlap


@one_blas_thread
def project_onto_shares(log_q, lower, upper, *, dual=None, sample_weight=None, tol=1e-8, max_iter=200):
    r"""Tilt the rows of `exp(log_q)` as little as possible so that their mean meets share bounds.

    Solves `min sum_n w_n KL(q_n || p_n)` subject to `lower <= sum_n w_n q_n <= upper`, with `p_n`
    proportional to `exp(log_q[n])`, on all rows at once (L2D-Clusters Eq. 40-44 and PL2D Eq. 29-32,
    corrected: no stray constants in the exponents, the whole data set instead of a mini-batch, and one
    signed multiplier per column in place of two non-negative ones, of which one always vanishes).
    The solution is `q_n` proportional to `p_n * exp(dual)`.

    Parameters
    ----------
    log_q : ndarray of shape (n_rows, n_columns)
        Unnormalised log-responsibilities; `-inf` marks a column that the row can never use.
    lower, upper : array-like of shape (n_columns,)
        Bounds of the mean share of each column. Equal bounds pin it, `upper = 0` masks it.
    dual : ndarray of shape (n_columns,), default=None
        Multipliers of a similar problem, used as the start.
    sample_weight : ndarray of shape (n_rows,), default=None
        Non-negative row weights `w`, which are normalised; equal by default.
    tol : float, default=1e-8
        Largest allowed error of a share.
    max_iter : int, default=200
        Largest number of Newton steps on all rows.

    Returns
    -------
    q : ndarray of shape (n_rows, n_columns)
        Projected responsibilities, rows sum to 1.
    dual : ndarray of shape (n_columns,)
        Log-tilts: positive where a lower bound is active, negative where an upper bound is active, `-inf` where the
        column is masked, 0 elsewhere.
    n_iter : int
        Newton steps taken on all rows.
    violation : float
        Largest amount by which a mean share of `q` leaves its bounds.

    Raises
    ------
    ValueError
        If the bounds contradict each other, a row has no column that it can use, or `log_q` holds NaN or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d._numerics._shares import project_onto_shares
    >>> log_q = np.log([[0.9, 0.1], [0.6, 0.4]])
    >>> q, dual, n_iter, violation = project_onto_shares(log_q, [0.0, 0.5], [1.0, 1.0])
    >>> q.mean(axis=0).round(6)
    array([0.5, 0.5])
    """
    lower, upper = check_share_sums(lower, upper)
    log_q = np.asarray(log_q, dtype=np.float64)
    _check_logits(log_q, "log_q")
    weight = normalised_weight(sample_weight, len(log_q))
    bounded = np.flatnonzero((upper > 0) & ((lower > 0) | (upper < 1)))
    bounds = lower[bounded], upper[bounded]
    warm, dual = dual is not None, start_dual(dual, lower, upper)

    if not warm and len(log_q) * bounded.size > _SUBSET_CELLS:
        rows = slice(None, None, _SUBSET_STRIDE)
        evaluate, curvature, _ = _moments(log_q[rows], weight[rows] / weight[rows].sum(), dual, bounded)
        tilt, *_, n_iter = minimise_share_dual(
            evaluate, curvature, *bounds, dual[bounded], tol=1e-4, max_iter=_PATIENCE
        )
        # In a subset, the bounds may be infeasible; its diverging multipliers are not used.
        if n_iter < _PATIENCE:
            dual[bounded] = tilt
    evaluate, curvature, posterior = _moments(log_q, weight, dual, bounded)
    patience = min(max_iter, _PATIENCE)
    tilt, _, state, n_iter = minimise_share_dual(
        evaluate, curvature, *bounds, dual[bounded], tol=tol, max_iter=patience
    )
    if n_iter == patience < max_iter:
        # If rows are nearly one-hot, Newton's method has no curvature; softer rows give a better start.
        span = np.ptp(log_q[np.isfinite(log_q)])
        if span > _SHARP:
            softening = max(_SOFTENING, span / _SHARPEST)
            options = {"sample_weight": sample_weight, "tol": max(tol, 1e-4), "max_iter": max_iter}
            _, softer, *_ = project_onto_shares(log_q / softening, lower, upper, **options)
            tilt = softening * softer[bounded]
        tilt, _, state, n_iter = minimise_share_dual(evaluate, curvature, *bounds, tilt, tol=tol, max_iter=max_iter)
    dual[bounded] = tilt
    q = posterior(state)
    return q, dual, n_iter, share_violation(weight @ q, lower, upper)


def _check_logits(logits, name):
    """Refuse NaN and infinity; `-inf` shuts a column out for a row."""
    wrong = np.isnan(logits).any(axis=1) | np.isposinf(logits).any(axis=1)
    if wrong.any():
        raise ValueError(
            f"{name}: {int(wrong.sum())} of {len(wrong)} rows, first row {int(wrong.argmax())}, hold NaN or infinity. "
            "Correct what computes them, for instance a net whose training diverged."
        )


def restricts(lower, upper):
    """Whether bounds on shares exclude anything."""
    return bool((lower > 0).any() or (upper < 1).any())


def normalised_weight(sample_weight, n_rows):
    """Row weights that sum to 1; equal by default."""
    if sample_weight is None:
        return np.full(n_rows, 1.0 / n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    return weight / weight.sum()


def start_dual(dual, lower, upper):
    """Initial multipliers: `dual` where it is finite and bounds exist, `-inf` where the upper bound is 0, else 0."""
    start = np.zeros(len(lower)) if dual is None else np.where(np.isfinite(dual), dual, 0.0)
    start[(lower <= 0) & (upper >= 1)] = 0.0
    start[upper <= 0] = -np.inf
    return start


def share_violation(shares, lower, upper):
    """Largest amount by which a share leaves its bounds."""
    return float(np.maximum(np.maximum(lower - shares, shares - upper), 0.0).max(initial=0.0))


def row_exponentials(log_values, tilt):
    """`exp(log_values + tilt - peak)` and the rows' maxima `peak`; raises for rows without support."""
    values, peak = np.empty(log_values.shape), np.empty(len(log_values))
    for rows in row_chunks(*values.shape):
        chunk = values[rows]
        np.add(log_values[rows], tilt, out=chunk)
        chunk.max(axis=1, out=peak[rows])
        if not np.isfinite(peak[rows]).all():
            row = rows.start + int(np.flatnonzero(~np.isfinite(peak[rows]))[0])
            raise ValueError(
                f"log_q: row {row} has no finite entry in a column whose upper bound is above 0. "
                "Raise the upper bound of a column that the row can use."
            )
        chunk -= peak[rows, None]
        np.exp(chunk, out=chunk)
    return values, peak


def _moments(log_q, weight, start, bounded):
    """Functions of the dual over the columns `bounded`; columns without bounds are merged into one.

    Returns `evaluate`, `curvature` and `posterior`. `posterior` overwrites the exponentials of the other two by the
    projected rows, so that it must be called once and last.
    """
    n_columns = log_q.shape[1]
    unbounded = np.ones(n_columns)
    unbounded[bounded] = 0.0
    merging = bounded.size < n_columns
    full, merged, offset, reference = None, None, None, None

    def refer_to(tilt):
        nonlocal full, merged, offset, reference
        reference = tilt
        full_tilt = start.copy()
        full_tilt[bounded] = tilt
        full, peak = row_exponentials(log_q, full_tilt)
        merged = np.column_stack([full[:, bounded], full @ unbounded]) if merging else full
        offset = weight @ peak

    def evaluate(tilt):
        if np.abs(tilt - reference).max(initial=0.0) > _REFERENCE_RADIUS:
            refer_to(tilt)
        scale = np.append(np.exp(tilt - reference), [1.0] * merging)
        sums, shares = np.empty(len(merged)), np.zeros(len(scale))
        for rows in row_chunks(*merged.shape):
            np.matmul(merged[rows], scale, out=sums[rows])
            shares += (weight[rows] / sums[rows]) @ merged[rows]
        shares *= scale
        return offset + weight @ np.log(sums), shares[: bounded.size], (scale, sums, shares)

    def curvature(state, active):
        scale, sums, shares = state
        every = len(active) == merged.shape[1]
        root = np.sqrt(weight) / sums
        hessian = np.zeros((len(active), len(active)))
        for rows in row_chunks(len(merged), len(active)):
            columns = (merged[rows] if every else merged[rows, active]) * root[rows, None]
            # Squares of tiny entries would be subnormal, which makes the product ten times slower.
            columns *= columns > 1e-150
            hessian -= columns.T @ columns
        hessian *= np.outer(scale[active], scale[active])
        hessian[np.diag_indices_from(hessian)] += shares[active]
        return hessian

    def posterior(state):
        scale, sums, _ = state
        full_scale = np.ones(n_columns)
        full_scale[bounded] = scale[: bounded.size]
        for rows in row_chunks(*full.shape):
            full[rows] *= full_scale
            full[rows] /= sums[rows, None]
        return full

    refer_to(start[bounded])
    return evaluate, curvature, posterior


def selection_weights(omega, target_shares, lower=None, upper=None, *, names=None, check=True):
    """Weights by which each target selects its members, as close to the memberships as the bounds allow.

    I-projection of `h_k Omega~_km` onto the expert bounds with fixed target totals `h_k`: the tilt of an expert is the
    same in every target, and each row is a distribution (L2D-Clusters 3.3 and appendix H, corrected: the paper drops
    the experts' multipliers, and therefore the bounds, at test time).

    Parameters
    ----------
    omega : array-like of shape (n_targets, n_experts)
        Non-negative memberships, one row per target; with the row and column of the classifier if the bounds include
        it.
    target_shares : array-like of shape (n_targets,)
        Share `h` of the items that each target decides; the sum is 1.
    lower, upper : array-like of shape (n_experts,), default=None
        Bounds of the share of the items that each expert answers; none by default.
    names : sequence of str, default=None
        Names of the experts for error messages.
    check : bool, default=True
        Whether to refuse bounds that cannot be met at these target shares.

    Returns
    -------
    selection : ndarray of shape (n_targets, n_experts)
        Rows sum to 1; equal to the row-normalised `omega` if no bound is active.

    Raises
    ------
    ValueError
        If a target has no member, or if the bounds cannot be met at these target shares.

    Examples
    --------
    >>> from sklearn_l2d._numerics._shares import selection_weights
    >>> selection_weights([[3.0, 1.0]], [1.0], [0.0, 0.0], [0.5, 1.0]).round(6)
    array([[0.5, 0.5]])
    """
    omega = np.asarray(omega, dtype=np.float64)
    totals = omega.sum(axis=1, keepdims=True)
    if (totals <= 0).any():
        target = int(np.flatnonzero(totals <= 0)[0])
        raise ValueError(f"omega: target {target} has no member. Drop the target or give it one.")
    normalised = omega / totals
    if lower is None and upper is None:
        return normalised
    lower = np.zeros(omega.shape[1]) if lower is None else lower
    upper = np.ones(omega.shape[1]) if upper is None else upper
    target_shares = np.asarray(target_shares, dtype=np.float64)
    if check:
        check_share_bounds(lower, upper, omega > 0, names, target_lower=target_shares, target_upper=target_shares)
    with np.errstate(divide="ignore"):
        selection, *_ = project_onto_shares(np.log(normalised), lower, upper, sample_weight=target_shares)
    return selection


def calibrate_offsets(logits, lower, upper, sample_weight=None):
    """Offsets on the logits under which the shares of the argmax meet bounds.

    The offsets are the prices of the assignment of rows to columns that maximises the total logit within the bounds.
    For one bounded column, they are found by sorting. For several, they are found by the dual of the share projection
    at falling temperature (L2D-Clusters Eq. 44 with hard decisions), then by exchanges of single rows along cheapest
    paths while these bring a share closer to its bounds, and are finally set half-way between their limits.

    Parameters
    ----------
    logits : ndarray of shape (n_rows, n_columns)
        Finite gate logits of the rows to calibrate on.
    lower, upper : array-like of shape (n_columns,)
        Bounds of the hard shares; equal bounds request an exact share.
    sample_weight : ndarray of shape (n_rows,), default=None
        Weights of the rows in the shares; equal by default.

    Returns
    -------
    offsets : ndarray of shape (n_columns,)
        Offsets of the logits; `-inf` shuts out a column whose upper bound is 0.
    achieved : ndarray of shape (n_columns,)
        Shares of `argmax(logits + offsets)`. Without ties, each share is within half a row of its bounds, or as close
        as whole rows allow; rows that tie for all offsets are assigned to one column together.

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
    _check_logits(logits, "logits")
    open_ = np.flatnonzero(upper > 0)
    offsets = np.where(upper > 0, 0.0, -np.inf)
    weight = normalised_weight(sample_weight, len(logits))
    offsets[open_] = _prices(logits[:, open_], lower[open_], upper[open_], weight)
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
    """Thresholds on the margin of `column`, and the increasing shares of rows with a margin above them."""
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
    """Move rows along cheapest paths between columns while this brings shares closer to their bounds.

    As in the method of successive shortest paths, the prices stay consistent with the assignment (each row is in its
    best column), so that the final assignment belongs to some prices.
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
    # Every row of a distance table is a set of prices at the limit where some row changes its column, and every column
    # is the opposite limit. Their mean is strictly between the limits unless rows tie.
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
