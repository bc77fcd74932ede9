"""Metrics match the rows of tables and series by the ids of items, whatever form the annotations have."""

import numpy as np
import pandas as pd
import pytest
from _instances import make_crowd
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.deferral import ConfidenceDeferral, PanelDeferral
from sklearn_l2d.metrics import (
    answers_accuracy_curve,
    consensus_accuracy,
    consensus_agreement,
    coverage_accuracy_points,
    deferral_report,
    team_accuracy,
    team_report,
    workload_distribution,
)
from sklearn_l2d.model_selection import make_team_scorer

IDS = [f"item {n}" for n in np.random.default_rng(0).permutation(60)]
PEOPLE = list("abcde")
CROWD = make_crowd()
TABLE = pd.DataFrame(CROWD.annotations, index=IDS, columns=PEOPLE)


def long_table(table):
    """The same answers, one a row, in no order."""
    item, who = np.nonzero(table.to_numpy() >= 0)
    long = pd.DataFrame(
        {"task": table.index[item], "annotator": table.columns[who], "label": table.to_numpy()[item, who]}
    )
    return long.sample(frac=1, random_state=0).reset_index(drop=True)


def fitted(kind, **params):
    team = kind(LogisticRegression(C=0.01), cv=2, random_state=0, **params)
    return team.fit(CROWD.X, CROWD.y, annotations=TABLE.reset_index(drop=True))


TEAM, PANEL = fitted(ConfidenceDeferral, coverage=0.5), fitted(PanelDeferral, answers=1.0)
LABELS, PROBA = TEAM.predict(CROWD.X), TEAM.predict_proba(CROWD.X)
WEIGHT = pd.Series(np.arange(60.0), index=IDS)


def numbers(report):
    return [value for value in report.values() if isinstance(value, float)] + report["experts"]["accuracy"]


METRICS = {
    "team_accuracy": lambda y, a: team_accuracy(y, TEAM.predict_deferral(CROWD.X)[place(y)], LABELS[place(y)], a),
    "workload_distribution": lambda y, a: workload_distribution(
        pd.Series(TEAM.predict_deferral(CROWD.X), index=IDS)[y.index], annotations=a, sample_weight=WEIGHT
    ),
    "deferral_report": lambda y, a: numbers(
        deferral_report(y, TEAM.predict_deferral(CROWD.X)[place(y)], LABELS[place(y)], a, sample_weight=WEIGHT)
    ),
    "consensus_agreement": lambda y, a: consensus_agreement(a, pd.DataFrame(PROBA, index=IDS).loc[y.index]),
    "answers_accuracy_curve": lambda y, a: answers_accuracy_curve([PANEL], CROWD.X[place(y)], y, a),
    "coverage_accuracy_points": lambda y, a: coverage_accuracy_points(
        TEAM, CROWD.X[place(y)], y, a, coverages=[0, 0.5]
    ),
    "team_report": lambda y, a: numbers(team_report(TEAM, CROWD.X[place(y)], y, a, sample_weight=WEIGHT)),
    "score": lambda y, a: TEAM.score(CROWD.X[place(y)], y, a, sample_weight=WEIGHT),
    "fit": lambda y, a: (
        ConfidenceDeferral(LogisticRegression(C=0.01), cv=2, coverage=0.5, random_state=0)
        .fit(CROWD.X[place(y)], y, a)
        .predict_expert_correctness(CROWD.X)
    ),
}


def place(y):
    return [IDS.index(name) for name in y.index]


FORMS = {"table": lambda table: table, "long table": long_table, "votes": encode_votes}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", METRICS)
def test_rows_are_matched_by_the_ids_of_items(metric, form):
    y, call = pd.Series(CROWD.y, index=IDS), METRICS[metric]
    expected = call(y, TABLE)
    assert_allclose(call(y, FORMS[form](TABLE)), expected)
    assert_allclose(call(y, FORMS[form](TABLE.iloc[::-1])), expected)
    with pytest.raises(ValueError, match="has other rows than"):
        call(y, FORMS[form](TABLE.rename(index={IDS[3]: "item 99"})))


