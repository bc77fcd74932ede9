"""Answers and accuracy of panels, whose `replay` is all that is asked of them."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_l2d.annotations import AnnotatedTarget
from sklearn_l2d.metrics import answers_accuracy_curve

X = np.zeros((4, 1))
Y = np.array(["a", "b", "b", "a"])
ANNOTATIONS = np.array([["a", "b"], ["b", None], [None, "a"], [None, None]], dtype=object)


class FirstAnswers:
    """Asks the first `longest` people who answered an item and takes the last answer, or else "a"."""

    def __init__(self, longest):
        self.longest = longest

    def replay(self, X, annotations):
        asked, labels = np.full((len(X), 2), -1), np.full(len(X), "a")
        for i, row in enumerate(annotations):
            who = [j for j, answer in enumerate(row) if answer is not None][: self.longest]
            asked[i, : len(who)] = who
            if who:
                labels[i] = row[who[-1]]
        return SimpleNamespace(asked=asked, labels=labels, proba=None)


def test_points_are_sorted_by_the_answers_that_were_asked_for():
    panels = [FirstAnswers(2), FirstAnswers(0), FirstAnswers(1)]
    answers, accuracy, standard_error = answers_accuracy_curve(panels, X, Y, ANNOTATIONS)
    assert answers.tolist() == [0, 0.75, 1]
    assert accuracy.tolist() == [0.5, 0.75, 0.5]
    by_hand = [np.std(right, ddof=1) / 2 for right in ([1, 0, 0, 1], [1, 1, 0, 1], [0, 1, 0, 1])]
    assert_allclose(standard_error, by_hand)
    carried = answers_accuracy_curve(panels, X, AnnotatedTarget(Y, ANNOTATIONS))
    assert_allclose(carried, (answers, accuracy, standard_error))


def test_bad_input():
    with pytest.raises(TypeError, match="give what answers_path returns"):
        answers_accuracy_curve(FirstAnswers(1), X, Y, ANNOTATIONS)
    with pytest.raises(TypeError, match="panels is no sequence of fitted PanelDeferral"):
        answers_accuracy_curve(["panel"], X, Y, ANNOTATIONS)
    with pytest.raises(ValueError, match="panels is empty"):
        answers_accuracy_curve([], X, Y, ANNOTATIONS)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        answers_accuracy_curve([FirstAnswers(1)], X, Y[:3], ANNOTATIONS)
