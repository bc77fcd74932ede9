"""The share constraint of the E-step, and its textbook rival."""

import time

import numpy as np

from sklearn_l2d._numerics._shares import project_onto_shares, row_chunks


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


def solve_both(n_rows, n_humans, coverage, balanced):
    """Seconds of ours and of FISTA for one problem, best of a few runs of each, and what is left of its bounds."""
    log_q = responsibilities(n_rows, n_humans, seed=0)
    lower, upper = np.zeros(n_humans + 1), np.ones(n_humans + 1)
    if balanced:
        lower[:] = upper[:] = (1 - coverage) / n_humans
    lower[-1] = upper[-1] = coverage
    project_onto_shares(log_q[:1000], lower, upper)
    ours, (*_, violation) = min((timed(project_onto_shares, log_q, lower, upper) for _ in range(3)), key=first)
    rival, (dual, _) = min((timed(fista, log_q, lower, upper) for _ in range(2)), key=first)
    tilted = np.exp(log_q + dual)
    shares = (tilted / tilted.sum(axis=1, keepdims=True)).mean(axis=0)
    return ours, violation, rival, max((lower - shares).max(), (shares - upper).max())


def first(run):
    return run[0]
