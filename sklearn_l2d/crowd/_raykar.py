"""A classifier, the annotators, and the truth behind their answers, by expectation and maximisation."""

import numbers
from typing import ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from .._annotated_target import matched_target
from .._classifiers import expand, fit_to_proba, own_proba
from .._numerics._crowd_em import (
    answer_matrix,
    count_answers_of,
    log_joint_of,
    posterior_of,
    safe_log,
    vote_shares,
)
from .._persistence import Estimator
from .._sklearn import HasMethods, Interval, StrOptions, atomic_fit
from .._validation import check_votes_and_truth
from ._base import CrowdMixin, average_prior

_LEAST = 1e-6  # probability below which a class of an item is no row of the classifier


class RaykarClassifier(CrowdMixin, MetaEstimatorMixin, ClassifierMixin, Estimator):
    """Any classifier and confusion matrices, by expectation and maximisation (Raykar et al. 2010).

    The model of Dawid and Skene, in which a classifier of the items takes the place of the frequencies of the classes:
    an item's true class has the probability ``f_c(x) prod_m A_m(c, answer)`` given all answers to it. The classifier
    and the matrices A learn from these probabilities, which follow from both, in turns (crowd tutorial, part II).

    The turns raise the objective, the log-likelihood of the answers with the log-prior of the matrices, as long as
    the classifier maximises a likelihood. One that does not, or has a penalty, may lower it; that turn is the last,
    and is taken back. A classifier that knows the items of its fit by heart, such as a deep tree, never changes what
    it was first told.

    Parameters
    ----------
    classifier : classifier, default=None
        Any with `predict_proba` whose `fit` takes `sample_weight`. None stands for `LogisticRegression`.

    prior : "average" or float, default="average"
        Pseudo-counts in each row of a confusion matrix: five that are spread as the average annotator answers, measured
        by the majority, or one number for every answer, as in `DawidSkene`.

    max_iter : int, default=50
        Largest number of turns, each of which fits the classifier once.

    tol : float, default=1e-4
        Gain of the objective, in nats per item, below which the turns end.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    confusion_matrices_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability of an answer (last axis) given the true class, of every annotator.
    classifier_ : classifier
        The fitted classifier.
    n_iter_ : int
        Number of turns.
    history_ : list of float
        Objective of every turn.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    sklearn_l2d.aggregation.DawidSkene : The same without features.
    GeoCrowdNet : Trains a net on the answers themselves.

    References
    ----------
    Raykar et al., Learning from crowds, JMLR 2010.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.crowd import RaykarClassifier
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> model = RaykarClassifier(LogisticRegression(C=0.1))
    >>> model.fit(crowd.X_identified, annotations=crowd.annotations).score(
    ...     crowd.X_test, crowd.y_test
    ... ) > 0.6
    True
    """

    __metadata_request__fit: ClassVar = {"annotations": True}
    _parameter_constraints: ClassVar = {
        "classifier": [HasMethods(["fit", "predict_proba"]), None],
        "prior": [StrOptions({"average"}), Interval(numbers.Real, 0, None, closed="left")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
    }

    def __init__(
        self, classifier=None, *, prior="average", max_iter=50, tol=1e-4, missing_label=None, unlabeled_label=None
    ):
        self.classifier = classifier
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label

    @atomic_fit(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, annotations=None):
        """Fit the classifier to votes, to true labels, or to both.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items, best with columns of similar sizes (see `StandardScaler`).
        y : array-like of shape (n_samples,), default=None
            True labels, missing where the truth is unknown; an `AnnotatedTarget` also brings the annotations. None
            knows none of them.
        annotations : array-like or DataFrame of shape (n_samples, n_annotators), or Votes, default=None
            Who answered what, one column per annotator, with missing entries. None leaves `y` alone.

        Returns
        -------
        self : RaykarClassifier
            The fitted classifier. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If neither `y` nor `annotations` holds a label, there is one class only, a table does not fit the others,
            or the classifier takes no weights.
        """
        classifier = LogisticRegression() if self.classifier is None else self.classifier
        if not has_fit_parameter(classifier, "sample_weight"):
            raise ValueError(
                f"classifier is a {type(classifier).__name__}, whose fit takes no sample_weight, but the truth is "
                "known by its probabilities only; give another classifier."
            )
        y, annotations = matched_target(X, y, annotations)
        items = validate_data(self, X)
        votes, truth = check_votes_and_truth(self, X, y, annotations, len(items))
        allowed = (truth < 0)[:, None] | (truth[:, None] == np.arange(len(votes.classes)))
        told = (truth >= 0) | (np.diff(votes.starts) > 0)  # of the others, nobody knows anything
        q, best = vote_shares(votes, allowed), None
        prior = self.prior
        if prior == "average":
            prior = average_prior(count_answers_of(answer_matrix(votes), q, len(votes.annotators)))
        self.history_ = []
        for _ in range(self.max_iter):
            found = self._turn(classifier, items, votes, allowed, told, prior, q)
            gain = found[0] - self.history_[-1] if self.history_ else np.inf
            if gain >= 0:
                best, q = found, found[-1]
                self.history_.append(found[0])
            if gain <= self.tol * told.sum():
                break
        _, self.classifier_, self.confusion_matrices_, _ = best
        self.classes_, self.annotators_, self.n_iter_ = votes.classes, votes.annotators, len(self.history_)

    def predict_proba(self, X):
        """Predict probabilities, by the features alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        own = own_proba(self.classifier_, validate_data(self, X, reset=False))
        return expand(own, self.classifier_.classes_, self.classes_)

    def predict(self, X):
        """Predict labels, by the features alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Most probable labels.
        """
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def _turn(self, classifier, X, votes, allowed, told, prior, q):
        """Objective, classifier, confusion matrices and probabilities (n, C) of the truth after one turn."""
        answers = answer_matrix(votes)
        model = fit_to_proba(classifier, X[told], q[told], votes.classes, _LEAST)
        counts = count_answers_of(answers, q, len(votes.annotators)) + prior
        total = counts.sum(2, keepdims=True)
        confusion = np.divide(counts, total, out=np.full(counts.shape, 1 / counts.shape[2]), where=total > 0)
        log_f = np.log(expand(own_proba(model, X), model.classes_, votes.classes))
        q, evidence = posterior_of(log_joint_of(answers, safe_log(confusion), log_f), allowed)
        objective = evidence[told].sum() + (prior * safe_log(confusion)).sum()
        return float(objective), model, confusion, q
