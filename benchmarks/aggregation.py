"""Consensus from votes alone: every method on every crowd with votes of people, and how fast they are.

    python benchmarks/aggregation.py [TABLE ...] [--crowd-kit PYTHON] > benchmarks/results/aggregation.md

The real sets are found through SKLEARN_L2D_DATA. Speed is compared with crowd-kit in an environment of its own, whose
interpreter is given:

    python -m venv crowdkit && crowdkit/bin/pip install --no-deps crowd-kit==1.4.2
    crowdkit/bin/pip install numpy pandas scikit-learn tqdm attrs nltk pyarrow
"""

import argparse
import json
import resource
import subprocess
import tempfile
import time
import warnings
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from _consensus_trials import foretold, trials
from _report import cpu_seconds, in_a_process, table
from scipy.special import expit
from scipy.stats import rankdata, spearmanr

from sklearn_l2d import aggregation
from sklearn_l2d.aggregation._base import BaseAggregator
from sklearn_l2d.annotations import Votes, encode_votes
from sklearn_l2d.benchmark._machine import machine
from sklearn_l2d.datasets import list_crowds, load_crowd
from sklearn_l2d.metrics import consensus_accuracy

CROWDS = [name for name in list_crowds() if name.startswith("label_only_")]
# sets on which the default of `common` was not chosen
FEATURES = [
    "chexpert_readers_atelectasis",
    "chexpert_readers_cardiomegaly",
    "chexpert_readers_edema",
    "chexpert_readers_pleural_effusion",
    "cue_conflict",
    "labelme",
    "medical_relation_cause",
    "medical_relation_treat",
    "music_genre",
    "product_match",
    "recidivism_compas",
    "sentiment_polarity",
]
LABELS = [
    "model_vs_human",
    "nih_readers_airspace_opacity",
    "nih_readers_fracture",
    "nih_readers_nodule_or_mass",
    "nih_readers_pneumothorax",
    "recidivism_lsi_balanced",
    "recidivism_lsi_low",
]
GROUPS = {
    "the label-only crowds": CROWDS,
    "the crowds with features": FEATURES,
    "other crowds without features": LABELS,
}
COMMON = (0.0, 0.25, 0.5, 0.75, 1.0)
MORE = {
    "HierarchicalDawidSkene": [{"class_shares": "majority"}],
    "WeightedMajorityVote": [{"weights": "zero_based_skill"}],
    "DawidSkene": [
        {"model": "one_coin"},
        {"model": "one_coin", "class_prior": "uniform"},
        {"model": "confusion_vector"},
        {"class_prior": "uniform"},
        {"inference": "variational"},
    ],
}
FEW = 10  # answers to items of known truth from which an annotator's accuracy is known
LIMIT = 30, 8 << 30  # CPU seconds, and bytes of memory, for a method on a crowd
ROUNDS = 9  # after which the labels of crowd-kit's GLAD stand still
LEAST = 1e-6  # probability in a log-loss


def methods():
    """Unfitted methods of the package by their text: whatever takes votes on items."""
    found = {}
    for name in aggregation.__all__:
        cls = getattr(aggregation, name)
        if issubclass(cls, BaseAggregator):
            found |= {repr(method): method for method in (cls(**s) for s in [{}, *MORE.get(name, [])])}
    return found


def read(name, everybody=False):
    """Votes on the items of a crowd that have some, true classes, -1 where unknown, and whether they are known.

    The truth of chexpert_readers is the majority of five of the eight readers, who are left out but for `everybody`.
    """
    crowd = load_crowd(name)
    annotations, truth = crowd.annotations, np.asarray(crowd.y)
    if name.startswith("chexpert") and not everybody:
        annotations = annotations[:, [not reader.endswith("_gt") for reader in crowd.annotator_names]]
    votes = encode_votes(annotations)
    votes = votes.recode(np.union1d(votes.classes, np.unique(truth[truth >= 0])))
    answered = np.bincount(votes.item, minlength=len(votes)) > 0
    return votes.without_tasks()[answered], truth[answered]


