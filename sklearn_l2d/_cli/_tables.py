"""Tables of the user: reading them into a crowd, and writing the roster."""

import csv
import re
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from .._encoding import some
from .._sklearn import warn
from ..annotations import encode_annotations, encode_counts, from_long
from ._arguments import Export
from ._crowds import Crowd, keep_for_tests

_MADE_UP = re.compile(r"Unnamed: \d+")  # name that pandas gives to a column without one
_ENOUGH_ROWS = 5  # from which a pattern in numbers of votes is no chance
_FEW_TESTS = 30  # shares of right answers among fewer are uncertain by a tenth


def read_crowd(counts, features, identified=None, identified_features=None, truth=None, seed=0):
    """Crowd from CSV files.

    Parameters
    ----------
    counts : path
        Column `id`, then one column of votes per class.
    features : path
        Column `id`, then numbers.
    identified : path or Export, default=None
        Columns `task` (an id), `annotator` and `label` (a class), one row per annotation.
    identified_features : path, default=None
        Like `features`, for the tasks; None looks them up in `features`.
    truth : path, default=None
        Columns `id` and `label`, for some of the tasks and items. A third of the tasks with a truth is kept for tests,
        by whole groups where a column `group` says what they come from.
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
        _check_votes(votes)
        y, classes = encode_counts(votes)
    crowd = Crowd(title=f"{counts}", X=X, counts=y, classes=classes.tolist())
    if identified is None:
        return crowd
    answers = read_answers(identified)
    with named(identified):
        _check_known(answers["label"], classes, counts, answers["annotator"])
    refuse_repeats(identified, answers)
    with named(identified):
        wide = from_long(answers)
        codes, _, experts = encode_annotations(wide, classes=classes)
    if identified_features is not None:
        table = _by_id(identified_features, "features", columns=table.columns)
    swapped = "task and annotator seem to be swapped" if experts.size and np.isin(experts, table.index).all() else ""
    crowd.X_identified = _look_up(table, wide.index, identified_features or features, f"of {identified}", swapped)
    crowd.annotations, crowd.experts = codes, experts.tolist()
    if truth is not None:
        table = _by_id(truth, "labels", needed=["label"])
        labels, groups = table["label"], table.get("group")
        with named(truth):
            _check_known(labels, classes, counts)
            everybody = wide.index.union(votes.index)
            if not labels.index.isin(everybody).any():
                raise ValueError(
                    f"none of its ids is a task of {identified} or an id of {counts}"
                    f"{why_unknown(labels.index, everybody)}."
                )
            crowd.y_identified, crowd.y = (
                encode_annotations(labels.reindex(ids).to_frame(), classes=classes).codes[:, 0].astype(int)
                for ids in (wide.index, votes.index)
            )
            if groups is not None:
                crowd.sources = _read_groups(groups, wide.index)
        keep_for_tests(crowd, seed)
        if groups is not None:
            with named(truth):
                _check_groups_left(crowd)
        _warn_of_few_tests(len(crowd.y_test), truth)
    return crowd


def _read_groups(groups, tasks):
    """Numbers (n,) of the groups of tasks; those without a truth are nobody's."""
    if groups.isna().any():
        raise ValueError(
            f"has no group in line {_line(groups.isna())}; give an item that stands alone a group of its own."
        )
    codes = groups.astype("category").cat.codes
    if codes.nunique() < 2:
        raise ValueError("has the same group in all lines, so that no other can be kept for tests; leave it out.")
    return codes.reindex(tasks, fill_value=-1).to_numpy(dtype=int)


def _check_groups_left(crowd):
    """Refuse groups of which none is kept for tests, or only one to learn from."""
    left = crowd.sources[crowd.y_identified >= 0]
    if not len(crowd.y_test) or len(np.unique(left)) < 2:
        raise ValueError(
            "has too few groups, or too large ones, to keep about a third of the items for tests and to learn from two "
            "groups or more; give more of them."
        )


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


