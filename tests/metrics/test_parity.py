"""Parity by hand, its standard error by simulation, and confusion matrices by group."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from sklearn_l2d.aggregation import DawidSkene
from sklearn_l2d.metrics import confusion_by_group, consensus_parity


def test_figures_by_hand():
    #         group a: 5 items             group b: 4 items, one of unknown truth
    pred = ["no", "yes", "yes", "no", "no", "yes", "yes", "no", "no"]
    true = ["no", "yes", "no", "yes", "no", "yes", "no", "no", None]
    parity = consensus_parity(pred, list("aaaaabbbb"), true)
    expected = {
        "accuracy": [3 / 5, 2 / 3, 2 / 3 - 3 / 5, np.sqrt(0.6 * 0.4 / 5 + 2 / 9 / 3)],
        "false positive rate": [1 / 3, 1 / 2, 1 / 6, np.sqrt(2 / 9 / 3 + 1 / 4 / 2)],
        "positive share": [2 / 5, 1 / 2, 0.1, np.sqrt(0.4 * 0.6 / 5 + 1 / 4 / 4)],
    }
    for rate, row in expected.items():
        assert_allclose(parity.loc[rate], row)
    assert parity.columns.tolist() == ["a", "b", "difference", "standard error"]
    other = consensus_parity(pred, list("aaaaabbbb"), true, pos_label="no")
    assert_allclose(other.loc["positive share", "difference"], -0.1)
    assert_allclose(other.loc["false positive rate", ["a", "b"]].tolist(), [1 / 2, 0])


def test_columns_are_taken_and_missing_entries_refused():
    pred, groups, true = np.array([1, 0, 1, 1]), np.array(["a", "b", "a", "b"]), np.array([1, 0, 0, 1])
    expected = consensus_parity(pred, groups, true)
    columns = [values[:, None] for values in (pred, groups, true)]
    pd.testing.assert_frame_equal(consensus_parity(*columns), expected)
    votes = np.column_stack([pred, true])
    by_group = confusion_by_group(DawidSkene(), votes, columns[1], columns[2])
    for name, matrices in confusion_by_group(DawidSkene(), votes, groups, true).items():
        assert_allclose(by_group[name], matrices)
    for wrong, name in (((np.array([1, None, 0, 1]), groups), "y_pred"), ((pred, ["a", "b", None, "a"]), "groups")):
        with pytest.raises(ValueError, match=f"{name} holds missing entries; leave these items out"):
            consensus_parity(*wrong)
    with pytest.raises(ValueError, match="groups holds missing entries"):
        confusion_by_group(DawidSkene(), votes, ["a", "b", None, "a"])


def test_without_truth_shares_remain():
    parity = consensus_parity([0, 1, 1, 1], [0, 0, 1, 1])
    assert parity.loc[["accuracy", "false positive rate"]].isna().all(axis=None)
    assert parity.loc["positive share"].tolist() == [0.5, 1.0, 0.5, np.sqrt(0.125)]


def test_the_standard_error_is_that_of_repeated_draws():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], [80, 120])
    tables = [
        consensus_parity(rng.random(200) < 0.3 + 0.2 * groups, groups, rng.random(200) < 0.5).loc["positive share"]
        for _ in range(400)
    ]
    found = pd.DataFrame(tables)
    assert_allclose(found["difference"].mean(), 0.2, atol=0.02)
    assert_allclose(found["standard error"].mean(), found["difference"].std(), rtol=0.12)


def test_rows_are_matched_by_name():
    pred = pd.Series([0, 1, 1, 0, 1], index=list("vwxyz"))
    groups = pd.Series([0, 0, 0, 1, 1], index=list("vwxyz"))
    pd.testing.assert_frame_equal(consensus_parity(pred[::-1], groups), consensus_parity(pred, groups))


def votes_of(groups, skill, random_state=0):
    rng = np.random.default_rng(random_state)
    truth = rng.integers(2, size=len(groups))
    right = rng.random((len(groups), 5)) < skill[groups]
    return np.where(right, truth[:, None], 1 - truth[:, None]), truth


def test_one_group_is_the_plain_model():
    votes, truth = votes_of(np.zeros(200, dtype=int), np.full((1, 5), 0.8))
    y = np.where(np.arange(200) < 50, truth, np.nan)
    for given in (None, y):
        (matrices,) = confusion_by_group(DawidSkene(), votes, np.zeros(200, dtype=int), given).values()
        assert_allclose(matrices, DawidSkene().fit(votes, given).confusion_matrices_)


def test_who_is_worse_in_one_group_is_found():
    groups = np.arange(2000) % 2
    skill = np.array([[0.9, 0.8, 0.8, 0.8, 0.8], [0.6, 0.8, 0.8, 0.8, 0.8]])
    votes, _ = votes_of(groups, skill)
    matrices = confusion_by_group(DawidSkene(), votes, groups)
    assert list(matrices) == [0, 1]
    for group, expected in enumerate(skill):
        assert_allclose(np.einsum("acc->a", matrices[group]) / 2, expected, atol=0.06)
    plain = DawidSkene().fit(votes).confusion_matrices_
    assert_allclose(plain[0].trace() / 2, 0.75, atol=0.06)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="3 groups"):
        consensus_parity([0, 1, 1], [0, 1, 2])
    with pytest.raises(ValueError, match="name one of them as pos_label"):
        consensus_parity([0, 1, 2], [0, 1, 1])
    with pytest.raises(ValueError, match="pos_label=7"):
        consensus_parity([0, 1, 1], [0, 1, 1], pos_label=7)
    with pytest.raises(ValueError, match="inconsistent"):
        consensus_parity([0, 1, 1], [0, 1])
    with pytest.raises(ValueError, match="group b of groups has no answer"):
        confusion_by_group(DawidSkene(), [[0, 1], [None, None]], ["a", "b"])
