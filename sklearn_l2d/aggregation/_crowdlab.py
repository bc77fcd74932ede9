"""CROWDLAB: votes and a classifier label items together (Goh, Tkachenko and Mueller 2022)."""

from typing import ClassVar

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._classifiers import expand, fit_to_proba, out_of_fold, own_proba
from .._folds import FOLDS, folds_of
from .._numerics._crowd_em import vote_shares
from .._numerics._crowdlab import crowdlab_consensus, crowdlab_proba
from .._sklearn import take_rows
from .._validation import answers_among, seated, votes_beside
from ._base import allowed_classes
from ._consensus_classifier import BaseConsensusClassifier


class CROWDLAB(BaseConsensusClassifier):
    """A consensus in which a classifier has a vote, too (Goh, Tkachenko and Mueller 2022).

    The label is a weighted average of the probabilities of the classifier and of one distribution for each answer.
    Everybody weighs by how much less they err than the most frequent class would: the classifier against the consensus,
    a person against the others on the same items, or the truth where it is known. The paper gives the classifier the
    square root of the mean number of answers on top; here it is that of the item, so that the label of an item does not
    depend on others.

    Parameters
    ----------
    classifier : classifier, default=None
        Any with `predict_proba`, which learns from the shares of the votes as in `ConsensusClassifier`; a
        `FrozenEstimator` must have been fitted to other items. None stands for `LogisticRegression`.

    cv : int, splitter or list of splits, default=5
        Folds for the probabilities of the classifier on the items of the fit: how many, a splitter, or splits as
        positions of training and test items.

    missing_label : object, default=None
        Marker of a missing annotation. None stands for NaN, None, pandas.NA, masked entries and -1.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None and pandas.NA.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    annotator_agreement_ : ndarray of shape (n_annotators,)
        How often each agrees with the others on the same items, or with the truth; NaN without any occasion.
    classifier_ : classifier
        Fitted to the consensus.
    n_features_in_ : int
        Number of features, the columns of `X`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where `X` has some.

    See Also
    --------
    ConsensusClassifier : A classifier that learns from any aggregator.

    References
    ----------
    Goh, Tkachenko and Mueller, CROWDLAB: Supervised learning to infer consensus labels and quality scores for data with
    multiple annotators, 2022.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.aggregation import CROWDLAB
    >>> X = [[0.0], [1.0], [0.5], [5.0], [6.0], [5.5]]
    >>> votes = [[0, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1], [None, 0, 1], [1, 1, 1]]
    >>> model = CROWDLAB(LogisticRegression(), cv=2, random_state=0)
    >>> model.fit_predict(X, annotations=votes).tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[2.9], [5.2]], annotations=[[1, 1, None], [None] * 3]).tolist()
    [1, 1]
    """

    _parameter_constraints: ClassVar = {
        **BaseConsensusClassifier._parameter_constraints,
        "cv": FOLDS,
        "random_state": ["random_state"],
    }

    def __init__(self, classifier=None, *, cv=5, missing_label=None, unlabeled_label=None, random_state=None):
        self.classifier = classifier
        self.cv = cv
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def fit_predict(self, X, y=None, annotations=None):
        """Fit, and label the items of the fit.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,), default=None
            As in `fit`.
        annotations : array-like or DataFrame of shape (n_items, n_annotators), or Votes, default=None
            As in `fit`.

        Returns
        -------
        labels : ndarray of shape (n_items,)
            Members of `classes_`.
        """
        best = self.fit_predict_proba(X, y, annotations).argmax(1)
        return self.classes_[best]

    def fit_predict_proba(self, X, y=None, annotations=None):
        """Fit, and return the probabilities of the labels of the items of the fit.

        Unlike those of `predict_proba`, they come from classifiers that were not fitted to the item.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,), default=None
            As in `fit`.
        annotations : array-like or DataFrame of shape (n_items, n_annotators), or Votes, default=None
            As in `fit`.

        Returns
        -------
        proba : ndarray of shape (n_items, n_classes)
            In the order of `classes_`; 1 where the truth is known. An item that nobody answered has the probabilities
            of the classifier.
        """
        self._fit(X, y, annotations, consensus := [])
        proba, (told, of_fit) = self._own_proba(X), consensus
        proba[told] = of_fit
        return proba

    def predict(self, X, annotations=None):
        """Most probable label of every item.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_items, n_annotators), or Votes, default=None
            As in `predict_proba`.

        Returns
        -------
        labels : ndarray of shape (n_items,)
            Members of `classes_`.
        """
        best = self.predict_proba(X, annotations).argmax(1)
        return self.classes_[best]

    def predict_proba(self, X, annotations=None):
        """Probabilities of the labels, by votes and features.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_features)
            Items. Those of the fit are better labelled by `fit_predict_proba`.
        annotations : array-like or DataFrame of shape (n_items, n_annotators), or Votes, default=None
            Who answered what; what has names is matched by them, and annotators may be absent or new. None leaves the
            items to the classifier.

        Returns
        -------
        proba : ndarray of shape (n_items, n_classes)
            In the order of `classes_`; rows sum to 1.
        """
        check_is_fitted(self)
        proba = self._own_proba(X)
        if annotations is None:
            return proba
        votes = votes_beside(X, annotations, self.classes_, self.missing_label, extend=True)
        votes = answers_among(votes, self.classes_, self.missing_label, unknown="left out")
        votes = seated(votes, annotations, self, "annotations")
        n_new = len(votes.annotators) - len(self.annotators_)
        right, seen = np.pad(self._right, (0, n_new)), np.pad(self._seen, (0, n_new))
        return crowdlab_proba(self._crowdlab, right, seen, votes.item, votes.annotator, votes.label, proba)

    @property
    def annotator_agreement_(self):
        """How often each annotator agrees with the others on the same items, or with the truth."""
        check_is_fitted(self)
        return np.divide(self._right, self._seen, out=np.full(len(self._seen), np.nan), where=self._seen > 0)

    def _learn(self, X, votes, truth):
        classifier, classes = self._classifier(), votes.classes
        shares = vote_shares(votes, allowed_classes(classes[truth[truth >= 0]], truth >= 0, classes))
        self.classifier_ = fit_to_proba(classifier, X, shares, classes)
        if isinstance(classifier, FrozenEstimator):
            proba = expand(own_proba(classifier, X), classifier.classes_, classes)
        else:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))

            def fit(rows, _):
                return fit_to_proba(classifier, take_rows(X, rows), shares[rows], classes)

            majority = shares.argmax(1)
            fold = folds_of(len(majority), self.cv, seed, majority)
            proba = out_of_fold(fit, X, majority, classes, fold)
        self._crowdlab, self._right, self._seen, consensus = crowdlab_consensus(votes, proba, truth)
        return consensus
