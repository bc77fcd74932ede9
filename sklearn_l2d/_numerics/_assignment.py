"""From targets to people: draws that belong to a row, and honour who is in and how much each can take.

All steps work on cells, the pairs of a row (or of all rows alike) and an expert who can serve it, so that their cost
never depends on the size of a full table.
"""

from itertools import count
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import maximum_flow

from ._keyed import keyed_uniforms, number_keys
from ._matching import first_within
from ._matrices import entries, ragged_rows, row_blocks

_TURN = -1  # number of the random numbers that say which rows come first; draws are numbered from 0


class _Cells(NamedTuple):
    """Who can serve each row, and with which weight: cells sorted by row and expert."""

    start: np.ndarray
    expert: np.ndarray
    weight: np.ndarray

    @property
    def row(self):
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def those(self, kept):
        """The cells at which `kept` holds."""
        used = np.flatnonzero(kept)
        return _Cells(np.searchsorted(used, self.start), self.expert[used], self.weight[used])


def assign_members(targets, weights, keys, available=None, capacity=None):
    """Give each deferred row to one expert of its target, drawn by the selection weights.

    A row draws among all members of its target. While whoever it drew is away or full, it draws again, among those who
    are left; where not all can be served, the rows with the least keyed numbers come first. So a row keeps its expert
    whoever else is away, and those who are left share the work of the others in proportion to their weights. Where rows
    remain unserved although capacity is left, rows change hands along augmenting paths of a maximum flow, so that as
    many rows as possible are served.

    Parameters
    ----------
    targets : ndarray of shape (n_rows,)
        Target of each row, -1 for the classifier.
    weights : ndarray or csr_array of shape (n_targets, n_experts)
        Selection weights; an expert with weight 0 never serves the target.
    keys : ndarray of uint64 of shape (n_rows,)
        Keys of the rows, from which all randomness comes. Without capacities, a row gets the same expert alone and
        among others, in any order, and rows with equal keys get the same expert.
    available : ndarray of bool of shape (n_experts,) or (n_rows, n_experts), or sparse table, default=None
        Who can be asked, for all rows or row by row; everybody by default. In a sparse table (n_rows, n_experts), the
        stored non-zero entries mark who can be asked.
    capacity : ndarray of int of shape (n_experts,), default=None
        Largest number of rows per expert; unlimited by default.

    Returns
    -------
    experts : ndarray of int of shape (n_rows,)
        Expert of each row; -1 for the classifier's rows and for those that nobody can serve.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d._numerics._assignment import assign_members
    >>> from sklearn_l2d._numerics._keyed import number_keys
    >>> experts = assign_members(
    ...     np.zeros(4000, int), np.array([[0.75, 0.25]]), number_keys(np.arange(4000))
    ... )
    >>> bool(abs(np.mean(experts == 0) - 0.75) < 0.02)
    True
    """
    targets = np.asarray(targets)
    experts = np.full(len(targets), -1, dtype=np.intp)
    rows = np.flatnonzero(targets >= 0)
    if not rows.size or not np.prod(weights.shape):
        return experts
    kinds, kind = np.unique(targets[rows], return_inverse=True)
    members, keys = _members(weights, kinds), keys[rows]
    if np.ndim(available) == 2:
        available = _sorted(available) if issparse(available) else np.asarray(available)
        available = available if rows.size == len(targets) else available[rows]
    # More than all rows is never used, and flows are 32-bit.
    capacity = None if capacity is None else np.minimum(capacity, rows.size)
    turn = None if capacity is None else keyed_uniforms(keys, number_keys(_TURN))
    held = _draw_members(kind, members, keys, turn, available, capacity)
    if capacity is not None and (held < 0).any():
        held = _serve_the_rest(held, kind, members, turn, available, capacity)
    experts[rows] = held
    return experts


def _draw_members(kind, members, keys, turn, available, capacity):
    """Experts (n,) of rows that draw until they are served, or nobody is left; `kind` is their row of `members`."""
    held, rest = np.full(len(kind), -1, dtype=np.intp), np.arange(len(kind))
    free, left = np.ones(members.expert.max(initial=0) + 1, dtype=bool), capacity
    for step in count():
        uniform = keyed_uniforms(keys[rest], number_keys(step))
        if step and np.ndim(available) == 2:
            who = _draw_by_row(kind, members, available, free, rest, uniform)
        else:
            open_members = members if free.all() else members._replace(weight=members.weight * free[members.expert])
            who = _draw(open_members, kind[rest], uniform)
        rest, who = rest[who >= 0], who[who >= 0]
        served = _is_there(available, rest, who)
        if capacity is not None:
            served[served] = first_within(who[served], turn[rest[served]], left)
            left = left - np.bincount(who[served], minlength=len(left))
        held[rest[served]] = who[served]
        rest = rest[~served]
        if not rest.size:
            return held
        # Absences do not count in the first draw, so that those who are there keep their rows.
        if np.ndim(available) == 1:
            free = np.asarray(available)[: len(free)]
        if capacity is not None:
            free = free & (left[: len(free)] > 0)


def _draw(cells, row, uniform):
    """Expert of each number in [0, 1), by the weights in a row of cells; -1 in rows without any weight."""
    n_rows = len(cells.start) - 1
    of_cell = cells.row
    sums = np.bincount(of_cell, cells.weight, minlength=n_rows)
    share = cells.weight / sums[of_cell] if sums.all() else cells.weight / np.where(sums > 0, sums, 1.0)[of_cell]
    edges = np.append(0.0, np.cumsum(share))
    low, high = edges[cells.start[row]], edges[cells.start[row + 1]]
    # Rounding must not reach beyond the row.
    value = np.minimum(low + uniform * (high - low), np.nextafter(high, low))
    who, some = np.full(len(row), -1, dtype=np.intp), high > low
    who[some] = cells.expert[np.searchsorted(edges, value[some], side="right") - 1]
    return who


