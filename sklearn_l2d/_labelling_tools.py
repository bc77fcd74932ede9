"""Long tables from what labelling tools export, and tasks with predictions for Label Studio."""

from . import _exports


def from_label_studio(export, *, question=None, task=None, multiple="error", duplicates="last"):
    """Read the answers in a JSON export of Label Studio.

    Annotations that were skipped (`was_cancelled`), drafts and predictions are no answers. Answers are choices, ratings
    and numbers about an item as a whole. People are named by their email where the export tells it, else by their
    number.

    Parameters
    ----------
    export : path, file, list of dict or DataFrame
        Export in the form JSON or JSON-MIN, or what has been loaded from it.

    question : str, default=None
        Name of the control whose answers are wanted, `from_name` in the export. None takes the only one.

    task : str, default=None
        Field of the items' `data` that names them. None takes the numbers that Label Studio gave them.

    multiple : {"error", "first", "skip"}, default="error"
        What to do with answers of several labels, of which a team can use one: refuse them, take the first label, or
        leave these answers out.

    duplicates : {"error", "first", "last", "all"}, default="last"
        Which answers count where a person answered an item again: the first or the last by time, or all; or
        refuse them.

    Returns
    -------
    table : DataFrame of shape (n_answers, 4)
        Columns task, annotator, label and time (UTC, NaT where unknown), one row per answer, for `from_long` and
        `encode_votes`. Names that are whole numbers are integers if all are, and else all are text; what missing
        entries made 12.0 is 12 again.

    Raises
    ------
    ValueError
        If the file is no such export, holds no answers or several questions, or answers that `multiple` or
        `duplicates` refuses.

    See Also
    --------
    from_long, encode_votes : Take the table.

    Examples
    --------
    >>> from sklearn_l2d.annotations import from_label_studio
    >>> def answer(who, label, skipped=False):
    ...     result = [{"from_name": "pet", "type": "choices", "value": {"choices": [label]}}]
    ...     return {"completed_by": who, "result": result, "was_cancelled": skipped}
    >>> from_label_studio(
    ...     [
    ...         {
    ...             "id": 1,
    ...             "data": {"image": "a.jpg"},
    ...             "annotations": [answer(7, "cat"), answer(8, "dog")],
    ...         },
    ...         {
    ...             "id": 2,
    ...             "data": {"image": "b.jpg"},
    ...             "annotations": [answer(7, "dog"), answer(8, "cat", skipped=True)],
    ...         },
    ...     ],
    ...     task="image",
    ... )[["task", "annotator", "label"]]
        task  annotator label
    0  a.jpg          7   cat
    1  a.jpg          8   dog
    2  b.jpg          7   dog
    """
    _check_rules(multiple, duplicates)
    answers = _exports.read_answers("Label Studio", _exports.label_studio, _exports.read_json(export), question, task)
    return _exports.long_table(answers, multiple, duplicates)


def from_zooniverse(
    export, *, question=None, task=None, workflow=None, anonymous=True, multiple="error", duplicates="first"
):
    """Read the answers in an export of classifications of Zooniverse.

    Parameters
    ----------
    export : path, file or DataFrame
        CSV export of classifications.

    question : str, default=None
        Key of the question, such as "T0", also of one inside of another task. None takes the only one that has answers;
        drawings have none.

    task : str, default=None
        Field of the subjects' metadata that names them, such as the name of a file. None takes their numbers.

    workflow : int or str, default=None
        Number or name of the workflow. None takes the only one.

    anonymous : bool, default=True
        Whether people who were not logged in count; each of their addresses is then a person.

    multiple : {"error", "first", "skip"}, default="error"
        What to do with answers of several labels, of which a team can use one: refuse them, take the first label, or
        leave these answers out.

    duplicates : {"error", "first", "last", "all"}, default="first"
        Which answers count where a person answered an item again: the first or the last by time, or all; or
        refuse them.

    Returns
    -------
    table : DataFrame of shape (n_answers, 4)
        Columns task, annotator, label and time (UTC, NaT where unknown), one row per answer, for `from_long` and
        `encode_votes`. Names that are whole numbers are integers if all are, and else all are text; what missing
        entries made 12.0 is 12 again.

    Raises
    ------
    ValueError
        If the file is no such export, holds no answers, several workflows or questions, or answers that `multiple` or
        `duplicates` refuses.

    See Also
    --------
    from_long, encode_votes : Take the table.

    Examples
    --------
    >>> import json
    >>> import pandas as pd
    >>> from sklearn_l2d.annotations import from_zooniverse
    >>> answers = [
    ...     json.dumps([{"task": "T0", "value": value}])
    ...     for value in ["spiral", "round", "round"]
    ... ]
    >>> export = pd.DataFrame(
    ...     {
    ...         "user_name": ["ann", "bob", "ann"],
    ...         "annotations": answers,
    ...         "subject_ids": [5, 5, 5],
    ...     }
    ... )
    >>> from_zooniverse(export)[
    ...     ["task", "annotator", "label"]
    ... ]  # the first answer of each person
       task annotator   label
    0     5       ann  spiral
    1     5       bob   round
    """
    _check_rules(multiple, duplicates)
    rows = _exports.read_table(export, ["user_name", "annotations"], "an export of classifications")
    answers = _exports.read_answers("Zooniverse", _exports.zooniverse, rows, question, task, workflow, anonymous)
    return _exports.long_table(answers, multiple, duplicates, from_text=("task",))


