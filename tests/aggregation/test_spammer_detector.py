"""Spammers: published figures, planted ones, exact covariances and what is left without them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_l2d._numerics._answer_factors import answer_factors, two_means
from sklearn_l2d.aggregation import DawidSkene, MajorityVote, SpammerDetector
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.datasets import load_crowd


def simulate(n_items=1500, n_annotators=20, n_classes=4, share=0.3, random_state=0):
    """The tutorial's crowd: the first annotators are spammers, each with a habit of their own."""
    rng = np.random.default_rng(random_state)
    truth = rng.integers(n_classes, size=n_items)
    confusion = 0.6 * rng.dirichlet(np.ones(n_classes), (n_annotators, n_classes)) + 0.4 * np.eye(n_classes)
    n_spammers = round(share * n_annotators)
    confusion[:n_spammers] = rng.dirichlet(np.ones(n_classes), (n_spammers, 1))
    draws = rng.random((n_annotators, n_items, 1))
    return (draws > confusion[:, truth].cumsum(2)[:, :, :-1]).sum(2).T, truth, n_spammers


def accuracy(consensus, votes, truth):
    known = truth >= 0
    return np.mean(consensus.fit_predict(votes)[known] == truth[known])


@pytest.mark.data
@pytest.mark.parametrize("class_prior", ["uniform", "estimate"])
def test_bluebird_as_the_tutorial_has_it(class_prior):
    crowd = load_crowd("label_only_bluebird")
    detector = SpammerDetector().fit(crowd.annotations)
    assert (detector.labels_ == -1).sum() == 22
    honest = detector.remove_flagged(crowd.annotations)
    assert round(accuracy(MajorityVote(), honest, crowd.y), 3) == 0.852
    assert accuracy(DawidSkene(class_prior=class_prior), honest, crowd.y) == pytest.approx(0.899, abs=0.001)


@pytest.mark.data
def test_dog_keeps_its_accuracy():
    crowd = load_crowd("label_only_dog")
    for detector in (SpammerDetector(), SpammerDetector(12 / 109)):
        honest = detector.fit(crowd.annotations).remove_flagged(crowd.annotations)
        assert accuracy(DawidSkene(class_prior="uniform"), honest, crowd.y) >= 0.84


@pytest.mark.data
@pytest.mark.parametrize("class_prior", ["uniform", "estimate"])
def test_web_gains_and_no_item_is_left_without_votes(class_prior):
    crowd = load_crowd("label_only_web")
    votes = encode_votes(crowd.annotations)
    honest = SpammerDetector().fit(votes).remove_flagged(votes)
    assert_array_equal(np.unique(honest.item), np.unique(votes.item))
    consensus = DawidSkene(class_prior=class_prior)
    assert accuracy(consensus, honest, crowd.y) > accuracy(consensus, votes, crowd.y) + 0.003


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_planted_spammers_are_found_and_nobody_else(share):
    votes, _, n_spammers = simulate(share=share)
    assert_array_equal(SpammerDetector().fit_predict(votes) == -1, np.arange(20) < n_spammers)


def test_nobody_is_flagged_where_everybody_is_honest():
    votes, _, _ = simulate(share=0)
    assert SpammerDetector().fit_predict(votes).tolist() == [1] * 20


def test_malicious_annotators_are_no_spammers():
    votes, _, n_spammers = simulate()
    votes[:, -3:] = (votes[:, -3:] + 1) % 4
    assert_array_equal(SpammerDetector().fit_predict(votes) == -1, np.arange(20) < n_spammers)


def test_names_of_the_classes_do_not_matter():
    votes, _, _ = simulate(300)
    names = np.array(["d", "a", "c", "b"])[votes]
    assert_allclose(SpammerDetector().fit(names).scores_, SpammerDetector().fit(votes).scores_, atol=1e-3)


