"""The evidence as figures: what an answer is worth, and what a deferrer reaches beside the simple rule."""

import matplotlib.pyplot as plt
from evidence import CONTROLS, REAL, RIVALS, SIMULATED, answers, areas

from pictures._shapes import BLUE, GRAY, GREEN, ORANGE, save

_FONT = {"font.family": "DejaVu Sans", "font.size": 11, "svg.hashsalt": "sklearn_l2d", "axes.spines.top": False}
_FONT["axes.spines.right"] = False
_RULE = "ConfidenceDeferral"


def draw_answers(path):
    """Accuracy by answers per item on each set: the panel, the best of seven rivals, and two of these."""
    with plt.rc_context(_FONT):
        figure, axes = plt.subplots(5, 2, figsize=(6.8, 11.5), sharex=True, layout="constrained")
        for ax, name in zip(axes.flat, SIMULATED + REAL + CONTROLS, strict=True):
            numbers, rows = answers(name)
            best = [max(rows[rival][at] for rival in RIVALS) for at in range(len(numbers))]
            lines = (
                ("majority of random people", rows["random people, majority"], GRAY, ":"),
                ("ConfidenceDeferral", rows["confidence, one answer"], GREEN, "-."),
                ("best of seven rivals", best, ORANGE, "--"),
                ("PanelDeferral", rows["panel"], BLUE, "-"),
            )
            for label, accuracy, color, style in lines:
                ax.plot(numbers, accuracy, style, color=color, label=label, linewidth=2, marker=".")
            ax.set_title(name, fontsize=11, loc="left")
        figure.supxlabel("answers per item")
        figure.supylabel("accuracy")
        figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
        save(figure, path)


def draw_areas(path):
    """Area of every deferrer minus that of the simple rule, one dot per set, with few labels and with many."""
    found = areas(SIMULATED + REAL)
    with plt.rc_context(_FONT):
        figure, axes = plt.subplots(1, 2, figsize=(6.8, 7.4), sharex=True, sharey=True, layout="constrained")
        names = [name for name in next(iter(found.values()))[1] if name != _RULE]
        gaps = [
            {name: [rows[name][at] - rows[_RULE][at] for _, rows in found.values()] for name in names} for at in (0, 1)
        ]
        names.sort(key=lambda name: sum(gaps[0][name]))
        for ax, gap, title in zip(axes, gaps, ("25 labels by name", "as many as there are"), strict=True):
            for y, name in enumerate(names):
                for at, value in enumerate(gap[name]):
                    simulated = at < len(SIMULATED)
                    color, marker = (GRAY, "o") if simulated else (ORANGE, "D")
                    ax.plot(value, y, marker, color=color, markersize=5, alpha=0.8, clip_on=False)
            ax.axvline(0, color=GREEN, linewidth=1.5)
            ax.set_title(title, fontsize=11)
            ax.grid(axis="y", color="#e5e9ec")
            ax.set_axisbelow(True)
        axes[0].set_yticks(range(len(names)), [_wrapped(name) for name in names], fontsize=10)
        axes[0].plot([], [], "o", color=GRAY, label="simulated experts")
        axes[0].plot([], [], "D", color=ORANGE, label="real people")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
        figure.supxlabel(f"area minus that of {_RULE}, one dot per set")
        save(figure, path)


def _wrapped(name):
    return name.replace(", ", ",\n").replace('("', '\n("')
