"""The deferrer at the end of a pipeline or inside a search, and the items as it sees them."""

from sklearn.pipeline import Pipeline


def split_steps(estimator):
    """Look through fitted searches and pipelines, whose own methods know nothing of teams.

    Parameters
    ----------
    estimator : estimator
        Fitted.

    Returns
    -------
    transformers : list of estimators
        What transforms the items before they reach the last step.
    deferrer : estimator
        The last step, however deep.
    """
    if hasattr(estimator, "best_estimator_"):
        return split_steps(estimator.best_estimator_)
    if isinstance(estimator, Pipeline):
        transformers, deferrer = split_steps(estimator.steps[-1][1])
        return ([estimator[:-1], *transformers] if len(estimator) > 1 else transformers), deferrer
    return [], estimator


def last_step(estimator, X):
    """The last step of a search or pipeline, and the items as it sees them.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Items as `estimator` takes them.

    Returns
    -------
    deferrer : estimator
        The last step, however deep.
    X : array-like
        The items, transformed by the steps before it.
    """
    transformers, deferrer = split_steps(estimator)
    for transformer in transformers:
        X = transformer.transform(X)
    return deferrer, X
