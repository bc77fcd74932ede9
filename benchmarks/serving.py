"""What one item costs a team that serves a queue, and what saving it costs.

    python benchmarks/serving.py [TABLE ...] > serving.md

`latency` times `team.route` of a single row after a warm-up, and beside it what no team can go below: the
`predict_proba` of its classifier. Milliseconds of the clock suffer from whatever else the machine does, which the floor
shows; those of the processor do not. `files` saves the same teams without pickle, by joblib, and loads them.
"""

import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
from _report import run, table
from sklearn.linear_model import LogisticRegression

from sklearn_l2d import AnnotatorLDA, load
from sklearn_l2d.benchmark._tables import yes
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import ClusterDeferral, ConfidenceDeferral, PanelDeferral

_N_WARM, _N_CALLS = 100, 2000
_MEDIAN, _SLOWEST = 1.5, 10.0  # milliseconds that the issue allows


def fitted_teams():
    """Yield names of deferrers and classifiers, fitted teams, and the rows that they serve."""
    crowd = load_digits_crowd(random_state=0)
    for title, classifier in (("LogisticRegression", LogisticRegression(C=0.01)), ("the default net", None)):
        for team in (
            ConfidenceDeferral(classifier, coverage=0.5, random_state=0),
            ClusterDeferral(AnnotatorLDA(random_state=0), classifier=classifier, coverage=0.5, random_state=0),
            PanelDeferral(classifier, answers=1.0, random_state=0),
        ):
            team.fit(crowd.X_identified, crowd.y_identified, crowd.annotations, X_unlabeled=crowd.X_anonymous)
            yield type(team).__name__, title, team, crowd.X_test


def latency(seeds):
    """Time of `route` on one row, and of the classifier alone, in turns."""
    rows = []
    for name, title, team, X in fitted_teams():
        clock, processor = timed([team.route, team.classifier_.predict_proba], X)
        (median, slowest), (floor, floor_slowest) = np.quantile(clock, [0.5, 0.99], axis=1).T
        cpu, floor_cpu = np.median(processor, axis=1)
        figures = [f"{value:.2f}" for value in (median, slowest, cpu, floor, floor_slowest, floor_cpu)]
        rows.append([name, title, *figures, yes(median <= _MEDIAN and slowest <= _SLOWEST)])
    each = ["median", "99th percentile", "processor, median"]
    columns = ["deferrer", "classifier", *each, *(f"floor: {name}" for name in each), "1.5 and 10 ms reached"]
    table(f"Milliseconds of `team.route(X[:1])`, {_N_CALLS} calls", columns, rows)


def timed(functions, X):
    """Milliseconds (len(functions), n_calls) of the clock and of the processor that calls with single rows take."""
    seconds = np.empty((2, len(functions), _N_WARM + _N_CALLS))
    for call in range(seconds.shape[2]):
        row = X[call % len(X)][None]
        for number, function in enumerate(functions):
            start, worked = time.perf_counter(), time.thread_time()
            function(row)
            seconds[:, number, call] = time.perf_counter() - start, time.thread_time() - worked
    return 1000 * seconds[:, :, _N_WARM:]


def files(seeds):
    """Size of a saved team, and the median time to write and to read it."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "team"
        for name, title, team, _ in fitted_teams():
            for kind, save, read in (
                ("no pickle", team.save, load),
                ("joblib", lambda file, team=team: joblib.dump(team, file), joblib.load),
            ):
                spent = np.array([[clocked(save, file), clocked(read, file)] for _ in range(10)])
                rows.append(
                    [name, title, kind, f"{file.stat().st_size / 1000:.0f}", *np.median(spent, axis=0).round(1)]
                )
    table("Files", ["deferrer", "classifier", "format", "kB", "ms to write and check", "ms to read"], rows)


def clocked(function, *args):
    """Milliseconds of one call."""
    start = time.perf_counter()
    function(*args)
    return 1000 * (time.perf_counter() - start)


if __name__ == "__main__":
    run({"latency": latency, "files": files}, "Serving: latency and files")
