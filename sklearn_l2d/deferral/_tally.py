"""Onboarding for the deferrers that know an expert by annotations of items of known truth."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._numerics._matrices import one_hot, widened
from .._sklearn import atomic
from ._roster import insert_zeros

_TIE = 1e-9  # above rounding errors, below any difference that matters


class TallyMixin:
    """Onboarding by annotations of items of known truth; overrides nothing of `BaseDeferrer`."""

    @atomic
    def onboard(self, experts, X, annotations, y=None):
        """Add experts to the roster by their correctness on labelled items, without training.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names of the experts. An expert who is already on the roster is replaced.
        X : array-like of shape (n_samples, n_features)
            Items that they annotated.
        annotations : array-like or DataFrame of shape (n_samples, len(experts))
            Annotations of these experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        y : array-like of shape (n_samples,)
            True labels. They are required, but some may be unknown, as in `fit`: answers to these items count by the
            probability of the truth given the classifier and the newcomers' answers.

        Returns
        -------
        self : object
            The deferrer with a larger roster.

        Raises
        ------
        ValueError
            If the deferrer was fitted without experts, if `y` is None or knows no truth, or if shapes or labels do not
            match.
        """
        check_is_fitted(self)
        if len(self.targets_) == 0:
            raise ValueError(
                "fitted without experts: there is nothing to compare newcomers with; fit with annotations."
            )
        if y is None:
            raise ValueError("y is None, but newcomers are judged by what they got right; pass the true labels.")
        names, items, votes, y = self._check_newcomers(experts, X, annotations, y)
        y_codes, known = self._check_truth(X, y)
        if not known.any():
            raise ValueError("y knows the truth of no item, but newcomers are judged by it; pass some true labels.")
        counts = self._count_newcomers(votes, self._truth_before_answers(items, known, y_codes), known)
        details = self._describe(items[known], y_codes, votes[known])
        self._add_targets(names)
        self._set_roster(self._roster.joined_by(self._roster.newcomers(names, self._place(names), counts, details)))

    def _handicap(self):
        """What to take from the scores of the targets (n_targets,), so that those without annotations lose ties."""
        return _TIE * (self._selection @ self._roster.seen.sum(1) <= 0)

    def _describe(self, items, y_codes, votes):
        """Details of a roster for experts with these votes on items."""
        return {}

    def _add_targets(self, names):
        """Add a target with a share of 0 for every name that is not a target."""
        known = set(self.targets_)
        fresh = names[[name not in known for name in names]]
        self.targets_ = np.concatenate([self.targets_, fresh])
        self._roster = self._roster.replace(omega=widened(self._roster.omega, len(fresh)))
        self.target_shares_ = insert_zeros(self.target_shares_, len(fresh))

    def _place(self, names):
        """Memberships (len(names), n_targets) of newcomers."""
        place = {name: k for k, name in enumerate(self.targets_)}
        return one_hot([place[name] for name in names], len(self.targets_))
