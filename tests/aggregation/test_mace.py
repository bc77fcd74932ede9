"""MACE: brute force over who knew, and spammers found."""

from itertools import product

import numpy as np
import pytest
from aggregation.test_dawid_skene import load_votes, simulate
from numpy.testing import assert_allclose
from scipy.stats import dirichlet

from sklearn_l2d.aggregation import MACE, DawidSkene, MajorityVote


def spam(n_items=800, random_state=0):
    """Votes by the model: the first annotators know nearly always, the last never and answer 1 mostly."""
    rng = np.random.default_rng(random_state)
    knows = np.array([0.9, 0.8, 0.7, 0.5, 0.1, 0.0])
    answer = np.array([[1 / 3, 1 / 3, 1 / 3]] * 3 + [[0.1, 0.8, 0.1]] * 3)
    truth = rng.integers(3, size=n_items)
    answers = np.stack([rng.choice(3, n_items, p=p) for p in answer], axis=1)
    return np.where(rng.random((n_items, 6)) < knows, truth[:, None], answers), truth, knows, answer


@pytest.mark.parametrize("inference", ["map", "variational"])
def test_likelihood_by_brute_force_over_who_knew(inference):
    votes, _, _ = simulate(15, 3)
    consensus = MACE(inference=inference).fit(votes)
    joint = np.zeros((15, 3))
    for i, row in enumerate(votes):
        given = np.flatnonzero(row >= 0)
        for c, knew in product(range(3), product([True, False], repeat=len(given))):
            likelihood = 1 / 3
            for a, k in zip(given, knew, strict=True):
                competence = consensus.competences_[a]
                likelihood *= competence * (row[a] == c) if k else (1 - competence) * consensus.spam_answers_[a, row[a]]
            joint[i, c] += likelihood
    assert_allclose(consensus.predict_proba(votes), joint / joint.sum(1, keepdims=True))
    assert_allclose(consensus.score(votes), np.log(joint.sum(1)).sum())
    if inference == "map":
        log_prior = 0.5 * np.log([consensus.competences_, 1 - consensus.competences_]).sum()
        log_prior += 10 * np.log(consensus.spam_answers_).sum()
        assert_allclose(consensus.history_[-1], consensus.score(votes) + log_prior)


@pytest.mark.parametrize("inference", ["map", "variational"])
def test_the_objective_never_falls(inference):
    votes, _, _ = simulate(120)
    assert np.diff(MACE(inference=inference, tol=1e-9, max_iter=2000).fit(votes).history_).min() > -1e-8


def test_variational_bound_is_below_the_evidence():
    """Against the likelihood of one annotator's answers to items of known truth, averaged over draws of the prior."""
    votes, truth = np.array([[0], [1], [1], [0], [1]]), [0, 1, 0, 0, 1]
    bound = MACE(prior=1, answer_prior=2, tol=1e-12).fit(votes, truth).history_[-1]
    rng = np.random.default_rng(0)
    knows, answer = rng.random(200_000), dirichlet.rvs([2, 2], 200_000, random_state=1)
    likelihood = np.ones(200_000)
    for (v,), c in zip(votes, truth, strict=True):
        likelihood *= (knows * (v == c) + (1 - knows) * answer[:, v]) / 2
    evidence = np.log(likelihood.mean())
    assert evidence - 0.7 < bound < evidence


def test_spammers_are_recovered():
    votes, truth, knows, answer = spam()
    consensus = MACE(answer_prior=1.0).fit(votes)
    assert_allclose(consensus.competences_, knows, atol=0.08)
    assert_allclose(consensus.spam_answers_[3:], answer[3:], atol=0.1)
    assert np.mean(consensus.predict(votes) == truth) > np.mean(MajorityVote().fit_predict(votes) == truth)


@pytest.mark.data
def test_who_knows_on_a_real_crowd():
    """Above the majority, and beside full confusion matrices."""
    votes, truth = load_votes("rte")
    accuracy = [np.mean(c.fit_predict(votes) == truth) for c in (MajorityVote(), MACE(), DawidSkene())]
    assert accuracy[1] > accuracy[0]
    assert abs(accuracy[1] - accuracy[2]) < 0.01


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="must be positive"):
        MACE(prior=0).fit([[0, 1]])
