"""Held-out perplexity for every number of behaviours, and how many of them are used."""

import numbers
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch

from .._encoding import check_row_count
from .._last_step import last_step
from .._numerics._marginal_likelihood import likelihood_method
from .._rows import same_rows
from ..annotations import encode_counts
from ..cluster import AnnotatorLDA
from ._n_clusters import lowest_perplexity, rate_of_perplexity_change, rates_of_change


def perplexity_curve(estimator, X, y, *, n_clusters=(1, 2, 3, 4, 5, 6), cv=5, groups=None, n_jobs=None):
    """Held-out perplexity of anonymous annotations for several numbers of behaviours (L2D-Clusters Fig. 7).

    What scikit-learn's `validation_curve` is to other parameters. Every number of behaviours is fitted to the same
    folds and judged by the same likelihood. Besides the perplexity it reports how many of the behaviours are used,
    since a model need not use all that it was given (L2D-Clusters appendix K).

    Parameters
    ----------
    estimator : AnnotatorLDA, or a Pipeline that ends in one
        Not fitted here, only cloned. Give it a `random_state`. ``likelihood="auto"`` is decided once, from the largest
        number of behaviours, so that all perplexities have the same meaning.

    X : array-like of shape (n_samples, n_features)
        Items.

    y : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape (n_samples,)
        Votes per class, or one label per item.

    n_clusters : array-like of int, default=(1, 2, 3, 4, 5, 6)
        Numbers of behaviours, at least one of them, in any order.

    cv : int, splitter or iterable of splits, default=5
        A number of folds is shuffled, with a fixed seed, because archives are often sorted by class. A splitter is
        taken as it is.

    groups : array-like of shape (n_samples,), default=None
        Groups of items for a splitter such as `GroupKFold`.

    n_jobs : int, default=None
        Number of processes, as in `GridSearchCV`.

    Returns
    -------
    Bunch
        All arrays are in the order of `n_clusters`.

        - ``n_clusters`` : ndarray of shape (n_values,), sorted.
        - ``perplexity`` : ndarray of shape (n_values,), ``exp`` of minus the mean score over the folds, as the rules
          read it.
        - ``fold_perplexity`` : ndarray of shape (n_values, n_folds).
        - ``perplexity_std`` : ndarray of shape (n_values,), standard deviation of ``fold_perplexity``. Folds differ in
          how hard their items are, which all numbers of behaviours share: compare behaviours fold by fold.
        - ``rate`` : ndarray of shape (n_values,), fall of the perplexity per behaviour that was added (Eq. 46,
          corrected: a rise counts as zero); the first is NaN.
        - ``n_used`` : ndarray of shape (n_values,), behaviours that carry at least 1 % of the votes and do not answer
          like another one everywhere, mean over the folds.
        - ``lowest`` : int, what `lowest_perplexity` chooses.
        - ``largest_rate`` : int or None, what `rate_of_perplexity_change` chooses; None with a single number.
        - ``likelihood`` : str, how the likelihood was found.

    Raises
    ------
    TypeError
        If `estimator` does not end in an `AnnotatorLDA`.
    ValueError
        If `n_clusters` is not made of positive integers, or `X` and `y` do not go together.

    See Also
    --------
    sklearn_l2d.inspection.PerplexityDisplay : Picture of it.
    lowest_perplexity : The minimum, for the `refit` of a search.
    rate_of_perplexity_change : The largest fall, for the `refit` of a search.

    Notes
    -----
    Where every item is annotated by people from the whole pool (large `alpha`), anonymous votes determine their average
    and little else, and the perplexity is nearly flat in the number of behaviours. An archive whose items were each
    handled by people of one kind (small `alpha`) shows how many kinds there are.

    References
    ----------
    L2D-Clusters, appendix L, Eq. 45 to 47.

    Examples
    --------
    >>> from sklearn_l2d import AnnotatorLDA
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.model_selection import perplexity_curve
    >>> crowd = load_digits_crowd(n_anonymous=200)
    >>> lda = AnnotatorLDA(
    ...     max_epochs=10, n_anchor_epochs=5, n_consensus_epochs=5, random_state=0
    ... )
    >>> curve = perplexity_curve(lda, crowd.X_anonymous, crowd.counts, n_clusters=[1, 2], cv=2)
    >>> curve.n_clusters, curve.fold_perplexity.shape
    (array([1, 2]), (2, 2))
    """
    prefix = _prefix(estimator)
    tried = _check_n_clusters(n_clusters)
    X, y, groups = same_rows(X=X, y=y, groups=groups)
    counts, _ = encode_counts(y)
    check_row_count(counts, len(X), "y")
    estimator, name = clone(estimator), f"{prefix}likelihood"
    likelihood = estimator.get_params()[name]
    if likelihood == "auto":
        likelihood = likelihood_method(counts, tried.max())
        estimator.set_params(**{name: likelihood})
    search = GridSearchCV(
        estimator,
        {f"{prefix}n_clusters": tried.tolist()},
        scoring=_score,
        cv=KFold(cv, shuffle=True, random_state=0) if isinstance(cv, numbers.Integral) else cv,
        refit=False,
        error_score="raise",
        n_jobs=n_jobs,
    )
    with warnings.catch_warnings():
        # here a collapse is a result, n_used, and not a mishap
        warnings.filterwarnings("ignore", "clusters collapsed", ConvergenceWarning)
        search.fit(X, counts, **({} if groups is None else {"groups": groups}))
    return Bunch(**read_curve(search.cv_results_), likelihood=likelihood)


