"""Bounds on coverage and workload that are met by offsets on scores, and the path of other coverages."""

import warnings

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._encoding import as_floats
from .._numerics._shares import share_violation
from ._bounds import check_feasible, plain_selection, select_members, share_bounds
from ._gating import calibrate, coverage_offset


class CoverageMixin:
    """Offsets on the scores of a deferrer; a subclass gives `_free_scores`, the scores before any offset.

    Fitted are `offsets_`, `constraint_violation_`, the shares, and the margins from which a coverage path is cut.
    """

    workload = cluster_workload = None  # where the subclass has no such parameters

    def recalibrate(self, X_unlabeled):
        """Move the offsets so that the hard shares meet the bounds on other items; nothing is trained.

        Parameters
        ----------
        X_unlabeled : array-like of shape (n_unlabeled, n_features)
            Items like those to come.

        Returns
        -------
        self : object
            The deferrer with new offsets.
        """
        check_is_fitted(self)
        items = self._check_unlabeled(X_unlabeled)
        if self.n_experts_:
            self._calibrate(self._free_scores(items))
        else:
            self._report_shares(np.append(np.zeros(len(self.targets_)), 1.0))
        return self

    def coverage_path(self, coverages, X_unlabeled=None):
        """Deferrers at several coverages that share everything but the offsets.

        Parameters
        ----------
        coverages : array-like of float
            Requested shares of the classifier.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Items on which the shares are calibrated. None uses the margins of the calibration rows of `fit`; bounds
            on experts need items, and so do a roster that has changed and a gate that has learnt from feedback.

        Returns
        -------
        deferrers : list
            Fitted copies.
        """
        check_is_fitted(self)
        coverages = [float(c) for c in coverages]
        outside = [c for c in coverages if not 0 <= c <= 1]
        if outside:
            raise ValueError(f"coverages holds {outside}, outside of [0, 1]; they are shares of the items.")
        if self.n_experts_ == 0:
            return [self._copy_with(coverage=c) for c in coverages]
        if X_unlabeled is not None:
            scores, path = self._free_scores(self._check_unlabeled(X_unlabeled)), []
            for c in coverages:
                path.append(self._copy_with(coverage=c))
                path[-1]._calibrate(scores)
            return path
        bounded = self.workload is not None or self.cluster_workload is not None
        if bounded or self._margins is None or (self.selection_.sum(1) <= 0).any():
            raise ValueError(
                "X_unlabeled is None, but bounds on experts or groups, a roster that has changed and a gate that has "
                "learnt since are calibrated on items; pass some."
            )
        return [self._copy_with(coverage=c, **self._shifted(c)) for c in coverages]

    def _check_items(self, X):
        # scores may ask the classifier, which may pick columns by name
        return self._classifier_input(X)

    def _free_scores(self, X):
        """Finite scores (n, n_targets + 1) of checked items before any offset, the classifier last."""
        raise NotImplementedError

    def _scores(self, X):
        return self._free_scores(X) + self.offsets_

    def _check_bounds(self):
        """Refuse bounds that must fail whatever the targets turn out to be."""
        bounds = share_bounds(self.coverage, self.workload, None, self.experts_, [])
        if len(self.experts_):
            anybody = bounds.in_one_target()
            check_feasible(anybody, np.ones((1, len(self.experts_))), self.experts_, ["the experts"])

    def _bounds(self):
        """Bounds of today's roster, refused where they cannot be met; nothing is asked of a target without members."""
        workload = self._of_roster(self.workload, self.experts_, common_ndim=1)
        bounds = share_bounds(self.coverage, workload, self.cluster_workload, self.experts_, self.targets_)
        plain = plain_selection(self.omega_)
        bounds = bounds.without_targets(plain.sum(1) <= 0)
        check_feasible(bounds, plain, self.experts_, self.targets_)
        return bounds.with_lone_experts(plain)

    def _calibrate(self, scores):
        """Set the offsets and everything that follows from them."""
        bounds = self._bounds()
        self.offsets_, shares, self.selection_, self._margins = calibrate(scores, plain_selection(self.omega_), bounds)
        self._report_shares(shares)
        self.constraint_violation_ = max(
            share_violation(shares, *bounds.targets),
            share_violation(np.append(self.workload_, shares[-1]), *bounds.experts),
        )

    def _set_no_offsets(self):
        """Leave the decisions to the scores."""
        self.offsets_, self._margins = np.zeros(len(self.targets_) + 1), None
        self.constraint_violation_ = 0.0

    def _shifted(self, coverage):
        """Fitted attributes at another coverage, from the margins of the calibration rows."""
        offset = coverage_offset(self._margins, coverage)
        achieved = float(np.mean(self._margins > -offset))  # not the request where margins tie
        humans = self.target_shares_[:-1]
        rest = humans / humans.sum() if humans.sum() else np.full(len(humans), 1 / len(humans))
        shares = np.append((1 - achieved) * rest, achieved)
        return {
            "offsets_": np.append(self.offsets_[:-1], offset),
            "target_shares_": shares,
            "coverage_": achieved,
            "workload_": shares[:-1] @ self.selection_,
            "constraint_violation_": abs(achieved - coverage),
        }

    def _select(self, experts, omega):
        """Selection weights (n_targets, n_experts) of a roster; zero rows for targets without members."""
        plain = plain_selection(omega)
        workload = self._of_roster(self.workload, experts, common_ndim=1)
        bounds = share_bounds(None, workload, None, experts, self.targets_)
        if not bounds.bind:
            return plain
        try:
            return select_members(plain, self.target_shares_, bounds, names=[*experts, "classifier"])
        except ValueError as error:
            warnings.warn(
                f"the workload bounds cannot be kept by this roster ({error}); its members share the work by their "
                "memberships. Call recalibrate, which also moves work between targets, or onboard more experts.",
                stacklevel=4,
            )
            return plain

    def _of_roster(self, setting, experts, common_ndim):
        """What is set for each expert, for a roster: by name after `fit`, so that it stays with its owner."""
        if setting is None or hasattr(setting, "items"):
            gone = set(self._fit_experts) - set(experts)
            return {name: value for name, value in (setting or {}).items() if name not in gone} or None
        values = as_floats(setting, "workload" if common_ndim else "consultation_cost")
        if values.ndim == common_ndim or len(values) != len(self._fit_experts):
            return setting
        return self._of_roster(dict(zip(self._fit_experts, values, strict=True)), experts, common_ndim)
