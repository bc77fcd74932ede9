"""What large data rely on: memory maps, streams, and searches in other processes and on a cluster."""

import json
import os
import pickle
import subprocess
import sys
import tracemalloc
from itertools import pairwise
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_matrix, csc_array, csr_array
from scipy.stats import entropy, spearmanr
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from sklearn_l2d import _validation
from sklearn_l2d._encoding import sparse_counts
from sklearn_l2d._numerics import _matrices
from sklearn_l2d._torch import _net
from sklearn_l2d._torch._batches import AnswerTable, RowTable, on_device
from sklearn_l2d.annotations import AnnotatedTarget, Votes, encode_votes, split_target
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import (
    ClusterDeferral,
    ComplementDeferral,
    ConfidenceDeferral,
    ProbabilisticDeferral,
    SemiSupervisedDeferral,
    _behaviours,
)

FAST = {"hidden_layer_sizes": (4,), "max_epochs": 2, "n_anchor_epochs": 1, "n_consensus_epochs": 1, "random_state": 0}


@pytest.fixture(scope="module")
def crowd():
    return load_digits_crowd(n_identified=40, n_anonymous=300, random_state=0)


@pytest.fixture
def mapped(crowd, tmp_path):
    """The anonymous items in a file, opened without the right to write."""
    np.save(tmp_path / "items.npy", crowd.X_anonymous.astype(np.float32))
    return np.load(tmp_path / "items.npy", mmap_mode="r")


def test_memory_map_gives_the_result_of_the_array(crowd, mapped):
    in_memory, lda = (AnnotatorLDA(**FAST).fit(X, crowd.counts) for X in (np.array(mapped), mapped))
    for X in (mapped, np.array(mapped)):
        assert_array_equal(lda.predict_annotation_proba(X), in_memory.predict_annotation_proba(X))
    assert lda.score(mapped, crowd.counts) == in_memory.score(mapped, crowd.counts)
    assert [epoch["loss"] for epoch in lda.history_] == [epoch["loss"] for epoch in in_memory.history_]


