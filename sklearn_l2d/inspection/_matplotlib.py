"""The one place that imports matplotlib, which is optional, and what pictures with names of experts share."""

import numpy as np

POINT = 1 / 72  # inches
CHARACTER = 0.6  # width of a character as a share of the font size
LINE = 1.25  # height of a line as a share of the font size


def import_pyplot(caller):
    """Return `matplotlib.pyplot`, or say how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} draws with matplotlib, which is not installed: pip install 'sklearn-l2d[plot]'."
        ) from error
    return plt


def size_with_names(experts, height):
    """Width and height in inches of a figure with one column per expert, with room for names that are turned."""
    width = float(np.clip(1.7 + 0.62 * len(experts), 4.2, 14))
    longest = max(len(str(name)) for name in experts)
    turned = longest * CHARACTER * 8 * POINT > (width - 1.7) / len(experts)
    return width, height + turned * longest * CHARACTER * 10 * POINT


def size_in_inches(ax):
    """Width and height of axes."""
    figure = ax.figure
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()  # the layout is known only once the figure has been laid out
    box = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    return box.width, box.height


def label_experts(ax, names, width):
    """Name the experts below their columns: upright where that fits, else turned, and at last only some of them."""
    longest = max(map(len, names))
    upright = min(10.0, 0.95 * width / (longest * CHARACTER * POINT))
    size = upright if upright >= 8 else float(np.clip(0.95 * width / (LINE * POINT), 6, 10))
    step = 1 if upright >= 8 else int(np.ceil(size * LINE * POINT / width))
    ax.set_xticks(range(0, len(names), step), names[::step], rotation=0 if upright >= 8 else 90, fontsize=size)
