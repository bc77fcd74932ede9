"""Ordered classes: two of them, the projection, the order, and what it gains where answers are close."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.isotonic import IsotonicRegression

from sklearn_l2d.aggregation import DawidSkene, OrdinalConsensus
from sklearn_l2d.aggregation._ordinal_consensus import falling


def simulate(n_items=400, noise=(0.6, 1.0, 1.5, 2.5), n_classes=5, random_state=0):
    rng = np.random.default_rng(random_state)
    truth = rng.integers(n_classes, size=n_items)
    answers = truth[:, None] + rng.normal(size=(n_items, len(noise))) * noise
    return np.clip(np.rint(answers), 0, n_classes - 1).astype(int), truth


def test_two_classes_are_those_of_dawid_and_skene():
    votes, truth = simulate(n_classes=2)
    votes[::3, 1] = -1
    y = np.where(np.arange(400) < 50, truth, np.nan)
    for given in (None, y):
        ordinal, plain = OrdinalConsensus(prior=0.5).fit(votes, given), DawidSkene(prior=0.5).fit(votes, given)
        assert_allclose(ordinal.predict_proba(votes), plain.predict_proba(votes))


def test_the_projection_is_that_of_isotonic_regression():
    values = np.random.default_rng(0).random((20, 5))
    expected = [IsotonicRegression(increasing=False).fit_transform(np.arange(5), row) for row in values]
    assert_allclose(falling(values), expected)


def test_cuts_are_questions_with_two_answers():
    votes, _ = simulate()
    model = OrdinalConsensus().fit(votes)
    above = np.stack([DawidSkene().fit(votes > cut).predict_proba(votes > cut)[:, 1] for cut in range(4)], axis=1)
    expected = -np.diff(np.pad(falling(above), ((0, 0), (1, 1)), constant_values=(1, 0)), axis=1)
    expected[:, -1] = falling(above)[:, -1]
    assert_allclose(model.predict_proba(votes), expected, atol=1e-12)


def test_the_order_is_not_that_of_the_alphabet():
    votes, truth = simulate()
    names = np.array(["very low", "low", "mid", "high", "very high"])
    named = OrdinalConsensus(order=names).fit(names[votes])
    assert_array_equal(named.predict(names[votes]), names[OrdinalConsensus().fit_predict(votes)])
    wrong = OrdinalConsensus().fit(names[votes]).predict(names[votes]) == names[truth]
    assert np.mean(named.predict(names[votes]) == names[truth]) > wrong.mean()


def test_distances_gain_by_knowing_the_order():
    gain = []
    for seed in range(5):
        votes, truth = simulate(150, random_state=seed)
        errors = [np.abs(model.fit_predict(votes) - truth).mean() for model in (DawidSkene(), OrdinalConsensus())]
        gain.append(errors[0] - errors[1])
    assert np.mean(gain) > 0


def test_an_order_that_lacks_a_class_is_refused():
    with pytest.raises(ValueError, match=r"lacks \[2\]"):
        OrdinalConsensus(order=[0, 1]).fit([[0, 1, 2]])
