import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from sklearn_l2d.deferral import TwoStageDeferral

SETTINGS = {"hidden_layer_sizes": (), "lr": 0.2, "weight_decay": 0.0, "batch_size": 200, "random_state": 0}
RIGHT = np.array([[0.7, 0.5], [0.9, 0.7], [0.4, 0.95], [0.6, 0.55]])
SURE = np.array([0.95, 0.6, 0.6, 0.8])


def make_regions(n=2500, seed=0):
    """Four regions, one-hot, whose likelier class is the parity of their number, and two experts."""
    rng = np.random.default_rng(seed)
    region = rng.integers(4, size=n)
    y = np.where(rng.random(n) < SURE[region], region % 2, 1 - region % 2)
    hit = rng.random((n, 2)) < RIGHT[region]
    return np.eye(4)[region], y, np.where(hit, y[:, None], 1 - y[:, None])


class Parity(ClassifierMixin, BaseEstimator):
    """Says a fixed label per region; never trained."""

    def __init__(self, labels=(0, 1, 0, 1)):
        self.labels = labels

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        return 0.2 + 0.6 * np.eye(2)[np.array(self.labels)[np.asarray(X).argmax(1)]]

    def predict(self, X):
        return self.predict_proba(X).argmax(1)


@pytest.mark.parametrize("labels", [(0, 1, 0, 1), (1, 1, 0, 0)], ids=str)
@pytest.mark.parametrize("price", [(0.0, 0.0), (0.05, 0.25)], ids=str)
def test_best_rule_around_any_fixed_classifier(labels, price):
    X, y, annotations = make_regions(5000)
    annotations = np.where(np.random.default_rng(1).random(annotations.shape) < 0.3, -1, annotations)
    frozen = FrozenEstimator(Parity(labels).fit(X, y))
    model = TwoStageDeferral(frozen, consultation_cost=price, max_epochs=25, **SETTINGS)
    model.fit(X, y, annotations=annotations)
    own = np.where(np.array(labels) == [0, 1, 0, 1], SURE, 1 - SURE)
    assert_array_equal(model.predict_deferral(np.eye(4)), np.column_stack([own, RIGHT - price]).argmax(1) - 1)
    assert model.predict(np.eye(4)).tolist() == list(labels)


def test_a_classifier_that_remembers_its_rows_is_judged_on_others():
    # the nearest neighbour is always right on its own rows and right half the time on new ones
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), rng.integers(2, size=600)
    annotations = np.where(rng.random(600) < 0.8, y, 1 - y)[:, None]
    memory = KNeighborsClassifier(1)
    model = TwoStageDeferral(memory, max_epochs=20, **SETTINGS).fit(X, y, annotations=annotations)
    assert model.coverage_ < 0.1
    fooled = TwoStageDeferral(FrozenEstimator(memory.fit(X, y)), max_epochs=20, **SETTINGS)
    assert fooled.fit(X, y, annotations=annotations).coverage_ > 0.9


def test_without_experts_the_classifier_is_all_there_is():
    X, y, annotations = make_regions(200)
    model = TwoStageDeferral(LogisticRegression(), random_state=0).fit(X, y)
    assert model.net_ is None
    assert model.n_iter_ == 0
    assert model.history_ == []
    assert_array_equal(model.predict_proba(X), LogisticRegression().fit(X, y).predict_proba(X))
    silent = np.column_stack([annotations[:, 0], np.full(200, -1)])
    with pytest.warns(UserWarning, match="nothing is deferred to them"):
        model = clone(model).set_params(max_epochs=3).fit(X, y, annotations=silent)
    assert (model.predict_deferral(np.random.default_rng(0).normal(size=(500, 4)) * 10) < 1).all()


def test_what_is_wrong_is_said_before_any_work():
    X, y, annotations = make_regions(50)
    with pytest.raises(ValueError, match=r"consultation_cost=\{0: -1\} is negative"):
        TwoStageDeferral(consultation_cost={0: -1}, max_epochs=10**9).fit(X, y, annotations=annotations)
