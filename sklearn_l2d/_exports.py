"""What labelling tools export, as long tables of annotations, and what they import.

`_labelling_tools.py` describes the readers in full. Each makes one row per answer out of what its tool calls an answer;
the rest is common: names of one kind, one answer of each person to an item, and times.
"""

import csv
import io
import json
import os
import re
import zipfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ._encoding import as_frame, is_frame, is_na, some
from ._rows import same_rows
from ._sklearn import warn

MULTIPLE, DUPLICATES = ("error", "first", "skip"), ("error", "first", "last", "all")
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})(\.0*)?")  # 007 is a name, no number
_UNNAMED_SESSION = re.compile(r"(.*-)?\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")
_ZONES = {"PST": "-0800", "PDT": "-0700", "EST": "-0500", "EDT": "-0400", "UTC": "+0000", "GMT": "+0000"}
_MONTHS = "", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
_CLASSES_OF_CONTROLS = "choices", "rating", "number"  # Label Studio's answers about an item as a whole
_NOT_ANSWERS = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time"}  # of a flat export
_SUBMITTED = {None, "submitted"}
_WORK_DONE = {"", "Submitted", "Approved"}
_ANSWER = "Answer."  # before the names of answers in results of MTurk


class Answer(NamedTuple):
    """What somebody answered: `choices` is a list of labels, of which one is wanted."""

    task: object
    annotator: object
    choices: list
    time: object = None


# What all tools have in common.


def read_answers(tool, read, *args):
    """What `read(*args)` returns; where a file has another form than expected, the error names the tool."""
    try:
        return read(*args)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f"export has not the form that {tool} documents ({type(error).__name__}: {error}); give the file as the "
            "tool wrote it."
        ) from error


def long_table(answers, multiple, duplicates, *, from_text=()):
    """Table with the columns task, annotator, label and time, one row per answer.

    Parameters
    ----------
    answers : list of Answer
        In the order of the file; those without any choice are left out.
    multiple : {"error", "first", "skip"}
        What to do with several choices.
    duplicates : {"error", "first", "last", "all"}
        Which answers of a person to an item to keep.
    from_text : tuple of str, default=()
        Columns of which the file holds text only, so that text may stand for whole numbers.

    Raises
    ------
    ValueError
        If there are several choices or repeated answers that are refused, or no answers at all.
    """
    import pandas as pd

    answers = [answer for answer in answers if answer.choices]
    several = [answer for answer in answers if len(answer.choices) > 1]
    if several and multiple == "error":
        task, who, choices, _ = several[0]
        raise ValueError(
            f"export holds {len(several)} answers of several labels, first {some(choices)} by {who!r} to item "
            f"{task!r}, but a team decides for one. multiple='first' takes the first label, and multiple='skip' leaves "
            "these answers out."
        )
    if multiple == "skip":
        answers = [answer for answer in answers if len(answer.choices) == 1]
    if not answers:
        raise ValueError("export holds no answers: all are skipped, empty or rejected, or it is not yet annotated.")
    task, annotator, choices, time = zip(*answers, strict=True)
    labels = [answer[0] for answer in choices]
    columns = {
        "task": one_kind(task, "task" in from_text),
        "annotator": one_kind(annotator, "annotator" in from_text),
        "label": one_kind(labels, True) if "label" in from_text else pd.Series(labels, dtype=object).infer_objects(),
        "time": _times(time),
    }
    table = pd.DataFrame(columns)
    return table if duplicates == "all" else _one_each(table, duplicates)


def one_kind(names, from_text):
    """Names as a Series of one kind: whole numbers if all are, else text if some are, and None where one is missing.

    What a missing entry has made a float, 12.0, is 12 again.
    """
    import pandas as pd

    given = [None if is_na(name) or name == "" else name for name in names]
    kinds = (int, float, str) if from_text else (int, float)
    known = [name for name in given if name is not None]
    if all(isinstance(name, kinds) and not isinstance(name, bool) and _WHOLE.fullmatch(str(name)) for name in known):
        values = [None if name is None else int(str(name).partition(".")[0]) for name in given]
    elif any(isinstance(name, str) for name in known):
        values = [None if name is None else as_text(name) for name in given]
    else:
        values = given
    return pd.Series(values, dtype=object if None in values else None)


def as_text(name):
    """A name as text, in which 7 and 7.0 are the same."""
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)


