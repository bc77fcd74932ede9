"""Simulated annotations: label noise that depends on the item, on its class, or on neither."""

import numpy as np
from scipy.special import ndtr, ndtri, softmax
from sklearn import preprocessing
from sklearn.utils import Bunch, check_array, check_consistent_length, column_or_1d

_NOISES = ("instance", "class", "uniform")
_NORMALIZERS = {
    None: lambda X: X,
    "l2": preprocessing.normalize,
    "standard": lambda X: preprocessing.StandardScaler().fit_transform(X),
}


def simulate_annotations(
    X,
    y,
    *,
    rates,
    noise="instance",
    sd=0.1,
    share_confusion=None,
    normalize=None,
    classes=None,
    random_state=None,
):
    """Simulate experts who mistake the true label at given rates.

    With ``noise="instance"`` this is the generator of Xia et al. (2020), the noise model of the
    L2D-Clusters benchmark (section 4). For every item i of class c = y_i and every expert::

        q_i ~ TruncNormal(rate, sd) on [0, 1]            chance of a mistake
        p   = softmax over the classes other than c of x_i W[c],   W[c] ~ N(0, 1), shape (d, C)
        label = y_i with probability 1 - q_i, else a draw from p

    Parameters
    ----------
    X : array-like of shape (n_samples, ...)
        Inputs; axes after the first are flattened. Read for ``noise="instance"`` only.
    y : array-like of shape (n_samples,)
        True labels, or any labels from which the experts should deviate.
    rates : float or array-like of shape (n_experts,) or (n_experts, n_classes)
        Nominal chance of a mistake per expert, or per expert and true class, in [0, 1].
    noise : {"instance", "class", "uniform"}, default="instance"
        Where mistakes go and how often they happen. "instance": as above. "class": the mistaken class
        follows one random distribution per true class, and the chance of a mistake is exactly the rate.
        "uniform": every wrong class is as likely, again at exactly the rate.
    sd : float, default=0.1
        Standard deviation of the chance of a mistake over items ("instance" only). Truncation to [0, 1]
        moves the mean: with the default a rate of .05 becomes .101. 0 switches the spread off.
    share_confusion : None, True or array-like of shape (n_experts,), default=None
        Which experts share W (or the class distributions), and so err alike. None draws afresh for every
        expert, as in the paper; True shares among all; an array holds the group of each expert.
    normalize : {None, "l2", "standard"}, default=None
        Scaling of X before the product with W. Large inputs make the softmax nearly one-hot, that is one
        fixed wrong class per item; "l2" spreads mistakes over most classes.
    classes : array-like of shape (n_classes,), default=None
        All classes, when `y` may lack some. Default: the distinct values of `y`.
    random_state : None, int, numpy Generator or RandomState, default=None
        Seed. The draws of one expert do not depend on how many experts follow. None takes fresh entropy;
        numpy's global generator is never used.

    Returns
    -------
    Bunch
        ``annotations`` of shape (n_samples, n_experts), in the labels of `y`; ``realized_rates`` of shape
        (n_experts,), the observed share of mistakes; ``classes`` of shape (n_classes,).

    Raises
    ------
    ValueError
        If an argument is out of range, or the lengths of the arguments disagree.

    References
    ----------
    Xia et al., "Part-dependent label noise: towards instance-dependent label noise", NeurIPS 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_l2d.datasets import simulate_annotations
    >>> X, y = load_iris(return_X_y=True)
    >>> crowd = simulate_annotations(X, y, rates=[0.0, 0.4], sd=0, random_state=0)
    >>> crowd.annotations.shape
    (150, 2)
    >>> float(crowd.realized_rates[0])
    0.0
    """
    if noise not in _NOISES:
        raise ValueError(f"noise={noise!r} is unknown; choose one of {_NOISES}.")
    if normalize not in _NORMALIZERS:
        raise ValueError(f"normalize={normalize!r} is unknown; choose one of {tuple(_NORMALIZERS)}.")
    if not (np.isscalar(sd) and 0 <= sd < np.inf):
        raise ValueError(f"sd={sd!r} must be a finite number >= 0: a standard deviation.")
    y, classes, codes = encode_labels(y, classes)
    check_consistent_length(X, y)
    rates = _check_rates(rates, len(classes))
    groups = _check_groups(share_confusion, len(rates))
    inputs = None
    if noise == "instance":
        X = check_array(X, allow_nd=True, dtype=[np.float64, np.float32], input_name="X")
        inputs = _NORMALIZERS[normalize](X.reshape(len(X), -1))

    confusion_streams, expert_streams = (stream.spawn(len(rates)) for stream in as_generator(random_state).spawn(2))
    labels = np.empty((len(y), len(rates)), dtype=np.min_scalar_type(-len(classes)))
    for group in np.unique(groups):
        # One table at a time: memory stays O(n C) whatever the number of experts.
        wrong = _wrong_class_cdf(inputs, codes, len(classes), noise, confusion_streams[group])
        for m in np.flatnonzero(groups == group):
            rng = expert_streams[m]
            chance = rates[m, codes]
            if noise == "instance" and sd > 0:
                chance = _truncated_normal(chance, sd, rng)
            mistaken = (rng.random((len(y), 1)) >= wrong).sum(axis=1)
            labels[:, m] = np.where(rng.random(len(y)) < chance, mistaken, codes)
    return Bunch(
        annotations=classes[labels],
        realized_rates=(labels != codes[:, None]).mean(axis=0),
        classes=classes,
    )


