"""Tables of labels in every form: integer codes, vote counts, and votes with one entry per answer."""

import operator
import os
import sys
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.multiclass import check_classification_targets

from ._numerics._matrices import ragged_rows
from ._sklearn import warn

BLOCK = 1 << 20  # cells per block, so that temporary arrays have at most a few tens of MB
_WIDEST_LOOKUP = 1 << 16
_COUNT_ROWS = 1 << 16  # rows per block of sparse counts
_LABEL_KINDS = "biufOUST"
_BATCH = 1 << 20  # rows of a file that are read at once
_BUFFER = 1 << 20  # bytes of each column of a Parquet file that are read at once
COLUMNS = "task", "annotator", "label"  # of a long table
_LONG = 100_000  # entries from which another hash table pays


class Block(NamedTuple):
    """A rectangle of the table. If `absent` is a mask, `values` leaves out the cells that it marks.

    `has_na` tells whether absent cells hold a missing marker, rather than being hidden by a masked array.
    """

    rows: slice
    columns: slice
    values: np.ndarray
    absent: np.ndarray | None = None
    has_na: bool = False


def is_frame(table):
    """Whether `table` behaves like a pandas DataFrame (pandas itself is never imported here)."""
    return hasattr(table, "iloc") and hasattr(table, "columns")


def is_na(value):
    """Whether `value` is None, NaN, NaT or pandas.NA."""
    pandas = sys.modules.get("pandas")  # pandas.NA exists only if pandas has been imported
    if value is None or (pandas is not None and value is pandas.NA):
        return True
    return bool(value != value)


def as_table(annotations):
    """Return `annotations` as a 2-D table: lists become an object array, other tables are not changed."""
    if issparse(annotations):
        raise ValueError(
            "annotations is a sparse matrix, whose empty cells cannot be told from votes for class 0; pass a "
            "dense array with -1 or NaN for the missing annotations."
        )
    if not hasattr(annotations, "shape"):
        annotations = np.array(annotations, dtype=object)
    if len(annotations.shape) != 2:
        raise ValueError(
            "annotations must be 2-D, with one entry per expert in every row (None where it is missing), got "
            f"shape {tuple(annotations.shape)}. Reshape your data: a single expert is a table of shape (n_samples, 1)."
        )
    return annotations


def check_row_count(table, n_rows, name):
    """Refuse a table that does not have one row per row of X."""
    if len(table) != n_rows:
        raise ValueError(f"{name} has {len(table)} rows, but X has {n_rows}; give one row per item.")


def expert_names(table):
    """Names of the columns of a DataFrame or of votes, else 0, 1, ..., as an object array."""
    if isinstance(table, Votes):
        return table.annotators
    if not is_frame(table):
        return np.arange(table.shape[1]).astype(object)
    if not table.columns.is_unique:
        repeated = list(table.columns[table.columns.duplicated()].unique())
        raise ValueError(f"annotations names several experts {repeated}; give every column its own name.")
    return table.columns.to_numpy(dtype=object)


def check_classes(classes):
    """Return `classes` as an array after checking that it is 1-D, sorted and unique."""
    classes = np.asarray(classes)
    if classes.ndim != 1:
        raise ValueError(f"classes must be 1-D, got shape {classes.shape}.")
    try:
        increasing = bool(np.all(classes[:-1] < classes[1:]))
    except TypeError:
        increasing = False
    if not increasing:
        raise ValueError(f"classes must be sorted and unique, got {some(classes.tolist())}; pass np.unique(classes).")
    return classes


def sorted_labels(labels, name):
    """Sort `labels` into an array; whole numbers become integers, since NaN may have made them floats."""
    try:
        classes = np.array(sorted(labels), dtype=None if labels else np.int64)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(f"{name} mixes labels of types {kinds} that have no order; use one type.") from error
    return whole_numbers(classes)


def whole_numbers(labels):
    """Labels as integers if they are floats without a fraction."""
    if labels.dtype.kind == "f" and np.all(np.abs(labels) < 2**53) and np.all(labels == np.rint(labels)):
        return labels.astype(np.int64)
    return labels


def missing_test(missing_label):
    """Return the predicate whether a label that is not a known class marks a missing annotation."""
    if missing_label is None:
        return lambda label: is_na(label) or label == -1
    if is_na(missing_label):
        return is_na
    return lambda label: not is_na(label) and bool(label == missing_label)


