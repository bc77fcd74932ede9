import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.deferral import BestExpert

N = 80


@pytest.fixture
def data():
    """Experts a, b, c and d are right on the first 40, 70, 60 and 50 of 80 items."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=N)
    X = rng.normal(size=(N, 2)) + y[:, None]
    answers = np.where(np.arange(N)[:, None] < [40, 70, 60, 50], y[:, None], (y[:, None] + 1) % 3)
    return X, y, answers


@pytest.fixture
def best(data):
    X, y, answers = data
    return BestExpert(LogisticRegression()).fit(X, y, annotations=answers)


def test_the_most_accurate_expert_decides_everything(data, best):
    X, y, answers = data
    assert_array_equal(best.predict_deferral(X), 1)
    assert best.score(X, y, annotations=answers) == 70 / N
    assert best.coverage_ == 0
    assert_array_equal(best.workload_, [0, 1, 0, 0])
    assert_array_equal(best.predict_deferral_proba(X)[:, -1], 0)


def test_the_next_best_takes_over_and_then_the_classifier(data, best):
    X, y, answers = data
    best.offboard([1])
    assert best.score(X, y, annotations=answers[:, [0, 2, 3]]) == 60 / N
    assert_array_equal(best.workload_, [0, 1, 0])
    assert best.offboard([0, 2]).score(X, y, annotations=answers[:, [3]]) == 50 / N
    best.offboard([3])
    assert_array_equal(best.predict_team(X, answers[:, :0]), best.predict(X))
    assert best.coverage_ == 1


@pytest.mark.parametrize(("n_right", "chosen"), [(75, "new"), (65, 1)])
def test_a_newcomer_is_judged_by_the_same_tally(data, best, n_right, chosen):
    X, y, answers = data
    newcomer = np.where(np.arange(N) < n_right, y, (y + 1) % 3)[:, None]
    best.onboard(["new"], X, newcomer, y)
    assert best.experts_.tolist() == [0, 1, 2, 3, "new"]
    assert best.targets_[best.predict_deferral(X)[0]] == chosen
    assert best.score(X, y, annotations=np.hstack([answers, newcomer])) == max(n_right, 70) / N
    assert best.experts_[best.workload_.argmax()] == chosen
    assert best.target_shares_.sum() == 1


def test_who_comes_back_is_judged_anew(data, best):
    X, y, answers = data
    best.onboard([1], X, answers[:, [0]], y)  # now as bad as expert 0
    assert best.experts_.tolist() == [0, 2, 3, 1]
    assert best.targets_.tolist() == [0, 1, 2, 3]
    assert_array_equal(best.predict_deferral(X), 2)
    assert best.score(X, y, annotations=answers[:, [0, 2, 3, 0]]) == 60 / N


def test_a_few_lucky_answers_do_not_win(data):
    X, y, answers = data
    answers = answers.copy()
    answers[3:, 0] = -1  # three right answers, no wrong one
    assert_array_equal(BestExpert(LogisticRegression()).fit(X, y, annotations=answers).predict_deferral(X), 1)


def test_newcomers_need_labels_and_somebody_to_be_compared_with(data, best):
    X, y, answers = data
    with pytest.raises(ValueError, match="y is None"):
        best.onboard(["new"], X, answers[:, [0]])
    with pytest.raises(ValueError, match="fitted without experts"):
        BestExpert(LogisticRegression()).fit(X, y).onboard(["new"], X, answers[:, [0]], y)
    with pytest.raises(ValueError, match="name everybody once"):
        best.onboard(["new", "new"], X, answers[:, :2], y)
    assert best.targets_.tolist() == [0, 1, 2, 3]