def calibration_error(truth, proba):
    """Expected calibration error of the most probable class, in ten bins."""
    confidence, right = proba.max(1), proba.argmax(1) == truth
    place = np.minimum((confidence * 10).astype(int), 9)
    return np.abs(np.bincount(place, confidence - right)).sum() / len(truth)


FIGURES = {
    "shared": "Accuracy, tied classes sharing an item",
    "lowest": "Accuracy, ties to the lowest class",
    "log-loss": f"Log-loss, probabilities of at least {LEAST:g}",
    "calibration": "Expected calibration error, ten bins",
    "rank": f"Rank correlation of reliabilities with accuracy, of annotators with {FEW} known answers",
    "seconds": "CPU seconds of a fit",
}


def measure(method, votes, truth):
    """Figures of one method on one crowd."""
    known = truth >= 0
    seconds = cpu_seconds(lambda: method.fit(votes))
    proba = method.predict_proba(votes)
    lowest, shared = (
        consensus_accuracy(truth, proba, classes=votes.classes, ties=ties, unlabeled_label=-1)
        for ties in ("lowest", "shared")
    )
    right = known[votes.item] & (votes.classes[votes.label] == truth[votes.item])
    given = np.bincount(votes.annotator, known[votes.item], len(votes.annotators))
    accuracy = np.bincount(votes.annotator, right, len(votes.annotators)) / np.maximum(given, 1)
    told = given >= FEW
    code = np.searchsorted(votes.classes, truth[known])
    return {
        "shared": shared,
        "lowest": lowest,
        "log-loss": -np.log(np.maximum(proba[known, code], LEAST)).mean(),
        "calibration": calibration_error(code, proba[known]),
        "rank": spearmanr(method.annotator_accuracy_[told], accuracy[told]).statistic if told.sum() > 2 else np.nan,
        "seconds": seconds,
    }


def within(limit, function, *arguments):
    """What a function returns, in a process of its own, or in words why it returned nothing."""
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)

    def work():
        resource.setrlimit(resource.RLIMIT_CPU, (limit[0], limit[0]))
        resource.setrlimit(resource.RLIMIT_AS, (limit[1], limit[1]))
        try:
            there.send(function(*arguments))
        except (ValueError, MemoryError) as error:
            there.send(str(error) or "more than 8 GB")

    process = context.Process(target=work)
    process.start()
    there.close()
    try:
        result = here.recv()
    except EOFError:
        result = f"not fitted within {limit[0]} CPU seconds"
    process.join()
    return result


def crowds(_):
    """Every method on every crowd."""
    found, left_out, every = methods(), [], {}
    for title, names in GROUPS.items():
        figures = {}
        for crowd in names:
            votes, truth = read(crowd)
            for name, method in found.items():
                result = within(LIMIT, measure, method, votes, truth)
                if isinstance(result, str):
                    left_out.append([name, crowd, result])
                else:
                    figures[name, crowd] = result
        summary(f"Means over {title}", found, names, figures)
        for figure, what in FIGURES.items():
            rows = [[name, *(figures.get((name, c), {}).get(figure, np.nan) for c in names)] for name in found]
            columns = ["method", *(crowd.removeprefix("label_only_") for crowd in names)]
            table(f"{what}, on {title}", columns, rows)
        every |= figures
    summary("Means over the label-only crowds and those with features", found, CROWDS + FEATURES, every)
    table("Not fitted", ["method", "crowd", "reason"], left_out)


