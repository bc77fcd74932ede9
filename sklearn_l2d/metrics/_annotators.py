"""Metrics of annotators: how well their votes are predicted, how different they are, and the one-net rival."""

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from .._encoding import check_classes, sparse_counts
from .._numerics._marginal_likelihood import check_alpha, likelihood_method, log_marginal
from .._rows import same_rows
from .._validation import answers_among
from ..annotations import encode_counts

_METHODS = ("auto", "exact", "sobol")


def annotation_perplexity(counts, proba, alpha, *, method="auto"):
    """Perplexity of anonymous annotations under K behaviours (L2D-Clusters Eq. 45).

    ``exp(-sum_n ln Pr(t_n | x_n, alpha) / sum_n L_n)``, where the mixture of behaviours behind the L_n votes for an
    item is integrated out of ``Pr(t_n | x_n, alpha)``. The paper leaves open how; here it is exact where that is
    affordable, and otherwise an average over 1,024 fixed quasi-random mixtures. The multinomial coefficient is left
    out, as it is the same for every model.

    Parameters
    ----------
    counts : array-like or DataFrame of shape (n_samples, n_classes)
        Votes per class, real-valued weights allowed; a row of zeros is an item that nobody annotated. The sorted
        columns of a DataFrame are taken to be the classes of `proba`.

    proba : array-like of shape (n_samples, n_clusters, n_classes)
        What each behaviour would answer, as `AnnotatorLDA.predict_annotation_proba` returns it.

    alpha : float or array-like of shape (n_clusters,)
        Dirichlet concentration of the mixtures, such as `alpha_` of `AnnotatorLDA`.

    method : {"auto", "exact", "sobol"}, default="auto"
        "auto" decides from the largest number of votes of an item and from the number of behaviours. Fix it when
        different numbers of behaviours are compared, so that their perplexities have the same meaning.

    Returns
    -------
    perplexity : float
        In effective classes per vote, lower is better: 1 for certain and right predictions, `n_classes` for uniform
        ones, infinity where a vote is impossible under every behaviour.

    Raises
    ------
    ValueError
        If `counts` holds no votes or is no table of counts, `proba` is not made of distributions over its classes,
        `alpha` is not positive or of another length, or `method` is unknown or "exact" for fractional votes.

    See Also
    --------
    sklearn_l2d.cluster.AnnotatorLDA.perplexity : The same of a fitted estimator, from items.

    Examples
    --------
    >>> from sklearn_l2d.metrics import annotation_perplexity
    >>> round(annotation_perplexity([[3, 1]], [[[0.5, 0.5], [0.5, 0.5]]], alpha=50), 6)
    2.0
    """
    if method not in _METHODS:
        raise ValueError(f"method={method!r} is unknown; use one of {_METHODS}.")
    if len(np.shape(counts)) != 2:
        raise ValueError(f"counts must be 2-D, (n_samples, n_classes), got shape {np.shape(counts)}; see to_counts.")
    counts, _ = encode_counts(counts)
    proba = check_proba(proba, ("n_samples", "n_clusters", "n_classes"), counts.shape[1])
    check_consistent_length(counts, proba)
    alpha = check_alpha(alpha, proba.shape[1])
    labels, votes = sparse_counts(counts)
    if method == "auto":
        method = likelihood_method(votes, len(alpha))
    voted = np.take_along_axis(proba, labels[:, None], 2).transpose(0, 2, 1)
    voted = np.where(votes[:, :, None] > 0, voted, 1.0)  # padding names a class that nobody voted for
    if (voted.max(2) == 0).any():
        return float(np.inf)
    with np.errstate(divide="ignore"):
        log_f = np.log(voted)
    return float(np.exp(-log_marginal(log_f, votes, alpha, method).sum() / votes.sum()))


