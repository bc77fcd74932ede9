"""Whether a consensus treats two groups of items alike, and whether annotators do."""

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_consistent_length, column_or_1d

from .._encoding import known_labels, label_array, some
from .._rows import same_rows
from .._votes import make_votes

RATES = "accuracy", "false positive rate", "positive share"


def consensus_parity(y_pred, groups, y_true=None, *, pos_label=None):
    """Differences between two groups of items in what a consensus, or a classifier, makes of them.

    The standard error of a difference is that of two independent shares (delta method). Demographic parity compares
    the shares of positive labels, which needs no truth (crowd tutorial, part III).

    Parameters
    ----------
    y_pred : array-like of shape (n_items,)
        Labels of the consensus.

    groups : array-like of shape (n_items,)
        Group of every item, of two.

    y_true : array-like of shape (n_items,), default=None
        True labels, missing where the truth is unknown. None knows none of them.

    pos_label : object, default=None
        The label that is a benefit or a burden. None stands for the last of two.

    Returns
    -------
    parity : DataFrame of shape (3, 4)
        Rows "accuracy", "false positive rate" and "positive share"; columns are the two groups in sorted order, the
        "difference" of the second from the first, and its "standard error". NaN where a group has no item to tell.

    Raises
    ------
    ValueError
        If there are not two groups, lengths differ, or there are several labels of which none is named.

    See Also
    --------
    confusion_by_group : Whether annotators err alike in all groups.

    Examples
    --------
    >>> from sklearn_l2d.metrics import consensus_parity
    >>> y_pred, groups = [1, 1, 0, 0, 1, 0, 0, 0], list("aaaabbbb")
    >>> parity = consensus_parity(y_pred, groups, y_true=[1, 0, 0, 0, 1, 1, 0, 0])
    >>> parity.loc["positive share"].round(2).tolist()
    [0.5, 0.25, -0.25, 0.33]
    """
    import pandas as pd

    y_pred, groups, y_true = same_rows(y_pred=y_pred, groups=groups, y_true=y_true)
    check_consistent_length(y_pred, groups, y_true)
    pred, groups = _known_column(y_pred, "y_pred"), _known_column(groups, "groups")
    truth, known = np.empty(0, pred.dtype), np.zeros(len(pred), dtype=bool)
    if y_true is not None:
        truth, known = known_labels(column_or_1d(label_array(y_true)))
    names = np.unique(groups)
    if len(names) != 2:
        raise ValueError(f"groups holds {len(names)} groups, {some(names.tolist())}; pass the items of two.")
    labels = sorted({*pred.tolist(), *truth.tolist()})
    if pos_label is None:
        if len(labels) != 2:
            raise ValueError(f"there are {len(labels)} labels, {some(labels)}; name one of them as pos_label.")
        pos_label = labels[1]
    elif pos_label not in labels:
        raise ValueError(f"pos_label={pos_label!r} is none of the labels {some(labels)}; name one of them.")
    positive = pred == pos_label
    negative = np.flatnonzero(known)[truth != pos_label]
    told = {
        "accuracy": (np.flatnonzero(known), pred[known] == truth),
        "false positive rate": (negative, positive[negative]),
        "positive share": (np.arange(len(pred)), positive),
    }
    rows = []
    for rate in RATES:
        item, hit = told[rate]
        inside = [hit[groups[item] == name] for name in names]
        shares = np.array([part.mean() if len(part) else np.nan for part in inside])
        spread = [share * (1 - share) / max(len(part), 1) for share, part in zip(shares, inside, strict=True)]
        rows.append([*shares, shares[1] - shares[0], np.sqrt(sum(spread))])
    return pd.DataFrame(rows, index=list(RATES), columns=[*names.tolist(), "difference", "standard error"])


def _known_column(values, name):
    """A column of labels as an array, of which none may be missing."""
    labels = column_or_1d(label_array(values))
    if not known_labels(labels)[1].all():
        raise ValueError(f"{name} holds missing entries; leave these items out.")
    return labels


def confusion_by_group(aggregator, annotations, groups, y=None, *, missing_label=None):
    """Confusion matrices of the annotators, in every group of items by a consensus of its own.

    Annotators may err otherwise about some items than about others (crowd tutorial, part III).

    Parameters
    ----------
    aggregator : aggregator
        Unfitted, such as :class:`sklearn_l2d.aggregation.DawidSkene`; a clone is fitted to each group.

    annotations : array-like or DataFrame of shape (n_items, n_annotators), or Votes
        Who answered what, one column per annotator, with missing entries.

    groups : array-like of shape (n_items,)
        Group of every item.

    y : array-like of shape (n_items,), default=None
        True labels, missing where the truth is unknown. None knows none of them.

    missing_label : scalar, default=None
        The marker of a missing annotation, as in :func:`sklearn_l2d.annotations.encode_annotations`.

    Returns
    -------
    matrices : dict
        For every group, in sorted order, an ndarray of shape (n_annotators, n_classes, n_classes): the probability of
        an answer (last axis) given the true class. Classes are sorted, and the same in all groups.

    Raises
    ------
    ValueError
        If a group has no answer, or lengths differ.

    See Also
    --------
    consensus_parity : Whether the consensus treats two groups alike.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import DawidSkene
    >>> from sklearn_l2d.metrics import confusion_by_group
    >>> votes = [[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]]
    >>> groups = ["old", "old", "new", "new", "new", "new"]
    >>> matrices = confusion_by_group(DawidSkene(prior=0.1), votes, groups)
    >>> [round(m[2].trace().item() / 2, 2) for m in matrices.values()]
    [0.05, 0.92]
    """
    votes = make_votes(annotations, missing_label=missing_label)
    votes, groups, y = same_rows(annotations=votes, groups=groups, y=y)
    groups, y = _known_column(groups, "groups"), None if y is None else column_or_1d(label_array(y))
    check_consistent_length(votes, groups, y)
    if y is not None:
        votes = votes.recode(np.union1d(votes.classes, known_labels(y)[0]))
    matrices = {}
    for name in np.unique(groups).tolist():
        inside = groups == name
        if not len(votes[inside].item):
            raise ValueError(f"the group {name} of groups has no answer; leave its items out.")
        fitted = clone(aggregator).fit(votes[inside], None if y is None else y[inside])
        matrices[name] = fitted.confusion_matrices_
    return matrices
