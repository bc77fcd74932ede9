"""CROWDLAB against cleanlab: its figures on a table written by hand, and cleanlab itself where it is installed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_l2d._numerics._crowdlab import Crowdlab, crowdlab_consensus, crowdlab_proba, fit_crowdlab
from sklearn_l2d.annotations import encode_votes

# Ann or Bob answers an item, and Eve, who is always right, answers every item: cleanlab, which compares people with one
# another, then finds how often Ann and Bob are right.
ITEM = np.repeat(np.arange(8), 2)
EXPERT = np.array([0, 2, 0, 2, 1, 2, 1, 2, 0, 2, 1, 2, 0, 2, 0, 2])
LABEL = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 2, 2, 2, 0, 2])
TRUTH = np.array([0, 0, 0, 1, 1, 2, 2, 2])
PROBA = np.array(
    [[0.8, 0.1, 0.1], [0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.1, 0.6, 0.3],
     [0.3, 0.3, 0.4], [0.2, 0.2, 0.6], [0.1, 0.1, 0.8], [0.25, 0.25, 0.5]]
)  # fmt: skip

# of cleanlab 2.9.0: _get_post_pred_probs_and_weights with the truth as the consensus, and with whether Ann or Bob is
# right as the agreement with it
CLEANLAB_WEIGHT = 0.848528137423857
CLEANLAB = np.array(
    [[0.76993227, 0.11503386, 0.11503386], [0.65033863, 0.19476296, 0.15489841], [0.50632219, 0.37975407, 0.11392374],
     [0.11392374, 0.68354242, 0.20253385], [0.19476296, 0.57060953, 0.23462751], [0.31051965, 0.15822879, 0.53125155],
     [0.11503386, 0.11503386, 0.76993227], [0.37449918, 0.17483069, 0.45067014]]
)  # fmt: skip


def test_figures_of_cleanlab():
    by_people = EXPERT < 2
    learnt = fit_crowdlab(ITEM[by_people], LABEL[by_people], PROBA, TRUTH, 0.5)
    assert learnt.right == 0.75
    assert_allclose(learnt.classifier * np.sqrt(2), CLEANLAB_WEIGHT)
    right, seen = np.array([4, 2, 6]), np.array([5, 3, 8])  # Eve agrees with Ann or Bob on six of eight items
    assert_allclose(crowdlab_proba(learnt, right, seen, ITEM, EXPERT, LABEL, PROBA), CLEANLAB, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n_answers", [2, 5])
def test_equals_cleanlab(n_classes, n_answers):
    multiannotator = pytest.importorskip("cleanlab.multiannotator")
    rng = np.random.default_rng(n_classes + n_answers)
    n_items, n_experts = 60, 6
    truth = rng.integers(n_classes, size=n_items)
    proba = rng.dirichlet(np.ones(n_classes), n_items) + 0.3 * np.eye(n_classes)[truth]
    proba /= proba.sum(1, keepdims=True)
    expert = np.array([np.sort(rng.permutation(n_experts)[:n_answers]) for _ in range(n_items)]).ravel()
    item = np.repeat(np.arange(n_items), n_answers)
    label = np.where(rng.random(len(item)) < 0.4 + expert / 10, truth[item], rng.integers(n_classes, size=len(item)))
    wide = np.full((n_items, n_experts), np.nan)
    wide[item, expert] = label
    agreement = np.nanmean(np.where(np.isnan(wide), np.nan, wide == truth[:, None]), axis=1)
    arguments = wide, truth, proba, np.full(n_items, n_answers), agreement
    expected, classifier, weight = multiannotator._get_post_pred_probs_and_weights(*arguments, verbose=False)
    learnt = fit_crowdlab(item, label, proba, truth, 0.5)
    assert_allclose(learnt.classifier * np.sqrt(n_answers), classifier)
    with_others = np.zeros(n_experts)  # the paper's agreement, in place of right answers
    for i, j in zip(item, expert, strict=True):
        with_others[j] += ((wide[i] == wide[i, j]).sum() - 1) / (n_answers - 1)
    seen = np.bincount(expert)
    assert_allclose(np.maximum(1 - (1 - with_others / seen) / learnt.base_error, 1e-6), weight)
    assert_allclose(crowdlab_proba(learnt, with_others, seen, item, expert, label, proba), expected)


def test_an_item_alone_is_labelled_as_among_others():
    learnt, right, seen = Crowdlab(0.7, 0.6, 0.5), np.array([9, 2, 0]), np.array([10, 8, 0])
    item, expert, label = np.array([0, 0, 2]), np.array([0, 2, 1]), np.array([1, 2, 1])
    proba = crowdlab_proba(learnt, right, seen, item, expert, label, PROBA[:3])
    assert_allclose(proba.sum(1), 1)
    first = crowdlab_proba(learnt, right, seen, item[:2], expert[:2], label[:2], PROBA[:1])
    assert_allclose(proba[:1], first)
    assert_allclose(proba[1], PROBA[1])  # nobody answered
    assert_allclose(proba[2], PROBA[2], atol=1e-4)  # by somebody who errs more than the most frequent class would
    known = 1 - 0.1 / 0.6, 1 - 0.3 / 0.6  # of the first person, and of a newcomer, who is taken to err as all do
    own = 0.5 * np.sqrt(2)
    expected = own * PROBA[0] + known[0] * np.array([0.15, 0.7, 0.15]) + known[1] * np.array([0.15, 0.15, 0.7])
    assert_allclose(proba[0], expected / (own + sum(known)))


def test_one_class_is_certain():
    learnt = fit_crowdlab(np.array([0, 1]), np.array([0, 0]), np.ones((2, 1)), np.array([0, 0]), 0.5)
    ones = crowdlab_proba(learnt, np.ones(1), np.ones(1), np.array([1]), np.array([0]), np.array([0]), np.ones((2, 1)))
    assert_allclose(ones, 1)


# answers of three people to the same items, two to each, and what get_label_quality_multiannotator of cleanlab 2.9.0
# finds with calibrate_probs=False: weights, consensus, and the probabilities that it is based on
VOTES = np.array([[0, 0, -1], [0, -1, 1], [-1, 0, 0], [1, 1, -1], [1, -1, 1], [-1, 2, 2], [2, 2, -1], [2, -1, 0]])
WEIGHTS = np.array([0.46666667, 1, 0.36])
CONSENSUS = np.array(
    [[0.8475122, 0.0762439, 0.0762439], [0.51044655, 0.35740626, 0.13214719], [0.61566145, 0.30743086, 0.0769077],
     [0.0762439, 0.7742114, 0.1495447], [0.1827997, 0.58374809, 0.23345221], [0.11532822, 0.11532822, 0.76934355],
     [0.0762439, 0.0762439, 0.8475122], [0.33208001, 0.15747345, 0.51044655]]
)  # fmt: skip


def test_figures_of_cleanlab_without_truth():
    votes = encode_votes(VOTES, classes=[0, 1, 2])
    learnt, right, seen, consensus = crowdlab_consensus(votes, PROBA, np.full(8, -1))
    assert_allclose(learnt.classifier * np.sqrt(2), CLEANLAB_WEIGHT)
    assert_allclose(1 - (1 - right / seen) / learnt.base_error, WEIGHTS, atol=1e-8)
    assert_allclose(consensus, CONSENSUS, atol=1e-8)


@pytest.mark.parametrize("n_answers", [2, 3])
def test_equals_cleanlab_without_truth(n_answers):
    multiannotator = pytest.importorskip("cleanlab.multiannotator")
    rng = np.random.default_rng(n_answers)
    truth = rng.integers(4, size=80)
    proba = rng.dirichlet(np.ones(4), 80) + 0.4 * np.eye(4)[truth]
    proba /= proba.sum(1, keepdims=True)
    answers = np.where(rng.random((80, 6)) < np.linspace(0.4, 0.9, 6), truth[:, None], rng.integers(4, size=(80, 6)))
    answers[np.argsort(rng.random((80, 6)), axis=1) >= n_answers] = -1
    found = multiannotator.get_label_quality_multiannotator(
        np.where(answers < 0, np.nan, answers), proba, calibrate_probs=False, return_weights=True, verbose=False
    )
    votes = encode_votes(answers, classes=[0, 1, 2, 3])
    learnt, right, seen, consensus = crowdlab_consensus(votes, proba, np.full(80, -1))
    assert_allclose(learnt.classifier * np.sqrt(n_answers), found["model_weight"])
    assert_allclose(np.maximum(1 - (1 - right / seen) / learnt.base_error, 1e-6), found["annotator_weight"])
    label = found["label_quality"]["consensus_label"].to_numpy()
    quality = found["label_quality"]["consensus_quality_score"].to_numpy()
    assert_allclose(consensus[np.arange(80), label], quality)


def test_with_all_truth_known_people_are_judged_by_it():
    votes = encode_votes(VOTES, classes=[0, 1, 2])
    learnt, right, seen, consensus = crowdlab_consensus(votes, PROBA, TRUTH)
    assert_allclose(right / seen, [1, 1, 3 / 5])
    assert_allclose(consensus, np.eye(3)[TRUTH])
    assert learnt == fit_crowdlab(votes.item, votes.label, PROBA, TRUTH, 0.5)
