"""Training, calibration and bad input of ClusterDeferral; the roster has a file of its own."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from torch import nn

from sklearn_l2d.annotations import AnnotatedTarget, encode_votes
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.deferral import ClusterDeferral

LDA = {"hidden_layer_sizes": (4,), "max_epochs": 3, "n_anchor_epochs": 1, "n_consensus_epochs": 2, "random_state": 0}
OMEGA = np.repeat(np.eye(2), 2, axis=0)  # four experts, two by two


class Crowd:
    """Three Gaussian classes; experts a and b know classes 0 and 1, experts c and d know class 2."""

    def __init__(self, n=240, seed=0, labels=(0, 1, 2)):
        rng = np.random.default_rng(seed)
        self.codes = rng.integers(3, size=n)
        self.X = rng.normal(size=(n, 4)) + 1.5 * np.eye(3, 4)[self.codes]
        self.labels = np.array(labels)
        self.y = self.labels[self.codes]
        knows = np.where(self.codes[:, None] == 2, [0, 0, 1, 1], [1, 1, 0, 0])
        wrong = (self.codes[:, None] + rng.integers(1, 3, size=(n, 4))) % 3
        self.answer_codes = np.where(rng.random((n, 4)) < np.where(knows, 0.95, 0.3), self.codes[:, None], wrong)
        self.annotations = pd.DataFrame(self.labels[self.answer_codes], columns=list("abcd"))


@pytest.fixture(scope="module")
def crowd():
    return Crowd()


@pytest.fixture(scope="module")
def unseen():
    return Crowd(n=600, seed=1)


@pytest.fixture(scope="module")
def classifier(crowd):
    """Weak: it has seen few rows."""
    return FrozenEstimator(LogisticRegression(C=0.05).fit(crowd.X[:40], crowd.y[:40]))


@pytest.fixture(scope="module")
def make(classifier):
    defaults = {"omega": OMEGA, "grouping": "hard", "classifier": classifier, "max_epochs": 15}
    defaults |= {"batch_size": 32, "random_state": 0}
    return lambda **params: ClusterDeferral(**(defaults | params))


@pytest.fixture(scope="module")
def balanced(make, crowd, unseen):
    """Fitted at coverage .5, for tests that do not change it."""
    return make(coverage=0.5).fit(crowd.X, crowd.y, crowd.annotations, X_unlabeled=unseen.X)


def hard_shares(model, X):
    return np.bincount(model.predict_deferral(X) % (len(model.targets_) + 1), minlength=len(model.targets_) + 1) / len(
        X
    )


# ------------------------------------------------------------------------------------------ what it is for


def test_the_gate_finds_who_knows_what(balanced, unseen):
    deferral = balanced.predict_deferral(unseen.X)
    knows_two = (unseen.codes == 2)[deferral >= 0]
    assert (knows_two == (deferral == 1)[deferral >= 0]).mean() > 0.7
    alone = np.mean(balanced.predict(unseen.X) == unseen.y)
    crowd_alone = np.mean(unseen.annotations.to_numpy() == unseen.y[:, None])
    team = balanced.score(unseen.X, unseen.y, unseen.annotations)
    assert team > max(alone, crowd_alone) + 0.03


def test_profile_groups_are_the_experts_who_are_right_in_the_same_places(make, crowd):
    model = make(grouping="profile", n_groups=2, max_epochs=1).fit(crowd.X, crowd.y, crowd.annotations)
    assert_array_equal(model.omega_[0], model.omega_[1])
    assert_array_equal(model.omega_[2], model.omega_[3])
    assert (model.omega_[0] != model.omega_[2]).any()
    one = make(grouping="profile", n_groups=1, max_epochs=1).fit(crowd.X, crowd.y, crowd.annotations)
    assert_array_equal(one.omega_, np.ones((4, 1)))


def test_without_annotations_the_classifier_decides_everything(make, crowd, unseen, classifier):
    model = make().fit(crowd.X, crowd.y)
    assert model.n_experts_ == len(model.targets_) == 0
    assert_array_equal(model.predict_deferral(unseen.X), -1)
    assert_array_equal(model.predict_deferral_proba(unseen.X), np.ones((600, 1)))
    assert_array_equal(model.assign_experts(unseen.X), -1)
    assert_array_equal(model.predict_team(unseen.X), classifier.predict(unseen.X))
    assert model.score(unseen.X, unseen.y) == classifier.score(unseen.X, unseen.y)
    assert model.coverage_ == 1
    assert set(model.route(unseen.X)["expert"]) == {"classifier"}
    assert set(model.explain_deferral(unseen.X)["chosen"]) == {"classifier"}
    assert_array_equal(model.offboard([]).predict_deferral(unseen.X), -1)
    (path,) = model.coverage_path([0.5])
    assert_array_equal(path.predict_deferral(unseen.X), -1)
    assert_array_equal(model.recalibrate(unseen.X).predict_deferral(unseen.X), -1)
    with pytest.raises(ValueError, match="no groups to join"):
        model.onboard(["e"], crowd.X, crowd.annotations[["a"]])


def test_score_without_annotations_names_both_fixes(balanced, unseen):
    with pytest.raises(ValueError, match=r"set_config\(enable_metadata_routing=True\).*AnnotatedTarget"):
        balanced.score(unseen.X, unseen.y)


def test_score_is_the_expected_accuracy_of_the_team(balanced, unseen):
    weight = np.random.default_rng(0).random(len(unseen.y))
    deferral, labels = balanced.predict_deferral(unseen.X), balanced.predict(unseen.X)
    right = unseen.annotations.to_numpy() == unseen.y[:, None]
    expected = np.where(deferral < 0, labels == unseen.y, np.where(deferral == 0, right[:, :2].mean(1), 0))
    expected = np.where(deferral == 1, right[:, 2:].mean(1), expected)
    score = balanced.score(unseen.X, AnnotatedTarget(unseen.y, unseen.annotations), sample_weight=weight)
    assert score == pytest.approx(np.average(expected, weights=weight))
    gaps = unseen.annotations.astype(float)
    gaps.loc[:, ["a", "c", "d"]] = np.nan  # b answers for the first group, nobody for the second
    expected = np.where(deferral == 0, right[:, 1], labels == unseen.y)
    assert balanced.score(unseen.X, unseen.y, gaps) == pytest.approx(expected.mean())


# ------------------------------------------------------------------------------------------ shares and bounds


@pytest.mark.parametrize("coverage", [0.0, 0.25, 0.8, 1.0])
def test_requested_coverage_is_met_on_unlabelled_rows(make, crowd, unseen, coverage):
    model = make(coverage=coverage, max_epochs=3).fit(crowd.X, crowd.y, crowd.annotations, X_unlabeled=unseen.X)
    achieved = np.mean(model.predict_deferral(unseen.X) == -1)
    assert achieved == pytest.approx(coverage, abs=0.51 / 600)
    assert model.coverage_ == pytest.approx(achieved)
    assert_allclose(model.target_shares_, hard_shares(model, unseen.X), atol=1e-12)
    assert model.constraint_violation_ <= 0.51 / 600
    proba = model.predict_deferral_proba(unseen.X)
    assert_allclose(proba.sum(1), 1)
    assert_array_equal(np.where(proba.argmax(1) == 2, -1, proba.argmax(1)), model.predict_deferral(unseen.X))


def test_a_pair_of_bounds_and_no_bounds(make, crowd, unseen, balanced):
    free = make(max_epochs=15).fit(crowd.X, crowd.y, crowd.annotations, X_unlabeled=unseen.X)
    assert_array_equal(free.offsets_, 0)
    for low, high in [(0.8, 0.9), (0.1, 0.2)]:
        model = make(coverage=(low, high), max_epochs=3).fit(crowd.X, crowd.y, crowd.annotations, None)
        model.recalibrate(unseen.X)
        assert low - 1e-3 <= np.mean(model.predict_deferral(unseen.X) == -1) <= high + 1e-3


def test_cross_fitted_shares_stand_in_for_unlabelled_rows(make, crowd, unseen):
    model = make(coverage=0.4, cv=3).fit(crowd.X, crowd.y, crowd.annotations)
    achieved = np.mean(model.predict_deferral(unseen.X) == -1)
    assert abs(achieved - 0.4) < 3 * np.sqrt(0.24 * (1 / 240 + 1 / 600))


WORKLOADS = {
    "pair": ((0.1, 0.15), [(0.1, 0.15)] * 4),
    "array": ([[0, 0.05], [0, 1], [0.2, 0.2], [0, 1]], [(0, 0.05), (0, 1), (0.2, 0.2), (0, 1)]),
    "mapping": ({"d": (0, 0), "a": [0.05, 0.1]}, [(0.05, 0.1), (0, 1), (0, 1), (0, 0)]),
}


@pytest.mark.parametrize("kind", WORKLOADS)
def test_bounds_of_experts_are_kept_by_those_who_are_asked(make, crowd, unseen, kind):
    workload, bounds = WORKLOADS[kind]
    model = make(coverage=0.5, workload=workload, max_epochs=5)
    model.fit(crowd.X, crowd.y, crowd.annotations, X_unlabeled=unseen.X)
    lower, upper = np.array(bounds).T
    served = np.bincount(model.assign_experts(unseen.X) + 1, minlength=5)[1:] / 600
    chance = 3 * np.sqrt(served * (1 - served) / 600)
    assert (lower - 0.005 <= served + chance).all()
    assert (served - chance <= upper + 0.005).all()
    assert_allclose(model.workload_, hard_shares(model, unseen.X)[:-1] @ model.selection_, atol=1e-12)
    assert (lower - 0.002 <= model.workload_).all()
    assert (model.workload_ <= upper + 0.002).all()
    assert model.constraint_violation_ <= 0.002


def test_nobody_may_be_asked(make, crowd, unseen):
    model = make(workload=(0, 0), max_epochs=2).fit(crowd.X, crowd.y, crowd.annotations)
    assert_array_equal(model.predict_deferral(unseen.X), -1)
    assert_array_equal(model.workload_, 0)
    model = make(cluster_workload={"group0": (0, 0)}, coverage=0.5, max_epochs=2)
    model.fit(crowd.X, crowd.y, crowd.annotations, X_unlabeled=unseen.X)
    assert_allclose(hard_shares(model, unseen.X), [0, 0.5, 0.5], atol=2e-3)


def test_bounds_of_groups(make, crowd, unseen):
    model = make(cluster_workload={"group1": (0.1, 0.1)}, coverage=0.5, max_epochs=5)
    model.fit(crowd.X, crowd.y, crowd.annotations, X_unlabeled=unseen.X)
    assert_allclose(hard_shares(model, unseen.X), [0.4, 0.1, 0.5], atol=2e-3)


class Untrainable(LogisticRegression):
    """Says when a check came too late."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError("trained before the check")


