"""Calibration of the estimated correctness of experts: one-vs-all against softmax (Multi-L2D)."""

import numpy as np

from ...datasets import make_class_experts
from ...deferral import OneStageDeferral
from .._curves import fit
from .._plan import Experiment
from .._runner import Cell
from .._tables import markdown, names, paired, select, spread, standard_error, yes
from .._worlds import CALIBRATION_SETS
from . import _paper

_EXPERTS = (1, 4, 8, 12)
_CORRECTNESS = (0.2, 0.4, 0.6, 0.8, 0.95)
_SURROGATES = ("softmax", "ova")
_BINS = 15


def cells(plan):
    """Experts whose ability is the same on all items: several at .7, or four of several abilities."""
    settings = [f"{m} experts at 0.7" for m in _EXPERTS] + [f"4 experts at {p}" for p in _CORRECTNESS]
    sets = tuple(CALIBRATION_SETS)[:1] if plan.quick else tuple(CALIBRATION_SETS)
    return [
        Cell("calibration", dataset, 0, seed, f"{surrogate}, {setting}")
        for dataset in sets
        for seed in plan.seeds
        for setting in settings
        for surrogate in _SURROGATES
    ]


def measure(cells):
    """Expected calibration error on unseen rows, mean over experts."""
    X, y, train, test = CALIBRATION_SETS[cells[0].dataset](cells[0].seed)
    for cell in cells:
        surrogate, setting = cell.method.split(", ")
        n_experts, ability = setting.split(" experts at ")
        everything = [np.unique(y)] * int(n_experts)
        experts = make_class_experts(y, everything, p_in=float(ability), random_state=cell.seed).annotations
        model = OneStageDeferral(surrogate=surrogate, random_state=cell.seed)
        fit(model, {"X": X[train], "y": y[train], "annotations": experts[train]})
        estimates = model.predict_expert_correctness(X[test])
        right = experts[test] == y[test, None]
        yield {"ECE": float(np.mean([calibration_error(p, r) for p, r in zip(estimates.T, right.T, strict=True)]))}


def calibration_error(estimates, right, n_bins=_BINS):
    """Expected calibration error: mean over rows of the gap between estimate and frequency in bins of equal width."""
    place = np.minimum((estimates * n_bins).astype(int), n_bins - 1)
    total = np.bincount(place, minlength=n_bins)
    gaps = np.bincount(place, weights=estimates - right, minlength=n_bins)
    return float(np.abs(gaps).sum() / total.sum())


def report(records):
    """Errors by number and ability of the experts, and in how many cells one-vs-all is better."""
    parts = []
    for dataset in names(records, "dataset"):
        settings = list(dict.fromkeys(method.split(", ")[1] for method in names(records, "method", dataset=dataset)))
        rows, wins, gaps = [], [], []
        for setting in settings:
            errors = {s: select(records, "ECE", dataset=dataset, method=f"{s}, {setting}") for s in _SURROGATES}
            difference = np.subtract(errors["softmax"], errors["ova"])
            wins += (difference > 0).tolist()
            gaps += difference.tolist()
            row = [setting, *(spread(errors[s]) for s in _SURROGATES)]
            row.append(paired(errors["softmax"], errors["ova"]))
            count = int(setting.split(" ")[0])
            theirs = _paper.CALIBRATION.get(count) if setting.endswith("0.7") else None
            rows.append([*row, "" if theirs is None else f"{theirs[0]:.4f} / {theirs[1]:.4f}"])
        columns = ["experts", "softmax", "one-vs-all", "softmax - one-vs-all (standard error)",
                   "paper: CIFAR-10, softmax / one-vs-all"]  # fmt: skip
        parts.append(markdown(f"Calibration error of expert correctness, {dataset}", columns, rows))
        parts.append(
            markdown(
                f"One-vs-all is better calibrated, {dataset}",
                [
                    "mean difference (standard error)",
                    "cells where it is better",
                    "in the mean",
                    "in >= 80 % of the cells",
                ],
                [
                    [
                        f"{np.mean(gaps):.4f} ({standard_error(gaps):.4f})",
                        f"{np.mean(wins):.0%} of {len(wins)}",
                        yes(np.mean(gaps) > 0),
                        yes(np.mean(wins) >= 0.8),
                    ]
                ],
            )
        )
    return "\n".join(parts)


CALIBRATION = Experiment("Calibration of expert correctness (Multi-L2D)", cells, measure, report)
