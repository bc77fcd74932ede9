"""What a team of classifier and experts achieves, and who did the work."""

from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_consistent_length, column_or_1d

from .._by_name import bounds_table, expert_places
from .._encoding import as_frame, check_classes, is_frame, sorted_labels
from .._numerics._matrices import answer_weights, dense_if_small, identity, normalised_rows
from .._rows import same_rows
from .._sklearn import check_weights
from .._validation import answers_among, warn_of_marker
from .._votes import Votes, make_votes


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
    """Who decides each item, as weights of those who answered it; the classifier where nobody of the target did.

    `item`, `expert` and `weight` have an entry for every answer, `classifier` (0 or 1) one for every item.
    """

    item: np.ndarray
    expert: np.ndarray
    weight: np.ndarray
    classifier: np.ndarray
    deferral: np.ndarray
    fallback: np.ndarray
    sample_weight: np.ndarray

    def per_item(self, of_answers, of_classifier):
        """Expected value (n_samples,) of what answers and the classifier are worth."""
        people = np.bincount(self.item, self.weight * of_answers, minlength=len(self.classifier))
        return people + self.classifier * of_classifier

    def per_expert(self, of_answers, n_experts):
        """Sum (n_experts,) over the items that each expert decides, by weight."""
        weight = self.weight * self.sample_weight[self.item]
        return np.bincount(self.expert, weight * of_answers, minlength=n_experts)


def _check_routing(deferral, selection, n_experts):
    """Deferral codes and selection weights that go together."""
    deferral = column_or_1d(np.asarray(deferral))
    if deferral.dtype.kind == "O":  # whole numbers of pandas that may be missing
        deferral = np.array(deferral.tolist())
    if not np.issubdtype(deferral.dtype, np.integer):
        raise ValueError("deferral: the codes must be integers, -1 for the classifier.")
    if selection is None:
        selection = dense_if_small(identity(n_experts))
    elif not issparse(selection):
        selection = np.asarray(selection, dtype=np.float64)
    if selection.ndim != 2 or selection.shape[1] != n_experts:
        raise ValueError(
            f"selection: its shape is {selection.shape}, but there are {n_experts} experts. "
            "Give one row per target and one column per expert."
        )
    weights = selection.data if issparse(selection) else selection
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("selection: the weights must be finite and non-negative.")
    if deferral.size and (deferral.min() < -1 or deferral.max() >= selection.shape[0]):
        raise ValueError(
            f"deferral: codes run from {deferral.min()} to {deferral.max()}, but there are {selection.shape[0]} "
            "targets. Use 0 to n_targets - 1, and -1 for the classifier."
        )
    return deferral, selection


def _by_expert(selection, experts):
    """Selection weights with their columns in the order of `experts`, where a DataFrame names them."""
    selection = as_frame(selection)
    places = expert_places(selection.columns.tolist(), experts, "selection") if is_frame(selection) else None
    if places is None:
        return selection
    weights = np.zeros((len(selection), len(experts)))  # who is left out is never picked
    weights[:, places] = selection.to_numpy(dtype=np.float64)
    return weights


def _serve(deferral, selection, votes, sample_weight):
    selection = _by_expert(selection, votes.annotators)
    deferral, selection = _check_routing(deferral, selection, len(votes.annotators))
    check_consistent_length(deferral, votes, sample_weight)
    weight = answer_weights(selection, deferral, votes)
    total = np.bincount(votes.item, weight, minlength=len(votes))
    weight = np.divide(weight, total[votes.item], out=np.zeros_like(weight), where=total[votes.item] > 0)
    sample_weight = check_weights(sample_weight, deferral)
    alone = total == 0
    return _Service(votes.item, votes.annotator, weight, alone * 1.0, deferral, (deferral >= 0) & alone, sample_weight)


def _marker(y_true, annotations, missing_label):
    """Marker of a missing annotation; where -1 is a true label, hence a class, it is a vote."""
    y_true = column_or_1d(y_true)
    if missing_label is not None or isinstance(annotations, Votes) or -1 not in y_true.tolist():
        return missing_label
    warn_of_marker(
        y_true, "y_true", "leave these items out; if it is a class, missing_label=numpy.nan says so, and -1 is a vote"
    )
    return np.nan


