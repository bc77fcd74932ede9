"""Experts who leave, the tables of a shift, and why an item went where it went."""

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._encoding import is_frame
from .._numerics._answers import expected_correctness, shrunken_correctness
from ..annotations import encode_annotations, from_long
from ._base import preferences
from ._bounds import live_shares, plain_selection


class RosterMixin:
    """Roster of a deferrer; nothing is ever retrained when it changes.

    `_per_expert` names the fitted attributes with one row per expert.
    """

    _per_expert = ("experts_", "omega_", "_right", "_seen")

    def offboard(self, experts):
        """Take experts off the roster.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names.

        Returns
        -------
        self : object
            The deferrer with a smaller roster. A target that has lost everybody is not deferred to, unless somebody
            joins it again.

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
        self._set_roster(self._roster_without(names))
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
        correctness = expected_correctness(proba, self.selection_ @ self._correctness())
        return pd.DataFrame(
            {"chosen": np.array(names, dtype=object)[self._chosen(scores)], "prediction": self.predict(X)}
            | {f"preference of {n}": p for n, p in zip(names, preferences(scores).T, strict=True)}
            | {f"expected correctness of {n}": c for n, c in zip(names, correctness.T, strict=True)},
            index=getattr(X, "index", None),
        )

    def _correctness(self):
        """Shrunken correctness (n_experts, n_classes) of everybody on the roster."""
        return shrunken_correctness(self._right, self._seen, *self._strengths)

    def _known_truth(self, X, y):
        """Distribution (n, C) of the true class, one-hot."""
        y = column_or_1d(y)
        check_consistent_length(X, y)
        if not np.isin(y, self.classes_).all():
            raise ValueError(f"y holds labels that are not among classes_ {self.classes_.tolist()}.")
        return np.eye(len(self.classes_))[np.searchsorted(self.classes_, y)]

    def _check_newcomers(self, experts, X, annotations):
        """Names, checked items and encoded answers (n, len(experts)) of newcomers."""
        names = self._newcomer_names(experts)
        items = self._check_array(X)
        if is_frame(annotations) and set(annotations.columns) == set(names):
            annotations = annotations[list(names)]
        codes, _, _ = encode_annotations(annotations, classes=self.classes_, missing_label=self.missing_label)
        if codes.shape != (len(items), len(names)):
            raise ValueError(
                f"annotations has shape {codes.shape}; pass one row for each of the {len(items)} items of X and one "
                f"column for each of the {len(names)} experts."
            )
        return names, items, codes

    @staticmethod
    def _newcomer_names(experts):
        """Names of newcomers, one or several, as an object array."""
        names = np.empty(1, dtype=object) if np.isscalar(experts) else np.empty(len(experts), dtype=object)
        names[:] = [experts] if np.isscalar(experts) else list(experts)
        if len(set(names)) < len(names):
            raise ValueError(f"experts={list(names)} holds a name twice; name each newcomer once.")
        return names

    def _take_on(self, newcomers):
        """Put newcomers, given as the rows of every attribute in `_per_expert`, in the place of their namesakes."""
        kept = self._roster_without(newcomers["experts_"])
        self._set_roster({name: np.concatenate([kept[name], newcomers[name]]) for name in self._per_expert})

    def _roster_without(self, names):
        """Everything that has one row per expert, without the rows of some."""
        stay = np.array([name not in set(names) for name in self.experts_], dtype=bool)
        return {name: getattr(self, name)[stay] for name in self._per_expert}

    def _set_roster(self, roster):
        """Change the roster at once, with the selection weights that go with it."""
        selection = self._select(roster["experts_"], roster["omega_"])
        vars(self).update(roster)
        self.selection_, self.workload_ = selection, live_shares(self.target_shares_, selection)[:-1] @ selection

    def _select(self, experts, omega):
        """Selection weights (n_targets, n_experts) of a roster; zero rows for targets without members."""
        return plain_selection(omega)
