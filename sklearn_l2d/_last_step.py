"""The deferrer at the end of a pipeline or inside a search, and the items as it sees them."""

from sklearn.pipeline import Pipeline


def last_step(estimator, X):
    """Look through fitted searches and pipelines, whose own methods know nothing of teams.

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
    if hasattr(estimator, "best_estimator_"):
        return last_step(estimator.best_estimator_, X)
    if isinstance(estimator, Pipeline):
        return last_step(estimator.steps[-1][1], estimator[:-1].transform(X) if len(estimator) > 1 else X)
    return estimator, X