def label_array(y):
    """`y` as an array, in which None stands for masked entries, and what a list holds has not become text."""
    if isinstance(y, np.ma.MaskedArray) and np.ma.getmaskarray(y).any():
        labels = y.data.astype(object)
        labels[np.ma.getmaskarray(y)] = None
        return labels
    labels = np.asarray(y)
    if labels.dtype.kind == "U" and isinstance(y, list | tuple) and not all(isinstance(label, str) for label in y):
        return np.array(y, dtype=object)
    return labels


def known_labels(y, unlabeled_label=None):
    """Labels that are known, and a mask (n,) of them; others are missing or the marker.

    `y` is an array (n,). What was float or object for the sake of missing entries gets the type that it has without.
    """
    is_marker = missing_test(np.nan if unlabeled_label is None else unlabeled_label)
    labels, local = factorize(y)
    is_known = np.array([not (is_na(label) or is_marker(label)) for label in labels], dtype=bool)
    known = is_known[local]
    found = y[known]
    if found.dtype.kind == "O" and not any(isinstance(labels[i], str) for i in np.flatnonzero(is_known)):
        found = np.array(found.tolist())
    return whole_numbers(found), known


def warn_of_minus_one(n):
    """Warn of answers -1 in a long table, which needs no marker for answers that nobody gave."""
    if n:
        warn(
            f"{n} labels are -1, the marker of a missing annotation, and count as no votes; if -1 is a class, pass "
            "missing_label=numpy.nan."
        )


class EncodedAnnotations(NamedTuple):
    """Annotations as integers, with the labels that they encode.

    Attributes
    ----------
    codes : ndarray of shape (n_samples, n_experts)
        Positions in `classes`, -1 where an annotation is missing, in the smallest signed integer type.

    classes : ndarray of shape (n_classes,)
        Sorted class labels.

    experts : ndarray of shape (n_experts,), dtype=object
        Names of the experts: the columns of a DataFrame, or else 0, 1, ...
    """

    codes: np.ndarray
    classes: np.ndarray
    experts: np.ndarray


def encode_table(annotations, classes=None, missing_label=None, *, extend=False):
    """`EncodedAnnotations` of a table, as `annotations.encode_annotations` describes it.

    With `extend`, labels that are not in `classes` but of the same kind become classes too.
    """
    if classes is not None:
        classes = check_classes(classes)
    if isinstance(annotations, Votes):
        votes = make_votes(annotations, classes, extend=extend)
        return EncodedAnnotations(votes.to_codes(), votes.classes, votes.annotators)
    table = as_table(annotations)
    experts = expert_names(table)
    return EncodedAnnotations(*encode(table, experts, classes, missing_label, extend), experts)


def encode(table, experts, classes, missing_label, extend=False):
    """Return the codes of `table` (-1 = missing) and their classes; arguments as in `encode_table`."""
    is_missing = missing_test(missing_label)
    na_is_missing = missing_label is None or is_na(missing_label)
    known = {} if classes is None else {label: code for code, label in enumerate(classes.tolist())}
    if missing_label is not None and missing_label in known:
        raise ValueError(f"missing_label={missing_label!r} is one of the classes; it cannot be both.")
    codes = np.full(table.shape, -1, dtype=code_dtype(len(known)))
    for block in _blocks(table):
        labels, local = factorize(block.values)
        # Known classes come first, so that -1 is a vote where it is a class.
        fresh = [label for label in labels if label not in known and not is_missing(label)]
        if not na_is_missing and (block.has_na or any(is_na(label) for label in fresh)):
            _reject_na(experts[block.columns], missing_label)
        if classes is not None:
            strange = [label for label in fresh if not extend or isinstance(label, str) != isinstance(classes[0], str)]
            if strange:
                _reject_unseen(block, experts[block.columns], labels, local, strange, classes)
        for label in fresh:
            known.setdefault(label, len(known))
        codes = codes.astype(code_dtype(len(known)), copy=False)
        code_of = [known.get(label, -1) for label in labels]  # a missing marker is never a known label
        _fill(codes[block.rows, block.columns], block.absent, np.array(code_of, dtype=codes.dtype)[local])
    if classes is None or len(known) > len(classes):
        fresh = sorted_labels(known if classes is None else set(known) - set(classes.tolist()), "annotations")
        classes = fresh if classes is None else np.union1d(classes, fresh)
        rank = {label: code for code, label in enumerate(sorted(known))}
        new_code = np.array([*(rank[label] for label in known), -1], dtype=codes.dtype)
        for rows in _row_slices(*codes.shape):  # code -1 picks the last entry, so it stays -1
            codes[rows] = new_code[codes[rows]]
    return codes, classes


