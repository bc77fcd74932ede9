"""Rows of tables that belong together are matched by their ids."""

import warnings

import numpy as np
import pandas as pd
import pytest
from _instances import INSTANCES, fit, make_crowd, of_kind
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils import resample

from sklearn_l2d import AnnotatedTarget
from sklearn_l2d._rows import same_rows
from sklearn_l2d.annotations import encode_votes, to_long
from sklearn_l2d.cluster import AnnotatorLDA, BetaExpertEncoder
from sklearn_l2d.crowd import NetClassifier
from sklearn_l2d.deferral import ConfidenceDeferral, PanelDeferral
from sklearn_l2d.metrics import (
    answers_accuracy_curve,
    consensus_agreement,
    coverage_accuracy_points,
    deferral_report,
    team_accuracy,
    workload_distribution,
)
from sklearn_l2d.model_selection import make_team_scorer, perplexity_curve

NAMES = [f"item {n}" for n in range(60)]
ORDER = np.random.default_rng(1).permutation(60)
PEOPLE = list("abcde")


@pytest.fixture(scope="module")
def crowd():
    """Tables with ids, of which all but X are in another order."""
    plain = make_crowd()
    X = pd.DataFrame(plain.X, index=NAMES).add_prefix("x")
    y = pd.Series(plain.y, index=NAMES)
    answers = pd.DataFrame(plain.annotations, index=NAMES, columns=PEOPLE)
    counts = pd.DataFrame(plain.counts, index=NAMES)
    weight = pd.Series(np.linspace(0, 1, 60), index=NAMES)
    straight = {"X": X, "y": y, "annotations": answers, "counts": counts, "weight": weight}
    return straight, {name: table if name == "X" else table.iloc[ORDER] for name, table in straight.items()}


def series(values, ids):
    return pd.Series(values, index=ids)


