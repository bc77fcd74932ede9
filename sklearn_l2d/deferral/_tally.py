"""Newcomers of deferrers that know an expert by answers to items of known truth."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._numerics._answers import tally_answers
from .._sklearn import atomic
from ._roster import insert_zeros

_TIE = 1e-9  # beyond the noise of sums of floats, below any difference that matters


class TallyMixin:
    """How newcomers join who are known by answers to items of known truth; it only adds to `BaseDeferrer`."""

    @atomic
    def onboard(self, experts, X, annotations, y=None):
        """Take experts on; what they got right decides how they are used, nothing is trained.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names; an expert who is known already is judged anew.
        X : array-like of shape (n_samples, n_features)
            Items that they labelled.
        annotations : array-like or DataFrame of shape (n_samples, len(experts))
            Their answers, with missing entries.
        y : array-like of shape (n_samples,)
            True labels; there is no judging without them.

        Returns
        -------
        self : object
            The deferrer with a larger roster.

        Raises
        ------
        ValueError
            If the deferrer has never seen experts, `y` is None, or the shapes or labels do not go together.
        """
        check_is_fitted(self)
        if len(self.targets_) == 0:
            raise ValueError(
                "fitted without experts: there is nothing to compare newcomers with; fit with annotations."
            )
        if y is None:
            raise ValueError("y is None, but newcomers are judged by what they got right; pass the true labels.")
        names, items, codes = self._check_newcomers(experts, X, annotations)
        truth = self._known_truth(X, y)
        right, seen = tally_answers(codes, truth)
        details = self._describe(items, truth.argmax(1), codes)
        self._add_targets(names)
        newcomers = self._roster._replace(
            experts=names, omega=self._place(names), right=right, seen=seen, details=details
        )
        self._set_roster(self._roster.joined_by(newcomers))

    def _break_ties(self, scores):
        """Scores (n, n_targets + 1), changed in place so that whoever never answered loses a tie with who did."""
        scores[:, :-1][:, self.selection_ @ self._roster.seen.sum(1) <= 0] -= _TIE
        return scores

    def _describe(self, items, y_codes, codes):
        """Details of a roster for experts with these answers (n, M) to items."""
        return {}

    def _add_targets(self, names):
        """Give every name that has none yet a target of its own, to which nothing has been deferred so far."""
        fresh = names[[name not in set(self.targets_) for name in names]]
        self.targets_ = np.concatenate([self.targets_, fresh])
        self._roster = self._roster._replace(omega=np.pad(self.omega_, ((0, 0), (0, len(fresh)))))
        self.target_shares_ = insert_zeros(self.target_shares_, len(fresh))

    def _place(self, names):
        """Memberships (len(names), n_targets) of newcomers."""
        place = {name: k for k, name in enumerate(self.targets_)}
        return np.eye(len(self.targets_))[[place[name] for name in names]]
