"""Colluders: the tutorial's synthetic crowd, above and below its condition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_l2d._numerics._pair_moments import complete, pair_agreement
from sklearn_l2d.aggregation import ColluderDetector, DawidSkene
from sklearn_l2d.annotations import encode_votes


def simulate(n_items=2000, n_annotators=60, share=0.3, p_corr=0.6, follow=0.95, random_state=0):
    """Three classes; the first annotators tell the same wrong class of a share `p_corr` of the items."""
    rng = np.random.default_rng(random_state)
    truth = rng.integers(3, size=n_items)
    confusion = rng.dirichlet(np.ones(3), (n_annotators, 3)) / 2 + np.eye(3) / 2
    draws = rng.random((n_annotators, n_items, 1))
    votes = (draws > confusion[:, truth].cumsum(2)[:, :, :-1]).sum(2).T
    plan = np.where(rng.random(n_items) < p_corr, (truth + rng.integers(1, 3, n_items)) % 3, truth)
    colluders = np.arange(n_annotators) < round(share * n_annotators)
    follows = (rng.random(votes.shape) < follow) & colluders
    return np.where(follows, plan[:, None], votes), truth, colluders


@pytest.mark.parametrize(("share", "p_corr"), [(0.1, 0.3), (0.1, 0.9), (0.45, 0.3), (0.45, 0.9)])
def test_the_planted_set_is_found(share, p_corr):
    votes, _, colluders = simulate(share=share, p_corr=p_corr)
    assert_array_equal(ColluderDetector().fit_predict(votes) == -1, colluders)


@pytest.mark.parametrize("random_state", [0, 1])
def test_nobody_is_flagged_without_colluders(random_state):
    votes, _, _ = simulate(share=0, random_state=random_state)
    assert (ColluderDetector().fit_predict(votes) == 1).all()


def test_missing_answers():
    votes, _, colluders = simulate()
    votes[np.random.default_rng(0).random(votes.shape) < 0.7] = -1
    assert_array_equal(ColluderDetector().fit_predict(votes) == -1, colluders)


def test_a_majority_of_colluders_needs_somebody_trusted():
    votes, _, colluders = simulate(share=0.8)
    with pytest.raises(ValueError, match="trusted names"):
        ColluderDetector(["ann"]).fit(votes)
    assert not (ColluderDetector().fit_predict(votes) == -1)[colluders].any()
    assert_array_equal(ColluderDetector(trusted=[59]).fit_predict(votes) == -1, colluders)


def test_too_few_honest_annotators_are_told():
    """Nine honest ones for three classes: colluders pass for honest, and a warning tells it where one is trusted."""
    votes, _, colluders = simulate(share=0.85)
    assert (~colluders).sum() == 9
    assert not (ColluderDetector().fit_predict(votes) == -1)[colluders].any()
    with pytest.warns(UserWarning, match="need more than 9 honest ones"):
        ColluderDetector(trusted=[59]).fit(votes)


def test_colluders_hurt_and_the_rest_does_not_miss_them():
    votes, truth, _ = simulate(share=0.4, p_corr=0.9)
    honest = ColluderDetector().fit(votes).remove_flagged(votes)
    assert np.mean(DawidSkene().fit_predict(votes) == truth) < 0.3
    assert np.mean(DawidSkene().fit_predict(honest) == truth) > 0.98


def test_agreement_by_hand():
    votes = [[0, 0, -1], [1, 0, 1], [2, 2, 2], [-1, 1, 0]]
    common, alike = pair_agreement(encode_votes(votes))
    assert common.tolist() == [[3, 3, 2], [3, 4, 3], [2, 3, 3]]
    assert alike.tolist() == [[3, 2, 2], [2, 4, 1], [2, 1, 3]]


def test_a_low_rank_table_is_completed():
    rng = np.random.default_rng(0)
    half = rng.random((12, 2))
    known = ~np.eye(12, dtype=bool)
    known[:4, :4] = False
    factor, n_iter, converged = complete(half @ half.T, known, 2, 5000, 1e-9)
    assert converged
    assert n_iter < 5000
    assert_allclose(factor @ factor.T, half @ half.T, atol=1e-5)
