"""A classifier of items whose labels are the consensus of annotators."""

from typing import ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from .._annotated_target import matched_target
from .._classifiers import expand, fit_to_proba, own_proba
from .._items import check_items
from .._persistence import Estimator
from .._sklearn import HasMethods, atomic_fit
from .._validation import check_votes_and_truth
from ._dawid_skene import DawidSkene


class BaseConsensusClassifier(MetaEstimatorMixin, ClassifierMixin, Estimator):
    """Base of what learns from items and votes on them: a subclass says in `_learn` how.

    `_learn` sets `classifier_` and returns the probabilities (n, C) of the labels of the items that it is given.
    """

    __metadata_request__fit: ClassVar = {"annotations": True}
    _parameter_constraints: ClassVar = {
        "classifier": [HasMethods(["fit", "predict_proba"]), None],
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
    }

    def fit(self, X, y=None, annotations=None):
        """Fit the classifier to votes, to true labels, or to both.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,), default=None
            True labels, missing where the truth is unknown; an `AnnotatedTarget` also brings the annotations. None
            knows none of them.
        annotations : array-like or DataFrame of shape (n_items, n_annotators), or Votes, default=None
            Who answered what, one column per annotator, with missing entries. None leaves `y` alone.

        Returns
        -------
        self : BaseConsensusClassifier
            The fitted classifier. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If neither `y` nor `annotations` holds a label, there is one class only, or a table does not fit the others.
        """
        return self._fit(X, y, annotations, [])

    @atomic_fit(prefer_skip_nested_validation=False)
    def _fit(self, X, y, annotations, consensus):
        """Fit, and append to `consensus` the items that somebody labelled, and probabilities of their labels."""
        y, annotations = matched_target(X, y, annotations)
        items = check_items(self, X, reset=True)
        votes, truth = check_votes_and_truth(self, X, y, annotations, len(items))
        told = np.flatnonzero((truth >= 0) | (np.diff(votes.starts) > 0))  # of the others, nobody knows anything
        consensus += [told, self._learn(items[told].given, votes[told], truth[told])]
        own = self.classifier_.classes_
        if not np.isin(own, votes.classes).all():
            raise ValueError(
                f"classifier knows the classes {own.tolist()}, but y and annotations hold {votes.classes.tolist()}; "
                "fit it to the same labels."
            )
        self.classes_, self.annotators_ = votes.classes, votes.annotators

    def _classifier(self):
        return LogisticRegression() if self.classifier is None else self.classifier

    def _own_proba(self, X):
        """Probabilities (n, C) of the classifier alone."""
        items = check_items(self, X)
        return expand(own_proba(self.classifier_, items.given), self.classifier_.classes_, self.classes_)


class ConsensusClassifier(BaseConsensusClassifier):
    """Any classifier, fitted where the truth is unknown: to the consensus of annotators.

    The aggregator makes probabilities of labels out of votes, and the classifier learns from these: where its `fit`
    takes weights, an item is one row for each class, which weighs as much as the class is probable, so that what is
    doubtful teaches little; else it is its most probable class. True labels that are known take the place of votes.

    Parameters
    ----------
    aggregator : aggregator, default=None
        One of this module. None stands for `DawidSkene`.

    classifier : classifier, default=None
        Any with `predict_proba`. None stands for `LogisticRegression`.

    missing_label : object, default=None
        Marker of a missing annotation. None stands for NaN, None, pandas.NA, masked entries and -1.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None and pandas.NA.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    aggregator_ : aggregator or None
        Fitted to the votes, None without any.
    classifier_ : classifier
        Fitted to the consensus.
    n_features_in_ : int
        Number of features, the columns of `X`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where `X` has some.

    See Also
    --------
    CROWDLAB : Labels the items of the fit by votes and classifier together.
    sklearn_l2d.crowd.CCEMClassifier : Learns net and annotators at once.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import ConsensusClassifier, MajorityVote
    >>> X = [[0.0], [1.0], [5.0], [6.0]]
    >>> votes = [["cat", "cat", None], ["cat", "dog", "cat"], ["dog"] * 3, [None, "dog", "dog"]]
    >>> model = ConsensusClassifier(MajorityVote()).fit(X, annotations=votes)
    >>> model.predict([[0.5], [7.0]]).tolist()
    ['cat', 'dog']
    """

    _parameter_constraints: ClassVar = {
        "aggregator": [HasMethods(["fit", "predict_proba"]), None],
        **BaseConsensusClassifier._parameter_constraints,
    }

    def __init__(self, aggregator=None, classifier=None, *, missing_label=None, unlabeled_label=None):
        self.aggregator = aggregator
        self.classifier = classifier
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label

    def predict(self, X):
        """Most probable label of every item, by its features.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_features)
            Items.

        Returns
        -------
        labels : ndarray of shape (n_items,)
            Members of `classes_`.
        """
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def predict_proba(self, X):
        """Probabilities of the labels, by the features.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_features)
            Items.

        Returns
        -------
        proba : ndarray of shape (n_items, n_classes)
            In the order of `classes_`; rows sum to 1.
        """
        check_is_fitted(self)
        return self._own_proba(X)

    def _learn(self, X, votes, truth):
        proba, self.aggregator_ = np.eye(len(votes.classes))[truth], None
        if len(votes.item):
            aggregator = DawidSkene() if self.aggregator is None else clone(self.aggregator)
            self.aggregator_ = aggregator.fit(votes, np.append(votes.classes.astype(object), None)[truth])
            proba[truth < 0] = aggregator.predict_proba(votes)[truth < 0]
        self.classifier_ = fit_to_proba(self._classifier(), X, proba, votes.classes)
        return proba
