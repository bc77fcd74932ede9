"""Names of any type, several markers at once, and tables of other libraries, wherever tables are taken."""

import uuid

import numpy as np
import pandas as pd
import polars as pl
import pytest
from _instances import make_crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.annotations import AnnotatedTarget, encode_annotations, encode_counts, encode_votes, from_long, to_long
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.crowd import NetClassifier
from sklearn_l2d.deferral import BestExpert, ConfidenceDeferral, RandomExpertDeferral

IDS = [uuid.UUID(int=i) for i in (5, 3, 9, 1, 2)]
PAIRS = [("site", i) for i in (5, 3, 9, 1, 2)]
NAMES = {"uuid": IDS, "tuple": PAIRS, "mixed": [7, "ann", 1.5, "7", ("x", 1)]}
each_kind_of_name = pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)


@pytest.fixture(scope="module")
def crowd():
    return make_crowd()


def table(crowd, names, index=None):
    return pd.DataFrame(crowd.annotations, index=index, columns=pd.Index(names, dtype=object, tupleize_cols=False))


def team(crowd, annotations, **params):
    params = {"cv": 2, "coverage": 0.5, "random_state": 0} | params
    return ConfidenceDeferral(LogisticRegression(), **params).fit(crowd.X, crowd.y, annotations=annotations)


@each_kind_of_name
@pytest.mark.filterwarnings("ignore:.*found nobody")
def test_experts_may_have_names_of_any_type(crowd, names):
    plain, named = team(crowd, crowd.annotations), team(crowd, table(crowd, names))
    assert named.experts_.tolist() == names
    expected = plain.predict_team(crowd.X, crowd.annotations)
    assert_array_equal(named.predict_team(crowd.X, table(crowd, names).iloc[:, ::-1]), expected)
    who = plain.assign_experts(crowd.X, capacity=[2, 9, 9, 9, 9])
    assert_array_equal(named.assign_experts(crowd.X, capacity={names[0]: 2} | dict.fromkeys(names[1:], 9)), who)
    assert [one for one in named.route(crowd.X, capacity={names[0]: 2})["expert"].unique() if one in names]
    assert named.start_shift().served_.index.tolist() == names
    assert named.offboard(names[1]).experts_.tolist() == [names[0], *names[2:]]
    assert named.offboard([names[0], names[2]]).n_experts_ == 2
    newcomer = uuid.UUID(int=77)
    assert named.onboard(newcomer, crowd.X, crowd.annotations[:, [0]], crowd.y).experts_[-1] == newcomer


@each_kind_of_name
def test_annotators_and_tasks_may_have_names_of_any_type(names):
    people = [names[0], names[1], names[0], names[4]]
    tasks = [names[2], names[2], names[3], names[3]]
    long = pd.DataFrame({"task": tasks, "annotator": people, "label": ["a", "b", "b", "a"]})
    votes, wide = encode_votes(long), from_long(long)
    expected = {(names[2], names[0]): "a", (names[2], names[1]): "b", (names[3], names[0]): "b"}
    for row, task in enumerate(wide.index):
        for column, name in enumerate(wide.columns):
            want = expected.get((task, name), "a" if (task, name) == (names[3], names[4]) else None)
            assert wide.iloc[row, column] == want or (want is None and pd.isna(wide.iloc[row, column]))
    assert votes.annotators.tolist() == wide.columns.tolist()
    assert votes.tasks.tolist() == wide.index.tolist() == [names[2], names[3]]
    assert_array_equal(votes.to_counts(), [[1, 1], [1, 1]])
    back = encode_votes(to_long(wide))
    assert back.annotators.tolist() == votes.annotators.tolist()
    assert_array_equal(back.to_codes(), votes.to_codes())


def test_names_of_several_types_have_one_order():
    long = pd.DataFrame({"task": 0, "annotator": ["b", 2, "a", 10, 1.5], "label": 0})
    assert encode_votes(long).annotators.tolist() == [1.5, 2, 10, "a", "b"]


def test_levels_of_columns_and_rows_are_tuples(crowd):
    items = pd.MultiIndex.from_tuples([("batch", i) for i in range(60)])
    levels = pd.DataFrame(crowd.annotations, columns=pd.MultiIndex.from_tuples(PAIRS), index=items)
    X, order = pd.DataFrame(crowd.X, index=items), np.random.default_rng(0).permutation(60)
    named = team(crowd, levels)
    assert named.experts_.tolist() == PAIRS
    expected = named.predict_team(crowd.X, levels)
    fitted = ConfidenceDeferral(LogisticRegression(), cv=2, coverage=0.5, random_state=0)
    fitted.fit(X.add_prefix("x"), pd.Series(crowd.y, items).iloc[order], annotations=levels.iloc[order])
    assert_array_equal(fitted.predict_team(X.add_prefix("x"), levels.iloc[order, ::-1]), expected)
    votes = encode_votes(to_long(levels), tasks=list(items))
    assert_array_equal(fitted.predict_team(X.iloc[order].add_prefix("x"), votes), expected[order])
    bounds = pd.Series([(0.0, 0.2)] * 5, index=pd.MultiIndex.from_tuples(PAIRS[::-1]))
    assert (team(crowd, levels, workload=bounds).workload_ <= 0.2 + 1e-9).all()


