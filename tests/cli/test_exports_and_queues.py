"""The ends of the pipe on the command line: exports of labelling tools go in, queues for people come out."""

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from _instances import make_crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from sklearn_l2d import __main__ as command
from sklearn_l2d.annotations import from_mturk
from sklearn_l2d.deferral import ConfidenceDeferral

pytest.importorskip("pyarrow", reason="pyarrow is in the extra named parquet")
CLASSES, PEOPLE = ("chat", "chien", "été"), ["Ann", "a/b", "..", "Zoë", 'Ève, "la"']
ROUTE = ["route", "team.joblib", "items.parquet", "--out"]
DECIDE = ["decide", "team.joblib", "items.parquet", "--out", "labels.parquet"]
COLUMNS = ["id", "target", "expert", "label", "confidence", "reason"]


@pytest.fixture(scope="module")
def team():
    crowd = make_crowd(160, labels=CLASSES)
    X, answers = pd.DataFrame(crowd.X, columns=list("abcd")), pd.DataFrame(crowd.annotations, columns=PEOPLE)
    team = ConfidenceDeferral(LogisticRegression(), coverage=0.5, random_state=0)
    return team.fit(X, crowd.y, annotations=answers)


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(90, labels=CLASSES, random_state=1)


@pytest.fixture
def items(team, crowd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    joblib.dump(team, "team.joblib")
    X = pd.DataFrame(crowd.X, columns=list("abcd"), index=pd.RangeIndex(100, 190, name="id"))
    X.reset_index().to_parquet("items.parquet")
    return X


@pytest.fixture
def long(items, crowd):
    table = pd.DataFrame(crowd.annotations, columns=PEOPLE, index=items.index.rename("task"))
    table = table.melt(ignore_index=False, var_name="annotator", value_name="label").dropna().reset_index()
    table.to_csv("answers.csv", index=False)
    return table


def run(capsys, arguments):
    status = command.main([*arguments, "--quiet"])
    output = capsys.readouterr()
    return status, output.err, output.out


def write_studio(long, name="studio.json", control="pet"):
    def annotation(who, label):
        result = {"from_name": control, "to_name": "image", "type": "choices", "value": {"choices": [label]}}
        who = {"id": 1, "email": who} if who else None
        return {"completed_by": who, "was_cancelled": False, "result": [result]}

    tasks = [
        {
            "id": task - 99,
            "data": {"item": task},
            "annotations": [annotation(a, b) for a, b in zip(rows["annotator"], rows["label"], strict=True)],
        }
        for task, rows in long.groupby("task")
    ]
    with open(name, "w", encoding="utf-8") as file:
        json.dump(tasks, file, ensure_ascii=False)


def write_turk(long, name="turk.csv"):
    columns = {"task": "Input.item", "annotator": "WorkerId", "label": "Answer.pet.label"}
    long.rename(columns=columns).assign(HITId="3X", AssignmentStatus="Approved").to_csv(name, index=False)


@pytest.mark.parametrize("size", ["20", "1000"])
def test_a_route_is_written_with_queues(team, items, capsys, size):
    status, error, story = run(capsys, [*ROUTE, "out.csv", "--queues", "today", "--batch-size", size])
    assert (status, error) == (0, "")
    assert "Queues written to today." in story
    expected = team.route(items, explain=True)
    written = pd.read_csv("out.csv")
    assert written.columns.tolist() == COLUMNS
    assert_array_equal(written["id"], items.index)
    for name in ("target", "expert", "label", "reason"):
        assert_array_equal(written[name], expected[name])
    assert_allclose(written["confidence"], expected["confidence"])
    names = {name: name for name in PEOPLE} | {"a/b": "a%2Fb", "..": "%2E.", PEOPLE[-1]: "Ève, %22la%22"}
    queues = {name: pd.read_csv(f"today/{file}.csv") for name, file in names.items()}
    assert sum(map(len, queues.values())) == (expected["expert"] != "classifier").sum() > 20
    for name, queue in queues.items():
        assert queue.columns.tolist() == ["id", "label", "confidence", "reason"]
        mine = expected[expected["expert"] == name]
        assert_array_equal(queue["id"], mine.index)
        assert_array_equal(queue["label"], mine["label"])
        assert_array_equal(queue["reason"], mine["reason"])


def test_queues_of_yesterday_are_replaced(items, capsys, tmp_path):
    run(capsys, [*ROUTE, "out.parquet", "--queues", "today"])
    assert len(pd.read_csv("today/Ann.csv"))
    run(capsys, [*ROUTE, "out.parquet", "--queues", "today", "--available", "Zoë"])
    assert len(pd.read_csv("today/Ann.csv")) == 0
    assert pd.read_parquet("out.parquet").columns.tolist() == COLUMNS
    assert len(list((tmp_path / "today").iterdir())) == len(PEOPLE)


def test_what_fails_leaves_no_queues(items, capsys, tmp_path):
    items.reset_index().assign(a=[np.nan if i == 80 else 0.0 for i in range(90)]).to_parquet("items.parquet")
    status, error, _ = run(capsys, [*ROUTE, "out.csv", "--queues", "today", "--batch-size", "20"])
    assert status == 2
    assert "rows 80 to 89" in error
    assert list((tmp_path / "today").iterdir()) == []
    (tmp_path / "file").touch()
    assert run(capsys, [*ROUTE, "out.csv", "--queues", "file"])[0] == 2


@pytest.mark.parametrize("write", [write_studio, write_turk])
def test_an_export_stands_for_answers(long, capsys, write):
    assert run(capsys, [*DECIDE, "--answers", "answers.csv"])[:2] == (0, "")
    expected = pd.read_parquet("labels.parquet")
    write(long, "export")
    status, error, _ = run(capsys, [*DECIDE, "--export", "export", "--task", "item"])
    assert (status, error) == (0, "")
    pd.testing.assert_frame_equal(pd.read_parquet("labels.parquet"), expected)
    if write is write_turk:
        assert set(from_mturk("export", task="item")["label"]) <= set(CLASSES)


def test_an_export_stands_for_identified_labels(long, items, crowd, capsys):
    items.reset_index().to_csv("features.csv", index=False)
    pd.DataFrame(crowd.counts, columns=CLASSES).assign(id=items.index).to_csv("votes.csv", index=False)
    story = ["--counts", "votes.csv", "--features", "features.csv", "--no-figure", "--epochs", "2"]
    write_studio(long)
    first, second = (
        run(capsys, [*story, *more])
        for more in (["--identified", "answers.csv"], ["--export", "studio.json", "--task", "item"])
    )
    assert first[:2] == (0, "")
    assert first == second


MISTAKES = {
    "both": (["--answers", "answers.csv", "--export", "studio.json"], "--answers and --export exclude each other"),
    "neither": ([], "there are no answers; give --answers or --export"),
    "format": (["--answers", "answers.csv", "--format", "mturk"], "--format says how to read --export"),
    "question": (
        ["--export", "studio.json", "--question", "dog"],
        "studio.json: question='dog' is none of",
    ),
    "task": (["--export", "studio.json", "--task", "url"], "studio.json: task='url' is no field of item 1"),
    "no task": (["--export", "studio.json"], "studio.json: holds answers to 90 items that items.parquet lacks"),
    "unknown": (
        ["--export", "answers.csv"],
        "answers.csv: is an export of none of the tools known here, ",
    ),
    "wrong": (["--export", "studio.json", "--format", "mturk"], "studio.json: export lacks the columns ['HITId', "),
    "nowhere": (["--export", "nowhere.json"], "nowhere.json"),
    "doccano": (
        ["--export", "d.jsonl", "--question", "a"],
        "d.jsonl: is an export of doccano, which asks one",
    ),
    "nobody": (["--export", "nobody.json"], "nobody.json: does not say who gave 1 of 1 answers, first to item '1'"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_with_exports(long, capsys, arguments, message):
    write_studio(long)
    with open("d.jsonl", "w") as file:
        file.write('{"id": 1, "label": ["chat"]}')
    write_studio(long[:1].assign(annotator=""), "nobody.json")
    status, error, _ = run(capsys, [*DECIDE, *arguments])
    assert status == 2
    assert message in error
    assert error.count("\n") == 1


def test_an_export_needs_votes(capsys):
    assert run(capsys, ["--export", "studio.json"])[:2] == (
        2,
        "python -m sklearn_l2d: error: --export needs --counts.\n",
    )