def summary(title, found, names, figures):
    """A row per method, by the mean rank of its accuracy among the methods that were fitted to all crowds."""
    by_figure = {
        figure: {name: np.array([figures.get((name, c), {}).get(figure, np.nan) for c in names]) for name in found}
        for figure in FIGURES
    }
    shared, lowest = by_figure["shared"], by_figure["lowest"]
    everywhere = [name for name in found if not np.isnan(shared[name]).any()]
    ranks = rankdata(-np.array([shared[name] for name in everywhere]).round(6), axis=0).mean(1)
    mean_rank = dict(zip(everywhere, ranks, strict=True))
    rows = []
    for name in sorted(found, key=lambda name: mean_rank.get(name, 99)):
        if np.isnan(shared[name]).all():
            continue
        above = [of[name] - of["MajorityVote()"] for of in (shared, lowest)]
        rows.append(
            [name, int((~np.isnan(shared[name])).sum()), mean_rank.get(name, ""), f"{np.nanmean(above[0]):+.4f}"]
            + [f"{np.nanmin(gain):+.4f}" for gain in above]
            + [np.nanmean(by_figure[figure][name]) for figure in ("log-loss", "calibration", "rank", "seconds")]
        )
    columns = ["crowds", "mean rank", "accuracy above majority", "least of these", "with ties to the lowest class"]
    table(title, ["method", *columns, "log-loss", "calibration error", "rank correlation", "CPU s"], rows)


def common(_):
    """The one number of the recommended method that was chosen on crowds, and what it is worth on others."""
    gains = {}
    for crowd in CROWDS + FEATURES + LABELS:
        votes, truth = read(crowd)

        def accuracy(method, votes=votes, truth=truth):
            proba = method.fit(votes).predict_proba(votes)
            return consensus_accuracy(truth, proba, classes=votes.classes, ties="shared", unlabeled_label=-1)

        majority = accuracy(aggregation.MajorityVote())
        gains[crowd] = [accuracy(aggregation.HierarchicalDawidSkene(common=c)) - majority for c in COMMON]
    rows = []
    for title, names in GROUPS.items():
        gain = np.array([gains[name] for name in names])
        for k, c in enumerate(COMMON):
            rows.append([title, c, gain[:, k].mean(), f"{gain[:, k].min():+.4f}", names[gain[:, k].argmin()]])
    gain = np.array([gains[name] for name in CROWDS])
    left_out = []
    for i in range(len(CROWDS)):  # chosen on the others: never far below the majority, then the largest mean
        rest = np.delete(gain, i, axis=0)
        short = np.minimum(rest.min(0) + 0.005, 0)
        left_out.append(gain[i, np.lexsort((-rest.mean(0), -short))[0]])
    worst = int(np.argmin(left_out))
    rows.append(["label-only, chosen on all but one", "", np.mean(left_out), f"{left_out[worst]:+.4f}", CROWDS[worst]])
    table(
        "HierarchicalDawidSkene by `common`: accuracy above that of the majority, tied classes sharing an item",
        ["crowds", "common", "mean", "least", "where"],
        rows,
    )


def label_shares(proba):
    """Shares of the classes among the labels, where tied classes share an item."""
    best = np.isclose(proba, proba.max(1, keepdims=True))
    return (best / best.sum(1, keepdims=True)).mean(0)


def drift(_):
    """What was tried to keep the recommended method at the majority, and what votes tell of the shares of classes."""
    worlds = {crowd: read(crowd) for crowd in CROWDS + FEATURES + LABELS}
    worlds |= {f"{crowd}, all readers": read(crowd, everybody=True) for crowd in FEATURES[:4]}
    learnt, kept = (aggregation.HierarchicalDawidSkene(class_shares=shares) for shares in (None, "majority"))
    gains, told = {}, []
    for crowd, (votes, truth) in worlds.items():
        shares = np.bincount(np.searchsorted(votes.classes, truth[truth >= 0]), minlength=len(votes.classes)) + 1e-6
        proba = {name: method(votes) for name, method in trials(shares / shares.sum()).items()}
        accuracy = {
            name: consensus_accuracy(truth, of, classes=votes.classes, ties="shared", unlabeled_label=-1)
            for name, of in proba.items()
        }
        gains[crowd] = {name: of - accuracy["MajorityVote()"] for name, of in accuracy.items()}
        before, after = (label_shares(proba[name]) for name in list(proba)[:2])
        row = [crowd.removeprefix("label_only_"), np.abs(after - before).sum() / 2]
        for one, other in zip(foretold(learnt, votes), foretold(kept, votes), strict=True):
            difference = one - other
            error = difference.std() / np.sqrt(len(difference))
            row += [f"{difference.mean():+.4f}", f"{difference.mean() / error:+.1f}" if error else ""]
        shown = list(proba)[1], *list(proba)[-3:]
        told.append(row + [f"{gains[crowd][name]:+.4f}" for name in shown])
    groups, rows = GROUPS | {"chexpert, all readers": list(worlds)[-4:]}, []
    for name in list(proba)[1:]:
        row = [name]
        for of in groups.values():
            gain = np.array([gains[crowd][name] for crowd in of])
            row += [f"{gain.mean():+.4f}", f"{gain.min():+.4f}", of[gain.argmin()].removeprefix("label_only_")]
        rows.append(row)
    columns = [part for title in groups for part in (f"{title}: mean", "least", "where")]
    table("What was tried to stay at the majority: accuracy above it", ["method", *columns], rows)
    columns = ["agreement of answers left out", "in standard errors", "their log-likelihood", "in standard errors"]
    table(
        "Shares of classes that are learnt, beside those of the majority: what votes tell, and accuracy above it",
        ["crowd", "labels moved", *columns, *shown],
        told,
    )


