"""Items that come from the same patient, say: whatever is judged on held-out items is judged on other groups."""

import numpy as np
import pandas as pd
import pytest
from _instances import make_crowd, of_kind, outputs
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, PredefinedSplit, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import Bunch

from sklearn_l2d import AnnotatedTarget, AnnotatorLDA
from sklearn_l2d.deferral import BestExpert, ConfidenceDeferral, PanelDeferral, ProfileDeferral, RankedDeferral

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

GROUPS = np.arange(60) // 4  # of 60 items


class Witness(LogisticRegression):
    """Tells which of the items it was fitted to and which it was asked about, by their first feature."""

    told = []  # noqa: RUF012 - shared by clones

    def fit(self, X, y, sample_weight=None):
        self.seen_ = set(np.asarray(X)[:, 0].tolist())
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):
        self.told.append((self.seen_, set(np.asarray(X)[:, 0].tolist())))
        return super().predict_proba(X)


def _may_hold_out(instance):
    return bool({"cv", "deferrer"} & instance.estimator.get_params().keys())


def _judges_a_classifier(instance):
    params = instance.estimator.get_params()
    return {"cv", "classifier"} <= params.keys() and not params.get("joint_classifier")


@pytest.fixture(scope="module")
def crowd():
    return make_crowd()


@pytest.fixture
def told():
    Witness.told.clear()
    yield Witness.told
    Witness.told.clear()


def judged_by_strangers(told, crowd, groups):
    """Whether classifiers out of fold knew no item of the groups that they were asked about."""
    group_of = dict(zip(crowd.X[:, 0].tolist(), np.asarray(groups).tolist(), strict=True))
    out_of_fold = [(seen, asked) for seen, asked in told if asked <= group_of.keys() and len(seen) < len(group_of)]
    assert out_of_fold
    return all(
        {group_of[x] for x in seen}.isdisjoint({group_of[x] for x in asked})
        for seen, asked in out_of_fold
        if not asked & seen  # the fold's own items
    )


@pytest.mark.parametrize("instance", [i for i in of_kind("deferrer") if _judges_a_classifier(i)], ids=str)
def test_classifiers_are_judged_on_groups_that_they_do_not_know(instance, crowd, told):
    estimator = clone(instance.estimator).set_params(classifier=Witness())
    estimator.fit(crowd.X, crowd.y, annotations=crowd.annotations, groups=GROUPS)
    assert judged_by_strangers(told, crowd, GROUPS)
    told.clear()
    estimator.fit(crowd.X, crowd.y, annotations=crowd.annotations)
    assert not judged_by_strangers(told, crowd, GROUPS)


@pytest.mark.parametrize("instance", [i for i in of_kind("deferrer") if not _may_hold_out(i)], ids=str)
def test_groups_say_nothing_where_nothing_is_held_out(instance, crowd):
    plain, grouped = (
        clone(instance.estimator).fit(crowd.X, crowd.y, annotations=crowd.annotations, **given)
        for given in ({}, {"groups": GROUPS})
    )
    expected, got = outputs(instance, plain, crowd), outputs(instance, grouped, crowd)
    for name in expected:
        assert_array_equal(got[name], expected[name])


def test_a_wrapper_passes_groups_on(crowd):
    given = {"annotations": crowd.annotations, "groups": GROUPS}
    inner = ConfidenceDeferral(LogisticRegression(), random_state=0)
    outer = RankedDeferral(inner, coverage=0.5, random_state=0).fit(crowd.X, crowd.y, **given)
    assert outer.deferrer_.temperature_ == inner.fit(crowd.X, crowd.y, **given).temperature_


def many_views(n_groups, rng):
    """Items of two dimensions, five alike of each group; the truth is that of a coin for every group."""
    truth, center = rng.integers(2, size=n_groups), rng.normal(size=(n_groups, 2))
    groups = np.repeat(np.arange(n_groups), 5)
    return center[groups] + 0.01 * rng.normal(size=(5 * n_groups, 2)), truth[groups], groups


def test_who_only_recognises_groups_is_not_trusted_on_new_ones():
    rng = np.random.default_rng(0)
    X, y, groups = many_views(40, rng)
    answers = np.where(rng.random((200, 4)) < 0.8, y[:, None], 1 - y[:, None])
    X_new, y_new, _ = many_views(200, rng)
    fooled, warned = (
        ConfidenceDeferral(KNeighborsClassifier(1), random_state=0).fit(X, y, annotations=answers, **given)
        for given in ({}, {"groups": groups})
    )
    alone = (fooled.classifier_.predict(X_new) == y_new).mean()
    assert abs(alone - 0.5) < 0.05
    nobody = np.full((len(X_new), 4), -1)
    assert fooled.predict_team_proba(X_new, nobody).max(1).mean() > 0.99
    assert warned.predict_team_proba(X_new, nobody).max(1).mean() < 0.7
    assert (fooled.predict_deferral(X_new) == -1).all()
    assert (warned.predict_deferral(X_new) >= 0).mean() > 0.95


