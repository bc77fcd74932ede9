"""Prices of people under which their loads meet bounds."""

import numpy as np

_MOST_ROUNDS = 60
_FIRST_STEP, _LARGEST_STEP, _GROW, _SHRINK = 0.02, 0.3, 1.3, 0.5


def find_prices(loads_of, lower, upper, tol=0.005):
    """Prices that keep loads within bounds, where a load falls with its own price and rises with the others'.

    Every price moves by a step of its own, which grows while its direction stays and shrinks where it turns. A price is
    positive only at an upper bound and negative only at a lower one.

    Parameters
    ----------
    loads_of : callable
        Returns the loads (n,) at prices (n,).
    lower, upper : ndarrays of shape (n,)
        Bounds.
    tol : float, default=0.005
        Largest distance of a load from its bounds at which the search ends; it also ends after 60 rounds.

    Returns
    -------
    prices : ndarray of shape (n,)
        The best that were found.
    """
    price, step = np.zeros(len(lower)), np.full(len(lower), _FIRST_STEP)
    before, best = np.zeros(len(lower)), (np.inf, price)
    for _ in range(_MOST_ROUNDS):
        load = loads_of(price)
        violation = np.maximum(load - upper, lower - load).max(initial=0.0)
        best = min(best, (violation, price), key=lambda found: found[0])
        if violation <= tol:
            break
        too_much = np.where((price > 0) | (load > upper), load - upper, 0.0)
        excess = np.where((price < 0) | (load < lower), load - lower, too_much)
        direction = np.where(np.abs(excess) > tol / 2, np.sign(excess), 0.0)
        turned = direction * before
        step = np.clip(step * np.where(turned > 0, _GROW, np.where(turned < 0, _SHRINK, 1.0)), 1e-6, _LARGEST_STEP)
        moved = price + direction * step
        price = np.where(moved * price < 0, 0.0, moved)  # a price of the other sign would serve the other bound
        before = direction
    return best[1]
