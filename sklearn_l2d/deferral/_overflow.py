"""Items that their target cannot take: they go to whoever else is free and gains most over the classifier."""

import numpy as np
from scipy.sparse import csr_array, issparse

from .._by_name import available_for
from .._numerics._answers import undominated
from .._numerics._matching import can_match_exactly, match_exactly, match_many
from .._numerics._matrices import row_blocks, rows_of


def check_overflow(on_overflow):
    """Refuse an unknown way to treat items that their target cannot take."""
    if on_overflow not in ("next", "classifier", "raise"):
        raise ValueError(f"on_overflow={on_overflow!r} is none of 'next', 'classifier' and 'raise'.")


def pass_on(team, items, deferral, assignment, available, capacity):
    """The assignment where deferred items without anybody go to whoever else is free and gains most.

    Parameters
    ----------
    team : BaseDeferrer
        Fitted.
    items : Items
        n rows.
    deferral, assignment : ndarrays of int of shape (n,)
        Targets and experts of the items, -1 for the classifier.
    available, capacity : None, or arrays and tables
        As `check_available` and `check_capacity` return them.
    """
    rows = np.flatnonzero((deferral >= 0) & (assignment < 0))
    if not rows.size:
        return assignment
    # whom a bound excludes is not asked here, either
    bounds = team.requested_bounds_
    working = team._selection[bounds.target_upper[:-1] > 0].sum(0) * bounds.expert_upper[:-1] > 0
    by_row, left = np.ndim(available) == 2, None
    if by_row and issparse(available):
        available = csr_array(available)
    elif available is not None and not by_row:
        working, available = working & available, None
    if capacity is not None:
        left = np.where(working, capacity - np.bincount(assignment[assignment >= 0], minlength=team.n_experts_), 0)
        rows = rows[np.argsort(team._keys(items[rows]))]  # the order of items decides nothing
    assignment = assignment.copy()
    if left is None and issparse(available):
        _give_listed(team, items, rows, deferral[rows], available, working, assignment)
        return assignment

    def gain(some, people):
        of_some = items[rows[some]]
        proba = team._classifier_proba(of_some)
        gained = team._right_of_all(of_some, proba, deferral[rows[some]], people) - proba.max(1)[:, None]
        if available is not None:
            gained[~available_for(available, rows[some])[:, people]] = -np.inf
        return gained

    def most(some, people):
        proba = team._classifier_proba(items[rows[some]])
        return proba @ team._correctness[people].max(0) - proba.max(1)

    comparable = team._by_class and available is None
    if left is None:
        people = np.flatnonzero(working)
        if comparable and len(rows) > len(people):  # else a search for the best is not worth its time
            people = people[undominated(team._correctness[people])]
        for block in row_blocks(len(rows), len(people)) if len(people) else ():
            gained = gain(block, people)
            assignment[rows[block]] = np.where(gained.max(1) > 0, people[gained.argmax(1)], -1)
    elif can_match_exactly(len(rows), left):
        people = np.flatnonzero(left > 0)
        gained = [gain(block, people) for block in row_blocks(len(rows), team.n_experts_)]
        assignment[rows] = np.append(people, -1)[match_exactly(np.concatenate(gained), left[people])]
    else:
        assignment[rows] = match_many(gain, len(rows), left, most if comparable else None)
    return assignment


def _give_listed(team, items, rows, target, available, working, assignment):
    """Set the assignment of rows to the best of the few who are listed as available for each."""
    for block in row_blocks(len(rows), len(team.classes_)):
        listed, some = available[rows[block]], items[rows[block]]
        proba, row = team._classifier_proba(some), rows_of(listed)
        right = team._right(some, proba, row, listed.indices, target[block][row])
        gain = np.where(listed.data.astype(bool) & working[listed.indices], right - proba.max(1)[row], -np.inf)
        best = np.lexsort((listed.indices, -gain, row))  # the largest gain first, and the first of equals
        best = best[np.searchsorted(row, np.flatnonzero(np.diff(listed.indptr)))]
        best = best[gain[best] > 0]
        assignment[rows[block][row[best]]] = listed.indices[best]
