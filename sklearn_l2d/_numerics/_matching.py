"""Who takes which item when nobody can take more than so many."""

import numpy as np


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
    order = np.argsort(-worth, axis=1, kind="stable")
    worth = np.take_along_axis(worth, order, axis=1)
    who = order if who is None else np.take_along_axis(who, order, axis=1)
    n_choices = np.isfinite(worth).sum(1)
    choice = np.zeros(len(worth), dtype=int)  # of each row, in its order
    rows = np.arange(len(worth))
    while True:
        held = rows[choice < n_choices]
        person, value = who[held, choice[held]], worth[held, choice[held]]
        refused = held[~first_within(person, -value, capacity)]
        if not len(refused):
            matched = np.full(len(worth), -1)
            matched[held] = person
            return matched
        choice[refused] += 1


def first_within(who, rank, capacity):
    """Mask of the rows that their persons, who can take `capacity` each, accept: those of the lowest rank, in order."""
    order = np.lexsort((rank, who))
    asked, accepted = who[order], np.empty(len(who), dtype=bool)
    accepted[order] = np.arange(len(who)) - np.searchsorted(asked, asked) < capacity[asked]
    return accepted
