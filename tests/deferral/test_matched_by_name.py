"""Tables and settings with names of experts are matched by name."""

import numpy as np
import pandas as pd
import pytest
from _instances import make_crowd, of_kind, with_parameter
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.deferral import BestExpert, ClusterDeferral, ConfidenceDeferral, LECODUDeferral, PanelDeferral
from sklearn_l2d.metrics import deferral_report

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*found nobody")
each_deferrer = pytest.mark.parametrize("instance", of_kind("deferrer"), ids=str)

PEOPLE = list("abcde")


@pytest.fixture(scope="module")
def crowd():
    crowd = make_crowd()
    crowd.annotations = pd.DataFrame(crowd.annotations, columns=PEOPLE)
    return crowd


def fitted(estimator, crowd, **params):
    return clone(estimator).set_params(**params).fit(crowd.X, crowd.y, annotations=crowd.annotations)


def ways(present, table):
    """The same availability of everybody, for all items and for each, with and without names."""
    mixed = ["d", "a", "e", "c", "b"]
    for_all = pd.Series(present, index=PEOPLE)
    yield present, for_all[mixed]
    yield present, for_all.astype("boolean")[mixed]
    yield present, for_all[mixed].to_dict()
    yield present, for_all[~for_all].to_dict()  # who is not named is available
    frame = pd.DataFrame(table, columns=PEOPLE)
    yield table, frame[mixed]
    yield table, frame.astype({"a": "boolean"})[mixed]
    yield table, csr_array(table)


@each_deferrer
def test_available_is_matched_by_name(instance, crowd):
    team, rng = fitted(instance.estimator, crowd), np.random.default_rng(0)
    methods = [team.assign_experts, team.consult, lambda X, available: team.route(X, available)["expert"]]
    if hasattr(team, "next_expert"):
        methods.append(lambda X, available: team.next_expert(X, available=available))
        methods.append(lambda X, available: team.answers_path([0.5], X, available)[0].threshold_)
    if not team.n_experts_:
        return
    for plain, named in ways(np.array([True, False, True, True, False]), rng.random((60, 5)) < 0.5):
        for method in methods:
            assert_array_equal(method(crowd.X, available=named), method(crowd.X, available=plain))
    X = pd.DataFrame(crowd.X, index=[f"item {n}" for n in range(60)])
    table = pd.DataFrame(rng.random((60, 5)) < 0.5, columns=PEOPLE, index=X.index)
    assert_array_equal(team.assign_experts(X, available=table.iloc[::-1]), team.assign_experts(X, table.to_numpy()))


def test_available_that_does_not_fit_is_refused(crowd):
    team = fitted(PanelDeferral(LogisticRegression(), cv=2, random_state=0), crowd)
    for available, message in [
        ({"zoe": True}, r"available names unknown experts \['zoe'\]; the experts are \['a', 'b', 'c', 'd', 'e'\]"),
        (pd.DataFrame({"a": [True] * 60, "zoe": True}), r"available names unknown experts \['zoe'\]"),
        (pd.Series([True, False], index=["a", "a"]), "available names an expert twice"),
        (pd.Series({"a": 1}), "available has shape .* type int64; pass booleans"),
        (pd.Series([True, None], index=["a", "b"], dtype="boolean"), "pass booleans"),
        ({"a": "no"}, "pass booleans"),
        ([True] * 4, r"available has shape \(4,\)"),
    ]:
        for call in (team.assign_experts, team.consult, team.route, team.recalibrate):
            with pytest.raises(ValueError, match=message):
                call(crowd.X, available=available)


def test_somebody_on_leave_gets_nothing():
    rng = np.random.default_rng(0)
    y, X = rng.integers(2, size=100), rng.normal(size=(100, 3))
    answers = pd.DataFrame({"ann": y, "bob": np.where(rng.random(100) < 0.3, 1 - y, y)})
    team = ConfidenceDeferral(LogisticRegression(), random_state=0).fit(X, y, annotations=answers)
    assert "ann" in set(team.route(X)["expert"])
    assert "ann" not in set(team.route(X, available=pd.Series({"bob": True, "ann": False}))["expert"])


