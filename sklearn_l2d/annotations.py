"""Conversions between the forms in which annotations come: wide, long, votes, counts, and carried by a target.

In every wide table a row is an item and a column an expert. NaN, None, `pandas.NA`, NaT and masked entries
are missing annotations. So is -1, unless -1 is one of the given classes: then it is a vote. `missing_label`
replaces this rule by one marker, or by several (masked entries stay missing: they hold no value).
"""

import numpy as np
from scipy.sparse import issparse

from ._annotated_target import AnnotatedTarget, split_target
from ._encoding import (
    EncodedAnnotations,
    as_frame,
    check_classes,
    check_counts,
    count_votes,
    counts_table,
    encode_table,
    factorize,
    is_frame,
    is_na,
    missing_markers,
    one_vote_each,
    sorted_names,
    tally,
    warn_of_minus_one,
)
from ._labelling_tools import (
    from_argilla,
    from_doccano,
    from_label_studio,
    from_mturk,
    from_prodigy,
    from_zooniverse,
    to_label_studio,
)
from ._long_tables import as_long_frame, check_columns, is_long, no_name, repeated_pairs, time_ranks
from ._sklearn import warn
from ._votes import Votes, flat_index, make_votes

__all__ = [
    "AnnotatedTarget",
    "EncodedAnnotations",
    "Votes",
    "anonymize",
    "encode_annotations",
    "encode_counts",
    "encode_votes",
    "from_argilla",
    "from_doccano",
    "from_label_studio",
    "from_long",
    "from_mturk",
    "from_prodigy",
    "from_zooniverse",
    "split_target",
    "to_counts",
    "to_label_studio",
    "to_long",
]

_MANY_CELLS = 100_000_000  # of a wide table, whose size is then told


def encode_annotations(annotations, *, classes=None, missing_label=None):
    """Turn identified annotations into integer codes.

    Parameters
    ----------
    annotations : array-like, masked array or DataFrame of shape (n_samples, n_experts)
        One column per expert; labels are numbers, strings or booleans. Whole numbers stored as floats count
        as integers, since NaN cannot be stored otherwise. A long table with the columns task, annotator and label, and
        votes, are taken, too.

    classes : array-like of shape (n_classes,), default=None
        Sorted class labels that may occur. None takes those that occur in `annotations`.

    missing_label : scalar or collection of scalars, default=None
        The marker of a missing annotation, or a list, tuple or set of several. None accepts NaN, None, `pandas.NA`,
        NaT, and -1 unless -1 is in `classes`. NaN (or another of the not-available markers) accepts all of these but
        not -1, and so does None in a list: ``["skip", None]``.

    Returns
    -------
    encoded : EncodedAnnotations
        Named tuple `(codes, classes, experts)`.

    Raises
    ------
    ValueError
        If `annotations` is not a 2-D table of labels of one type, `classes` is not sorted and unique, an
        expert gave a label outside `classes`, or `missing_label` is one of the classes.

    Examples
    --------
    >>> from sklearn_l2d.annotations import encode_annotations
    >>> encoded = encode_annotations([["cat", None], ["dog", "cat"]])
    >>> encoded.codes
    array([[ 0, -1],
           [ 1,  0]], dtype=int8)
    >>> encoded.classes.tolist()
    ['cat', 'dog']
    """
    if _tells_who(annotations):
        votes = make_votes(annotations, classes, missing_label)
        return EncodedAnnotations(votes.to_codes(), votes.classes, votes.annotators)
    return encode_table(annotations, classes, missing_label)


def _tells_who(annotations):
    """Whether annotations hold an author for each answer: votes, and long tables."""
    return isinstance(annotations, Votes) or is_long(annotations)


