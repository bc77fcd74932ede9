"""What a team of classifier and experts achieves, and who did the work."""

from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_consistent_length, column_or_1d

from .._sklearn import check_weights
from ..annotations import encode_annotations


def coverage_accuracy_curve(coverage, accuracy, *, human_accuracy=None, classifier_accuracy=None):
    """Coverage-accuracy curve from measured points, with both ends.

    Coverage is the share of items that the classifier decides (L2D-Clusters 5.2). Points are sorted by the
    coverage that was achieved, and points of equal coverage are averaged. A system that cannot control its
    coverage contributes its single point between the two ends.

    Parameters
    ----------
    coverage : array-like of shape (n_points,)
        Achieved coverages, within [0, 1].

    accuracy : array-like of shape (n_points,)
        Team accuracies at these coverages, within [0, 1].

    human_accuracy : float, default=None
        Team accuracy when the classifier is masked, the end at coverage 0. Needed where no point has
        coverage 0, ignored where one has.

    classifier_accuracy : float, default=None
        Accuracy of the classifier alone, the end at coverage 1. Needed where no point has coverage 1,
        ignored where one has.

    Returns
    -------
    coverage : ndarray of shape (n_curve,)
        Increasing coverages from 0 to 1.

    accuracy : ndarray of shape (n_curve,)
        Team accuracies.

    Raises
    ------
    ValueError
        If the two arrays differ in length, a value leaves [0, 1], or an end is neither measured nor given.

    See Also
    --------
    coverage_accuracy_auc : Area under the curve.

    Examples
    --------
    >>> from sklearn_l2d.metrics import coverage_accuracy_curve
    >>> coverage, accuracy = coverage_accuracy_curve(
    ...     [0.6, 0.2], [0.8, 0.9], human_accuracy=0.85, classifier_accuracy=0.7
    ... )
    >>> coverage.tolist(), accuracy.tolist()
    ([0.0, 0.2, 0.6, 1.0], [0.85, 0.9, 0.8, 0.7])
    """
    coverage = np.atleast_1d(np.asarray(coverage, dtype=np.float64)).ravel()
    accuracy = np.atleast_1d(np.asarray(accuracy, dtype=np.float64)).ravel()
    check_consistent_length(coverage, accuracy)
    ends = ((0.0, "human_accuracy", human_accuracy), (1.0, "classifier_accuracy", classifier_accuracy))
    for end, name, value in ends:
        if (coverage == end).any():
            continue
        if value is None:
            raise ValueError(f"coverage: no point has coverage {end:g}. Add one or give {name}.")
        coverage, accuracy = np.append(coverage, end), np.append(accuracy, value)
    for name, values in (("coverage", coverage), ("accuracy", accuracy)):
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError(f"{name}: every value must lie in [0, 1]. Give shares, not percentages.")
    coverage, position, n_equal = np.unique(coverage, return_inverse=True, return_counts=True)
    return coverage, np.bincount(position, weights=accuracy) / n_equal


def coverage_accuracy_auc(coverage, accuracy, *, human_accuracy=None, classifier_accuracy=None):
    """Area under the coverage-accuracy curve on [0, 1], by the trapezoidal rule (L2D-Clusters Table 3).

    Deferring at random draws a straight line, whose area is the mean of its two ends.

    Parameters
    ----------
    coverage : array-like of shape (n_points,)
        Achieved coverages, within [0, 1].

    accuracy : array-like of shape (n_points,)
        Team accuracies at these coverages, within [0, 1].

    human_accuracy : float, default=None
        Team accuracy at coverage 0, as in `coverage_accuracy_curve`.

    classifier_accuracy : float, default=None
        Team accuracy at coverage 1, as in `coverage_accuracy_curve`.

    Returns
    -------
    area : float
        Mean team accuracy over all coverages.

    Raises
    ------
    ValueError
        As `coverage_accuracy_curve`.

    Examples
    --------
    >>> from sklearn_l2d.metrics import coverage_accuracy_auc
    >>> round(coverage_accuracy_auc([0.0, 0.5, 1.0], [0.8, 0.9, 0.7]), 3)
    0.825
    """
    coverage, accuracy = coverage_accuracy_curve(
        coverage, accuracy, human_accuracy=human_accuracy, classifier_accuracy=classifier_accuracy
    )
    return float(np.trapezoid(accuracy, coverage))


class _Service(NamedTuple):
    """Who decides each item, as weights over experts and, last, the classifier."""

    weights: np.ndarray
    deferral: np.ndarray
    fallback: np.ndarray
    sample_weight: np.ndarray


