"""The rival controls of coverage, on three Gaussian classes."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.benchmark.experiments._control_by_training import fit_at_cost, fit_with_penalty
from sklearn_l2d.deferral import ClusterDeferral, RankedDeferral


def draw(n, seed):
    """Arguments of `fit`: experts 0 and 1 know classes 0 and 1, expert 2 knows class 2."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) + 1.5 * np.eye(3, 4)[y]
    knows = np.where(y[:, None] == 2, [0, 0, 1], [1, 1, 0])
    wrong = (y[:, None] + rng.integers(1, 3, size=(n, 3))) % 3
    return {"X": X, "y": y, "annotations": np.where(rng.random((n, 3)) < np.where(knows, 0.95, 0.3), y[:, None], wrong)}


@pytest.fixture(scope="module")
def unseen():
    return draw(1000, 1)["X"]


@pytest.fixture(scope="module")
def crowd(unseen):
    return draw(240, 0) | {"X_unlabeled": unseen}


@pytest.fixture(scope="module")
def gate(crowd):
    classifier = FrozenEstimator(LogisticRegression(C=0.05).fit(crowd["X"][:60], crowd["y"][:60]))
    return ClusterDeferral(
        omega=np.eye(3), grouping="hard", classifier=classifier, max_epochs=10, batch_size=32, random_state=0
    )


def coverage_of(model, X):
    return np.mean(model.predict_deferral(X) < 0)


def test_the_cost_is_bisected_and_the_nearest_fit_kept(gate, crowd, unseen):
    model, attempts = fit_at_cost(gate, crowd, (0.6, 0.6), n_refits=5)
    costs, coverages = np.array([list(attempt.values()) for attempt in attempts]).T
    assert 1 < len(costs) <= 5
    assert costs[0] == 0
    low, high = -1.0, 1.0
    for cost, coverage, following in zip(costs, coverages, costs[1:], strict=False):
        low, high = (cost, high) if coverage < 0.6 else (low, cost)
        assert following == (low + high) / 2
    nearest = np.abs(coverages - 0.6).argmin()
    assert model.coverage_ == coverages[nearest] == pytest.approx(coverage_of(model, unseen))
    assert model.consultation_cost == costs[nearest]
    again = clone(gate).set_params(consultation_cost=costs[nearest]).fit(**crowd)
    assert_array_equal(model.predict_deferral(unseen), again.predict_deferral(unseen))
    assert gate.consultation_cost is None


def test_a_request_that_the_first_fit_meets_takes_one_fit(gate, crowd):
    assert len(fit_at_cost(gate, crowd, (0, 0.99))[1]) == 1


def test_the_penalty_pulls_the_soft_coverage(gate, crowd, unseen):
    labelled = crowd | {"X_unlabeled": None}

    def soft(penalty, coverage):
        model = fit_with_penalty(gate, labelled, (coverage, coverage), penalty)
        return model, model.predict_deferral_proba(crowd["X"])[:, -1].mean()

    (none, start), (_, lower), (strong, higher) = soft(0.0, 0.9), soft(3.0, 0.0), soft(3.0, 0.9)
    plain = clone(gate).fit(**labelled)
    assert_array_equal(none.predict_deferral_proba(unseen), plain.predict_deferral_proba(unseen))
    assert lower < start - 0.05 < start + 0.05 < higher
    assert type(strong) is ClusterDeferral
    again = pickle.loads(pickle.dumps(strong))
    assert_array_equal(again.predict_deferral(unseen), strong.predict_deferral(unseen))
    assert not hasattr(gate, "gate_")


def test_a_penalty_leaves_what_lies_within_the_bounds(gate, crowd, unseen):
    free = fit_with_penalty(gate, crowd, (0.0, 1.0), penalty=10.0)
    assert_array_equal(free.predict_deferral(unseen), clone(gate).fit(**crowd).predict_deferral(unseen))


def test_both_rivals_miss_what_ranking_meets(gate, crowd):
    ranked = RankedDeferral(gate, coverage=0.5).fit(**crowd)
    assert abs(ranked.coverage_ - 0.5) <= 0.0005
    assert abs(fit_at_cost(gate, crowd, (0.5, 0.5), n_refits=3)[0].coverage_ - 0.5) > 0.01
    assert abs(fit_with_penalty(gate, crowd, (0.5, 0.5), penalty=10.0).coverage_ - 0.5) > 0.01


def test_without_experts_nothing_is_controlled(gate, crowd):
    nobody = {"X": crowd["X"], "y": crowd["y"]}
    for model in (fit_at_cost(gate, nobody, (0.5, 0.5), n_refits=2)[0], fit_with_penalty(gate, nobody, (0.5, 0.5), 10)):
        assert_array_equal(model.predict_deferral(crowd["X"]), -1)
        assert model.coverage_ == 1
