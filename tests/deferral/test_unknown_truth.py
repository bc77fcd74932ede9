"""Items whose truth is unknown, in `fit` and `onboard`."""

import copy
from itertools import product

import numpy as np
import pandas as pd
import pytest
from _instances import make_crowd
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_l2d._encoding import known_labels, label_array
from sklearn_l2d._numerics._answer_model import fit_answer_model
from sklearn_l2d.annotations import AnnotatedTarget, encode_votes
from sklearn_l2d.cluster import AnnotatorLDA
from sklearn_l2d.deferral import (
    BestExpert,
    ClusterDeferral,
    ConfidenceDeferral,
    RandomExpertDeferral,
    RankedDeferral,
)


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(n_samples=120)


def confidence(**params):
    return ConfidenceDeferral(LogisticRegression(), cv=3, random_state=0, **params)


def hidden(y, share=0.5, seed=0):
    """Mask of labels that are known."""
    return np.random.default_rng(seed).random(len(y)) >= share


# ------------------------------------------------------------------------------------------ what is unknown

FORMS = {
    "list": lambda y: y.tolist(),
    "object": lambda y: y,
    "float": lambda y: y.astype(float),
    "NaN": lambda y: np.where(pd.isna(y), np.nan, y),
    "masked": lambda y: np.ma.array(np.where(pd.isna(y), 0, y).astype(int), mask=pd.isna(y)),
    "column": lambda y: y.astype(float)[:, None],
    "float series": lambda y: pd.Series(y.astype(float), index=np.arange(len(y)) * 3),
    "nullable": lambda y: pd.Series(y, dtype="Int8"),
    "nullable float": lambda y: pd.Series(y, dtype="Float64"),
    "category": lambda y: pd.Series(y, dtype="category"),
    "arrow": lambda y: pd.Series(pd.Series(y, dtype="Int64"), dtype="int64[pyarrow]"),
    "polars": lambda y: pytest.importorskip("polars").Series(y.tolist()),
    "marked": lambda y: np.where(pd.isna(y), -1, y).astype(int),
    "marked list": lambda y: np.where(pd.isna(y), "?", y).tolist(),
}


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_missing_means_unknown(crowd, form):
    if form == "arrow":
        pytest.importorskip("pyarrow")
    known = hidden(crowd.y)
    given_y = FORMS[form](np.where(known, crowd.y, None))
    team = confidence(unlabeled_label={"marked": -1, "marked list": "?"}.get(form))
    team.fit(crowd.X, given_y, crowd.annotations)
    expected = confidence().fit(crowd.X, np.where(known, crowd.y, np.nan), crowd.annotations)
    assert team.classes_.tolist() == [0, 1, 2]
    assert team.classes_.dtype.kind == "i"
    assert_allclose(team._roster.seen.sum(1), (crowd.annotations >= 0).sum(0))
    assert_array_equal(
        team.predict_team_proba(crowd.X, crowd.annotations), expected.predict_team_proba(crowd.X, crowd.annotations)
    )
    if form != "column":
        carried = clone(team).fit(crowd.X, AnnotatedTarget(given_y, crowd.annotations))
        assert_array_equal(carried._roster.seen, expected._roster.seen)


@pytest.mark.parametrize("form", ["list", "object", "string", "category", "masked", "marked"])
def test_names_of_classes_may_be_missing(form):
    crowd = make_crowd(labels=("cat", "dog", "eel"))
    known = hidden(crowd.y)
    y = np.where(known, crowd.y, None)
    given_y = {
        "list": [label or np.nan for label in y],
        "object": y,
        "string": pd.Series(y, dtype="string"),
        "category": pd.Series(y, dtype="category"),
        "masked": np.ma.array(crowd.y, mask=~known),
        "marked": np.where(known, crowd.y, "unknown"),
    }[form]
    team = confidence(unlabeled_label="unknown").fit(crowd.X, given_y, crowd.annotations)
    assert team.classes_.tolist() == ["cat", "dog", "eel"]
    assert_allclose(team._roster.seen.sum(1), pd.notna(crowd.annotations).sum(0))
    assert set(team.predict_team(crowd.X, crowd.annotations, decision="combine")) <= set(team.classes_)


LABELS = st.one_of(st.integers(-3, 3), st.sampled_from([None, np.nan, pd.NA]))