def encode_votes(
    annotations,
    *,
    classes=None,
    missing_label=None,
    duplicates="error",
    task="task",
    annotator="annotator",
    label="label",
    tasks=None,
    time=None,
):
    """Turn annotations into votes, one entry per answer, without a table of items times annotators on the way.

    Parameters
    ----------
    annotations : DataFrame, array-like, sparse matrix, path or Votes
        A long table (pandas, polars or Arrow) with one row per answer, or the path of a Parquet file with such rows,
        which is read in batches; a wide table of shape (n_items, n_annotators) as in `encode_annotations`; a scipy
        sparse matrix of that shape that holds positions in `classes` plus one; or votes.

    classes : array-like of shape (n_classes,), default=None
        Sorted class labels that may occur. None takes those that occur, and 0, 1, ... for a sparse matrix.

    missing_label : scalar or collection of scalars, default=None
        The marker of a missing annotation, or several, as in `encode_annotations`.

    duplicates : {"error", "first", "last"}, default="error"
        What to do when a row of a long table repeats its annotator and task: refuse, or keep the first or the last one,
        by `time` or else by the order of the rows.

    task, annotator, label : str, default="task", "annotator", "label"
        Names of the columns of a long table.

    tasks : array-like of shape (n_items,), default=None
        Names of the items in the order of `X`: items without any answer are then counted, too. Rows that have names, by
        the index of a DataFrame or in votes, are matched by them. None takes the tasks of a long table in the order of
        their first appearance, and the index of a wide DataFrame.

    time : str, default=None
        Name of the column of a long table that says when each answer was given, which `duplicates` may need.

    Returns
    -------
    votes : Votes
        With the annotators of a long table sorted.

    Raises
    ------
    ValueError
        If labels are not in `classes` or of types without an order, a long table lacks a column, a task or an
        annotator or a time, names a task that is not in `tasks`, or repeats an answer and `duplicates` is "error".

    See Also
    --------
    from_long : Wide tables and counts from long ones.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_l2d.annotations import encode_votes
    >>> table = pd.DataFrame(
    ...     {"task": ["x", "x", "y"], "annotator": ["bob", "ann", "bob"], "label": [0, 1, 1]}
    ... )
    >>> votes = encode_votes(table, tasks=["z", "y", "x"])
    >>> votes
    Votes(3 answers to 3 items by 2 annotators)
    >>> votes.to_counts()
    array([[0, 0],
           [0, 1],
           [1, 1]])
    """
    if duplicates not in ("error", "first", "last"):
        raise ValueError(f"duplicates={duplicates!r} is unknown; use 'error', 'first' or 'last'.")
    return make_votes(annotations, classes, missing_label, duplicates, (task, annotator, label), tasks, time)


def to_counts(annotations, *, classes=None, missing_label=None):
    """Count the votes for every class, forgetting who gave them.

    Parameters
    ----------
    annotations : array-like, masked array or DataFrame of shape (n_samples, n_experts)
        One column per expert, as in `encode_annotations`.

    classes : array-like of shape (n_classes,), default=None
        Sorted class labels. None takes those that occur in `annotations`.

    missing_label : scalar or collection of scalars, default=None
        The marker of a missing annotation, or several, as in `encode_annotations`.

    Returns
    -------
    counts : ndarray of shape (n_samples, n_classes), dtype=int64
        Number of votes, columns in the order of the sorted classes. A row without votes is zero.

    Raises
    ------
    ValueError
        As `encode_annotations`.

    Examples
    --------
    >>> from sklearn_l2d.annotations import to_counts
    >>> to_counts([[0, 1, 1], [2, -1, -1]])
    array([[1, 2, 0],
           [0, 0, 1]])
    """
    if _tells_who(annotations):
        return make_votes(annotations, classes, missing_label).to_counts()
    codes, classes, _ = encode_annotations(annotations, classes=classes, missing_label=missing_label)
    return count_votes(codes, len(classes))