BAD_PARAMS = {
    "unknown expert": ({"workload": {"zoe": (0, 1)}}, "workload names .*zoe"),
    "shape of workload": ({"workload": [[0, 1]] * 3}, "workload has shape"),
    "upside down": ({"workload": (0.4, 0.2)}, "workload"),
    "lower bounds add up": ({"workload": (0.3, 1)}, "lower share bounds add up"),
    "nobody is left": ({"workload": (0, 0.05), "coverage": 0.5}, "coverage|classifier"),
    "infeasible by name": ({"workload": {"a": (0.6, 1)}, "coverage": 0.5}, "'a'"),
    "coverage": ({"coverage": 1.2}, "coverage"),
    "pair of coverage": ({"coverage": (0.5, 1.5)}, "coverage"),
    "negative omega": ({"omega": -OMEGA}, "omega has negative"),
    "zero rows of omega": ({"omega": OMEGA * [[1], [0], [1], [0]]}, r"omega has zero rows \[1, 3\]"),
    "length of omega": ({"omega": OMEGA[:3]}, "omega has shape .*4 experts"),
    "width of omega": ({"omega": OMEGA[:, 0]}, "omega has shape"),
    "consultation_cost by name": ({"consultation_cost": {"zoe": 1}}, "consultation_cost names 'zoe'"),
    "consultation_cost by shape": ({"consultation_cost": [1, 2]}, "consultation_cost has shape"),
    "consultation_cost not finite": ({"consultation_cost": np.nan}, "consultation_cost"),
    "error_cost": ({"error_cost": np.ones((2, 2))}, "error_cost of shape"),
    "negative error_cost": ({"error_cost": -np.eye(3)}, "error_cost"),
}


