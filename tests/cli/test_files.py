"""The commands ``python -m sklearn_l2d route`` and ``decide``, and the functions behind them, on small files."""

import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from _instances import fit, make_crowd, of_kind
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d import __main__ as command
from sklearn_l2d import save
from sklearn_l2d._cli import _files
from sklearn_l2d._cli._files import decide_file, route_file
from sklearn_l2d.annotations import AnnotatedTarget, encode_votes
from sklearn_l2d.deferral import ClusterDeferral, ConfidenceDeferral

pytest.importorskip("pyarrow", reason="pyarrow is in the extra named parquet")

FEATURES = [f"f{j}" for j in range(4)]
EXPERTS = ["Ann", "Bob", "Eve", "Kim", "Zoe"]
N = 250


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(120, labels=("cat", "dog", "eel"))


def gate(**parameters):
    fast = {"cv": 2, "coverage": 0.3, "hidden_layer_sizes": (4,), "max_epochs": 3, "random_state": 0}
    return ClusterDeferral(classifier=LogisticRegression(), n_groups=2, **fast | parameters)


@pytest.fixture(scope="module")
def team(crowd):
    """Groups of experts, who know their features by name."""
    X, answers = pd.DataFrame(crowd.X, columns=FEATURES), pd.DataFrame(crowd.annotations, columns=EXPERTS)
    return gate().fit(X, crowd.y, annotations=answers)


@pytest.fixture(scope="module")
def nameless(crowd):
    """The same, fitted to arrays."""
    return gate().fit(crowd.X, crowd.y, annotations=crowd.annotations)


@pytest.fixture(scope="module")
def frame():
    X = pd.DataFrame(make_crowd(N, random_state=1).X, columns=FEATURES)
    return X.set_index(pd.Index([f"item{i:03}" for i in range(N)], name="id"))


@pytest.fixture
def items(frame, in_empty_folder):
    """A file of items whose columns have another order than in the fit, and one more."""
    table = frame.reset_index().assign(note="new")
    table[["note", "f3", "id", "f0", "f1", "f2"]].to_parquet("items.parquet", row_group_size=90)
    return "items.parquet"


def chunks(frame, size):
    return [frame[start : start + size] for start in range(0, len(frame), size)]


def by_hand(team, frame, size, **options):
    """Routes of the batches, one below the other."""
    return pd.concat([team.route(chunk, **options) for chunk in chunks(frame, size)])


def check_route(file, route):
    written = pd.read_parquet(file)
    assert written.columns[:3].tolist() == ["id", "target", "expert"]
    assert_array_equal(written["id"], route.index)
    for name in ("target", "expert"):
        assert pd.api.types.is_string_dtype(written[name])
        assert_array_equal(written[name], route[name].astype(str))
    return written


@pytest.mark.parametrize("size", [7, 100, 10_000])
def test_each_batch_is_routed_as_by_hand(team, frame, items, size):
    route = by_hand(team, frame, size)
    assert route["expert"].nunique() > 3  # else little is tested
    summary = route_file(team, items, "routes.parquet", batch_size=size)
    check_route("routes.parquet", route)
    experts = route["expert"].value_counts()
    assert summary.workload == {name: experts.get(name, 0) for name in EXPERTS}
    assert summary.n_items == N
    assert summary.n_deferred == (route["target"] != "classifier").sum()
    assert summary.n_unserved == 0


@pytest.mark.parametrize("instance", of_kind("deferrer"), ids=str)
def test_targets_do_not_depend_on_the_batch_size(instance, frame, items):
    train = make_crowd()
    deferrer = fit(instance, clone(instance.estimator), train)
    for size in (1, 64, N):
        route_file(deferrer, items, f"{size}.parquet", features=FEATURES, batch_size=size)
    expected = by_hand(deferrer, frame.to_numpy(), N)
    check_route(f"{N}.parquet", expected.set_index(frame.index))
    for size in (1, 64):
        assert_array_equal(pd.read_parquet(f"{size}.parquet")["target"], expected["target"].astype(str))