@pytest.mark.parametrize("collection", [list, tuple, set])
def test_several_markers_of_a_missing_annotation(crowd, collection):
    markers = collection(["skip", "?", None])
    labels = np.array(["a", "b", "c"], dtype=object)
    marked = labels[crowd.annotations]
    marked[crowd.annotations < 0] = np.resize(["skip", "?", None, np.nan], (crowd.annotations < 0).sum())
    expected = np.where(crowd.annotations < 0, -1, crowd.annotations)
    encoded = encode_annotations(marked, missing_label=markers)
    assert_array_equal(encoded.codes, expected)
    assert encoded.classes.tolist() == ["a", "b", "c"]
    fitted = BestExpert(LogisticRegression(), missing_label=markers, random_state=0)
    fitted.fit(crowd.X, labels[crowd.y], annotations=marked)
    plain = BestExpert(LogisticRegression(), random_state=0).fit(crowd.X, crowd.y, annotations=crowd.annotations)
    assert fitted.classes_.tolist() == ["a", "b", "c"]
    assert_array_equal(fitted._roster.seen, plain._roster.seen)
    long = pd.DataFrame({"task": [0, 0, 1], "annotator": ["x", "y", "x"], "label": ["a", "skip", "?"]})
    assert from_long(long, missing_label=markers).notna().sum(axis=None) == 1
    assert encode_votes(long, missing_label=markers).to_counts().tolist() == [[1], [0]]
    assert from_long(long, missing_label=markers, duplicates="count").to_numpy().tolist() == [[1], [0]]
    with pytest.raises(ValueError, match="one of the classes"):
        encode_annotations([["a", "skip"]], classes=["a", "skip"], missing_label=markers)


def test_a_marker_in_a_list_replaces_the_rule_for_missing_annotations():
    assert encode_annotations([[0, -1], [9, 1]], missing_label=[9]).classes.tolist() == [-1, 0, 1]
    with pytest.raises(ValueError, match="hold NaN, None or NA although"):
        encode_annotations([[0, None]], missing_label=[9])


def test_several_markers_of_an_unknown_truth(crowd):
    y = np.array(["a", "b", "c"], dtype=object)[crowd.y]
    y[:3], y[3] = "unsure", "later"
    fitted = BestExpert(LogisticRegression(), unlabeled_label=["unsure", "later"])
    fitted.fit(crowd.X, y, annotations=np.array(["a", "b", "c", None], dtype=object)[crowd.annotations])
    assert fitted.classes_.tolist() == ["a", "b", "c"]


REPEATED = pd.DataFrame(
    {
        "task": ["x", "x", "x", "y", "x"],
        "annotator": ["ann", "ann", "bob", "bob", "ann"],
        "label": ["p", "q", "q", "p", "r"],
        "at": pd.to_datetime(["2024-03-01", "2024-01-01", "2024-01-05", "2024-01-02", "2024-02-01"]),
    }
)


@pytest.mark.parametrize(
    ("duplicates", "time", "kept"),
    [("first", None, "p"), ("last", None, "r"), ("first", "at", "q"), ("last", "at", "p")],
)
@pytest.mark.parametrize("as_text", [False, True])
def test_which_of_several_answers_counts(duplicates, time, kept, as_text, tmp_path):
    long = REPEATED.assign(at=REPEATED["at"].astype(str)) if as_text else REPEATED
    arguments = {"duplicates": duplicates, "time": time}
    wide = from_long(long, **arguments)
    assert wide.loc["x"].tolist() == [kept, "q"]
    assert wide["bob"].tolist() == ["q", "p"]
    path = tmp_path / "answers.parquet"
    long.to_parquet(path)
    for given in (long, pl.from_pandas(long), path):
        votes = encode_votes(given, **arguments)
        assert votes.to_wide().loc["x"].tolist() == [kept, "q"]
        assert votes.to_counts().sum() == 3


def test_times_must_be_known():
    hole = REPEATED.assign(at=REPEATED["at"].where(REPEATED.index != 1))
    for make in (from_long, encode_votes):
        with pytest.raises(ValueError, match=r"no at in rows \[1\]; fill it in"):
            make(hole, duplicates="first", time="at")
        with pytest.raises(ValueError, match=r"lacks the columns \['when'\]"):
            make(REPEATED, duplicates="first", time="when")