@pytest.mark.parametrize("case", BAD_PARAMS)
def test_bad_parameters_are_refused_before_any_training(make, crowd, case):
    params, message = BAD_PARAMS[case]
    with pytest.raises(ValueError, match=message):
        make(classifier=Untrainable(), **params).fit(crowd.X, crowd.y, crowd.annotations)


@pytest.mark.parametrize("bounds", [{"group7": (0, 1)}, [[0, 1]] * 3, {"group0": (0.7, 1)}])
def test_bad_bounds_of_groups_are_refused(make, crowd, bounds):
    with pytest.raises(ValueError, match=r"cluster_workload|group0"):
        make(cluster_workload=bounds, coverage=0.5).fit(crowd.X, crowd.y, crowd.annotations)


def test_bad_data_is_refused(make, crowd):
    X, y, annotations = crowd.X, crowd.y, crowd.annotations
    refused = partial(pytest.raises, ValueError)
    untrainable = make(classifier=Untrainable())
    with refused(match="annotations has 239 rows"):
        untrainable.fit(X, y, annotations[1:])
    with refused(match=r"expert \['b'\] hold labels \['seven'\]"):
        untrainable.fit(X, y, annotations.assign(b="seven"))
    with refused(match="one class only"):
        untrainable.fit(X, np.zeros(240, int))
    with refused(match="annotations"):
        untrainable.fit(X, y, np.full((240, 4), -1))
    with refused(match="features"):
        untrainable.fit(X, y, annotations, X_unlabeled=X[:, :2])
    with refused(match="y"):
        untrainable.fit(X, np.where(y == 2, np.inf, y), annotations)
    with refused(match="carries"):
        untrainable.fit(X, AnnotatedTarget(y, annotations), annotations)
    for frozen in (
        {"classifier": FrozenEstimator(LogisticRegression())},
        {"clusterer": FrozenEstimator(AnnotatorLDA())},
    ):
        with pytest.raises(NotFittedError):
            make(omega=None, **frozen).fit(X, y, annotations)
    with pytest.raises(TypeError, match="module"):
        make(module=nn.Linear(4, 3)).fit(X, y, annotations)


