"""Teams and files: who decides each item of a Parquet file, and how, one batch of rows at a time.

Every batch is decided as if it were all. Draws belong to items, so that the route of a file does not depend on the size
of batches unless capacities bind: then what comes first comes first.
"""

import numbers
import os
import re
import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zipfile import is_zipfile

import joblib
import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from tqdm.auto import tqdm

from .._encoding import some
from .._last_step import split_steps
from .._long_tables import open_parquet
from .._numerics._matrices import answer_weights
from .._persistence import load
from .._sklearn import warn
from .._votes import Votes
from ..annotations import encode_votes, from_long
from ._arguments import check_writable
from ._tables import named, read_answers, refuse_repeats, why_unknown

BATCH_SIZE, DECISIONS = 65_536, ("draw", "vote", "combine")
_ID_COLUMNS = "id", "task"
_CLASSIFIER, _EVERYBODY = "classifier", "everybody"  # who decides, in a route
_OVERFLOW = "deferred items found nobody available within capacity who is expected to beat the classifier"


class Summary(NamedTuple):
    """What was decided.

    Attributes
    ----------
    n_items : int
        Number of items.
    n_deferred : int
        How many of them are deferred to a target.
    n_unserved : int
        How many of these the classifier decides all the same, because nobody can who is expected to beat it.
    workload : dict
        Number of items for each expert, by name. Where experts vote, each of them is counted.
    """

    n_items: int
    n_deferred: int
    n_unserved: int
    workload: dict


def route_file(
    team,
    items,
    out,
    *,
    id_column=None,
    features=None,
    available=None,
    capacity=None,
    queues=None,
    batch_size=BATCH_SIZE,
    progress=False,
):
    """Write who decides each item of a file.

    Parameters
    ----------
    team : deferrer
        Fitted; also a pipeline or search that ends in one.
    items : path
        Parquet file with one row per item and one column per feature.
    out : path
        Parquet file, or CSV if its name ends so, with the columns id, target, expert, label, confidence and reason, one
        row per item in the order of `items`. It appears, or is replaced, when all is done.
    id_column : str, default=None
        Column with the names of the items. None takes "id" or "task", or else the index of a DataFrame that was
        written; without any of them the rows are numbered from 0.
    features : sequence of str, default=None
        Columns of the features in the order of the fit, for a team that was fitted without names. None takes all
        columns but that of the names.
    available : sequence of str, default=None
        Names of the experts who are in; all by default.
    capacity : int, default=None
        Largest number of items per expert, over the whole file; the first items of the file come first. Unlimited by
        default.
    queues : path, default=None
        Folder for a CSV file per expert, called by the name, with the columns id, label, confidence and reason of the
        expert's items. These appear, or are replaced, with `out`.
    batch_size : int, default=65536
        Number of rows that are read and decided at once.
    progress : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    summary : Summary
        What was decided.

    Raises
    ------
    ValueError, OSError, ImportError
        If the team or a file cannot be used. `out` is then as it was before.
    """
    out = _check_out(out, items)
    team = FittedTeam.of(team)
    present = None if available is None else team.among_experts(available)
    source = ItemFile.open(items, team, id_column, features, batch_size)
    workload = np.zeros(len(team.experts), dtype=np.int64)

    def route(X, start):
        left = None if capacity is None else capacity - workload
        table = team.deferrer.route(team.transform(X), present, left, explain=True)
        workload[:] += team.served(table)
        return table

    import pyarrow as pa  # not before the error that says how to install it

    columns = [("label", pa.array(team.deferrer.classes_.tolist()).type), ("confidence", pa.float64())]
    with _queues(queues, team.experts) as queue:
        n_deferred, n_unserved = _write(
            source, out, route, progress, _OVERFLOW, [*columns, ("reason", pa.string())], queue
        )
    return Summary(source.n_rows, n_deferred, n_unserved, dict(zip(team.experts, workload.tolist(), strict=True)))