def anonymize(annotations, *, classes=None, missing_label=None):
    """Turn identified annotations into anonymous vote counts that name their classes.

    Parameters
    ----------
    annotations : array-like, masked array, DataFrame or Votes of shape (n_samples, n_experts)
        One column per expert, as in `encode_annotations`.

    classes : array-like of shape (n_classes,), default=None
        Sorted class labels. None takes those that occur in `annotations`.

    missing_label : scalar or collection of scalars, default=None
        The marker of a missing annotation, or several, as in `encode_annotations`.

    Returns
    -------
    counts : DataFrame or ndarray of shape (n_samples, n_classes)
        Number of votes: a DataFrame with the index of `annotations` and the classes as columns if a DataFrame, a table
        of polars or Arrow, or votes on items with names came in, else the array of `to_counts`.

    Raises
    ------
    ValueError
        As `encode_annotations`.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_l2d.annotations import anonymize
    >>> anonymize(pd.DataFrame({"ann": ["a", "b"], "bob": ["a", None]}, index=["x", "y"]))
       a  b
    x  2  0
    y  0  1
    """
    if _tells_who(annotations):
        votes = make_votes(annotations, classes, missing_label)
        counts, classes, items = votes.to_counts(), votes.classes, votes.tasks
    else:
        annotations = as_frame(annotations)
        codes, classes, _ = encode_annotations(annotations, classes=classes, missing_label=missing_label)
        counts, items = count_votes(codes, len(classes)), annotations.index if is_frame(annotations) else None
    if items is None:
        return counts
    import pandas as pd

    index = flat_index(items) if isinstance(items, np.ndarray) else items
    return pd.DataFrame(counts, index=index, columns=classes.tolist())


def encode_counts(y, *, classes=None):
    """Read anonymous annotations: vote counts, or one label per item.

    Parameters
    ----------
    y : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape (n_samples,)
        Votes (or non-negative weights of votes) per class, where a zero row is an item that nobody
        annotated and the columns of a DataFrame name the classes; or one label per item, where every label
        is a vote, -1 too. In polars and Arrow, names that are whole numbers are classes that are numbers.

    classes : array-like of shape (n_classes,), default=None
        Sorted class labels that `y` has to agree with. None takes them from `y`: the sorted names of the
        columns of a DataFrame, 0, 1, ... for other counts, or the labels that occur.

    Returns
    -------
    counts : ndarray of shape (n_samples, n_classes), dtype=float64
        Votes per class. It may share memory with `y`: do not write to it.

    classes : ndarray of shape (n_classes,)
        Sorted class labels, one per column of `counts`.

    Raises
    ------
    ValueError
        If `y` is None, sparse, complex or empty, has fewer than two classes, holds continuous labels, or
        counts that are negative, NaN, infinite or all zero, or disagrees with `classes`.

    Examples
    --------
    >>> from sklearn_l2d.annotations import encode_counts
    >>> counts, classes = encode_counts([[2, 0, 1], [0, 0, 0]])
    >>> counts
    array([[2., 0., 1.],
           [0., 0., 0.]])
    >>> encode_counts(["cat", "dog"])[0]
    array([[1., 0.],
           [0., 1.]])
    """
    if y is None:
        raise ValueError("This method requires y to be passed, but the target y is None.")
    if issparse(y):
        raise ValueError("y is sparse, which is not supported for vote counts; pass y.toarray().")
    if classes is not None:
        classes = check_classes(classes)
    y, classes = counts_table(y, classes)
    if y.ndim not in (1, 2):
        raise ValueError(f"y has shape {y.shape}; pass counts of shape (n_samples, n_classes), or 1-D labels.")
    if len(y) == 0:
        raise ValueError(f"Found y with 0 sample(s) (shape={y.shape}) while a minimum of 1 is required.")
    return one_vote_each(y, classes) if y.ndim == 1 else check_counts(y, classes)