def sample_identified(annotations, n_per_expert, *, same_items=False, missing_label=-1, random_state=None):
    """Keep a few identified labels per expert and blank the others.

    Newcomers rarely label the same items, so each expert gets items of their own unless `same_items`.

    Parameters
    ----------
    annotations : array-like of shape (n_samples, n_experts)
        Labels, possibly with missing entries already.
    n_per_expert : int or array-like of shape (n_experts,)
        Labels to keep: one number for all (with `same_items`, it must be one number) or one per expert.
    same_items : bool, default=False
        Keep the same items for every expert, drawn from those that all experts labelled.
    missing_label : int, float, str or None, default=-1
        Marker of a missing entry, read in the input and written in the output. NaN and None are allowed
        where the dtype of `annotations` can hold them.
    random_state : None, int, numpy Generator or RandomState, default=None
        Seed; numpy's global generator is never used.

    Returns
    -------
    ndarray of shape (n_samples, n_experts)
        A copy with `n_per_expert` labels left in each column.

    Raises
    ------
    ValueError
        If an expert has fewer labels than asked for, or the dtype cannot hold `missing_label`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d.datasets import sample_identified
    >>> kept = sample_identified(np.ones((50, 3), dtype=int), 10, random_state=0)
    >>> (kept != -1).sum(axis=0)
    array([10, 10, 10])
    """
    annotations = np.asarray(annotations)
    if annotations.ndim != 2:
        raise ValueError(
            f"annotations has {annotations.ndim} dimension(s); one column per expert is needed: reshape it."
        )
    observed = ~_is_missing(annotations, missing_label)
    if same_items:
        if np.ndim(n_per_expert) != 0:
            raise ValueError("n_per_expert must be one number with same_items=True.")
        observed = np.repeat(observed.all(axis=1, keepdims=True), annotations.shape[1], axis=1)
    wanted = np.broadcast_to(n_per_expert, annotations.shape[1:])
    if not (np.issubdtype(wanted.dtype, np.integer) and (wanted >= 0).all()):
        raise ValueError(f"n_per_expert={n_per_expert!r} must hold integers >= 0.")
    for m in np.flatnonzero(wanted > observed.sum(axis=0))[:1]:
        source = "items that every expert labelled" if same_items else f"labels of expert {m}"
        raise ValueError(
            f"n_per_expert asks for {wanted[m]} labels, but there are only {observed[:, m].sum()} {source}; "
            "ask for fewer."
        )
    out = np.full_like(annotations, missing_label)
    rng = as_generator(random_state)
    for m, n in enumerate(wanted):
        if m == 0 or not same_items:
            rows = rng.permutation(np.flatnonzero(observed[:, m]))[:n]
        out[rows, m] = annotations[rows, m]
    return out


