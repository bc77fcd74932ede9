"""Coverage and workload bounds: from what a user writes to arrays that the numerics take."""

import numbers
from typing import NamedTuple

import numpy as np

from .._encoding import as_floats
from .._numerics._shares import check_share_bounds, restricts, selection_weights


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
    def bind(self):
        """Whether there is any bound at all."""
        return any(restricts(*bounds) for bounds in (self.targets, self.experts))

    def in_one_target(self):
        """The same bounds of experts, with all of them in a single target."""
        low, high = self.target_lower[-1], self.target_upper[-1]
        return self._replace(target_lower=np.array([0.0, low]), target_upper=np.array([1.0, high]))

    def without_targets(self, gone):
        """The same bounds with nothing for the human targets in the mask `gone`."""
        gone = np.append(gone, False)
        return self._replace(
            target_lower=np.where(gone, 0.0, self.target_lower), target_upper=np.where(gone, 0.0, self.target_upper)
        )

    def with_lone_experts(self, omega):
        """The same bounds, with those of an expert who is a target alone on the target, too.

        Offsets then meet them by the scores; left to the experts alone, who serves in their place is arbitrary.
        """
        member = omega > 0
        target, expert = np.nonzero(member & (member.sum(1, keepdims=True) == 1) & (member.sum(0) == 1))
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
        Bounds of each expert's share; a mapping goes from names to pairs and leaves the others unbounded.
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
        If a bound lies outside [0, 1], is upside down, or names nobody.
    """
    if isinstance(coverage, numbers.Real):
        coverage = (coverage, coverage)
    classifier = np.array([(0.0, 1.0) if coverage is None else _check_pair(coverage, "coverage")])
    targets = np.concatenate([_table(cluster_workload, target_names, "cluster_workload"), classifier])
    people = np.concatenate([_table(workload, experts, "workload"), [[0.0, 1.0]]])
    return ShareBounds(*targets.T.copy(), *people.T.copy())


def check_feasible(bounds, omega, experts, target_names):
    """Refuse bounds that no routing can meet.

    Parameters
    ----------
    bounds : ShareBounds
        Of the targets and experts of `omega`, and the classifier.
    omega : ndarray of shape (n_targets, n_experts)
        Memberships of the human targets.
    experts, target_names : sequences
        Names for the message.
    """
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
    full = np.zeros((len(omega) + 1, omega.shape[1] + 1))
    full[:-1, :-1], full[-1, -1] = omega, 1.0
    return full


def select_members(omega, shares, bounds, names=None):
    """Weights (n_targets, n_experts) with which targets pick members under the bounds of experts.

    Parameters
    ----------
    omega : ndarray of shape (n_targets, n_experts)
        Unbounded weights of the human targets.
    shares : ndarray of shape (n_targets + 1,)
        Shares of the items that targets and classifier get.
    bounds : ShareBounds
        On targets and experts.
    names : sequence of str, default=None
        Of experts and classifier, for messages.

    Returns
    -------
    selection : ndarray of shape (n_targets, n_experts)
        Zero rows for targets without members who may serve.
    """
    full = with_classifier(omega)
    able = full * (bounds.expert_upper > 0)
    live = able.sum(1) > 0
    kept = selection_weights(full[live], live_shares(shares, able[:-1])[live], *bounds.experts, names=names)
    selection = np.zeros_like(omega)
    selection[live[:-1]] = kept[:-1, :-1]
    return selection


def plain_selection(omega):
    """Members of targets (n_targets, n_experts) by membership (n_experts, n_targets) alone, rows sum to 1.

    A target without members has a zero row.
    """
    totals = omega.sum(0)[:, None]
    return np.divide(omega.T, totals, out=np.zeros(omega.T.shape), where=totals > 0)


def live_shares(shares, selection):
    """Shares with nothing for targets without members, scaled to a sum of 1; the classifier's is the last."""
    shares = shares * np.append(selection.sum(1) > 0, True)
    return shares / shares.sum() if shares.sum() > 0 else np.eye(len(shares))[-1]


def _table(bounds, names, parameter):
    """Array (n, 2) of bounds."""
    table = np.tile([0.0, 1.0], (len(names), 1))
    if bounds is None:
        return table
    if hasattr(bounds, "items"):
        place = {name: i for i, name in enumerate(names)}
        unknown = [name for name in bounds if name not in place]
        if unknown:
            raise ValueError(f"{parameter} names {unknown}, but the names are {list(names)}; correct the keys.")
        for name, pair in bounds.items():
            table[place[name]] = _check_pair(pair, f"{parameter}[{name!r}]")
        return table
    values = as_floats(bounds, parameter)
    if values.shape == (2,):
        return np.tile(_check_pair(bounds, parameter), (len(names), 1)) if len(names) else table
    if values.shape != table.shape:
        raise ValueError(
            f"{parameter} has shape {values.shape}; pass a pair (lower, upper), an array of shape {table.shape}, or a "
            "mapping from names to pairs."
        )
    return np.array([_check_pair(pair, f"{parameter}[{i}]") for i, pair in enumerate(values)]).reshape(table.shape)


def _check_pair(pair, parameter):
    values = as_floats(pair, parameter)
    if values.shape != (2,) or not (0 <= values[0] <= values[1] <= 1):
        raise ValueError(f"{parameter}={pair!r} is not a pair with 0 <= lower <= upper <= 1; correct it.")
    return values