def from_long(
    table,
    *,
    form="wide",
    duplicates="error",
    task="task",
    annotator="annotator",
    label="label",
    missing_label=None,
    time=None,
):
    """Turn a long table (one row per annotation) into a wide one (one column per annotator), or into votes.

    Parameters
    ----------
    table : DataFrame of shape (n_annotations, >=3)
        One row per annotation, in a table of pandas, polars or Arrow. A missing label is a missing annotation. To count
        votes, it need not say who gave them.

    form : {"wide", "votes"}, default="wide"
        "votes" is what `encode_votes` returns: its size is that of the answers. A wide table has a cell for every pair
        of a task and an annotator; a warning tells its size before one of more than 100 million cells is built.

    duplicates : {"error", "first", "last", "count"}, default="error"
        What to do when a person labels a task more than once: refuse, keep the first or the last label (by `time` or
        else by the order of the rows), or count every row as a vote. A wide table cannot hold two votes of one person,
        so "count" returns counts whether or not there are repeats. Rows without an annotator count there, too, which a
        warning tells.

    task, annotator, label : str, default="task", "annotator", "label"
        Names of the three columns.

    missing_label : scalar or collection of scalars, default=None
        The marker of a missing annotation, or several, as in `encode_annotations`. With None, votes and counts leave
        out labels -1, which a warning tells, and a wide table keeps them for whatever knows the classes.

    time : str, default=None
        Name of the column that says when each annotation was given, which `duplicates` may need.

    Returns
    -------
    wide : DataFrame of shape (n_tasks, n_annotators) or (n_tasks, n_classes), or Votes
        Labels in a dtype that can hold missing entries, tasks in order of first appearance, annotators
        sorted; with "count" the votes per task and sorted class.

    Raises
    ------
    ValueError
        If `table` is no table, a column is lacking or there twice, a task, a time or, unless votes are counted, an
        annotator is missing, or an annotation is repeated and `duplicates` is "error". The rows are named by their
        index.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_l2d.annotations import from_long
    >>> table = pd.DataFrame(
    ...     {"task": ["x", "x", "y"], "annotator": ["bob", "ann", "bob"], "label": [0, 1, 1]}
    ... )
    >>> from_long(table)  # doctest: +NORMALIZE_WHITESPACE
    annotator   ann  bob
    task
    x             1    0
    y          <NA>    1
    """
    import pandas as pd

    if duplicates not in ("error", "first", "last", "count"):
        raise ValueError(f"duplicates={duplicates!r} is unknown; use 'error', 'first', 'last' or 'count'.")
    if form not in ("wide", "votes"):
        raise ValueError(f"form={form!r} is unknown; use 'wide' or 'votes'.")
    counting = duplicates == "count" and form == "wide"
    needed = [task, label] if counting else [task, annotator, label]
    table = as_long_frame(table)
    check_columns(table.columns, needed if time is None else [*needed, time])
    for name in needed:
        if table[name].dtype == object:
            factorize(table[name].to_numpy(), f"the column {name!r} of the table")  # refuses what is no scalar
    if form == "votes":
        columns = {"task": task, "annotator": annotator, "label": label}
        return encode_votes(table, duplicates=duplicates, missing_label=missing_label, time=time, **columns)
    for name in [task] if counting else [task, annotator]:
        absent = table[name].isna().to_numpy()
        if absent.any():
            raise no_name(name, table.index[absent])
    tasks = flat_index(table[task].unique()).rename(task)
    votes = table[table[label].notna()]
    if counting:
        unknown = int(votes[annotator].isna().sum()) if annotator in table.columns else 0
        if unknown:
            warn(
                f"{unknown} of {len(votes)} labels do not say who gave them; they count as votes of somebody else each."
            )
        codes, classes, _ = encode_annotations(votes[[label]], missing_label=missing_label)
        voted = codes[:, 0] >= 0
        if missing_label is None:
            warn_of_minus_one(int((~voted).sum()))
        counts = tally(tasks.get_indexer(votes[task])[voted], codes[voted, 0], (len(tasks), len(classes)))
        return pd.DataFrame(counts, index=tasks, columns=pd.Index(classes.tolist(), name=label))
    if missing_label is not None:
        markers = [marker for marker in missing_markers(missing_label) if not is_na(marker)]
        votes = votes[~votes[label].isin(markers)]
    people = flat_index(sorted_names(table[annotator].unique().tolist())).rename(annotator)
    if time is not None:
        ranks = time_ranks(votes[time].to_numpy(dtype=object), time, votes.index.to_numpy())
        votes = votes.iloc[np.argsort(ranks, kind="stable")]
    repeated = votes.duplicated([task, annotator], keep=False).to_numpy()
    if repeated.any() and duplicates == "error":
        raise repeated_pairs(task, annotator, votes.index[repeated])
    if (cells := len(tasks) * len(people)) > _MANY_CELLS:
        warn(
            f"the wide table of {len(tasks):,} tasks and {len(people):,} annotators has {cells:,} cells for "
            f"{len(votes):,} labels; form='votes' keeps the labels only."
        )
    votes = votes.drop_duplicates([task, annotator], keep="first" if duplicates == "first" else "last")
    labels = votes[label].convert_dtypes().array
    row_of = np.full((len(tasks), len(people)), -1)
    row_of[tasks.get_indexer(votes[task]), people.get_indexer(votes[annotator])] = np.arange(len(votes))
    wide = [pd.Series(labels.take(rows, allow_fill=True), index=tasks) for rows in row_of.T]
    return pd.concat(wide, axis=1, keys=people) if wide else pd.DataFrame(index=tasks, columns=people)


