"""Classifiers learnt from votes, beside a consensus and then a net, and what an epoch of them costs.

    python benchmarks/crowd.py [TABLE ...] [--seeds N] > results/crowd.md

`accuracy` is that of the classifier alone on items of known truth; those of the fit have votes only. `epochs` is the
time of an epoch against that of a plain net. The real sets are found through
SKLEARN_L2D_DATA. `activeml` puts the classifiers of scikit-activeml beside ours where ACTIVEML_PYTHON names the
interpreter of an environment that has it:

    python -m venv activeml && activeml/bin/pip install scikit-activeml skorch torch
"""

import os
import subprocess
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
from _report import run, table
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sklearn_l2d._torch._net import Net
from sklearn_l2d.aggregation import DawidSkene, MajorityVote
from sklearn_l2d.annotations import Votes, encode_votes
from sklearn_l2d.benchmark._tables import yes
from sklearn_l2d.crowd import (
    AggNetClassifier,
    CCEMClassifier,
    COINNet,
    CoNALClassifier,
    CrowdLayerClassifier,
    GeoCrowdNet,
    InstanceDependentCrowdNet,
    MaxMIGClassifier,
    NetClassifier,
    RaykarClassifier,
    TraceRegClassifier,
    UnionNet,
)
from sklearn_l2d.datasets import load_crowd

METHODS = {
    "Raykar, logistic regression": RaykarClassifier(LogisticRegression(C=0.01)),
    "AggNet": AggNetClassifier(),
    "CCEM": CCEMClassifier(),
    "GeoCrowdNet(F)": GeoCrowdNet("F"),
    "GeoCrowdNet(W)": GeoCrowdNet("W"),
    "TraceReg": TraceRegClassifier(),
    "CrowdLayer, matrix": CrowdLayerClassifier("matrix"),
    "CrowdLayer, scale and bias": CrowdLayerClassifier("scale_bias"),
    "CoNAL": CoNALClassifier(),
    "UnionNet": UnionNet(),
    "Max-MIG": MaxMIGClassifier(),
    "COINNet": COINNet(),
    "instance dependent": InstanceDependentCrowdNet(),
}
DEFAULT = "AggNet"  # which the guide begins with


def real(name):
    """Votes on the items of a split, and the items of another."""

    def load(seed):
        crowd = load_crowd(name)
        heard = crowd.counts.sum(1) > 0
        if name == "sentiment_polarity":
            order = np.random.default_rng(seed).permutation(np.flatnonzero(crowd.y >= 0))
            test, train = np.split(order, [1500])
            train = train[heard[train]][:2000]
        else:
            train, test = np.flatnonzero(crowd.split == 0), np.flatnonzero(crowd.split == {"labelme": 2}.get(name, 1))
        votes = encode_votes(crowd.annotations[train], classes=np.arange(len(crowd.target_names)))
        scaler = StandardScaler().fit(crowd.X[train])
        return scaler.transform(crowd.X[train]), crowd.y[train], votes, scaler.transform(crowd.X[test]), crowd.y[test]

    return load


def cifar10(seed, n_train=2000, n_people=20):
    """Simulated people, right on 15 to 85 % of the items with errors of their own, who label a tenth each."""
    crowd, rng = load_crowd("cifar10"), np.random.default_rng(seed)
    train, test = rng.permutation(50_000)[:n_train], 50_000 + rng.permutation(10_000)[:2000]
    accuracy = np.clip(rng.uniform(0.15, 0.85, (n_people, 1)) + rng.normal(scale=0.1, size=(n_people, 10)), 0.05, 0.95)
    confusion = rng.dirichlet(np.full(10, 0.5), (n_people, 10)) * ~np.eye(10, dtype=bool)
    confusion *= ((1 - accuracy) / confusion.sum(2))[:, :, None]
    confusion += accuracy[:, :, None] * np.eye(10)
    y = crowd.y[train]
    draws = rng.random((n_train, n_people, 1))
    labels = (draws > confusion[:, y].transpose(1, 0, 2).cumsum(2)[:, :, :-1]).sum(2)
    votes = encode_votes(np.where(rng.random(labels.shape) < 0.1, labels, -1), classes=np.arange(10))
    scaler = StandardScaler().fit(crowd.X[train])
    return scaler.transform(crowd.X[train]), y, votes, scaler.transform(crowd.X[test]), crowd.y[test]


