"""The recommended consensus: what it says of evidence, of dependence, and beside the majority of real crowds."""

import numpy as np
import pytest
from aggregation.test_dawid_skene import simulate
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp

from sklearn_l2d.aggregation import HierarchicalDawidSkene, MajorityVote
from sklearn_l2d.aggregation._hierarchical_dawid_skene import evidence_of, offset_for, population_of, strength_of
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.datasets import load_crowd
from sklearn_l2d.metrics import consensus_accuracy

CROWDS = [  # with labels only, and with features; the largest are in the benchmark only
    "label_only_bluebird",
    "label_only_dog",
    "label_only_face_sentiment",
    "label_only_fact_eval",
    "label_only_rte",
    "label_only_sentiment_sp_amt",
    "label_only_tweet_sentiment",
    "label_only_weather_amt",
    "label_only_weather_cf",
    "label_only_web",
    "label_only_zencrowd_all",
    "cue_conflict",
    "labelme",
    "medical_relation_cause",
    "medical_relation_treat",
    "music_genre",
    "product_match",
    "recidivism_compas",
    "sentiment_polarity",
]


@pytest.mark.data
@pytest.mark.parametrize("name", CROWDS)
def test_never_far_below_the_majority_without_the_luck_of_ties(name):
    crowd = load_crowd(name)
    votes = encode_votes(crowd.annotations).recode(np.arange(len(crowd.target_names)))
    known = (crowd.y >= 0) & (np.diff(votes.starts) > 0)
    accuracy, majority = (
        consensus_accuracy(crowd.y[known], consensus.fit(votes).predict_proba(votes[known]), ties="shared")
        for consensus in (HierarchicalDawidSkene(), MajorityVote())
    )
    assert accuracy >= majority - 0.005


def test_evidence_is_the_expected_logarithm_of_rows():
    counts = np.array([[[4.0, 1.0, 0.0], [0.0, 2.5, 0.5], [1.0, 0.0, 0.0]], np.zeros((3, 3))])
    pooled, symmetric = population_of(counts)
    evidence = evidence_of(counts, pooled, symmetric, 3.0, 1.0)
    rng = np.random.default_rng(0)
    for c in range(3):
        draws = rng.dirichlet(counts[0, c] + 3 * pooled[c], 400_000)
        assert_allclose(evidence[0, c], np.log(np.maximum(draws, 1e-300)).mean(0), rtol=0.03)
    assert_allclose(evidence[1], np.log(pooled))


def test_without_common_errors_newcomers_vote_as_in_a_majority():
    counts = simulate(300)[2] * 50
    pooled, symmetric = population_of(counts)
    evidence = evidence_of(np.zeros((1, 3, 3)), pooled, symmetric, 5.0, 0.0)[0]
    right, wrong = symmetric[0, 0], symmetric[0, 1]
    assert right + 2 * wrong == pytest.approx(1)
    assert_allclose(evidence, np.where(np.eye(3, dtype=bool), np.log(right), np.log(wrong)))


def test_strength_is_recovered():
    rng = np.random.default_rng(0)
    pooled = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])
    rows = np.stack([rng.dirichlet(12 * row, 300) for row in pooled], axis=1)
    counts = np.array([[rng.multinomial(40, row) for row in person] for person in rows], dtype=float)
    assert strength_of(counts, pooled) == pytest.approx(12, rel=0.15)


def test_confusion_matrices_are_recovered():
    votes, truth, confusion = simulate(4000)
    consensus = HierarchicalDawidSkene().fit(votes)
    assert consensus.converged_
    assert_allclose(consensus.confusion_matrices_, confusion, atol=0.1)
    assert np.mean(consensus.predict(votes) == truth) > np.mean(MajorityVote().fit_predict(votes) == truth)


def test_copies_are_discounted_and_change_no_label_of_equal_crowds():
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=600)
    votes = np.where(rng.random((600, 9)) < 0.75, truth[:, None], 1 - truth[:, None])
    alone, copied = HierarchicalDawidSkene().fit(votes), HierarchicalDawidSkene().fit(np.repeat(votes, 4, axis=1))
    assert alone.discount_ > 0.75
    assert copied.discount_ < 0.4
    assert np.mean(copied.predict(np.repeat(votes, 4, axis=1)) == alone.predict(votes)) > 0.99


def hard_items():
    """Votes are almost coin flips on a quarter of the items, which a model without hard items takes for a class."""
    rng = np.random.default_rng(0)
    truth = (rng.random(1500) < 0.2).astype(int)
    right = np.where(rng.random(1500) < 0.25, 0.55, 0.9)[:, None]
    return np.where(rng.random((1500, 10)) < right, truth[:, None], 1 - truth[:, None]), truth


def test_the_less_common_errors_count_the_less_hard_items_are_drawn_to_a_class():
    votes, truth = hard_items()
    accuracy = [np.mean(HierarchicalDawidSkene(common=c).fit_predict(votes) == truth) for c in (0, 0.25, 1)]
    assert accuracy[0] > accuracy[1] > accuracy[2] + 0.03
    assert np.mean(MajorityVote().fit_predict(votes) == truth) > accuracy[1]  # which remains to be paid


def test_probabilities_of_silent_items_and_newcomers():
    votes, _, _ = simulate(200)
    consensus = HierarchicalDawidSkene().fit(votes)
    assert_allclose(consensus.predict_proba([[-1] * 6]), [consensus.class_prior_])
    half = HierarchicalDawidSkene().fit(votes, np.where(np.arange(200) < 100, 1, np.nan))
    assert half.score(votes[:100], np.ones(100)) < half.score(votes[:100])


