"""Report on a fitted team, whose settings need not be told again."""

import numpy as np
from sklearn.utils import check_consistent_length

from .._annotated_target import matched_target
from .._encoding import some
from .._last_step import last_step
from .._rows import same_rows
from .._validation import check_answers, check_truth
from .._votes import Votes
from ._coverage import deferral_report


def team_report(estimator, X, y, annotations=None, *, sample_weight=None):
    """Who got what, how well it went, and what had been asked for: `deferral_report` of a fitted team in one call.

    The team tells its routes, its labels, its targets, its requested shares and its costs.

    Parameters
    ----------
    estimator : deferrer, or a Pipeline or search that ends in one
        Fitted.

    X : array-like of shape (n_samples, n_features)
        Items that were not used for fitting. Rows of pandas objects and votes are matched by their ids.

    y : array-like of shape (n_samples,)
        True labels; an `AnnotatedTarget` brings its annotations along. Items of unknown truth are left out.

    annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
        What the experts answered. Columns with names are matched to the team by them, in whatever order they are.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the items.

    Returns
    -------
    report : dict
        As `deferral_report` returns it, with the numbers and tables that `team_proba` adds, by the team's
        `predict_team_proba`, and those that `error_cost` adds, if the team has one. Experts are in the order of
        `experts_`. `team_accuracy` is the `score` of the team.

    Raises
    ------
    ValueError
        If the team asks several people about an item, annotations are missing or do not fit the experts, no truth is
        known, or `y` holds labels that the team does not know.

    See Also
    --------
    deferral_report : The same from arrays.
    answers_accuracy_curve : Teams that ask several people about an item.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ConfidenceDeferral
    >>> from sklearn_l2d.metrics import team_report
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = ConfidenceDeferral(LogisticRegression(C=0.01), coverage=0.6, random_state=0)
    >>> team = team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    >>> report = team_report(team, crowd.X_test, crowd.y_test, crowd.annotations_test)
    >>> report["requested_coverage"], report["team_accuracy"] > report["classifier_accuracy"]
    ((0.6, 0.6), True)
    >>> pd.DataFrame(report["experts"]).columns.tolist()
    ['expert', 'share', 'accuracy', 'requested_low', 'requested_high']
    """
    deferrer, items = last_step(estimator, X)
    if hasattr(deferrer, "replay"):
        raise ValueError(
            f"{type(deferrer).__name__} asks several people about an item, so that no target has it alone; replay() "
            "and answers_accuracy_curve tell how well it does."
        )
    y, annotations = matched_target(X, y, annotations)
    *_, sample_weight = same_rows(X=X, y=y, sample_weight=sample_weight)
    check_consistent_length(X, y, sample_weight)
    labels, known = check_truth(y, len(y), deferrer.unlabeled_label)
    if not known.any():
        raise ValueError("y knows the truth of no item; the report compares with it.")
    unknown = np.setdiff1d(labels, deferrer.classes_)
    if len(unknown):
        raise ValueError(f"y holds labels {some(unknown.tolist())} that the team does not know; leave these items out.")
    votes = Votes([], [], [], len(y), deferrer.classes_, [])
    if deferrer.n_experts_:
        votes = check_answers(annotations, items, deferrer, "team_report", unknown="wrong")
        votes = deferrer.join_answers(items, votes) if hasattr(deferrer, "join_answers") else votes
    bounds, rows = deferrer.requested_bounds_, np.flatnonzero(known)
    return deferral_report(
        labels,
        deferrer.predict_deferral(items)[rows],
        deferrer.predict(items)[rows],
        votes[rows],
        deferrer.selection_,
        coverage=(bounds.target_lower[-1], bounds.target_upper[-1]),
        workload=np.column_stack([bounds.expert_lower, bounds.expert_upper])[:-1],
        target_names=deferrer.targets_.tolist(),
        team_proba=deferrer.predict_team_proba(items, annotations)[rows],
        error_cost=getattr(deferrer, "error_cost", None),
        classes=deferrer.classes_,
        sample_weight=None if sample_weight is None else np.asarray(sample_weight)[rows],
    )