SIZES = (64,), (512, 512)  # hidden units
N_TURNS = 12  # of the nets whose epochs are timed
LARGEST_RATIO, EXEMPT = 1.3, ("Max-MIG", "COINNet")  # of the time of the plain net, at the larger size

SETS = {
    "labelme": real("labelme"),
    "music_genre": real("music_genre"),
    "sentiment_polarity": real("sentiment_polarity"),
    "cifar10, simulated": cifar10,
}


def accuracy(seeds):
    """Accuracy on new items, by set and method."""
    found = {name: {} for name in SETS}
    for name, load in SETS.items():
        for seed in seeds:
            X, y, votes, X_test, y_test = load(seed)
            heard = np.diff(votes.starts) > 0
            net = NetClassifier(random_state=seed)
            plain = {
                "majority, then net": MajorityVote().fit_predict(votes),
                "Dawid and Skene, then net": DawidSkene().fit_predict(votes),
                "truth": y,
            }
            models = {method: clone(net).fit(X[heard], labels[heard]) for method, labels in plain.items()}
            for method, labels in plain.items():
                linear = method.removesuffix(", then net") + ", then logistic regression"
                models[linear] = LogisticRegression(C=0.01).fit(X[heard], labels[heard])
            for method, model in METHODS.items():
                seeded = {"random_state": seed} if "random_state" in model.get_params() else {}
                models[method] = clone(model).set_params(**seeded).fit(X, annotations=votes)
            for method, model in models.items():
                found[name].setdefault(method, []).append(model.score(X_test, y_test))
    rows, leads, rival = [], {}, {name: np.mean(of["Dawid and Skene, then net"]) for name, of in found.items()}
    for method in next(iter(found.values())):
        means = {name: np.mean(of[method]) for name, of in found.items()}
        leads[method] = ahead = [means[name] - rival[name] for name in SETS]
        rows.append(
            [method, *(f"{mean:.3f}" for mean in means.values()), f"{np.mean(ahead):+.3f}", f"{min(ahead):+.3f}"]
        )
    columns = ["method", *SETS, "mean lead on Dawid and Skene, then net", "smallest lead"]
    table("Accuracy on new items, from votes alone", columns, rows)
    never_below, ahead = yes(min(leads[DEFAULT]) >= -0.005), yes(np.mean(leads[DEFAULT]) > 0)
    print(f"\n{DEFAULT}, the default, is nowhere below Dawid and Skene, then net, by more than .005: {never_below}.")
    print(f"It is ahead in the mean: {ahead}.")


RIVALS = {  # methods of scikit-activeml, and how their nets are trained for 60 epochs
    "AnnotatorLogisticRegression": ("none",),
    "CrowdLayerClassifier": ("sgd", "adam"),
    "AnnotMixClassifier": ("sgd", "adam"),
}


def activeml(seeds):
    """Accuracy on new items of scikit-activeml, beside the nearest methods of this package."""
    python = os.environ.get("ACTIVEML_PYTHON")
    if python is None:
        print("\nNo figures of scikit-activeml: ACTIVEML_PYTHON is not set.")
        return
    ours = {name: METHODS[name] for name in ("Raykar, logistic regression", "CrowdLayer, matrix", "Max-MIG")}
    ours["Raykar, logistic regression, C=1"] = RaykarClassifier(LogisticRegression(max_iter=500))  # as theirs
    rows = {f"{name}, {how}".removesuffix(", none"): [] for name, trainings in RIVALS.items() for how in trainings}
    rows |= {f"{name}, ours": [] for name in ours}
    for load in SETS.values():
        found = {name: [] for name in rows}
        for seed in seeds:
            X, _, votes, X_test, y_test = load(seed)
            for name, trainings in RIVALS.items():
                for how in trainings:
                    labels = labels_of_activeml(python, name, how, X, votes, X_test, seed)
                    found[f"{name}, {how}".removesuffix(", none")].append(np.mean(labels == y_test))
            for name, model in ours.items():
                model = clone(model)
                seeded = {"random_state": seed} if "random_state" in model.get_params() else {}
                model.set_params(**seeded).fit(X, annotations=votes)
                found[f"{name}, ours"].append(model.score(X_test, y_test))
        for name, scores in found.items():
            rows[name].append(f"{np.mean(scores):.3f}")
    table(
        "Accuracy on new items, beside scikit-activeml: nets of 64 units, 60 epochs, by SGD as ours or by Adam",
        ["method", *SETS],
        [[name, *scores] for name, scores in rows.items()],
    )


