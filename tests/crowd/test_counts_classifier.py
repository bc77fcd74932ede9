"""Tests of the classifier that learns from anonymous votes."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sklearn_l2d.annotations import encode_votes, to_counts
from sklearn_l2d.crowd import CountsClassifier, NetClassifier

FAST = {"hidden_layer_sizes": (8,), "max_epochs": 5, "weight_decay": 0.01, "random_state": 0}


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=120)
    X = (rng.normal(size=(120, 4)) + 2 * np.eye(3, 4)[y]).astype(np.float32)
    codes = np.where(rng.random((120, 5)) < 0.3, rng.integers(3, size=(120, 5)), y[:, None])
    codes[rng.random(codes.shape) < 0.4] = -1
    return X, y, codes, to_counts(codes, classes=[0, 1, 2])


def proba(X, *args, **kwargs):
    return CountsClassifier(**FAST).fit(X, *args, **kwargs).predict_proba(X)


def test_truths_alone_train_the_plain_net(crowd):
    X, y, _, _ = crowd
    assert_allclose(proba(X, y), NetClassifier(**FAST).fit(X, y).predict_proba(X), atol=1e-6)


def test_votes_at_their_word_are_labels(crowd):
    X, y, _, _ = crowd
    plain = CountsClassifier(vote_accuracy=1, **FAST).fit(X, counts=y)
    assert_allclose(plain.predict_proba(X), NetClassifier(**FAST).fit(X, y).predict_proba(X), atol=1e-3)


def test_without_features_the_classes_are_those_that_explain_the_votes():
    # the shares of the votes are those of the classes times the confusion matrix, which is invertible
    shares = np.array([0.5, 0.3, 0.2])
    net = CountsClassifier((2,), weight_decay=0.0, lr=0.2, max_epochs=300, random_state=0)
    net.fit(np.zeros((10, 1)), counts=np.tile(100 * shares, (10, 1)))
    confusion = 0.7 * np.eye(3) + 0.1
    assert_allclose(net.confusion_matrices_, confusion[None], atol=1e-6)
    assert_allclose(net.predict_proba([[0.0]])[0], np.linalg.solve(confusion.T, shares), atol=2e-3)


def test_a_planted_confusion_is_found():
    rng = np.random.default_rng(0)
    confusion = np.array([[0.9, 0.05, 0.05], [0.3, 0.6, 0.1], [0.05, 0.15, 0.8]])
    y = rng.integers(3, size=600)
    counts = np.array([rng.multinomial(5, confusion[truth]) for truth in y])
    truth = np.where(np.arange(600) < 100, y, np.nan)
    net = CountsClassifier((8,), lr=0.2, learn_confusion=True, random_state=0).fit(
        3.0 * np.eye(3)[y], truth, None, counts
    )
    assert_allclose(net.confusion_matrices_[0], confusion, atol=0.05)
    answers = net.predict_annotation_proba(3.0 * np.eye(3))
    assert_allclose(answers[:, 0], net.predict_proba(3.0 * np.eye(3)) @ net.confusion_matrices_[0])
    assert net.annotators_.tolist() == ["anybody"]


def test_votes_on_items_of_known_truth_tell_how_people_err():
    counts = np.array([[6, 2, 0], [0, 4, 4], [1, 0, 3], [1, 1, 1]])
    net = CountsClassifier(max_epochs=1, random_state=0).fit(np.eye(4), [0, 1, 2, None], counts=counts)
    # 13 of 20 votes are right; eight votes of which .8 are right come before them, and eight in each class
    right = (13 + 8 * 0.8) / (20 + 8)
    table = counts[:3] + 8 * np.where(np.eye(3), right, (1 - right) / 2)
    assert_allclose(net.confusion_matrices_[0], table / table.sum(1, keepdims=True), atol=1e-6)


def test_known_truths_correct_what_the_crowd_believes():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    X, believed = np.column_stack([y, 1 - y]) * 2.0, np.where(rng.random(300) < 0.7, 0, y)
    truth = np.where(np.arange(300) < 60, y, -1)  # most votes for class 0 are wrong where class 1 is true
    kwargs = {"counts": np.eye(2)[believed] * 3}
    net = CountsClassifier(learn_confusion=True, unlabeled_label=-1, random_state=0)
    assert net.fit(X, truth, **kwargs).score(X, y) == 1
    assert net.fit(X, **kwargs).score(X, y) < 1


def test_answers_by_name_are_counted(crowd):
    X, y, codes, counts = crowd
    some_y = np.where(np.arange(len(y)) < 20, y, np.nan)
    want = proba(X, some_y, counts=counts)
    votes = encode_votes(codes, classes=[0, 1, 2])
    for given in ({"annotations": codes}, {"annotations": votes}, {"counts": votes}, {"counts": votes.to_sparse()}):
        assert_array_equal(proba(X, some_y, **given), want)


def test_columns_and_rows_go_by_name(crowd):
    X, y, _, counts = crowd
    names = [f"item {i}" for i in range(len(y))]
    table = pd.DataFrame(counts, columns=["a", "b", "c"], index=names).iloc[::-1, [2, 0, 1]]
    net = CountsClassifier(**FAST).fit(pd.DataFrame(X, index=names), counts=table)
    assert_array_equal(net.predict_proba(pd.DataFrame(X)), proba(X, counts=counts))
    assert net.classes_.tolist() == ["a", "b", "c"]
    few = CountsClassifier(**FAST).fit(X[:40], y[:40] * 10, counts=pd.DataFrame({0: counts[:40, 0], 70: 1}))
    assert few.classes_.tolist() == [0, 10, 20, 70]


def test_weights_are_repetitions_and_zero_is_absence(crowd):
    X, y, _, counts = crowd
    kept = np.arange(len(y)) < 60
    weighted = proba(X, y, counts=counts, sample_weight=1.0 * kept)
    alone = CountsClassifier(**FAST).fit(X[kept], y[kept], counts=counts[kept])
    assert_array_equal(weighted, alone.predict_proba(X))
    twice = proba(X, y, counts=counts, sample_weight=np.full(len(y), 2.0))
    assert_allclose(twice, proba(X, y, counts=counts), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "requires y to be passed"),
        ({"annotations": [[0, 1]] * 4, "counts": [[1, 0]] * 4}, "both given; pass one"),
        ({"counts": [[1, 0]] * 3}, "counts has 3 rows, but X has 4"),
        ({"counts": [[1, -1]] * 4}, r"counts cannot be used: .*negative.*encode_votes"),
        ({"y": ["a", "b", "a", "b"], "counts": [[1, 0, 0]] * 4}, r"columns without names.*\[0, 1, 2\].*'a', 'b'"),
        ({"y": [1, 2, 1, 2], "counts": [[1, 0, 0, 1]] * 3 + [[0] * 4]}, None),
        ({"y": [1, 2, 1, 7], "counts": [[1, 0, 0, 1]] * 4}, r"labels are \[1, 2, 7\].*in a DataFrame"),
        ({"y": [1, 2, 1, 2], "counts": pd.DataFrame({"ann": [1, 2, 1, 2], "bob": 1})}, "'ann', 'bob'.*encode_votes"),
    ],
)
def test_what_does_not_fit_is_refused(given, message):
    X, net = np.arange(8.0).reshape(4, 2), CountsClassifier(max_epochs=1, random_state=0)
    if message is None:
        assert clone(net).fit(X, **given).classes_.tolist() == [0, 1, 2, 3]
        return
    fitted = net.fit(X, [0, 1, 0, 1])
    before = fitted.predict_proba(X)
    with pytest.raises(ValueError, match=message):
        fitted.fit(X, **given)
    assert_array_equal(fitted.predict_proba(X), before)
