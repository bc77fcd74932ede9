"""Who takes which item when nobody can take more than so many."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from ._matrices import rows_per_block

_FEW_TRIES = 16  # of rows to find somebody, after which sorting all their people is worth its time
_EXACT = 2_000_000  # rows times places, up to which the best of all assignments is found
_MANY = 1000  # people of whom some are compared with a row only
_SAMPLE, _FEWEST, _SPARE = 256, 64, 8  # rows that rank people, fewest people to compare, rows that these could take


def match_within(worth, who, capacity):
    """Give every row the best person left, where people keep the rows about which they are worth most.

    Deferred acceptance (Gale and Shapley, 1962): the result is stable, so that no row and person would rather have one
    another. A row that loses against a fuller value goes on to its next best person.

    Parameters
    ----------
    worth : ndarray of shape (n_rows, k)
        -inf where a person cannot be asked.
    who : ndarray of int of shape (n_rows, k) or None
        Persons of the columns, row by row; None if column j is person j.
    capacity : ndarray of int of shape (n_people,)
        Most rows per person.

    Returns
    -------
    matched : ndarray of int of shape (n_rows,)
        -1 where nobody is left.
    """
    n, width = worth.shape
    worth, matched, value = worth.copy(), np.full(n, -1), np.full(n, -np.inf)
    best, order, turn = np.zeros(n, dtype=np.intp), None, np.full(n, -1)
    rows, tries = np.arange(n if width else 0), 0
    while rows.size:
        if tries < _FEW_TRIES:
            best[rows] = worth[rows].argmax(1)
        else:
            order = np.empty(worth.shape, dtype=np.int32) if order is None else order
            fresh = rows[turn[rows] < 0]
            order[fresh] = np.argsort(-worth[fresh], axis=1, kind="stable")
            turn[rows] = np.minimum(turn[rows] + 1, width - 1)
            best[rows] = order[rows, turn[rows]]
        value[rows] = worth[rows, best[rows]]
        rows = rows[np.isfinite(value[rows])]
        matched[rows] = best[rows] if who is None else who[rows, best[rows]]
        asked = np.zeros(len(capacity) + 1, dtype=bool)  # the last is nobody
        asked[matched[rows]] = True
        rivals = np.flatnonzero(asked[matched])
        rows = rivals[~first_within(matched[rivals], -value[rivals], capacity)]
        matched[rows], worth[rows, best[rows]], tries = -1, -np.inf, tries + 1
    return matched


def can_match_exactly(n_rows, capacity):
    """Whether `match_exactly` takes a fraction of a second: rows times the places of people, at most one per row."""
    return n_rows * np.minimum(capacity, n_rows).sum() <= _EXACT


def match_exactly(gain, capacity):
    """Give rows to people so that the sum of the gains is as large as possible.

    An assignment of rows to the places of people (Kuhn, 1955, by the algorithm of Crouse, 2016, in scipy).

    Parameters
    ----------
    gain : ndarray of shape (n_rows, n_people)
        At most 0, or -inf, where a person is not to be asked.
    capacity : ndarray of int of shape (n_people,)
        Most rows per person.

    Returns
    -------
    matched : ndarray of int of shape (n_rows,)
        -1 where nobody gains.
    """
    places = np.repeat(np.arange(len(capacity)), np.minimum(capacity, len(gain)))
    worth, matched = np.maximum(gain[:, places], 0.0), np.full(len(gain), -1)
    row, place = linear_sum_assignment(worth, maximize=True)
    gains = worth[row, place] > 0
    matched[row[gains]] = places[place[gains]]
    return matched


def match_many(gain, n_rows, capacity, most=None):
    """Like `match_within`, for rows in order, some at a time, so that no table of all rows and people is needed.

    Where people are many, rows are compared with some of them, who have the best places for any row of a sample and
    together could take eight times as many rows. Rows that none of these takes are compared with more people in the
    end, and with everybody at last. Of 10,000 people who differ in five classes at random, less than a thousandth of
    the worth was lost by that.

    Parameters
    ----------
    gain : callable
        Worth (k, m) of k rows and m people, by their positions; at most 0 where a person is not to be asked.
    n_rows : int
        Number of rows.
    capacity : ndarray of int of shape (n_people,)
        Most rows per person.
    most : callable, default=None
        Bounds (k,) from above of the gain of k rows by m people, by their positions. None compares all people with each
        row.

    Returns
    -------
    matched : ndarray of int of shape (n_rows,)
        -1 where nobody is left whose worth is positive.
    """
    left, matched = np.minimum(capacity, n_rows), np.full(n_rows, -1)
    rows, spare = np.arange(n_rows), _SPARE
    while rows.size:
        line, rest = np.flatnonzero(left > 0), [rows[:0]]
        if most is not None and len(line) > _MANY:
            sample = rows[: min(_SAMPLE, rows_per_block(len(line)))]
            line = line[_by_best_place(gain(sample, line))]
        while rows.size and line.size:
            if most is None or len(line) <= _MANY:
                size, some = rows_per_block(len(line)), line
            else:
                size, some = _first_in_line(line, left[line], min(len(rows), rows_per_block(_MANY)), spare)
            block, rows = rows[:size], rows[size:]
            worth = gain(block, some)
            worth[worth <= 0] = -np.inf
            who = match_within(worth, None, left[some])
            matched[block] = np.where(who >= 0, some[who], -1)
            left[some] -= np.bincount(who[who >= 0], minlength=len(some))
            lost = block[who < 0]
            if lost.size and len(some) < len(line):
                rest.append(lost[most(lost, line) > 0])
            line = line[left[line] > 0]
        rows, spare = np.concatenate(rest), 2 * spare
    return matched


def _by_best_place(worth):
    """Positions of people, by the best place that they have for any of some rows."""
    place = np.full(worth.shape[1], worth.shape[1])
    for order in np.argsort(-worth, axis=1, kind="stable"):
        place[order] = np.minimum(place[order], np.arange(len(order)))
    return np.argsort(place, kind="stable")


def _first_in_line(line, left, n_rows, spare):
    """How many rows are compared next, at most `n_rows`, and with whom: people who could take `spare` times as many."""
    places = np.cumsum(left)
    while True:
        n_people = max(_FEWEST, np.searchsorted(places, spare * n_rows) + 1)
        if n_rows <= rows_per_block(min(n_people, len(line))):
            return n_rows, np.sort(line[:n_people])
        n_rows = n_rows // 2


def first_within(who, rank, capacity):
    """Mask of the rows that their persons, who can take `capacity` each, accept: those of the lowest rank, in order."""
    order = np.lexsort((rank, who))
    asked, accepted = who[order], np.empty(len(who), dtype=bool)
    accepted[order] = np.arange(len(who)) - np.searchsorted(asked, asked) < capacity[asked]
    return accepted
