"""What follows from a roster is computed once, and is no part of a file."""

import pickle

import numpy as np
from _instances import make_crowd
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from sklearn_l2d import load
from sklearn_l2d._numerics._answer_model import answer_log_likelihood
from sklearn_l2d.deferral import PanelDeferral

CROWD = make_crowd()
TEAM = PanelDeferral(LogisticRegression(C=0.01), answers=1.0, cv=2, random_state=0)
TEAM.fit(CROWD.X, CROWD.y, annotations=CROWD.annotations)


def test_what_follows_from_a_roster_is_kept_and_follows_a_change():
    roster = TEAM._roster
    assert roster.answer_model is roster.answer_model
    n_experts, n_classes = roster.seen.shape
    for who in range(n_experts):
        for label in range(n_classes):
            told = answer_log_likelihood(roster.answer_model, np.array([who]), np.array([label]))[0]
            assert_array_equal(roster.all_answers[:, who, label], told)
    fewer = roster.without(roster.experts[:1])
    assert len(fewer.answer_model.seen) == fewer.all_answers.shape[1] == n_experts - 1
    assert_array_equal(fewer.all_answers, roster.all_answers[:, 1:])


def test_a_team_in_use_changes_as_a_fresh_one():
    team = pickle.loads(pickle.dumps(TEAM))
    team.decision_function(CROWD.X)
    gone = team.experts_[0]
    team.offboard([gone])
    fresh = pickle.loads(pickle.dumps(TEAM))
    fresh.offboard([gone])
    assert_array_equal(team.decision_function(CROWD.X), fresh.decision_function(CROWD.X))


def test_what_is_kept_is_in_no_file(tmp_path):
    TEAM.decision_function(CROWD.X)
    assert "answer_model" in vars(TEAM._roster)
    TEAM.save(tmp_path / "team")
    for again in (pickle.loads(pickle.dumps(TEAM)), load(tmp_path / "team")):
        assert not {"answer_model", "all_answers"} & set(vars(again._roster))
        assert_array_equal(again.decision_function(CROWD.X), TEAM.decision_function(CROWD.X))
