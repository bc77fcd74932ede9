"""Robust rank-one completion: exact tables, corrupted entries, adversaries and memory."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_l2d.aggregation import MMSR, DawidSkene, MajorityVote
from sklearn_l2d.aggregation._mmsr import robust_rank_one, trimmed_mean
from sklearn_l2d.annotations import Votes
from sklearn_l2d.datasets import load_crowd


def simulate(n_items=2000, n_annotators=20, n_classes=3, share=0.0, p_corr=0.9, random_state=0):
    """One coin per annotator; a share of them tells the same wrong class of most items."""
    rng = np.random.default_rng(random_state)
    truth, accuracy = rng.integers(n_classes, size=n_items), rng.uniform(0.45, 0.85, n_annotators)
    wrong = (truth[:, None] + rng.integers(1, n_classes, (n_items, n_annotators))) % n_classes
    votes = np.where(rng.random(wrong.shape) < accuracy, truth[:, None], wrong)
    plan = np.where(rng.random(n_items) < p_corr, (truth + 1) % n_classes, truth)
    votes[:, : round(share * n_annotators)] = plan[:, None]
    return votes, truth, accuracy


def test_a_table_of_rank_one_is_completed_exactly():
    rng = np.random.default_rng(0)
    skill = rng.uniform(-0.2, 0.9, 25)
    known = np.triu(rng.random((25, 25)) < 0.6, 1)
    found, history = robust_rank_one(np.outer(skill, skill), (known + known.T).astype(float), 0.0, 1000, 1e-12)
    assert_allclose(found, skill, atol=1e-6)
    assert history[-1] < 1e-12


def test_corrupted_entries_do_not_matter_as_long_as_they_are_few():
    rng = np.random.default_rng(0)
    skill = rng.uniform(0.3, 0.9, 30)
    table = np.outer(skill, skill)
    table[:6] = rng.uniform(-1, 1, (6, 30))
    table[:, :6] = table[:6].T
    weights = 1.0 - np.eye(30)
    robust, _ = robust_rank_one(table, weights, 0.25, 1000, 1e-10)
    assert_allclose(robust[6:], skill[6:], atol=1e-6)
    plain, _ = robust_rank_one(table, weights, 0.0, 1000, 1e-10)
    assert np.abs(plain[6:] - skill[6:]).max() > 0.03


def test_trimmed_mean_by_brute_force():
    rng = np.random.default_rng(0)
    values, weights, own = rng.normal(size=(8, 8)), rng.integers(3, size=(8, 8)), rng.normal(size=8)
    weights[0] = 0
    expected = own.copy()
    for i in range(1, 8):
        pairs = sorted((v, w) for v, w in zip(values[i], weights[i], strict=True) if w)
        low, high = [p for p in pairs if p[0] < own[i]], [p for p in pairs if p[0] >= own[i]]
        kept = low[2:] + high[: max(len(high) - 2, 0)]
        if kept:
            expected[i] = sum(v * w for v, w in kept) / sum(w for _, w in kept)
    assert_allclose(trimmed_mean(values, weights, own, np.full(8, 2)), expected)


def test_skills_and_accuracies_are_recovered():
    votes, truth, accuracy = simulate(5000)
    consensus = MMSR().fit(votes)
    assert_allclose(consensus.annotator_accuracy_, accuracy, atol=0.04)
    assert_allclose(consensus.skills_, (3 * accuracy - 1) / 2, atol=0.05)
    assert np.mean(consensus.predict(votes) == truth) >= np.mean(MajorityVote().fit_predict(votes) == truth)


def test_labels_are_weighted_votes_by_log_odds():
    votes, _, _ = simulate(50, 6)
    consensus = MMSR().fit(votes)
    right = consensus.annotator_accuracy_
    weights = np.log(2 * right / (1 - right))
    totals = ((votes[:, :, None] == np.arange(3)) * weights[:, None]).sum(1)
    assert_array_equal(consensus.predict(votes), totals.argmax(1))


def test_adversaries_mislead_dawid_and_skene_only():
    votes, truth, _ = simulate(share=0.4, random_state=1)
    assert np.mean(DawidSkene().fit_predict(votes) == truth) < 0.5
    consensus = MMSR(trim=0.45).fit(votes)
    assert (consensus.skills_[:8] < 0).all()
    assert np.mean(consensus.predict(votes) == truth) > 0.9


def test_known_truth_tells_right_from_wrong():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=1000)
    votes = np.where(rng.random((1000, 10)) < np.where(np.arange(10) < 8, 0.2, 0.8), truth[:, None], 1 - truth[:, None])
    known = np.where(np.arange(1000) < 100, truth.astype(float), np.nan)
    assert np.mean(MMSR().fit_predict(votes) == truth) < 0.1  # a majority that is wrong
    assert np.mean(MMSR().fit_predict(votes, known) == truth) > 0.9


def test_weights_repeat_items():
    votes, _, _ = simulate(60, 6)
    weight = np.arange(60) % 3
    weighed = MMSR().fit(votes, sample_weight=weight)
    assert_allclose(weighed.skills_, MMSR().fit(np.repeat(votes, weight, axis=0)).skills_)


@pytest.mark.data
def test_rte_is_as_good_as_the_best():
    crowd = load_crowd("label_only_rte")
    assert np.mean(MMSR().fit_predict(crowd.annotations) == crowd.y) > 0.92


def test_memory_follows_the_votes_and_the_pairs():
    """A table of items times annotators would hold 20,000 * 300 numbers: 48 MB."""
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(20_000), 3)
    annotator = (rng.integers(100, size=20_000)[:, None] + [0, 100, 200]).ravel()
    votes = Votes(item, annotator, rng.integers(2, size=60_000), 20_000, [0, 1], np.arange(300))
    tracemalloc.start()
    MMSR(max_iter=3, tol=1.0).fit(votes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6
