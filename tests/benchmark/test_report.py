"""Tables, calibration errors and points of the benchmark against figures by hand."""

import numpy as np
import pytest

from sklearn_l2d.benchmark._tables import markdown, mean, names, paired, select, spread
from sklearn_l2d.benchmark.experiments._calibration import calibration_error
from sklearn_l2d.benchmark.experiments._missing import drop

RECORDS = [
    {"seed": 1, "method": "a", "area": 0.5},
    {"seed": 0, "method": "a", "area": 0.7},
    {"seed": 0, "method": "b"},
]


def test_selection_goes_by_fields_and_seed():
    assert select(RECORDS, "area", method="a") == [0.7, 0.5]
    assert mean(RECORDS, "area", method="a") == pytest.approx(0.6)
    assert np.isnan(mean(RECORDS, "area", method="b"))
    assert names(RECORDS, "seed") == [1, 0]
    assert names(RECORDS, "seed", method="b") == [0]


def test_spread_is_mean_and_sample_deviation():
    assert spread([0.7, 0.5]) == f"0.600 ± {0.1 * np.sqrt(2):.3f}"
    assert spread([0.7]) == "0.700"
    assert spread([]) == ""


def test_paired_differences_and_their_standard_error():
    assert paired([0.5, 0.7], [0.4, 0.4]) == f"+0.2000 ({0.1:.4f})"  # differences .1 and .3: sd .1414, by sqrt(2)
    assert paired([0.5], [0.6]) == "-0.1000 (nan)"


def test_markdown_has_a_line_per_row():
    text = markdown("Title", ["x", "y"], [["a", 0.12345], ["b", np.nan]])
    assert text.splitlines() == ["### Title", "", "| x | y |", "| --- | --- |", "| a | 0.123 |", "| b |  |"]
    assert markdown("Title", ["x"], [], "Note.", level=2).splitlines()[:3] == ["## Title", "", "Note."]


def test_calibration_error_by_hand():
    # two bins: estimates .2, .2 with one right of two, and .9 with none right of one
    error = calibration_error(np.array([0.2, 0.2, 0.9]), np.array([True, False, False]), n_bins=2)
    assert error == pytest.approx((2 * abs(0.2 - 0.5) + 0.9) / 3)


def test_calibration_error_of_true_frequencies_is_zero():
    estimates = np.repeat([0.25, 0.75], 4)
    right = np.array([1, 0, 0, 0, 1, 1, 1, 0], dtype=bool)
    assert calibration_error(estimates, right) == pytest.approx(0)


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.7])
def test_dropped_labels_are_missing_at_the_rate_and_never_all_of_an_item(rate):
    labels = np.arange(400 * 6).reshape(400, 6)
    kept = drop(labels, rate, 0)
    assert (kept[kept >= 0] == labels[kept >= 0]).all()
    assert (kept >= 0).any(1).all()
    assert (kept < 0).mean() == pytest.approx(rate, abs=0.03)
