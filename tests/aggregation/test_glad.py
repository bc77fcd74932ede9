"""GLAD: easiness summed over and maximised by other means, equal items, and abilities and difficulties recovered."""

import numpy as np
import pytest
from aggregation.test_dawid_skene import simulate
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm, spearmanr

from sklearn_l2d.aggregation import GLAD, MajorityVote
from sklearn_l2d.aggregation._glad import easiness_grid, with_easiness
from sklearn_l2d.annotations import encode_votes

EACH = pytest.mark.parametrize("difficulty", ["integrated", "estimated"])


def answer_able_people(n_items=1500, n_annotators=12, n_classes=3, spread=1.0, random_state=0):
    """Votes by the model, with abilities and easiness."""
    rng = np.random.default_rng(random_state)
    ability, easiness = rng.normal(1, 1, n_annotators), np.exp(rng.normal(0, spread, n_items))
    truth = rng.integers(n_classes, size=n_items)
    right = rng.random((n_items, n_annotators)) < expit(easiness[:, None] * ability)
    wrong = (truth[:, None] + rng.integers(1, n_classes, size=right.shape)) % n_classes
    return np.where(right, truth[:, None], wrong), truth, ability, easiness


def log_likelihood(row, ability, log_easiness, n_classes=3):
    """Log-probability of the answers to an item of an easiness."""
    logit, answered = ability * np.exp(log_easiness), np.asarray(row) >= 0
    right, wrong = -np.logaddexp(0, -logit), -np.logaddexp(0, logit) - np.log(n_classes - 1)
    of_classes = [np.where(np.equal(row, c), right, wrong)[answered].sum() for c in range(n_classes)]
    return np.logaddexp.reduce(of_classes) - np.log(n_classes)


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


def test_estimates_are_what_an_optimiser_finds():
    """All abilities and difficulties together, by a general optimiser from several starts."""
    votes, _, _, _ = answer_able_people(12, 5)
    consensus = GLAD(difficulty="estimated", spread=0.8, tol=1e-13, max_iter=2000).fit(votes)

    def loss(x):
        ability, log_easiness = x[:5], x[5:]
        prior = ((ability - 1) ** 2).sum() / 2 + ((log_easiness / 0.8) ** 2).sum() / 2
        return prior - sum(log_likelihood(row, ability, b) for row, b in zip(votes, log_easiness, strict=True))

    rng = np.random.default_rng(0)
    starts = [np.append(np.ones(5), np.zeros(12)), *rng.normal(0.5, 1, (3, 17))]
    best = min((minimize(loss, start, options={"gtol": 1e-7}) for start in starts), key=lambda found: found.fun)
    assert_allclose(consensus.history_[-1], -best.fun, rtol=1e-9)
    assert_allclose(consensus.abilities_, best.x[:5], atol=1e-4)
    assert_allclose(consensus.item_difficulty(votes), -best.x[5:], atol=1e-4)


@pytest.mark.parametrize("ability", [0.016, 0.03, 0.04])
def test_estimated_easiness_is_the_higher_of_two_peaks(ability):
    """Twenty people of little ability agree: by chance, or since the item is very easy."""
    log_easiness = np.linspace(-5, 5, 2001)
    votes, abilities = np.zeros((1, 20), dtype=int), np.full(20, ability)
    height = [log_likelihood(votes[0], abilities, b, 2) - b**2 / 2 for b in log_easiness]
    votes = encode_votes(votes, classes=[0, 1])
    deviation, _, evidence = with_easiness(votes, np.ones((1, 2), dtype=bool), abilities, 1.0)
    assert_allclose(evidence, max(height), atol=1e-4)
    assert_allclose(deviation, log_easiness[np.argmax(height)], atol=0.003)
    assert (deviation > 1) == (ability > 0.02)


def test_estimated_easiness_is_the_best_of_a_fine_grid():
    rng = np.random.default_rng(1)
    votes, ability = rng.integers(-1, 3, (20, 8)), rng.normal(0, 2, 8)
    deviation, _, evidence = with_easiness(encode_votes(votes), np.ones((20, 3), dtype=bool), ability, 0.5)
    grid = np.linspace(-4, 4, 801)
    height = [[log_likelihood(row, ability, 0.5 * z) - z**2 / 2 for z in grid] for row in votes]
    assert_allclose(evidence, np.max(height, axis=1), atol=1e-4)
    assert_allclose(deviation, grid[np.argmax(height, axis=1)], atol=0.006)


