"""What large data rely on: memory maps, streams, and searches in other processes and on a cluster."""

import json
import os
import pickle
import subprocess
import sys
from itertools import pairwise

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import entropy, spearmanr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, cross_val_score

from sklearn_l2d._encoding import sparse_counts
from sklearn_l2d._torch._batches import on_device
from sklearn_l2d.annotations import AnnotatedTarget, split_target
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.datasets import load_digits_crowd

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
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, distributed.Client(cluster):
        yield


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
