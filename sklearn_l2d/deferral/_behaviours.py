"""The behaviours behind a team: fitted to its votes or an archive, they place experts and say what people answer."""

from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .._items import as_array
from .._numerics._answer_model import likely_accuracy
from .._sklearn import atomic, take_rows
from ..cluster import AnnotatorLDA
from ._classifier import with_seed
from ._tally import TallyMixin

_ENOUGH_ITEMS = 20_000  # for a clusterer that was not given
_LEAST = 1e-6  # probability of an answer that the behaviours do not know


def fit_clusterer(clusterer, X, votes, seed, sample_weight=None, groups=None):
    """Fitted `AnnotatorLDA`: the one inside a `FrozenEstimator`, or a clone trained on these votes.

    Parameters
    ----------
    clusterer : None, AnnotatorLDA or FrozenEstimator
        None is an `AnnotatorLDA` with default parameters, which learns from at most 20,000 random items.
    X : array-like of n rows
        Items.
    votes : Votes
        Annotations of the identified experts, which are made anonymous.
    seed : int
        Seed of the clusterer, unless it has its own.
    sample_weight : ndarray of shape (n,), default=None
        What the votes on each item count.
    groups : ndarray of int of shape (n,), default=None
        Numbers of what the items come from.
    """
    if isinstance(clusterer, FrozenEstimator):
        return clusterer.estimator
    if clusterer is None:
        clusterer = AnnotatorLDA()
        if len(votes) > _ENOUGH_ITEMS:  # mostly it serves newcomers only, if there are any
            rows = np.sort(np.random.default_rng(seed).choice(len(votes), _ENOUGH_ITEMS, replace=False))
            X, votes = take_rows(X, rows), votes[rows]
            sample_weight, groups = (None if part is None else part[rows] for part in (sample_weight, groups))
    counts = votes.to_counts()
    if sample_weight is not None:
        counts = counts * sample_weight[:, None]
    model = clone(with_seed(clusterer, seed)).fit(X, counts, **({} if groups is None else {"groups": groups}))
    model.classes_ = votes.classes  # counts without names were fitted as 0, 1, ...
    return model


def expert_membership(clusterer, X, votes):
    """Membership (M, K) of the annotators of votes; the behaviours' weights for those without any."""
    votes = votes.among(clusterer.classes_)  # a frozen clusterer can learn nothing from the others
    membership = np.tile(clusterer.cluster_weights_, (len(votes.annotators), 1))
    heard = np.unique(votes.annotator)
    if heard.size:
        membership[heard] = clusterer.transform(X, votes[:, heard])
    return membership


def behaviour_proba(clusterer, X, classes):
    """Probabilities (n, K, C) of the answers of each behaviour, in the order of `classes`."""
    proba = clusterer.predict_annotation_proba(X)
    full = np.zeros((*proba.shape[:2], len(classes)))
    full[:, :, np.searchsorted(classes, clusterer.classes_)] = proba
    return full


class Newcomers(NamedTuple):
    """What is learnt of newcomers of whose items the truth may be unknown.

    Attributes
    ----------
    counts : dict
        As returned by `count_votes`.
    membership : ndarray of shape (n_new, K)
        Memberships in the behaviours.
    likely : ndarray of shape (n_new, C) or None
        Accuracy of the experts of similar memberships, where the truth of some items is unknown.
    """

    counts: dict
    membership: np.ndarray
    likely: np.ndarray | None


class BehavioursMixin:
    """What behaviours tell a deferrer; overrides nothing of `BaseDeferrer`.

    A class that uses it sets `clusterer_`, and keeps the memberships of its experts in the details of the roster.
    """

    def _shown(self, items):
        """Items as the clusterer sees them."""
        if self._sight.clusterer == "X":
            return as_array(items.given)
        return self._classifier_proba(items) if self._sight.clusterer == "proba" else items.array

    def _shape_at(self, items):
        """What people answer at items (n, C), by the last behaviour; None if that is unknown, or cannot matter."""
        if self.clusterer_ is None or len(self.classes_) == 2:
            return None
        return behaviour_proba(self.clusterer_, self._shown(items), self.classes_)[:, -1]

    def _meet(self, X, items, votes, y):
        """`Newcomers` by their votes on items, whose truth `y` may be unknown in part, or None."""
        y_codes, known = self._check_truth(X, np.full(len(items), np.nan) if y is None else y)
        membership, likely = expert_membership(self.clusterer_, self._shown(items), votes), None
        truth = self._truth_before_answers(items, known, y_codes)
        if not known.all():
            truth[~known] *= self._consensus(items[~known])
            truth /= truth.sum(1, keepdims=True)
            if self.n_experts_:  # or there is nobody to be like
                likely = likely_accuracy(self._roster.answer_model, self._roster.details["membership"], membership)
        return Newcomers(self._count_newcomers(votes, truth, known, likely), membership, likely)

    def _consensus(self, items):
        """Probabilities (n, C) of the answers to items, over all behaviours."""
        proba = behaviour_proba(self.clusterer_, self._shown(items), self.classes_)
        return np.maximum(np.einsum("nkc,k->nc", proba, self.clusterer_.cluster_weights_), _LEAST)


class KnownByBehaviours(BehavioursMixin, TallyMixin):
    """Base of deferrers that know newcomers by what they answered and, with a clusterer, by whom they are like.

    A subclass calls `_learn_behaviours` first of all in `_learn`, and puts what it returns into the details
    of the roster.
    """

    @atomic
    def onboard(self, experts, X, annotations, y=None):
        """Add experts to the roster by what they answered, without training.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names of the experts. An expert who is already on the roster is replaced.
        X : array-like of shape (n_samples, n_features)
            Items that they annotated.
        annotations : array-like or DataFrame of shape (n_samples, len(experts))
            Annotations of these experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        y : array-like of shape (n_samples,), default=None
            True labels, of which some may be unknown, as in `fit`. With a `clusterer`, all may be unknown: newcomers
            are then expected to be as accurate as the experts of similar memberships until their own answers tell
            more. Without one, they are required.

        Returns
        -------
        self : object
            The deferrer with a larger roster.

        Raises
        ------
        ValueError
            If the deferrer was fitted without experts, if `y` knows no truth and there is no clusterer, or if shapes or
            labels do not match.
        """
        check_is_fitted(self)
        if self.clusterer_ is None:
            TallyMixin.onboard(self, experts, X, annotations, y)
            return
        names, items, votes, y = self._check_newcomers(experts, X, annotations, y)
        met = self._meet(X, items, votes, y)
        self._add_targets(names)
        details = self._describe(items, None, votes) | {"membership": met.membership}
        newcomers = self._roster.newcomers(names, self._place(names), met.counts, details, met.likely)
        self._set_roster(self._roster.joined_by(newcomers))

    def _learn_behaviours(self, team, cv):
        """Fit the clusterer, if any; returns the memberships of the experts as details of the roster."""
        self.clusterer_ = None
        if self.clusterer is None:
            return {}
        self._prepare_sight(team, cv)
        X, votes = self._shown(team.annotated), team.annotations  # behaviours need no truth
        self.clusterer_ = fit_clusterer(self.clusterer, X, votes, self._seed, team.weights, team.groups)
        return {"membership": expert_membership(self.clusterer_, X, votes)}
