"""From targets to people: seeded assignment that honours who is in and how much each can take.

All steps work on cells, the pairs of a block of rows and an expert who can serve it, so that their cost never depends
on the size of a full table.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import maximum_flow

from .._sklearn import one_blas_thread
from ._shares import conjugate_gradients

# Weight of going unserved: far below any selection weight, so that only full capacities bring it up.
_UNSERVED = np.exp(-30.0)
# Largest error of an expert's share of the rows, and the most Newton steps and products per step.
_SHARE_TOL = 1e-6
_MAX_STEPS = 200
_MAX_PRODUCTS = 100
# Each Newton step is solved to this precision.
_STEP_TOL = 0.01


class _Cells(NamedTuple):
    """Cells sorted by block and expert; the last one of each block is nobody's, in the column after the experts."""

    start: np.ndarray
    block: np.ndarray
    expert: np.ndarray

    @property
    def nobody(self):
        return self.start[1:] - 1


def assign_members(targets, weights, available=None, capacity=None, *, rng):
    """Give each deferred row to one expert of its target, in proportion to the selection weights.

    Rows of one target with the same experts available form a block. The blocks' quotas are the selection
    weights, tilted onto the capacities, rounded to whole rows without bias and dealt out at random. Where
    rows remain unserved although capacity is left, rows change hands along augmenting paths of a maximum
    flow, so that as many rows as possible are served.

    Parameters
    ----------
    targets : ndarray of shape (n_rows,)
        Target of each row, -1 for the classifier.
    weights : ndarray or csr_array of shape (n_targets, n_experts)
        Selection weights; an expert with weight 0 never serves the target.
    available : ndarray of bool of shape (n_experts,) or (n_rows, n_experts), or sparse table, default=None
        Who can be asked, for all rows or row by row; everybody by default. In a sparse table (n_rows, n_experts), the
        stored non-zero entries mark who can be asked.
    capacity : ndarray of int of shape (n_experts,), default=None
        Largest number of rows per expert; unlimited by default.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    experts : ndarray of int of shape (n_rows,)
        Expert of each row; -1 for the classifier's rows and for those that nobody can serve.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d._numerics._assignment import assign_members
    >>> experts = assign_members(
    ...     np.array([0, 0, 0, 0, -1]), np.array([[0.75, 0.25]]), rng=np.random.default_rng(0)
    ... )
    >>> np.bincount(experts + 1).tolist()
    [1, 3, 1]
    """
    targets = np.asarray(targets)
    weights = (csr_array if issparse(weights) else np.asarray)(weights, dtype=np.float64)
    experts = np.full(len(targets), -1, dtype=np.intp)
    deferred = np.flatnonzero(targets >= 0)
    if not deferred.size or not weights.size:
        return experts
    if capacity is not None:
        # More than all rows is never used, and flows are 32-bit; nobody can take everything.
        capacity = np.append(np.minimum(capacity, deferred.size), deferred.size)
    block_of_row, sizes, cells, quotas = _blocks(targets, weights, available, capacity, deferred)
    if capacity is not None:
        quotas = _within_capacity(quotas, cells, sizes, capacity)
    counts = _round(quotas, cells, sizes, rng)
    if capacity is not None:
        _cut_to_capacity(counts, cells, capacity, rng)
        _serve_the_rest(counts, cells, sizes, capacity)
    who, served = np.where(cells.expert == weights.shape[1], -1, cells.expert), np.flatnonzero(counts)
    of_block = np.empty(len(sizes), dtype=np.intp)
    of_block[cells.block[served]] = who[served]
    experts[deferred] = of_block[block_of_row]
    # Where several experts share a block, its rows in random order meet them in fixed order.
    shared = np.bincount(cells.block[served], minlength=len(sizes)) > 1
    rows, order = np.flatnonzero(shared[block_of_row]), rng.random(len(deferred))
    rows = rows[np.lexsort((order[rows], block_of_row[rows]))]
    experts[deferred[rows]] = np.repeat(who, counts * shared[cells.block])
    return experts