def read_curve(cv_results):
    """The curve of a search over `n_clusters`: a Bunch as described in `perplexity_curve`, without ``likelihood``.

    Where other parameters were searched too, each number of clusters has its best row. What the search did not record
    is None: the folds, ``n_used``.
    """
    rows, tried, rate = rates_of_change(cv_results)
    n_folds = sum(name.startswith("split") and name.endswith("_test_score") for name in cv_results)
    folds = None
    if n_folds:
        folds = np.exp(-np.column_stack([cv_results[f"split{fold}_test_score"] for fold in range(n_folds)])[rows])
    used = cv_results.get("mean_test_n_used")
    chosen = {"lowest": lowest_perplexity(cv_results), "largest_rate": None}
    if len(tried) > 1:
        chosen["largest_rate"] = rate_of_perplexity_change(cv_results)
    return Bunch(
        n_clusters=tried,
        perplexity=np.exp(-np.asarray(cv_results["mean_test_score"], dtype=float)[rows]),
        fold_perplexity=folds,
        perplexity_std=None if folds is None else folds.std(1),
        rate=np.concatenate([[np.nan], rate]),
        n_used=None if used is None else np.asarray(used, dtype=float)[rows],
        **{rule: None if row is None else int(tried[rows == row][0]) for rule, row in chosen.items()},
    )


def _prefix(estimator):
    """Prefix of the parameters of the AnnotatorLDA at the end of a pipeline."""
    prefix, last = "", estimator
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        prefix += f"{name}__"
    if not isinstance(last, AnnotatorLDA):
        raise TypeError(
            f"estimator ends in {type(last).__name__}; pass an AnnotatorLDA, or a Pipeline that ends in one."
        )
    return prefix


def _check_n_clusters(n_clusters):
    tried = np.atleast_1d(n_clusters)
    if tried.ndim != 1 or not len(tried) or tried.dtype.kind not in "iu" or tried.min() < 1:
        raise ValueError(f"n_clusters={n_clusters!r} must be integers from 1 upwards; pass for instance range(1, 7).")
    return np.unique(tried)


def _score(estimator, X, counts):
    """Log-likelihood per held-out vote, and how many behaviours are used by the rule behind the warning of `fit`."""
    lda, items = last_step(estimator, X)
    return {"score": lda.score(items, counts), "n_used": int(lda.used_clusters(items).sum())}
