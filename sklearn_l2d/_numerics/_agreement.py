"""Agreement between annotators: counts over the items that two of them share, and coefficients from these."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

_DENSE = 0.1  # share of answers above which dense products are faster


class PairCounts(NamedTuple):
    """What pairs of annotators answered on their common items; each of shape (M, M).

    Attributes
    ----------
    common : ndarray
        Number of items that both answered.
    alike : ndarray
        How many of them got the same answer.
    crossed : ndarray
        ``sum_c n_ic n_jc``, where n_ic counts the answers c of one of the two on the common items.
    squared : ndarray
        ``sum_c (n_ic + n_jc)^2``.
    """

    common: np.ndarray
    alike: np.ndarray
    crossed: np.ndarray
    squared: np.ndarray


def count_pairs(codes):
    """Compare all pairs of annotators at once.

    The cost of sparse annotations follows the number of shared answers: an item with A answers costs A^2, whatever
    the number of annotators.

    Parameters
    ----------
    codes : ndarray of shape (n, M)
        Encoded annotations, -1 missing.

    Returns
    -------
    counts : PairCounts
    """
    n, n_annotators = codes.shape
    item, who = np.nonzero(codes >= 0)
    label = codes[item, who].astype(np.intp)
    answered = _indicator(item, who, codes.shape)
    answer = _indicator(item + n * label, who, (n * (label.max(initial=0) + 1), n_annotators))
    crossed, squared = csr_array((n_annotators, n_annotators)), csr_array((n_annotators, n_annotators))
    for c in np.unique(label):
        # [i, j]: answers c of i on the items that j answered too
        mine = _cross(answer[n * c : n * (c + 1)], answered)
        crossed += mine.multiply(mine.T)
        squared += mine.multiply(mine)
    squared += squared.T + 2 * crossed
    tables = _cross(answered, answered), _cross(answer, answer), crossed, squared
    return PairCounts(*(table.toarray() for table in tables))


def raw_agreement(pairs):
    """Share of the common items with the same answer."""
    return _ratio(pairs.alike, pairs.common)


def cohen_kappa(pairs):
    """Cohen's kappa of every pair on its common items; NaN where chance alone would agree everywhere."""
    by_chance = _ratio(pairs.crossed, pairs.common**2)
    return _ratio(raw_agreement(pairs) - by_chance, 1 - by_chance)


def pair_alpha(pairs):
    """Krippendorff's alpha for nominal data of every pair; NaN where there is one answer only."""
    n = 2 * pairs.common
    by_chance = _ratio(n**2 - pairs.squared, n * (n - 1))
    return 1 - _ratio(1 - raw_agreement(pairs), by_chance)


def nominal_alpha(counts):
    """Krippendorff's alpha for nominal data, from votes (n, C); NaN where there is one answer only."""
    counts = counts[counts.sum(1) >= 2].astype(float)
    votes = counts.sum(1, keepdims=True)
    observed = (counts * (votes - counts) / (votes - 1)).sum()
    total, per_class = counts.sum(), counts.sum(0)
    expected = (per_class * (total - per_class)).sum() / (total - 1)
    return float(1 - observed / expected) if expected > 0 else float("nan")


def _indicator(item, who, shape):
    return csr_array((np.ones(len(item)), (item, who)), shape=shape)


def _cross(a, b):
    """Sparse ``a.T @ b``, through dense blocks where they are faster."""
    if b.nnz < _DENSE * b.shape[0] * b.shape[1]:
        return a.T @ b
    rows = np.flatnonzero(np.diff(a.indptr))
    a, b = (table[rows].astype(np.float32).toarray() for table in (a, b))  # exact: counts below 2^24
    return csr_array((a.T @ b).astype(float))


def _ratio(a, b):
    return np.divide(a, b, out=np.full(np.shape(a), np.nan), where=b > 0)