@pytest.mark.parametrize("instance", [i for i in of_kind("deferrer") if _judges_a_classifier(i)], ids=str)
def test_folds_may_be_given(instance, crowd, told):
    thirds = PredefinedSplit(GROUPS % 3)
    for cv, given in ((thirds, {}), (list(thirds.split()), {}), (GroupKFold(3), {"groups": GROUPS})):
        told.clear()
        estimator = clone(instance.estimator).set_params(classifier=Witness(), cv=cv)
        estimator.fit(crowd.X, crowd.y, annotations=crowd.annotations, **given)
        assert judged_by_strangers(told, crowd, GROUPS)


def test_positions_of_splits_are_those_of_all_items(crowd, told):
    """Some are left out, since their weight is 0 or nobody knows their truth."""
    weight, y = np.where(np.arange(60) % 7 == 0, 0.0, 1.0), crowd.y.astype(float)
    y[np.arange(60) % 5 == 0] = np.nan
    team = ConfidenceDeferral(Witness(), cv=list(PredefinedSplit(GROUPS % 3).split()), random_state=0)
    team.fit(crowd.X, y, crowd.annotations, sample_weight=weight)
    rows = np.flatnonzero((weight > 0) & ~np.isnan(y))
    assert judged_by_strangers(told, Bunch(X=crowd.X[rows]), GROUPS[rows] % 3)


def test_splits_leave_what_is_held_out_for_a_promise(told):
    crowd = make_crowd(400)
    panel = PanelDeferral(Witness(), target_accuracy=0.8, confidence_level=0.6, random_state=0)
    panel.set_params(cv=PredefinedSplit(np.arange(400) % 3))
    panel.fit(crowd.X, crowd.y, annotations=crowd.annotations)
    learnt = set().union(*(seen for seen, _ in told))
    assert len(learnt) == 200
    fold_of = dict(zip(crowd.X[:, 0].tolist(), (np.arange(400) % 3).tolist(), strict=True))
    assert all(len({fold_of[x] for x in seen}) == 2 for seen, _ in told if len(seen) < 200)


@pytest.mark.parametrize("cv", ["five", 1, iter([]), None])
def test_what_gives_no_folds_is_refused(cv, crowd):
    with pytest.raises(ValueError, match="The 'cv' parameter of ConfidenceDeferral must be an int in the range"):
        ConfidenceDeferral(LogisticRegression(), cv=cv).fit(crowd.X, crowd.y, annotations=crowd.annotations)


def test_a_promise_rests_on_groups_that_nothing_was_learnt_from(told):
    crowd = make_crowd(400)
    groups = np.random.default_rng(0).integers(40, size=400)
    panel = PanelDeferral(Witness(), target_accuracy=0.8, confidence_level=0.6, random_state=0)
    panel.fit(crowd.X, crowd.y, annotations=crowd.annotations, groups=groups)
    learnt = set().union(*(seen for seen, _ in told))
    known = np.isin(crowd.X[:, 0], list(learnt))
    assert 150 < known.sum() < 250
    assert not set(groups[known]) & set(groups[~known])


def test_groups_of_people_are_chosen_on_other_groups_of_items(crowd):
    plain, grouped = (
        ProfileDeferral(Witness(), random_state=0).fit(crowd.X, crowd.y, annotations=crowd.annotations, **given)
        for given in ({}, {"groups": GROUPS})
    )
    assert (plain.group_likelihood_ != grouped.group_likelihood_).any()


def test_the_penalty_of_behaviours_is_chosen_by_votes_on_other_groups():
    X, y, groups = many_views(40, np.random.default_rng(0))
    counts = 3 * np.eye(2)[y]
    settings = {"hidden_layer_sizes": (16,), "n_consensus_epochs": 30, "n_anchor_epochs": 0, "max_epochs": 1}
    lda = AnnotatorLDA(2, **settings, random_state=0)
    plain, grouped, by_name = (
        clone(lda).fit(X, counts, groups=some).score(X, counts)
        for some in (None, groups, [f"object {group:02d}" for group in groups])
    )
    assert grouped == by_name
    assert grouped < plain - 0.003  # a larger penalty, for there is nothing to learn for other groups
    fixed = clone(lda).set_params(weight_decay=0.01)
    assert fixed.fit(X, counts, groups=groups).score(X, counts) == fixed.fit(X, counts).score(X, counts)