def test_nothing_works_before_fit(make, crowd):
    model = make()
    for call in (
        model.predict,
        model.predict_proba,
        model.predict_deferral,
        model.predict_deferral_proba,
        model.assign_experts,
        model.predict_team,
        model.explain_deferral,
        model.route,
        model.recalibrate,
        lambda X: model.score(X, crowd.y),
        lambda X: model.coverage_path([0.5]),
        lambda X: model.onboard(["e"], X, crowd.annotations[["a"]]),
        lambda X: model.offboard(["a"]),
    ):
        with pytest.raises(NotFittedError):
            call(crowd.X)


def test_a_new_fit_leaves_nothing_of_the_old_one(make, crowd):
    frame = pd.DataFrame(crowd.X, columns=list("wxyz"))
    model = make(classifier=LogisticRegression(), max_epochs=2).fit(frame, crowd.y, crowd.annotations)
    assert hasattr(model, "feature_names_in_")
    model.fit(crowd.X, crowd.y)
    fresh = make(classifier=LogisticRegression(), max_epochs=2).fit(crowd.X, crowd.y)
    assert set(vars(model)) == set(vars(fresh))


# ------------------------------------------------------------------------------------------ parts


def test_clusterer_is_cloned_or_frozen(make, crowd):
    lda = AnnotatorLDA(2, **LDA)
    model = make(omega=None, clusterer=lda, max_epochs=1).fit(crowd.X, crowd.y, crowd.annotations)
    assert model.clusterer_ is not lda
    assert not hasattr(lda, "cluster_weights_")
    archive = Crowd(n=500, seed=5)
    counts = (archive.answer_codes[:, :, None] == np.arange(3)).sum(1)
    lda.fit(archive.X, counts)
    before = pickle.dumps(lda)
    model = make(omega=None, clusterer=FrozenEstimator(lda), max_epochs=1)
    model.fit(crowd.X, crowd.y, crowd.annotations.where(crowd.annotations != 1))
    model.onboard(["e"], crowd.X, crowd.annotations[["a"]])
    model.partial_fit(crowd.X, crowd.y, crowd.annotations.assign(e=-1))
    assert model.clusterer_ is lda
    assert pickle.dumps(lda) == before
    membership = lda.transform(crowd.X, crowd.annotations.where(crowd.annotations != 1))
    assert_allclose(model._roster.details["membership"][:4], membership)


def test_a_frozen_clusterer_may_know_fewer_classes_and_must_speak_the_same_language(make, crowd):
    two = crowd.codes < 2
    counts = (crowd.answer_codes[two][:, :, None] == np.arange(2)).sum(1)
    lda = AnnotatorLDA(2, **LDA).fit(crowd.X[two], counts)
    model = make(omega=None, clusterer=FrozenEstimator(lda), max_epochs=1)
    model.fit(crowd.X, crowd.y, crowd.annotations)
    assert_array_equal(model.classes_, [0, 1, 2])
    words = Crowd(labels=("cat", "dog", "eel"))
    with pytest.raises(ValueError, match="classifier knows the classes"):
        model.fit(words.X, words.y, words.annotations)
    with pytest.raises(ValueError, match="clusterer knows the classes"):
        model.set_params(classifier=LogisticRegression()).fit(words.X, words.y, words.annotations)


