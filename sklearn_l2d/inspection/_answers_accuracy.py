"""Accuracy of teams against the number of answers that they ask for."""

import numpy as np
from sklearn.utils import check_consistent_length

from ..metrics import answers_accuracy_curve
from ._matplotlib import import_pyplot


class AnswersAccuracyDisplay:
    """Curve of accuracy over answers per item, several systems in one picture.

    Make it with `from_estimators` or `from_predictions`, and pass the axes of the first as `ax` of the next.

    Parameters
    ----------
    answers : array-like of shape (n_points,)
        Mean numbers of answers per item.

    accuracy : array-like of shape (n_points,)
        Shares of the items whose label is right.

    standard_error : array-like of shape (n_points,), default=None
        Standard errors of the accuracies, drawn as a band.

    name : str, default=None
        Name of the system in the legend.

    Attributes
    ----------
    answers, accuracy : ndarrays of shape (n_points,)
        The points, in the order of the answers.

    standard_error : ndarray of shape (n_points,) or None
        Their standard errors.

    line_ : matplotlib Line2D
        The curve.

    band_ : matplotlib PolyCollection or None
        One standard error to either side.

    ax_ : matplotlib Axes
        Axes with the curve.

    figure_ : matplotlib Figure
        Figure that holds the axes.

    Raises
    ------
    ValueError
        If lengths differ, a number of answers is negative, or an accuracy leaves [0, 1].

    See Also
    --------
    sklearn_l2d.metrics.answers_accuracy_curve : The points of panels.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_l2d.inspection import AnswersAccuracyDisplay
    >>> first = AnswersAccuracyDisplay.from_predictions(
    ...     [0.5, 1, 2], [0.85, 0.93, 0.95], name="panel"
    ... )
    >>> second = AnswersAccuracyDisplay.from_predictions(
    ...     [1, 3], [0.8, 0.9], name="majority", ax=first.ax_
    ... )
    >>> len(first.ax_.lines), second.line_.get_label()
    (2, 'majority')
    >>> plt.close(first.figure_)
    """

    def __init__(self, answers, accuracy, *, standard_error=None, name=None):
        answers, accuracy = (np.atleast_1d(np.asarray(v, dtype=np.float64)).ravel() for v in (answers, accuracy))
        check_consistent_length(answers, accuracy, standard_error)
        if not (answers >= 0).all():
            raise ValueError("answers: every mean number must be 0 or more.")
        if not ((accuracy >= 0) & (accuracy <= 1)).all():
            raise ValueError("accuracy: every value must lie in [0, 1]. Give shares, not percentages.")
        order = np.argsort(answers, kind="stable")
        self.answers, self.accuracy, self.name = answers[order], accuracy[order], name
        self.standard_error = None if standard_error is None else np.asarray(standard_error, dtype=np.float64)[order]

    @classmethod
    def from_estimators(cls, panels, X, y, annotations=None, *, name=None, ax=None, **plot_options):
        """Draw the curve of fitted panels, as `answers_accuracy_curve` measures it.

        Parameters
        ----------
        panels : sequence of fitted PanelDeferral
            Usually those of `answers_path`; each is one point.
        X : array-like of shape (n_samples, n_features)
            Items that were not used for fitting.
        y : array-like of shape (n_samples,)
            True labels; an `AnnotatedTarget` brings its annotations along.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            What the experts answered.
        name : str, default=None
            Name in the legend. None is that of the panels' class.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure.
        **plot_options : dict
            Further arguments of `plot`.

        Returns
        -------
        display : AnswersAccuracyDisplay
            Drawn.
        """
        answers, accuracy, standard_error = answers_accuracy_curve(panels, X, y, annotations)
        name = type(panels[0]).__name__ if name is None else name
        return cls.from_predictions(answers, accuracy, standard_error=standard_error, name=name, ax=ax, **plot_options)

    @classmethod
    def from_predictions(cls, answers, accuracy, *, standard_error=None, name=None, ax=None, **plot_options):
        """Draw a curve that is known already.

        Parameters
        ----------
        answers : array-like of shape (n_points,)
            Mean numbers of answers per item.
        accuracy : array-like of shape (n_points,)
            Shares of the items whose label is right.
        standard_error : array-like of shape (n_points,), default=None
            Standard errors of the accuracies, drawn as a band.
        name : str, default=None
            Name in the legend.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure.
        **plot_options : dict
            Further arguments of `plot`.

        Returns
        -------
        display : AnswersAccuracyDisplay
            Drawn.
        """
        return cls(answers, accuracy, standard_error=standard_error, name=name).plot(ax=ax, **plot_options)

    def plot(self, *, ax=None, name=None, **line_kw):
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure.
        name : str, default=None
            Name in the legend, instead of `name`.
        **line_kw : dict
            Further arguments of matplotlib's `plot` for the curve.

        Returns
        -------
        self : AnswersAccuracyDisplay
            With the attributes that hold what was drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        plt = import_pyplot("AnswersAccuracyDisplay")
        if ax is None:
            _, ax = plt.subplots(figsize=(5.2, 4), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        style = {"marker": "o", "markersize": 4, "label": self.name if name is None else name}
        (self.line_,) = ax.plot(self.answers, self.accuracy, **style | line_kw)
        self.band_ = None
        if self.standard_error is not None:
            low, high = self.accuracy - self.standard_error, self.accuracy + self.standard_error
            self.band_ = ax.fill_between(self.answers, low, high, color=self.line_.get_color(), alpha=0.2, linewidth=0)
        ax.set(xlabel="answers per item", ylabel="accuracy")
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="best", fontsize="small")
        return self