@given(st.lists(LABELS, min_size=1, max_size=20))
def test_what_is_missing_is_what_pandas_calls_so(labels):
    y = np.empty(len(labels), dtype=object)
    y[:] = labels
    found, known = known_labels(label_array(y))
    assert_array_equal(known, pd.notna(y))
    assert found.tolist() == y[known].tolist()
    kept, known = known_labels(label_array(y), -1)
    assert_array_equal(known, [pd.notna(label) and label != -1 for label in labels])
    assert -1 not in kept


@pytest.mark.filterwarnings("ignore:annotations hold labels that y lacks")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: confidence().fit(c.X, np.full(120, np.nan), c.annotations), "y knows the truth of no item"),
        (lambda c: confidence(unlabeled_label=-1).fit(c.X, np.full(120, -1), c.annotations), "the truth of no item"),
        (lambda c: confidence().fit(c.X, np.where(c.y == 1, 1, np.nan), c.annotations), "one class only"),
        (lambda c: confidence().fit(c.X, np.where(c.y == 1, np.inf, np.nan), c.annotations), "infinity"),
        (lambda c: confidence().fit(c.X, np.where(c.y[:-1] == 1, np.nan, 1), c.annotations), "inconsistent"),
        (lambda c: confidence(unlabeled_label=2).fit(c.X, c.y, c.annotations), "unlabeled_label=2 marks an unknown"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(crowd, call, message):
    with pytest.raises(ValueError, match=message):
        call(crowd)


@pytest.mark.parametrize("marker", [None, np.nan, pd.NA, "unknown"])
def test_markers_that_are_missing_themselves_mark_nothing_else(crowd, marker):
    y = np.where(hidden(crowd.y), crowd.y, np.nan)
    team = confidence(unlabeled_label=marker).fit(crowd.X, y, crowd.annotations)
    assert_allclose(team._roster.seen.sum(1), (crowd.annotations >= 0).sum(0))


@pytest.mark.filterwarnings("error")
def test_minus_one_beside_counted_classes_may_be_a_marker(crowd):
    y = np.where(hidden(crowd.y), crowd.y, -1)
    with pytest.warns(UserWarning, match=r"y holds -1 beside 0 to 2; it is taken as a class.*unlabeled_label=-1"):
        team = confidence().fit(crowd.X, y)
    assert team.classes_.tolist() == [-1, 0, 1, 2]
    assert confidence(unlabeled_label=np.nan).fit(crowd.X, y).classes_.tolist() == [-1, 0, 1, 2]
    assert confidence(unlabeled_label=-1).fit(crowd.X, y).classes_.tolist() == [0, 1, 2]
    for usual in ([-1, 1], [-1, 0], [0, 1, 2], [-1, 1, 2]):
        confidence().fit(crowd.X, np.array(usual)[crowd.y % len(usual)])
    names = np.array(["-1", "0", "1"])[crowd.y]
    assert confidence().fit(crowd.X, names).classes_.tolist() == ["-1", "0", "1"]


# ------------------------------------------------------------------------------------------ what is learnt


def brute_force(log_prior, y, codes, n_rounds=5, n_iter=20):
    """Expected answers (expert, truth, answer) by EM whose E-step enumerates the truth of all unknown items at once."""
    n_items, n_experts = codes.shape
    item, expert = np.nonzero(codes >= 0)
    label = codes[item, expert]
    unknown = np.flatnonzero(y < 0)
    votes = (codes[:, :, None] == np.arange(2)).sum(1)
    truth = np.where((y < 0)[:, None], np.exp(log_prior), np.eye(2)[y])
    truth = np.where((y < 0)[:, None], (truth + votes) / (1 + votes.sum(1, keepdims=True)), truth)

    def counts():
        table = np.zeros((n_experts, 2, 2))
        for i, m in product(range(n_items), range(n_experts)):
            if codes[i, m] >= 0:
                table[m, :, codes[i, m]] += truth[i]
        return table

    for _ in range(n_rounds):
        model = fit_answer_model(item, expert, label, n_experts, truth)
        prior = np.empty((n_experts, 2, 2))  # two classes: what is not right is the other one
        prior[:, [0, 1], [0, 1]] = model.accuracy
        prior[:, [0, 1], [1, 0]] = 1 - model.accuracy
        for _ in range(n_iter):
            found = counts()
            rows = (found + model.strength * prior) / (found.sum(2, keepdims=True) + model.strength)
            weight = {}
            for guess in product(range(2), repeat=len(unknown)):
                full = y.copy()
                full[unknown] = guess
                log_joint = log_prior[unknown, guess].sum()
                log_joint += sum(np.log(rows[m, full[i], codes[i, m]]) for i, m in zip(item, expert, strict=True))
                weight[guess] = log_joint
            top = max(weight.values())
            weight = {guess: np.exp(w - top) for guess, w in weight.items()}
            total = sum(weight.values())
            truth[unknown] = 0
            for guess, w in weight.items():
                truth[unknown, guess] += w / total
    return counts()


def test_counts_are_those_of_em_by_enumeration():
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=20)
    X = rng.normal(size=(20, 2)) + np.eye(2)[y]
    codes = np.where(rng.random((20, 3)) < [0.9, 0.7, 0.6], y[:, None], 1 - y[:, None])
    codes[rng.random(codes.shape) < 0.2] = -1
    codes[14:, 0] = np.maximum(codes[14:, 0], 0)
    truth = np.where(np.arange(20) < 14, y, -1)
    classifier = FrozenEstimator(GaussianNB().fit(X[:14], y[:14]))
    team = ConfidenceDeferral(classifier, unlabeled_label=-1, random_state=0).fit(X, truth, codes)
    log_prior = np.log(team.predict_proba(X)) / team.temperature_
    log_prior -= np.log(np.exp(log_prior).sum(1, keepdims=True))
    expected = brute_force(log_prior, truth, codes)
    own, right, seen = team._roster.counts
    assert_allclose(own.toarray().reshape(3, 2, 2), expected.transpose(0, 2, 1), atol=5e-3)
    assert_allclose(right, expected[:, [0, 1], [0, 1]], atol=5e-3)
    assert_allclose(seen, expected.sum(2), atol=5e-3)
    known = encode_votes(codes[:14], classes=[0, 1])
    assert np.abs(seen.sum(1) - known.n_answers).min() > 0  # everybody answered more than what is known


