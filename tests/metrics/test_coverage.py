import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sklearn_l2d.metrics import (
    coverage_accuracy_auc,
    coverage_accuracy_curve,
    deferral_report,
    team_accuracy,
    workload_distribution,
)

Y = np.array([0, 1, 2, 1, 0])
CLASSIFIER = np.array([0, 1, 0, 0, 1])
ANNOTATIONS = np.array([[0, 1, 0], [1, -1, 2], [2, 2, -1], [-1, -1, 1], [1, 0, 0]])
SELECTION = np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])
DEFERRAL = np.array([0, -1, 1, 0, 1])
# Item by item: half right; classifier right; only expert 1 answered, right; nobody of target 0 answered and
# the classifier is wrong; both experts of target 1 right.
TEAM = np.array([0.5, 1.0, 1.0, 0.0, 1.0])


def test_curve_sorts_averages_ties_and_adds_ends():
    coverage, accuracy = coverage_accuracy_curve(
        [0.5, 0.25, 0.5], [0.8, 0.9, 0.6], human_accuracy=0.95, classifier_accuracy=0.5
    )
    np.testing.assert_allclose(coverage, [0, 0.25, 0.5, 1])
    np.testing.assert_allclose(accuracy, [0.95, 0.9, 0.7, 0.5])


def test_area_by_hand():
    area = coverage_accuracy_auc([0.25], [0.9], human_accuracy=0.8, classifier_accuracy=0.6)
    assert area == pytest.approx(0.25 * 0.85 + 0.75 * 0.75)
    measured = coverage_accuracy_auc([0, 1], [0.4, 0.6], human_accuracy=0.9, classifier_accuracy=0.9)
    assert measured == pytest.approx(0.5)


def test_random_deferral_is_a_straight_line():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 4000)
    annotations = np.where(rng.random((4000, 2)) < [0.9, 0.7], y[:, None], (y[:, None] + 1) % 3)
    classifier = np.where(rng.random(4000) < 0.6, y, (y + 1) % 3)
    points = []
    for coverage in np.linspace(0, 1, 11):
        deferral = np.where(rng.random(4000) < coverage, -1, 0)
        points.append((np.mean(deferral == -1), team_accuracy(y, deferral, classifier, annotations, [[0.5, 0.5]])))
    ends = points[0][1], points[-1][1]
    assert coverage_accuracy_auc(*np.transpose(points)) == pytest.approx(np.mean(ends), abs=0.01)
    assert np.mean(ends) == pytest.approx((0.8 + 0.6) / 2, abs=0.02)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"classifier_accuracy": 0.5}, "no point has coverage 0. Add one or give human_accuracy"),
        ({"human_accuracy": 0.5}, "no point has coverage 1. Add one or give classifier_accuracy"),
        ({"human_accuracy": 80.0, "classifier_accuracy": 0.5}, "accuracy: every value"),
    ],
)
def test_curve_refuses_open_ends_and_percentages(kwargs, message):
    with pytest.raises(ValueError, match=message):
        coverage_accuracy_curve([0.5], [0.7], **kwargs)


def test_curve_refuses_other_nonsense():
    with pytest.raises(ValueError, match="coverage: every value"):
        coverage_accuracy_auc([0, 1.2, 1], [0.5, 0.5, 0.5])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        coverage_accuracy_auc([0, 1], [0.5, 0.5, 0.5])


def test_team_accuracy_by_hand():
    got = team_accuracy(Y, DEFERRAL, CLASSIFIER, ANNOTATIONS, SELECTION)
    assert got == pytest.approx(TEAM.mean())
    weight = np.arange(1, 6)
    got = team_accuracy(Y, DEFERRAL, CLASSIFIER, ANNOTATIONS, SELECTION, weight)
    assert got == pytest.approx(np.average(TEAM, weights=weight))


def test_experts_are_the_targets_by_default():
    assert team_accuracy(Y, np.zeros(5, int), CLASSIFIER, ANNOTATIONS) == pytest.approx(3 / 5)


