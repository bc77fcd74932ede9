"""Base of the deferrers that choose a panel of people about an item before anybody answers."""

import numbers
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._by_name import available_for, check_capacity
from .._numerics._matching import match_within
from .._numerics._matrices import row_blocks
from .._sklearn import Interval, atomic, warn
from ._asking import Questions
from ._roster import plain_selection
from ._several_answers import SeveralAnswersDeferrer, rows_by_weight
from ._tally import TallyMixin

_SHORT = 0.02  # of the requested answers per item, from which there is a warning


class FixedPanelDeferrer(TallyMixin, SeveralAnswersDeferrer):
    """Base of the deferrers that choose, before anybody answers, how many people to ask about an item, and whom.

    A subclass learns in `_learn(team)`, as `BaseDeferrer` says, ranks the people of an item in `_order`, says in
    `_worth` what asking the first k of them is worth, for k = 0, 1, ..., and joins the classifier and answers in
    `_fused`. It has the parameter `answers` and, unless it says in `_most` how many people are asked at most,
    `max_answers`.

    The number k is the one of the largest worth less k times a toll, which is 0 or set so that the requested mean
    number of answers is met.
    """

    _parameter_constraints: ClassVar = {
        "answers": [Interval(numbers.Real, 0, None, closed="left"), None],
        "max_answers": [Interval(numbers.Integral, 1, None, closed="left"), None],
    }

    def consult(self, X, available=None, capacity=None):
        """Panel of experts about each item, chosen before any of them answers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        available, capacity
            As in `assign_experts`.

        Returns
        -------
        asked : ndarray of bool of shape (n_samples, n_experts)
            Columns in the order of `experts_`. The classifier decides the items of rows without True. Where capacities
            are full, the next in line are asked.

        Raises
        ------
        ValueError
            If `available` or `capacity` do not fit the experts.
        """
        check_is_fitted(self)
        items = self._check_items(X)
        available, capacity = self._check_available(available, items), check_capacity(capacity, self.experts_)
        asked = np.zeros((len(items), self.n_experts_), dtype=bool)
        if self.n_experts_:
            panel = self._panel(items, available, capacity)
            row, place = np.nonzero(panel >= 0)
            asked[row, panel[row, place]] = True
        return asked

    def answers_path(self, budgets, X_unlabeled, available=None):
        """Copies of the deferrer at several mean numbers of answers, which share all that is learnt.

        Parameters
        ----------
        budgets : array-like of float
            Mean numbers of answers per item.
        X_unlabeled : array-like of shape (n_unlabeled, n_features)
            Items on which the toll is calibrated.
        available : array-like of bool of shape (n_experts,) or (n_unlabeled, n_experts), or mapping, default=None
            Who can be asked about these items; by default everybody about all of them. Names as in `assign_experts`.

        Returns
        -------
        deferrers : list
            Fitted copies, in the order of `budgets`; each has its own `toll_` and `answers_`.

        Raises
        ------
        ValueError
            If a budget is negative or more than people can answer.
        """
        check_is_fitted(self)
        items = self._check_unlabeled(X_unlabeled)
        available = self._check_available(available, items)
        path = [self._copy_with(answers=float(b)) for b in budgets]
        for deferrer in path:
            deferrer._check_request()
        if self.n_experts_ == 0:
            for deferrer in path:
                deferrer._report_nobody()
            return path
        questions = self._questions(items, available)
        for deferrer in path:
            deferrer._set_toll(questions)
        return path

    @atomic
    def recalibrate(self, X_unlabeled, available=None):
        """Change the toll so that the mean number of answers is met on other items.

        Parameters
        ----------
        X_unlabeled : array-like of shape (n_unlabeled, n_features)
            Items from the distribution of future items.
        available : array-like of bool of shape (n_experts,) or (n_unlabeled, n_experts), or mapping, default=None
            Who can be asked about these items; by default everybody about all of them. Names as in `assign_experts`.

        Returns
        -------
        self : object
            The deferrer with a new toll.

        Raises
        ------
        ValueError
            If more answers are requested than people can give.
        """
        check_is_fitted(self)
        items = self._check_unlabeled(X_unlabeled)
        available = self._check_available(available, items)
        self._check_request()
        if self.n_experts_ == 0:
            self._report_nobody()
        else:
            self._set_toll(self._questions(items, available))

    # Hooks of a subclass.

    def _learn_worth(self, team):
        """Learn what `_worth` needs beyond `_learn`, when all that `_fused` needs is known; by default nothing."""

    def _order(self, items, available, n_most):
        """People (n, n_most) in the order in which they would be asked, -1 after the last.

        `available` (n, M) says who can be asked about each item.
        """
        raise NotImplementedError

    def _worth(self, items, order):
        """Worth (n, n_most + 1) of asking the first 0, 1, ... people of `order`; any number where there are fewer."""
        raise NotImplementedError

    # Hooks of the base class.

    def _check_settings(self, y):
        super()._check_settings(y)
        self._check_request()

    def _check_request(self):
        """Refuse a mean number of answers that nobody can give."""
        if self.n_experts_ and self.answers is not None and not 0 <= self.answers <= self._most():
            raise ValueError(
                f"answers={self.answers:g} per item, but {self.n_experts_} experts are asked for 0 to {self._most()}; "
                "change it, the largest number of answers to an item, or the experts."
            )

    def _learn_answers(self, team):
        super()._learn_answers(team)
        self._learn_worth(team)
        items = team.items
        if team.unlabeled is not None:
            items = team.unlabeled
        elif team.weights is not None:
            items = items[rows_by_weight(team.weight)]
        self._set_toll(self._questions(items))

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self._roster = self._roster.replace(details={"load": np.zeros(0)})
        self.toll_ = 0.0
        self._report_nobody()

    def _scores(self, items):
        scores = np.full((len(items), len(self.targets_) + 1), -np.inf)
        if self.n_experts_:
            order, level = self._ranked(items)
            scores[np.arange(len(items)), self._target_of(order[:, 0])] = level[:, 0]
            scores[:, -1] = self.toll_
        return scores

    def _choose_experts(self, items, deferral, available, capacity):
        if self.n_experts_ == 0:
            return deferral
        return self._panel(items, available, capacity, first_only=True)[:, 0]

    def _ask_recorded(self, items, votes):
        items.proba = self._classifier_proba(items)
        panel = self._panel(items, votes.to_sparse())
        row, place = np.nonzero(panel >= 0)
        asked = np.sort(row * np.int64(self.n_experts_) + panel[row, place])
        heard = votes.select(np.isin(votes.item * np.int64(self.n_experts_) + votes.annotator, asked))
        return panel, self._fused(items, items.proba, heard)

    def _describe(self, items, y_codes, votes):
        return {"load": np.zeros(votes.shape[1])}

    def _set_roster(self, roster):
        self._set_selection(plain_selection(roster.omega))
        self._roster, self.workload_ = roster, roster.details["load"]
        self.answers_ = float(self.workload_.sum())

    # Who is asked.

    def _most(self):
        """Largest number of answers to an item."""
        return self.n_experts_ if self.max_answers is None else min(self.n_experts_, self.max_answers)

    def _ranked(self, items, available=None):
        """People (n, most) in turn, -1 after the last, and the levels (n, most) of `answer_levels`."""
        n_most, n_people = self._most(), self.n_experts_
        order, level = np.full((len(items), n_most), -1), np.full((len(items), n_most), -np.inf)
        for rows in row_blocks(len(items), n_people):
            some = items[rows]
            some.proba = self._classifier_proba(some)  # once for all that follows
            free = np.broadcast_to(available_for(available, rows), (len(some), n_people))
            order[rows] = self._order(some, free, n_most)
            worth = self._worth(some, order[rows])
            worth[:, 1:][order[rows] < 0] = -np.inf
            level[rows] = answer_levels(worth)
        return order, level

    def _panel(self, items, available=None, capacity=None, first_only=False):
        """Whom to ask about items (n, most), -1 after the last; nobody more often than `capacity` (M,)."""
        order, level = self._ranked(items, available)
        size = (np.isfinite(level) & (level >= self.toll_)).sum(1)
        size = np.minimum(size, 1) if first_only else size
        if capacity is not None:
            turn = np.argsort(self._keys(items), kind="stable")  # the order of items decides nothing
            order[turn] = panels_within(order[turn], size[turn], capacity)
        order[np.arange(order.shape[1]) >= size[:, None]] = -1
        return order

    def _questions(self, items, available=None):
        """`Questions` about items, with the toll up to which each is asked."""
        order, level = self._ranked(items, available)
        row, place = np.nonzero(np.isfinite(level))
        return Questions(row, order[row, place], level[row, place], len(items))

    def _set_toll(self, questions):
        """Set the toll at which the requested number of questions is asked, and report what follows."""
        self.toll_ = 0.0 if self.answers is None else questions.threshold(self.answers)
        self._report_shares(self._first_shares(questions, self.toll_))
        self.workload_ = questions.loads(self.toll_, self.n_experts_)  # every answer is work, not only the first
        self.answers_ = float(self.workload_.sum())
        self._roster = self._roster.replace(details=self._roster.details | {"load": self.workload_})
        if self.answers is not None and self.answers_ < self.answers - _SHORT:
            warn(
                f"answers={self.answers:g} per item, but the available experts give {self.answers_:.2f} at most; "
                "as many of those who are available as an item may have will be asked."
            )


