"""When to stop asking so that the share of wrong labels stays below a bound, by held-out items of known truth."""

import math

import numpy as np
from scipy.special import expit
from scipy.stats import binom

# from careful to careless; fixed beforehand, so that they do not depend on the items that they are tested on
_THRESHOLDS = np.append(np.inf, expit(np.linspace(12, -4, 321)))


def n_items_needed(error, level):
    """Least number of held-out items, all decided correctly, that can show an error below a bound at a level."""
    return math.ceil(math.log1p(-level) / math.log1p(-error))


def confidence_bound(confidence, wrong, error, level):
    """Lowest confidence to stop at with an error that exceeds the bound with probability ``1 - level`` at most.

    Thresholds are tested from the most careful one on, which stops nowhere, until one cannot be shown to keep the
    bound (fixed-sequence testing: Angelopoulos, Bates, Candes, Jordan and Lei, Learn then test, 2021). The bound holds
    for any distribution of the items and answers and any model, if the held-out items are drawn like future ones.

    Parameters
    ----------
    confidence : ndarray of shape (n_items, n_steps)
        Probability of the label after each answer, first before any; NaN after the last answer.
    wrong : ndarray of bool of shape (n_items, n_steps)
        Whether the label is wrong.
    error : float
        Bound on the share of wrong labels.
    level : float
        Probability with which the bound holds.

    Returns
    -------
    threshold : float or None
        inf to use all answers; None if not even they keep the bound.
    n_wrong : int
        Number of items that are wrong at this threshold, or with all answers for None.
    """
    n = len(confidence)
    last = (~np.isnan(confidence)).sum(1) - 1
    best, n_best = None, int(wrong[np.arange(n), last].sum())
    for threshold in _THRESHOLDS:
        reached = confidence >= threshold  # False after the last answer
        stop = np.where(reached.any(1), reached.argmax(1), last)
        n_wrong = int(wrong[np.arange(n), stop].sum())
        if binom.cdf(n_wrong, n, error) > 1 - level:
            break
        best, n_best = float(threshold), n_wrong
    return best, n_best