def _blocks(targets, weights, available, capacity, deferred):
    """Block of each deferred row, and the blocks' sizes, cells and weights; nobody's is 1 where nobody can serve."""
    n_experts, targets = weights.shape[1], targets[deferred]
    if np.ndim(available) == 2:
        start, expert = _columns((csr_array(available) if issparse(available) else np.asarray(available))[deferred])
        first, block_of_row, sizes = _group(targets, start, expert, n_experts)
        kinds, length = targets[first], np.diff(start)[first]
        end = np.cumsum(length)
        expert = expert[np.arange(end[-1]) + np.repeat(start[first] + length - end, length)]
        start = np.append(0, end)
    else:
        sizes = np.bincount(targets)
        kinds, block_of_row = np.flatnonzero(sizes), (np.cumsum(sizes > 0) - 1)[targets]
        sizes = sizes[kinds]
        start, expert = _columns(weights[kinds])
    weight = weights[np.repeat(kinds, np.diff(start)), np.minimum(expert, n_experts - 1)]
    if np.ndim(available) == 1:
        weight *= np.append(available, True)[expert]
    if capacity is not None:
        weight *= capacity[expert] > 0
    weight[start[1:] - 1] = 1.0  # nobody's cells stay
    if not weight.all():
        used = np.flatnonzero(weight)
        start, expert, weight = np.searchsorted(used, start), expert[used], weight[used]
    length = np.diff(start)
    cells = _Cells(start, np.repeat(np.arange(len(sizes)), length), expert)
    weight[cells.nobody] = length == 1
    return block_of_row, sizes, cells, weight


def _columns(table):
    """Where the rows of a table start among its non-zero cells, and their columns; nobody's is added to each row."""
    if issparse(table):
        table.sum_duplicates()
        table.eliminate_zeros()
        n_rows, n_columns = table.shape
        columns = np.insert(table.indices, table.indptr[1:], n_columns)
        return table.indptr + np.arange(n_rows + 1), columns
    table = np.column_stack([table != 0, np.ones(len(table), dtype=bool)])
    length, columns = np.count_nonzero(table, axis=1), np.flatnonzero(table)
    columns -= np.repeat(np.arange(0, table.size, table.shape[1]), length)
    return np.append(0, np.cumsum(length)), columns


def _group(targets, start, expert, n_experts):
    """First row, number and size of the groups of rows that have the same target and the same experts.

    Experts are told apart by sums of codes: exactly for less than 64 experts, each of which has a bit, and else by two
    sums of random 64-bit codes, which are the same for about one pair of different sets in 2**128.
    """
    if n_experts < 64:
        codes = np.uint64(1) << np.arange(n_experts + 1, dtype=np.uint64)[None, ::-1]
    else:
        codes = np.random.default_rng(0).integers(2**64, size=(2, n_experts + 1), dtype=np.uint64)
    keys = [*(np.add.reduceat(code[expert], start[:-1]) for code in codes), targets]
    # One code suffices to sort by, which is faster: where chance made it equal, the other one splits a group in two.
    order = np.argsort(keys[-2], kind="stable")
    order = order[np.argsort(targets.astype(np.min_scalar_type(targets.max()))[order], kind="stable")]
    new = np.zeros(len(targets), dtype=bool)
    new[0] = True
    for key in keys:
        key = key[order]
        new[1:] |= key[1:] != key[:-1]
    group = np.empty(len(targets), dtype=np.intp)
    group[order] = np.cumsum(new) - 1
    return order[new], group, np.diff(np.append(np.flatnonzero(new), len(new)))


@one_blas_thread
def _within_capacity(prior, cells, sizes, capacity):
    """Tilt the blocks' weights as little as possible so that no expert gets more than the capacity.

    Minimises the convex dual `sum_b w_b log(sum_m prior_bm exp(t_m)) - sum_m limit_m t_m` over `t <= 0` by Newton's
    method. Damping by a multiple of the experts' shares, which exceed the curvature, bounds the work for a step, makes
    it descend in the end, and lets it cross the long flat way to `t = -30` where rows must go unserved.
    """
    weight, limit = sizes / sizes.sum(), np.maximum(capacity, 1) / sizes.sum()
    prior = prior / np.bincount(cells.block, prior)[cells.block]
    prior[cells.nobody] += _UNSERVED
    spread = csr_array((prior, cells.expert, cells.start), shape=(len(sizes), len(limit)))
    gather = spread.T
    # Even an expert without rivals needs no lower tilt than this.
    lowest = np.log(_UNSERVED * limit / np.maximum(limit, gather @ weight))

    def evaluate(tilt):
        scale = np.exp(tilt)
        sums = spread @ scale
        shares = scale * (gather @ (weight / sums))
        excess = shares - limit
        error = np.where(tilt < 0, np.abs(excess), np.maximum(excess, 0.0)).max()
        return weight @ np.log(sums) - limit @ tilt, error, excess, (scale, sums, shares)

    def newton_step(active, excess, scale, sums, shares, damping):
        root = np.sqrt(np.where(active, shares, 1.0))
        factor, curve = active * scale / root, weight / sums**2

        def multiply(v):
            return (1 + damping) * v - factor * (gather @ (curve * (spread @ (factor * v))))

        step = conjugate_gradients(multiply, -(active * excess) / root, 1.0, tol=_STEP_TOL, max_iter=_MAX_PRODUCTS)
        return step / root

    tilt, damping = np.zeros(len(limit)), 0.1
    value, error, excess, state = evaluate(tilt)
    for _ in range(_MAX_STEPS):
        if error <= _SHARE_TOL:
            break
        step = newton_step((tilt < 0) | (excess > 0), excess, *state, damping)
        trial = np.clip(tilt + step, lowest, 0.0)
        new, slope = evaluate(trial), excess @ (trial - tilt)
        # Close to the minimum, the value is lost in rounding, but the error still shows progress.
        better = new[0] <= value + 1e-4 * slope or (slope > -1e-12 and new[1] <= error / 2)
        if better:
            tilt, (value, error, excess, state) = trial, new
        damping *= 0.1 if better else 10.0
    scale, sums, _ = state
    return prior * scale[cells.expert] / sums[cells.block]


