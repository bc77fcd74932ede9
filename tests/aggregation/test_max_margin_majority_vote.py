"""Max-margin majority vote: by a general solver on a toy, and its limits."""

import numpy as np
import pytest
from _crowds import simulate_crowd
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from sklearn_l2d._votes import make_votes
from sklearn_l2d.aggregation import MajorityVote, MaxMarginMajorityVote
from sklearn_l2d.aggregation._max_margin_majority_vote import max_margin_weights, onto_simplices


def coins(accuracy):
    accuracy = np.asarray(accuracy)[:, None, None]
    return np.where(np.eye(3, dtype=bool), accuracy, (1 - accuracy) / 2)


@pytest.mark.parametrize("price", [0.05, 0.7])
def test_weights_by_a_general_solver(price, monkeypatch):
    monkeypatch.setattr("sklearn_l2d.aggregation._max_margin_majority_vote._GAP", 1e-7)
    votes, label = simulate_crowd(coins([0.9, 0.7, 0.4, 0.3]), np.full(3, 1 / 3), 12, missing=0.2)
    limit = price * np.random.default_rng(0).uniform(0.5, 2, 12)
    weights, objective, _ = max_margin_weights(make_votes(votes, np.arange(3)), label, limit)

    margins = np.array(
        [
            [(votes[i] == label[i]) * 1.0 - (votes[i] == rival) for rival in range(3) if rival != label[i]]
            for i in range(12)
        ]
    )  # item, rival, annotator

    def loss(z):
        return ((z[:4] - 1) ** 2).sum() / 2 + limit @ z[4:]

    rules = [{"type": "ineq", "fun": lambda z, r=r: margins[:, r] @ z[:4] - 1 + z[4:]} for r in range(2)]
    rules.append({"type": "ineq", "fun": lambda z: z[4:]})
    expected = minimize(loss, np.ones(16), constraints=rules, method="SLSQP", options={"ftol": 1e-12, "maxiter": 500})
    assert expected.success
    assert_allclose(objective, expected.fun, rtol=1e-5)
    assert_allclose(weights, expected.x[:4], atol=1e-3)
    assert np.abs(weights - 1).max() > 0.01


def test_nearest_rows_in_simplices():
    rng = np.random.default_rng(0)
    rows, size = rng.normal(size=(30, 4)), rng.uniform(0.1, 1, 30)
    found = onto_simplices(rows, size)
    assert found.min() >= 0
    assert (found.sum(1) <= size + 1e-12).all()
    others = rng.dirichlet(np.ones(5), (2000, 30))[:, :, :4] * size[:, None]  # none of them is nearer
    nearest = ((others - rows) ** 2).sum(2).min(0)
    assert (((found - rows) ** 2).sum(1) <= nearest + 1e-12).all()


def test_a_small_price_is_the_majority():
    votes, _ = simulate_crowd(coins([0.8, 0.6, 0.5, 0.5, 0.2]), np.full(3, 1 / 3), 200, missing=0.2)
    consensus = MaxMarginMajorityVote(C=0).fit(votes)
    assert_allclose(consensus.annotator_weights_, 1)
    assert_array_equal(consensus.predict(votes), MajorityVote().fit_predict(votes))


def test_better_than_the_majority_where_some_guess():
    votes, truth = simulate_crowd(coins([0.85] * 4 + [1 / 3] * 6), np.full(3, 1 / 3), 1000, missing=0.3)
    consensus = MaxMarginMajorityVote().fit(votes)
    majority = np.mean(MajorityVote().fit_predict(votes) == truth)
    assert np.mean(consensus.predict(votes) == truth) > majority + 0.03
    assert consensus.annotator_weights_[:4].mean() > consensus.annotator_weights_[4:].mean() + 0.2
    assert np.diff(consensus.history_).min() > 0


def test_known_truth_is_kept():
    votes, truth = simulate_crowd(coins([0.2] * 5), np.full(3, 1 / 3), 300)
    consensus = MaxMarginMajorityVote(C=1.0).fit(votes, truth)
    assert consensus.annotator_weights_.max() < 0.5  # all are mostly wrong


def test_weights_of_items_repeat_them():
    votes, _ = simulate_crowd(coins([0.8, 0.6, 0.5, 0.4]), np.full(3, 1 / 3), 60, missing=0.2)
    weight = np.arange(60) % 3
    weighed = MaxMarginMajorityVote().fit(votes, sample_weight=weight)
    repeated = MaxMarginMajorityVote().fit(np.repeat(votes, weight, axis=0))
    assert_allclose(weighed.annotator_weights_, repeated.annotator_weights_, atol=0.05)
