"""Reference: the most accurate expert decides all items."""

from typing import ClassVar

import numpy as np

from .._sklearn import HasMethods
from ._base import BaseDeferrer
from ._duel import Duel
from ._tally import TallyMixin


class BestExpert(TallyMixin, BaseDeferrer):
    """Always defer to the most accurate expert, as a reference for other deferrers.

    The accuracy of an expert on the labelled items is shrunk towards the accuracy of all experts by empirical Bayes, so
    that an expert with three lucky annotations does not win. The classifier decides the items that the best expert did
    not annotate, and all items if there is no expert left.

    Parameters
    ----------
    classifier : classifier, default=None
        Classifier with `predict_proba`. It is cloned and fitted, unless it is a `FrozenEstimator`, which is used as it
        is. None is a small neural net, a `NetClassifier` or, with `votes_unlabeled`, a `CountsClassifier`.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    random_state : int, RandomState instance or None, default=None
        Seed of the classifier unless it has its own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of `y` and `annotations`, and those that a frozen classifier knows.
    classifier_ : classifier
        The fitted classifier.
    temperature_ : float
        1: the probabilities of the classifier are used as they are.
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
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
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
    ClassifierOnly : The other reference: never defer.
    ConfidenceDeferral : Chooses an expert for each item.

    Notes
    -----
    Experts who annotated different items are compared as if these items were equally hard. An expert who skipped the
    hard items therefore seems better than he or she is.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import BestExpert
    >>> crowd = load_digits_crowd(random_state=0)
    >>> best = BestExpert(LogisticRegression(C=0.01))
    >>> best.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    BestExpert(...)
    >>> (best.predict_deferral(crowd.X_test) == best.workload_.argmax()).all()
    np.True_
    """

    _parameter_constraints: ClassVar = {
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
        "random_state": ["random_state"],
    }

    def __init__(self, classifier=None, *, missing_label=None, unlabeled_label=None, random_state=None):
        self.classifier = classifier
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, team):
        self._fit_classifier(team)
        self._count_answers(team)
        self._single_targets()
        self.n_iter_, self.history_ = 0, []
        self._measure_shares(team)

    def _scores(self, items):
        return np.tile(self._ranking(), (len(items), 1))

    def _duel(self, items):
        if len(self.targets_) == 0:
            return super()._duel(items)
        return Duel(*(np.repeat(part, len(items)) for part in self._duel_of_any()))

    def _duel_of_any(self):
        """`Duel` of one item; it is the same for all items."""
        return Duel.of(self._masked(self._ranking()[None]))

    def _ranking(self):
        """Scores (n_targets + 1,) of the experts and the classifier, the same for all items."""
        right, seen = self._roster.right.sum(1), self._roster.seen.sum(1)
        accuracy = self._selection @ self._roster.answer_model.people.expected(right, seen)
        heard = self._selection @ seen > 0
        if heard.any():
            accuracy[~heard] = -np.inf  # their accuracy is unknown
        return np.append(accuracy, -np.inf)

    def _set_roster(self, roster):
        super()._set_roster(roster)
        # the best expert may have changed; the decision does not depend on the items
        self._report_shares(self._duel_of_any().shares(len(self.targets_)))
