"""Batches of rows: those taken together are those that are taken one by one."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sklearn_l2d._torch import _batches
from sklearn_l2d._torch._batches import AnswerRows, AnswerTable, Rows, shuffled_batches
from sklearn_l2d.annotations import Votes


@settings(deadline=None, max_examples=40)
@given(
    answers=st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 3), st.integers(0, 2)), max_size=30, unique_by=lambda a: a[:2]
    ),
    order=st.permutations(range(9)),
    batch_size=st.integers(1, 11),
    at_once=st.sampled_from([1, 300, 1 << 20]),
)
def test_batches_are_the_selected_rows_in_their_order(answers, order, batch_size, at_once):
    item, who, label = np.array(answers, dtype=int).reshape(-1, 3).T
    votes = Votes(item, who, label, 9, np.arange(3), np.arange(4))
    X, table = np.arange(18.0).reshape(9, 2), AnswerTable(votes, votes.label, -1)
    rows = Rows(X, AnswerRows(votes), table, dtype=torch.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_batches, "_AT_ONCE", at_once)
        batches = list(rows.batches(torch.tensor(order), batch_size))
    assert len(batches) == -(-9 // batch_size)
    for number, (got, (got_answers, got_table)) in enumerate(batches):
        chosen = order[number * batch_size : (number + 1) * batch_size]
        assert_array_equal(got, X[chosen])
        assert_array_equal(got_table, table[np.array(chosen)])
        expected = [
            (row, votes.annotator[a], votes.label[a])
            for row, i in enumerate(chosen)
            for a in range(votes.starts[i], votes.starts[i + 1])
        ]
        assert_array_equal(got_answers, np.array(expected, dtype=int).reshape(-1, 3))
    one = rows[torch.tensor(order[:4])]
    assert_array_equal(one[0], X[order[:4]])
    assert_array_equal(one[1][0], AnswerRows(votes)[np.array(order[:4])])


def test_an_epoch_holds_few_batches_of_large_rows():
    """As many rows are taken together as are small, and at least one batch."""
    taken = []

    class Noted(np.ndarray):
        def __getitem__(self, rows):
            taken.append(len(rows))
            return np.asarray(self)[rows]

    rows = Rows(np.zeros((40, _batches._AT_ONCE // 80)).view(Noted), dtype=torch.float32)
    assert len(list(shuffled_batches(rows, 4, torch.Generator().manual_seed(0)))) == 10
    assert taken == [8] * 5  # a row is a tenth of what is taken at once
    taken.clear()
    assert len(list(shuffled_batches(rows, 16, torch.Generator().manual_seed(0)))) == 3
    assert taken == [16, 16, 8]
