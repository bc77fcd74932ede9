"""Convert the bounds, costs and memberships that a user gives to arrays."""

import numbers
from typing import NamedTuple

import numpy as np
from scipy.sparse import block_diag, csr_array, issparse

from .._by_name import are_numbers, as_floats, bounds_table, by_name, check_pair, expert_places
from .._encoding import is_frame, some
from .._numerics._answers import answer_likelihood, error_nats
from .._numerics._matrices import normalised_rows, weighted_columns
from .._numerics._shares import check_share_bounds, restricts, selection_weights
from ._roster import live_shares


class ShareBounds(NamedTuple):
    """Bounds on shares of the items; the classifier is the last target and the last expert."""

    target_lower: np.ndarray
    target_upper: np.ndarray
    expert_lower: np.ndarray
    expert_upper: np.ndarray

    @property
    def targets(self):
        """Bounds of the targets, as a pair."""
        return self.target_lower, self.target_upper

    @property
    def experts(self):
        """Bounds of the experts, as a pair."""
        return self.expert_lower, self.expert_upper

    @property
    def bind_targets(self):
        """Whether there is any bound on a target."""
        return restricts(*self.targets)

    @property
    def bind_experts(self):
        """Whether there is any bound on an expert."""
        return restricts(*self.experts)

    @property
    def bind(self):
        """Whether there is any bound at all."""
        return self.bind_targets or self.bind_experts

    @property
    def of_coverage(self):
        """Bounds of the human targets taken together and of the classifier, as a pair."""
        return np.array([0.0, self.target_lower[-1]]), np.array([1.0, self.target_upper[-1]])

    def bind_people(self, live):
        """Whether there is any bound on an expert, or on one of the human targets in the mask `live`."""
        return self.bind_experts or restricts(self.target_lower[:-1][live], self.target_upper[:-1][live])

    def without_targets(self, gone):
        """The same bounds, with 0 for the human targets in the mask `gone`."""
        gone = np.append(gone, False)
        return self._replace(
            target_lower=np.where(gone, 0.0, self.target_lower), target_upper=np.where(gone, 0.0, self.target_upper)
        )

    def with_lone_experts(self, omega):
        """The same bounds; those of an expert who is the only member of a target also hold for the target.

        Offsets then meet them by the scores of the items; otherwise the items that move would be arbitrary.
        """
        target, expert = omega.nonzero()
        alone = (np.bincount(target)[target] == 1) & (np.bincount(expert)[expert] == 1)
        target, expert = target[alone], expert[alone]
        lower, upper = self.target_lower.copy(), self.target_upper.copy()
        lower[target] = np.maximum(lower[target], self.expert_lower[expert])
        upper[target] = np.minimum(upper[target], self.expert_upper[expert])
        return self._replace(target_lower=lower, target_upper=upper)


def share_bounds(coverage, workload, cluster_workload, experts, target_names):
    """Bounds from the parameters of a deferrer.

    Parameters
    ----------
    coverage : None, float or pair of float
        Share of the items that the classifier decides.
    workload : None, pair, array-like of shape (n_experts, 2) or mapping
        Bounds of each expert's share. A mapping from names to pairs leaves the other experts unbounded.
    cluster_workload : None, pair, array-like of shape (n_targets, 2) or mapping
        The same for the human targets.
    experts, target_names : sequences
        Names, in order.

    Returns
    -------
    bounds : ShareBounds

    Raises
    ------
    ValueError
        If a bound is outside [0, 1], a lower bound is above its upper bound, or a name is unknown.
    """
    if isinstance(coverage, numbers.Real):
        coverage = (coverage, coverage)
    classifier = np.array([(0.0, 1.0) if coverage is None else check_pair(coverage, "coverage")])
    targets = np.concatenate([bounds_table(cluster_workload, target_names, "cluster_workload"), classifier])
    people = np.concatenate([bounds_table(workload, experts, "workload"), [[0.0, 1.0]]])
    return ShareBounds(*targets.T.copy(), *people.T.copy())