def _correctness(y_true, y_classifier, annotations, missing_label):
    """Votes of the experts, which of them are right, and where the classifier is."""
    y_true, y_classifier = column_or_1d(y_true), column_or_1d(y_classifier)
    votes = make_votes(annotations, None, missing_label)
    check_consistent_length(y_true, y_classifier, votes)
    position = {label: code for code, label in enumerate(votes.classes.tolist())}
    truth = np.array([position.get(label, -2) for label in y_true.tolist()], dtype=np.intp)
    return votes, votes.label == truth[votes.item], y_classifier == y_true


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

    selection : array-like, sparse array or DataFrame of shape (n_targets, n_experts), default=None
        Weights with which each target picks its members; columns with names are matched to those of `annotations`. None
        means that every expert is a target.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the items.

    missing_label : scalar or collection of scalars, default=None
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
    y_true, deferral, y_classifier, annotations, sample_weight = same_rows(
        y_true=y_true,
        deferral=deferral,
        y_classifier=y_classifier,
        annotations=annotations,
        sample_weight=sample_weight,
    )
    marker = _marker(y_true, annotations, missing_label)
    votes, right, classifier = _correctness(y_true, y_classifier, annotations, marker)
    service = _serve(deferral, selection, votes, sample_weight)
    return float(np.average(service.per_item(right, classifier), weights=service.sample_weight))


