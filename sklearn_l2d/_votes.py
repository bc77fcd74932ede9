"""Votes: annotations with one entry per answer, whatever form they come in."""

import operator

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse

from ._encoding import (
    as_frame,
    as_table,
    check_classes,
    code_dtype,
    encode_table,
    is_frame,
    some,
    tally,
    unique_names,
    unseen_labels,
)
from ._long_tables import COLUMNS, is_long, read_long
from ._numerics._matrices import ragged_rows
from ._sklearn import warn


def _positions(values, n, name):
    values = np.asarray(values)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise ValueError(f"{name} has shape {values.shape} and type {values.dtype}; pass 1-D integers.")
    if values.size and not (values.min() >= 0 and values.max() < n):
        raise ValueError(f"{name} runs from {values.min()} to {values.max()}, outside of 0 to {n - 1}; correct it.")
    return values.astype(np.int64, copy=False)


def _is_all(key):
    return key is Ellipsis or (isinstance(key, slice) and key == slice(None))


def _select(key, n, what):
    """Positions that a key selects, as numpy understands it."""
    if isinstance(key, int | np.integer):
        raise IndexError(f"votes select several {what} at once: pass a slice, positions or a mask, not {key!r}.")
    return np.arange(n)[key if isinstance(key, slice) else np.asarray(key, dtype=None if len(key) else np.intp)]


