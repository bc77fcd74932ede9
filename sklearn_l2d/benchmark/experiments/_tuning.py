"""The choice of options: four settings of every method, on seeds that are not reported."""

from .._curves import fit_and_judge
from .._methods import METHODS
from .._plan import Experiment
from .._runner import Cell
from .._tables import markdown, mean, names
from .._worlds import SETS

_SETS, _SIZE = ("digits, 6 experts", "digits, 100 experts"), 50


def cells(plan):
    """Every setting of every method that has several."""
    return [
        Cell("tuning", dataset, _SIZE, seed, f"{name} / {i}")
        for dataset in _SETS
        for seed in plan.seeds
        for name in plan.methods
        if len(METHODS[name].grid) > 1
        for i in range(len(METHODS[name].grid))
    ]


def measure(cells):
    """Area of one setting."""
    dataset = SETS[cells[0].dataset]
    world = dataset.build(cells[0].seed)
    labels = world.identified(_SIZE, dataset.same_items)
    for cell in cells:
        name, i = cell.method.split(" / ")
        yield fit_and_judge(world, labels, METHODS[name], METHODS[name].grid[int(i)])


def report(records):
    """Mean area of every setting, and the best setting."""
    rows = []
    for name in dict.fromkeys(method.split(" / ")[0] for method in names(records, "method")):
        areas = [mean(records, "area", method=f"{name} / {i}") for i in range(len(METHODS[name].grid))]
        rows.append([name, *areas, areas.index(max(areas)), METHODS[name].chosen])
    return markdown(f"Mean area over {' and '.join(_SETS)}, N'={_SIZE}",
                    ["method", "setting 0", "setting 1", "setting 2", "setting 3", "best", "in use"], rows)  # fmt: skip


TUNING = Experiment("Choice of options", cells, measure, report)