def workload_distribution(
    deferral, selection=None, annotations=None, *, n_experts=None, sample_weight=None, missing_label=None
):
    """Share of the items that each expert and the classifier decide (PL2D Fig. 4).

    Parameters
    ----------
    deferral : array-like of int of shape (n_samples,)
        Target of each item, -1 for the classifier; also the experts that `assign_experts` returns.

    selection : array-like, sparse array or DataFrame of shape (n_targets, n_experts), default=None
        Weights with which each target picks its members; columns with names are matched to those of `annotations`. None
        means that every expert is a target.

    annotations : array-like, masked array or DataFrame of shape (n_samples, n_experts), default=None
        Where given, only members who annotated the item serve it, and the classifier where none did.

    n_experts : int, default=None
        Number of experts; needed where neither `selection` nor `annotations` tells it.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the items.

    missing_label : scalar or collection of scalars, default=None
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
    deferral, annotations, sample_weight = same_rows(
        deferral=deferral, annotations=annotations, sample_weight=sample_weight
    )
    if annotations is not None:
        votes = make_votes(annotations, None, missing_label)
        service = _serve(deferral, selection, votes, sample_weight)
        people = service.per_expert(1.0, len(votes.annotators))
        total = service.sample_weight.sum()
        return np.append(people, service.sample_weight @ service.classifier) / total
    if selection is not None:
        n_experts = np.shape(selection)[-1]
    if n_experts is None:
        raise ValueError("n_experts: the number of experts is unknown. Give it, or selection or annotations.")
    deferral, selection = _check_routing(deferral, selection, n_experts)
    check_consistent_length(deferral, sample_weight)
    sample_weight = check_weights(sample_weight, deferral)
    targets = np.bincount(deferral + 1, sample_weight, minlength=selection.shape[0] + 1)[1:] / sample_weight.sum()
    people = targets @ normalised_rows(selection)
    return np.append(people, 1 - people.sum())


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
    team_proba=None,
    error_cost=None,
    classes=None,
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

    selection : array-like, sparse array or DataFrame of shape (n_targets, n_experts), default=None
        Weights with which each target picks its members; columns with names are matched to those of `annotations`. None
        means that every expert is a target.

    coverage : float or tuple (low, high), default=None
        Coverage that had been requested.

    workload : pair, array-like of shape (n_experts, 2), mapping or None, default=None
        Bounds of the experts' shares that had been requested: a mapping, or a DataFrame with an index, names experts.

    target_names : sequence of str, default=None
        Names of the targets; their codes by default.

    team_proba : array-like of shape (n_samples, n_classes), default=None
        Probabilities by the classifier and all answers together, as `predict_team_proba` returns them.

    error_cost : array-like of shape (n_classes, n_classes), default=None
        Cost of deciding for the class of the column where that of the row is true.

    classes : array-like of shape (n_classes,), default=None
        Labels in the order of `team_proba` and `error_cost`; None takes all that occur in the other arguments, sorted.
        Annotations that are none of them count as answers that cannot be right, which a warning tells; they cost as
        much as the worst one.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the items.

    missing_label : scalar or collection of scalars, default=None
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
        `accuracy`, `requested_low`, `requested_high`), each with the classifier in its last row, and
        `confusion` (`truth`, one column per class with the share of the items that the classifier decided for
        it, and `deferred`; the column of a class of one of these two names is `class truth` or
        `class deferred`). A value over no items is NaN.

        With `team_proba`, also `combined_accuracy`, `combined_confidence` (mean of the largest probability)
        and `calibration_error` (mean absolute difference of the two in ten groups of equally many items), and
        the tables `answers` (by the number of people who answered: `answers`, `share`, `accuracy`,
        `confidence`) and `calibration` (the ten groups, from the least sure on: `confidence`, `accuracy`,
        `share`). With `error_cost`, also `team_cost`, `classifier_cost` and, if there are probabilities,
        `combined_cost`, the mean cost of the decisions; those by `team_proba` are then of the least expected
        cost.

    Raises
    ------
    ValueError
        As `team_accuracy`.
    TypeError
        If the first argument is a team.

    See Also
    --------
    team_report : The same from a fitted team.

    Examples
    --------
    >>> from sklearn_l2d.metrics import deferral_report
    >>> report = deferral_report(
    ...     [1, 1, 0, 0], [0, 1, -1, -1], [0, 1, 0, 1], [[1, 0], [1, 1], [0, 0], [0, 0]]
    ... )
    >>> (
    ...     report["team_accuracy"],
    ...     report["accuracy_deferred"],
    ...     report["classifier_accuracy_deferred"],
    ... )
    (0.75, 1.0, 0.5)
    >>> report["experts"]["share"]
    [0.25, 0.25, 0.5]
    """
    if hasattr(y_true, "get_params"):
        raise TypeError(
            f"y_true is an estimator of type {type(y_true).__name__}, not labels; team_report(team, X, y, annotations) "
            "reports on a fitted team."
        )
    y_true, deferral, y_classifier, annotations, team_proba, sample_weight = same_rows(
        y_true=y_true,
        deferral=deferral,
        y_classifier=y_classifier,
        annotations=annotations,
        team_proba=team_proba,
        sample_weight=sample_weight,
    )
    marker = _marker(y_true, annotations, missing_label)
    if classes is not None:
        classes = check_classes(classes)
        unknown = np.setdiff1d(_report_classes(y_true, y_classifier), classes)
        if len(unknown):
            raise ValueError(f"classes lacks the labels {unknown.tolist()}, which occur; add them in their order.")
        annotations = answers_among(annotations, classes, marker, unknown="wrong")
    votes, right, classifier = _correctness(y_true, y_classifier, annotations, marker)
    service = _serve(deferral, selection, votes, sample_weight)
    deferral, fallback, sample_weight = service.deferral, service.fallback, service.sample_weight
    experts = votes.annotators
    n_targets = len(experts) if selection is None else np.shape(selection)[0]
    team = service.per_item(right, classifier)
    kept = deferral < 0
    served, served_right = (service.per_expert(worth, len(experts)) for worth in (1.0, right))
    accuracy = np.divide(served_right, served, out=np.full(len(experts), np.nan), where=served > 0)

    def mean(values, where=1.0):
        total = (sample_weight * where).sum()
        return float((sample_weight * where) @ values / total) if total > 0 else float("nan")

    low, high = (coverage, coverage) if isinstance(coverage, Real) else coverage or (0.0, 1.0)
    bounds = np.vstack([bounds_table(workload, experts, "workload"), [low, high]])
    route = np.where(kept, n_targets, deferral)  # the classifier last
    n_routed = np.bincount(route, sample_weight, minlength=n_targets + 1)

    def per_route(values):
        total = np.bincount(route, sample_weight * values, minlength=n_targets + 1)
        return np.divide(total, n_routed, out=np.full(n_targets + 1, np.nan), where=n_routed > 0).tolist()

    if classes is None:
        classes = _report_classes(y_true, y_classifier, votes.classes)
        votes = votes.recode(classes)
    truth, chosen = (np.searchsorted(classes, column_or_1d(labels)) for labels in (y_true, y_classifier))
    error_cost = _check_square(error_cost, len(classes))
    further = {}
    if error_cost is not None:
        worst = np.column_stack([error_cost, error_cost.max(1)])  # an answer that is none of the classes costs most
        cost = service.per_item(worst[truth[votes.item], votes.label], error_cost[truth, chosen])
        further |= {"team_cost": mean(cost), "classifier_cost": mean(error_cost[truth, chosen])}
    if team_proba is not None:
        further |= _combined(_check_proba(team_proba, len(truth), classes), truth, votes, error_cost, sample_weight)
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
            "share": (n_routed / sample_weight.sum()).tolist(),
            "accuracy": per_route(team),
            "classifier_accuracy": per_route(classifier),
            "fallback": per_route(fallback),
        },
        "experts": {
            "expert": [*experts.tolist(), "classifier"],
            "share": [*(served / sample_weight.sum()).tolist(), mean(service.classifier)],
            "accuracy": [*accuracy.tolist(), mean(classifier, service.classifier)],
            "requested_low": bounds[:, 0].tolist(),
            "requested_high": bounds[:, 1].tolist(),
        },
        "confusion": _confusion(truth, np.where(kept, chosen, len(classes)), classes, sample_weight),
    } | further


