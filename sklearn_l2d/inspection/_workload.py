"""Bars of who decides how much."""

import numpy as np
from sklearn.utils import check_array, column_or_1d

from .._last_step import last_step
from .._validation import check_answers
from ..metrics import workload_distribution
from ._matplotlib import POINT, import_pyplot, label_experts, size_in_inches, size_with_names


class WorkloadDisplay:
    """Bars with the share of the items that each expert and the classifier decide (PL2D Fig. 4).

    Make it with `from_estimator` or `from_predictions`. Where bounds were requested, a bracket from the lower to the
    upper one stands on the bar.

    Parameters
    ----------
    workload : array-like of shape (n_experts + 1,)
        Shares, the classifier's last, as `workload_distribution` returns them.

    experts : array-like of shape (n_experts,), default=None
        Names of the experts. None is 0, 1, ...

    bounds : array-like of shape (n_experts + 1, 2), default=None
        Requested lower and upper bounds in the same order; 0 and 1 are no bounds.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        The bars.

    bounds_ : matplotlib ErrorbarContainer or None
        The brackets of those who are bounded.

    ax_ : matplotlib Axes
        Axes with the bars.

    figure_ : matplotlib Figure
        Figure that holds the axes.

    Raises
    ------
    ValueError
        If a share lies outside [0, 1], or `experts` or `bounds` has another length.

    See Also
    --------
    sklearn_l2d.metrics.workload_distribution : The shares.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_l2d.inspection import WorkloadDisplay
    >>> display = WorkloadDisplay.from_predictions([0.1, 0.3, 0.6], experts=["Ann", "Bob"])
    >>> [tick.get_text() for tick in display.ax_.get_xticklabels()]
    ['Ann', 'Bob', 'classifier']
    >>> plt.close(display.figure_)
    """

    def __init__(self, workload, *, experts=None, bounds=None):
        self.workload = column_or_1d(workload, dtype=np.float64)
        if not ((self.workload >= 0) & (self.workload <= 1)).all():
            raise ValueError("workload: every share must lie in [0, 1]. Divide numbers of items by their sum.")
        n_experts = len(self.workload) - 1
        self.experts = np.arange(n_experts) if experts is None else np.asarray(experts)
        if self.experts.shape != (n_experts,):
            raise ValueError(
                f"experts has shape {self.experts.shape} for {n_experts} experts and the classifier; give one name "
                "per expert."
            )
        self.bounds = None if bounds is None else check_array(bounds, dtype=np.float64, input_name="bounds")
        if bounds is not None and self.bounds.shape != (n_experts + 1, 2):
            raise ValueError(f"bounds has shape {self.bounds.shape}; it must be {(n_experts + 1, 2)}.")

    @classmethod
    def from_estimator(cls, estimator, X, annotations=None, *, ax=None, **plot_options):
        """Draw what a fitted deferrer does with items, and the bounds that it was given.

        Parameters
        ----------
        estimator : deferrer, or a Pipeline or search that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            What the experts answered. Where given, whoever did not answer an item does not serve it.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure that fits the number of experts.
        **plot_options : dict
            Further arguments of `plot`.

        Returns
        -------
        display : WorkloadDisplay
            Drawn.
        """
        deferrer, items = last_step(estimator, X)
        deferral = deferrer.predict_deferral(items)
        if annotations is not None:
            annotations = check_answers(annotations, items, deferrer, "WorkloadDisplay", unknown="wrong")
        shares = workload_distribution(deferral, deferrer.selection_, annotations, missing_label=-1)
        return cls.from_predictions(
            shares, experts=deferrer.experts_, bounds=_requested(deferrer), ax=ax, **plot_options
        )

    @classmethod
    def from_predictions(cls, workload, *, experts=None, bounds=None, ax=None, **plot_options):
        """Draw shares that are known already.

        Parameters
        ----------
        workload : array-like of shape (n_experts + 1,)
            Shares, the classifier's last.
        experts : array-like of shape (n_experts,), default=None
            Names of the experts. None is 0, 1, ...
        bounds : array-like of shape (n_experts + 1, 2), default=None
            Requested lower and upper bounds in the same order; 0 and 1 are no bounds.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure that fits the number of experts.
        **plot_options : dict
            Further arguments of `plot`.

        Returns
        -------
        display : WorkloadDisplay
            Drawn.
        """
        return cls(workload, experts=experts, bounds=bounds).plot(ax=ax, **plot_options)

    def plot(self, *, ax=None, bar_kw=None, bound_kw=None):
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure that fits the number of experts.
        bar_kw : dict, default=None
            Further arguments of matplotlib's `bar`.
        bound_kw : dict, default=None
            Further arguments of matplotlib's `errorbar`, which draws the brackets.

        Returns
        -------
        self : WorkloadDisplay
            With the attributes that hold what was drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        plt = import_pyplot("WorkloadDisplay")
        names = [*map(str, self.experts), "classifier"]
        if ax is None:
            _, ax = plt.subplots(figsize=size_with_names(names, 3.2), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        places, room = np.arange(len(names)), size_in_inches(ax)[0] / len(names)
        colours = ["C0"] * (len(names) - 1) + ["0.6"]
        self.bars_ = ax.bar(places, self.workload, **{"color": colours, "width": 0.7} | (bar_kw or {}))
        self.bounds_ = None
        if self.bounds is not None and (bounded := (self.bounds != [0, 1]).any(1)).any():
            low, high = self.bounds[bounded].T
            style = {"fmt": "none", "color": "black", "capsize": min(5, room / POINT / 4), "label": "requested bounds"}
            centre, reach = (low + high) / 2, (high - low) / 2
            self.bounds_ = ax.errorbar(places[bounded], centre, yerr=reach, **style | (bound_kw or {}))
            ax.legend(fontsize="small")
        ax.set(ylabel="share of the items", xlim=(-0.6, len(names) - 0.4), ylim=(0, None))
        label_experts(ax, names, room)
        return self


def _requested(deferrer):
    """Bounds (n_experts + 1, 2) that a deferrer was given, the classifier's last."""
    bounds = deferrer.requested_bounds_
    requested = np.column_stack(bounds.experts)
    requested[-1] = bounds.target_lower[-1], bounds.target_upper[-1]
    return requested
