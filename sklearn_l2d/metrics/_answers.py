"""Accuracy of panels against the answers that they ask for."""

import numpy as np
from sklearn.utils import check_consistent_length, column_or_1d

from .._annotated_target import matched_target
from .._validation import check_all_known


def answers_accuracy_curve(panels, X, y, annotations=None):
    """Answers per item and accuracy of panels, when their asking is replayed on recorded answers.

    Parameters
    ----------
    panels : sequence of fitted PanelDeferral
        Usually those of `answers_path`; each is one point.

    X : array-like of shape (n_samples, n_features)
        Items that were not used for fitting.

    y : array-like of shape (n_samples,)
        True labels; an `AnnotatedTarget` brings its annotations along.

    annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
        What the experts answered. Only they are asked about an item who answered it.

    Returns
    -------
    answers : ndarray of shape (n_panels,)
        Increasing mean numbers of answers per item.

    accuracy : ndarray of shape (n_panels,)
        Shares of the items whose label is right.

    standard_error : ndarray of shape (n_panels,)
        Standard errors of the accuracies, over the items. The points share the items, so that they err alike.

    Raises
    ------
    TypeError
        If `panels` is no sequence of panels.

    ValueError
        If it is empty, or lengths differ.

    See Also
    --------
    sklearn_l2d.inspection.AnswersAccuracyDisplay : Draws the curve.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import PanelDeferral
    >>> from sklearn_l2d.metrics import answers_accuracy_curve
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = PanelDeferral(LogisticRegression(C=0.01), random_state=0)
    >>> team.fit(
    ...     crowd.X_identified,
    ...     crowd.y_identified,
    ...     crowd.annotations,
    ...     X_unlabeled=crowd.X_anonymous,
    ... )
    PanelDeferral(...)
    >>> panels = team.answers_path([0.0, 1.0, 2.0], crowd.X_anonymous)
    >>> answers, accuracy, _ = answers_accuracy_curve(
    ...     panels, crowd.X_test, crowd.y_test, crowd.annotations_test
    ... )
    >>> [f"{value:.1f}" for value in answers]
    ['0.0', '1.0', '2.1']
    >>> bool(accuracy[0] < accuracy[1] < accuracy[2])
    True
    """
    if not hasattr(panels, "__len__") or not all(hasattr(panel, "replay") for panel in panels):
        raise TypeError("panels is no sequence of fitted PanelDeferral; give what answers_path returns, or [panel].")
    if len(panels) == 0:
        raise ValueError("panels is empty; give at least one fitted PanelDeferral.")
    y, annotations = matched_target(X, y, annotations)
    for panel in panels:
        check_all_known(y, getattr(panel, "unlabeled_label", None), "answers_accuracy_curve")
    y = column_or_1d(y)
    check_consistent_length(X, y)
    points = []
    for panel in panels:
        replay = panel.replay(X, annotations)
        right = replay.labels == y
        points.append((np.mean((replay.asked >= 0).sum(1)), right.mean(), right.std() / np.sqrt(max(len(y) - 1, 1))))
    answers, accuracy, standard_error = np.array(points).T
    order = np.argsort(answers, kind="stable")
    return answers[order], accuracy[order], standard_error[order]
