"""Classifiers of the user: probabilities for all classes, out of fold, and fits to distributions of labels."""

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from ._sklearn import take_rows

FLOOR = 1e-6  # probability of a class that a fold did not contain
_LEAST = 1e-3  # probability of a label that is worth a row


def in_its_type(call, X):
    """``call(X)``; nets of torch that refuse float64 see the items as float32."""
    try:
        return call(X)
    except RuntimeError as error:
        if getattr(X, "dtype", None) != np.float64 or "ouble" not in str(error):
            raise
    return call(X.astype(np.float32))


def out_of_fold(fit, X, y_codes, classes, fold, *, needs_classes=True):
    """Probabilities (n, C) on rows that a classifier was not fitted to.

    Parameters
    ----------
    fit : callable
        ``fit(rows, number)`` returns a classifier that is fitted to the rows outside of a fold.
    X : array-like of n rows
        Items.
    y_codes : ndarray of int of shape (n,)
        Positions in `classes` of the labels.
    classes : ndarray of shape (C,)
        All classes.
    fold : ndarray of int of shape (n,)
        Of every row, as `folds_of` returns them.
    needs_classes : bool, default=True
        Whether rows of a single class cannot be fitted to; then their class is predicted.
    """
    proba = np.full((len(fold), len(classes)), FLOOR)
    for number in range(fold.max() + 1):
        seen, unseen = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        if needs_classes and len(np.unique(y_codes[seen])) < 2:
            proba[unseen, y_codes[seen][0]] = 1.0
        else:
            model = fit(seen, number)
            proba[unseen] = expand(own_proba(model, take_rows(X, unseen)), model.classes_, classes)
    return proba / proba.sum(1, keepdims=True)


def fit_to_proba(classifier, X, proba, classes, least=_LEAST):
    """Fit a clone of a classifier to distributions of labels.

    Where its `fit` takes weights, an item is one row for each of its classes, which weighs as much as the class is
    probable; else it is its most probable class.

    Parameters
    ----------
    classifier : classifier
    X : array-like of n rows
        Items.
    proba : ndarray of shape (n, C)
        Distributions of their labels.
    classes : ndarray of shape (C,)
        Labels.
    least : float
        Probability below which a label is no row of its own.
    """
    model, best = clone(classifier), proba.argmax(1)
    if (proba.max(1) == 1).all() or not has_fit_parameter(model, "sample_weight"):
        return model.fit(X, classes[best])
    rows, codes = np.nonzero(proba >= least)
    return model.fit(take_rows(X, rows), classes[codes], sample_weight=proba[rows, codes])


def own_proba(classifier, X):
    """Probabilities of a classifier in the order of its own classes; refused where they are none."""
    proba = in_its_type(classifier.predict_proba, X)
    wrong = ~np.isfinite(proba).all(axis=1)
    if wrong.any():
        raise FloatingPointError(
            f"the predict_proba of the classifier {type(classifier).__name__} holds NaN or infinity for "
            f"{int(wrong.sum())} of {len(wrong)} items, as where its training diverged: lower its learning rate (lr), "
            "scale the columns of X to similar sizes, for instance with StandardScaler, or give another classifier."
        )
    return proba


def expand(proba, own_classes, classes):
    """Probabilities in the order of `classes`; classes that the model does not know get a floor."""
    full = np.full((len(proba), len(classes)), FLOOR)
    full[:, np.searchsorted(classes, own_classes)] = np.maximum(proba, FLOOR)
    return full / full.sum(1, keepdims=True)
