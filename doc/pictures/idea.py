"""The idea in one picture, of the README and the first page: `python -m pictures.idea` in `doc` draws it anew."""

from pathlib import Path

from matplotlib.patches import Rectangle

from pictures._shapes import BLUE, EDGE, GRAY, GREEN, INK, ORANGE, PALE, arrow, box, canvas, person

PICTURE = Path(__file__).parents[1] / "_static" / "idea.svg"


def draw_idea(path):
    """An item, the classifier, the people who are asked one after the other, and where they come from."""
    with canvas(path, 68, 56) as ax:
        _items(ax)
        arrow(ax, (11.5, 47.5), (14.5, 47.5))
        _opinion(ax, 15, 42, "classifier", (0.6, 0.4))
        arrow(ax, (30, 47.5), (33, 47.5))
        box(ax, 33.5, 42, 15, 11, "sure\nenough?", ORANGE, weight="bold")
        arrow(ax, (48.7, 47.5), (54, 47.5), "yes", GREEN, at=(-0.3, 1.7))
        box(ax, 54.5, 42, 12, 11, "label\n“lynx”\n.98 sure", GREEN)

        arrow(ax, (43, 41.7), (43, 36.5), "no", ORANGE, at=(2.4, 0))
        box(ax, 24, 20, 38, 16, color=BLUE)
        ax.text(43, 33.6, "ask whoever is worth most", ha="center", va="center", color=INK, weight="bold")
        for x, name, color in ((31, "Ann", EDGE), (43, "Bob", BLUE), (55, "Eve", EDGE)):
            person(ax, x, 24.4, size=1.25, color=color, text=name)
        arrow(ax, (23.7, 28), (22.5, 41.7), "join the\nanswer", BLUE, at=(-7.2, -1.2), bend=-0.35)

        box(ax, 2, 2, 25, 11, "archive of votes:\n7 “cat”, 2 “lynx”,\nno names", GRAY)
        box(ax, 41, 2, 25, 11, "a few labels\nof Ann, Bob and Eve", GRAY)
        arrow(ax, (21, 13.3), (34, 19.7), "ways of\nanswering", at=(-9, 0.3))
        arrow(ax, (53.5, 13.3), (53.5, 19.7), "who is\nright where", at=(7, 0))


def _items(ax):
    for offset in (2.2, 1.1, 0):
        ax.add_patch(_tile(1.5 + offset, 43.2 + offset))
    ax.text(6, 47.2, "?", ha="center", va="center", color=INK, fontsize=20, weight="bold")
    ax.text(6.5, 41.2, "items", ha="center", va="top", color=INK)


def _tile(x, y):
    return Rectangle((x, y), 7.5, 7.5, facecolor=PALE[GRAY], edgecolor=GRAY, linewidth=1.2)


def _opinion(ax, x, y, title, shares):
    box(ax, x, y, 15, 11, color=GRAY)
    ax.text(x + 7.5, y + 8.9, title, ha="center", va="center", color=INK, weight="bold")
    for at, (name, share) in enumerate(zip(("cat", "lynx"), shares, strict=True)):
        height = y + 5.6 - 3.4 * at
        ax.text(x + 1, height, name, va="center", color=INK)
        ax.barh(height, 7.5 * share, left=x + 6.4, height=1.8, color=GRAY)


if __name__ == "__main__":
    draw_idea(PICTURE)
