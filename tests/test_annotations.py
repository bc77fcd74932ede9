import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from _instances import make_crowd
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from sklearn_l2d.annotations import (
    AnnotatedTarget,
    Votes,
    anonymize,
    encode_annotations,
    encode_counts,
    encode_votes,
    from_long,
    to_counts,
    to_long,
)
from sklearn_l2d.cluster import AgreementClustering
from sklearn_l2d.metrics import krippendorff_alpha, pairwise_agreement

NA = pd.NA


@pytest.mark.parametrize(
    "annotations",
    [
        [[0, -1], [1, 0]],
        [[0, None], [1, 0]],
        [[0.0, np.nan], [1.0, 0.0]],
        [[0, NA], [1, 0]],
        np.array([[0, -1], [1, 0]], dtype=np.int8),
        np.array([[0, np.nan], [1, 0]], dtype=np.float32),
        np.array([[0, pd.NaT], [1, 0]], dtype=object),
        np.ma.array([[0, 99], [1, 0]], mask=[[0, 1], [0, 0]]),
        np.ma.array([[0, -1], [1, 0]]),
        pd.DataFrame({0: [0, 1], 1: [None, 0]}),
        pd.DataFrame({0: [0, 1], 1: pd.array([None, 0], dtype="Int64")}),
        pd.DataFrame({0: pd.Categorical([0, 1]), 1: pd.Categorical([None, 0])}),
        pd.DataFrame({0: pd.array([0, 1], dtype="Float64"), 1: [NA, 0]}),
    ],
    ids=lambda a: type(a).__name__,
)
def test_every_missing_marker_gives_the_same_codes(annotations):
    codes, classes, experts = encode_annotations(annotations)
    assert codes.dtype == np.int8
    assert_array_equal(codes, [[0, -1], [1, 0]])
    assert_array_equal(classes, [0, 1])
    assert classes.dtype.kind == "i"
    assert experts.dtype == object
    assert experts.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [object, "string", "str", "category"])
def test_strings_in_frames(dtype):
    frame = pd.DataFrame({"ann": ["cat", None], "bob": ["dog", "cat"]}).astype(dtype)
    codes, classes, experts = encode_annotations(frame)
    assert_array_equal(codes, [[0, 1], [-1, 0]])
    assert classes.tolist() == ["cat", "dog"]
    assert experts.tolist() == ["ann", "bob"]


def test_columns_without_any_annotation_and_empty_tables():
    frame = pd.DataFrame({"ann": [NA, pd.NaT], "bob": [pd.NaT, pd.NaT], "cy": [np.nan, np.nan], "di": [2, 1]})
    assert_array_equal(encode_annotations(frame).codes, [[-1, -1, -1, 1], [-1, -1, -1, 0]])
    for shape in [(0, 3), (3, 0)]:
        codes, classes, experts = encode_annotations(np.empty(shape, dtype=int))
        assert codes.shape == shape
        assert (len(classes), len(experts)) == (0, shape[1])
        assert to_counts(np.empty(shape), classes=[0, 1]).shape == (shape[0], 2)


def test_minus_one_is_a_vote_when_it_is_a_class():
    codes, classes, _ = encode_annotations([[-1, 1], [None, -1]], classes=[-1, 1])
    assert_array_equal(codes, [[0, 1], [-1, 0]])
    assert_array_equal(classes, [-1, 1])


@pytest.mark.parametrize(
    ("annotations", "missing_label", "expected", "classes"),
    [
        ([[0, 9], [-1, 0]], 9, [[1, -1], [0, 1]], [-1, 0]),
        ([["a", "?"], ["b", "a"]], "?", [[0, -1], [1, 0]], ["a", "b"]),
        ([[-1.0, np.nan], [1, -1]], np.nan, [[0, -1], [1, 0]], [-1, 1]),
        (pd.DataFrame({0: [-1, 1], 1: [None, -1]}), NA, [[0, -1], [1, 0]], [-1, 1]),
        (np.ma.array([[-1, 9], [1, 0]], mask=[[0, 0], [0, 1]]), 9, [[0, -1], [1, -1]], [-1, 1]),
    ],
)
def test_missing_label_replaces_the_rule(annotations, missing_label, expected, classes):
    encoded = encode_annotations(annotations, missing_label=missing_label)
    assert_array_equal(encoded.codes, expected)
    assert encoded.classes.tolist() == classes


