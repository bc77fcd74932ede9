"""Base class of the encoders of experts, which return one row per expert."""

from typing import ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._annotated_target import AnnotatedTarget, matched_target
from .._encoding import check_classes, check_row_count, label_array, some, sorted_labels
from .._persistence import Estimator
from .._sklearn import atomic_fit, transform_output, warn
from .._validation import check_labels, votes_beside
from .._votes import Votes, make_votes


class ExpertEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Base of the encoders of experts.

    A subclass has the parameters `classes` and `missing_label`. It learns in `_learn(items, y_codes, votes)` and
    encodes in `_encode` with the same arguments; `_nobody()` returns the encoding (n_dims,) of an unknown expert.
    """

    __metadata_request__fit: ClassVar = {"annotations": True}
    __metadata_request__transform: ClassVar = {"annotations": True}

    @atomic_fit(prefer_skip_nested_validation=True)
    def fit(self, X, y, annotations=None):
        """Fit the encoder to items with true labels and annotations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples,)
            True labels; an `AnnotatedTarget` also brings the annotations.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts, one column per expert, with missing entries.

        Returns
        -------
        self : object
            The fitted encoder. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If the data are not as described, if `y` has one class only, or if a label is not in `classes`.
        """
        y, annotations = matched_target(X, y, annotations)
        items = self._check_items(X, reset=True)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = check_labels(y, len(items))
        if len(set(y.tolist())) < 2:
            raise ValueError(f"y holds one class only, {y.tolist()[0]!r}; competence is told from at least two.")
        classes = self._all_classes(y, annotations)
        if annotations is None:
            votes = Votes([], [], [], len(items), classes, [])
        else:
            votes = votes_beside(X, annotations, classes, self.missing_label)
        self.classes_, self.experts_ = classes, votes.annotators
        self._learn(items, self._label_codes(y, len(items)), votes)

    def transform(self, X, annotations=None, y=None):
        """Encode every expert by annotations of items whose true labels are known.

        Without `annotations`, the result has one row per *sample*, each equal to the encoding of an unknown expert.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts) or AnnotatedTarget, default=None
            Annotations of the experts, one column per expert, with missing entries. An `AnnotatedTarget` also brings
            `y`, for instance through a pipeline, which does not pass `y` to `transform`.
        y : array-like of shape (n_samples,), default=None
            True labels. They are required with `annotations`.

        Returns
        -------
        encoding : ndarray or DataFrame of shape (n_experts, n_dims)
            Encodings of the experts. With pandas output, the index is the names of the experts.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If `y` is missing, if a label is not in `classes_`, or if the number of rows is not that of `X`.

        Warns
        -----
        UserWarning
            If an expert has no annotation. The encoding is then that of an unknown expert.
        """
        check_is_fitted(self)
        items = self._check_items(X)
        if annotations is None:
            return np.tile(self._nobody(), (len(items), 1))
        if isinstance(annotations, AnnotatedTarget):
            y, annotations = annotations, None
        if y is None:
            raise ValueError(
                "annotations came without y: experts are encoded by their answers beside the true labels. Pass y too, "
                "or AnnotatedTarget(y, annotations) as the annotations."
            )
        y, annotations = matched_target(X, y, annotations)
        y_codes = self._label_codes(y, len(items))
        votes = votes_beside(X, annotations, self.classes_, self.missing_label)
        encoding, experts = self._encode(items, y_codes, votes), votes.annotators
        silent = votes.n_answers == 0
        if silent.any():
            warn(
                f"no annotations of the experts {some(list(experts[silent]))}: they are encoded as unknown. Give them "
                "some items to label, or leave their columns out."
            )
            encoding[silent] = self._nobody()
        if transform_output(self) == "pandas":
            import pandas as pd

            return pd.DataFrame(encoding, index=experts, columns=self.get_feature_names_out())
        return encoding

    def fit_transform(self, X, y, annotations=None):
        """Fit to items, and encode the experts of the same items.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples,)
            True labels; an `AnnotatedTarget` also brings the annotations.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            As in `transform`.

        Returns
        -------
        encoding : ndarray or DataFrame of shape (n_experts, n_dims), or (n_samples, n_dims)
            As returned by `transform`.
        """
        y, annotations = matched_target(X, y, annotations)
        return self.fit(X, y, annotations).transform(X, annotations, y)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "classes_")

    @property
    def _n_features_out(self):
        return len(self._nobody())

    def _all_classes(self, y, annotations):
        if self.classes is not None:
            return check_classes(self.classes)
        labels = set(y.tolist())
        if annotations is not None:  # a small set of items may lack a class that an expert answers
            labels |= set(make_votes(annotations, None, self.missing_label).classes.tolist())
        return sorted_labels(labels, "y and annotations together")

    def _label_codes(self, y, n_rows):
        check_row_count(label_array(y), n_rows, "y")
        y = check_labels(y, n_rows)
        unseen = sorted(set(y.tolist()) - set(self.classes_.tolist()), key=repr)
        if unseen:
            raise ValueError(
                f"y holds labels {some(unseen)} that are not in classes {some(self.classes_.tolist())}; name all "
                "classes by the parameter `classes`, or leave these items out."
            )
        return np.searchsorted(self.classes_, y)

    def _check_items(self, X, reset=False):
        return validate_data(self, X, reset=reset, dtype="float64", allow_nd=True)
