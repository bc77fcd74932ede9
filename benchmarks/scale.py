"""What large data cost: many answers as votes, and rows, memory and a grid search on a cluster for `AnnotatorLDA`.

    pip install "sklearn-l2d[distributed,parquet]"
    python benchmarks/scale.py [TABLE ...] [--seeds 5] > benchmarks/results/scale.md

Memory is measured in a process of its own for each figure, imports included, and read from /proc.
"""

import pickle
import shutil
import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import torch
from _report import in_a_process, run, table
from scipy.stats import spearmanr
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from sklearn_l2d import deferral
from sklearn_l2d.annotations import from_long, to_counts
from sklearn_l2d.benchmark._tables import yes
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import ClusterDeferral, ConfidenceDeferral
from sklearn_l2d.metrics import deferral_report, team_accuracy

N_ROWS, N_FEATURES, N_CLASSES, CHUNK = 10_000_000, 32, 5, 65_536
FEATURES, CLASSES = [f"x{j}" for j in range(N_FEATURES)], [f"class{k}" for k in range(N_CLASSES)]
MAPPED = 200_000, 256  # rows and columns of the memory map


def mapped(seeds):
    """Memory that `fit` and `score` take beside a memory map, an array, and a file of another dtype."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for dtype, mode in (("float32", "r"), ("float32", None), ("float64", "r")):
            path = Path(folder) / f"{dtype}.npy"
            if not path.exists():
                X = np.lib.format.open_memmap(path, "w+", dtype, MAPPED)
                for start in range(0, len(X), CHUNK):
                    X[start : start + CHUNK] = np.random.default_rng(start).normal(size=X[start : start + CHUNK].shape)
                del X
            for method in ("fit", "score"):
                size, grown, result = in_a_process(memory_of, str(path), mode, method)
                rows.append([method, dtype, "memory map" if mode else "array", size, grown, f"{result:.10f}"])
    table(
        f"{MAPPED[0]:,} x {MAPPED[1]} rows: MB that a call needs beyond X, pages of the file not counted",
        ["method", "dtype of X", "X is a", "MB of X", "MB needed by the call", "weight of cluster 0, or score"],
        rows,
    )


def memory_of(path, mode, method):
    X = np.load(path, mmap_mode=mode)
    counts = np.random.default_rng(0).integers(0, 3, (len(X), N_CLASSES)).astype(float)
    settings = {"n_consensus_epochs": 1, "n_anchor_epochs": 1, "max_epochs": 1, "hidden_layer_sizes": (16,)}
    lda = AnnotatorLDA(**settings, batch_size=1024, random_state=0, device="cpu").fit(np.array(X[:50]), counts[:50])
    before = status("VmRSS") - status("RssFile")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    result = getattr(lda, method)(X, counts)
    needed = status("VmHWM") - status("RssFile") - before
    return round(X.nbytes / 1e6), round(needed), result if method == "score" else float(lda.cluster_weights_[0])


def stream(seeds):
    """One pass of `partial_fit` over a Parquet file of ten million rows."""
    with tempfile.TemporaryDirectory() as folder:
        path, source = str(Path(folder) / "items.parquet"), "chunks made on the fly"
        if shutil.disk_usage(folder).free > 8 * N_ROWS * N_FEATURES:
            source = f"a Parquet file of {in_a_process(write, path) / 1e9:.1f} GB"
        marks, perplexity, truth = in_a_process(learn, path)
    table(
        f"One pass of `partial_fit` over {source}: {N_ROWS:,} x {N_FEATURES} float32, {N_CLASSES} classes, chunks of "
        f"{CHUNK:,}, batches of 1,024",
        ["rows", "peak MB of the process", "rows per second", "rows per CPU second", "of `partial_fit` alone"],
        marks,
    )
    print(f"\nPerplexity of 100,000 rows that follow: {perplexity:.4f}; of the true distribution: {truth:.4f}.")


def learn(path):
    torch.set_num_threads(1)
    lda = AnnotatorLDA(2, batch_size=1024, random_state=0, device="cpu")
    marks, n, inside, start, cpu = [], 0, 0.0, time.perf_counter(), time.process_time()
    for frame in read(path) if Path(path).exists() else map(as_frame, chunks()):
        begin = time.process_time()
        lda.partial_fit(frame[FEATURES], frame[CLASSES])
        end, before, n = time.process_time(), n, n + len(frame)
        inside += end - begin
        if any(before < mark <= n for mark in (N_ROWS // 10, N_ROWS // 2, N_ROWS)):
            speeds = (f"{n / seconds:,.0f}" for seconds in (time.perf_counter() - start, end - cpu, inside))
            marks.append([f"{n:,}", round(status("VmHWM")), *speeds])
    frame, p = as_frame(simulate(N_ROWS + 1, 100_000)), truth_of(N_ROWS + 1, 100_000)
    votes = frame[CLASSES].to_numpy()
    return marks, lda.perplexity(frame[FEATURES], frame[CLASSES]), np.exp(-(votes * np.log(p)).sum() / votes.sum())


def read(path):
    """Frames of a Parquet file, one chunk in memory at a time."""
    from pyarrow import parquet

    with parquet.ParquetFile(path, pre_buffer=False) as file:  # the default keeps whatever it has read
        yield from (batch.to_pandas() for batch in file.iter_batches(CHUNK))


def write(path):
    """Write the simulated rows; returns the size of the file in bytes."""
    from pyarrow import parquet

    schema = as_table(next(chunks())).schema
    with parquet.ParquetWriter(path, schema, compression="NONE", use_dictionary=CLASSES) as writer:
        for X, counts in chunks():
            writer.write_table(as_table((X, counts)))
    return Path(path).stat().st_size


def as_table(chunk):
    import pyarrow as pa

    return pa.table(dict(zip(FEATURES + CLASSES, [*chunk[0].T, *chunk[1].T], strict=True)))


def as_frame(chunk):
    return pd.DataFrame(chunk[0], columns=FEATURES).join(pd.DataFrame(chunk[1], columns=CLASSES))


def chunks():
    for start in range(0, N_ROWS, CHUNK):
        yield simulate(start, min(CHUNK, N_ROWS - start))


def simulate(start, n):
    """Rows from `start` on: five votes per item, three of five from a good behaviour, the rest from a bad one."""
    rng = np.random.default_rng([1, start])
    X = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
    return X, rng.multinomial(5, mixture(X)).astype(np.int8)


def truth_of(start, n):
    return mixture(np.random.default_rng([1, start]).standard_normal((n, N_FEATURES), dtype=np.float32))


def mixture(X):
    logits = X @ (np.random.default_rng(0).standard_normal((N_FEATURES, N_CLASSES)) / 2)
    good, bad = (softmax(scale * logits) for scale in (2.0, 0.3))
    return 0.6 * good + 0.4 * bad


def softmax(logits):
    proba = np.exp(logits - logits.max(1, keepdims=True))
    return proba / proba.sum(1, keepdims=True)


def quality(seeds):
    """A stream beside `fit` on the same rows of the digits crowd."""
    chunk, figures = 256, []
    for seed in seeds[:5]:
        crowd = load_digits_crowd(random_state=seed)
        X, counts, n = crowd.X_anonymous, crowd.counts, len(crowd.X_anonymous)
        held_out = to_counts(crowd.annotations, classes=np.arange(10))
        voted = held_out.sum(1) > 0
        shuffled = np.random.default_rng(seed).permutation(n)
        by_class = np.argsort(counts.argmax(1), kind="stable")
        per_pass = -(-n // chunk)
        long_start = {"n_consensus_epochs": 20 * per_pass, "n_anchor_epochs": 20 * per_pass}
        models = {"`fit`": AnnotatorLDA(2, random_state=seed).fit(X, counts)}
        for name, order, n_passes, settings in (
            ("stream, 20 passes", shuffled, 20, {}),
            ("stream, 80 passes", shuffled, 80, {}),
            ("stream, 80 passes, start of 40 passes", shuffled, 80, long_start),
            ("stream, 20 passes, 8 steps per chunk", shuffled, 20, {"batch_size": 32}),
            ("the same, rows sorted by class", by_class, 20, {"batch_size": 32}),
        ):
            lda = models[name] = AnnotatorLDA(2, random_state=seed, **settings)
            for start in list(range(0, n, chunk)) * n_passes:
                rows = order[start : start + chunk]
                lda.partial_fit(X[rows], counts[rows], classes=None if hasattr(lda, "net_") else np.arange(10))
        weights = {name: lda.transform(crowd.X_identified, crowd.annotations)[:, 0] for name, lda in models.items()}
        figures.append(
            [
                [
                    lda.perplexity(X, counts),
                    lda.perplexity(crowd.X_identified[voted], held_out[voted]),
                    spearmanr(weights[name], weights["`fit`"])[0],
                    lda.cluster_weights_[0],
                ]
                for name, lda in models.items()
            ]
        )
    table(
        f"Digits crowd, {n:,} rows in chunks of {chunk}, 2 steps each unless said otherwise, mean of seeds {seeds[0]} "
        f"to {seeds[:5][-1]}",
        [
            "training",
            "perplexity of the rows",
            "of held-out items",
            "rank correlation of the memberships with those of `fit`",
            "weight of cluster 0",
        ],
        [[name, *row] for name, row in zip(models, np.mean(figures, axis=0), strict=True)],
    )


def search(seeds):
    """A grid search alone, in two processes, and on a cluster of two local workers."""
    from distributed import Client, LocalCluster

    crowd = load_digits_crowd(random_state=seeds[0])
    grid = {"n_clusters": [1, 2, 3], "alpha": [5.0, 50.0]}
    rows, first = [], None
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        for name, backend, n_jobs in (("n_jobs=1", "loky", 1), ("loky", "loky", 2), ("dask", "dask", 2)):
            lda = AnnotatorLDA(n_consensus_epochs=10, n_anchor_epochs=10, max_epochs=30, random_state=0)
            with joblib.parallel_config(backend, n_jobs=n_jobs):
                start = time.perf_counter()
                found = GridSearchCV(lda, grid, cv=3).fit(crowd.X_anonymous, crowd.counts)
                seconds = time.perf_counter() - start
            scores = [found.cv_results_[f"split{fold}_test_score"] for fold in range(3)]
            first = first or (found.best_params_, scores)
            apart = np.abs(np.subtract(scores, first[1])).max()
            rows.append([name, f"{seconds:.1f}", yes(found.best_params_ == first[0]), f"{apart:.1e}"])
    table(
        "GridSearchCV over n_clusters and alpha: 18 fits of the digits crowd and a refit",
        ["backend, two workers", "seconds", "same best_params_", "largest difference of a score"],
        rows,
    )


SIZES = 1_000_000, 2_000_000, 4_000_000, 8_000_000  # items, with 5 answers each: beyond the caches of a processor
PEOPLE = 100, 500, 2_500, 10_000
_FEW = {"n_consensus_epochs": 1, "n_anchor_epochs": 1, "max_epochs": 1, "hidden_layer_sizes": (16,)}


# The C library of Linux takes arrays of more than 32 MB from the kernel anew, page by page, and smaller ones from what
# it holds. A growth over that size tells of it, not of us, unless one rule serves all sizes: keep whatever was freed.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}


def answers(seeds):
    """CPU seconds and memory of what works on votes, by the number of items and of people, with fitted exponents."""
    memory = {step: mb for step, (_, mb) in in_a_process(cost_of_votes, SIZES[0], 1_000).items()}
    by_items = [in_a_process(cost_of_votes, n_items, 1_000, **KEEP_MEMORY) for n_items in SIZES]
    by_people = [in_a_process(cost_of_votes, 250_000, n_people, **KEEP_MEMORY) for n_people in PEOPLE]
    rows = []
    for step in memory:
        seconds = [cost[step][0] for cost in by_items]
        growth = [
            np.polyfit(np.log(sizes), np.log([max(cost[step][0], 1e-3) for cost in costs]), 1)[0]
            for sizes, costs in ((SIZES, by_items), (PEOPLE, by_people))
        ]
        rows.append([step, *(f"{s:.2f}" for s in seconds), memory[step], *(f"{g:.2f}" for g in growth)])
    table(
        "5 answers per item, 1,000 people: CPU seconds where freed memory is kept, MB beyond what was there where it "
        "is not, exponents in answers and in people",
        ["step", *(f"{n:,} items" for n in SIZES), f"MB at {SIZES[0]:,}", "in answers", "in people"],
        rows,
    )


def people(seeds):
    """The same of a million items by a thousand people, and by ten thousand."""
    few, many = (in_a_process(cost_of_votes, 1_000_000, n, **KEEP_MEMORY) for n in (1_000, 10_000))
    table(
        "1,000,000 items, 5 answers each: CPU seconds by the number of people",
        ["step", "1,000 people", "10,000 people", "ratio"],
        [[step, *(f"{s:.2f}" for s in (few[step][0], many[step][0])), many[step][0] / few[step][0]] for step in few],
    )


def cost_of_votes(n_items, n_people):
    """CPU seconds and MB of each step from a long table to a label, in this process."""
    world = AnsweredItems(n_items, n_people)
    X, y, n = world.X, world.y, n_items
    rng = np.random.default_rng(1)
    labels, deferred = rng.integers(N_CLASSES, size=n), rng.integers(-1, 4, size=n)
    selection = rng.dirichlet(np.ones(n_people), size=4)
    confidence = ConfidenceDeferral(world.classifier, coverage=0.5, random_state=0)
    cluster = world.cluster(max_epochs=2)
    return costs(
        {
            "from_long(form='votes')": lambda: world.keep("votes", from_long(world.long, form="votes")),
            "Votes.to_counts": lambda: world.votes.to_counts(),
            "votes of a random half of the items": lambda: world.votes[rng.permutation(n)[: n // 2]],
            "AnnotatorLDA.transform": lambda: world.lda.transform(X, world.votes),
            "team_accuracy": lambda: team_accuracy(y, deferred, labels, world.votes, selection),
            "deferral_report": lambda: deferral_report(y, deferred, labels, world.votes, selection),
            "ConfidenceDeferral.fit": lambda: confidence.fit(X, y, world.votes),
            "ConfidenceDeferral.score": lambda: confidence.score(X, y, world.votes),
            "ConfidenceDeferral.predict_team": lambda: confidence.predict_team(X, world.votes),
            "ConfidenceDeferral.route": lambda: confidence.route(X),
            "ClusterDeferral.fit, 2 epochs": lambda: cluster.fit(X, y, world.votes),
            "ClusterDeferral.score": lambda: cluster.score(X, y, world.votes),
            "ClusterDeferral.predict_team": lambda: cluster.predict_team(X, world.votes),
            "ClusterDeferral.route within capacities": lambda: cluster.route(X, capacity=-(-n // n_people)),
        },
        n_calls=2,
    )


def teams(seeds):
    """Whole fits on many items and people, and the size of a saved team."""
    rows = []
    for n_people in (1_000, 10_000):
        for kind in ("ConfidenceDeferral", "ClusterDeferral", "ClusterDeferral, workload"):
            size, cost = in_a_process(cost_of_fit, 1_000_000, n_people, kind)
            for step, (seconds, mb) in cost.items():
                rows.append([f"1,000,000 x {n_people:,}", kind, step, f"{seconds:.1f}", mb, f"{size:.2f}"])
    table(
        "5 answers per item, a given classifier and clusterer: CPU seconds and MB beyond X and the votes",
        ["items x people", "deferrer", "step", "CPU seconds", "MB", "MB of the saved team"],
        rows,
    )
    few = {"answer_epochs": 1, "max_epochs": 2, "hidden_layer_sizes": (16,), "answer_hidden_layer_sizes": (16,)}
    for title, n_items, n_people, kinds, settings in (
        ("all by default", 200_000, 5_000, ("ConfidenceDeferral", "ClusterDeferral"), {}),
        (
            "a net of 16 units for each person, 1 epoch of these and 2 of the gate",
            100_000,
            1_000,
            ("ProbabilisticDeferral", "SemiSupervisedDeferral"),
            {"coverage": 0.5, **few},
        ),
    ):
        rows = []
        for kind in kinds:
            seconds, mb, peak = in_a_process(cost_alone, n_items, n_people, kind, settings)
            rows.append([kind, f"{seconds:.0f}", mb, peak])
        table(
            f"{n_items:,} x {n_people:,} x 5, {title}: CPU seconds of `fit`, MB beyond X and the votes, MB of the "
            "process",
            ["deferrer", "CPU seconds", "MB", "MB of the process"],
            rows,
        )


def cost_of_fit(n_items, n_people, kind):
    """MB of a pickle of the fitted team, and the cost of every step."""
    world = AnsweredItems(n_items, n_people)
    votes, X = world.keep("votes", from_long(world.long, form="votes")), world.X
    team = {
        "ConfidenceDeferral": ConfidenceDeferral(world.classifier, coverage=0.5, random_state=0),
        "ClusterDeferral": world.cluster(coverage=0.5),
        "ClusterDeferral, workload": world.cluster(coverage=0.5, workload=(0, 2 / n_people), max_epochs=5),
    }[kind]
    epochs = f" ({team.max_epochs} epochs)" if hasattr(team, "max_epochs") else ""
    steps = {
        f"fit{epochs}": lambda: team.fit(X, world.y, votes, X_unlabeled=X[:100_000]),
        "score": lambda: team.score(X, world.y, votes),
        "predict_team": lambda: team.predict_team(X, votes),
        "route": lambda: team.route(X),
    }
    cost = costs(steps)
    return len(pickle.dumps(team)) / 1e6, cost


def cost_alone(n_items, n_people, kind, settings):
    """CPU seconds and MB of a fit, and the largest size of the process; with any settings, the classifier is given."""
    world = AnsweredItems(n_items, n_people)
    votes = world.keep("votes", from_long(world.long, form="votes"))
    given = {"classifier": world.classifier, **settings} if settings else {}
    team, unlabeled = getattr(deferral, kind)(random_state=0, **given), world.X[:10_000] if settings else None
    (cost,) = costs({"fit": lambda: team.fit(world.X, world.y, votes, X_unlabeled=unlabeled)}).values()
    return *cost, round(status("VmHWM"))


class AnsweredItems:
    """Items of five Gaussian classes, each answered by five people of many, a classifier and a clusterer."""

    def __init__(self, n_items, n_people):
        rng = np.random.default_rng(0)
        task = np.repeat(np.arange(n_items), 5)
        annotator = (rng.integers(n_people, size=n_items).repeat(5) + np.tile(np.arange(5) * 7, n_items)) % n_people
        self.y = rng.integers(N_CLASSES, size=n_items)
        self.X = rng.standard_normal((n_items, N_FEATURES), dtype=np.float32)
        self.X[np.arange(n_items), self.y] += 1
        ability = rng.beta(6, 3, size=(n_people, N_CLASSES))
        right = rng.random(len(task)) < ability[annotator, self.y[task]]
        label = np.where(right, self.y[task], rng.integers(N_CLASSES, size=len(task)))
        self.long = pd.DataFrame({"task": task, "annotator": annotator, "label": label})
        self.classifier = FrozenEstimator(LogisticRegression().fit(self.X[:2000], self.y[:2000]))
        counts = from_long(self.long[: 5 * 2000], form="votes").to_counts()
        self.lda = AnnotatorLDA(**_FEW, random_state=0, device="cpu").fit(self.X[:2000], counts)

    def keep(self, name, value):
        setattr(self, name, value)
        return value

    def cluster(self, **settings):
        return ClusterDeferral(FrozenEstimator(self.lda), classifier=self.classifier, random_state=0, **settings)


def costs(steps, n_calls=1):
    """CPU seconds and MB, beyond what was there, of functions by name.

    Seconds are the least of `n_calls`, and of up to five until 15 of them are spent: the first call of a process gets
    its memory page by page, and other jobs share the caches. Whatever takes a minute runs once. The memory is that of
    the first call.
    """
    found = {}
    for name, step in steps.items():
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        before, seconds, peaks = status("VmRSS"), [], []
        while (sum(seconds) < 60 and len(seconds) < n_calls) or (len(seconds) < 5 and sum(seconds) < 15):
            start = time.process_time()
            step()
            seconds.append(time.process_time() - start)
            peaks.append(status("VmHWM"))
        found[name] = min(seconds), round(peaks[0] - before)
    return found


def status(name):
    """A line of /proc/self/status, in MB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + ":")) / 1000


if __name__ == "__main__":
    run({f.__name__: f for f in (answers, people, teams, mapped, quality, search, stream)}, "What large data cost")
