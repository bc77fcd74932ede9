"""A shift: work that comes bit by bit, to people who can take so much each."""

import numpy as np
from sklearn.utils.metaestimators import available_if

from ._roster import index_of, route_table


class Shift:
    """Work that a team does over many calls: who is in, what each person has been given, and how much is left.

    `start_shift` of a fitted deferrer makes one. Its methods are those of the deferrer with a memory: a capacity counts
    for the whole shift, whether items come one by one or in batches. A shift can be pickled, with its team. Several
    processes or threads each start a shift of their own, with their part of the capacities; the sum of their `served_`
    is the work of all.

    Parameters
    ----------
    team : deferrer
        Fitted.
    capacity : array-like of int of shape (n_experts,), int, or mapping by name, default=None
        Largest number of items per expert in the shift; unlimited by default.
    available : array-like of bool of shape (n_experts,), default=None
        Experts who are in; by default all experts. It can be changed at any time.

    Attributes
    ----------
    served_ : Series of int
        Number of items that each expert has been given.
    capacity_left_ : Series of float
        Number of items that each expert can still take, inf if it is unlimited.

    Raises
    ------
    ValueError
        If `capacity` or `available` does not fit the experts.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ConfidenceDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = ConfidenceDeferral(LogisticRegression(C=0.01), coverage=0.2, random_state=0)
    >>> team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    ConfidenceDeferral(...)
    >>> shift = team.start_shift(capacity=5)
    >>> for item in crowd.X_test[:20]:
    ...     who = shift.assign_experts([item])
    >>> int(shift.served_.max())
    5
    """

    def __init__(self, team, capacity=None, available=None):
        self.team = team
        self._experts = team.experts_
        self._capacity = team._check_capacity(capacity)
        self._served = np.zeros(len(self._experts), dtype=np.int64)
        self.available = available

    @property
    def available(self):
        """Experts who are in, as booleans in the order of the team's experts; None for all."""
        return self._available

    @available.setter
    def available(self, available):
        self._available = self.team._check_available(available, None)  # one per expert, not by row

    @property
    def served_(self):
        """Number of items that each expert has been given."""
        return self._by_expert(self._served.copy())

    @property
    def capacity_left_(self):
        """Number of items that each expert can still take, inf if it is unlimited."""
        if self._capacity is None:
            return self._by_expert(np.full(len(self._experts), np.inf))
        return self._by_expert(np.where(self._capacity < self.team._unlimited, self._left(), np.inf))

    def assign_experts(self, X, on_overflow="next"):
        """Assign each deferred item to one expert, within what is left of the capacities, and remember it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items: one or many.
        on_overflow : {"next", "classifier", "raise"}, default="next"
            As in `assign_experts` of the team. What is refused is not remembered.

        Returns
        -------
        assignment : ndarray of int of shape (n_samples,)
            Positions in `experts_` of the team, -1 for the classifier.

        Raises
        ------
        ValueError
            If the roster of the team has changed, or on overflow with ``on_overflow="raise"``.
        """
        return self._assign(X, on_overflow)[1]

    def route(self, X, on_overflow="next"):
        """Assign items to experts, as in `assign_experts`, and return the route as a table.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Items; the index of a DataFrame names them.
        on_overflow : {"next", "classifier", "raise"}, default="next"
            As in `assign_experts`.

        Returns
        -------
        route : DataFrame
            As in `route` of the team.

        Raises
        ------
        ValueError
            As in `assign_experts`.
        """
        deferral, assignment = self._assign(X, on_overflow)
        return route_table(self.team.targets_, self._experts, deferral, assignment, index_of(X))

    @available_if(lambda self: hasattr(self.team, "next_expert"))
    def next_expert(self, X, annotations=None):
        """Whom to ask next about each item, within what is left of the capacities; the questions are remembered.

        It only exists for teams that ask several people about an item.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items: one or many.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts so far, as in `PanelDeferral.next_expert`.

        Returns
        -------
        expert : ndarray of int of shape (n_samples,)
            Positions in `experts_` of the team; -1 where it is time to decide.

        Raises
        ------
        ValueError
            If the roster of the team has changed, or `annotations` do not fit the experts.
        """
        self._check_roster()
        return self._remember(self.team.next_expert(X, annotations, self._available, self._left()))

    def _assign(self, X, on_overflow):
        self._check_roster()
        deferral, assignment = self.team._assign(X, self._available, self._left(), on_overflow)
        return deferral, self._remember(assignment)

    def _remember(self, who):
        self._served += np.bincount(who[who >= 0], minlength=len(self._served))
        return who

    def _left(self):
        return None if self._capacity is None else self._capacity - self._served

    def _check_roster(self):
        if not np.array_equal(self.team.experts_, self._experts):
            raise ValueError("the roster of the team has changed since the shift started; start a new one.")

    def _by_expert(self, values):
        import pandas as pd

        return pd.Series(values, index=pd.Index(self._experts, tupleize_cols=False))