def test_answers_to_unknown_items_tell_who_is_good():
    few, many = make_crowd(n_samples=20, n_experts=12), make_crowd(n_samples=400, n_experts=12, random_state=1)
    X, annotations = (np.concatenate([few[name], many[name]]) for name in ("X", "annotations"))
    y = np.concatenate([few.y, np.full(400, np.nan)])
    new = make_crowd(n_samples=2000, n_experts=12, random_state=2)
    one = np.where(np.arange(12) == np.random.default_rng(0).integers(12, size=(2000, 1)), new.annotations, -1)
    dropped, used = confidence().fit(few.X, few.y, few.annotations), confidence().fit(X, y, annotations)
    loss = [-np.log(team.predict_team_proba(new.X, one)[np.arange(2000), new.y]).mean() for team in (dropped, used)]
    assert loss[1] < loss[0]
    skill = (new.annotations == new.y[:, None]).sum(0) / (new.annotations >= 0).sum(0)
    error = [np.abs(team._roster.right.sum(1) / team._roster.seen.sum(1) - skill).mean() for team in (dropped, used)]
    assert error[1] < error[0] / 2


@settings(max_examples=15, deadline=None)
@given(st.floats(0, 0.9), st.integers(0, 1000), st.randoms(use_true_random=False))
def test_every_answer_counts_once_in_any_order(share, seed, random):
    crowd = make_crowd(n_samples=50, random_state=seed)
    known = hidden(crowd.y, share, seed)
    known[:6] = True
    y = np.where(known, crowd.y, np.nan)
    if len(np.unique(y[known])) < 2:
        return
    classifier = FrozenEstimator(GaussianNB().fit(crowd.X, crowd.y))
    team = ConfidenceDeferral(classifier, random_state=0).fit(crowd.X, y, crowd.annotations)
    right, seen = team._roster.right, team._roster.seen
    assert_allclose(seen.sum(1), (crowd.annotations >= 0).sum(0))
    assert ((right >= 0) & (right <= seen + 1e-9)).all()
    certain = encode_votes(crowd.annotations[known], classes=[0, 1, 2])
    plain = ConfidenceDeferral(classifier, random_state=0).fit(crowd.X[known], y[known].astype(int), certain)
    assert (seen >= plain._roster.seen - 1e-9).all()
    order = list(range(50))
    random.shuffle(order)
    moved = ConfidenceDeferral(classifier, random_state=0).fit(crowd.X[order], y[order], crowd.annotations[order])
    assert_allclose(moved._roster.seen, seen, atol=1e-6)
    assert_allclose(moved._roster.right, right, atol=1e-6)


