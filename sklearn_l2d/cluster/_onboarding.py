"""How known experts are placed among the behaviours of `AnnotatorLDA`, and what to ask the next of them."""

import numbers
from typing import ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._encoding import check_row_count
from .._numerics._item_information import most_informative
from .._numerics._mixture_weights import weight_deviations, weight_posterior
from .._sklearn import transform_output
from ..annotations import encode_annotations, split_target
from ._membership import observed_log_proba, one_column, place_the_silent, solve_membership


# scikit-learn wraps `transform` for set_output in the class that defines it, hence its mixins are bases here
class OnboardingMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Memberships of identified experts, and the items that would tell most about a newcomer."""

    __metadata_request__transform: ClassVar = {"annotations": True}

    def transform(self, X, annotations=None, return_std=False):
        """Membership of every expert, from items whose annotators are known (L2D-Clusters Eq. 2 and 3, corrected).

        Without `annotations` it has one row per *sample*, each equal to `cluster_weights_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Identified items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Who answered what, one column per expert, with missing entries.
        return_std : bool, default=False
            Also return how uncertain each membership is.

        Returns
        -------
        membership : ndarray or DataFrame of shape (n_experts, n_clusters)
            One row per expert on the simplex; with pandas output, indexed by expert.
        std : ndarray of shape (n_experts, n_clusters)
            Posterior standard deviation under a flat Dirichlet prior beside `membership_prior`, by Laplace's
            approximation; only with `return_std`.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If an annotation is not one of `classes_`, or the rows do not match those of `X`.

        Warns
        -----
        UserWarning
            If an expert has no annotation; the membership is then `cluster_weights_`.
        """
        check_is_fitted(self)
        items = self._check_items(X)
        prior = self.membership_prior * self.cluster_weights_
        if annotations is None:
            nobody = np.empty((0, len(prior))), np.empty(0, dtype=int)
            membership = np.tile(self.cluster_weights_, (len(items), 1))
            return (membership, weight_deviations(*nobody, len(items), prior)) if return_std else membership
        codes, _, experts = encode_annotations(annotations, classes=self.classes_, missing_label=self.missing_label)
        check_row_count(codes, len(items), "annotations")
        log_f, expert = observed_log_proba(self._log_proba(items), codes)
        membership = solve_membership(
            self.membership,
            log_f,
            expert,
            len(experts),
            prior=prior,
            alpha=self.alpha_,
            start=self.membership_start,
            n_iter=self.membership_iter,
        )
        place_the_silent(membership, expert, experts, self.cluster_weights_)
        if transform_output(self) == "pandas":
            import pandas as pd

            membership = pd.DataFrame(membership, index=experts, columns=self.get_feature_names_out())
        return (membership, weight_deviations(log_f, expert, len(experts), prior)) if return_std else membership

    def fit_transform(self, X, y, annotations=None):
        """Fit to anonymous annotations, then place the experts of the same items.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.
        y : array-like of shape (n_samples, n_classes) or (n_samples,)
            As in `fit`; an `AnnotatedTarget` brings its annotations along.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            As in `transform`.

        Returns
        -------
        membership : ndarray or DataFrame of shape (n_experts, n_clusters), or (n_samples, n_clusters)
            As returned by `transform`.
        """
        y, annotations = split_target(y, annotations)
        return self.fit(X, y).transform(X, annotations)

    def predict(self, X, annotations=None):
        """Cluster of every expert: the largest entry of the membership.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Identified items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            As in `transform`.

        Returns
        -------
        cluster : ndarray of shape (n_experts,), or (n_samples,) without annotations
            Integers from 0, the cluster that agrees most with the consensus.
        """
        return np.asarray(self.transform(X, annotations)).argmax(1)

    def suggest_items(self, X_pool, X=None, annotations=None, n_items=1):
        """Items whose answers would tell most about the membership of one newcomer.

        An item is worth the expected fall of the posterior variance of the membership, summed over the clusters, when
        the newcomer answers it. With weights ``a`` whose posterior has mean ``m`` and covariance ``V``, and answer
        ``t`` of probability ``Pr(t | x, a) = sum_k a_k f_t(x; theta_k)``, that is
        ``sum_t |V f_t|^2 / (f_t' m)``. `m` and `V` are those behind ``transform(..., return_std=True)``: the prior is
        a Dirichlet with parameters ``1 + membership_prior * cluster_weights_``, so that ``membership_prior=0`` leaves
        the flat one, and the first item can be chosen without any label.

        Items are chosen one after the other. Each adds its Fisher information to the inverse of `V` before the next is
        chosen, so that the next tells something else. Ask for one item at a time and pass the labels so far where you
        can.

        Parameters
        ----------
        X_pool : array-like of shape (n_pool, n_features), or (n_pool, ...) with a `module`
            Items that may be asked; leave out those that the newcomer has labelled.
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`, default=None
            Items that the newcomer has labelled. None or no rows: nothing is known yet.
        annotations : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Labels of the newcomer for `X`; missing entries are left out.
        n_items : int, default=1
            Number of items to suggest.

        Returns
        -------
        indices : ndarray of shape (n_items,)
            Rows of `X_pool`, in the order of asking. Equal items are taken in their order in the pool, and so is the
            whole pool where nothing can be learnt, as with one cluster.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError
            If `n_items` is no integer.
        ValueError
            If `n_items` is not between 1 and `n_pool`, only one of `X` and `annotations` is given, the annotations
            are of several experts, do not match `X` or hold an unknown class.

        See Also
        --------
        transform : The membership after the answers, and its standard deviation.

        Notes
        -----
        The worth of the first item is exact for a posterior of this mean and covariance (law of total variance); the
        covariance is Laplace's approximation. It is the worth of labels to the membership *under the model*: where an
        expert is no mixture of the behaviours, chosen items can leave another membership than random ones.

        Examples
        --------
        >>> from sklearn_l2d.cluster import AnnotatorLDA
        >>> from sklearn_l2d.datasets import load_digits_crowd
        >>> crowd = load_digits_crowd(random_state=0)
        >>> lda = AnnotatorLDA(max_epochs=10, n_anchor_epochs=5, n_consensus_epochs=5, random_state=0)
        >>> lda = lda.fit(crowd.X_anonymous, crowd.counts)
        >>> pool, answers = crowd.X_identified, crowd.annotations[:, 0]
        >>> asked = lda.suggest_items(pool, n_items=5)
        >>> asked.shape
        (5,)
        >>> left = np.setdiff1d(np.arange(len(pool)), asked)
        >>> following = left[lda.suggest_items(pool[left], pool[asked], answers[asked])]
        """
        check_is_fitted(self)
        pool = self._check_items(X_pool)
        check_n_items(n_items, len(pool))
        log_f = self._log_proba_of_one(X, annotations)
        prior = self.membership_prior * self.cluster_weights_
        weights, covariance = weight_posterior(log_f, np.zeros(len(log_f), dtype=int), 1, prior)
        proba = np.exp(np.concatenate([log_proba for _, log_proba in self._log_proba(pool)]), dtype=np.float64)
        return most_informative(proba, weights[0], covariance[0], n_items)

    def _log_proba_of_one(self, X, annotations):
        """Log-probability (n_annotations, K) of the labels of one expert, who may have none."""
        if (X is None) != (annotations is None):
            given, lacking = ("annotations", "X") if X is None else ("X", "annotations")
            raise ValueError(f"{lacking} is None although {given} is given; pass both, or neither.")
        nothing = np.empty((0, len(self.cluster_weights_)))
        if X is None:
            return nothing
        table = one_column(annotations)
        if len(table) == 0 and len(X) == 0:  # scikit-learn refuses tables without rows
            return nothing
        items = self._check_items(X)
        codes, _, _ = encode_annotations(table, classes=self.classes_, missing_label=self.missing_label)
        check_row_count(codes, len(items), "annotations")
        return observed_log_proba(self._log_proba(items), codes)[0]

    @property
    def _n_features_out(self):
        return len(self.cluster_weights_)


def check_n_items(n_items, n_pool):
    """Refuse a number of items that the pool cannot give."""
    if not isinstance(n_items, numbers.Integral) or isinstance(n_items, bool):
        raise TypeError(f"n_items={n_items!r} is no integer; pass the number of items to suggest.")
    if not 1 <= n_items <= n_pool:
        raise ValueError(f"n_items={n_items} is not between 1 and the {n_pool} rows of X_pool; change it.")
