"""Deferral without training: the confidence of any classifier against what experts got right per class."""

import numbers
from typing import ClassVar

import numpy as np

from .._numerics._answers import expected_correctness
from .._sklearn import HasMethods, Interval
from ._base import BaseDeferrer
from ._coverage import CoverageMixin
from ._roster import insert_zeros
from ._settings import check_in_one_target, expert_prices, of_roster, share_bounds
from ._tally import TallyMixin


class ConfidenceDeferral(CoverageMixin, TallyMixin, BaseDeferrer):
    """Defer where an expert is more likely to be right than the classifier, by its own probabilities.

    A post-hoc rule (in the manner of Narasimhan et al., 2022): it wraps any classifier with `predict_proba`, fitted
    or not, and trains nothing. The classifier is right about an item with its largest tempered probability
    ``max_c p(c|x)``, expert j with ``sum_c p(c|x) r_jc``, where ``r_jc`` is how often j was right on class c of the
    labelled rows, shrunk by empirical Bayes. The largest of these, less what asking costs, decides.

    Parameters
    ----------
    classifier : classifier, default=None
        Any scikit-learn classifier with `predict_proba`, cloned and fitted; a `FrozenEstimator` is taken as it is.
        None is a small neural net.

    cv : int, default=5
        Folds of the out-of-fold probabilities on which the temperature, and without unlabelled rows the coverage,
        are found.

    coverage : float, pair of float or None, default=None
        Share of the items that the classifier is to decide, or its lower and upper bound. None leaves it free.

    workload : pair, array-like of shape (n_experts, 2), mapping or None, default=None
        Lower and upper bound of the share of all items that each expert serves, for everybody, in order, or by name.

    consultation_cost : float, array-like of shape (n_experts,), mapping or None, default=None
        Cost of asking, in units of one error; a mapping has names of experts as keys.

    missing_label : object, default=None
        Marker of a missing annotation; None takes NaN, None, pandas.NA, masked entries and -1 unless it is a class.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, of the classifier where it has none, and of the draws of `assign_experts`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in `y`, and those that a frozen classifier knows.
    classifier_ : classifier
        The fitted classifier.
    temperature_ : float
        Temperature of the classifier's probabilities.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    targets_ : ndarray of shape (n_targets,)
        Every expert is a target.
    omega_ : ndarray of shape (n_experts, n_targets)
        Which target an expert is.
    selection_ : ndarray of shape (n_targets, n_experts)
        The same the other way round; zeros where an expert has left.
    offsets_ : ndarray of shape (n_targets + 1,)
        Added to the probabilities of being right so that the bounds are met: prices in units of one error.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Achieved hard shares on the calibration rows, the classifier last; 0 for newcomers until `recalibrate`.
    coverage_ : float
        Achieved share of the classifier on the calibration rows.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    constraint_violation_ : float
        Largest amount by which an achieved share leaves its bounds.
    n_iter_ : int
        0: nothing is trained but the classifier.
    history_ : list
        Empty.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    ClusterDeferral : A trained gate, which also learns where in `X` experts are right.
    RankedDeferral : Coverage control for any deferrer.

    Notes
    -----
    With exact probabilities, and experts whose errors depend on an item through its class only, this is the Bayes
    rule. It knows nothing else about the items: an expert who is right on some images of a class and wrong on others
    looks alike on all of them, and a classifier that is wrong with confidence keeps its items. Use a trained gate
    there, if there are enough labelled rows.

    Shares move when experts come and go; call `recalibrate` with items afterwards to meet the bounds again.

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
    >>> team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations, X_unlabeled=crowd.X_anonymous)
    ConfidenceDeferral(...)
    >>> print(f"{team.coverage_:.2f}")
    0.50
    >>> alone = (team.predict(crowd.X_test) == crowd.y_test).mean()
    >>> bool(team.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > alone)
    True
    """

    _parameter_constraints: ClassVar = {
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "cv": [Interval(numbers.Integral, 2, None, closed="left")],
        "coverage": [Interval(numbers.Real, 0, 1, closed="both"), "array-like", None],
        "workload": ["array-like", dict, None],
        "consultation_cost": [numbers.Real, "array-like", dict, None],
        "missing_label": "no_validation",
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
        random_state=None,
    ):
        self.classifier = classifier
        self.cv = cv
        self.coverage = coverage
        self.workload = workload
        self.consultation_cost = consultation_cost
        self.missing_label = missing_label
        self.random_state = random_state

    def _check_settings(self, y):
        super()._check_settings(y)
        check_in_one_target(share_bounds(self.coverage, self.workload, None, self.experts_, []), self.experts_)

    def _parts(self):
        return {"classifier": self.classifier}

    def _bounds(self, roster):
        workload = of_roster(self.workload, "workload", self._fit_experts, roster.experts, 1)
        return share_bounds(self.coverage, workload, None, roster.experts, self.targets_)

    def _learn(self, team):
        self._single_targets()
        bounds, _ = self._feasible(self._bounds(self._roster)), self._price()  # refused before any work
        proba = self._judge_classifier(team, self.cv)
        self.n_iter_, self.history_ = 0, []
        scores = self._compare(proba) if team.unlabeled is None else self._free_scores(team.unlabeled)
        self._calibrate(scores, bounds)

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self._set_no_offsets()

    def _scores(self, items):
        return self._free_scores(items) + self.offsets_

    def _free_scores(self, items):
        return self._compare(self._classifier_proba(items))

    def _compare(self, proba):
        """Probability (n, n_targets + 1) of being right, less the cost of asking, from those of the classes."""
        member = self._plain_selection()
        right = expected_correctness(proba, member @ self._correctness)
        return self._break_ties(right - np.append(member @ self._price(), 0.0))

    def _price(self):
        """What asking each expert (M,) costs, in errors."""
        cost = of_roster(self.consultation_cost, "consultation_cost", self._fit_experts, self.experts_, 0)
        return np.broadcast_to(expert_prices(cost, self.experts_), self.n_experts_)

    def _add_targets(self, names):
        n_before = len(self.targets_)
        super()._add_targets(names)
        self.offsets_, self._margins = insert_zeros(self.offsets_, len(self.targets_) - n_before), None