def to_long(annotations, *, missing_label=None, tasks=None, annotators=None):
    """Turn a wide table into a long one with one row per annotation that was given.

    Parameters
    ----------
    annotations : array-like, masked array, DataFrame or Votes of shape (n_samples, n_experts)
        One column per expert, as in `encode_annotations`.

    missing_label : scalar or collection of scalars, default=None
        The marker of a missing annotation, or several, as in `encode_annotations`.

    tasks : array-like of shape (n_samples,), default=None
        Names of the rows. None takes the index of a DataFrame or the names of the items of votes, else 0, 1, ...

    annotators : array-like of shape (n_experts,), default=None
        Names of the columns. None takes those of a DataFrame or of votes, else 0, 1, ...

    Returns
    -------
    table : DataFrame of shape (n_annotations, 3)
        Columns `task`, `annotator` and `label`, task by task. Rows and columns without any annotation
        leave no trace.

    Raises
    ------
    ValueError
        As `encode_annotations`, or if `tasks` or `annotators` has another length than `annotations`.

    Examples
    --------
    >>> from sklearn_l2d.annotations import to_long
    >>> to_long([[0, None], [1, 0]], annotators=["ann", "bob"])
       task annotator  label
    0     0       ann      0
    1     1       ann      1
    2     1       bob      0
    """
    import pandas as pd

    if _tells_who(annotations):
        votes = make_votes(annotations, None, missing_label)
        classes, experts = votes.classes, votes.annotators
        rows, columns, labels = votes.item, votes.annotator, votes.label
        shape, index = votes.shape, votes.tasks
    else:
        codes, classes, experts = encode_annotations(annotations, missing_label=missing_label)
        rows, columns = np.nonzero(codes >= 0)
        labels, shape = codes[rows, columns], codes.shape
        index = annotations.index if is_frame(annotations) else None
    if tasks is None:
        tasks = np.arange(shape[0]) if index is None else index
    annotators = flat_index(experts if annotators is None else annotators)
    tasks = flat_index(tasks)
    for name, given, n in (("tasks", tasks, shape[0]), ("annotators", annotators, shape[1])):
        if len(given) != n:
            raise ValueError(f"{name} has {len(given)} names for annotations of shape {shape}; give {n}.")
    return pd.DataFrame({"task": tasks[rows], "annotator": annotators[columns], "label": classes[labels]})
