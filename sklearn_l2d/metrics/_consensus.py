"""How right a consensus is, with ties told apart from luck."""

import numpy as np
from sklearn.utils import check_consistent_length, check_random_state

from .._encoding import check_classes, label_array, some
from .._numerics._crowd_em import tied_classes
from .._rows import same_rows
from .._sklearn import check_weights
from .._validation import check_truth
from ._annotators import check_proba

_TIES = ("lowest", "shared", "random")


def consensus_accuracy(
    y_true,
    proba,
    *,
    classes=None,
    ties="lowest",
    sample_weight=None,
    unlabeled_label=None,
    random_state=None,
):
    """Share of the items of known truth whose most probable class is the true one.

    Few votes tie often, and then the order of the classes decides: on the crowd "web", a majority vote is right on
    .7765 of the items if the first of tied classes is taken, on .6792 if the last is, and on .7307 if tied classes
    share an item. Compare consensus methods with ``ties="shared"``.

    Parameters
    ----------
    y_true : array-like of shape (n_items,)
        True labels, missing where the truth is unknown: these items are left out.

    proba : array-like or DataFrame of shape (n_items, n_classes)
        Probabilities of the labels, as :meth:`sklearn_l2d.aggregation.DawidSkene.predict_proba` returns them.

    classes : array-like of shape (n_classes,), default=None
        Sorted class labels, in the order of the columns of `proba`. None takes 0, 1, ..., n_classes - 1.

    ties : {"lowest", "shared", "random"}, default="lowest"
        What an item counts whose probability is largest for m classes, of which one is true: 1 if it is the first of
        them, ``1 / m``, or 1 if it is the one that is drawn.

    sample_weight : array-like of shape (n_items,), default=None
        Weights of the items. None gives each of them weight 1.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y_true`, beside NaN, None and pandas.NA.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws among tied classes.

    Returns
    -------
    accuracy : float
        Between 0 and 1.

    Raises
    ------
    ValueError
        If `ties` is unknown, no truth is known, a true label is no class, or `proba` is not made of distributions over
        the classes, one for every entry of `y_true`.

    Examples
    --------
    >>> from sklearn_l2d.metrics import consensus_accuracy
    >>> y_true, proba = [1, 1, None], [[0.5, 0.5], [0.2, 0.8], [1.0, 0.0]]
    >>> [consensus_accuracy(y_true, proba, ties=ties) for ties in ("lowest", "shared")]
    [0.5, 0.75]
    """
    if ties not in _TIES:
        raise ValueError(f"ties={ties!r} is unknown; use one of {_TIES}.")
    y_true, proba, sample_weight = same_rows(y_true=y_true, proba=proba, sample_weight=sample_weight)
    classes = None if classes is None else check_classes(classes)
    proba = check_proba(proba, ("n_items", "n_classes"), None if classes is None else len(classes))
    classes = np.arange(proba.shape[1]) if classes is None else classes
    labels, known = check_truth(label_array(y_true), len(proba), unlabeled_label)
    check_consistent_length(known, proba)
    weight = check_weights(sample_weight, proba)[known]
    if not weight.any():
        raise ValueError("y_true holds no known label of positive weight; pass some.")
    place = {label: code for code, label in enumerate(classes.tolist())}
    strange = sorted(set(labels.tolist()) - set(place))
    if strange:
        raise ValueError(
            f"y_true holds {some(strange)}, which are no classes; the classes are {some(list(place))}. Pass classes=, "
            "or unlabeled_label= for a marker of unknown truth."
        )
    code = np.array([place[label] for label in labels.tolist()], dtype=np.intp)
    tied = tied_classes(proba[known])
    if ties == "shared":
        right = tied[np.arange(len(code)), code] / tied.sum(1)
    elif ties == "lowest":
        right = tied.argmax(1) == code
    else:
        right = np.where(tied, check_random_state(random_state).random_sample(tied.shape), -1.0).argmax(1) == code
    return float(np.average(right, weights=weight))