def from_mturk(export, *, question=None, task=None, multiple="error", duplicates="last"):
    """Read the answers in the results of a batch of Mechanical Turk.

    Work that was rejected, or for which the column Reject has a reason, is left out, and so is work that was never
    submitted.

    Parameters
    ----------
    export : path, file or DataFrame
        CSV file with the results.

    question : str, default=None
        Name of the answer, as in the column ``Answer.<question>`` or ``Answer.<question>.label``. None takes the only
        one. Buttons, which have a column of true or false each, are one question together, "buttons".

    task : str, default=None
        Name of the column ``Input.<task>`` that names the items. None takes the HITs.

    multiple : {"error", "first", "skip"}, default="error"
        What to do with answers of several labels, of which a team can use one: refuse them, take the first label, or
        leave these answers out.

    duplicates : {"error", "first", "last", "all"}, default="last"
        Which answers count where a person answered an item again: the first or the last by time, or all; or
        refuse them.

    Returns
    -------
    table : DataFrame of shape (n_answers, 4)
        Columns task, annotator, label and time (UTC, NaT where unknown), one row per answer, for `from_long` and
        `encode_votes`. Names that are whole numbers are integers if all are, and else all are text; what missing
        entries made 12.0 is 12 again.
        Text that stands for whole numbers is read as numbers if all of a column is, labels too.

    Raises
    ------
    ValueError
        If the file is no such export, holds no answers or several questions, or answers that `multiple` or
        `duplicates` refuses.

    See Also
    --------
    from_long, encode_votes : Take the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_l2d.annotations import from_mturk
    >>> export = pd.DataFrame(
    ...     {
    ...         "HITId": ["3X", "3X", "3Y"],
    ...         "WorkerId": ["A1", "A2", "A1"],
    ...         "AssignmentStatus": ["Approved", "Rejected", "Submitted"],
    ...         "Input.url": ["a.jpg", "a.jpg", "b.jpg"],
    ...         "Answer.pet.label": ["cat", "dog", "dog"],
    ...     }
    ... )
    >>> from_mturk(export, task="url")[["task", "annotator", "label"]]
        task annotator label
    0  a.jpg        A1   cat
    1  b.jpg        A1   dog
    """
    _check_rules(multiple, duplicates)
    rows = _exports.read_table(export, ["HITId", "WorkerId"], "the results of a batch")
    answers = _exports.read_answers("Mechanical Turk", _exports.mturk, rows, question, task)
    return _exports.long_table(answers, multiple, duplicates, from_text=("task", "annotator", "label"))


