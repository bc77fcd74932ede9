"""Heat map of the memberships of experts."""

import numpy as np
from sklearn.utils import check_array

from .._encoding import expert_names, is_frame
from .._last_step import split_steps
from .._votes import table_or_votes
from ._matplotlib import CHARACTER, LINE, POINT, import_pyplot, label_experts, size_in_inches, size_with_names


class MembershipDisplay:
    """Heat map of memberships: clusters from top to bottom, experts from left to right (L2D-Clusters Fig. 2 and 6).

    Make it with `from_estimator` or `from_predictions`. Colours span 0 to 1, so that pictures can be compared, while
    those of the paper are scaled to each picture: pass ``im_kw=dict(vmin=None, vmax=None)`` for that.

    Parameters
    ----------
    membership : array-like or DataFrame of shape (n_experts, n_clusters)
        Share of every cluster in the answers of each expert, at least one expert.

    experts : array-like of shape (n_experts,), default=None
        Names of the experts. None takes the index of a DataFrame, else 0, 1, ...

    std : array-like of shape (n_experts, n_clusters), default=None
        Standard deviation of each entry, written below it where numbers are written. See the notes for what it covers.

    Attributes
    ----------
    im_ : matplotlib AxesImage
        The heat map.

    text_ : ndarray of shape (n_clusters, n_experts), dtype=object, or None
        The numbers in the cells, in the order in which they are drawn; None without numbers.

    ax_ : matplotlib Axes
        Axes with the heat map.

    figure_ : matplotlib Figure
        Figure that holds the axes.

    Raises
    ------
    ValueError
        If `membership` is not a finite table, or `experts` or `std` has another shape.

    See Also
    --------
    sklearn_l2d.cluster.AnnotatorLDA : Learns behaviours and places experts.

    Notes
    -----
    The deviations of `AnnotatorLDA` are those of the posterior of a membership, given the behaviours: one deviation to
    both sides is a credible interval of about 68 %, and 1.645 deviations are one of about 90 %. On the embedded digits
    the latter hold the membership from 700 labels in 89 to 91 % of draws of 10 to 100 labels, and the former in 66 to
    73 %. Cut both at 0 and 1. What they leave out is that another archive would teach other behaviours.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_l2d.inspection import MembershipDisplay
    >>> display = MembershipDisplay.from_predictions(
    ...     [[0.9, 0.1], [0.4, 0.6]], experts=["Ann", "Bob"]
    ... )
    >>> display.text_[0, 1].get_text()  # cluster 0, Bob
    '0.40'
    >>> plt.close(display.figure_)
    """

    def __init__(self, membership, *, experts=None, std=None):
        if experts is None and is_frame(membership):
            experts = membership.index
        self.membership = check_array(membership, dtype=np.float64, input_name="membership")
        self.experts = np.arange(len(self.membership)) if experts is None else np.asarray(experts)
        if self.experts.shape != self.membership.shape[:1]:
            raise ValueError(
                f"experts has shape {self.experts.shape} for a membership of shape {self.membership.shape}; "
                "give one name per row."
            )
        self.std = None if std is None else check_array(std, dtype=np.float64, input_name="std")
        if std is not None and self.std.shape != self.membership.shape:
            raise ValueError(f"std has shape {self.std.shape}; it must be that of membership, {self.membership.shape}.")

    @classmethod
    def from_estimator(cls, estimator, X, annotations, *, std=False, ax=None, **plot_options):
        """Place experts with a fitted estimator and draw their memberships.

        Parameters
        ----------
        estimator : AnnotatorLDA, or another fitted estimator whose `transform` takes annotations
            Places the experts.
        X : array-like of shape (n_samples, n_features)
            Identified items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts)
            Who answered what; the columns of a DataFrame name the experts.
        std : bool, default=False
            Whether to ask the estimator for standard deviations too (`return_std`).
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure that fits the numbers of experts and clusters.
        **plot_options : dict
            Further arguments of `plot`.

        Returns
        -------
        display : MembershipDisplay
            Drawn.
        """
        wanted = {"return_std": True} if std else {}
        found = estimator.transform(X, annotations=annotations, **wanted)
        membership, deviation = found if std else (found, None)
        marker = getattr(split_steps(estimator)[1], "missing_label", None)
        experts = expert_names(table_or_votes(annotations, marker))
        return cls.from_predictions(membership, experts=experts, std=deviation, ax=ax, **plot_options)

    @classmethod
    def from_predictions(cls, membership, *, experts=None, std=None, ax=None, **plot_options):
        """Draw memberships that are known already.

        Parameters
        ----------
        membership : array-like or DataFrame of shape (n_experts, n_clusters)
            Share of every cluster in the answers of each expert.
        experts : array-like of shape (n_experts,), default=None
            Names of the experts. None takes the index of a DataFrame, else 0, 1, ...
        std : array-like of shape (n_experts, n_clusters), default=None
            Standard deviation of each entry.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure that fits the numbers of experts and clusters.
        **plot_options : dict
            Further arguments of `plot`.

        Returns
        -------
        display : MembershipDisplay
            Drawn.
        """
        return cls(membership, experts=experts, std=std).plot(ax=ax, **plot_options)

    def plot(
        self,
        *,
        ax=None,
        sort=False,
        include_values=None,
        values_format=".2f",
        cmap="Blues",
        colorbar=True,
        im_kw=None,
        text_kw=None,
    ):
        """Draw the heat map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a figure that fits the numbers of experts and clusters.
        sort : bool, default=False
            Order the experts from those of cluster 0 to those of the last cluster, by the mean number of their
            cluster. Clusters of `AnnotatorLDA` are ordered by agreement, so that this is an order by agreement.
        include_values : bool, default=None
            Whether to write numbers into the cells. None writes them where they fit.
        values_format : str, default=".2f"
            Format of the numbers.
        cmap : str or matplotlib Colormap, default="Blues"
            Colours.
        colorbar : bool, default=True
            Whether to add a colour bar.
        im_kw : dict, default=None
            Further arguments of matplotlib's `imshow`.
        text_kw : dict, default=None
            Further arguments of matplotlib's `text`.

        Returns
        -------
        self : MembershipDisplay
            With the attributes that hold what was drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        plt = import_pyplot("MembershipDisplay")
        n_experts, n_clusters = self.membership.shape
        if ax is None:
            _, ax = plt.subplots(figsize=size_with_names(self.experts, 1.3 + 0.62 * n_clusters), layout="constrained")
        order = np.argsort(self.membership @ np.arange(n_clusters), kind="stable") if sort else np.arange(n_experts)
        shown = {"cmap": cmap, "vmin": 0, "vmax": 1, "aspect": "auto", "interpolation": "nearest"} | (im_kw or {})
        self.ax_, self.figure_ = ax, ax.figure
        self.im_ = ax.imshow(self.membership[order].T, **shown)
        if colorbar:
            self.figure_.colorbar(self.im_, ax=ax, label="membership", fraction=0.05, pad=0.02)
        ax.set(xlabel="expert", ylabel="cluster", yticks=range(n_clusters))
        cell = _cell_size(ax, n_experts, n_clusters)
        label_experts(ax, [str(name) for name in self.experts[order]], cell[0])
        _separate_cells(ax, n_experts, n_clusters, cell)
        std = None if self.std is None else self.std[order]
        self.text_ = self._write(self.membership[order], std, cell, include_values, values_format, text_kw or {})
        return self

    def _write(self, membership, std, cell, include_values, values_format, text_kw):
        """Numbers in the cells, as an array of matplotlib texts, or None where they do not fit or are not wanted."""
        texts = [[format(value, values_format) for value in row] for row in membership]
        if std is not None:
            texts = [
                [f"{value}\n±{format(deviation, values_format)}" for value, deviation in zip(*rows, strict=True)]
                for rows in zip(texts, std, strict=True)
            ]
        longest = max((line for row in texts for text in row for line in text.split("\n")), key=len)
        size = _font_that_fits(cell, len(longest), n_lines=1 if std is None else 2)
        if include_values is False or (include_values is None and size < 6):
            return None
        style = {"ha": "center", "va": "center", "fontsize": max(size, 4)} | text_kw
        drawn = np.empty(membership.T.shape, dtype=object)
        for (cluster, expert), value in np.ndenumerate(membership.T):
            red, green, blue, _ = self.im_.cmap(self.im_.norm(value))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            colour = {"color": "white" if dark else "black"} | style
            drawn[cluster, expert] = self.ax_.text(expert, cluster, texts[expert][cluster], **colour)
        return drawn


def _cell_size(ax, n_experts, n_clusters):
    """Width and height of a cell in inches."""
    width, height = size_in_inches(ax)
    return width / n_experts, height / n_clusters


def _font_that_fits(cell, n_characters, n_lines):
    """Largest font size, at most 10, at which a text fills no more than most of a cell."""
    width, height = cell
    return min(10.0, 0.85 * width / (n_characters * CHARACTER * POINT), 0.85 * height / (n_lines * LINE * POINT))


def _separate_cells(ax, n_experts, n_clusters, cell):
    """White lines between the cells, as far as these are wide enough to be seen one by one."""
    ax.spines[:].set_visible(False)
    ax.set_xticks(np.arange(1, n_experts) - 0.5 if cell[0] > 0.05 else [], minor=True)
    ax.set_yticks(np.arange(1, n_clusters) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=min(2.0, 10 * cell[0]))
    ax.tick_params(which="minor", length=0)
