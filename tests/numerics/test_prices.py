"""Prices that keep loads within bounds."""

import numpy as np
import pytest
from scipy.special import softmax

from sklearn_l2d._numerics._prices import find_prices

VALUE = np.random.default_rng(0).normal([1.0, 0.5, 0.3, 0.0, -0.5], 0.3, size=(3000, 5))


def soft(price):
    return softmax(10 * (VALUE - price), axis=1).mean(0)


def hard(price):
    return np.bincount((VALUE - price).argmax(1), minlength=5) / len(VALUE)


@pytest.mark.parametrize("loads_of", [soft, hard])
@pytest.mark.parametrize(
    ("lower", "upper"), [([0.0] * 5, [0.3] * 5), ([0.15] * 5, [0.25] * 5), ([0.0, 0, 0, 0, 0.4], [1.0, 0.2, 1, 1, 1])]
)
def test_loads_meet_their_bounds(loads_of, lower, upper):
    lower, upper = np.array(lower), np.array(upper)
    price = find_prices(loads_of, lower, upper)
    load = loads_of(price)
    assert np.maximum(load - upper, lower - load).max() <= 0.005
    assert (load[price > 0] > upper[price > 0] - 0.05).all()  # a price only where it is needed
    assert (load[price < 0] < lower[price < 0] + 0.05).all()


def test_no_bounds_have_no_price():
    assert not find_prices(hard, np.zeros(5), np.ones(5)).any()


def test_bounds_that_cannot_be_met_end_the_search():
    calls = []

    def loads_of(price):
        calls.append(price)
        return np.array([0.5, 0.5])

    find_prices(loads_of, np.zeros(2), np.full(2, 0.2))
    assert len(calls) == 80
