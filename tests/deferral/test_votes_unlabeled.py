"""Tests of classifiers of a team that learn from the votes of an archive, too."""

import inspect

import numpy as np
import pandas as pd
import pytest
from _instances import make_crowd, of_kind
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.crowd import CCEMClassifier, CountsClassifier
from sklearn_l2d.deferral import (
    BestExpert,
    ClassifierOnly,
    ConfidenceDeferral,
    MixtureOfExpertsDeferral,
    OneStageDeferral,
    PanelDeferral,
    PopulationDeferral,
    ProbabilisticDeferral,
    RankedDeferral,
    TwoStageDeferral,
)

TEAM, OTHERS, NEW = make_crowd(30, 4), make_crowd(80, 6, random_state=1), make_crowd(200, random_state=2)
LABELLED = {"X": TEAM.X, "y": TEAM.y, "annotations": TEAM.annotations}
DATA = LABELLED | {"X_unlabeled": OTHERS.X, "votes_unlabeled": OTHERS.counts}
FAST = CountsClassifier((8,), max_epochs=4, random_state=0)


def team(classifier=FAST, **params):
    return ConfidenceDeferral(classifier, cv=3, random_state=0, **params)


def proba(estimator, **changes):
    return estimator.fit(**DATA | changes).predict_team_proba(NEW.X, np.full((200, 4), -1))


class Noting(ClassifierMixin, BaseEstimator):
    """Certain of the majority of the votes on items that it saw, and doubtful elsewhere; keeps what it was given."""

    fits = ()

    def fit(self, X, y, counts, classes):
        Noting.fits = (*Noting.fits, (X, y, counts))
        voted = counts.any(1)
        self.classes_, self.known_ = classes, dict(zip(map(tuple, X[voted]), counts[voted].argmax(1), strict=True))
        self.known_ |= {
            tuple(x): np.searchsorted(classes, label) for x, label in zip(X, y, strict=True) if label is not None
        }
        return self

    def predict_proba(self, X):
        n_classes = len(self.classes_)
        proba = np.full((len(X), n_classes), 1 / n_classes)
        for row, x in enumerate(map(tuple, X)):
            if x in self.known_:
                proba[row] = 0.01 / (n_classes - 1)
                proba[row, self.known_[x]] = 0.99
        return proba

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]


def test_the_classifier_learns_from_labels_and_votes():
    X = np.vstack([TEAM.X, OTHERS.X])
    y = np.append(TEAM.y.astype(object), [None] * 80)
    by_hand = FAST.fit(X, y, counts=np.vstack([TEAM.counts, OTHERS.counts]))
    assert_array_equal(team().fit(**DATA).predict_proba(NEW.X), by_hand.predict_proba(NEW.X))
    assert isinstance(ClassifierOnly(random_state=0).fit(**DATA).classifier_, CountsClassifier)
    assert proba(team()).tobytes() == proba(team()).tobytes()


def test_no_row_is_judged_by_who_learnt_from_it():
    Noting.fits = ()
    model = team(Noting()).fit(**DATA)
    everything, *folds = Noting.fits
    labels = [{tuple(x) for x, label in zip(X, y, strict=True) if label is not None} for X, y, _ in folds]
    voted = [{tuple(x) for x in X[counts.any(1)]} for X, _, counts in folds]
    for rows, given in ((TEAM.X, labels), (OTHERS.X[OTHERS.counts.any(1)], voted)):
        missing = np.array([[tuple(x) not in fold for fold in given] for x in rows])
        assert len(folds) == 3
        assert_array_equal(missing.sum(1), 1)
    for X, y, counts in (everything, *folds):
        of_team = {tuple(x): given for x, given in zip(TEAM.X, TEAM.counts, strict=True)}
        labelled = [i for i, label in enumerate(y) if label is not None]
        assert_array_equal(counts[labelled], [of_team[tuple(X[i])] for i in labelled])
        assert len(X) == len(y) == len(counts)
    # who knew the votes would be sure of all items of the archive
    assert model.coverage_ == RankedDeferral(team(Noting())).fit(**DATA).coverage_ == 0
    assert np.mean(model.predict_deferral(NEW.X) == -1) == 0
    assert np.mean(model.predict_deferral(OTHERS.X) == -1) > 0.5


