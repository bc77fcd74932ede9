"""Communities with shared confusion matrices: planted ones, brute force and limits."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from sklearn_l2d.aggregation import CommunityDawidSkene, DawidSkene
from sklearn_l2d.annotations import Votes

COMMUNITIES = np.array(
    [
        [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]],
        [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]],
        [[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8]],
    ]
)


def simulate(n_items=500, n_annotators=300, per_item=5, random_state=0):
    """Votes of annotators of three kinds, who answer a handful of items each."""
    rng = np.random.default_rng(random_state)
    truth, kind = rng.integers(3, size=n_items), rng.integers(3, size=n_annotators)
    who = np.array([rng.choice(n_annotators, per_item, replace=False) for _ in range(n_items)])
    proba = COMMUNITIES[kind[who], truth[:, None]]
    label = (rng.random((n_items, per_item, 1)) > proba.cumsum(2)[:, :, :-1]).sum(2)
    item = np.repeat(np.arange(n_items), per_item)
    return Votes(item, who.ravel(), label.ravel(), n_items, [0, 1, 2], np.arange(n_annotators)), truth, kind


@pytest.mark.parametrize("assignment", ["soft", "hard"])
def test_planted_communities_are_found(assignment):
    votes, truth, kind = simulate(3000, 60)
    consensus = CommunityDawidSkene(3, assignment=assignment).fit(votes)
    assert adjusted_rand_score(kind, consensus.memberships_.argmax(1)) == 1
    place = [consensus.memberships_[kind == k].sum(0).argmax() for k in range(3)]
    assert_allclose(consensus.community_confusion_matrices_[place], COMMUNITIES, atol=0.05)
    assert np.mean(consensus.predict(votes) == truth) >= np.mean(DawidSkene().fit_predict(votes) == truth)


@pytest.mark.parametrize("random_state", [0, 1, 2])
def test_few_answers_each_are_enough_for_communities_but_not_for_everybody(random_state):
    votes, truth, _ = simulate(random_state=random_state)
    communities, plain = CommunityDawidSkene(3).fit(votes), DawidSkene().fit(votes)
    assert np.mean(communities.predict(votes) == truth) > np.mean(plain.predict(votes) == truth) + 0.01


def test_posterior_and_objective_by_brute_force():
    votes, _, _ = simulate(25, 4, 3)
    consensus = CommunityDawidSkene(2, prior=0.5, tol=0, max_iter=500).fit(votes)
    membership, matrices = consensus.memberships_, consensus.community_confusion_matrices_
    joint = np.tile(np.log(consensus.class_prior_), (25, 1))
    for i, a, answer in zip(votes.item, votes.annotator, votes.label, strict=True):
        joint[i] += sum(membership[a, g] * np.log(matrices[g, :, answer]) for g in range(2))
    proba = np.exp(joint) / np.exp(joint).sum(1, keepdims=True)
    assert_allclose(consensus.predict_proba(votes), proba, atol=1e-9)
    evidence = np.log(np.exp(joint).sum(1)).sum()
    assert_allclose(consensus.score(votes), evidence)
    share = consensus.community_shares_
    bound = sum(m * np.log(share[g] / m) for row in membership for g, m in enumerate(row) if m > 0)
    prior = 0.5 * np.log(matrices).sum() + np.log(share).sum() + np.log(consensus.class_prior_).sum()
    assert_allclose(consensus.history_[-1], evidence + bound + prior)
    assert_allclose(consensus.confusion_matrices_, np.einsum("mg,gcd->mcd", membership, matrices))


def test_one_community_is_one_matrix_of_all_answers():
    votes, truth, _ = simulate(100, 10, 4)
    consensus = CommunityDawidSkene(1, prior=0.5).fit(votes, truth)
    counts = np.full((3, 3), 0.5)
    np.add.at(counts, (truth[votes.item], votes.label), 1)
    assert_allclose(consensus.confusion_matrices_, np.tile(counts / counts.sum(1, keepdims=True), (10, 1, 1)))


@pytest.mark.parametrize("assignment", ["soft", "hard"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_never_falls(assignment):
    votes, _, _ = simulate(100, 30)
    history = CommunityDawidSkene(3, assignment=assignment, tol=0, max_iter=50).fit(votes).history_
    assert np.diff(history).min() > -1e-8


def test_who_is_new_or_silent_answers_as_a_draw_from_the_communities():
    votes, _, _ = simulate(100, 6, 4)
    table = pd.DataFrame(votes.to_codes().astype(float), columns=list("abcdef")).replace(-1, np.nan)
    consensus = CommunityDawidSkene(2).fit(table.assign(silent=np.nan))
    expected = np.einsum("g,gcd->cd", consensus.community_shares_, consensus.community_confusion_matrices_)
    assert_allclose(consensus.confusion_matrices_[-1], expected)
    only = pd.DataFrame({"new": [1.0]})
    odds = consensus.class_prior_ * expected[:, 1]
    assert_allclose(consensus.predict_proba(only)[0], odds / odds.sum())
    assert_array_equal(consensus.memberships_.shape, (7, 2))
