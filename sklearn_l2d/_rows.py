"""Rows of tables that belong together, matched by their ids."""

import numpy as np

from ._encoding import as_frame, check_row_count, some
from ._long_tables import COLUMNS, column_values, columns_of, in_order
from ._sklearn import count_rows, take_rows, warn
from ._votes import Votes


def same_rows(**tables):
    """Tables with their rows in the order of the first one that has ids.

    The index of a pandas object, and the tasks of votes and long tables, are ids; tables without ids are taken by
    position. The same ids in another order are matched, other ids are refused. Numbers 0, 1, ... are what pandas gives
    to tables without ids, and splitting leaves increasing ones of them, so that they say nothing beside other ids. Ids
    that repeat are taken by position if they are the same. A long table follows the others: its order says nothing, and
    like votes it may lack items, which nobody answered.

    Parameters
    ----------
    **tables : array-like, DataFrame, Series, Votes, AnnotatedTarget or None
        By the names that errors use. Lengths are not checked.

    Returns
    -------
    matched : list
        The tables, in the order of the arguments.

    Raises
    ------
    ValueError
        If ids differ, or repeat in another order.
    """
    tables = {name: as_frame(table) if _is_long(table) else table for name, table in tables.items()}
    found = {name: _ids(table) for name, table in tables.items()}
    found = {name: ids for name, ids in found.items() if ids is not None and len(ids)}
    found = {name: found[name] for name in sorted(found, key=lambda name: _is_long(tables[name]))}
    if len(found) < 2:
        return list(tables.values())
    known = None
    for name, ids in found.items():
        ids = _index(ids)
        if known is not None and (_is_long(tables[name]) or isinstance(tables[name], Votes)):
            tables[name], ids = _with_silent_items(tables[name], ids, known[1])
        order = None if known is None else _order(name, ids, *known)
        if order is not None:
            tables[name], ids = _take(tables[name], order), ids[order]
        if known is None or _is_default(known[1]) or (_is_numbering(known[1]) and not _is_numbering(ids)):
            known = name, ids
    return list(tables.values())


def has_index(table):
    """Whether `table` behaves like a pandas DataFrame or Series."""
    return hasattr(table, "iloc") and hasattr(table, "index")


def _ids(table):
    """Ids of the rows of a table, None if it has none."""
    table = getattr(table, "annotations", table) if isinstance(table, np.ndarray) else table  # an AnnotatedTarget
    if isinstance(table, Votes):
        return table.tasks
    if _is_long(table):
        return _items(table)[0]
    return table.index if has_index(table) else None


def _is_long(table):
    """Whether a row of a table is an answer."""
    return set(COLUMNS) <= columns_of(table)


def _items(table):
    """Ids of the items of a long table, in the order in which it becomes votes, and the item of each row."""
    ids, item = in_order(column_values(table[COLUMNS[0]]), f"the column {COLUMNS[0]!r} of the table")
    names = np.empty(len(ids), dtype=object)
    names[:] = ids
    return names, item


def _take(table, order):
    if _is_long(table):
        rows = np.argsort(np.argsort(order)[_items(table)[1]], kind="stable")
        return table.iloc[rows].astype({COLUMNS[0]: object})  # of objects, the first one becomes the first item
    return table.iloc[order] if has_index(table) else table[order]


def _with_silent_items(table, ids, known):
    """Answers and their ids, to which the known items that nobody answered are added, if all of their own are known."""
    answered, every = set(ids), set(known)
    if len(answered) < len(ids) or len(every) < len(known) or not answered < every:
        return table, ids
    import pandas as pd

    silent = [name for name in known if name not in answered]
    ids = pd.Index([*ids, *silent], tupleize_cols=False)
    if isinstance(table, Votes):
        answers = table.item, table.annotator, table.label
        return Votes(*answers, len(ids), table.classes, table.annotators, list(ids)), ids
    task, annotator, label = COLUMNS
    more = pd.DataFrame({task: silent, annotator: table[annotator].iloc[0], label: None}, dtype=object)
    return pd.concat([table[list(COLUMNS)].astype(object), more], ignore_index=True), ids


def rows_of_items(annotations, rows, n_rows):
    """Annotations of items, by increasing positions among `n_rows`; a long table has rows for their answers."""
    if not _is_long(annotations):
        check_row_count(range(count_rows(annotations)), n_rows, "annotations")
        return take_rows(annotations, rows)
    table = as_frame(annotations)
    items, item = _items(table)
    check_row_count(items, n_rows, "annotations")
    return table.iloc[np.flatnonzero(np.isin(item, rows))]


def _order(name, ids, known_name, known):
    """Order of `ids` that makes them the known ones, None where rows are matched by position."""
    if len(ids) != len(known) or ids.equals(known):
        return None
    is_default, are_unique = _is_default(ids) or _is_default(known), ids.is_unique and known.is_unique
    order = ids.get_indexer(known) if are_unique else np.full(len(known), -1)
    if (order >= 0).all():
        if is_default:
            warn(
                f"{name} has the ids of {known_name} in another order, and its rows are matched by them; if they are "
                "no ids, pass both with reset_index(drop=True)."
            )
        return order
    if is_default or _is_numbering(ids) != _is_numbering(known):
        return None
    if not are_unique:
        raise ValueError(
            f"{name} and {known_name} repeat ids in unlike order, so that their rows cannot be matched; make the ids "
            "unique, or pass both with reset_index(drop=True) to match by position."
        )
    other = known[order < 0]
    raise ValueError(
        f"{name} has other rows than {known_name}: {len(other)} of {len(known)} ids differ, {name} lacks "
        f"{some(other.tolist(), 3)}; pass the same items, or both with reset_index(drop=True) to match by position."
    )


def _index(ids):
    """`ids` as a pandas Index."""
    import pandas as pd

    if isinstance(ids, pd.MultiIndex):
        return ids.to_flat_index()
    return ids if isinstance(ids, pd.Index) else pd.Index(ids.tolist(), tupleize_cols=False)


def _is_numbering(ids):
    """Whether ids are increasing whole numbers, which splitting leaves of a default index."""
    return ids.inferred_type == "integer" and ids.is_monotonic_increasing and ids.is_unique


def _is_default(ids):
    """Whether ids are 0, 1, ..."""
    return _is_numbering(ids) and ids[0] == 0 and ids[-1] == len(ids) - 1
