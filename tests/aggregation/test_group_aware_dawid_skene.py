"""Dependent annotators: published figure, brute force, limits, copies and planted groups."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from sklearn_l2d.aggregation import DawidSkene, GroupAwareDawidSkene, MajorityVote
from sklearn_l2d.datasets import load_crowd


def draw(proba, rng):
    """Labels with probabilities on the last axis."""
    return (rng.random((*proba.shape[:-1], 1)) > proba.cumsum(-1)[..., :-1]).sum(-1)


def simulate(n_items=800, n_annotators=24, n_classes=3, n_groups=5, missing=0.2, random_state=0):
    """Votes of annotators who see the answer of their group, not the item."""
    rng = np.random.default_rng(random_state)
    truth = rng.integers(n_classes, size=n_items)
    groups = rng.permutation(np.arange(n_annotators) % n_groups)
    group = 0.5 * rng.dirichlet(np.ones(n_classes), (n_groups, n_classes)) + 0.5 * np.eye(n_classes)
    member = 0.3 * rng.dirichlet(np.ones(n_classes), (n_annotators, n_classes)) + 0.7 * np.eye(n_classes)
    hidden = draw(group[:, truth], rng)
    votes = draw(member[np.arange(n_annotators)[:, None], hidden[groups]], rng).T
    return np.where(rng.random(votes.shape) < missing, -1, votes), truth, groups


@pytest.mark.data
def test_bluebird_with_seven_groups_within_one_item():
    crowd = load_crowd("label_only_bluebird")
    consensus = GroupAwareDawidSkene(7, prior=0.01, class_prior="uniform").fit(crowd.annotations)
    assert len(consensus.group_confusion_matrices_) == 7
    assert np.mean(consensus.predict(crowd.annotations) == crowd.y) >= 0.916 - 0.01


@pytest.mark.parametrize("n_groups", [None, 5])
@pytest.mark.parametrize("random_state", [0, 1, 2])
def test_planted_groups_are_found_and_used(n_groups, random_state):
    votes, truth, groups = simulate(random_state=random_state)
    consensus = GroupAwareDawidSkene(n_groups).fit(votes)
    assert adjusted_rand_score(groups, consensus.groups_) == 1
    accuracy = np.mean(consensus.predict(votes) == truth)
    assert accuracy > np.mean(DawidSkene().fit_predict(votes) == truth)
    assert accuracy > np.mean(MajorityVote().fit_predict(votes) == truth)


def test_no_groups_without_dependence():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=500)
    confusion = 0.6 * rng.dirichlet(np.ones(3), (15, 3)) + 0.4 * np.eye(3)
    votes = draw(confusion[:, truth], rng).T
    consensus = GroupAwareDawidSkene(prior=1.0).fit(votes)
    assert_array_equal(consensus.groups_, np.arange(15))
    assert_allclose(consensus.predict_proba(votes), DawidSkene().fit(votes).predict_proba(votes))


def test_groups_of_one_are_dawid_and_skene():
    votes, _, _ = simulate(200, 8)
    consensus, plain = GroupAwareDawidSkene(8, prior=1.0).fit(votes), DawidSkene().fit(votes)
    assert_allclose(consensus.confusion_matrices_, plain.confusion_matrices_)
    assert_allclose(consensus.group_confusion_matrices_, plain.confusion_matrices_)
    assert_allclose(consensus.history_, plain.history_)


def test_one_group_has_one_hidden_answer():
    """Who shares one hidden answer is a crowd of Dawid and Skene with this answer for the truth."""
    votes, _, _ = simulate(400, 8, n_groups=1)
    consensus = GroupAwareDawidSkene(groups=np.zeros(8), prior=0.01, max_iter=500).fit(votes)
    plain = DawidSkene(prior=0.01).fit(votes)
    hidden = consensus.class_prior_ @ consensus.group_confusion_matrices_[0]
    assert_allclose(hidden, plain.class_prior_, atol=0.02)
    assert_allclose(consensus.member_confusion_matrices_, plain.confusion_matrices_, atol=0.02)
    assert_allclose(consensus.score(votes), plain.score(votes), rtol=1e-3)


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("random_state", [0, 1, 2])
def test_copies_of_an_annotator_change_nothing_but_mislead_plain_dawid_and_skene(random_state, missing):
    rng = np.random.default_rng(random_state)
    truth = rng.integers(3, size=600)
    accuracy = np.array([0.8, 0.8, 0.75, 0.75, 0.5])
    votes = draw(accuracy[:, None, None] * np.eye(3)[truth] + (1 - accuracy[:, None, None]) / 3, rng).T
    votes = np.where(rng.random(votes.shape) < missing, -1, votes)
    copied = np.hstack([votes, np.repeat(votes[:, -1:], 4, axis=1)])
    once, five = GroupAwareDawidSkene().fit(votes), GroupAwareDawidSkene().fit(copied)
    assert_array_equal(five.groups_, [0, 1, 2, 3, 4, 4, 4, 4, 4])
    assert_array_equal(five.predict(copied), once.predict(votes))
    assert_allclose(five.predict_proba(copied), once.predict_proba(votes), atol=1e-9)
    plain, misled = (np.mean(DawidSkene().fit_predict(table) == truth) for table in (votes, copied))
    assert misled < plain - 0.1


@pytest.mark.data
@pytest.mark.parametrize("position", [0, 20, 38])
def test_copies_of_real_people_change_no_label(position):
    votes = load_crowd("label_only_bluebird").annotations
    copied = np.hstack([votes, np.repeat(votes[:, [position]], 4, axis=1)])
    once, five = GroupAwareDawidSkene().fit(votes), GroupAwareDawidSkene().fit(copied)
    assert_array_equal(five.predict(copied), once.predict(votes))
    assert_allclose(five.predict_proba(copied), once.predict_proba(votes), atol=1e-9)


def test_posterior_and_objective_by_brute_force():
    votes, _, _ = simulate(30, 5, n_groups=2)
    groups = np.array([0, 1, 0, 2, 1])
    consensus = GroupAwareDawidSkene(groups=groups, prior=0.5, tol=0, max_iter=400).fit(votes)
    joint = np.tile(consensus.class_prior_, (30, 1))
    for g in range(3):
        for i in range(30):
            heard = np.ones(3)
            for a in np.flatnonzero((groups == g) & (votes[i] >= 0)):
                heard *= consensus.member_confusion_matrices_[a, :, votes[i, a]]
            joint[i] *= consensus.group_confusion_matrices_[g] @ heard
    assert_allclose(consensus.predict_proba(votes), joint / joint.sum(1, keepdims=True), atol=1e-9)
    evidence = np.log(joint.sum(1)).sum()
    assert_allclose(consensus.score(votes), evidence)
    learnt = [consensus.group_confusion_matrices_, consensus.member_confusion_matrices_[[0, 1, 2, 4]]]
    prior = 0.5 * sum(np.log(matrices).sum() for matrices in learnt) + np.log(consensus.class_prior_).sum()
    assert_allclose(consensus.history_[-1], evidence + prior)
    expected = consensus.group_confusion_matrices_[groups] @ consensus.member_confusion_matrices_
    assert_allclose(consensus.confusion_matrices_, expected)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_never_falls():
    votes, truth, groups = simulate(100)
    known = np.where(np.arange(100) < 20, truth.astype(float), np.nan)
    consensus = GroupAwareDawidSkene(groups=groups, tol=0, max_iter=60).fit(votes, known)
    assert np.diff(consensus.history_).min() > -1e-8


def test_groups_by_name():
    votes, _, _ = simulate(100, 6, n_groups=2)
    names = list("fedcba")
    table = pd.DataFrame(np.where(votes < 0, np.nan, votes), columns=names)
    in_order = GroupAwareDawidSkene(groups=["x", "y", "x", "u", "v", "w"]).fit(table)
    mapping = {"e": 2, "d": 1, "f": 1}
    for given in (mapping, pd.Series(mapping)):
        consensus = GroupAwareDawidSkene(groups=given).fit(table)
        assert_array_equal(consensus.groups_, [0, 1, 0, 2, 3, 4])
        assert_allclose(consensus.predict_proba(table), in_order.predict_proba(table))
    with pytest.raises(ValueError, match="who are no annotators"):
        GroupAwareDawidSkene(groups={"z": 0}).fit(table)
    with pytest.raises(ValueError, match="groups has shape"):
        GroupAwareDawidSkene(groups=[0, 1]).fit(table)


def test_who_is_new_answers_alone():
    votes, _, _ = simulate(100, 6, n_groups=2)
    table = pd.DataFrame(np.where(votes < 0, np.nan, votes), columns=list("abcdef"))
    consensus = GroupAwareDawidSkene(2).fit(table)
    assert_allclose(consensus.predict_proba(table.assign(new=1.0)), consensus.predict_proba(table))
    assert_allclose(consensus.predict_proba(table.iloc[:1] * np.nan)[0], consensus.class_prior_)