def from_prodigy(export, *, question=None, task=None, multiple="error", duplicates="last"):
    """Read the answers in a dataset of Prodigy.

    Where options are given, the labels are those in the field `accept`; examples that were rejected or ignored have
    none. Otherwise the answer is to one label: "accept" is the label, "reject" is "not" and the label, and "ignore" is
    no answer.

    Parameters
    ----------
    export : path, file, list of dict or DataFrame
        JSONL file, as ``prodigy db-out`` writes it, or what has been loaded from it.

    question : str, default=None
        Label whose acceptance was asked, where there are no options. None takes the only one.

    task : str, default=None
        Field of the examples or of their `meta` that names them. None takes `_input_hash`.

    multiple : {"error", "first", "skip"}, default="error"
        What to do with answers of several labels, of which a team can use one: refuse them, take the first label, or
        leave these answers out.

    duplicates : {"error", "first", "last", "all"}, default="last"
        Which answers count where a person answered an item again: the first or the last by time, or all; or
        refuse them.

    Returns
    -------
    table : DataFrame of shape (n_answers, 4)
        Columns task, annotator, label and time (UTC, NaT where unknown), one row per answer, for `from_long` and
        `encode_votes`. Names that are whole numbers are integers if all are, and else all are text; what missing
        entries made 12.0 is 12 again.

    Raises
    ------
    ValueError
        If the file is no such export, holds no answers or several labels, or answers that `multiple` or `duplicates`
        refuses.

    Warns
    -----
    UserWarning
        If sessions have no name, so that nobody knows who answered.

    See Also
    --------
    from_long, encode_votes : Take the table.

    Examples
    --------
    >>> from sklearn_l2d.annotations import from_prodigy
    >>> shown = {"_input_hash": 5, "options": [{"id": "cat"}, {"id": "dog"}]}
    >>> from_prodigy(
    ...     [
    ...         {**shown, "accept": ["cat"], "answer": "accept", "_annotator_id": "pets-ann"},
    ...         {**shown, "accept": [], "answer": "ignore", "_annotator_id": "pets-bob"},
    ...     ]
    ... )[["task", "annotator", "label"]]
       task annotator label
    0     5  pets-ann   cat
    """
    _check_rules(multiple, duplicates)
    answers = _exports.read_answers("Prodigy", _exports.prodigy, _exports.read_json(export), question, task)
    return _exports.long_table(answers, multiple, duplicates)


def from_doccano(export, *, annotator=None, task=None, multiple="error"):
    """Read the labels in an export of doccano.

    doccano writes a file for each user, called by the user's name, unless a project shares annotations.

    Parameters
    ----------
    export : path, list of paths, mapping from users to files, file or list of dict
        The zip file, or JSONL or JSON files, or what has been loaded from them.

    annotator : str, default=None
        Who labelled everything. None takes the names of the users' files, or what the records say themselves.

    task : str, default=None
        Field of the records that names the items. None takes the numbers that doccano gave them.

    multiple : {"error", "first", "skip"}, default="error"
        What to do with answers of several labels, of which a team can use one: refuse them, take the first label, or
        leave these answers out.

    Returns
    -------
    table : DataFrame of shape (n_answers, 4)
        Columns task, annotator, label and time (UTC, NaT where unknown), one row per answer, for `from_long` and
        `encode_votes`. Names that are whole numbers are integers if all are, and else all are text; what missing
        entries made 12.0 is 12 again.

    Raises
    ------
    ValueError
        If a file is no such export, holds no labels or labels of parts of items, does not say whose they are, or
        answers that `multiple` refuses.

    See Also
    --------
    from_long, encode_votes : Take the table.

    Examples
    --------
    >>> from sklearn_l2d.annotations import from_doccano
    >>> from_doccano(
    ...     {
    ...         "ann": [
    ...             {"id": 1, "text": "meow", "label": ["cat"]},
    ...             {"id": 2, "text": "woof", "label": []},
    ...         ],
    ...         "bob": [
    ...             {"id": 1, "text": "meow", "label": ["dog"]},
    ...             {"id": 2, "text": "woof", "label": ["dog"]},
    ...         ],
    ...     }
    ... )[["task", "annotator", "label"]]
       task annotator label
    0     1       ann   cat
    1     1       bob   dog
    2     2       bob   dog
    """
    _check_rules(multiple)
    answers = _exports.read_answers("doccano", _exports.doccano, _exports.doccano_files(export), annotator, task)
    return _exports.long_table(answers, multiple, "all")


