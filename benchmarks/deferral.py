"""Tables of ratios for deferral, each printed from one run: `python benchmarks/deferral.py [table ...]`."""

import argparse
import os
import platform
import time

import numpy as np

from sklearn_l2d._numerics._projection import project_onto_shares, row_chunks


def fista(log_q, lower, upper, tol=1e-4, max_iter=500):
    """Accelerated projected gradient on the two-sided dual, with back-tracking, as jaxopt runs it.

    Stops once the projected-gradient residual (L2 norm) falls to `tol`. Works in place and block by block, so
    that the comparison is one of algorithms. Returns the signed multipliers and the number of evaluations.
    """
    n_rows, n_columns = log_q.shape
    linear = np.concatenate([upper, -lower])
    n_evaluations = 0

    def dual(v):
        nonlocal n_evaluations
        n_evaluations += 1
        value, shares = 0.0, np.zeros(n_columns)
        tilt = v[n_columns:] - v[:n_columns]
        for rows in row_chunks(n_rows, n_columns):
            block = log_q[rows] + tilt
            peak = block.max(axis=1)
            block -= peak[:, None]
            np.exp(block, out=block)
            sums = block.sum(axis=1)
            shares += (1 / sums) @ block
            value += (peak + np.log(sums)).sum()
        shares /= n_rows
        return linear @ v + value / n_rows, linear + np.concatenate([-shares, shares])

    x = y = np.zeros(2 * n_columns)
    momentum, step = 1.0, 1.0
    for _ in range(max_iter):
        value, gradient = dual(y)
        for _ in range(15):
            new = np.maximum(y - step * gradient, 0)
            move = new - y
            new_value, new_gradient = dual(new)
            if new_value <= value + gradient @ move + move @ move / (2 * step) + 1e-12:
                break
            step /= 2
        next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        y = new + (momentum - 1) / next_momentum * (new - x)
        x, momentum = new, next_momentum
        step = step * 2 if step > 1e-6 else 1.0
        if np.linalg.norm(np.maximum(x - new_gradient, 0) - x) <= tol:
            break
    return x[n_columns:] - x[:n_columns], n_evaluations


def responsibilities(n_rows, n_humans, seed):
    """Log-responsibilities of humans of mixed accuracy and a classifier behind a random gate, ten classes."""
    rng = np.random.default_rng(seed)
    right = rng.random((n_rows, n_humans + 1)) < np.append(rng.uniform(0.5, 0.95, n_humans), 0.7)
    gate = rng.normal(size=(n_rows, n_humans + 1))
    return gate + np.where(right, np.log(0.99), np.log(0.01 / 9))


def timed(function, *args):
    start = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - start, result


def dual_table(n_rows=100_000, n_humans=50, coverage=0.5, n_repeats=3):
    """Time to solve the share constraint on the whole set, against FISTA; best of a few runs of each."""
    log_q = responsibilities(n_rows, n_humans, seed=0)
    only_coverage = np.zeros(n_humans + 1), np.ones(n_humans + 1)
    only_coverage[0][-1] = only_coverage[1][-1] = coverage
    even = np.append(np.full(n_humans, (1 - coverage) / n_humans), coverage)
    project_onto_shares(log_q[:1000], even, even)
    print(f"\nShare constraint, {n_rows:,} rows, {n_humans} experts and the classifier, coverage {coverage}")
    print(f"{'bounds':<16}{'ours [s]':>10}{'violation':>12}{'FISTA [s]':>11}{'violation':>12}{'ratio':>8}{'goal':>7}")
    for name, (lower, upper), goal in (("coverage pinned", only_coverage, 5), ("balanced", (even, even), 10)):
        runs = [timed(project_onto_shares, log_q, lower, upper) for _ in range(n_repeats)]
        ours, (*_, violation) = min(runs, key=lambda run: run[0])
        rival, (dual, _) = min((timed(fista, log_q, lower, upper) for _ in range(2)), key=lambda run: run[0])
        tilted = np.exp(log_q + dual)
        shares = (tilted / tilted.sum(axis=1, keepdims=True)).mean(axis=0)
        off = max((lower - shares).max(), (shares - upper).max())
        print(f"{name:<16}{ours:>10.3f}{violation:>12.1e}{rival:>11.2f}{off:>12.1e}{rival / ours:>7.1f}x{goal:>6}x")


TABLES = {"dual": dual_table}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help=f"all by default: {', '.join(TABLES)}")
    names = parser.parse_args().tables or list(TABLES)
    if unknown := set(names) - set(TABLES):
        parser.error(f"unknown tables: {', '.join(sorted(unknown))}")
    print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, {os.cpu_count()} cores, numpy {np.__version__}")
    for name in names:
        TABLES[name]()
