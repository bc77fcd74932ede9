"""Boxes, arrows and people, in the units of an axes that fills its figure."""

from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Wedge

INK, PAPER, EDGE = "#22313f", "#ffffff", "#9aa7b2"
BLUE, ORANGE, GREEN, GRAY = "#1f77b4", "#d9730d", "#2a7f3f", "#5f6b76"
PALE = {BLUE: "#e3eff8", ORANGE: "#fcead9", GREEN: "#e2f2e5", GRAY: "#eef1f4"}
UNITS_PER_INCH = 10
PHONE_FONT = 13  # points at which text is still readable where a phone shows the picture at half its size


@contextmanager
def canvas(path, width, height):
    """Axes of this many units, saved to `path` in the end; the same picture gives the same file."""
    with plt.rc_context({"svg.hashsalt": "sklearn_l2d", "font.family": "DejaVu Sans", "font.size": PHONE_FONT}):
        figure = plt.figure(figsize=(width / UNITS_PER_INCH, height / UNITS_PER_INCH), facecolor=PAPER)
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, width), ylim=(0, height))
        ax.axis("off")
        yield ax
        save(figure, path)


def save(figure, path):
    """Write a figure without a date, so that building again changes nothing."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if Path(path).suffix == ".svg" else None)
    plt.close(figure)


def box(ax, x, y, width, height, text="", color=GRAY, **text_kw):
    """A rounded box with its lower left corner at (x, y)."""
    style = {
        "boxstyle": "round,pad=0,rounding_size=0.8",
        "facecolor": PALE[color],
        "edgecolor": color,
        "linewidth": 1.4,
    }
    ax.add_patch(FancyBboxPatch((x, y), width, height, **style))
    style = {"ha": "center", "va": "center", "color": INK, "linespacing": 1.25} | text_kw
    ax.text(x + width / 2, y + height / 2, text, **style)


def arrow(ax, start, end, text="", color=GRAY, at=(0, 0), bend=0.0, **text_kw):
    """An arrow, and a word that stands `at` this offset from its middle."""
    style = {"arrowstyle": "-|>", "mutation_scale": 15, "linewidth": 1.6, "color": color, "shrinkA": 0, "shrinkB": 0}
    ax.add_patch(FancyArrowPatch(start, end, connectionstyle=f"arc3,rad={bend}", **style))
    if text:
        middle = ((start[0] + end[0]) / 2 + at[0], (start[1] + end[1]) / 2 + at[1])
        ax.text(*middle, text, **{"ha": "center", "va": "center", "color": color, "linespacing": 1.2} | text_kw)


def person(ax, x, y, size=1.0, color=BLUE, text=""):
    """Head and shoulders, the feet at (x, y), with a word beneath."""
    ax.add_patch(Wedge((x, y), 1.9 * size, 0, 180, facecolor=color, edgecolor="none"))
    ax.add_patch(Circle((x, y + 2.9 * size), 1.15 * size, facecolor=color, edgecolor="none"))
    ax.text(x, y - 0.8, text, ha="center", va="top", color=INK)
