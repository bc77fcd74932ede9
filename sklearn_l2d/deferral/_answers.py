"""How well everybody's answers explain the truth, less what asking costs: the evidence of the E-step."""

import numpy as np

from .._encoding import as_floats
from .._numerics._answers import (
    answer_likelihood,
    error_nats,
    expected_likelihood,
    log_likelihood_of_answers,
)


def team_log_likelihood(codes, y_codes, classifier_proba, likelihood, absent):
    """``ln p(y | answer)`` (n, M + 1) of the experts and, last, of the classifier."""
    people = log_likelihood_of_answers(codes, y_codes, likelihood, absent)
    return np.column_stack([people, np.log(expected_likelihood(classifier_proba, y_codes, likelihood))])


def absent_likelihood(codes, y_codes, likelihood, correctness):
    """Likelihood (n, M) of the truth given what an expert would have answered; None where nobody is missing.

    It is integrated over the answer (PL2D Eq. 17, corrected: exact, no mean field), which is right with the expert's
    own correctness on the true class; mistakes are spread evenly. The behaviours of a clusterer, which do not know
    the truth, were measured to tell experts apart less well.
    """
    if (codes >= 0).all():
        return None
    right = correctness.T[y_codes]
    when_right = np.diagonal(likelihood)[y_codes, None]
    when_wrong = (likelihood[y_codes].sum(1, keepdims=True) - when_right) / (len(likelihood) - 1)
    return right * when_right + (1 - right) * when_wrong


def check_error_cost(error_cost, n_classes, smoothing):
    """Likelihood (C, C) of the truth given an answer, from the parameters of a deferrer."""
    if error_cost is not None:
        error_cost = np.asarray(error_cost, dtype=float)
        if error_cost.shape != (n_classes, n_classes) or not (np.isfinite(error_cost) & (error_cost >= 0)).all():
            raise ValueError(
                f"error_cost of shape {error_cost.shape} must be non-negative, finite and of shape "
                f"{(n_classes, n_classes)}, one row per true class."
            )
    return answer_likelihood(n_classes, smoothing, error_cost)


def consultation_nats(cost, experts, targets, omega, n_classes, smoothing):
    """What asking each expert (M,) costs, in nats; the price of a target is shared by its members' memberships."""
    return expert_prices(cost, experts, targets, omega) * error_nats(n_classes, smoothing)


def expert_prices(cost, experts, targets=(), omega=None, *, parameter="consultation_cost"):
    """What asking each expert (M,) costs, in errors; `targets` with memberships `omega` may have prices, too."""
    prices = np.zeros(len(experts))
    if cost is None:
        return prices
    if hasattr(cost, "items"):
        people, groups = {n: i for i, n in enumerate(experts)}, {n: k for k, n in enumerate(targets)}
        for name, given in cost.items():
            price = as_floats(given, f"{parameter}[{name!r}]")
            if price.ndim:
                raise ValueError(f"{parameter}[{name!r}]={given!r} is not one number; give one price per name.")
            if name in people:
                prices[people[name]] += price
            elif name in groups:
                prices += price * omega[:, groups[name]]
            else:
                raise ValueError(
                    f"{parameter} names {name!r}, neither an expert {list(experts)} nor a target {list(targets)}."
                )
    else:
        prices = as_floats(cost, parameter)
        if prices.shape not in [(), (len(experts),)]:
            raise ValueError(
                f"{parameter} has shape {prices.shape}; pass a number, one for each of {len(experts)} experts, "
                "or a mapping."
            )
    if not np.isfinite(prices).all():
        raise ValueError(f"{parameter}={cost!r} is not finite; omit experts with offboard or workload bounds.")
    return prices


def check_omega(omega, n_experts):
    """Ready memberships (M, K), rows scaled to sum to 1."""
    omega = as_floats(omega, "omega")
    if omega.ndim != 2 or len(omega) != n_experts:
        raise ValueError(f"omega has shape {omega.shape}; pass one row for each of the {n_experts} experts.")
    if not np.isfinite(omega).all() or (omega < 0).any():
        raise ValueError("omega has negative or non-finite entries; memberships are non-negative.")
    totals = omega.sum(1, keepdims=True)
    if (totals <= 0).any():
        raise ValueError(
            f"omega has zero rows {np.flatnonzero(totals[:, 0] <= 0).tolist()}; give each expert a cluster."
        )
    return omega / totals
