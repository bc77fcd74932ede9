"""Missing annotations, and balanced and free workloads: tables and figures of PL2D."""

import numpy as np

from ...metrics import workload_distribution
from .._curves import COVERAGES, fit, fit_and_measure, team_point
from .._methods import MISSING_METHODS
from .._plan import Experiment
from .._runner import Cell
from .._tables import markdown, mean, names, select, spread, yes
from .._worlds import SETS
from . import _paper

_RATES = (0.0, 0.3, 0.5, 0.7)
_SIZE = 200


def cells(plan):
    """Every rate and method; balanced and free workload for the method of the paper."""
    sets = ("digits, 6 experts",) if plan.quick else ("digits, 6 experts", "cifar10, 6 experts")
    settings = [f"{method} @ {rate}" for rate in _RATES for method in MISSING_METHODS] + ["balanced", "free"]
    return [Cell("missing", d, _SIZE, seed, s) for d in sets for seed in plan.seeds for s in settings]


def measure(cells):
    """Results after annotations of the same items by all experts are dropped at random, never all of an item."""
    world = SETS[cells[0].dataset].build(cells[0].seed)
    complete = world.identified(_SIZE, same_items=True)
    for cell in cells:
        if cell.method in ("balanced", "free"):
            yield _workload(world, drop(complete, 0.5, world.seed), cell.method == "balanced")
            continue
        method, rate = cell.method.split(" @ ")
        data = world.labelled(drop(complete, float(rate), world.seed))
        yield fit_and_measure(world, MISSING_METHODS[method](world), data)


def drop(labels, rate, seed):
    """Annotations without a share of those of each expert; every item keeps at least one."""
    rng = np.random.default_rng(seed)
    order = rng.random(labels.shape)
    kept = order >= np.quantile(order, rate, axis=0)
    kept[np.arange(len(labels)), rng.integers(labels.shape[1], size=len(labels))] |= ~kept.any(1)
    return np.where(kept, labels, -1)


def _workload(world, labels, balanced):
    figures = {}
    for coverage in COVERAGES[1:-1]:
        share = (1 - coverage) / world.n_experts
        workload = (0.98 * share, min(1.0, 1.02 * share)) if balanced else None
        deferrer = MISSING_METHODS["latent"](world).set_params(coverage=coverage, workload=workload)
        fit(deferrer, world.labelled(labels))
        served = workload_distribution(deferrer.predict_deferral(world.X[world.test]), deferrer.selection_)[:-1]
        figures |= {
            f"accuracy@{coverage}": team_point(world, deferrer)[1],
            f"busiest@{coverage}": float(np.max(served) / max(np.sum(served), 1e-12)),
        }
    return figures


def report(records):
    """PL2D Table 1 and Figure 4."""
    parts = []
    for dataset in names(records, "dataset"):
        rows = []
        for rate in _RATES:
            row = [
                rate,
                *(spread(select(records, "area", dataset=dataset, method=f"{m} @ {rate}")) for m in MISSING_METHODS),
            ]
            for theirs in _paper.MISSING.values():
                row.append(
                    " / ".join(
                        f"{theirs[m][rate] / 100:.3f}" for m in ("naive", "semi-supervised", "MixMatch", "latent")
                    )
                )
            rows.append(row)
        columns = [
            "missing",
            *MISSING_METHODS,
            *(f"paper: {name}, naive / FixMatch / MixMatch / PL2D" for name in _paper.MISSING),
        ]
        parts.append(markdown(f"Area with missing annotations (PL2D Table 1), {dataset}, N'={_SIZE}", columns, rows))
        area = {m: mean(records, "area", dataset=dataset, method=f"{m} @ 0.5") for m in MISSING_METHODS}
        rivals = [m for m in ("naive", "semi-supervised") if m in area]
        parts.append(
            markdown(
                f"PL2D with half of the annotations, {dataset}",
                ["rival", "latent", "rival's area", "ahead"],
                [[m, area["latent"], area[m], yes(area["latent"] > area[m])] for m in rivals],
            )
        )
        seconds = [
            [m, mean(records, "fit_seconds", dataset=dataset, method=f"{m} @ 0.5"),
             *(hours.get(m, "") for hours in _paper.HOURS.values())]
            for m in MISSING_METHODS
        ]  # fmt: skip
        parts.append(
            markdown(
                f"Run times (PL2D Table 3), {dataset}, CPU seconds of a fit at rate .5",
                ["method", "seconds", *(f"paper: {name}, GPU hours" for name in _paper.HOURS)],
                seconds,
            )
        )
        columns = ["workload", *(f"coverage {c}" for c in COVERAGES[1:-1])]
        rows = [
            [
                f"{kind}, {name}",
                *(spread(select(records, f"{figure}@{c}", dataset=dataset, method=kind)) for c in COVERAGES[1:-1]),
            ]
            for kind in ("free", "balanced")
            for figure, name in (("accuracy", "accuracy"), ("busiest", "share of the busiest expert"))
        ]
        parts.append(markdown(f"Balanced against free workload (PL2D Fig. 4), {dataset}, half missing", columns, rows))
    return "\n".join(parts)


MISSING = Experiment("Missing annotations and workload (PL2D Table 1, Table 3, Fig. 4)", cells, measure, report)
