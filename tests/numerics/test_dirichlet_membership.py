"""Memberships of the paper, against brute-force minimisation and the concave optimum they stop short of."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln, psi

from sklearn_l2d._numerics._dirichlet_membership import average_membership, variational_membership
from sklearn_l2d._numerics._mixture_weights import mixture_weights


@pytest.fixture
def annotations():
    rng = np.random.default_rng(3)
    log_f = np.log(rng.dirichlet(np.ones(4), size=90)[:, :3])
    return log_f, np.repeat([0, 1, 2], 30)


def _divergence(r, rho):
    """KL[Dir(r) || Dir(rho)] (L2D-Clusters Eq. 33)."""
    parts = gammaln(rho).sum() - gammaln(rho.sum()) - gammaln(r).sum() + gammaln(r.sum())
    return parts + ((r - rho) * (psi(r) - psi(r.sum()))).sum()


def test_average_minimises_the_sum_of_divergences(annotations):
    log_f, expert = annotations
    alpha = np.array([0.7, 2.0, 1.1])
    rho = average_membership(log_f, expert, 3, alpha)
    for m in range(3):
        posteriors = []
        for row in log_f[expert == m]:
            item = alpha + 1 / 3
            for _ in range(500):
                zeta = np.exp(row + psi(item))
                item = alpha + zeta / zeta.sum()
            posteriors.append(item)
        best = minimize(
            lambda v, items=posteriors: sum(_divergence(np.exp(v), item) for item in items),
            np.zeros(3),
            method="BFGS",
            options={"gtol": 1e-8},
        )
        np.testing.assert_allclose(rho[m], np.exp(best.x), rtol=1e-4)


def test_variational_objective_rises_and_its_scale_inflates(annotations):
    log_f, expert = annotations
    totals = [variational_membership(log_f, expert, 3, start=5.0, n_iter=n).sum() for n in (1, 20, 100)]
    assert totals[0] < totals[1] < totals[2]


def test_variational_approaches_the_concave_optimum_from_its_start(annotations):
    # the softness is an artefact of stopping early: with more iterations the mean goes to the exact weights
    log_f, expert = annotations
    exact, _ = mixture_weights(log_f, expert, 3)
    gaps = []
    for n_iter in (0, 50, 400):
        alpha = variational_membership(log_f, expert, 3, start=5.0, n_iter=n_iter)
        gaps.append(np.abs(alpha / alpha.sum(1, keepdims=True) - exact).max())
    assert gaps[0] > gaps[1] > gaps[2]


def test_experts_without_annotations_keep_the_start():
    log_f = np.log([[0.9, 0.1], [0.5, 0.2]])
    expert = np.array([1, 1])
    np.testing.assert_array_equal(variational_membership(log_f, expert, 3, start=7.0)[[0, 2]], 7.0)
    np.testing.assert_array_equal(average_membership(log_f, expert, 3, [1.0, 2.0])[0], [1.0, 2.0])


def test_the_estimator_offers_both():
    from sklearn_l2d.cluster import AnnotatorLDA

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    annotations = rng.integers(0, 2, (60, 4))
    settings = {"max_epochs": 2, "n_consensus_epochs": 1, "n_anchor_epochs": 1, "random_state": 0}
    lda = AnnotatorLDA(membership="average", **settings).fit(X, annotations[:, 0])
    # the posterior of one annotation is alpha plus a probability: with alpha = 50 it hardly moves
    np.testing.assert_allclose(lda.transform(X, annotations), 0.5, atol=0.01)
    start = lda.set_params(membership="variational", membership_iter=0).transform(X, annotations)
    np.testing.assert_allclose(start, 0.5)
    assert np.ptp(lda.set_params(membership_iter=30).transform(X, annotations)) > 0