@pytest.mark.parametrize("other", [["b", "a", "c"], [7, 3, 5], [("x", 1), ("x", 0), ("y", 0)]], ids=str)
def test_the_same_ids_in_another_order_are_matched(other):
    frame = pd.DataFrame({"value": [0, 1, 2]}, index=pd.Index(other))
    shuffled = series([2.0, 0.0, 1.0], frame.index[[2, 0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X, y, nothing = same_rows(X=frame, y=shuffled, annotations=None)
    assert X is frame
    assert nothing is None
    assert y.tolist() == [0, 1, 2]


def test_other_ids_are_refused_with_their_number():
    with pytest.raises(ValueError, match=r"y has other rows than X: 1 of 3 ids differ, y lacks \['c'\]"):
        same_rows(X=series([0, 1, 2], list("abc")), y=series([0, 1, 2], list("abd")))
    with pytest.raises(ValueError, match="annotations has other rows than y: 3 of 3 ids differ"):
        same_rows(X=np.zeros((3, 1)), y=series([0, 1, 2], list("abc")), annotations=series([0, 1, 2], list("def")))


def test_a_default_index_says_nothing_beside_other_ids():
    named, default = series([5, 6, 7], list("abc")), pd.Series([1, 2, 3])
    assert same_rows(X=default, y=named)[1] is named
    assert same_rows(X=named, y=default)[1] is default
    _, y, annotations = same_rows(X=default, y=named, annotations=series([7, 5, 6], list("cab")))
    assert annotations.tolist() == y.tolist()  # the first ids that say something
    part = default.iloc[[1, 2]]  # as splitting leaves it
    assert same_rows(X=part, y=named.iloc[:2])[1].tolist() == [5, 6]


def test_numbers_in_another_order_are_matched_with_a_warning():
    with pytest.warns(UserWarning, match="y has the ids of X in another order, and its rows are matched by them"):
        assert same_rows(X=pd.Series([1, 2, 3]), y=series([2, 0, 1], [2, 0, 1]))[1].tolist() == [0, 1, 2]


def test_repeated_ids_are_taken_by_position_if_they_are_the_same():
    X, y = series([0, 1, 2], list("aab")), series([5, 6, 7], list("aab"))
    assert same_rows(X=X, y=y)[1] is y
    part = pd.Series([1, 2, 3], index=[3, 4, 5])  # which splitting leaves of a default index
    assert same_rows(X=part, y=y)[1] is y
    with pytest.raises(ValueError, match="y and X repeat ids in unlike order"):
        same_rows(X=X, y=y.iloc[::-1])


def test_votes_and_annotated_targets_have_ids():
    frame = pd.DataFrame({"ann": [0, 1, 0], "bob": [1, 1, 0]}, index=list("abc"))
    votes = encode_votes(frame.iloc[[2, 1, 0]])
    assert_array_equal(same_rows(X=frame, annotations=votes)[1].to_codes(), frame)
    target = AnnotatedTarget(pd.Series([5, 6, 7], index=list("abc")), frame.iloc[[1, 2, 0]])
    pd.testing.assert_frame_equal(target.annotations, frame)
    matched = same_rows(X=frame.iloc[::-1], y=target)[1]
    assert matched.tolist() == [7, 6, 5]
    assert matched.annotations.index.tolist() == list("cba")


def told(team, data):
    X, y, annotations = data["X"], data["y"], data["annotations"]
    found = {
        "predict_deferral": team.predict_deferral(X),
        "score": team.score(X, y, annotations=annotations, sample_weight=data["weight"]),
    }
    for decision in ("draw", "vote", "combine", "crowdlab"):
        found[decision] = team.predict_team(X, annotations, decision=decision)
    return found


def assert_same(got, expected):
    for name in expected:
        assert_array_equal(got[name], expected[name], err_msg=name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("instance", of_kind("deferrer"), ids=str)
def test_every_deferrer_matches_rows(instance, crowd):
    straight, mixed = crowd
    expected = fit(instance, clone(instance.estimator), Bunch(straight))
    got = fit(instance, clone(instance.estimator), Bunch(mixed))
    assert_same(told(got, mixed), told(expected, straight))
    target = AnnotatedTarget(mixed["y"], mixed["annotations"])
    assert_same(told(clone(instance.estimator).fit(mixed["X"], target), mixed), told(expected, straight))
    if hasattr(got, "partial_fit"):
        for team, data in ((got, mixed), (expected, straight)):
            team.partial_fit(data["X"], data["y"], annotations=data["annotations"])
    if hasattr(got, "onboard"):
        for team, data in ((got, mixed), (expected, straight)):
            team.onboard(["zoe"], data["X"], data["annotations"][["a"]].set_axis(["zoe"], axis=1), y=data["y"])
        straight, mixed = (
            d | {"annotations": d["annotations"].assign(zoe=d["annotations"]["a"])} for d in (straight, mixed)
        )
    assert_same(told(got, mixed), told(expected, straight))
    strange = mixed["annotations"].rename(index={"item 3": "somebody else"})
    for call in (
        lambda: clone(instance.estimator).fit(mixed["X"], mixed["y"], annotations=strange),
        lambda: got.score(mixed["X"], mixed["y"], annotations=strange),
        lambda: got.predict_team(mixed["X"], strange),
        lambda: got.predict_team_proba(mixed["X"], strange),
    ):
        if got.n_experts_:
            with pytest.raises(ValueError, match=r"annotations has other rows than X: 1 of 60 ids differ"):
                call()


class Bunch:
    def __init__(self, data):
        vars(self).update(data)


def test_panels_and_their_curve_match_rows(crowd):
    straight, mixed = crowd
    panel = PanelDeferral(LogisticRegression(), cv=2, random_state=0)
    panel.fit(mixed["X"], mixed["y"], annotations=mixed["annotations"])
    replays, asked, told_why = (
        [ask(d["X"], d["annotations"]) for d in (mixed, straight)]
        for ask in (panel.replay, panel.next_expert, panel.explain_deferral)
    )
    assert_array_equal(replays[0].labels, replays[1].labels)
    assert_array_equal(*asked)
    pd.testing.assert_frame_equal(*told_why)
    curves = [answers_accuracy_curve([panel], d["X"], d["y"], d["annotations"]) for d in (mixed, straight)]
    assert_array_equal(*curves)


def test_metrics_match_rows(crowd):
    straight, mixed = crowd
    team = ConfidenceDeferral(LogisticRegression(), cv=2, random_state=0)
    team.fit(straight["X"], straight["y"], annotations=straight["annotations"])
    X = straight["X"]
    routed, labels = (pd.Series(v, index=NAMES) for v in (team.predict_deferral(X), team.predict(X)))
    proba = pd.DataFrame(team.predict_team_proba(X, straight["annotations"]), index=NAMES)
    scorer = make_team_scorer(decision="combine")

    def found(d, routed, labels, proba):
        return {
            "accuracy": team_accuracy(d["y"], routed, labels, d["annotations"], sample_weight=d["weight"]),
            "workload": workload_distribution(routed, None, d["annotations"], sample_weight=d["weight"]),
            "report": deferral_report(d["y"], routed, labels, d["annotations"], team_proba=proba)["combined_accuracy"],
            "points": coverage_accuracy_points(team, d["X"], d["y"], d["annotations"]),
            "scorer": scorer(team, d["X"], d["y"], d["annotations"], sample_weight=d["weight"]),
            "agreement": consensus_agreement(d["annotations"], proba),
        }

    expected = found(straight, routed, labels, proba)
    got = found(mixed, routed.iloc[::-1], labels.iloc[ORDER[::-1]], proba.iloc[ORDER])
    for name in expected:
        assert_allclose(got[name], expected[name], err_msg=name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_annotators_and_encoders_match_rows(crowd):
    straight, mixed = crowd
    lda, beta = INSTANCES[0].estimator, BetaExpertEncoder()
    behaviours = [clone(lda).fit(d["X"], d["counts"]) for d in (straight, mixed)]
    assert_array_equal(*(b.transform(straight["X"], straight["annotations"]) for b in behaviours))
    one = behaviours[0]
    assert isinstance(one, AnnotatorLDA)
    assert_array_equal(*(one.transform(d["X"], d["annotations"]) for d in (straight, mixed)))
    assert one.score(mixed["X"], mixed["counts"]) == one.score(straight["X"], straight["counts"])
    encoders = [clone(beta).fit(d["X"], d["y"], annotations=d["annotations"]) for d in (straight, mixed)]
    encoded = [e.transform(d["X"], d["annotations"], d["y"]) for e, d in zip(encoders, (straight, mixed), strict=True)]
    assert_array_equal(*encoded)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_learns_without_a_team_matches_rows(crowd):
    straight, mixed = crowd
    nets = [NetClassifier((4,), max_epochs=3, random_state=0).fit(d["X"], d["y"]) for d in (straight, mixed)]
    assert_array_equal(*(net.predict_proba(straight["X"]) for net in nets))
    lda = INSTANCES[0].estimator
    curves = [perplexity_curve(lda, d["X"], d["counts"], n_clusters=[1, 2], cv=2) for d in (straight, mixed)]
    assert_array_equal(curves[0].perplexity, curves[1].perplexity)


def test_splitting_by_scikit_learn_keeps_working(crowd):
    straight, mixed = crowd
    team = ConfidenceDeferral(LogisticRegression(), cv=2, random_state=0)
    plain = AnnotatedTarget(straight["y"].to_numpy(), straight["annotations"].to_numpy())
    cv = KFold(3, shuffle=True, random_state=0)
    expected = cross_val_score(team, straight["X"].to_numpy(), plain, cv=cv)
    numbered = straight["X"].reset_index(drop=True)
    for X in (straight["X"], numbered):
        target = AnnotatedTarget(straight["y"], straight["annotations"])
        search = GridSearchCV(team, {"classifier__C": [1.0]}, cv=cv, error_score="raise").fit(X, target)
        assert_array_equal([search.cv_results_[f"split{k}_test_score"][0] for k in range(3)], expected)
    drawn = resample(straight["X"], straight["y"], straight["annotations"], random_state=0)  # ids repeat
    again = clone(team).fit(drawn[0], drawn[1], annotations=drawn[2])
    assert again.score(drawn[0], drawn[1], annotations=drawn[2]) > 0.5
    with pytest.raises(ValueError, match="other rows than X"):
        cross_val_score(team, straight["X"], AnnotatedTarget(mixed["y"], mixed["annotations"]), error_score="raise")


def test_a_long_table_is_matched_by_its_tasks(crowd):
    straight, mixed = crowd
    team = ConfidenceDeferral(LogisticRegression(), cv=2, random_state=0)
    expected = clone(team).fit(straight["X"], straight["y"], annotations=straight["annotations"])
    got = clone(team).fit(straight["X"], straight["y"], annotations=to_long(mixed["annotations"]))
    assert_array_equal(
        got.predict_team(mixed["X"], mixed["annotations"]), expected.predict_team(*list(straight.values())[:3:2])
    )
    assert accuracy_score(straight["y"], got.predict_team(mixed["X"], mixed["annotations"])) > 0.8


@pytest.mark.parametrize(
    "ids", [NAMES, [(i // 8, i % 8) for i in range(60)], list(range(100, 160))], ids=lambda ids: str(ids[0])
)
@pytest.mark.parametrize("form", [lambda long: long, encode_votes], ids=["long", "votes"])
def test_items_that_nobody_answered_may_be_absent_among_answers(crowd, ids, form):
    """As in the answers to a route, which asks about some items only."""
    straight, _ = crowd
    index = pd.Index(ids, tupleize_cols=False)
    X, y, weight = (straight[name].set_axis(index) for name in ("X", "y", "weight"))
    wide = straight["annotations"].set_axis(index)
    wide.iloc[[5, 17, 40]] = -1
    answers = form(to_long(wide).sample(frac=1, random_state=0))
    assert len(set(answers.tasks if hasattr(answers, "tasks") else answers["task"])) == 57
    team = ConfidenceDeferral(LogisticRegression(), cv=2, random_state=0)
    expected = clone(team).fit(X, y, annotations=wide, sample_weight=weight)
    got = clone(team).fit(X, y, annotations=answers, sample_weight=weight)
    assert_array_equal(got.predict_expert_correctness(X), expected.predict_expert_correctness(X))
    assert_array_equal(got.predict_team(X, answers), expected.predict_team(X, wide))
    unknown = y.astype(object).where(np.arange(60) % 5 > 0, None)
    assert got.score(X, unknown, answers) == expected.score(X, unknown, wide)
    assert_allclose(team_accuracy(y, got.predict_deferral(X), got.predict(X), answers), expected.score(X, y, wide))
    few = form(to_long(wide.iloc[:2]))
    assert_array_equal(got.predict_team(X, few)[2:], got.predict(X)[2:])


@pytest.mark.parametrize("index", [None, NAMES, [0] * 60], ids=["default", "names", "repeated"])
def test_nobody_need_have_answered_yet(crowd, index):
    straight, _ = crowd
    X = straight["X"].set_axis(pd.RangeIndex(60) if index is None else index)
    panel = PanelDeferral(LogisticRegression(), answers=1.0, cv=2, random_state=0)
    panel.fit(X, straight["y"].to_numpy(), annotations=straight["annotations"].to_numpy())
    nothing = pd.DataFrame(columns=["task", "annotator", "label"])
    assert_array_equal(panel.predict_team(X, nothing), panel.predict(X))
    assert_array_equal(panel.next_expert(X, nothing), panel.next_expert(X))


def test_answers_to_other_items_are_not_taken_for_some_of_these(crowd):
    straight, _ = crowd
    team = ConfidenceDeferral(LogisticRegression(), cv=2, random_state=0)
    team.fit(straight["X"], straight["y"], annotations=straight["annotations"])
    with pytest.raises(
        ValueError, match=r"a row for each answer, to 2 items, but X has 60; .*encode_votes\(table, tasks=...\)"
    ):
        team.predict_team(straight["X"], to_long(straight["annotations"].iloc[:2].set_axis(["item 1", "else"])))


def test_answers_without_a_label_are_none_whatever_marks_the_missing_ones():
    table = pd.DataFrame({"task": ["x", "y"], "annotator": ["ann", "ann"], "label": ["cat", None]})
    votes = encode_votes(table, missing_label="skip")
    assert votes.classes.tolist() == ["cat"]
    assert votes.to_counts().tolist() == [[1], [0]]