class Votes:
    """Annotations of items by annotators, one entry per answer.

    What a table of items times annotators holds, in memory that grows with the number of answers. Whatever takes a
    table of annotations takes votes. They behave like an array of shape ``(n_items, n_annotators)``: `len`, `shape`,
    ``votes[rows]`` and ``votes[rows, columns]`` select items and annotators, so that they pass through cross-validation
    and searches. Make them with `encode_votes`.

    Parameters
    ----------
    item : array-like of int of shape (n_answers,)
        Item of every answer, from 0 to ``n_items - 1``.

    annotator : array-like of int of shape (n_answers,)
        Position in `annotators` of who gave it.

    label : array-like of int of shape (n_answers,)
        Position in `classes` of what was answered.

    n_items : int
        Number of items; those without any answer count, too.

    classes : array-like of shape (n_classes,)
        Sorted class labels.

    annotators : array-like of shape (n_annotators,)
        Names of the annotators.

    tasks : array-like of shape (n_items,), default=None
        Names of the items. None leaves them numbered.

    Attributes
    ----------
    item, annotator, label : ndarrays of shape (n_answers,)
        The answers in the order of the items, then of the annotators, in the smallest integer types.
    n_items : int
        Number of items.
    classes : ndarray of shape (n_classes,)
        Class labels.
    annotators : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    tasks : ndarray of shape (n_items,), dtype=object, or None
        Names of the items.

    Raises
    ------
    ValueError
        If the arrays have unlike lengths, an entry is outside of its range, an annotator answers an item twice, names
        repeat, or `classes` is not sorted.

    See Also
    --------
    encode_votes : Votes from tables, sparse matrices and files.

    Examples
    --------
    >>> from sklearn_l2d.annotations import Votes
    >>> votes = Votes(
    ...     [0, 2, 0],
    ...     [0, 1, 1],
    ...     [1, 0, 0],
    ...     n_items=3,
    ...     classes=["cat", "dog"],
    ...     annotators=["ann", "bob"],
    ... )
    >>> votes
    Votes(3 answers to 3 items by 2 annotators)
    >>> votes.to_counts()
    array([[1, 1],
           [0, 0],
           [1, 0]])
    >>> votes[[2, 0], ["bob"]].to_wide()
    array([['cat'],
           ['cat']], dtype=object)
    """

    ndim = 2

    def __init__(self, item, annotator, label, n_items, classes, annotators, tasks=None):
        classes = check_classes(classes)
        annotators = unique_names(annotators, "annotators")
        tasks = None if tasks is None else unique_names(tasks, "tasks")
        n_items = operator.index(n_items)
        if tasks is not None and len(tasks) != n_items:
            raise ValueError(f"tasks has {len(tasks)} names for n_items={n_items}; give one name per item.")
        given = {"item": (item, n_items), "annotator": (annotator, len(annotators)), "label": (label, len(classes))}
        columns = [_positions(values, n, name) for name, (values, n) in given.items()]
        if len({len(column) for column in columns}) > 1:
            lengths = dict(zip(given, map(len, columns), strict=True))
            raise ValueError(f"item, annotator and label have unlike lengths {lengths}; give one entry per answer.")
        key = columns[0].astype(np.int64) * max(len(annotators), 1) + columns[1]
        order = None if (key[1:] > key[:-1]).all() else np.argsort(key, kind="stable")
        if order is not None:
            key, columns = key[order], [column[order] for column in columns]
            repeated = np.flatnonzero(key[1:] == key[:-1])
            if repeated.size:
                who, item = annotators[columns[1][repeated[0]]], int(columns[0][repeated[0]])
                raise ValueError(
                    f"annotator {who!r} answers item {item} more than once, and there are {len(repeated)} repeated "
                    "answers in all; keep one of each."
                )
        self._set(*columns, n_items, classes, annotators, tasks)

    def _set(self, item, annotator, label, n_items, classes, annotators, tasks):
        self.item, self.annotator, self.label = (
            values.astype(code_dtype(n), copy=False)
            for values, n in ((item, n_items), (annotator, len(annotators)), (label, len(classes)))
        )
        self.n_items, self.classes, self.annotators, self.tasks = n_items, classes, annotators, tasks
        return self

    def _with(self, item, annotator, label, **changes):
        """Votes with other answers, which are known to be in order and unique."""
        kept = {name: getattr(self, name) for name in ("n_items", "classes", "annotators", "tasks")}
        return object.__new__(type(self))._set(item, annotator, label, **kept | changes)

    def __repr__(self):
        return f"Votes({len(self.item)} answers to {self.n_items} items by {len(self.annotators)} annotators)"

    def __len__(self):
        return self.n_items

    @property
    def shape(self):
        """``(n_items, n_annotators)``, the shape of the table that the votes stand for."""
        return self.n_items, len(self.annotators)

    @property
    def starts(self):
        """Where the answers to each item start, and last their number: ndarray of shape (n_items + 1,)."""
        return np.append(0, np.cumsum(np.bincount(self.item, minlength=self.n_items)))

    @property
    def n_answers(self):
        """Number of answers of each annotator: ndarray of int of shape (n_annotators,)."""
        return np.bincount(self.annotator, minlength=len(self.annotators))

    def __getitem__(self, key):
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        votes = self if _is_all(columns) else self._of_annotators(columns)
        return votes if _is_all(rows) else votes._of_items(rows)

    def without_tasks(self):
        """The same votes of items that are numbered.

        Returns
        -------
        votes : Votes
            Without names of the items.
        """
        return self._with(self.item, self.annotator, self.label, tasks=None)

    def take(self, indices, axis=0):
        """Select items (`axis=0`) or annotators (`axis=1`) by position, as `numpy.take` does.

        Parameters
        ----------
        indices : array-like of int
            Positions.
        axis : {0, 1}, default=0
            0 selects items, 1 annotators.

        Returns
        -------
        votes : Votes
            The selected ones.
        """
        return self[indices] if axis == 0 else self[:, indices]

    def select(self, answers):
        """Keep some of the answers, for all items and annotators.

        Parameters
        ----------
        answers : ndarray of bool of shape (n_answers,)
            Which to keep.

        Returns
        -------
        votes : Votes
            With these answers.
        """
        return self._with(self.item[answers], self.annotator[answers], self.label[answers])

    def with_labels(self, label, classes=None):
        """Other labels of the same answers.

        Parameters
        ----------
        label : ndarray of int of shape (n_answers,)
            Class position of each answer.
        classes : ndarray of shape (n_classes,), default=None
            Class labels that the positions count; by default they stay as they are.

        Returns
        -------
        votes : Votes
            With these labels.

        Raises
        ------
        ValueError
            If there is not one label per answer, or a position is beyond the classes.
        """
        classes = self.classes if classes is None else classes
        label = _positions(label, len(classes), "label")
        if len(label) != len(self.item):
            raise ValueError(f"label has {len(label)} entries for {len(self.item)} answers; give one per answer.")
        return self._with(self.item, self.annotator, label, classes=classes)

    def recode(self, classes):
        """The same votes as positions in other classes.

        Parameters
        ----------
        classes : array-like of shape (n_classes,)
            Sorted class labels, all that occur among them.

        Returns
        -------
        votes : Votes
            With these classes.

        Raises
        ------
        ValueError
            If somebody gave a label that is not among them.
        """
        classes = check_classes(classes)
        if np.array_equal(classes, self.classes):
            return self._with(self.item, self.annotator, self.label, classes=classes)
        place = {label: code for code, label in enumerate(classes.tolist())}
        new = [place.get(label, -1) for label in self.classes.tolist()]
        label = np.array(new, dtype=code_dtype(len(classes)))[self.label]
        if (label < 0).any():
            who = self.annotators[np.unique(self.annotator[label < 0])]
            raise unseen_labels(who, self.classes[np.unique(self.label[label < 0])].tolist(), classes)
        return self._with(self.item, self.annotator, label, classes=classes)

    def among(self, classes):
        """The votes for some classes, as positions in these; the others are left out.

        Parameters
        ----------
        classes : array-like of shape (n_classes,)
            Sorted class labels.

        Returns
        -------
        votes : Votes
            With these classes.
        """
        classes = check_classes(classes)
        kept = np.isin(self.classes, classes)[self.label]
        return self.select(kept).recode(classes)

    def to_codes(self):
        """Table of class positions.

        Returns
        -------
        codes : ndarray of int of shape (n_items, n_annotators)
            Positions in `classes`, -1 where nobody answered.
        """
        codes = np.full(self.shape, -1, dtype=code_dtype(len(self.classes)))
        codes[self.item, self.annotator] = self.label
        return codes

    def to_wide(self):
        """Table of labels with one column per annotator; it holds items times annotators.

        Returns
        -------
        wide : DataFrame or ndarray of shape (n_items, n_annotators), dtype=object
            None where nobody answered; a DataFrame with names where the items have names.
        """
        wide = np.full(self.shape, None, dtype=object)
        wide[self.item, self.annotator] = self.classes[self.label].tolist()
        if self.tasks is None:
            return wide
        import pandas as pd

        return pd.DataFrame(wide, index=flat_index(self.tasks), columns=flat_index(self.annotators), dtype=object)

    def to_long(self):
        """Long table with one row per answer.

        Returns
        -------
        table : DataFrame of shape (n_answers, 3)
            Columns `task`, `annotator` and `label`, in the order of the items.
        """
        import pandas as pd

        task = self.item if self.tasks is None else self.tasks[self.item]
        return pd.DataFrame(
            {"task": task, "annotator": self.annotators[self.annotator], "label": self.classes[self.label]}
        )

    def to_counts(self):
        """Number of votes for every class, without their authors.

        Returns
        -------
        counts : ndarray of int of shape (n_items, n_classes)
            Columns in the order of `classes`; a row without votes is zero.
        """
        return tally(self.item.astype(np.int64), self.label, (self.n_items, len(self.classes)))

    def to_sparse(self):
        """Sparse matrix of class positions plus one, so that no entry means no answer.

        Returns
        -------
        matrix : csr_array of shape (n_items, n_annotators)
            Entries from 1 to `n_classes`.
        """
        return csr_array((self.label + np.int64(1), self.annotator, self.starts), shape=self.shape)

    def _of_items(self, rows):
        """Votes for some items: a slice, positions or a mask."""
        if isinstance(rows, slice) and rows.step in (None, 1):  # their answers lie side by side
            start, stop, _ = rows.indices(self.n_items)
            stop = max(start, stop)
            answers = slice(*np.searchsorted(self.item, [start, stop]))
            kept = {"n_items": stop - start, "tasks": None if self.tasks is None else self.tasks[start:stop]}
            item = self.item[answers].astype(np.int64) - start
            return self._with(item, self.annotator[answers], self.label[answers], **kept)
        rows = _select(rows, self.n_items, "items")
        item, answer = ragged_rows(self.starts, rows)
        tasks = None if self.tasks is None else self.tasks[rows]
        return self._with(item, self.annotator[answer], self.label[answer], n_items=len(rows), tasks=tasks)

    def _of_annotators(self, columns):
        """Votes by some annotators: a slice, positions, a mask or names."""
        if not isinstance(columns, slice):
            columns = list(columns)
            if columns and not isinstance(columns[0], int | np.integer | np.bool_):
                place = {name: position for position, name in enumerate(self.annotators)}
                unknown = [name for name in columns if name not in place]
                if unknown:
                    raise ValueError(
                        f"votes have no annotators {some(unknown)}; they are {some(list(self.annotators))}."
                    )
                columns = [place[name] for name in columns]
        columns = _select(columns, len(self.annotators), "annotators")
        if len(np.unique(columns)) < len(columns):
            raise ValueError("votes[:, annotators] names somebody twice; name each annotator once.")
        place = np.full(len(self.annotators), -1)
        place[columns] = np.arange(len(columns))
        kept = self.select(np.flatnonzero(place[self.annotator] >= 0))
        return placed(kept, place, self.annotators[columns])