def best_first(score, n_most):
    """People (n, n_most) by a falling score (n, M), the first of equals first, -1 where it is -inf."""
    order = np.argsort(-score, axis=1, kind="stable")[:, :n_most]
    return np.where(np.isneginf(np.take_along_axis(score, order, axis=1)), -1, order)


def answer_levels(worth):
    """Toll up to which the first, second, ... answer to an item is asked for.

    They are the slopes of the least concave function above the worth: the largest worth of k answers, less k times a
    toll, is at the number of levels above the toll.

    Parameters
    ----------
    worth : ndarray of shape (n, n_most + 1)
        Worth of 0, 1, ... answers; -inf where there cannot be so many.

    Returns
    -------
    level : ndarray of shape (n, n_most)
        Falls from left to right; -inf where there are no more answers.
    """
    n, width = worth.shape
    level, at, size = np.full((n, width - 1), -np.inf), np.zeros((n, 1), dtype=int), np.arange(width)
    for _ in range(width - 1):
        step = size - at
        rise = worth - np.take_along_axis(worth, at, axis=1)
        slope = np.where(step > 0, rise / np.maximum(step, 1), -np.inf)
        best = slope.argmax(1)[:, None]
        steepest = np.take_along_axis(slope, best, axis=1)
        covered = (size[1:] > at) & (size[1:] <= best)
        level = np.where(covered, steepest, level)
        at = np.where(np.isfinite(steepest), best, at)
    return level


def panels_within(order, size, capacity):
    """People (n, most) who are asked if nobody takes more than `capacity` (M,); earlier rows come first.

    Everybody's first answer comes before any second one.

    Parameters
    ----------
    order : ndarray of int of shape (n, most)
        People in turn, -1 after the last.
    size : ndarray of int of shape (n,)
        Number of answers that are wanted.
    capacity : ndarray of int of shape (M,)
    """
    asked, left = np.full_like(order, -1), np.array(capacity)
    rank = np.where(order >= 0, -np.arange(order.shape[1], dtype=float), -np.inf)
    for turn in range(size.max(initial=0)):
        rows = np.flatnonzero((size > turn) & (turn == 0 or asked[:, turn - 1] >= 0))
        found = match_within(rank[rows], order[rows], left)
        asked[rows, turn] = found
        left -= np.bincount(found[found >= 0], minlength=len(left))
        rank[rows] = np.where(order[rows] == found[:, None], -np.inf, rank[rows])
    return asked
