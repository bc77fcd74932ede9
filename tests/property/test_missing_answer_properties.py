"""EM of PL2D: the E-step is exact, and no step ever loses likelihood."""

from itertools import product

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import answer_problems

from sklearn_l2d._numerics._answers import answer_likelihood, expected_likelihood, team_log_likelihood
from sklearn_l2d._numerics._gate_posterior import gate_log_likelihood, gate_posterior
from sklearn_l2d._torch._e_steps import answer_posterior
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.deferral import ProbabilisticDeferral


def evidence(problem, likelihood):
    absent = expected_likelihood(problem.f, problem.y_codes, likelihood)
    return team_log_likelihood(problem.codes, problem.y_codes, problem.classifier_proba, likelihood, absent)


def e_step(problem, likelihood):
    """Log-likelihood of everything that was seen, and the posteriors of who decided and of every answer."""
    log_likelihood, everybody = evidence(problem, likelihood), np.eye(problem.log_gate.shape[1])
    who = gate_posterior(problem.log_gate, everybody, log_likelihood).experts
    tensors = (np.log(problem.f), problem.codes, who[:, :-1], np.log(likelihood)[problem.y_codes])
    answers = answer_posterior(*(torch.as_tensor(array) for array in tensors)).numpy()
    seen = np.log(np.take_along_axis(problem.f, problem.codes[..., None].clip(0), 2)[..., 0])
    total = gate_log_likelihood(problem.log_gate, everybody, log_likelihood) * len(problem.codes)
    return total + seen[problem.codes >= 0].sum(), who, answers


@given(answer_problems())
def test_posteriors_equal_enumeration_of_who_decided_and_of_all_answers(problem):
    n_experts, n_classes = problem.f.shape[1:]
    likelihood = answer_likelihood(n_classes, problem.smoothing)
    total, who, answers = e_step(problem, likelihood)
    by_hand = 0.0
    for i, y in enumerate(problem.y_codes):
        expected_who, expected_answers = np.zeros(n_experts + 1), np.zeros((n_experts, n_classes))
        possible = [range(n_classes) if code < 0 else [code] for code in problem.codes[i]]
        for z, *t in product(range(n_experts + 1), *possible):
            joint = np.exp(problem.log_gate[i, z]) * np.prod([problem.f[i, m, c] for m, c in enumerate(t)])
            joint *= likelihood[y, t[z]] if z < n_experts else likelihood[y] @ problem.classifier_proba[i]
            expected_who[z] += joint
            for m, c in enumerate(t):
                expected_answers[m, c] += joint
        evidence_of_item = expected_who.sum()
        by_hand += np.log(evidence_of_item)
        np.testing.assert_allclose(who[i], expected_who / evidence_of_item, atol=1e-10)
        np.testing.assert_allclose(answers[i], expected_answers / evidence_of_item, atol=1e-10)
    np.testing.assert_allclose(total, by_hand, atol=1e-8)


@given(answer_problems(max_items=8), st.integers(1, 3))
def test_em_never_loses_likelihood(problem, n_sites):
    """Gate and imitations are tables over a few sites, for which averages of the posteriors are the M-step."""
    likelihood = answer_likelihood(problem.f.shape[2], problem.smoothing)
    site = np.arange(len(problem.codes)) % n_sites
    before = -np.inf
    problem = problem._replace(log_gate=problem.log_gate[site], f=problem.f[site])  # rows of a site are alike
    for _ in range(6):
        total, who, answers = e_step(problem, likelihood)
        assert total >= before - 1e-9
        before = total
        pooled = [np.array([table[site == s].mean(0) for s in site]) for table in (who, answers)]
        problem = problem._replace(log_gate=np.log(pooled[0] + 1e-300), f=pooled[1] + 1e-300)


@given(answer_problems())
def test_naive_is_dropping_whoever_did_not_answer(problem):
    likelihood = answer_likelihood(problem.f.shape[2], problem.smoothing)
    model = ProbabilisticDeferral(missing="naive", annotation_smoothing=problem.smoothing)
    model.classes_ = np.arange(problem.f.shape[2])
    votes = encode_votes(problem.codes, classes=model.classes_)
    log_likelihood = model._log_likelihood(None, votes, problem.y_codes, problem.classifier_proba, 0.0)
    naive = gate_posterior(problem.log_gate, np.eye(problem.log_gate.shape[1]), log_likelihood).targets
    for i, y in enumerate(problem.y_codes):
        there = np.append(problem.codes[i] >= 0, True)
        p = np.append(likelihood[y, problem.codes[i]], likelihood[y] @ problem.classifier_proba[i])
        kept = np.where(there, np.exp(problem.log_gate[i]) * p, 0)
        np.testing.assert_allclose(naive[i], kept / kept.sum(), atol=1e-12)
