"""ExpertAgnosticDeferral: competence decides, identities do not, newcomers join by counts."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier

from sklearn_l2d.deferral import ConfidenceDeferral, ExpertAgnosticDeferral

CLASS_PROBA = np.array([[0.9, 0.05, 0.05], [0.5, 0.45, 0.05], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1], [0.4, 0.2, 0.4]])


class Posterior(ClassifierMixin, BaseEstimator):
    """Knows the probabilities of the classes in every region of a world."""

    def fit(self, X, y):
        self.classes_ = np.arange(3)
        return self

    def predict_proba(self, X):
        return CLASS_PROBA[np.asarray(X)[:, 0].astype(int)]

    def predict(self, X):
        return self.predict_proba(X).argmax(1)


KNOWING = FrozenEstimator(Posterior().fit(None, None))


def make_items(n, seed):
    """Regions, the only feature, and true classes."""
    rng = np.random.default_rng(seed)
    region = rng.integers(5, size=n)
    y = (rng.random((n, 1)) > CLASS_PROBA[region].cumsum(1)).sum(1)
    return region[:, None].astype(float), y


def make_answers(y, right, names, seed, missing=0.4):
    """Answers that are right with probability `right`, (n, M) or (M, C) by class, and missing at random."""
    rng = np.random.default_rng(seed)
    right = right[:, y].T if len(right) != len(y) else right
    answers = np.where(rng.random(right.shape) < right, y[:, None], (y[:, None] + 1) % 3)
    return pd.DataFrame(np.where(rng.random(right.shape) < missing, -1, answers), columns=names)


COMPETENCE = np.array([[0.95, 0.3, 0.3], [0.3, 0.9, 0.4], [0.4, 0.3, 0.95], [0.6, 0.6, 0.6], [0.2, 0.5, 0.4]])
X, Y = make_items(3000, 0)
ANSWERS = make_answers(Y, COMPETENCE, list("abcde"), 1)
REGIONS = np.arange(5.0)[:, None]


@pytest.fixture(scope="module", params=["class", "role"])
def fitted(request):
    model = ExpertAgnosticDeferral(KNOWING, state=request.param, batch_size=256, max_epochs=15, random_state=0)
    return model.fit(X, Y, annotations=ANSWERS)


def copy_of(model):
    return model._copy_with()


def scores(model, names):
    """What is preferred of each expert over the classifier, as log odds."""
    proba = model.predict_deferral_proba(REGIONS)
    place = {name: k for k, name in enumerate(model.targets_)}
    return np.log(proba[:, [place[name] for name in names]]) - np.log(proba[:, [-1]])


def test_the_best_rule_where_errors_depend_on_the_class(fitted):
    expected = CLASS_PROBA @ COMPETENCE.T
    best = np.column_stack([expected, CLASS_PROBA.max(1)])
    got = np.column_stack([np.exp(scores(fitted, "abcde")) * CLASS_PROBA.max(1, keepdims=True), CLASS_PROBA.max(1)])
    assert_allclose(got, best, atol=0.08)
    # and where it is not nearly a tie, the same decisions
    clear = np.diff(np.sort(best, 1)[:, -2:])[:, 0] > 0.1
    chosen = best.argmax(1)
    assert_array_equal(fitted.predict_deferral(REGIONS)[clear], np.where(chosen == 5, -1, chosen)[clear])
    assert_allclose(fitted.competence_, COMPETENCE, atol=0.1)


def test_it_learns_more_than_expected_correctness():
    # everybody is right where the classifier is sure, and not where it is not: no matter which class
    sure = CLASS_PROBA.max(1) > 0.7
    right = np.where(sure, 0.99, 0.15)
    answers = make_answers(Y, np.tile(right[X[:, 0].astype(int), None], 8), list("abcdefgh"), 2)
    model = ExpertAgnosticDeferral(KNOWING, lr=0.02, batch_size=256, max_epochs=20, random_state=0)
    model.fit(X, Y, annotations=answers)
    estimate = np.exp(scores(model, "abcdefgh")) * CLASS_PROBA.max(1, keepdims=True)
    assert_allclose(estimate, np.tile(right[:, None], 8), atol=0.2)
    assert_array_equal(model.predict_deferral(REGIONS) >= 0, sure)
    naive = ConfidenceDeferral(KNOWING, random_state=0).fit(X, Y, annotations=answers)
    assert (naive.predict_deferral(REGIONS[~sure]) >= 0).any()


def test_competences_alone_teach_nothing_about_items():
    # as above, but the net sees roles and learns from competences by class, which do not show where people are right
    right = np.where(CLASS_PROBA.max(1) > 0.7, 0.99, 0.15)
    answers = make_answers(Y, np.tile(right[X[:, 0].astype(int), None], 8), list("abcdefgh"), 2)
    model = ExpertAgnosticDeferral(KNOWING, state="role", lr=0.02, batch_size=256, max_epochs=20, random_state=0)
    model.fit(X, Y, annotations=answers)
    estimate = np.exp(scores(model, "abcdefgh")) * CLASS_PROBA.max(1, keepdims=True)
    assert_allclose(estimate, CLASS_PROBA @ model.competence_.T, atol=0.06)


class Relabelled(Posterior):
    """The same with other numbers of the classes."""

    rank = np.array([2, 0, 1])

    def predict_proba(self, X):
        return super().predict_proba(X)[:, np.argsort(self.rank)]


@pytest.mark.parametrize("state", ["class", "role"])
def test_other_numbers_of_the_classes_change_nothing_else(state):
    some = slice(0, 300)
    settings = {"state": state, "lr": 0.02, "max_epochs": 5, "random_state": 0}
    plain = ExpertAgnosticDeferral(KNOWING, **settings).fit(X[some], Y[some], annotations=ANSWERS[some])
    rank = np.append(Relabelled.rank, -1)
    other = ExpertAgnosticDeferral(FrozenEstimator(Relabelled().fit(None, None)), **settings)
    other.fit(X[some], rank[Y[some]], annotations=pd.DataFrame(rank[ANSWERS[some]], columns=ANSWERS.columns))
    naive = ConfidenceDeferral(KNOWING, random_state=0).fit(X[some], Y[some], annotations=ANSWERS[some])
    assert not np.allclose(scores(plain, "abcde"), scores(naive, "abcde"), atol=1e-3)  # something was learnt
    assert_allclose(scores(other, "abcde"), scores(plain, "abcde"), atol=1e-6)
    assert_array_equal(other.predict(REGIONS[:4]), rank[plain.predict(REGIONS[:4])])  # two classes tie in the last


def test_newcomers_who_are_right_are_asked_and_those_who_are_wrong_are_not(fitted):
    new_X, new_y = make_items(80, 3)
    answers = make_answers(new_y, np.array([[1.0] * 3, [0.0] * 3]), ["right", "wrong"], 4)
    model = copy_of(fitted).onboard(["right", "wrong"], new_X, answers, new_y)
    assert (model.predict_deferral(REGIONS) == 5).all()
    assert (model.assign_experts(REGIONS) == 5).all()
    model.offboard("right")
    assert not np.isin(model.predict_deferral(REGIONS), [5, 6]).any()
    only = copy_of(model).offboard(list("abcde"))
    assert (only.predict_deferral(REGIONS) == -1).all()  # coverage 1, where nobody is any good
    assert scores(only, ["wrong"]).max() < -1


def test_the_same_answers_make_the_same_expert(fitted):
    model = copy_of(fitted).onboard("twin of c", X, ANSWERS["c"].to_numpy()[:, None], Y)
    assert_allclose(scores(model, ["twin of c"]), scores(model, ["c"]), rtol=1e-9)
    assert_allclose(scores(model, "abcde"), scores(fitted, "abcde"), rtol=1e-9)
    assert_array_equal(model.competence_[5], model.competence_[2])
    back = copy_of(fitted).offboard(["a", "c"]).onboard(["c", "a"], X, ANSWERS[["a", "c"]], Y)
    assert_allclose(scores(back, "abcde"), scores(fitted, "abcde"), rtol=1e-9)


def test_order_and_names_of_experts_do_not_matter(fitted):
    new_X, new_y = make_items(60, 5)
    answers = make_answers(new_y, COMPETENCE[:3], ["p", "q", "r"], 6)
    one = copy_of(fitted).onboard(["p", "q", "r"], new_X, answers, new_y)
    other = copy_of(fitted).onboard(["r", "p", "q"], new_X, answers, new_y)
    assert_allclose(scores(other, "pqr"), scores(one, "pqr"), rtol=1e-9)
    renamed = copy_of(fitted).onboard(["u", "v", "w"], new_X, answers.to_numpy(), new_y)
    assert_allclose(scores(renamed, "uvw"), scores(one, "pqr"), rtol=1e-9)


def test_a_missing_answer_is_no_answer(fitted):
    new_X, new_y = make_items(60, 7)
    answers = make_answers(new_y, COMPETENCE[:1], ["p"], 8).to_numpy()
    here = answers[:, 0] >= 0
    one = copy_of(fitted).onboard("p", new_X, answers, new_y)
    other = copy_of(fitted).onboard("p", new_X[here], answers[here], new_y[here])
    assert_allclose(scores(one, "p"), scores(other, "p"), rtol=1e-9)


def test_shares_are_those_of_rows_that_the_classifier_has_not_seen():
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=(300, 3)), rng.integers(2, size=300)
    annotations = np.where(rng.random((300, 3)) < 0.85, y[:, None], 1 - y[:, None])
    # the nearest neighbour is always right on its own rows and right half the time on new ones
    model = ExpertAgnosticDeferral(KNeighborsClassifier(1), max_epochs=5, random_state=0)
    model.fit(noise, y, annotations=annotations)
    assert model.coverage_ < 0.1
    assert (model.predict_deferral(rng.normal(size=(300, 3))) == -1).mean() < 0.1


def test_without_experts_the_classifier_is_all_there_is():
    model = ExpertAgnosticDeferral(KNOWING, random_state=0).fit(X, Y)
    assert model.net_ is None
    assert model.history_ == []
    assert model.competence_.shape == (0, 3)
    with pytest.raises(ValueError, match="fitted without experts"):
        model.onboard("a", X, ANSWERS[["a"]], Y)


def test_what_is_wrong_is_said(fitted):
    with pytest.raises(ValueError, match="y is None, but newcomers are judged by what they got right"):
        fitted.onboard(["k"], X, ANSWERS[["a"]].to_numpy())
    for sizes, message in (((), "hidden_layer_sizes is empty"), ((2.5,), "must be whole numbers of units")):
        with pytest.raises(ValueError, match=message):
            ExpertAgnosticDeferral(hidden_layer_sizes=sizes, max_epochs=10**9).fit(X, Y, annotations=ANSWERS)
