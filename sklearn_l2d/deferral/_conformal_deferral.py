"""Deferral without training, by the conformal prediction sets of a classifier."""

import numbers
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._folds import FOLDS
from .._numerics._answer_worth import accuracy_with_each
from .._numerics._conformal import n_scores_needed, set_threshold
from .._sklearn import HasMethods, Interval, warn
from ._behaviours import KnownByBehaviours
from ._fixed_panel import FixedPanelDeferrer
from ._sight import GATE_FEATURES


class ConformalDeferral(KnownByBehaviours, FixedPanelDeferrer):
    """Ask one person about an item if more than one class is plausible, and the one who tells these classes apart best.

    The plausible classes of an item are the conformal prediction set of the classifier: every class whose calibrated
    probability is at least `set_threshold_`, so that the set holds the true class of a new item with probability
    `confidence_level`. An item with one plausible class is decided by the classifier. About any other item, whoever has
    the largest segregativity is asked: the probability of guessing the class from the answer, if every plausible class
    is equally likely. Answer and classifier are then joined as in `predict_team_proba`. Nothing is trained but the
    classifier, and a roster changes at once (Bary, Macq and Petit, 2025).

    Parameters
    ----------
    classifier : classifier, default=None
        Classifier with `predict_proba`. It is cloned and fitted, unless it is a `FrozenEstimator`, which is used as it
        is. None is a small neural net, a `NetClassifier` or, with `votes_unlabeled`, a `CountsClassifier`.

    confidence_level : float, default=0.9
        Probability with which the prediction set of a new item holds its true class. The higher it is, the more items
        have several plausible classes.

    answers : float, default=None
        Mean number of answers per item, at most 1. Items are then asked about by the probability of the second most
        probable class. None asks about all items with several plausible classes.

    clusterer : AnnotatorLDA, FrozenEstimator or None, default=None
        Estimator of the experts' behaviours. An `AnnotatorLDA` is cloned and fitted to the counts of the annotations;
        ``FrozenEstimator(lda)`` is one that was trained on a larger anonymous archive. Newcomers without any known
        truth are then expected to answer like experts of similar memberships. None leaves that to the roster.

    gate_features : {"X", "proba"}, callable or None, default=None
        Numbers by which a gate, net or `AnnotatorLDA` inside the deferrer tells items apart: "X" is `X` itself, "proba"
        the probabilities of the classifier, and a callable is given `X` and returns an array or sparse matrix of a row
        per item, for instance the `transform` of a fitted vectoriser. None is "X" where `X` is numbers without gaps: a
        dense table or, for those with a `module`, an array of more dimensions; and "proba" for text, categories, sparse
        matrices and all else that only the classifier understands. The classifier always sees `X` as it is.

    cv : int, splitter or list of splits, default=5
        Folds of the classifier's out-of-fold probabilities, by which the temperature and the prediction sets are
        calibrated: their number, a splitter, or splits as positions in `X`.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, the clusterer unless it has its own, and the classifier unless it has its own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of `y` and `annotations`, and those that a frozen classifier knows.
    classifier_ : classifier
        The fitted classifier.
    temperature_ : float
        Temperature that calibrates the probabilities of the classifier.
    set_threshold_ : float
        Probability from which a class is in a prediction set; -1 if all classes are.
    toll_ : float
        What the probability of the second most probable class must exceed `set_threshold_` by for an item to be asked
        about; 0 without `answers`.
    clusterer_ : AnnotatorLDA or None
        The fitted or frozen clusterer.
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
        Weights by which each target selects its members. Rows sum to 1; a target without members has a row of zeros. It
        is sparse if `omega_` is.
    answers_ : float
        Expected number of answers per item, on `X_unlabeled` or else the labelled items.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
        Newcomers have 0 until `recalibrate`.
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
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
    PanelDeferral : Asks several people, whoever is worth most given all that is known so far.
    ConfidenceDeferral : Compares people by how often they are right, not by which classes they tell apart.

    Notes
    -----
    The sets are calibrated by out-of-fold probabilities, whose classifiers saw fewer items than the final one; the
    level then holds in practice and up to twice the missing share in the worst case (Barber, Candes, Ramdas and
    Tibshirani, 2021, on cross-conformal sets). A `FrozenEstimator` that has not seen the labelled items keeps it
    exactly. The label of the team need not be in the set.

    When not to use it: a fixed level asks about every item with two plausible classes, whether or not anybody can tell
    them apart, and asks once. `PanelDeferral` weighs what an answer can change, and had more right for as many answers
    on nearly all sets of the benchmark.

    Of the paper's criterion, only the description in its summary was at hand: how well somebody discriminates among the
    plausible labels. The formula here is one reading of it.

    References
    ----------
    Bary, Macq and Petit: No need for learning to defer? A training free deferral framework to multiple experts through
    conformal prediction, 2025. Vovk, Gammerman and Shafer: Algorithmic learning in a random world, 2005.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ConformalDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = ConformalDeferral(
    ...     LogisticRegression(C=0.01), confidence_level=0.9, random_state=0
    ... )
    >>> team.fit(
    ...     crowd.X_identified,
    ...     crowd.y_identified,
    ...     annotations=crowd.annotations,
    ...     X_unlabeled=crowd.X_anonymous,
    ... )
    ConformalDeferral(...)
    >>> plausible = team.predict_set(crowd.X_test)
    >>> plausible.shape
    (300, 10)
    >>> team.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > 0.85
    True
    """

    _parameter_constraints: ClassVar = {
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "confidence_level": [Interval(numbers.Real, 0, 1, closed="neither")],
        "answers": FixedPanelDeferrer._parameter_constraints["answers"],
        "clusterer": [HasMethods(["fit", "transform"]), None],
        "gate_features": GATE_FEATURES,
        "cv": FOLDS,
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        classifier=None,
        *,
        confidence_level=0.9,
        answers=None,
        clusterer=None,
        gate_features=None,
        cv=5,
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.classifier = classifier
        self.confidence_level = confidence_level
        self.answers = answers
        self.clusterer = clusterer
        self.gate_features = gate_features
        self.cv = cv
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def predict_set(self, X):
        """Predict the plausible classes of items by the classifier alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        plausible : ndarray of bool of shape (n_samples, n_classes)
            Columns in the order of `classes_`. The most probable class is always one.
        """
        check_is_fitted(self)
        proba = self._classifier_proba(self._check_items(X))
        return proba >= np.minimum(self.set_threshold_, proba.max(1, keepdims=True))

    def _learn(self, team):
        self._single_targets(load=np.zeros(self.n_experts_), **self._learn_behaviours(team, self.cv))
        proba = self._judge_classifier(team, self.cv)
        self._calibrate_sets(proba[np.arange(len(proba)), team.y_codes], team.weight)
        self.n_iter_, self.history_ = 0, []

    def _calibrate_sets(self, proba, weight):
        """Set the threshold of the sets by the probabilities (n,) of the true classes."""
        self.set_threshold_ = set_threshold(proba, self.confidence_level, weight)
        if self.set_threshold_ < 0:
            warn(
                f"confidence_level={self.confidence_level} takes {n_scores_needed(self.confidence_level)} labelled "
                f"items or more, but there are {len(proba)}: every class of every item is plausible. Give more, or "
                "lower it."
            )

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.clusterer_, self.set_threshold_ = None, -1.0

    def _answer_shape(self, items, votes):
        shape = self._shape_at(items)
        return None if shape is None else shape[votes.item]

    def _most(self):
        return min(self.n_experts_, 1)

    def _order(self, items, available, n_most):
        plausible = self._compared(self._classifier_proba(items))
        sets, place = np.unique(plausible, axis=0, return_inverse=True)
        told = accuracy_with_each(sets / sets.sum(1, keepdims=True), self._roster.answer_model)[place.reshape(-1)]
        told[~available] = -np.inf
        best = told.argmax(1)[:, None]
        return np.where(available.any(1, keepdims=True), best, -1)

    def _worth(self, items, order):
        second = _second(self._classifier_proba(items))
        return np.hstack([np.zeros_like(second), second - self.set_threshold_])

    def _compared(self, proba):
        """Plausible classes (n, C), the two most probable ones at least: those that an answer is to tell apart."""
        return proba >= np.minimum(self.set_threshold_, _second(proba))


def _second(proba):
    """Probability (n, 1) of the second most probable class."""
    return np.partition(proba, -2, axis=1)[:, [-2]]
