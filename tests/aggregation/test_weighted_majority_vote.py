"""Majority votes, plain, of counts and weighted: figures of real crowds are in tests/metrics/test_consensus.py."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from property.strategies import annotation_codes, vote_counts

from sklearn_l2d.aggregation import MajorityVote, WeightedMajorityVote


def plain(codes, n_classes, weights):
    """Weighted sums of the votes, one item and annotator after the other."""
    totals = np.zeros((len(codes), n_classes))
    for i, row in enumerate(codes):
        for a, answer in enumerate(row):
            if answer >= 0:
                totals[i, answer] += weights[a]
    return totals


def answered(codes, n_classes):
    """The same with an item that shows all classes."""
    return np.vstack([codes, np.resize(np.arange(n_classes), (n_classes, codes.shape[1]))])


@given(annotation_codes())
def test_counts_are_annotations_without_names(codes_and_classes):
    codes, n_classes = codes_and_classes
    codes = answered(codes, n_classes)
    counts = (codes[:, :, None] == np.arange(n_classes)).sum(1)
    named, anonymous = MajorityVote().fit(codes), MajorityVote("counts").fit(counts)
    assert_array_equal(anonymous.predict(counts), named.predict(codes))
    assert_allclose(anonymous.predict_proba(counts), named.predict_proba(codes))
    assert_array_equal(anonymous.items_without_votes_, named.items_without_votes_)
    assert len(anonymous.annotators_) == 0
    assert anonymous.n_features_in_ == n_classes


@given(vote_counts(), st.integers(0, 9))
def test_rows_of_counts_alone_are_rows_of_a_batch(counts, seed):
    vote = MajorityVote("counts", ties="random", random_state=seed).fit(counts)
    rows = range(len(counts))
    assert_array_equal(vote.predict(counts), np.concatenate([vote.predict(counts[i : i + 1]) for i in rows]))
    assert_allclose(vote.score(counts), sum(vote.score(counts[i : i + 1]) for i in rows))


def test_columns_of_counts_name_the_classes():
    table = pd.DataFrame({"dog": [2, 0, 0], "cat": [1, 3, 0]}, index=["x", "y", "z"])
    vote = MajorityVote("counts").fit(table)
    assert vote.classes_.tolist() == ["cat", "dog"]
    assert vote.predict(table[["cat", "dog"]]).tolist() == ["dog", "cat", "cat"]
    assert vote.items_without_votes_.tolist() == ["z"]
    assert vote.set_output(transform="pandas").transform(table).index.tolist() == ["x", "y", "z"]
    assert_allclose(vote.predict_proba(table)[2], vote.class_prior_)


def test_pooled_matrix_of_counts_by_hand():
    vote = MajorityVote("counts").fit([[3, 1], [0, 2]], [0, 1])
    assert_allclose(vote.prior_confusion_, [[4 / 6, 2 / 6], [1 / 4, 3 / 4]])
    weighed = MajorityVote("counts").fit([[3, 1], [0, 2]], [0, 1], sample_weight=[2, 0])
    assert_allclose(weighed.prior_confusion_, [[7 / 10, 3 / 10], [1 / 2, 1 / 2]])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([0, 1], "dense table of counts"),
        ([[1, -1]], "X has negative counts"),
        ([[0, 0]], "X holds no votes"),
        ([[1], [2]], "at least two classes"),
        ([["a", "b"]], "X does not hold vote counts"),
    ],
)
def test_bad_counts_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        MajorityVote("counts").fit(X)


def test_counts_of_other_classes_are_refused():
    vote = MajorityVote("counts").fit([[1, 2]])
    with pytest.raises(ValueError, match="3 columns of counts for the 2 classes"):
        vote.predict([[1, 2, 3]])
    with pytest.raises(ValueError, match="no classes"):
        MajorityVote("counts").fit([[1, 2]], [5])


@given(annotation_codes(), st.floats(0.1, 3))
def test_equal_weights_are_the_majority(codes_and_classes, weight):
    codes, n_classes = codes_and_classes
    codes = answered(codes, n_classes)
    equal = WeightedMajorityVote(np.full(codes.shape[1], weight)).fit(codes)
    majority = MajorityVote().fit(codes)
    assert_array_equal(equal.predict(codes), majority.predict(codes))
    assert_allclose(equal.predict_proba(codes), majority.predict_proba(codes))


@given(annotation_codes(), st.data())
def test_log_odds_are_the_map_of_one_coins(codes_and_classes, data):
    """With errors spread evenly and equal classes, the posterior is that of the weighted sums, also below chance."""
    codes, n_classes = codes_and_classes
    codes = answered(codes, n_classes)
    p = np.array(data.draw(st.lists(st.floats(0.02, 0.98), min_size=codes.shape[1], max_size=codes.shape[1])))
    log_joint = np.zeros((len(codes), n_classes))
    for i, row in enumerate(codes):
        for a, answer in enumerate(row):
            if answer >= 0:
                wrong = (1 - p[a]) / (n_classes - 1)
                log_joint[i] += np.log(np.where(np.arange(n_classes) == answer, p[a], wrong))
    weights = np.log((n_classes - 1) * p / (1 - p))
    if not weights.any():
        return
    found = WeightedMajorityVote(weights).fit(codes).predict(codes)
    assert_allclose(log_joint[np.arange(len(codes)), found], log_joint.max(1), atol=1e-7)


@given(annotation_codes(min_experts=2))
def test_agreement_by_hand(codes_and_classes):
    codes, n_classes = codes_and_classes
    codes = answered(codes, n_classes)
    counts = plain(codes, n_classes, np.ones(codes.shape[1]))
    share = np.where(counts == counts.max(1, keepdims=True), 1.0, 0.0)
    share /= share.sum(1, keepdims=True)
    agreed = [np.mean([share[i, answer] for i, answer in enumerate(who) if answer >= 0]) for who in codes.T]
    consensus = WeightedMajorityVote().fit(codes)
    assert_allclose(consensus.weights_, agreed)
    totals = plain(codes, n_classes, np.array(agreed))
    silent = totals.sum(1) == 0
    totals[silent] = consensus.class_prior_
    assert_allclose(consensus.predict_proba(codes), totals / totals.sum(1, keepdims=True))


def test_skill_is_agreement_with_the_vote_that_it_weighs():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=300)
    right = rng.random((300, 7)) < [0.9, 0.9, 0.8, 0.5, 0.4, 0.4, 0.35]
    codes = np.where(right, truth[:, None], rng.integers(3, size=(300, 7)))
    skilled, agreeing = WeightedMajorityVote("zero_based_skill").fit(codes), WeightedMajorityVote().fit(codes)
    assert skilled.converged_
    label = plain(codes, 3, skilled.weights_).argmax(1)
    assert_allclose(skilled.weights_, (codes == label[:, None]).mean(0))
    accuracy = [np.mean(vote.predict(codes) == truth) for vote in (skilled, agreeing, MajorityVote().fit(codes))]
    assert accuracy[0] >= accuracy[1] > accuracy[2]
    assert np.abs(skilled.weights_ - (codes == truth[:, None]).mean(0)).max() < 0.03


def test_known_truth_replaces_agreement():
    codes, truth = np.array([[0, 0, 1], [1, 1, 0], [0, 0, 1]]), [1, 0, 1]
    assert_allclose(WeightedMajorityVote().fit(codes, truth).weights_, [0, 0, 1])
    assert_allclose(WeightedMajorityVote().fit(codes, sample_weight=[1, 2, 0]).weights_, [1, 1, 0])


def test_weights_come_by_name_and_newcomers_have_the_mean():
    table = pd.DataFrame({"ann": [0, 1], "bob": [1, 0], "cem": [1, 0]})
    by_name = WeightedMajorityVote({"cem": 1.0, "ann": 3.0, "bob": 1.0}).fit(table)
    assert by_name.weights_.tolist() == [3, 1, 1]
    assert by_name.predict(table).tolist() == [0, 1]
    series = WeightedMajorityVote(pd.Series({"cem": 1.0, "ann": 3.0, "bob": 1.0})).fit(table)
    assert_allclose(series.weights_, by_name.weights_)
    new = by_name.predict_proba(pd.DataFrame({"new": [0], "bob": [1]}))
    assert_allclose(new, [[5 / 8, 3 / 8]])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "one per annotator"),
        ([0, 0, 0], "not all zero"),
        ([1, 2, np.nan], "finite"),
        ({0: 1, 1: 1}, "lacking are \\[2\\]"),
        ({0: 1, 1: 1, 2: 1, "x": 1}, "unknown are \\['x'\\]"),
        ("wawa", "weights"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        WeightedMajorityVote(weights).fit([[0, 1, 1]])
