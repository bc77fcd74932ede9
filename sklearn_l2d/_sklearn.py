"""The one module that touches scikit-learn's private helpers, so that an upgrade has one place to look."""

from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, Options, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils._tags import get_tags

__all__ = [
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "Options",
    "StrOptions",
    "fit_context",
    "get_tags",
    "transform_output",
]

fit_context = _fit_context


def transform_output(estimator):
    """Container that `transform` of `estimator` should return: "default", "pandas" or "polars"."""
    return _get_output_config("transform", estimator)["dense"]
