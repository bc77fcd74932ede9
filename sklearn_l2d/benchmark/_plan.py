"""The plan of a run of the benchmark, and the parts of an experiment."""

from collections.abc import Callable
from typing import NamedTuple


class Plan(NamedTuple):
    """Choices of the command line.

    Attributes
    ----------
    seeds : range
    sizes : tuple of int
        Numbers of named annotations per expert.
    sets : tuple of str
        Sets of the experiments on onboarding and on answers.
    methods : tuple of str
        Methods of the onboarding experiment.
    quick : bool
        Whether the other experiments use one small set only.
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
        Returns the list of cells of a `Plan`.
    measure : callable
        Returns an iterator of dicts of figures for the cells of one job, in their order.
    report : callable
        Returns Markdown for the records of the cells.
    draw : callable or None
        Returns pairs of a file name and a figure, from the records and matplotlib.pyplot.
    """

    title: str
    cells: Callable
    measure: Callable
    report: Callable
    draw: Callable | None = None