def test_without_a_clusterer_its_parameters_cannot_be_set():
    with pytest.raises(ValueError, match=r"clusterer__alpha cannot be set while clusterer is None.*AnnotatorLDA\(\)"):
        ClusterDeferral().set_params(clusterer__alpha=2.0)
    with pytest.raises(ValueError, match=r"classifier__C cannot be set while classifier is None"):
        ClusterDeferral().set_params(classifier__C=2.0)
    model = ClusterDeferral().set_params(clusterer=AnnotatorLDA(), clusterer__alpha=2.0)
    assert model.clusterer.alpha == 2.0


def test_grid_search_over_clusters_and_groups(make, crowd):
    model = make(clusterer=AnnotatorLDA(**LDA), omega=None, grouping="profile", max_epochs=2)
    grid = {"clusterer__n_clusters": [1, 2], "n_groups": [1, 3]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise")
    search.fit(crowd.X, AnnotatedTarget(crowd.y, crowd.annotations))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.best_estimator_.targets_) <= search.best_params_["n_groups"]


def test_frozen_classifier_is_taken_as_it_is(make, crowd, classifier):
    before = pickle.dumps(classifier)
    model = make(max_epochs=1).fit(crowd.X, crowd.y, crowd.annotations)
    assert model.classifier_ is classifier
    assert pickle.dumps(classifier) == before
    assert_array_equal(model.predict_proba(crowd.X), classifier.predict_proba(crowd.X))


def test_default_classifier_is_a_small_net(crowd):
    model = ClusterDeferral(omega=OMEGA, cv=2, max_epochs=1, random_state=0, class_weight="balanced")
    model.fit(crowd.X, crowd.y, crowd.annotations)
    assert np.mean(model.predict(crowd.X) == crowd.y) > 0.7
    assert 0.05 <= model.temperature_ <= 20


def test_classifier_picks_columns_by_name(make, crowd, unseen):
    frame = partial(pd.DataFrame, columns=list("wxyz"))
    picky = make_pipeline(
        make_column_transformer(("passthrough", ["x", "z"])).set_output(transform="pandas"), LogisticRegression()
    )
    model = make(classifier=picky, cv=2, max_epochs=2).fit(frame(crowd.X), crowd.y, crowd.annotations)
    expected = clone(picky).fit(frame(crowd.X), crowd.y).predict(frame(unseen.X))
    assert_array_equal(model.predict(frame(unseen.X)), expected)
    model.score(frame(unseen.X), unseen.y, unseen.annotations)
    model.explain_deferral(frame(unseen.X))
    model.partial_fit(frame(unseen.X), unseen.y, unseen.annotations)


def test_few_rows_many_classes_and_a_rare_class():
    rng = np.random.default_rng(0)
    y = np.append(np.repeat(np.arange(8), 3), 9)  # N' = 25, class 9 once
    X = rng.normal(size=(25, 5)) + np.eye(10, 5)[y]
    annotations = np.where(rng.random((25, 3)) < 0.8, y[:, None], 0)
    full = LogisticRegression().fit(rng.normal(size=(20, 5)), np.arange(20) % 10)
    for classifier, classes in [(LogisticRegression(), np.unique(y)), (FrozenEstimator(full), np.arange(10))]:
        model = ClusterDeferral(omega=np.eye(3), classifier=classifier, max_epochs=2, random_state=0)
        model.fit(X, y, annotations)
        assert_array_equal(model.classes_, classes)
        assert_allclose(model.predict_proba(X).sum(1), 1)
        assert np.isfinite(model.score(X, y, annotations))


def test_one_class_is_enough_for_a_frozen_classifier(make, crowd):
    zeros = crowd.codes == 0
    model = make(max_epochs=1).fit(crowd.X[zeros], crowd.y[zeros], crowd.annotations[zeros])
    assert_array_equal(model.classes_, [0, 1, 2])


def test_module_of_the_gate_sees_items_of_any_shape(make, crowd):
    images = crowd.X.reshape(-1, 1, 2, 2).astype("float32")

    class Flat(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X.reshape(len(X), -1), y)

        def predict(self, X):
            return super().predict(X.reshape(len(X), -1))

        def predict_proba(self, X):
            return super().predict_proba(X.reshape(len(X), -1))

    model = make(classifier=Flat(), module=conv_net, coverage=0.5, cv=2, max_epochs=2)
    model.fit(images, crowd.y, crowd.annotations)
    assert model.predict_deferral(images).shape == (240,)
    assert np.isfinite(model.score(images, crowd.y, crowd.annotations))


