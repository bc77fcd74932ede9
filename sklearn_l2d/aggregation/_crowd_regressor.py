"""A consensus of numbers: means, and the model of annotators with biases, variances and shared errors."""

import numbers
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite, check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._by_name import are_numbers
from .._encoding import as_frame, expert_names, is_frame
from .._long_tables import is_long
from .._numerics._crowd_numbers import Numbers, numbers_posterior, update_numbers
from .._persistence import Estimator
from .._rows import same_rows
from .._sklearn import Interval, StrOptions, atomic_fit
from .._votes import Votes
from ._base import warn_unless


def start_loadings(item, annotator, residual, n_items, variance, n_factors):
    """Loadings (M, r) from which EM starts: leading eigenvectors of the residuals' products."""
    table = csr_array((residual, (item, annotator)), shape=(n_items, len(variance)))
    vectors = np.linalg.eigh((table.T @ table).toarray())[1][:, ::-1][:, :n_factors]
    vectors *= np.where(vectors.sum(0) < 0, -1, 1)
    return vectors * np.sqrt(variance.mean() * len(variance) / 2)


class CrowdRegressor(RegressorMixin, Estimator):
    """Annotators who answer by numbers, and the true numbers behind their answers.

    "gaussian" takes an answer for the truth of the item, a bias of the annotator, and noise of the annotator's own
    variance; EM finds all of them, and the consensus weighs everybody by precision (crowd tutorial, part III). In
    "low_rank", errors also have factors in common, so that people who err alike are not taken for independent ones
    (Tenzer et al. 2022). "mean" trusts everybody alike.

    Parameters
    ----------
    method : {"gaussian", "low_rank", "mean"}, default="gaussian"
        Model of the answers.

    bias : bool, default=False
        Whether annotators may answer too high or too low throughout. Only the differences of biases can be told from
        answers; where no truth is known, they are small on average.

    n_factors : int, default=1
        Number of factors that errors have in common in "low_rank".

    prior : float, default=1.0
        Pseudo-answers of every annotator: with the variance of the answers about their means for the noise, and with
        zeros for biases and loadings; and as many pseudo-items with the variance of the means.

    max_iter : int, default=1000
        Largest number of iterations.

    tol : float, default=1e-6
        Gain of the objective, in nats per item, below which the iterations end.

    Attributes
    ----------
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    sigma_ : ndarray of shape (n_annotators,)
        Standard deviation of the noise of every annotator.
    bias_ : ndarray of shape (n_annotators,)
        How much too high every annotator answers.
    loadings_ : ndarray of shape (n_annotators, n_factors)
        What the errors of every annotator take from the factors; no column but in "low_rank".
    center_, spread_ : float
        Mean and standard deviation of the truth.
    n_iter_ : int
        Number of iterations.
    history_ : ndarray of shape (`n_iter_`,)
        Objective of every iteration.
    converged_ : bool
        Whether the iterations ended before their limit.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    References
    ----------
    Tenzer, Dror, Nadler, Bilal and Kluger, Crowdsourcing regression: A spectral approach, 2022.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import CrowdRegressor
    >>> answers = [[1.0, 1.1, 4.0], [2.1, 2.0, None], [3.0, 3.1, 1.0], [5.0, 4.9, 9.0]]
    >>> model = CrowdRegressor(prior=0.1).fit(answers)
    >>> model.predict(answers).round(1).tolist()
    [1.1, 2.1, 3.0, 4.9]
    >>> model.sigma_.argmax().item()
    2
    """

    _parameter_constraints: ClassVar = {
        "method": [StrOptions({"gaussian", "low_rank", "mean"})],
        "bias": ["boolean"],
        "n_factors": [Interval(numbers.Integral, 1, None, closed="left")],
        "prior": [Interval(numbers.Real, 0, None, closed="neither")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(self, method="gaussian", *, bias=False, n_factors=1, prior=1.0, max_iter=1000, tol=1e-6):
        self.method = method
        self.bias = bias
        self.n_factors = n_factors
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    @atomic_fit(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn how the annotators answer.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators)
            Who answered what: numbers, one column per annotator, NaN where an answer is missing.
        y : array-like of shape (n_items,), default=None
            True numbers, NaN where the truth is unknown. None knows none of them.

        Returns
        -------
        self : CrowdRegressor
            The fitted estimator. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If `X` is no table of numbers or holds no answer, or `y` does not fit it.
        """
        X = as_frame(X)
        values = _numbers(X)
        truth = np.full(len(values), np.nan)
        if y is not None:
            truth = column_or_1d(same_rows(X=X, y=y)[1], dtype=np.float64, warn=True)
            assert_all_finite(truth, allow_nan=True, input_name="y")
            check_consistent_length(values, truth)
        self.annotators_, self.n_features_in_ = expert_names(X if is_frame(X) else values), values.shape[1]
        item, annotator, value = _answers(values)
        if not len(value):
            raise ValueError(f"X holds no answer (shape={values.shape}, n_samples={len(values)}); pass some.")
        size = np.bincount(item, minlength=len(values))
        mean = np.bincount(item, value, len(values)) / np.maximum(size, 1)
        center = np.where(np.isnan(truth), mean, truth)
        residual = value - center[item]
        degrees = max(len(value) - np.count_nonzero(size[np.isnan(truth)]), 1)
        scale = float(max(residual @ residual / degrees, np.finfo(float).tiny, 1e-12 * np.mean(value**2)))
        told = center[(size > 0) | ~np.isnan(truth)]
        n_annotators = self.n_features_in_
        model = Numbers(
            float(told.mean()),
            float(max(told.var(), scale)),
            np.zeros(n_annotators),
            np.full(n_annotators, scale),
            np.zeros((n_annotators, 0)),
        )
        history, converged = [], True
        if self.method == "low_rank":
            n_factors = min(self.n_factors, n_annotators)
            model = model._replace(
                loadings=start_loadings(item, annotator, residual, len(values), model.variance, n_factors)
            )
        if self.method != "mean":
            model, history, converged = self._run_em(model, item, annotator, value, truth, scale)
        self._scale = scale
        self.sigma_, self.bias_, self.loadings_ = np.sqrt(model.variance), model.bias, model.loadings
        self.center_, self.spread_ = model.center, float(np.sqrt(model.spread))
        self.n_iter_, self.history_, self.converged_ = len(history), history, converged

    def predict(self, X, return_std=False):
        """Estimate the true numbers.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators)
            Who answered what. What has names is matched by them: annotators may be absent, and new ones answer as the
            prior has it. Without names, the columns are those of `fit`.
        return_std : bool, default=False
            Whether to return the standard deviations, too.

        Returns
        -------
        mean : ndarray of shape (n_items,)
            Consensus; `center_` for an item without answers.
        std : ndarray of shape (n_items,)
            Standard deviation of the truth, given the answers and what was learnt. Only if `return_std`.
        """
        check_is_fitted(self)
        values, n_new = self._matched(X)
        item, annotator, value = _answers(values)
        if self.method == "mean":
            size = np.bincount(item, minlength=len(values))
            mean = np.where(size > 0, np.bincount(item, value, len(values)) / np.maximum(size, 1), self.center_)
            std = np.where(size > 0, np.sqrt(self._scale / np.maximum(size, 1)), self.spread_)
        else:
            model = Numbers(
                self.center_,
                self.spread_**2,
                np.pad(self.bias_, (0, n_new)),
                np.append(self.sigma_**2, np.full(n_new, self._scale)),
                np.pad(self.loadings_, ((0, n_new), (0, 0))),
            )
            latent, covariance, _ = numbers_posterior(model, item, annotator, value, len(values))
            mean, std = latent[:, 0], np.sqrt(covariance[:, 0, 0])
        return (mean, std) if return_std else mean

    def _run_em(self, model, item, annotator, value, truth, scale):
        """Parameters after EM, the history of its objective, and whether it ended before `max_iter`."""
        history, n_items, width = [], len(truth), model.spread
        posterior = numbers_posterior(model, item, annotator, value, n_items, truth)
        for _ in range(self.max_iter):
            model, log_prior = update_numbers(
                item,
                annotator,
                value,
                *posterior[:2],
                self.n_features_in_,
                bias=self.bias,
                prior=self.prior,
                scale=scale,
                width=width,
            )
            posterior = numbers_posterior(model, item, annotator, value, n_items, truth)
            history.append(float(posterior[2].sum() + log_prior))
            if len(history) > 1 and history[-1] - history[-2] < self.tol * n_items:
                return model, history, True
        warn_unless(False, self.max_iter)
        return model, history, False

    def _matched(self, X):
        """Answers whose columns are the annotators of the fit and new ones, and the number of these."""
        X = as_frame(X)
        values, known = _numbers(X), self.annotators_.tolist()
        if not is_frame(X) or are_numbers(X.columns.tolist(), known):
            if values.shape[1] != len(known):
                raise ValueError(
                    f"X has {values.shape[1]} features, but {type(self).__name__} is expecting {len(known)} features "
                    "as input: one column per annotator in the order of annotators_, or a DataFrame with their names."
                )
            return values, 0
        place = {name: position for position, name in enumerate(known)}
        places = [place.setdefault(name, len(place)) for name in expert_names(X).tolist()]
        matched = np.full((len(values), len(place)), np.nan)
        matched[:, places] = values
        return matched, len(place) - len(known)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        tags.regressor_tags.poor_score = True  # what has columns of features instead of answers
        return tags


def _numbers(X):
    """A table of answers as floats."""
    if isinstance(X, Votes) or is_long(X):
        raise ValueError("X has a row for each answer, but answers by numbers need one for each item; see from_long.")
    return check_array(X, dtype=np.float64, ensure_all_finite="allow-nan", input_name="X")


def _answers(values):
    """Item, annotator and value of every answer."""
    item, annotator = np.nonzero(~np.isnan(values))
    return item, annotator, values[item, annotator]