def decide_file(
    team,
    items,
    answers,
    out,
    *,
    decision="draw",
    id_column=None,
    features=None,
    batch_size=BATCH_SIZE,
    progress=False,
):
    """Write the label of the team for each item of a file.

    The answers are in memory as a whole, the items a batch at a time.

    Parameters
    ----------
    team : deferrer
        Fitted; also a pipeline or search that ends in one.
    items : path
        Parquet file with one row per item and one column per feature.
    answers : path or Export
        Parquet or CSV file with the columns task, annotator and label, one row per answer, or a file of a labelling
        tool. Tasks are names of items.
        Tasks, annotators and labels are compared as text with the items, experts and classes. Labels that are no
        classes are left out, with a warning.
    out : path
        Parquet file, or CSV if its name ends so, with the columns id, target, expert and label, one row per item in the
        order of `items`. It appears, or is replaced, when all is done.
    decision : {"draw", "vote", "combine"}, default="draw"
        As in `predict_team`. With "vote", the column expert holds all who voted, separated by commas, and with
        "combine" all who answered. Then the target is everybody, or the classifier where nobody answered, and there is
        a column confidence, the probability of the label.
    id_column, features, batch_size, progress
        As in `route_file`.

    Returns
    -------
    summary : Summary
        What was decided.

    Raises
    ------
    ValueError, OSError, ImportError
        If the team or a file cannot be used. `out` is then as it was before.
    """
    if decision not in DECISIONS:
        raise ValueError(f"decision={decision!r} is none of {', '.join(map(repr, DECISIONS))}.")
    out = _check_out(out, items, answers)
    team = FittedTeam.of(team)
    source = ItemFile.open(items, team, id_column, features, batch_size)
    votes = _read_answers(answers, team, source)
    workload = np.zeros(len(team.experts), dtype=np.int64)

    import pyarrow as pa  # not before the error that says how to install it

    label_type = pa.array(team.deferrer.classes_.tolist()).type

    def decide(X, start):
        batch = votes[start : start + len(X)]
        X = team.transform(X)
        if decision == "draw":
            table = team.deferrer.route(X, available=batch.to_sparse() > 0)
            workload[:] += team.served(table)
        else:
            table, voters = team.vote(X, batch) if decision == "vote" else team.put_together(batch)
            workload[:] += voters
        labels = team.deferrer.predict_team(X, batch, decision)
        if decision == "combine":
            place = np.searchsorted(team.deferrer.classes_, labels)
            table["confidence"] = team.deferrer.predict_team_proba(X, batch)[np.arange(len(labels)), place]
        return table.assign(label=labels)

    columns = [("label", label_type), *([("confidence", pa.float64())] if decision == "combine" else [])]
    lacking = "of their target" if decision == "vote" else "who is expected to beat the classifier"
    unserved = f"deferred items were answered by nobody {lacking}"
    n_deferred, n_unserved = _write(source, out, decide, progress, unserved, columns)
    return Summary(source.n_rows, n_deferred, n_unserved, dict(zip(team.experts, workload.tolist(), strict=True)))


def load_team(path):
    """Fitted deferrer, or pipeline or search that ends in one, from a file of `sklearn_l2d.save`, joblib or pickle."""
    with Path(path).open("rb") as file:  # where a file cannot be opened, the error of the system says it best
        is_archive = is_zipfile(file)
    try:
        estimator = load(path) if is_archive else joblib.load(path)
    except ImportError:
        raise
    except Exception as error:  # unpickling may run into anything
        raise ValueError(
            f"{path}: cannot be loaded as a team ({type(error).__name__}: {error}); write it with sklearn_l2d.save or "
            "joblib.dump, and load it with the same versions of the packages."
        ) from error
    with named(path):
        FittedTeam.of(estimator)
    return estimator


