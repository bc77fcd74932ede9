"""A ranking from comparisons of pairs, by people of unequal reliability."""

import numbers
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, xlog1py, xlogy
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from .._by_name import by_name
from .._encoding import is_na, some
from .._persistence import Estimator
from .._sklearn import HasMethods, Interval, StrOptions, atomic_fit
from ._base import warn_unless
from ._pairs import codes_of_names, named_pairs, places_of


def comparison_loss(scores, winner, loser, reliability, flip_rate, alpha):
    """Negative log-likelihood of comparisons, with the penalty of the scores, and its gradient.

    Parameters
    ----------
    scores : ndarray of shape (n_items,)
    winner, loser : ndarrays of int of shape (n_comparisons,)
        Items that were compared.
    reliability : ndarray of shape (n_comparisons,)
        Probability that whoever compared says what they see.
    flip_rate : float
        Probability that a comparison was then recorded the wrong way round. The loss is corrected: its mean over the
        flips is the loss of what was not flipped.
    alpha : float
        Weight of half the squared scores.
    """
    gap = scores[winner] - scores[loser]
    right = expit(gap)
    said = [reliability * p + (1 - reliability) * (1 - p) for p in (right, 1 - right)]  # either way round
    slope = (2 * reliability - 1) * right * (1 - right)
    keep, flip = (1 - flip_rate) / (1 - 2 * flip_rate), flip_rate / (1 - 2 * flip_rate)
    least = np.finfo(float).tiny
    loss = flip * np.log(np.maximum(said[1], least)) - keep * np.log(np.maximum(said[0], least))
    pull = -slope * (keep / np.maximum(said[0], least) + flip / np.maximum(said[1], least))
    gradient = np.bincount(winner, pull, len(scores)) - np.bincount(loser, pull, len(scores))
    return loss.sum() + alpha * (scores @ scores) / 2, gradient + alpha * scores