def test_score_integrates_whatever_the_fit_does():
    votes, _, _ = simulate(5, 4)
    consensus = GLAD(difficulty="estimated").fit(votes)

    def density(log_easiness, row):
        return norm.pdf(log_easiness) * np.exp(log_likelihood(row, consensus.abilities_, log_easiness))

    integrals = [quad(density, -6, 6, args=(row,))[0] for row in votes]
    assert_allclose(consensus.score(votes), np.log(integrals).sum(), rtol=1e-3)


@EACH
def test_equal_items_are_one_coin_in_logits(difficulty):
    votes, _, _ = simulate(200, 5)
    consensus = GLAD(difficulty=difficulty, spread=0, tol=1e-12, max_iter=1000).fit(votes)
    p = expit(consensus.abilities_)
    log_joint = np.zeros((200, 3))
    for c in range(3):
        of_answers = np.where(votes == c, np.log(p), np.log((1 - p) / 2))
        log_joint[:, c] = np.where(votes >= 0, of_answers, 0).sum(1)
    proba = np.exp(log_joint) / np.exp(log_joint).sum(1, keepdims=True)
    assert_allclose(consensus.predict_proba(votes), proba, atol=1e-9)
    right = np.where(votes >= 0, proba[np.arange(200)[:, None], np.maximum(votes, 0)], 0).sum(0)
    assert_allclose(right - (votes >= 0).sum(0) * p, consensus.abilities_ - 1, atol=1e-3)  # the slope is 0


@EACH
def test_the_objective_never_falls(difficulty):
    votes, _, _ = simulate(150)
    history = GLAD(difficulty=difficulty, tol=1e-9).fit(votes).history_
    assert np.diff(history).min() > -1e-8


# abilities that come with estimated difficulties are too far from 0
@pytest.mark.parametrize(("difficulty", "off", "accuracy_off"), [("integrated", 0.35, 0.05), ("estimated", 0.45, 0.07)])
def test_abilities_and_difficulties_are_recovered(difficulty, off, accuracy_off):
    votes, truth, ability, easiness = answer_able_people()
    consensus = GLAD(difficulty=difficulty).fit(votes)
    assert spearmanr(consensus.abilities_, ability).statistic > 0.95
    assert spearmanr(consensus.item_difficulty(votes), -np.log(easiness)).statistic > 0.6
    assert_allclose(consensus.abilities_, ability, atol=off)
    accuracy = (votes == truth[:, None]).mean(0)
    assert_allclose(consensus.annotator_accuracy_, accuracy, atol=accuracy_off)
    assert np.mean(consensus.predict(votes) == truth) > np.mean(MajorityVote().fit_predict(votes) == truth) + 0.005


def test_grid_has_the_moments_of_a_log_normal():
    easiness, log_weight = easiness_grid(0.5)
    assert_allclose(np.exp(log_weight) @ easiness, np.exp(0.125), rtol=1e-6)
    assert_allclose(np.exp(log_weight) @ np.log(easiness) ** 2, 0.25)


@EACH
def test_difficulty_rises_with_disagreement(difficulty):
    consensus = GLAD(difficulty=difficulty).fit(simulate(200, n_classes=2)[0])
    difficulty = consensus.item_difficulty([[-1] * 6, [0, 0, 0, 0, 0, 0], [0, 1, 0, 1, 0, 1]])
    assert difficulty[0] == pytest.approx(0, abs=1e-12)
    assert difficulty[1] < 0 < difficulty[2]


@EACH
def test_known_truth_tells_ability(difficulty):
    votes = np.array([[0, 1], [1, 0], [0, 1]])
    assert np.argmax(GLAD(difficulty=difficulty).fit(votes, [0, 1, 0]).abilities_) == 0
    assert np.argmax(GLAD(difficulty=difficulty).fit(votes, [1, 0, 1]).abilities_) == 1
