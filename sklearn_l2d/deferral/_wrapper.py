"""Base of the deferrers that wrap another deferrer."""

import copy

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._sklearn import atomic, get_tags
from ._base import BaseDeferrer
from ._classifier import with_seed


def _of_deferrer(name):
    return property(lambda self: getattr(self.deferrer_, name), doc=f"`{name}` of the deferrer.")


def _has(name):
    return lambda self: hasattr(getattr(self, "deferrer_", self.deferrer), name)


class DeferrerWrapper(BaseDeferrer):
    """Base of the deferrers that wrap the deferrer in the parameter `deferrer`, fitted as `deferrer_`.

    A subclass learns in `_fit`, which calls `_fit_deferrer`; in `_adopt` it accepts a deferrer with another roster.
    """

    classes_ = _of_deferrer("classes_")
    classifier_ = _of_deferrer("classifier_")
    temperature_ = _of_deferrer("temperature_")
    targets_ = _of_deferrer("targets_")
    _selection = _of_deferrer("_selection")
    _live = _of_deferrer("_live")
    n_iter_ = _of_deferrer("n_iter_")
    history_ = _of_deferrer("history_")
    n_features_in_ = _of_deferrer("n_features_in_")
    feature_names_in_ = _of_deferrer("feature_names_in_")
    missing_label = _of_deferrer("missing_label")
    unlabeled_label = _of_deferrer("unlabeled_label")
    _roster = _of_deferrer("_roster")
    _exponents = _of_deferrer("_exponents")
    _crowdlab = _of_deferrer("_crowdlab")
    _seed = _of_deferrer("_seed")

    @available_if(_has("predict_expert_correctness"))
    def predict_expert_correctness(self, X):
        """Predict the probability that each expert is right about each item.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        correctness : ndarray of shape (n_samples, n_experts)
            Probabilities in the order of `experts_`, by the deferrer.
        """
        check_is_fitted(self)
        return self.deferrer_.predict_expert_correctness(X)

    @available_if(_has("join_answers"))
    def join_answers(self, X, annotations, deferral=None):
        """Labels to which the answers of experts lead, by the option that each item goes to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts)
            Annotations of the experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        deferral : array-like of int of shape (n_samples,), default=None
            Targets of the items, -1 for the classifier. None is `predict_deferral`.

        Returns
        -------
        labels : Votes
            As `join_answers` of the deferrer.
        """
        check_is_fitted(self)
        deferral = self.predict_deferral(X) if deferral is None else deferral
        return self.deferrer_.join_answers(X, annotations, deferral)

    @available_if(_has("onboard"))
    @atomic
    def onboard(self, experts, X, annotations, y=None):
        """Add experts to the roster as the deferrer does, without training.

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
            True labels, if the deferrer needs them.

        Returns
        -------
        self : object
            The deferrer with a larger roster.

        Raises
        ------
        ValueError
            If the deferrer refuses the experts.
        """
        check_is_fitted(self)
        self._adopt(copy.copy(self.deferrer_).onboard(experts, X, annotations, y))

    def _fit_deferrer(self, X, y, annotations, X_unlabeled, votes_unlabeled, sample_weight, groups):
        """Fit a clone of the deferrer, or copy a frozen one, whose roster may then change.

        Returns the checked items without labels, or None: with the votes of an archive, they know the probabilities of
        classifiers that did not learn from them.
        """
        if isinstance(self.deferrer, FrozenEstimator):
            check_is_fitted(self.deferrer)
            if votes_unlabeled is not None:
                raise ValueError(
                    "votes_unlabeled train the classifier, but the deferrer is a FrozenEstimator and learns nothing; "
                    "leave them out, or give the deferrer itself."
                )
            check_consistent_length(X, y, annotations)
            # the labels are not learnt, but must be of the same kind
            self.deferrer.estimator._check_truth(X, y)
            self.deferrer_ = copy.copy(self.deferrer.estimator)
        else:
            deferrer = clone(with_seed(self.deferrer, self._draw_seed()))
            given = {"sample_weight": sample_weight, "groups": groups}
            given = {name: value for name, value in given.items() if value is not None}
            if votes_unlabeled is not None:
                deferrer._validate_params()
                team = deferrer._fit(X, y, annotations, X_unlabeled, votes_unlabeled, **given)
                self.deferrer_ = deferrer
                return team.unlabeled
            self.deferrer_ = deferrer.fit(X, y, annotations=annotations, X_unlabeled=X_unlabeled, **given)
        return None if X_unlabeled is None else self._check_unlabeled(X_unlabeled)

    def _adopt(self, deferrer):
        """Accept a deferrer with another roster."""
        self.deferrer_ = deferrer

    def _set_roster(self, roster):
        deferrer = copy.copy(self.deferrer_)
        deferrer._set_roster(roster)
        self._adopt(deferrer)

    def _check_items(self, X, reset=False):
        return self.deferrer_._check_items(X, reset)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.deferrer).input_tags
        return tags

    def _answer_shape(self, items, votes):
        return self.deferrer_._answer_shape(items, votes)

    def _as_taken(self, items, deferral, votes):
        return self.deferrer_._as_taken(items, deferral, votes)

    def _target_right(self, proba):
        return self.deferrer_._target_right(proba)

    def _names_for(self, target, who):
        return self.deferrer_._names_for(target, who)

    def _right(self, items, proba, rows, who, target):
        return self.deferrer_._right(items, proba, rows, who, target)

    def _right_of_all(self, items, proba, target, people=slice(None)):
        return self.deferrer_._right_of_all(items, proba, target, people)

    def _decision_cost(self):
        return self.deferrer_._decision_cost()

    def _classifier_proba(self, items):
        return self.deferrer_._classifier_proba(items)