def conv_net(n_outputs):
    return nn.Sequential(nn.Conv2d(1, 2, 2), nn.Flatten(), nn.Linear(2, n_outputs))


# ------------------------------------------------------------------------------------------ missing annotations


def smoothed(answer_proba, codes, s):
    """sum over answers c of p(c) p(y | c), the slow way."""
    n_classes = answer_proba.shape[1]
    likelihood = np.zeros(len(codes))
    for answer in range(n_classes):
        likelihood += answer_proba[:, answer] * np.where(codes == answer, 1 - s, s / (n_classes - 1))
    return likelihood


@pytest.mark.parametrize("clustered", [False, True])
def test_missing_annotations_are_integrated_out_by_own_correctness(make, crowd, clustered):
    annotations = crowd.annotations.astype(float)
    absent = np.random.default_rng(0).random(annotations.shape) < 0.5
    annotations[absent] = np.nan
    groups = {"omega": None, "clusterer": AnnotatorLDA(2, **LDA)} if clustered else {}
    model = make(annotation_smoothing=0.02, max_epochs=10, **groups).fit(crowd.X, crowd.y, annotations)
    votes = encode_votes(np.where(absent, -1, crowd.answer_codes), classes=range(3))
    items = model._check_items(crowd.X)
    proba = model._classifier_proba(items)
    got = np.exp(model._log_likelihood(items, votes, crowd.codes, proba, np.zeros(4)))
    truth = np.eye(3)[crowd.codes]
    for expert, correctness in enumerate(model._correctness):  # its shrinkage has tests of its own
        right = correctness[crowd.codes][:, None]
        answered = smoothed(np.eye(3)[crowd.answer_codes[:, expert]], crowd.codes, 0.02)
        would_answer = smoothed(np.where(truth, right, (1 - right) / 2), crowd.codes, 0.02)
        assert_allclose(got[:, expert], np.where(absent[:, expert], would_answer, answered))
    assert_allclose(got[:, 4], smoothed(proba, crowd.codes, 0.02))
    assert model.score(crowd.X, crowd.y, annotations) > 0.6


def test_an_expert_without_annotations_is_taken_in_with_a_warning(make, crowd):
    silent = crowd.annotations.assign(d=-1)
    with pytest.warns(UserWarning, match=r"\['d'\]"):
        model = make(max_epochs=1).fit(crowd.X, crowd.y, silent)
    assert model.n_experts_ == 4
    lda = make(omega=None, clusterer=AnnotatorLDA(2, **LDA), grouping="profile", n_groups=2, max_epochs=1)
    with pytest.warns(UserWarning, match=r"\['d'\]"):
        lda.fit(crowd.X, crowd.y, silent)
    assert np.isfinite(lda.omega_).all()


# ------------------------------------------------------------------------------------------ costs


def test_who_costs_more_is_asked_less(make, crowd, unseen):
    def shares(cost):
        model = make(consultation_cost=cost, max_epochs=12).fit(crowd.X, crowd.y, crowd.annotations)
        return hard_shares(model, unseen.X)

    free = shares(None)
    assert_array_equal(shares(0.0), free)
    assert shares(0.3)[2] > free[2] + 0.1
    assert shares({"group1": 0.5})[1] < free[1] - 0.05
    assert_array_equal(shares({"c": 0.5, "d": 0.5}), shares({"group1": 0.5}))
    assert_array_equal(shares([0, 0, 0.5, 0.5]), shares({"group1": 0.5}))
    assert shares(50.0)[2] == 1


def test_error_cost(make, crowd, unseen):
    def fitted(cost):
        return make(error_cost=cost).fit(crowd.X, crowd.y, crowd.annotations)

    plain, same = fitted(None), fitted(1 - np.eye(3))
    assert_array_equal(plain.predict_deferral_proba(unseen.X), same.predict_deferral_proba(unseen.X))
    # where mistakes about class 2 are free, those who know it have nothing to offer
    careless = fitted(np.array([[0, 1, 1], [1, 0, 1], [0, 0, 0]], dtype=float))
    assert hard_shares(careless, unseen.X)[1] < hard_shares(plain, unseen.X)[1] - 0.05