def _one_each(table, duplicates):
    """Rows of the first or the last answer of each person to an item, by time where all have one."""
    rows = np.arange(len(table))
    if table["time"].notna().all():
        rows = np.argsort(table["time"].to_numpy(), kind="stable")
    pairs = table.iloc[rows][["task", "annotator"]]
    known = pairs["annotator"].notna()  # nobody knows whether unknown people are the same
    again = pairs.duplicated(keep=False if duplicates == "error" else duplicates) & known
    if again.any() and duplicates == "error":
        task, who = pairs[again].astype(object).iloc[0]
        raise ValueError(
            f"export repeats an answer, first of {who!r} to item {task!r}; duplicates='first' or 'last' takes one of "
            "them, and 'all' keeps them."
        )
    return table[~again.sort_index()].reset_index(drop=True)


def _times(times):
    """Times in UTC from text in ISO 8601 or that of MTurk, or from seconds; NaT where there is none."""
    import pandas as pd

    return pd.Series(pd.to_datetime([_iso(time) for time in times], format="ISO8601", utc=True, errors="coerce"))


def _iso(time):
    if is_na(time) or time == "":
        return None
    if isinstance(time, int | float):
        return datetime.fromtimestamp(time, UTC).isoformat()
    text = str(time).strip().removesuffix(" UTC")
    words = text.split(" ")
    if len(words) == 6 and words[1] in _MONTHS and words[4] in _ZONES:  # Fri Nov 01 12:08:17 PDT 2019
        _, month, day, clock, zone, year = words
        return f"{year}-{_MONTHS.index(month):02}-{day:0>2}T{clock}{_ZONES[zone]}"
    return text


def one_question(question, found, what):
    """The question whose answers are wanted; `found` maps each to a description, or to None."""
    if question is not None:
        if question not in found:
            raise ValueError(f"question={question!r} is none of the {what} of the export, {some(list(found))}.")
        return question
    if len(found) != 1:
        told = [name if about is None else f"{name} ({about})" for name, about in found.items()]
        raise ValueError(
            f"export holds {'several' if found else 'no'} {what}{f', {some(told)}' if found else ''}; "
            + ("name one by question=." if found else "only answers about an item as a whole are labels.")
        )
    return next(iter(found))


def _field(record, names, name):
    """An entry of a record that names its item."""
    for place in names:
        if isinstance(place, Mapping) and name in place:
            return place[name]
    known = [key for place in names if isinstance(place, Mapping) for key in place]
    raise ValueError(f"task={name!r} is no field of item {record!r}; it has {some(known)}.")


# Files.


def _text_of(export):
    if not _is_file(export):
        raise TypeError(
            f"export is of type {type(export).__name__}; pass a path, an open file, or what has been loaded from it."
        )
    content = export.read() if hasattr(export, "read") else Path(export).read_bytes()
    if isinstance(content, str):
        return content.removeprefix("\ufeff")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("export is no text in UTF-8; export it anew, or save it in UTF-8.") from error


def _is_file(export):
    return isinstance(export, str | os.PathLike) or hasattr(export, "read")


def read_json(export):
    """List of records of a JSON or JSONL file, or of what has been loaded from one."""
    export = as_frame(export)
    if is_frame(export):
        records = [_given(row) for row in export.to_dict("records")]
    elif isinstance(export, Iterable) and not _is_file(export):
        records = [export] if isinstance(export, Mapping) else list(export)
    else:
        records = _parse_json(_text_of(export))
    if not all(isinstance(record, Mapping) for record in records):
        raise ValueError("export is no list of JSON objects, one per item; give the JSON or JSONL export of the tool.")
    return records


def _given(row):
    """The entries of a row that are not missing."""
    return {name: value for name, value in row.items() if isinstance(value, list | dict) or not is_na(value)}


def _parse_json(text):
    try:
        parsed = json.loads(text)
        return parsed if isinstance(parsed, list) else [parsed]
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":  # the first line of JSONL is complete
            raise ValueError(f"export is no JSON: {error}.") from error
    records = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise ValueError(f"export is no JSON in line {number}: {error.msg}.") from error
    return records


