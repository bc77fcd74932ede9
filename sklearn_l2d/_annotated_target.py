"""A target that carries the annotations of its rows through code that only knows X and y."""

import copy
import sys

import numpy as np

from ._encoding import as_table, is_frame, label_array
from ._long_tables import is_long
from ._rows import has_index, same_rows
from ._votes import make_votes


class AnnotatedTarget(np.ndarray):
    """Labels `y` that carry the annotations of the same rows.

    Model selection tools of scikit-learn cut `y` into folds and pass nothing else along unless metadata
    routing is switched on. Wrapping the target lets annotations travel with it without that switch.

    Only selecting rows (`y[rows]`, `y.take(rows)`) carries the annotations over. Pickling and
    `copy.deepcopy` keep them, and the hash of `joblib.Memory` sees them. Whatever else produces a new array
    drops them, because its rows may no longer be the same ones; sorting therefore gives plain arrays.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class labels.

    annotations : array-like or DataFrame of shape (n_samples, n_experts)
        Annotations of the same rows. If `y` is a Series too, rows are matched by their index. A long table becomes
        votes.

    Attributes
    ----------
    annotations : ndarray, masked array or DataFrame of shape (n_samples, n_experts), or None
        The annotations, None once an operation has dropped them.

    Raises
    ------
    ValueError
        If `y` is not 1-D, `annotations` is None or not 2-D, or the numbers of rows differ.

    See Also
    --------
    split_target : Take the two apart again.

    Notes
    -----
    Meta-estimators that re-encode the target (bagging, voting, stacking, one-vs-rest) lose the annotations,
    and an in-place shuffle (`numpy.random.Generator.shuffle`) moves the labels only: use
    `sklearn.utils.shuffle`, which selects rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_l2d.annotations import AnnotatedTarget
    >>> y = AnnotatedTarget([0, 1, 1], [[0, -1], [1, 0], [-1, 1]])
    >>> y[[2, 0]].annotations.tolist()
    [[-1, 1], [0, -1]]
    >>> type(y == 1) is np.ndarray
    True
    """

    def __new__(cls, y, annotations):
        target = label_array(y)
        if target.ndim != 1:
            raise ValueError(f"y must be 1-D to carry annotations, got shape {target.shape}.")
        if annotations is None:
            raise ValueError("annotations is None: there is nothing to carry, pass y itself.")
        if is_long(annotations):
            annotations = make_votes(annotations, tasks=y.index if has_index(y) else None)
        _, annotations = same_rows(y=y, annotations=as_table(annotations))
        if len(annotations) != len(target):
            raise ValueError(
                f"annotations has {len(annotations)} rows but y has {len(target)}; give one row per sample."
            )
        return _attach(target, annotations)

    def __array_finalize__(self, source):
        self.annotations = None

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return array[()] if return_scalar else np.asarray(array)

    def __array_function__(self, func, types, args, kwargs):
        result = super().__array_function__(func, types, args, kwargs)
        lost = isinstance(result, AnnotatedTarget) and result.annotations is None
        return np.asarray(result) if lost else result

    @property
    def strides(self):
        """Bytes to step in each dimension.

        joblib hashes the labels with their strides and nothing else of a subclass, and dask looks at them before it
        sends an array as bare labels. So this is where the former meets the annotations and the latter is stopped.
        """
        _send_by_pickle()
        return _Strides(super().strides, self.annotations)

    def __getitem__(self, key):
        return self._carry(super().__getitem__(key), lambda positions: positions[key])

    def take(self, indices, axis=None, out=None, mode="raise"):
        """Select rows as `numpy.ndarray.take` does, with their annotations."""
        taken = super().take(indices, axis=axis, out=out, mode=mode)
        return taken if out is not None else self._carry(taken, lambda rows: rows.take(indices, mode=mode))

    def sort(self, *args, **kwargs):
        """Sort the labels in place, drop the annotations and return the labels as a plain array."""
        return self._reorder("sort", *args, **kwargs)

    def partition(self, *args, **kwargs):
        """Partition the labels in place, drop the annotations and return the labels as a plain array."""
        return self._reorder("partition", *args, **kwargs)

    def __reduce__(self):
        return _attach, (np.asarray(self), self.annotations)

    def __deepcopy__(self, memo):
        return _attach(np.array(self), copy.deepcopy(self.annotations, memo))

    def _carry(self, selected, select):
        # Scalars leave first: looking up positions for each would make a loop over y quadratic.
        if not isinstance(selected, AnnotatedTarget) or selected.ndim != 1 or self.annotations is None:
            return selected
        rows = select(np.arange(len(self)))
        annotations = self.annotations
        selected.annotations = annotations.iloc[rows] if is_frame(annotations) else annotations[rows]
        return selected

    def _reorder(self, method, *args, **kwargs):
        labels = np.asarray(self)
        getattr(labels, method)(*args, **kwargs)
        self.annotations = None
        return labels


class _Strides(tuple):
    """Strides whose pickle, the form in which joblib hashes them, holds the annotations too."""

    def __new__(cls, strides, annotations):
        self = super().__new__(cls, strides)
        self.annotations = annotations
        return self

    def __reduce__(self):
        table = self.annotations
        if isinstance(table, np.ma.MaskedArray):  # joblib would hash the entries only
            table = table.data, np.ma.getmaskarray(table)
        return _Strides, (tuple(self), table)


def _send_by_pickle():
    """Make dask, where it is loaded, pickle an `AnnotatedTarget`: its own format for arrays knows no subclass."""
    protocol = sys.modules.get("distributed.protocol.serialize")
    serializers = getattr(protocol, "dask_serialize", None)
    if serializers is not None and serializers.dispatch(AnnotatedTarget) is not _refuse:
        serializers.register(AnnotatedTarget, _refuse)


def _refuse(target, context=None):
    raise NotImplementedError  # the answer on which dask tries pickle


def _attach(labels, annotations):
    _send_by_pickle()
    target = labels.view(AnnotatedTarget)
    target.annotations = annotations
    return target


def split_target(y, annotations=None):
    """Separate a target from the annotations it may carry.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or AnnotatedTarget
        Target as given to `fit` or `score`.

    annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
        Annotations as given to the same method.

    Returns
    -------
    y : array-like of shape (n_samples,)
        The target alone: a plain array when an `AnnotatedTarget` came in, else `y` itself.

    annotations : array-like or DataFrame of shape (n_samples, n_experts), or None
        `annotations`, or those that `y` carried.

    Raises
    ------
    ValueError
        If annotations arrive both ways, or `y` is an `AnnotatedTarget` that lost its own.

    Examples
    --------
    >>> from sklearn_l2d.annotations import AnnotatedTarget, split_target
    >>> y, annotations = split_target(AnnotatedTarget([0, 1], [[0, 1], [-1, 1]]))
    >>> annotations.tolist()
    [[0, 1], [-1, 1]]
    """
    if not isinstance(y, AnnotatedTarget):
        return y, annotations
    carried = y.annotations
    if carried is not None and annotations is not None:
        raise ValueError("annotations were passed although y already carries some; pass one of the two.")
    if carried is None and annotations is None:
        raise ValueError(
            "y is an AnnotatedTarget that lost its annotations: only selecting rows keeps them. Wrap the "
            "target again with AnnotatedTarget(y, annotations), or pass np.asarray(y) to go without."
        )
    return np.asarray(y), annotations if carried is None else carried


def matched_target(X, y, annotations=None):
    """`split_target` with the rows in the order of `X`, by `same_rows`."""
    return split_target(*same_rows(X=X, y=y, annotations=annotations)[1:])