@dataclass(frozen=True)
class FittedTeam:
    """A fitted deferrer, perhaps at the end of a pipeline or inside a search.

    Attributes
    ----------
    whole : estimator
        As given.
    transformers : list of estimators
        What transforms the items on the way to the deferrer.
    deferrer : deferrer
        The last step.
    """

    whole: object
    transformers: list
    deferrer: object

    @classmethod
    def of(cls, estimator):
        """The team of an estimator; what is no fitted deferrer is refused."""
        transformers, deferrer = split_steps(estimator)
        kind = type(deferrer).__name__
        if isinstance(deferrer, type) or not (hasattr(deferrer, "route") and hasattr(deferrer, "predict_team")):
            raise ValueError(
                f"the team is no deferrer but of type {kind}; pass a fitted deferrer, or a fitted pipeline or search "
                "that ends in one."
            )
        try:
            check_is_fitted(deferrer)
        except NotFittedError as error:
            raise ValueError(f"the team, of type {kind}, is not fitted; fit it first.") from error
        return cls(estimator, transformers, deferrer)

    @property
    def experts(self):
        """Names of the experts."""
        return self.deferrer.experts_

    def transform(self, X):
        """Items as the deferrer sees them."""
        for transformer in self.transformers:
            X = transformer.transform(X)
        return X

    def among_experts(self, names):
        """Booleans (n_experts,): who is among the names."""
        places = _places(names, self.experts)
        if (places < 0).any():
            unknown = [name for name, place in zip(names, places, strict=True) if place < 0]
            raise ValueError(f"available names unknown experts {some(unknown)}; they are {some(list(self.experts))}.")
        return np.isin(np.arange(len(self.experts)), places)

    def served(self, route):
        """Number of items (n_experts,) that each expert serves in a route."""
        import pandas as pd

        places = pd.Index(self.experts, dtype=object).get_indexer(route["expert"].astype(object))
        return np.bincount(places[places >= 0], minlength=len(self.experts))

    def vote(self, X, votes):
        """Route by the votes of all members of the targets who answered, and number of votes (n_experts,) that count.

        The column expert holds the names of all who voted.
        """
        deferral = self.deferrer.predict_deferral(X)
        counted = votes.select(answer_weights(self.deferrer.selection_, deferral, votes) > 0)
        return self._by_many(np.append(self.deferrer.targets_, _CLASSIFIER)[deferral], counted)

    def put_together(self, votes):
        """Route by all answers, and number of answers (n_experts,); results as of `vote`."""
        answered = np.bincount(votes.item, minlength=len(votes)) > 0
        return self._by_many(np.where(answered, _EVERYBODY, _CLASSIFIER), votes)

    def _by_many(self, target, votes):
        import pandas as pd

        names = pd.Series([str(self.experts[place]) for place in votes.annotator], dtype=object)
        joined = names.groupby(votes.item).agg(", ".join)
        expert = np.full(len(target), _CLASSIFIER, dtype=object)
        expert[joined.index] = joined
        return pd.DataFrame({"target": target, "expert": expert}), votes.n_answers


@dataclass(frozen=True)
class ItemFile:
    """A Parquet file with one row per item, read in batches.

    Attributes
    ----------
    path : path
        Where it is.
    id_column : str or None
        Column with the names of the items; None numbers the rows.
    id_type : pyarrow.DataType
        Type of the names.
    features : list of str
        Columns of the features.
    by_name : bool
        Whether the team knows the features by name.
    n_rows : int
        Number of items.
    batch_size : int
        Number of rows that are read at once, or less: pyarrow ends a batch with categories where a row group ends.
    """

    path: object
    id_column: str | None
    id_type: object
    features: list
    by_name: bool
    n_rows: int
    batch_size: int

    @classmethod
    def open(cls, path, team, id_column, features, batch_size):
        """Look into a file, and refuse one that does not fit the team."""
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size} is no positive number of rows.")
        with named(path), open_parquet(path) as file:
            schema, n_rows = file.schema_arrow, file.metadata.num_rows
            known = getattr(team.whole, "feature_names_in_", None)
            if known is not None and features is not None and list(features) != list(known):
                raise ValueError(f"the team knows its features by name, {some(list(known))}; leave out `features`.")
            features = features if known is None else known
            id_column = _find_id(schema, id_column, features)
            features = _find_features(schema, id_column, features, getattr(team.whole, "n_features_in_", None))
        import pyarrow as pa  # not before the error that says how to install it

        id_type = pa.int64() if id_column is None else schema.field(id_column).type
        return cls(path, id_column, id_type, features, known is not None, n_rows, batch_size)

    def batches(self):
        """Yield the number of the first row, the names and the features of each batch."""
        import pyarrow as pa

        columns = [*self.features, *([] if self.id_column is None else [self.id_column])]
        start = 0
        for batch in self._read(columns):
            stop = start + batch.num_rows
            ids = pa.array(np.arange(start, stop)) if self.id_column is None else batch.column(self.id_column)
            # an index that pandas noted in the file would take columns away
            X = batch.select(self.features).to_pandas(ignore_metadata=True)
            yield start, ids, X if self.by_name else X.to_numpy()
            start = stop

    def names(self):
        """Yield the names of all items, as text."""
        if self.id_column is None:
            yield from map(_text, range(self.n_rows))
        else:
            for batch in self._read([self.id_column]):
                yield from map(_text, batch.column(self.id_column).to_pylist())

    def _read(self, columns):
        with open_parquet(self.path) as file:
            yield from file.iter_batches(self.batch_size, columns=columns)


