"""Dawid and Skene's model: published figures, brute force, limits and batches."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from sklearn_l2d.aggregation import DawidSkene, MajorityVote
from sklearn_l2d.datasets import load_crowd


def simulate(n_items=400, n_annotators=6, n_classes=3, random_state=0):
    """Votes of annotators with confusion matrices of their own; one answer in four is missing."""
    rng = np.random.default_rng(random_state)
    truth = rng.integers(n_classes, size=n_items)
    confusion = rng.dirichlet(np.ones(n_classes), (n_annotators, n_classes)) / 2 + np.eye(n_classes) / 2
    draws = rng.random((n_items, n_annotators, 1))
    votes = (draws > confusion[:, truth].transpose(1, 0, 2).cumsum(2)[:, :, :-1]).sum(2)
    return np.where(rng.random(votes.shape) < 0.25, -1, votes), truth, confusion


def load_votes(name):
    crowd = load_crowd(f"label_only_{name}")
    return crowd.annotations, crowd.y


@pytest.mark.data
@pytest.mark.parametrize(("name", "expected"), [("bluebird", 0.898), ("rte", 0.9275), ("trec", 0.6998), ("dog", 0.84)])
def test_published_accuracy(name, expected):
    votes, truth = load_votes(name)
    known = truth >= 0
    accuracy = np.mean(DawidSkene(prior=0.01).fit_predict(votes)[known] == truth[known])
    assert accuracy >= expected - max(0.002, 1.001 / known.sum() if name == "bluebird" else 0)
    assert accuracy <= expected + 0.005


@pytest.mark.data
def test_one_pseudo_count_and_equal_classes_reach_the_tutorial_on_web():
    votes, truth = load_votes("web")
    known = truth >= 0
    accuracy = np.mean(DawidSkene(class_prior="uniform").fit_predict(votes)[known] == truth[known])
    assert 0.866 - 0.0005 <= accuracy <= 0.872 + 0.0005


def test_confusion_matrices_are_recovered():
    votes, truth, confusion = simulate(5000)
    consensus = DawidSkene().fit(votes)
    assert_allclose(consensus.confusion_matrices_, confusion, atol=0.06)
    assert np.mean(consensus.predict(votes) == truth) > np.mean(MajorityVote().fit_predict(votes) == truth)


def test_posterior_and_objective_by_brute_force():
    votes, _, _ = simulate(20, 3)
    consensus = DawidSkene(prior=0.5, tol=0, max_iter=300).fit(votes)
    confusion, prior = consensus.confusion_matrices_, consensus.class_prior_
    joint = np.array(
        [
            [prior[c] * np.prod([confusion[a, c, v] for a, v in enumerate(row) if v >= 0]) for c in range(3)]
            for row in votes
        ]
    )
    assert_allclose(consensus.predict_proba(votes), joint / joint.sum(1, keepdims=True), atol=1e-9)
    assert_allclose(consensus.score(votes), np.log(joint.sum(1)).sum())
    objective = np.log(joint.sum(1)).sum() + 0.5 * np.log(confusion).sum() + np.log(prior).sum()
    assert_allclose(consensus.history_[-1], objective)


@pytest.mark.parametrize("model", ["full", "confusion_vector", "one_coin"])
@pytest.mark.parametrize("inference", ["map", "variational"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_never_falls(model, inference):
    votes, _, _ = simulate(100)
    history = DawidSkene(model, inference=inference, tol=0, max_iter=50).fit(votes).history_
    assert np.diff(history).min() > -1e-8


def test_likelihoods_are_ordered_as_the_models_are_nested():
    votes, _, _ = simulate(300)
    models = ["one_coin", "confusion_vector", "full"]
    scores = [DawidSkene(model, prior=1e-9, class_prior="uniform").fit(votes).score(votes) for model in models]
    assert scores[0] <= scores[1] <= scores[2]


def test_variational_bound_is_exact_where_everything_is_known():
    """With the truth known, the evidence is that of Dirichlet-multinomial counts."""
    votes, truth, _ = simulate(30, 2, 2)
    consensus = DawidSkene(inference="variational", prior=0.7, class_prior="uniform").fit(votes, truth)
    expected = len(votes) * np.log(0.5)
    rng = np.random.default_rng(0)
    draws = rng.dirichlet([0.7, 0.7], (200_000, 2))
    for a in range(2):
        for c in range(2):
            counts = np.bincount(votes[(truth == c) & (votes[:, a] >= 0), a], minlength=2)
            expected += logsumexp(np.log(draws[:, 0]) @ counts) - np.log(len(draws))
    assert_allclose(consensus.history_[-1], expected, atol=0.05)


def test_two_coins_are_full_matrices_of_two_classes():
    votes, _, _ = simulate(n_classes=2)
    same = [DawidSkene(model).fit(votes).predict_proba(votes) for model in ("full", "two_coin", "confusion_vector")]
    assert_allclose(same[1], same[0])
    assert_allclose(same[2], same[0], atol=1e-9)
    with pytest.raises(ValueError, match="two_coin"):
        DawidSkene("two_coin").fit([[0, 1, 2]])


def test_known_truth_is_clamped():
    votes, truth, _ = simulate(60)
    known = np.where(np.arange(60) < 30, truth.astype(float), np.nan)
    consensus = DawidSkene(prior=0.25).fit(votes, truth)
    counts = np.zeros((6, 3, 3))
    for i, row in enumerate(votes):
        for a, answer in enumerate(row):
            if answer >= 0:
                counts[a, truth[i], answer] += 1
    counts += 0.25
    assert_allclose(consensus.confusion_matrices_, counts / counts.sum(2, keepdims=True))
    half = DawidSkene().fit(votes, known)
    assert half.score(votes, known) < half.score(votes)


def test_numbers_among_objects_are_labels():
    votes, truth, _ = simulate(60)
    expected = DawidSkene().fit(votes, truth).confusion_matrices_
    assert_allclose(DawidSkene().fit(votes, truth.astype(object)).confusion_matrices_, expected)


def test_weights_repeat_items_and_zero_removes_them():
    votes, _, _ = simulate(60)
    weight = np.arange(60) % 3
    weighed, repeated = (
        DawidSkene().fit(votes, sample_weight=weight),
        DawidSkene().fit(np.repeat(votes, weight, axis=0)),
    )
    assert_allclose(weighed.confusion_matrices_, repeated.confusion_matrices_)
    assert weighed.n_iter_ == repeated.n_iter_


def test_who_is_new_or_silent_answers_as_the_prior_has_it():
    votes, _, _ = simulate(60)
    table = pd.DataFrame(np.where(votes < 0, np.nan, votes), columns=list("abcdef"))
    consensus = DawidSkene("one_coin").fit(table.assign(silent=np.nan))
    assert_allclose(consensus.confusion_matrices_[-1], np.full((3, 3), 1 / 3))
    with_newcomer = table[["c", "a"]].assign(new=1.0)
    assert_allclose(consensus.predict_proba(with_newcomer), consensus.predict_proba(table[["a", "c"]]))
    empty = consensus.predict_proba(table.iloc[:1] * np.nan)
    assert_allclose(empty[0], consensus.class_prior_)


def test_items_without_votes_are_listed():
    consensus = DawidSkene().fit([[0, 1], [None, None], [1, 1]])
    assert consensus.items_without_votes_.tolist() == [1]
    named = DawidSkene().fit(pd.DataFrame([[0, 1], [None, None], [1, 1]], index=list("xyz")))
    assert named.items_without_votes_.tolist() == ["y"]


def test_batches_approach_the_whole():
    votes, truth, confusion = simulate(6000)
    online = DawidSkene()
    for batch in np.split(votes, 30):
        online.partial_fit(batch, classes=[0, 1, 2])
    assert online.n_batches_ == 30
    assert online.n_items_seen_ == 6000
    assert_allclose(online.confusion_matrices_, confusion, atol=0.12)
    whole = np.mean(DawidSkene().fit_predict(votes) == truth)
    assert np.mean(online.predict(votes) == truth) > whole - 0.01


def test_annotators_join_between_batches():
    votes, _, _ = simulate(600)
    table = pd.DataFrame(np.where(votes < 0, np.nan, votes), columns=list("abcdef"))
    online = DawidSkene().fit(table.iloc[:300, :4]).partial_fit(table.iloc[300:])
    assert online.annotators_.tolist() == list("abcdef")
    assert online.confusion_matrices_.shape == (6, 3, 3)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="no answer"):
        DawidSkene().fit([[None, None]])
    with pytest.raises(ValueError, match="use the same labels"):
        DawidSkene().fit([[0, 1]], ["cat"])
    with pytest.raises(ValueError, match="class_prior"):
        DawidSkene(class_prior=[0.5, 0.6]).fit([[0, 1]])
    with pytest.raises(ValueError, match="positive prior"):
        DawidSkene(prior=0, inference="variational").fit([[0, 1]])
    fitted = DawidSkene().fit([[0, 1], [1, 1]])
    with pytest.raises(ValueError, match="no classes"):
        fitted.score([[0, 1]], [2])
    with pytest.raises(ValueError, match="expecting 2 features"):
        fitted.predict([[0, 1, 1]])
