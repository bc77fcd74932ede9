"""Evidence that is kept by answers says what a table of items and experts says."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax

from sklearn_l2d._numerics._answers import answer_likelihood, team_log_likelihood
from sklearn_l2d._numerics._evidence import absent_likelihood, answer_evidence
from sklearn_l2d._numerics._gate_posterior import gate_log_likelihood, gate_posterior
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.deferral._settings import with_classifier


@st.composite
def evidences(draw):
    """`Evidence`, the same as a table, and selection weights with the classifier."""
    seed, n, n_experts = draw(st.integers(0, 2**32 - 1)), draw(st.integers(2, 30)), draw(st.integers(1, 8))
    n_classes, n_targets = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    answered, smoothing = draw(st.sampled_from([0.1, 0.5, 1.0])), draw(st.sampled_from([1e-3, 0.2]))
    rng = np.random.default_rng(seed)
    codes = np.where(rng.random((n, n_experts)) < answered, rng.integers(n_classes, size=(n, n_experts)), -1)
    y, proba = rng.integers(n_classes, size=n), rng.dirichlet(np.ones(n_classes), size=n)
    cost = rng.uniform(0, 3, (n_classes, n_classes)) if draw(st.booleans()) else None
    likelihood, correctness = answer_likelihood(n_classes, smoothing, cost), rng.random((n_experts, n_classes))
    price = rng.uniform(-2, 5, n_experts) * draw(st.sampled_from([0, 1]))
    evidence = answer_evidence(encode_votes(codes, classes=range(n_classes)), y, proba, likelihood, correctness, price)
    absent = absent_likelihood(likelihood, correctness)[y]
    table = team_log_likelihood(codes, y, proba, likelihood, absent) - np.append(price, 0.0)
    members = rng.dirichlet(np.ones(n_experts), size=n_targets) * (rng.random((n_targets, n_experts)) < 0.6)
    members[members.sum(1) == 0] = 1.0
    return evidence, table, with_classifier(members / members.sum(1, keepdims=True)), rng


@given(evidences())
def test_evidence_is_the_table_of_all_pairs(problem):
    evidence, table, selection, rng = problem
    assert evidence.shape == table.shape
    np.testing.assert_array_equal(evidence.table(), table)
    np.testing.assert_allclose(evidence.of_targets(selection), np.log(np.exp(table) @ selection.T), atol=1e-10)
    rows = rng.permutation(len(table))[: 1 + len(table) // 2]
    np.testing.assert_array_equal(evidence[rows].table(), table[rows])


@settings(max_examples=1500)
@given(evidences(), st.booleans(), st.floats(0, 1), st.floats(0, 1))
def test_bounds_are_met_as_with_the_table(problem, bind_targets, tightness, classifier_share):
    evidence, table, selection, rng = problem
    n_targets = len(selection)
    log_gate = log_softmax(rng.normal(size=(len(table), n_targets)), axis=1)
    # bounds that a routing meets: the shares of a random one, loosened
    routing = rng.dirichlet(np.ones(n_targets))
    routing = np.append(routing[:-1] / routing[:-1].sum() * (1 - classifier_share), classifier_share)
    people = routing @ selection
    experts = people * tightness, np.minimum(1.0, people + (1 - tightness) + 1e-3)
    targets = (routing * tightness, np.minimum(1.0, routing + (1 - tightness) + 1e-3)) if bind_targets else None
    bounds = {"target_bounds": targets, "expert_bounds": experts}
    np.testing.assert_allclose(
        gate_log_likelihood(log_gate, selection, evidence), gate_log_likelihood(log_gate, selection, table), atol=1e-10
    )
    got, expected = (gate_posterior(log_gate, selection, given, **bounds) for given in (evidence, table))
    assert got.violation <= expected.violation + 1e-7
    if expected.violation < 1e-7:
        np.testing.assert_allclose(got.targets, expected.targets, atol=1e-5)
    assert got.experts is None
