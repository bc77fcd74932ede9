"""A shift: work that comes bit by bit, to people who can take so much each."""

import numbers

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._by_name import UNLIMITED, check_capacity
from .._numerics._shares import calibrate_offsets
from .._sklearn import take_rows

_ENOUGH_ITEMS = 2_000  # of those that are expected, from which prices are found
_N_PRICES, _N_TOLLS = 20, 5  # times in a shift that prices are found anew
_ROWS_OF_PANELS = 500  # of those that are expected, about which questions are drawn
_NEVER = 10.0  # errors that it costs to ask somebody who may not be asked, more than any gain


class Reserve:
    """Prices of the time of experts, which keep those whom many of the coming items need for the items that gain most.

    Parameters
    ----------
    gain : ndarray of shape (n, n_experts)
        Expected gain of each expert over the classifier on items such as those to come; -inf where nobody is asked.
    n_items : int
        Number of items to come in the shift.
    """

    def __init__(self, gain, n_items):
        self.gain, self.n_items = gain, n_items
        self.n_seen, self.until, self.price = 0, 0, np.zeros(gain.shape[1])

    def choose(self, gain, left):
        """Expert with the largest gain (n_experts,) above the price for the next item, -1 if there is none."""
        if self.n_seen >= self.until and self.n_seen < self.n_items:
            self.price = self._prices(left)
            self.until = self.n_seen + max(1, self.n_items // _N_PRICES)
        if self.n_seen >= self.n_items:
            self.price = np.zeros(len(left))  # nothing more is expected
        self.n_seen += 1
        net = np.where(left > 0, gain - self.price, -np.inf)
        return int(net.argmax()) if net.max() > 0 else -1

    def _prices(self, left):
        """Prices (n_experts,) at which the coming items need as much of everybody's time as is left."""
        upper = np.append(np.minimum(left / (self.n_items - self.n_seen), 1.0), 1.0)  # last, nobody
        worth = np.column_stack([np.maximum(self.gain, -_NEVER), np.zeros(len(self.gain))])
        offsets, _ = calibrate_offsets(worth, np.zeros(len(upper)), upper)
        return np.maximum(offsets[-1] - offsets[:-1], 0.0)


class PanelReserve:
    """The same for a team that asks several people about an item: tolls beside its prices, which spare people.

    Parameters
    ----------
    team : PanelDeferral
        Fitted.
    items : Items
        Items such as those to come.
    n_items : int
        Number of items to come in the shift.
    """

    def __init__(self, team, items, n_items):
        self.sample, self.n_items = team._sample(items, None).at_most(_ROWS_OF_PANELS), n_items
        self.n_seen, self.until, self.toll = 0, 0, np.zeros(team.n_experts_)

    def team_for(self, team, n_new, left):
        """The team as it asks about its next items, of which so many are new; `left` (n_experts,) is their time."""
        if self.n_seen >= self.n_items:
            return team  # nothing more is expected
        if self.n_seen >= self.until:
            self.toll = team._tolls_for(self.sample, left / (self.n_items - self.n_seen), self.toll)
            self.until = self.n_seen + max(1, self.n_items // _N_TOLLS)
        self.n_seen += n_new
        return team._at_toll(self.toll)


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
    X_expected : array-like of shape (n_expected, n_features), default=None
        Items such as those to come, for a reserve, as in `start_shift` of the team.
    n_expected : int, default=None
        Number of items to come; by default that of `X_expected`.

    Attributes
    ----------
    served_ : Series of int
        Number of items that each expert has been given.
    capacity_left_ : Series of float
        Number of items that each expert can still take, inf if it is unlimited.
    unserved_ : int
        Number of deferred items that found nobody, which the classifier decides. A warning tells of the first.

    Raises
    ------
    ValueError
        If `capacity` or `available` does not fit the experts, or a reserve is asked for without a capacity, or of a
        team that chooses panels at once or has promised an accuracy.

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

    def __init__(self, team, capacity=None, available=None, X_expected=None, n_expected=None):
        self.team = team
        self._experts = team.experts_
        self._capacity = check_capacity(capacity, team.experts_)
        self._served, self.unserved_ = np.zeros(len(self._experts), dtype=np.int64), 0
        self.available = available
        self._reserve = self._make_reserve(X_expected, n_expected)

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
        return self._by_expert(np.where(self._capacity < UNLIMITED, self._left(), np.inf))

    def assign_experts(self, X, on_overflow="next"):
        """Assign each deferred item to one expert, within what is left of the capacities, and remember it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items: one or many.
        on_overflow : {"next", "classifier", "raise"}, default="next"
            As in `assign_experts` of the team. What is refused is not remembered. With a reserve, each deferred item
            goes to whoever gains most on it beyond the price of their time, which takes "next".

        Returns
        -------
        assignment : ndarray of int of shape (n_samples,)
            Positions in `experts_` of the team, -1 for the classifier.

        Raises
        ------
        ValueError
            If the roster of the team has changed, on overflow with ``on_overflow="raise"``, or if there is a reserve
            and `on_overflow` is not "next".
        """
        return self._assign(X, on_overflow)[1]

    def route(self, X, on_overflow="next", explain=False):
        """Assign items to experts, as in `assign_experts`, and return the route as a table.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Items; the index of a DataFrame names them.
        on_overflow : {"next", "classifier", "raise"}, default="next"
            As in `assign_experts`.
        explain : bool, default=False
            Whether to add what the classifier says, and why the item goes where it goes.

        Returns
        -------
        route : DataFrame
            As in `route` of the team.

        Raises
        ------
        ValueError
            As in `assign_experts`.
        """
        self._check_roster()
        items = self.team._asked_once(X) if explain else self.team._check_items(X)
        return self.team._route(X, items, *self._assign(items, on_overflow), explain)

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
        items, votes = self.team._so_far(X, annotations)
        n_heard = 0 if votes is None else len(np.unique(votes.item))
        team = self.team if self._reserve is None else self._sparing_team(len(items) - n_heard)
        return self._remember(team._next(items, votes, self._available, self._left()))

    def _assign(self, X, on_overflow):
        self._check_roster()
        if isinstance(self._reserve, Reserve):
            return self._assign_with_reserve(X, on_overflow)
        team = self.team if self._reserve is None else self._sparing_team(len(self.team._check_items(X)))
        # one warning for the shift: a queue that is served one by one would be told of every item
        tell = self.unserved_ == 0
        deferral, assignment = team._assign(X, self._available, self._left(), on_overflow, tell)
        self.unserved_ += int(((deferral >= 0) & (assignment < 0)).sum())
        return deferral, self._remember(assignment)

    def _make_reserve(self, X, n_items):
        if X is None:
            if n_items is not None:
                raise ValueError(f"n_expected={n_items} comes without X_expected; pass items such as those to come.")
            return None
        if self._capacity is None:
            raise ValueError("X_expected is for a reserve of limited time, but capacity is None; pass capacities.")
        name = type(self.team).__name__
        if hasattr(self.team, "replay") and not hasattr(self.team, "next_expert"):
            raise ValueError(f"{name} chooses several people about an item at once; leave out X_expected.")
        if getattr(self.team, "target_accuracy", None) is not None:
            raise ValueError(
                f"{name} has promised target_accuracy={self.team.target_accuracy} for whom it asks, and a reserve asks "
                "others; leave out X_expected."
            )
        items = self.team._check_items(X)
        n_items = len(items) if n_items is None else n_items
        if not isinstance(n_items, numbers.Integral) or n_items < 1:
            raise ValueError(f"n_expected={n_items!r} is no whole number from 1 on.")
        if len(items) > _ENOUGH_ITEMS:
            some = np.sort(np.random.default_rng(0).choice(len(items), _ENOUGH_ITEMS, replace=False))
            items = self.team._check_items(take_rows(X, some))
        if hasattr(self.team, "next_expert"):
            return PanelReserve(self.team, items, int(n_items))
        return Reserve(self._gain(items, self.team._duel(items).chosen), int(n_items))

    def _gain(self, items, deferral):
        """Expected gain (n, n_experts) of each expert over the classifier, -inf where the item is not for people."""
        team = self.team
        proba = team._classifier_proba(items)
        gain = team._right_of_all(items, proba, deferral) - proba.max(1)[:, None]
        gain[deferral < 0] = -np.inf
        gain[:, team.requested_bounds_.expert_upper[:-1] <= 0] = -np.inf
        return gain

    def _assign_with_reserve(self, X, on_overflow):
        if on_overflow != "next":
            raise ValueError(f"on_overflow={on_overflow!r} has no meaning where a reserve is kept; leave it out.")
        items = self.team._check_items(X)
        deferral = self.team._duel(items).chosen
        left, who = self._left(), np.full(len(items), -1)
        if self._available is not None:
            left = np.where(self._available, left, 0)
        for row, gain in enumerate(self._gain(items, deferral)):
            who[row] = self._reserve.choose(gain, left)
            if who[row] >= 0:
                left[who[row]] -= 1
        return deferral, self._remember(who)

    def _sparing_team(self, n_new):
        """The team with a reserve, as it asks about items of which so many have no answer yet."""
        left = self._left()
        left = left if self._available is None else np.where(self._available, left, 0)
        return self._reserve.team_for(self.team, n_new, left)

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