def test_team_accuracy_equals_the_mean_over_draws():
    rng = np.random.default_rng(1)
    draws = []
    for _ in range(4000):
        decided = CLASSIFIER.copy()
        for i in np.flatnonzero(DEFERRAL >= 0):
            w = SELECTION[DEFERRAL[i]] * (ANNOTATIONS[i] >= 0)
            if w.any():
                decided[i] = ANNOTATIONS[i, rng.choice(3, p=w / w.sum())]
        draws.append(np.mean(decided == Y))
    got = team_accuracy(Y, DEFERRAL, CLASSIFIER, ANNOTATIONS, SELECTION)
    assert np.mean(draws) == pytest.approx(got, abs=0.01)


def test_labels_of_any_kind():
    names = np.array(["a", "b", "c"])
    text = pd.DataFrame(np.where(ANNOTATIONS < 0, None, names[ANNOTATIONS]), columns=["x", "y", "z"])
    got = team_accuracy(names[Y], DEFERRAL, names[CLASSIFIER], text, SELECTION)
    assert got == pytest.approx(TEAM.mean())
    # With classes -1 and 1, -1 is a vote and only NaN is missing.
    votes = [[-1.0, np.nan], [np.nan, 1.0]]
    assert team_accuracy([-1, -1], [0, 1], [1, 1], votes) == 0.5
    assert team_accuracy([-1, -1], [1, 0], [1, -1], votes) == 0.5


def test_workload_by_hand():
    expected = np.array([0.5, 0.5 + 1.0 + 0.25, 0.75, 2.0]) / 5
    np.testing.assert_allclose(workload_distribution(DEFERRAL, SELECTION, ANNOTATIONS), expected)
    np.testing.assert_allclose(workload_distribution(DEFERRAL, SELECTION), np.array([1, 1.5, 1.5, 1.0]) / 5)
    np.testing.assert_allclose(workload_distribution([2, -1, 0, 2], n_experts=3), [0.25, 0, 0.5, 0.25])
    weighted = workload_distribution([2, -1], n_experts=3, sample_weight=[3, 1])
    np.testing.assert_allclose(weighted, [0, 0, 0.75, 0.25])


def test_report_by_hand():
    report = deferral_report(
        Y,
        DEFERRAL,
        CLASSIFIER,
        pd.DataFrame(np.where(ANNOTATIONS < 0, np.nan, ANNOTATIONS), columns=["ann", "bob", "eve"]),
        SELECTION,
        coverage=(0.1, 0.3),
        workload=[[0, 0.2], [0, 1], [0, 0.5]],
        target_names=["day", "night"],
    )
    numbers = {key: value for key, value in report.items() if key not in ("targets", "experts", "confusion")}
    assert numbers == {
        "n_samples": 5,
        "coverage": pytest.approx(0.2),
        "requested_coverage": (0.1, 0.3),
        "fallback": pytest.approx(0.2),
        "team_accuracy": pytest.approx(0.7),
        "classifier_accuracy": pytest.approx(0.4),
        "accuracy_deferred": pytest.approx(2.5 / 4),
        "accuracy_kept": 1.0,
        "classifier_accuracy_deferred": pytest.approx(0.25),
    }
    targets = pd.DataFrame(report["targets"]).set_index("target")
    assert targets.index.tolist() == ["day", "night", "classifier"]
    np.testing.assert_allclose(targets["share"], [0.4, 0.4, 0.2])
    np.testing.assert_allclose(targets["accuracy"], [0.25, 1, 1])
    np.testing.assert_allclose(targets["classifier_accuracy"], [0.5, 0, 1])
    np.testing.assert_allclose(targets["fallback"], [0.5, 0, 0])
    experts = pd.DataFrame(report["experts"]).set_index("expert")
    assert experts.index.tolist() == ["ann", "bob", "eve", "classifier"]
    np.testing.assert_allclose(experts["share"], [0.1, 0.35, 0.15, 0.4])
    np.testing.assert_allclose(experts["accuracy"], [1, 1.25 / 1.75, 1, 0.5])
    np.testing.assert_allclose(experts["requested_high"], [0.2, 1, 0.5, 0.3])
    confusion = pd.DataFrame(report["confusion"]).set_index("truth")
    np.testing.assert_allclose(confusion, [[0, 0, 0, 0.4], [0, 0.2, 0, 0.2], [0, 0, 0, 0.2]])


