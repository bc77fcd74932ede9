"""Experts who come and go, who is asked, and the tables of a shift."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from _instances import make_crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_l2d._numerics import _answers, _matching
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import ClusterDeferral, ConfidenceDeferral

LDA = {"hidden_layer_sizes": (8,), "max_epochs": 8, "n_anchor_epochs": 2, "n_consensus_epochs": 4, "random_state": 0}


def make_answers(codes, experts, seed):
    """Answers of experts "low ..." who know classes 0 and 1, and "high ..." who know class 2."""
    rng = np.random.default_rng(seed)
    knows = np.where((codes == 2)[:, None], [e.startswith("high") for e in experts], [e[0] == "l" for e in experts])
    right = rng.random(knows.shape) < np.where(knows, 0.95, 0.25)
    wrong = (codes[:, None] + rng.integers(1, 3, size=knows.shape)) % 3
    return pd.DataFrame(np.where(right, codes[:, None], wrong), columns=experts)


def make_items(n, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=n)
    return rng.normal(size=(n, 4)) + 1.5 * np.eye(3, 4)[codes], codes


NAMES = ["low a", "low b", "high c", "high d"]
X, Y = make_items(240, 0)
NEW_X, NEW_Y = make_items(400, 1)
ANSWERS, NEW_ANSWERS = make_answers(Y, NAMES, 2), make_answers(NEW_Y, NAMES, 3)
OMEGA = np.repeat(np.eye(2), 2, axis=0)
THREE_ERRORS = 3 * np.sqrt(0.2 * 0.8 / 400)  # of the share of 400 drawn items where a fifth is expected


@pytest.fixture(scope="module")
def classifier():
    return FrozenEstimator(LogisticRegression(C=0.05).fit(X[:40], Y[:40]))


@pytest.fixture
def model(fitted):
    """A copy that a test may change."""
    return pickle.loads(fitted)


@pytest.fixture(scope="module")
def make(classifier):
    settings = {"grouping": "profile", "n_groups": 2, "classifier": classifier, "coverage": 0.4, "max_epochs": 10}
    return lambda **params: ClusterDeferral(
        **(settings | {"clusterer": AnnotatorLDA(2, **LDA), "batch_size": 32, "random_state": 0} | params)
    )


@pytest.fixture(scope="module")
def fitted(make):
    return pickle.dumps(make().fit(X, Y, ANSWERS, X_unlabeled=NEW_X))


@pytest.fixture
def bounded(make):
    """Everybody serves at most a fifth of the items."""
    return make(clusterer=None, omega=OMEGA, grouping="hard", workload=(0, 0.2), max_epochs=2).fit(
        X, Y, ANSWERS, X_unlabeled=NEW_X
    )


def group_of(model, expert):
    return int(model.omega_[list(model.experts_).index(expert)].argmax())


# ------------------------------------------------------------------------------------------ onboard, offboard


@pytest.mark.parametrize("known", [True, False])
def test_newcomers_join_those_they_are_like(model, known):
    experts = ["high n", "low n"]
    answers = make_answers(NEW_Y, experts, 5)
    gate = model.gate_
    model.onboard(experts, NEW_X, answers, NEW_Y if known else None)
    assert model.gate_ is gate
    assert model.experts_.tolist() == [*NAMES, *experts]
    assert group_of(model, "high n") == group_of(model, "high c")
    assert group_of(model, "low n") == group_of(model, "low a") != group_of(model, "high n")
    assert_allclose(model.selection_.sum(1), 1)
    assert_allclose(model.workload_.sum(), 1 - model.coverage_)
    everybody = NEW_ANSWERS.join(answers)
    assert model.score(NEW_X, NEW_Y, everybody[sorted(everybody)]) == model.score(NEW_X, NEW_Y, everybody)


def test_columns_of_newcomers_are_matched_by_name(model):
    answers = make_answers(NEW_Y, ["high n", "low n"], 5)
    one = pickle.loads(pickle.dumps(model)).onboard(["low n", "high n"], NEW_X, answers, NEW_Y)
    assert group_of(one, "high n") == group_of(one, "high c")
    other = model.onboard(["high n", "low n"], NEW_X, answers.to_numpy(), NEW_Y)
    assert group_of(other, "high n") == group_of(one, "high n")


def test_a_known_expert_is_placed_anew(model):
    assert group_of(model, "low a") != group_of(model, "high c")
    model.onboard("low a", NEW_X, make_answers(NEW_Y, ["high n"], 5).to_numpy(), NEW_Y)
    assert sorted(model.experts_) == sorted(NAMES)
    assert group_of(model, "low a") == group_of(model, "high c")
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.assign_experts(NEW_X), model.assign_experts(NEW_X))


def test_onboard_refuses_what_does_not_go_together(model, bounded):
    before = pickle.dumps(model)
    one = make_answers(NEW_Y, ["e"], 5)
    for call, message in [
        (lambda: model.onboard(["e", "f"], NEW_X, one), r"annotations has shape \(400, 1\)"),
        (lambda: model.onboard(["e"], NEW_X[1:], one), "annotations has 400 rows, but X has 399"),
        (lambda: model.onboard(["e", "e"], NEW_X, one.assign(f=0)), "a name twice"),
        (lambda: model.onboard(["e"], NEW_X, one, NEW_Y[1:]), "inconsistent"),
        (lambda: model.onboard(["e"], NEW_X, one, NEW_Y + 5), "y holds labels"),
        (lambda: model.onboard(["e"], NEW_X, one + 5), "not in classes"),
        (lambda: model.onboard(["e"], NEW_X[:, :2], one), "features"),
        (lambda: model.offboard(["high c", "zoe"]), r"experts \['zoe'\] are not on the roster"),
        (lambda: bounded.onboard(["e"], NEW_X, one, NEW_Y), "ready omega"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    assert pickle.dumps(model) == before


def test_offboarding_everybody_of_a_group_shuts_it(model):
    group, shares = group_of(model, "high c"), model.target_shares_
    assert np.mean(model.predict_deferral(NEW_X) == group) > 0.05
    model.offboard("high c").offboard(["high d"])
    deferral = model.predict_deferral(NEW_X)
    assert group not in deferral
    assert (deferral >= 0).any()
    assert model.predict_deferral_proba(NEW_X)[:, group].max() == 0
    assert set(model.assign_experts(NEW_X)) <= {-1, 0, 1}
    others = shares[:-1][1 - group]
    assert_allclose(model.workload_, others / (others + shares[-1]) / 2)
    score = model.score(NEW_X, NEW_Y, NEW_ANSWERS[["low a", "low b"]])
    assert 0 < score < 1
    with pytest.raises(ValueError, match="X_unlabeled is None"):
        model.coverage_path([0.5])
    model.partial_fit(NEW_X, NEW_Y, NEW_ANSWERS[["low a", "low b"]])
    # shares can be met again without the group, and somebody new opens it
    model.recalibrate(NEW_X)
    assert np.mean(model.predict_deferral(NEW_X) == -1) == pytest.approx(0.4, abs=2e-3)
    (path,) = model.coverage_path([0.7], X_unlabeled=NEW_X)
    assert np.mean(path.predict_deferral(NEW_X) == -1) == pytest.approx(0.7, abs=2e-3)
    model.onboard("high n", NEW_X, make_answers(NEW_Y, ["high n"], 5), NEW_Y)
    assert group in model.predict_deferral(NEW_X)
    model.recalibrate(NEW_X)
    assert_allclose(model.target_shares_[-1], shares[-1], atol=2e-3)


@pytest.mark.parametrize("coverage", [0.0, 0.4])
def test_without_anybody_left_the_classifier_decides(make, classifier, coverage):
    model = make(omega=OMEGA, clusterer=None, grouping="hard", coverage=coverage, max_epochs=2)
    model.fit(X, Y, ANSWERS).offboard(NAMES)
    assert_array_equal(model.predict_deferral(NEW_X), -1)
    assert_array_equal(model.predict_deferral_proba(NEW_X), np.tile([0, 0, 1], (400, 1)))
    assert_array_equal(model.predict_team(NEW_X), classifier.predict(NEW_X))
    assert_array_equal(model.assign_experts(NEW_X), -1)
    assert model.score(NEW_X, NEW_Y) == classifier.score(NEW_X, NEW_Y)
    assert model.n_experts_ == 0
    assert model.workload_.shape == (0,)
    assert_array_equal(model.recalibrate(NEW_X).predict_deferral(NEW_X), -1)
    assert_array_equal(model.coverage_path([0.3])[0].predict_deferral(NEW_X), -1)


def test_bounds_on_workload_survive_the_roster(bounded, make):
    served = np.bincount(bounded.assign_experts(NEW_X) + 1, minlength=5)[1:] / 400
    assert (served <= 0.205 + THREE_ERRORS).all()
    assert (bounded.workload_ <= 0.202).all()
    with pytest.warns(UserWarning, match="workload bounds cannot be kept"):
        bounded.offboard("high d")
    bounded.recalibrate(NEW_X)  # moves work to the other group
    served = np.bincount(bounded.assign_experts(NEW_X) + 1, minlength=4)[1:] / 400
    assert_allclose(served, 0.2, atol=0.005 + THREE_ERRORS)
    assert_allclose(bounded.workload_, 0.2, atol=0.005)
    with pytest.warns(UserWarning, match="workload bounds cannot be kept"):
        bounded.offboard("high c")
    with pytest.raises(ValueError, match="share bounds"):
        bounded.recalibrate(NEW_X)
    by_name = make(clusterer=None, omega=OMEGA, grouping="hard", workload={"low a": (0, 0.05), "high d": (0, 1)})
    by_order = make(clusterer=None, omega=OMEGA, grouping="hard", workload=[[0, 0.05], [0, 1], [0, 1], [0, 1]])
    for model in (by_name, by_order):
        model.set_params(max_epochs=2, consultation_cost=[0.1, 0.2, 0.3, 0.4])
        model.fit(X, Y, ANSWERS, X_unlabeled=NEW_X).offboard("high d")
        assert model.workload_[0] <= 0.05 + 1e-3
        served = np.bincount(model.assign_experts(NEW_X) + 1, minlength=4)[1:] / 400
        assert served[0] <= 0.055 + 3 * np.sqrt(0.05 * 0.95 / 400)
        model.partial_fit(NEW_X, NEW_Y, NEW_ANSWERS[NAMES[:3]])
        model.recalibrate(NEW_X)
        assert model.workload_[0] <= 0.05 + 1e-3


def test_costs_by_name_outlive_who_leaves(make):
    model = make(consultation_cost={"low a": 0.1, "group0": 0.1}, max_epochs=2).fit(X, Y, ANSWERS)
    model.offboard("low a").partial_fit(NEW_X, NEW_Y, NEW_ANSWERS[NAMES[1:]])
    assert model.n_iter_ == 3  # two epochs of fit, one of feedback


# ------------------------------------------------------------------------------------------ who is asked


@pytest.fixture(scope="module")
def shared(make):
    """One group of four, of whom the first is a member by half; no classifier."""
    omega = np.array([[1.0, 1.0], [1.0, 0], [1.0, 0], [0, 1.0]])
    return make(clusterer=None, omega=omega, grouping="soft", coverage=0.0, max_epochs=1).fit(X, Y, ANSWERS)


def test_members_are_drawn_in_proportion_to_selection(shared):
    deferral, who = shared.predict_deferral(NEW_X), shared.assign_experts(NEW_X)
    assert_allclose(shared.selection_, [[0.2, 0.4, 0.4, 0], [1 / 3, 0, 0, 2 / 3]])
    for target in range(2):
        rows = deferral == target
        expected = shared.selection_[target] * rows.sum()
        error = np.sqrt(expected * (1 - shared.selection_[target]))
        assert (np.abs(np.bincount(who[rows], minlength=4) - expected) <= 3 * error).all()
    assert_array_equal(who, shared.assign_experts(NEW_X))
    assert_array_equal(who, pickle.loads(pickle.dumps(shared)).assign_experts(NEW_X))


def test_work_that_comes_one_by_one_is_shared_as_in_a_batch(make):
    model = make(omega=np.ones((4, 1)), clusterer=None, grouping="hard", workload=(0, 0.2), max_epochs=2)
    model.fit(X, Y, ANSWERS, X_unlabeled=NEW_X)
    who = np.concatenate([model.assign_experts(x[None]) for x in NEW_X])
    served = np.bincount(who + 1, minlength=5)[1:] / 400
    assert (np.abs(served - model.workload_) <= THREE_ERRORS).all()
    assert_array_equal(who, model.assign_experts(NEW_X))
    assert_array_equal(model.route(NEW_X[:1]), model.route(NEW_X)[:1])
    other = make(omega=np.ones((4, 1)), clusterer=None, grouping="hard", max_epochs=2, random_state=1)
    assert (other.fit(X, Y, ANSWERS).assign_experts(NEW_X) != who).mean() > 0.3


def test_only_those_who_are_in_are_asked(shared):
    deferral = shared.predict_deferral(NEW_X)
    away = np.array([True, False, True, True])
    who = shared.assign_experts(NEW_X, available=away)
    assert 1 not in who
    by_row = np.random.default_rng(0).random((400, 4)) < 0.6
    reachable = (by_row & (shared.selection_[deferral] > 0)).any(1)
    assert not reachable.all()
    with pytest.warns(UserWarning, match=rf"{(~reachable).sum()} of 400 deferred items"):
        who = shared.assign_experts(NEW_X, available=by_row, on_overflow="classifier")
    assert_array_equal(who >= 0, reachable)
    assert by_row[np.arange(400), who][reachable].all()
    with pytest.raises(ValueError, match=r"found nobody.*raise `capacity`"):
        shared.assign_experts(NEW_X, available=by_row, on_overflow="raise")


@pytest.mark.filterwarnings("ignore:.*found nobody")
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("capacity", [None, [10, 400, 5, 20]])
def test_what_a_target_cannot_take_goes_to_whoever_else_gains_most(shared, capacity, many, monkeypatch):
    if many:  # as in large teams, where some people stand for all
        for module, name, value in ((_matching, "_MANY", 1), (_matching, "_FEWEST", 1), (_answers, "_FEW_ROWS", 0)):
            monkeypatch.setattr(module, name, value)
    alone, by_row = np.arange(4) == 1, np.random.default_rng(0).random((400, 4)) < 0.6
    confidence = shared.predict_team_proba(NEW_X, np.full((400, 4), -1)).max(1)  # nobody answered
    gain = shared.predict_expert_correctness(NEW_X) - confidence[:, None]
    for available in (alone, by_row):
        plain, who = (
            shared.assign_experts(NEW_X, available=available, capacity=capacity, on_overflow=rule)
            for rule in ("classifier", "next")
        )
        assert_array_equal(who[plain >= 0], plain[plain >= 0])
        passed = np.flatnonzero((plain < 0) & (who >= 0))
        assert len(passed)
        free = np.where(np.broadcast_to(available, (400, 4)), gain, -np.inf)
        assert (free[passed, who[passed]] > 0).all()
        if capacity is None:
            assert_array_equal(who[plain < 0], np.where(free.max(1) > 0, free.argmax(1), -1)[plain < 0])
        else:  # nobody free could have gained
            served = np.bincount(who[who >= 0], minlength=4)
            assert (served <= capacity).all()
            assert (free[who < 0][:, served < capacity] <= 0).all()


def test_whom_a_bound_excludes_gets_no_overflow(make):
    model = make(clusterer=None, omega=OMEGA, grouping="hard", coverage=0.2, max_epochs=2, workload={"high d": (0, 0)})
    model.fit(X, Y, ANSWERS, X_unlabeled=NEW_X)
    with pytest.warns(UserWarning, match="found nobody available"):
        assert set(model.assign_experts(NEW_X, available=[False, False, False, True])) == {-1}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_person_away_costs_little(seed):
    crowd = load_digits_crowd(random_state=seed)
    team = ConfidenceDeferral(LogisticRegression(C=0.03), coverage=0.5, random_state=0)
    team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations, X_unlabeled=crowd.X_anonymous)
    X, y, answers = crowd.X_test, crowd.y_test, np.asarray(crowd.annotations_test)

    def accuracy(who):
        return np.mean(np.where(who < 0, team.predict(X), answers[np.arange(len(y)), who]) == y)

    everybody = team.assign_experts(X)
    there = np.arange(team.n_experts_) != np.bincount(everybody[everybody >= 0]).argmax()
    with pytest.warns(UserWarning, match="found nobody of their target"):
        alone = accuracy(team.assign_experts(X, available=there, on_overflow="classifier"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*found nobody")
        passed_on = accuracy(team.assign_experts(X, available=there))
    assert alone < 0.91
    assert passed_on >= 0.92
    assert passed_on >= accuracy(everybody) - 0.03
    given = np.where(there, answers, -1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*found nobody")
        who = team.assign_experts(X, available=there)
    expected = np.where(who < 0, team.predict(X), answers[np.arange(len(y)), who])
    assert_array_equal(team.predict_team(X, given, decision="draw"), expected)


def test_a_shift_is_a_call_that_comes_in_pieces(shared):
    shift = shared.start_shift()
    pieces = pd.concat([shift.route(pd.DataFrame(NEW_X)[start : start + 30]) for start in range(0, 400, 30)])
    pd.testing.assert_frame_equal(pieces, shared.route(pd.DataFrame(NEW_X)))
    assert shift.served_.to_dict() == pieces["expert"].value_counts().reindex(NAMES, fill_value=0).to_dict()


def test_a_shift_refuses_what_it_cannot_count(shared):
    team = pickle.loads(pickle.dumps(shared))
    shift = team.start_shift(capacity={"low a": 1, "low b": 2}, available=np.array([True, True, False, False]))
    assert shift.capacity_left_.to_dict() == {"low a": 1, "low b": 2, "high c": np.inf, "high d": np.inf}
    with pytest.raises(ValueError, match="found nobody of their target"):
        shift.assign_experts(NEW_X, on_overflow="raise")
    assert shift.served_.sum() == 0
    with pytest.raises(ValueError, match="capacity names unknown experts"):
        team.start_shift(capacity={"zoe": 1})
    team.offboard("high d")
    with pytest.raises(ValueError, match="the roster of the team has changed"):
        shift.route(NEW_X)
    assert not hasattr(shift, "next_expert")


@pytest.mark.parametrize(
    ("capacity", "limits"),
    [(50, [50] * 4), ([10, 400, 0, 400], [10, 400, 0, 400]), ({"low b": 5, "high c": 7}, [400, 5, 7, 400])],
)
def test_capacity_is_kept_and_used_up(shared, capacity, limits):
    deferral = shared.predict_deferral(NEW_X)
    sizes = np.bincount(deferral, minlength=2)
    if capacity == 50:
        with pytest.warns(UserWarning, match="200 of 400 deferred items"):
            who = shared.assign_experts(NEW_X, capacity=capacity, on_overflow="classifier")
    else:
        # whoever is unlimited serves the rest; high c and low b can take group 0 only, high d group 1 only
        overflow = 0 if limits[0] == 400 else max(0, sizes[0] - 400 - 10)
        assert overflow == 0
        who = shared.assign_experts(NEW_X, capacity=capacity)
    served = np.bincount(who[who >= 0], minlength=4)
    assert (served <= limits).all()
    assert served.sum() == min(400, sum(limits))


def test_a_single_free_colleague_takes_what_a_tight_one_cannot(shared):
    """Capacities by name leave the others unlimited, whatever has to change hands."""
    by_row = np.ones((400, 4), bool)
    by_row[::2, 1:3] = False
    who = shared.assign_experts(NEW_X, available=by_row, capacity={"low b": 1, "high c": 3})
    assert (who >= 0).all()


def test_bad_requests_are_refused(shared):
    for request, message in [
        ({"available": [1, 0, 1, 1]}, "available has shape .* booleans"),
        ({"available": np.ones(3, bool)}, "available has shape"),
        ({"capacity": 2.5}, "capacity=2.5"),
        ({"capacity": -1}, "capacity=-1"),
        ({"capacity": [1, 2]}, "capacity"),
        ({"capacity": {"zoe": 1}}, "capacity names unknown experts"),
        ({"on_overflow": "ignore"}, "on_overflow='ignore'"),
    ]:
        with pytest.raises(ValueError, match=message):
            shared.assign_experts(NEW_X, **request)


# ------------------------------------------------------------------------------------------ decisions


def test_draw_takes_the_answer_of_who_is_asked(model):
    who = model.assign_experts(NEW_X)
    expected = np.where(who < 0, model.predict(NEW_X), NEW_ANSWERS.to_numpy()[np.arange(400), who])
    assert_array_equal(model.predict_team(NEW_X, NEW_ANSWERS), expected)
    nothing = np.full((400, 4), -1)
    assert_array_equal(model.predict_team(NEW_X, nothing), model.predict(NEW_X))
    with pytest.raises(ValueError, match="decision='majority'"):
        model.predict_team(NEW_X, NEW_ANSWERS, decision="majority")
    with pytest.raises(ValueError, match="predict_team received no annotations"):
        model.predict_team(NEW_X)


def test_vote_is_weighted_by_selection(shared):
    deferral = shared.predict_deferral(NEW_X)
    answers = NEW_ANSWERS.to_numpy().copy()
    answers[::3, 1] = -1
    answers[5] = -1
    votes = np.zeros((400, 3))
    for row in range(400):
        for expert in range(4):
            if answers[row, expert] >= 0:
                votes[row, answers[row, expert]] += shared.selection_[deferral[row], expert]
    expected = np.where(votes.sum(1) > 0, votes.argmax(1), shared.predict(NEW_X))
    assert_array_equal(shared.predict_team(NEW_X, answers, decision="vote"), expected)


def test_columns_of_answers_are_matched_by_name(model):
    expected = model.score(NEW_X, NEW_Y, NEW_ANSWERS)
    assert model.score(NEW_X, NEW_Y, NEW_ANSWERS[NAMES[::-1]]) == expected
    assert model.score(NEW_X, NEW_Y, NEW_ANSWERS.set_axis(range(4), axis=1)) == expected
    absent = NEW_ANSWERS.astype(float)
    absent["low b"] = np.nan
    assert model.score(NEW_X, NEW_Y, NEW_ANSWERS.drop(columns="low b")) == model.score(NEW_X, NEW_Y, absent)
    with pytest.raises(ValueError, match=r"unknown experts \['zoe'\]"):
        model.score(NEW_X, NEW_Y, NEW_ANSWERS.assign(zoe=0))
    with pytest.raises(ValueError, match="has 3 columns, but there are 4 experts"):
        model.score(NEW_X, NEW_Y, NEW_ANSWERS.to_numpy()[:, :3])
    with pytest.raises(ValueError, match="annotations has 399 rows"):
        model.score(NEW_X, NEW_Y, NEW_ANSWERS[1:])


def test_numbered_columns_are_names_too(make):
    model = make(clusterer=None, omega=OMEGA, grouping="hard", max_epochs=2).fit(X, Y, ANSWERS.to_numpy())
    numbered = NEW_ANSWERS.set_axis(range(4), axis=1)
    assert model.score(NEW_X, NEW_Y, numbered[[3, 1, 0, 2]]) == model.score(NEW_X, NEW_Y, numbered)
    model.offboard(1)
    expected = model.score(NEW_X, NEW_Y, NEW_ANSWERS.to_numpy()[:, [0, 2, 3]])
    assert model.score(NEW_X, NEW_Y, numbered[[3, 2, 0]]) == expected


# ------------------------------------------------------------------------------------------ tables


def test_a_shift_round_trips_through_tables(model):
    frame = pd.DataFrame(NEW_X, index=[f"item {i}" for i in range(400)])
    route = model.route(frame, capacity=130)
    assert route.index.equals(frame.index)
    asked = route[route["expert"] != "classifier"]
    place = {name: i for i, name in enumerate(NAMES)}
    labels = [NEW_ANSWERS.iloc[frame.index.get_loc(task), place[name]] for task, name in asked["expert"].items()]
    answers = pd.DataFrame({"task": asked.index, "annotator": asked["expert"], "label": labels}).sample(
        frac=1, random_state=0
    )
    annotations = model.answers_to_annotations(answers, route.index)
    assert annotations.columns.tolist() == NAMES
    assert annotations.index.equals(route.index)
    assert annotations.notna().to_numpy().sum() == len(asked)
    expected = model.predict(NEW_X)
    expected[frame.index.get_indexer(asked.index)] = labels
    assert_array_equal(model.predict_team(frame, annotations), expected)
    assert model.score(frame, NEW_Y, annotations) == pytest.approx(np.mean(expected == NEW_Y))
    groups = {name: f"group{group_of(model, name)}" for name in NAMES}
    assert (asked["expert"].map(groups) == asked["target"]).all()
    assert (route["target"] == "classifier").sum() == (route["expert"] == "classifier").sum()


def test_answers_to_items_of_any_name_become_annotations(model):
    names = pd.MultiIndex.from_product([range(4), list("ab")])
    answers = pd.DataFrame({"task": [(3, "a"), (0, "b")], "annotator": NAMES[:2], "label": [1, 0]})
    for tasks in (names, names.tolist(), (name for name in names)):
        annotations = model.answers_to_annotations(answers, tasks)
        assert annotations.index.tolist() == names.tolist()
        assert annotations[NAMES[0]].dropna().to_dict() == {(3, "a"): 1}
    polars = pl.DataFrame({"task": ["x"], "annotator": NAMES[:1], "label": [1]})
    assert model.answers_to_annotations(polars, ["y", "x"])[NAMES[0]].isna().tolist() == [True, False]


def test_answers_that_cannot_be_told_apart_are_refused(model):
    answer = pd.DataFrame({"task": ["x"], "annotator": NAMES[:1], "label": [1]})
    with pytest.raises(ValueError, match="tasks holds a name twice"):
        model.answers_to_annotations(answer, ["x", "x"])
    with pytest.raises(ValueError, match=r"answers cannot be used: .*from_long has these options"):
        model.answers_to_annotations(pd.concat([answer, answer]), ["x"])


def test_answers_of_strangers_or_unknown_items_are_refused(model):
    route = model.route(NEW_X)
    answer = {"task": [0], "annotator": ["low a"], "label": [1]}
    with pytest.raises(ValueError, match="zoe"):
        model.answers_to_annotations(pd.DataFrame(answer | {"annotator": ["zoe"]}), route.index)
    with pytest.raises(ValueError, match="999"):
        model.answers_to_annotations(pd.DataFrame(answer | {"task": [999]}), route.index)


def test_explanation_says_who_and_why(model):
    frame = pd.DataFrame(NEW_X, index=np.arange(400) + 7)
    table = model.explain_deferral(frame)
    assert table.index.equals(frame.index)
    names = ["group0", "group1", "classifier"]
    assert table.columns.tolist() == [
        "chosen",
        "prediction",
        "without bounds",
        "forced by",
        *(f"preference of {n}" for n in names),
        *(f"expected correctness of {n}" for n in names),
    ]
    preference = table[[f"preference of {n}" for n in names]].to_numpy()
    assert_array_equal(table["chosen"], np.array(names)[preference.argmax(1)])
    assert_array_equal(table["prediction"], model.predict(frame))
    correctness = table[[f"expected correctness of {n}" for n in names]].to_numpy()
    assert ((correctness > 0) & (correctness < 1)).all()
    # where the classifier sees class 2, those who know it are expected to be right more often
    high, sure = group_of(model, "high c"), model.predict(frame) == 2
    assert (correctness[sure, high] - correctness[sure, 1 - high]).mean() > 0.1


@pytest.mark.parametrize("sizes", [[1] * 12, [4] * 3])
def test_a_shift_tells_once_that_nobody_is_left(sizes):
    crowd = make_crowd()
    team = ConfidenceDeferral(LogisticRegression(), coverage=0.0, random_state=0)
    team.fit(crowd.X, crowd.y, annotations=crowd.annotations)
    shift = team.start_shift(capacity=1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for part in np.split(crowd.X[:12], np.cumsum(sizes)[:-1]):
            shift.assign_experts(part)
    assert ["found nobody" in str(warning.message) for warning in told] == [True]
    assert shift.unserved_ == 12 - shift.served_.sum()
