"""Groups of like-minded people, and newcomers who are matched to them."""

import copy
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score

from sklearn_l2d._numerics._answer_model import answer_log_likelihood, fit_answer_model
from sklearn_l2d._numerics._fusion import Exponents
from sklearn_l2d.deferral import ConfidenceDeferral, ProfileDeferral
from sklearn_l2d.deferral import _profile_deferral as module
from sklearn_l2d.deferral._profile_deferral import worth_of_panels

N_CLASSES, N_EXPERTS = 4, 24
PLANTED = np.stack(
    [
        0.9 * np.eye(N_CLASSES) + 0.025,  # able
        0.25 * np.eye(N_CLASSES) + 0.6 * np.roll(np.eye(N_CLASSES), 1, axis=1) + 0.0375,  # mostly the next class
        np.full((N_CLASSES, N_CLASSES), 0.25),  # who guess
    ]
)
GROUP = np.arange(N_EXPERTS) % 3


def make_items(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_CLASSES))
    return X, (X + 0.7 * rng.gumbel(size=X.shape)).argmax(1)


def answers_to(y, group, seed, share=1.0):
    rng = np.random.default_rng(seed)
    draws = rng.random((len(y), len(group), 1))
    answers = (draws > PLANTED[group][:, y].transpose(1, 0, 2).cumsum(2)[:, :, :-1]).sum(2)
    answers[rng.random(answers.shape) > share] = -1
    return answers


CLASSIFIER = FrozenEstimator(LogisticRegression().fit(*make_items(400, 99)))
X, Y = make_items(300, 0)
ANSWERS = answers_to(Y, GROUP, 1, share=0.1)  # 30 of each
X_NEW, Y_NEW = make_items(400, 2)
ANSWERS_NEW = answers_to(Y_NEW, GROUP, 3)


def fit(annotations=ANSWERS, n_groups=3, **params):
    team = ProfileDeferral(CLASSIFIER, n_groups=n_groups, random_state=0, **params)
    return team.fit(X, Y, annotations=annotations, X_unlabeled=X_NEW)


@pytest.fixture(scope="module")
def fitted():
    return fit()


@pytest.fixture
def team(fitted):
    return copy.deepcopy(fitted)


def test_one_group_joins_answers_by_what_all_answered_together():
    team = fit(n_groups=1)
    item, person = np.nonzero(ANSWERS >= 0)
    together = fit_answer_model(item, np.zeros_like(item), ANSWERS[item, person], 1, np.eye(N_CLASSES)[Y])
    rows = np.array([[np.exp(answer_log_likelihood(together, np.array([0]), np.array([a]))[0, y]) for a in range(4)]
                     for y in range(4)])  # fmt: skip
    assert_allclose(team.confusion_, rows[None], rtol=1e-6)
    seen = np.array([np.bincount(ANSWERS[y == Y][ANSWERS[y == Y] >= 0], minlength=4) for y in range(4)])
    assert_allclose(rows, seen / seen.sum(1, keepdims=True), atol=0.02)  # of many answers, the rates are what counts
    some = np.where(np.arange(N_EXPERTS) < 2, ANSWERS_NEW, -1)
    team._exponents = team._exponents._replace(difficulty=0.0)
    a, b, r, _ = team._exponents
    expected = team.predict_team_proba(X_NEW) ** (a / (1 + r)) * np.prod(rows[:, some[:, :2]], axis=2).T ** (
        b / (1 + r)
    )
    assert_allclose(team.predict_team_proba(X_NEW, some), expected / expected.sum(1, keepdims=True), rtol=1e-6)


def test_as_many_groups_as_experts_believe_each_as_a_rule_without_groups_does():
    team = fit(n_groups=N_EXPERTS)
    rule = ConfidenceDeferral(CLASSIFIER, random_state=0).fit(X, Y, annotations=ANSWERS)
    some = np.where(np.random.default_rng(0).random(ANSWERS_NEW.shape) < 0.1, ANSWERS_NEW, -1)
    some[:, 0] = np.where((some >= 0).any(1), some[:, 0], ANSWERS_NEW[:, 0])
    rule._exponents = team._exponents  # which hang on who is expected to be right
    told = [system.predict_team_proba(X_NEW, some, decision="combine") for system in (team, rule)]
    assert_allclose(*told, rtol=1e-4)


def test_planted_groups_are_recovered_and_their_number_chosen():
    team = fit(n_groups=None, max_groups=5)
    assert len(team.targets_) == 3
    assert np.diff(team.group_likelihood_)[:2].min() > 5 * np.abs(np.diff(team.group_likelihood_)[2:]).max()
    assert adjusted_rand_score(GROUP, team.omega_.argmax(1)) == 1
    assert_allclose(team.confusion_[0], PLANTED[0], atol=0.1)
    assert_allclose(team.confusion_.sum(2), 1)


@pytest.mark.parametrize("knows_truth", [True, False])
def test_newcomers_are_matched_by_ten_labels_and_believed_as_their_group(team, knows_truth):
    group = np.arange(60) % 3
    rows = slice(0, 10)
    labels = answers_to(Y_NEW[rows], group, 5)
    names = [f"new{m}" for m in range(60)]
    team.onboard(names, X_NEW[rows], labels, Y_NEW[rows] if knows_truth else None)
    joined = team.omega_[-60:].argmax(1)
    of_planted = team.omega_[:3].argmax(1)
    assert (joined == of_planted[group]).mean() > (0.9 if knows_truth else 0.75)
    able = np.flatnonzero(joined == of_planted[0])[0]
    one = np.full((len(X_NEW), team.n_experts_), -1)
    other = one.copy()
    one[:, 0] = other[:, N_EXPERTS + able] = ANSWERS_NEW[:, 0]
    assert_array_equal(team.predict_team_proba(X_NEW, one), team.predict_team_proba(X_NEW, other))