def test_a_class_that_only_experts_name_is_wrong():
    crowd = make_crowd(n_samples=120)
    y = np.where(crowd.y == 2, np.nan, crowd.y)
    with pytest.warns(UserWarning, match=r"labels that y lacks, \[2\]"):
        team = confidence().fit(crowd.X, y, crowd.annotations)
    assert team.classes_.tolist() == [0, 1, 2]
    assert_allclose(team._roster.seen.sum(1), (crowd.annotations >= 0).sum(0))
    assert_allclose(team._roster.seen[:, 2], 0, atol=1)  # as in `predict`: the classifier does not know it


def test_answers_to_unknown_items_may_be_all_there_is(crowd):
    known = np.arange(120) < 40
    annotations = np.where(known[:, None], -1, crowd.annotations)
    for team in (
        confidence(),
        BestExpert(LogisticRegression()),
        RandomExpertDeferral(classifier=LogisticRegression(), cv=2, max_epochs=2),
    ):
        team.set_params(random_state=0).fit(crowd.X, np.where(known, crowd.y, np.nan), annotations)
        assert_allclose(team._roster.seen.sum(1), (annotations >= 0).sum(0))
        right = team.predict_team(crowd.X[:40], crowd.annotations[:40], decision="combine") == crowd.y[:40]
        assert right.mean() > 0.85
    best = BestExpert(LogisticRegression()).fit(crowd.X, np.where(known, crowd.y, np.nan), annotations)
    assert best.workload_.argmax() == 0


def test_behaviours_and_completions_need_no_truth(crowd):
    y, known = np.where(np.arange(120) < 40, crowd.y, np.nan), np.arange(120) < 40
    lda = AnnotatorLDA(2, hidden_layer_sizes=(4,), max_epochs=3, n_anchor_epochs=1, n_consensus_epochs=2)
    gate = ClusterDeferral(lda, classifier=LogisticRegression(), cv=2, max_epochs=2, random_state=0)
    gate.fit(crowd.X, y, np.where(known[:, None], -1, crowd.annotations))
    votes = encode_votes(np.where(known[:, None], -1, crowd.annotations), classes=[0, 1, 2])
    expected = clone(lda).set_params(random_state=gate._seed).fit(crowd.X, votes.to_counts())
    assert_array_equal(gate.clusterer_.predict_annotation_proba(crowd.X), expected.predict_annotation_proba(crowd.X))
    assert_array_equal(gate._roster.details["membership"], expected.transform(crowd.X, votes))


def test_without_experts_unknown_truth_is_left_out(crowd):
    known = hidden(crowd.y)
    team = confidence().fit(crowd.X, np.where(known, crowd.y, np.nan))
    assert_array_equal(
        team.predict_proba(crowd.X), confidence().fit(crowd.X[known], crowd.y[known]).predict_proba(crowd.X)
    )


def test_many_answers_take_little_time_and_entries():
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=20_000)
    codes = np.full((20_000, 50), -1, dtype=np.int8)
    who = rng.integers(50, size=(20_000, 5))
    skill = np.linspace(0.4, 0.95, 50)[who]
    answers = np.where(rng.random(who.shape) < skill, y[:, None], rng.integers(10, size=who.shape))
    np.put_along_axis(codes, who, answers, 1)
    X = rng.normal(size=(20_000, 10)) + np.eye(10)[y]
    classifier = FrozenEstimator(GaussianNB().fit(X[:500], y[:500]))
    truth = np.where(np.arange(20_000) < 500, y, np.nan)
    team = ConfidenceDeferral(classifier, random_state=0).fit(X, truth, codes)
    assert_allclose(team._roster.right.sum(1) / team._roster.seen.sum(1), np.linspace(0.46, 0.955, 50), atol=0.06)
    assert team._roster.answers.nnz <= 50 * 10**2


# ------------------------------------------------------------------------------------------ newcomers


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_newcomers_are_judged_where_the_truth_is_known_and_where_it_is_probable(share):
    crowd = make_crowd(n_samples=300)
    team = confidence().fit(crowd.X, crowd.y, crowd.annotations)
    new = make_crowd(n_samples=200, random_state=4)
    known = hidden(new.y, share)
    team.onboard(["good", "bad"], new.X, new.annotations[:, [0, 4]], np.where(known, new.y, np.nan))
    answers = (new.annotations[:, [0, 4]] >= 0).sum(0)
    assert_allclose(team._roster.seen[-2:].sum(1), answers)
    rate = team._roster.right[-2:].sum(1) / answers
    assert_allclose(rate, (new.annotations[:, [0, 4]] == new.y[:, None]).sum(0) / answers, atol=1e-9 + share * 0.12)


