"""Which label a team gives an item: by the classifier, by an expert, or by all answers together."""

from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._numerics._crowdlab import crowdlab_proba
from .._numerics._matrices import answer_weights, entries
from .._sklearn import check_weights
from .._validation import check_answers, of_known_truth
from ..metrics import team_accuracy
from ._answer_model import fused_proba
from ._classifier import own_labels
from ._deciding import DecidingDeferrer

_FUSIONS = "combine", "crowdlab"  # decisions by the classifier and all answers together


def vote_of_targets(selection, deferral, votes):
    """Vote of the members who answered an item, weighted by how often its target selects them.

    Parameters
    ----------
    selection : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members.
    deferral : ndarray of int of shape (n,)
        Targets of the items, -1 for the classifier.
    votes : Votes
        Answers of the experts to the items.

    Returns
    -------
    rows : ndarray of int of shape (n_decided,)
        Items that a member of their target answered.
    labels : ndarray of int of shape (n_decided,)
        Their labels, by position in the classes.
    """
    weight = answer_weights(selection, deferral, votes)
    n_classes = len(votes.classes)
    cells = votes.item * np.int64(n_classes) + votes.label
    ballots = np.bincount(cells, weight, minlength=len(votes) * n_classes).reshape(-1, n_classes)
    decided = np.flatnonzero(ballots.sum(1) > 0)
    return decided, ballots[decided].argmax(1)


