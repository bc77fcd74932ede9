import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.deferral import ClassifierOnly


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    X = rng.normal(size=(60, 2)) + y[:, None]
    answers = np.where(rng.random((60, 3)) < [0.9, 0.8, 0.6], y[:, None], 1 - y[:, None])
    return X, y, answers


def test_the_classifier_decides_everything_whoever_comes_and_goes(data):
    X, y, answers = data
    classifier = LogisticRegression().fit(X[:20], y[:20])
    alone = ClassifierOnly(FrozenEstimator(classifier)).fit(X, y, annotations=answers)
    assert alone.experts_.tolist() == [0, 1, 2]
    team = {name: answers[:, column] for name, column in ((0, 0), (1, 1), (2, 2), ("new", 0))}
    for change in (lambda: None, lambda: alone.offboard([1]), lambda: alone.onboard("new", X, answers[:, :1], y)):
        change()
        annotations = np.column_stack([team[name] for name in alone.experts_])
        assert alone.score(X, y, annotations=annotations) == classifier.score(X, y)
        assert_array_equal(alone.predict_team(X, annotations), classifier.predict(X))
        assert_array_equal(alone.predict_deferral_proba(X), [[0, 1]] * 60)
        assert_array_equal(alone.workload_, [0] * alone.n_experts_)
    assert alone.experts_.tolist() == [0, 2, "new"]
    assert alone.coverage_ == 1
    assert set(alone.route(X)["expert"]) == {"classifier"}
    alone.offboard([0, 2, "new"])
    assert_array_equal(alone.predict_deferral(X), -1)


def test_everybody_is_one_target_of_equal_members(data):
    X, y, answers = data
    alone = ClassifierOnly(LogisticRegression()).fit(X, y, annotations=answers)
    assert alone.targets_.tolist() == ["anybody"]
    assert_array_equal(alone.selection_, np.full((1, 3), 1 / 3))
    assert_array_equal(alone.offboard([0]).selection_, [[0.5, 0.5]])