def test_votes_are_counted_without_annotators():
    long = REPEATED.drop(columns="annotator")
    expected = [[1, 2, 1], [1, 0, 0]]  # x: p, q, q, r; y: p
    assert from_long(long, duplicates="count").to_numpy().tolist() == expected
    some = REPEATED.assign(annotator=["ann", None, "bob", np.nan, "ann"])
    with pytest.warns(UserWarning, match="2 of 5 labels do not say who gave them"):
        assert from_long(some, duplicates="count").to_numpy().tolist() == expected
    for duplicates in ("error", "first"):
        with pytest.raises(ValueError, match=r"no annotator in rows \[1, 3\].*duplicates='count'"):
            from_long(some, duplicates=duplicates)
    with pytest.raises(ValueError, match="lacks the columns"):
        from_long(long, duplicates="first")


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 2 brings it")
def test_text_of_numpy(crowd):
    text, labels = np.dtypes.StringDType(), np.array(["a", "b", "c", ""])
    y, annotations = labels[crowd.y].astype(text), labels[crowd.annotations].astype(text)
    fitted = BestExpert(LogisticRegression(), missing_label="").fit(crowd.X, y, annotations=annotations)
    assert fitted.classes_.tolist() == ["a", "b", "c"]
    assert set(fitted.predict_team(crowd.X, annotations)) <= {"a", "b", "c"}
    assert 0 < fitted.score(crowd.X, y, annotations=annotations) <= 1
    assert NetClassifier(max_epochs=1).fit(crowd.X, y).classes_.tolist() == ["a", "b", "c"]
    assert encode_annotations([["a", "b"]], classes=np.array(["a", "b"], dtype=text)).codes.tolist() == [[0, 1]]
    holes = np.array(["a", None, "b"], dtype=np.dtypes.StringDType(na_object=None))
    assert AnnotatedTarget(holes, [[0], [1], [1]]).tolist() == ["a", None, "b"]


def test_counts_in_sparse_columns():
    counts = pd.DataFrame({"b": [0, 2], "a": [1, 0]}).astype(pd.SparseDtype("int64", 0))
    found, classes = encode_counts(counts)
    assert_array_equal(found, [[1, 0], [0, 2]])
    assert classes.tolist() == ["a", "b"]


def test_columns_of_polars_and_arrow_are_names(crowd):
    named = table(crowd, list("abcde"))
    expected = team(crowd, named)
    for annotations in (pl.from_pandas(named), pl.from_pandas(named).to_arrow()):
        fitted = team(crowd, annotations)
        assert fitted.experts_.tolist() == list("abcde")
        swapped = annotations.select(list("edcba"))
        assert_array_equal(fitted.predict_team(crowd.X, swapped), expected.predict_team(crowd.X, named))
        away = pl.DataFrame({"e": [False] * 60, "a": [False] * 60})
        assert not np.isin([0, 4], fitted.assign_experts(crowd.X, available=away)).any()
        target = AnnotatedTarget(crowd.y, annotations)
        assert target.annotations.columns.tolist() == list("abcde")


COST = pd.DataFrame([[0.0, 5.0, 1.0], [1.0, 0.0, 1.0], [1.0, 3.0, 0.0]], index=[0, 1, 2], columns=[0, 1, 2])


def test_costs_and_weights_of_classes_are_matched_by_name(crowd):
    def decisions(**params):
        fitted = RandomExpertDeferral(
            classifier=LogisticRegression(), cv=2, hidden_layer_sizes=(4,), max_epochs=2, random_state=0, **params
        )
        fitted.fit(crowd.X, crowd.y, annotations=crowd.annotations)
        return fitted.decision_function(crowd.X), fitted.predict_team(crowd.X, crowd.annotations, decision="combine")

    for order in ([0, 1, 2], [2, 0, 1]):
        for got, expected in zip(
            decisions(error_cost=COST.loc[order, order[::-1]]), decisions(error_cost=COST), strict=True
        ):
            assert_array_equal(got, expected)
    weights = {0: 1.0, 1: 4.0, 2: 2.0}
    for got, expected in zip(decisions(class_weight=pd.Series(weights)), decisions(class_weight=weights), strict=True):
        assert_array_equal(got, expected)
    strange = COST.rename(index={2: 7}, columns={2: 7})
    with pytest.raises(ValueError, match=r"error_cost names rows \[0, 1, 7\].*classes are \[0, 1, 2\]"):
        decisions(error_cost=strange)
    net = NetClassifier(max_epochs=2, random_state=0, class_weight=weights).fit(crowd.X, crowd.y)
    same = NetClassifier(max_epochs=2, random_state=0, class_weight=pd.Series(weights)).fit(crowd.X, crowd.y)
    assert_array_equal(net.predict_proba(crowd.X), same.predict_proba(crowd.X))


def test_a_label_that_no_vote_of_the_archive_holds_costs_no_membership(crowd):
    lda = AnnotatorLDA(hidden_layer_sizes=(4,), n_consensus_epochs=2, n_anchor_epochs=1, max_epochs=3, random_state=0)
    lda.fit(crowd.X, crowd.counts)
    rare = crowd.annotations.copy()
    rare[[3, 8], 0] = 7
    with pytest.warns(UserWarning, match=r"2 of \d+ answers, by \[0\].*\[7\]: they are left out"):
        membership = lda.transform(crowd.X, rare)
    assert_allclose(membership, lda.transform(crowd.X, np.where(rare == 7, -1, rare)))