def test_known_truth_of_some_items_is_used(team):
    labels = answers_to(Y_NEW[:6], np.zeros(1, dtype=int), 8)
    some = np.where(np.arange(6) < 3, Y_NEW[:6], np.nan)
    team.onboard("new", X_NEW[:6], labels, some)
    proba = team.predict_team_proba(X_NEW[:6])
    truth = np.where(np.arange(6)[:, None] < 3, np.eye(4)[Y_NEW[:6]], proba)
    told = [np.log([(truth[i] * team.confusion_[k][:, labels[i, 0]]).sum() for i in range(6)]).sum() for k in range(3)]
    assert team.omega_[-1].argmax() == np.argmax(told + np.log(team._group_weight))


def test_who_is_asked_is_of_the_group_whose_answer_improves_the_label_most(team):
    order = team._order(team._check_items(X_NEW), np.ones((400, N_EXPERTS), dtype=bool), N_EXPERTS)
    proba, power = team.predict_team_proba(X_NEW), team._exponents.answers
    likelihood = team.confusion_**power
    likelihood /= likelihood.sum(2, keepdims=True)
    gain = (proba[:, None, :, None] * likelihood).max(2).sum(2) - proba.max(1)[:, None]
    first = team.omega_.argmax(1)[order[:, 0]]
    assert_allclose(gain[np.arange(400), first], gain.max(1), atol=2e-3)  # a hair of information counts, too
    own = team.predict_expert_correctness(X_NEW)
    mates = team.omega_.argmax(1) == first[:, None]
    assert_array_equal(order[:, 0], np.where(mates, own, -1).argmax(1))


def test_worth_of_a_panel_is_the_expected_rise_in_accuracy():
    rng = np.random.default_rng(0)
    truth = np.eye(3)[rng.integers(3, size=40)]
    model = fit_answer_model(*(rng.integers(k, size=90) for k in (40, 2, 3)), 2, truth)
    proba, group = rng.dirichlet(np.ones(3), 5), np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 1, 0]])
    worth = worth_of_panels(proba, group, model, Exponents())
    given = np.exp(answer_log_likelihood(model, np.repeat([0, 1], 3), np.tile(range(3), 2))).reshape(2, 3, 3)
    for i, size in product(range(5), range(4)):
        right = sum(
            (proba[i] * np.prod([given[group[i, t], answers[t]] for t in range(size)], axis=0)).max()
            for answers in product(range(3), repeat=size)
        )
        assert worth[i, size] == pytest.approx(right - proba[i].max(), abs=size * 1.2e-3)


def test_few_outcomes_stand_for_all(monkeypatch):
    rng = np.random.default_rng(0)
    truth = np.eye(3)[rng.integers(3, size=60)]
    answers = np.where(rng.random(120) < 0.7, truth.argmax(1)[np.arange(120) % 60], rng.integers(3, size=120))
    model = fit_answer_model(np.arange(120) % 60, np.repeat([0, 1], 60), answers, 2, truth)
    proba, group = rng.dirichlet(np.ones(3), 50), rng.integers(2, size=(50, 4))
    exact = worth_of_panels(proba, group, model, Exponents())
    monkeypatch.setattr(module, "_MOST_OUTCOMES", 20)
    assert_allclose(worth_of_panels(proba, group, model, Exponents()), exact, atol=0.03)


def test_order_of_people_changes_nothing():
    order = np.random.default_rng(0).permutation(N_EXPERTS)
    plain, moved = fit(n_groups=None, max_groups=4), fit(ANSWERS[:, order], n_groups=None, max_groups=4)
    assert_allclose(moved.group_likelihood_, plain.group_likelihood_)
    assert_array_equal(moved.omega_, plain.omega_[order])
    assert_allclose(moved.confusion_, plain.confusion_)
    one, other = plain.replay(X_NEW, ANSWERS_NEW), moved.replay(X_NEW, ANSWERS_NEW[:, order])
    assert_array_equal(other.labels, one.labels)
    assert_array_equal(np.where(other.asked >= 0, order[other.asked], -1), one.asked)


def test_a_group_without_members_is_not_asked(team):
    best = team.omega_.argmax(1) == 0
    team.offboard(team.experts_[best])
    assert not (team.predict_deferral(X_NEW) == 0).any()
    assert_array_equal(team.selection_[0], 0)
    team.onboard("back", X, np.where(Y >= 0, Y, -1)[:, None], Y)
    assert team.omega_[-1, 0] == 1


def test_without_a_number_of_answers_nobody_is_asked_in_vain():
    team = fit(np.where(GROUP == 2, ANSWERS, -1)[:, GROUP == 2], n_groups=1)  # who guess
    assert team.answers_ < 0.2
    assert fit().answers_ > 0.5


def test_mistakes_are_told(team):
    with pytest.raises(ValueError, match=r"answers=1\.5 per item, but 24 experts are asked for 0 to 1"):
        ProfileDeferral(CLASSIFIER, answers=1.5).fit(X, Y, annotations=ANSWERS)
    with pytest.raises(ValueError, match="'n_groups' parameter of ProfileDeferral"):
        fit(n_groups=0)
    with pytest.raises(ValueError, match="one column for each of the 2 experts"):
        team.onboard(["one", "two"], X, ANSWERS[:, :1], Y)
    alone = ProfileDeferral(CLASSIFIER).fit(X, Y)
    with pytest.raises(ValueError, match="fitted without experts"):
        alone.onboard("one", X, ANSWERS[:, :1], Y)
    assert len(alone.confusion_) == 0