def test_items_without_weight_or_truth_are_left_out_of_a_long_table():
    y, weight = pd.Series(CROWD.y.astype(float), index=IDS), pd.Series(1.0, index=IDS)
    y.iloc[5:9] = np.nan
    for form in (lambda table: table, long_table):
        assert TEAM.score(CROWD.X, y, form(TABLE)) == TEAM.score(CROWD.X[9:], y[9:], TABLE[9:]) * 51 / 56 + (
            TEAM.score(CROWD.X[:5], y[:5], TABLE[:5]) * 5 / 56
        )
    weight.iloc[:20] = 0.0
    of = [
        ConfidenceDeferral(LogisticRegression(C=0.01), cv=2, coverage=0.5, random_state=0)
        .fit(CROWD.X, CROWD.y, form(TABLE), sample_weight=weight)
        .predict_expert_correctness(CROWD.X)
        for form in (lambda table: table, long_table)
    ]
    assert_allclose(*of)


@pytest.mark.parametrize("numbers_as_ids", [[30, 10, 20, 40], [-3, 7, 5, 0]])
def test_whole_numbers_are_ids_too(numbers_as_ids):
    table = pd.DataFrame({"ann": [0, 1, 1, 0], "bob": [1, 1, 0, 0]}, index=numbers_as_ids)
    y = pd.Series([0, 1, 0, 1], index=numbers_as_ids)
    assert team_accuracy(y, [0, 0, 1, -1], [0, 0, 0, 0], long_table(table)) == 0.75


JUDGES = {
    "coverage_accuracy_points": lambda team, X, y, a, w: coverage_accuracy_points(team, X, y, a, coverages=[0.2, 0.5]),
    "team_report": lambda team, X, y, a, w: numbers(team_report(team, X, y, a, sample_weight=w)),
    "expected": lambda team, X, y, a, w: make_team_scorer(decision="expected")(team, X, y, a, w),
    "draw": lambda team, X, y, a, w: make_team_scorer()(team, X, y, a, w),
    "combine": lambda team, X, y, a, w: make_team_scorer(decision="combine")(team, X, y, a, w),
}


@pytest.mark.parametrize("judge", JUDGES)
def test_a_pipeline_that_forgets_ids_is_judged_by_those_of_its_items(judge):
    pipeline = make_pipeline(FunctionTransformer(np.asarray).fit(CROWD.X), TEAM)
    X, y = pd.DataFrame(CROWD.X, index=IDS), pd.Series(CROWD.y, index=IDS)
    expected = JUDGES[judge](TEAM, CROWD.X, CROWD.y, CROWD.annotations, WEIGHT.to_numpy())
    turned = y.iloc[::-1], TABLE.sample(frac=1, random_state=1), WEIGHT.sample(frac=1, random_state=2)
    assert_allclose(JUDGES[judge](pipeline, X, *turned), expected)


@pytest.mark.parametrize("judge", JUDGES)
def test_items_of_unknown_truth_are_not_judged(judge):
    known = np.arange(60) % 4 > 0
    expected = JUDGES[judge](TEAM, CROWD.X[known], CROWD.y[known], CROWD.annotations[known], WEIGHT[known])
    y = np.where(known, CROWD.y.astype(object), None)
    assert_allclose(JUDGES[judge](TEAM, CROWD.X, y, CROWD.annotations, WEIGHT), expected)


def test_weights_of_a_consensus_are_found_by_name():
    y, proba = pd.Series(CROWD.y, index=IDS), pd.DataFrame(PROBA, index=IDS)
    turned = WEIGHT.sample(frac=1, random_state=2)
    right = CROWD.y == LABELS
    assert consensus_accuracy(y, proba, sample_weight=turned) == pytest.approx(np.average(right, weights=WEIGHT))
