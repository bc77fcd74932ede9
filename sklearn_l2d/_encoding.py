"""Tables of labels as integer codes and as vote counts."""

import os
import sys
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.multiclass import check_classification_targets

from ._sklearn import warn

BLOCK = 1 << 20  # cells per block, so that temporary arrays have at most a few tens of MB
_WIDEST_LOOKUP = 1 << 16
_COUNT_ROWS = 1 << 16  # rows per block of sparse counts
_LABEL_KINDS = "biufOUST"
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


def as_frame(table):
    """A table of polars or Arrow as a DataFrame of pandas, so that its columns keep their names; others as they are."""
    if is_frame(table) or not _is_foreign(table):
        return table
    import narwhals as nw
    import pandas as pd

    columns = [
        pd.Series(column.to_list(), dtype=object) for column in nw.from_native(table, eager_only=True).iter_columns()
    ]
    names = foreign_names(table)
    frame = pd.DataFrame(dict(enumerate(columns)))
    return frame if names is None else frame.set_axis(names, axis=1)


def _is_foreign(table):
    """Whether `table` is one of polars or Arrow."""
    return type(table).__module__.partition(".")[0] in ("polars", "pyarrow") and len(getattr(table, "shape", ())) == 2


def foreign_names(table):
    """Names of the columns of a table of polars or Arrow; None if they are what polars makes up."""
    names = list(getattr(table, "column_names", None) or table.columns)
    return None if names == [f"column_{i}" for i in range(len(names))] else names


def has_names(table):
    """Whether the columns of a table have names, as pandas and others know them, or its answers tell who gave them."""
    if is_frame(table) or hasattr(table, "annotators") or isinstance(table, str | os.PathLike):
        return True
    return _is_foreign(table) and foreign_names(table) is not None


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
    annotations = as_frame(annotations)
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
    if is_frame(table):
        if not table.columns.is_unique:
            repeated = list(table.columns[table.columns.duplicated()].unique())
            raise ValueError(f"annotations names several experts {repeated}; give every column its own name.")
        return table.columns.to_numpy(dtype=object)
    if hasattr(table, "annotators"):
        return table.annotators
    return np.arange(table.shape[1]).astype(object)


def check_classes(classes):
    """Return `classes` as an array after checking that it is 1-D, sorted and unique."""
    classes = plain_text(np.asarray(classes))
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


def sorted_names(names):
    """Sort names of any types into an object array: by their types first, where these have no common order."""
    try:
        ordered = sorted(names)
    except TypeError:
        ordered = sorted(names, key=lambda name: (isinstance(name, str), type(name).__name__, name))
    array = np.empty(len(ordered), dtype=object)
    array[:] = ordered
    if ordered and all(isinstance(name, float) and name.is_integer() for name in ordered):
        array[:] = [int(name) for name in ordered]  # NaN among them has made them floats
    return array


def _plain(name):
    """A name without a type of numpy, so that it is equal to what a table holds; dates are those of pandas."""
    if isinstance(name, np.datetime64) and "pandas" in sys.modules:
        return sys.modules["pandas"].Timestamp(name)
    return name.item() if isinstance(name, np.generic) else name


def unique_names(names, what):
    """Names as an array of objects, refused where one stands twice."""
    given = list(names)
    array = np.empty(len(given), dtype=object)
    array[:] = [_plain(name) for name in given]
    if len(set(array.tolist())) < len(array):
        raise ValueError(f"{what} holds a name twice; name each once.")
    return array


def plain_text(labels):
    """An array whose text of numpy's StringDType has a type that all libraries know; others as they are."""
    if labels.dtype.kind != "T":
        return labels
    text = labels.astype(object)
    return text if any(is_na(label) for label in text.ravel()) else np.array(text.tolist(), dtype=str)


def whole_numbers(labels):
    """Labels as integers if they are floats without a fraction."""
    if labels.dtype.kind == "f" and np.all(np.abs(labels) < 2**53) and np.all(labels == np.rint(labels)):
        return labels.astype(np.int64)
    return labels


def missing_test(missing_label):
    """Return the predicate whether a label that is not a known class marks a missing annotation."""
    if missing_label is None:
        return lambda label: is_na(label) or label == -1
    markers = missing_markers(missing_label)
    named, na_too = [marker for marker in markers if not is_na(marker)], any(map(is_na, markers))
    return lambda label: na_too if is_na(label) else any(bool(label == marker) for marker in named)


def missing_markers(missing_label):
    """All markers that `missing_label` names: itself, or what a collection of several holds."""
    is_one = isinstance(missing_label, str | bytes) or not np.iterable(missing_label)
    return [missing_label] if is_one else list(missing_label)


