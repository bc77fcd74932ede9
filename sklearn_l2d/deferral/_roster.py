"""Experts who come and go, the tables of a shift, and why an item went where it went."""

import warnings

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._encoding import is_frame
from .._numerics._profiles import shrunken_correctness, tally_answers
from ..annotations import encode_annotations, from_long
from ._base import preferences
from ._behaviours import behaviour_proba, expert_membership
from ._bounds import live_shares, select_members, share_bounds


class RosterMixin:
    """Roster of a deferrer whose targets are groups of experts; the gate is never retrained."""

    def onboard(self, experts, X, annotations, y=None):
        """Take experts into the groups they are most like.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names; an expert who is known already is placed anew.
        X : array-like of shape (n_samples, n_features)
            Items that they labelled.
        annotations : array-like or DataFrame of shape (n_samples, len(experts))
            Their answers, with missing entries.
        y : array-like of shape (n_samples,), default=None
            True labels. Where they are unknown, the consensus of the behaviours takes their place.

        Returns
        -------
        self : ClusterDeferral
            The deferrer with a larger roster.

        Raises
        ------
        ValueError
            If the deferrer has no groups, or the shapes or labels do not go together.
        """
        check_is_fitted(self)
        if len(self.targets_) == 0:
            raise ValueError("fitted without experts: there are no groups to join; call fit with annotations.")
        if self.clusterer_ is None:
            raise ValueError("fitted with a ready omega, which says nothing about newcomers; give a clusterer instead.")
        names = np.empty(1, dtype=object) if np.isscalar(experts) else np.empty(len(experts), dtype=object)
        names[:] = [experts] if np.isscalar(experts) else list(experts)
        items = self._check_items(X)
        if is_frame(annotations) and set(annotations.columns) == set(names):
            annotations = annotations[list(names)]
        codes, _, _ = encode_annotations(annotations, classes=self.classes_, missing_label=self.missing_label)
        if codes.shape != (len(items), len(names)):
            raise ValueError(
                f"annotations has shape {codes.shape}; pass one row for each of the {len(items)} items of X and one "
                f"column for each of the {len(names)} experts."
            )
        if len(set(names)) < len(names):
            raise ValueError(f"experts={list(names)} holds a name twice; name each newcomer once.")
        right, seen = tally_answers(codes, self._truth(X, y))
        membership = expert_membership(self.clusterer_, X, codes, self.classes_)
        newcomers = names, self.grouping_.assign(right, seen, membership), membership, right, seen
        kept = self._roster_without(names)
        self._set_roster(*(np.concatenate(parts) for parts in zip(kept, newcomers, strict=True)))
        return self

    def offboard(self, experts):
        """Take experts off the roster.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names.

        Returns
        -------
        self : ClusterDeferral
            A group that has lost everybody is not deferred to until somebody joins it.

        Raises
        ------
        ValueError
            If a name is unknown.
        """
        check_is_fitted(self)
        names = [experts] if np.isscalar(experts) else list(experts)
        unknown = [name for name in names if name not in set(self.experts_)]
        if unknown:
            raise ValueError(f"experts {unknown} are not on the roster; it holds {list(self.experts_)}.")
        self._set_roster(*self._roster_without(names))
        return self

    def route(self, X, available=None, capacity=None, on_overflow="classifier"):
        """Route of a shift as a table.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Items; the index of a DataFrame names them.
        available, capacity, on_overflow
            As in `assign_experts`.

        Returns
        -------
        route : DataFrame
            One row per item with ``target`` and ``expert``, both "classifier" where it decides. The answers of the
            shift, a long table of task, annotator and label, come back through `answers_to_annotations`.
        """
        import pandas as pd

        deferral, assignment = self._assign(X, available, capacity, on_overflow)
        return pd.DataFrame(
            {
                "target": np.append(self.targets_, "classifier")[deferral],
                "expert": np.append(self.experts_, "classifier")[assignment],
            },
            index=getattr(X, "index", None),
        )

    def answers_to_annotations(self, answers, tasks):
        """Answers of a shift as annotations that `predict_team` and `score` take.

        Parameters
        ----------
        answers : DataFrame
            Long table with the columns task, annotator and label.
        tasks : sequence
            Names of the items in the order of `X`: the index of the route.

        Returns
        -------
        annotations : DataFrame of shape (n_samples, n_experts)
            Columns `experts_`, missing where somebody was not asked.

        Raises
        ------
        ValueError
            If an answer comes from somebody who is not on the roster, or is about another item.
        """
        wide = from_long(answers)
        for name, given, known in (("tasks", wide.index, tasks), ("experts", wide.columns, self.experts_)):
            unknown = sorted(set(given) - set(known), key=str)
            if unknown:
                raise ValueError(f"answers holds unknown {name} {unknown}; drop these rows or correct them.")
        return wide.reindex(index=tasks, columns=list(self.experts_))

    def explain_deferral(self, X):
        """Who was chosen for each item, and why.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Items.

        Returns
        -------
        explanation : DataFrame
            One row per item: ``chosen``; for every target and the classifier ``preference of ...`` (gate
            probability) and ``expected correctness of ...``; the classifier's label ``prediction``. The correctness
            of a target is what its members showed per class, weighted by the classifier's probabilities.
        """
        import pandas as pd

        check_is_fitted(self)
        scores, proba = self._target_scores(self._check_items(X)), self._classifier_proba(X)
        names = [*self.targets_, "classifier"]
        correctness = np.column_stack([proba @ (self.selection_ @ self._correctness()).T, proba.max(1)])
        return pd.DataFrame(
            {"chosen": np.array(names, dtype=object)[self._chosen(scores)], "prediction": self.predict(X)}
            | {f"preference of {n}": p for n, p in zip(names, preferences(scores).T, strict=True)}
            | {f"expected correctness of {n}": c for n, c in zip(names, correctness.T, strict=True)},
            index=getattr(X, "index", None),
        )

    def _correctness(self):
        """Shrunken correctness (n_experts, n_classes) of everybody on the roster."""
        return shrunken_correctness(self._right, self._seen, *self._strengths)

    def _truth(self, X, y):
        """Distribution (n, C) of the true class: known, or the consensus of the behaviours, or of the classifier."""
        if y is not None:
            y = column_or_1d(y)
            check_consistent_length(X, y)
            if not np.isin(y, self.classes_).all():
                raise ValueError(f"y holds labels that are not among classes_ {self.classes_.tolist()}.")
            return np.eye(len(self.classes_))[np.searchsorted(self.classes_, y)]
        if self.clusterer_ is None:
            return self._classifier_proba(X)
        consensus = np.einsum(
            "nkc,k->nc", behaviour_proba(self.clusterer_, X, self.classes_), self.clusterer_.cluster_weights_
        )
        return np.eye(len(self.classes_))[consensus.argmax(1)]

    def _roster_without(self, names):
        """Everything that has one row per expert, without the rows of some."""
        stay = np.array([name not in set(names) for name in self.experts_], dtype=bool)
        return [part[stay] for part in (self.experts_, self.omega_, self._membership, self._right, self._seen)]

    def _set_roster(self, experts, omega, membership, right, seen):
        """Change the roster at once, with the selection weights that keep the experts' bounds."""
        selection = self._select(experts, omega)
        self.experts_, self.omega_, self._membership, self._right, self._seen = experts, omega, membership, right, seen
        self.selection_, self.workload_ = selection, live_shares(self.target_shares_, selection)[:-1] @ selection

    @staticmethod
    def _plain_selection(omega):
        """Members by membership alone, (n_targets, n_experts); zero rows for targets without members."""
        totals = omega.sum(0)[:, None]
        return np.divide(omega.T, totals, out=np.zeros(omega.T.shape), where=totals > 0)

    def _select(self, experts, omega):
        """Selection weights (n_targets, n_experts) of a roster; zero rows for targets without members."""
        plain = self._plain_selection(omega)
        workload = self._of_roster(self.workload, experts, common_ndim=1)
        bounds = share_bounds(None, workload, None, experts, self.targets_)
        if not bounds.bind:
            return plain
        try:
            return select_members(plain, self.target_shares_, bounds, names=[*experts, "classifier"])
        except ValueError as error:
            warnings.warn(
                f"the workload bounds cannot be kept by this roster ({error}); its members share the work by their "
                "memberships. Call recalibrate, which also moves work between groups, or onboard more experts.",
                stacklevel=4,
            )
            return plain

    def _of_roster(self, setting, experts, common_ndim):
        """What is set for each expert, for a roster: by name after `fit`, so that it stays with its owner."""
        if setting is None or hasattr(setting, "items"):
            present = {*experts, *self.targets_}
            gone = set(self._fit_experts) - present
            return {name: value for name, value in (setting or {}).items() if name not in gone} or None
        values = np.asarray(setting, dtype=float)
        if values.ndim == common_ndim or len(values) != len(self._fit_experts):
            return setting
        return self._of_roster(dict(zip(self._fit_experts, values, strict=True)), experts, common_ndim)