class LabellingDeferrer(DecidingDeferrer):
    """Second layer of `BaseDeferrer`: which label the team gives an item, from the answers to it."""

    __metadata_request__score: ClassVar = {"annotations": True}

    def predict_team(self, X, annotations=None, decision="draw"):
        """Predict labels by the team.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        decision : {"draw", "vote", "combine", "crowdlab"}, default="draw"
            "draw" takes the annotation of the expert to whom `assign_experts` gives the item if only those who
            annotated it are available: somebody else than a member of the target if no member did, and the classifier
            if nobody promises a gain. "vote" takes the vote of all members of the target who annotated it, weighted by
            `selection_`, and the label of the classifier if no member did. "combine" and "crowdlab" take the most
            probable label of
            `predict_team_proba`, or that of the least expected cost if there is an `error_cost`: the classifier and all
            answers to an item together, whoever its target is.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels by the expert or the classifier that decides the item.

        Raises
        ------
        ValueError
            If `decision` is unknown, or annotations are missing or do not fit the experts.
        """
        if decision in _FUSIONS:
            return self._decided(self.predict_team_proba(X, annotations, decision))
        if decision not in ("draw", "vote"):
            raise ValueError(f"decision={decision!r} is none of 'draw', 'vote', 'combine' and 'crowdlab'.")
        items, deferral, labels = self._decide(X)
        if self.n_experts_ == 0:
            return labels
        votes = self._as_taken(items, deferral, check_answers(annotations, items.given, self, "predict_team"))
        if decision == "draw":
            given = votes.to_sparse()
            who = self._pass_on(items, deferral, self._choose_experts(items, deferral, given, None), given, None)
            rows = np.flatnonzero(who >= 0)
            answers = entries(given, rows, who[rows]) - 1
        else:
            rows, answers = vote_of_targets(self._selection, deferral, votes)
        labels = labels.astype(np.result_type(labels, self.classes_), copy=True)
        labels[rows] = self.classes_[answers]
        return labels

    def predict_team_proba(self, X, annotations=None, decision="combine"):
        """Predict class probabilities by the classifier and all answers together.

        By default, every answer counts by how its author answers items of each true class, learnt in `fit` by empirical
        Bayes (Dawid and Skene, 1979). With T answers, ``ln p(y | x, answers)`` is, up to a constant,
        ``(a ln p(y | x) + b ln p(answers | y)) / (1 + r (T - 1))``. People err alike: r is the correlation of the
        answers to an item, and in ``p(answers | y)`` a difficulty of the item, by which everybody is right less often,
        is integrated out; where people contradict one another, the item is probably hard. All of it is learnt from the
        rows of `fit`, where each answer is judged by the others: first the deviation of difficulties, by how often
        people are right about the same items; then the exponents a and b and r, by the truth, where those who are asked
        first come first. Few rows hardly move the deviation away from one logit, or r from what goes with it: nothing
        where items are equally difficult or there are two classes, up to the correlation of being right elsewhere.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        decision : {"combine", "crowdlab"}, default="combine"
            "crowdlab" takes the weighted average of CROWDLAB (Goh, Tkachenko and Mueller, 2022) instead: everybody, the
            classifier too, weighs by how much less they err on the rows of `fit` than the most frequent class would. It
            is simpler, and less sure than it could be.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`. Where nobody answered, they are the calibrated probabilities of
            the classifier.

        Raises
        ------
        ValueError
            If `decision` is unknown, or annotations are missing or do not fit the experts.
        """
        check_is_fitted(self)
        if decision not in _FUSIONS:
            raise ValueError(f"decision={decision!r} is neither 'combine' nor 'crowdlab', which have probabilities.")
        items = self._check_items(X)
        proba = self._classifier_proba(items)
        if self.n_experts_ == 0:
            return proba
        votes = check_answers(annotations, items.given, self, "predict_team_proba")
        if decision == "crowdlab":
            right, seen = self._roster.right.sum(1), self._roster.seen.sum(1)
            return crowdlab_proba(self._crowdlab, right, seen, votes.item, votes.annotator, votes.label, proba)
        return self._fused(items, proba, votes)

    def score(self, X, y, annotations=None, sample_weight=None):
        """Expected accuracy of the team over the draw of a member of the target (L2D-Clusters 5.2).

        The selection weights are renormalised over the members who annotated an item; if no member did, the classifier
        decides. Without experts, the score is the accuracy of the classifier.

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
            Expected weighted share of the items that are decided correctly.

        Raises
        ------
        ValueError
            If the deferrer was fitted with experts and `annotations` is None, if no truth is known, if lengths differ,
            if a weight is negative, or if no weight is positive.
        """
        X, y, annotations, sample_weight = self._of_known_truth(X, y, annotations, sample_weight)
        items, deferral, labels = self._decide(X)
        if self.n_experts_ == 0:
            return float(np.average(labels == y, weights=check_weights(sample_weight, labels)))
        votes = check_answers(annotations, items.given, self, "score", unknown="wrong")
        votes = self._as_taken(items, deferral, votes)
        return team_accuracy(y, deferral, labels, votes, self._selection, sample_weight)

    # Hooks of a subclass.

    def _answer_shape(self, items, votes):
        """Probabilities (n_answers, C) of what people answer at the items of votes, or None if that is unknown."""
        return None

    def _counted_as(self, votes):
        """`AnswerModel` by which answers are joined, and the votes as by those whom it knows: mostly the experts."""
        return self._roster.answer_model, votes

    def _fused(self, items, proba, votes):
        """Probabilities (n, C) of the truth by those of the classifier and all votes on the items."""

        def shape_of(rows, some):
            return self._answer_shape(items[rows], some)

        model, votes = self._counted_as(votes)
        return fused_proba(model, self._exponents, np.log(proba), votes, shape_of)

    def _as_taken(self, items, deferral, votes):
        """Answers to items as their targets, by codes (n,), take them: each with the label that it leads to."""
        return votes

    def _decision_cost(self):
        """Cost (C, C) of deciding for the class of the column where that of the row is true; None if errors cost 1."""
        return None

    # Labels.

    def _decide(self, X):
        """Checked items, their target codes, and their labels by the classifier."""
        check_is_fitted(self)
        items = self._check_items(X)
        return items, self._duel(items).chosen, own_labels(self.classifier_, items.given)

    def _decided(self, proba):
        """Labels by probabilities (n, C) of the truth: the most probable ones, or those of the least expected cost."""
        cost = self._decision_cost()
        return self.classes_[proba.argmax(1) if cost is None else (proba @ cost).argmin(1)]

    def _of_known_truth(self, X, y, annotations, sample_weight):
        """The matched arguments of `score`, without the items of unknown truth, of which a split may hold some."""
        check_is_fitted(self)
        return of_known_truth(X, y, annotations, sample_weight, self.unlabeled_label)