GROWTH = """
import json, sys
import numpy as np
from sklearn_l2d.cluster import AnnotatorLDA

def kib(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))

def growth(method, *args):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak so far is forgotten
    before = kib("VmRSS") - kib("RssFile")
    method(*args)
    # pages of the file count as resident, but the system takes them back whenever it needs them
    return 1024 * (kib("VmHWM") - kib("RssFile") - before)

X = np.load(sys.argv[1], mmap_mode="r")
counts = np.random.default_rng(0).integers(0, 3, (len(X), 3)).astype(float)
settings = dict(n_consensus_epochs=1, n_anchor_epochs=1, max_epochs=1, hidden_layer_sizes=(2,), batch_size=2048)
lda = AnnotatorLDA(**settings, random_state=0).fit(np.array(X[:20]), counts[:20])
print(json.dumps({
    "score": growth(lda.score, X, counts),
    "predict_annotation_proba": growth(lda.predict_annotation_proba, X),
    "partial_fit": growth(lda.partial_fit, X, counts),
    "fit": growth(lda.fit, X, counts),
}))
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="reads the peak of the memory from /proc")
def test_memory_map_is_never_copied_as_a_whole(tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "items.npy", "w+", np.float32, (65536, 1000))  # zeros take no disk
    command = [sys.executable, "-W", "ignore", "-c", GROWTH, str(tmp_path / "items.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown = json.loads(done.stdout)
    assert {method: size for method, size in grown.items() if size > X.nbytes / 4} == {}, grown


def test_sparse_counts_of_several_blocks(monkeypatch):
    counts = np.random.default_rng(0).integers(0, 3, (20, 4)) * np.random.default_rng(1).integers(0, 2, (20, 1))
    monkeypatch.setattr("sklearn_l2d._encoding._COUNT_ROWS", 7)
    labels, votes = sparse_counts(counts)
    for row in range(20):
        voted = np.flatnonzero(counts[row])
        assert labels[row, : len(voted)].tolist() == voted.tolist()
        assert votes[row, : len(voted)].tolist() == counts[row, voted].tolist()
        assert not votes[row, len(voted) :].any()


@pytest.mark.parametrize("block", [1, 100, 1 << 20])
def test_copy_to_a_device_by_blocks(mapped, block, monkeypatch):
    monkeypatch.setattr("sklearn_l2d._torch._batches._BLOCK", block)
    assert_array_equal(on_device(mapped, "cpu").numpy(), mapped)


def stream(lda, chunks, n_passes=1, classes=None):
    for _ in range(n_passes):
        for X, counts in chunks:
            lda.partial_fit(X, counts, classes=classes)
    return lda


def test_a_table_of_answers_is_made_for_some_rows():
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 3, size=(20, 4))
    votes = encode_votes(codes, classes=range(3))
    worth = rng.random(len(votes.item)).astype(np.float32)
    before, after = rng.random((20, 2)), np.arange(20)[:, None]
    table = AnswerTable(votes, worth, np.nan, before, after)
    whole = np.full((20, 4), np.nan, dtype=np.float32)
    whole[codes >= 0] = worth
    whole = np.hstack([before.astype(np.float32), whole, after.astype(np.float32)])
    assert table.shape == whole.shape
    assert table.nbytes == whole.nbytes
    for rows in (slice(3, 9), np.array([5, 0, 5]), slice(None)):
        assert_array_equal(table[rows], whole[rows])
        assert table[rows].dtype == np.float32
    assert_array_equal(on_device(table, "cpu").numpy(), whole)


def test_a_table_is_made_by_rows_when_it_is_asked_for():
    whole, asked = np.arange(60.0).reshape(20, 3), []

    def make(rows):
        asked.append(rows)
        return whole[rows]

    table = RowTable(make, whole.shape)
    some = table[4:16]
    few = some[np.array([7, 0])]
    assert not asked
    assert (table.shape, some.shape, few.shape) == ((20, 3), (12, 3), (2, 3))
    assert some.nbytes == whole[4:16].nbytes
    assert_array_equal(np.asarray(table), whole)
    assert_array_equal(np.asarray(few), whole[[11, 4]])
    assert_array_equal(on_device(some[2:], "cpu").numpy(), whole[6:16])


def test_stream_from_parquet_is_the_stream_from_memory(crowd, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    features = [f"f{j}" for j in range(crowd.X_anonymous.shape[1])]
    X, counts = crowd.X_anonymous.astype(np.float32), crowd.counts
    table = pd.DataFrame(X, columns=features).join(pd.DataFrame(counts, columns=[str(k) for k in range(10)]))
    table.to_parquet(tmp_path / "items.parquet", row_group_size=120)
    with parquet.ParquetFile(tmp_path / "items.parquet", pre_buffer=False) as file:
        frames = [batch.to_pandas() for batch in file.iter_batches(100)]
    assert len(frames) >= 3
    from_file = stream(AnnotatorLDA(**FAST), [(f[features], f[[str(k) for k in range(10)]]) for f in frames], 2)
    stops = np.cumsum([0] + [len(frame) for frame in frames])
    chunks = [(X[start:stop], counts[start:stop]) for start, stop in pairwise(stops)]
    in_memory = stream(AnnotatorLDA(**FAST), chunks, 2)
    assert_array_equal(from_file.predict_annotation_proba(table[features]), in_memory.predict_annotation_proba(X))
    assert from_file.feature_names_in_.tolist() == features
    assert from_file.n_iter_ == 2 * len(frames)


def test_stream_comes_close_to_fit(crowd):
    """A stream of shuffled chunks, with the start as long as that of `fit`, learns what `fit` learns."""
    settings = {"max_epochs": 40, "n_consensus_epochs": 10, "n_anchor_epochs": 10, "random_state": 0}
    batch = AnnotatorLDA(**settings).fit(crowd.X_anonymous, crowd.counts)
    parts = [slice(start, start + 100) for start in range(0, 300, 100)]
    long_start = settings | {"n_consensus_epochs": 10 * len(parts), "n_anchor_epochs": 10 * len(parts)}
    chunks = [(crowd.X_anonymous[part], crowd.counts[part]) for part in parts]
    streamed = stream(AnnotatorLDA(**long_start), chunks, 50)
    constant = np.exp(entropy(crowd.counts.sum(0)))  # of one distribution for all items
    gain = [constant - lda.perplexity(crowd.X_anonymous, crowd.counts) for lda in (batch, streamed)]
    assert gain[1] > 0.97 * gain[0]
    first = [lda.transform(crowd.X_identified, crowd.annotations)[:, 0] for lda in (batch, streamed)]
    assert spearmanr(*first)[0] > 0.8


def test_pickle_of_a_stream_grows_by_its_history_only(crowd):
    lda = AnnotatorLDA(**FAST)
    sizes = []
    for _ in range(4):
        stream(lda, [(crowd.X_anonymous, crowd.counts)], 5)
        history, lda.history_ = lda.history_, []
        sizes.append(len(pickle.dumps(lda)))
        lda.history_ = history
    assert sizes[-1] - sizes[1] < 100


class NeedsAnnotations(ClassifierMixin, BaseEstimator):
    """Scores 1 where fit and score saw the annotations of their own rows."""

    def fit(self, X, y):
        self.classes_ = np.unique(self._check(X, y))
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y):
        self._check(X, y)
        return 1.0

    @staticmethod
    def _check(X, y):
        y, annotations = split_target(y)
        assert annotations is not None, "the annotations were lost on the way"
        assert_array_equal(annotations[:, 0], X[:, 0])
        return y


@pytest.fixture(scope="module")
def dask_cluster():
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        yield client


def search(crowd):
    grid = {"n_clusters": [1, 2], "alpha": [1.0, 50.0]}
    lda = AnnotatorLDA(**FAST)
    return GridSearchCV(lda, grid, cv=2, error_score="raise").fit(crowd.X_anonymous, crowd.counts)


@pytest.fixture(scope="module")
def alone(crowd):
    return search(crowd)


def check_search(crowd, alone, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        apart = search(crowd)
    assert apart.best_params_ == alone.best_params_
    for fold in range(2):
        key = f"split{fold}_test_score"
        assert_allclose(apart.cv_results_[key], alone.cv_results_[key], rtol=1e-9)


def check_target(backend):
    X = np.arange(400.0).reshape(200, 2)  # large enough for dask to send each argument on its own
    y = AnnotatedTarget(np.arange(200) % 2, np.column_stack([X[:, 0], X[:, 1]]))
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_array_equal(cross_val_score(NeedsAnnotations(), X, y, cv=3, error_score="raise"), np.ones(3))


def test_search_in_processes(crowd, alone):
    check_search(crowd, alone, "loky")


def test_target_in_processes():
    check_target("loky")


def test_search_on_a_cluster(crowd, alone, dask_cluster):
    check_search(crowd, alone, "dask")


def test_target_on_a_cluster(dask_cluster):
    check_target("dask")


def test_batches_of_items_on_a_cluster(dask_cluster):
    X, y, codes = _team_data()
    items = pd.DataFrame(X, columns=list("abcdef"), index=[f"item {i}" for i in range(len(X))])
    team = ConfidenceDeferral(LogisticRegression(), coverage=0.5, random_state=0).fit(items, y, encode_votes(codes))
    (there,) = dask_cluster.scatter([team], broadcast=True)
    batches = [items[start : start + 150] for start in range(0, len(items), 150)]
    parts = [dask_cluster.submit(lambda t, part: t.route(part), there, part) for part in batches]
    routes = pd.concat(dask_cluster.gather(parts))
    pd.testing.assert_frame_equal(routes, pd.concat([team.route(part) for part in batches]))
    assert_array_equal(routes["target"], team.route(items)["target"])


# ------------------------------------------------------------------------------------------ teams


def _team_data(n=400, n_people=30):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    X = (rng.normal(size=(n, 6)) + 2 * np.eye(3, 6)[y]).astype(np.float32)
    codes = np.where(rng.random((n, n_people)) < 0.7, y[:, None], rng.integers(3, size=(n, n_people)))
    codes[rng.random(codes.shape) < 0.8] = -1
    return X, y, codes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_team_learns_from_a_memory_map_what_it_learns_from_the_array(dtype, tmp_path):
    X, y, codes = _team_data()
    np.save(tmp_path / "X.npy", X.astype(dtype))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    team = ClusterDeferral(AnnotatorLDA(**FAST), classifier=LogisticRegression(), max_epochs=3, random_state=0)
    in_memory, from_file = (clone(team).fit(given, y, codes) for given in (X.astype(dtype), mapped))
    for given in (X.astype(dtype), mapped):
        assert_array_equal(from_file.decision_function(given), in_memory.decision_function(given))
        assert_array_equal(from_file.route(given), in_memory.route(given))
    assert from_file.score(mapped, y, codes) == in_memory.score(X.astype(dtype), y, codes)


@pytest.mark.parametrize(
    ("team", "message"),
    [
        (
            ProbabilisticDeferral(classifier=LogisticRegression(), workload=(0, 0.5)),
            "meeting bounds on 30 experts by 400 items",
        ),
        (
            ComplementDeferral(classifier=LogisticRegression(), workload=(0, 0.5)),
            "meeting bounds on 30 experts by 400 items",
        ),
        (SemiSupervisedDeferral(classifier=LogisticRegression()), "completing the annotations of 30 experts"),
        (
            ConfidenceDeferral(LogisticRegression(), workload=(0, 0.5)),
            "meeting bounds on 30 targets by 400 items needs about",
        ),
    ],
    ids=["probabilistic", "complement", "semi-supervised", "bounds on people"],
)
def test_work_that_needs_more_memory_than_is_free_is_refused_at_once(team, message, monkeypatch):
    X, y, codes = _team_data()
    monkeypatch.setattr(LogisticRegression, "fit", lambda *_: pytest.fail("a classifier is fitted before"))
    monkeypatch.setattr(_validation, "free_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=message):
        team.fit(X, y, codes)
    assert not hasattr(team, "classes_")


@pytest.mark.parametrize(
    "team",
    [
        ProbabilisticDeferral(answer_epochs=1),
        ProbabilisticDeferral(missing="naive", prior_weight=0),
        ComplementDeferral(answer_epochs=1),
        SemiSupervisedDeferral(answer_epochs=1),
    ],
    ids=["latent", "naive", "complement", "semi-supervised"],
)
@pytest.mark.parametrize("given", [True, False])
def test_no_table_of_items_and_people_is_held_in_training(team, given, monkeypatch):
    rng, n_people = np.random.default_rng(0), 200
    X, y = rng.normal(size=(3000, 2)), rng.integers(2, size=3000)
    item = np.repeat(np.arange(len(X)), 2)
    answers = [item, item % 100 + np.tile([0, 100], len(X)), y[item]]
    votes = Votes(*answers, n_items=len(X), classes=[0, 1], annotators=np.arange(n_people))
    settings = {"classifier": FrozenEstimator(LogisticRegression().fit(X, y)), "coverage": 0.4, "cv": 2}
    nets = {"max_epochs": 2, "hidden_layer_sizes": (2,), "answer_hidden_layer_sizes": (2,), "random_state": 0}
    for module, name, value in (
        (_matrices, "LARGEST_DENSE", 0),
        (_matrices, "_BLOCK", 10_000),
        (_net, "_PREDICT_BATCH", 64),
    ):
        monkeypatch.setattr(module, name, value)
    team = clone(team).set_params(**settings, **nets)
    team.fit(X[:500], y[:500], votes[:500])  # modules that are loaded on first use are not counted below
    tracemalloc.start()
    try:
        team.fit(X, y, votes, X_unlabeled=X[:1000] if given else None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(X) * len(team.targets_)


def test_items_in_single_precision_are_not_copied():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 200)).astype(np.float32), rng.integers(2, size=20_000)
    codes = np.where(rng.random((len(X), 3)) < 0.7, y[:, None], 1 - y[:, None])
    classifier = FrozenEstimator(LogisticRegression().fit(X[:1000], y[:1000]))
    team = ConfidenceDeferral(classifier, random_state=0).fit(X[:1000], y[:1000], codes[:1000])
    assert_array_equal(team.predict_deferral(X[:1000]), team.predict_deferral(X[:1000].astype(np.float64)))
    tracemalloc.start()
    try:
        team.predict_deferral(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 2


def test_a_system_that_does_not_say_what_is_free_refuses_nothing(monkeypatch):
    free = _validation.free_memory()
    assert free is None or free > 0
    monkeypatch.setattr(_validation, "Path", lambda _: Path("/no/such/file"))
    assert _validation.free_memory() is None
    _validation.check_memory(1e30, "anything", "nothing")


def test_predictions_of_many_nets_are_made_for_few_rows_at_a_time(monkeypatch):
    X, y, codes = _team_data()
    team = ProbabilisticDeferral(classifier=LogisticRegression(), max_epochs=1, answer_epochs=1, random_state=0)
    team.fit(X, y, codes)
    expected = team.predict_annotation_proba(X)
    monkeypatch.setattr(_net, "_PREDICT_NUMBERS", 7 * 30 * 32)
    assert [rows.stop for rows, _ in _net.logit_batches(team.answer_net_.module_, X, "cpu")][:2] == [7, 14]
    assert_allclose(team.predict_annotation_proba(X), expected, rtol=1e-12)


@pytest.mark.parametrize("frame", [False, True], ids=["array", "DataFrame"])
def test_a_clusterer_that_nobody_asked_for_learns_from_some_items(frame, monkeypatch):
    X, y, codes = _team_data()
    X = pd.DataFrame(X, columns=list("abcdef")) if frame else X
    monkeypatch.setattr(_behaviours, "AnnotatorLDA", lambda: AnnotatorLDA(**FAST))
    monkeypatch.setattr(_behaviours, "_ENOUGH_ITEMS", 50)
    seen, plain_fit = [], AnnotatorLDA.fit

    def fit(self, X, y=None):
        seen.append(len(X))
        return plain_fit(self, X, y)

    monkeypatch.setattr(AnnotatorLDA, "fit", fit)
    teams = [
        ClusterDeferral(classifier=LogisticRegression(), max_epochs=1, random_state=0).fit(X, y, codes)
        for _ in range(2)
    ]
    assert seen == [50, 50]
    assert_array_equal(*(team.clusterer_.predict_annotation_proba(X) for team in teams))
    teams[0].set_params(clusterer=AnnotatorLDA(**FAST)).fit(X, y, codes)
    assert seen[2] == 400  # one that is given learns from all


def test_who_is_available_may_be_sparse():
    X, y, codes = _team_data()
    team = ClusterDeferral(AnnotatorLDA(**FAST), classifier=LogisticRegression(), coverage=0.3, max_epochs=1)
    team.set_params(random_state=0).fit(X, y, codes)
    there = codes >= 0
    for kind in (csr_array, csc_array, coo_matrix):
        with pytest.warns(UserWarning, match="found nobody"):
            expected = team.assign_experts(X, available=there, capacity=20)
        with pytest.warns(UserWarning, match="found nobody"):
            assert_array_equal(team.assign_experts(X, available=kind(there), capacity=20), expected)
    with pytest.raises(ValueError, match=r"available has shape \(399, 30\)"):
        team.assign_experts(X, available=csr_array(there[1:]))
    with pytest.raises(ValueError, match=r"available has shape .* booleans"):
        team.assign_experts(X, available=csr_array(there.astype(int)))
