"""The roster of a team: experts, memberships and correctness, and the work that follows from them."""

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from .._numerics._answer_model import AnswerModel, fit_counts, with_experts
from .._numerics._answer_worth import all_answers
from .._numerics._matrices import narrowed, normalised_rows, stacked
from ._answer_model import count_votes

_BY_EXPERT = "experts", "omega", "right", "seen", "answers", "likely"  # with a row for each expert
_MANY_ANSWERS = 1 << 16  # numbers, of an expert, an answer and a true class


@dataclass(frozen=True, eq=False)
class Roster:
    """Immutable list of experts; a change returns a new roster.

    What follows from it is computed when it is first asked for, and belongs to no file.

    Attributes
    ----------
    experts : ndarray of shape (n_experts,)
        Names.
    omega : ndarray or csr_array of shape (n_experts, n_targets)
        Memberships.
    right, seen : ndarrays of shape (n_experts, n_classes)
        Right answers and answers per true class.
    answers : csr_array of shape (n_experts, n_classes ** 2)
        Answers by answer and true class.
    details : dict of ndarrays of n_experts rows
        Further data about each expert.
    likely : ndarray of shape (n_experts, n_classes)
        Accuracy to expect of each expert before any answer, where more than that of everybody is known; else NaN.
    answering : AnswerModel or None
        How the experts of `fit` answer; its priors are those of everybody.
    left : tuple
        Names of those who have left or were replaced.
    """

    experts: np.ndarray
    omega: np.ndarray
    right: np.ndarray
    seen: np.ndarray
    answers: csr_array
    details: dict
    likely: np.ndarray
    answering: AnswerModel | None = None
    left: tuple = ()

    def __getstate__(self):
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def replace(self, **changes):
        """The roster with other values of some attributes."""
        return replace(self, **changes)

    @cached_property
    def correctness(self):
        """Correctness (n_experts, n_classes) of the experts, shrunk by empirical Bayes."""
        return self.answer_model.correctness

    @property
    def counts(self):
        """Answers, right answers and answers per true class, in the form of an `AnswerModel`."""
        return narrowed(self.answers, self.seen.shape[1]), self.right, self.seen

    @cached_property
    def answer_model(self):
        """`AnswerModel` of the experts, learnt from their own answers until that of a fit is known."""
        if self.answering is None:
            return fit_counts(*self.counts)
        return with_experts(self.answering, *self.counts, self.likely)

    @cached_property
    def all_answers(self):
        """`all_answers` of the model; None where they are too many to keep."""
        n_experts, n_classes = self.seen.shape
        return all_answers(self.answer_model) if n_experts * n_classes**2 <= _MANY_ANSWERS else None

    def who_answer(self, model):
        """The roster with what an `AnswerModel` holds of everybody; what it holds of each is in the roster."""
        return self.replace(answering=model._replace(own=None, right=None, seen=None, accuracy=None))

    def recounted(self, votes, truth):
        """The roster by these answers to items with a distribution (n, C) of the truth."""
        return self.replace(**count_votes(votes, truth))

    def newcomers(self, experts, omega, counts, details=None, likely=None):
        """Roster of newcomers for `joined_by`, with `counts` by `count_votes`."""
        likely = np.full(counts["seen"].shape, np.nan) if likely is None else likely
        return self.replace(experts=experts, omega=omega, details=details or {}, likely=likely, **counts)

    def without(self, names):
        """The roster without some of the experts."""
        gone = set(names)
        stay = np.array([name not in gone for name in self.experts], dtype=bool)
        return self._rows(stay).replace(left=(*self.left, *self.experts[~stay]))

    def joined_by(self, newcomers):
        """The roster with newcomers, given as a `Roster`; they replace experts of the same name."""
        kept = self.without(newcomers.experts)
        together = {name: stacked(getattr(kept, name), getattr(newcomers, name)) for name in _BY_EXPERT}
        details = {name: np.concatenate([kept.details[name], newcomers.details[name]]) for name in self.details}
        return self.replace(**together, details=details, left=kept.left)

    def check_names(self, names):
        """Refuse names that are not on the roster."""
        known = set(self.experts)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"experts {unknown} are not on the roster; it holds {list(self.experts)}.")

    def _rows(self, stay):
        rows = {name: getattr(self, name)[stay] for name in _BY_EXPERT}
        return self.replace(**rows, details={name: values[stay] for name, values in self.details.items()})


def new_roster(votes, y_codes, weight):
    """`Roster` of the annotators of votes on items of known truth and some weight, who belong nowhere yet."""
    experts = votes.annotators
    likely = np.full((len(experts), len(votes.classes)), np.nan)
    empty = Roster(experts, np.empty((len(experts), 0)), None, None, None, details={}, likely=likely)
    return empty.recounted(votes, np.eye(len(votes.classes))[y_codes] * weight[:, None])


def plain_selection(omega):
    """Selection weights (n_targets, n_experts) by memberships (n_experts, n_targets) alone; rows sum to 1.

    A target without members has a row of zeros.
    """
    return normalised_rows(omega.T)


def live_shares(shares, selection):
    """Shares, the classifier last, with 0 for targets without members, scaled to a sum of 1."""
    shares = shares * np.append(selection.sum(1) > 0, True)
    return shares / shares.sum() if shares.sum() > 0 else np.eye(len(shares))[-1]


def served_shares(shares, selection):
    """Share (n_experts,) of the items that each expert serves, from the shares of targets and classifier."""
    return live_shares(shares, selection)[:-1] @ selection


def insert_zeros(values, n):
    """Insert zeros for n new targets before the entry of the classifier."""
    return np.insert(values, len(values) - 1, np.zeros(n))
