"""Newcomers who join groups of experts."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._numerics._answers import tally_answers
from ._behaviours import behaviour_proba, expert_membership
from ._roster import RosterMixin


class OnboardingMixin(RosterMixin):
    """Roster of a deferrer whose targets are groups of experts."""

    _per_expert = (*RosterMixin._per_expert, "_membership")

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
        names, _, codes = self._check_newcomers(experts, X, annotations)
        right, seen = tally_answers(codes, self._truth(X, y))
        membership = expert_membership(self.clusterer_, X, codes, self.classes_)
        self._take_on(
            {
                "experts_": names,
                "omega_": self.grouping_.assign(right, seen, membership),
                "_membership": membership,
                "_right": right,
                "_seen": seen,
            }
        )
        return self

    def _truth(self, X, y):
        """Distribution (n, C) of the true class: known, or the consensus of the behaviours."""
        if y is not None:
            return self._known_truth(X, y)
        consensus = np.einsum(
            "nkc,k->nc", behaviour_proba(self.clusterer_, X, self.classes_), self.clusterer_.cluster_weights_
        )
        return np.eye(len(self.classes_))[consensus.argmax(1)]
