"""Control of coverage by training: refits at another cost, and a penalty in the loss of a gate."""

from sklearn.base import clone

from .._torch._penalised_net import PenalisedNet
from ._gated import GatedDeferrer

# What deferrers call the cost of asking, and the range in errors: nobody is worth asking who costs as much as the error
# that they prevent, and the losses behind an `expert_cost` know no reward for asking.
_COSTS = {"consultation_cost": (-1.0, 1.0), "expert_cost": (0.0, 1.0)}


def cost_parameter(deferrer):
    """Name of the parameter that says what asking costs; None where there is none."""
    return next((name for name in _COSTS if name in deferrer.get_params(deep=False)), None)


def fit_at_cost(deferrer, fit, bounds, n_refits):
    """Look for the cost of asking at which a deferrer has a requested coverage, by bisection.

    Parameters
    ----------
    deferrer : deferrer
        Unfitted, with a `cost_parameter`.
    fit : callable
        Fits a deferrer and returns it.
    bounds : pair of float
        Of the requested coverage.
    n_refits : int
        Largest number of fits.

    Returns
    -------
    fitted : deferrer
        The one whose `coverage_` is nearest to the request.
    attempts : list of dict
        Cost and coverage of every fit.
    """
    name, cost = cost_parameter(deferrer), 0.0
    cheap, dear = _COSTS[name]
    attempts, fits = [], []
    while len(fits) < n_refits and cheap < dear:
        fits.append(fit(clone(deferrer).set_params(**{name: cost})))
        attempts.append({name: cost, "coverage": fits[-1].coverage_})
        if bounds[0] <= fits[-1].coverage_ <= bounds[1]:
            break
        if fits[-1].coverage_ < bounds[0]:
            cheap = cost
        else:
            dear = cost
        cost = (cheap + dear) / 2
    misses = [max(bounds[0] - f.coverage_, f.coverage_ - bounds[1]) for f in fits]
    return fits[misses.index(min(misses))], attempts


def can_be_penalised(deferrer):
    """Whether the training of a deferrer has a place for a penalty on its coverage."""
    return isinstance(deferrer, GatedDeferrer)


def fit_with_penalty(deferrer, fit, bounds, penalty):
    """Fit an EM deferrer whose gate also pays for a soft coverage outside of its bounds.

    Parameters
    ----------
    deferrer : GatedDeferrer
        Unfitted.
    fit : callable
        Fits a deferrer and returns it.
    bounds : pair of float
        Of the requested coverage.
    penalty : float
        Weight of the squared distance to them.

    Returns
    -------
    fitted : GatedDeferrer
        With a gate that stays penalised in `partial_fit`.
    attempts : list of dict
        Penalty and coverage of the one fit.
    """
    kind = type(deferrer)

    class Penalised(kind):
        def _new_gate(self, problem):
            gate = super()._new_gate(problem)
            gate.__class__ = PenalisedNet
            gate.penalty, gate.coverage_bounds = penalty, bounds
            return gate

    Penalised.__name__ = kind.__name__
    draft = clone(deferrer)
    draft.__class__ = Penalised
    fitted = fit(draft)
    fitted.__class__ = kind  # it can be pickled
    return fitted, [{"penalty": penalty, "coverage": fitted.coverage_}]
