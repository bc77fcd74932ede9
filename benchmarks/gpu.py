"""What a CUDA device changes: results, pickles, throughput and memory, beside the CPU and a plain torch loop.

    python benchmarks/gpu.py [SECTION ...] [--quick] [--seconds 330] [--output benchmarks/results/gpu.md]

`--quick` is a smoke run on small data. Without a CUDA device the script says so and does only what of it the CPU
can do. A section that fails prints its error, and the others still run.
"""

import argparse
import contextlib
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import torch
from _loops import (
    K,
    allow_tf32,
    device_work,
    em_epochs,
    flops_per_item,
    matmul_ceiling,
    mlp,
    plain_epochs,
    resnet,
    votes_for,
    with_peak,
)
from _report import table
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.benchmark._machine import machine
from sklearn_l2d.benchmark._tables import yes
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import ClusterDeferral

VERDICT = ["must be", "reached"]
WITHOUT_CUDA = """
import pickle, sys
from pathlib import Path
import numpy as np, torch
from gpu import predictions

folder = Path(sys.argv[1])
lda, gate, crowd = pickle.loads((folder / "fitted.pickle").read_bytes())
found = predictions(lda, gate, crowd) | {"has_cuda": torch.cuda.is_available(), "device": lda.device_}
lda.partial_fit(crowd.X_anonymous, crowd.counts)
gate.partial_fit(crowd.X_identified, crowd.y_identified, crowd.annotations)
found["finite"] = all(np.isfinite(x).all() for x in predictions(lda, gate, crowd).values())
np.savez(folder / "found.npz", **found)
"""


def lda_results(device, quick):
    """The same fit on both devices; weights are drawn, and rows shuffled, on the CPU's generator."""
    crowd, rows = digits(quick), []
    for dtype, bound in (("float32", 1e-2), ("float64", 1e-6)):
        fits = [fit_lda(crowd, d, quick, dtype=dtype) for d in ("cpu", device)]
        figures = {
            "memberships": [lda.transform(crowd.X_identified, crowd.annotations) for lda in fits],
            "predict_annotation_proba": [lda.predict_annotation_proba(crowd.X_test) for lda in fits],
            "cluster_weights_": [lda.cluster_weights_ for lda in fits],
            "score": [lda.score(crowd.X_anonymous, crowd.counts) for lda in fits],
            "first loss": [lda.history_[0]["loss"] for lda in fits],
            "last loss": [lda.history_[-1]["loss"] for lda in fits],
        }
        for name, pair in figures.items():
            found = difference(*pair)
            rows.append([dtype, name, f"{found:.1e}", f"<= {bound:.0e}", yes(found <= bound)])
        took = [sum(record["duration"] for record in lda.history_) for lda in fits]
        rows.append([dtype, f"seconds of training, cpu / {device}", f"{took[0]:.2f} / {took[1]:.2f}", "", ""])
    table(
        f"AnnotatorLDA on the digits, K=2, {device} against cpu, same seed: largest absolute differences",
        ["dtype", "of", "difference", *VERDICT],
        rows,
    )


def deferral_results(device, quick):
    """The same team on both devices."""
    crowd, rows = digits(quick), []
    for name, classifier in (("LogisticRegression", LogisticRegression(C=0.01)), ("net", None)):
        gates, took = [], []
        for d in ("cpu", device):
            start = time.perf_counter()
            gates.append(fit_gate(crowd, d, quick, classifier))
            took.append(time.perf_counter() - start)
        routes = [gate.predict_deferral(crowd.X_test) for gate in gates]
        same = np.mean(routes[0] == routes[1])
        rows.append([name, "test items on the same route", f"{same:.4f}", ">= 0.99", yes(same >= 0.99)])
        for figure, (one, two) in {
            "coverage": [gate.coverage_ for gate in gates],
            "score": [gate.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) for gate in gates],
        }.items():
            rows.append([name, figure, f"{one:.4f} / {two:.4f}", "within 0.01", yes(abs(one - two) <= 0.01)])
        rows.append([name, "seconds of fit", f"{took[0]:.2f} / {took[1]:.2f}", "", ""])
    table(
        f"ClusterDeferral on the digits, coverage 0.5, same seed, cpu / {device}",
        ["classifier", "figure", f"cpu / {device}", *VERDICT],
        rows,
    )