def check_nobody(
    coverage=None,
    workload=None,
    cluster_workload=None,
    answers=None,
    n_agents=None,
    target_accuracy=None,
    labels="truth",
    **others,
):
    """Refuse parameters of a deferrer that ask for people, where there are none."""
    requests = {
        "coverage": (coverage, share_bounds(coverage, None, None, [], []).target_upper[-1] < 1),
        "workload": (workload, workload is not None),
        "cluster_workload": (cluster_workload, cluster_workload is not None),
        "answers": (answers, answers is not None and answers > 0),
        "n_agents": (n_agents, n_agents is not None and n_agents > 1),  # one may be the classifier
        "target_accuracy": (target_accuracy, target_accuracy is not None),
        "labels": (labels, labels != "truth"),
    }
    for name, (value, asks) in requests.items():
        if asks:
            does = "judges people by each other" if name == "labels" else "asks for work by people"
            raise ValueError(
                f"{name}={value!r} {does}, but there are no annotations; pass "
                "annotations, or y=AnnotatedTarget(y, annotations) where only y gets through. For a classifier alone, "
                f"leave out {name}."
            )


def check_in_one_target(bounds, experts):
    """Refuse bounds that no routing can meet even if a single target holds all experts."""
    if not len(experts):
        return
    (_, low), (_, high) = lower, upper = bounds.of_coverage
    most, least = 1 - bounds.expert_lower[:-1].sum(), 1 - bounds.expert_upper[:-1].sum()  # for the classifier
    if max(low, least) <= min(high, most):
        return
    together = bounds._replace(target_lower=lower, target_upper=upper)
    check_feasible(together, np.ones((1, len(experts))), experts, ["the experts"])  # names the bound to change


def check_feasible(bounds, omega, experts, target_names):
    """Refuse bounds that no routing can meet.

    Parameters
    ----------
    bounds : ShareBounds
        Bounds of the targets and experts of `omega`, and of the classifier.
    omega : ndarray or csr_array of shape (n_targets, n_experts)
        Memberships of the human targets.
    experts, target_names : sequences
        Names for the error message.
    """
    if not bounds.bind:
        return
    check_share_bounds(
        *bounds.experts,
        with_classifier(omega) > 0,
        [*experts, "classifier"],
        target_lower=bounds.target_lower,
        target_upper=bounds.target_upper,
        target_names=[*target_names, "classifier"],
    )


def with_classifier(omega):
    """Memberships with the classifier as one more target and expert (L2D-Clusters Eq. 4)."""
    if issparse(omega):
        return csr_array(block_diag((omega, np.ones((1, 1)))))
    full = np.zeros((len(omega) + 1, omega.shape[1] + 1))
    full[:-1, :-1], full[-1, -1] = omega, 1.0
    return full


def select_members(omega, shares, bounds, names=None, *, check=True):
    """Selection weights (n_targets, n_experts) of the targets within the bounds of the experts.

    Parameters
    ----------
    omega : ndarray or csr_array of shape (n_targets, n_experts)
        Unbounded weights of the human targets; at most one member per target where it is sparse.
    shares : ndarray of shape (n_targets + 1,)
        Shares of the items that the targets and the classifier decide.
    bounds : ShareBounds
        On targets and experts.
    names : sequence of str, default=None
        Names of the experts and the classifier, for error messages.
    check : bool, default=True
        Whether to refuse bounds that cannot be met at these shares; False where it is known that they can.

    Returns
    -------
    selection : ndarray of shape (n_targets, n_experts)
        A target without members who may serve has a row of zeros.
    """
    full = with_classifier(omega)
    able = weighted_columns(full, bounds.expert_upper > 0)
    if issparse(omega):  # there is nobody to choose between
        return normalised_rows(able)[:-1, :-1]
    live = able.sum(1) > 0
    kept = selection_weights(
        full[live], live_shares(shares, able[:-1])[live], *bounds.experts, names=names, check=check
    )
    selection = np.zeros_like(omega)
    selection[live[:-1]] = kept[:-1, :-1]
    return selection


def of_roster(setting, parameter, fitted, roster, common_ndim):
    """Setting for the experts of a roster, by name, so that each expert of `fit` keeps its value.

    Parameters
    ----------
    setting : object
        Value of the parameter: one for all experts (with `common_ndim` dimensions), one for each of `fitted`, or a
        mapping, which may name experts who have left.
    parameter : str
        Name of the parameter.
    fitted : ndarray of names
        Experts of `fit`.
    roster : Roster
    common_ndim : int
        Number of dimensions of a value for all experts.
    """
    setting = by_name(setting, fitted, parameter)
    if setting is None or hasattr(setting, "items"):
        gone = {*fitted, *roster.left} - set(roster.experts)
        return {name: value for name, value in (setting or {}).items() if name not in gone} or None
    values = as_floats(setting, parameter)
    if values.ndim == common_ndim or len(values) != len(fitted):
        return setting
    return of_roster(dict(zip(fitted, values, strict=True)), parameter, fitted, roster, common_ndim)