def read_table(export, needed, tool):
    """List of rows, as mappings from columns to text, of a CSV file or a DataFrame that has some columns."""
    export = as_frame(export)
    if is_frame(export):
        rows = export.to_dict("records")
        columns = list(export.columns)
    else:
        reader = csv.DictReader(io.StringIO(_text_of(export), newline=""), strict=True)
        columns = reader.fieldnames or []
    lacking = [name for name in needed if name not in columns]
    if lacking:
        raise ValueError(f"export lacks the columns {lacking} of {tool}; its columns are {some(columns)}.")
    if is_frame(export):
        return [dict.fromkeys(columns, "") | _given(row) for row in rows]
    csv.field_size_limit(max(csv.field_size_limit(), 1 << 27))  # drawings are long
    try:
        return [{name: value or "" for name, value in row.items() if name is not None} for row in reader]
    except csv.Error as error:
        raise ValueError(f"export is no CSV file: {error} in line {reader.line_num}.") from error


# Label Studio.


def label_studio(records, question, task):
    """Answers in an export of Label Studio, JSON or JSON-MIN."""
    if records and all("annotator" in record and "annotations" not in record for record in records):
        return _flat_label_studio(records, question, task)
    given = [
        (record, annotation)
        for record in records
        for annotation in record.get("annotations", record.get("completions")) or ()
        if not annotation.get("was_cancelled")
    ]
    found, others = {}, {}
    for _, annotation in given:
        for result in annotation.get("result") or ():
            kind, control = result.get("type"), result.get("from_name")
            (found if kind in _CLASSES_OF_CONTROLS else others)[control] = kind
    if not found and others:
        raise ValueError(
            f"export holds no choices, ratings or numbers, but {some(sorted(map(str, others.values())))}; these label "
            "parts of an item, and a team decides items."
        )
    if not given:
        return []
    question = one_question(question, found, "controls")
    emails = {}
    for _, annotation in given:
        who = annotation.get("completed_by")
        if isinstance(who, Mapping) and who.get("email"):
            emails[who.get("id")] = who["email"]
    answers = []
    for record, annotation in given:
        who = annotation.get("completed_by")
        who = who.get("email") or who.get("id") if isinstance(who, Mapping) else emails.get(who, who)
        name = record.get("id") if task is None else _field(record.get("id"), [record.get("data")], task)
        choices = [
            choice
            for result in annotation.get("result") or ()
            if result.get("from_name") == question and result.get("type") in _CLASSES_OF_CONTROLS
            for choice in _as_list((result.get("value") or {}).get(result["type"]))
        ]
        answers.append(Answer(name, who, choices, annotation.get("updated_at") or annotation.get("created_at")))
    return answers


def _flat_label_studio(records, question, task):
    """Answers in the flat form, where items' data and answers are fields side by side."""
    if question is None:
        raise ValueError(
            f"export is in the form JSON-MIN, which does not tell answers from data; name a control by question=, of "
            f"{some(sorted({name for record in records for name in record if name not in _NOT_ANSWERS}))}."
        )
    if not any(question in record for record in records):
        raise ValueError(f"question={question!r} is no field of the export; correct it.")
    answers = []
    for record in records:
        value = record.get(question)
        name = record.get("id") if task is None else _field(record.get("id"), [record], task)
        choices = _as_list(value["choices"] if isinstance(value, Mapping) else value)
        answers.append(Answer(name, record["annotator"], choices, record.get("updated_at")))
    return answers


def _as_list(value):
    """What was chosen, as a list: nothing, one or several."""
    if value is None or value == "":
        return []
    return [entry for entry in value if entry is not None] if isinstance(value, list) else [value]


# Zooniverse.


def zooniverse(rows, question, task, workflow, anonymous):
    """Answers in an export of classifications of Zooniverse."""
    workflows = {}
    for row in rows:
        workflows.setdefault(as_text(row.get("workflow_id", "")), row.get("workflow_name", ""))
    if workflow is None and len(workflows) > 1:
        told = [f"{number} ({name})" for number, name in workflows.items()]
        raise ValueError(f"export holds several workflows, {some(told)}; name one by workflow=.")
    if workflow is not None:
        chosen = {number for number, name in workflows.items() if str(workflow) in (number, name)}
        if not chosen:
            raise ValueError(f"workflow={workflow!r} is none of {some(list(workflows))}.")
        rows = [row for row in rows if as_text(row.get("workflow_id", "")) in chosen]
    parsed = [_flat_tasks(_json_cell(row, "annotations")) for row in rows]
    found = {}
    for answered in parsed:
        for key, (about, value) in answered.items():
            if _choices(value) or key not in found:
                found.setdefault(key, about)
    asked = {key: about for key, about in found.items() if any(_choices(a[key][1]) for a in parsed if key in a)}
    if not rows:
        return []
    question = one_question(question, asked, "questions")
    answers = []
    for row, answered in zip(rows, parsed, strict=True):
        who = row["user_name"]
        if question not in answered or (not anonymous and str(who).startswith("not-logged-in")):
            continue
        subject, data = row.get("subject_ids", ""), _json_cell(row, "subject_data")
        if subject == "" and isinstance(data, Mapping):
            subject = ";".join(data)
        if subject == "":
            raise ValueError(
                "export lacks the columns subject_ids and subject_data, which name the items; export both."
            )
        if task is not None:
            subject = _field(subject, list(data.values()), task)
        answers.append(Answer(subject, who, _choices(answered[question][1]), row.get("created_at")))
    return answers


