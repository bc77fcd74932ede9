"""The contract of all deferrers: who decides, who is asked, and how good the team is."""

import copy
import warnings
from typing import ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from .._encoding import check_row_count, is_frame
from .._numerics._answers import temper
from .._numerics._assignment import assign_members
from .._sklearn import check_weights
from ..annotations import encode_annotations, split_target
from ..metrics import team_accuracy
from ._classifier import expand


class BaseDeferrer(ClassifierMixin, BaseEstimator):
    """Base of the deferrers; a subclass fits and gives `_scores`.

    A fitted deferrer has `classes_`, `classifier_`, `temperature_`, `experts_`, `targets_`, `omega_`, the memberships
    (n_experts, n_targets), and `selection_`, the weights (n_targets, n_experts) with which a target picks its members.
    """

    __metadata_request__fit: ClassVar = {"annotations": True, "X_unlabeled": True}
    __metadata_request__partial_fit: ClassVar = {"annotations": True}
    __metadata_request__score: ClassVar = {"annotations": True}

    def predict(self, X):
        """Labels by the classifier alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels among those the classifier knows.
        """
        check_is_fitted(self)
        return self.classifier_.predict(self._classifier_input(X))

    def predict_proba(self, X):
        """Probabilities by the classifier alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        proba = self.classifier_.predict_proba(self._classifier_input(X))
        if np.array_equal(self.classifier_.classes_, self.classes_):
            return proba
        return expand(proba, self.classifier_.classes_, self.classes_)

    def predict_deferral(self, X):
        """Who decides each item.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        deferral : ndarray of int of shape (n_samples,)
            -1 where the classifier decides, k where the item is deferred to target k.
        """
        check_is_fitted(self)
        return self._chosen(self._target_scores(self._check_items(X)))

    def predict_deferral_proba(self, X):
        """How strongly each decision maker is preferred; the largest entry is the one that is chosen.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_targets + 1)
            Rows sum to 1; the last column is the classifier.
        """
        check_is_fitted(self)
        return preferences(self._target_scores(self._check_items(X)))

    def decision_function(self, X):
        """Scores of the decision makers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_targets + 1)
            The largest one decides; the last column is the classifier.
        """
        check_is_fitted(self)
        return self._target_scores(self._check_items(X))

    def assign_experts(self, X, available=None, capacity=None, on_overflow="classifier"):
        """Whom to ask: one expert of the chosen target per item.

        Within a target, experts are drawn in proportion to `selection_`; the draws depend on `random_state` only.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        available : array-like of bool of shape (n_experts,) or (n_samples, n_experts), default=None
            Who is in, for all items or item by item; everybody by default.
        capacity : array-like of int of shape (n_experts,), int, or mapping by name, default=None
            Largest number of items per expert; unlimited by default.
        on_overflow : {"classifier", "raise"}, default="classifier"
            What happens to deferred items that nobody of their target can take: the classifier decides them, with a
            warning that says how many, or a ValueError is raised.

        Returns
        -------
        assignment : ndarray of int of shape (n_samples,)
            Position in `experts_`, -1 for the classifier.

        Raises
        ------
        ValueError
            If `available` or `capacity` does not fit the experts, or on overflow if so requested.
        """
        return self._assign(X, available, capacity, on_overflow)[1]

    def _assign(self, X, available, capacity, on_overflow):
        """Target codes and experts of items; arguments as in `assign_experts`."""
        if on_overflow not in ("classifier", "raise"):
            raise ValueError(f"on_overflow={on_overflow!r} is neither 'classifier' nor 'raise'.")
        deferral = self.predict_deferral(X)
        assignment = self._draw(
            deferral, self._check_available(available, len(deferral)), self._check_capacity(capacity)
        )
        overflow = int(((deferral >= 0) & (assignment < 0)).sum())
        if overflow:
            message = (
                f"{overflow} of {int((deferral >= 0).sum())} deferred items found nobody of their target available "
                "within capacity"
            )
            if on_overflow == "raise":
                raise ValueError(message + "; raise `capacity` or make more experts `available`.")
            warnings.warn(message + "; the classifier decides them.", stacklevel=3)
        return deferral, assignment

    def predict_team(self, X, annotations=None, decision="draw"):
        """Final labels of the team.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            What the experts answered; entries that are not needed may be missing. The columns of a DataFrame are
            matched by name.
        decision : {"draw", "vote"}, default="draw"
            "draw" takes the answer of the expert drawn by `assign_experts` among the members who answered; "vote"
            the vote of all members who answered, weighted by `selection_`. Where nobody of the target answered, the
            classifier decides.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels by whoever decides each item.
        """
        if decision not in ("draw", "vote"):
            raise ValueError(f"decision={decision!r} is neither 'draw' nor 'vote'.")
        deferral, labels = self.predict_deferral(X), self.predict(X)
        if len(self.experts_) == 0:
            return labels
        codes = self._check_answers(annotations, len(labels), "predict_team")
        if decision == "draw":
            who = self._draw(deferral, codes >= 0, None)
            rows = np.flatnonzero(who >= 0)
            answers = codes[rows, who[rows]]
        else:
            rows, answers = self._vote(deferral, codes)
        labels = labels.astype(np.result_type(labels, self.classes_), copy=True)
        labels[rows] = self.classes_[answers]
        return labels

    def score(self, X, y, annotations=None, sample_weight=None):
        """Accuracy of the team, expected over who of the chosen target answers (L2D-Clusters 5.2).

        Selection weights are renormalised over the members who answered an item; where none did, the classifier
        decides. Without experts it is the accuracy of the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples,)
            True labels; an `AnnotatedTarget` brings its annotations along.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            What the experts answered, with missing entries.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.

        Returns
        -------
        score : float
            Expected share of the items, by weight, that are decided correctly.

        Raises
        ------
        ValueError
            If the deferrer was fitted with experts and no annotations come, if lengths differ, or if a weight is
            negative or none is positive.
        """
        check_is_fitted(self)
        y, annotations = split_target(y, annotations)
        labels = self.predict(X)
        y = column_or_1d(y)
        check_consistent_length(labels, y, sample_weight)
        if len(self.experts_) == 0:
            return float(np.average(labels == y, weights=check_weights(sample_weight, labels)))
        codes = self._check_answers(annotations, len(labels), "score")
        known = np.isin(y, self.classes_)
        truth = np.where(known, np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1), -2)
        return team_accuracy(
            truth,
            self.predict_deferral(X),
            np.searchsorted(self.classes_, labels),
            codes,
            self.selection_,
            sample_weight,
            missing_label=-1,
        )

    def __sklearn_is_fitted__(self):
        return hasattr(self, "classifier_")

    @property
    def n_experts_(self):
        """Number of experts."""
        return len(self.experts_)

    def _scores(self, X):
        """Scores (n, n_targets + 1) of checked items, the classifier last, for at least one target."""
        raise NotImplementedError

    def _target_scores(self, X):
        """Scores (n, n_targets + 1) of checked items, the classifier last; the largest one decides."""
        if len(self.targets_) == 0:
            return np.zeros((len(X), 1))
        return self._masked(self._scores(X))

    def _masked(self, scores):
        """Scores, changed in place, with nothing for whoever has left."""
        scores[:, :-1][:, self.selection_.sum(1) <= 0] = -np.inf  # a target that has lost everybody
        scores[np.isneginf(scores).all(1), -1] = 0.0  # whoever was to decide has left
        return scores

    def _chosen(self, scores):
        """Target codes of the largest scores, -1 for the classifier."""
        chosen = scores.argmax(1)
        return np.where(chosen == len(self.targets_), -1, chosen)

    def _check_array(self, X):
        """Checked items as an array in the floating type of the estimator."""
        nd = getattr(self, "module", None) is not None
        return validate_data(self, X, reset=False, dtype=getattr(self, "dtype", "float64"), allow_nd=nd)

    def _check_items(self, X):
        """Checked items in the form that `_scores` takes."""
        return self._check_array(X)

    def _check_unlabeled(self, X_unlabeled):
        """Checked unlabelled items; what is wrong with them is not said of `X`."""
        try:
            return self._check_items(X_unlabeled)
        except (TypeError, ValueError) as error:
            raise type(error)(f"X_unlabeled cannot be used: {error}") from error

    def _classifier_input(self, X):
        """Checked items as they came: a DataFrame, so that columns may be picked by name, and in full precision."""
        self._check_array(X)
        return X if is_frame(X) else np.asarray(X)

    def _classifier_proba(self, X):
        """Temperature-scaled probabilities (n, C) of the classifier."""
        proba = self.classifier_.predict_proba(self._classifier_input(X))
        proba = expand(proba, self.classifier_.classes_, self.classes_)
        return np.exp(temper(np.log(proba), self.temperature_))

    def _draw(self, deferral, available, capacity):
        return assign_members(deferral, self.selection_, available, capacity, rng=np.random.default_rng(self._seed))

    def _vote(self, deferral, codes):
        """Rows that a target decides and its weighted vote."""
        rows = np.flatnonzero(deferral >= 0)
        item, who = np.nonzero(codes[rows] >= 0)
        votes = np.zeros((len(rows), len(self.classes_)))
        np.add.at(votes, (item, codes[rows][item, who]), self.selection_[deferral[rows]][item, who])
        decided = votes.sum(1) > 0
        return rows[decided], votes[decided].argmax(1)

    def _check_answers(self, annotations, n_rows, method):
        """Encoded answers (n, n_experts) in the order of `experts_`."""
        if annotations is None:
            raise ValueError(
                f"fitted with {len(self.experts_)} experts, but {method} received no annotations. Call "
                "sklearn.set_config(enable_metadata_routing=True) so that they reach it through a search or a "
                "pipeline, or pass y=AnnotatedTarget(y, annotations)."
            )
        codes, _, names = encode_annotations(annotations, classes=self.classes_, missing_label=self.missing_label)
        check_row_count(codes, n_rows, "annotations")
        unknown = [name for name in names if name not in set(self.experts_)]
        if is_frame(annotations) and not (unknown and list(names) == list(range(len(names)))):
            if unknown:
                raise ValueError(
                    f"annotations has columns of unknown experts {unknown}; onboard() them first, or drop the columns."
                )
            place = {name: column for column, name in enumerate(self.experts_)}
            aligned = np.full((n_rows, len(self.experts_)), -1, dtype=codes.dtype)
            aligned[:, [place[name] for name in names]] = codes
            return aligned
        if codes.shape[1] != len(self.experts_):
            raise ValueError(
                f"annotations has {codes.shape[1]} columns, but there are {len(self.experts_)} experts; give one "
                "column per expert in the order of experts_, or a DataFrame with their names."
            )
        return codes

    def _check_available(self, available, n_rows):
        if available is None:
            return None
        available = np.asarray(available)
        shapes = [(len(self.experts_),), (n_rows, len(self.experts_))]
        if available.dtype != bool or available.shape not in shapes:
            raise ValueError(
                f"available has shape {available.shape} and type {available.dtype}; pass booleans of shape {shapes[0]} "
                f"or {shapes[1]}."
            )
        return available

    def _check_capacity(self, capacity):
        if capacity is None:
            return None
        if hasattr(capacity, "items"):
            unknown = [name for name in capacity if name not in set(self.experts_)]
            if unknown:
                raise ValueError(f"capacity names unknown experts {unknown}; the experts are {list(self.experts_)}.")
            unlimited = np.iinfo(np.int64).max // 2
            capacity = [capacity.get(name, unlimited) for name in self.experts_]
        values = np.asarray(capacity)
        if values.ndim == 0:
            values = np.full(len(self.experts_), values)
        if values.shape != (len(self.experts_),) or values.dtype.kind not in "iu" or (values < 0).any():
            raise ValueError(
                f"capacity={capacity!r} is not a non-negative whole number for each of {len(self.experts_)} experts."
            )
        return values

    def _copy_with(self, **fitted):
        """Copy that shares everything but the given fitted attributes."""
        other = copy.copy(self)
        vars(other).update(fitted)
        return other


def preferences(scores):
    """Scores as probabilities; an infinite one is certain."""
    certain = np.isposinf(scores)
    return softmax(np.where(certain.any(1, keepdims=True), np.where(certain, 0.0, -np.inf), scores), axis=1)