def membership_dissimilarity(membership):
    """Mean cosine dissimilarity over all pairs of experts (L2D-Clusters Table 2, right).

    How diverse a clustering is, ``mean_{i < j} (1 - cos(membership_i, membership_j))``: 0 when every expert has the
    same membership, 1 when no two of them share a cluster. It says nothing about whether the clusters are right.

    Parameters
    ----------
    membership : array-like or DataFrame of shape (n_experts, n_clusters)
        One non-negative row per expert, as `AnnotatorLDA.transform` returns it.

    Returns
    -------
    dissimilarity : float
        Between 0 and 1.

    Raises
    ------
    ValueError
        If there are fewer than two experts, or a row is zero or holds negative, NaN or infinite entries.

    Examples
    --------
    >>> from sklearn_l2d.metrics import membership_dissimilarity
    >>> membership_dissimilarity([[1, 0], [1, 0], [0, 1]])
    0.666...
    """
    membership = check_array(membership, dtype=np.float64, input_name="membership")
    n_experts = len(membership)
    if n_experts < 2:
        raise ValueError("membership has one row; dissimilarity is defined between at least two experts.")
    length = np.linalg.norm(membership, axis=1, keepdims=True)
    wrong = np.flatnonzero((membership.min(1) < 0) | (length[:, 0] == 0))
    if len(wrong):
        raise ValueError(f"membership has negative or no weights in rows {wrong[:5].tolist()}; pass shares.")
    # the squared length of the sum of unit rows holds the cosine of every pair twice, and n_experts ones
    total = (membership / length).sum(0)
    mean_cosine = (total @ total - n_experts) / (n_experts * (n_experts - 1))
    return float(np.clip(1 - mean_cosine, 0, 1))


def consensus_agreement(annotations, proba, *, classes=None, missing_label=None):
    """Mean probability that one net of the mean label distribution gives to each expert's annotations.

    The simplest rival of a membership: it needs one classifier trained on the anonymous counts and no behaviours.
    Where experts differ in ability only, it ranks them about as well; report both.

    Parameters
    ----------
    annotations : array-like or DataFrame of shape (n_samples, n_experts)
        Who answered what, one column per expert, with missing entries.

    proba : array-like of shape (n_samples, n_classes)
        Predicted label distribution of every item, from any classifier of the votes, for instance
        ``AnnotatorLDA(n_clusters=1).fit(X, counts).predict_annotation_proba(X_identified)[:, 0]``.

    classes : array-like of shape (n_classes,), default=None
        Sorted class labels, in the order of the columns of `proba`. None takes 0, 1, ..., n_classes - 1.

    missing_label : scalar or collection of scalars, default=None
        The marker of a missing annotation, as in :func:`sklearn_l2d.annotations.encode_annotations`.

    Returns
    -------
    agreement : ndarray of shape (n_experts,)
        Between 0 and 1; NaN for an expert without annotations.

    Raises
    ------
    ValueError
        If `annotations` holds labels of which none is in `classes`, `proba` is not made of distributions over them, or
        the two have different numbers of rows. A few labels that are not in `classes` have probability 0, which a
        warning tells.

    Examples
    --------
    >>> from sklearn_l2d.metrics import consensus_agreement
    >>> consensus_agreement([[0, 1], [1, -1]], [[0.75, 0.25], [0.5, 0.5]])
    array([0.625, 0.25 ])
    """
    annotations, proba = same_rows(annotations=annotations, proba=proba)
    proba = check_proba(proba, ("n_samples", "n_classes"), None if classes is None else len(classes))
    classes = np.arange(proba.shape[1]) if classes is None else classes
    votes = answers_among(annotations, check_classes(classes), missing_label, unknown="wrong")
    check_consistent_length(votes, proba)
    known = votes.select(votes.label < proba.shape[1])
    total = np.bincount(known.annotator, proba[known.item, known.label], minlength=len(votes.annotators))
    n_answers = votes.n_answers
    return np.divide(total, n_answers, out=np.full(len(n_answers), np.nan), where=n_answers > 0)


def check_proba(proba, axes, n_classes):
    """Probabilities as floats whose last axis sums to 1 and has `n_classes` entries, where that is known."""
    wanted = f"({', '.join(axes)})"
    if len(np.shape(proba)) != len(axes):
        raise ValueError(f"proba must have shape {wanted}, got {np.shape(proba)}.")
    proba = check_array(proba, dtype=[np.float64, np.float32], allow_nd=True, input_name="proba")
    if n_classes is not None and proba.shape[-1] != n_classes:
        raise ValueError(f"proba must have shape {wanted} with {n_classes} classes, got {proba.shape}.")
    off = np.abs(proba.sum(-1, dtype=np.float64) - 1).max()
    if proba.min() < 0 or off > 1e-3:
        raise ValueError(
            f"proba must hold distributions over its last axis: its entries start at {proba.min():.3g} and its sums "
            f"are up to {off:.3g} away from 1; pass probabilities, not logits."
        )
    return proba
