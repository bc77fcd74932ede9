"""Exports of labelling tools become long tables; the files are made here, in the forms that the tools document."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal
from sklearn.linear_model import LogisticRegression

from sklearn_l2d import annotations as module
from sklearn_l2d._exports import FORMATS, guess_format
from sklearn_l2d.annotations import (
    encode_votes,
    from_argilla,
    from_doccano,
    from_label_studio,
    from_long,
    from_mturk,
    from_prodigy,
    from_zooniverse,
    to_label_studio,
)
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import ConfidenceDeferral


def rows(table):
    """Task, annotator and label of each row."""
    assert table.columns.tolist() == ["task", "annotator", "label", "time"]
    return list(table[["task", "annotator", "label"]].itertuples(index=False, name=None))


def chosen(*labels, control="pet", kind="choices"):
    value = {"choices": list(labels)} if kind == "choices" else {kind: labels[0]}
    return {"from_name": control, "to_name": "image", "type": kind, "value": value}


def annotation(who, *results, at="2026-01-01T10:00:00Z", **more):
    return {"completed_by": who, "result": list(results), "updated_at": at, "was_cancelled": False} | more


def studio_task(number, *annotations, **more):
    return {"id": number, "data": {"image": f"/{number}.jpg"}, "annotations": list(annotations)} | more


STUDIO = [
    studio_task(
        12,
        annotation(1, chosen("chat")),
        annotation({"id": 2, "email": "zoë@example.org"}, chosen("chien")),
        predictions=[{"result": [chosen("never")]}],
        drafts=[annotation(3, chosen("never"))],
    ),
    studio_task(
        13,
        annotation(2, chosen("chat")),
        annotation(1, chosen("chien"), was_cancelled=True),
        annotation(3, chosen("chat"), at="2026-01-02T10:00:00Z"),
        annotation(3, chosen("chien"), at="2026-01-03T10:00:00Z"),
        annotation(3, chosen("never"), at="2026-01-01T10:00:00Z"),
        annotation(4),
    ),
]
ZOE = "zoë@example.org"
STUDIO_ROWS = [(12, "1", "chat"), (12, ZOE, "chien"), (13, ZOE, "chat"), (13, "3", "chien")]


def classification(user, subject, *answers, at="2026-01-01 10:00:00 UTC", workflow=7, **more):
    return {
        "classification_id": 1,
        "user_name": user,
        "user_id": None if user.startswith("not-logged-in") else 12.0,
        "workflow_id": workflow,
        "workflow_name": f"flow {int(workflow)}",
        "created_at": at,
        "metadata": json.dumps({"session": "a"}),
        "annotations": json.dumps(list(answers), ensure_ascii=False),
        "subject_data": json.dumps({str(subject): {"Filename": f"{subject}.png", "retired": None}}),
        "subject_ids": subject,
    } | more


def reply(value, task="T0"):
    return {"task": task, "task_label": f"About {task}?", "value": value}


SKY = [
    classification("Zoë", 5, reply("spiral"), at="2026-01-01 11:00:00 UTC"),
    classification("not-logged-in-1f", 5, reply("round")),
    classification("Zoë", 6, reply(None)),
    classification("Zoë", 5, reply("round"), at="2026-01-01 10:00:00 UTC"),
    classification("bob", 6, reply("round")),
]
SKY_ROWS = [(5, "not-logged-in-1f", "round"), (5, "Zoë", "round"), (6, "bob", "round")]


def assignment(worker, hit, status="Approved", at="Fri Nov 01 12:08:17 PDT 2019", **answers):
    named = {f"Answer.{name}": value for name, value in answers.items()}
    return {"HITId": hit, "WorkerId": worker, "AssignmentStatus": status, "SubmitTime": at} | named


TURK = [
    assignment("A1", "3X", pet="cat") | {"Input.url": "a.jpg", "Input.age": "1", "Reject": ""},
    assignment("A2", "3X", pet="dog", status="Rejected") | {"Input.url": "a.jpg", "Input.age": "1", "Reject": ""},
    assignment("A2", "3Y", pet="dog", status="Submitted") | {"Input.url": "b.jpg", "Input.age": "2", "Reject": ""},
    assignment("A1", "3Y", pet="dog", status="Submitted") | {"Input.url": "b.jpg", "Input.age": "2", "Reject": "spam"},
    assignment("A3", "3Y", pet="") | {"Input.url": "b.jpg", "Input.age": "2", "Reject": ""},
]
TURK_ROWS = [("3X", "A1", "cat"), ("3Y", "A2", "dog")]


def example(item, who, accept=None, answer="accept", at=1700000000, **more):
    options = {"options": [{"id": "cat"}, {"id": "dog"}], "accept": accept} if accept is not None else {}
    record = {"text": f"text {item}", "meta": {"key": f"k{item}"}, "_input_hash": item, "_task_hash": -item}
    return record | options | {"answer": answer, "_annotator_id": who, "_timestamp": at} | more


PRODIGY = [
    example(-5, "pets-ann", ["cat"], at=1700000000),
    example(-5, "pets-bob", ["dog"]),
    example(6, "pets-ann", [], answer="ignore"),
    example(6, "pets-bob", ["cat"], answer="reject"),
    example(-5, "pets-ann", ["dog"], at=1700000100),
]
PRODIGY_ROWS = [(-5, "pets-bob", "dog"), (-5, "pets-ann", "dog")]

DOCCANO = {
    "ann": [{"id": 1, "text": "miaou", "label": ["chat"]}, {"id": 2, "text": "ouah", "label": []}],
    "Zoë": [{"id": 1, "text": "miaou", "label": ["chien"]}, {"id": 2, "text": "ouah", "label": ["chien"]}],
}
DOCCANO_ROWS = [(1, "ann", "chat"), (1, "Zoë", "chien"), (2, "Zoë", "chien")]


def responses(question, *given):
    value, users, status = zip(*given, strict=True)
    return {f"{question}.{name}": list(part) for name, part in zip(PARTS, (value, users, status), strict=True)}


PARTS = "responses", "responses.users", "responses.status"
ARGILLA = [
    {"id": "a", "text": "x"} | responses("pet", ("cat", "u1", "submitted"), ("dog", "u2", "draft")),
    {"id": "b", "text": "y"} | responses("pet", ("dog", "u1", "discarded"), ("dog", "u2", "submitted")),
    {"id": "c", "text": "z", "pet.responses": None, "pet.responses.users": None, "pet.responses.status": None},
]
ARGILLA_ROWS = [("a", "u1", "cat"), ("b", "u2", "dog")]


def as_json(records):
    return json.dumps(records, ensure_ascii=False)


def as_jsonl(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def as_csv(records):
    return pd.DataFrame(records).to_csv(index=False)


# the reader, what it takes, how it is written, and what comes out
TOOLS = {
    "label_studio": (from_label_studio, STUDIO, as_json, STUDIO_ROWS),
    "zooniverse": (from_zooniverse, SKY, as_csv, SKY_ROWS),
    "mturk": (from_mturk, TURK, as_csv, TURK_ROWS),
    "prodigy": (from_prodigy, PRODIGY, as_jsonl, PRODIGY_ROWS),
    "doccano": (from_doccano, DOCCANO["Zoë"], as_jsonl, [(1, "Zoë", "chien"), (2, "Zoë", "chien")]),
    "argilla": (from_argilla, ARGILLA, as_json, ARGILLA_ROWS),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_files_and_what_is_loaded_from_them(tool, tmp_path):
    read, records, write, expected = TOOLS[tool]
    path = tmp_path / ("Zoë.jsonl" if tool == "doccano" else "export")
    path.write_text(write(records), encoding="utf-8-sig")
    table = read(path)
    assert rows(table) == expected
    for form in (str(path), path.open("rb"), path.open(encoding="utf-8")):
        assert_frame_equal(read(form), table)
        if hasattr(form, "close"):
            form.close()
    loaded = pd.DataFrame(records) if write is as_csv else records
    given = {"annotator": "Zoë"} if tool == "doccano" else {}
    assert_frame_equal(read(loaded, **given), table)
    assert guess_format(path) == tool
    votes = encode_votes(table)
    assert len(votes.label) == len(table)
    assert from_long(table).notna().to_numpy().sum() == len(table)


def test_all_formats_are_tested():
    assert set(FORMATS) == set(TOOLS)
    assert {f"from_{name}" for name in FORMATS} <= set(module.__all__)


@pytest.mark.parametrize("write", [as_json, as_jsonl])
def test_json_by_lines_or_as_a_whole(write):
    assert rows(from_prodigy(io.StringIO(write(PRODIGY)))) == PRODIGY_ROWS


# Rules about repeated and several answers are the same everywhere.


def test_times_are_in_utc():
    assert from_mturk(TURK_FRAME := pd.DataFrame(TURK))["time"][0] == pd.Timestamp("2019-11-01 19:08:17", tz="UTC")
    assert len(from_mturk(TURK_FRAME.drop(columns="SubmitTime"))) == 2
    assert from_zooniverse(pd.DataFrame(SKY))["time"][1] == pd.Timestamp("2026-01-01 10:00", tz="UTC")
    assert from_prodigy(PRODIGY)["time"][1] == pd.Timestamp(1700000100, unit="s", tz="UTC")
    assert from_doccano(DOCCANO)["time"].isna().all()


@pytest.mark.parametrize(("rule", "label"), [("first", "never"), ("last", "chien")])
def test_which_answer_counts(rule, label):
    assert {row[:2]: row[2] for row in rows(from_label_studio(STUDIO, duplicates=rule))}[13, "3"] == label


def test_repeated_answers_are_kept_or_refused():
    kept = from_label_studio(STUDIO, duplicates="all")
    assert len(kept) == 6
    with pytest.raises(ValueError, match=r"repeats a pair of task and annotator"):
        from_long(kept)
    with pytest.raises(ValueError, match=r"first of '3' to item 13; duplicates='first' or 'last'"):
        from_label_studio(STUDIO, duplicates="error")
    with pytest.raises(ValueError, match=r"duplicates='newest' is none of 'error', 'first', 'last', 'all'"):
        from_label_studio(STUDIO, duplicates="newest")


def test_order_of_the_file_decides_where_times_are_unknown():
    export = pd.DataFrame([assignment("A1", "3X", at=at, pet=pet) for at, pet in (("", "cat"), ("", "dog"))])
    assert rows(from_mturk(export)) == [("3X", "A1", "dog")]
    assert rows(from_mturk(export, duplicates="first")) == [("3X", "A1", "cat")]


def test_several_labels():
    export = [studio_task(1, annotation(1, chosen("cat", "dog")), annotation(2, chosen("dog")))]
    with pytest.raises(ValueError, match=r"1 answers of several labels, first \['cat', 'dog'\] by 1 to item 1.*'skip'"):
        from_label_studio(export)
    assert rows(from_label_studio(export, multiple="first")) == [(1, 1, "cat"), (1, 2, "dog")]
    assert rows(from_label_studio(export, multiple="skip")) == [(1, 2, "dog")]
    with pytest.raises(ValueError, match="multiple='all' is none of"):
        from_label_studio(export, multiple="all")


@pytest.mark.parametrize(
    ("names", "expected"),
    [([12.0, 13], [12, 13]), (["12", 13.0], ["12", "13"]), (["007", "12"], ["007", "12"]), ([12.0, "b"], ["12", "b"])],
)
def test_names_are_of_one_kind(names, expected):
    export = [studio_task(name, annotation(1, chosen("cat"))) for name in names]
    assert from_label_studio(export)["task"].tolist() == expected


def test_text_in_tables_is_a_number_if_all_of_a_column_is():
    export = pd.DataFrame([assignment("1.0", "007", rating="4"), assignment("2.0", "8", rating="5")])
    assert rows(from_mturk(export)) == [("007", 1, 4), ("8", 2, 5)]


@pytest.mark.parametrize("tool", TOOLS)
def test_exports_without_answers(tool):
    read, *_ = TOOLS[tool]
    tables = {
        "zooniverse": pd.DataFrame(columns=["user_name", "annotations"]),
        "mturk": pd.DataFrame(columns=["HITId", "WorkerId"]),
    }
    with pytest.raises(ValueError, match="export holds no answers"):
        read(tables.get(tool, []))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "no text in UTF-8"),
        (b"{1}", "export is no JSON: Expecting property name"),
        (b'{"a": 1}\n{"a": }', "no JSON in line 2"),
        (b"[1, 2]", "no list of JSON objects"),
    ],
)
def test_files_that_are_no_json(content, message):
    with pytest.raises(ValueError, match=message):
        from_prodigy(io.BytesIO(content))


def test_tables_of_other_tools():
    with pytest.raises(ValueError, match=r"lacks the columns \['HITId', 'WorkerId'\] of the results of a batch; its"):
        from_mturk(pd.DataFrame(SKY))
    with pytest.raises(ValueError, match=r"lacks the columns \['user_name', 'annotations'\] of an export of class"):
        from_zooniverse(io.StringIO(as_csv(TURK)))


@pytest.mark.parametrize(
    ("read", "export", "tool"),
    [
        (from_label_studio, [{"id": 1, "annotations": [5, 6]}], "Label Studio"),
        (from_zooniverse, pd.DataFrame([classification("ann", 5) | {"annotations": '{"task": "T0"}'}]), "Zooniverse"),
        (from_doccano, {"ann": [{"id": 1, "annotations": [5]}]}, "doccano"),
        (from_argilla, [{"id": 1, "responses": {"pet": ["cat"]}}], "Argilla"),
    ],
)
def test_files_of_another_form(read, export, tool):
    with pytest.raises(ValueError, match=f"export has not the form that {tool} documents"):
        read(export)


def test_records_in_a_table_of_polars():
    for read, records in ((from_mturk, TURK), (from_zooniverse, SKY)):
        frame = pd.DataFrame(records)
        table = pl.DataFrame({name: frame[name].astype(object).tolist() for name in frame}, strict=False)
        pd.testing.assert_frame_equal(read(table), read(frame))
    records = [{"id": 1, "text": "a", "label": ["x"]}]
    for kind in (pl.DataFrame, pd.DataFrame):
        assert rows(from_doccano(kind(records), annotator="ann")) == [(1, "ann", "x")]


def test_records_in_a_frame():
    frame = pd.DataFrame([*STUDIO, {"id": np.nan, "annotations": None}])  # ids are floats now
    assert rows(from_label_studio(frame)) == STUDIO_ROWS
    assert rows(from_prodigy(pd.DataFrame(PRODIGY))) == PRODIGY_ROWS


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("export", [None, 5])
def test_what_is_no_export(tool, export):
    with pytest.raises(TypeError, match=rf"export is of type {type(export).__name__}; pass a path"):
        TOOLS[tool][0](export)


@pytest.mark.parametrize("time", ["Fri Foo 01 12:08:17 PDT 2019", "Fri Nov 31 12:08:17 PDT 2019", "yesterday", ""])
def test_times_that_cannot_be_read(time):
    table = from_mturk(pd.DataFrame([assignment("A1", "3X", at=time, pet="cat")]))
    assert table["time"].isna().all()


# Label Studio


def test_controls_are_named_where_there_are_several():
    export = [studio_task(1, annotation(1, chosen("cat"), chosen(4, control="sure", kind="rating")))]
    with pytest.raises(ValueError, match=r"several controls, \['pet \(choices\)', 'sure \(rating\)'\]; name one"):
        from_label_studio(export)
    assert rows(from_label_studio(export, question="sure")) == [(1, 1, 4)]
    with pytest.raises(ValueError, match=r"question='dog' is none of the controls of the export, \['pet', 'sure'\]"):
        from_label_studio(export, question="dog")


def test_labels_of_parts_are_no_labels_of_items():
    boxes = {"from_name": "box", "type": "rectanglelabels", "value": {"x": 1, "rectanglelabels": ["cat"]}}
    with pytest.raises(ValueError, match=r"no choices, ratings or numbers, but \['rectanglelabels'\]"):
        from_label_studio([studio_task(1, annotation(1, boxes))])
    assert rows(from_label_studio([studio_task(1, annotation(1, boxes, chosen("cat")))])) == [(1, 1, "cat")]


def test_items_are_named_by_their_data():
    assert from_label_studio(STUDIO, task="image")["task"].unique().tolist() == ["/12.jpg", "/13.jpg"]
    with pytest.raises(ValueError, match=r"task='url' is no field of item 12; it has \['image'\]"):
        from_label_studio(STUDIO, task="url")


def test_the_flat_form_of_label_studio(tmp_path):
    flat = {"id": 1, "image": "a.jpg", "annotation_id": 5, "updated_at": "2026-01-01T10:00:00Z", "lead_time": 2.5}
    export = [flat | {"annotator": 7, "pet": "cat"}, flat | {"annotator": 8}, flat | {"annotator": 9, "pet": "dog"}]
    assert rows(from_label_studio(export, question="pet", task="image")) == [("a.jpg", 7, "cat"), ("a.jpg", 9, "dog")]
    several = [flat | {"annotator": 7, "pet": {"choices": ["cat", "dog"]}}]
    assert rows(from_label_studio(several, question="pet", multiple="first")) == [(1, 7, "cat")]
    with pytest.raises(ValueError, match=r"JSON-MIN, .* of \['image', 'pet'\]"):
        from_label_studio(export)
    with pytest.raises(ValueError, match="question='dog' is no field"):
        from_label_studio(export, question="dog")
    (tmp_path / "flat.json").write_text(as_json(export))
    assert guess_format(tmp_path / "flat.json") == "label_studio"


def test_an_unknown_author_is_left_to_the_user():
    table = from_label_studio([studio_task(1, annotation(None, chosen("cat")), annotation(None, chosen("dog")))])
    assert table["annotator"].isna().all()
    assert len(table) == 2
    with pytest.raises(ValueError, match="table has no annotator in rows"):
        from_long(table)


# Zooniverse


def test_questions_of_workflows():
    export = pd.DataFrame([classification("ann", 5, reply("yes"), reply(["a", "b"], "T1"), reply([{"x": 1}], "T2"))])
    with pytest.raises(ValueError, match=r"several questions, \['T0 \(About T0\?\)', 'T1 \(About T1\?\)'\]"):
        from_zooniverse(export)
    assert rows(from_zooniverse(export, question="T0")) == [(5, "ann", "yes")]
    with pytest.raises(ValueError, match=r"several labels, first \['a', 'b'\]"):
        from_zooniverse(export, question="T1")


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ([reply("yes", "T5")], "yes"),
        ([{"choice": "LION", "answers": {"HOWMANY": "1"}, "filters": {}}], "LION"),
        ([{"value": "3f2", "option": True, "label": "blue"}], "blue"),
        (0, 0),
    ],
    ids=["combined tasks", "survey", "menu", "number"],
)
def test_kinds_of_zooniverse_answers(value, label):
    assert rows(from_zooniverse(pd.DataFrame([classification("ann", 5, reply(value))]))) == [(5, "ann", label)]


def test_several_workflows():
    export = pd.DataFrame([classification("ann", 5, reply("a")), classification("ann", 6, reply("b"), workflow=8.0)])
    with pytest.raises(ValueError, match=r"several workflows, \['7 \(flow 7\)', '8 \(flow 8\)'\]"):
        from_zooniverse(export)
    for name in (8, "8", "flow 8"):
        assert rows(from_zooniverse(export, workflow=name)) == [(6, "ann", "b")]
    with pytest.raises(ValueError, match=r"workflow=9 is none of \['7', '8'\]"):
        from_zooniverse(export, workflow=9)


def test_people_who_were_not_logged_in_can_be_left_out():
    table = from_zooniverse(pd.DataFrame(SKY), anonymous=False)
    assert rows(table) == [row for row in SKY_ROWS if "not-logged-in" not in row[1]]


def test_subjects_are_named_by_their_metadata():
    assert from_zooniverse(pd.DataFrame(SKY), task="Filename")["task"].tolist() == ["5.png", "5.png", "6.png"]
    older = pd.DataFrame(SKY).drop(columns="subject_ids")
    assert from_zooniverse(older)["task"].tolist() == [5, 5, 6]


def test_classifications_of_nothing():
    with pytest.raises(ValueError, match="lacks the columns subject_ids and subject_data"):
        from_zooniverse(pd.DataFrame(SKY).drop(columns=["subject_ids", "subject_data"]))


def test_json_that_a_spreadsheet_cut_off():
    export = pd.DataFrame(SKY).assign(annotations=lambda t: t["annotations"].str[:20])
    with pytest.raises(ValueError, match=r"no JSON in the column 'annotations' of classification 1.*Export it anew"):
        from_zooniverse(export)


# Mechanical Turk


def test_items_of_mturk_are_named_by_an_input():
    for task in ("url", "Input.url"):
        assert from_mturk(pd.DataFrame(TURK), task=task)["task"].tolist() == ["a.jpg", "b.jpg"]
    with pytest.raises(ValueError, match=r"task='id' is no field of item '3X'; it has \['url', 'age'\]"):
        from_mturk(pd.DataFrame(TURK), task="id")


def test_answers_of_mturk_are_named_where_there_are_several():
    export = pd.DataFrame([assignment("A1", "3X", **{"pet.label": "cat", "comment": "nice"})])
    with pytest.raises(ValueError, match=r"several answers, \['pet', 'comment'\]"):
        from_mturk(export)
    assert rows(from_mturk(export, question="pet")) == [("3X", "A1", "cat")]
    several = pd.DataFrame([assignment("A1", "3X", **{"pet.labels": '["cat", "dog"]'})])
    assert rows(from_mturk(several, multiple="first")) == [("3X", "A1", "cat")]


def test_buttons_of_mturk():
    export = pd.DataFrame(
        [
            assignment("A1", "3X", **{"cat.cat": "true", "dog.on": "false"}),
            assignment("A2", "3X", **{"cat.cat": "false", "dog.on": "true"}),
        ]
    )
    assert rows(from_mturk(export)) == [("3X", "A1", "cat"), ("3X", "A2", "dog")]
    yes = pd.DataFrame([assignment("A1", "3X", pet="true"), assignment("A2", "3X", pet="false")])
    assert from_mturk(yes)["label"].tolist() == ["true", "false"]


def test_answers_of_mturk_in_json():
    given = [json.dumps([{"pet": {"label": label}}]) for label in ("cat", "dog")]
    export = pd.DataFrame([assignment(f"A{i}", "3X", taskAnswers=text) for i, text in enumerate(given)])
    assert from_mturk(export)["label"].tolist() == ["cat", "dog"]


# Prodigy


def test_yes_or_no_to_a_label():
    export = [
        example(1, "pets-ann", label="CAT"),
        example(1, "pets-bob", label="CAT", answer="reject"),
        example(2, "pets-bob", label="CAT", answer="ignore"),
    ]
    assert rows(from_prodigy(export)) == [(1, "pets-ann", "CAT"), (1, "pets-bob", "not CAT")]
    export.append(example(1, "pets-ann", label="DOG"))
    with pytest.raises(ValueError, match=r"several labels, \['CAT', 'DOG'\]"):
        from_prodigy(export)
    assert rows(from_prodigy(export, question="DOG")) == [(1, "pets-ann", "DOG")]
    with pytest.raises(ValueError, match="export holds no labels; only answers about an item as a whole"):
        from_prodigy([example(1, "pets-ann", spans=[])])


def test_examples_are_named_by_a_field():
    assert from_prodigy(PRODIGY, task="text")["task"].unique().tolist() == ["text -5"]
    assert from_prodigy(PRODIGY, task="key")["task"].unique().tolist() == ["k-5"]


def test_sessions_without_a_name_are_told():
    export = [example(1, "pets-2026-02-06_10-17-19", ["cat"]), example(1, None, ["dog"], _session_id="pets-ann")]
    with pytest.warns(UserWarning, match=r"sessions without a name, \['pets-2026-02-06_10-17-19'\].*\?session=NAME"):
        assert len(from_prodigy(export)) == 2


# doccano


def test_files_by_user(tmp_path):
    expected = from_doccano(DOCCANO)
    assert rows(expected) == DOCCANO_ROWS
    paths = []
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for user, records in DOCCANO.items():
            paths.append(tmp_path / f"{user}.jsonl")
            paths[-1].write_text(as_jsonl(records), encoding="utf-8")
            archive.write(paths[-1], paths[-1].name)
        archive.writestr("unknown.jsonl", as_jsonl([{"id": 1, "text": "miaou", "label": []}]))
    assert_frame_equal(from_doccano(paths), expected)
    assert sorted(rows(from_doccano(tmp_path / "export.zip")), key=str) == sorted(DOCCANO_ROWS, key=str)
    assert guess_format(tmp_path / "export.zip") == "doccano"


def test_shared_annotations_have_no_author(tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_text(as_jsonl(DOCCANO["ann"]), encoding="utf-8")
    for export in (path, DOCCANO["ann"]):
        with pytest.raises(ValueError, match=r"does not say who labelled item 1, .* by annotator="):
            from_doccano(export)
        assert rows(from_doccano(export, annotator="us")) == [(1, "us", "chat")]


def test_older_and_other_forms_of_doccano():
    older = [{"id": 1, "annotations": [{"label": 2, "user": 1}, {"label": 3, "user": 2}], "meta": {"key": "k"}}]
    assert rows(from_doccano(older)) == [(1, 1, 2), (1, 2, 3)]
    assert rows(from_doccano(older, task="key")) == [("k", 1, 2), ("k", 2, 3)]
    named = [{"doc_id": 20, "text": "x", "labels": ["a", "b"], "username": "admin"}]
    with pytest.raises(ValueError, match=r"several labels, first \['a', 'b'\] by 'admin' to item 20"):
        from_doccano(named)
    assert rows(from_doccano({"ann": [{"id": 1, "cats": ["a"], "entities": [[0, 1, "b"]]}]})) == [(1, "ann", "a")]
    with pytest.raises(ValueError, match="labels parts of item 1"):
        from_doccano({"ann": [{"id": 1, "label": [[0, 5, "PER"]]}]})


# Argilla


def test_forms_of_argilla():
    nested = [{"id": "a", "responses": {"pet": [{"value": "cat", "user_id": "u1"}, {"value": "dog", "user_id": "u2"}]}}]
    assert rows(from_argilla(nested)) == [("a", "u1", "cat"), ("a", "u2", "dog")]
    first = {"user_id": "u1", "status": "submitted", "values": {"pet": {"value": "cat"}}}
    version_1 = [{"external_id": "a", "responses": [first, first | {"user_id": "u2", "status": "discarded"}]}]
    assert rows(from_argilla(version_1)) == [("a", "u1", "cat")]
    columns = [{"id": "a", "pet": [{"user_id": "u1", "value": "cat", "status": "submitted"}], "metadata": {"key": 3}}]
    assert rows(from_argilla(columns, task="key")) == [(3, "u1", "cat")]


def test_questions_of_argilla():
    export = [ARGILLA[0] | responses("mood", (["a", "b"], "u1", "submitted"))]
    with pytest.raises(ValueError, match=r"several questions, \['pet', 'mood'\]"):
        from_argilla(export)
    assert rows(from_argilla(export, question="mood", multiple="first")) == [("a", "u1", "a")]


# Guessing


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "[]", '[{"x": 1}]', "task,annotator,label\n1,a,b\n"])
def test_other_files_are_exports_of_no_tool(tmp_path, content):
    (tmp_path / "export").write_text(content)
    with pytest.raises(ValueError, match=f"none of the tools known here, {', '.join(FORMATS)}"):
        guess_format(tmp_path / "export")


# And back


@pytest.fixture
def route():
    columns = {"target": ["team", "classifier"], "expert": ["Zoë", "classifier"], "label": ["cat", None]}
    return pd.DataFrame(columns | {"confidence": [0.5, np.nan]}, index=pd.Index([7, 9], name="id"))


def test_tasks_go_to_label_studio_and_come_back(route):
    data = pd.DataFrame({"image": ["9.jpg", "7.jpg"], "age": [np.float32(2), np.nan]}, index=[9, 7])
    tasks = json.loads(json.dumps(to_label_studio(route, data, question="pet", to_name="image"), allow_nan=False))
    assert [task["data"] for task in tasks] == [
        {"item": 7, "target": "team", "expert": "Zoë", "image": "7.jpg", "age": None},
        {"item": 9, "target": "classifier", "expert": "classifier", "image": "9.jpg", "age": 2.0},
    ]
    assert tasks[1]["predictions"] == []
    (prediction,) = tasks[0]["predictions"]
    assert prediction == {"model_version": "sklearn_l2d", "score": 0.5, "result": [chosen("cat")]}
    answered = [task | {"id": i, "annotations": [annotation(1, chosen("dog"))]} for i, task in enumerate(tasks)]
    assert_array_equal(from_label_studio(answered, task="item")["task"], route.index)


def test_tasks_that_cannot_be_made(route):
    names = {"question": "pet", "to_name": "image"}
    with pytest.raises(ValueError, match=r"no column 'label'; pass route\(X, explain=True\)"):
        to_label_studio(route.drop(columns="label"), **names)
    with pytest.raises(ValueError, match="data has other rows than route"):
        to_label_studio(route, pd.DataFrame({"image": ["a", "b"]}, index=[7, 8]), **names)
    with pytest.raises(ValueError, match=r"data has columns \['expert', 'item'\]"):
        to_label_studio(route, pd.DataFrame({"expert": ["a", "b"], "item": [1, 2]}, index=[7, 9]), **names)
    with pytest.raises(ValueError, match="DataFrame of 2 rows"):
        to_label_studio(route, pd.DataFrame({"image": ["a"]}), **names)


def test_more_columns_may_be_in_a_table_of_polars(route):
    tasks = to_label_studio(route, pl.DataFrame({"image": ["a", "b"]}), question="pet", to_name="image")
    assert [task["data"]["image"] for task in tasks] == ["a", "b"]


def test_from_an_export_to_served_queues_and_back(tmp_path):
    """What a team with Label Studio does in its first week."""
    crowd = load_digits_crowd(random_state=0)
    images = [f"{i}.png" for i in range(len(crowd.X_identified))]
    voted = []
    for number, (image, votes) in enumerate(zip(images, crowd.annotations, strict=True)):
        given = [annotation(crowd.experts[who], chosen(str(votes[who]))) for who in np.flatnonzero(votes >= 0)]
        voted.append(studio_task(number, *given) | {"data": {"image": image}})
    (tmp_path / "export.json").write_text(json.dumps(voted))

    # what the user writes
    X = pd.DataFrame(crowd.X_identified, index=images)
    y = pd.Series(crowd.y_identified, index=images).astype(str)
    table = from_label_studio(tmp_path / "export.json", task="image")
    answers = from_long(table).reindex(X.index)
    team = ConfidenceDeferral(LogisticRegression(C=0.01), coverage=0.6, random_state=0).fit(X, y, answers)
    new = pd.DataFrame(crowd.X_test[:200], index=[f"new {i}.png" for i in range(200)])
    route = team.route(new, explain=True)
    tasks = to_label_studio(route[route["expert"] != "classifier"], question="pet", to_name="image")
    for task in tasks:  # which people would do
        row, who = int(task["data"]["item"].removeprefix("new ").removesuffix(".png")), task["data"]["expert"]
        label = str(crowd.annotations_test[row, list(crowd.experts).index(who)])
        task |= {"id": row, "annotations": [annotation(who, chosen(label))]}
    answered = from_label_studio(json.loads(json.dumps(tasks)), task="item")
    labels = team.predict_team(new, team.answers_to_annotations(answered, new.index))

    truth = crowd.y_test[:200].astype(str)
    assert 0.2 < len(tasks) / 200 < 0.5
    assert (labels == truth).mean() > (route["label"] == truth).mean() + 0.1
    asked = (route["expert"] != "classifier").to_numpy()
    assert_array_equal(labels[~asked], route["label"][~asked])
    assert_array_equal(labels[asked], answered.set_index("task")["label"].loc[new.index[asked]])