def simulate(n_items, n_votes, n_annotators, n_classes, random_state=0):
    """Votes of annotators with confusion matrices of their own, and the truth."""
    rng = np.random.default_rng(random_state)
    truth = rng.integers(n_classes, size=n_items)
    steps = rng.integers(1, n_annotators // n_votes, size=(n_items, n_votes))
    who = (rng.integers(n_annotators, size=(n_items, 1)) + steps.cumsum(1)) % n_annotators
    who.sort(axis=1)
    confusion = rng.dirichlet(np.ones(n_classes), (n_annotators, n_classes)) / 2 + np.eye(n_classes) / 2
    cumulated = confusion[who, truth[:, None], :-1].cumsum(2)
    label = (rng.random((n_items, n_votes, 1)) > cumulated).sum(2)
    item = np.repeat(np.arange(n_items), n_votes)
    return Votes(item, who.ravel(), label.ravel(), n_items, np.arange(n_classes), np.arange(n_annotators)), truth


RIVAL = """
import json, resource, sys, time, warnings
import numpy as np, pandas as pd
warnings.simplefilter("ignore")
from crowdkit import aggregation
name, source, target, settings = sys.argv[1:]
stored = np.load(source)
frame = pd.DataFrame({"task": stored["item"], "worker": stored["who"], "label": stored["label"]})
method = getattr(aggregation, name)(**json.loads(settings))
start = time.process_time()
labels = method.fit_predict(frame)
seconds = time.process_time() - start
np.save(target, labels.sort_index().to_numpy())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps([seconds, peak, getattr(method, "loss_history_", [])]))
"""


def rival(python, name, votes, limit=300, **settings):
    """Labels, CPU seconds, peak GB and the objective by rounds of a method of crowd-kit, or why there are none."""
    if python is None:
        return "pass --crowd-kit PYTHON"
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "votes.npz", Path(folder) / "labels.npy"
        np.savez(source, item=votes.item, who=votes.annotator, label=votes.label)
        call = [python, "-c", RIVAL, name, str(source), str(target), json.dumps(settings)]
        try:
            done = subprocess.run(call, capture_output=True, text=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return f"more than {limit} s"
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["killed"])[-1].rpartition("Error: ")[2]
        return np.load(target), *json.loads(done.stdout.splitlines()[-1])


def fitted(name, settings, sizes):
    """Labels, CPU seconds of `fit` and `predict`, peak GB, iterations and accuracy of a method on simulated votes."""
    warnings.simplefilter("ignore")
    votes, truth = simulate(*sizes)
    method = getattr(aggregation, name)(**settings)
    start = time.process_time()
    labels = method.fit(votes).predict(votes)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return labels, seconds, peak, method.n_iter_, float(np.mean(labels == truth))


def speed(python):
    """Beside crowd-kit."""
    sizes = (50_000, 5, 500, 3)
    votes, truth = simulate(*sizes)
    estimated, rows, labels_of = {"difficulty": "estimated"}, [], {}
    rivals = {name: rival(python, name, votes) for name in ("DawidSkene", "GLAD", "MMSR")}
    for name, settings in (("DawidSkene", {}), ("GLAD", {}), ("GLAD", estimated), ("MMSR", {})):
        method = repr(getattr(aggregation, name)(**settings))
        labels, seconds, peak, n_iter, accuracy = in_a_process(fitted, name, settings, sizes)
        labels_of[method], row = labels, [method, seconds, peak, n_iter, f"{accuracy:.4f}"]
        found = rivals[name]
        if isinstance(found, str):
            rows.append([*row, found])
            continue
        theirs, their_seconds, their_peak, _ = found
        ratio, same = their_seconds / seconds, np.mean(theirs == labels)
        rows.append([*row, their_seconds, their_peak, f"{np.mean(theirs == truth):.4f}", f"{ratio:.1f}", f"{same:.4f}"])
    table(
        "50,000 items with 5 votes each, 500 annotators, 3 classes, beside crowd-kit 1.4.2, both with their defaults",
        [
            "method",
            "CPU s",
            "peak GB",
            "iterations",
            "accuracy",
            "crowd-kit: CPU s",
            "peak GB",
            "accuracy",
            "times as fast",
            "share of equal labels",
        ],
        [[*row, *[""] * (10 - len(row))] for row in rows],
    )
    # its objective leaves out the entropy of the truth and falls while the likelihood rises, which ends it by default
    to_the_end = rival(python, "GLAD", votes, 1800, n_iter=ROUNDS, tol=-1)
    by_default, ours = rivals["GLAD"], {name: labels for name, labels in labels_of.items() if name.startswith("GLAD")}
    if isinstance(by_default, str) or isinstance(to_the_end, str):
        return
    compared = {"crowd-kit, defaults": by_default[0], f"crowd-kit, {ROUNDS} rounds": to_the_end[0], **ours}
    objective = [f"{value:.5f}" for value in to_the_end[3]]
    table(
        "GLAD on the same votes: share of equal labels",
        ["labels", "rounds", *list(compared)[:2], "accuracy"],
        [
            [
                name,
                {"crowd-kit, defaults": len(by_default[3]), f"crowd-kit, {ROUNDS} rounds": ROUNDS}.get(name, ""),
                *(f"{np.mean(labels == other):.4f}" for other in (by_default[0], to_the_end[0])),
                f"{np.mean(labels == truth):.4f}",
            ]
            for name, labels in compared.items()
        ],
    )
    print(f"\ncrowd-kit's objective by rounds, of which a rise below 1e-5 ends it by default: {', '.join(objective)}.")


def glad(python):
    """GLAD sums over the difficulty of items, or takes the most probable one, as the paper and crowd-kit do."""
    ways, rows = [aggregation.GLAD(), aggregation.GLAD(difficulty="estimated")], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        n_items, n_annotators, n_votes, n_classes = 10_000, 200, 5, 3
        truth, easiness = rng.integers(n_classes, size=n_items), np.exp(rng.normal(size=(n_items, 1)))
        who = np.sort(rng.random((n_items, n_annotators)).argsort(1)[:, :n_votes], axis=1)
        right = rng.random(who.shape) < expit(rng.normal(1, 1, n_annotators)[who] * easiness)
        wrong = (truth[:, None] + rng.integers(1, n_classes, size=who.shape)) % n_classes
        label, item = np.where(right, truth[:, None], wrong), np.repeat(np.arange(n_items), n_votes)
        names = np.arange(n_classes), np.arange(n_annotators)
        votes = Votes(item, who.ravel(), label.ravel(), n_items, *names)
        majority = np.mean(aggregation.MajorityVote().fit_predict(votes) == truth)
        figures = [measure(method, votes, truth) for method in ways]
        ours = [method.predict(votes) for method in ways]
        row = [seed, majority, *(of[figure] for figure in ("lowest", "log-loss") for of in figures)]
        found = rival(python, "GLAD", votes)
        if isinstance(found, str):
            rows.append([*row, found, "", "", "", ""])
            continue
        theirs, apart = found[0], found[0] != ours[0]
        hits = (np.mean(of[apart] == truth[apart]) for of in (ours[0], theirs))
        rows.append([*row, np.mean(theirs == truth), *(int((theirs != of).sum()) for of in ours), *hits])
    table(
        "GLAD on answers by its own model, 10,000 items with 5 answers by 200 people, 3 classes",
        [
            "seed",
            "accuracy: majority",
            "integrated",
            "estimated",
            "log-loss: integrated",
            "estimated",
            "accuracy: crowd-kit",
            "labels unlike crowd-kit's: integrated",
            "estimated",
            "right where integrated is unlike: integrated",
            "crowd-kit",
        ],
        rows,
    )
    rows, columns = [], ["shared", "log-loss", "calibration", "rank", "seconds"]
    for title, crowds_of in GROUPS.items():
        found = [[measure(method, *read(crowd)) for method in ways] for crowd in crowds_of]
        values = np.array([[[of[figure] for of in two] for figure in columns] for two in found])
        # ranks are undefined where too few annotators have known answers
        rows += [
            [crowd.removeprefix("label_only_"), *two.ravel()] for crowd, two in zip(crowds_of, values, strict=True)
        ]
        rows.append([f"mean of {title}", *np.nanmean(values, axis=0).ravel()])
    names = ["accuracy", "log-loss", "calibration error", "rank correlation", "CPU s"]
    table(
        "GLAD with difficulties that are integrated, and estimated",
        ["crowd", *(part for name in names for part in (f"{name}: integrated", "estimated"))],
        rows,
    )


def ties(_):
    """What the rule of the lowest class gives the majority, by how many votes are tied."""
    rows = []
    for crowd in CROWDS:
        votes, truth = read(crowd)
        proba, known = aggregation.MajorityVote().fit(votes).predict_proba(votes), truth >= 0
        best = np.isclose(proba, proba.max(1, keepdims=True))
        code = np.searchsorted(votes.classes, np.maximum(truth, 0))
        hit, tied = best[np.arange(len(best)), code] & known, (best.sum(1) > 1) & known
        lowest, fair = (best.argmax(1) == code) & tied, (hit / best.sum(1))[tied]
        gain, spread = lowest.sum() - fair.sum(), np.sqrt((fair * (1 - fair)).sum())
        numbers = int(known.sum()), int(tied.sum()), int(lowest.sum()), fair.sum()
        rule = f"{gain / known.sum():+.4f}", f"{gain / spread:+.1f}" if spread else ""
        rows.append([crowd.removeprefix("label_only_"), *numbers, *rule])
    columns = ["crowd", "items", "tied", "right by the lowest class", "expected by lot", "accuracy gained by the rule"]
    table("Majority vote where classes are tied", [*columns, "in standard deviations of lots"], rows)


def size(_):
    """Ten million votes."""
    sizes = (2_000_000, 5, 5_000, 3)
    rows = []
    for name in ("DawidSkene", "HierarchicalDawidSkene"):
        _, seconds, peak, n_iter, accuracy = in_a_process(fitted, name, {}, sizes)
        rows.append([name, seconds, peak, n_iter, f"{accuracy:.4f}"])
    table(
        "10 million votes on 2 million items by 5,000 annotators, 3 classes: fit and predict; memory with the votes",
        ["method", "CPU s", "peak GB", "iterations", "accuracy"],
        rows,
    )


TABLES = {"crowds": crowds, "ties": ties, "common": common, "drift": drift, "speed": speed, "glad": glad, "size": size}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Consensus from votes alone")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"any of {', '.join(TABLES)}; default: all")
    parser.add_argument("--crowd-kit", metavar="PYTHON", help="interpreter of an environment with crowd-kit 1.4.2")
    args = parser.parse_args()
    unknown = set(args.tables) - set(TABLES)
    if unknown:
        parser.error(f"unknown tables {sorted(unknown)}; choose from {', '.join(TABLES)}")
    warnings.simplefilter("ignore")
    print(f"# Consensus from votes alone\n\n{machine('one thread')}")
    for name in args.tables or TABLES:
        TABLES[name](args.crowd_kit)
