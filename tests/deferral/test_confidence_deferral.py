import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import ConfidenceDeferral


class World:
    """Two Gaussian classes on a line with the exact p(c|x); expert a knows class 0, expert b class 1."""

    correctness = np.array([[0.97, 0.5], [0.55, 0.95]])

    def __init__(self, n=400, seed=0):
        rng = np.random.default_rng(seed)
        self.y = np.repeat([0, 1], n // 2)
        self.X = rng.normal(size=(n, 1)) + 1.2 * self.y[:, None]
        right = rng.random((n, 2)) < self.correctness.T[self.y]
        self.annotations = pd.DataFrame(np.where(right, self.y[:, None], 1 - self.y[:, None]), columns=["a", "b"])


class Exact(ClassifierMixin, BaseEstimator):
    """The posterior of the world, as a fitted classifier."""

    classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        one = 1 / (1 + np.exp(0.72 - 1.2 * np.asarray(X)[:, 0]))  # log-odds of unit Gaussians at 0 and 1.2
        return np.column_stack([1 - one, one])

    def predict(self, X):
        return self.predict_proba(X).argmax(1)


@pytest.fixture(scope="module")
def world():
    return World()


@pytest.fixture(scope="module")
def unseen():
    return World(n=1000, seed=1)


@pytest.fixture
def make(world):
    classifier = FrozenEstimator(LogisticRegression().fit(world.X, world.y))
    return lambda **params: ConfidenceDeferral(classifier, random_state=0, **params)


def shares(model, X):
    return np.array([np.mean(model.predict_deferral(X) == k) for k in [*range(len(model.targets_)), -1]])


@pytest.mark.parametrize("cost", [None, 0.03, {"b": 0.03}])
def test_it_is_the_bayes_rule_when_probabilities_and_correctness_are_exact(world, unseen, cost):
    model = ConfidenceDeferral(FrozenEstimator(Exact()), consultation_cost=cost)
    model.fit(world.X, world.y, annotations=world.annotations)
    model.temperature_ = 1.0
    model._roster = model._roster.replace(right=1e12 * World.correctness, seen=np.full((2, 2), 1e12))
    x, price = unseen.X[:, 0], [0, 0] if cost is None else [0, 0.03] if cost == {"b": 0.03} else [0.03, 0.03]
    # expected losses from the densities, item by item
    density = np.exp(-0.5 * (x[:, None] - [0.0, 1.2]) ** 2)
    posterior = density / density.sum(1, keepdims=True)
    losses = np.empty((len(x), 3))
    for j in range(2):
        losses[:, j] = sum(posterior[:, c] * (1 - World.correctness[j, c]) for c in range(2)) + price[j]
    losses[:, 2] = 1 - posterior.max(1)
    best = losses.argmin(1)
    assert len(set(best)) == 3
    assert_array_equal(model.predict_deferral(unseen.X), np.where(best == 2, -1, best))


def test_any_classifier_is_taken_as_it_is(world, unseen, make):
    model = make().fit(world.X, world.y, annotations=world.annotations)
    assert_array_equal(model.predict_proba(unseen.X), model.classifier.predict_proba(unseen.X))
    team = model.score(unseen.X, unseen.y, annotations=unseen.annotations)
    alone = np.mean(model.predict(unseen.X) == unseen.y)
    people = (unseen.annotations.to_numpy() == unseen.y[:, None]).mean(0)
    assert team > max(alone, people.max()) + 0.01
    assert (model.n_iter_, model.history_) == (0, [])


def test_a_classifier_that_picks_columns_by_name(world):
    X = pd.DataFrame({"noise": 0.0, "x": world.X[:, 0]})
    classifier = make_pipeline(make_column_transformer(("passthrough", ["x"])), LogisticRegression())
    model = ConfidenceDeferral(classifier, coverage=0.5, random_state=0)
    model.fit(X, world.y, annotations=world.annotations, X_unlabeled=X[:100])
    plain = ConfidenceDeferral(LogisticRegression(), coverage=0.5, random_state=0)
    plain.fit(world.X, world.y, annotations=world.annotations, X_unlabeled=world.X[:100])
    assert_array_equal(model.predict_deferral(X), plain.predict_deferral(world.X))
    assert_array_equal(model.recalibrate(X).predict_deferral(X), plain.recalibrate(world.X).predict_deferral(world.X))


@pytest.mark.parametrize("coverage", [0.0, 0.1, 0.65, 1.0])
def test_the_requested_coverage_is_met(world, unseen, make, coverage):
    model = make(coverage=coverage).fit(world.X, world.y, annotations=world.annotations, X_unlabeled=unseen.X)
    assert shares(model, unseen.X)[-1] == pytest.approx(coverage, abs=0.5 / 1000 + 1e-9)
    assert_allclose(model.target_shares_, shares(model, unseen.X))
    labelled = make(coverage=coverage).fit(world.X, world.y, annotations=world.annotations)
    assert shares(labelled, world.X)[-1] == pytest.approx(coverage, abs=0.5 / 400 + 1e-9)


def test_a_range_of_coverages_and_workloads(world, unseen, make):
    free = make().fit(world.X, world.y, annotations=world.annotations, X_unlabeled=unseen.X)
    natural = shares(free, unseen.X)
    within = make(coverage=(0, natural[-1] + 0.1)).fit(world.X, world.y, world.annotations, unseen.X)
    assert_array_equal(shares(within, unseen.X), natural)
    bounded = make(coverage=0.4, workload={"a": (0, 0.1)}).fit(world.X, world.y, world.annotations, unseen.X)
    assert_allclose(shares(bounded, unseen.X), [0.1, 0.5, 0.4], atol=0.002)
    assert bounded.constraint_violation_ < 0.002
    with pytest.raises(ValueError, match="upper bound"):
        make(coverage=0.1, workload=(0, 0.2)).fit(world.X, world.y, annotations=world.annotations)


def test_the_path_shares_everything_but_the_offsets(world, unseen, make):
    model = make(coverage=0.5).fit(world.X, world.y, world.annotations, unseen.X)
    requests = [0.0, 0.2, 0.8, 1.0]
    for request, by_margin, by_items in zip(
        requests, model.coverage_path(requests), model.coverage_path(requests, unseen.X), strict=True
    ):
        assert shares(by_margin, unseen.X)[-1] == pytest.approx(request, abs=0.002)
        assert shares(by_items, unseen.X)[-1] == pytest.approx(request, abs=0.001)
        assert by_items.classifier_ is model.classifier_
    assert shares(model, unseen.X)[-1] == 0.5
    with pytest.raises(ValueError, match=r"outside of \[0, 1\]"):
        model.coverage_path([50])


def test_a_dear_expert_is_not_asked(world, unseen, make):
    dear = make(consultation_cost={"a": 2}).fit(world.X, world.y, annotations=world.annotations)
    assert set(dear.predict_deferral(unseen.X)) == {1, -1}
    paid = make(consultation_cost=-2).fit(world.X, world.y, annotations=world.annotations)
    assert -1 not in paid.predict_deferral(unseen.X)
    with pytest.raises(ValueError, match="consultation_cost names 'c'"):
        make(consultation_cost={"c": 1}).fit(world.X, world.y, annotations=world.annotations)


def test_the_roster_needs_no_training(world, unseen, make):
    X, y, annotations = world.X, world.y, world.annotations
    both = make(coverage=0.5).fit(X, y, annotations, unseen.X)
    later = make(coverage=0.5).fit(X, y, annotations[["a"]], unseen.X)
    later.onboard("b", X, annotations[["b"]], y)
    assert_array_equal(later.targets_, both.targets_)
    assert_array_equal(later.offsets_[:-1], [0, 0])
    assert later.workload_[1] == 0  # nobody has counted yet
    with pytest.raises(ValueError, match="a roster that has changed"):
        later.coverage_path([0.5])
    later._roster = later._roster.replace(answering=both._roster.answering)  # all that a fit learns from everybody
    assert_allclose(later.recalibrate(unseen.X).predict_deferral_proba(unseen.X), both.predict_deferral_proba(unseen.X))
    assert shares(later, unseen.X)[-1] == 0.5
    later.offboard("a")
    assert set(later.predict_deferral(unseen.X)) == {1, -1}
    assert shares(later.recalibrate(unseen.X), unseen.X)[-1] == 0.5
    later.offboard("b")
    assert_array_equal(later.predict_deferral(unseen.X), -1)


def test_costs_and_bounds_stay_with_their_owner(world, unseen, make):
    model = make(consultation_cost=[2.0, 0.0], workload=[(0, 1), (0, 0.2)]).fit(world.X, world.y, world.annotations)
    assert set(model.predict_deferral(unseen.X)) == {1, -1}
    model.offboard("b").onboard("c", world.X, world.annotations[["b"]], world.y)
    assert set(model.targets_[model.predict_deferral(unseen.X)[model.predict_deferral(unseen.X) >= 0]]) == {"c"}


def test_without_experts(world, make):
    model = make(coverage=(0.5, 1)).fit(world.X, world.y)
    assert_array_equal(model.predict_deferral(world.X), -1)
    (path,) = model.coverage_path([0.3])
    assert_array_equal(path.recalibrate(world.X).predict_deferral(world.X), -1)
    with pytest.raises(ValueError, match="fitted without experts"):
        model.onboard("a", world.X, world.annotations[["a"]], world.y)


def test_a_coverage_that_nobody_asked_for_is_not_enforced(world, unseen, make):
    easy = np.vstack([np.full((20, 1), -8.0), np.full((20, 1), 8.0)])  # the classifier is surer than anybody
    data = {"X": world.X, "y": world.y, "annotations": world.annotations}
    free, within = make().fit(**data), make(coverage=(0.2, 1.0)).fit(**data, X_unlabeled=easy)
    assert within.coverage_ == pytest.approx(1)
    deferral = free.predict_deferral(unseen.X)
    assert (deferral >= 0).any()
    for model in (within, make().fit(**data, X_unlabeled=easy)):
        assert_array_equal(model.predict_deferral(unseen.X), deferral)
    always = make(coverage=1.0).fit(**data, X_unlabeled=easy)
    assert_array_equal(always.predict_deferral(unseen.X), -1)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_work_is_passed_on_alike_by_tables_and_lists_of_who_is_there(share):
    crowd = load_digits_crowd(random_state=0)
    team = ConfidenceDeferral(LogisticRegression(C=0.01), coverage=0.2, random_state=0)
    team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    available = np.random.default_rng(0).random((len(crowd.X_test), 6)) < share
    with pytest.warns(UserWarning, match="found nobody available"):
        who = team.assign_experts(crowd.X_test, available=available)
    with pytest.warns(UserWarning, match="found nobody available"):
        listed = team.assign_experts(crowd.X_test, available=csr_array(available))
    assert_array_equal(listed, who)
    assert available[who >= 0, who[who >= 0]].all()


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"coverage": 0.9}, {"coverage"}),
        ({"workload": {"a": (0, 0.1)}}, {"workload"}),
        ({"coverage": 0.9, "workload": (0, 0.06)}, {"coverage, workload", "workload"}),
    ],
)
def test_the_explanation_names_the_bound_that_forced_a_choice(make, world, unseen, bounds, words):
    labelled = {"annotations": world.annotations, "X_unlabeled": unseen.X}
    free = make().fit(world.X, world.y, **labelled).explain_deferral(unseen.X)
    told = make(**bounds).fit(world.X, world.y, **labelled).explain_deferral(unseen.X)
    assert "forced by" not in free
    assert_array_equal(told["without bounds"], free["chosen"])
    changed = told["chosen"] != free["chosen"]
    assert 0 < changed.sum() < len(changed)
    assert (told["forced by"][~changed] == "").all()
    assert set(told["forced by"][changed]) <= words
    among_people = changed & (told["chosen"] != "classifier") & (free["chosen"] != "classifier")
    assert "coverage" not in "".join(told["forced by"][among_people])
