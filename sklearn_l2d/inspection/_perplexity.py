"""Perplexity against the number of behaviours, and the rate of its fall."""

import numpy as np
from sklearn.utils import check_array, column_or_1d

from ..model_selection._perplexity_curve import perplexity_curve, read_curve
from ._matplotlib import import_pyplot


class PerplexityDisplay:
    """Held-out perplexity against the number of behaviours, with what the two rules choose (L2D-Clusters Fig. 7).

    Make it with `from_estimator`, `from_search` or `from_predictions`. The line and the left axis are the perplexity,
    thin lines its folds; the bars and the right axis are its fall per behaviour that was added (Eq. 46, corrected).
    Hollow markers are models that do not use all their behaviours, with how many they use.

    Parameters
    ----------
    n_clusters : array-like of shape (n_values,)
        Numbers of behaviours, each once.

    perplexity : array-like of shape (n_values,)
        Held-out perplexity of each.

    fold_perplexity : array-like of shape (n_values, n_folds), default=None
        The same in every fold.

    n_used : array-like of shape (n_values,), default=None
        How many behaviours are used.

    Attributes
    ----------
    lowest : int
        What `lowest_perplexity` chooses.

    largest_rate : int or None
        What `rate_of_perplexity_change` chooses; None with a single number of behaviours.

    line_ : matplotlib Line2D
        The perplexity.

    fold_lines_ : list of matplotlib Line2D
        One per fold.

    bars_ : matplotlib BarContainer, or None
        Fall of the perplexity at every number of behaviours but the first; None where nothing falls.

    lowest_ : matplotlib Line2D
        Mark at the lowest perplexity.

    text_ : list of matplotlib Text
        How many behaviours are used, where it is not all of them.

    ax_ : matplotlib Axes
        Axes with the perplexity.

    rate_ax_ : matplotlib Axes, or None
        Axes with the bars, on top of the same place.

    figure_ : matplotlib Figure
        Figure that holds the axes.

    Raises
    ------
    ValueError
        If the arrays are not finite or have different lengths, or a number of behaviours comes twice.

    See Also
    --------
    sklearn_l2d.model_selection.perplexity_curve : The numbers behind it.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_l2d.inspection import PerplexityDisplay
    >>> display = PerplexityDisplay.from_predictions(
    ...     [1, 2, 3, 4], [4.0, 3.0, 2.9, 2.95], n_used=[1, 2, 3, 3]
    ... )
    >>> display.lowest, display.largest_rate
    (3, 2)
    >>> [text.get_text() for text in display.text_]
    ['3\\nused']
    >>> plt.close(display.figure_)
    """

    def __init__(self, n_clusters, perplexity, *, fold_perplexity=None, n_used=None):
        n_clusters, perplexity = column_or_1d(n_clusters), column_or_1d(perplexity, dtype=np.float64)
        if len(np.unique(n_clusters)) < len(n_clusters) or len(n_clusters) != len(perplexity):
            raise ValueError(
                f"n_clusters={n_clusters.tolist()} for {len(perplexity)} values of perplexity; give each number once."
            )
        if not (np.isfinite(perplexity) & (perplexity > 0)).all():
            raise ValueError("perplexity holds values that are not positive and finite; leave failed fits out.")
        order = np.argsort(n_clusters)
        curve = read_curve({"param_n_clusters": n_clusters, "mean_test_score": -np.log(perplexity)})
        self.n_clusters, self.perplexity, self.rate = n_clusters[order], perplexity[order], curve.rate
        self.lowest, self.largest_rate = curve.lowest, curve.largest_rate
        self.fold_perplexity = self.n_used = None
        if fold_perplexity is not None:
            self.fold_perplexity = check_array(fold_perplexity, dtype=np.float64, input_name="fold_perplexity")
            self._check_length(self.fold_perplexity, "fold_perplexity")
            self.fold_perplexity = self.fold_perplexity[order]
        if n_used is not None:
            self.n_used = column_or_1d(n_used, dtype=np.float64)
            self._check_length(self.n_used, "n_used")
            self.n_used = self.n_used[order]

    def _check_length(self, values, name):
        if len(values) != len(self.n_clusters):
            raise ValueError(f"{name} has {len(values)} rows for {len(self.n_clusters)} numbers of behaviours.")

    @classmethod
    def from_estimator(
        cls, estimator, X, y, *, n_clusters=(1, 2, 3, 4, 5, 6), cv=5, groups=None, n_jobs=None, ax=None, **plot_options
    ):
        """Fit every number of behaviours to folds of an archive and draw the perplexity of what was held out.

        Parameters
        ----------
        estimator : AnnotatorLDA, or a Pipeline that ends in one
            Only cloned.
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape (n_samples,)
            Votes per class, or one label per item.
        n_clusters : array-like of int, default=(1, 2, 3, 4, 5, 6)
            Numbers of behaviours.
        cv : int, splitter or iterable of splits, default=5
            A number of folds is shuffled, with a fixed seed.
        groups : array-like of shape (n_samples,), default=None
            Groups of items for a splitter.
        n_jobs : int, default=None
            Number of processes.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure.
        **plot_options : dict
            Further arguments of `plot`.

        Returns
        -------
        display : PerplexityDisplay
            Drawn.
        """
        curve = perplexity_curve(estimator, X, y, n_clusters=n_clusters, cv=cv, groups=groups, n_jobs=n_jobs)
        return cls._from_curve(curve, ax, plot_options)

    @classmethod
    def from_search(cls, search, *, ax=None, **plot_options):
        """Draw the results of a search over `n_clusters`.

        Parameters
        ----------
        search : GridSearchCV or another search of scikit-learn
            Fitted, scored by `AnnotatorLDA.score`, which is the default. Where it varied other parameters too, each
            number of behaviours is drawn at its best.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure.
        **plot_options : dict
            Further arguments of `plot`.

        Returns
        -------
        display : PerplexityDisplay
            Drawn, without how many behaviours are used: a search does not count them.
        """
        return cls._from_curve(read_curve(search.cv_results_), ax, plot_options)

    @classmethod
    def from_predictions(cls, n_clusters, perplexity, *, fold_perplexity=None, n_used=None, ax=None, **plot_options):
        """Draw perplexities that are known already.

        Parameters
        ----------
        n_clusters : array-like of shape (n_values,)
            Numbers of behaviours, each once.
        perplexity : array-like of shape (n_values,)
            Held-out perplexity of each.
        fold_perplexity : array-like of shape (n_values, n_folds), default=None
            The same in every fold.
        n_used : array-like of shape (n_values,), default=None
            How many behaviours are used.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure.
        **plot_options : dict
            Further arguments of `plot`.

        Returns
        -------
        display : PerplexityDisplay
            Drawn.
        """
        display = cls(n_clusters, perplexity, fold_perplexity=fold_perplexity, n_used=n_used)
        return display.plot(ax=ax, **plot_options)

    @classmethod
    def _from_curve(cls, curve, ax, plot_options):
        return cls.from_predictions(
            curve.n_clusters,
            curve.perplexity,
            fold_perplexity=curve.fold_perplexity,
            n_used=curve.n_used,
            ax=ax,
            **plot_options,
        )

    def plot(self, *, ax=None, line_kw=None, bar_kw=None):
        """Draw the curve and the bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure.
        line_kw : dict, default=None
            Further arguments of matplotlib's `plot` for the perplexity.
        bar_kw : dict, default=None
            Further arguments of matplotlib's `bar` for the rate of its fall.

        Returns
        -------
        self : PerplexityDisplay
            With the attributes that hold what was drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        plt = import_pyplot("PerplexityDisplay")
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        folds = [] if self.fold_perplexity is None else self.fold_perplexity.T
        thin = {"color": "0.75", "linewidth": 0.8, "zorder": 1}
        self.fold_lines_ = [ax.plot(self.n_clusters, fold, **thin)[0] for fold in folds]
        (self.line_,) = ax.plot(
            self.n_clusters, self.perplexity, **{"color": "C0", "zorder": 2, "label": "perplexity"} | (line_kw or {})
        )
        colour = self.line_.get_color()
        hollow = np.zeros(len(self.n_clusters), dtype=bool)
        if self.n_used is not None:
            hollow = self.n_used < self.n_clusters - 1e-9
        for shown, face in ((~hollow, colour), (hollow, "white")):
            ax.plot(self.n_clusters[shown], self.perplexity[shown], "o", color=colour, markerfacecolor=face, zorder=3)
        least, ring = self.perplexity[self.n_clusters == self.lowest], {"color": "C3", "markerfacecolor": "none"}
        (self.lowest_,) = ax.plot(
            self.lowest, least, "o", **ring, markersize=13, markeredgewidth=2, zorder=4, label=f"lowest: {self.lowest}"
        )
        self.text_ = [
            ax.annotate(
                f"{self.n_used[i]:.3g}\nused",
                (self.n_clusters[i], self.perplexity[i]),
                (0, 9),
                textcoords="offset points",
                ha="center",
                fontsize="small",
            )
            for i in np.flatnonzero(hollow)
        ]
        ax.set(xlabel="number of behaviours", ylabel="held-out perplexity", xticks=self.n_clusters)
        ax.margins(y=0.15)
        self._plot_rate(bar_kw or {})
        handles = [self.line_, self.lowest_]
        if self.bars_ is not None:
            handles.append(self.bars_[int(np.flatnonzero(self.n_clusters == self.largest_rate)[0]) - 1])
            handles[-1].set_label(f"largest fall: {self.largest_rate}")
        ax.legend(handles=handles, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
        return self

    def _plot_rate(self, bar_kw):
        """Bars behind the line, on an axis of their own."""
        self.bars_ = self.rate_ax_ = None
        if not self.rate[1:].any():
            return
        self.rate_ax_ = self.ax_.twinx()
        self.rate_ax_.set_zorder(self.ax_.get_zorder() - 1)
        self.ax_.patch.set_visible(False)
        clusters = self.n_clusters[1:]
        style = {"color": ["C1" if k == self.largest_rate else "0.88" for k in clusters], "width": 0.5}
        self.bars_ = self.rate_ax_.bar(clusters, self.rate[1:], **style | bar_kw)
        # the bars stay in the lower part, so that the line can be read
        self.rate_ax_.set(ylabel="fall per behaviour added", ylim=(0, 2.5 * self.rate[1:].max()))