def from_argilla(export, *, question=None, task=None, multiple="error", duplicates="last"):
    """Read the responses in records of Argilla.

    Responses that are drafts or were discarded are left out. Of the exports of Argilla 2, only
    ``dataset.records.to_list(flatten=True)`` says which are; without that, all count as submitted.

    Parameters
    ----------
    export : path, file, list of dict or DataFrame
        Records of Argilla 1 or 2, nested or flat, as JSON or JSONL or loaded.

    question : str, default=None
        Name of the question. None takes the only one.

    task : str, default=None
        Field of the records or of their metadata that names them. None takes their `id`.

    multiple : {"error", "first", "skip"}, default="error"
        What to do with answers of several labels, of which a team can use one: refuse them, take the first label, or
        leave these answers out.

    duplicates : {"error", "first", "last", "all"}, default="last"
        Which answers count where a person answered an item again: the first or the last by time, or all; or
        refuse them.

    Returns
    -------
    table : DataFrame of shape (n_answers, 4)
        Columns task, annotator, label and time (UTC, NaT where unknown), one row per answer, for `from_long` and
        `encode_votes`. Names that are whole numbers are integers if all are, and else all are text; what missing
        entries made 12.0 is 12 again.

    Raises
    ------
    ValueError
        If the file is no such export, holds no responses or several questions, or answers that `multiple` or
        `duplicates` refuses.

    See Also
    --------
    from_long, encode_votes : Take the table.

    Examples
    --------
    >>> from sklearn_l2d.annotations import from_argilla
    >>> record = {
    ...     "id": "a",
    ...     "pet.responses": ["cat", "dog"],
    ...     "pet.responses.users": ["ann", "bob"],
    ...     "pet.responses.status": ["submitted", "discarded"],
    ... }
    >>> from_argilla([record])[["task", "annotator", "label"]]
      task annotator label
    0    a       ann   cat
    """
    _check_rules(multiple, duplicates)
    answers = _exports.read_answers("Argilla", _exports.argilla, _exports.read_json(export), question, task)
    return _exports.long_table(answers, multiple, duplicates)


def to_label_studio(route, data=None, *, question, to_name, model_version="sklearn_l2d"):
    """Turn a route into tasks for Label Studio: the label of the classifier as a prediction, and who is to answer.

    Parameters
    ----------
    route : DataFrame of shape (n_samples, n_columns)
        A route with labels, from ``team.route(X, explain=True)``, whose index names the items: the column `label`
        becomes the prediction, `confidence` its score, and all others (target, expert, reason) fields of the data, by
        which tasks can be filtered for each person. Any other table with a column `label` will do.

    data : DataFrame of shape (n_samples, n_fields), default=None
        What Label Studio shows of the items, such as a column with addresses of pictures; matched by its index.

    question : str
        Name of the control in the labelling interface, ``<Choices name=...>``.

    to_name : str
        Name of the object that it labels, ``toName=...``.

    model_version : str, default="sklearn_l2d"
        By which Label Studio tells predictions apart.

    Returns
    -------
    tasks : list of dict
        To be written by ``json.dump`` and imported. The field `item` of the data holds the name of the item: it is the
        `task` of `from_label_studio`, once the answers are exported.

    Raises
    ------
    ValueError
        If `route` has no column `label`, or `data` holds other items or names columns like those of the route.

    See Also
    --------
    from_label_studio : The way back.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_l2d.annotations import to_label_studio
    >>> route = pd.DataFrame(
    ...     {"expert": ["ann"], "label": ["cat"], "confidence": [0.6]}, index=["a"]
    ... )
    >>> data = pd.DataFrame({"image": ["a.jpg"]}, index=["a"])
    >>> task = to_label_studio(route, data, question="pet", to_name="image")[0]
    >>> task["data"]
    {'item': 'a', 'expert': 'ann', 'image': 'a.jpg'}
    >>> task["predictions"][0]["result"][0]["value"], task["predictions"][0]["score"]
    ({'choices': ['cat']}, 0.6)
    """
    return _exports.label_studio_tasks(route, data, question, to_name, model_version)


def _check_rules(multiple, duplicates="all"):
    for name, given, known in (
        ("multiple", multiple, _exports.MULTIPLE),
        ("duplicates", duplicates, _exports.DUPLICATES),
    ):
        if given not in known:
            raise ValueError(f"{name}={given!r} is none of {', '.join(map(repr, known))}.")