def test_newcomers_need_some_truth_where_it_is_what_counts(crowd):
    team = RankedDeferral(confidence()).fit(crowd.X, crowd.y, crowd.annotations)
    before = copy.deepcopy(vars(team))
    for y, message in ((None, "y is None"), (np.full(120, np.nan), "y knows the truth of no item")):
        with pytest.raises(ValueError, match=message):
            team.onboard("new", crowd.X, crowd.annotations[:, :1], y)
    assert vars(team).keys() == before.keys()
    gate = RandomExpertDeferral(classifier=LogisticRegression(), cv=2, max_epochs=1, random_state=0)
    gate.fit(crowd.X, crowd.y, crowd.annotations)
    gate.onboard("new", crowd.X, crowd.annotations[:, :1], np.full(120, np.nan))
    assert_allclose(gate._roster.seen[-1].sum(), (crowd.annotations[:, 0] >= 0).sum())
    with pytest.raises(ValueError, match="y leaves the truth of 120 items open, but partial_fit compares"):
        gate.partial_fit(crowd.X, np.full(120, np.nan), np.tile(crowd.annotations[:, :1], 6))


def two_behaviours(n, seed):
    """Items, truth, and answers of experts "good ..." and "bad ..."; they err alike, as behaviours do."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) * 0.7 + 1.5 * np.eye(3, 4)[y]
    names = [f"{kind} {k}" for kind in ("good", "bad") for k in range(6)]
    right = rng.random((n, 12)) < np.repeat([0.9, 0.3], 6)
    return X, y, pd.DataFrame(np.where(right, y[:, None], (y[:, None] + 1) % 3), columns=names)


def test_newcomers_without_truth_weigh_what_their_behaviour_does():
    X, y, answers = two_behaviours(400, 0)
    lda = AnnotatorLDA(2, hidden_layer_sizes=(8,), max_epochs=10, random_state=0)
    gate = ClusterDeferral(lda, n_groups=2, classifier=LogisticRegression(C=0.1), cv=3, max_epochs=3, random_state=0)
    gate.fit(X, y, answers)
    X_new, y_new, more = two_behaviours(400, 1)
    few = slice(0, 12)
    newcomers = more[["good 0", "bad 0"]].set_axis(["g", "b"], axis=1)
    gate.onboard(["g", "b"], X_new[few], newcomers[few])
    likely = gate._roster.likely
    assert np.isnan(likely[:12]).all()
    assert (likely[-2] > likely[-1] + 0.15).all()

    def confidence_in(name):
        """Mean probability of what somebody answers, nobody else being asked."""
        only = more.assign(g=more["good 1"], b=more["bad 1"])[gate.experts_].mask(
            np.tile(gate.experts_ != name, (400, 1))
        )
        proba = gate.predict_team_proba(X_new, only)
        return proba[np.arange(400), only[name].astype(int)].mean()

    assert confidence_in("g") > confidence_in("b") + 0.15
    # without any answer of their own counted, memberships alone say so
    silent = copy.copy(gate)
    roster = gate._roster
    silent._roster = roster.replace(
        right=np.where(np.arange(14)[:, None] < 12, roster.right, 0),
        seen=np.where(np.arange(14)[:, None] < 12, roster.seen, 0),
    )
    model = silent._roster.answer_model
    assert (model.accuracy[-2] > model.accuracy[-1] + 0.15).all()
    empty = copy.copy(gate).offboard(gate.experts_).onboard(["g"], X_new[few], newcomers[["g"]][few])
    assert np.isnan(empty._roster.likely).all()
    assert np.isfinite(empty.predict_team_proba(X_new, more[["good 0"]].set_axis(["g"], axis=1))).all()
    # who leaves and joins with known truth is known by it again
    gate.onboard("g", X_new, newcomers[["g"]], y_new)
    assert np.isnan(gate._roster.likely[-1]).all()
    assert not np.isnan(gate._roster.likely[-2]).any()


def test_score_refuses_annotations_of_other_items_where_a_truth_is_unknown(crowd):
    model = confidence().fit(crowd.X, crowd.y, annotations=crowd.annotations)
    y = np.append(crowd.y[:-1].astype(float), np.nan)
    with pytest.raises(ValueError, match="annotations has 121 rows, but X has 120"):
        model.score(crowd.X, y, annotations=np.vstack([crowd.annotations, crowd.annotations[:1]]))
