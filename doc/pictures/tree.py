"""Which deferrer when, as a tree of questions: yes leads to the right, no goes on below."""

from choices import WAYS

from pictures._shapes import BLUE, GRAY, GREEN, INK, ORANGE, arrow, box, canvas

_WIDTH, _LEFT, _RIGHT, _BOX, _STEP = 68, 2, 39, 7.5, 10.4
_QUESTION, _TAKE = 29, 27


def draw_tree(path, ways=WAYS):
    """Draw all ways beneath one another, narrow enough for a phone."""
    rows = [len(way.choices) + 1 for way in ways]
    height = _STEP * sum(rows) + 3 * len(rows) + 2 * _STEP + 8
    with canvas(path, _WIDTH, height) as ax:
        y = height - 2 - _BOX
        box(ax, _LEFT, y, _QUESTION, _BOX, "Is the truth of some items\nknown that people answered?", ORANGE)
        _yes(ax, y, "no", "First collect 25 to 50\nlabels by name of each", GRAY)
        _no(ax, y, "yes")
        y -= _STEP
        box(ax, _LEFT, y, _QUESTION, _BOX, "May the answers of several\npeople be joined?", ORANGE, weight="bold")
        ax.text(_LEFT + _QUESTION + 2, y + _BOX / 2, "yes: first part, no: second", va="center", color=ORANGE)
        y -= 3
        for way in ways:
            y = _draw_way(ax, y, way)


def _draw_way(ax, y, way):
    ax.text(_LEFT, y - 2.6, way.title, ha="left", va="center", color=INK, fontsize=16, weight="bold")
    y -= 5 + _BOX
    for choice in way.choices:
        box(ax, _LEFT, y, _QUESTION, _BOX, choice.question, BLUE)
        _yes(ax, y, "yes", choice.take, GREEN)
        _no(ax, y, "no")
        y -= _STEP
    box(ax, _LEFT, y, _QUESTION, _BOX, way.otherwise.question, GRAY)
    _yes(ax, y, "", way.otherwise.take, GREEN)
    return y - 1


def _yes(ax, y, word, take, color):
    arrow(ax, (_LEFT + _QUESTION, y + _BOX / 2), (_RIGHT - 0.3, y + _BOX / 2), word, GREEN, at=(-0.6, 1.6))
    box(ax, _RIGHT, y, _TAKE, _BOX, take, color, weight="bold")


def _no(ax, y, word):
    arrow(ax, (_LEFT + 6, y), (_LEFT + 6, y - _STEP + _BOX + 0.2), word, GRAY, at=(2.6, 0.1))