def placed(votes, place, annotators):
    """The same votes among other annotators.

    Parameters
    ----------
    votes : Votes
        Votes by M annotators.
    place : ndarray of int of shape (M,)
        Position in `annotators` of each annotator; -1 for some who gave no answer.
    annotators : ndarray
        Unique names.

    Returns
    -------
    votes : Votes
        With these annotators.
    """
    item, annotator, label = votes.item, votes.annotator, votes.label
    seated = place >= 0
    if (place != np.arange(len(place)))[seated].any():
        annotator = place.astype(code_dtype(len(annotators)))[annotator]
    if (np.diff(place[seated]) < 0).any():  # answers to an item are in the order of the annotators
        order = np.lexsort((annotator, item))
        item, annotator, label = item[order], annotator[order], label[order]
    return votes._with(item, annotator, label, annotators=annotators)


def flat_index(names):
    """Names, of which some may be tuples, as an Index of one level."""
    import pandas as pd

    return pd.Index(names, tupleize_cols=False)


def _from_sparse(matrix, classes, tasks):
    matrix = coo_array(matrix)
    stored = matrix.data
    if stored.dtype.kind not in "iu" and not np.all(stored == np.rint(stored)):
        raise ValueError("a sparse matrix of annotations holds class positions plus one, but some are no integers.")
    label = stored.astype(np.int64) - 1
    given = label >= 0
    if (label < -1).any():
        raise ValueError("a sparse matrix of annotations holds class positions plus one, but some are negative.")
    n_classes = int(label.max(initial=-1)) + 1
    classes = np.arange(n_classes) if classes is None else classes
    if n_classes > len(classes):
        raise ValueError(f"a sparse matrix of annotations holds {n_classes}, but there are {len(classes)} classes.")
    rows, columns = matrix.coords
    n_items, n_annotators = matrix.shape
    return Votes(rows[given], columns[given], label[given], n_items, classes, np.arange(n_annotators), tasks)