@pytest.mark.parametrize(
    "annotations",
    [
        [[0, np.nan]],
        [[0, None]],
        np.array([[0, np.nan]]),
        pd.DataFrame({0: [0], 1: pd.array([NA], dtype="Int64")}),
    ],
)
def test_other_markers_are_rejected_next_to_a_missing_label(annotations):
    with pytest.raises(ValueError, match="missing_label=-1"):
        encode_annotations(annotations, missing_label=-1)


@pytest.mark.parametrize(("n_classes", "dtype"), [(128, np.int8), (129, np.int16), (40_000, np.int32)])
def test_smallest_code_type(n_classes, dtype):
    labels = np.arange(n_classes)[::-1, None]
    codes, classes, _ = encode_annotations(labels)
    assert codes.dtype == dtype
    assert_array_equal(classes[codes], labels)
    assert encode_annotations([[0]], classes=np.arange(n_classes)).codes.dtype == dtype


@pytest.mark.parametrize(
    "values",
    [
        np.array([[10**12, 5], [-(10**12), 5]]),
        np.array([[0.5, 1.0], [np.nan, 1e300]]),
        np.array([[True, False], [False, False]]),
        np.array([["b", "a"], ["a", "a"]]),
    ],
    ids=lambda a: a.dtype.name,
)
def test_labels_far_apart_or_of_other_kinds(values):
    codes, classes, _ = encode_annotations(values)
    present = values == values
    assert_array_equal(classes, np.unique(values[present]))
    assert classes.dtype.kind == values.dtype.kind
    assert_array_equal(classes[codes[present]], values[present])
    assert (codes[~present] == -1).all()


def test_tables_longer_than_one_block(monkeypatch):
    monkeypatch.setattr("sklearn_l2d._encoding.BLOCK", 7)
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, 4, size=(50, 3))
    expected = np.array([[(row == label).sum() for label in range(4)] for row in labels])
    assert_array_equal(to_counts(labels), expected)
    assert_array_equal(to_counts(np.ma.masked_equal(labels, -1)), expected)
    assert_array_equal(to_counts(np.where(labels < 0, None, labels.astype(object))), expected)


def test_input_is_not_changed():
    values = np.array([[3.0, np.nan], [-1.0, 2.0]])
    before = values.copy()
    encode_annotations(values)
    to_counts(values)
    assert_array_equal(values, before)


@pytest.mark.parametrize(
    ("annotations", "kwargs", "match"),
    [
        ([0, 1], {}, r"2-D.*shape \(2,\).*\(n_samples, 1\)"),
        (np.zeros((2, 2, 2), dtype=int), {}, "2-D"),
        ([[0, 1], [0]], {}, r"one entry per expert in every row.*shape \(2,\)"),
        (csr_array([[0, 1]]), {}, "sparse"),
        ([[0, "a"]], {}, r"mixes labels of types \['int', 'str'\]"),
        ([[0, {}]], {}, "scalars"),
        (np.array([[1j]]), {}, "complex"),
        ([[0]], {"classes": [1, 0]}, "sorted and unique"),
        ([[0]], {"classes": [0, 0]}, "sorted and unique"),
        ([[0]], {"classes": [[0, 1]]}, "1-D"),
        ([[0]], {"classes": [0, 1], "missing_label": 1}, "one of the classes"),
        ([[0, 1], [0, 7]], {"classes": [0, 1]}, r"expert \[1\] hold labels \[7\].*add them"),
        (np.ma.array([[5, 1], [0, 7]], mask=[[1, 0], [0, 0]]), {"classes": [0, 1]}, r"expert \[1\].*\[7\]"),
        (pd.DataFrame({"ann": ["a"], "bob": ["x"]}), {"classes": ["a", "b"]}, r"expert \['bob'\].*\['x'\]"),
        (pd.DataFrame([[0, 1]], columns=["ann", "ann"]), {}, r"several experts \['ann'\]"),
    ],
)
def test_bad_annotations(annotations, kwargs, match):
    with pytest.raises(ValueError, match=match):
        encode_annotations(annotations, **kwargs)


