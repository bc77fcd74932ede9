"""The classifier of a team: cloned or frozen, with out-of-fold probabilities on the training rows."""

import numpy as np
from scipy.special import softmax
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._classifiers import expand, in_its_type, out_of_fold, own_proba
from .._encoding import some
from .._numerics._answers import fit_temperature
from .._numerics._matrices import row_chunks
from .._sklearn import take_rows, warn


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


def fit_classifier(classifier, X, y, seed, sample_weight=None, archive=None, answers=None):
    """Fitted clone of the classifier, or the classifier itself if it is a `FrozenEstimator`.

    Weights of the items are passed on where its `fit` takes some; otherwise a warning says that it does not. From the
    votes of an `Archive`, it learns beside the labels; where it counts votes, the `answers` (n, C) of the team to the
    labelled items say how people err.
    """
    if isinstance(classifier, FrozenEstimator):
        return classifier
    if sample_weight is not None and _fit_parameter(classifier, "sample_weight") is None:
        warn(
            f"the fit of the classifier {type(classifier).__name__} takes no sample_weight, so that its items count "
            "alike; all else that is learnt is weighted. Give a classifier that takes it."
        )
    fitted = _train(with_seed(classifier, seed), X, y, sample_weight, archive, answers)
    classes_of(fitted, "classifier")
    return fitted


def _train(classifier, X, y, sample_weight, archive, answers):
    """Fitted clone of a classifier; what its `fit` does not take is left out."""
    given = {}
    if archive is not None:
        X, y, sample_weight = archive.behind(X, y, sample_weight)
        if _fit_parameter(classifier, "counts") is not None:
            given |= {"counts": archive.counts_behind(answers), "classes": archive.classes}
        else:
            given["annotations"] = archive.votes_behind(len(answers))
    given |= {} if sample_weight is None else {"sample_weight": sample_weight}
    named = {_fit_parameter(classifier, name): value for name, value in given.items()}
    named.pop(None, None)
    return in_its_type(lambda X: clone(classifier).fit(X, y, **named), X)


def _fit_parameter(classifier, name):
    """Name under which `fit` of a classifier takes what is called `name`, None if it does not."""
    if has_fit_parameter(classifier, name):
        return name
    if get_config()["enable_metadata_routing"]:
        return name if get_routing_for_object(classifier).consumes("fit", [name]) else None
    if isinstance(classifier, Pipeline):
        step, last = classifier.steps[-1]
        last = None if last == "passthrough" else _fit_parameter(last, name)
        return None if last is None else f"{step}__{last}"
    return None


def check_learns_from_votes(classifier, are_named):
    """Refuse a classifier that cannot learn from the archive's votes, which may come with their authors."""
    name, fix = type(classifier).__name__, "leave classifier=None, or give a CountsClassifier"
    if isinstance(classifier, FrozenEstimator):
        raise ValueError(
            f"votes_unlabeled train the classifier, but it is a FrozenEstimator and learns nothing; {fix}."
        )
    if _fit_parameter(classifier, "counts") is not None:
        return
    if _fit_parameter(classifier, "annotations") is None:
        raise ValueError(f"votes_unlabeled train the classifier, but {name} learns from labels only; {fix}.")
    if not are_named:
        raise ValueError(
            f"votes_unlabeled are counts or labels, but {name} learns from answers by name; give them as "
            f"encode_votes(answers), or {fix}."
        )


def judge_classifier(classifier, fitted, X, y, classes, fold, seed, sample_weight=None, archive=None, answers=None):
    """Calibrated, out-of-fold probabilities of the classifier on the rows that it was fitted on.

    Parameters
    ----------
    classifier, fitted : classifiers
        The unfitted classifier, and the one returned by `fit_classifier`.
    X, y : array-likes of n rows
        Labelled rows.
    classes : ndarray of shape (C,)
        All classes of the team.
    fold : ndarray of int of shape (n,) or None
        Of every row, as `folds_of` returns them; a frozen classifier needs none.
    seed : int
        Seed of the classifier and of the folds of the archive.
    sample_weight : ndarray of shape (n,), default=None
        Weights of the rows.
    archive : Archive, default=None
        Items with votes, none of them among `X`, which are in folds, too.
    answers : ndarray of shape (n, C), default=None
        With an archive, how many of the team gave which answer to the labelled items.

    Returns
    -------
    proba : ndarray of shape (n, C)
        Out-of-fold probabilities, calibrated by one temperature; in-sample probabilities would be too certain. A frozen
        classifier was not fitted on these rows, and its probabilities are used directly.
    temperature : float
    of_archive : ndarray of shape (n_archive, C) or None
        The same for the archive, whose votes the classifier knows.
    """
    y_codes, of_archive = np.searchsorted(classes, y), None
    if isinstance(classifier, FrozenEstimator):
        proba = expand(own_proba(fitted, X), fitted.classes_, classes)
    else:
        unfitted = with_seed(classifier, seed)
        proba, of_archive = _out_of_fold(unfitted, X, y, y_codes, classes, fold, seed, sample_weight, archive, answers)
    temperature = fit_temperature(np.log(proba), y_codes, sample_weight)
    for part in (proba,) if of_archive is None else (proba, of_archive):
        for rows in row_chunks(*part.shape):
            part[rows] = _at_temperature(part[rows], temperature)
    return proba, temperature, of_archive


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


def _out_of_fold(classifier, X, y, y_codes, classes, fold, seed, sample_weight, archive, answers):
    """Probabilities of labelled rows (n, C) and of the archive, if there is one, by models that saw neither."""
    of_archive = None
    if archive is not None:
        of_archive = np.empty((len(archive), len(classes)))
        part = np.random.default_rng(seed).permutation(len(archive)) % (fold.max() + 1)

    def fit(rows, number):
        weights, others = None if sample_weight is None else sample_weight[rows], (None, None)
        if archive is not None:
            others = archive.on(np.flatnonzero(part != number)), answers[rows]
        model = _train(classifier, take_rows(X, rows), y[rows], weights, *others)
        if archive is not None and (part == number).any():
            held_out = archive.on(np.flatnonzero(part == number))
            of_archive[part == number] = expand(own_proba(model, held_out.X), model.classes_, classes)
        return model

    return out_of_fold(fit, X, y_codes, classes, fold, needs_classes=archive is None), of_archive


def own_labels(classifier, X):
    """Labels that a classifier predicts."""
    return np.asarray(in_its_type(classifier.predict, X))