def _named(votes, tasks):
    """Votes on items with these names, in their order; items that have names are found by them, others by position."""
    names = unique_names(tasks, "tasks")
    place, given = {name: i for i, name in enumerate(names)}, votes.tasks
    unknown = [] if given is None else [name for name in given if name not in place]
    is_default = given is not None and list(given) == list(range(len(given)))  # an index that is no names
    if given is None or (is_default and unknown):
        if len(names) != len(votes):
            raise ValueError(f"tasks has {len(names)} names for {len(votes)} rows of annotations; give one per row.")
        return votes._with(votes.item, votes.annotator, votes.label, tasks=names)
    if unknown:
        raise ValueError(
            f"annotations hold items {some(unknown)} that are not in tasks; drop these rows, or name them."
        )
    if len(set(given)) < len(given):
        raise ValueError(
            "annotations name an item twice, so that tasks cannot be matched with them; keep one row of each."
        )
    if is_default and list(given) != list(names[: len(given)]):
        warn(
            "annotations has the ids of tasks in another order, and its rows are matched by them; if they are no ids, "
            "pass it without an index, as annotations.to_numpy()."
        )
    item = np.array([place[name] for name in given], dtype=np.int64)[votes.item]
    return Votes(item, votes.annotator, votes.label, len(names), votes.classes, votes.annotators, names)


def table_or_votes(annotations, missing_label=None):
    """Annotations with a row for each item: long tables become votes, others 2-D tables."""
    return make_votes(annotations, None, missing_label) if is_long(annotations) else as_table(annotations)


def make_votes(
    annotations,
    classes=None,
    missing_label=None,
    duplicates="error",
    names=COLUMNS,
    tasks=None,
    time=None,
    *,
    extend=False,
):
    """`Votes` of anything that holds annotations, as `annotations.encode_votes` describes it.

    With `extend`, labels of the kind of `classes` that are not among them become classes, too.
    """
    if classes is not None:
        classes = check_classes(classes)
    if (
        tasks is not None
        and (isinstance(annotations, Votes) or is_frame(annotations))
        and not is_long(annotations, names)
    ):
        return _named(make_votes(annotations, classes, missing_label, extend=extend), tasks)
    if isinstance(annotations, Votes):
        used = annotations.classes[np.unique(annotations.label)]
        if extend and classes is not None and len(used) and isinstance(used[0], str) == isinstance(classes[0], str):
            classes = np.union1d(classes, used)
        return annotations if classes is None else annotations.recode(classes)
    if issparse(annotations):
        return _from_sparse(annotations, classes, tasks)
    if is_long(annotations, names):
        parts = read_long(annotations, classes, missing_label, duplicates, names, tasks, time)
        return object.__new__(Votes)._set(*parts)  # in order and unique
    annotations = as_frame(annotations)
    encoded = encode_table(annotations, classes, missing_label, extend=extend)
    item, annotator = np.nonzero(encoded.codes >= 0)
    label = encoded.codes[item, annotator]
    votes = Votes(item, annotator, label, len(encoded.codes), encoded.classes, encoded.experts, tasks)
    if tasks is None and is_frame(annotations):  # whose rows may have been drawn repeatedly
        votes.tasks = annotations.index.to_numpy(dtype=object)
    return votes
