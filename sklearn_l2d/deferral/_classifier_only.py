"""Reference: the classifier decides all items."""

from typing import ClassVar

import numpy as np

from .._sklearn import HasMethods
from ._anybody import form_anybody
from ._base import BaseDeferrer
from ._tally import TallyMixin


class ClassifierOnly(TallyMixin, BaseDeferrer):
    """Never defer, as a reference for other deferrers.

    All experts are members of one target. If the classifier is masked, a random expert decides, so that the
    coverage-accuracy curve is the straight line of random deferral to a random expert, the lower reference of
    L2D-Clusters (section 5.2).

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
        Names of the targets: "anybody", or none without experts.
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
        form_anybody(self)
        self.n_iter_, self.history_ = 0, []
        self._report_shares(np.array([0.0, 1.0]))

    def _scores(self, items):
        return np.tile([-np.inf, 0.0], (len(items), 1))

    def _add_targets(self, names):
        pass  # newcomers join the one target

    def _place(self, names):
        return np.ones((len(names), 1))