def label_array(y):
    """`y` as an array, in which None stands for masked entries, and what a list holds has not become text."""
    if isinstance(y, np.ma.MaskedArray) and np.ma.getmaskarray(y).any():
        labels = y.data.astype(object)
        labels[np.ma.getmaskarray(y)] = None
        return labels
    labels = plain_text(np.asarray(y))
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
    """`EncodedAnnotations` of a wide table, as `annotations.encode_annotations` describes it.

    With `extend`, labels that are not in `classes` but of the same kind become classes too.
    """
    if classes is not None:
        classes = check_classes(classes)
    table = as_table(annotations)
    experts = expert_names(table)
    return EncodedAnnotations(*encode(table, experts, classes, missing_label, extend), experts)


def encode(table, experts, classes, missing_label, extend=False):
    """Return the codes of `table` (-1 = missing) and their classes; arguments as in `encode_table`."""
    is_missing = missing_test(missing_label)
    markers = missing_markers(missing_label)
    na_is_missing = any(map(is_na, markers))
    known = {} if classes is None else {label: code for code, label in enumerate(classes.tolist())}
    if any(marker in known for marker in markers if not is_na(marker)):
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


def align_columns(frame, classes, what="y"):
    """Sort the columns of a DataFrame of counts by classes."""
    places, classes = _places_of(frame.columns.tolist(), classes, what)
    sparse = {name: kind.subtype for name, kind in frame.dtypes.items() if hasattr(kind, "fill_value")}
    frame = frame.astype(sparse) if sparse else frame
    return frame.iloc[:, places], classes


def counts_table(counts, classes, what="y"):
    """Counts as an array or DataFrame, and their classes; columns that have names are sorted by these.

    `classes` are those that are known, or None. Names in polars and Arrow are text: whole numbers among them are
    numbers, unless classes of text are known.
    """
    if is_frame(counts):
        return align_columns(counts, classes, what)
    if not _is_foreign(counts):
        return counts if issparse(counts) else np.asarray(counts), classes
    import narwhals as nw

    names, values = foreign_names(counts), nw.from_native(counts, eager_only=True).to_numpy()
    if names is None:
        return values, classes
    if all(name.isdecimal() for name in names) and (classes is None or not isinstance(classes[0], str)):
        names = [int(name) for name in names]
    places, classes = _places_of(names, classes, what)
    return values[:, places], classes


def _places_of(names, classes, what):
    """Positions of the classes among the names of columns of counts, and the classes; None takes those of the names."""
    if len(set(names)) < len(names):
        raise ValueError(f"{what} names a class twice in its columns {some(names)}; add up the repeated columns.")
    if classes is None:
        classes = sorted_labels(names, what)
    wanted = classes.tolist()
    known, given = set(wanted), set(names)
    unseen = [name for name in names if name not in known]
    lacking = [label for label in wanted if label not in given]
    if unseen or lacking:
        raise ValueError(
            f"the columns of {what} must be the classes {some(wanted)}: unknown are {some(unseen)}, lacking are "
            f"{some(lacking)}; drop the former and add the latter as columns of zeros."
        )
    return [names.index(label) for label in wanted], classes


def check_counts(values, classes, what="y", may_be_empty=False):
    """Return counts as floats, with their classes; unless they may be empty, with at least one vote."""
    n_classes = values.shape[1]
    if classes is not None and n_classes != len(classes):
        raise ValueError(
            f"{what} has {n_classes} columns of counts for the {len(classes)} classes {some(classes.tolist())}."
        )
    if n_classes < 2:
        raise ValueError(
            f"{what} has shape {values.shape}, but counts need a column for each of at least two classes; if {what} "
            f"holds one label per item, pass it 1-D, as {what}.ravel()."
        )
    try:
        counts = check_array(values, dtype=np.float64, input_name=what)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} does not hold vote counts: {error}") from error
    if counts.min() < 0:
        row = int(np.argmax((counts < 0).any(axis=1)))
        raise ValueError(f"{what} has negative counts, first in row {row}; votes and their weights start at 0.")
    if not (may_be_empty or counts.any()):
        raise ValueError(f"{what} holds no votes: all counts are zero; pass at least one annotated item.")
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


def factorize(values, name="annotations"):
    """Distinct labels (a list of Python scalars) and the position of every value in it, flattened.

    `name` is that of the table or column, for the error message.
    """
    values = values.ravel()
    if values.dtype.kind in "biu":
        return _factorize_integers(values)
    if values.dtype.kind == "f":
        return _factorize_floats(values)
    pandas = sys.modules.get("pandas")
    position = {}
    try:
        if pandas is not None and len(values) > _LONG:  # its hash table is several times as fast as a dict
            local, labels = pandas.factorize(values, use_na_sentinel=False)
            return labels.tolist(), local
        local = [position.setdefault(label, len(position)) for label in values.tolist()]
    except TypeError as error:
        raise ValueError(f"{name} holds entries that are no scalars; use numbers or strings.") from error
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
