"""Offsets on scores that meet bounds on coverage and workload, and paths of coverages."""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from .._numerics._matrices import row_blocks
from .._numerics._shares import calibrate_offsets, nearest_target_shares, project_onto_shares, share_violation
from .._sklearn import atomic
from .._validation import check_memory
from ._duel import Duel
from ._settings import check_feasible, select_members, with_classifier

_HAIR = 1e-15  # relative difference of numbers that are equal but for rounding
QUANTILES = np.linspace(0, 1, 2001)  # resolution of a coverage path without unlabelled rows


_TABLES = 5  # of items and targets that a calibration holds at once, roughly


class Calibration(NamedTuple):
    """Offsets that make hard shares meet their bounds.

    Attributes
    ----------
    offsets : ndarray of shape (n_targets + 1,)
        Offsets of the gate's logits; -inf shuts a target out.
    shares : ndarray of shape (n_targets + 1,)
        Hard shares on the calibration rows.
    selection : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members.
    margins : ndarray of shape (2001,) or None
        Quantiles of the classifier's margin over the best human target, by which a coverage path is computed; None
        where bounds on experts or groups rule that out.
    """

    offsets: np.ndarray
    shares: np.ndarray
    selection: np.ndarray
    margins: np.ndarray | None


def calibrate_coverage(duel, omega, bounds, sample_weight=None):
    """Find the offset of the classifier with which its share of a `Duel` meets its bounds; nobody else has any.

    Parameters and result are those of `calibrate`, with a duel in the place of the logits.
    """
    n_targets, low = omega.shape[0], bounds.target_lower[-1]
    (human, classifier), _ = calibrate_offsets(
        np.column_stack([duel.human, duel.classifier]), *bounds.of_coverage, sample_weight
    )
    offset = classifier - human
    shares = duel.shifted(offset).shares(n_targets, sample_weight)
    if low > 1 - 0.5 / len(duel.human):
        offset = np.inf  # must hold on other rows too
    margins = _quantiles(duel.classifier - duel.human, sample_weight)
    return Calibration(np.append(np.zeros(n_targets), offset), shares, omega, margins)


def _quantiles(values, sample_weight):
    """Quantiles (2001,) of values; a value of weight 2 counts as two."""
    if sample_weight is None:
        return np.quantile(values, QUANTILES)
    order = np.argsort(values, kind="stable")
    size = sample_weight[order] / sample_weight.min()
    last = np.cumsum(size) - 1  # place of the last copy of each value
    places = np.column_stack([last - (size - 1), last])
    return np.interp(QUANTILES * last[-1], places.ravel(), np.repeat(values[order], 2))


def calibrate(logits, omega, bounds, sample_weight=None):
    """Find offsets with which the shares of the argmax meet the bounds on some rows.

    Parameters
    ----------
    logits : ndarray of shape (n, n_targets + 1)
        Gate logits of rows that the gate was not trained on.
    omega : ndarray of shape (n_targets, n_experts)
        Selection weights, rows sum to 1; a target without members has a row of zeros.
    bounds : ShareBounds
        Bounds of targets and experts; 0 for targets without members.
    sample_weight : ndarray of shape (n,), default=None
        Weights of the rows in the shares; equal by default.

    Returns
    -------
    calibration : Calibration
    """
    offsets, shares = calibrate_offsets(logits, *bounds.targets, sample_weight)
    selection = omega
    if bounds.bind_experts:
        # the experts' bounds may not be attainable at these shares of their targets: then those move too
        support, (lower, upper) = with_classifier(omega) > 0, bounds.targets
        wanted = nearest_target_shares(shares, *bounds.experts, support, target_lower=lower, target_upper=upper)
        if np.abs(wanted - shares).max() > 1e-9:
            offsets, shares = calibrate_offsets(logits, wanted, wanted, sample_weight)
        selection = select_members(omega, wanted, bounds, check=False)
    if bounds.target_lower[-1] > 1 - 0.5 / len(logits):
        # must hold on other rows too; with an infinite offset of the classifier alone, targets stay comparable
        offsets = np.append(np.where(bounds.target_upper[:-1] > 0, 0.0, -np.inf), np.inf)
    offsets[:-1][omega.sum(1) <= 0] = 0.0  # not -inf: targets without members are masked until an expert joins
    return Calibration(offsets, shares, selection, None)


