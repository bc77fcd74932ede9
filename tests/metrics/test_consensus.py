"""Accuracy of a consensus: ties by three rules, unknown truth, and figures of the majority on real crowds."""

import numpy as np
import pytest

from sklearn_l2d.aggregation import MajorityVote
from sklearn_l2d.datasets import load_crowd
from sklearn_l2d.metrics import consensus_accuracy


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "lowest", "shared"),
    [
        ("bluebird", 0.7593, 0.7593),
        ("dog", 0.8178, 0.8222),
        ("web", 0.7765, 0.7307),
        ("rte", 0.9187, 0.8969),
        ("trec", 0.6611, 0.6514),
    ],
)
def test_majority_of_real_crowds(name, lowest, shared):
    crowd = load_crowd(f"label_only_{name}")
    proba = MajorityVote().fit(crowd.annotations).predict_proba(crowd.annotations)
    for ties, expected in (("lowest", lowest), ("shared", shared)):
        assert abs(consensus_accuracy(crowd.y, proba, ties=ties, unlabeled_label=-1) - expected) <= 5.1e-5
    draws = [consensus_accuracy(crowd.y, proba, ties="random", unlabeled_label=-1, random_state=i) for i in range(40)]
    assert abs(np.mean(draws) - shared) < 0.003


def test_ties_by_hand():
    y = ["b", "a", "c", None]
    proba = [[0.4, 0.4, 0.2], [0.5, 0.5, 0.0], [0.1, 0.2, 0.7], [1.0, 0.0, 0.0]]
    accuracy = [consensus_accuracy(y, proba, classes=["a", "b", "c"], ties=ties) for ties in ("lowest", "shared")]
    assert accuracy == pytest.approx([2 / 3, (0.5 + 0.5 + 1) / 3])
    weighted = consensus_accuracy(y, proba, classes=["a", "b", "c"], sample_weight=[3, 0, 1, 9])
    assert weighted == pytest.approx(1 / 4)
    drawn = {consensus_accuracy(y, proba, classes=["a", "b", "c"], ties="random", random_state=i) for i in range(20)}
    assert drawn == {1 / 3, 2 / 3, 1.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ties": "highest"}, "ties='highest' is unknown"),
        ({"y_true": [None, None]}, "no known label"),
        ({"y_true": [0, -1]}, "no classes"),
        ({"y_true": [0]}, "inconsistent numbers of samples"),
        ({"proba": [[0.5, 0.6], [1, 0]]}, "distributions"),
        ({"classes": ["a", "b", "c"]}, "with 3 classes"),
    ],
)
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        consensus_accuracy(**({"y_true": [0, 1], "proba": [[0.5, 0.5], [1, 0]]} | change))