def test_pandas_is_not_imported_for_arrays():
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from sklearn_l2d.annotations import to_counts, encode_counts, AnnotatedTarget\n"
        "assert to_counts([[0, None], ['1', 1]][:1]).tolist() == [[1]]\n"
        "encode_counts([0, 1]); AnnotatedTarget([0], [[1]])[:1]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_counts_need_little_memory():
    codes = np.random.default_rng(0).integers(-1, 10, size=(200_000, 100), dtype=np.int8)
    tracemalloc.start()
    counts = to_counts(codes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts.sum() == (codes >= 0).sum()
    # A one-hot table would take 10 times the input, even in single bytes.
    assert peak < 3 * (codes.nbytes + counts.nbytes)


def test_anonymize_keeps_index_and_names_classes():
    frame = pd.DataFrame({"ann": ["a", None], "bob": ["b", "b"]}, index=["x", "y"])
    expected = pd.DataFrame({"a": [1, 0], "b": [1, 1]}, index=["x", "y"])
    pd.testing.assert_frame_equal(anonymize(frame), expected)
    assert_array_equal(anonymize(frame.to_numpy(), classes=["a", "b", "c"]), [[1, 1, 0], [0, 1, 0]])


def test_encode_counts_of_counts():
    counts, classes = encode_counts([[2, 0.5], [0, 0]])
    assert counts.dtype == np.float64
    assert_array_equal(counts, [[2, 0.5], [0, 0]])
    assert_array_equal(classes, [0, 1])
    counts, classes = encode_counts([[1, 2]], classes=["a", "b"])
    assert classes.tolist() == ["a", "b"]


@pytest.mark.parametrize("classes", [None, ["a", "b", "c"]])
def test_encode_counts_aligns_the_columns_of_a_frame(classes):
    frame = pd.DataFrame({"c": [1, 0], "a": [2, 0], "b": pd.array([3, 4], dtype="Int64")})
    counts, found = encode_counts(frame, classes=classes)
    assert_array_equal(counts, [[2, 3, 1], [0, 4, 0]])
    assert found.tolist() == ["a", "b", "c"]


def test_encode_counts_of_labels():
    counts, classes = encode_counts(["b", "a", "b"])
    assert_array_equal(counts, [[0, 1], [1, 0], [0, 1]])
    assert classes.tolist() == ["a", "b"]
    for labels in ([3, 1], [3.0, 1.0], pd.Series([3, 1], dtype=object), pd.Series([3, 1], dtype="category")):
        counts, classes = encode_counts(labels)
        assert_array_equal(counts, [[0, 1], [1, 0]])
        assert classes.tolist() == [1, 3]
        assert classes.dtype.kind == "i"
    counts, classes = encode_counts(pd.Series([-1, 1]), classes=[-1, 0, 1])
    assert_array_equal(counts, [[1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("y", "classes", "match"),
    [
        (None, None, "requires y to be passed, but the target y is None"),
        ([[1, -1]], None, "y has negative counts, first in row 0"),
        ([[1, np.nan]], None, "y contains NaN"),
        ([[1, np.inf]], None, "y contains infinity"),
        (pd.DataFrame({0: [1], 1: pd.array([NA], dtype="Int64")}), None, "y contains NaN"),
        ([[1], [2]], None, r"y has shape \(2, 1\).*1-D"),
        ([[0, 0], [0, 0]], None, "y holds no votes"),
        (np.array([[1j, 0]]), None, "y does.*Complex data not supported"),
        (np.array([1j, 0]), None, "Complex data not supported: y"),
        (csr_array([[0, 1]]), None, "y is sparse"),
        ([["a", "b"]], None, "y does not hold vote counts"),
        (np.zeros((2, 2, 2)), None, "y has shape"),
        (3, None, "y has shape"),
        (np.zeros((0, 3)), None, r"y with 0 sample\(s\).*minimum of 1"),
        ([], None, r"y with 0 sample\(s\).*minimum of 1"),
        ([[1, 2]], [0, 1, 2], "y has 2 columns of counts for the 3 classes"),
        (pd.DataFrame({"a": [1], "x": [1]}), ["a", "b"], r"unknown are \['x'\], lacking are \['b'\]"),
        (pd.DataFrame([[1, 1]], columns=["a", "a"]), None, "twice"),
        ([0, 5], [0, 1], r"y holds labels \[5\]"),
        ([1], None, "y holds 1 class only.*n_samples=1"),
        ([0.5, 0.25], None, "Unknown label type: continuous"),
        ([0.0, np.nan], None, "y contains NaN"),
        (["a", None], None, "y holds missing labels"),
        (pd.Series(["a", NA], dtype="string"), None, "y holds missing labels"),
        (np.array(["a", 1], dtype=object), None, "y mixes labels"),
        ([0, 1], [1, 0], "sorted and unique"),
    ],
)
def test_bad_counts(y, classes, match):
    with pytest.raises(ValueError, match=match):
        encode_counts(y, classes=classes)


def polars(frame):
    return pl.DataFrame({name: [None if pd.isna(cell) else cell for cell in frame[name]] for name in frame.columns})


def arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


LONG = pd.DataFrame(
    {
        "task": ["y", "x", "y", "z", "x"],
        "annotator": ["bob", "bob", "ann", "cy", "bob"],
        "label": ["b", "a", None, None, "c"],
    },
    index=[10, 11, 12, 13, 14],
)


def test_from_long_orders_rows_and_columns():
    wide = from_long(LONG.iloc[:4])
    assert wide.index.tolist() == ["y", "x", "z"]
    assert wide.columns.tolist() == ["ann", "bob", "cy"]
    assert wide["bob"].tolist()[:2] == ["b", "a"]
    assert wide.notna().to_numpy().sum() == 2
    renamed = LONG.iloc[:4].set_axis(["item", "who", "says"], axis=1)
    other = from_long(renamed, task="item", annotator="who", label="says")
    assert_array_equal(encode_annotations(other).codes, encode_annotations(wide).codes)


@pytest.mark.parametrize(("labels", "dtype"), [([1, 2], "Int64"), ([True, False], "boolean"), ([0.5, 1.5], "Float64")])
def test_from_long_keeps_the_kind_of_label(labels, dtype):
    wide = from_long(pd.DataFrame({"task": [0, 1], "annotator": [0, 1], "label": labels}))
    assert (wide.dtypes == dtype).all()
    assert [wide.loc[0, 0], wide.loc[1, 1]] == labels


def test_from_long_duplicates():
    with pytest.raises(ValueError, match=r"rows \[11, 14\].*duplicates='first', 'last'"):
        from_long(LONG)
    assert from_long(LONG, duplicates="last").loc["x", "bob"] == "c"
    counts = from_long(LONG, duplicates="count")
    expected = pd.DataFrame([[0, 1, 0], [1, 0, 1], [0, 0, 0]], index=["y", "x", "z"], columns=["a", "b", "c"])
    pd.testing.assert_frame_equal(counts, expected, check_names=False)


def test_from_long_of_nothing():
    wide = from_long(LONG.iloc[:0])
    assert wide.shape == (0, 0)


@pytest.mark.parametrize(
    ("table", "kwargs", "match"),
    [
        (LONG, {"duplicates": "best"}, "duplicates='best'"),
        (LONG, {"task": "item"}, r"lacks the columns \['item'\]"),
        (LONG.assign(task=["x", None, "y", "z", "x"]), {}, r"no task in rows \[11\]"),
        (LONG.assign(annotator=["x", "y", None, "z", "x"]), {}, r"no annotator in rows \[12\]"),
        (LONG.assign(label=["x", "y", 3, "z", "x"]), {"duplicates": "count"}, "mixes labels"),
        (
            LONG.assign(label=[["x"], "y", 3, "z", "x"]),
            {"duplicates": "last"},
            "column 'label' of the table.*no scalars",
        ),
        (LONG.assign(task=[["x"], "y", 3, "z", "x"]), {}, "column 'task' of the table.*no scalars"),
        (LONG.assign(when=[1, "y", 3, "z", "x"]), {"time": "when", "duplicates": "last"}, "when mixes times of types"),
        (LONG.set_axis(["task", "annotator", "label"], axis=1).assign(more=1), {"label": "task"}, "give each its own"),
        (pd.concat([LONG, LONG["label"]], axis=1), {}, r"several columns called \['label'\]"),
        ([["x", "ann", 1]], {}, "table is of type list; pass a DataFrame"),
    ],
)
def test_bad_long_tables(table, kwargs, match):
    for form in ("wide", "votes"):
        if form == "wide" or kwargs.get("duplicates") != "count":
            with pytest.raises(ValueError, match=match):
                from_long(table, form=form, **kwargs)


@pytest.mark.parametrize("kind", [polars, arrow], ids=["polars", "arrow"])
def test_long_tables_of_any_kind_mean_the_same(kind):
    table = LONG.iloc[:4].reset_index(drop=True).assign(when=pd.date_range("2020", periods=4, unit="ns"))
    for arguments in ({}, {"time": "when", "duplicates": "last"}, {"duplicates": "count"}):
        expected = from_long(table, **arguments)
        pd.testing.assert_frame_equal(from_long(kind(table), **arguments), expected, check_column_type=False)
    by_date = {"task": "when"}
    assert from_long(kind(table), form="votes", **by_date).tasks.tolist() == table["when"].tolist()
    pd.testing.assert_frame_equal(
        from_long(kind(table), **by_date), from_long(table, **by_date), check_index_type=False, check_column_type=False
    )


def test_anonymize_names_classes_and_items_of_any_table():
    wide = pd.DataFrame({"ann": ["a", "b"], "bob": ["a", None]}, index=["x", "y"])
    expected = pd.DataFrame({"a": [2, 0], "b": [0, 1]}, index=["x", "y"])
    pd.testing.assert_frame_equal(anonymize(encode_votes(wide)), expected)
    for kind in (polars, arrow):
        plain = wide.reset_index(drop=True)
        pd.testing.assert_frame_equal(anonymize(kind(plain)), anonymize(plain))
    assert_array_equal(anonymize(encode_votes(wide.to_numpy())), expected)


def test_votes_become_a_long_table_with_their_names():
    wide = pd.DataFrame({"ann": ["a", "b"], "bob": ["a", None]}, index=["x", "y"])
    pd.testing.assert_frame_equal(to_long(encode_votes(wide)), to_long(wide), check_dtype=False)
    votes = Votes([0, 999_999], [0, 99_999], [0, 1], 1_000_000, ["a", "b"], np.arange(100_000))
    assert to_long(votes)["task"].tolist() == [0, 999_999]  # without a table of items times annotators


def test_tasks_find_the_rows_that_have_names():
    wide = pd.DataFrame({"ann": ["a", "b"], "bob": ["a", None]}, index=["x", "y"])
    for table in (wide, encode_votes(wide)):
        votes = encode_votes(table, tasks=["z", "y", "x"])
        assert votes.tasks.tolist() == ["z", "y", "x"]
        assert votes.to_counts().tolist() == [[0, 0], [0, 1], [2, 0]]
        with pytest.raises(ValueError, match=r"items \['y'\] that are not in tasks"):
            encode_votes(table, tasks=["x", "z"])
    with pytest.raises(ValueError, match="name an item twice"):
        encode_votes(wide.set_axis(["x", "x"]), tasks=["x", "y"])
    for table in (wide.reset_index(drop=True), wide.to_numpy(), encode_votes(wide.to_numpy())):  # without names
        assert encode_votes(table, tasks=["y", "x"]).to_counts().tolist() == [[2, 0], [0, 1]]
    with pytest.warns(UserWarning, match="ids of tasks in another order"):
        votes = encode_votes(wide.reset_index(drop=True), tasks=[1, 0])
    assert votes.to_counts().tolist() == [[0, 1], [2, 0]]


def test_dates_are_names_of_items():
    days = pd.date_range("2020", periods=3)
    table = pd.DataFrame({"task": days[[0, 2]], "annotator": ["ann", "ann"], "label": ["a", "b"]})
    for unit in ("s", "us", "ns"):
        votes = encode_votes(table, tasks=days[::-1].to_numpy().astype(f"datetime64[{unit}]"))
        assert votes.to_counts().tolist() == [[0, 1], [0, 0], [1, 0]]
        assert votes.tasks.tolist() == days[::-1].tolist()


@pytest.mark.parametrize("collection", [list, tuple, set, frozenset, np.array, pd.Series, pd.Index])
def test_several_markers_come_in_any_collection(collection):
    codes, classes, _ = encode_annotations([["a", "skip"], ["?", "b"]], missing_label=collection(["skip", "?"]))
    assert codes.tolist() == [[0, -1], [-1, 1]]
    assert classes.tolist() == ["a", "b"]


def test_to_long():
    table = to_long([[1, -1], [0, 1]], tasks=["x", "y"], annotators=["ann", "bob"])
    expected = pd.DataFrame({"task": ["x", "y", "y"], "annotator": ["ann", "ann", "bob"], "label": [1, 0, 1]})
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)
    frame = pd.DataFrame([[1, None], [0, 1]], index=["x", "y"], columns=["ann", "bob"])
    pd.testing.assert_frame_equal(to_long(frame), table)
    assert to_long([[-1, 9]], missing_label=9)["label"].tolist() == [-1]
    with pytest.raises(ValueError, match="tasks has 1 names"):
        to_long([[0], [1]], tasks=["x"])
    with pytest.raises(ValueError, match="annotators has 2 names"):
        to_long([[0], [1]], annotators=["x", "y"])


def test_minus_one_in_a_long_table_is_missing_and_told_once():
    table = pd.DataFrame({"task": [1, 1, 2, 3], "annotator": list("abab"), "label": [-1, 0, 1, -1]})
    for arguments in ({"duplicates": "count"}, {"form": "votes"}):
        with pytest.warns(UserWarning, match=r"2 labels are -1.*missing_label=numpy\.nan") as told:
            found = from_long(table, **arguments)
        assert len(told) == 1
        counts = found if arguments == {"duplicates": "count"} else found.to_counts()
        assert_array_equal(counts, [[1, 0], [0, 1], [0, 0]])
    with pytest.warns(UserWarning, match="2 labels are -1"):
        encode_votes(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_long(table, duplicates="count", missing_label=np.nan)[-1].tolist() == [1, 0, 1]
        assert from_long(table, form="votes", missing_label=np.nan).classes.tolist() == [-1, 0, 1]
        assert from_long(table, missing_label=-1).isna().sum(axis=None) == 4
        assert encode_annotations(from_long(table)).classes.tolist() == [0, 1]
        assert encode_votes(table, classes=[0, 1]).to_counts().tolist() == [[1, 0], [0, 1], [0, 0]]


def test_votes_with_other_labels_keep_items_and_people():
    votes = encode_votes(pd.DataFrame({"ann": ["a", None], "bob": ["b", "a"]}, index=["x", "y"]))
    other = votes.with_labels([2, 0, 1], np.array(["c", "d", "e"], dtype=object))
    assert other.to_wide().fillna("").loc["x"].to_dict() == {"ann": "e", "bob": "c"}
    assert other.to_wide().fillna("").loc["y"].to_dict() == {"ann": "", "bob": "d"}
    assert votes.to_wide().loc["x", "ann"] == "a"
    for wrong, message in (([0, 1], "2 entries for 3 answers"), ([0, 1, 2], "outside of 0 to 1")):
        with pytest.raises(ValueError, match=message):
            votes.with_labels(wrong)


def test_a_long_table_is_read_as_one_wherever_a_table_is():
    """Labels, tasks and annotators that are all whole numbers could be taken for three people."""
    wide = pd.DataFrame(make_crowd(40).annotations, index=np.arange(40) + 100, columns=[7, 8, 9, 10, 11])
    table = to_long(wide).sample(frac=1, random_state=0)
    for long in (table, polars(table)):
        order = long["task"].unique().tolist() if hasattr(long, "iloc") else encode_votes(long).tasks.tolist()
        expected = wide.loc[order]
        assert_array_equal(encode_annotations(long).codes, encode_annotations(expected).codes)
        assert_array_equal(to_counts(long), to_counts(expected))
        pd.testing.assert_frame_equal(anonymize(long), anonymize(expected), check_index_type=False)
        assert sorted(map(tuple, to_long(long).to_numpy())) == sorted(map(tuple, table.to_numpy()))
        assert krippendorff_alpha(long) == pytest.approx(krippendorff_alpha(wide))
        assert_array_equal(pairwise_agreement(long), pairwise_agreement(wide))
        clustering = AgreementClustering().fit(long)
        assert clustering.experts_.tolist() == wide.columns.tolist()
        assert_array_equal(clustering.labels_, AgreementClustering().fit(wide).labels_)


def test_a_target_carries_a_long_table_as_votes():
    wide = pd.DataFrame(make_crowd(40).annotations, index=[f"item {i}" for i in range(40)])
    y = pd.Series(np.arange(40), index=wide.index[::-1])
    target = AnnotatedTarget(y, to_long(wide).sample(frac=1, random_state=0))
    assert_array_equal(target.annotations.to_codes(), wide.iloc[::-1])
    assert_array_equal(target[[3, 1]].annotations.to_codes(), wide.iloc[::-1].iloc[[3, 1]])


@pytest.mark.parametrize("kind", [int, float, str, object, "datetime64[ns]", "category"])
def test_items_of_a_long_table_are_in_the_order_of_their_first_appearance(kind):
    table = pd.DataFrame({"task": [5, 3, 9, 3, 5], "annotator": list("aabbc"), "label": [0, 1, 1, 0, 1]})
    table["task"] = table["task"].astype(kind)
    votes = encode_votes(table)
    assert votes.tasks.tolist() == table["task"].astype(object).tolist()[:3]
    assert votes.tasks.tolist() == from_long(table).index.tolist()
    assert votes.to_counts().tolist() == [[1, 1], [1, 1], [0, 1]]
    assert_array_equal(votes.to_codes(), encode_annotations(from_long(table)).codes)
