"""Which item to ask about next, and whom, while a consensus grows."""

import copy
import numbers
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._by_name import available_for, check_available
from .._numerics._answer_worth import accuracy_with_answer
from .._numerics._matrices import row_chunks
from .._persistence import Estimator
from .._sklearn import HasMethods, Interval, atomic_fit, get_tags
from ._dawid_skene import DawidSkene


class ActiveCrowdsourcing(MetaEstimatorMixin, Estimator):
    """Ask next who is reliable about what is uncertain (crowd tutorial, part III).

    Most of the time, the next answer is that of the most reliable person who can give one about the item whose label
    is least certain; else (epsilon-greedy) it is any, so that people are found out. In between, the aggregator learns
    from the items that have new answers, by online EM. An item is done when its label is certain enough, or when no
    answer is worth its price.

    Parameters
    ----------
    aggregator : aggregator, default=None
        One that has `partial_fit` and confusion matrices. None stands for ``DawidSkene("one_coin",
        class_prior="uniform")``: from few answers, whole matrices are learnt too badly to choose by them.

    epsilon : tuple of two floats, default=(0.5, 0.05)
        Share of the answers that are asked at random: of the first `n_explore` answers, and of later ones. 1 always
        asks at random.

    n_explore : int, default=100
        Number of answers, those of `fit` included, during which the first of `epsilon` counts.

    threshold : float, default=None
        Probability of its label from which an item is done. None knows no such bound.

    price : float, default=None
        Price of an answer, in errors: an item is done when no single answer is expected to raise the accuracy of its
        label by more. None knows no such bound.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws; they are the same in every call with as many answers, and all but an integer stand for 0.

    Attributes
    ----------
    aggregator_ : aggregator
        Fitted to all answers so far.
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    sklearn_l2d.deferral.PanelDeferral : The same question where a classifier knows the items.

    Examples
    --------
    >>> from sklearn_l2d.aggregation import ActiveCrowdsourcing
    >>> votes = [[0, 0, 0, None], [1, 1, 1, None], [0, 1, None, 0], [1, 1, 1, 1]]
    >>> active = ActiveCrowdsourcing(epsilon=(0, 0)).fit(votes)
    >>> item, annotator = active.suggest(votes)
    >>> item.tolist(), annotator.tolist()
    ([2], [2])
    """

    _parameter_constraints: ClassVar = {
        "aggregator": [HasMethods(["fit", "partial_fit", "predict_proba"]), None],
        "epsilon": [tuple, list],
        "n_explore": [Interval(numbers.Integral, 0, None, closed="left")],
        "threshold": [Interval(numbers.Real, 0, 1, closed="both"), None],
        "price": [Interval(numbers.Real, 0, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        aggregator=None,
        *,
        epsilon=(0.5, 0.05),
        n_explore=100,
        threshold=None,
        price=None,
        random_state=None,
    ):
        self.aggregator = aggregator
        self.epsilon = epsilon
        self.n_explore = n_explore
        self.threshold = threshold
        self.price = price
        self.random_state = random_state

    @atomic_fit(prefer_skip_nested_validation=False)
    def fit(self, X, y=None):
        """Learn from the first answers.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            Who answered what: some answers, and a column for everybody who can be asked. Votes can also name classes
            that nobody has answered yet.
        y : array-like of shape (n_items,), default=None
            True labels, missing where the truth is unknown. None knows none of them.

        Returns
        -------
        self : ActiveCrowdsourcing
            The fitted estimator. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If `X` holds no answer, `y` does not fit it, or `epsilon` is no pair of shares.
        """
        self._keep(self._fresh().fit(X, y))

    @atomic_fit(prefer_skip_nested_validation=False)
    def partial_fit(self, X, y=None):
        """Learn from the items that have new answers.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            All answers to these items, old ones, too.
        y : array-like of shape (n_items,), default=None
            As in `fit`.

        Returns
        -------
        self : ActiveCrowdsourcing
            The fitted estimator. If fitting fails, it stays as it was before.
        """
        aggregator = copy.copy(self.aggregator_) if hasattr(self, "aggregator_") else self._fresh()
        self._keep(aggregator.partial_fit(X, y))

    def predict_proba(self, X):
        """Probabilities of the labels.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            All answers so far.

        Returns
        -------
        proba : ndarray of shape (n_items, n_classes)
            In the order of `classes_`; rows sum to 1.
        """
        check_is_fitted(self)
        return self.aggregator_.predict_proba(X)

    def predict(self, X):
        """Most probable label of every item.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            All answers so far.

        Returns
        -------
        labels : ndarray of shape (n_items,)
            Members of `classes_`.
        """
        check_is_fitted(self)
        return self.aggregator_.predict(X)

    def is_done(self, X):
        """Which items need no more answers, by `threshold` and `price`.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            All answers so far.

        Returns
        -------
        done : ndarray of bool of shape (n_items,)
            All false without `threshold` and `price`.
        """
        check_is_fitted(self)
        return self._done(self.aggregator_.predict_proba(X))

    def suggest(self, X, n_answers=1, available=None):
        """Whom to ask next about what.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            All answers so far, with the items that nobody has answered. Nobody is asked twice.
        n_answers : int, default=1
            Number of answers to ask for at once, of as many items.
        available : array-like, sparse table, mapping, Series or DataFrame, default=None
            Booleans of shape (n_annotators,) or (n_items, n_annotators): who can be asked, by name where there are
            names. None means everybody.

        Returns
        -------
        item : ndarray of int of shape (n,)
            Rows of `X`; fewer than `n_answers` where nothing is left to ask.
        annotator : ndarray of shape (n,), dtype=object
            Names of whom to ask about them.
        """
        check_is_fitted(self)
        votes = self.aggregator_._votes(X)
        proba = self.aggregator_._proba(votes)
        reliability = self.aggregator_.annotator_accuracy_
        n_items, n_people = len(votes), len(reliability)
        available = check_available(available, self.annotators_, votes)
        old = votes.annotator < n_people  # who is new is not known well enough to be asked
        asked = csr_array(
            (np.ones(old.sum(), dtype=bool), (votes.item[old], votes.annotator[old])), shape=(n_items, n_people)
        )
        open_ = np.flatnonzero(~self._done(proba))
        best, free = np.empty(len(open_), dtype=np.int64), np.empty(len(open_), dtype=np.int64)
        for part in row_chunks(len(open_), n_people):
            mask = ~asked[open_[part]].toarray() & available_for(available, open_[part])
            best[part] = np.where(mask, reliability, -1.0).argmax(1)
            free[part] = mask.sum(1)
        seed = self.random_state if isinstance(self.random_state, int | np.integer) else 0
        rng = np.random.default_rng([seed, len(votes.item)])
        worth = (1 - proba[open_].max(1)) * reliability[best]
        # ties, many at the start, are broken at random
        order = np.lexsort((rng.random(len(open_)), -worth))
        order = order[free[order] > 0][:n_answers]
        chosen, who = open_[order], best[order]
        by_chance = rng.random(len(order)) < self.epsilon[int(len(votes.item) >= self.n_explore)]
        kept = np.setdiff1d(np.arange(len(open_)), order[~by_chance])
        share = free[kept] / max(free[kept].sum(), 1)
        drawn = rng.choice(kept, by_chance.sum(), replace=False, p=share) if by_chance.any() else kept[:0]
        for place, row in zip(np.flatnonzero(by_chance), drawn, strict=True):
            mask = ~asked[[open_[row]]].toarray() & available_for(available, open_[[row]])
            chosen[place], who[place] = open_[row], rng.choice(np.flatnonzero(mask[0]))
        return chosen, self.annotators_[who]

    def _done(self, proba):
        """Which items are done, by the probabilities (n, C) of their labels."""
        best = proba.max(1)
        done = np.zeros(len(proba), dtype=bool) if self.threshold is None else best >= self.threshold
        if self.price is not None:
            gain = accuracy_with_answer(proba, self.aggregator_.confusion_matrices_.transpose(1, 0, 2)).max(1) - best
            done |= gain <= self.price
        return done

    def _fresh(self):
        """Aggregator that has learnt nothing."""
        epsilon = np.asarray(self.epsilon, dtype=float)
        if epsilon.shape != (2,) or not ((epsilon >= 0) & (epsilon <= 1)).all():
            raise ValueError(f"epsilon={self.epsilon!r} must hold two shares from 0 to 1; correct it.")
        if self.aggregator is None:
            return DawidSkene("one_coin", class_prior="uniform")
        return clone(self.aggregator)

    def _keep(self, aggregator):
        self.aggregator_, self.annotators_, self.classes_ = aggregator, aggregator.annotators_, aggregator.classes_
        self.n_features_in_ = aggregator.n_features_in_

    def __sklearn_tags__(self):
        tags, own = super().__sklearn_tags__(), DawidSkene() if self.aggregator is None else self.aggregator
        tags.input_tags, tags.classifier_tags = get_tags(own).input_tags, get_tags(own).classifier_tags
        return tags
