"""I-projection of responsibilities onto bounds of their average shares, through its convex dual."""

import numpy as np

from .._sklearn import one_blas_thread
from ._feasibility import check_share_sums
from ._share_dual import minimise_share_dual

# Exponentials are taken once and reused while the tilts stay this close to those they were taken at.
_REFERENCE_RADIUS = 50.0
# From this many exponentials on, a first solve on every stride-th row pays for itself.
_SUBSET_CELLS = 500_000
_SUBSET_STRIDE = 16
_CHUNK_CELLS = 1 << 17
# Newton steps after which rows whose log-responsibilities span more than `_SHARP` are softened first.
_PATIENCE = 40
_SHARP = 20.0
_SOFTENING = 2.0


@one_blas_thread
def project_onto_shares(log_q, lower, upper, *, dual=None, sample_weight=None, tol=1e-8, max_iter=200):
    r"""Tilt the rows of `exp(log_q)` as little as possible so that their mean respects share bounds.

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
        Multipliers of a similar problem, from which the search starts.
    sample_weight : ndarray of shape (n_rows,), default=None
        Non-negative row weights `w`, normalised here; equal by default.
    tol : float, default=1e-8
        Largest allowed error of a share.
    max_iter : int, default=200
        Largest number of Newton steps on all rows.

    Returns
    -------
    q : ndarray of shape (n_rows, n_columns)
        Projected responsibilities, rows sum to 1.
    dual : ndarray of shape (n_columns,)
        Log-tilts: positive where a lower bound holds, negative where an upper bound does, `-inf` where
        the column is masked, 0 elsewhere.
    n_iter : int
        Newton steps taken on all rows.
    violation : float
        Largest amount by which a mean share of `q` leaves its bounds.

    Raises
    ------
    ValueError
        If the bounds contradict each other, or if a row has no column left that it can use.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d._numerics._projection import project_onto_shares
    >>> log_q = np.log([[0.9, 0.1], [0.6, 0.4]])
    >>> q, dual, n_iter, violation = project_onto_shares(log_q, [0.0, 0.5], [1.0, 1.0])
    >>> q.mean(axis=0).round(6)
    array([0.5, 0.5])
    """
    lower, upper = check_share_sums(lower, upper)
    log_q = np.asarray(log_q, dtype=np.float64)
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
        # A subset may lack the rows that make the bounds attainable: its runaway multipliers are no start.
        if n_iter < _PATIENCE:
            dual[bounded] = tilt
    evaluate, curvature, posterior = _moments(log_q, weight, dual, bounded)
    patience = min(max_iter, _PATIENCE)
    tilt, _, state, n_iter = minimise_share_dual(
        evaluate, curvature, *bounds, dual[bounded], tol=tol, max_iter=patience
    )
    if n_iter == patience < max_iter:
        # Rows that are all but decided leave Newton's method without curvature; softer ones lead the way.
        if np.ptp(log_q[np.isfinite(log_q)]) > _SHARP:
            options = {"sample_weight": sample_weight, "tol": max(tol, 1e-4), "max_iter": max_iter}
            _, softer, *_ = project_onto_shares(log_q / _SOFTENING, lower, upper, **options)
            tilt = _SOFTENING * softer[bounded]
        tilt, _, state, n_iter = minimise_share_dual(evaluate, curvature, *bounds, tilt, tol=tol, max_iter=max_iter)
    dual[bounded] = tilt
    q = posterior(state)
    return q, dual, n_iter, share_violation(weight @ q, lower, upper)


def normalised_weight(sample_weight, n_rows):
    """Row weights that sum to 1; equal ones by default."""
    if sample_weight is None:
        return np.full(n_rows, 1.0 / n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    return weight / weight.sum()


def start_dual(dual, lower, upper):
    """A fresh starting vector: `dual` where it is finite and bounds exist, `-inf` where they mask, else 0."""
    start = np.zeros(len(lower)) if dual is None else np.where(np.isfinite(dual), dual, 0.0)
    start[(lower <= 0) & (upper >= 1)] = 0.0
    start[upper <= 0] = -np.inf
    return start


def share_violation(shares, lower, upper):
    """Largest amount by which a share leaves its bounds."""
    return float(np.maximum(np.maximum(lower - shares, shares - upper), 0.0).max(initial=0.0))


def row_chunks(n_rows, n_columns):
    """Slices of rows small enough to stay in the processor's cache from one operation to the next."""
    size = max(1, _CHUNK_CELLS // max(1, n_columns))
    return [slice(begin, min(begin + size, n_rows)) for begin in range(0, n_rows, size)]


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
    """Functions for the dual over the columns `bounded`; columns without bounds are merged into one.

    Returns `evaluate`, `curvature` and `posterior`, which turns the exponentials kept for the first two into
    the projected rows, so it comes last and once.
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
            # Squares of tiny entries would be subnormal, which slows the product down tenfold.
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