def _check_out(out, *inputs):
    """Path of a file to write, refused where it cannot be written or is read at the same time."""
    out = Path(out)
    check_writable(out)
    for path in inputs:
        if out.exists() and Path(path).exists() and out.samefile(path):
            raise ValueError(f"cannot write {out}: it is read at the same time; choose another name.")
    return out


def _find_id(schema, id_column, features):
    """Column with the names of the items, None if there is none."""
    columns = schema.names
    if id_column is not None:
        if id_column not in columns:
            raise ValueError(f"has no column {id_column!r} with names of items; its columns are {some(columns)}.")
        return id_column
    index = [name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)]
    taken = () if features is None else features
    candidates = [*_ID_COLUMNS, *(index if len(index) == 1 else ())]
    return next((name for name in candidates if name in columns and name not in taken), None)


def _find_features(schema, id_column, features, n_features):
    """Columns of the features."""
    columns = schema.names
    if len(set(columns)) < len(columns):
        raise ValueError(f"names a column twice; its columns are {some(columns)}.")
    others = [name for name in columns if name != id_column]
    features = others if features is None else list(features)
    lacking = [name for name in features if name not in columns]
    if lacking:
        raise ValueError(f"lacks the columns {some(lacking)} of features; its columns are {some(columns)}.")
    if n_features not in (None, len(features)):
        raise ValueError(
            f"the team was fitted to {n_features} features without names, but these are {len(features)}: "
            f"{some(features)}. Name the right ones by `features` in the order of the fit, and the column with the "
            f"names of items, now {id_column!r}."
        )
    return features


def _read_answers(path, team, items):
    """Answers from a file as `Votes` by the experts of a team on the rows of a file of items."""
    with named(path):
        with Path(path).open("rb") as file:
            is_parquet = file.read(4) == b"PAR1"
        # what is missing is decided below, since -1 may be a class
        classes, marker = team.deferrer.classes_, team.deferrer.missing_label
        votes = encode_votes(path, missing_label=np.nan) if is_parquet else None
    if votes is None:
        table = read_answers(path)
        refuse_repeats(path, table)
        votes = from_long(table, form="votes")
    with named(path):
        people, labels = _places(votes.annotators, team.experts), _places(votes.classes, classes)
        unknown = votes.annotators[people < 0].tolist()
        if unknown:
            hint = why_unknown(map(_text, unknown), map(_text, team.experts))
            if (_places(votes.tasks, team.experts) >= 0).all():
                hint = "; task and annotator seem to be swapped"
            raise ValueError(
                f"holds answers of unknown experts {some(unknown)}; they are {some(list(team.experts))}{hint}."
            )
        marker = _text(-1 if marker is None else marker)
        strange = (labels < 0) & np.array([_text(label) != marker for label in votes.classes], dtype=bool)
        n_strange = int(strange[votes.label].sum())
        if n_strange:
            unknown = votes.classes[strange].tolist()
            told = f"labels {some(unknown)} that are not among the classes {some(classes.tolist())}"
            hint = why_unknown(map(_text, unknown), map(_text, classes))
            if n_strange == len(votes.label):
                raise ValueError(f"holds {told}{hint}.")
            warn(f"{path}: {n_strange} of {len(votes.label)} answers are {told}; they are left out{hint}.")
        rows = _find_rows(votes.tasks, items)
    given = labels[votes.label] >= 0
    item, annotator, label = rows[votes.item[given]], people[votes.annotator[given]], labels[votes.label[given]]
    return Votes(item, annotator, label, items.n_rows, classes, team.experts)