def test_integers_that_name_experts_are_names():
    rng = np.random.default_rng(0)
    y, X = rng.integers(2, size=100), rng.normal(size=(100, 3))
    answers = pd.DataFrame({1: y, 2: 1 - y, 3: 1 - y})
    team = BestExpert(LogisticRegression()).fit(X, y, annotations=answers)
    shift = pd.DataFrame({0: 1 - y, 1: y, 2: 1 - y})
    assert team.score(X, y, annotations=answers[[2, 1]]) == 1
    assert team.score(X, y, annotations=answers.to_numpy()) == 1
    for table in (shift, encode_votes(shift)):
        with pytest.raises(ValueError, match=r"annotations names unknown experts \[0\]; the experts are \[1, 2, 3\]"):
            team.score(X, y, annotations=table)
        with pytest.raises(ValueError, match=r"annotations names unknown experts \[0\]"):
            team.predict_team(X, table)
    with pytest.raises(ValueError, match=r"available names unknown experts \[0\]"):
        team.route(X, available=pd.Series([True, True, True]))
    with pytest.raises(ValueError, match=r"capacity names unknown experts \[0\]"):
        team.route(X, capacity=pd.Series([1, 1, 1]))
    assert team.set_params().onboard([4, 5], X, pd.DataFrame({5: y, 4: 1 - y}), y)._roster.right.sum(1)[-1] == 100
    with pytest.raises(ValueError, match=r"annotations names unknown experts \[0, 1\]"):
        team.onboard([6, 7], X, pd.DataFrame({0: y, 1: 1 - y}), y)


def test_numbers_of_columns_are_no_names(crowd):
    team = fitted(ConfidenceDeferral(LogisticRegression(), cv=2, random_state=0), crowd)
    plain, numbered = crowd.annotations.to_numpy(), crowd.annotations.set_axis(range(5), axis=1)
    assert team.score(crowd.X, crowd.y, annotations=numbered) == team.score(crowd.X, crowd.y, annotations=plain)
    present = np.array([True, False, True, True, False])
    assert_array_equal(team.assign_experts(crowd.X, pd.Series(present)), team.assign_experts(crowd.X, present))
    assert_array_equal(
        team.assign_experts(crowd.X, capacity=pd.Series(range(5))), team.assign_experts(crowd.X, capacity=range(5))
    )


def test_newcomers_are_matched_by_name(crowd):
    team = fitted(BestExpert(LogisticRegression()), crowd)
    new = pd.DataFrame({"x": crowd.y, "y": (crowd.y + 1) % 3})
    for annotations in (new, new[["y", "x"]], encode_votes(new[["y", "x"]]), new.to_numpy()):
        right = clone(team).fit(crowd.X, crowd.y, annotations=crowd.annotations)
        right.onboard(["x", "y"], crowd.X, annotations, crowd.y)
        assert right._roster.right.sum(1)[-2:].tolist() == [60, 0]
    with pytest.raises(ValueError, match=r"annotations names unknown experts \['y'\]"):
        team.onboard(["x", "z"], crowd.X, new, crowd.y)


SETTINGS = {
    "workload": [
        ({"b": (0.0, 0.2), "a": (0.1, 0.5)}, pd.Series({"b": (0.0, 0.2), "a": (0.1, 0.5)})),
        (
            {"b": (0.0, 0.2), "a": (0.1, 0.5)},
            pd.DataFrame({"low": [0.0, 0.1], "high": [0.2, 0.5]}, index=["b", "a"]),
        ),
        ([(0.0, 0.4)] * 5, pd.DataFrame({"low": [0.0] * 5, "high": 0.4})),
    ],
    "cluster_workload": [({"group1": (0.0, 0.2)}, pd.DataFrame({"low": 0.0, "high": 0.2}, index=["group1"]))],
    "consultation_cost": [({"b": 0.2, "a": 0.1}, pd.Series({"b": 0.2, "a": 0.1})), ([0, 0.1] * 2 + [0], None)],
}
CASES = [
    pytest.param(instance.estimator, name, plain, pd.Series(plain) if named is None else named, id=f"{instance}-{name}")
    for name, pairs in SETTINGS.items()
    for instance in with_parameter(of_kind("deferrer"), name)
    if name != "consultation_cost" or not isinstance(instance.estimator, LECODUDeferral)  # it has one for all
    for plain, named in pairs
]


