"""The worth of an item against enumeration of the answers on a grid of mixture weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_l2d._numerics._item_information import covariance_after, most_informative, variance_reduction
from sklearn_l2d._numerics._mixture_weights import weight_posterior


def simplex_grid(n_components, n=40):
    """All weights that are multiples of 1 / n."""
    axes = np.meshgrid(*[np.arange(n + 1)] * n_components, indexing="ij")
    cells = np.stack([axis.ravel() for axis in axes], axis=1)
    return cells[cells.sum(1) == n] / n


def moments(points, weight):
    weight = weight / weight.sum()
    mean = weight @ points
    centred = points - mean
    return mean, (centred * weight[:, None]).T @ centred


def random_items(n_items, n_components, n_classes, seed, sharpness=0.5):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(n_classes, sharpness), (n_items, n_components))


@pytest.mark.parametrize(("n_components", "n_classes"), [(2, 2), (2, 4), (3, 3), (4, 2)])
def test_reduction_is_what_enumerated_answers_leave(n_components, n_classes):
    points = simplex_grid(n_components, n=20)
    weight = np.random.default_rng(5).random(len(points))  # any distribution: the law of total variance asks for none
    mean, covariance = moments(points, weight)
    proba = random_items(6, n_components, n_classes, seed=1)
    reduction = variance_reduction(proba, mean, covariance)
    for item, found in zip(proba, reduction, strict=True):
        left = 0.0
        for answer in range(n_classes):
            joint = weight * (points @ item[:, answer])
            left += joint.sum() / weight.sum() * np.trace(moments(points, joint)[1])
        assert_allclose(found, np.trace(covariance) - left, atol=1e-12)
    assert (reduction >= 0).all()
    assert (reduction <= np.trace(covariance)).all()


def test_items_that_tell_nothing_and_items_that_tell_all():
    mean, covariance = moments(np.eye(3), np.array([0.2, 0.3, 0.5]))  # the expert is one of the behaviours
    alike = np.tile([0.1, 0.6, 0.3], (3, 1))
    reduction = variance_reduction(np.stack([alike, np.eye(3)]), mean, covariance)
    assert_allclose(reduction, [0, np.trace(covariance)], atol=1e-15)


def test_answers_that_nobody_gives():
    proba = np.array([[[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]]])
    mean, covariance = np.array([0.4, 0.6]), np.array([[0.05, -0.05], [-0.05, 0.05]])
    assert_allclose(variance_reduction(proba, mean, covariance), variance_reduction(proba[:, :, :2], mean, covariance))
    assert_allclose(covariance_after(proba[0], mean, covariance), covariance_after(proba[0, :, :2], mean, covariance))


def test_covariance_after_is_the_inverse_of_the_added_information():
    """In coordinates on the simplex, where everything is invertible."""
    basis = np.array([[1, 0, -1], [0, 1, -1]]).T  # a = centre + basis @ u
    mean = np.array([0.5, 0.3, 0.2])
    small = np.array([[0.03, -0.01], [-0.01, 0.02]])
    proba = random_items(1, 3, 5, seed=2)[0]
    information = sum(np.outer(f, f) / (f @ mean) for f in proba.T)
    expected = basis @ np.linalg.inv(np.linalg.inv(small) + basis.T @ information @ basis) @ basis.T
    found = covariance_after(proba, mean, basis @ small @ basis.T)
    assert_allclose(found, expected, atol=1e-15)
    assert_allclose(found @ np.ones(3), 0, atol=1e-15)
    assert np.linalg.eigvalsh(basis @ small @ basis.T - found).min() > -1e-15


def test_a_batch_does_not_repeat_itself():
    """Ten copies of the best item tell one direction of the weights, another item tells the other."""
    first = np.array([[0.95, 0.05], [0.05, 0.95], [0.5, 0.5]])
    second = np.array([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]])
    proba = np.stack([*[first] * 10, second])
    mean, covariance = moments(np.eye(3), np.ones(3))
    by_score = np.argsort(-variance_reduction(proba, mean, covariance), kind="stable")
    assert_array_equal(by_score[:3], [0, 1, 2])
    assert 10 in most_informative(proba, mean, covariance, 3)


def test_a_batch_leaves_less_than_the_best_single_scores():
    """Expected variance left by enumeration of all answers to two items, over all pairs."""
    proba = random_items(7, 3, 2, seed=7, sharpness=0.7)
    points = simplex_grid(3)
    mean, covariance = moments(points, np.ones(len(points)))

    def left(pair):
        total = 0.0
        for one in range(2):
            for two in range(2):
                joint = (points @ proba[pair[0], :, one]) * (points @ proba[pair[1], :, two])
                total += joint.mean() * np.trace(moments(points, joint)[1])
        return total

    pairs = {(i, j): left((i, j)) for i in range(7) for j in range(i)}
    best, worst = min(pairs.values()), max(pairs.values())
    chosen = left(most_informative(proba, mean, covariance, 2))
    assert chosen - best < 0.05 * (worst - best)


def test_order_and_ties():
    proba = random_items(5, 2, 3, seed=3)
    proba[3] = proba[1]
    mean, covariance = np.array([0.5, 0.5]), np.array([[0.08, -0.08], [-0.08, 0.08]])
    chosen = most_informative(proba, mean, covariance, 5)
    assert_array_equal(np.sort(chosen), np.arange(5))
    assert chosen[0] == variance_reduction(proba, mean, covariance).argmax()
    assert list(chosen).index(1) < list(chosen).index(3)
    assert_array_equal(most_informative(proba, mean, covariance, 2), chosen[:2])
    assert_array_equal(most_informative(proba[:, :1], np.ones(1), np.zeros((1, 1)), 3), [0, 1, 2])


@pytest.mark.parametrize("n_labels", [0, 5, 40, 400])
def test_moments_are_those_of_the_posterior_on_a_grid(n_labels):
    rng = np.random.default_rng(4)
    f = random_items(n_labels, 3, 3, seed=6)[:, :, 0]
    truth = rng.dirichlet(np.ones(3))
    f = np.where((rng.random(n_labels) < f @ truth)[:, None], f, 1 - f)
    prior = np.array([0.5, 0.3, 0.2])
    mean, covariance = weight_posterior(np.log(f), np.zeros(n_labels, int), 1, prior)
    points = simplex_grid(3, n=100)
    points = points[(points > 0).all(1)]
    log_p = np.log(points @ f.T).sum(1) + np.log(points) @ prior
    exact_mean, exact = moments(points, np.exp(log_p - log_p.max()))
    assert_allclose(mean[0], exact_mean, atol=0.05)
    # Laplace gives a Dirichlet of m counts the variance of m - 1 of them: much for the prior, little later
    assert_allclose(np.trace(covariance[0]), np.trace(exact), rtol=0.3)
    assert_allclose(covariance[0].sum(1), 0, atol=1e-12)
