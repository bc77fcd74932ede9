"""The roster of a team: experts, memberships and correctness; tables of routes and answers."""

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from .._encoding import unique_names
from .._numerics._answer_model import AnswerModel, fit_counts, with_experts
from .._numerics._answer_worth import all_answers
from .._numerics._answers import prior_strengths
from .._numerics._matrices import narrowed, normalised_rows, stacked
from .._rows import has_index
from .._votes import flat_index
from ..annotations import from_long
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
    prior : tuple
        Center and strengths of the competence of everybody, as in `competence_posterior`.
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
    prior: tuple
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
        """The roster by these answers to items with a distribution (n, C) of the truth, and their prior."""
        counts = count_votes(votes, truth)
        return self.replace(**counts, prior=prior_strengths(counts["right"], counts["seen"]))

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
    empty = Roster(experts, np.empty((len(experts), 0)), None, None, None, None, details={}, likely=likely)
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


def index_of(X):
    """Names of the items, None if they have none."""
    return X.index if has_index(X) else None


def route_table(targets, experts, deferral, assignment, index):
    """Who decides each item, as a table with the columns ``target`` and ``expert``."""
    import pandas as pd

    columns = np.append(targets, "classifier")[deferral], np.append(experts, "classifier")[assignment]
    # one array becomes a table in half the time that two take, which counts where items come one by one
    return pd.DataFrame(np.column_stack(columns), index=index, columns=["target", "expert"])


def reasons_of(targets, names, target, who, passed_on, right, sure, others):
    """Why items go where they go, in words.

    Parameters
    ----------
    targets : sequence
        Names.
    names : sequence of n entries
        Name of the expert who is asked about each item, as it decides.
    target, who : ndarrays of int of shape (n,)
        Target of each item, and expert who is asked; -1 for the classifier.
    passed_on : ndarray of bool of shape (n,)
        Whether nobody of the target could be asked.
    right, sure : ndarrays of shape (n,)
        Expected correctness of this expert, and of the classifier.
    others : ndarray of shape (n, n_targets)
        Expected correctness of the targets.

    Returns
    -------
    reasons : list of str
    """
    best = others.argmax(1) if len(targets) else np.full(len(who), -1)
    reasons = []
    for i, person in enumerate(who):
        lead = f"{targets[target[i]]} is not free; " if passed_on[i] else ""
        if person >= 0:
            first, second = (names[i], right[i]), ("the classifier", sure[i])
        else:
            first, second = ("the classifier", sure[i]), None
            if not passed_on[i] and best[i] >= 0 and np.isfinite(others[i, best[i]]):
                second = targets[best[i]], others[i, best[i]]
        reason = f"{lead}{first[0]} is expected to be right about {first[1]:.0%} of such items"
        if second is not None:
            reason += f", {second[0]} about {second[1]:.0%}"
            if second[1] > first[1]:
                reason += "; requested shares, costs and what was learnt from the answers count, too"
        reasons.append(reason)
    return reasons


def explanation_table(names, chosen, labels, scored, correctness, index):
    """Explanation of the decisions as a table, with the columns `scored`; `names` are the targets and "classifier"."""
    import pandas as pd

    return pd.DataFrame(
        {"chosen": np.array(names, dtype=object)[chosen], "prediction": labels}
        | scored
        | {f"expected correctness of {n}": c for n, c in zip(names, correctness.T, strict=True)},
        index=index,
    )


def answer_table(answers, tasks, experts):
    """Annotations of these items by these experts, from a long table of answers."""
    index = tasks if hasattr(tasks, "get_indexer") else flat_index(unique_names(tasks, "tasks"))
    tasks = unique_names(index, "tasks")
    try:
        wide = from_long(answers)
    except ValueError as error:
        raise ValueError(f"answers cannot be used: {error} (from_long has these options.)") from error
    for name, given, known in (("tasks", wide.index, tasks), ("experts", wide.columns, experts)):
        unknown = sorted(set(given) - set(known), key=str)
        if unknown:
            raise ValueError(f"answers holds unknown {name} {unknown}; drop these rows or correct them.")
    return wide.reindex(index=flat_index(tasks), columns=flat_index(experts)).set_axis(index)
