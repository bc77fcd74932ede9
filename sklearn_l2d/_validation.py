"""Checks that estimators share: items, true labels, names of experts, and annotations by name."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from ._encoding import EncodedAnnotations, check_row_count, encode_table, is_frame, some
from ._sklearn import warn


@dataclass(frozen=True)
class Items:
    """Checked items, as given and as an array.

    Attributes
    ----------
    given : DataFrame or ndarray of n rows
        Items as given, for a classifier that may select columns by name and works in full precision.
    array : ndarray of shape (n, ...)
        Items in the floating type of the estimator.
    """

    given: object
    array: np.ndarray

    def __len__(self):
        return len(self.array)


def check_items(estimator, X, *, reset=False, dtype="float64", allow_nd=False):
    """Check items; with `reset`, set `n_features_in_` and `feature_names_in_` of the estimator."""
    array = validate_data(estimator, X, reset=reset, dtype=dtype, allow_nd=allow_nd)
    return Items(X if is_frame(X) else np.asarray(X), array)


def check_labels(y, n_rows):
    """Check true labels and return them as an array (n,)."""
    y = column_or_1d(y, warn=True)
    check_consistent_length(np.empty(n_rows), y)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return y


def name_list(experts):
    """One or several names of experts as an object array."""
    given = [experts] if np.isscalar(experts) else list(experts)
    names = np.empty(len(given), dtype=object)
    names[:] = given
    if len(set(given)) < len(given):
        raise ValueError(f"experts={given} holds a name twice; name everybody once.")
    return names


def check_annotations(annotations, classes, missing_label, n_rows, silence):
    """Encode the annotations of a fit; new labels become classes, since `y` may not have all of them.

    Parameters
    ----------
    annotations : array-like, DataFrame or None
        Annotations as given; None means that there are no experts.
    classes : ndarray of shape (n_classes,)
        Known classes.
    missing_label : object
        As in `annotations.encode_annotations`.
    n_rows : int
        Number of items.
    silence : str
        How experts without any annotation are treated, for the warning that names them.

    Returns
    -------
    encoded : EncodedAnnotations
    """
    if annotations is None:
        return EncodedAnnotations(np.empty((n_rows, 0), dtype=np.int8), classes, np.empty(0, dtype=object))
    encoded = encode_table(annotations, classes, missing_label, extend=True)
    new = np.setdiff1d(encoded.classes, classes)
    if len(new):
        warn(
            f"annotations hold labels that y lacks, {some(new.tolist())}; they are taken as classes. If they are "
            "misspelt, correct them."
        )
    check_row_count(encoded.codes, n_rows, "annotations")
    silent = encoded.experts[(encoded.codes < 0).all(0)]
    if len(silent) and len(silent) == len(encoded.experts):
        raise ValueError("annotations are all missing; pass some, or None to go without experts.")
    if len(silent):
        warn(f"the experts {list(silent)} have no annotation: {silence}.")
    return encoded


def check_answers(annotations, n_rows, deferrer, method):
    """Encode annotations (n, n_experts) in the order of the experts of a fitted deferrer.

    Parameters
    ----------
    annotations : array-like or DataFrame
        Columns in the order of `experts_`. The columns of a DataFrame are matched by name, and may be fewer.
    n_rows : int
        Number of items.
    deferrer : deferrer
        Fitted.
    method : str
        Name of the calling method, for the error message.
    """
    experts = deferrer.experts_
    if annotations is None:
        raise ValueError(
            f"fitted with {len(experts)} experts, but {method} received no annotations. Call "
            "sklearn.set_config(enable_metadata_routing=True) so that they reach it through a search or a "
            "pipeline, or pass y=AnnotatedTarget(y, annotations)."
        )
    codes, _, names = encode_table(annotations, deferrer.classes_, deferrer.missing_label)
    check_row_count(codes, n_rows, "annotations")
    unknown = [name for name in names if name not in set(experts)]
    if is_frame(annotations) and not (unknown and list(names) == list(range(len(names)))):
        if unknown:
            raise ValueError(
                f"annotations has columns of unknown experts {unknown}; onboard() them first, or drop the columns."
            )
        place = {name: column for column, name in enumerate(experts)}
        aligned = np.full((n_rows, len(experts)), -1, dtype=codes.dtype)
        aligned[:, [place[name] for name in names]] = codes
        return aligned
    if codes.shape[1] != len(experts):
        raise ValueError(
            f"annotations has {codes.shape[1]} columns, but there are {len(experts)} experts; give one column per "
            "expert in the order of experts_, or a DataFrame with their names."
        )
    return codes