def _json_cell(row, column):
    text = row.get(column) or "null"
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"export holds no JSON in the column {column!r} of classification {row.get('classification_id', '?')}: "
            f"{error.msg}; a spreadsheet may have cut it off. Export it anew."
        ) from error


def _flat_tasks(annotations):
    """Question and answer by task key; tasks inside of tasks are taken out."""
    flat = {}
    for part in annotations or ():
        value = part.get("value")
        if isinstance(value, list) and value and all(isinstance(v, Mapping) and "task" in v for v in value):
            flat |= _flat_tasks(value)
        else:
            flat[part.get("task")] = part.get("task_label"), value
    return flat


def _choices(value):
    """Labels in the value of a question, a menu or a survey; none in that of a drawing."""
    choices = []
    for entry in _as_list(value):
        if isinstance(entry, Mapping):
            entry = next((entry[name] for name in ("choice", "label", "value") if entry.get(name) is not None), None)
        if isinstance(entry, str | int | float):
            choices.append(entry)
    return choices


# Mechanical Turk.


def mturk(rows, question, task):
    """Answers in the results of a batch of Mechanical Turk."""
    rows = [
        _with_task_answers(row)
        for row in rows
        if row.get("AssignmentStatus", "") in _WORK_DONE and not str(row.get("Reject", "")).strip()
    ]
    if not rows:
        return []
    answered = {}
    for row in rows:
        for name, value in row.items():
            if name.startswith(_ANSWER) and value != "":
                answered.setdefault(name.removeprefix(_ANSWER), set()).add(str(value).lower())
    found = {name.removesuffix(".label"): None for name in answered}
    buttons = [name for name, values in answered.items() if values <= {"true", "false"}]
    if len(buttons) > 1:  # each button of a group has a column of its own
        found = {name: about for name, about in found.items() if name not in buttons}
        found["buttons"] = some(buttons)
    question = one_question(question, found, "answers")
    answers = []
    for row in rows:
        if question == "buttons" and len(buttons) > 1:
            pressed = [name for name in buttons if str(row.get(_ANSWER + name, "")).lower() == "true"]
            choices = [name.removesuffix(".on").rpartition(".")[2] for name in pressed]
        else:
            choices = _mturk_choices(row.get(_ANSWER + (question if question in answered else f"{question}.label"), ""))
        name = row["HITId"] if task is None else _field(row["HITId"], [_inputs(row)], task.removeprefix("Input."))
        answers.append(Answer(name, row["WorkerId"], choices, row.get("SubmitTime")))
    return answers


def _with_task_answers(row):
    """The row with a column for each entry of the column taskAnswers, which holds JSON."""
    column = f"{_ANSWER}taskAnswers"
    flat = {name: value for name, value in row.items() if name != column}
    for given in _as_list(_json_cell(row, column)):
        for name, value in given.items():
            parts = value.items() if isinstance(value, Mapping) else [("", value)]
            flat |= {f"{_ANSWER}{name}.{part}".removesuffix("."): entry for part, entry in parts}
    return flat


def _inputs(row):
    return {name.removeprefix("Input."): value for name, value in row.items() if name.startswith("Input.")}


def _mturk_choices(value):
    if isinstance(value, str) and value.startswith("["):
        try:
            return _as_list(json.loads(value))
        except json.JSONDecodeError:
            return [value]
    return _as_list(value)


# Prodigy.