class BradleyTerry(Estimator):
    """Scores of items from comparisons of two of them (Bradley & Terry 1952).

    Item i beats item j with probability ``1 / (1 + exp(s_j - s_i))``, and an annotator says so with an own
    reliability, or else the opposite (Chen et al. 2013): 1 is always honest, one half knows nothing and has no
    influence, 0 says the opposite. Where comparisons are flipped at a known rate, whoever made them, the corrected
    loss is right on average (crowd tutorial, part III).

    Parameters
    ----------
    reliability : {"equal", "estimate"} or mapping from annotators to floats, default="equal"
        "equal" trusts everybody, "estimate" learns the reliabilities by turns with the scores, and a mapping
        gives them.

    flip_rate : float, default=0.0
        Known share of comparisons that are recorded the wrong way round, below one half.

    alpha : float, default=0.01
        Weight of half the squared scores, which keeps the scores of items finite that won or lost all comparisons.

    prior : float, default=1.0
        Pseudo-comparisons where "estimate" learns reliabilities: two honest ones for each opposite one.

    max_iter : int, default=200
        Largest number of iterations.

    tol : float, default=1e-6
        Gain of the objective, in nats per comparison, below which the iterations end.

    Attributes
    ----------
    items_ : ndarray of shape (n_items,), dtype=object
        Sorted names of the items.
    scores_ : ndarray of shape (n_items,)
        Their scores, of mean 0.
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Sorted names of the annotators; none where nobody is named.
    reliability_ : ndarray of shape (n_annotators,)
        Probability that an annotator says what they see.
    n_iter_ : int
        Number of iterations.
    history_ : ndarray of shape (`n_iter_`,)
        Objective of every iteration.
    converged_ : bool
        Whether the iterations ended before their limit.

    References
    ----------
    Chen, Bennett, Collins-Thompson and Horvitz, Pairwise ranking aggregation in a crowdsourced setting, 2013.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import BradleyTerry
    >>> comparisons = [["tea", "milk"], ["tea", "milk"], ["milk", "water"], ["water", "milk"]]
    >>> model = BradleyTerry().fit(comparisons)
    >>> model.ranking().tolist()
    ['tea', 'water', 'milk']
    >>> model.predict_proba([["tea", "water"]]).round(2).tolist()
    [0.99]
    """

    _parameter_constraints: ClassVar = {
        "reliability": [StrOptions({"equal", "estimate"}), HasMethods("items")],
        "flip_rate": [Interval(numbers.Real, 0, 0.5, closed="left")],
        "alpha": [Interval(numbers.Real, 0, None, closed="left")],
        "prior": [Interval(numbers.Real, 0, None, closed="left")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(self, reliability="equal", *, flip_rate=0.0, alpha=0.01, prior=1.0, max_iter=200, tol=1e-6):
        self.reliability = reliability
        self.flip_rate = flip_rate
        self.alpha = alpha
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    @atomic_fit(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, annotators=None):
        """Learn the scores.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_comparisons, 2)
            Names of two items: the winner and the loser.
        y : None
            Ignored.
        annotators : array-like of shape (n_comparisons,), default=None
            Names of who compared. None names nobody, and trusts everybody.

        Returns
        -------
        self : BradleyTerry
            The fitted estimator. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If `X` is no table of two columns, compares an item with itself, or `annotators` or `reliability` does not
            fit it.
        """
        pairs = named_pairs(X)
        self.items_, (winner, loser) = codes_of_names(pairs.T)
        who = np.zeros(len(pairs), dtype=np.int64)
        self.annotators_ = np.empty(0, dtype=object)
        if annotators is not None:
            names = _objects(annotators)
            check_consistent_length(pairs, names)
            self.annotators_, who = codes_of_names(names)
        reliability = self._given(max(len(self.annotators_), 1))
        scores, history, converged = np.zeros(len(self.items_)), [], True
        estimated = isinstance(self.reliability, str) and self.reliability == "estimate"
        for _ in range(self.max_iter):
            found = minimize(
                comparison_loss,
                scores,
                (winner, loser, reliability[who], self.flip_rate, self.alpha),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 1000, "gtol": 1e-8, "ftol": 1e-14},
            )
            scores = found.x
            prior = self.prior * (xlogy(2, reliability) + xlog1py(1, -reliability)).sum() if estimated else 0.0
            history.append(float(prior - found.fun))
            converged = not estimated or (
                len(history) > 1 and history[-1] - history[-2] < self.tol * max(len(pairs), 1)
            )
            if converged:
                break
            right = expit(scores[winner] - scores[loser])
            honest = reliability[who] * right
            honest /= honest + (1 - reliability[who]) * (1 - right)
            total = np.bincount(who, minlength=len(reliability)) + 3 * self.prior
            reliability = (np.bincount(who, honest, len(reliability)) + 2 * self.prior) / total
        warn_unless(converged, self.max_iter)
        self.scores_, self.reliability_ = scores - scores.mean(), reliability[: len(self.annotators_)]
        self.n_iter_, self.history_, self.converged_ = len(history), history, bool(converged)

    def predict_proba(self, X):
        """Probability that the first of two items is the better one.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_comparisons, 2)
            Names of two items.

        Returns
        -------
        proba : ndarray of shape (n_comparisons,)
            Probabilities.
        """
        check_is_fitted(self)
        pairs, place = named_pairs(X), {name: k for k, name in enumerate(self.items_.tolist())}
        first, second = places_of(pairs, place).T
        return expit(self.scores_[first] - self.scores_[second])

    def ranking(self):
        """Items from the best to the worst.

        Returns
        -------
        items : ndarray of shape (n_items,), dtype=object
            Their names.
        """
        check_is_fitted(self)
        return self.items_[np.argsort(-self.scores_, kind="stable")]

    def _given(self, n_annotators):
        """Reliabilities (n_annotators,) that are given, or from which "estimate" starts."""
        setting = by_name(self.reliability, self.annotators_.tolist(), "reliability")
        if isinstance(setting, str):
            if setting == "estimate" and self.flip_rate:
                raise ValueError(
                    f"flip_rate={self.flip_rate} and reliability='estimate' both explain errors; leave one out."
                )
            start = 1.0 if setting == "equal" else 2 / 3
            return np.full(n_annotators, start)
        lacking = [name for name in self.annotators_.tolist() if name not in setting]
        if lacking or not len(self.annotators_):
            raise ValueError(f"reliability lacks {some(lacking)}; name every annotator, and pass annotators to fit.")
        values = np.array([setting[name] for name in self.annotators_.tolist()], dtype=float)
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError(f"reliability={self.reliability!r} must hold probabilities; correct it.")
        return values


def _objects(values):
    found = np.empty(len(values), dtype=object)
    found[:] = list(values)
    if any(is_na(value) for value in found):
        raise ValueError("annotators holds a missing name; name everybody, or nobody.")
    return found