def test_votes_on_labelled_and_annotated_items_are_left_out():
    y = TEAM.y.astype(float)
    y[25:] = np.nan
    X = np.vstack([TEAM.X[::2], OTHERS.X, TEAM.X[1::2]])
    counts = np.vstack([np.full((15, 3), 7), OTHERS.counts, np.full((15, 3), 7)])
    annotations = TEAM.annotations.copy()
    annotations[-1] = -1  # neither a label nor an annotation: its votes may count
    given = {"y": y, "annotations": annotations}
    alone = np.vstack([OTHERS.X, TEAM.X[-1:]]), np.vstack([OTHERS.counts, [[7, 7, 7]]])
    want = team().fit(**LABELLED | given, X_unlabeled=alone[0], votes_unlabeled=alone[1]).classifier_
    got = team().fit(**LABELLED | given, X_unlabeled=X, votes_unlabeled=counts).classifier_
    assert_array_equal(got.predict_proba(NEW.X), want.predict_proba(NEW.X))
    with pytest.raises(ValueError, match="no vote on items that are not also in X"):
        team().fit(**LABELLED, X_unlabeled=TEAM.X, votes_unlabeled=TEAM.counts)


def test_votes_come_in_all_forms(tmp_path):
    want, names = proba(team()), [f"item {i}" for i in range(80)]
    shuffled = pd.DataFrame(OTHERS.counts, columns=[0, 1, 2], index=names).iloc[::-1, [2, 0, 1]]
    by_name = {"X_unlabeled": pd.DataFrame(OTHERS.X, index=names)}
    np.save(tmp_path / "X.npy", OTHERS.X)
    np.save(tmp_path / "counts.npy", OTHERS.counts)
    maps = {
        k: np.load(tmp_path / f"{v}.npy", mmap_mode="r")
        for k, v in (("X_unlabeled", "X"), ("votes_unlabeled", "counts"))
    }
    votes = encode_votes(OTHERS.annotations, classes=[0, 1, 2])
    for given in ({"votes_unlabeled": shuffled, **by_name}, maps, {"votes_unlabeled": votes}):
        assert_array_equal(proba(team(), **given), want)
    frames = {"X": pd.DataFrame(TEAM.X, index=names[:30]), **by_name, "votes_unlabeled": shuffled}
    assert_array_equal(proba(team(), **frames), want)
    each = proba(team(), votes_unlabeled=OTHERS.y)
    assert_array_equal(proba(team(), votes_unlabeled=np.eye(3)[OTHERS.y]), each)