def _report_classes(*labels):
    """All labels that occur, sorted."""
    return sorted_labels({label for part in labels for label in column_or_1d(part).tolist()}, "y_true")


def _check_square(error_cost, n_classes):
    if error_cost is None:
        return None
    error_cost = np.asarray(error_cost, dtype=float)
    if error_cost.shape != (n_classes, n_classes):
        raise ValueError(
            f"error_cost has shape {error_cost.shape}, but there are {n_classes} classes; give one row and one column "
            "for each, and name them by classes=."
        )
    return error_cost


def _check_proba(proba, n_samples, classes):
    proba = np.asarray(proba, dtype=float)
    if proba.shape != (n_samples, len(classes)) or not (np.isfinite(proba) & (proba >= 0)).all():
        raise ValueError(
            f"team_proba has shape {proba.shape}; pass finite, non-negative numbers of shape "
            f"{(n_samples, len(classes))}, one column for each of the classes {classes.tolist()}, or name these by "
            "classes=."
        )
    return proba


def _combined(proba, truth, votes, error_cost, weight):
    """What labels by probabilities are worth, by the number of answers and by how sure they are."""
    label = proba.argmax(1) if error_cost is None else (proba @ error_cost).argmin(1)
    right, confidence = label == truth, proba[np.arange(len(label)), label]
    n_answers = np.bincount(votes.item, minlength=len(truth))
    order = np.argsort(confidence, kind="stable")
    tenth = np.empty(len(truth), dtype=int)
    tenth[order] = np.minimum(10 * (np.cumsum(weight[order]) - weight[order] / 2) / weight.sum(), 9).astype(int)
    by_answers, by_tenth = (_by_group(group, right, confidence, weight) for group in (n_answers, tenth))
    gaps = np.abs(np.subtract(by_tenth["accuracy"], by_tenth["confidence"]))
    report = {
        "combined_accuracy": float(np.average(right, weights=weight)),
        "combined_confidence": float(np.average(confidence, weights=weight)),
        "calibration_error": float(np.average(gaps, weights=by_tenth["share"])),
        "answers": {"answers": by_answers.pop("group"), **by_answers},
        "calibration": {name: by_tenth[name] for name in ("confidence", "accuracy", "share")},
    }
    if error_cost is not None:
        report["combined_cost"] = float(np.average(error_cost[truth, label], weights=weight))
    return report


def _by_group(group, right, confidence, weight):
    """Share, accuracy and mean confidence of the items of every group that has any weight."""
    total = np.bincount(group, weight)
    some = np.flatnonzero(total > 0)
    accuracy, sureness = (np.bincount(group, weight * values)[some] / total[some] for values in (right, confidence))
    share = total[some] / total.sum()
    columns = {"group": some, "share": share, "accuracy": accuracy, "confidence": sureness}
    return {name: values.tolist() for name, values in columns.items()}


def _confusion(truth, decided, classes, weight):
    """Shares of the items by true class (rows) and decision of the classifier, "deferred" last."""
    n_classes = len(classes)
    cells = np.bincount(truth * (n_classes + 1) + decided, weight, minlength=n_classes * (n_classes + 1))
    cells = cells.reshape(n_classes, n_classes + 1) / weight.sum()
    columns = [f"class {label}" if label in ("truth", "deferred") else label for label in classes.tolist()]
    return {"truth": classes.tolist(), **dict(zip([*columns, "deferred"], cells.T.tolist(), strict=True))}
