"""Many experts with bounds on the workload, so that the best expert cannot decide all items."""

import warnings

import numpy as np

from .._curves import fit, team_point
from .._methods import METHODS
from .._plan import Experiment
from .._runner import Cell
from .._tables import markdown, mean, names, select, spread, yes
from .._worlds import SETS

_COVERAGE, _TIMES = 0.5, 2.0
_SIZES = (25, 50)
_BOUNDABLE = (
    "groups",
    "single experts, our gate",
    "clusters, hard",
    "clusters, soft",
    "random expert",
    "probabilistic",
    "confidence",
)


def cells(plan):
    """All methods that accept a bound on every expert."""
    sets = ("digits, 100 experts",) if plan.quick else ("digits, 100 experts", "cifar10, 100 experts")
    sizes = _SIZES[:1] if plan.quick else _SIZES
    return [
        Cell("bounded", d, size, seed, m) for d in sets for seed in plan.seeds for size in sizes for m in _BOUNDABLE
    ]


def measure(cells):
    """Accuracy at coverage .5 if no expert serves more than twice an even share of the deferred items."""
    dataset = SETS[cells[0].dataset]
    world = dataset.build(cells[0].seed)
    bound = _TIMES * (1 - _COVERAGE) / world.n_experts
    for cell in cells:
        method = METHODS[cell.method]
        deferrer = method.build(world, **method.options).set_params(coverage=_COVERAGE, workload=(0.0, bound))
        data = world.labelled(world.identified(cell.size, dataset.same_items))
        seconds = fit(deferrer, data)
        X, y, answers = world.X[world.test], world.y[world.test], world.annotations[world.test]
        assigned = deferrer.assign_experts(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the classifier decides the overflow, as intended
            kept = deferrer.assign_experts(X, capacity=round(bound * len(X)), on_overflow="classifier")
        served = np.bincount(assigned[assigned >= 0], minlength=world.n_experts) / len(assigned)
        decided = np.where(kept < 0, deferrer.predict(X), answers[np.arange(len(y)), kept])
        coverage, accuracy = team_point(world, deferrer)
        yield {
            "accuracy": accuracy,
            "coverage": coverage,
            "busiest": float(np.max(served) / (bound / _TIMES)),
            "above": float(np.maximum(served - bound, 0).sum()),
            "kept": float(np.mean(decided == y)),
            "fit_seconds": seconds,
        }


def report(records):
    """Accuracies, the largest workload of an expert, and the best methods."""
    parts = []
    for dataset in names(records, "dataset"):
        sizes = names(records, "size", dataset=dataset)
        rows = []
        for method in names(records, "method"):
            row = [method]
            for size in sizes:
                where = {"dataset": dataset, "size": size, "method": method}
                row += [spread(select(records, "accuracy", **where)), mean(records, "above", **where)]
                row.append(spread(select(records, "kept", **where)))
            rows.append([*row, mean(records, "fit_seconds", dataset=dataset, method=method)])
        figures = [(f"accuracy, N'={s}", "work above the bound", "accuracy within capacity") for s in sizes]
        columns = ["method", *(c for of_size in figures for c in of_size), "seconds"]
        parts.append(markdown(f"Bounded workload, {dataset}", columns, rows, _NOTE))
        verdict = []
        for size in sizes:
            for figure, what in (("accuracy", "accuracy"), ("kept", "accuracy within capacity")):
                of = {m: mean(records, figure, dataset=dataset, size=size, method=m) for m in names(records, "method")}
                rival = max((m for m in of if m != "groups"), key=of.get)
                verdict.append([size, what, of["groups"], of[rival], rival, yes(of["groups"] >= of[rival])])
        columns = ["N'", "figure", "groups", "best rival", "which", "groups lead"]
        parts.append(markdown(f"Who leads under the bound, {dataset}", columns, verdict))
    return "\n".join(parts)


_NOTE = (
    f"Team accuracy at a requested coverage of {_COVERAGE} where nobody may serve more than {_TIMES:.0f} times an even "
    "share of the deferred items. Work above the bound: share of all unseen items that went, by `assign_experts`, to "
    "somebody beyond it; some of it is chance, since the bound is a handful of items. Within capacity: the same bound "
    "as the `capacity` of `assign_experts`, so that the classifier decides what an expert cannot take. Methods without "
    "workload bounds are left out."
)

BOUNDED = Experiment("Many experts under a workload bound", cells, measure, report)