def count_votes(codes, n_classes):
    """Votes per class in every row of `codes`, shape (n_samples, n_classes), int64."""
    n_samples, n_experts = codes.shape
    counts = np.zeros((n_samples, n_classes), dtype=np.int64)
    for rows in _row_slices(n_samples, max(n_experts, n_classes)):
        column = codes[rows] + np.intp(1)  # the first column counts the missing annotations and is cut off below
        items = np.arange(len(column))[:, None]
        counts[rows] = tally(items, column, (len(column), n_classes + 1))[:, 1:]
    return counts


def sparse_counts(counts):
    """Counts (n, C) as labels (n, D), int64, and votes (n, D), float64, of each item's distinct classes.

    D is the largest number of distinct classes of an item; shorter items are padded with zero votes.
    """
    sizes = np.count_nonzero(counts, axis=1)
    shape = (len(counts), max(1, sizes.max(initial=1)))
    labels, votes = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    for start in range(0, len(counts), _COUNT_ROWS):  # index arrays for all rows would be larger than the result
        block = slice(start, start + _COUNT_ROWS)
        rows, columns = np.nonzero(counts[block])
        slot = np.arange(len(rows)) - np.repeat(np.cumsum(sizes[block]) - sizes[block], sizes[block])
        labels[block][rows, slot], votes[block][rows, slot] = columns, counts[block][rows, columns]
    return labels, votes


def tally(rows, columns, shape):
    """Count how often each cell of a table of `shape` occurs in (rows, columns)."""
    flat = np.bincount((rows * shape[1] + columns).ravel(), minlength=shape[0] * shape[1])
    return flat.reshape(shape)


def align_columns(frame, classes):
    """Sort the columns of a DataFrame of counts by classes."""
    names = frame.columns.tolist()
    if not frame.columns.is_unique:
        raise ValueError(f"y names a class twice in its columns {some(names)}; add up the repeated columns.")
    if classes is None:
        classes = sorted_labels(names, "y")
    wanted = classes.tolist()
    known, given = set(wanted), set(names)
    unseen = [name for name in names if name not in known]
    lacking = [label for label in wanted if label not in given]
    if unseen or lacking:
        raise ValueError(
            f"the columns of y must be the classes {some(wanted)}: unknown are {some(unseen)}, lacking are "
            f"{some(lacking)}; drop the former and add the latter as columns of zeros."
        )
    return frame.iloc[:, frame.columns.get_indexer(wanted)], classes


def check_counts(values, classes):
    """Return counts as floats, with their classes."""
    n_classes = values.shape[1]
    if classes is not None and n_classes != len(classes):
        raise ValueError(
            f"y has {n_classes} columns of counts for the {len(classes)} classes {some(classes.tolist())}."
        )
    if n_classes < 2:
        raise ValueError(
            f"y has shape {values.shape}, but counts need a column for each of at least two classes; if y "
            "holds one label per item, pass it 1-D, as y.ravel()."
        )
    try:
        counts = check_array(values, dtype=np.float64, input_name="y")
    except (TypeError, ValueError) as error:
        raise ValueError(f"y does not hold vote counts: {error}") from error
    if counts.min() < 0:
        row = int(np.argmax((counts < 0).any(axis=1)))
        raise ValueError(f"y has negative counts, first in row {row}; votes and their weights start at 0.")
    if not counts.any():
        raise ValueError("y holds no votes: all counts are zero; pass at least one annotated item.")
    return counts, np.arange(n_classes) if classes is None else classes


def one_vote_each(labels, classes):
    """Return the counts of one annotation per item, with their classes."""
    if labels.dtype.kind == "c":
        raise ValueError("Complex data not supported: y holds complex labels; use integers or strings.")
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    given = labels.tolist()
    if any(is_na(label) for label in set(given)):
        raise ValueError("y holds missing labels; leave these items out, or pass counts with rows of zeros.")
    found = sorted_labels(set(given), "y")
    check_classification_targets(labels.astype(found.dtype))
    if classes is None:
        classes = found
    if len(classes) < 2:
        raise ValueError(
            f"y holds 1 class only, {some(classes.tolist())} (n_samples={len(labels)}); at least two are needed."
        )
    column = {label: position for position, label in enumerate(classes.tolist())}
    unseen = [label for label in found.tolist() if label not in column]
    if unseen:
        raise ValueError(f"y holds labels {some(unseen)} that are not in classes {some(classes.tolist())}.")
    counts = np.zeros((len(labels), len(classes)))
    counts[np.arange(len(labels)), [column[label] for label in given]] = 1
    return counts, classes


