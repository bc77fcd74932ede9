"""Who is asked next about what: by hand, at random, within bounds, and what it gains."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sklearn_l2d
from sklearn_l2d.aggregation import ActiveCrowdsourcing, DawidSkene
from sklearn_l2d.annotations import encode_votes


def simulate(n_items=60, n_annotators=8, missing=0.6, random_state=0):
    rng = np.random.default_rng(random_state)
    truth = rng.integers(3, size=n_items)
    right = rng.random((n_items, n_annotators)) < np.linspace(0.35, 0.95, n_annotators)
    everything = np.where(right, truth[:, None], (truth[:, None] + rng.integers(1, 3, right.shape)) % 3)
    return np.where(rng.random(right.shape) < missing, -1, everything), everything, truth


def test_the_most_reliable_is_asked_about_the_least_certain():
    votes, _, _ = simulate()
    active = ActiveCrowdsourcing(epsilon=(0, 0)).fit(votes)
    proba, reliability = active.predict_proba(votes), active.aggregator_.annotator_accuracy_
    worth = np.where(votes < 0, (1 - proba.max(1))[:, None] * reliability, -1)
    item, annotator = active.suggest(votes, 5)
    assert len(set(item.tolist())) == 5
    for i, a in zip(item, annotator, strict=True):
        assert worth[i, a] == worth[i].max()
    assert_allclose(worth[item, annotator.astype(int)], np.sort(worth.max(1))[::-1][:5])


def test_epsilon_one_is_random():
    votes = np.array([[0, 1, -1], [1, -1, -1], [0, 0, 0], [-1, 1, -1]])
    found, active = np.zeros((4, 3)), ActiveCrowdsourcing(epsilon=(1, 1)).fit(votes)
    for seed in range(600):
        item, annotator = active.set_params(random_state=seed).suggest(votes)
        found[item[0], annotator[0]] += 1
    assert (found[votes >= 0] == 0).all()
    assert_allclose(found[votes < 0] / 600, 1 / 5, atol=5 * np.sqrt(0.16 / 600))


def test_exploration_ends():
    votes, _, _ = simulate()
    n_answers = (votes >= 0).sum()
    greedy = ActiveCrowdsourcing(epsilon=(0, 0)).fit(votes).suggest(votes, 10)
    for n_explore, same in ((n_answers, True), (n_answers + 1, False)):
        active = ActiveCrowdsourcing(epsilon=(1, 0), n_explore=n_explore, random_state=0).fit(votes)
        assert (set(active.suggest(votes, 10)[0].tolist()) == set(greedy[0].tolist())) is same


@pytest.mark.parametrize("epsilon", [(0, 0), (1, 1), (0.5, 0.5)])
def test_nobody_is_asked_twice_or_while_absent(epsilon):
    votes, everything, _ = simulate(12, 4)
    active = ActiveCrowdsourcing(epsilon=epsilon, random_state=1).fit(encode_votes(votes, classes=[0, 1, 2]))
    absent = np.random.default_rng(0).random(votes.shape) < 0.3
    while True:
        item, annotator = active.suggest(votes, 5, ~absent)
        if not len(item):
            break
        place = item, annotator.astype(int)
        assert len(set(zip(*map(np.ndarray.tolist, place), strict=True))) == len(item)
        assert (votes[place] < 0).all()
        assert not absent[place].any()
        votes[place] = everything[place]
        active.partial_fit(votes[np.unique(item)])
    assert ((votes >= 0) | absent).all()


def test_who_is_available_comes_by_name():
    votes, _, _ = simulate()
    table = pd.DataFrame(votes, columns=list("abcdefgh"))
    active = ActiveCrowdsourcing(epsilon=(0.5, 0.5), random_state=0).fit(table)
    _, annotator = active.suggest(table, 20, dict.fromkeys("cdefgh", False))
    assert set(annotator.tolist()) <= {"a", "b"}


def test_items_are_done_by_certainty_or_price():
    votes, _, _ = simulate()
    active = ActiveCrowdsourcing(threshold=0.9).fit(votes)
    proba, matrices = active.predict_proba(votes), active.aggregator_.confusion_matrices_
    assert_array_equal(active.is_done(votes), proba.max(1) >= 0.9)
    gain = np.array(
        [max(sum((row * m[:, answer]).max() for answer in range(3)) for m in matrices) - row.max() for row in proba]
    )
    priced = ActiveCrowdsourcing(price=0.05).fit(votes)
    assert_array_equal(priced.is_done(votes), gain <= 0.05)
    assert 0 < priced.is_done(votes).mean() < 1
    item, _ = priced.suggest(votes, 60)
    assert not priced.is_done(votes)[item].any()
    assert not ActiveCrowdsourcing().fit(votes).is_done(votes).any()


def test_learning_is_that_of_online_em():
    votes, _, _ = simulate()
    active = ActiveCrowdsourcing(DawidSkene()).fit(votes)
    before = active.aggregator_.confusion_matrices_.copy()
    first = pickle.loads(pickle.dumps(active))
    active.partial_fit(votes[:20])
    expected = DawidSkene().fit(votes).partial_fit(votes[:20])
    assert_array_equal(active.predict_proba(votes), expected.predict_proba(votes))
    assert_array_equal(first.aggregator_.confusion_matrices_, before)


def test_a_file_suggests_the_same(tmp_path):
    pytest.importorskip("skops", reason="skops is in the extras named save and test")
    votes, _, _ = simulate()
    active = ActiveCrowdsourcing(random_state=3).fit(votes)
    active.save(tmp_path / "file")
    for got, expected in zip(
        sklearn_l2d.load(tmp_path / "file").suggest(votes, 5), active.suggest(votes, 5), strict=True
    ):
        assert_array_equal(got, expected)


def test_fewer_errors_for_the_same_number_of_answers():
    gain = []
    for seed in range(6):
        start, everything, truth = simulate(100, 10, missing=0.85, random_state=seed)
        errors = []
        for epsilon in ((0.2, 0.05), (1, 1)):
            votes = start.copy()
            active = ActiveCrowdsourcing(epsilon=epsilon, random_state=seed).fit(encode_votes(votes, classes=[0, 1, 2]))
            for _ in range(10):
                item, annotator = active.suggest(votes, 15)
                votes[item, annotator.astype(int)] = everything[item, annotator.astype(int)]
                active.partial_fit(votes[item])
            errors.append(np.mean(active.predict(votes) != truth))
        gain.append(errors[1] - errors[0])
    assert np.mean(gain) > 0.03


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="epsilon"):
        ActiveCrowdsourcing(epsilon=(0.5, 2)).fit([[0, 1]])
    with pytest.raises(ValueError, match="no answer"):
        ActiveCrowdsourcing().fit([[None, None]])
    with pytest.raises(ValueError, match="available has shape"):
        ActiveCrowdsourcing().fit([[0, 1]]).suggest([[0, 1]], available=[True] * 3)