def test_report_over_nothing_is_nan():
    report = deferral_report(Y, np.full(5, -1), CLASSIFIER, ANNOTATIONS, coverage=1.0)
    assert np.isnan(report["accuracy_deferred"])
    assert report["coverage"] == 1
    assert report["requested_coverage"] == (1.0, 1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"deferral": [0, 1, 2, 0, 0]}, "there are 2 targets"),
        ({"deferral": [0, -2, 1, 0, 0]}, "codes run from -2"),
        ({"deferral": [0.0, 1.0, 0, 0, 0]}, "must be integers"),
        ({"deferral": [0, 1]}, "inconsistent numbers"),
        ({"selection": [[0.5, 0.5]]}, "one column per expert"),
        ({"selection": [[-0.5, 0.5, 1], [0, 0, 1]]}, "non-negative"),
        ({"y_classifier": [0, 1]}, "inconsistent numbers"),
    ],
)
def test_bad_input_is_named(changes, message):
    kwargs = {
        "y_true": Y,
        "deferral": DEFERRAL,
        "y_classifier": CLASSIFIER,
        "annotations": ANNOTATIONS,
        "selection": SELECTION,
    }
    with pytest.raises(ValueError, match=message):
        team_accuracy(**kwargs | changes)


def test_unknown_number_of_experts():
    with pytest.raises(ValueError, match="n_experts"):
        workload_distribution([0, -1])


# ------------------------------------------------------------------------------------------ combined labels


def test_report_of_combined_labels_by_hand():
    y = np.array(["a", "a", "b", "b"])
    annotations = pd.DataFrame({"p": ["a", None, "b", "a"], "q": ["a", None, None, "b"]})
    proba = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3]])
    cost = np.array([[0, 2.0], [8.0, 0]])
    report = deferral_report(
        y, [0, -1, 1, -1], ["a", "b", "b", "b"], annotations, team_proba=proba, sample_weight=[1, 1, 1, 3]
    )
    assert report["combined_accuracy"] == pytest.approx(2 / 6)
    assert report["combined_confidence"] == pytest.approx((0.9 + 0.6 + 0.8 + 3 * 0.7) / 6)
    assert report["answers"]["answers"] == [0, 1, 2]
    assert_allclose(report["answers"]["share"], [1 / 6, 1 / 6, 4 / 6])
    assert_allclose(report["answers"]["accuracy"], [0, 1, 0.25])
    assert_allclose(report["answers"]["confidence"], [0.6, 0.8, (0.9 + 2.1) / 4])
    assert report["confusion"]["truth"] == ["a", "b"]
    assert_allclose(report["confusion"]["a"], [0, 0])
    assert_allclose(report["confusion"]["b"], [1 / 6, 3 / 6])
    assert_allclose(report["confusion"]["deferred"], [1 / 6, 1 / 6])
    assert "team_cost" not in report
    dear = deferral_report(y, [0, -1, 1, -1], ["a", "b", "b", "b"], annotations, team_proba=proba, error_cost=cost)
    assert dear["team_cost"] == dear["classifier_cost"] == pytest.approx(2 / 4)  # item 1 is taken for b
    assert dear["combined_cost"] == pytest.approx(2 / 4)  # the last item is b by its expected cost
    assert dear["combined_accuracy"] == 0.75