def test_labels_of_groups_and_the_order_of_rows_say_nothing(crowd):
    params = {"annotations": crowd.annotations}
    expected = ConfidenceDeferral(LogisticRegression(), random_state=0).fit(crowd.X, crowd.y, **params, groups=GROUPS)
    names = [f"patient {group:02d}" for group in GROUPS]
    for groups in (names, np.array(names, dtype=object), pd.Series(names, dtype="category"), GROUPS + 0.5):
        team = clone(expected).fit(crowd.X, crowd.y, **params, groups=groups)
        assert team.temperature_ == expected.temperature_
    mixed = [group if group % 2 else f"{group}" for group in GROUPS]
    clone(expected).fit(crowd.X, crowd.y, **params, groups=mixed)
    order = np.random.default_rng(0).permutation(60)
    rows = pd.Index([f"item {i}" for i in range(60)])
    X = pd.DataFrame(crowd.X, index=rows).add_prefix("x")
    by_name = pd.Series(names, index=rows).iloc[order]
    team = clone(expected).fit(X, crowd.y, **params, groups=by_name)
    assert_allclose(team.temperature_, expected.temperature_)


def test_items_of_weight_zero_or_unknown_truth_take_their_groups_along(crowd):
    weight, y = np.where(np.arange(60) % 7 == 0, 0.0, 1.0), crowd.y.astype(float)
    y[np.arange(60) % 5 == 0] = np.nan
    rows = np.flatnonzero(weight)
    team = ConfidenceDeferral(LogisticRegression(), random_state=0)
    weighted = clone(team).fit(crowd.X, y, crowd.annotations, sample_weight=weight, groups=GROUPS)
    absent = clone(team).fit(crowd.X[rows], y[rows], crowd.annotations[rows], groups=GROUPS[rows])
    assert_allclose(weighted.temperature_, absent.temperature_)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (GROUPS[:-1], "groups has 59 entries, but X has 60 items"),
        (np.zeros(60), "groups is the same for all items of known truth"),
        (np.where(GROUPS == 3, np.nan, GROUPS), "groups is missing for 4 of 60 items"),
        ([None, *GROUPS[1:]], "groups is missing for 1 of 60 items"),
        (pd.Series(GROUPS, index=[f"other {i}" for i in range(60)]), "groups has other rows than X"),
        (np.column_stack([GROUPS, GROUPS]), "y should be a 1d array|groups"),
    ],
)
def test_bad_groups_are_refused(groups, message, crowd):
    X = pd.DataFrame(crowd.X, index=[f"item {i}" for i in range(60)]).add_prefix("x")
    team = BestExpert(LogisticRegression(), random_state=0).fit(crowd.X, crowd.y, crowd.annotations)
    before = team.predict_proba(crowd.X)
    with pytest.raises(ValueError, match=message):
        team.fit(X, crowd.y, crowd.annotations, groups=groups)
    assert_array_equal(team.predict_proba(crowd.X), before)


def test_a_promise_needs_groups_to_learn_from():
    crowd = make_crowd(200)
    panel = PanelDeferral(LogisticRegression(), target_accuracy=0.6, confidence_level=0.6, random_state=0)
    with pytest.raises(ValueError, match="beside those that are held out for target_accuracy"):
        panel.fit(crowd.X, crowd.y, annotations=crowd.annotations, groups=np.arange(200) // 100)


def test_a_frozen_classifier_is_judged_as_it_is(crowd):
    frozen = FrozenEstimator(LogisticRegression().fit(crowd.X[:30], crowd.y[:30]))
    plain, grouped = (
        ConfidenceDeferral(frozen, random_state=0).fit(crowd.X, crowd.y, crowd.annotations, **given)
        for given in ({}, {"groups": GROUPS})
    )
    assert plain.temperature_ == grouped.temperature_


def test_one_routing_serves_the_folds_outside_and_inside(crowd, told):
    with config_context(enable_metadata_routing=True):
        team = ConfidenceDeferral(Witness().set_fit_request(sample_weight=False), cv=3, random_state=0)
        cross_validate(
            team,
            crowd.X,
            AnnotatedTarget(crowd.y, crowd.annotations),
            cv=GroupKFold(3),
            params={"groups": GROUPS},
        )
    assert judged_by_strangers(told, crowd, GROUPS)
