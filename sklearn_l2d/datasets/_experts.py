"""Simulated experts who differ in ability: the pairs and groups of L2D-Clusters."""

import numpy as np
from sklearn.utils import Bunch

from ._simulate import encode_labels, simulate_annotations

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def make_expert_pairs(
    X,
    y,
    *,
    rates=(0.05, 0.2, 0.35),
    share_confusion=False,
    sd=0.1,
    normalize="standard",
    classes=None,
    random_state=None,
):
    """Simulate pairs of experts of equal ability: 5A, 5B, 20C, 20D, 35E and 35F by default.

    The roster of L2D-Clusters section 5.1: both members of a pair err at one nominal rate, under the
    instance-dependent noise of :func:`simulate_annotations`.

    Parameters
    ----------
    X : array-like of shape (n_samples, ...)
        Inputs.
    y : array-like of shape (n_samples,)
        True labels.
    rates : sequence of float, default=(0.05, 0.2, 0.35)
        Nominal chance of a mistake of each pair; at most 13 pairs.
    share_confusion : bool, default=False
        Whether both members of a pair confuse the same classes on the same items. False is the paper's
        setting, where they share the rate only.
    sd : float, default=0.1
        Standard deviation over items of the chance of a mistake.
    normalize : {None, "l2", "standard"}, default="standard"
        Scaling of X before it meets the confusion, as in :func:`simulate_annotations`.
    classes : array-like of shape (n_classes,), default=None
        All classes, when `y` may lack some.
    random_state : None, int, numpy Generator or RandomState, default=None
        Seed; numpy's global generator is never used.

    Returns
    -------
    Bunch
        ``annotations`` of shape (n_samples, n_experts), in the labels of `y`; ``experts``, their names;
        ``groups``, the pair of each; ``rates`` and ``realized_rates``, nominal and observed share of
        mistakes; ``classes``.

    Raises
    ------
    ValueError
        If a rate is outside [0, 1], there are more than 13, or the lengths of X and y differ.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_l2d.datasets import make_expert_pairs
    >>> roster = make_expert_pairs(*load_iris(return_X_y=True), random_state=0)
    >>> roster.experts.tolist()
    ['5A', '5B', '20C', '20D', '35E', '35F']
    >>> roster.groups.tolist()
    [0, 0, 1, 1, 2, 2]
    """
    groups = np.repeat(np.arange(len(rates)), 2)
    if len(groups) > len(_LETTERS):
        raise ValueError(f"rates holds {len(rates)} pairs, but names run out at 13; use make_expert_groups.")
    rates = np.asarray(rates, dtype=float)[groups]
    return simulate_roster(
        X,
        y,
        rates=rates,
        experts=[f"{100 * rate:g}{letter}" for rate, letter in zip(rates, _LETTERS, strict=False)],
        groups=groups,
        share_confusion=groups if share_confusion else None,
        sd=sd,
        normalize=normalize,
        classes=classes,
        random_state=random_state,
    )


def make_expert_groups(
    X,
    y,
    *,
    n_groups=10,
    n_per_group=10,
    rates=(0.05, 0.5),
    share_confusion=False,
    sd=0.1,
    normalize="standard",
    classes=None,
    random_state=None,
):
    """Simulate a large roster in groups of equal ability: by default 100 experts in 10 groups.

    The roster behind Table 2 of L2D-Clusters: nominal rates rise in equal steps from group to group.

    Parameters
    ----------
    X : array-like of shape (n_samples, ...)
        Inputs.
    y : array-like of shape (n_samples,)
        True labels.
    n_groups, n_per_group : int, default=10
        Number of groups and of experts in each.
    rates : tuple of two floats, default=(0.05, 0.5)
        Nominal chance of a mistake in the first and in the last group.
    share_confusion : bool, default=False
        Whether the members of a group confuse the same classes on the same items.
    sd : float, default=0.1
        Standard deviation over items of the chance of a mistake.
    normalize : {None, "l2", "standard"}, default="standard"
        Scaling of X before it meets the confusion, as in :func:`simulate_annotations`.
    classes : array-like of shape (n_classes,), default=None
        All classes, when `y` may lack some.
    random_state : None, int, numpy Generator or RandomState, default=None
        Seed; numpy's global generator is never used.

    Returns
    -------
    Bunch
        The same fields as :func:`make_expert_pairs`; experts are named "rate-number".

    Raises
    ------
    ValueError
        If a rate is outside [0, 1], or a number of groups or experts is below 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_l2d.datasets import make_expert_groups
    >>> roster = make_expert_groups(
    ...     *load_iris(return_X_y=True), n_groups=2, n_per_group=3, random_state=0
    ... )
    >>> roster.experts.tolist()
    ['5-0', '5-1', '5-2', '50-0', '50-1', '50-2']
    """
    if n_groups < 1 or n_per_group < 1:
        raise ValueError(f"n_groups={n_groups} and n_per_group={n_per_group} must be at least 1.")
    groups = np.repeat(np.arange(n_groups), n_per_group)
    rates = np.linspace(*rates, n_groups)[groups]
    return simulate_roster(
        X,
        y,
        rates=rates,
        experts=[f"{100 * rate:g}-{m % n_per_group}" for m, rate in enumerate(rates)],
        groups=groups,
        share_confusion=groups if share_confusion else None,
        sd=sd,
        normalize=normalize,
        classes=classes,
        random_state=random_state,
    )


def simulate_roster(X, y, *, rates, experts, groups, specialties=None, p_correct=None, **options):
    """Simulate and attach what is known about the experts."""
    crowd = simulate_annotations(X, y, rates=rates, **options)
    known = {"specialties": specialties, "p_correct": p_correct}
    if rates.ndim == 2:
        codes = encode_labels(y, crowd.classes)[2]
        rates = rates[:, codes].mean(axis=1)
    return Bunch(
        annotations=crowd.annotations,
        experts=np.array(experts),
        groups=groups,
        rates=rates,
        realized_rates=crowd.realized_rates,
        classes=crowd.classes,
        **{name: value for name, value in known.items() if value is not None},
    )
