"""Reference: the most accurate expert decides everything."""

from typing import ClassVar

import numpy as np

from .._numerics._answers import own_correctness
from .._sklearn import HasMethods
from ._base import BaseDeferrer
from ._tally import TallyMixin


class BestExpert(TallyMixin, BaseDeferrer):
    """Always defer to the expert who was right most often: a reference line for every other deferrer.

    The accuracy on the labelled rows that an expert answered is shrunk towards that of everybody, by as many rows as
    the spread between the experts allows, so that three lucky answers do not win.

    Parameters
    ----------
    classifier : classifier, default=None
        Any scikit-learn classifier with `predict_proba`, cloned and fitted; a `FrozenEstimator` is taken as it is.
        None is a small neural net. It decides what the expert did not answer, and everything once nobody is left.

    missing_label : object, default=None
        Marker of a missing annotation; None takes NaN, None, pandas.NA, masked entries and -1 unless it is a class.

    random_state : int, RandomState instance or None, default=None
        Seed of the classifier where it has none.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in `y`, and those that a frozen classifier knows.
    classifier_ : classifier
        The fitted classifier.
    temperature_ : float
        1: the classifier's probabilities are taken as they are.
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
    coverage_ : float
        0, or 1 without experts.
    target_shares_ : ndarray of shape (n_targets + 1,)
        1 for the best expert.
    workload_ : ndarray of shape (n_experts,)
        The same for the experts.
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
    ClassifierOnly : The other reference: never defer.
    ConfidenceDeferral : Picks an expert item by item.

    Notes
    -----
    Experts who answered different items are compared as if these were equally hard. Where the answers that are
    missing are the hard ones, this flatters whoever skipped them.

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
        "random_state": ["random_state"],
    }

    def __init__(self, classifier=None, *, missing_label=None, random_state=None):
        self.classifier = classifier
        self.missing_label = missing_label
        self.random_state = random_state

    def _parts(self):
        return {"classifier": self.classifier}

    def _learn(self, team):
        self._fit_classifier(team)
        self._single_targets()
        self.n_iter_, self.history_ = 0, []
        self._measure_shares(team)

    def _scores(self, items):
        return np.tile(self._ranking(), (len(items), 1))

    def _ranking(self):
        """Scores (n_targets + 1,) of everybody, the same for all items."""
        right, seen, (center, (strength, _)) = self._roster.right, self._roster.seen, self._roster.prior
        accuracy = self.selection_ @ own_correctness(right, seen, center, strength)
        heard = self.selection_ @ seen.sum(1) > 0
        if heard.any():
            accuracy[~heard] = -np.inf  # nobody knows how good they are
        return np.append(accuracy, -np.inf)

    def _set_roster(self, roster):
        super()._set_roster(roster)
        # somebody else may be the best now; the decision does not look at the items
        self._report_shares(self._shares_of(self._masked(self._ranking()[None])))