def test_class_weight_moves_the_gate(make, crowd, unseen):
    def asked(weight):
        model = make(class_weight=weight).fit(crowd.X, crowd.y, crowd.annotations)
        return hard_shares(model, unseen.X)[1]

    assert asked({0: 1, 1: 1, 2: 20}) > asked(None) + 0.05


# ------------------------------------------------------------------------------------------ more training


def test_warm_start_continues(make, crowd, unseen):
    model = make(max_epochs=4, warm_start=True).fit(crowd.X, crowd.y, crowd.annotations)
    first = model.predict_deferral_proba(unseen.X)
    gate = model.gate_
    model.fit(crowd.X, crowd.y, crowd.annotations)
    assert model.n_iter_ == len(model.history_) == 8
    assert model.gate_ is not gate
    assert model.history_[4]["log_likelihood"] > model.history_[0]["log_likelihood"]
    assert np.abs(model.predict_deferral_proba(unseen.X) - first).max() > 1e-3
    model.set_params(omega=np.eye(4)).fit(crowd.X, crowd.y, crowd.annotations)
    assert model.n_iter_ == 4  # another number of targets


def test_warm_start_with_other_columns_starts_anew(make, crowd):
    model = make(classifier=LogisticRegression(), cv=2, max_epochs=2, warm_start=True)
    model.fit(crowd.X, crowd.y, crowd.annotations)
    model.fit(crowd.X[:, :3], crowd.y, crowd.annotations)
    assert model.n_iter_ == 2


def test_the_likelihood_of_the_truth_rises(make, crowd):
    history = make(prior_weight=0, max_epochs=20).fit(crowd.X, crowd.y, crowd.annotations).history_
    assert history[-1]["log_likelihood"] > history[0]["log_likelihood"] + 0.05
    assert all(record["constraint_violation"] < 1e-6 for record in history)


