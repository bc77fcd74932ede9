"""Private helpers of scikit-learn, imported in this module only, and decorators for methods of estimators."""

import contextlib
import copy
import functools
import os
import sys
import warnings

import joblib
import sklearn
from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, Options, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils._tags import get_tags
from sklearn.utils.parallel import _threadpool_controller_decorator
from sklearn.utils.validation import _check_sample_weight, _num_samples

__all__ = [
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "Options",
    "StrOptions",
    "atomic",
    "atomic_fit",
    "check_weights",
    "count_rows",
    "fit_context",
    "get_tags",
    "not_for_scorers",
    "one_blas_thread",
    "take_rows",
    "transform_output",
    "warn",
]

# Files of this package, scikit-learn and the packages between them: a warning points to the line that called them.
_INTERNAL = (
    *(os.path.dirname(module) + os.sep for module in (__file__, sklearn.__file__, joblib.__file__)),
    contextlib.__file__,
)

fit_context = _fit_context
count_rows = _num_samples
take_rows = _safe_indexing
# For loops over small matrix products, whose threads cost more than they save on a busy machine.
one_blas_thread = _threadpool_controller_decorator(limits=1, user_api="blas")


def atomic(method):
    """Run a method of an estimator on a copy, so that the estimator does not change if the method fails.

    The method must assign new values to attributes, never change them in place, and return nothing. The decorated
    method returns the estimator.
    """

    @functools.wraps(method)
    def run(self, *args, **kwargs):
        draft = copy.copy(self)
        method(draft, *args, **kwargs)
        self.__dict__ = vars(draft)
        return self

    return run


def atomic_fit(*, prefer_skip_nested_validation):
    """`fit_context` around an `atomic` method: parameters are validated first, and a failure changes nothing."""

    def decorate(method):
        return fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)(atomic(method))

    return decorate


def not_for_scorers(available):
    """Decorate a `decision_function` whose columns are no classes, which an estimator has where `available` says so.

    scikit-learn's scorers and calibrators take the first of "decision_function" and "predict_proba" that is there and
    true. The method that this gives to an instance is false, so that they go on to the probabilities of the classes.
    """

    class Method:
        def __init__(self, method):
            self.method = method

        def __get__(self, instance, owner=None):
            if instance is None:
                return self.method
            if not available(instance):
                raise AttributeError(f"This {owner.__name__!r} has no attribute {self.method.__name__!r}")
            bound = functools.update_wrapper(_FalseMethod(self.method, instance), self.method)
            del bound.__wrapped__  # or its signature would be that of the function, with `self`
            return bound

    return Method


class _FalseMethod(functools.partial):
    def __bool__(self):
        return False


def warn(message, category=UserWarning):
    """Warn with the line of the caller outside of this package and scikit-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INTERNAL):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def transform_output(estimator):
    """Container that `transform` of `estimator` should return: "default", "pandas" or "polars"."""
    return _get_output_config("transform", estimator)["dense"]


def check_weights(sample_weight, rows):
    """Weights of `rows` as floats, ones for None; refused if one is negative or all are zero."""
    return _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
