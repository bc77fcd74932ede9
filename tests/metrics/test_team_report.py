"""The report on a fitted team is that of its routes, and its rows and columns are matched by name."""

import numpy as np
import pandas as pd
import pytest
from _instances import fit, make_crowd, of_kind, without_people
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d.annotations import AnnotatedTarget, encode_votes
from sklearn_l2d.deferral import ConfidenceDeferral
from sklearn_l2d.metrics import deferral_report, team_report

EXPERTS = ["ann", "bob", "eve", "kim", "zoe"]


def make_team(**parameters):
    crowd = make_crowd(120, labels=("cat", "dog", "eel"))
    team = ConfidenceDeferral(LogisticRegression(), **{"coverage": 0.5, "random_state": 0} | parameters)
    return team.fit(crowd.X, crowd.y, annotations=pd.DataFrame(crowd.annotations, columns=EXPERTS))


@pytest.fixture(scope="module")
def team():
    return make_team()


@pytest.fixture(scope="module")
def new():
    crowd = make_crowd(80, labels=("cat", "dog", "eel"), random_state=1)
    index = pd.Index([f"item {i}" for i in range(80)])
    crowd.X = pd.DataFrame(crowd.X, index=index)
    crowd.y = pd.Series(crowd.y, index=index)
    crowd.annotations = pd.DataFrame(crowd.annotations, index=index, columns=EXPERTS)
    return crowd


@pytest.fixture
def expected(team, new):
    return team_report(team, new.X.to_numpy(), new.y.to_numpy(), new.annotations.to_numpy())


def assert_same(report, expected):
    assert report.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, dict):
            pd.testing.assert_frame_equal(pd.DataFrame(report[name]), pd.DataFrame(value), check_names=False)
        else:
            assert_allclose(report[name], value, err_msg=name)


@pytest.mark.parametrize("instance", of_kind("deferrer"), ids=str)
def test_it_is_what_the_team_does(instance):
    team, new = fit(instance, clone(instance.estimator), make_crowd()), make_crowd(50, random_state=1)
    if hasattr(team, "replay"):
        with pytest.raises(ValueError, match=r"asks several people about an item.*answers_accuracy_curve"):
            team_report(team, new.X, new.y, new.annotations)
        return
    report = team_report(team, new.X, new.y, new.annotations)
    assert report["team_accuracy"] == pytest.approx(team.score(new.X, new.y, new.annotations))
    assert report["coverage"] == pytest.approx((team.predict_deferral(new.X) < 0).mean())
    assert report["classifier_accuracy"] == pytest.approx((team.predict(new.X) == new.y).mean())
    together = team.predict_team_proba(new.X, new.annotations).argmax(1) == new.y
    assert report["combined_accuracy"] == pytest.approx(together.mean())
    assert report["targets"]["target"] == [*team.targets_, "classifier"]
    assert report["experts"]["expert"] == [*team.experts_, "classifier"]


def test_columns_and_rows_in_another_order(team, new, expected):
    order = np.random.default_rng(0).permutation(80)
    annotations = new.annotations[["kim", "ann", "zoe", "bob", "eve"]].iloc[order[::-1]]
    assert_same(team_report(team, new.X, new.y.iloc[order], annotations), expected)
    assert_same(team_report(team, new.X, new.y, encode_votes(annotations)), expected)
    assert_same(team_report(team, new.X, AnnotatedTarget(new.y, new.annotations)), expected)
    with pytest.raises(ValueError, match=r"annotations names unknown experts \['Ann'\]"):
        team_report(team, new.X, new.y, annotations.rename(columns={"ann": "Ann"}))


def test_pipelines(team, new, expected):
    scaler = StandardScaler().fit(new.X.to_numpy())
    unscaled = pd.DataFrame(scaler.inverse_transform(new.X), index=new.X.index)
    pipeline = make_pipeline(FrozenEstimator(scaler), team)
    assert_same(team_report(pipeline, unscaled.to_numpy(), new.y.to_numpy(), new.annotations.to_numpy()), expected)
    assert_same(team_report(pipeline, unscaled, new.y[::-1], new.annotations[::-1]), expected)


def test_requests_and_costs_are_those_of_the_team(new):
    team = make_team(coverage=(0.4, 0.6))
    report = team_report(team, new.X, new.y, new.annotations)
    assert report["requested_coverage"] == (0.4, 0.6)
    low, high = (report["experts"][f"requested_{side}"] for side in ("low", "high"))
    assert (low[:-1], high[:-1]) == ([0] * 5, [1] * 5)
    assert "team_cost" not in report


def test_weights_and_unknown_truth_leave_items_out(team, new, expected):
    rows = np.arange(80) % 4 > 0
    part = team_report(team, new.X[rows], new.y[rows], new.annotations[rows])
    assert part["n_samples"] == 60
    weight = pd.Series(rows.astype(float), index=new.X.index)[::-1]
    weighted = team_report(team, new.X, new.y, new.annotations, sample_weight=weight)
    left_out = team_report(team, new.X, new.y.where(rows, None), new.annotations, sample_weight=np.ones(80))
    for name in ("team_accuracy", "coverage", "combined_accuracy"):
        assert weighted[name] == pytest.approx(part[name])
    assert_same(left_out, part)


def test_answers_that_are_no_classes_are_wrong(team, new):
    annotations = new.annotations.copy()
    annotations.iloc[:40] = "cow"
    with pytest.warns(UserWarning, match=r"\['cow'\]"):
        report = team_report(team, new.X, new.y, annotations)
    with pytest.warns(UserWarning, match=r"\['cow'\]"):
        assert report["team_accuracy"] == pytest.approx(team.score(new.X, new.y, annotations))


def test_a_team_without_experts(new):
    team = without_people(make_team()).fit(new.X, new.y)
    report = team_report(team, new.X, new.y)
    assert report["coverage"] == 1
    assert report["team_accuracy"] == report["classifier_accuracy"] == team.score(new.X, new.y)
    assert report["experts"]["expert"] == ["classifier"]


def test_what_cannot_be_reported(team, new):
    with pytest.raises(ValueError, match="fitted with 5 experts, but team_report received no annotations"):
        team_report(team, new.X, new.y)
    with pytest.raises(ValueError, match=r"y holds labels \['cow'\] that the team does not know"):
        team_report(team, new.X, new.y.replace("cat", "cow"), new.annotations)
    with pytest.raises(ValueError, match="y knows the truth of no item"):
        team_report(team, new.X, [None] * 80, new.annotations)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        team_report(team, new.X, new.y.to_numpy()[:70], new.annotations)
    with pytest.raises(TypeError, match=r"estimator of type ConfidenceDeferral, not labels; team_report\(team, X, y"):
        deferral_report(team, new.X, new.y, new.annotations)
    assert_array_equal(team.experts_, EXPERTS)
