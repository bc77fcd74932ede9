"""GLAD: sums over easiness by brute force, the limit of equal items, and abilities and difficulties recovered."""

import numpy as np
import pytest
from aggregation.test_dawid_skene import simulate
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm, spearmanr

from sklearn_l2d.aggregation import GLAD, MajorityVote
from sklearn_l2d.aggregation._glad import easiness_grid


def answer_able_people(n_items=1500, n_annotators=12, n_classes=3, spread=1.0, random_state=0):
    """Votes by the model, with abilities and easiness."""
    rng = np.random.default_rng(random_state)
    ability, easiness = rng.normal(1, 1, n_annotators), np.exp(rng.normal(0, spread, n_items))
    truth = rng.integers(n_classes, size=n_items)
    right = rng.random((n_items, n_annotators)) < expit(easiness[:, None] * ability)
    wrong = (truth[:, None] + rng.integers(1, n_classes, size=right.shape)) % n_classes
    return np.where(right, truth[:, None], wrong), truth, ability, easiness


def test_posterior_is_the_integral_over_easiness():
    votes, _, _ = simulate(25, 4)
    consensus = GLAD(spread=0.7).fit(votes)
    joint = np.zeros((25, 3))
    for i, row in enumerate(votes):
        for c in range(3):

            def density(log_easiness, row=row, c=c):
                proba = expit(np.exp(log_easiness) * consensus.abilities_)
                of_answers = [proba[a] if v == c else (1 - proba[a]) / 2 for a, v in enumerate(row) if v >= 0]
                return norm.pdf(log_easiness, 0, 0.7) * np.prod(of_answers) / 3

            joint[i, c] = quad(density, -5, 5)[0]
    assert_allclose(consensus.predict_proba(votes), joint / joint.sum(1, keepdims=True), atol=1e-3)
    assert_allclose(consensus.score(votes), np.log(joint.sum(1)).sum(), rtol=1e-3)
    penalty = ((consensus.abilities_ - 1) ** 2).sum() / 2
    assert_allclose(consensus.history_[-1], consensus.score(votes) - penalty, rtol=1e-4)


def test_equal_items_are_one_coin_in_logits():
    votes, _, _ = simulate(200, 5)
    consensus = GLAD(spread=0, tol=1e-12, max_iter=1000).fit(votes)
    p = expit(consensus.abilities_)
    log_joint = np.zeros((200, 3))
    for c in range(3):
        of_answers = np.where(votes == c, np.log(p), np.log((1 - p) / 2))
        log_joint[:, c] = np.where(votes >= 0, of_answers, 0).sum(1)
    proba = np.exp(log_joint) / np.exp(log_joint).sum(1, keepdims=True)
    assert_allclose(consensus.predict_proba(votes), proba, atol=1e-9)
    right = np.where(votes >= 0, proba[np.arange(200)[:, None], np.maximum(votes, 0)], 0).sum(0)
    assert_allclose(right - (votes >= 0).sum(0) * p, consensus.abilities_ - 1, atol=1e-3)  # the slope is 0


def test_the_objective_never_falls():
    votes, _, _ = simulate(150)
    history = GLAD(tol=1e-9).fit(votes).history_
    assert np.diff(history).min() > -1e-8


def test_abilities_and_difficulties_are_recovered():
    votes, truth, ability, easiness = answer_able_people()
    consensus = GLAD().fit(votes)
    assert spearmanr(consensus.abilities_, ability).statistic > 0.95
    assert spearmanr(consensus.item_difficulty(votes), -np.log(easiness)).statistic > 0.6
    assert_allclose(consensus.abilities_, ability, atol=0.35)
    accuracy = (votes == truth[:, None]).mean(0)
    assert_allclose(consensus.annotator_accuracy_, accuracy, atol=0.05)
    assert np.mean(consensus.predict(votes) == truth) > np.mean(MajorityVote().fit_predict(votes) == truth) + 0.005


def test_grid_has_the_moments_of_a_log_normal():
    easiness, log_weight = easiness_grid(0.5)
    assert_allclose(np.exp(log_weight) @ easiness, np.exp(0.125), rtol=1e-6)
    assert_allclose(np.exp(log_weight) @ np.log(easiness) ** 2, 0.25)


def test_difficulty_rises_with_disagreement():
    consensus = GLAD().fit(simulate(200, n_classes=2)[0])
    difficulty = consensus.item_difficulty([[-1] * 6, [0, 0, 0, 0, 0, 0], [0, 1, 0, 1, 0, 1]])
    assert difficulty[0] == pytest.approx(0, abs=1e-12)
    assert difficulty[1] < 0 < difficulty[2]


def test_known_truth_tells_ability():
    votes = np.array([[0, 1], [1, 0], [0, 1]])
    assert np.argmax(GLAD().fit(votes, [0, 1, 0]).abilities_) == 0
    assert np.argmax(GLAD().fit(votes, [1, 0, 1]).abilities_) == 1
