import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from strategies import gate_problems, permutations, share_bounds

from sklearn_l2d._numerics._assignment import assign_members
from sklearn_l2d._numerics._gate_posterior import gate_log_likelihood, gate_posterior
from sklearn_l2d._numerics._keyed import number_keys
from sklearn_l2d._numerics._shares import calibrate_offsets, project_onto_shares


@given(gate_problems())
def test_posterior_equals_enumeration(problem):
    log_gate, selection, log_likelihood = problem
    with np.errstate(divide="ignore"):
        joint = log_gate[:, :, None] + np.log(selection) + log_likelihood[:, None, :]
    evidence = logsumexp(joint, axis=(1, 2), keepdims=True)
    q = np.exp(joint - evidence)
    posterior = gate_posterior(log_gate, selection, log_likelihood)
    np.testing.assert_allclose(posterior.targets, q.sum(axis=2), atol=1e-10)
    np.testing.assert_allclose(posterior.experts, q.sum(axis=1), atol=1e-10)
    value = gate_log_likelihood(log_gate, selection, log_likelihood)
    np.testing.assert_allclose(value, evidence.mean(), atol=1e-12)


@given(st.data())
def test_shares_end_inside_their_bounds(data):
    n = data.draw(st.integers(2, 5))
    lower, upper = data.draw(share_bounds(n))
    seed, n_rows = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.integers(1, 30))
    log_q = np.random.default_rng(seed).normal(scale=3, size=(n_rows, n))
    q, dual, _, violation = project_onto_shares(log_q, lower, upper)
    assert violation <= 1e-8
    np.testing.assert_allclose(q.sum(axis=1), 1)
    # Complementary slackness certifies the optimum.
    shares = q.mean(axis=0)
    pinned = np.isclose(lower, upper, atol=1e-9) | np.isclose(upper.sum(), 1) | np.isclose(lower.sum(), 1)
    np.testing.assert_allclose(shares[(dual > 0) & ~pinned], lower[(dual > 0) & ~pinned], atol=1e-7)
    np.testing.assert_allclose(shares[(dual < 0) & ~pinned], upper[(dual < 0) & ~pinned], atol=1e-7)


@given(st.data())
def test_order_of_experts_and_targets_does_not_matter(data):
    log_gate, selection, log_likelihood = data.draw(gate_problems())
    coverage = data.draw(st.sampled_from([0.2, 0.5, 0.8]))
    upper = np.append(np.ones(len(selection) - 1), coverage)
    lower = np.append(np.zeros(len(selection) - 1), coverage)
    targets = data.draw(permutations(len(selection)))
    experts = data.draw(permutations(selection.shape[1]))
    plain = gate_posterior(log_gate, selection, log_likelihood, target_bounds=(lower, upper))
    moved = gate_posterior(
        log_gate[:, targets],
        selection[np.ix_(targets, experts)],
        log_likelihood[:, experts],
        target_bounds=(lower[targets], upper[targets]),
    )
    np.testing.assert_allclose(moved.targets, plain.targets[:, targets], atol=1e-7)
    np.testing.assert_allclose(moved.experts, plain.experts[:, experts], atol=1e-7)


@given(gate_problems(), st.sampled_from([0.3, 0.7]))
def test_an_expert_nobody_can_reach_gets_nothing(problem, coverage):
    log_gate, selection, log_likelihood = problem
    selection = np.insert(selection, 0, 0.0, axis=1)
    log_likelihood = np.insert(log_likelihood, 0, 0.0, axis=1)
    n_targets = len(selection)
    bounds = np.append(np.zeros(n_targets - 1), coverage), np.append(np.ones(n_targets - 1), coverage)
    posterior = gate_posterior(log_gate, selection, log_likelihood, target_bounds=bounds)
    assert (posterior.experts[:, 0] == 0).all()
    experts = assign_members(np.zeros(20, int), selection, number_keys(np.arange(20)))
    assert (experts != 0).all()


@given(st.data())
def test_capacity_is_never_exceeded(data):
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n_rows, n_targets, n_experts = (data.draw(st.integers(1, high)) for high in (40, 3, 5))
    weights = rng.random((n_targets, n_experts)) * (rng.random((n_targets, n_experts)) < 0.7)
    targets = rng.integers(-1, n_targets, n_rows)
    available = rng.random((n_rows, n_experts)) < data.draw(st.sampled_from([0.3, 0.8, 1.0]))
    capacity = rng.integers(0, data.draw(st.integers(1, 20)), n_experts)
    experts = assign_members(targets, weights, number_keys(np.arange(n_rows) + seed), available, capacity)
    served = np.flatnonzero(experts >= 0)
    assert (np.bincount(experts[served], minlength=n_experts) <= capacity).all()
    assert available[served, experts[served]].all()
    assert (weights[targets[served], experts[served]] > 0).all()
    assert (experts[targets == -1] == -1).all()


@given(st.data())
def test_calibrated_shares_are_within_a_row(data):
    n = data.draw(st.integers(2, 5))
    lower, upper = data.draw(share_bounds(n))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    logits = rng.normal(scale=3, size=(data.draw(st.integers(5, 60)), n))
    offsets, achieved = calibrate_offsets(logits, lower, upper)
    hard = np.bincount((logits + offsets).argmax(axis=1), minlength=n) / len(logits)
    np.testing.assert_allclose(achieved, hard)
    # Whole rows may miss each of n exact shares by less than one.
    outside = np.maximum(np.maximum(lower - achieved, achieved - upper), 0)
    assert outside.max() < 1 / len(logits) + 1e-12


@given(st.integers(0, 2**32 - 1), st.floats(0, 1), st.integers(1, 50))
def test_coverage_is_the_nearest_share_of_whole_rows(seed, coverage, n_rows):
    logits = np.random.default_rng(seed).normal(size=(n_rows, 3))
    offsets, achieved = calibrate_offsets(logits, [0, 0, coverage], [1, 1, coverage])
    assert abs(achieved[-1] - coverage) <= 0.5 / n_rows + 1e-12
    hard = np.mean((logits + offsets).argmax(axis=1) == 2)
    np.testing.assert_allclose(achieved[-1], hard, atol=1e-12)
