"""Coverage-accuracy points of a fitted deferrer, whether or not it can move its coverage."""

import numpy as np

from .._last_step import last_step, split_steps
from .._validation import check_answers, of_known_truth
from ._coverage import coverage_accuracy_curve, team_accuracy


def coverage_accuracy_points(estimator, X, y, annotations=None, *, coverages=None, X_unlabeled=None):
    """Points of the coverage-accuracy curve of a fitted deferrer, with both ends (L2D-Clusters 5.2).

    A deferrer contributes the one point that it has; with `coverages`, one that has a `coverage_path` contributes its
    points there instead. The end at coverage 0 is the same deferrer with the classifier masked, so that it always
    asks the target that it prefers, and the end at coverage 1 is the classifier alone.

    Parameters
    ----------
    estimator : deferrer, or a Pipeline or search that ends in one
        Fitted with experts.

    X : array-like of shape (n_samples, n_features)
        Items that were not used for fitting.

    y : array-like of shape (n_samples,)
        True labels; an `AnnotatedTarget` brings its annotations along. Items of unknown truth are left out.

    annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
        What the experts answered.

    coverages : array-like of float, default=None
        Requested coverages, for a deferrer with a `coverage_path`; others do without. None asks for the deferrer's
        own point.

    X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
        Items on which the shares are calibrated, as in `coverage_path`.

    Returns
    -------
    coverage : ndarray of shape (n_points,)
        Increasing achieved coverages, from 0 to 1.

    accuracy : ndarray of shape (n_points,)
        Expected team accuracies over the draw of a member of the target.

    Raises
    ------
    ValueError
        If the deferrer has no experts, or annotations are missing.

    See Also
    --------
    coverage_accuracy_auc : Area under the curve.
    sklearn_l2d.deferral.RankedDeferral : Gives a `coverage_path` to deferrers without one.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import BestExpert
    >>> from sklearn_l2d.metrics import coverage_accuracy_auc, coverage_accuracy_points
    >>> crowd = load_digits_crowd(random_state=0)
    >>> best = BestExpert(LogisticRegression(C=0.01))
    >>> best = best.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    >>> coverage, accuracy = coverage_accuracy_points(
    ...     best, crowd.X_test, crowd.y_test, crowd.annotations_test
    ... )
    >>> coverage.tolist()
    [0.0, 1.0]
    >>> bool(coverage_accuracy_auc(coverage, accuracy) == accuracy.mean())  # a straight line
    True
    """
    _, deferrer = split_steps(estimator)
    # the items of a pipeline may have lost their ids: what belongs together is told by X
    X, y, annotations, _ = of_known_truth(X, y, annotations, None, deferrer.unlabeled_label)
    _, items = last_step(estimator, X)
    if deferrer.n_experts_ == 0:
        raise ValueError(f"{type(deferrer).__name__} has no experts, so it has no curve; fit it with annotations.")
    systems = [deferrer]
    if coverages is not None and hasattr(deferrer, "coverage_path"):
        if X_unlabeled is not None:
            _, X_unlabeled = last_step(estimator, X_unlabeled)
        systems = deferrer.coverage_path(coverages, X_unlabeled)
    return coverage_accuracy_curve(
        [np.mean(system.predict_deferral(items) < 0) for system in systems],
        [system.score(items, y, annotations=annotations) for system in systems],
        human_accuracy=_accuracy_without_classifier(deferrer, items, y, annotations),
        classifier_accuracy=np.mean(deferrer.predict(items) == y),
    )


def _accuracy_without_classifier(deferrer, X, y, annotations):
    """Accuracy of a team that always asks the target it prefers; the classifier decides where nobody of it answered."""
    # not by probabilities: they are all zero where the classifier is certain
    asked = deferrer.decision_function(X)[:, :-1].argmax(1)
    votes = check_answers(annotations, X, deferrer, "coverage_accuracy_points", unknown="wrong")
    votes = deferrer.join_answers(X, votes, asked) if hasattr(deferrer, "join_answers") else votes
    return team_accuracy(y, asked, deferrer.predict(X), votes, deferrer.selection_)
