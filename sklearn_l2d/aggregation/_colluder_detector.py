"""Annotators who answer alike by appointment."""

import numbers
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh

from .._encoding import some
from .._numerics._answer_factors import two_means
from .._numerics._pair_moments import complete, pair_agreement
from .._sklearn import Interval, warn
from ._detector import BaseDetector, nobody_compared

_SPLITS, _ROUNDS, _TOLERANCE = 30, 300, 1e-4


def excess_agreement(agreement, compared, suspects, rank):
    """Agreement (M, M) beyond what a fit explains that does not see the pairs of suspects; 0 where not compared.

    Parameters
    ----------
    agreement : ndarray of shape (M, M)
        Share of common items with equal answers.
    compared : ndarray of bool of shape (M, M)
        Pairs with enough common items.
    suspects : ndarray of bool of shape (M,)
        Of whom pairs are not fitted.
    rank : int
        Rank of the fit.
    """
    known = compared & ~(suspects[:, None] & suspects)
    start = agreement[known].mean() if known.any() else 0.0
    factor, _, _ = complete(agreement, known, rank, _ROUNDS, _TOLERANCE, start)
    return np.where(compared, agreement - factor @ factor.T, 0.0)


def smaller_side(excess, suspects, trusted):
    """One of two sides by the main direction of the excess: without those trusted, or the smaller one.

    Parameters
    ----------
    excess : ndarray of shape (M, M)
        As returned by `excess_agreement`.
    suspects : ndarray of bool of shape (M,)
        The side so far; empty at first.
    trusted : ndarray of int
        Who is known to be honest.
    """
    n = len(excess)
    direction = eigh(excess, subset_by_index=(n - 1, n - 1))[1][:, 0]
    if suspects.any():
        direction = direction if direction[suspects].sum() >= 0 else -direction
        side = two_means(direction)
    else:
        side = direction > 0
    wrong = side[trusted].any() if len(trusted) else 2 * side.sum() > n
    return ~side if wrong else side


class ColluderDetector(BaseDetector):
    """Flag colluders: annotators who agree with one another beyond what the truth explains (crowd tutorial, part III).

    Honest annotators agree because each of them sees the item: the table of the agreements of all pairs, without its
    diagonal, has rank C^2 at most for C classes, and so has its part between honest annotators and colluders. The
    agreement of colluders with each other is free. Annotators are split in two sides by the main direction of the
    agreement that a fit of rank 1 leaves over; the pairs on the suspected side are left out, and the rest is fitted
    again, until the side stands still. A last fit, of rank C^2, forecasts how much the suspects should agree. The score
    is the negative mean of what each of them agrees beyond that with the other suspects.

    There must be more honest annotators than colluders, or some that are `trusted`: with a majority of colluders and
    nobody trusted, nobody is flagged, or honest people are. And there must be more than C^2 honest ones, for fewer do
    not determine the table: then brazen colluders are still found, but others may not be, and a warning says that the
    flags are no evidence.

    Note the axes: annotators are the *columns* of `X`, and there is one flag per column.

    Parameters
    ----------
    trusted : array-like of names, default=None
        Annotators who are known to be honest, by name, or by position where they have no names. None takes the larger
        side for honest.

    min_excess : float, default=0.1
        Mean agreement with other suspects, beyond the forecast, from which an annotator is flagged.

    min_overlap : int, default=10
        Smallest number of common items for which two annotators are compared.

    missing_label : object, default=None
        Marker of a missing annotation. None stands for NaN, None, pandas.NA, masked entries and -1.

    Attributes
    ----------
    labels_ : ndarray of shape (n_annotators,)
        -1 for annotators that are flagged, 1 for the others.
    scores_ : ndarray of shape (n_annotators,)
        The lower, the more suspicious. 0 for annotators who are on no suspected side.
    offset_ : float
        Whoever has a lower score is flagged.
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    SpammerDetector : Finds those whose answers say nothing.

    References
    ----------
    Traganitis and Giannakis, Detecting adversaries in crowdsourcing, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d.aggregation import ColluderDetector
    >>> rng = np.random.default_rng(0)
    >>> truth, plan = rng.integers(2, size=(2, 500, 1))
    >>> X = np.where(rng.random((500, 12)) < 0.7, truth, 1 - truth)
    >>> X[:, :4] = np.where(rng.random((500, 4)) < 0.9, plan, X[:, :4])
    >>> ColluderDetector().fit_predict(X)
    array([-1, -1, -1, -1,  1,  1,  1,  1,  1,  1,  1,  1])
    """

    _parameter_constraints: ClassVar = {
        **BaseDetector._parameter_constraints,
        "trusted": ["array-like", None],
        "min_excess": [Interval(numbers.Real, 0, 1, closed="left")],
        "min_overlap": [Interval(numbers.Integral, 1, None, closed="left")],
    }

    def __init__(self, trusted=None, *, min_excess=0.1, min_overlap=10, missing_label=None):
        self.trusted = trusted
        self.min_excess = min_excess
        self.min_overlap = min_overlap
        self.missing_label = missing_label

    def _detect(self, votes):
        trusted = self._trusted(votes.annotators.tolist())
        n_annotators, n_classes = len(votes.annotators), len(votes.classes)
        common, alike = pair_agreement(votes)
        compared = (common >= self.min_overlap) & ~np.eye(n_annotators, dtype=bool)
        if not compared.any():
            raise nobody_compared(votes, f"min_overlap={self.min_overlap}")
        agreement = np.where(compared, alike / np.maximum(common, 1), 0.0)
        suspects, seen = np.zeros(n_annotators, dtype=bool), []
        for _ in range(_SPLITS):
            suspects = smaller_side(excess_agreement(agreement, compared, suspects, 1), suspects, trusted)
            if any((suspects == before).all() for before in seen):
                break
            seen.append(suspects)
        rank = min(n_classes**2, n_annotators)
        excess = excess_agreement(agreement, compared, suspects, rank) * (suspects[:, None] & suspects)
        pairs = (compared & suspects[:, None] & suspects).sum(1)
        scores = -excess.sum(1) / np.maximum(pairs, 1)
        flagged = scores < -self.min_excess
        if flagged.any() and n_annotators - flagged.sum() <= n_classes**2:
            warn(
                f"{n_annotators - flagged.sum()} annotators are not flagged, but {n_classes} classes need more than "
                f"{n_classes**2} honest ones to tell who colludes; take the flags for a hint, not for evidence."
            )
        return {"labels_": np.where(flagged, -1, 1), "scores_": scores, "offset_": -float(self.min_excess)}

    def _trusted(self, annotators):
        if self.trusted is None:
            return np.empty(0, dtype=np.int64)
        names = list(self.trusted)
        unknown = [name for name in names if name not in annotators]
        if unknown:
            raise ValueError(
                f"trusted names {some(unknown)}, who are no annotators; they are {some(annotators)}. Correct the names."
            )
        return np.array([annotators.index(name) for name in names], dtype=np.int64)