def _serve(deferral, selection, answered, sample_weight):
    deferral = column_or_1d(deferral)
    if not np.issubdtype(deferral.dtype, np.integer):
        raise ValueError("deferral: the codes must be integers, -1 for the classifier.")
    n_experts = answered.shape[1]
    selection = np.eye(n_experts) if selection is None else np.asarray(selection, dtype=np.float64)
    check_consistent_length(deferral, answered, sample_weight)
    if selection.ndim != 2 or selection.shape[1] != n_experts:
        raise ValueError(
            f"selection: its shape is {selection.shape}, but there are {n_experts} experts. "
            "Give one row per target and one column per expert."
        )
    if not (np.isfinite(selection).all() and (selection >= 0).all()):
        raise ValueError("selection: the weights must be finite and non-negative.")
    if deferral.size and (deferral.min() < -1 or deferral.max() >= len(selection)):
        raise ValueError(
            f"deferral: codes run from {deferral.min()} to {deferral.max()}, but there are {len(selection)} "
            "targets. Use 0 to n_targets - 1, and -1 for the classifier."
        )
    human = deferral >= 0
    weights = np.zeros((len(deferral), n_experts + 1))
    weights[human, :-1] = selection[deferral[human]] * answered[human]
    total = weights.sum(axis=1, keepdims=True)
    np.divide(weights, total, out=weights, where=total > 0)
    weights[total[:, 0] == 0, -1] = 1.0
    sample_weight = check_weights(sample_weight, deferral)
    return _Service(weights, deferral, human & (total[:, 0] == 0), sample_weight)


def _correctness(y_true, y_classifier, annotations, missing_label):
    """Whether each expert and, last, the classifier is right, which experts answered, and their names."""
    y_true, y_classifier = column_or_1d(y_true), column_or_1d(y_classifier)
    check_consistent_length(y_true, y_classifier, annotations)
    if missing_label is None and -1 in y_true.tolist():
        missing_label = np.nan  # -1 is a class here, hence a vote
    codes, classes, experts = encode_annotations(annotations, missing_label=missing_label)
    position = {label: code for code, label in enumerate(classes.tolist())}
    truth = np.array([position.get(label, -2) for label in y_true.tolist()], dtype=np.intp)
    correct = np.column_stack([codes == truth[:, None], y_classifier == y_true])
    return correct, codes >= 0, experts


def team_accuracy(
    y_true, deferral, y_classifier, annotations, selection=None, sample_weight=None, *, missing_label=None
):
    """Accuracy of the team, expected over who of the chosen target answers (L2D-Clusters 5.2).

    Selection weights are renormalised over the members of the target who annotated the item; where none
    did, the classifier decides.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.

    deferral : array-like of int of shape (n_samples,)
        Target of each item, -1 for the classifier.

    y_classifier : array-like of shape (n_samples,)
        Labels that the classifier predicts.

    annotations : array-like, masked array or DataFrame of shape (n_samples, n_experts)
        The experts' labels; missing ones as in `encode_annotations`.

    selection : array-like of shape (n_targets, n_experts), default=None
        Weights with which each target picks its members. None means that every expert is a target.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the items.

    missing_label : scalar, default=None
        The marker of a missing annotation. With None, -1 is a vote where `y_true` contains it.

    Returns
    -------
    accuracy : float
        Expected share of items that are decided correctly.

    Raises
    ------
    ValueError
        If lengths or shapes disagree, or `deferral` contains an unknown target.

    Examples
    --------
    >>> from sklearn_l2d.metrics import team_accuracy
    >>> annotations = [[1, 0], [1, 1], [-1, 0]]
    >>> team_accuracy([1, 1, 0], [0, -1, 0], [0, 1, 1], annotations, selection=[[0.5, 0.5]])
    0.8333333333333334
    """
    correct, answered, _ = _correctness(y_true, y_classifier, annotations, missing_label)
    service = _serve(deferral, selection, answered, sample_weight)
    return float(np.average((service.weights * correct).sum(axis=1), weights=service.sample_weight))


def workload_distribution(
    deferral, selection=None, annotations=None, *, n_experts=None, sample_weight=None, missing_label=None
):
    """Share of the items that each expert and the classifier decide (PL2D Fig. 4).

    Parameters
    ----------
    deferral : array-like of int of shape (n_samples,)
        Target of each item, -1 for the classifier; also the experts that `assign_experts` returns.

    selection : array-like of shape (n_targets, n_experts), default=None
        Weights with which each target picks its members. None means that every expert is a target.

    annotations : array-like, masked array or DataFrame of shape (n_samples, n_experts), default=None
        Where given, only members who annotated the item serve it, and the classifier where none did.

    n_experts : int, default=None
        Number of experts; needed where neither `selection` nor `annotations` tells it.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the items.

    missing_label : scalar, default=None
        The marker of a missing annotation, as in `encode_annotations`.

    Returns
    -------
    workload : ndarray of shape (n_experts + 1,)
        Expected shares, the classifier's last; they sum to 1.

    Raises
    ------
    ValueError
        If the number of experts is unknown, shapes disagree, or `deferral` contains an unknown target.

    Examples
    --------
    >>> from sklearn_l2d.metrics import workload_distribution
    >>> workload_distribution([0, 0, -1, -1], selection=[[0.5, 0.5]])
    array([0.25, 0.25, 0.5 ])
    """
    if annotations is not None:
        answered = encode_annotations(annotations, missing_label=missing_label).codes >= 0
    else:
        if selection is not None:
            n_experts = np.shape(selection)[-1]
        if n_experts is None:
            raise ValueError("n_experts: the number of experts is unknown. Give it, or selection or annotations.")
        answered = np.ones((len(deferral), n_experts), dtype=bool)
    service = _serve(deferral, selection, answered, sample_weight)
    return np.average(service.weights, axis=0, weights=service.sample_weight)