def as_generator(random_state):
    """numpy Generator for any kind of `random_state`, without the global generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


def encode_labels(y, classes=None):
    """Labels, sorted distinct classes (at least two) and class index of each label."""
    y = column_or_1d(y)
    classes = np.unique(y if classes is None else column_or_1d(classes))
    if len(classes) < 2:
        raise ValueError("y holds a single class; pass all of them as classes, a mistake needs two.")
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = np.unique(y[classes[codes] != y])
    if len(unknown):
        raise ValueError(f"y holds labels that classes lacks: {unknown[:5].tolist()}; add them to classes.")
    return y, classes, codes


def _check_rates(rates, n_classes):
    rates = np.atleast_1d(np.asarray(rates, dtype=float))
    if rates.ndim == 1:
        rates = np.repeat(rates[:, None], n_classes, axis=1)
    if rates.ndim != 2 or rates.shape[1] != n_classes or not len(rates):
        raise ValueError(
            f"rates has shape {rates.shape}; give one rate per expert, or (n_experts, {n_classes} classes)."
        )
    if not ((rates >= 0) & (rates <= 1)).all():
        raise ValueError("rates must lie in [0, 1]: they are chances of a mistake, not percentages.")
    return rates


def _check_groups(share_confusion, n_experts):
    if share_confusion is None or share_confusion is False:
        return np.arange(n_experts)
    if share_confusion is True:
        return np.zeros(n_experts, dtype=int)
    groups = np.unique(column_or_1d(share_confusion), return_inverse=True)[1]
    if len(groups) != n_experts:
        raise ValueError(f"share_confusion has {len(groups)} entries for {n_experts} rates; give one each.")
    return groups


def _wrong_class_cdf(X, codes, n_classes, noise, rng):
    """(n, C) cumulative distribution of the mistaken class; flat at the true one."""
    if noise == "instance":
        logits = np.empty((len(codes), n_classes))
        for c in range(n_classes):  # one W[c] at a time: never the whole (C, d, C) array
            rows = codes == c
            logits[rows] = X[rows] @ rng.standard_normal((X.shape[1], n_classes))
    elif noise == "class":
        logits = rng.standard_normal((n_classes, n_classes))[codes]
    else:
        logits = np.zeros((len(codes), n_classes))
    logits[np.arange(len(codes)), codes] = -np.inf
    cdf = np.cumsum(softmax(logits, axis=1), axis=1)
    return cdf / cdf[:, -1:]


def _truncated_normal(mean, sd, rng):
    """Draws of N(mean, sd) restricted to [0, 1], by inversion."""
    low, high = ndtr(-mean / sd), ndtr((1 - mean) / sd)
    return np.clip(mean + sd * ndtri(low + rng.random(len(mean)) * (high - low)), 0, 1)


def _is_missing(annotations, missing_label):
    """Entries equal to the marker; refuses a marker that the dtype would change."""

    def equals_marker(values):
        return values != values if missing_label != missing_label else values == missing_label

    try:
        with np.errstate(invalid="ignore"):  # NaN cast to an integer
            held = equals_marker(np.full_like(annotations, missing_label, shape=1))[0]
    except (TypeError, ValueError, OverflowError):
        held = False
    if not held:
        raise ValueError(
            f"missing_label={missing_label!r} does not fit annotations of dtype {annotations.dtype}; "
            "cast annotations to object, or choose another marker."
        )
    return equals_marker(annotations)
