"""Accuracy of teams against the share of items that their classifiers decide."""

import numpy as np

from .._last_step import last_step
from ..metrics import coverage_accuracy_auc, coverage_accuracy_curve, coverage_accuracy_points
from ._matplotlib import import_pyplot


class CoverageAccuracyDisplay:
    """Curve of team accuracy over coverage, several systems in one picture (L2D-Clusters Fig. 3).

    Make it with `from_estimator` or `from_predictions`, and pass the axes of the first as `ax` of the next.

    Parameters
    ----------
    coverage : array-like of shape (n_points,)
        Achieved coverages, the share of items that the classifier decides.

    accuracy : array-like of shape (n_points,)
        Team accuracies.

    human_accuracy : float, default=None
        Team accuracy at coverage 0, needed where no point has it.

    classifier_accuracy : float, default=None
        Accuracy of the classifier alone, at coverage 1, needed where no point has it.

    name : str, default=None
        Name of the system in the legend.

    Attributes
    ----------
    coverage, accuracy : ndarrays of shape (n_curve,)
        The curve from coverage 0 to 1, of `coverage_accuracy_curve`.

    area : float
        Area under it.

    line_ : matplotlib Line2D
        The curve.

    chance_level_ : matplotlib Line2D or None
        The straight line of random deferral.

    ax_ : matplotlib Axes
        Axes with the curve.

    figure_ : matplotlib Figure
        Figure that holds the axes.

    Raises
    ------
    ValueError
        As `coverage_accuracy_curve`.

    See Also
    --------
    sklearn_l2d.metrics.coverage_accuracy_auc : The area in the legend.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_l2d.inspection import CoverageAccuracyDisplay
    >>> first = CoverageAccuracyDisplay.from_predictions(
    ...     [0, 0.5, 1], [0.8, 0.9, 0.7], name="groups"
    ... )
    >>> second = CoverageAccuracyDisplay.from_predictions(
    ...     [0.4],
    ...     [0.8],
    ...     human_accuracy=0.8,
    ...     classifier_accuracy=0.7,
    ...     name="one point",
    ...     ax=first.ax_,
    ... )
    >>> second.line_.get_label()
    'one point (area = 0.770)'
    >>> plt.close(first.figure_)
    """

    def __init__(self, coverage, accuracy, *, human_accuracy=None, classifier_accuracy=None, name=None):
        ends = {"human_accuracy": human_accuracy, "classifier_accuracy": classifier_accuracy}
        self.coverage, self.accuracy = coverage_accuracy_curve(coverage, accuracy, **ends)
        self.area = coverage_accuracy_auc(self.coverage, self.accuracy)
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator, X, y, annotations, *, coverages=None, X_unlabeled=None, name=None, ax=None, **plot_options
    ):
        """Draw the curve of a fitted deferrer, as `coverage_accuracy_points` measures it.

        Where the deferrer has a `coverage_path`, its coverage is moved along without training; else the curve is one
        point between the two ends, or give it a path by `RankedDeferral`.

        Parameters
        ----------
        estimator : deferrer, or a Pipeline or search that ends in one
            Fitted, best at a coverage near 0.5.
        X : array-like of shape (n_samples, n_features)
            Items that were not used for fitting.
        y : array-like of shape (n_samples,)
            True labels.
        annotations : array-like or DataFrame of shape (n_samples, n_experts)
            What the experts answered.
        coverages : array-like of float, default=None
            Requested coverages; None is 0.1, 0.2, ..., 0.9. The ends are the same deferrer with the classifier
            masked, and the classifier alone.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Items on which the shares are calibrated, as in `coverage_path`.
        name : str, default=None
            Name in the legend. None is that of the deferrer's class.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure.
        **plot_options : dict
            Further arguments of `plot`.

        Returns
        -------
        display : CoverageAccuracyDisplay
            Drawn.
        """
        deferrer, _ = last_step(estimator, X)
        points = coverage_accuracy_points(
            estimator,
            X,
            y,
            annotations,
            coverages=np.arange(1, 10) / 10 if coverages is None else coverages,
            X_unlabeled=X_unlabeled,
        )
        name = type(deferrer).__name__ if name is None else name
        return cls.from_predictions(*points, name=name, ax=ax, **plot_options)

    @classmethod
    def from_predictions(
        cls,
        coverage,
        accuracy,
        *,
        human_accuracy=None,
        classifier_accuracy=None,
        name=None,
        ax=None,
        **plot_options,
    ):
        """Draw a curve that is known already.

        Parameters
        ----------
        coverage : array-like of shape (n_points,)
            Achieved coverages.
        accuracy : array-like of shape (n_points,)
            Team accuracies.
        human_accuracy : float, default=None
            Team accuracy at coverage 0, needed where no point has it.
        classifier_accuracy : float, default=None
            Accuracy of the classifier alone, needed where no point has coverage 1.
        name : str, default=None
            Name in the legend.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure.
        **plot_options : dict
            Further arguments of `plot`.

        Returns
        -------
        display : CoverageAccuracyDisplay
            Drawn.
        """
        display = cls(
            coverage, accuracy, human_accuracy=human_accuracy, classifier_accuracy=classifier_accuracy, name=name
        )
        return display.plot(ax=ax, **plot_options)

    def plot(self, *, ax=None, name=None, plot_chance_level=False, chance_level_kw=None, **line_kw):
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure.
        name : str, default=None
            Name in the legend, instead of `name`.
        plot_chance_level : bool, default=False
            Whether to draw the line of this team when the items to defer are picked at random.
        chance_level_kw : dict, default=None
            Further arguments of matplotlib's `plot` for that line.
        **line_kw : dict
            Further arguments of matplotlib's `plot` for the curve.

        Returns
        -------
        self : CoverageAccuracyDisplay
            With the attributes that hold what was drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        plt = import_pyplot("CoverageAccuracyDisplay")
        if ax is None:
            _, ax = plt.subplots(figsize=(5.2, 4), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        name = self.name if name is None else name
        label = f"area = {self.area:.3f}" if name is None else f"{name} (area = {self.area:.3f})"
        (self.line_,) = ax.plot(
            self.coverage, self.accuracy, **{"marker": "o", "markersize": 4, "label": label} | line_kw
        )
        self.chance_level_ = None
        if plot_chance_level:
            ends = self.accuracy[[0, -1]]
            label = f"random deferral (area = {ends.mean():.3f})"
            style = {"color": "0.4", "linestyle": "--", "linewidth": 1, "label": label}
            (self.chance_level_,) = ax.plot([0, 1], ends, **style | (chance_level_kw or {}))
        ax.set(xlabel="coverage: share that the classifier decides", ylabel="team accuracy", xlim=(-0.02, 1.02))
        ax.legend(loc="best", fontsize="small")
        return self