def pickles(device, quick):
    """What was fitted on the device, in a process that cannot see it."""
    crowd = digits(quick)
    lda, gate = fit_lda(crowd, device, quick), fit_gate(crowd, device, quick, None)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "fitted.pickle").write_bytes(pickle.dumps((lda, gate, crowd)))
        hidden = {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        child = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", WITHOUT_CUDA, folder],
            env=os.environ | hidden,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if child.returncode:
            raise RuntimeError(f"the process without CUDA failed:\n{child.stderr[-3000:]}")
        found = dict(np.load(Path(folder) / "found.npz"))
    rows = []
    for name, here in predictions(lda, gate, crowd).items():
        apart = difference(here, found[name])
        rows.append([f"difference of {name}", f"{apart:.1e}", "<= 1e-6", yes(apart <= 1e-6)])
    for what, key, must in (
        ["CUDA is there", "has_cuda", False],
        ["device_", "device", "cpu"],
        ["finite after partial_fit", "finite", True],
    ):
        rows.append([what, found[key], must, yes(found[key] == must)])
    table(f"Pickled on {device}, loaded by a process without CUDA", ["what", "found", *VERDICT], rows)


def generators(device, quick):
    """The caller's generators, the choice of the device, and repeats; short fits show them as well as long ones."""
    crowd, before = digits(quick), generator_states(device)
    fits = {name: fit_lda(crowd, name, quick=True) for name in ("auto", device)}
    rows = [
        [f"global {name} generator untouched", torch.equal(state, before[name]), True]
        for name, state in generator_states(device).items()
    ]
    torch.manual_seed(99)
    fits["again"] = fit_lda(crowd, device, quick=True)
    if device == "cuda":
        fits["cuda:0"] = fit_lda(crowd, "cuda:0", quick=True)
    proba = {name: lda.predict_annotation_proba(crowd.X_test) for name, lda in fits.items()}
    rows.append(["device_ of device='auto'", fits["auto"].device_, device])
    rows += [[f"difference of {name}", difference(proba[device], x), 0.0] for name, x in proba.items()]
    table(
        f"Seeds and devices: fits with the same seed on {device}",
        ["what", "found", *VERDICT],
        [[what, str(found), str(must), yes(found == must)] for what, found, must in rows],
    )


def mlps(device, quick):
    """The default perceptron, which the launch of kernels limits, and a wide one, which arithmetic limits."""
    sizes = {"cpu": 2_000 if quick else 10_000, "cuda": 4_000 if quick else 40_000}
    data = {d: votes_for(sizes[d], 256) for d in devices(device)}
    rows = []
    for hidden in ((128,), (256, 256) if quick else (2048, 2048)):
        for batch_size in (256, 4096):
            for d, tf32 in runs(device):
                loops = [
                    partial(em_epochs, *data[d], d, batch_size, hidden_layer_sizes=hidden),
                    partial(plain_epochs, partial(mlp, 256, hidden), *data[d], d, batch_size),
                ]
                flops = flops_per_item(partial(mlp, 256, hidden), data[d][0])
                figures = throughput(loops, len(data[d][0]), flops, d, tf32, 6, quick)
                rows.append([hidden, batch_size, d + " TF32" * tf32, *figures])
    throughput_table(f"Perceptrons, {sizes[device]:,} x 256 items ({sizes['cpu']:,} on the CPU)", rows)


def convolutions(device, quick):
    """A residual net of 18 layers on images, which arithmetic and the memory's speed limit."""
    sizes, width = {"cpu": 64 if quick else 256, "cuda": 512 if quick else 10_000}, 8 if quick else 64
    data, build = {d: votes_for(sizes[d], 3, 32, 32) for d in devices(device)}, partial(resnet, width=width)
    rows = []
    for d, tf32 in runs(device):
        flops = flops_per_item(build, data[d][0])
        for batch_size in (256, 1024) if d == "cuda" else (min(256, sizes[d]),):
            loops = [
                partial(em_epochs, *data[d], d, batch_size, module=build),
                partial(plain_epochs, build, *data[d], d, batch_size),
            ]
            figures = throughput(loops, sizes[d], flops, d, tf32, 3, quick)
            rows.append([f"ResNet-18, width {width}", batch_size, d + " TF32" * tf32, *figures])
    throughput_table(f"Convolutions, {sizes[device]:,} images of 3 x 32 x 32 ({sizes['cpu']:,} on the CPU)", rows)


def steps(device, quick):
    """What a step of the default perceptron costs beside arithmetic."""
    if device == "cpu":
        print("\nThe parts of a step need a CUDA device.")
        return
    n_steps, rows = 20, []
    for batch_size in (256, 4096):
        X, counts = votes_for(n_steps * batch_size, 256)
        for name, epochs in {
            "EM": partial(em_epochs, X, counts, device, batch_size),
            "plain": partial(plain_epochs, partial(mlp, 256, (128,)), X, counts, device, batch_size),
        }.items():
            step = 1e6 * np.median(epochs(6)[1:]) / n_steps
            # the difference leaves out what is done once per fit
            kernels, busy, waits = (device_work(epochs, 3) - device_work(epochs, 1)) / (2 * n_steps)
            rows.append([name, batch_size, f"{step:.0f}", f"{busy:.0f}", f"{kernels:.1f}", f"{waits:.1f}"])
    table(
        f"A step of the default perceptron, K={K}",
        ["loop", "batch", "microseconds", "of work on the device", "kernels and copies", "waits of the host"],
        rows,
    )


def memory(device, quick):
    """Peak of fit and of predictions, with rows on the device and with too many rows to stay there."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nPeak resident memory of this process so far: {peak:.0f} MiB.")
    if device == "cpu":
        print("Peaks of device memory need a CUDA device.")
        return
    X, counts = votes_for(5_000 if quick else 50_000, 4_096)
    rows, proba = [], []
    for place in ("resident", "streamed"):
        torch.cuda.empty_cache()
        # rows stay on the host when they would take more than a quarter of the free memory
        size = torch.cuda.mem_get_info()[0] - 3 * X.nbytes if place == "streamed" else 0
        ballast = torch.empty(size, dtype=torch.uint8, device=device)
        lda = AnnotatorLDA(K, init="random", lr=1e-3, batch_size=1024, max_epochs=4, device=device, random_state=0)
        _, fit_peak = with_peak(lda.fit, X, counts)
        found, predict_peak = with_peak(lda.predict_annotation_proba, X[:4096])
        _, score_peak = with_peak(lda.score, X, counts)
        epoch = np.median([record["duration"] for record in lda.history_[1:]])
        peaks = (f"{p:.0f}" for p in (fit_peak, predict_peak, score_peak))
        rows.append([place, f"{len(X) / epoch:,.0f}", *peaks])
        proba.append(found)
        del ballast
    table(
        f"Peak device memory in MiB, MLP (128,), K={K}, {len(X):,} x 4096 items of {X.nbytes / 2**20:.0f} MiB",
        ["rows", "items/s", "fit", "predict_annotation_proba", "score"],
        rows,
    )
    print(f"\nDifference of the predictions, resident against streamed: {difference(*proba):.1e}")


def devices(device):
    return sorted({"cpu", device})


def runs(device):
    """Devices, with and without TF32 where they know it."""
    return [("cpu", False)] + ([(device, False), (device, True)] if device == "cuda" else [])


def throughput(loops, n_items, flops, device, tf32, n_epochs, quick):
    """Items per second of EM and of the plain loop, their ratio, shares of the ceiling and peaks of memory."""
    top = matmul_ceiling(device, 8192 if device == "cuda" else 512 if quick else 4096, tf32)
    rates, peaks = [], []
    with allow_tf32(tf32):
        for epochs in loops:
            durations, peak = with_peak(epochs, n_epochs if device == "cuda" else 2, device=device)
            rates.append(n_items / np.median(durations[1:]))
            peaks.append("-" if peak is None else f"{peak:.0f}")
    return [
        *(f"{rate:,.0f}" for rate in rates),
        f"{rates[1] / rates[0]:.2f}",
        f"{top / 1e12:.2f}",
        *(f"{flops * rate / top:.1%}" for rate in rates),
        *peaks,
    ]


def throughput_table(title, rows):
    columns = ["EM items/s", "plain items/s", "time EM / plain", "matmul TFLOP/s", "EM of it", "plain of it"]
    table(
        f"{title}: an epoch of EM with K={K} against {K} nets in a plain supervised loop",
        ["net", "batch", "device", *columns, "EM peak MiB", "plain peak MiB"],
        rows,
    )


def digits(quick):
    sizes = {"n_identified": 40, "n_anonymous": 300} if quick else {}
    return load_digits_crowd(**sizes, random_state=0)


def fit_lda(crowd, device, quick, **settings):
    epochs = {"n_consensus_epochs": 4, "n_anchor_epochs": 4, "max_epochs": 8} if quick else {}
    return AnnotatorLDA(2, device=device, random_state=0, **epochs, **settings).fit(crowd.X_anonymous, crowd.counts)


def fit_gate(crowd, device, quick, classifier):
    n = 2 if quick else 10
    return ClusterDeferral(
        AnnotatorLDA(2, n_consensus_epochs=n, n_anchor_epochs=n, max_epochs=2 * n, device=device),
        coverage=0.5,
        classifier=classifier,
        cv=3,
        max_epochs=10 if quick else 80,
        device=device,
        random_state=0,
    ).fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations, X_unlabeled=crowd.X_anonymous)


def predictions(lda, gate, crowd):
    """What a reader of the pickles must find again."""
    return {
        "predict_annotation_proba": lda.predict_annotation_proba(crowd.X_test),
        "transform": lda.transform(crowd.X_identified, crowd.annotations),
        "predict_deferral_proba": gate.predict_deferral_proba(crowd.X_test),
        "predict_proba": gate.predict_proba(crowd.X_test),
    }


def generator_states(device):
    legacy = np.random.get_state()[1]  # noqa: NPY002
    states = {"numpy": torch.from_numpy(legacy.astype(np.int64)), "torch": torch.get_rng_state()}
    return states | ({"CUDA": torch.cuda.get_rng_state()} if device == "cuda" else {})


def difference(a, b):
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())


class Tee:
    """Everything printed, also in a file."""

    def __init__(self, *streams):
        self.streams = streams

    def write(self, text):
        for stream in self.streams:
            stream.write(text)

    def flush(self):
        for stream in self.streams:
            stream.flush()


SECTIONS = {
    f.__name__: f for f in (lda_results, deferral_results, pickles, generators, mlps, convolutions, steps, memory)
}


def main():
    """Parse the command line and print the chosen sections."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"any of {', '.join(SECTIONS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="small data, under a minute on a CPU")
    parser.add_argument("--seconds", type=float, default=330, help="no section starts later than this (default 330)")
    parser.add_argument("--output", help="file that also gets everything printed")
    args = parser.parse_args()
    if unknown := set(args.sections) - set(SECTIONS):
        parser.error(f"unknown sections {sorted(unknown)}; choose from {', '.join(SECTIONS)}")
    with contextlib.ExitStack() as stack:
        if args.output:
            file = stack.enter_context(open(args.output, "w"))
            stack.enter_context(contextlib.redirect_stdout(Tee(sys.stdout, file)))
        run_sections(args.sections or SECTIONS, args.quick, args.seconds)


def run_sections(names, quick, limit):
    """Print sections by name, each with its seconds, or with its error."""
    warnings.simplefilter("ignore")
    start, device = time.perf_counter(), "cuda" if torch.cuda.is_available() else "cpu"
    gpu = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}; " if device == "cuda" else ""
    print(f"# What a CUDA device changes\n\n{gpu}{machine(f'{torch.get_num_threads()} torch threads')}")
    if device == "cpu":
        print("\nNo CUDA device: only the parts of the quick run that a CPU can do, with the CPU in both places.")
    for name in names:
        begin = time.perf_counter()
        if begin - start > limit:
            print(f"\n{name}: left out, since {limit:.0f} seconds are over.", flush=True)
            continue
        try:
            SECTIONS[name](device, quick or device == "cpu")
        except Exception:
            print(f"\n{name} FAILED\n\n```\n{traceback.format_exc()}```", flush=True)
        print(f"\n{name}: {time.perf_counter() - begin:.1f} s", flush=True)
    print(f"\nTotal: {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
