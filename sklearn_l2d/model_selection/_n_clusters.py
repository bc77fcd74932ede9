"""How many behaviours: rules that read the results of a grid search over `n_clusters`."""

import numpy as np


def lowest_perplexity(cv_results):
    """Index of the lowest held-out perplexity; the fewest clusters where several tie.

    Parameters
    ----------
    cv_results : dict
        ``cv_results_`` of a search whose score is that of `AnnotatorLDA`, the log-likelihood per vote.

    Returns
    -------
    best_index : int
        Row of `cv_results`.

    Raises
    ------
    ValueError
        If the search did not vary `n_clusters`, or every fit failed.

    See Also
    --------
    rate_of_perplexity_change : Stops where more clusters bring little.

    References
    ----------
    L2D-Clusters, Eq. 45.

    Examples
    --------
    >>> from sklearn_l2d.model_selection import lowest_perplexity
    >>> lowest_perplexity(
    ...     {"param_n_clusters": [2, 3, 4], "mean_test_score": [-1.2, -1.1, -1.1]}
    ... )
    1
    """
    clusters, score = _read(cv_results)
    best = np.flatnonzero(score == np.nanmax(score))
    return int(best[clusters[best].argmin()])


def rate_of_perplexity_change(cv_results, marginal=None):
    """Index of the fewest clusters beyond which perplexity falls little more.

    Perplexity tends to fall with every cluster that is added. Between successive numbers of clusters the rate of
    its fall is ``RPC_i = (P_{i-1} - P_i) / (K_i - K_{i-1})`` (L2D-Clusters Eq. 46, corrected: a rise is no gain, and
    counts as zero). Other parameters of the grid enter by their best score for each number of clusters.

    Parameters
    ----------
    cv_results : dict
        ``cv_results_`` of a search whose score is that of `AnnotatorLDA`, the log-likelihood per vote.
    marginal : float, default=None
        None takes the number of clusters with the largest rate (Eq. 47). A fraction takes the fewest clusters after
        which every rate is below this fraction of the largest one, as the text around Eq. 47 describes it. Set it by
        ``functools.partial(rate_of_perplexity_change, marginal=0.1)``.

    Returns
    -------
    best_index : int
        Row of `cv_results`; the lowest perplexity where nothing falls.

    Raises
    ------
    ValueError
        If the search varied `n_clusters` over fewer than two numbers, or every fit failed.

    See Also
    --------
    lowest_perplexity : Takes the minimum.

    References
    ----------
    L2D-Clusters, Eq. 46 and 47.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d.model_selection import rate_of_perplexity_change
    >>> perplexity = np.array([4.0, 3.0, 2.9, 2.85])
    >>> rate_of_perplexity_change(
    ...     {"param_n_clusters": [1, 2, 3, 4], "mean_test_score": -np.log(perplexity)}
    ... )
    1
    """
    rows, tried, rates = rates_of_change(cv_results)
    if len(tried) < 2:
        raise ValueError(f"n_clusters was tried at {tried.tolist()} only; a rate of change needs at least two values.")
    if rates.max() == 0:
        return lowest_perplexity(cv_results)
    large = rates >= (1.0 if marginal is None else marginal) * rates.max()
    chosen = np.flatnonzero(large)[0 if marginal is None else -1]
    return int(rows[chosen + 1])


def rates_of_change(cv_results):
    """Best row of each number of clusters that was tried (n_values,), the numbers, and the rates (n_values - 1,)."""
    clusters, score = _read(cv_results)
    tried = np.unique(clusters[np.isfinite(score)])
    rows = np.array([np.nanargmax(np.where(clusters == k, score, np.nan)) for k in tried])
    return rows, tried, np.maximum(-np.diff(np.exp(-score[rows])) / np.diff(tried), 0.0)


def _read(cv_results):
    """Number of clusters and mean score of every row."""
    names = [n for n in cv_results if n == "param_n_clusters" or n.endswith("__n_clusters")]
    if len(names) != 1:
        raise ValueError(
            f"cv_results has the columns {names} for n_clusters; search over the n_clusters of one AnnotatorLDA."
        )
    if "mean_test_score" not in cv_results:
        raise ValueError(
            "cv_results lacks mean_test_score; search with the score of AnnotatorLDA, the default scoring."
        )
    score = np.asarray(cv_results["mean_test_score"], dtype=float)
    if np.isnan(score).all():
        raise ValueError("cv_results holds no finite score: every fit failed; set error_score='raise' to see why.")
    return np.asarray(cv_results[names[0]], dtype=int), score