def test_before_training_the_gate_compares_how_often_everybody_is_right(make, crowd, unseen):
    model = make(coverage=None, lr=1e-12, max_epochs=1, prior_weight=3.0).fit(crowd.X, crowd.y, crowd.annotations)
    proba = model._classifier_proba(model._check_items(unseen.X))
    right = np.column_stack([proba @ (model.selection_ @ model._correctness).T, proba.max(1)]) ** 3
    assert_allclose(model.predict_deferral_proba(unseen.X), right / right.sum(1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("module", [None, partial(nn.LazyLinear, bias=False)])
def test_before_training_a_bounded_gate_is_offset_to_its_bound(make, crowd, module):
    def build(n_outputs):
        layer = module(n_outputs)
        layer(torch.zeros(1, 4))
        nn.init.zeros_(layer.weight)
        return layer

    options = {"lr": 1e-12, "max_epochs": 1, "prior_weight": 3.0, "module": module and build}
    model = make(coverage=0.7, **options).fit(crowd.X, crowd.y, crowd.annotations)
    proba = model._classifier_proba(model._check_items(crowd.X))
    right = np.column_stack([proba @ (model.selection_ @ model._correctness).T, proba.max(1)]) ** 3
    share = np.exp(model._free_scores(model._check_items(crowd.X)))
    assert share[:, -1].mean() == pytest.approx(0.7, abs=1e-5)
    odds = (share / share[:, :1]) / (right / right[:, :1])
    assert_allclose(odds[:, 1], 1, rtol=1e-5)  # nothing is asked of one group of experts
    assert_allclose(odds[:, 2], odds[0, 2], rtol=1e-5)


def test_a_prior_helps_where_labels_are_few(make, crowd, unseen):
    few = slice(0, 15)
    scores = [
        make(prior_weight=w)
        .fit(crowd.X[few], crowd.y[few], crowd.annotations[few])
        .score(unseen.X, unseen.y, unseen.annotations)
        for w in (0.0, 5.0)
    ]
    assert scores[1] > scores[0]


def test_feedback_moves_the_gate_to_who_is_better_now(make, crowd, unseen):
    model = make(max_epochs=20).fit(crowd.X, crowd.y, crowd.annotations)
    before, correctness = hard_shares(model, unseen.X), model._correctness
    history = len(model.history_)
    turned = unseen.annotations[["c", "d", "a", "b"]].set_axis(list("abcd"), axis=1)
    for _ in range(15):
        model.partial_fit(unseen.X, unseen.y, turned)
    assert model.n_iter_ == history + 15
    known = unseen.codes == 2
    deferral = model.predict_deferral(unseen.X)
    assert np.mean(deferral[known] == 0) > np.mean(deferral[known] == 1)
    assert (model._correctness[:2, 2] > correctness[:2, 2]).all()
    assert before.shape == (3,)


def test_partial_fit_first_and_its_errors(make, crowd):
    one = make(max_epochs=3, classifier=LogisticRegression(), cv=2)
    one.partial_fit(crowd.X, crowd.y, crowd.annotations, classes=[0, 1, 2, 3])
    assert_array_equal(one.classes_, [0, 1, 2, 3])
    assert one.n_iter_ == 3
    before = pickle.dumps(one.gate_.module_.state_dict())
    with pytest.raises(ValueError, match="annotations"):
        one.partial_fit(crowd.X, crowd.y)
    with pytest.raises(ValueError, match="labels"):
        one.partial_fit(crowd.X, crowd.y + 10, crowd.annotations)
    with pytest.raises(ValueError, match="inconsistent"):
        one.partial_fit(crowd.X, crowd.y[1:], crowd.annotations)
    with pytest.raises(ValueError, match="annotations has 239 rows"):
        one.partial_fit(crowd.X, crowd.y, crowd.annotations[1:])
    assert pickle.dumps(one.gate_.module_.state_dict()) == before
    one.partial_fit(crowd.X[:1], crowd.y[:1], crowd.annotations[:1])
    assert one.n_iter_ == 4


# ------------------------------------------------------------------------------------------ other coverages


def test_coverage_path_shares_the_gate(balanced, unseen):
    coverages = [0, 0.1, 0.35, 0.9, 1]
    for path in (balanced.coverage_path(coverages), balanced.coverage_path(coverages, X_unlabeled=unseen.X)):
        for coverage, model in zip(coverages, path, strict=True):
            assert model.gate_ is balanced.gate_
            assert np.mean(model.predict_deferral(unseen.X) == -1) == pytest.approx(coverage, abs=2e-3)
            assert model.coverage_ == pytest.approx(coverage, abs=2e-3)
            assert model.coverage == coverage
            assert model.target_shares_.sum() == pytest.approx(1)
    assert balanced.coverage == 0.5
    assert np.mean(balanced.predict_deferral(unseen.X) == -1) == pytest.approx(0.5, abs=2e-3)
    with pytest.raises(ValueError, match=r"coverages holds \[-0.1, 2.0\]"):
        balanced.coverage_path([0.3, -0.1, 2])


def test_coverage_path_with_bounds_needs_items(make, crowd, unseen):
    model = make(coverage=0.5, workload=(0, 0.3), max_epochs=3)
    model.fit(crowd.X, crowd.y, crowd.annotations, X_unlabeled=unseen.X)
    with pytest.raises(ValueError, match="X_unlabeled is None"):
        model.coverage_path([0.3])
    (other,) = model.coverage_path([0.3], X_unlabeled=unseen.X)
    assert (other.workload_ <= 0.3 + 1e-3).all()
    with pytest.raises(ValueError, match="share bounds"):
        make(coverage=0.5, workload=(0, 0.15), max_epochs=3).fit(
            crowd.X, crowd.y, crowd.annotations, X_unlabeled=unseen.X
        ).coverage_path([0.1], X_unlabeled=unseen.X)


@pytest.mark.parametrize("coverage", [0.0, 1.0])
def test_coverage_path_from_either_end(make, crowd, unseen, coverage):
    model = make(coverage=coverage, max_epochs=3).fit(crowd.X, crowd.y, crowd.annotations, X_unlabeled=unseen.X)
    (half,) = model.coverage_path([0.5])
    assert np.mean(half.predict_deferral(unseen.X) == -1) == pytest.approx(0.5, abs=2e-3)


def test_recalibrate_on_items_of_another_kind(make, crowd, unseen):
    model = make(coverage=0.5).fit(crowd.X, crowd.y, crowd.annotations)
    shifted = unseen.X[unseen.codes != 2]
    model.recalibrate(shifted)
    assert np.mean(model.predict_deferral(shifted) == -1) == pytest.approx(0.5, abs=2e-3)


def test_same_seed_same_result_whatever_the_global_one(make, crowd, unseen):
    def run(seed):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        model = make(classifier=None, omega=None, cv=2, coverage=0.3, max_epochs=1)
        model.set_params(clusterer=AnnotatorLDA(2, **(LDA | {"random_state": None})))
        model.fit(crowd.X, crowd.y, crowd.annotations)
        return model.predict_deferral_proba(unseen.X), model.assign_experts(unseen.X), model.predict_proba(unseen.X)

    for one, other in zip(run(0), run(1), strict=True):
        assert_array_equal(one, other)