def test_classes_of_the_archive_become_classes():
    few = TEAM.y < 2
    annotations = np.where(TEAM.annotations == 2, -1, TEAM.annotations)[few]
    given = {"X": TEAM.X[few], "y": TEAM.y[few], "annotations": annotations}
    with pytest.warns(UserWarning, match=r"votes_unlabeled hold labels that y and annotations lack, \[2\]"):
        model = team(CountsClassifier(random_state=0)).fit(**given, X_unlabeled=OTHERS.X, votes_unlabeled=OTHERS.y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert np.mean(model.predict(NEW.X) == NEW.y) > 0.7


def test_classifiers_that_learn_from_votes_by_name():
    votes = encode_votes(OTHERS.annotations, classes=[0, 1, 2])
    ccem = CCEMClassifier((8,), max_epochs=4, random_state=0)
    by_hand = encode_votes(np.vstack([np.full((30, 6), -1), OTHERS.annotations]), classes=[0, 1, 2])
    by_hand = ccem.fit(np.vstack([TEAM.X, OTHERS.X]), np.append(TEAM.y.astype(object), [None] * 80), by_hand)
    got = team(ccem).fit(**DATA | {"votes_unlabeled": votes})
    assert_array_equal(got.predict_proba(NEW.X), by_hand.predict_proba(NEW.X))
    assert_array_equal(got.experts_, np.arange(4))  # who voted need not be in the team
    with pytest.raises(ValueError, match=r"CCEMClassifier learns from answers by name.*encode_votes"):
        team(ccem).fit(**DATA)


@pytest.mark.parametrize("routing", [False, True])
def test_votes_reach_the_end_of_a_pipeline(routing):
    scale = StandardScaler().fit(np.vstack([TEAM.X, OTHERS.X])).transform
    plain = team().fit(scale(TEAM.X), TEAM.y, TEAM.annotations, scale(OTHERS.X), OTHERS.counts)
    with config_context(enable_metadata_routing=routing):
        piped = team(make_pipeline(StandardScaler(), FAST)).fit(**DATA)
    assert_allclose(piped.predict_proba(NEW.X), plain.predict_proba(scale(NEW.X)), atol=1e-6)


def test_weights_are_those_of_the_labelled_items():
    heavy, plain = (team().fit(**DATA, sample_weight=weight) for weight in (np.full(30, 3.0), None))
    X, y = np.vstack([TEAM.X, OTHERS.X]), np.append(TEAM.y.astype(object), [None] * 80)
    weight, counts = np.repeat([3.0, 1.0], [30, 80]), np.vstack([TEAM.counts, OTHERS.counts])
    by_hand = clone(FAST).fit(X, y, counts=counts, sample_weight=weight)
    assert_array_equal(heavy.predict_proba(NEW.X), by_hand.predict_proba(NEW.X))
    assert np.abs(heavy.predict_proba(NEW.X) - plain.predict_proba(NEW.X)).max() > 1e-3


FROZEN = FrozenEstimator(LogisticRegression().fit(TEAM.X, TEAM.y))


@pytest.mark.parametrize(
    ("estimator", "changes", "message"),
    [
        (team(), {"X_unlabeled": None}, "votes_unlabeled are given without X_unlabeled"),
        (team(), {"votes_unlabeled": OTHERS.counts[1:]}, "votes_unlabeled has 79 rows, but X"),
        (team(), {"votes_unlabeled": -OTHERS.counts}, "votes_unlabeled cannot be used: .*negative"),
        (team(), {"votes_unlabeled": OTHERS.counts[:, [0, 1]]}, "votes_unlabeled holds columns without names"),
        (team(), {"votes_unlabeled": np.where(OTHERS.y, "a", "b")}, r"votes_unlabeled holds votes for \['a', 'b'\]"),
        (
            team(LogisticRegression()),
            {},
            "LogisticRegression learns from labels only; leave classifier",
        ),
        (team(make_pipeline(StandardScaler(), LogisticRegression())), {}, "Pipeline learns from labels only"),
        (team(FROZEN), {}, "FrozenEstimator and learns nothing; leave classifier=None"),
        (RankedDeferral(FrozenEstimator(team().fit(**LABELLED))), {}, "the deferrer is a FrozenEstimator"),
        (OneStageDeferral(), {}, "that of OneStageDeferral is part of a net"),
        (MixtureOfExpertsDeferral(), {}, "that of MixtureOfExpertsDeferral is part of a net"),
        (PopulationDeferral(), {}, "that of PopulationDeferral is part of a net"),
        (ProbabilisticDeferral(joint_classifier=True), {}, "that of ProbabilisticDeferral is part of a net"),
        (TwoStageDeferral(class_weight="balanced"), {}, "class_weight weighs classes by the truth"),
    ],
)
def test_what_cannot_learn_from_votes_is_refused(estimator, changes, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(**DATA | changes)


@pytest.mark.parametrize(
    "estimator", [BestExpert(FAST), PanelDeferral(FAST, answers=0.5, cv=2), RankedDeferral(team())]
)
def test_all_pass_the_votes_on(estimator):
    model = estimator.set_params(random_state=0).fit(**DATA)
    assert_array_equal(model.predict_proba(NEW.X), team().fit(**DATA).predict_proba(NEW.X))


@pytest.mark.parametrize("instance", of_kind("deferrer"), ids=str)
def test_every_deferrer_takes_and_requests_them(instance):
    assert "votes_unlabeled" in inspect.signature(instance.estimator.fit).parameters
    with config_context(enable_metadata_routing=True):
        assert instance.estimator.get_metadata_routing().fit.requests["votes_unlabeled"] is True
