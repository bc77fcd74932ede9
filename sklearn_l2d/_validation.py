"""Checks that estimators share: true labels, names of experts, and annotations by name."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.utils import assert_all_finite, check_consistent_length, indexable
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ._annotated_target import matched_target
from ._by_name import are_numbers, expert_places
from ._encoding import (
    as_frame,
    check_row_count,
    factorize,
    has_names,
    is_na,
    known_labels,
    label_array,
    some,
    sorted_names,
    unseen_labels,
)
from ._long_tables import is_long
from ._rows import rows_of_items, same_rows
from ._sklearn import check_weights, count_rows, take_rows, warn
from ._votes import Votes, make_votes, placed


def check_memory(needed, what, fix):
    """Refuse work that needs more bytes than are free, where the system says how many are."""
    free = free_memory()
    if free is not None and needed > free:
        raise MemoryError(f"{what} needs about {needed / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free; {fix}.")


def free_memory():
    """Bytes that this process may still take, None where the system does not say."""
    try:
        meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(meminfo["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
    try:  # a container may have less than the machine; its cached files can be given back
        group = Path("/sys/fs/cgroup")
        cached = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())["inactive_file"]
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, KeyError, ValueError):  # there is no limit
        return free
    return min(free, limit - used + int(cached))


def check_labels(y, n_rows):
    """Check true labels, all of which must be known, and return them as an array (n,)."""
    y = column_or_1d(label_array(y), warn=True)
    if y.dtype.kind == "O":
        y = _of_one_type(y)
    check_consistent_length(np.empty(n_rows), y)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return y


def _of_one_type(labels):
    """Labels among objects as an array of their own type: numbers are not text, and none may be missing."""
    given = labels.tolist()
    if any(map(is_na, given)):
        raise ValueError("y holds missing labels, where each must be known; leave these items out.")
    return labels if any(isinstance(label, str) for label in given) else np.array(given)


def check_truth(y, n_rows, unlabeled_label):
    """Check true labels of which some may be unknown.

    Returns
    -------
    labels : ndarray of shape (n_known,)
        The known ones.
    known : ndarray of bool of shape (n_rows,)
        Which items they belong to.
    """
    labels, known = _known(y, unlabeled_label)
    if known.all():
        return check_labels(y, n_rows), np.ones(n_rows, dtype=bool)
    check_consistent_length(np.empty(n_rows), known)
    return check_labels(labels, len(labels)) if len(labels) else labels, known


def warn_of_marker(y, name="y", fix="pass unlabeled_label=-1; if it is a class, unlabeled_label=numpy.nan says so"):
    """Warn of labels that are 0, 1, ... and -1, which is more often a marker than a class."""
    classes = np.unique(y)
    if len(classes) > 2 and classes.dtype.kind in "iuf" and np.array_equal(classes, np.arange(len(classes)) - 1):
        warn(
            f"{name} holds -1 beside 0 to {len(classes) - 2}; it is taken as a class. If it marks an unknown truth, "
            f"{fix}."
        )


class WeightedRows(NamedTuple):
    """Rows of a fit, of which each counts.

    Attributes
    ----------
    X, y, annotations
        As they were given, without the rows of weight 0.
    weights : ndarray of shape (n,) or None
        None if all count alike.
    groups : ndarray of int of shape (n,) or None
        Numbers of what they come from, None if each is drawn by itself.
    place : ndarray of int of shape (n,) or None
        Rows among those that were given, None if all of them count.
    """

    X: object
    y: object
    annotations: object
    weights: np.ndarray | None
    groups: np.ndarray | None
    place: np.ndarray | None


def weighted_rows(X, y, annotations, sample_weight, groups=None):
    """`WeightedRows` of a fit, whose arguments are already matched but for the last two."""
    if groups is not None:
        *_, groups = same_rows(X=X, y=y, annotations=annotations, groups=groups)
        groups = group_codes(groups, count_rows(X))
    if sample_weight is None:
        return WeightedRows(X, y, annotations, None, groups, None)
    *_, annotations, sample_weight = same_rows(X=X, y=y, annotations=annotations, sample_weight=sample_weight)
    weight = check_weights(sample_weight, X)
    if (weight > 0).all():
        return WeightedRows(X, y, annotations, weight, groups, None)
    check_consistent_length(X, y)
    rows = np.flatnonzero(weight)
    if annotations is not None:
        annotations = rows_of_items(annotations, rows, len(weight))
    X, y = (None if part is None else take_rows(part, rows) for part in (X, y))
    return WeightedRows(X, y, annotations, weight[rows], None if groups is None else groups[rows], rows)


def group_codes(groups, n_rows):
    """Numbers (n_rows,) of the groups of items, in the order of the sorted labels of the groups."""
    labels = column_or_1d(label_array(groups), warn=True)
    if len(labels) != n_rows:
        raise ValueError(f"groups has {len(labels)} entries, but X has {n_rows} items; pass the group of each item.")
    names, code = factorize(labels, "groups")
    missing = np.array([is_na(name) for name in names], dtype=bool)
    if missing.any():
        raise ValueError(
            f"groups is missing for {int(missing[code].sum())} of {n_rows} items; give each item that stands alone a "
            "group of its own."
        )
    place = {name: number for number, name in enumerate(sorted_names(names))}
    return np.array([place[name] for name in names])[code]


def check_several_groups(groups, which=""):
    """Refuse groups of labelled items, numbers (n,) or None, of which there is one only."""
    if groups is not None and len(np.unique(groups)) < 2:
        raise ValueError(
            f"groups is the same for all items of known truth{which}, so that none can be judged by what others teach; "
            "label items of more groups, or leave groups out."
        )


def row_weights(class_weight, y, sample_weight=None):
    """Weights (n,) of rows by their class, times their own, by which "balanced" counts the classes, too.

    Raises
    ------
    ValueError
        If a class of `y` has a negative weight, or all weights are 0.
    """
    if hasattr(class_weight, "items"):
        class_weight = dict(class_weight.items())
    if sample_weight is not None and isinstance(class_weight, str):
        classes, codes = np.unique(y, return_inverse=True)
        mass = np.bincount(codes, sample_weight)
        class_weight = dict(zip(classes.tolist(), sample_weight.sum() / (len(classes) * mass), strict=True))
    weight = compute_sample_weight(class_weight, y)
    if weight.min() < 0 or weight.max() == 0:
        raise ValueError(
            f"class_weight={class_weight!r} is negative for a class in y, or zero for all; raise it above 0."
        )
    return weight if sample_weight is None else weight * sample_weight


def of_known_truth(X, y, annotations, sample_weight, unlabeled_label):
    """The matched arguments of a comparison with the truth, without the items where it is unknown.

    Parameters
    ----------
    X, y, annotations, sample_weight
        As for the `score` of a deferrer.
    unlabeled_label : object
        Marker of an unknown truth in `y`.

    Returns
    -------
    X, y, annotations, sample_weight
        Rows that belong together; `y` is an array.
    """
    y, annotations = matched_target(X, y, annotations)
    *_, sample_weight = same_rows(X=X, y=y, sample_weight=sample_weight)
    check_consistent_length(X, y, sample_weight)
    y = column_or_1d(y) if getattr(y, "ndim", 1) == 2 else y  # without a warning
    labels, known = check_truth(y, len(y), unlabeled_label)
    if not known.any():
        raise ValueError("y knows the truth of no item; score compares with it.")
    if known.all():
        return X, labels, annotations, sample_weight
    rows = np.flatnonzero(known)
    sample_weight = None if sample_weight is None else take_rows(sample_weight, rows)
    annotations = None if annotations is None else rows_of_items(annotations, rows, len(known))
    return take_rows(indexable(X)[0], rows), labels, annotations, sample_weight


def check_all_known(y, unlabeled_label, method):
    """Refuse true labels of which some are unknown."""
    n_unknown = int((~_known(y, unlabeled_label)[1]).sum())
    if n_unknown:
        raise ValueError(
            f"y leaves the truth of {n_unknown} items open, but {method} compares with it; leave these items out."
        )


def _known(y, unlabeled_label):
    labels = label_array(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim != 1 or labels.dtype.kind not in "biufOUST":  # no labels at all, which is refused elsewhere
        return labels, np.ones(1, dtype=bool)
    return known_labels(labels, unlabeled_label)


def name_list(experts, known=(), *, repeats=False):
    """One or several names of experts as an object array; a tuple is one name if that is `known`, else several.

    Names that repeat are refused, unless `repeats` takes each of them once.
    """
    is_one = np.isscalar(experts) or not np.iterable(experts) or (isinstance(experts, tuple) and experts in set(known))
    given = [experts] if is_one else list(experts)
    given = list(dict.fromkeys(given)) if repeats else given
    names = np.empty(len(given), dtype=object)
    names[:] = given
    if len(set(given)) < len(given):
        raise ValueError(f"experts={given} holds a name twice; name everybody once.")
    return names


def votes_beside(X, annotations, classes, missing_label, *, extend=False, name="annotations", of="X"):
    """`make_votes` in the rows of `X`, after which they need no names; errors call them `name` and `of`."""
    by_answer = not isinstance(annotations, Votes) and is_long(annotations)
    if by_answer and hasattr(annotations, "columns") and not len(annotations):  # nobody has answered yet
        annotations = Votes([], [], [], count_rows(X), [], [])
    votes = make_votes(annotations, classes, missing_label, extend=extend)
    _, votes = same_rows(**{of: X, name: votes})
    if by_answer and len(votes) != count_rows(X):
        raise ValueError(
            f"{name} has a row for each answer, to {len(votes)} items, but {of} has {count_rows(X)}; make votes of it "
            f"by encode_votes(table, tasks=...) with the names of the rows of {of}, which splits can cut."
        )
    check_row_count(votes, count_rows(X), name)
    return votes.without_tasks()


def check_known_truth(estimator, y, n_items, votes):
    """Known labels, and a mask (n_items,) of their items; `y` may be None where there are votes."""
    if y is None and votes is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None, and there are no "
            "annotations; pass one or both."
        )
    if y is None:
        return np.empty(0), np.zeros(n_items, dtype=bool)
    return check_truth(label_array(y), n_items, estimator.unlabeled_label)


def truth_codes(labels, known, classes):
    """Codes (n,) of the true classes, -1 where `known` (n,) says that they are unknown; refused for a single class."""
    if len(classes) < 2:
        raise ValueError(
            f"y and annotations hold {len(classes)} class(es), {classes.tolist()}; a classifier needs at least two."
        )
    truth = np.full(len(known), -1, dtype=np.int64)
    truth[known] = np.searchsorted(classes, labels)
    return truth


def check_votes_and_truth(estimator, X, y, annotations, n_items):
    """`Votes` on the items of a fit that needs one of votes and labels, and codes (n_items,) of the true classes.

    Parameters
    ----------
    estimator : estimator
        With `missing_label` and `unlabeled_label`.
    X : array-like or DataFrame of n_items rows
        Items.
    y : array-like of shape (n_items,), or None
        True labels, of which some may be unknown.
    annotations : array-like, DataFrame, Votes or None
        Who answered what.
    n_items : int
        Number of items.

    Returns
    -------
    votes : Votes
        With the classes of both.
    truth : ndarray of int of shape (n_items,)
        Positions in the classes, -1 where the truth is unknown.
    """
    labels, known = check_known_truth(estimator, y, n_items, annotations)
    classes = np.unique(labels)
    if annotations is None:
        votes = Votes([], [], [], n_items, classes, [])
    else:
        given = classes if len(classes) else None
        votes = votes_beside(X, annotations, given, estimator.missing_label, extend=True)
    return votes, truth_codes(labels, known, votes.classes)


def seated(votes, X, estimator, name="X"):
    """The same votes among the annotators of a fit, who come first, and new ones.

    Parameters
    ----------
    votes : Votes
        Made of `X`.
    X : array-like, DataFrame or Votes
        What has names is matched by them; else its columns are those of the fit.
    estimator : estimator
        With `annotators_`.
    name : str, default="X"
        Name of the argument, for the error message.
    """
    known, names = estimator.annotators_.tolist(), votes.annotators.tolist()
    if not has_names(X) or are_numbers(names, known):
        if len(names) != len(known):
            raise ValueError(
                f"{name} has {len(names)} features, but {type(estimator).__name__} is expecting {len(known)} features "
                "as input: one column per annotator in the order of annotators_, or a DataFrame with their names."
            )
        return placed(votes, np.arange(len(known)), estimator.annotators_)
    place = {label: position for position, label in enumerate(known)}
    places = np.array([place.setdefault(label, len(place)) for label in names], dtype=np.int64)
    everybody = np.empty(len(place), dtype=object)
    everybody[:] = list(place)
    return placed(votes, places, everybody)


def check_annotations(annotations, classes, missing_label, X, silence):
    """`Votes` of a fit; labels that are no classes become classes, since few rows rarely show all.

    Parameters
    ----------
    annotations : array-like, DataFrame, Votes or None
        As given; None means that there are no experts.
    classes : ndarray of shape (n_classes,)
        Known classes.
    missing_label : object
        As in `annotations.encode_annotations`.
    X : array-like or DataFrame of n rows
        Items.
    silence : str
        How experts without any annotation are treated, for the warning that names them.

    Returns
    -------
    votes : Votes
    """
    if annotations is None:
        return Votes([], [], [], count_rows(X), classes, [])
    votes = votes_beside(X, annotations, classes, missing_label, extend=True)
    new = np.setdiff1d(votes.classes, classes)
    if len(new):
        warn(
            f"annotations hold labels that y lacks, {some(new.tolist())}; they are taken as classes. If they are "
            "misspelt, correct them."
        )
    silent = votes.annotators[votes.n_answers == 0]
    if len(silent) and len(silent) == len(votes.annotators):
        raise ValueError("annotations are all missing; pass some, or None to go without experts.")
    if len(silent):
        warn(f"the experts {list(silent)} have no annotation: {silence}.")
    return votes


_UNKNOWN = object()  # stands for all labels that are no classes, and is equal to no true label
_TREATMENT = {"left out": "they are left out", "wrong": "they count as answers that cannot be right"}


def answers_among(annotations, classes, missing_label=None, *, unknown):
    """`Votes` for classes that are known, of answers among which there may be other labels.

    A rare label that training did not see must not cost all answers: it is told once, by a warning. Labels of another
    kind altogether are refused: text among numbers, or several labels of which none is known.

    Parameters
    ----------
    annotations : array-like, DataFrame or Votes
        Answers.
    classes : ndarray of shape (n_classes,)
        Known classes.
    missing_label : object, default=None
        As in `annotations.encode_annotations`.
    unknown : {"left out", "wrong"}
        Whether answers that are no classes are left out, or become votes for one more class, which is no label.

    Returns
    -------
    votes : Votes
        With `classes`; and, if there are unknown answers that are not left out, with one more class.
    """
    if isinstance(annotations, Votes) and annotations.classes[-1:].tolist() == [_UNKNOWN]:  # as returned, and told
        return annotations if unknown == "wrong" else annotations.among(classes)
    votes = make_votes(annotations, classes, missing_label, extend=True)
    place = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    code = np.array([place.get(label, len(place)) for label in votes.classes.tolist()], dtype=np.int64)
    strange = (code == len(place))[votes.label]
    if not strange.any():
        return votes.recode(classes)
    labels = votes.classes[np.unique(votes.label[strange])].tolist()
    people = votes.annotators[np.unique(votes.annotator[strange])]
    if strange.all() and len(labels) > 1:
        raise unseen_labels(people, labels, classes)
    warn(
        f"{int(strange.sum())} of {len(strange)} answers, by {some(people.tolist())}, are labels that are no classes, "
        f"{some(labels)}: {_TREATMENT[unknown]}. If they are misspelt, correct them; the classes are "
        f"{some(list(place))}."
    )
    if unknown == "left out":
        return votes.among(classes)
    return votes.with_labels(code[votes.label], np.array([*place, _UNKNOWN], object))


def check_answers(annotations, X, deferrer, method, unknown="left out"):
    """Answers of a team as `Votes` whose annotators are the experts of a fitted deferrer.

    Parameters
    ----------
    annotations : array-like, DataFrame or Votes
        Columns in the order of `experts_`; those with names are matched by name, and may be fewer.
    X : array-like or DataFrame of n rows
        Items.
    deferrer : deferrer
        Fitted.
    method : str
        Name of the calling method, for the error message.
    unknown : {"left out", "wrong", "refused"}, default="left out"
        What happens to answers that are no classes: as in `answers_among`, or an error.
    """
    experts = deferrer.experts_
    if annotations is None:
        raise ValueError(
            f"fitted with {len(experts)} experts, but {method} received no annotations. Call "
            "sklearn.set_config(enable_metadata_routing=True) so that they reach it through a search or a "
            "pipeline, or pass y=AnnotatedTarget(y, annotations)."
        )
    annotations, named = as_frame(annotations), has_names(annotations)
    classes, missing_label = deferrer.classes_, deferrer.missing_label
    votes = votes_beside(X, annotations, classes, missing_label, extend=unknown != "refused")
    if unknown != "refused":
        votes = answers_among(votes, classes, missing_label, unknown=unknown)
    names = votes.annotators.tolist()
    columns = expert_places(names, experts, "annotations") if named else None
    if columns is None:
        if len(names) != len(experts):
            raise ValueError(
                f"annotations has {len(names)} columns, but there are {len(experts)} experts; give one column per "
                "expert in the order of experts_, or a DataFrame with their names."
            )
        columns = np.arange(len(names))
    return placed(votes, columns, experts)
