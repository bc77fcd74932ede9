"""Votes against the wide tables that they stand for, and every estimator and metric on both."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from _instances import INSTANCES, fit, make_crowd, outputs
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_array, issparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from strategies import annotation_codes

from sklearn_l2d._numerics import _matrices
from sklearn_l2d.annotations import (
    AnnotatedTarget,
    Votes,
    encode_annotations,
    encode_votes,
    from_long,
    to_counts,
    to_long,
)
from sklearn_l2d.deferral import ConfidenceDeferral
from sklearn_l2d.metrics import deferral_report, team_accuracy, workload_distribution

CLASSES = np.array(["cat", "dog", "eel"])

tables = annotation_codes().map(lambda drawn: drawn[0])


def wide_of(votes):
    """Table of codes, cell by cell."""
    table = np.full(votes.shape, -1)
    for item, annotator, label in zip(votes.item, votes.annotator, votes.label, strict=True):
        assert table[item, annotator] == -1
        table[item, annotator] = label
    return table


@given(tables)
def test_round_trips(codes):
    votes = encode_votes(codes, classes=np.arange(5))
    assert votes.shape == codes.shape
    assert len(votes) == len(codes)
    assert_array_equal(wide_of(votes), codes)
    assert_array_equal(votes.to_codes(), codes)
    assert (np.lexsort((votes.annotator, votes.item)) == np.arange(len(votes.item))).all()
    assert_array_equal(votes.to_counts(), to_counts(codes, classes=votes.classes))
    wide = votes.to_wide()
    assert_array_equal(encode_annotations(wide, classes=votes.classes).codes, codes)
    assert_array_equal(encode_votes(votes.to_sparse(), classes=votes.classes).to_codes(), codes)
    long = votes.to_long()
    assert len(long) == (codes >= 0).sum()
    again = encode_votes(long, classes=votes.classes, tasks=np.arange(len(codes)))
    assert_array_equal(again.to_counts(), votes.to_counts())
    if (codes >= 0).any(0).all():
        assert_array_equal(again.to_codes(), codes)


@given(tables, st.data())
def test_selecting_items_and_annotators_is_selecting_rows_and_columns(codes, data):
    votes, (n, m) = encode_votes(codes, classes=np.arange(5)), codes.shape
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=8)) if n else [], dtype=int)
    columns = np.array(data.draw(st.permutations(range(m)))[: data.draw(st.integers(0, m))], dtype=int)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=bool)
    for key in (rows, mask, slice(1, None, 2), slice(None)):
        assert_array_equal(wide_of(votes[key]), codes[key])
        assert_array_equal(wide_of(votes[key, columns]), codes[key][:, columns])
    assert_array_equal(wide_of(votes.take(rows)), codes[rows])
    assert_array_equal(wide_of(votes.take(columns, axis=1)), codes[:, columns])


def long_table():
    return pd.DataFrame(
        {"task": ["x", "y", "x", "z", "y"], "annotator": ["bob", "ann", "ann", "bob", "cid"],
         "label": ["dog", "cat", "dog", None, "eel"]}
    )  # fmt: skip


def test_long_tables_of_every_kind_are_one():
    table = long_table()
    expected = encode_votes(from_long(table))
    forms = [
        table,
        pl.DataFrame(table.astype(object).where(table.notna(), None).to_dict("list")),
        table.astype({"annotator": "category"}),
    ]
    for form in forms:
        votes = encode_votes(form)
        assert votes.tasks.tolist() == ["x", "y", "z"]
        assert votes.annotators.tolist() == ["ann", "bob", "cid"]
        assert votes.classes.tolist() == ["cat", "dog", "eel"]
        assert_array_equal(votes.to_codes(), expected.to_codes())
    assert_array_equal(from_long(table, form="votes").to_codes(), expected.to_codes())
    pd.testing.assert_frame_equal(
        expected.to_long().astype(object), to_long(from_long(table)).astype(object), check_dtype=False
    )


def test_arrow_and_files_are_read_in_batches(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"task": np.arange(60).repeat(3), "annotator": np.tile(np.arange(9), 20), "label": "a"})
    table["label"] = CLASSES[rng.integers(3, size=180)]
    table.sample(frac=1, random_state=0).to_parquet(tmp_path / "votes.parquet")
    whole = encode_votes(tmp_path / "votes.parquet", tasks=range(60))
    monkeypatch.setattr("sklearn_l2d._long_tables._BATCH", 7)
    parts = encode_votes(tmp_path / "votes.parquet", tasks=range(60))
    assert_array_equal(parts.to_codes(), whole.to_codes())
    assert_array_equal(encode_votes(pa.table(table), tasks=range(60)).to_codes(), whole.to_codes())
    assert_array_equal(whole.to_codes(), encode_votes(from_long(table)).to_codes())


def test_tasks_put_the_items_in_order_and_count_those_without_answers():
    votes = encode_votes(long_table(), tasks=["w", "z", "y", "x"])
    assert_array_equal(votes.to_counts(), [[0, 0, 0], [0, 0, 0], [1, 0, 1], [0, 2, 0]])
    with pytest.raises(ValueError, match=r"tasks \['x'\] that are not in tasks"):
        encode_votes(long_table(), tasks=["y", "z"])


def test_repeated_answers():
    table = pd.concat([long_table(), pd.DataFrame({"task": ["x"], "annotator": ["bob"], "label": ["cat"]})])
    table.index = range(10, 16)
    with pytest.raises(ValueError, match=r"repeats a pair of task and annotator in rows \[10, 15\]"):
        encode_votes(table)
    assert encode_votes(table, duplicates="last").to_counts()[0].tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match="duplicates='count' is unknown"):
        encode_votes(table, duplicates="count")
    with pytest.raises(ValueError, match="annotator 'b' answers item 1 more than once"):
        Votes([0, 1, 1], [0, 1, 1], [0, 0, 1], 2, [0, 1], ["a", "b"])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([0], [0], [0], 1, [1, 0], ["a"]), "classes must be sorted"),
        (([0], [0], [0], 1, [0, 1], ["a", "a"]), "annotators holds a name twice"),
        (([0, 1], [0], [0], 2, [0, 1], ["a"]), "unlike lengths"),
        (([2], [0], [0], 2, [0, 1], ["a"]), "item runs from 2 to 2, outside of 0 to 1"),
        (([0], [-1], [0], 2, [0, 1], ["a"]), "annotator runs from -1"),
        (([0], [0], [0.5], 2, [0, 1], ["a"]), "label has shape"),
        (([0], [0], [0], 2, [0, 1], ["a"], ["t"]), "1 names for n_items=2"),
    ],
)
def test_bad_votes(arguments, match):
    with pytest.raises(ValueError, match=match):
        Votes(*arguments)


@pytest.mark.parametrize(
    ("given", "kwargs", "match"),
    [
        (long_table().drop(columns="label"), {}, r"lacks the columns \['label'\]"),
        (long_table().assign(task=[None, *"abcd"]), {}, r"no task in rows \[0\]"),
        (long_table(), {"classes": ["cat", "dog"]}, r"labels \['eel'\] that are not in classes"),
        (coo_array(([-1], ([0], [0])), shape=(2, 2)), {}, "some are negative"),
        (coo_array(([1.5], ([0], [0])), shape=(2, 2)), {}, "some are no integers"),
        (coo_array(([3], ([0], [0])), shape=(2, 2)), {"classes": [0, 1]}, "holds 3, but there are 2 classes"),
    ],
)
def test_what_holds_no_votes(given, kwargs, match):
    with pytest.raises(ValueError, match=match):
        encode_votes(given, **kwargs)


def test_smallest_types_and_few_bytes():
    rng = np.random.default_rng(0)
    item = np.arange(20_000).repeat(2)
    votes = Votes(item, np.tile([0, 1], 20_000), rng.integers(3, size=40_000), 20_000, CLASSES, range(100_000))
    assert (votes.item.dtype, votes.label.dtype) == (np.int16, np.int8)
    assert len(pickle.dumps(votes[:, :2])) < 40_000 * 5


def test_copies_hash_and_travel_alike():
    codes = make_crowd().annotations
    votes = encode_votes(codes)
    for again in (copy.deepcopy(votes), pickle.loads(pickle.dumps(votes)), encode_votes(codes.copy())):
        assert joblib.hash(again) == joblib.hash(votes)
        assert_array_equal(again.to_codes(), codes)
    changed = codes.copy()
    changed[0, 0] = (codes[0, 0] + 2) % 3
    assert joblib.hash(encode_votes(changed)) != joblib.hash(votes)


def test_votes_pass_through_searches():
    crowd = make_crowd()
    team = ConfidenceDeferral(LogisticRegression(), cv=2, random_state=0)
    votes = encode_votes(crowd.annotations)
    wide = cross_val_score(team, crowd.X, AnnotatedTarget(crowd.y, crowd.annotations), cv=3)
    assert_array_equal(cross_val_score(team, crowd.X, AnnotatedTarget(crowd.y, votes), cv=3), wide)
    search = GridSearchCV(team, {"consultation_cost": [0.0, 0.2]}, cv=2, n_jobs=2, error_score="raise")
    scores = [
        clone(search).fit(crowd.X, AnnotatedTarget(crowd.y, given)).cv_results_["mean_test_score"]
        for given in (votes, crowd.annotations)
    ]
    assert_array_equal(*scores)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("instance", [i for i in INSTANCES if i.kind not in ("clusterer", "classifier")], ids=str)
def test_every_estimator_takes_votes_for_a_table(instance):
    crowd = make_crowd()
    sparse = copy.copy(crowd)
    sparse.update(annotations=encode_votes(crowd.annotations))
    expected = outputs(instance, fit(instance, clone(instance.estimator), crowd), crowd)
    got = outputs(instance, fit(instance, clone(instance.estimator), sparse), sparse)
    for name in expected:
        assert_array_equal(got[name], expected[name], err_msg=name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("instance", [i for i in INSTANCES if i.kind in ("deferrer", "encoder")], ids=str)
def test_large_teams_are_those_of_small_ones(instance, monkeypatch):
    """Whatever is made densely for small data gives the same in the form that large data take."""
    crowd = make_crowd()

    def answers():
        fitted = fit(instance, clone(instance.estimator), crowd)
        got = outputs(instance, fitted, crowd)
        if instance.kind == "deferrer":
            got |= {d: fitted.predict_team(crowd.X, crowd.annotations, decision=d) for d in ("draw", "vote")}
            shut = copy.copy(fitted).offboard(fitted.experts_[0])
            got |= {"deferral without the first": shut.predict_deferral(crowd.X), "workload": shut.workload_}
            if hasattr(shut, "onboard"):
                shut.onboard(["new", shut.experts_[0]], crowd.X, crowd.annotations[:, :2], crowd.y)
                got["deferral with newcomers"] = shut.predict_deferral(crowd.X)
        return fitted, got

    _, expected = answers()
    for limit in ("LARGEST_DENSE", "LARGEST_FAST"):
        monkeypatch.setattr(_matrices, limit, 0)
    monkeypatch.setattr(_matrices, "_BLOCK", 64)
    fitted, got = answers()
    for name in expected:
        if expected[name].dtype.kind == "f":
            assert_allclose(got[name], expected[name], rtol=1e-5, atol=1e-6, err_msg=name)
        else:
            assert_array_equal(got[name], expected[name], err_msg=name)
    if instance.kind == "deferrer" and len(fitted.targets_) == fitted.n_experts_:
        assert issparse(fitted.omega_)
        assert issparse(fitted.selection_)


def test_votes_are_matched_by_name():
    crowd = make_crowd()
    names = np.array(list("vwxyz"))
    frame = pd.DataFrame(crowd.annotations, columns=names)
    team = ConfidenceDeferral(LogisticRegression(), cv=2, random_state=0).fit(crowd.X, crowd.y, annotations=frame)
    votes = encode_votes(frame)
    expected = team.score(crowd.X, crowd.y, annotations=frame)
    assert team.score(crowd.X, crowd.y, annotations=votes[:, list("zyxwv")]) == expected
    some = frame[["y", "w"]]
    for decision in ("draw", "vote"):
        assert_array_equal(
            team.predict_team(crowd.X, votes[:, ["y", "w"]], decision=decision),
            team.predict_team(crowd.X, some, decision=decision),
        )
    with pytest.raises(ValueError, match=r"unknown experts \['q'\]"):
        team.score(crowd.X, crowd.y, annotations=encode_votes(frame.rename(columns={"v": "q"})))


@given(tables, st.integers(0, 2**32 - 1))
def test_metrics_take_votes_for_a_table(codes, seed):
    rng, (n, m) = np.random.default_rng(seed), codes.shape
    y, labels, deferral = rng.integers(5, size=n), rng.integers(5, size=n), rng.integers(-1, 2, size=n)
    selection, votes = rng.dirichlet(np.ones(m), size=2), encode_votes(codes, classes=np.arange(5))
    assert team_accuracy(y, deferral, labels, votes, selection) == team_accuracy(y, deferral, labels, codes, selection)
    assert_array_equal(
        workload_distribution(deferral, selection, votes), workload_distribution(deferral, selection, codes)
    )
    sparse = csr_array(selection)
    assert team_accuracy(y, deferral, labels, votes, sparse) == team_accuracy(y, deferral, labels, codes, selection)
    assert_allclose(workload_distribution(deferral, sparse), workload_distribution(deferral, selection), atol=1e-15)
    with pytest.raises(ValueError, match="non-negative"):
        team_accuracy(y, deferral, labels, votes, -sparse)
    given = ((votes, selection), (votes, sparse), (codes, selection))
    first, *others = (deferral_report(y, deferral, labels, answers, weights) for answers, weights in given)
    for table in ("targets", "experts"):
        for column in first[table]:
            for other in others:
                assert_array_equal(first[table][column], other[table][column])


def test_a_large_wide_table_tells_its_size_first(monkeypatch):
    monkeypatch.setattr("sklearn_l2d.annotations._MANY_CELLS", 8)
    with pytest.warns(UserWarning, match="3 tasks and 3 annotators has 9 cells for 4 labels; form='votes'"):
        from_long(long_table())
    with pytest.raises(ValueError, match="form='tall' is unknown"):
        from_long(long_table(), form="tall")
    with pytest.raises(ValueError, match="lacks the columns"):
        from_long(long_table().rename(columns={"label": "said", "task": "item"}), form="votes")
