"""Simulated experts who differ in where they are right: specialists, superclass experts, class experts."""

import numpy as np
from sklearn.utils import Bunch, check_consistent_length

from ._experts import simulate_roster
from ._simulate import as_generator, encode_labels


def make_specialists(
    X,
    y,
    *,
    n_experts=12,
    n_groups=3,
    p_in=0.9,
    p_out=0.5,
    noise="uniform",
    normalize="standard",
    classes=None,
    random_state=None,
):
    """Simulate groups of specialists whose overall accuracies are equal.

    The classes are dealt to the groups, rows as evenly as whole classes allow. A member is right with
    probability `p_in` on the classes of the group. Elsewhere it is right with a probability near `p_out`,
    moved for each group g with row share s_g so that all reach the same expected accuracy::

        a = p_out + (p_in - p_out) / n_groups,     p_out_g = (a - s_g p_in) / (1 - s_g)

    Equal accuracy is the point: nothing but who is right where tells the groups apart.

    Parameters
    ----------
    X : array-like of shape (n_samples, ...)
        Inputs; they matter for ``noise="instance"`` only.
    y : array-like of shape (n_samples,)
        True labels.
    n_experts : int, default=12
        Number of experts, dealt to the groups in blocks whose sizes differ by one at most.
    n_groups : int, default=3
        Number of groups, from 2 to the number of classes and of experts.
    p_in, p_out : float, default=0.9 and 0.5
        Chance of being right on own classes, and about that elsewhere.
    noise : {"uniform", "class", "instance"}, default="uniform"
        Where mistakes go, as in :func:`simulate_annotations` with sd = 0: the probabilities hold exactly.
    normalize : {None, "l2", "standard"}, default="standard"
        Scaling of X for ``noise="instance"``.
    classes : array-like of shape (n_classes,), default=None
        All classes, when `y` may lack some.
    random_state : None, int, numpy Generator or RandomState, default=None
        Seed; numpy's global generator is never used.

    Returns
    -------
    Bunch
        The fields of :func:`make_expert_pairs`, with ``specialties``, the list of classes of each group,
        and ``p_correct`` of shape (n_experts, n_classes).

    Raises
    ------
    ValueError
        If the classes cannot be dealt so that accuracies are equal, or a count or probability is out of
        range.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_l2d.datasets import make_specialists
    >>> roster = make_specialists(*load_iris(return_X_y=True), n_experts=6, random_state=0)
    >>> roster.groups.tolist()
    [0, 0, 1, 1, 2, 2]
    >>> roster.p_correct[0].round(3).tolist()
    [0.9, 0.5, 0.5]
    """
    _, classes, codes = encode_labels(y, classes)
    if not 2 <= n_groups <= min(len(classes), n_experts):
        raise ValueError(
            f"n_groups={n_groups} must be from 2 to the number of classes ({len(classes)}) and of experts "
            f"({n_experts})."
        )
    owner, share = _deal_classes(np.bincount(codes, minlength=len(classes)) / len(codes), n_groups)
    accuracy = p_out + (p_in - p_out) / n_groups
    elsewhere = (accuracy - share * p_in) / (1 - share)
    if not (0 <= p_in <= 1 and ((elsewhere >= 0) & (elsewhere <= 1)).all()):
        raise ValueError(
            f"p_in={p_in} and p_out={p_out} leave no equal accuracy: groups that own "
            f"{share.round(3).tolist()} of the rows would need {elsewhere.round(3).tolist()} elsewhere; move "
            "both towards .5 or change n_groups."
        )
    groups = np.arange(n_experts) * n_groups // n_experts
    p_correct = np.where(owner == groups[:, None], p_in, elsewhere[groups][:, None])
    return simulate_roster(
        X,
        y,
        rates=1 - p_correct,
        experts=[f"S{g}-{m}" for m, g in enumerate(groups)],
        groups=groups,
        noise=noise,
        sd=0,
        normalize=normalize,
        classes=classes,
        random_state=random_state,
        specialties=[classes[owner == g] for g in range(n_groups)],
        p_correct=p_correct,
    )


def make_superclass_experts(y, superclasses=None, *, error_rate=0.5, random_state=None):
    """Simulate two experts, each reliable on one half of the superclasses.

    The generator of PL2D (section 5): an expert makes no mistake on the own half and mistakes the label at
    `error_rate` on the other. The noise is asymmetric: every class is mistaken for one fixed other class,
    here the next one of its superclass (or of all, where the superclass has no other).

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True labels.
    superclasses : array-like of shape (n_samples,), default=None
        Superclass of each row, the same for all rows of a class. None makes each class its own.
    error_rate : float, default=0.5
        Chance of a mistake on the half that is not the expert's own.
    random_state : None, int, numpy Generator or RandomState, default=None
        Seed; numpy's global generator is never used.

    Returns
    -------
    Bunch
        The fields of :func:`make_expert_pairs`, and ``specialties``, the superclasses of each expert. With
        an odd number of them the second expert owns one more.

    Raises
    ------
    ValueError
        If a class has two superclasses, there is only one superclass, or `error_rate` is outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d.datasets import make_superclass_experts
    >>> y = np.tile(np.arange(8), 25)
    >>> roster = make_superclass_experts(y, superclasses=y // 2, random_state=0)
    >>> (roster.annotations[:, 0] == y)[y < 4].all()
    np.True_
    """
    y, classes, codes = encode_labels(y)
    superclasses = y if superclasses is None else np.asarray(superclasses)
    check_consistent_length(y, superclasses)
    if not 0 <= error_rate <= 1:
        raise ValueError(f"error_rate={error_rate} must lie in [0, 1].")
    names, families = np.unique(superclasses, return_inverse=True)
    if len(names) < 2:
        raise ValueError("superclasses holds a single value; two halves need two.")
    family = np.zeros(len(classes), dtype=int)
    family[codes] = families
    if (family[codes] != families).any():
        clash = classes[codes[family[codes] != families][0]]
        raise ValueError(f"superclasses puts class {clash} into two superclasses; give it one.")

    half = len(names) // 2
    strange = np.stack([families >= half, families < half], axis=1)
    mistaken = _next_in_family(family)[codes]
    flips = strange & (as_generator(random_state).random(strange.shape) < error_rate)
    labels = np.where(flips, mistaken[:, None], codes[:, None])
    return Bunch(
        annotations=classes[labels],
        experts=np.array(["H0", "H1"]),
        groups=np.arange(2),
        rates=error_rate * strange.mean(axis=0),
        realized_rates=flips.mean(axis=0),
        classes=classes,
        specialties=[names[:half], names[half:]],
    )


