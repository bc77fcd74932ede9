"""Reference: the classifier decides everything."""

from typing import ClassVar

import numpy as np

from .._sklearn import HasMethods
from ._base import BaseDeferrer
from ._tally import TallyMixin


class ClassifierOnly(TallyMixin, BaseDeferrer):
    """Never defer: a reference line for every other deferrer.

    The experts stay on the roster as one target that holds everybody. With the classifier masked, a random expert
    decides, so that the coverage-accuracy curve is the straight line of random deferral to a random expert, the
    lower reference of L2D-Clusters (section 5.2).

    Parameters
    ----------
    classifier : classifier, default=None
        Any scikit-learn classifier with `predict_proba`, cloned and fitted; a `FrozenEstimator` is taken as it is.
        None is a small neural net.

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
    targets_ : ndarray of shape (1,)
        The one target, "anybody"; empty without experts.
    omega_ : ndarray of shape (n_experts, 1)
        Ones.
    selection_ : ndarray of shape (1, n_experts)
        Everybody alike.
    coverage_ : float
        1.
    target_shares_ : ndarray of shape (2,)
        0 and 1, the classifier last.
    workload_ : ndarray of shape (n_experts,)
        Zeros.
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
    BestExpert : The other reference: always defer.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ClassifierOnly
    >>> crowd = load_digits_crowd(random_state=0)
    >>> alone = ClassifierOnly(LogisticRegression(C=0.01))
    >>> alone.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    ClassifierOnly(...)
    >>> (alone.predict_deferral(crowd.X_test) == -1).all()
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
        self._set_targets(np.array(["anybody"], dtype=object), np.ones((self.n_experts_, 1)))
        self.n_iter_, self.history_ = 0, []
        self._report_shares(np.array([0.0, 1.0]))

    def _scores(self, items):
        return np.tile([-np.inf, 0.0], (len(items), 1))

    def _add_targets(self, names):
        pass  # newcomers join the one target

    def _place(self, names):
        return np.ones((len(names), 1))