def deferral_report(
    y_true,
    deferral,
    y_classifier,
    annotations,
    selection=None,
    *,
    coverage=None,
    workload=None,
    target_names=None,
    sample_weight=None,
    missing_label=None,
):
    """Who got what, how well it went where items were deferred and where not, and what had been asked for.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.

    deferral : array-like of int of shape (n_samples,)
        Target of each item, -1 for the classifier.

    y_classifier : array-like of shape (n_samples,)
        Labels that the classifier predicts.

    annotations : array-like, masked array or DataFrame of shape (n_samples, n_experts)
        The experts' labels; column names name the experts.

    selection : array-like of shape (n_targets, n_experts), default=None
        Weights with which each target picks its members. None means that every expert is a target.

    coverage : float or tuple (low, high), default=None
        Coverage that had been requested.

    workload : array-like of shape (n_experts, 2), default=None
        Bounds of the experts' shares that had been requested.

    target_names : sequence of str, default=None
        Names of the targets; their codes by default.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the items.

    missing_label : scalar, default=None
        The marker of a missing annotation, as in `team_accuracy`.

    Returns
    -------
    report : dict
        Numbers: `coverage` (share routed to the classifier), `requested_coverage` as a pair, `fallback`
        (share of the items that were deferred but that nobody answered, so the classifier decided),
        `team_accuracy`, `classifier_accuracy`, `accuracy_deferred` and `accuracy_kept` (of the team where
        items were deferred or not), `classifier_accuracy_deferred` (what the classifier would have reached
        where items were deferred). Tables, as dicts of columns that `pandas.DataFrame` accepts: `targets`
        (`target`, `share`, `accuracy`, `classifier_accuracy`, `fallback`) and `experts` (`expert`, `share`,
        `accuracy`, `requested_low`, `requested_high`), each with the classifier in its last row. A value
        over no items is NaN.

    Raises
    ------
    ValueError
        As `team_accuracy`.

    Examples
    --------
    >>> from sklearn_l2d.metrics import deferral_report
    >>> report = deferral_report([1, 1, 0, 0], [0, 1, -1, -1], [0, 1, 0, 1], [[1, 0], [1, 1], [0, 0], [0, 0]])
    >>> report["team_accuracy"], report["accuracy_deferred"], report["classifier_accuracy_deferred"]
    (0.75, 1.0, 0.5)
    >>> report["experts"]["share"]
    [0.25, 0.25, 0.5]
    """
    correct, answered, experts = _correctness(y_true, y_classifier, annotations, missing_label)
    weights, deferral, fallback, sample_weight = _serve(deferral, selection, answered, sample_weight)
    n_targets = answered.shape[1] if selection is None else len(selection)
    team = (weights * correct).sum(axis=1)
    classifier = correct[:, -1]
    kept = deferral < 0

    def mean(values, where=1.0):
        total = (sample_weight * where).sum()
        return float((sample_weight * where) @ values / total) if total > 0 else float("nan")

    low, high = (coverage, coverage) if isinstance(coverage, Real) else coverage or (0.0, 1.0)
    bounds = np.tile([0.0, 1.0], (len(experts), 1)) if workload is None else np.asarray(workload, float)
    bounds = np.vstack([bounds, [low, high]])
    routes = [*(deferral == target for target in range(n_targets)), kept]
    return {
        "n_samples": len(deferral),
        "coverage": mean(kept),
        "requested_coverage": (float(low), float(high)),
        "fallback": mean(fallback),
        "team_accuracy": mean(team),
        "classifier_accuracy": mean(classifier),
        "accuracy_deferred": mean(team, ~kept),
        "accuracy_kept": mean(team, kept),
        "classifier_accuracy_deferred": mean(classifier, ~kept),
        "targets": {
            "target": [*(range(n_targets) if target_names is None else target_names), "classifier"],
            "share": [mean(route) for route in routes],
            "accuracy": [mean(team, route) for route in routes],
            "classifier_accuracy": [mean(classifier, route) for route in routes],
            "fallback": [mean(fallback, route) for route in routes],
        },
        "experts": {
            "expert": [*experts.tolist(), "classifier"],
            "share": [mean(column) for column in weights.T],
            "accuracy": [mean(right, column) for right, column in zip(correct.T, weights.T, strict=True)],
            "requested_low": bounds[:, 0].tolist(),
            "requested_high": bounds[:, 1].tolist(),
        },
    }
