"""Typical mistakes of spreadsheets: each is refused or told, by the name of the file and with what to do."""

import csv

import joblib
import numpy as np
import pandas as pd
import pytest
from _instances import make_crowd
from sklearn.linear_model import LogisticRegression

from sklearn_l2d import __main__ as command
from sklearn_l2d._cli._tables import read_crowd
from sklearn_l2d.deferral import ConfidenceDeferral, PanelDeferral

pytest.importorskip("pyarrow")
CLASSES, PEOPLE = ("None", "chat", "été"), ["Ann", "Bob", "Zoë", "nan", "NA"]
STORY = ["--counts", "votes.csv", "--features", "features.csv", "--identified", "known.csv", "--truth", "truth.csv"]
DECIDE = ["decide", "team.joblib", "items.parquet", "--answers", "answers.csv", "--out", "labels.parquet"]


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Files without a mistake, with names that look like missing entries and names beyond ASCII."""
    monkeypatch.chdir(tmp_path)
    crowd = make_crowd(160, labels=CLASSES)
    ids = [str(n) for n in range(160)]
    X = pd.DataFrame(crowd.X, columns=list("abcd"))
    long = pd.DataFrame(crowd.annotations, columns=PEOPLE, index=pd.Index(ids, name="task"))
    long = long.melt(ignore_index=False, var_name="annotator", value_name="label").dropna().reset_index()
    tables = {
        "votes": pd.DataFrame(crowd.counts[:60], columns=CLASSES).assign(id=ids[:60]),
        "features": X.assign(id=ids),
        "known": long[long["task"].astype(int) >= 60],
        "truth": pd.DataFrame({"id": ids[60:], "label": crowd.y[60:]}),
        "answers": long,
        "items": X.assign(id=ids),
    }
    for name, table in tables.items():
        table.to_csv(f"{name}.csv", index=False)
    tables["items"].to_parquet("items.parquet")
    team = ConfidenceDeferral(LogisticRegression(), coverage=0.5, random_state=0)
    told = pd.DataFrame(crowd.annotations, columns=PEOPLE)
    joblib.dump(team.fit(X, crowd.y, annotations=told), "team.joblib")
    return tables


def run(capsys, arguments):
    more = [] if arguments[0] in ("route", "decide") else ["--no-figure", "--epochs", "2"]
    status = command.main([*arguments, "--quiet", *more])
    output = capsys.readouterr()
    return status, output.err, output.out


def test_names_stay_as_they_are_written(tables, capsys):
    status, error, _ = run(capsys, STORY)
    assert (status, error) == (0, "")
    roster = pd.read_csv("roster.csv", keep_default_na=False)
    assert set(roster["expert"]) == set(PEOPLE)
    n_tests = 33  # a third of the tasks with a truth
    assert roster["labels"].sum() < len(tables["known"]) <= roster["labels"].sum() + n_tests * len(PEOPLE)
    assert run(capsys, DECIDE)[:2] == (0, "")
    written = pd.read_parquet("labels.parquet")
    assert set(written["label"]) == set(CLASSES)
    assert set(written["expert"]) - {"classifier"} <= set(PEOPLE)


def test_whole_groups_are_kept_for_tests(tables, monkeypatch):
    asked = []
    fit = PanelDeferral.fit

    def witness(self, X, y, annotations, X_unlabeled, groups):
        asked.append((X, groups))
        return fit(self, X, y, annotations, X_unlabeled, groups=groups)

    monkeypatch.setattr(PanelDeferral, "fit", witness)
    patient = [f"patient {n // 5}" for n in range(100)]
    save(tables["truth"].assign(group=patient), "truth")
    crowd = read_crowd("votes.csv", "features.csv", "known.csv", truth="truth.csv")
    of_item = dict(zip(np.round(tables["features"]["a"][60:], 6), patient, strict=True))
    kept, tested = ({of_item[a] for a in np.round(X[:, 0], 6)} for X in (crowd.X_identified, crowd.X_test))
    assert not kept & tested
    assert 25 <= len(crowd.X_test) <= 35
    groups = pd.Series(crowd.sources, index=[of_item[a] for a in np.round(crowd.X_identified[:, 0], 6)])
    assert (groups.groupby(level=0).nunique() == 1).all()
    assert groups.nunique() == len(kept)
    assert command.main([*STORY, "--quiet", "--no-figure", "--epochs", "2"]) == 0
    assert [len(X) == len(groups) for X, groups in asked] == [True]


def change(table, **columns):
    return table.assign(**{name: make(table) for name, make in columns.items()})


def save(table, name, **options):
    table.to_csv(f"{name}.csv", **({"index": False} | options))


HARMLESS = {
    "BOM": lambda t, name: save(t, name, encoding="utf-8-sig"),
    "line ends of Windows": lambda t, name: save(t, name, lineterminator="\r\n"),
    "spaces": lambda t, name: save(t.astype(str).map(lambda cell: f" {cell} ").add_prefix(" ").add_suffix(" "), name),
    "commas at the end of lines": lambda t, name: save(t.assign(**{"": np.nan}), name),
    "another order of columns": lambda t, name: save(t if name in ("votes", "features") else t[t.columns[::-1]], name),
}


@pytest.mark.parametrize("habit", HARMLESS.values(), ids=HARMLESS)
def test_habits_that_change_nothing(tables, capsys, habit):
    before = run(capsys, STORY), run(capsys, DECIDE)
    for name in ("votes", "features", "known", "truth", "answers"):
        habit(tables[name], name)
    assert (run(capsys, STORY), run(capsys, DECIDE)) == before


def swapped(one, other):
    return lambda t: t.rename(columns={one: other, other: one})


def floats(name):
    return lambda t: change(t, **{name: lambda t: t[name] + ".0"})


def with_commas(t):
    return change(t, a=lambda t: t["a"].map(lambda v: f"{v:.2f}".replace(".", ",")))


INDEX = "as where the index of a table was saved along; delete it"
TWO_WAYS = ": write whole numbers in both files"
# the table that is changed, how, options of its writing, the file in the message, and the message
REFUSED = {
    "index": ("votes", None, {"index": True}, "votes", f"has a column '', {INDEX}"),
    "index twice": (
        "votes",
        lambda t: t.assign(**{"Unnamed: 0": 3}),
        {},
        "votes",
        f"has a column 'Unnamed: 0', {INDEX}",
    ),
    "row numbers": ("votes", lambda t: t.assign(row=range(60)), {}, "votes", "column 'row' rises from row to row"),
    "total": (
        "votes",
        lambda t: change(t, total=lambda t: t[list(CLASSES)].sum(axis=1)),
        {},
        "votes",
        "column 'total' is the sum of all others, hence no class; delete it",
    ),
    "negative": (
        "votes",
        lambda t: t.assign(chat=-1),
        {},
        "votes",
        "first in column 'chat' for id '0'; votes start at 0",
    ),
    "percent": ("votes", lambda t: t.assign(chat="40%"), {}, "votes", "write numbers without %"),
    "empty": ("votes", lambda t: t.assign(chat=""), {}, "votes", "fill the empty cell"),
    "features for votes": (
        "votes",
        lambda t: pd.read_csv("features.csv"),
        {},
        "votes",
        "Is it the file of --features?",
    ),
    "semicolons": ("votes", None, {"sep": ";"}, "votes", "separates columns by ';'; save it with commas"),
    "tabs": ("known", None, {"sep": "\t"}, "known", "separates columns by tabs"),
    "no header": ("votes", None, {"header": False}, "votes", "has no column 'id'; its columns are ['"),
    "capitals": ("votes", lambda t: t.rename(columns={"id": "ID"}), {}, "votes", "upper and lower case differ"),
    "a column twice": ("votes", lambda t: pd.concat([t, t["chat"]], axis=1), {}, "votes", "the columns ['chat'] twice"),
    "an id twice": ("votes", lambda t: pd.concat([t, t[:1]]), {}, "votes", "repeats the ids ['0']; keep one line"),
    "float ids": ("features", floats("id"), {}, "features", TWO_WAYS),
    "float tasks": ("known", floats("task"), {}, "features", TWO_WAYS),
    "float truth": ("truth", floats("id"), {}, "truth", TWO_WAYS),
    "other ids": ("truth", lambda t: t.assign(id=[f"x{i}" for i in t["id"]]), {}, "truth", "none of its ids is a task"),
    "index of features": ("features", None, {"index": True}, "features", INDEX),
    "decimal commas": ("features", with_commas, {}, "features", "write decimals with a point"),
    "decimal commas without quotes": (
        "features",
        with_commas,
        {"quoting": csv.QUOTE_NONE, "escapechar": "\\", "decimal": ","},
        "features",
        "separate columns, and nothing else, by commas",
    ),
    "words": ("features", lambda t: t.assign(a="red"), {}, "features", "all columns besides 'id' must be numbers"),
    "encoding": ("known", None, {"encoding": "latin-1"}, "known", "is no text in UTF-8; save it as CSV in UTF-8"),
    "nobody": ("known", lambda t: t.assign(annotator=""), {}, "known", "has no annotator in line 2"),
    "task and annotator": (
        "known",
        swapped("task", "annotator"),
        {},
        "features",
        "task and annotator seem to be swapped",
    ),
    "label and annotator": (
        "known",
        swapped("label", "annotator"),
        {},
        "known",
        "annotator and label seem to be swapped",
    ),
    "no group": ("truth", lambda t: t.assign(group=["a", "", *"b" * 98]), {}, "truth", "has no group in line 3; give"),
    "one group": ("truth", lambda t: t.assign(group="a"), {}, "truth", "has the same group in all lines"),
    "large groups": (
        "truth",
        lambda t: t.assign(group=["b", *"a" * 99]),
        {},
        "truth",
        "has too few groups, or too large ones",
    ),
    "labels in capitals": (
        "known",
        lambda t: change(t, label=lambda t: t["label"].str.upper()),
        {},
        "known",
        "upper and lower case differ",
    ),
}


@pytest.mark.parametrize(("name", "mistake", "options", "file", "message"), REFUSED.values(), ids=REFUSED)
def test_mistakes_in_tables_are_refused(tables, capsys, name, mistake, options, file, message):
    table = tables[name] if mistake is None else mistake(tables[name])
    save(table, name, **options)
    status, error, _ = run(capsys, STORY)
    assert status == 2
    assert f"error: {file}.csv: " in error
    assert message in error
    assert error.count("\n") == 1


REFUSED_ANSWERS = {
    "semicolons": (None, {"sep": ";"}, "separates columns by ';'"),
    "no header": (None, {"header": False}, "has no column 'task', 'annotator', 'label'"),
    "encoding": (None, {"encoding": "latin-1"}, "is no text in UTF-8"),
    "float tasks": (floats("task"), {}, TWO_WAYS),
    "task and annotator": (swapped("task", "annotator"), {}, "task and annotator seem to be swapped"),
    "capitals": (lambda t: change(t, label=lambda t: t["label"].str.upper() + "S"), {}, "not among the classes"),
    "repeated": (lambda t: pd.concat([t, t[:1]]), {}, "repeats a pair of task and annotator"),
}


@pytest.mark.parametrize(("mistake", "options", "message"), REFUSED_ANSWERS.values(), ids=REFUSED_ANSWERS)
def test_mistakes_in_answers_are_refused(tables, capsys, mistake, options, message):
    save(tables["answers"] if mistake is None else mistake(tables["answers"]), "answers", **options)
    status, error, _ = run(capsys, DECIDE)
    assert status == 2
    assert "error: answers.csv: " in error
    assert message in error


def test_items_must_be_a_parquet_file(tables, capsys):
    status, error, _ = run(capsys, ["route", "team.joblib", "items.csv", "--out", "routes.parquet"])
    assert status == 2
    assert "items.csv: Parquet magic bytes not found" in error
    assert "pandas makes one from a CSV file by read_csv and to_parquet" in error


def test_a_rare_label_among_answers_is_told(tables, capsys):
    save(tables["answers"].assign(label=lambda t: t["label"].where(t.index != 5, "chien")), "answers")
    status, _, story = run(capsys, DECIDE)
    assert status == 0
    assert f"answers.csv: 1 of {len(tables['answers'])} answers are labels ['chien'] that are not among" in story


TOLD = {
    "shares": ("votes", lambda t: t.assign(chat=0.6, été=0.3, **{"None": 0.1}), "add up to 1: each item counts as one"),
    "percentages": ("votes", lambda t: t.assign(chat=60, été=30, **{"None": 10}), "if these are percentages"),
    "few tests": (
        "truth",
        lambda t: t[:20],
        "6 items are kept for tests, a third of the tasks with a label in truth.csv",
    ),
}


@pytest.mark.parametrize(("name", "mistake", "message"), TOLD.values(), ids=TOLD)
def test_what_may_be_a_mistake_is_told(tables, capsys, name, mistake, message):
    save(mistake(tables[name]), name)
    status, _, story = run(capsys, STORY)
    assert status == 0
    assert message.lower() in story[story.index("Note: ") :].lower()
