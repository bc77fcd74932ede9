"""LECODU: its degenerate cases equal other estimators, and the order of people does not matter."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.aggregation import MajorityVote
from sklearn_l2d.deferral import LECODUDeferral, RandomExpertDeferral

RNG = np.random.default_rng(0)
N, M = 600, 5
Y = RNG.integers(3, size=N)
X = RNG.normal(size=(N, 4)) + 1.2 * np.eye(3, 4)[Y]
ANSWERS = np.where(RNG.random((N, M)) < 0.7, Y[:, None], (Y[:, None] + RNG.integers(1, 3, size=(N, M))) % 3)
TRAIN, TEST = slice(None, 200), slice(200, None)
FAST = {"classifier": LogisticRegression(C=0.1), "max_epochs": 40, "random_state": 0}


def fitted(annotations=ANSWERS, y=Y, **params):
    given = {"X": X[TRAIN], "y": y[TRAIN], "annotations": annotations[TRAIN], "X_unlabeled": X[TEST]}
    return LECODUDeferral(**(FAST | params)).fit(**given)


@pytest.fixture(scope="module")
def team():
    return fitted(answers=1.5, max_epochs=20)


def test_without_a_cost_it_is_at_least_the_vote_of_everybody():
    team = fitted(consultation_cost=0.0)
    vote = MajorityVote(random_state=0).fit(ANSWERS[TEST]).predict(ANSWERS[TEST])
    assert team.score(X[TEST], Y[TEST], ANSWERS[TEST]) >= (vote == Y[TEST]).mean()


def test_where_answers_are_too_dear_it_is_the_classifier_alone():
    team = fitted(consultation_cost=100.0, max_epochs=5)
    assert team.answers_ == 0
    assert team.coverage_ == 1
    assert_array_equal(team.replay(X[TEST], ANSWERS[TEST]).labels, team.predict(X[TEST]))
    assert not team.consult(X[TEST]).any()


def test_one_person_who_does_not_join_the_classifier_is_deferral_to_anybody():
    # half of the items say what they are, the others nothing
    easy = RNG.random(N) < 0.5
    items = 4 * np.eye(3)[Y] * easy[:, None] + RNG.normal(scale=0.02, size=(N, 3))
    clf = FrozenEstimator(LogisticRegression(C=10).fit(items, Y))
    given = {"X": items[TRAIN], "y": Y[TRAIN], "annotations": ANSWERS[TRAIN], "X_unlabeled": items[TEST]}
    one = LECODUDeferral(**(FAST | {"classifier": clf}), max_answers=1, complement=False, consultation_cost=0.0)
    one.fit(**given)
    gate = RandomExpertDeferral(classifier=clf, random_state=0).fit(**given)
    assert_array_equal(one.predict_deferral(items[TEST]), gate.predict_deferral(items[TEST]))
    assert_array_equal(one.assign_experts(items[TEST]), gate.assign_experts(items[TEST]))
    assert_array_equal(one.predict_deferral(items[TEST]) == -1, easy[TEST])
    asked = one.replay(items[TEST], ANSWERS[TEST])
    assert_array_equal(asked.labels, gate.predict_team(items[TEST], ANSWERS[TEST]))


def test_the_order_of_people_does_not_matter(team):
    shuffled = RNG.permuted(ANSWERS[TEST], axis=1)
    proba = team.predict_team_proba(X[TEST], ANSWERS[TEST])
    assert_allclose(team.predict_team_proba(X[TEST], shuffled), proba, rtol=1e-9)
    assert_allclose(proba.sum(1), 1)
    nobody = np.full_like(ANSWERS[TEST], -1)
    assert_allclose(team.predict_team_proba(X[TEST], nobody), team.predict_team_proba(X[TEST]))


def test_nothing_is_drawn_when_it_is_used(team):
    asked = team.consult(X[TEST])
    assert_array_equal(team.consult(X[TEST]), asked)
    alone = [team.replay(X[i : i + 1], ANSWERS[i : i + 1]) for i in range(200, 240)]
    together = team.replay(X[200:240], ANSWERS[200:240])
    assert_array_equal([replay.labels[0] for replay in alone], together.labels)
    assert_array_equal(np.vstack([team.consult(X[i : i + 1]) for i in range(200, 240)]), asked[:40])
    assert_array_equal(np.vstack([replay.asked for replay in alone]), together.asked)


def test_people_share_the_work_and_take_every_place(team):
    asked = team.replay(X[TEST], ANSWERS[TEST]).asked
    for place in range(2):
        counts = np.bincount(asked[:, place][asked[:, place] >= 0], minlength=M)
        assert counts.min() > 0.5 * counts.mean()
    assert team.answers_ == pytest.approx(1.5, abs=0.02)
    assert asked.shape[1] == M


def test_only_those_who_answered_are_among_the_first(team):
    given = np.where(RNG.random(ANSWERS[TEST].shape) < 0.4, ANSWERS[TEST], -1)
    replay = team.replay(X[TEST], given)
    row, place = np.nonzero(replay.asked >= 0)
    assert (given[row, replay.asked[row, place]] >= 0).all()
    heard = np.full_like(given, -1)
    heard[row, replay.asked[row, place]] = given[row, replay.asked[row, place]]
    assert_allclose(team.predict_team_proba(X[TEST], heard), replay.proba)


def test_it_learns_from_items_that_few_answered():
    given = np.where(RNG.random(ANSWERS.shape) < 0.4, ANSWERS, -1)
    team = fitted(given, answers=1.0)
    labels = team.replay(X[TEST], ANSWERS[TEST]).labels
    assert (labels == Y[TEST]).mean() > (team.predict(X[TEST]) == Y[TEST]).mean() + 0.03


def test_the_consensus_takes_the_place_of_the_truth():
    # y is wrong everywhere: only what people agree on is right
    frozen = FrozenEstimator(LogisticRegression(C=0.1).fit(X[TEST], Y[TEST]))
    sure = np.where(RNG.random((N, M)) < 0.9, Y[:, None], (Y[:, None] + 1) % 3)
    wrong = (Y + 1) % 3
    accuracy = {
        labels: fitted(sure, wrong, classifier=frozen, labels=labels, consultation_cost=0.0).score(
            X[TEST], Y[TEST], sure[TEST]
        )
        for labels in ("truth", "crowdlab")
    }
    assert accuracy["crowdlab"] > 0.95
    assert accuracy["truth"] < 0.5


def test_newcomers_join_without_a_label_and_others_leave():
    team = fitted(answers=1.0, max_epochs=5)
    assert team.onboard(["new", "newer"]) is team
    assert team.targets_.tolist() == ["anybody"]
    assert (team.consult(X[TEST]).sum(0) > 0).all()
    team.offboard([0, 1, 2, "new", "newer"])
    assert team.experts_.tolist() == [3, 4]
    assert team.consult(X[TEST]).sum(1).max() <= 2
    team.onboard("judged", X[TEST], ANSWERS[TEST, :1], Y[TEST])
    assert team.predict_expert_correctness(X[TEST]).shape == (N - 200, 3)


def test_no_more_answers_than_any_item_had():
    given = ANSWERS.copy()
    given[:, 2:] = -1
    with pytest.warns(UserWarning, match="have no annotation"):
        team = fitted(given, consultation_cost=0.0, max_epochs=5)
    assert team.consult(X[TEST]).sum(1).max() <= 2


def test_bad_settings_are_refused():
    lonely = np.where(np.arange(M) == np.arange(N)[:, None] % M, ANSWERS, -1)
    with pytest.raises(ValueError, match="labels='crowdlab' judges people by each other"):
        fitted(lonely, labels="crowdlab")
    with pytest.raises(ValueError, match="answers=6 per item"):
        fitted(answers=6.0)
    with pytest.raises(ValueError, match="fusion_layer_sizes"):
        fitted(fusion_layer_sizes=(0,))
    with pytest.raises(ValueError, match="consultation_cost"):
        fitted(consultation_cost=-1.0)
    team = LECODUDeferral(**FAST).fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(ValueError, match="fitted without experts"):
        team.onboard("somebody")
