"""One coin each by projected gradient: exact on enumerated crowds, few pairs, and bounds."""

import numpy as np
import pytest
from _crowds import enumerate_crowd, simulate_crowd
from numpy.testing import assert_allclose

from sklearn_l2d.aggregation import DawidSkene, ProjectedGradientOneCoin


def coins(accuracy, n_classes):
    """Confusion matrices of annotators who err evenly."""
    accuracy = np.asarray(accuracy)[:, None, None]
    return np.where(np.eye(n_classes, dtype=bool), accuracy, (1 - accuracy) / (n_classes - 1))


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.2, 0.8], [0.2, 0.3, 0.5]])
def test_exact_on_an_enumerated_crowd(prior):
    confusion = coins([0.9, 0.8, 0.6, 0.3, 0.7], len(prior))
    votes, weight = enumerate_crowd(confusion, prior)
    consensus = ProjectedGradientOneCoin(prior=0, tol=1e-12).fit(votes, sample_weight=weight)
    assert_allclose(consensus.confusion_matrices_, confusion, atol=1e-5)
    assert_allclose(consensus.class_prior_, prior, atol=1e-5)


def test_a_circle_of_pairs_is_enough():
    """Each of seven annotators shares items with two others."""
    confusion = coins(np.linspace(0.95, 0.6, 7), 3)
    votes, _ = simulate_crowd(confusion, np.full(3, 1 / 3), 14_000)
    duty = np.arange(14_000) % 7
    there = (np.arange(7) == duty[:, None]) | (np.arange(7) == (duty[:, None] + 1) % 7)
    consensus = ProjectedGradientOneCoin().fit(np.where(there, votes, -1))
    assert consensus.identified_.all()
    assert_allclose(consensus.confusion_matrices_, confusion, atol=0.06)


def test_objective_never_falls_and_skills_keep_their_bounds():
    votes, _ = simulate_crowd(coins([1.0, 1.0, 0.5, 0.2], 3), np.full(3, 1 / 3), 60)
    consensus = ProjectedGradientOneCoin(prior=0, tol=1e-9).fit(votes)
    assert np.diff(consensus.history_).min() >= 0
    assert consensus.confusion_matrices_.min() >= 0
    assert_allclose(consensus.confusion_matrices_.sum(2), 1)


def test_close_to_the_likeliest_coins_on_many_items():
    votes, _ = simulate_crowd(coins(np.linspace(0.5, 0.9, 8), 3), np.full(3, 1 / 3), 5000, missing=0.4)
    likeliest, gradient = DawidSkene("one_coin").fit(votes), ProjectedGradientOneCoin().fit(votes)
    assert_allclose(gradient.annotator_accuracy_, likeliest.annotator_accuracy_, atol=0.03)
    assert np.mean(gradient.predict(votes) == likeliest.predict(votes)) > 0.98
