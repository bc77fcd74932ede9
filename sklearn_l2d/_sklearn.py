"""The one module that touches scikit-learn's private helpers, so that an upgrade has one place to look."""

from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, Options, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils._tags import get_tags
from sklearn.utils.parallel import _threadpool_controller_decorator
from sklearn.utils.validation import _check_sample_weight

__all__ = [
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "Options",
    "StrOptions",
    "check_weights",
    "fit_context",
    "get_tags",
    "one_blas_thread",
    "take_rows",
    "transform_output",
]

fit_context = _fit_context
take_rows = _safe_indexing
# Decorates loops over small matrix products: their threads cost more than they bring on a busy machine.
one_blas_thread = _threadpool_controller_decorator(limits=1, user_api="blas")


def transform_output(estimator):
    """Container that `transform` of `estimator` should return: "default", "pandas" or "polars"."""
    return _get_output_config("transform", estimator)["dense"]


def check_weights(sample_weight, rows):
    """Weights of `rows` as floats, ones for None; refused where one is negative or all are zero."""
    return _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