def _find_rows(tasks, items):
    """Rows (n_tasks,) of tasks in a file of items."""
    rows = np.full(len(tasks), -1)
    place_of = {_text(task): place for place, task in enumerate(tasks)}
    for row, name in enumerate(items.names()):
        place = place_of.get(name)
        if place is not None:
            if rows[place] >= 0:
                raise ValueError(f"answers item {name!r}, but {items.path} has two of this name; name each item once.")
            rows[place] = row
    if (rows < 0).any():
        unknown = tasks[rows < 0].tolist()
        hint = why_unknown(map(_text, unknown), items.names())
        raise ValueError(f"holds answers to {len(unknown)} items that {items.path} lacks: {some(unknown)}{hint}.")
    return rows


def _places(names, known):
    """Positions of names among known ones, compared as text or, where these are numbers, as such; -1 for others."""
    place_of = {_text(name): place for place, name in enumerate(known)}
    number_of = {float(name): place for place, name in enumerate(known) if _is_number(name)}
    places = [place_of.get(_text(name), number_of.get(_number(name), -1)) for name in names]
    return np.array(places, dtype=np.int64)


def _is_number(name):
    return isinstance(name, numbers.Real) and not isinstance(name, bool | np.bool_)


def _number(name):
    """The number that a text holds, such as 7.0 in a column that had missing entries; None if it is none."""
    try:
        return float(name)
    except (TypeError, ValueError):
        return None


def _text(name):
    """A name or label as text, in which 7 and 7.0 are the same: a column with missing entries holds floats."""
    return str(int(name)) if isinstance(name, float | np.floating) and name.is_integer() else str(name)


def _write(items, out, decide, progress, unserved, more=(), queue=None):
    """Write what `decide` says about each batch, and return the numbers of deferred and of unserved items.

    `unserved` is what a warning says of the latter, `more` are further fields of the file, and `queue` takes tables.
    """
    import pyarrow as pa
    from pyarrow.csv import CSVWriter
    from pyarrow.parquet import ParquetWriter

    make_writer = CSVWriter if out.suffix.lower() == ".csv" else ParquetWriter

    schema = pa.schema([("id", items.id_type), ("target", pa.string()), ("expert", pa.string()), *more])
    n_deferred = n_unserved = 0
    with _replacing(out) as part:
        bar = tqdm(total=items.n_rows, unit=" items", disable=not progress)
        with bar, make_writer(part, schema) as writer:
            for start, ids, X in items.batches():
                with named(f"{items.path}, rows {start} to {start + len(X) - 1}"), warnings.catch_warnings():
                    warnings.filterwarnings("ignore", rf"\d+ of \d+ {_OVERFLOW}")  # told once for all batches
                    route = decide(X, start)
                deferred = (route["target"] != _CLASSIFIER).to_numpy()
                n_deferred += int(deferred.sum())
                n_unserved += int((deferred & (route["expert"] == _CLASSIFIER).to_numpy()).sum())
                route = route.assign(target=route["target"].map(str), expert=route["expert"].map(str))
                columns = [pa.array(route[field.name].tolist(), field.type) for field in list(schema)[1:]]
                table = pa.Table.from_arrays([ids, *columns], schema=schema)
                writer.write_table(table)
                if queue is not None:
                    queue(table)
                bar.update(len(X))
        if n_unserved:  # before the file appears, for those who make errors of warnings
            warn(f"{n_unserved} of {n_deferred} {unserved}; the classifier decides them.")
    return n_deferred, n_unserved


@contextmanager
def _replacing(path):
    """A name beside a file, which takes the place of the file at the end, or disappears after a failure."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _queues(folder, experts):
    """A function that adds items to the queues of experts, which appear at the end; None without a folder."""
    if folder is None:
        yield None
        return
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as draft:
        columns = ["id", "label", "confidence", "reason"]
        paths = {str(name): Path(draft) / f"{_file_name(str(name))}.csv" for name in experts}
        for path in paths.values():
            path.write_text(",".join(columns) + "\n", encoding="utf-8")

        def add(table):
            for name, rows in table.to_pandas().groupby("expert", sort=False):
                if name in paths:
                    rows[columns].to_csv(paths[name], mode="a", header=False, index=False, encoding="utf-8")

        yield add
        for path in paths.values():
            path.replace(folder / path.name)


def _file_name(name):
    """A name without the characters that files cannot have."""
    return re.sub(r'[\x00-\x1f"%*/:<>?\\|]|^\.', lambda found: f"%{ord(found[0]):02X}", name)