def test_one_vote_each_has_no_discount():
    consensus = HierarchicalDawidSkene().fit([[0, None], [None, 1], [1, None]])
    assert consensus.discount_ == 1
    assert_array_equal(consensus.predict([[0, None], [None, 1]]), [0, 1])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_offset_is_the_smallest_change_that_gives_the_shares(weighted):
    """Its dual, by another solver: log-odds that maximise the mean log-evidence less what they cost."""
    rng = np.random.default_rng(0)
    log_joint, shares = rng.normal(size=(200, 3)) * 3, np.array([0.6, 0.3, 0.1])
    weight = rng.uniform(0.5, 2, 200) if weighted else np.ones(200)
    dual = minimize(lambda g: weight @ logsumexp(log_joint + g, axis=1) / weight.sum() - shares @ g, np.zeros(3))
    assert_allclose(offset_for(log_joint, shares, weight, np.zeros(3)), dual.x - dual.x.mean(), atol=1e-3)


def test_classes_have_the_shares_that_are_known():
    votes, truth = hard_items()
    shares = [np.mean(truth == 0), np.mean(truth == 1)]
    plain, told = HierarchicalDawidSkene(common=1), HierarchicalDawidSkene(common=1, class_shares=shares)
    proba = told.fit(votes).predict_proba(votes) ** (1 / told.discount_)  # as if answers were independent
    assert_allclose((proba / proba.sum(1, keepdims=True)).mean(0), shares, atol=1e-3)
    assert np.mean(told.predict(votes) == truth) > np.mean(plain.fit_predict(votes) == truth) + 0.05
    assert np.mean(told.predict(votes) == truth) > np.mean(MajorityVote().fit_predict(votes) == truth)
    assert_allclose(told.class_prior_, shares, atol=0.01)
    assert_allclose(told.predict_proba(votes[:3]), told.predict_proba(votes)[:3])
    assert_array_equal(plain.class_offset_, [0, 0])


def test_classes_can_keep_the_shares_of_the_majority():
    votes, _, _ = simulate(1500)
    kept = HierarchicalDawidSkene(class_shares="majority").fit_predict(votes)
    shares = MajorityVote().fit(votes).predict_proba(votes)
    best = np.isclose(shares, shares.max(1, keepdims=True))
    expected = (best / best.sum(1, keepdims=True)).mean(0)
    assert_allclose(np.bincount(kept) / 1500, expected, atol=0.02)


@pytest.mark.parametrize("class_shares", [None, "majority", [0.5, 0.3, 0.2]])
def test_weights_are_copies_and_items_without_votes_say_nothing(class_shares):
    votes, _, _ = simulate(300)
    weight = 1 + np.arange(300) % 2
    consensus = HierarchicalDawidSkene(class_shares=class_shares)
    weighted = consensus.fit(votes, sample_weight=weight).predict_proba(votes)
    assert_allclose(consensus.fit(np.repeat(votes, weight, axis=0)).predict_proba(votes), weighted, atol=1e-5)
    prior = consensus.fit(votes).class_prior_
    silent = np.vstack([votes, np.full((200, votes.shape[1]), -1)])
    assert_allclose(consensus.fit(silent).class_prior_, prior)


def test_known_labels_do_not_count_for_the_shares():
    votes, truth = hard_items()
    known = np.where((np.arange(1500) < 300) & (truth == 1), 1, np.nan)
    labels = HierarchicalDawidSkene(class_shares=[0.9, 0.1]).fit(votes, known).predict(votes)
    assert np.mean(labels[np.isnan(known)]) == pytest.approx(0.1, abs=0.02)
    everything = HierarchicalDawidSkene(class_shares=[0.9, 0.1]).fit(votes, truth)
    assert_array_equal(everything.class_offset_, [0, 0])


@pytest.mark.parametrize("class_shares", [[0.5, 0.5], [0.5, 0.5, 0.0], [0.5, 0.4, 0.2], list("abc")])
def test_shares_that_are_none_are_refused(class_shares):
    votes, _, _ = simulate(50)
    consensus = HierarchicalDawidSkene().fit(votes)
    with pytest.raises(ValueError, match=r"class_shares=.*must hold 3 positive probabilities that sum to 1"):
        consensus.set_params(class_shares=class_shares).fit(votes)
    assert consensus.predict(votes).shape == (50,)


@pytest.mark.data
@pytest.mark.parametrize("name", ["recidivism_lsi_balanced", "recidivism_lsi_low"])
def test_where_people_foretell_an_event_the_shares_decide(name):
    """People expect the event too often, and the consensus even more; how frequent it is, or the majority, stops it."""
    crowd = load_crowd(name)
    votes, truth = encode_votes(crowd.annotations), crowd.y
    known = np.bincount(truth) / len(truth)

    def accuracy(consensus):
        return consensus_accuracy(truth, consensus.fit(votes).predict_proba(votes), ties="shared")

    majority = accuracy(MajorityVote())
    assert accuracy(HierarchicalDawidSkene()) < majority - 0.02
    assert accuracy(HierarchicalDawidSkene(class_shares="majority")) >= majority - 0.005
    assert accuracy(HierarchicalDawidSkene(class_shares=known)) > majority + 0.05
