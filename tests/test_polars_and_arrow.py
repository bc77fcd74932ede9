"""Tables of polars and Arrow are matched by the names of their columns, as those of pandas are."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from _instances import make_crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import Bunch

from sklearn_l2d import AnnotatorLDA
from sklearn_l2d.aggregation import CrowdRegressor, DawidSkene, MajorityVote, SpammerDetector
from sklearn_l2d.annotations import encode_counts, encode_votes
from sklearn_l2d.crowd import CountsClassifier, RaykarClassifier
from sklearn_l2d.metrics import team_accuracy, workload_distribution


def polars(frame):
    return pl.DataFrame({str(name): frame[name].to_list() for name in frame.columns})


def arrow(frame):
    pa = pytest.importorskip("pyarrow")
    return pa.table({str(name): frame[name].to_list() for name in frame.columns})


each_kind = pytest.mark.parametrize("kind", [polars, arrow])


@pytest.fixture(scope="module")
def crowd():
    crowd = make_crowd()
    return Bunch(
        X=crowd.X,
        y=crowd.y,
        annotations=pd.DataFrame(crowd.annotations, columns=list("vwxyz")),
        counts=pd.DataFrame(crowd.counts, columns=["cat", "dog", "eel"]),
    )


@each_kind
def test_annotators_are_found_by_name(kind, crowd):
    turned = crowd.annotations[list("zyxwv")]
    model = DawidSkene().fit(crowd.annotations)
    expected = model.predict_proba(crowd.annotations)
    assert_array_equal(model.predict_proba(kind(turned)), expected)
    assert_array_equal(DawidSkene().fit(kind(crowd.annotations)).predict_proba(turned), expected)
    few = crowd.annotations[["y", "w"]]
    assert_array_equal(model.predict_proba(kind(few)), model.predict_proba(few))
    detector = SpammerDetector(0.4, min_answers=2)
    assert_array_equal(detector.fit_predict(kind(turned))[::-1], detector.fit_predict(crowd.annotations))


@each_kind
def test_a_long_table_has_names(kind, crowd):
    model = DawidSkene().fit(crowd.annotations)
    table = encode_votes(crowd.annotations.drop(columns="w")).to_long().astype({"task": int})
    assert_array_equal(model.predict_proba(kind(table)), model.predict_proba(table))


def test_a_file_has_names(crowd, tmp_path):
    pytest.importorskip("pyarrow")
    model = DawidSkene().fit(crowd.annotations)
    table = encode_votes(crowd.annotations.drop(columns="w")).to_long().astype({"task": int})
    table.to_parquet(tmp_path / "answers.parquet")
    assert_array_equal(model.predict_proba(tmp_path / "answers.parquet"), model.predict_proba(table))


@each_kind
def test_answers_by_numbers_are_found_by_name(kind, crowd):
    numbers = crowd.annotations.astype(float)
    model = CrowdRegressor().fit(kind(numbers))
    assert model.annotators_.tolist() == list("vwxyz")
    assert_array_equal(model.predict(kind(numbers[list("zyxwv")])), model.predict(numbers))
    for answers in (encode_votes(crowd.annotations), kind(encode_votes(crowd.annotations).to_long())):
        with pytest.raises(ValueError, match=r"X has a row for each answer.*from_long"):
            model.predict(answers)


@each_kind
def test_classes_are_found_by_name(kind, crowd):
    turned = crowd.counts[["eel", "cat", "dog"]]
    counts, classes = encode_counts(kind(turned))
    assert_array_equal(counts, crowd.counts)
    assert classes.tolist() == ["cat", "dog", "eel"]
    assert_array_equal(encode_counts(kind(turned), classes=classes)[0], crowd.counts)
    with pytest.raises(ValueError, match=r"lacking are \['eel'\]"):
        encode_counts(kind(turned[["cat", "dog"]]), classes=classes)
    majority = MajorityVote(input="counts").fit(kind(crowd.counts))
    assert_array_equal(majority.predict_proba(kind(turned)), majority.predict_proba(crowd.counts))
    fast = {"hidden_layer_sizes": (4,), "max_epochs": 3, "random_state": 0}
    lda = AnnotatorLDA(n_clusters=1, n_consensus_epochs=2, **fast).fit(crowd.X, kind(turned))
    assert lda.score(crowd.X, kind(turned)) == lda.score(crowd.X, crowd.counts)
    votes = CountsClassifier(**fast).fit(crowd.X, counts=kind(turned))
    assert votes.classes_.tolist() == ["cat", "dog", "eel"]
    assert_allclose(
        votes.predict_proba(crowd.X), CountsClassifier(**fast).fit(crowd.X, counts=turned).predict_proba(crowd.X)
    )


@each_kind
def test_names_that_are_whole_numbers_are_classes_that_are_numbers(kind, crowd):
    turned = crowd.counts.set_axis(["10", "2", "3"], axis=1)
    counts, classes = encode_counts(kind(turned))
    assert classes.tolist() == [2, 3, 10]
    assert_array_equal(counts, turned[["2", "3", "10"]])
    counts, classes = encode_counts(kind(turned), classes=["10", "2", "3"])
    assert_array_equal(counts, turned)


def test_names_that_polars_makes_up_are_none(crowd):
    counts, classes = encode_counts(pl.DataFrame(crowd.counts.to_numpy()))
    assert_array_equal(counts, crowd.counts)
    assert classes.tolist() == [0, 1, 2]
    model = DawidSkene().fit(crowd.annotations)
    answers = crowd.annotations.to_numpy()
    assert_array_equal(model.predict_proba(pl.DataFrame(answers)), model.predict_proba(answers))
    assert encode_votes(pl.DataFrame(answers)).annotators.tolist() == [0, 1, 2, 3, 4]


@each_kind
def test_answers_of_a_crowd_classifier_are_found_by_name(kind, crowd):
    model = RaykarClassifier().fit(crowd.X, annotations=kind(crowd.annotations))
    turned = crowd.annotations[list("zyxwv")]
    assert model.log_likelihood(crowd.X, kind(turned)) == model.log_likelihood(crowd.X, crowd.annotations)


@each_kind
def test_who_is_selected_is_found_by_name(kind, crowd):
    first = pd.DataFrame([[1.0, 0.0]], columns=["z", "v"])
    deferral = np.zeros(len(crowd.y), dtype=int)
    arguments = crowd.y, deferral, crowd.y, crowd.annotations
    assert team_accuracy(*arguments, kind(first)) == team_accuracy(*arguments, first)
    served = [workload_distribution(deferral, weights, crowd.annotations) for weights in (kind(first), first)]
    assert_array_equal(*served)
