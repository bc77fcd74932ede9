"""The classifier of a team: cloned or frozen, with out-of-fold probabilities on the training rows."""

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .._classifiers import expand, in_its_type, out_of_fold, own_proba
from .._encoding import some
from .._numerics._answers import fit_temperature
from .._numerics._matrices import row_chunks
from .._sklearn import take_rows


def team_classes(y, classes, parts):
    """Sorted labels of `y`, `classes` and the frozen estimators in `parts`, a dict by name."""
    known = {"classes": np.asarray(classes)}
    for name, part in parts.items():
        if isinstance(part, FrozenEstimator):
            check_is_fitted(part)
            known[name] = classes_of(part, name)
    known = {name: labels for name, labels in known.items() if len(labels)}
    for name, labels in known.items():
        if isinstance(labels[0], str) != isinstance(y[0], str):
            raise ValueError(
                f"{name} knows the classes {some(list(labels))}, but y holds {some(list(np.unique(y)))}; fit it to the "
                "same labels."
            )
    return np.unique(np.concatenate([y, *known.values()]))


def classes_of(part, name):
    """Labels of a fitted part of a team, refused if it does not tell them."""
    if not hasattr(part, "classes_"):
        part = getattr(part, "estimator", part)
        raise ValueError(
            f"{name}={type(part).__name__} has no classes_ after its fit, so that nobody knows which labels its "
            "probabilities belong to; set classes_ to its sorted labels."
        )
    return part.classes_


def fit_classifier(classifier, X, y, seed):
    """Fitted clone of the classifier, or the classifier itself if it is a `FrozenEstimator`."""
    if isinstance(classifier, FrozenEstimator):
        return classifier
    fitted = in_its_type(lambda X: clone(with_seed(classifier, seed)).fit(X, y), X)
    classes_of(fitted, "classifier")
    return fitted


def judge_classifier(classifier, fitted, X, y, classes, cv, seed):
    """Calibrated, out-of-fold probabilities of the classifier on the rows that it was fitted on.

    Parameters
    ----------
    classifier, fitted : classifiers
        The unfitted classifier, and the one returned by `fit_classifier`.
    X, y : array-likes of n rows
        Labelled rows.
    classes : ndarray of shape (C,)
        All classes of the team.
    cv : int
        Number of folds; fewer if a class or the data set is smaller.
    seed : int
        Seed of the folds.

    Returns
    -------
    proba : ndarray of shape (n, C)
        Out-of-fold probabilities, calibrated by one temperature; in-sample probabilities would be too certain. A frozen
        classifier was not fitted on these rows, and its probabilities are used directly.
    temperature : float
    """
    y_codes = np.searchsorted(classes, y)
    if isinstance(classifier, FrozenEstimator):
        proba = expand(own_proba(fitted, X), fitted.classes_, classes)
    else:
        seeded = with_seed(classifier, seed)

        def fit(rows):
            return in_its_type(lambda X: clone(seeded).fit(X, y[rows]), take_rows(X, rows))

        proba = out_of_fold(fit, X, y_codes, classes, cv, seed)
    temperature = fit_temperature(np.log(proba), y_codes)
    for rows in row_chunks(*proba.shape):
        proba[rows] = _at_temperature(proba[rows], temperature)
    return proba, temperature


def tempered_proba(classifier, X, classes, temperature):
    """Probabilities (n, C) of a fitted classifier at a temperature, in the order of `classes`."""
    own = own_proba(classifier, X)
    proba = np.empty((len(own), len(classes)))
    for rows in row_chunks(*proba.shape):  # arrays between the steps stay in the cache, and are not allocated anew
        proba[rows] = _at_temperature(expand(own[rows], classifier.classes_, classes), temperature)
    return proba


def _at_temperature(proba, temperature):
    return softmax(np.log(proba) / temperature, axis=1)


def with_seed(estimator, seed):
    """The estimator, or a clone with `seed` for every `random_state` that is None."""
    open_ = [n for n, v in estimator.get_params().items() if n.split("__")[-1] == "random_state" and v is None]
    if not open_ or isinstance(estimator, FrozenEstimator):
        return estimator
    return clone(estimator).set_params(**dict.fromkeys(open_, seed))


def own_labels(classifier, X):
    """Labels that a classifier predicts."""
    return np.asarray(in_its_type(classifier.predict, X))