def _draw_by_row(kind, members, available, free, rows, uniform):
    """Like `_draw`, for rows with experts of their own."""
    width = available.nnz // available.shape[0] if issparse(available) else available.shape[1]
    blocks = row_blocks(len(rows), width)
    who = []
    for block in blocks:
        cells = _cells_by_row(kind, members, available, rows[block])
        cells = cells._replace(weight=cells.weight * free[cells.expert])
        who.append(_draw(cells, np.arange(len(cells.start) - 1), uniform[block]))
    return np.concatenate(who)


def _members(weights, kinds):
    """Cells of some targets."""
    if issparse(weights):
        table = _sorted(weights[kinds])
        cells = _Cells(table.indptr, table.indices, table.data.astype(np.float64))
        return cells.those(cells.weight)
    table = np.asarray(weights, dtype=np.float64)[kinds]
    row, expert = np.nonzero(table)
    return _Cells(np.searchsorted(row, np.arange(len(kinds) + 1)), expert, table[row, expert])


def _cells_by_row(kind, members, available, rows):
    """Cells of the available members of the targets of some rows."""
    table = csr_array(available[rows])
    weights = csr_array((members.weight, members.expert, members.start), (len(members.start) - 1, table.shape[1]))
    cells = _Cells(table.indptr, table.indices, table.data)
    weight = entries(weights, kind[rows][cells.row], cells.expert) * (table.data != 0)
    return cells._replace(weight=weight).those(weight)


def _is_there(available, rows, who):
    """Whether the experts of some rows are available."""
    if available is None:
        return np.ones(len(rows), dtype=bool)
    if np.ndim(available) == 1:
        return np.asarray(available)[who]
    return entries(available, rows, who).astype(bool)


def _sorted(table):
    """A sparse table in canonical form, which may be the given one."""
    table = csr_array(table)
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    return table


def _serve_the_rest(held, kind, members, turn, available, capacity):
    """Serve as many rows as possible by a flow from unserved rows to spare capacity; rows of the same kind are one."""
    n_experts = len(capacity)
    spare = capacity - np.bincount(held[held >= 0], minlength=n_experts)
    if not spare.any():
        return held
    block, cells = kind, members
    if np.ndim(available) == 1:
        cells = cells.those(np.asarray(available)[cells.expert])
    elif np.ndim(available) == 2:
        cells = _cells_by_row(kind, members, available, np.arange(len(kind)))
        block, cells = _alike(kind, cells)
    n_blocks, of_cell = len(cells.start) - 1, cells.row
    now = _counts(block, held % (n_experts + 1), 1, (n_blocks, n_experts + 1))  # the last column is nobody's
    source, sink = n_blocks + n_experts, n_blocks + n_experts + 1
    expert = n_blocks + cells.expert
    tails = [np.full(n_blocks, source), of_cell, expert, n_blocks + np.arange(n_experts)]
    heads = [np.arange(n_blocks), expert, of_cell, np.full(n_experts, sink)]
    unserved, sizes = np.bincount(block, held < 0, minlength=n_blocks), np.bincount(block, minlength=n_blocks)
    limits = [unserved, sizes[of_cell], entries(now, of_cell, cells.expert), spare]
    tails, heads, limits = (np.concatenate(parts).astype(np.int32) for parts in (tails, heads, limits))
    graph = coo_array((limits, (tails, heads)), shape=(sink + 1, sink + 1)).tocsr()
    graph.eliminate_zeros()
    flow = csr_array(maximum_flow(graph, source, sink).flow)
    return _change_hands(held, block, cells, entries(flow, of_cell, expert).astype(np.int64), turn, now.shape)


def _change_hands(held, block, cells, flow, turn, shape):
    """Experts of rows after a net flow (n_cells,) from blocks to experts; of those who leave, the last come first."""
    lost, nobody = flow < 0, shape[1] - 1
    net = np.bincount(cells.row, flow, minlength=shape[0])
    leave = _counts(
        np.append(cells.row[lost], np.arange(shape[0])),
        np.append(cells.expert[lost], np.full(shape[0], nobody)),
        np.append(-flow[lost], net),
        shape,
    )
    column = held % shape[1]
    order = np.lexsort((np.where(held < 0, turn, -turn), column, block))
    cell = block[order] * np.int64(shape[1]) + column[order]
    n_leave = entries(leave, block[order], column[order])
    moved = order[np.arange(len(cell)) - np.searchsorted(cell, cell) < n_leave]
    moved = moved[np.lexsort((turn[moved], block[moved]))]
    held[moved] = np.repeat(cells.expert, np.maximum(flow, 0))
    return held


def _counts(rows, columns, counts, shape):
    """Sparse table of counts at some places, which are added up."""
    return coo_array((np.broadcast_to(counts, rows.shape), (rows, columns)), shape=shape).tocsr()


def _alike(kind, cells):
    """Block of each row, and the blocks' cells; rows of one block have the same target and experts.

    Sums of the keys of target and experts tell rows apart; of 2**64 pairs of different rows, one has the same sums.
    """
    sums = np.append(np.uint64(0), np.cumsum(number_keys(1 + cells.expert)))
    codes = number_keys(number_keys(-1 - kind) + sums[cells.start[1:]] - sums[cells.start[:-1]])
    _, first, block = np.unique(codes, return_index=True, return_inverse=True)
    row, cell = ragged_rows(cells.start, first)
    start = np.searchsorted(row, np.arange(len(first) + 1))
    return block, _Cells(start, cells.expert[cell], cells.weight[cell])