def error_costs(error_cost, classes):
    """Checked `error_cost` as an array (C, C) in the order of the classes, which may name its rows and columns."""
    if error_cost is None:
        return None
    if is_frame(error_cost):
        error_cost = _of_classes(error_cost, classes.tolist())
    n_classes, error_cost = len(classes), as_floats(error_cost, "error_cost")
    if error_cost.shape != (n_classes, n_classes) or not (np.isfinite(error_cost) & (error_cost >= 0)).all():
        raise ValueError(
            f"error_cost of shape {error_cost.shape} must be non-negative, finite and of shape "
            f"{(n_classes, n_classes)}, one row per true class."
        )
    return error_cost


def _of_classes(table, classes):
    """Rows and columns of a DataFrame in the order of the classes, unless it only numbers them."""
    names = table.index.tolist(), table.columns.tolist()
    if all(sorted(of_axis, key=str) == sorted(classes, key=str) for of_axis in names):
        return table.loc[classes, classes]
    if all(are_numbers(of_axis, classes) for of_axis in names):
        return table
    raise ValueError(
        f"error_cost names rows {some(names[0])} and columns {some(names[1])}, but the classes are {some(classes)}; "
        "give each class one row and one column, or pass error_cost.to_numpy() in their order."
    )


def check_error_cost(error_cost, classes, smoothing):
    """Check `error_cost` and return the likelihood (C, C) of the truth given an answer."""
    return answer_likelihood(len(classes), smoothing, error_costs(error_cost, classes))


def consultation_nats(cost, experts, targets, omega, n_classes, smoothing):
    """Cost of asking each expert (M,), in nats; an expert has a target's cost times the membership in it."""
    return expert_prices(cost, experts, targets, omega) * error_nats(n_classes, smoothing)


def expert_prices(cost, experts, targets=(), omega=None):
    """Cost of asking each expert (M,), in errors; `targets` with memberships `omega` may also have costs."""
    prices = np.zeros(len(experts))
    if cost is None:
        return prices
    cost = by_name(cost, experts, "consultation_cost")
    if hasattr(cost, "items"):
        people, groups = {n: i for i, n in enumerate(experts)}, {n: k for k, n in enumerate(targets)}
        for name, given in cost.items():
            price = as_floats(given, f"consultation_cost[{name!r}]")
            if price.ndim:
                raise ValueError(f"consultation_cost[{name!r}]={given!r} is not one number; give one price per name.")
            if name in people:
                prices[people[name]] += price
            elif name in groups:
                prices += price * omega[:, groups[name]]
            else:
                raise ValueError(
                    f"consultation_cost names {name!r}, neither an expert {list(experts)} nor a target {list(targets)}."
                )
    else:
        prices = as_floats(cost, "consultation_cost")
        if prices.shape not in [(), (len(experts),)]:
            raise ValueError(
                f"consultation_cost has shape {prices.shape}; pass a number, one for each of {len(experts)} experts, "
                "or a mapping."
            )
    if not np.isfinite(prices).all():
        raise ValueError(f"consultation_cost={cost!r} is not finite; omit experts with offboard or workload bounds.")
    return np.broadcast_to(prices, len(experts))


def check_omega(omega, experts):
    """Check given memberships (M, K) and scale their rows to a sum of 1."""
    places = expert_places(omega.index.tolist(), experts, "omega") if is_frame(omega) else None
    omega = as_floats(omega, "omega")
    if omega.ndim != 2 or len(omega) != len(experts):
        raise ValueError(f"omega has shape {omega.shape}; pass one row for each of the {len(experts)} experts.")
    if places is not None:
        omega = omega[np.argsort(places)]
    if not np.isfinite(omega).all() or (omega < 0).any():
        raise ValueError("omega has negative or non-finite entries; memberships are non-negative.")
    totals = omega.sum(1, keepdims=True)
    if (totals <= 0).any():
        raise ValueError(
            f"omega has zero rows {np.flatnonzero(totals[:, 0] <= 0).tolist()}; give each expert a positive membership."
        )
    return omega / totals
