"""How much annotators agree, where they answered the same items."""

import numbers

import numpy as np

from .._encoding import count_votes
from .._numerics._agreement import cohen_kappa, count_pairs, nominal_alpha, pair_alpha, raw_agreement
from ..annotations import encode_annotations

MEASURES = {"accuracy": raw_agreement, "alpha": pair_alpha, "kappa": cohen_kappa}


def pairwise_agreement(annotations, *, measure="kappa", min_overlap=2, missing_label=None):
    """Agreement of every pair of experts on the items that both answered.

    The similarity behind earlier clusterings of annotators (L2D-Clusters appendix B). It needs overlap: experts who
    answered different items cannot be compared, which is what `AnnotatorLDA` is for.

    Parameters
    ----------
    annotations : array-like or DataFrame of shape (n_samples, n_experts)
        Who answered what, one column per expert, with missing entries.

    measure : {"kappa", "alpha", "accuracy"}, default="kappa"
        Cohen's kappa, Krippendorff's alpha for nominal data, or the share of equal answers. The first two are 1 for
        perfect agreement, 0 for agreement by chance and negative for less.

    min_overlap : int, default=2
        Smallest number of common items.

    missing_label : scalar or collection of scalars, default=None
        The marker of a missing annotation, as in :func:`sklearn_l2d.annotations.encode_annotations`.

    Returns
    -------
    agreement : ndarray of shape (n_experts, n_experts)
        Symmetric; 1 on the diagonal. NaN where the overlap is below `min_overlap`, and for "kappa" and "alpha" where
        both gave one and the same answer all along, since chance explains that too.

    Raises
    ------
    ValueError
        If `measure` is unknown, `min_overlap` is below 1 or no whole number, or `annotations` is no table of labels.

    See Also
    --------
    krippendorff_alpha : One number for all experts.
    sklearn_l2d.cluster.AgreementClustering : Groups of experts who agree.
    sklearn.metrics.cohen_kappa_score : The same for two experts without missing answers.

    Examples
    --------
    >>> from sklearn_l2d.metrics import pairwise_agreement
    >>> annotations = [[0, 0, -1], [1, 1, -1], [0, 1, 1], [1, 1, 0]]
    >>> pairwise_agreement(annotations, measure="accuracy")
    array([[1.  , 0.75, 0.  ],
           [0.75, 1.  , 0.5 ],
           [0.  , 0.5 , 1.  ]])
    """
    if measure not in MEASURES:
        raise ValueError(f"measure={measure!r} is unknown; use one of {sorted(MEASURES)}.")
    if not isinstance(min_overlap, numbers.Integral) or min_overlap < 1:
        raise ValueError(f"min_overlap={min_overlap!r} must be a whole number of common items, at least 1.")
    codes, _, _ = encode_annotations(annotations, missing_label=missing_label)
    pairs = count_pairs(codes)
    agreement = MEASURES[measure](pairs)
    np.fill_diagonal(agreement, 1.0)
    agreement[pairs.common < min_overlap] = np.nan
    return agreement


def krippendorff_alpha(annotations, *, missing_label=None):
    """Krippendorff's alpha of all experts, for nominal labels and with missing annotations.

    Parameters
    ----------
    annotations : array-like or DataFrame of shape (n_samples, n_experts)
        Who answered what, one column per expert, with missing entries.

    missing_label : scalar or collection of scalars, default=None
        The marker of a missing annotation, as in :func:`sklearn_l2d.annotations.encode_annotations`.

    Returns
    -------
    alpha : float
        1 for perfect agreement, 0 for agreement by chance, negative for less. NaN where all answers that can be
        compared are the same.

    Raises
    ------
    ValueError
        If no item has two annotations, or `annotations` is no table of labels.

    See Also
    --------
    pairwise_agreement : The same for every pair of experts.

    References
    ----------
    Krippendorff, Computing Krippendorff's alpha-reliability, 2011.

    Examples
    --------
    >>> from sklearn_l2d.metrics import krippendorff_alpha
    >>> krippendorff_alpha([[0, 0, 0], [1, 1, -1], [1, 0, 1], [0, -1, 0]])
    0.625
    """
    codes, classes, _ = encode_annotations(annotations, missing_label=missing_label)
    counts = count_votes(codes, len(classes))
    if not (counts.sum(1) >= 2).any():
        raise ValueError("no item has two annotations, so that nobody can be compared; pass items that overlap.")
    return nominal_alpha(counts)