def starting_offsets(log_proba, bounds, sample_weight=None):
    """Offsets (n_targets + 1,) on log-probabilities (n, n_targets + 1) whose mean shares then meet the bounds."""
    dual = project_onto_shares(log_proba, *bounds.targets, sample_weight=sample_weight)[1]
    return np.where(np.isfinite(dual), dual, 0.0)  # whoever is shut out, or decides everything, needs none


def two_sides(log_proba):
    """Log-probabilities (n, 2) of all human targets together and of the classifier, from a table (n, n_targets + 1)."""
    sides = np.empty((len(log_proba), 2))
    for rows in row_blocks(*log_proba.shape):
        block = np.asarray(log_proba[rows])
        sides[rows] = np.column_stack([logsumexp(block[:, :-1], axis=1), block[:, -1]])
    return sides


def coverage_tilt(sides, n_targets, bounds, tilt=None, sample_weight=None):
    """Find what to add to log-probabilities so that the classifier's mean share meets its bounds; nobody else has any.

    Parameters
    ----------
    sides : ndarray of shape (n, 2)
        As returned by `two_sides`.
    n_targets : int
        Number of human targets.
    bounds : ShareBounds
        Of which only those of the classifier count.
    tilt : ndarray of shape (n_targets + 1,), default=None
        That of a similar problem, used as the start.
    sample_weight : ndarray of shape (n,), default=None
        Weights of the rows in the shares; equal by default.

    Returns
    -------
    tilt : ndarray of shape (n_targets + 1,)
        The same for all human targets.
    violation : float
        Largest distance of a mean share from its bounds.
    """
    start = None if tilt is None else tilt[-2:]
    _, (human, classifier), _, violation = project_onto_shares(
        sides, *bounds.of_coverage, dual=start, sample_weight=sample_weight
    )
    return np.append(np.full(n_targets, human), classifier), violation


def coverage_offset(margins, coverage):
    """Offset of the classifier's logit that gives it a share of the rows with these margin quantiles."""
    if coverage <= 0:
        return -np.inf
    if coverage >= 1:
        return np.inf
    level = np.interp(1 - coverage, QUANTILES, margins)
    return -(level + _HAIR * abs(level))  # items at the level go to people, however their scores are rounded