def code_dtype(n):
    """Smallest signed integer type for positions among `n` things, and -1."""
    return np.min_scalar_type(-max(n, 1))


def _row_slices(n_rows, width):
    step = max(1, BLOCK // max(width, 1))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def _blocks(table):
    if 0 in table.shape:
        return
    if is_frame(table):
        for j in range(table.shape[1]):
            yield _column_block(table.iloc[:, j], slice(0, table.shape[0]), slice(j, j + 1))
        return
    masked = isinstance(table, np.ma.MaskedArray)
    values = table.data if masked else np.asarray(table)
    if values.dtype.kind not in _LABEL_KINDS:
        what = "Complex data not supported: " if values.dtype.kind == "c" else ""
        raise ValueError(f"{what}annotations has dtype {values.dtype}, which holds no labels; use numbers or strings.")
    columns = slice(0, table.shape[1])
    for rows in _row_slices(*values.shape):
        if masked:
            absent = np.ma.getmaskarray(table[rows])
            yield Block(rows, columns, values[rows][~absent], absent)
        else:
            yield Block(rows, columns, values[rows])


def _column_block(column, rows, where):
    if column.dtype.kind in "mM":  # a column of NaT has a time dtype
        column = column.astype(object)
    if isinstance(column.dtype, np.dtype):
        return Block(rows, where, column.to_numpy())
    absent = column.isna().to_numpy()
    values = np.asarray(column.array[~absent])
    return Block(rows, where, values, absent[:, None], has_na=bool(absent.any()))


def factorize(values):
    """Distinct labels (a list of Python scalars) and the position of every value in it, flattened."""
    values = values.ravel()
    if values.dtype.kind in "biu":
        return _factorize_integers(values)
    if values.dtype.kind == "f":
        return _factorize_floats(values)
    pandas = sys.modules.get("pandas")
    if pandas is not None and len(values) > _LONG:  # its hash table is several times as fast as a dict
        local, labels = pandas.factorize(values, use_na_sentinel=False)
        return labels.tolist(), local
    position = {}
    try:
        local = [position.setdefault(label, len(position)) for label in values.tolist()]
    except TypeError as error:
        raise ValueError("annotations holds entries that are no scalars; use numbers or strings.") from error
    return list(position), np.array(local, dtype=np.intp)


def _factorize_integers(values):
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    if high - low >= max(_WIDEST_LOOKUP, 2 * len(values)) or high > np.iinfo(np.int64).max:
        labels, local = np.unique(values, return_inverse=True)
        return labels.tolist(), local
    offset = values.astype(np.int64) - low
    present = np.zeros(high - low + 1, dtype=bool)
    present[offset] = True
    labels = (np.flatnonzero(present) + low).astype(values.dtype).tolist()
    return labels, (np.cumsum(present) - 1)[offset]


def _factorize_floats(values):
    """Factorize whole numbers as integers, since sorting floats takes ten times as long."""
    nan = np.isnan(values)
    if nan.all():
        return [np.nan], np.zeros(len(values), dtype=np.intp)
    whole = np.where(nan, values[np.argmin(nan)], values)  # NaN is replaced by the first label that is present
    if not (np.all(np.abs(whole) < 2**53) and np.all(whole == np.rint(whole))):
        labels, local = np.unique(values, return_inverse=True)
        return labels.tolist(), local
    labels, local = _factorize_integers(whole.astype(np.int64))
    if nan.any():
        local[nan] = len(labels)
        labels = [*labels, np.nan]
    return labels, local


def _fill(region, absent, values):
    if absent is None:
        region[...] = values.reshape(region.shape)
    else:
        region[~absent] = values


def _reject_na(experts, missing_label):
    raise ValueError(
        f"annotations of the experts {experts.tolist()} hold NaN, None or NA although "
        f"missing_label={missing_label!r}; replace them by it, or leave missing_label=None to accept every "
        "marker."
    )


def _reject_unseen(block, experts, labels, local, unseen, classes):
    where = np.zeros((block.rows.stop - block.rows.start, len(experts)), dtype=bool)
    _fill(where, block.absent, np.array([label in unseen for label in labels])[local])
    raise unseen_labels(experts[where.any(axis=0)], unseen, classes)


def unseen_labels(experts, labels, classes):
    """Error of experts whose labels are no classes."""
    fix = "add them to classes, correct them, or mark them as missing"
    if len(classes) and isinstance(labels[0], str) != isinstance(classes[0], str):
        fix = "use labels of one type"
    return ValueError(
        f"annotations of expert {some(experts.tolist())} hold labels {some(labels)} that are not in classes "
        f"{some(classes.tolist())}; {fix}."
    )


def some(items, n=10):
    """Text with the first few `items`."""
    text = ", ".join(repr(item) for item in items[:n])
    return f"[{text}{', ...' if len(items) > n else ''}]"


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
        annotators = _names(annotators, "annotators")
        tasks = None if tasks is None else _names(tasks, "tasks")
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

        return pd.DataFrame(wide, index=pd.Index(self.tasks), columns=pd.Index(self.annotators), dtype=object)

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


def make_votes(
    annotations, classes=None, missing_label=None, duplicates="error", names=COLUMNS, tasks=None, *, extend=False
):
    """`Votes` of anything that holds annotations, as `annotations.encode_votes` describes it.

    With `extend`, labels of the kind of `classes` that are not among them become classes, too.
    """
    if classes is not None:
        classes = check_classes(classes)
    if isinstance(annotations, Votes):
        used = annotations.classes[np.unique(annotations.label)]
        if extend and classes is not None and len(used) and isinstance(used[0], str) == isinstance(classes[0], str):
            classes = np.union1d(classes, used)
        return annotations if classes is None else annotations.recode(classes)
    if issparse(annotations):
        return _from_sparse(annotations, classes, tasks)
    if is_long(annotations, names):
        return _from_long(annotations, classes, missing_label, duplicates, names, tasks)
    encoded = encode_table(annotations, classes, missing_label, extend=extend)
    item, annotator = np.nonzero(encoded.codes >= 0)
    label = encoded.codes[item, annotator]
    votes = Votes(item, annotator, label, len(encoded.codes), encoded.classes, encoded.experts, tasks)
    if tasks is None and is_frame(annotations):  # whose rows may have been drawn repeatedly
        votes.tasks = annotations.index.to_numpy(dtype=object)
    return votes


def is_long(table, names=COLUMNS):
    """Whether a table, or a Parquet file, has one row per answer: it has the three columns."""
    if isinstance(table, str | os.PathLike):
        return True
    columns = set(getattr(table, "column_names", None) or getattr(table, "columns", ()))  # Arrow calls them otherwise
    lacking = [name for name in names if name not in columns]
    if len(lacking) == 1:
        raise no_columns("table", lacking)
    return not lacking


def no_columns(table, lacking):
    """Error of a long table without some of its columns."""
    return ValueError(f"{table} lacks the columns {lacking}; name yours with task=, annotator= and label=.")


def no_name(column, rows):
    """Error of a long table that does not say which item or who."""
    return ValueError(f"table has no {column} in rows {some(rows.tolist())}; drop them.")


def repeated_pairs(task, annotator, rows):
    """Error of a long table in which somebody answers an item again."""
    return ValueError(
        f"table repeats a pair of {task} and {annotator} in rows {some(rows.tolist())}; drop repeats, or pass "
        "duplicates='last' or 'count'."
    )


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


def _from_long(table, classes, missing_label, duplicates, names, tasks):
    """Votes from the rows of a long table, read a batch at a time where it is a file."""
    is_missing = missing_test(missing_label)
    known = [_Numbering() for _ in names]
    if tasks is not None:
        known[0].add(_names(tasks, "tasks").tolist())
        n_named = len(known[0].place)
    if classes is not None:
        known[2].add(classes.tolist())
    parts, index, n_minus_one = [], [], 0
    for columns, rows in _batches(table, names):
        codes = []
        for numbering, values, name in zip(known, columns, names, strict=True):
            labels, local = factorize(values)
            if name == names[2]:
                # known classes come first, so that -1 is a vote where it is a class
                fresh = [label for label in labels if label not in numbering.place and not is_missing(label)]
                if fresh and classes is not None:
                    raise ValueError(
                        f"table holds labels {some(fresh)} that are not in classes {some(classes.tolist())}."
                    )
                numbering.add(fresh)
            elif any(is_na(label) for label in labels):
                raise no_name(name, rows[np.array([is_na(label) for label in labels])[local]])
            else:
                numbering.add(labels)
            codes.append(np.array([numbering.place.get(label, -1) for label in labels], dtype=np.int64)[local])
        given = codes[2] >= 0
        if missing_label is None and classes is None and -1 in labels:
            n_minus_one += int((local == labels.index(-1)).sum())
        parts.append([code[given] for code in codes])
        index.append(rows[given])
    warn_of_minus_one(n_minus_one)
    item, annotator, label = (np.concatenate(column) for column in zip(*parts, strict=True))
    if tasks is not None and len(known[0].place) > n_named:
        strange = list(known[0].place)[n_named:]
        raise ValueError(f"table holds tasks {some(strange)} that are not in tasks; drop these rows or correct them.")
    people = sorted_labels(known[1].place, "table")
    annotator = known[1].ranks(people)[annotator]
    if classes is None:
        classes = sorted_labels(known[2].place, "table")
        label = known[2].ranks(classes)[label]
    names_of_tasks = np.empty(len(known[0].place), dtype=object)
    names_of_tasks[:] = list(known[0].place)
    key = item * max(len(people), 1) + annotator
    order = np.argsort(key, kind="stable")
    key = key[order]
    again = key[1:] == key[:-1]
    if again.any():
        if duplicates == "error":
            pairs = np.append(again, False) | np.insert(again, 0, False)
            where = np.sort(order[pairs])
            raise repeated_pairs(*names[:2], np.concatenate(index)[where])
        order = order[np.append(~again, True)]  # the last of equal ones
    votes = object.__new__(Votes)
    return votes._set(
        item[order],
        annotator[order],
        label[order],
        len(names_of_tasks),
        classes,
        _names(people, "annotators"),
        names_of_tasks,
    )


class _Numbering:
    """Numbers for labels in the order of their first appearance."""

    def __init__(self):
        self.place = {}

    def add(self, labels):
        for label in labels:
            self.place.setdefault(label, len(self.place))

    def ranks(self, ordered):
        """Position in the sorted array of every number."""
        rank = {label: position for position, label in enumerate(ordered.tolist())}
        return np.array([rank[label] for label in self.place], dtype=np.int64)


def open_parquet(path):
    """Open a Parquet file, such that reading it in batches takes memory for a batch only."""
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow; pip install 'sklearn-l2d[parquet]' brings it.") from error
    # by default pyarrow keeps what it has read, and reads the columns of a row group as a whole
    try:
        return ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER)
    except ArrowInvalid as error:
        raise ValueError(
            f"{error} It is no Parquet file; pandas makes one from a CSV file by read_csv and to_parquet."
        ) from error


