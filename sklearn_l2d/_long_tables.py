"""Long tables, with one row per answer, in memory or in a Parquet file that is read in batches."""

import os

import numpy as np

from ._encoding import (
    as_frame,
    factorize,
    is_frame,
    is_na,
    missing_test,
    some,
    sorted_labels,
    sorted_names,
    unique_names,
    warn_of_minus_one,
)

COLUMNS = "task", "annotator", "label"  # of a long table
_BATCH = 1 << 20  # rows of a file that are read at once
_BUFFER = 1 << 20  # bytes of each column of a Parquet file that are read at once


def columns_of(table):
    """Names of the columns of a table as a set, empty if it has none."""
    return set(getattr(table, "column_names", None) or getattr(table, "columns", ()))  # Arrow calls them otherwise


def is_long(table, names=COLUMNS):
    """Whether a table, or a Parquet file, has one row per answer: it has the three columns."""
    if isinstance(table, str | os.PathLike):
        return True
    columns = columns_of(table)
    lacking = [name for name in names if name not in columns]
    if len(lacking) == 1:
        raise no_columns("table", lacking)
    return not lacking


def no_columns(table, lacking):
    """Error of a long table without some of its columns."""
    return ValueError(f"{table} lacks the columns {lacking}; name yours with task=, annotator=, label= and time=.")


def no_name(column, rows):
    """Error of a long table that does not say which item or who."""
    return ValueError(
        f"table has no {column} in rows {some(rows.tolist())}; drop them, or where annotators are unknown count votes "
        "without names, by from_long with duplicates='count'."
    )


def repeated_pairs(task, annotator, rows):
    """Error of a long table in which somebody answers an item again."""
    return ValueError(
        f"table repeats a pair of {task} and {annotator} in rows {some(rows.tolist())}; drop repeats, or pass "
        "duplicates='first', 'last' or 'count'."
    )


def as_long_frame(table):
    """A long table of pandas, polars or Arrow as a DataFrame of pandas."""
    frame = as_frame(table)
    if not is_frame(frame):
        raise ValueError(f"table is of type {type(table).__name__}; pass a DataFrame with one row per answer.")
    return frame


def check_columns(given, names, table="table"):
    """Refuse a long table unless each of its columns with these names is there once."""
    given = list(given)
    lacking = [name for name in names if name not in given]
    if lacking:
        raise no_columns(table, lacking)
    if len(set(names)) < len(names):
        raise ValueError(f"task, annotator, label and time name the columns {list(names)}; give each its own.")
    several = [name for name in names if given.count(name) > 1]
    if several:
        raise ValueError(f"{table} has several columns called {several}; give every column its own name.")


def column_values(column):
    """Values of a pandas column: plain ones as they are, others as objects."""
    if column.dtype.kind in "mM" or not isinstance(column.dtype, np.dtype):
        return column.astype(object).to_numpy()
    return column.to_numpy()


def _array(column):
    """Values of a narwhals column: plain ones as they are, dates as objects of Python, not numbers of nanoseconds."""
    values = column.to_numpy()
    return values if values.dtype.kind not in "mM" else np.array(column.to_list(), dtype=object)


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
    """Yield columns of a long table as arrays, and the names of its rows."""
    if isinstance(table, str | os.PathLike):
        start = 0
        with open_parquet(table) as file:
            check_columns(file.schema_arrow.names, names, table)
            for batch in file.iter_batches(_BATCH, columns=list(names)):
                frame = batch.to_pandas()
                yield [column_values(frame[name]) for name in names], np.arange(start, start + len(frame))
                start += len(frame)
        if start == 0:
            yield [np.empty(0, dtype=object) for _ in names], np.arange(0)
        return
    if is_frame(table):
        check_columns(table.columns, names)
        yield [column_values(table[name]) for name in names], np.asarray(table.index)
        return
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True)
    check_columns(frame.columns, names)
    yield [_array(frame[name]) for name in names], np.arange(len(frame))


def time_ranks(times, name, rows):
    """Ranks of the times of answers, refused where one is missing."""
    absent = np.array([is_na(when) for when in times], dtype=bool)
    if absent.any():
        raise ValueError(f"table has no {name} in rows {some(rows[absent].tolist())}; fill it in, or leave out time=.")
    try:
        return np.unique(times, return_inverse=True)[1]
    except TypeError as error:
        kinds = sorted({type(when).__name__ for when in times})
        raise ValueError(f"{name} mixes times of types {kinds} that have no order; use one type.") from error


def in_order(values, name):
    """Distinct values in the order of their first appearance, and the place of each in them; `name` is for errors."""
    labels, local = factorize(values, name)
    if values.dtype.kind not in "biuf":  # numbered as they come
        return labels, local
    first = np.empty(len(labels), dtype=np.intp)
    first[local[::-1]] = np.arange(len(local) - 1, -1, -1)  # the first one is written last
    order = np.argsort(first)
    rank = np.empty(len(labels), dtype=np.intp)
    rank[order] = np.arange(len(labels))
    return [labels[i] for i in order], rank[local]


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


def read_long(table, classes, missing_label, duplicates, names, tasks, time):
    """What `Votes` are made of, from the rows of a long table, read a batch at a time where it is a file."""
    is_missing = missing_test(missing_label)
    known = [_Numbering() for _ in names]
    if tasks is not None:
        known[0].add(unique_names(tasks, "tasks").tolist())
        n_named = len(known[0].place)
    if classes is not None:
        known[2].add(classes.tolist())
    parts, index, times, n_minus_one = [], [], [], 0
    for columns, rows in _batches(table, names if time is None else (*names, time)):
        codes = []
        if time is not None:
            *columns, when = columns
        for numbering, values, name in zip(known, columns, names, strict=True):
            number = in_order if name == names[0] else factorize  # people and classes are sorted in the end
            labels, local = number(values, f"the column {name!r} of the table")
            if name == names[2]:
                # known classes come first, so that -1 is a vote where it is a class
                fresh = [
                    label
                    for label in labels
                    if label not in numbering.place and not (is_na(label) or is_missing(label))
                ]
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
        if time is not None:
            times.append(when[given])
    warn_of_minus_one(n_minus_one)
    item, annotator, label = (np.concatenate(column) for column in zip(*parts, strict=True))
    if tasks is not None and len(known[0].place) > n_named:
        strange = list(known[0].place)[n_named:]
        raise ValueError(f"table holds tasks {some(strange)} that are not in tasks; drop these rows or correct them.")
    people = sorted_names(known[1].place)
    annotator = known[1].ranks(people)[annotator]
    if classes is None:
        classes = sorted_labels(known[2].place, "table")
        label = known[2].ranks(classes)[label]
    names_of_tasks = np.empty(len(known[0].place), dtype=object)
    names_of_tasks[:] = list(known[0].place)
    key = item * max(len(people), 1) + annotator
    if time is None:
        order = np.argsort(key, kind="stable")
    else:
        order = np.lexsort((time_ranks(np.concatenate(times), time, np.concatenate(index)), key))
    key = key[order]
    again = key[1:] == key[:-1]
    if again.any():
        if duplicates == "error":
            pairs = np.append(again, False) | np.insert(again, 0, False)
            where = np.sort(order[pairs])
            raise repeated_pairs(*names[:2], np.concatenate(index)[where])
        order = order[np.insert(~again, 0, True) if duplicates == "first" else np.append(~again, True)]
    return (
        item[order],
        annotator[order],
        label[order],
        len(names_of_tasks),
        classes,
        unique_names(people, "annotators"),
        names_of_tasks,
    )
