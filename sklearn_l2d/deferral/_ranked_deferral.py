"""A requested coverage for any deferrer, by ranking items."""

import numbers
from typing import ClassVar

import numpy as np
from sklearn.frozen import FrozenEstimator

from .._annotated_target import matched_target
from .._sklearn import HasMethods, Interval
from .._validation import weighted_rows
from ._coverage import CoverageMixin
from ._roster import insert_zeros, served_shares
from ._settings import check_nobody, share_bounds
from ._wrapper import DeferrerWrapper

_CERTAIN = 1e6  # replaces an infinite score, so that every margin is a number


class RankedDeferral(CoverageMixin, DeferrerWrapper):
    """Give any deferrer a requested coverage.

    Items are ranked by how much the deferrer prefers its best human target to the classifier, and the threshold is set
    to meet the coverage (PL2D, Algorithm 2; Mozannar et al., 2023). Only the deferrer itself is trained.

    Parameters
    ----------
    deferrer : deferrer
        It is cloned and fitted, unless it is in a `FrozenEstimator`, which is used as it is. The classifier, experts,
        targets and answers of the deferrer are those of this estimator.

    coverage : float, pair of float or None, default=None
        Share of the items that the classifier decides, or a pair of a lower and an upper bound. None keeps the
        threshold of the deferrer.

    random_state : int, RandomState instance or None, default=None
        Seed of the deferrer and its parts unless they have their own.

    Attributes
    ----------
    deferrer_ : deferrer
        The fitted deferrer.
    offsets_ : ndarray of shape (n_targets + 1,)
        Offsets that are added to the scores of the deferrer so that the coverage meets its bounds; 0 for the human
        targets.
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels of the deferrer.
    classifier_ : classifier
        The classifier of the deferrer.
    temperature_ : float
        Temperature that calibrates the probabilities of the classifier.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    targets_ : ndarray of shape (n_targets,)
        Names of the targets: those of the deferrer.
    omega_ : ndarray or csr_array of shape (n_experts, n_targets)
        Memberships of the experts in the targets. Rows sum to 1. It is sparse if every expert is a target and it has
        more than ten million entries.
    selection_ : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members. Rows sum to 1; a target without members has a row of zeros. It
        is sparse if `omega_` is.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    constraint_violation_ : float
        Distance of `coverage_` from its bounds; 0 if they are met.
    n_iter_ : int
        Number of epochs of the deferrer.
    history_ : list of dict
        History of the deferrer.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    ClusterDeferral : Has its own bounds on coverage and workload, and a `coverage_path`.
    sklearn_l2d.metrics.coverage_accuracy_points : The curve of any deferrer.

    Notes
    -----
    In the papers, the test items themselves are sorted, so that no item can be decided before all of them are there.
    Here (corrected) the threshold is a quantile of the items of `fit`, and a later item is decided on its own. Pass
    `X_unlabeled` if there are further items: the scores of the labelled items, from which the deferrer has learnt, are
    more extreme than those of others. Items are ranked by the margin over the best human target and not by the
    classifier's probability, so that the decisions with an unchanged threshold are those of the deferrer.

    A group of items with the same score is deferred together, so that coverages in between cannot be reached; a
    deferrer that always or never defers has one such group. If the deferrer has bounds on the workload, they may be
    violated after the threshold is moved.

    A deferrer that nearly always defers has learnt little about when not to defer, and ranks badly: set the coverage of
    a gate to about 0.5, or a cost of asking, before it is ranked.

    Two other methods to control the coverage, a search for the cost of asking and a penalty in the loss of a gate,
    train many times and still miss the coverage (PL2D, section 4). They are in the benchmark for comparison
    (``python -m sklearn_l2d.benchmark --experiments control``).

    References
    ----------
    PL2D: Probabilistic learning to defer, section 4 and appendix E. Mozannar, Lang, Wei, Sattigeri, Das and Sontag:
    Who should predict? Exact algorithms for learning to defer to humans, AISTATS 2023.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ConfidenceDeferral, RankedDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> ranked = RankedDeferral(
    ...     ConfidenceDeferral(LogisticRegression(C=0.01)), coverage=0.3, random_state=0
    ... )
    >>> ranked.fit(
    ...     crowd.X_identified,
    ...     crowd.y_identified,
    ...     annotations=crowd.annotations,
    ...     X_unlabeled=crowd.X_anonymous,
    ... )
    RankedDeferral(...)
    >>> print(f"{ranked.coverage_:.2f}")
    0.30
    >>> [f"{at.coverage_:.2f}" for at in ranked.coverage_path([0.2, 0.8])]
    ['0.20', '0.80']
    """

    _parameter_constraints: ClassVar = {
        "deferrer": [HasMethods(["fit", "predict_deferral", "predict_team"])],
        "coverage": [Interval(numbers.Real, 0, 1, closed="both"), "array-like", None],
        "random_state": ["random_state"],
    }

    def __init__(self, deferrer, *, coverage=None, random_state=None):
        self.deferrer = deferrer
        self.coverage = coverage
        self.random_state = random_state

    def _fit(
        self, X, y, annotations, X_unlabeled=None, votes_unlabeled=None, sample_weight=None, groups=None, classes=()
    ):
        X, y, annotations, weights, groups, _ = weighted_rows(
            X, *matched_target(X, y, annotations), sample_weight, groups
        )
        self._request()
        if annotations is None and not isinstance(self.deferrer, FrozenEstimator):
            check_nobody(coverage=self.coverage)
        unlabeled = self._fit_deferrer(X, y, annotations, X_unlabeled, votes_unlabeled, weights, groups)
        self._set_no_offsets()
        if len(self.targets_) == 0:
            self._report_shares(np.ones(1))
            return
        if unlabeled is not None:
            items, weights = unlabeled, None
        else:
            items, known = self._check_items(X), self._check_truth(X, y)[1]
            items = items if known.all() else items[known]
            weights = None if weights is None else weights[known]
        self._calibrate(self._free_duel(items), self._feasible(self._bounds(self._roster)), weights)

    def _adopt(self, deferrer):
        # the threshold stays, so that the shares change until `recalibrate`
        n_new = len(deferrer.targets_) - len(self.targets_)
        self.offsets_, self._margins = insert_zeros(self.offsets_, n_new), None
        self.target_shares_ = insert_zeros(self.target_shares_, n_new)
        self.workload_ = served_shares(self.target_shares_, deferrer._selection)
        super()._adopt(deferrer)

    def _request(self):
        """Requested bounds of the coverage."""
        bounds = share_bounds(self.coverage, None, None, [], [])
        return bounds.target_lower[-1], bounds.target_upper[-1]

    def _bounds(self, roster):
        """Bounds of the deferrer, with the requested coverage in place of its own."""
        bounds = self.deferrer_._bounds(roster)
        if self.coverage is None:
            return bounds
        low, high = self._request()
        return bounds._replace(
            target_lower=np.append(bounds.target_lower[:-1], low),
            target_upper=np.append(bounds.target_upper[:-1], high),
        )

    def _feasible(self, bounds):
        """The bounds of the coverage only, and every coverage is feasible."""
        return share_bounds(self.coverage, None, None, self.experts_, self.targets_)

    def _forget_bounds(self, bounds):
        pass  # the members are those of the deferrer

    def _contest(self, items, bounds):
        return self._free_duel(items)  # the order of the human targets does not change

    def _scores(self, items):
        return self._free_scores(items) + self.offsets_

    def _explain_bounds(self, names, items, chosen):
        if self.coverage is None:
            return self.deferrer_._explain_bounds(names, items, chosen)
        return self._explain_offsets(names, items, chosen)

    def _free_scores(self, items):
        return np.clip(self.deferrer_._target_scores(items), -_CERTAIN, _CERTAIN)
