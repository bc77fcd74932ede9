"""What a run of the benchmark covers, and what an experiment consists of."""

from collections.abc import Callable
from typing import NamedTuple


class Plan(NamedTuple):
    """Choices of the command line.

    Attributes
    ----------
    seeds : range
    sizes : tuple of int
        Labels by name of each expert.
    sets, methods : tuple of str
        Of the onboarding experiment.
    quick : bool
        Whether the other experiments run on one small set only.
    """

    seeds: range
    sizes: tuple
    sets: tuple
    methods: tuple
    quick: bool


class Experiment(NamedTuple):
    """One part of the benchmark.

    Attributes
    ----------
    title : str
    cells : callable
        From a `Plan` to a list of cells.
    measure : callable
        From the cells of one job to an iterator of dicts of figures, in their order.
    report : callable
        From the records of the cells to Markdown.
    draw : callable or None
        From the records and matplotlib.pyplot to pairs of a file name and a figure.
    """

    title: str
    cells: Callable
    measure: Callable
    report: Callable
    draw: Callable | None = None
