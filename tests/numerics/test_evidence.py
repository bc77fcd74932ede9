"""Evidence that the label by the classifier and one answer together is right."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_l2d._numerics._answer_model import answer_log_likelihood, fit_answer_model
from sklearn_l2d._numerics._evidence import combined_evidence
from sklearn_l2d.annotations import encode_votes


def test_combined_evidence_is_bayes_rule_for_one_answer():
    rng = np.random.default_rng(0)
    y, n_classes, n_experts = rng.integers(3, size=30), 3, 4
    answers = np.where(rng.random((30, n_experts)) < 0.6, y[:, None], rng.integers(3, size=(30, n_experts)))
    answers[rng.random(answers.shape) < 0.4] = -1
    votes, proba = encode_votes(answers, classes=np.arange(3)), rng.dirichlet(np.ones(3), size=30)
    model = fit_answer_model(votes.item, votes.annotator, votes.label, n_experts, np.eye(3)[y])
    told = answer_log_likelihood(model, votes.annotator, votes.label)
    price = np.array([0.0, 0.1, 0.0, 0.3])
    table = combined_evidence(votes, y, proba, told, price, 0.01).table()
    assert table.shape == (30, n_experts + 1)
    by_class = {c: [] for c in range(n_classes)}
    for i, j in zip(*np.nonzero(answers >= 0), strict=True):
        likelihood = np.exp(answer_log_likelihood(model, np.array([j]), np.array([answers[i, j]]))[0])
        right = np.clip(proba[i, y[i]] * likelihood[y[i]] / (proba[i] @ likelihood), 0.01, 0.99)
        assert table[i, j] == pytest.approx(np.log(right) - price[j])
        by_class[y[i]].append(right)
    for i, j in zip(*np.nonzero(answers < 0), strict=True):
        values = by_class[y[i]]
        assert table[i, j] == pytest.approx(np.log((sum(values) + 1) / (len(values) + 2)) - price[j])
    assert_allclose(table[:, -1], np.log(proba[np.arange(30), y].clip(0.01, 0.99)))