def _round(quotas, cells, sizes, rng):
    """Whole rows per cell, each within one of its quota and equal to it on average; overwrites `quotas`.

    The blocks' starting points are spread evenly, so that the errors of small blocks cancel. They stay clear of whole
    numbers, which the sums of quotas only reach up to rounding.
    """
    n_blocks, length = len(sizes), np.diff(cells.start)
    start = np.clip((rng.permutation(n_blocks) + rng.random()) / n_blocks, 1e-9, 1 - 1e-9)
    unserved = quotas[cells.nobody]
    quotas[cells.nobody] = 0.0
    served = np.bincount(cells.block, quotas)
    # Nobody's cell takes the running sum back to exactly 0 before the next block.
    quotas[cells.nobody] = -served
    edges = np.cumsum(quotas)
    edges /= np.repeat(served + unserved, length)
    edges *= np.repeat(sizes, length)
    edges += np.repeat(start, length)
    counts = np.diff(np.floor(edges, out=edges), prepend=0.0).astype(np.int64)
    counts[cells.nobody] += sizes
    return counts


def _cut_to_capacity(counts, cells, capacity, rng):
    """Take back random rows from experts above their capacity, in place."""
    held = np.bincount(cells.expert, counts, minlength=len(capacity)).astype(np.int64)
    held[held <= capacity] = 0
    rows = rng.permutation(np.repeat(np.arange(len(counts)), counts * (held[cells.expert] > 0)))
    rows = rows[np.argsort(cells.expert[rows], kind="stable")]
    expert = cells.expert[rows]
    place = np.arange(len(rows)) - (np.cumsum(held) - held)[expert]
    back = rows[place >= capacity[expert]]
    np.subtract.at(counts, back, 1)
    np.add.at(counts, cells.nobody[cells.block[back]], 1)


def _serve_the_rest(counts, cells, sizes, capacity):
    """Raise the number of served rows to its maximum by a flow from unserved blocks to spare capacity, in place."""
    n_blocks, n_experts = len(sizes), len(capacity) - 1
    unserved = counts[cells.nobody]
    spare = (capacity - np.bincount(cells.expert, counts, minlength=n_experts + 1).astype(np.int64))[:-1]
    if not unserved.any() or not spare.any():
        return
    source, sink = n_blocks + n_experts, n_blocks + n_experts + 1
    served = np.flatnonzero(cells.expert < n_experts)
    block, expert, held = cells.block[served], n_blocks + cells.expert[served], counts[served]
    tails = [np.full(n_blocks, source), block, expert, n_blocks + np.arange(n_experts)]
    heads = [np.arange(n_blocks), expert, block, np.full(n_experts, sink)]
    limits = [unserved, sizes[block], held, spare]
    tails, heads, limits = (np.concatenate(parts, dtype=np.int32) for parts in (tails, heads, limits))
    graph = coo_array((limits, (tails, heads)), shape=(sink + 1, sink + 1)).tocsr()
    graph.eliminate_zeros()
    flow = csr_array(maximum_flow(graph, source, sink).flow)
    counts[served] += flow[block, expert]
    counts[cells.nobody] -= flow[tails[:n_blocks], heads[:n_blocks]]