def prodigy(records, question, task):
    """Answers in a JSONL export of Prodigy."""
    has_choices = any("accept" in record for record in records)
    labels = {} if has_choices else {record["label"]: None for record in records if "label" in record}
    if records and not has_choices:
        question = one_question(question, labels, "labels")
    answers, unnamed = [], set()
    for record in records:
        reply = record.get("answer", "accept")
        if reply == "ignore" or (has_choices and reply == "reject"):
            continue
        if not has_choices and record.get("label") != question:
            continue
        who = record.get("_annotator_id", record.get("_session_id"))
        if isinstance(who, str) and _UNNAMED_SESSION.fullmatch(who):
            unnamed.add(who)
        key = "_input_hash" if task is None else task
        name = _field(record.get("_input_hash"), [record, record.get("meta")], key)
        if has_choices:
            choices = _as_list(record.get("accept"))
        else:
            choices = [question if reply == "accept" else f"not {question}"]
        answers.append(Answer(name, who, choices, record.get("_timestamp")))
    if unnamed:
        warn(
            f"export holds sessions without a name, {some(sorted(unnamed))}, each of which counts as a person; people "
            "are told apart where they open the tool with ?session=NAME."
        )
    return answers


# doccano.


def doccano(files, annotator, task):
    """Answers in files of doccano, given as pairs of a user and records."""
    answers = []
    for user, records in files:
        for record in records:
            name, whose = record.get("id", record.get("doc_id")), record.get("username", record.get("user", user))
            if task is not None:
                name = _field(name, [record, record.get("meta")], task)
            if isinstance(record.get("annotations"), list):  # of older versions
                for given in record["annotations"]:
                    who = given.get("user_name", given.get("user", whose))
                    choices = _as_list(given.get("label_name", given.get("label")))
                    answers.append(Answer(name, who, _item_labels(choices, name)))
                continue
            given = next((record[field] for field in ("cats", "label", "labels") if field in record), None)
            choices = _item_labels(_as_list(given), name)
            if choices and whose in (None, "all", "unknown") and annotator is None:
                raise ValueError(
                    f"export does not say who labelled item {name!r}, as where a project shares annotations across all "
                    "users; export it without sharing, or name everybody's labels by annotator=."
                )
            answers.append(Answer(name, whose if annotator is None else annotator, choices))
    return _merged(answers)


def _merged(answers):
    """Answers of one person to one item as one: older exports list every label on its own."""
    together = {}
    for answer in answers:
        key = answer.task, answer.annotator
        before = together.get(key)
        together[key] = answer if before is None else answer._replace(choices=before.choices + answer.choices)
    return [answer._replace(choices=list(dict.fromkeys(answer.choices))) for answer in together.values()]


def _item_labels(choices, item):
    if any(isinstance(choice, list | Mapping) for choice in choices):
        raise ValueError(f"export labels parts of item {item!r}, such as words; a team decides items.")
    return choices


def doccano_files(exports):
    """Pairs of a user and records, of a zip file, files, or what has been loaded from them."""
    if isinstance(exports, Mapping) and not ({"id", "label", "cats", "labels", "annotations"} & set(exports)):
        return [(user, read_json(export)) for user, export in exports.items()]
    if isinstance(exports, str | os.PathLike) and zipfile.is_zipfile(exports):
        with zipfile.ZipFile(exports) as archive:
            files = [name for name in archive.namelist() if name.endswith((".json", ".jsonl"))]
            return [(Path(name).stem, read_json(io.BytesIO(archive.read(name)))) for name in sorted(files)]
    if isinstance(exports, list | tuple) and exports and all(isinstance(part, str | os.PathLike) for part in exports):
        return [(Path(part).stem, read_json(part)) for part in exports]
    name = exports if isinstance(exports, str | os.PathLike) else getattr(exports, "name", None)
    return [(Path(name).stem if isinstance(name, str | os.PathLike) else None, read_json(exports))]


# Argilla.


def argilla(records, question, task):
    """Answers in records of Argilla, nested or flat, of version 1 or 2."""
    given = [(record, list(_argilla_responses(record))) for record in records]
    found = dict.fromkeys(name for _, responses in given for name, *_ in responses)
    if not found:
        return []
    question = one_question(question, found, "questions")
    answers = []
    for record, responses in given:
        item = record.get("id") or record.get("external_id") or record.get("_server_id")
        if task is not None:
            item = _field(item, [record, record.get("metadata"), record.get("fields")], task)
        for name, who, value, status, time in responses:
            if name == question and status in _SUBMITTED:
                value = value.get("value") if isinstance(value, Mapping) else value
                choices = [v.get("value") if isinstance(v, Mapping) else v for v in _as_list(value)]
                answers.append(Answer(item, who, choices, time))
    return answers


