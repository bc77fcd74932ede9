"""Deferral without training: the confidence of a classifier against the correctness of experts per class."""

import numbers
from typing import ClassVar

import numpy as np

from .._folds import FOLDS
from .._numerics._answers import expected_correctness, undominated
from .._numerics._matrices import row_chunks
from .._sklearn import HasMethods, Interval
from ._base import BaseDeferrer
from ._coverage import CoverageMixin
from ._duel import Duel
from ._roster import insert_zeros
from ._settings import check_in_one_target, expert_prices, of_roster, share_bounds
from ._tally import TallyMixin


class ConfidenceDeferral(CoverageMixin, TallyMixin, BaseDeferrer):
    """Defer an item if an expert is more likely to be right than the classifier.

    A post-hoc rule (in the manner of Narasimhan et al., 2022): it wraps any classifier with `predict_proba`, fitted or
    not, and trains nothing else. The probability that the classifier is right about an item is its largest calibrated
    probability ``max_c p(c|x)``. That of expert j is ``sum_c p(c|x) r_jc``, where ``r_jc`` is the correctness of j on
    class c of the labelled items, shrunk by empirical Bayes. The largest of these probabilities, less the cost of
    asking, decides.

    Parameters
    ----------
    classifier : classifier, default=None
        Classifier with `predict_proba`. It is cloned and fitted, unless it is a `FrozenEstimator`, which is used as it
        is. None is a small neural net, a `NetClassifier` or, with `votes_unlabeled`, a `CountsClassifier`.

    cv : int, splitter or list of splits, default=5
        Folds of the classifier's out-of-fold probabilities, by which the temperature and, without `X_unlabeled`, the
        coverage are calibrated: their number, a splitter, or splits as positions in `X`.

    coverage : float, pair of float or None, default=None
        Share of the items that the classifier decides, or a pair of a lower and an upper bound. None sets no bound.

    workload : pair, array-like of shape (n_experts, 2), mapping or None, default=None
        Lower and upper bound of the share of all items that each expert serves: one pair for all experts, one pair per
        expert, or a mapping from names to pairs, such as a Series or DataFrame. None sets no bound.

    consultation_cost : float, array-like of shape (n_experts,), mapping or None, default=None
        Cost of asking an expert, in units of one error: one cost for all experts, one per expert, or a mapping from
        names of experts or targets to costs, such as a Series. It may be negative.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, the draws of `assign_experts`, and the classifier unless it has its own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of `y` and `annotations`, and those that a frozen classifier knows.
    classifier_ : classifier
        The fitted classifier.
    temperature_ : float
        Temperature that calibrates the probabilities of the classifier.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    targets_ : ndarray of shape (n_targets,)
        Names of the targets: every expert of `fit` or `onboard` is one.
    omega_ : ndarray or csr_array of shape (n_experts, n_targets)
        Memberships of the experts in the targets. Rows sum to 1. It is sparse if every expert is a target and it has
        more than ten million entries.
    selection_ : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members, within the bounds of `workload`. Rows sum to 1; a target
        without members has a row of zeros. It is sparse if `omega_` is.
    offsets_ : ndarray of shape (n_targets + 1,)
        Offsets that are added to the probabilities of being right so that the shares meet their bounds. They are prices
        in units of one error.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
        Newcomers have 0 until `recalibrate`.
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    constraint_violation_ : float
        Largest distance of a share from its bounds; 0 if all bounds are met.
    n_iter_ : int
        0: only the classifier is trained.
    history_ : list
        Empty.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    ClusterDeferral : A trained gate, which also learns in which regions of `X` experts are right.
    RankedDeferral : Coverage control for any deferrer.

    Notes
    -----
    This is the Bayes rule if the probabilities are exact and the errors of the experts depend on the class of the item
    only. The rule knows nothing else about the items: it does not see that an expert is right on some images of a class
    and wrong on others, and a classifier that is confidently wrong keeps its items. Use a trained gate in these cases,
    if there are enough labelled items.

    The shares change when experts join or leave; call `recalibrate` afterwards to meet the bounds again.

    References
    ----------
    Narasimhan, Jitkrittum, Menon, Rawat and Kumar: Post-hoc estimators for learning to defer to an expert, NeurIPS
    2022.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ConfidenceDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = ConfidenceDeferral(LogisticRegression(C=0.01), coverage=0.5, random_state=0)
    >>> team.fit(
    ...     crowd.X_identified,
    ...     crowd.y_identified,
    ...     annotations=crowd.annotations,
    ...     X_unlabeled=crowd.X_anonymous,
    ... )
    ConfidenceDeferral(...)
    >>> print(f"{team.coverage_:.2f}")
    0.50
    >>> alone = (team.predict(crowd.X_test) == crowd.y_test).mean()
    >>> bool(team.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > alone)
    True
    """

    _parameter_constraints: ClassVar = {
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "cv": FOLDS,
        "coverage": [Interval(numbers.Real, 0, 1, closed="both"), "array-like", None],
        "workload": ["array-like", dict, None],
        "consultation_cost": [numbers.Real, "array-like", dict, None],
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        classifier=None,
        *,
        cv=5,
        coverage=None,
        workload=None,
        consultation_cost=None,
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.classifier = classifier
        self.cv = cv
        self.coverage = coverage
        self.workload = workload
        self.consultation_cost = consultation_cost
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _check_settings(self, y):
        super()._check_settings(y)
        check_in_one_target(share_bounds(self.coverage, self.workload, None, self.experts_, []), self.experts_)

    def _bounds(self, roster):
        workload = of_roster(self.workload, "workload", self._fit_experts, roster, 1)
        return share_bounds(self.coverage, workload, None, roster.experts, self.targets_)

    def _learn(self, team):
        self._single_targets()
        bounds, _ = self._feasible(self._bounds(self._roster)), self._price()  # refuse bounds before anything is fitted
        self._check_contest(len(team.items if team.unlabeled is None else team.unlabeled), bounds)
        proba = self._judge_classifier(team, self.cv)
        self.n_iter_, self.history_ = 0, []
        if team.unlabeled is not None:
            proba = self._classifier_proba(team.unlabeled)
        contest = self._compare(proba) if self._bind_people(bounds) else self._best_of(proba)
        self._calibrate(contest, bounds, team.weight_if_any if team.unlabeled is None else None)

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self._set_no_offsets()

    def _scores(self, items):
        return self._free_scores(items) + self.offsets_

    def _explain_bounds(self, names, items, chosen):
        return self._explain_offsets(names, items, chosen)

    def _free_scores(self, items):
        return self._compare(self._classifier_proba(items))

    def _duel(self, items):
        if len(self.targets_) == 0:
            return super()._duel(items)
        return self._best_of(self._classifier_proba(items), self.offsets_)

    def _free_duel(self, items):
        return self._best_of(self._classifier_proba(items))

    def _best_of(self, proba, offsets=None):
        """`Duel` by class probabilities (n, C), among the few experts who are better than all others on some item."""
        offsets = np.zeros(len(self.targets_) + 1) if offsets is None else offsets
        live = np.flatnonzero(self._live)
        right, price = self._terms()
        worth = right - price[:, None] + offsets[:-1, None]  # of asking, where the class is certain
        among = live[undominated(worth[live])]

        def duels():
            for rows in row_chunks(len(proba), len(among) + 1):
                some = proba[rows]
                human = some @ right[among].T  # as in `_compare`, but in place
                human -= price[among]
                human += offsets[among]
                duel = Duel.between(human, some.max(1) + offsets[-1])
                yield duel._replace(target=among[duel.target]) if len(among) else duel

        return Duel.joined(duels(), len(proba))

    def _compare(self, proba):
        """Probability (n, n_targets + 1) of being right, less the cost of asking, from class probabilities."""
        right, price = self._terms()
        return expected_correctness(proba, right) - np.append(price, 0.0)

    def _terms(self):
        """Correctness (n_targets, C) of the targets, and the cost (n_targets,) of asking them.

        Targets without annotations lose ties.
        """
        member = self._plain_selection()
        return member @ self._correctness, member @ self._price() + self._handicap()

    def _price(self):
        """Cost of asking each expert (M,), in errors."""
        cost = of_roster(self.consultation_cost, "consultation_cost", self._fit_experts, self._roster, 0)
        return expert_prices(cost, self.experts_)

    def _add_targets(self, names):
        n_before = len(self.targets_)
        super()._add_targets(names)
        self.offsets_, self._margins = insert_zeros(self.offsets_, len(self.targets_) - n_before), None
