"""Annotators whose answers have nothing to do with the items."""

import numbers
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._numerics._answer_factors import answer_factors, two_means
from .._sklearn import Interval, StrOptions, warn
from ._detector import BaseDetector, nobody_compared

_ROUNDS, _TOLERANCE = 500, 1e-4  # of the fit of factors
_NEAR = 0.5  # share of the upper cluster's mean score from which on the lower one is no spam


class SpammerDetector(BaseDetector):
    """Flag spammers: annotators whose answers do not vary with those of anybody else (crowd tutorial, part III).

    A spammer answers without a look at the item, so that the covariance with every other annotator is zero. The
    covariances of the others have low rank, for they all come from the truth: those of annotators a and b are
    ``V_a V_b'``, with a factor of rank C - 1 for C classes. The factors are fitted to the covariances of all pairs,
    weighted by their common items and without the diagonal; the score of an annotator is the norm of the own factor,
    from whose square that is subtracted which chance alone would give.

    Corrected: the tutorial takes covariances of class numbers, which depend on the order of the classes, and imputes
    those of pairs without common items; here answers are one-hot, and nothing is imputed.

    Malicious annotators, who know the truth and tell something else, are no spammers: DawidSkene learns to read them.

    Note the axes: annotators are the *columns* of `X`, and there is one flag per column.

    Parameters
    ----------
    contamination : "auto" or float, default="auto"
        Whom to flag. "auto" splits the scores into two clusters and flags the lower one, if its mean is closer to zero
        than to that of the upper one; else nobody. A number in (0, 0.5] is the share of the annotators with the lowest
        scores that are flagged.

    min_answers : int, default=5
        Fewest answers, to items that others answered too, by which an annotator is judged. Who gave fewer is not
        flagged.

    missing_label : object, default=None
        Marker of a missing annotation. None stands for NaN, None, pandas.NA, masked entries and -1.

    Attributes
    ----------
    labels_ : ndarray of shape (n_annotators,)
        -1 for annotators that are flagged, 1 for the others.
    scores_ : ndarray of shape (n_annotators,)
        The lower, the more suspicious. NaN for annotators with fewer than `min_answers`.
    offset_ : float
        Whoever has a lower score is flagged.
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    ColluderDetector : Finds those who answer alike by appointment.
    DawidSkene : Gives spammers little weight, without a decision about them.

    References
    ----------
    Raykar and Yu, Eliminating spammers and ranking annotators for crowdsourced labeling tasks, 2012.
    Traganitis and Giannakis, Identifying spammers to boost crowdsourced classification, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d.aggregation import DawidSkene, SpammerDetector
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(3, size=(200, 1))
    >>> X = np.where(rng.random((200, 6)) < 0.7, truth, rng.integers(3, size=(200, 6)))
    >>> X[:, 4:] = rng.integers(3, size=(200, 2))
    >>> detector = SpammerDetector()
    >>> detector.fit_predict(X)
    array([ 1,  1,  1,  1, -1, -1])
    >>> consensus = DawidSkene().fit(detector.remove_flagged(X))
    >>> len(consensus.annotators_)
    4
    """

    _parameter_constraints: ClassVar = {
        **BaseDetector._parameter_constraints,
        "contamination": [StrOptions({"auto"}), Interval(numbers.Real, 0, 0.5, closed="right")],
        "min_answers": [Interval(numbers.Integral, 2, None, closed="left")],
    }

    def __init__(self, contamination="auto", *, min_answers=5, missing_label=None):
        self.contamination = contamination
        self.min_answers = min_answers
        self.missing_label = missing_label

    def _detect(self, votes):
        factors = answer_factors(votes, _ROUNDS, _TOLERANCE)
        if not factors.converged:
            warn(f"no convergence in {_ROUNDS} rounds; those with few answers may be misjudged.", ConvergenceWarning)
        judged = factors.n_shared >= self.min_answers
        if not judged.any():
            raise nobody_compared(votes, f"min_answers={self.min_answers}")
        scores = np.sqrt(np.maximum((factors.factor**2).sum((1, 2)) - factors.noise, 0.0))
        scores[~judged] = np.nan
        offset = self._offset(scores[judged])
        return {"labels_": np.where(scores < offset, -1, 1), "scores_": scores, "offset_": offset}

    def _offset(self, scores):
        if self.contamination != "auto":
            return float(np.sort(np.append(scores, np.inf))[int(self.contamination * len(scores))])
        upper = two_means(scores)
        if upper.all() or scores[~upper].mean() >= _NEAR * scores[upper].mean():
            return float(scores.min())
        return float(scores[upper].min())
