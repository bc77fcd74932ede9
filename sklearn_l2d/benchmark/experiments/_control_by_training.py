"""Control of the coverage by training: refits at other costs of asking, and a penalty in the loss.

Both are for comparison only: they train more and still miss the requested coverage. With a gate that is trained by EM,
the hard coverage jumps as a function of the cost, since many items change together. The penalty acts on the soft
coverage in training, not on the hard decisions, and its weight has no scale: one value is too weak, another drives all
items to one side.
"""

from sklearn.base import clone

from ...deferral._gate import GateNet
from .._curves import fit


def fit_at_cost(deferrer, data, bounds, n_refits=8):
    """Find the cost of asking at which a deferrer has a requested coverage, by bisection.

    Parameters
    ----------
    deferrer : deferrer
        Unfitted, with a `consultation_cost` that may be negative, and no coverage of its own.
    data : dict
        Arguments of its `fit`.
    bounds : pair of float
        Of the requested coverage.
    n_refits : int, default=8
        Largest number of fits.

    Returns
    -------
    fitted : deferrer
        Deferrer whose `coverage_` is closest to the request.
    attempts : list of dict
        Cost and coverage of every fit.
    """
    low, high = bounds
    cheap, cost, dear = -1.0, 0.0, 1.0  # in errors: at a cost of 1, asking is never worth the error that it prevents
    attempts, fits = [], []
    while len(fits) < n_refits:
        fits.append(clone(deferrer).set_params(consultation_cost=cost))
        fit(fits[-1], data)
        coverage = fits[-1].coverage_
        attempts.append({"consultation_cost": cost, "coverage": coverage})
        if low <= coverage <= high:
            break
        cheap, dear = (cost, dear) if coverage < low else (cheap, cost)
        cost = (cheap + dear) / 2
    return min(fits, key=lambda fitted: max(low - fitted.coverage_, fitted.coverage_ - high)), attempts


class _PenalisedNet(GateNet):
    """Cross-entropy plus ``penalty * outside ** 2``, with the distance `outside` of the soft coverage from its bounds.

    Attributes
    ----------
    penalty : float
        Weight of the second term.
    coverage_bounds : pair of float
        Bounds of the mean probability of the last output over a batch.
    """

    def batch_loss(self, logits, targets, X):
        low, high = self.coverage_bounds
        coverage = self.with_prior(logits, *targets[1:]).softmax(-1)[:, -1].mean()
        outside = (low - coverage).clamp(min=0) + (coverage - high).clamp(min=0)
        return super().batch_loss(logits, targets, X) + self.penalty * outside**2


def fit_with_penalty(deferrer, data, bounds, penalty):
    """Fit an EM deferrer whose gate has a penalty for a soft coverage outside its bounds.

    Parameters
    ----------
    deferrer : GatedDeferrer
        Unfitted.
    data : dict
        Arguments of its `fit`.
    bounds : pair of float
        Of the requested coverage.
    penalty : float
        Weight of the squared distance to them.

    Returns
    -------
    fitted : GatedDeferrer
        Deferrer of the same class. The penalty is not used in `partial_fit`.
    """
    kind = type(deferrer)
    net = type(_PenalisedNet.__name__, (_PenalisedNet,), {"penalty": penalty, "coverage_bounds": bounds})
    fitted = clone(deferrer)
    fitted.__class__ = type(kind.__name__, (kind,), {"_gate_net": net})
    fit(fitted, data)
    fitted.__class__ = kind  # classes made here cannot be pickled
    if fitted.gate_ is not None:
        fitted.gate_.__class__ = GateNet
    return fitted