def read_csv(path, needed):
    """A CSV file as text, with a header that names the columns `needed`.

    What is written stays as it is, since 007, None and NA may be names; only empty cells are missing. Spaces around a
    cell do not count.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("tables are read with pandas; pip install 'sklearn-l2d[plot]' brings it.") from error
    with named(path):
        try:
            # pandas would give a header special treatment: repeated and empty names would be made up
            table = pd.read_csv(
                path, header=None, dtype=str, encoding="utf-8-sig", keep_default_na=False, na_values=[""]
            )
        except UnicodeError as error:
            raise ValueError("is no text in UTF-8; save it as CSV in UTF-8.") from error
        except pd.errors.ParserError as error:
            raise ValueError(
                f"{error}; separate columns, and nothing else, by commas: write decimals with a point, and put names "
                "with a comma in quotes."
            ) from error
        table = table.apply(lambda column: column.str.strip()).replace("", np.nan)
        names, table = table.iloc[0], table[1:].reset_index(drop=True)
        kept = names.notna() | table.notna().any()  # a comma at the end of each line is no column
        table = table.loc[:, kept].set_axis(names[kept].where(names.notna(), "").tolist(), axis=1)
        _check_header(table.columns.tolist(), needed)
        return table


def read_answers(path):
    """A long table from a CSV file or an `Export`: the columns task, annotator and label, one row per answer."""
    if isinstance(path, Export):
        with named(path):
            return path.read()
    answers = read_csv(path, ["task", "annotator", "label"])
    with named(path):
        for name in ("task", "annotator"):
            if answers[name].isna().any():
                raise ValueError(
                    f"has no {name} in line {_line(answers[name].isna())}; fill it in, or delete the line."
                )
    return answers


def refuse_repeats(path, answers):
    """Refuse a long table in which somebody answers an item again."""
    with named(path):
        again = answers["label"].notna() & answers[answers["label"].notna()].duplicated(["task", "annotator"])
        if again.any():
            task, annotator = answers.loc[again.argmax(), ["task", "annotator"]]
            raise ValueError(
                f"repeats a pair of task and annotator, first in line {_line(again)}: {annotator!r} answers {task!r} "
                "again; keep one line of each."
            )


def why_unknown(names, known):
    """Words on why names, all text, are not among known ones, to append to an error; empty if it is not clear."""
    written, other = {str(name) for name in names}, {str(name) for name in known}
    for one, two, number in ((written, other, "12.0 for 12"), (other, written, "12 for 12.0")):
        if any(name.endswith(".0") and name[:-2] in two for name in one):
            return f"; numbers are written in two ways, {number}: write whole numbers in both files"
    lower = {name.lower() for name in other}
    return "; upper and lower case differ" if any(name.lower() in lower for name in written - other) else ""


def _line(wrong):
    """Number of the first line of the file with a fault, below the header."""
    return int(wrong.to_numpy().argmax()) + 2


def _check_header(names, needed):
    lacking = [name for name in needed if name not in names]
    if lacking:
        hint = next((f"'{mark}'" for mark in ";|" if len(names) == 1 and mark in names[0]), None)
        if len(names) == 1 and "\t" in names[0]:
            hint = "tabs"
        if hint is not None:
            raise ValueError(f"separates columns by {hint}; save it with commas, and with points in decimal numbers.")
        raise ValueError(
            f"has no column {', '.join(map(repr, lacking))}; its columns are {some(names)}. The first line names the "
            f"columns, as they are written here{why_unknown(lacking, names)}."
        )
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise ValueError(f"names the columns {some(twice)} twice; give every column its own name.")


def _by_id(path, what, columns=None, needed=()):
    """A table indexed by its column `id`: of numbers in all other columns, or with the columns `needed` as text."""
    table = read_csv(path, ["id", *needed])
    with named(path):
        if table["id"].isna().any():
            raise ValueError(f"has rows without an id, first in line {_line(table['id'].isna())}.")
        if not table["id"].is_unique:
            repeated = table["id"][table["id"].duplicated()].unique().tolist()
            raise ValueError(f"repeats the ids {some(repeated)}; keep one line of each.")
        table = table.set_index("id")
        if table.empty:
            raise ValueError(f"holds no {what}; give it rows, and columns besides 'id'.")
        if needed:
            return table
        for name in table.columns:
            if not name or _MADE_UP.fullmatch(name):
                raise ValueError(
                    f"has a column {name!r}, as where the index of a table was saved along; delete it (pandas leaves "
                    "it out with to_csv(index=False))."
                )
        if columns is not None:
            if set(table.columns) != set(columns):
                raise ValueError(f"its columns must be those of --features, {some(columns.tolist())}.")
            table = table[columns]
        for name in table.columns:
            table[name] = _numbers(table[name])
    return table


def _numbers(column):
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    wrong = ~np.isfinite(numbers.to_numpy())
    if wrong.any():
        row = int(wrong.argmax())
        value = column.iloc[row]
        if not isinstance(value, str):
            fix = "fill the empty cell"
        elif "," in value:
            fix = "write decimals with a point"
        elif "%" in value:
            fix = "write numbers without %"
        else:
            fix = "all columns besides 'id' must be numbers"
        raise ValueError(
            f"column {column.name!r} has no finite number for id {column.index[row]!r} ({value!r}); {fix}."
        )
    return numbers


def _check_votes(votes):
    """Refuse columns that are no classes, and tell where numbers are no votes; all numbers are finite."""
    values, n = votes.to_numpy(), len(votes)
    negative = (values < 0).any(axis=0)
    if negative.any():
        column = int(negative.argmax())
        row = int((values[:, column] < 0).argmax())
        raise ValueError(
            f"has negative counts, first in column {votes.columns[column]!r} for id {votes.index[row]!r}; votes start "
            "at 0. Is it the file of --features?"
        )
    sums = values.sum(axis=1)
    for name, column in votes.items():
        if n >= _ENOUGH_ROWS and (np.diff(column) > 0).all():
            raise ValueError(f"column {name!r} rises from row to row, as numbers of rows do, not votes; delete it.")
        if n >= _ENOUGH_ROWS and values.shape[1] > 2 and column.any() and np.allclose(2 * column, sums):
            raise ValueError(f"column {name!r} is the sum of all others, hence no class; delete it.")
    some_votes = sums[sums > 0]
    if len(some_votes) >= _ENOUGH_ROWS:
        fractions = (values != np.rint(values)).any()
        if fractions and np.allclose(some_votes, 1, atol=0.02):
            warn("the votes of each item add up to 1: each item counts as one vote. Give numbers of votes if known.")
        elif np.allclose(some_votes, 100, atol=1 if fractions else 0):
            warn(
                "the votes of each item add up to 100: each item counts as 100 votes. If these are percentages, give "
                "numbers of votes."
            )


def _check_known(labels, classes, counts, annotators=None):
    """Refuse labels that are no classes."""
    unknown = [label for label in labels.dropna().unique() if label not in classes]
    if unknown:
        hint = why_unknown(unknown, classes)
        if annotators is not None and annotators.isin(classes).all():
            hint = "; annotator and label seem to be swapped"
        raise ValueError(
            f"holds labels {some(unknown)} that are not among the classes of {counts}, {some(classes.tolist())}{hint}; "
            "correct them, or leave cells empty where a label is missing."
        )


def _warn_of_few_tests(n, truth):
    if n < _FEW_TESTS:
        error = f", and a share of right answers among them is uncertain by {0.5 / np.sqrt(n):.2f}" if n else ""
        warn(
            f"{n} items are kept for tests, a third of the tasks with a label in {truth}{error}; give more if you can."
        )


def _look_up(table, ids, path, whose, hint=""):
    lacking = ids.difference(table.index, sort=False)
    if len(lacking):
        hint = f"; {hint}" if hint else why_unknown(lacking, table.index)
        raise ValueError(f"{path}: lacks {len(lacking)} ids {whose}: {some(lacking.tolist())}{hint}.")
    return table.loc[ids].to_numpy()
