"""Answers that hang on the difficulty of the item, beside sums and integrals written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from sklearn_l2d._numerics._difficulty import Told, difficulty_given, n_difficulties, over_difficulties

spreads = st.sampled_from([0.0, 0.5, 1.0, 2.0])


def answers(rng, n, n_classes):
    """Of people who divide their wrong answers evenly."""
    accuracy, label = rng.uniform(0.02, 0.98, size=(n, n_classes)), rng.integers(n_classes, size=n)
    likelihood = np.where(label[:, None] == np.arange(n_classes), accuracy, (1 - accuracy) / (n_classes - 1))
    return Told(np.log(likelihood), accuracy, label)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), spreads)
def test_one_answer_alone_tells_what_it_did(seed, n_classes, spread):
    told = answers(np.random.default_rng(seed), 7, n_classes)
    found = told.at_difficulties(spread)
    assert found.shape == (7, n_difficulties(spread), n_classes)
    assert_allclose(over_difficulties(found), told.log_likelihood, atol=1e-5)


@given(st.integers(0, 2**32 - 1), spreads)
def test_at_each_difficulty_answers_are_a_distribution(seed, spread):
    """Each of the wrong answers is as frequent among them as over all difficulties."""
    accuracy = np.tile(np.random.default_rng(seed).uniform(0.02, 0.98, size=3), (3, 1))
    shares = np.array([[0, 0.3, 0.8], [0.4, 0, 0.2], [0.6, 0.7, 0]])  # answer, truth
    likelihood = np.where(np.eye(3), accuracy, (1 - accuracy) * shares)
    found = np.exp(Told(np.log(likelihood), accuracy, np.arange(3)).at_difficulties(spread))
    assert_allclose(found.sum(0), 1)
    wrong = 1 - found[np.arange(3), :, np.arange(3)].T  # difficulty, truth
    assert_allclose(found[0, :, 1] / wrong[:, 1], 0.3)


@pytest.mark.parametrize("spread", [0.5, 1.0, 1.5])
def test_several_answers_beside_the_integral_over_all_difficulties(spread):
    accuracy, right = np.array([0.9, 0.8, 0.7]), np.array([True, True, False])
    at = [
        brentq(lambda x, p=p: quad(lambda d: expit(x - d) * norm.pdf(d, 0, spread), -12, 12)[0] - p, -9, 9)
        for p in accuracy
    ]

    def joint(difficulty):
        chance = expit(np.array(at) - difficulty)
        return np.where(right, chance, 1 - chance).prod() * norm.pdf(difficulty, 0, spread)

    told = Told(np.log(np.where(right, accuracy, 1 - accuracy))[:, None], accuracy[:, None], np.where(right, 0, 1))
    # one class only: label 1 stands for any wrong answer
    told = Told(*(np.repeat(column, 2, axis=1) for column in told[:2]), told.label)
    found = over_difficulties(told.at_difficulties(spread).sum(0)[None])
    assert_allclose(np.exp(found[0, 0]), quad(joint, -12, 12)[0], rtol=0.02)


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_people_who_contradict_one_another_tell_less(spread):
    """Two against one, of the same accuracy: the label is less sure than by independent answers, and two are, too."""
    accuracy = np.full((3, 2), 0.8)
    label = np.array([0, 0, 1])
    told = Told(np.log(np.where(label[:, None] == np.arange(2), 0.8, 0.2)), accuracy, label)

    def sure(of, spread):
        evidence = over_difficulties(of.at_difficulties(spread).sum(0)[None])[0]
        return expit(evidence[0] - evidence[1])

    two = Told(*(column[:2] for column in told))
    assert 0.5 < sure(told, spread) < sure(told, 0.0) == pytest.approx(0.8)
    assert 0.8 < sure(two, spread) < sure(two, 0.0) == pytest.approx(16 / 17)


def test_whoever_contradicts_another_makes_the_item_hard():
    """Bayes' rule, written out for two answers by people who are right in eight items of ten."""
    accuracy, nodes = np.full((2, 2), 0.8), np.polynomial.hermite_e.hermegauss(5)
    at = brentq(lambda x: nodes[1] @ expit(x - nodes[0]) / nodes[1].sum() - 0.8, -9, 9)
    chance = expit(at - nodes[0])
    for label, joint in (([0, 0], chance**2), ([0, 1], chance * (1 - chance))):
        label = np.array(label)
        told = Told(np.log(np.where(label[:, None] == np.arange(2), 0.8, 0.2)), accuracy, label)
        found = difficulty_given(told.at_difficulties(1.0).sum(0)[None])[0, :, 0]
        assert_allclose(found, nodes[1] * joint / (nodes[1] @ joint), atol=1e-5)
        assert (found @ nodes[0] > 0) == (label[1] == 1)
    assert_allclose(difficulty_given(np.zeros((3, 1, 2))), 1)