class CoverageMixin:
    """Offsets on the scores of a deferrer.

    The mixin overrides nothing of `BaseDeferrer`. A class that uses it defines `_free_scores(items)`, finite scores
    (n, n_targets + 1) without offsets, adds `offsets_` to them in `_scores`, and returns the requested bounds in
    `_bounds`.

    It sets `offsets_`, `constraint_violation_`, the shares, and the margins by which a coverage path is computed.
    """

    @atomic
    def recalibrate(self, X_unlabeled):
        """Change the offsets so that the hard shares meet the bounds on other items, without training.

        Parameters
        ----------
        X_unlabeled : array-like of shape (n_unlabeled, n_features)
            Items from the distribution of future items.

        Returns
        -------
        self : object
            The deferrer with new offsets.
        """
        check_is_fitted(self)
        items = self._check_unlabeled(X_unlabeled)
        if self.n_experts_:
            bounds = self._feasible(self._bounds(self._roster))
            self._forget_bounds(bounds)
            self._calibrate(self._contest(items, bounds), bounds)
        else:
            self._report_shares(np.append(np.zeros(len(self.targets_)), 1.0))

    def coverage_path(self, coverages, X_unlabeled=None):
        """Copies of the deferrer at several coverages, which differ in their offsets only.

        Parameters
        ----------
        coverages : array-like of float
            Requested coverages.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Items on which the shares are calibrated. None uses the margins of the calibration rows of `fit`. Items are
            needed if experts or groups have bounds, if the roster has changed, or if the gate has learnt from feedback.

        Returns
        -------
        deferrers : list
            Fitted copies, in the order of `coverages`.
        """
        check_is_fitted(self)
        coverages = [float(c) for c in coverages]
        outside = [c for c in coverages if not 0 <= c <= 1]
        if outside:
            raise ValueError(f"coverages holds {outside}, outside of [0, 1]; they are shares of the items.")
        if self.n_experts_ == 0:
            return [self._copy_with(coverage=c) for c in coverages]
        if X_unlabeled is not None:
            items, contest = self._check_unlabeled(X_unlabeled), None
            path = [self._copy_with(coverage=c) for c in coverages]
            for deferrer in path:
                bounds = deferrer._feasible(deferrer._bounds(self._roster))
                deferrer._forget_bounds(bounds)
                contest = deferrer._contest(items, bounds) if contest is None else contest
                deferrer._calibrate(contest, bounds)
            return path
        if self._margins is None or (~self._live).any():
            raise ValueError(
                "X_unlabeled is None, but bounds on experts or groups, a roster that has changed and a gate that has "
                "learnt since are calibrated on items; pass some."
            )
        return [self._copy_with(coverage=c, **self._shifted(c)) for c in coverages]

    def _explain_offsets(self, names, items, chosen):
        """Columns of `explain_deferral` by comparing who is chosen with who would be without offsets.

        Between two targets bounds on people make the difference; where the classifier is one of the two, a requested
        coverage does, too.
        """
        people = [name for name in ("cluster_workload", "workload") if getattr(self, name, None) is not None]
        coverage = [] if self.coverage is None else ["coverage"]
        if len(names) == 1 or not people + coverage:
            return {}
        free = Duel.of(self._masked(self._free_scores(items))).chosen
        forced = np.full(len(items), ", ".join(people), dtype=object)
        forced[(chosen < 0) | (free < 0)] = ", ".join(coverage + people)
        forced[chosen == free] = ""
        return {"without bounds": np.array(names, dtype=object)[free], "forced by": forced}

    def _feasible(self, bounds):
        """Bounds of the current roster, without targets that have no members; refused if infeasible."""
        plain = self._plain_selection()
        bounds = bounds.without_targets(plain.sum(1) <= 0)
        check_feasible(bounds, plain, self.experts_, self.targets_)
        return bounds.with_lone_experts(plain)

    def _contest(self, items, bounds):
        """What the bounds are calibrated on: all scores of items if people have bounds, else a `Duel`."""
        self._check_contest(len(items), bounds)
        return self._free_scores(items) if self._bind_people(bounds) else self._free_duel(items)

    def _check_contest(self, n_items, bounds):
        """Refuse bounds whose calibration would need more memory than there is."""
        if self._bind_people(bounds):
            check_memory(
                _TABLES * 8 * n_items * (len(self.targets_) + 1),
                f"meeting bounds on {len(self.targets_)} targets by {n_items} items",
                "pass fewer items as X_unlabeled, or bound the coverage only",
            )

    def _forget_bounds(self, bounds):
        """Select members by membership alone, unless people have bounds: those of an earlier calibration are gone."""
        if not self._bind_people(bounds):
            self._set_selection(self._plain_selection())

    def _bind_people(self, bounds):
        return bounds.bind_people(self._plain_selection().sum(1) > 0)

    def _free_duel(self, items):
        """`Duel` by the scores of items without offsets, which are computed for some rows at a time."""
        blocks = items.blocks(len(self.targets_) + 1)
        return Duel.joined((Duel.of(self._masked(self._free_scores(block))) for block in blocks), len(items))

    def _calibrate(self, contest, bounds, sample_weight=None):
        """Set the offsets and what follows from them, by a contest of items of some weight and feasible bounds."""
        plain = self._plain_selection()
        if self._bind_people(bounds):
            found = self._meet_bounds(contest, plain, bounds, sample_weight)
            self._set_selection(found.selection)
        else:
            found = calibrate_coverage(contest, plain, bounds, sample_weight)
        self.offsets_, self._margins = found.offsets, found.margins
        self._report_shares(found.shares)
        self.constraint_violation_ = max(
            share_violation(found.shares, *bounds.targets),
            share_violation(np.append(self.workload_, self.coverage_), *bounds.experts),
        )

    def _meet_bounds(self, scores, omega, bounds, sample_weight):
        """`Calibration` on scores (n, n_targets + 1), under bounds on people."""
        return calibrate(scores, omega, bounds, sample_weight)

    def _set_no_offsets(self):
        """Set all offsets to 0."""
        self.offsets_, self._margins = np.zeros(len(self.targets_) + 1), None
        self.constraint_violation_ = 0.0

    def _shifted(self, coverage):
        """Fitted attributes at another coverage, from the margins of the calibration rows."""
        offset = coverage_offset(self._margins, coverage)
        achieved = float(np.mean(self._margins > -offset))  # differs from the request if margins tie
        humans = self.target_shares_[:-1]
        rest = humans / humans.sum() if humans.sum() else np.full(len(humans), 1 / len(humans))
        shares = np.append((1 - achieved) * rest, achieved)
        return {
            "offsets_": np.append(self.offsets_[:-1], offset),
            "target_shares_": shares,
            "coverage_": achieved,
            "workload_": shares[:-1] @ self._selection,
            "constraint_violation_": abs(achieved - coverage),
        }