@pytest.mark.filterwarnings("ignore:workload")  # of panels, whose roster changes
@pytest.mark.parametrize(("estimator", "name", "plain", "named"), CASES)
def test_settings_in_pandas_are_mappings(estimator, name, plain, named, crowd):
    both = []
    for value in (plain, named):
        params = {name: value}
        if name == "consultation_cost" and "answers" in estimator.get_params():
            params["answers"] = None
        both.append(fitted(estimator, crowd, **params))
    assert_array_equal(both[1].predict_deferral(crowd.X), both[0].predict_deferral(crowd.X))
    for team in both:
        team.offboard(["e"])
    assert_array_equal(both[1].predict_deferral(crowd.X), both[0].predict_deferral(crowd.X))
    assert "RangeIndex" not in repr(both[1].requested_bounds_)


@pytest.mark.parametrize("name", ["workload", "consultation_cost"])
def test_settings_in_pandas_are_checked(name, crowd):
    team = ConfidenceDeferral(LogisticRegression(), cv=2, random_state=0)
    value = 0.1 if name == "consultation_cost" else (0, 0.5)
    for names, message in ((["a", "a"], f"{name} holds a name twice"), (["a", "zoe"], f"{name} names .*zoe")):
        with pytest.raises(ValueError, match=message):
            fitted(team, crowd, **{name: pd.Series([value, value], index=names)})


@each_deferrer
def test_capacity_is_matched_by_name(instance, crowd):
    team = fitted(instance.estimator, crowd)
    expected = team.assign_experts(crowd.X, capacity={"b": 3, "a": 5})
    assert_array_equal(team.assign_experts(crowd.X, capacity=pd.Series({"b": 3, "a": 5})), expected)


def test_memberships_are_matched_by_name(crowd):
    omega = pd.DataFrame(np.random.default_rng(0).random((5, 2)), index=PEOPLE)
    gate = next(i.estimator for i in of_kind("deferrer") if isinstance(i.estimator, ClusterDeferral))
    teams = [fitted(gate, crowd, clusterer=None, omega=o) for o in (omega.to_numpy(), omega, omega.iloc[::-1])]
    for team in teams[1:]:
        assert_array_equal(team.omega_, teams[0].omega_)
    with pytest.raises(ValueError, match=r"omega names unknown experts \['zoe'\]"):
        fitted(gate, crowd, clusterer=None, omega=omega.rename(index={"a": "zoe"}))


def test_bounds_of_a_report_are_matched_by_name(crowd):
    team = fitted(ConfidenceDeferral(LogisticRegression(), cv=2, random_state=0), crowd)
    given = crowd.y, team.predict_deferral(crowd.X), team.predict(crowd.X), crowd.annotations
    for workload in (
        {"b": (0.1, 0.2)},
        pd.Series({"b": (0.1, 0.2)}),
        pd.DataFrame({"low": 0.1, "high": 0.2}, index=["b"]),
    ):
        experts = deferral_report(*given, workload=workload)["experts"]
        assert experts["requested_low"] == [0, 0.1, 0, 0, 0, 0]
        assert experts["requested_high"] == [1, 0.2, 1, 1, 1, 1]
    with pytest.raises(ValueError, match=r"workload names \['zoe'\]"):
        deferral_report(*given, workload={"zoe": (0, 1)})