def _argilla_responses(record):
    """Yield question, user, value, status and time of each response in a record."""
    responses = record.get("responses")
    if isinstance(responses, Mapping):
        for name, given in responses.items():
            for response in given:
                yield name, response.get("user_id"), response.get("value"), response.get("status"), None
    elif isinstance(responses, list):
        for response in responses:
            time = response.get("updated_at", response.get("inserted_at"))
            for name, value in (response.get("values") or {}).items():
                yield name, response.get("user_id"), value, response.get("status"), time
    for key, given in record.items():
        if not isinstance(given, list):
            continue
        if key.endswith(".responses"):
            users = record.get(f"{key}.users") or [None] * len(given)
            statuses = record.get(f"{key}.status") or [None] * len(given)
            for who, value, status in zip(users, given, statuses, strict=True):
                yield key.removesuffix(".responses"), who, value, status, None
        elif key != "responses" and given and all(isinstance(g, Mapping) and "user_id" in g for g in given):
            for response in given:
                yield key, response["user_id"], response.get("value"), response.get("status"), None


# Any of them.


def guess_format(path):
    """Name of the tool that wrote a file, by its content."""
    path = Path(path)
    if zipfile.is_zipfile(path):
        return "doccano"
    text = _text_of(path).lstrip()
    found = _guess_json(text) if text[:1] in ("{", "[") else _guess_csv(text)
    if found is None:
        raise ValueError(
            f"is an export of none of the tools known here, {', '.join(FORMATS)}; name the tool if it is one of them, "
            "or write a table with the columns task, annotator and label."
        )
    return found


def _guess_csv(text):
    columns = set(next(csv.reader(io.StringIO(text)), ()))
    if {"user_name", "annotations"} <= columns:
        return "zooniverse"
    return "mturk" if {"HITId", "WorkerId"} <= columns else None


def _guess_json(text):
    records = _parse_json(text)
    fields = {name for record in records if isinstance(record, Mapping) for name in record}
    if {"_input_hash", "_task_hash"} & fields:
        return "prodigy"
    if fields & {"responses"} or any(name.endswith(".responses") for name in fields):
        return "argilla"
    if (
        {"data", "annotations"} <= fields
        or {"data", "completions"} <= fields
        or {"annotator", "annotation_id"} <= fields
    ):
        return "label_studio"
    if any("user_id" in part for r in records for v in r.values() if isinstance(v, list) for part in _mappings(v)):
        return "argilla"
    return "doccano" if {"label", "labels", "cats", "annotations"} & fields else None


def _mappings(values):
    return (value for value in values if isinstance(value, Mapping))


FORMATS = "label_studio", "zooniverse", "mturk", "prodigy", "doccano", "argilla"


# Back to Label Studio.


def label_studio_tasks(route, data, question, to_name, model_version):
    """Tasks for Label Studio, as `annotations.to_label_studio` describes them."""
    if not (is_frame(route) and "label" in route.columns):
        raise ValueError(
            "route has no column 'label'; pass route(X, explain=True) of a team, or a DataFrame with the columns "
            "label, confidence and expert whose index names the items."
        )
    if data is not None:
        data = as_frame(data)
        if not is_frame(data) or len(data) != len(route):
            raise ValueError(f"data must be a DataFrame of {len(route)} rows, one for each of the route.")
        route, data = same_rows(route=route, data=data)
    more = [name for name in route.columns if name not in ("label", "confidence")]
    clash = sorted({"item", *more} & set([] if data is None else data.columns))
    if clash:
        raise ValueError(f"data has columns {clash}, which are taken by the route; rename them.")
    columns = {"item": route.index} | {name: route[name] for name in more}
    if data is not None:
        columns |= {name: data[name] for name in data.columns}
    fields = {str(name): [_plain(value) for value in values] for name, values in columns.items()}
    labels = [_plain(label) for label in route["label"]]
    scores = [_plain(score) for score in route["confidence"]] if "confidence" in route.columns else [None] * len(labels)
    tasks = []
    for label, score, *values in zip(labels, scores, *fields.values(), strict=True):
        value = {"choices": [as_text(label)]}
        result = [{"from_name": question, "to_name": to_name, "type": "choices", "value": value}]
        prediction = {"model_version": model_version, "result": result} | ({} if score is None else {"score": score})
        tasks.append(
            {"data": dict(zip(fields, values, strict=True)), "predictions": [] if label is None else [prediction]}
        )
    return tasks


def _plain(value):
    """A value as JSON knows it; None where it is missing."""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, list | dict) and is_na(value):
        return None
    return value if isinstance(value, str | int | float | bool | list | dict) else str(value)
