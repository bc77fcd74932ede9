"""Fifty true labels, with and without the archive's votes: ``python benchmarks/archive.py``.

For each set and seed, 50 random items of the pool have a true label and the answers of the experts who gave some; all
others that anybody voted on are the archive, up to 1,000 items. `PanelDeferral` and `ConfidenceDeferral` with all
defaults are fitted to the labelled items, once with the archive's features only (`X_unlabeled`) and once with its
votes, too (`votes_unlabeled`). They decide up to 1,500 test items with the recorded answers: half an answer and one
answer per item, joined with the classifier. The options of `CountsClassifier` were chosen on the seeds 100 to 102, by
held-out votes and test accuracy.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from sklearn_l2d.benchmark._tables import markdown
from sklearn_l2d.benchmark._worlds import SETS
from sklearn_l2d.benchmark.experiments._answers import answers_of, spend
from sklearn_l2d.deferral import ConfidenceDeferral, PanelDeferral

NAMES = (
    "digits, 6 experts",
    "cifar10, 6 experts",
    "cue_conflict",
    "music_genre",
    "sentiment_polarity",
    "medical_relation_treat",
    "product_match",
    "recidivism_compas",
)
BUDGETS = 0.5, 1.0
FIGURES = ("classifier", *(f"{name} {b:g}" for name in ("panel", "confidence") for b in BUDGETS))
N_LABELLED, N_ARCHIVE, N_TEST = 50, 1000, 1500
NOTE = (
    "Accuracy, mean of the seeds, with the paired gain and its standard error. Archive: items and votes per item. "
    "Asked: with votes, the share of the test items that `ConfidenceDeferral(coverage=0.5)` leaves to the classifier, "
    "and the answers per test item of `PanelDeferral(answers=0.5)`, both calibrated on the archive."
)
RESULTS = Path(__file__).parent / "results" / "archive.md"


def parts_of(world):
    """Labelled, archived and test rows of a world."""
    rng = np.random.default_rng(world.seed)
    heard = world.pool[(world.annotations[world.pool] >= 0).any(1)]
    labelled = rng.permutation(heard)[:N_LABELLED]
    others = np.setdiff1d(np.union1d(world.archive, world.pool), labelled)
    others = rng.permutation(others[world.counts[others].sum(1) > 0])[:N_ARCHIVE]
    test = world.test[(world.annotations[world.test] >= 0).any(1)]
    return labelled, others, rng.permutation(test)[:N_TEST]


def by_confidence(team, X, annotations, y):
    """Accuracies of both budgets: the least sure items go to the likeliest to be right of those who answered."""
    nobody = np.full_like(annotations, -1)
    right = np.where(annotations >= 0, team.predict_expert_correctness(X), -np.inf)
    sure = team.predict_team_proba(X, nobody).max(1) - right.max(1)
    for budget in BUDGETS:
        asked = spend(right.argmax(1)[:, None], sure, round(budget * len(y)))
        yield np.mean(team.predict_team(X, answers_of(annotations, asked), decision="combine") == y)


def by_panel(team, X, annotations, y):
    """Accuracies of both budgets, on the line between what is achieved around them."""
    grid = np.arange(0.1, 1.6, 0.1)
    replays = [t.replay(X, annotations) for t in team.answers_path(grid, X, available=annotations >= 0)]
    asked = [(r.asked >= 0).sum(1).mean() for r in replays]
    order = np.argsort(asked)
    right = np.array([np.mean(r.labels == y) for r in replays])
    return np.interp(BUDGETS, np.array(asked)[order], right[order])


def measure(name, seed):
    """Figures of a set and seed, without and with the archive's votes, and what was asked of the panel."""
    warnings.simplefilter("ignore")  # people without any of the 50 labels
    torch.set_num_threads(1)
    world = SETS[name].build(seed)
    labelled, others, test = parts_of(world)
    X, y, annotations = world.X[test], world.y[test], world.annotations[test]
    data = {
        "X": world.X[labelled],
        "y": world.y[labelled],
        "annotations": world.annotations[labelled],
        "X_unlabeled": world.X[others],
    }
    rows = []
    with threadpool_limits(1):
        for votes in (None, pd.DataFrame(world.counts[others], columns=np.unique(world.y))):
            team = ConfidenceDeferral(coverage=0.5, random_state=seed).fit(**data, votes_unlabeled=votes)
            panel = PanelDeferral(answers=0.5, random_state=seed).fit(**data, votes_unlabeled=votes)
            figures = [np.mean(team.predict(X) == y), *by_panel(panel, X, annotations, y)]
            figures += by_confidence(team, X, annotations, y)
            rows.append([*figures, np.mean(team.predict_deferral(X) == -1), panel.consult(X).sum(1).mean()])
    return name, seed, len(others), world.counts[others].sum(1).mean(), rows


def table(results):
    """Markdown of the measurements: means without and with votes, and the paired gain with its standard error."""
    rows = []
    for name in NAMES:
        of_set = [r for r in results if r[0] == name]
        if not of_set:
            continue
        figures = np.array([r[-1] for r in of_set])
        gain = figures[:, 1] - figures[:, 0]
        error = gain.std(0, ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.full(gain.shape[1], np.nan)
        size, votes = np.mean([r[2:4] for r in of_set], axis=0)
        parts = zip(*figures.mean(0), gain.mean(0), error, strict=True)
        cells = [f"{a:.3f} -> {b:.3f} ({g:+.3f}, {e:.3f})" for a, b, g, e in parts]
        asked = " ".join(f"{value:.2f}" for value in figures[:, 1].mean(0)[-2:])
        rows.append([name, f"{size:.0f} x {votes:.1f}", *cells[: len(FIGURES)], asked])
    columns = ["set", "archive", *FIGURES, "asked"]
    return markdown("50 true labels, without -> with the archive's votes", columns, rows, NOTE, level=1)


def main():
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=NAMES)
    parser.add_argument("--n-jobs", type=int, default=1)
    args = parser.parse_args()
    tasks = [delayed(measure)(name, seed) for seed in range(args.seeds) for name in args.sets]
    results = []
    for result in Parallel(n_jobs=args.n_jobs, return_as="generator_unordered")(tasks):
        results.append(result)
        print(result[:2], np.round(result[-1], 3).tolist(), file=sys.stderr, flush=True)
        RESULTS.write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
