"""What detectors of annotators share: votes in, one flag per annotator out, and votes without those flagged."""

from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._persistence import Estimator
from .._sklearn import atomic_fit
from .._validation import seated
from .._votes import make_votes


class BaseDetector(Estimator):
    """The surface of detectors, which are scikit-learn's outlier detectors with annotators for samples.

    A subclass says in `_detect` how suspicious the annotators are.
    """

    _parameter_constraints: ClassVar = {"missing_label": "no_validation"}

    @atomic_fit(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Find the annotators that are not to be trusted.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            Who answered what: labels, one column per annotator, with missing entries; or what
            :func:`sklearn_l2d.annotations.encode_votes` makes of long tables, sparse matrices and files.
        y : object, default=None
            Ignored.

        Returns
        -------
        self : BaseDetector
            The fitted estimator. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If `X` is no table of labels of one type, has fewer than two annotators or no answer, or they have too
            few items in common.
        """
        votes = make_votes(X, None, self.missing_label)
        if len(votes.annotators) < 2:
            raise ValueError(
                f"X has {len(votes.annotators)} annotator(s), {len(votes.annotators)} feature(s) (shape={votes.shape}) "
                "while a minimum of 2 is required; pass one column per annotator."
            )
        if not len(votes.item):
            raise ValueError(f"X holds no answer (shape={votes.shape}, n_samples={len(votes)}); pass some.")
        for name, value in self._detect(votes).items():
            setattr(self, name, value)
        self.annotators_, self.n_features_in_ = votes.annotators, len(votes.annotators)

    def fit_predict(self, X, y=None):
        """Find the annotators that are not to be trusted, and return their flags.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            As in `fit`.
        y : object, default=None
            Ignored.

        Returns
        -------
        labels : ndarray of shape (n_annotators,)
            -1 for annotators that are flagged, 1 for the others.
        """
        return self.fit(X).labels_

    def remove_flagged(self, X):
        """Votes without the answers of the annotators that are flagged; no item loses its last answer.

        Where nobody else answered an item, it keeps the answer of the least suspicious of those who did.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            Who answered what. What has names is matched by them: annotators may be absent, and new ones stay. Without
            names, the columns are those of `fit`.

        Returns
        -------
        votes : Votes
            For any aggregator. Annotators are left out unless they are not flagged, or still have an answer.
        """
        check_is_fitted(self)
        votes = seated(make_votes(X, None, self.missing_label), X, self)
        n_new = len(votes.annotators) - len(self.annotators_)
        trusted = np.append(self.labels_ == 1, np.ones(n_new, dtype=bool))
        score = np.append(np.where(self.labels_ == 1, np.inf, self.scores_), np.full(n_new, np.inf))
        order = np.lexsort((-score[votes.annotator], votes.item))
        first = np.append(True, np.diff(votes.item[order].astype(np.int64)) > 0)[: len(order)]
        kept = trusted[votes.annotator]
        kept[order[first]] = True  # the best answer to each item, trusted if any is
        votes = votes.select(kept)
        return votes[:, np.flatnonzero(trusted | (votes.n_answers > 0))]

    def _detect(self, votes):
        """Attributes by name, among them `labels_` and `scores_`, both of shape (M,)."""
        raise NotImplementedError

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags


def nobody_compared(votes, setting):
    """The error of a crowd whose annotators have too few items in common."""
    return ValueError(
        f"no annotators have as many items in common as {setting} asks for (n_samples={len(votes)}), so that nobody "
        "can be compared; lower it, or pass more answers to the same items."
    )