def test_a_class_may_have_the_name_of_a_column():
    y = ["truth", "deferred", "deferred"]
    report = deferral_report(y, [0, -1, -1], ["truth", "deferred", "truth"], [["truth"], ["truth"], ["truth"]])
    assert report["confusion"] == {
        "truth": ["deferred", "truth"],
        "class deferred": [pytest.approx(1 / 3), 0.0],
        "class truth": [pytest.approx(1 / 3), 0.0],
        "deferred": [0.0, pytest.approx(1 / 3)],
    }


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(2, 4))
def test_calibration_of_combined_labels(seed, n, n_classes):
    rng = np.random.default_rng(seed)
    y, labels = rng.integers(n_classes, size=(2, n))
    codes = rng.integers(-1, n_classes, size=(n, 3))
    proba, weight = rng.dirichlet(np.ones(n_classes), size=n), rng.random(n) + 0.1
    report = deferral_report(
        y, rng.integers(-1, 3, size=n), labels, codes, team_proba=proba, classes=range(n_classes), sample_weight=weight
    )
    for table in ("answers", "calibration"):
        share = np.array(report[table]["share"])
        assert_allclose(share.sum(), 1)
        for column, number in (("accuracy", "combined_accuracy"), ("confidence", "combined_confidence")):
            assert_allclose(share @ report[table][column], report[number])
    assert (np.diff(report["calibration"]["confidence"]) >= 0).all()
    assert 0 <= report["calibration_error"] <= 1
    gap = abs(report["combined_accuracy"] - report["combined_confidence"])
    assert report["calibration_error"] >= gap - 1e-12
    confusion = np.array([report["confusion"][column] for column in (*range(n_classes), "deferred")])
    assert_allclose(confusion.sum(), 1)
    assert_allclose(confusion[-1].sum(), 1 - report["coverage"])


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ({"team_proba": [[0.5, 0.5]]}, r"team_proba has shape \(1, 2\).* shape \(2, 2\)"),
        ({"team_proba": [[0.5, np.nan]] * 2}, "finite, non-negative"),
        ({"error_cost": [[0, 1, 1]]}, r"error_cost has shape \(1, 3\), but there are 2 classes"),
        ({"classes": [0]}, r"classes lacks the labels \[1\]"),
    ],
)
def test_bad_arguments_of_combined_labels(further, message):
    with pytest.raises(ValueError, match=message):
        deferral_report([0, 1], [-1, 0], [0, 0], [[0], [1]], **further)


def test_an_answer_that_is_no_class_is_wrong_and_costs_most():
    y, classifier, answers = [0, 1, 1, 0], [0, 1, 0, 1], [[0, 1], [7, 1], [1, 0], [0, 0]]
    cost = [[0, 1], [5, 0]]
    with pytest.warns(UserWarning, match=r"1 of 8 answers, by \[0\], are labels that are no classes, \[7\]"):
        report = deferral_report(y, [0, 0, -1, -1], classifier, answers, classes=[0, 1], error_cost=cost)
    assert report["team_accuracy"] == 0.25
    assert report["team_cost"] == (0 + 5 + 5 + 1) / 4
    assert team_accuracy(y, [0, 0, -1, -1], classifier, answers) == 0.25


@pytest.mark.parametrize("metric", [team_accuracy, deferral_report])
def test_minus_one_among_true_labels_is_told_once(metric):
    arguments = ([0, 1, -1], [0, 0, 0], [0, 0, 0], [[0], [1], [-1]])
    with pytest.warns(UserWarning, match="y_true holds -1 beside 0 to 1; it is taken as a class") as told:
        metric(*arguments)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric(*arguments, missing_label=np.nan)
        metric([-1, 1, 1], *arguments[1:])


def test_a_selection_with_names_is_matched_to_the_columns_of_the_answers():
    """The target picks bob, who is right; the table of answers lists him first, that of the selection last."""
    answers = pd.DataFrame({"bob": [1, 0, 1], "ann": [0, 1, 0]})
    selection = pd.DataFrame([[0.0, 1.0]], columns=["ann", "bob"])
    rows = [1, 0, 1], [0, 0, 0], [0, 1, 0], answers
    assert team_accuracy(*rows, selection) == 1.0
    assert team_accuracy(*rows, selection[["bob"]]) == 1.0  # who is left out is never picked
    assert team_accuracy(*rows, selection.to_numpy()) == 0.0
    with pytest.raises(ValueError, match="selection names unknown experts"):
        team_accuracy(*rows, selection.rename(columns={"bob": "tom"}))


@pytest.mark.parametrize(
    "codes",
    [
        lambda codes: pd.Series(codes, dtype="Int64"),
        lambda codes: np.array(codes, dtype=object),
    ],
    ids=["Int64", "object"],
)
def test_codes_of_a_deferral_are_whole_numbers_of_any_type(codes):
    given = [0, -1, 1, 0]
    expected = workload_distribution(given, n_experts=2)
    assert_allclose(workload_distribution(codes(given), n_experts=2), expected)
    with pytest.raises(ValueError, match="the codes must be integers"):
        workload_distribution(codes([0, -1, 1, None]), n_experts=2)
