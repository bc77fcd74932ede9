"""Prices of people under which their loads meet bounds."""

import numpy as np

_MOST_ROUNDS = 80
_RATES, _FASTER, _SLOWER = (1e-3, 10.0), 1.3, 0.6  # of a price, per unit of excess load
_FIRST_RATE, _FIRST_COMMON_RATE = 0.2, 0.5


def find_prices(loads_of, lower, upper, tol=0.005, start=None):
    """Prices that keep loads within bounds, where a load falls with its own price and rises with the others'.

    Every price moves in proportion to the excess load, at a rate of its own that grows while its direction stays and
    falls where it turns. All prices on one side move together, too, by their mean excess: alone, people who are worth
    about the same would only hand the load on to one another. A price is positive only at an upper bound and negative
    only at a lower one.

    Parameters
    ----------
    loads_of : callable
        Returns the loads (n,) at prices (n,).
    lower, upper : ndarrays of shape (n,)
        Bounds.
    tol : float, default=0.005
        Largest distance of a load from its bounds at which the search ends; it also ends after 80 rounds.
    start : ndarray of shape (n,), default=None
        Prices to begin with; 0 by default.

    Returns
    -------
    prices : ndarray of shape (n,)
        The best that were found.
    """
    price = np.zeros(len(lower)) if start is None else start
    best, own, common = (np.inf, price), _Rates(_FIRST_RATE), (_Rates(_FIRST_COMMON_RATE), _Rates(_FIRST_COMMON_RATE))
    for _ in range(_MOST_ROUNDS):
        load = loads_of(price)
        violation = np.maximum(load - upper, lower - load).max(initial=0.0)
        best = min(best, (violation, price), key=lambda found: found[0])
        if violation <= tol:
            break
        too_much = np.where((price > 0) | (load > upper), load - upper, 0.0)
        excess = np.where((price < 0) | (load < lower), load - lower, too_much)
        move = own.move(excess)
        for side, rates in zip((price > 0, price < 0), common, strict=True):
            if side.sum() > 1:
                move[side] += rates.move(excess[side].mean())
        moved = price + move
        price = np.where(moved * price < 0, 0.0, moved)  # a price of the other sign would serve the other bound
    return best[1]


class _Rates:
    """Rates at which prices follow the excess, which grow while its sign stays."""

    def __init__(self, first):
        self.rate, self.before = first, 0.0

    def move(self, excess):
        turned = excess * self.before
        factor = np.where(turned > 0, _FASTER, np.where(turned < 0, _SLOWER, 1.0))
        self.rate, self.before = np.clip(self.rate * factor, *_RATES), excess
        return self.rate * excess