def test_factors_forecast_the_covariances_of_a_population():
    """Items in exact proportion to the probabilities of all answers: the fit leaves nothing but its ridge."""
    prior, confusion = np.array([0.5, 0.3, 0.2]), np.array([[6, 2, 2], [1, 8, 1], [3, 1, 6]]) / 10
    answers = np.stack(np.meshgrid(*[np.arange(3)] * 4, indexing="ij"), -1).reshape(-1, 4)
    proba = (prior * np.prod([confusion[:, answers[:, a]].T for a in range(4)], axis=0)).sum(1)
    counts = np.rint(proba * 100_000).astype(int)
    assert_allclose(counts, proba * 100_000, atol=1e-6)
    factor = answer_factors(encode_votes(np.repeat(answers, counts, axis=0)), 1000, 1e-9).factor
    expected = confusion.T @ (np.diag(prior) - np.outer(prior, prior)) @ confusion
    for a in range(4):
        for b in range(a):
            assert_allclose(factor[a] @ factor[b].T, expected, atol=1e-3)


def test_scores_of_a_spammer_are_noise():
    votes, _, n_spammers = simulate(4000)
    factors = answer_factors(encode_votes(votes), 500, 1e-4)
    squares = (factors.factor**2).sum((1, 2))
    assert_allclose(squares[:n_spammers].sum() / factors.noise[:n_spammers].sum(), 1, atol=0.5)
    assert (squares[n_spammers:] > 20 * factors.noise[n_spammers:]).all()


def test_an_item_keeps_the_best_of_its_answers():
    votes, _, _ = simulate(200)
    wide = pd.DataFrame(votes, columns=[f"p{a}" for a in range(20)]).astype(float)
    wide.loc[0, [f"p{a}" for a in range(6, 20)]] = np.nan
    detector = SpammerDetector().fit(wide)
    assert set(detector.annotators_[detector.labels_ == -1]) == {f"p{a}" for a in range(6)}
    honest = detector.remove_flagged(wide)
    best = detector.annotators_[detector.scores_[:6].argmax()]
    assert honest.annotators[honest.annotator[honest.item == 0]].tolist() == [best]
    assert (honest.annotator[honest.item > 0] != list(honest.annotators).index(best)).all()
    assert len(honest.annotators) == 15


def test_annotators_are_matched_by_name_and_new_ones_stay():
    votes, _, _ = simulate(200)
    wide = pd.DataFrame(votes, columns=[f"p{a}" for a in range(20)])
    detector = SpammerDetector().fit(wide)
    honest = detector.remove_flagged(wide[["p9", "p0", "p8"]].assign(new=1))
    assert honest.annotators[np.unique(honest.annotator)].tolist() == ["p8", "p9", "new"]
    with pytest.raises(ValueError, match="expecting 20 features"):
        detector.remove_flagged(votes[:, :4])


def test_the_share_that_is_flagged_can_be_given():
    votes, _, _ = simulate(300)
    detector = SpammerDetector(0.2).fit(votes)
    assert set(np.flatnonzero(detector.labels_ == -1)) == set(np.argsort(detector.scores_)[:4])


def test_who_answered_little_is_not_flagged():
    votes, _, _ = simulate(300)
    votes = np.where(np.arange(20) == 0, np.where(np.arange(300)[:, None] < 4, votes, -1), votes)
    detector = SpammerDetector().fit(votes)
    assert np.isnan(detector.scores_[0])
    assert detector.labels_[0] == 1


def test_people_without_common_items_cannot_be_judged():
    with pytest.raises(ValueError, match="min_answers=5"):
        SpammerDetector().fit([[0, -1], [-1, 1], [0, -1]])
    with pytest.raises(ValueError, match="minimum of 2"):
        SpammerDetector().fit([[0], [1]])


def test_two_means_by_brute_force():
    rng = np.random.default_rng(0)
    values = np.append(rng.normal(0, 1, 12), rng.normal(3, 1, 8))
    splits = [values >= cut for cut in np.sort(values)[1:]]
    loss = [sum(np.var(part) * len(part) for part in (values[up], values[~up])) for up in splits]
    assert_array_equal(two_means(values), splits[np.argmin(loss)])
    assert two_means(np.ones(3)).all()
    assert two_means(np.ones(1)).all()
