"""Tables of the user: reading them into a crowd, and writing the roster."""

import csv
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from .._encoding import some
from ..annotations import encode_annotations, encode_counts, from_long
from ._crowds import Crowd, hold_out


def read_crowd(counts, features, identified=None, identified_features=None, truth=None, seed=0):
    """Crowd from CSV files.

    Parameters
    ----------
    counts : path
        Column `id`, then one column of votes per class.
    features : path
        Column `id`, then numbers.
    identified : path, default=None
        Columns `task` (an id), `annotator` and `label` (a class), one row per annotation.
    identified_features : path, default=None
        Like `features`, for the tasks; None looks them up in `features`.
    truth : path, default=None
        Columns `id` and `label`, for some of the tasks and items. A third of the tasks with a truth is kept for tests.
    seed : int, default=0
        Decides which.

    Raises
    ------
    ValueError, OSError
        If a file cannot be read or does not fit the others; the message names the file.
    """
    votes = _by_id(counts, "votes")
    table = _by_id(features, "features")
    X = _look_up(table, votes.index, features, f"of {counts}")
    with named(counts):
        y, classes = encode_counts(votes)
    crowd = Crowd(title=f"{counts}", X=X, counts=y, classes=classes.tolist())
    if identified is None:
        return crowd
    with named(identified):
        wide = from_long(read_csv(identified))
        codes, _, experts = encode_annotations(wide, classes=classes)
    if identified_features is not None:
        table = _by_id(identified_features, "features", columns=table.columns)
    crowd.X_identified = _look_up(table, wide.index, identified_features or features, f"of {identified}")
    crowd.annotations, crowd.experts = codes, experts.tolist()
    if truth is not None:
        labels = _by_id(truth, "labels", numeric=False)
        with named(truth):
            crowd.y_identified, crowd.y = (_true_codes(labels, ids, crowd.classes) for ids in (wide.index, votes.index))
            hold_out(crowd, seed)
    return crowd


def write_roster(path, roster):
    """Write one row per expert, as CSV."""
    behaviours = range(roster.membership.shape[1])
    header = ["expert", "labels", "cluster"]
    header += [f"membership_{k}" for k in behaviours] + [f"std_{k}" for k in behaviours]
    header += ["one_net_agreement", "majority_agreement", "accuracy"]
    with Path(path).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        for m, expert in enumerate(roster.experts):
            shares = [*roster.membership[m], *roster.std[m], roster.one_net[m], roster.majority[m], roster.accuracy[m]]
            numbers = ["" if np.isnan(value) else f"{value:.6f}" for value in shares]
            writer.writerow([expert, roster.n_labels[m], roster.membership[m].argmax(), *numbers])


@contextmanager
def named(path):
    """Put the name of the file in front of a message about its contents."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_csv(path, **options):
    """A CSV file as text: names such as 007 must not become numbers. `options` are those of pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("tables are read with pandas; pip install 'sklearn-l2d[plot]' brings it.") from error
    with named(path):
        return pd.read_csv(path, dtype=str, encoding="utf-8-sig", **options)


def _true_codes(labels, ids, classes):
    """Positions in `classes` of the true labels of some ids, -1 where unknown."""
    if "label" not in labels.columns:
        raise ValueError(f"has no column 'label'; its columns besides 'id' are {some(labels.columns.tolist())}.")
    return encode_annotations(labels[["label"]].reindex(ids), classes=classes).codes[:, 0].astype(int)


def _by_id(path, what, columns=None, numeric=True):
    """A table, of numbers by default, indexed by its column `id`."""
    table = read_csv(path)
    if "id" not in table.columns:
        raise ValueError(f"{path}: has no column 'id'; its columns are {some(table.columns.tolist())}.")
    if table["id"].isna().any():
        raise ValueError(f"{path}: has rows without an id, first in line {int(table['id'].isna().argmax()) + 2}.")
    if not table["id"].is_unique:
        raise ValueError(f"{path}: repeats the ids {some(table['id'][table['id'].duplicated()].tolist())}.")
    table = table.set_index("id")
    if table.empty:
        raise ValueError(f"{path}: holds no {what}; give it rows, and columns besides 'id'.")
    if columns is not None and table.columns.tolist() != columns.tolist():
        raise ValueError(f"{path}: its columns must be those of --features, {some(columns.tolist())}.")
    for name in table.columns if numeric else ():
        table[name] = _numbers(table[name], path)
    return table


def _numbers(column, path):
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    wrong = ~np.isfinite(numbers.to_numpy(dtype=float))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{path}: column {column.name!r} has no finite number for id {column.index[row]!r} ({column.iloc[row]!r})."
        )
    return numbers.astype(float)


def _look_up(table, ids, path, whose):
    lacking = ids.difference(table.index, sort=False)
    if len(lacking):
        raise ValueError(f"{path}: lacks {len(lacking)} ids {whose}: {some(lacking.tolist())}.")
    return table.loc[ids].to_numpy()