def labels_of_activeml(python, name, how, X, votes, X_test, seed):
    """What a classifier of scikit-activeml predicts in its own environment; no label where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "votes.npz", Path(folder) / "labels.npy"
        answers = {"item": votes.item, "who": votes.annotator, "label": votes.label, "n_people": votes.shape[1]}
        np.savez(source, X=X, **answers, n_classes=len(votes.classes), X_test=X_test, seed=seed)
        script = Path(__file__).with_name("_activeml.py")
        done = subprocess.run([python, script, name, how, source, target], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"\n{name}, {how}: {(done.stderr.strip().splitlines() or ['killed'])[-1]}")
            return np.full(len(X_test), -1)
        return np.load(target)


def epochs(seeds, n_items=5000, n_people=100, n_votes=10, n_classes=10):
    """Least time of the processor for an epoch, against a plain net on as many items."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_items)
    X = rng.normal(size=(n_items, 64)) + 2 * np.eye(n_classes, 64)[y]
    item = np.repeat(np.arange(n_items), n_votes)
    who = rng.random((n_items, n_people)).argsort(1)[:, :n_votes].ravel()
    label = np.where(rng.random(len(item)) < 0.7, y[item], rng.integers(n_classes, size=len(item)))
    votes = Votes(item, who, label, n_items, np.arange(n_classes), np.arange(n_people))
    names = [name for name, model in METHODS.items() if "max_epochs" in model.get_params()]
    seconds = {(name, size): [] for name in ["plain net", *names] for size in SIZES}
    train_epoch = Net.train_epoch

    def timed(net, rows):  # the duration in `history_` would count other jobs on the machine, too
        start = time.process_time()
        result = train_epoch(net, rows)
        seconds[name, size].append(time.process_time() - start)
        return result

    for _ in range(N_TURNS):
        for name, size in seconds:
            settings = {"hidden_layer_sizes": size, "max_epochs": 3, "random_state": 0}
            with patch.object(Net, "train_epoch", timed):
                if name == "plain net":
                    NetClassifier(**settings).fit(X, y)
                else:
                    clone(METHODS[name]).set_params(**settings).fit(X, annotations=votes)
    fastest = {key: min(times) for key, times in seconds.items()}
    rows = [
        [name, *(f"{1000 * fastest[name, size]:.0f} ms" for size in SIZES)]
        + [f"{fastest[name, size] / fastest['plain net', size]:.2f}" for size in SIZES]
        for name in ["plain net", *names]
    ]
    title = f"Time of an epoch: {n_items} items, {n_votes} answers each by {n_people} people, {n_classes} classes"
    table(title, ["net", *map(str, SIZES), *(f"to the plain net, {size}" for size in SIZES)], rows)
    size, asked = SIZES[-1], [name for name in names if name not in EXEMPT]
    slow = [name for name in asked if fastest[name, size] > LARGEST_RATIO * fastest["plain net", size]]
    print(f"\nThe least time of the processor of {3 * N_TURNS} epochs, of all nets in turn.", end=" ")
    print(f"With {size}, {len(asked) - len(slow)} of {len(asked)} take at most {LARGEST_RATIO} of the time", end=" ")
    print(f"of the plain net ({' and '.join(EXEMPT)} aside)" + (f"; not {', '.join(slow)}." if slow else "."))


if __name__ == "__main__":
    run({"accuracy": accuracy, "activeml": activeml, "epochs": epochs}, "Classifiers learnt from votes")
