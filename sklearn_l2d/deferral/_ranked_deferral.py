"""Coverage control for any deferrer: by ranking afterwards, or by the two rivals that train for it."""

import numbers
from typing import ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._numerics._shares import calibrate_offsets
from .._sklearn import HasMethods, Interval, StrOptions
from ._base import BaseDeferrer
from ._bounds import live_shares, share_bounds
from ._classifier import with_seed
from ._coverage import CoverageMixin
from ._coverage_controls import can_be_penalised, cost_parameter, fit_at_cost, fit_with_penalty
from ._fitting import FittingMixin
from ._gating import QUANTILES
from ._roster import RosterMixin
from ._tally_roster import insert_zeros

_CERTAIN = 1e6  # stands for an infinite score, so that a margin is always a number


def _ranks(self):
    if self.control != "ranking":
        raise AttributeError(f"control={self.control!r} moves the coverage by training only; use 'ranking'.")
    return True


def _of_deferrer(name):
    return property(lambda self: getattr(self.deferrer_, name), doc=f"`{name}` of the deferrer.")


def _onboards(self):
    return hasattr(getattr(self, "deferrer_", self.deferrer), "onboard")


class RankedDeferral(CoverageMixin, FittingMixin, RosterMixin, BaseDeferrer):
    """Give any deferrer a requested coverage.

    ``control="ranking"`` ranks items by how much the deferrer prefers its best human target to the classifier, and
    moves the threshold (PL2D, Algorithm 2; Mozannar et al., 2023). The two other controls are those that PL2D sets
    its own constraint against (section 4): they train again and again, and still miss.

    Parameters
    ----------
    deferrer : deferrer
        Cloned and fitted; one in a `FrozenEstimator` is taken as it is, for "ranking" only. Its classifier, experts,
        targets and answers are those of this estimator.

    control : {"ranking", "cost", "penalty"}, default="ranking"
        "ranking" adds one offset to the classifier's score, without any training. "cost" looks for a cost of asking
        by bisection, with a fit at every step; it needs a deferrer with `consultation_cost` or `expert_cost`, whose
        own setting it replaces. "penalty" adds ``penalty * (soft coverage - request) ** 2`` to the loss of the gate,
        for deferrers with a gate that is trained by EM, such as `ClusterDeferral`.

    coverage : float, pair of float or None, default=None
        Share of the items that the classifier is to decide, or its lower and upper bound. None leaves "ranking" at
        the deferrer's own threshold; the other two need a request, and a deferrer whose own `coverage` is None.

    n_refits : int, default=8
        Largest number of fits for "cost".

    penalty : float, default=10
        Weight for "penalty".

    random_state : int, RandomState instance or None, default=None
        Seed of the deferrer and its parts where they have none.

    Attributes
    ----------
    deferrer_ : deferrer
        The fitted deferrer.
    attempts_ : list of dict
        Cost or penalty, and coverage, of every fit for "cost" and "penalty".
    offsets_ : ndarray of shape (n_targets + 1,)
        Added to the scores of the deferrer: zeros, but for the classifier with "ranking".
    classes_ : ndarray of shape (n_classes,)
        Labels.
    classifier_ : classifier
        The classifier of the deferrer.
    temperature_ : float
        Temperature of its probabilities.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    targets_ : ndarray of shape (n_targets,)
        Names of the targets.
    omega_ : ndarray of shape (n_experts, n_targets)
        Memberships of the experts.
    selection_ : ndarray of shape (n_targets, n_experts)
        Weights with which a target picks its members.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Achieved hard shares on the calibration rows, the classifier last.
    coverage_ : float
        Achieved share of the classifier on the calibration rows.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    constraint_violation_ : float
        Distance of `coverage_` to its bounds.
    n_iter_ : int
        Epochs of the deferrer.
    history_ : list of dict
        History of the deferrer.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    ClusterDeferral : Has bounds on coverage and workload of its own, and a `coverage_path`.
    sklearn_l2d.metrics.coverage_accuracy_points : The curve of any deferrer.

    Notes
    -----
    The papers' procedure sorts the test items themselves, so that nobody can decide about an item before all of them
    have come. Here the threshold is a quantile of the items of `fit`, corrected: a later item is decided on its own.
    Pass `X_unlabeled` where there are further items: on the labelled rows, from which the deferrer has learnt, its
    scores are more extreme than on others. The ranking also differs in that the margin over the best human target
    replaces the classifier's probability, so that without a shift the decisions are those of the deferrer.

    A coverage between two groups of items with the same score cannot be reached; a deferrer that never defers, or
    always, has one such group. Bounds on the workload that the deferrer has met itself do not survive the shift.

    A deferrer that nearly always defers has learnt little about when not to, and ranks badly: give a gate a coverage
    near 0.5 of its own, or a cost of asking, before it is ranked.

    Use "cost" and "penalty" to compare, not to deploy. With a gate that is trained by EM, hard coverage jumps as a
    function of the cost, since many items flip together; with a surrogate loss it is smoother, but no cost takes it
    below what the deferrer chooses for free. The penalty acts on the soft coverage in training, which is not what the
    decisions show, and its weight has no scale: one is too weak, another drives the gate to one side.

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
    >>> ranked = RankedDeferral(ConfidenceDeferral(LogisticRegression(C=0.01)), coverage=0.3, random_state=0)
    >>> ranked.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations, X_unlabeled=crowd.X_anonymous)
    RankedDeferral(...)
    >>> print(f"{ranked.coverage_:.2f}")
    0.30
    >>> [f"{at.coverage_:.2f}" for at in ranked.coverage_path([0.2, 0.8])]
    ['0.20', '0.80']
    """

    _parameter_constraints: ClassVar = {
        "deferrer": [HasMethods(["fit", "predict_deferral", "predict_team"])],
        "control": [StrOptions({"ranking", "cost", "penalty"})],
        "coverage": [Interval(numbers.Real, 0, 1, closed="both"), "array-like", None],
        "n_refits": [Interval(numbers.Integral, 1, None, closed="left")],
        "penalty": [Interval(numbers.Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, deferrer, *, control="ranking", coverage=None, n_refits=8, penalty=10.0, random_state=None):
        self.deferrer = deferrer
        self.control = control
        self.coverage = coverage
        self.n_refits = n_refits
        self.penalty = penalty
        self.random_state = random_state

    classes_ = _of_deferrer("classes_")
    classifier_ = _of_deferrer("classifier_")
    temperature_ = _of_deferrer("temperature_")
    experts_ = _of_deferrer("experts_")
    targets_ = _of_deferrer("targets_")
    omega_ = _of_deferrer("omega_")
    selection_ = _of_deferrer("selection_")
    n_iter_ = _of_deferrer("n_iter_")
    history_ = _of_deferrer("history_")
    n_features_in_ = _of_deferrer("n_features_in_")
    feature_names_in_ = _of_deferrer("feature_names_in_")
    missing_label = _of_deferrer("missing_label")
    _seed = _of_deferrer("_seed")
    _fit_experts = _of_deferrer("_fit_experts")

    coverage_path = available_if(_ranks)(CoverageMixin.coverage_path)
    recalibrate = available_if(_ranks)(CoverageMixin.recalibrate)

    def offboard(self, experts):
        """Take experts off the roster; the threshold stays, so that shares move until `recalibrate`.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names.

        Returns
        -------
        self : RankedDeferral
            A target that has lost everybody is not deferred to, unless somebody joins it again.
        """
        check_is_fitted(self)
        return self._adopt(self.deferrer_._copy_with().offboard(experts))

    @available_if(_onboards)
    def onboard(self, experts, X, annotations, y=None):
        """Take experts on as the deferrer does; the threshold stays, so that shares move until `recalibrate`.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names.
        X : array-like of shape (n_samples, n_features)
            Items that they labelled.
        annotations : array-like or DataFrame of shape (n_samples, len(experts))
            Their answers, with missing entries.
        y : array-like of shape (n_samples,), default=None
            True labels.

        Returns
        -------
        self : RankedDeferral
            The deferrer with a larger roster.
        """
        check_is_fitted(self)
        return self._adopt(self.deferrer_._copy_with().onboard(experts, X, annotations, y))

    def _adopt(self, deferrer):
        """Take a deferrer with another roster."""
        n_new = len(deferrer.targets_) - len(self.targets_)
        shares = insert_zeros(self.target_shares_, n_new)
        return self._take_over(
            self._copy_with(
                deferrer_=deferrer,
                offsets_=insert_zeros(self.offsets_, n_new),
                target_shares_=shares,
                workload_=live_shares(shares, deferrer.selection_)[:-1] @ deferrer.selection_,
                _margins=None,
            )
        )

    def _fit(self, X, y, annotations, X_unlabeled, classes):
        self._check_request()
        self.attempts_ = []
        if isinstance(self.deferrer, FrozenEstimator):
            check_is_fitted(self.deferrer)
            check_consistent_length(X, y, annotations)
            self.deferrer.estimator._known_truth(X, y)  # nothing is learnt from it, but it is to be of the same kind
            self.deferrer_ = self.deferrer.estimator._copy_with()  # its roster may change here
        else:
            self._train(lambda d: d.fit(X, y, annotations=annotations, X_unlabeled=X_unlabeled), annotations is None)
        self._set_no_offsets()
        if len(self.targets_) == 0:
            self._report_shares(np.ones(1))
        elif self.control == "ranking":
            items = self._check_items(X) if X_unlabeled is None else self._check_unlabeled(X_unlabeled)
            self._calibrate(self._free_scores(items))
        else:
            self._report_shares(self.deferrer_.target_shares_)
            self.constraint_violation_ = self._miss()

    def _check_request(self):
        """Refuse settings that do not go together."""
        low, high = self._request()
        if self.control == "ranking":
            return
        kind = type(self.deferrer).__name__
        if isinstance(self.deferrer, FrozenEstimator):
            raise ValueError(f"control={self.control!r} trains, but deferrer is frozen; pass it unfitted, or rank.")
        if (low, high) == (0, 1):
            raise ValueError(f"control={self.control!r} needs a request; set coverage.")
        if getattr(self.deferrer, "coverage", None) is not None:
            raise ValueError(f"deferrer has a coverage={self.deferrer.coverage} of its own; set it to None.")
        if self.control == "cost" and cost_parameter(self.deferrer) is None:
            raise ValueError(f"control='cost' needs a cost of asking, which {kind} does not have; use 'ranking'.")
        if self.control == "penalty" and not can_be_penalised(self.deferrer):
            raise ValueError(f"control='penalty' needs a gate that is trained by EM, not {kind}; use 'ranking'.")

    def _train(self, fit, nobody):
        """Fit the deferrer; the two controls by training have nothing to do where there is nobody to ask."""
        deferrer = clone(with_seed(self.deferrer, self._draw_seed()))
        if self.control == "ranking" or nobody:
            self.deferrer_ = fit(deferrer)
        elif self.control == "cost":
            self.deferrer_, self.attempts_ = fit_at_cost(deferrer, fit, self._request(), self.n_refits)
        else:
            self.deferrer_, self.attempts_ = fit_with_penalty(deferrer, fit, self._request(), self.penalty)

    def _request(self):
        """Requested bounds of the coverage."""
        bounds = share_bounds(self.coverage, None, None, [], [])
        return bounds.target_lower[-1], bounds.target_upper[-1]

    def _miss(self):
        """Distance of the achieved coverage to the request."""
        low, high = self._request()
        return max(low - self.coverage_, self.coverage_ - high, 0.0)

    def _bounds(self):
        """Bounds that the deferrer was given, with this request in the place of its coverage."""
        bounds = self.deferrer_._bounds()
        if self.coverage is None:
            return bounds
        low, high = self._request()
        return bounds._replace(
            target_lower=np.append(bounds.target_lower[:-1], low),
            target_upper=np.append(bounds.target_upper[:-1], high),
        )

    def _free_scores(self, X):
        return np.clip(self.deferrer_._target_scores(X), -_CERTAIN, _CERTAIN)

    def _calibrate(self, scores):
        """Set the offset of the classifier; who is preferred among the targets stays the same."""
        best, classifier = scores[:, :-1].max(1), scores[:, -1]
        low, high = self._request()
        (people, own), _ = calibrate_offsets(np.column_stack([best, classifier]), [0, low], [1, high])
        self.offsets_ = np.append(np.zeros(len(self.targets_)), own - people)
        self._margins = np.quantile(classifier - best, QUANTILES)
        chosen = self._chosen(self._masked(scores + self.offsets_))
        self._report_shares(np.bincount(chosen % scores.shape[1], minlength=scores.shape[1]) / len(chosen))
        self.constraint_violation_ = self._miss()

    def _check_items(self, X):
        return self.deferrer_._check_items(X)

    def _classifier_input(self, X):
        return self.deferrer_._classifier_input(X)

    def _classifier_proba(self, X):
        return self.deferrer_._classifier_proba(X)

    def _correctness(self):
        return self.deferrer_._correctness()
