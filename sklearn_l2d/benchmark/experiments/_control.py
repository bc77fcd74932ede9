"""Requested and achieved coverage under several controls, and the scope of the constraint (PL2D Fig. 7)."""

import time
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..._numerics._gate_posterior import gate_posterior
from ...deferral import ClusterDeferral, RankedDeferral
from .._curves import COVERAGES, fit, team_point
from .._curves import measure as measure_curve
from .._plan import Experiment
from .._runner import Cell
from .._tables import markdown, names, select, spread
from .._worlds import SETS
from ._control_by_training import fit_at_cost, fit_with_penalty

_SET, _SIZE = "digits, 6 experts", 200
_REQUESTS = COVERAGES[1:-1]
_SCOPES = (20, 50, 100, "all")


def _gate(world, kind=ClusterDeferral, **options):
    return kind(world.behaviours(4), classifier=world.classifier, random_state=world.seed, **options)


def _by_training(gate, data, request):
    return _fitted(clone(gate).set_params(coverage=request), data)


def _by_ranking(gate, data, request):
    return _fitted(RankedDeferral(gate, coverage=request, random_state=gate.random_state), data)


def _by_cost(gate, data, request):
    return fit_at_cost(gate, data, (request, request))[0]


def _by_penalty(gate, data, request):
    return fit_with_penalty(gate, data, (request, request), penalty=10.0)


def _fitted(deferrer, data):
    fit(deferrer, data)
    return deferrer


# functions of an unfitted gate, the arguments of fit and a coverage that return a fitted deferrer
CONTROLS = {
    "constraint in training, calibrated": _by_training,
    "ranking afterwards": _by_ranking,
    "sweep of an expert cost": _by_cost,
    "coverage penalty": _by_penalty,
}


def cells(plan):
    """Every control, and every scope of the constraint."""
    settings = [*CONTROLS, *(f"constraint on {scope} rows" for scope in _SCOPES)]
    return [Cell("control", _SET, _SIZE, seed, s) for seed in plan.seeds for s in settings]


def measure(cells):
    """Achieved coverage and accuracy on unseen rows at every request; the area for every scope."""
    dataset = SETS[cells[0].dataset]
    world = dataset.build(cells[0].seed)
    data = world.labelled(world.identified(_SIZE, dataset.same_items))
    for cell in cells:
        if cell.method in CONTROLS:
            yield _controlled(world, data, CONTROLS[cell.method])
        else:
            yield _scoped(world, data, cell.method.split(" ")[2])


def _controlled(world, data, control):
    gate, figures, seconds = _gate(world), {}, 0.0
    for request in _REQUESTS:
        start = time.process_time()
        deferrer = control(gate, data, request)
        seconds += time.process_time() - start
        coverage, accuracy = team_point(world, deferrer)
        figures |= {f"error@{request}": coverage - request, f"accuracy@{request}": accuracy}
    return figures | {"fit_seconds": seconds / len(_REQUESTS)}


def _scoped(world, data, scope):
    n_rows = len(data["X"]) if scope == "all" else int(scope)
    gate = _gate(world, _bounded_in_batches(n_rows, world.seed), coverage=0.5)
    fit(gate, data)
    figures = measure_curve(world, gate, data)
    gate.offsets_ = np.zeros_like(gate.offsets_)
    return {"area": figures["area"], "raw error": abs(team_point(world, gate)[0] - 0.5)}


def _bounded_in_batches(n_rows, seed):
    """A `ClusterDeferral` that meets the bounds in every batch of the E-step, as the papers' code does."""
    rng = np.random.default_rng(check_random_state(seed).randint(2**31 - 1))  # as in the deferrer
    e_step = staticmethod(partial(_posterior_in_batches, rng, n_rows))
    return type(ClusterDeferral.__name__, (ClusterDeferral,), {"_e_step": e_step})


def _posterior_in_batches(rng, size, log_gate, selection, log_likelihood, *, target_bounds, expert_bounds, **duals):
    """`gate_posterior` of random batches, each of which meets the bounds."""
    order = rng.permutation(len(log_gate))
    batches = np.array_split(order, max(1, len(order) // size))
    parts = [
        gate_posterior(
            log_gate[b], selection, log_likelihood[b], target_bounds=target_bounds, expert_bounds=expert_bounds
        )
        for b in batches
    ]
    back = np.argsort(np.concatenate(batches))
    targets, experts = (np.concatenate([getattr(p, name) for p in parts])[back] for name in ("targets", "experts"))
    return parts[-1]._replace(targets=targets, experts=experts, violation=max(p.violation for p in parts))


def report(records):
    """Errors of the achieved coverage."""
    parts = []
    for dataset in names(records, "dataset"):
        rows = []
        for control in CONTROLS:
            errors = [select(records, f"error@{r}", dataset=dataset, method=control) for r in _REQUESTS]
            rows.append(
                [control, *(spread(e) for e in errors), float(np.abs(errors).mean()), float(np.abs(errors).max()),
                 spread(select(records, "fit_seconds", dataset=dataset, method=control))]
            )  # fmt: skip
        columns = ["control", *(f"request {r}" for r in _REQUESTS), "mean error", "largest", "CPU seconds per request"]
        parts.append(markdown(f"Achieved minus requested coverage, {dataset}, N'={_SIZE}", columns, rows))
        rows = [
            [scope, *(spread(select(records, f, dataset=dataset, method=f"constraint on {scope} rows"))
                      for f in ("area", "raw error", "seconds"))]
            for scope in _SCOPES
        ]  # fmt: skip
        columns = ["rows per constraint", "area", "raw gate: off the requested .5 by", "CPU seconds"]
        parts.append(markdown(f"Scope of the constraint (PL2D Fig. 7), {dataset}, N'={_SIZE}", columns, rows))
    return "\n".join(parts)


CONTROL = Experiment("Coverage control and the scope of the constraint (PL2D Fig. 7)", cells, measure, report)
