"""Coupled tensors of triples: exact on exact moments from a start that is off, and bounded in size."""

import numpy as np
import pytest
from _crowds import draw_confusion, enumerate_crowd, simulate_crowd
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from sklearn_l2d._numerics._coupled_tensors import (
    choose_triples,
    coupled_tensors,
    least_squares_rows,
    onto_distributions,
)
from sklearn_l2d.aggregation import SpectralDawidSkene, TensorADMM

PRIOR = np.array([0.2, 0.3, 0.5])


def test_exact_on_an_enumerated_crowd():
    confusion = draw_confusion(5, 3)
    votes, weight = enumerate_crowd(confusion, PRIOR)
    consensus = TensorADMM(prior=0).fit(votes, sample_weight=weight)
    assert_allclose(consensus.confusion_matrices_, confusion, atol=1e-6)
    assert_allclose(consensus.class_prior_, PRIOR, atol=1e-6)


def test_exact_moments_are_factored_from_a_start_that_is_off():
    confusion = draw_confusion(6, 3)
    triples = choose_triples(np.ones((6, 6)), 100)
    assert len(triples) == 20
    joint = np.einsum("c,tci,tcj,tck->tijk", PRIOR, *(confusion[triples[:, side]] for side in range(3)))
    start = 0.5 * np.eye(3) + 0.5 / 3 + np.zeros((6, 1, 1))
    found, prior, history, _ = coupled_tensors(triples, np.ones(20), joint, start, np.full(3, 1 / 3), 3000, 1e-9)
    assert np.diff(history).min() >= -1e-15
    assert_allclose(found, confusion, atol=0.01)
    assert_allclose(prior, PRIOR, atol=0.01)


def test_rows_of_least_squares_by_a_general_solver():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    gram, right = root @ root.T, rng.normal(size=(3, 3))

    def cost(x):
        return (x * (gram @ x / 2 - right)).sum()

    rules = {"type": "eq", "fun": lambda z: z.reshape(3, 3).sum(1) - 1}
    best = minimize(
        lambda z: cost(z.reshape(3, 3)), np.full(9, 1 / 3), bounds=[(0, 1)] * 9, constraints=rules, method="SLSQP"
    )
    found = np.full((3, 3), 1 / 3)
    for _ in range(20):
        found = least_squares_rows(gram, right, found)
    assert_allclose(cost(found), best.fun, atol=1e-5)
    assert_allclose(found.sum(1), 1)
    assert found.min() >= 0


def test_nearest_distributions():
    assert_allclose(
        onto_distributions(np.array([[0.5, 0.7, -1], [0.2, 0.3, 0.5], [3, 0, 0]])),
        [[0.4, 0.6, 0], [0.2, 0.3, 0.5], [1, 0, 0]],
    )


def test_triples_are_few_and_everybody_has_some():
    shared = np.ones((60, 60)) - np.eye(60)
    triples = choose_triples(shared, 1200)
    assert len(triples) <= 1200
    assert (np.diff(triples, axis=1) > 0).all()
    assert np.bincount(triples.ravel(), minlength=60).min() >= 10
    shared[0, 1] = shared[1, 0] = 0
    assert not (np.isin(choose_triples(shared[:5, :5], 100), [0, 1]).sum(1) == 2).any()


def test_better_than_its_start_on_many_items():
    confusion = draw_confusion(9, 3)
    votes, _ = simulate_crowd(confusion, PRIOR, 5000, missing=0.3)
    errors = [
        np.abs(estimator.fit(votes).confusion_matrices_ - confusion).mean()
        for estimator in (TensorADMM(), SpectralDawidSkene())
    ]
    assert errors[0] < errors[1]


def test_too_many_annotators_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match=r"30 annotators has 4060 triples.*raise max_triples.*busiest annotators"):
        TensorADMM(max_triples=200).fit(np.zeros((5, 30), dtype=int))
