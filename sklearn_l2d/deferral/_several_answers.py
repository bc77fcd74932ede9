"""Base of the deferrers that may ask several people about an item, and label it by everybody together."""

from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._by_name import check_capacity
from .._sklearn import check_weights
from .._validation import check_answers
from ._base import BaseDeferrer
from ._overflow import check_overflow


class Replay(NamedTuple):
    """What becomes of items when people are asked one after the other, and their answers are on record.

    Attributes
    ----------
    asked : ndarray of int of shape (n_samples, longest)
        Positions in `experts_` of those who are asked, in this order; -1 after the last.
    labels : ndarray of shape (n_samples,)
        Final labels.
    proba : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes in the end.
    n_answers : ndarray of int of shape (n_samples,)
        Number of answers.
    """

    asked: np.ndarray
    labels: np.ndarray
    proba: np.ndarray
    n_answers: np.ndarray


class SeveralAnswersDeferrer(BaseDeferrer):
    """Base of the deferrers that may ask several people about an item, and label it by everybody together.

    A subclass says in `_choose_experts` whom to ask first, in `_ask_recorded` what becomes of items whose answers are
    on record, and may say in `_fused` how the classifier and answers are joined. It sets `answers_` beside the
    shares. Each expert belongs to one target.
    """

    def replay(self, X, annotations):
        """Ask people whose answers are on record.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts)
            Annotations of the experts, one column per expert, with missing entries: only those who annotated an item
            can be asked about it. The rows and columns of a
            DataFrame are matched by name.

        Returns
        -------
        replay : Replay
            Named tuple with ``asked`` (n_samples, longest), positions in `experts_` in the order in which they were
            asked, -1 after the last; ``labels`` (n_samples,); ``proba`` (n_samples, n_classes); and ``n_answers``
            (n_samples,).

        Raises
        ------
        ValueError
            If annotations are missing or do not fit the experts.
        """
        return self._replay(X, annotations, "replay")

    def _replay(self, X, annotations, method):
        check_is_fitted(self)
        items = self._check_items(X)
        if self.n_experts_ == 0:
            proba, asked = self._classifier_proba(items), np.empty((len(items), 0), dtype=int)
        else:
            asked, proba = self._ask_recorded(items, check_answers(annotations, items.given, self, method))
        return Replay(asked, self._decided(proba), proba, (asked >= 0).sum(1))

    def _ask_recorded(self, items, votes):
        """Who is asked (n, longest), -1 after the last, if only those can be who answered; probabilities (n, C)."""
        raise NotImplementedError

    def predict_team_proba(self, X, annotations=None, decision="combine"):
        """Predict class probabilities by the classifier and all answers so far.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts so far, one column per expert, with missing entries. The rows and columns of
            a DataFrame are matched by name. None: nobody has answered.
        decision : {"combine", "crowdlab"}, default="combine"
            As in `ConfidenceDeferral.predict_team_proba`.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`. Where nobody answered, they are the calibrated probabilities of
            the classifier.

        Raises
        ------
        ValueError
            If `decision` is unknown, or annotations do not fit the experts.
        """
        if annotations is None and decision == "combine":
            check_is_fitted(self)
            return self._classifier_proba(self._check_items(X))
        return super().predict_team_proba(X, annotations, decision)

    def predict_team(self, X, annotations=None, decision="combine"):
        """Predict labels by the classifier and all answers together.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts so far, one column per expert, with missing entries. The rows and columns of
            a DataFrame are matched by name. None: nobody has answered.
        decision : {"combine", "crowdlab", "draw", "vote"}, default="combine"
            "combine" and "crowdlab" take the most probable label of `predict_team_proba`, or that of the least expected
            cost if there is an `error_cost`. "draw" and "vote" take the answer of one expert, as other deferrers do:
            "draw" of whoever is worth most among those who answered, "vote" of the one who is asked first.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.

        Raises
        ------
        ValueError
            If `decision` is unknown, or annotations do not fit the experts.
        """
        return super().predict_team(X, annotations, decision)

    def score(self, X, y, annotations=None, sample_weight=None):
        """Accuracy when those are asked whose answers are on record, and the label is by all that is then known.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples,)
            True labels; an `AnnotatedTarget` also brings the annotations. Items of unknown truth, as in `fit`, are left
            out.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the items.

        Returns
        -------
        score : float
            Weighted share of the items that are labelled correctly.

        Raises
        ------
        ValueError
            If the deferrer was fitted with experts and `annotations` is None, if no truth is known, if lengths
            differ, if a weight is negative, or if no weight is positive.
        """
        check_is_fitted(self)
        if self.n_experts_ == 0:
            return super().score(X, y, annotations, sample_weight)
        X, y, annotations, sample_weight = self._of_known_truth(X, y, annotations, sample_weight)
        labels = self._replay(X, annotations, "score").labels
        right = labels == y
        return float(np.average(right, weights=check_weights(sample_weight, right)))

    def _assign(self, X, available, capacity, on_overflow, tell=True):
        check_overflow(on_overflow)
        assignment = self._first_asked(X, available, capacity)
        lost = int(((self.predict_deferral(X) >= 0) & (assignment < 0)).sum()) if on_overflow == "raise" else 0
        if lost:
            raise ValueError(
                f"{lost} of {len(assignment)} items found nobody free who is worth asking; raise `capacity` or make "
                "more experts `available`."
            )
        return self._target_of(assignment), assignment

    def _first_asked(self, X, available, capacity):
        """Whom to ask first about items, -1 for nobody."""
        check_is_fitted(self)
        items = self._check_items(X)
        available, capacity = self._check_available(available, items), check_capacity(capacity, self.experts_)
        return self._choose_experts(items, np.full(len(items), -1), available, capacity)

    def _pass_on(self, items, deferral, assignment, available, capacity):
        return assignment  # `_choose_experts` compares everybody who is free

    def _explain_scores(self, names, scores):
        worth = {f"worth of {name}": values for name, values in zip(names[:-1], scores.T, strict=False)}
        return worth | {"least worth": scores[:, -1]}

    def _first_shares(self, questions, threshold):
        """Share (n_targets + 1,) of the items about which each target is asked first, and last of the others."""
        asked = questions.level >= threshold
        items, first = np.unique(questions.item[asked], return_index=True)
        counts = np.bincount(self._target_of(questions.expert[asked][first]), minlength=len(self.targets_))
        return np.append(counts, questions.n_items - len(items)) / questions.n_items

    def _report_nobody(self):
        """Report that there is nobody to ask."""
        self._report_shares(np.append(np.zeros(len(self.targets_)), 1.0))
        self.workload_, self.answers_ = np.zeros(0), 0.0

    def _target_of(self, experts):
        """Target of each of some experts, -1 for -1."""
        return np.append(self._roster.omega.nonzero()[1], -1)[experts]


def rows_by_weight(weight):
    """Positions (n,) of n rows, each as often as its weight says up to one, and each once if all weights are equal."""
    places = (np.arange(len(weight)) + 0.5) / len(weight) * weight.sum()
    return np.searchsorted(np.cumsum(weight), places)