def _batches(table, names):
    """Yield the three columns of a long table as arrays, and the names of its rows."""
    if isinstance(table, str | os.PathLike):
        start = 0
        with open_parquet(table) as file:
            lacking = [name for name in names if name not in file.schema_arrow.names]
            if lacking:
                raise no_columns(table, lacking)
            for batch in file.iter_batches(_BATCH, columns=list(names)):
                frame = batch.to_pandas()
                yield [_column(frame[name]) for name in names], np.arange(start, start + len(frame))
                start += len(frame)
        if start == 0:
            yield [np.empty(0, dtype=object) for _ in names], np.arange(0)
        return
    if is_frame(table):
        yield [_column(table[name]) for name in names], np.asarray(table.index)
        return
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True)
    yield [frame[name].to_numpy() for name in names], np.arange(len(frame))


def _column(column):
    """Values of a pandas column: plain ones as they are, others as objects."""
    if column.dtype.kind in "mM" or not isinstance(column.dtype, np.dtype):
        return column.astype(object).to_numpy()
    return column.to_numpy()


def _names(names, what):
    given = list(names)
    array = np.empty(len(given), dtype=object)
    array[:] = [name.item() if isinstance(name, np.generic) else name for name in given]
    if len(set(array.tolist())) < len(array):
        raise ValueError(f"{what} holds a name twice; name each once.")
    return array


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
