"""What every script prints: the machine, and figures beside their rivals as Markdown tables; how they are measured."""

import argparse
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import torch

from sklearn_l2d.benchmark._machine import machine
from sklearn_l2d.benchmark._tables import markdown, yes


def run(tables, description, note=""):
    """Parse the command line and print the chosen tables; `tables` maps names to functions of a range of seeds."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"any of {', '.join(tables)}; default: all")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds (default 10)")
    parser.add_argument(
        "--first-seed", type=int, default=0, help="first seed (default 0); defaults are tuned on 100 up"
    )
    args = parser.parse_args()
    unknown = set(args.tables) - set(tables)
    if unknown:
        parser.error(f"unknown tables {sorted(unknown)}; choose from {', '.join(tables)}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    where = machine("one torch thread")
    print(f"# {description}\n\n{where} Seeds {seeds[0]} to {seeds[-1]} unless said otherwise. {note}")
    for name in args.tables or tables:
        tables[name](seeds)


def table(title, columns, rows):
    """Print a Markdown table."""
    print("\n" + markdown(title, columns, rows, level=2), end="", flush=True)


def verdict(figure, bound):
    """Whether a figure reaches a lower bound; two decimals, as the bounds are stated."""
    return yes(round(float(figure), 2) >= bound)


def cpu_ratio(ours, plain, n_repeats):
    """Median over pairs of runs of CPU seconds, `ours` against `plain`, run in turns.

    CPU time of one thread: other jobs on the machine then disturb little.
    """
    ours(), plain()
    seconds = np.array([[cpu_seconds(ours), cpu_seconds(plain)] for _ in range(n_repeats)])
    return np.median(seconds[:, 0] / seconds[:, 1]), *np.median(seconds, axis=0)


def cpu_seconds(function):
    """CPU seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def in_a_process(function, *args, **environment):
    """Result of a call in a new interpreter, whose memory nothing else has touched, with some environment variables."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            return pool.submit(function, *args).result()
    finally:
        os.environ.clear()
        os.environ.update(before)