def test_same_file_and_batch_size_same_result(team, items):
    for out in ("first.parquet", "second.parquet"):
        route_file(team, items, out, batch_size=60)
    pd.testing.assert_frame_equal(pd.read_parquet("first.parquet"), pd.read_parquet("second.parquet"))


def test_routes_do_not_depend_on_the_batch_size_and_are_shared_by_the_weights(team, frame, items):
    expected = team.route(frame)
    for size in (1, 25, 100):
        route_file(team, items, "routes.parquet", batch_size=size)
        check_route("routes.parquet", expected)
    for selection, target in zip(team.selection_, team.targets_, strict=True):
        experts = expected["expert"][expected["target"] == target]
        counts = [(experts == name).sum() for name in EXPERTS]
        chance = 3 * np.sqrt(len(experts) * selection * (1 - selection))
        assert (np.abs(counts - len(experts) * selection) <= chance).all()


@pytest.mark.parametrize("index", ["id", "task", "picture", None])
def test_names_of_items_are_kept(team, frame, index):
    frame.rename_axis(index).to_parquet("items.parquet")  # pandas stores the index as a column, and what it is called
    route_file(team, "items.parquet", "routes.parquet", batch_size=100)
    check_route("routes.parquet", by_hand(team, frame, 100))


@pytest.mark.parametrize(
    "names",
    [range(7, 7 + N), pd.date_range("2026-01-01", periods=N), ["a"] * N, pd.Categorical(list("ab") * (N // 2))],
    ids=["numbers", "dates", "repeated", "categories"],
)
def test_names_of_every_type_are_kept(team, frame, names):
    # pyarrow ends batches with categories where a row group ends
    frame.assign(when=names).to_parquet("items.parquet", index=False, row_group_size=120)
    route_file(team, "items.parquet", "routes.parquet", id_column="when", batch_size=60)
    check_route("routes.parquet", by_hand(team, frame, 60).set_index(pd.Index(names)))


def test_rows_without_names_are_numbered_over_the_whole_file(nameless, frame):
    frame.to_parquet("items.parquet", index=False)
    route_file(nameless, "items.parquet", "routes.parquet", batch_size=40)
    check_route("routes.parquet", by_hand(nameless, frame.to_numpy(), 40).reset_index(drop=True))


def test_a_feature_is_no_name_of_items(crowd, frame):
    columns = ["id", "task", "f2", "f3"]
    team = ConfidenceDeferral(LogisticRegression(), coverage=0.5, random_state=0)
    team.fit(pd.DataFrame(crowd.X, columns=columns), crowd.y, annotations=crowd.annotations)
    X = frame.reset_index(drop=True).set_axis(columns, axis=1)
    X.to_parquet("items.parquet")
    route_file(team, "items.parquet", "routes.parquet")
    check_route("routes.parquet", team.route(X))


def test_capacity_holds_over_the_whole_file(team, items):
    with pytest.warns(UserWarning, match="found nobody available within capacity") as caught:
        summary = route_file(team, items, "routes.parquet", capacity=11, batch_size=20)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    routes = pd.read_parquet("routes.parquet")
    served = routes["expert"].value_counts().drop("classifier")
    assert served.max() == 11
    assert summary.workload == {name: served.get(name, 0) for name in EXPERTS}
    unserved = (routes["target"] != "classifier") & (routes["expert"] == "classifier")
    assert summary.n_unserved == unserved.sum() > 0
    for target, selection in zip(team.targets_, team.selection_, strict=True):
        mine = routes["target"] == target
        if (mine & unserved).any():  # only once all members are at their limit
            assert {served[name] for name, weight in zip(EXPERTS, selection, strict=True) if weight > 0} == {11}
    assert f"{unserved.sum()} of {(routes['target'] != 'classifier').sum()} deferred" in str(caught[0].message)


def test_a_warning_that_is_an_error_writes_nothing(team, items):
    with pytest.raises(UserWarning, match="found nobody"):  # warnings are errors in all tests
        route_file(team, items, "routes.parquet", capacity=1)
    assert os.listdir() == [items]


def test_first_rows_come_first(team, frame, items):
    first = team.route(frame[:100], capacity=30)
    with pytest.warns(UserWarning, match="found nobody"):
        route_file(team, items, "routes.parquet", capacity=30, batch_size=100)
    assert_array_equal(pd.read_parquet("routes.parquet")["expert"][:100], first["expert"])


@pytest.mark.filterwarnings("ignore:.*found nobody")
def test_only_who_is_available(team, frame, items):
    route_file(team, items, "routes.parquet", available=["Zoe", "Bob", "Ann"], batch_size=100)
    check_route("routes.parquet", by_hand(team, frame, 100, available=np.array([True, True, False, False, True])))
    route_file(team, items, "routes.parquet", available=[])
    assert set(pd.read_parquet("routes.parquet")["expert"]) == {"classifier"}


def test_no_batch_is_larger_than_asked_for(team, frame, monkeypatch):
    frame.to_parquet("items.parquet", row_group_size=N)
    seen = []
    route = ClusterDeferral.route
    monkeypatch.setattr(
        ClusterDeferral, "route", lambda self, X, *args, **more: seen.append(len(X)) or route(self, X, *args, **more)
    )

    class Reader:
        """A Parquet file that gives nothing but batches, and counts their rows."""

        def __init__(self, file):
            self.schema_arrow, self.metadata, self._file = file.schema_arrow, file.metadata, file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._file.close()

        def iter_batches(self, size, columns):
            assert "id" in columns
            for batch in self._file.iter_batches(size, columns=columns):
                seen.append(batch.num_rows)
                yield batch

    open_parquet = _files.open_parquet
    monkeypatch.setattr(_files, "open_parquet", lambda path: Reader(open_parquet(path)))
    route_file(team, "items.parquet", "routes.parquet", batch_size=30)
    assert max(seen) == 30
    assert sum(seen) == 2 * N
    pd.DataFrame({"task": [], "annotator": [], "label": []}, dtype=object).to_csv("answers.csv", index=False)
    seen.clear()
    with pytest.warns(UserWarning, match="answered by nobody"):
        decide_file(team, "items.parquet", "answers.csv", "labels.parquet", batch_size=30)
    assert max(seen) == 30
    assert sum(seen) == 3 * N  # the names are read before


def test_pipelines_and_searches(crowd, frame, items):
    X = pd.DataFrame(crowd.X, columns=FEATURES)
    scaler = StandardScaler().fit(X)
    inner = gate().fit(scaler.transform(X), crowd.y, annotations=crowd.annotations)
    search = GridSearchCV(make_pipeline(StandardScaler(), gate()), {"clusterdeferral__n_groups": [2]}, cv=2)
    search.fit(X, AnnotatedTarget(crowd.y, crowd.annotations))
    for team, deferrer in (
        (make_pipeline(FrozenEstimator(scaler), inner), inner),
        (search, search.best_estimator_[-1]),
    ):
        joblib.dump(team, "team.joblib")
        assert command.main(["route", "team.joblib", items, "--out", "routes.parquet", "--quiet"]) == 0
        check_route("routes.parquet", deferrer.route(scaler.transform(frame)).set_index(frame.index))


def test_a_team_in_a_file_of_save(crowd, frame, items, capsys):
    pytest.importorskip("skops")
    X, answers = pd.DataFrame(crowd.X, columns=FEATURES), pd.DataFrame(crowd.annotations, columns=EXPERTS)
    pipeline = make_pipeline(StandardScaler(), ConfidenceDeferral(LogisticRegression(), cv=2, random_state=0))
    pipeline.fit(X, crowd.y, confidencedeferral__annotations=answers)
    save(pipeline, "team.skops")
    assert command.main(["route", "team.skops", items, "--out", "routes.parquet", "--quiet"]) == 0
    route_file(pipeline, items, "expected.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet("routes.parquet"), pd.read_parquet("expected.parquet"))


@pytest.mark.parametrize("labels", [(0.0, 1.0, 2.0), (0, 1, 2)])
def test_numbers_in_a_file_of_text_are_numbers(labels, frame, items):
    crowd = make_crowd(120)
    labels = np.array(labels)
    answers = pd.DataFrame(np.append(labels, np.nan)[crowd.annotations], columns=[1, 2, 3, 4, 5.5])
    X = pd.DataFrame(crowd.X, columns=FEATURES)
    team = ConfidenceDeferral(LogisticRegression(), cv=2, random_state=0).fit(X, labels[crowd.y], annotations=answers)
    table = pd.DataFrame({"task": frame.index[:3], "annotator": [1.0, 2.0, 5.5], "label": labels.astype(float)})
    table.to_csv("answers.csv", index=False)
    decide_file(team, items, "answers.csv", "labels.parquet", decision="combine")
    votes = encode_votes(table.astype({"annotator": object}), classes=team.classes_, tasks=frame.index)
    expected = team.predict_team(frame, votes, decision="combine")
    assert_array_equal(pd.read_parquet("labels.parquet")["label"], expected)


def test_files_without_rows(team, frame):
    frame[:0].to_parquet("items.parquet")
    pd.DataFrame({"task": ["x"], "annotator": ["Ann"], "label": ["cat"]})[:0].to_parquet("answers.parquet")
    assert len(encode_votes("answers.parquet")) == 0
    assert route_file(team, "items.parquet", "routes.parquet") == (0, 0, 0, dict.fromkeys(EXPERTS, 0))
    decide_file(team, "items.parquet", "answers.parquet", "labels.parquet")
    assert pd.read_parquet("labels.parquet").columns.tolist() == ["id", "target", "expert", "label"]


@pytest.fixture
def answers(team, frame):
    """A long table: the experts of the route answer nine items in ten, and others answer at random."""
    rng = np.random.default_rng(3)
    told = np.where(rng.random((N, len(EXPERTS))) < 0.4, rng.choice(team.classes_, (N, len(EXPERTS))), None)
    route = by_hand(team, frame, 60)["expert"]
    asked = np.flatnonzero((route != "classifier").to_numpy() & (rng.random(N) < 0.9))
    told[asked, [EXPERTS.index(name) for name in route.iloc[asked]]] = "eel"
    wide = pd.DataFrame(told, index=frame.index.rename("task"), columns=EXPERTS)
    long = wide.rename_axis(columns="annotator").stack().rename("label").reset_index()
    return long.sample(frac=1, random_state=0)


@pytest.mark.filterwarnings("ignore:.*answered by nobody")
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("decision", ["draw", "vote"])
def test_decide_is_predict_team_on_the_joined_table(team, frame, items, answers, decision, form):
    getattr(answers, f"to_{form}")(f"answers.{form}", index=False)
    summary = decide_file(team, items, f"answers.{form}", "labels.parquet", decision=decision, batch_size=60)
    wide = answers.pivot(index="task", columns="annotator", values="label").reindex(frame.index)
    labels = [team.predict_team(X, wide.loc[X.index], decision) for X in chunks(frame, 60)]
    written = pd.read_parquet("labels.parquet")
    assert_array_equal(written["id"], frame.index)
    assert_array_equal(written["label"], np.concatenate(labels))
    assert_array_equal(written["target"], by_hand(team, frame, 60)["target"])
    assert summary.n_unserved == ((written["target"] != "classifier") & (written["expert"] == "classifier")).sum() > 0
    classifier = team.predict(frame)
    n_votes = 0
    for row, (item, target, experts, label) in enumerate(written.itertuples(index=False)):
        if experts == "classifier":
            assert label == classifier[row]
            continue
        members = [n for n, w in zip(EXPERTS, team.selection_[list(team.targets_).index(target)], strict=True) if w > 0]
        voters = [name for name in members if pd.notna(wide.loc[item, name])]
        if decision == "vote":
            assert experts.split(", ") == voters
        else:  # somebody else, if no member answered
            assert experts in (voters or [name for name in EXPERTS if pd.notna(wide.loc[item, name])])
        assert label in wide.loc[item, experts.split(", ")].tolist()
        n_votes += len(experts.split(", "))
    assert sum(summary.workload.values()) == n_votes


def test_words_for_missing_are_labels_where_they_are_classes(frame, items):
    crowd = make_crowd(120, labels=("NA", "None", "yes"))
    X, told = pd.DataFrame(crowd.X, columns=FEATURES), pd.DataFrame(crowd.annotations, columns=EXPERTS)
    team = ConfidenceDeferral(LogisticRegression(), coverage=0.3, random_state=0).fit(X, crowd.y, told)
    label = np.random.default_rng(0).choice(["NA", "None", "yes", "null", ""], size=(N, len(EXPERTS)))
    wide = pd.DataFrame(label, index=frame.index.rename("task"), columns=EXPERTS)
    long = wide.rename_axis(columns="annotator").stack().rename("label").reset_index()
    long.to_csv("answers.csv", index=False)
    n_null = int((label == "null").sum())  # which is no class, but a word like others; only empty cells are missing
    with pytest.warns(UserWarning, match=rf"answers.csv: {n_null} of \d+ answers are labels \['null'\].*left out"):
        decide_file(team, items, "answers.csv", "labels.parquet", decision="combine")
    known = wide.where(wide.isin(["NA", "None", "yes"]), None)
    written = pd.read_parquet("labels.parquet")
    assert_array_equal(written["label"], team.predict_team(frame, known, decision="combine"))
    assert_allclose(written["confidence"], team.predict_team_proba(frame, known).max(1), rtol=1e-6)


def test_decide_by_everybody_says_how_sure_it_is(team, frame, items, answers):
    answers.to_csv("answers.csv", index=False)
    summary = decide_file(team, items, "answers.csv", "labels.parquet", decision="combine", batch_size=60)
    wide = answers.pivot(index="task", columns="annotator", values="label").reindex(frame.index)
    proba = team.predict_team_proba(frame, wide)
    written = pd.read_parquet("labels.parquet")
    assert written.columns.tolist() == ["id", "target", "expert", "label", "confidence"]
    assert_array_equal(written["label"], team.classes_[proba.argmax(1)])
    assert_allclose(written["confidence"], proba.max(1), rtol=1e-6)
    answered = wide.notna().any(axis=1).to_numpy()
    assert 0 < answered.mean() < 1
    assert_array_equal(written["target"], np.where(answered, "everybody", "classifier"))
    first = int(answered.argmax())
    assert written["expert"][first].split(", ") == wide.columns[wide.iloc[first].notna()].tolist()
    assert summary.workload == wide.notna().sum().reindex(EXPERTS).to_dict()
    assert summary.n_deferred == answered.sum()
    assert summary.n_unserved == 0


@pytest.mark.filterwarnings("ignore:.*answered by nobody")
def test_numbers_and_text_name_the_same_things(crowd):
    """Experts 0, 1, ... and classes -1, 0, 1, of whom a CSV file knows the text only; -1 is a class here."""
    codes = np.searchsorted(["cat", "dog", "eel"], crowd.y) - 1
    told = make_crowd(120, labels=(0, 1, 2)).annotations - 1.0
    told[told == -2] = np.nan
    team = ConfidenceDeferral(LogisticRegression(), coverage=0.2, unlabeled_label=np.nan, random_state=0)
    team.fit(crowd.X, codes, annotations=told)
    item, expert = np.nonzero(~np.isnan(told))
    long = pd.DataFrame({"task": item, "annotator": expert, "label": told[item, expert].astype(int)})
    blank = pd.DataFrame({"task": [0], "annotator": [int(np.flatnonzero(np.isnan(told).any(0))[0])], "label": [np.nan]})
    long.to_csv("answers.csv", index=False)
    pd.concat([long, blank]).to_parquet("answers.parquet", index=False)  # the labels are floats now
    pd.DataFrame(crowd.X, columns=FEATURES).to_parquet("items.parquet")
    expected = team.predict_team(crowd.X, told)
    assert -1 in expected
    for answers in ("answers.csv", "answers.parquet"):
        decide_file(team, "items.parquet", answers, "labels.parquet")
        labels = pd.read_parquet("labels.parquet")["label"]
        assert labels.dtype == np.int64
        assert_array_equal(labels, expected)


@pytest.mark.filterwarnings("ignore:.*answered by nobody")
@pytest.mark.parametrize(("missing_label", "marker"), [(None, -1), ("none", "none"), (9, 9)])
def test_marked_answers_are_missing(crowd, missing_label, marker):
    kinds = ("cat", "dog", "eel") if isinstance(missing_label, str) else (0, 1, 2)
    train = make_crowd(60, labels=kinds)
    told = pd.DataFrame(train.annotations).astype(object)
    told = told.where(told.notna() & (told != -1), marker)
    team = ConfidenceDeferral(LogisticRegression(), coverage=0.2, missing_label=missing_label, random_state=0)
    team.fit(train.X, train.y, annotations=told)
    told.rename_axis("task").reset_index().melt("task", var_name="annotator", value_name="label").to_csv("answers.csv")
    pd.DataFrame(train.X, columns=FEATURES).to_parquet("items.parquet")
    decide_file(team, "items.parquet", "answers.csv", "labels.parquet")
    assert_array_equal(pd.read_parquet("labels.parquet")["label"], team.predict_team(train.X, told))


def test_team_without_experts(crowd, frame, items):
    team = ConfidenceDeferral(LogisticRegression(), random_state=0).fit(crowd.X, crowd.y)
    pd.DataFrame({"task": [], "annotator": [], "label": []}).to_csv("answers.csv", index=False)
    for decision in ("draw", "vote"):
        decide_file(team, items, "answers.csv", "labels.parquet", features=FEATURES, decision=decision)
        assert_array_equal(pd.read_parquet("labels.parquet")["label"], team.predict(frame.to_numpy()))
    assert route_file(team, items, "routes.parquet", features=FEATURES, capacity=3).n_deferred == 0


ROUTE = ["route", "team.joblib", "items.parquet", "--out", "out.parquet"]
DECIDE = ["decide", "team.joblib", "items.parquet", "--answers", "answers.csv", "--out", "out.parquet"]


@pytest.fixture
def folder(team, nameless, items, answers):
    """The files of a user, and some that cannot be used."""
    joblib.dump(team, "team.joblib")
    joblib.dump(nameless, "nameless.joblib")
    joblib.dump(gate(), "unfitted.joblib")
    joblib.dump(ClusterDeferral, "class.joblib")
    joblib.dump(LogisticRegression().fit([[0], [1]], [0, 1]), "classifier.joblib")
    with open("text.joblib", "w") as file:
        file.write("a team")
    table = pd.read_parquet(items)
    table.drop(columns=["f1", "f3"]).to_parquet("lacking.parquet")
    table.assign(f1=np.where(np.arange(N) == N - 1, np.nan, 0.0)).to_parquet("nan.parquet")
    table.assign(f2="much").to_parquet("words.parquet")
    pd.concat([table, table[:1]]).to_parquet("twice.parquet")
    answers.to_csv("answers.csv", index=False)
    answers.to_parquet("answers.parquet")
    answers.replace("Ann", "Tom").to_csv("tom.csv", index=False)
    answers.assign(label="cow").to_csv("cow.csv", index=False)
    answers.replace("item000", "item999").to_csv("item999.csv", index=False)
    pd.concat([answers, answers.dropna()[:1]]).to_csv("repeated.csv", index=False)
    answers.drop(columns="label").to_csv("unlabelled.csv", index=False)
    answers.drop(columns="task").to_parquet("untasked.parquet")


def swap(arguments, **changes):
    return [changes.get(argument.split(".")[0], argument) for argument in arguments]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (swap(ROUTE, team="nowhere.joblib"), "nowhere.joblib"),
        (swap(ROUTE, team="text.joblib"), "text.joblib: cannot be loaded as a team"),
        (swap(ROUTE, team="classifier.joblib"), "classifier.joblib: the team is no deferrer but of type Logistic"),
        (swap(ROUTE, team="class.joblib"), "class.joblib: the team is no deferrer"),
        (swap(ROUTE, team="unfitted.joblib"), "unfitted.joblib: the team, of type ClusterDeferral, is not fitted"),
        (swap(ROUTE, items="nowhere.parquet"), "nowhere.parquet"),
        (swap(ROUTE, items="answers.csv"), "answers.csv: Parquet magic bytes not found"),
        (swap(ROUTE, items="lacking.parquet"), "lacking.parquet: lacks the columns ['f1', 'f3'] of features"),
        (swap(ROUTE, items="words.parquet"), "words.parquet, rows 0 to 249: could not convert string to float: 'much'"),
        (swap(ROUTE, out="no/such/folder.parquet"), "cannot write no/such/folder.parquet"),
        (swap(ROUTE, out="."), "it is a folder"),
        (swap(ROUTE, out="items.parquet"), "cannot write items.parquet: it is read at the same time"),
        ([*ROUTE, "--id", "name"], "items.parquet: has no column 'name'"),
        ([*ROUTE, "--available", "Ann, Tom"], "available names unknown experts ['Tom']"),
        ([*ROUTE, "--features", "f0,f1"], "the team knows its features by name"),
        (swap(ROUTE, team="nameless.joblib"), "fitted to 4 features without names, but these are 5: ['note', 'f3'"),
        ([*swap(ROUTE, team="nameless.joblib"), "--features", "f0,f1"], "but these are 2: ['f0', 'f1']"),
        ([*swap(ROUTE, team="nameless.joblib"), "--features", "f0,f9"], "lacks the columns ['f9']"),
        (swap(DECIDE, answers="nowhere.csv"), "nowhere.csv"),
        (swap(DECIDE, answers="tom.csv"), "tom.csv: holds answers of unknown experts ['Tom']; they are ['Ann', 'Bob'"),
        (swap(DECIDE, answers="cow.csv"), "cow.csv: holds labels ['cow'] that are not among the classes ['cat',"),
        (swap(DECIDE, answers="item999.csv"), "item999.csv: holds answers to 1 items that items.parquet lacks: ['item"),
        (swap(DECIDE, answers="repeated.csv"), "repeated.csv: repeats a pair of task and annotator, first in line "),
        (
            swap(DECIDE, answers="unlabelled.csv"),
            "unlabelled.csv: has no column 'label'; its columns are ['task',",
        ),
        (swap(DECIDE, answers="untasked.parquet"), "untasked.parquet lacks the columns ['task']"),
        (swap(DECIDE, items="twice.parquet"), "twice.parquet has two of this name"),
        (swap(DECIDE, out="answers.csv"), "cannot write answers.csv: it is read at the same time"),
    ],
)
def test_what_cannot_be_used_costs_one_line(folder, arguments, message, capsys):
    before = sorted(os.listdir())
    assert command.main([*arguments, "--quiet"]) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert output.err.startswith(f"python -m sklearn_l2d {arguments[0]}: error: ")
    assert output.err.count("\n") == 1
    assert output.out == ""
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("there", [False, True])
def test_nothing_is_half_written(folder, there, capsys):
    if there:
        with open("out.parquet", "w") as file:
            file.write("an earlier result")
    before = sorted(os.listdir())
    assert command.main([*swap(ROUTE, items="nan.parquet"), "--batch-size", "100", "--quiet"]) == 2
    assert "nan.parquet, rows 200 to 249: Input X contains NaN" in capsys.readouterr().err
    assert sorted(os.listdir()) == before
    if there:
        with open("out.parquet") as file:
            assert file.read() == "an earlier result"
        assert command.main([*ROUTE, "--quiet"]) == 0
        assert len(pd.read_parquet("out.parquet")) == N
        assert sorted(os.listdir()) == before


def test_an_interrupted_command_leaves_nothing(team, items, monkeypatch):
    calls = []

    def route(self, X, *_, **explain):
        calls.append(sorted(os.listdir()))
        if len(calls) > 2:
            raise KeyboardInterrupt
        return original(self, X, **explain)

    original = ClusterDeferral.route
    monkeypatch.setattr(ClusterDeferral, "route", route)
    before = sorted(os.listdir())
    with pytest.raises(KeyboardInterrupt):
        route_file(team, items, "out.parquet", batch_size=50)
    assert any(name.endswith(".part") for name in calls[-1])
    assert "out.parquet" not in calls[-1]
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    "arguments", [ROUTE[:3], DECIDE[:3], [*ROUTE, "--capacity", "-1"], [*ROUTE, "--batch-size", "0"], ["rout"]]
)
def test_bad_options_are_refused_by_the_parser(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments)
    assert stopped.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_bad_arguments_of_the_functions(team, items):
    with pytest.raises(ValueError, match="batch_size=0"):
        route_file(team, items, "out.parquet", batch_size=0)
    with pytest.raises(ValueError, match="decision='toss' is none of 'draw', 'vote', 'combine'"):
        decide_file(team, items, "answers.csv", "out.parquet", decision="toss")
    with pytest.raises(ValueError, match="whole number"):
        route_file(team, items, "out.parquet", capacity=-1)
    assert os.listdir() == [items]


@pytest.mark.parametrize("arguments", [ROUTE, DECIDE])
def test_without_pyarrow(folder, arguments, monkeypatch, capsys):
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    assert command.main(arguments) == 2
    assert "pip install 'sklearn-l2d[parquet]'" in capsys.readouterr().err


def test_summary(folder, capsys):
    assert command.main([*ROUTE, "--quiet", "--capacity", "5"]) == 0
    story, errors = capsys.readouterr()
    routes = pd.read_parquet("out.parquet")
    n = int((routes["expert"] != "classifier").sum())
    assert f"{N} items: the classifier decides {N - n} ({1 - n / N:.1%}), experts {n}." in story
    assert "Items per expert: " in story
    assert "Note: " in story
    assert "found nobody available within capacity" in story
    assert errors == ""


def test_many_experts_are_not_all_listed(folder, monkeypatch, capsys):
    monkeypatch.setattr("sklearn_l2d._cli._file_commands._MANY", 2)
    assert command.main([*DECIDE, "--quiet", "--decision", "vote"]) == 0
    assert ", and 3 more." in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [ROUTE, DECIDE])
def test_runs_as_a_module(folder, arguments):
    with open("team.joblib", "wb") as file:
        pickle.dump(joblib.load("nameless.joblib"), file)  # any pickle will do
    arguments = [*arguments, "--features", ",".join(FEATURES)]
    if arguments[0] == "decide":
        table = pd.read_csv("answers.csv")
        table.assign(annotator=table["annotator"].map(EXPERTS.index)).to_csv("answers.csv", index=False)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "sklearn_l2d", *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"{N}/{N}" in done.stderr  # the progress bar
    assert "Written to out.parquet." in done.stdout


def test_help_names_the_commands(capsys):
    text = command.build_parser().format_help()
    for name in ("route", "decide"):
        assert f"python -m sklearn_l2d {name} TEAM ITEMS" in text
        with pytest.raises(SystemExit):
            command.main([name, "--help"])
        assert "loading it runs code" in capsys.readouterr().out
