import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from sklearn_l2d._numerics._gate_posterior import gate_log_likelihood, gate_posterior
from sklearn_l2d._numerics._shares import project_onto_shares


def problem(seed, n_items=30, n_groups=2, n_humans=4):
    """Gate, selection and likelihoods with the classifier as the last target and expert."""
    rng = np.random.default_rng(seed)
    selection = np.zeros((n_groups + 1, n_humans + 1))
    selection[:-1, :-1] = rng.dirichlet(np.ones(n_humans), size=n_groups)
    selection[-1, -1] = 1
    log_gate = log_softmax(rng.normal(size=(n_items, n_groups + 1)), axis=1)
    return log_gate, selection, np.log(rng.random((n_items, n_humans + 1)))


def all_pairs(log_gate, selection, log_likelihood):
    with np.errstate(divide="ignore"):
        return log_gate[:, :, None] + np.log(selection) + log_likelihood[:, None, :]


def test_equals_enumeration_without_bounds():
    log_gate, selection, log_likelihood = problem(0)
    joint = all_pairs(log_gate, selection, log_likelihood)
    total = logsumexp(joint, axis=(1, 2), keepdims=True)
    q = np.exp(joint - total)
    posterior = gate_posterior(log_gate, selection, log_likelihood)
    np.testing.assert_allclose(posterior.targets, q.sum(axis=2), atol=1e-12)
    np.testing.assert_allclose(posterior.experts, q.sum(axis=1), atol=1e-12)
    assert gate_log_likelihood(log_gate, selection, log_likelihood) == pytest.approx(total.mean())


LOOSE3, LOOSE5 = (np.zeros(3), np.ones(3)), (np.zeros(5), np.ones(5))
CASES = {
    "coverage": {"target_bounds": ([0, 0, 0.5], [1, 1, 0.5])},
    "experts": {"expert_bounds": ([0, 0.3, 0, 0, 0], [0.05, 1, 1, 1, 1])},
    "both": {
        "target_bounds": ([0.25, 0, 0.4], [0.25, 1, 0.4]),
        "expert_bounds": ([0, 0.2, 0, 0, 0], [0.1, 1, 1, 1, 1]),
    },
    "mask": {
        "target_bounds": ([0.2, 0, 0.4], [1, 1, 0.4]),
        "expert_bounds": ([0, 0, 0, 0, 0], [0, 0.2, 1, 1, 1]),
    },
}


@pytest.mark.parametrize("bounds", CASES.values(), ids=CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_bounds_hold_and_the_tilt_is_exponential(bounds, seed):
    log_gate, selection, log_likelihood = problem(seed)
    posterior = gate_posterior(log_gate, selection, log_likelihood, **bounds)
    assert posterior.violation <= 1e-8
    for shares, (low, high), dual in (
        (posterior.targets.mean(0), bounds.get("target_bounds", LOOSE3), posterior.target_dual),
        (posterior.experts.mean(0), bounds.get("expert_bounds", LOOSE5), posterior.expert_dual),
    ):
        low, high = np.array(low), np.array(high)
        assert ((low - 1e-7 <= shares) & (shares <= high + 1e-7)).all()
        # Complementary slackness makes the exponential tilt the I-projection.
        np.testing.assert_allclose(shares[dual > 0], low[dual > 0], atol=1e-7)
        np.testing.assert_allclose(shares[dual < 0], high[dual < 0], atol=1e-7)
    joint = all_pairs(log_gate, selection, log_likelihood)
    joint = joint + posterior.target_dual[:, None] + posterior.expert_dual
    q = np.exp(joint - logsumexp(joint, axis=(1, 2), keepdims=True))
    np.testing.assert_allclose(posterior.targets, q.sum(axis=2), atol=1e-9)
    np.testing.assert_allclose(posterior.experts, q.sum(axis=1), atol=1e-9)


def test_warm_start():
    log_gate, selection, log_likelihood = problem(3)
    kwargs = CASES["both"]
    cold = gate_posterior(log_gate, selection, log_likelihood, **kwargs)
    np.testing.assert_allclose(cold.targets.mean(0)[[0, 2]], [0.25, 0.4], atol=1e-7)
    warm = gate_posterior(
        log_gate, selection, log_likelihood, target_dual=cold.target_dual, expert_dual=cold.expert_dual, **kwargs
    )
    assert warm.n_iter == 0 < cold.n_iter
    np.testing.assert_allclose(warm.targets, cold.targets, atol=1e-7)


def test_single_experts_reduce_to_the_plain_projection():
    rng = np.random.default_rng(4)
    log_gate, log_likelihood = log_softmax(rng.normal(size=(20, 3)), axis=1), np.log(rng.random((20, 3)))
    bounds = [0.3, 0, 0.5], [0.3, 1, 0.5]
    expected, *_ = project_onto_shares(log_gate + log_likelihood, *bounds)
    for kwargs in ({"target_bounds": bounds}, {"expert_bounds": bounds}):
        posterior = gate_posterior(log_gate, np.eye(3), log_likelihood, **kwargs)
        np.testing.assert_allclose(posterior.targets, expected, atol=1e-7)
        np.testing.assert_allclose(posterior.experts, expected, atol=1e-7)


def test_hopeless_targets_keep_their_share():
    log_gate, selection, log_likelihood = problem(5)
    log_gate = log_gate - [0, 0, 900.0]
    posterior = gate_posterior(log_gate, selection, log_likelihood, target_bounds=([0, 0, 0.3], [1, 1, 0.3]))
    assert posterior.targets[:, 2].mean() == pytest.approx(0.3)