def make_class_experts(y, specialties, *, p_in=1.0, p_out=None, classes=None, random_state=None):
    """Simulate experts by their chance of being right inside and outside their own classes.

    One rule covers the simulated experts of Multi-L2D (section 7, appendices C and D); mistakes fall on
    the other classes uniformly.

    ==========================  =========================  ===================  ==================
    expert of the paper         specialties                p_in                 p_out
    ==========================  =========================  ===================  ==================
    random                      ``[]``                     any                  None (chance)
    probabilistic, p            all classes                p + (1 - p) / C      any
    flipping, p                 all classes                1 - p                any
    dermatologist               classes of the expertise   p_in                 p_out
    oracle on k classes         the first k classes        1                    0, or None (noise)
    overlapping specialists     one class each             1                    overlap
    ==========================  =========================  ===================  ==================

    The rows "probabilistic" and "flipping" disturb the labels passed as `y`; pass a human's labels there
    to follow the paper. "The first k classes" are k, where the paper's code keeps k + 1 (corrected).

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels to disturb.
    specialties : sequence of array-like
        The own classes of each expert, as labels of `y`.
    p_in : float or array-like of shape (n_experts,), default=1.0
        Chance of the label of `y` on own classes.
    p_out : None, float or array-like of shape (n_experts,), default=None
        The same elsewhere. None is chance level, 1 / n_classes.
    classes : array-like of shape (n_classes,), default=None
        All classes, when `y` may lack some.
    random_state : None, int, numpy Generator or RandomState, default=None
        Seed; numpy's global generator is never used.

    Returns
    -------
    Bunch
        The fields of :func:`make_expert_pairs`, with ``p_correct`` of shape (n_experts, n_classes).
        ``groups`` numbers the distinct rows of ``p_correct``.

    Raises
    ------
    ValueError
        If a specialty is no class, or a probability is outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d.datasets import make_class_experts
    >>> y = np.tile(np.arange(4), 50)
    >>> roster = make_class_experts(y, [[0, 1], [2, 3]], p_in=1.0, p_out=0.0, random_state=0)
    >>> (roster.annotations[:, 0] == y).tolist() == (y < 2).tolist()
    True
    """
    y, classes, _ = encode_labels(y, classes)
    if not len(specialties):
        raise ValueError("specialties is empty; give the classes of one expert at least.")
    own = np.array([np.isin(classes, list(mine)) for mine in specialties])
    for m, mine in enumerate(specialties):
        strangers = [label for label in mine if label not in classes]
        if strangers:
            raise ValueError(f"specialties of expert {m} hold {strangers}, not among the classes.")
    chances = {"p_in": p_in, "p_out": 1 / len(classes) if p_out is None else p_out}
    for name, chance in chances.items():
        if np.shape(chance) not in ((), (len(own),)):
            raise ValueError(f"{name} has shape {np.shape(chance)}; give one number, or one for each expert.")
    inside, outside = (np.broadcast_to(chance, len(own))[:, None] for chance in chances.values())
    p_correct = np.where(own, inside, outside)
    if not ((p_correct >= 0) & (p_correct <= 1)).all():
        raise ValueError("p_in and p_out must lie in [0, 1].")
    return simulate_roster(
        y,  # inputs do not matter under uniform noise
        y,
        rates=1 - p_correct,
        experts=[f"C{m}" for m in range(len(own))],
        groups=np.unique(p_correct, axis=0, return_inverse=True)[1].ravel(),
        noise="uniform",
        classes=classes,
        random_state=random_state,
        p_correct=p_correct,
    )


def _deal_classes(shares, n_groups):
    """Owner of each class and row share of each group: the largest class goes to the lightest group."""
    owner, load = np.empty(len(shares), dtype=int), np.zeros(n_groups)
    size = np.zeros(n_groups, dtype=int)
    for c in np.argsort(-shares, kind="stable"):
        g = np.lexsort((size, load))[0]
        owner[c] = g
        load[g] += shares[c]
        size[g] += 1
    return owner, load


def _next_in_family(family):
    """The class each class is mistaken for: the next one of its family, or of all when it is alone."""
    partner = (np.arange(len(family)) + 1) % len(family)
    for name in np.unique(family):
        members = np.flatnonzero(family == name)
        if len(members) > 1:
            partner[members] = np.roll(members, -1)
    return partner
