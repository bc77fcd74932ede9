"""From targets to people: seeded assignment that honours who is in and how much each can take."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

from ._shares import project_onto_shares

# Log-weight of going unserved: far below any selection weight, so that only full capacities bring it up.
_UNSERVED = -30.0


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
    weights : ndarray of shape (n_targets, n_experts)
        Selection weights; an expert with weight 0 never serves the target.
    available : ndarray of bool of shape (n_experts,) or (n_rows, n_experts), default=None
        Who can be asked, for all rows or row by row; everybody by default.
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
    targets, weights = np.asarray(targets), np.asarray(weights, dtype=np.float64)
    experts = np.full(len(targets), -1, dtype=np.intp)
    deferred = np.flatnonzero(targets >= 0)
    if not deferred.size:
        return experts
    if capacity is not None:
        capacity = np.minimum(capacity, deferred.size)  # more is never used, and flows are 32-bit
    block_of_row, prior, sizes = _blocks(targets[deferred], weights, available, deferred)
    quotas = _quotas(prior, sizes, capacity)
    counts = _round(quotas, sizes, rng)
    if capacity is not None:
        _cut_to_capacity(counts, capacity, rng)
        _serve_the_rest(counts, prior > 0, sizes, capacity)
    unserved = sizes - counts.sum(axis=1)
    dealt = np.column_stack([counts, unserved])
    block, expert = np.nonzero(dealt)
    in_order = np.repeat(np.where(expert == weights.shape[1], -1, expert), dealt[block, expert])
    # Rows in random order within their block meet the block's experts in fixed order.
    order = np.lexsort((rng.random(len(deferred)), block_of_row))
    experts[deferred[order]] = in_order
    return experts


def _blocks(targets, weights, available, deferred):
    """Block of each row, and the blocks' normalised weights (zero rows where nobody can serve) and sizes."""
    if available is None:
        available = np.ones(weights.shape[1], dtype=bool)
    available = np.asarray(available, dtype=bool)
    if available.ndim == 1:
        kinds, block_of_row, sizes = np.unique(targets, return_inverse=True, return_counts=True)
        prior = weights[kinds] * available
    else:
        packed = np.packbits(available[deferred], axis=1)
        key = np.column_stack([targets.astype(np.int64).view(np.uint8).reshape(len(targets), 8), packed])
        rows = np.ascontiguousarray(key).view(np.dtype((np.void, key.shape[1])))[:, 0]
        _, first, block_of_row, sizes = np.unique(rows, return_index=True, return_inverse=True, return_counts=True)
        prior = weights[targets[first]] * available[deferred[first]]
    totals = prior.sum(axis=1, keepdims=True)
    return block_of_row, np.divide(prior, totals, out=np.zeros_like(prior), where=totals > 0), sizes


def _quotas(prior, sizes, capacity):
    """Share of each block's rows for each expert and, last, for nobody."""
    nobody = (prior.sum(axis=1, keepdims=True) == 0).astype(np.float64)
    if capacity is None:
        return np.hstack([prior, nobody])
    with np.errstate(divide="ignore"):
        log_prior = np.hstack([np.log(prior), np.maximum(np.log(nobody), _UNSERVED)])
    limit = np.minimum(np.asarray(capacity) / sizes.sum(), 1.0)
    quotas, *_ = project_onto_shares(
        log_prior, np.zeros(len(limit) + 1), np.append(limit, 1.0), sample_weight=sizes, tol=1e-6
    )
    return quotas


def _round(quotas, sizes, rng):
    """Whole rows per block and expert, each within one of its quota and equal to it on average.

    The blocks' starting points are spread evenly, so that the errors of small blocks cancel.
    """
    n_blocks = len(sizes)
    start = (rng.permutation(n_blocks) + rng.random()) / n_blocks
    edges = np.cumsum(quotas, axis=1)
    edges *= sizes[:, None] / edges[:, -1:]
    edges = np.floor(edges + start[:, None])
    counts = np.diff(edges, axis=1, prepend=0.0).astype(np.int64)
    # A weight of 0 takes no rows, and the last edge is a whole number but for rounding.
    counts[:, -1] = sizes - counts[:, :-1].sum(axis=1)
    return counts[:, :-1]


def _cut_to_capacity(counts, capacity, rng):
    """Take back random rows from experts above their capacity, in place."""
    excess = counts.sum(axis=0) - np.asarray(capacity)
    for expert in np.flatnonzero(excess > 0):
        held = np.flatnonzero(counts[:, expert])
        rows = np.repeat(held, counts[held, expert])
        np.subtract.at(counts[:, expert], rng.permutation(rows)[: excess[expert]], 1)


def _serve_the_rest(counts, support, sizes, capacity):
    """Raise the number of served rows to its maximum by a flow from unserved blocks to spare capacity, in place."""
    unserved = sizes - counts.sum(axis=1)
    spare = np.asarray(capacity) - counts.sum(axis=0)
    if not unserved.any() or not spare.any():
        return
    n_blocks, n_experts = counts.shape
    source, sink = n_blocks + n_experts, n_blocks + n_experts + 1
    block, expert = np.nonzero(support)
    held_block, held_expert = np.nonzero(counts)
    tails = [np.full(n_blocks, source), block, n_blocks + held_expert, n_blocks + np.arange(n_experts)]
    heads = [np.arange(n_blocks), n_blocks + expert, held_block, np.full(n_experts, sink)]
    limits = [unserved, sizes[block], counts[held_block, held_expert], spare]
    graph = coo_array(
        (np.concatenate(limits).astype(np.int32), (np.concatenate(tails), np.concatenate(heads))),
        shape=(sink + 1, sink + 1),
    ).tocsr()
    graph.eliminate_zeros()
    flow = maximum_flow(graph, source, sink).flow[:n_blocks, n_blocks : n_blocks + n_experts].tocoo()
    counts[flow.coords] += flow.data
