"""Top-k learning to defer against brute force on small discrete problems, and against the two-stage deferrer."""

import copy
from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.deferral import TopKDeferral, TwoStageDeferral
from sklearn_l2d.deferral._top_k_deferral import some_sizes

LINEAR = {"hidden_layer_sizes": (), "lr": 0.2, "weight_decay": 0.0, "batch_size": 250, "random_state": 0}
CURVED = LINEAR | {"hidden_layer_sizes": (32,), "lr": 0.5, "batch_size": 1000, "max_epochs": 30}
RIGHT = np.array([[0.7, 0.5, 0.6], [0.8, 0.9, 0.7], [0.45, 0.6, 0.95], [0.55, 0.7, 0.85]])  # of experts, by region
SURE = np.array([0.95, 0.6, 0.5, 0.75])  # of the classifier


def make_regions(n=3000, seed=0):
    """Four regions, one-hot, whose likelier class is the parity of their number, and three experts."""
    rng = np.random.default_rng(seed)
    region = rng.integers(4, size=n)
    y = np.where(rng.random(n) < SURE[region], region % 2, 1 - region % 2)
    right = rng.random((n, 3)) < RIGHT[region]
    return np.eye(4)[region], y, np.where(right, y[:, None], 1 - y[:, None])


class Parity(ClassifierMixin, BaseEstimator):
    """Says the parity of the region, as surely as it is right; never trained."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        region = np.asarray(X).argmax(1)
        sure = SURE[region] + 1e-3  # never as likely as not
        return np.where(np.arange(2) == region[:, None] % 2, sure[:, None], 1 - sure[:, None])

    def predict(self, X):
        return self.predict_proba(X).argmax(1)


def known_classifier(X, y):
    return FrozenEstimator(Parity().fit(X, y))


@pytest.mark.parametrize("price", [0.0, (0.0, 0.05, 0.25)], ids=str)
def test_sets_of_k_are_those_of_the_least_expected_cost(price):
    # brute force over all sets of k agents; the loss is minimised once, for all k
    X, y, annotations = make_regions(6000)
    annotations = np.where(np.random.default_rng(1).random(annotations.shape) < 0.3, -1, annotations)
    model = TopKDeferral(known_classifier(X, y), n_agents=1, consultation_cost=price, max_epochs=15, **LINEAR)
    model.fit(X, y, annotations=annotations)
    cost = np.column_stack([1 - RIGHT + price, 1 - SURE])
    for k in range(1, 5):
        best = [min(combinations(range(4), k), key=lambda chosen, c=c: c[list(chosen)].sum()) for c in cost]
        expected = [[j in chosen for j in range(3)] for chosen in best]
        assert_array_equal(model.set_params(n_agents=k).consult(np.eye(4)), expected)


def test_one_agent_is_the_two_stage_deferrer():
    X, y, annotations = make_regions(600)
    X = X + np.random.default_rng(2).normal(size=X.shape)
    settings = {
        "cv": 3,
        "consultation_cost": (0.1, 0.0, 0.05),
        "weight_decay": 0.03,
        "max_epochs": 10,
        "random_state": 0,
    }
    two = TwoStageDeferral(LogisticRegression(), **settings).fit(X, y, annotations=annotations)
    one = TopKDeferral(LogisticRegression(), n_agents=1, label="vote", **settings).fit(X, y, annotations=annotations)
    assert 0.05 < two.coverage_ < 0.95
    assert_array_equal(one.predict_deferral(X), two.predict_deferral(X))
    assert_array_equal(one.assign_experts(X), two.assign_experts(X))
    assert_array_equal(one.replay(X, annotations).labels, two.predict_team(X, annotations))
    assert one.coverage_ == two.coverage_
    assert one.answers_ == pytest.approx(1 - two.coverage_)


def test_one_fit_serves_every_k():
    X, y, annotations = make_regions(600)
    one, two, four = (
        TopKDeferral(LogisticRegression(), n_agents=k, max_epochs=3, random_state=0).fit(X, y, annotations=annotations)
        for k in (1, 2, 4)
    )
    asked = [model.consult(X) for model in (one, two, four)]
    assert (asked[0] <= asked[1]).all()
    assert (asked[1] <= asked[2]).all()
    assert asked[2].all()
    assert_array_equal(one.set_params(n_agents=2).consult(X), asked[1])
    assert one.recalibrate(X).answers_ == two.answers_


def chance_to_be_right(model, region, people):
    """Probability of a right label in a region after the answers of some people, over all that they may answer."""
    total = 0.0
    for y, *answers in product([0, 1], repeat=1 + len(people)):
        row = np.full((1, 3), -1)
        row[0, people] = answers
        if model.predict_team(np.eye(4)[[region]], row)[0] == y:
            right = RIGHT[region, people]
            prior = SURE[region] if y == region % 2 else 1 - SURE[region]
            total += prior * np.prod(np.where(np.array(answers) == y, right, 1 - right))
    return total


def test_k_of_x_is_the_best_of_all_sizes():
    # brute force over all k and all answers of the first k people, whose order the first test checks
    X, y, annotations = make_regions(12_000)
    model = TopKDeferral(known_classifier(X, y), **CURVED).fit(X, y, annotations=annotations)
    order = np.argsort(-RIGHT, axis=1)
    accuracy = np.array([[chance_to_be_right(model, r, order[r, :k]) for k in range(4)] for r in range(4)])
    for cost in (0.004, 0.02, 0.07, 0.15, 0.3, 0.5):
        net = accuracy - cost * np.arange(4)
        chosen = model.set_params(consultation_cost=cost).consult(np.eye(4)).sum(1)
        assert_allclose(net[np.arange(4), chosen], net.max(1), atol=0.02, err_msg=f"cost {cost}")
    sizes = [tuple(model.set_params(consultation_cost=c).consult(np.eye(4)).sum(1)) for c in (0.5, 0.15, 0.02)]
    assert len(set(sizes)) == 3


def test_one_expert_is_a_cascade():
    # whoever is right with probability .8 has the last word wherever the classifier is less sure
    X, y, _ = make_regions(12_000)
    answer = np.where(np.random.default_rng(3).random(len(y)) < 0.8, y, 1 - y)[:, None]
    model = TopKDeferral(known_classifier(X, y), **CURVED).fit(X, y, annotations=answer)
    for cost in (0.02, 0.1, 0.25, 0.5):
        asked = model.set_params(consultation_cost=cost).consult(np.eye(4))[:, 0]
        assert_array_equal(asked, SURE + cost < 0.8, err_msg=f"cost {cost}")


@pytest.fixture(scope="module")
def team():
    X, y, annotations = make_regions(4000)
    model = TopKDeferral(known_classifier(X, y), n_agents=2, label="vote", max_epochs=12, **LINEAR)
    return model.fit(X, y, annotations=annotations)


def test_votes_weigh_by_scores(team):
    # at the minimum of the loss, the softmax of the scores is in proportion to how often each agent is right
    answers = np.array([[1, 0, -1], [0, -1, 1], [-1, -1, -1], [1, 1, 0]])
    own = Parity().predict_proba(np.eye(4))
    ballots = SURE[:, None] * own
    for region, expert in np.argwhere(answers >= 0):
        ballots[region, answers[region, expert]] += RIGHT[region, expert]
    expected = ballots / ballots.sum(1, keepdims=True)
    assert_allclose(team.predict_team_proba(np.eye(4), answers)[[0, 1, 3]], expected[[0, 1, 3]], atol=0.02)
    assert_allclose(team.predict_team_proba(np.eye(4), answers)[2], own[2], atol=0.01)  # calibrated


def test_a_newcomer_is_ranked_by_accuracy_and_whoever_leaves_is_not_asked(team):
    rng, (X, y, _) = np.random.default_rng(4), make_regions(4000, seed=4)
    answers = np.where(rng.random(len(y)) < 0.84, y, 1 - y)[:, None]
    more = copy.deepcopy(team).onboard("new", X, answers, y)
    # .84 is second to the classifier in the first region and to the best expert in the others
    expected = [[False, False, False, True], [False, True, False, True], *[[False, False, True, True]] * 2]
    assert_array_equal(more.consult(np.eye(4)), expected)
    assert more.workload_[-1] == 0
    assert more.recalibrate(X).workload_[-1] == 1
    fewer = copy.deepcopy(team).offboard(1)
    assert_array_equal(fewer.consult(np.eye(4)), [[True, False], [True, True], [False, True], [False, True]])
    assert team.consult(np.eye(4)).shape == (4, 3)


def test_all_answers_are_work(team):
    X = make_regions(500)[0]
    model = copy.deepcopy(team).set_params(n_agents=3).recalibrate(X)
    assert_allclose(model.workload_, model.consult(X).mean(0))
    assert model.answers_ == pytest.approx(model.consult(X).sum(1).mean())
    assert model.answers_ > 2


def test_a_mean_number_of_answers_is_met_by_any_fit(team):
    X = make_regions(500)[0] + np.random.default_rng(0).normal(scale=0.3, size=(500, 4))
    path = copy.deepcopy(team).set_params(n_agents=None).answers_path([0, 0.5, 1, 2, 3], X)
    asked = [model.consult(X).sum(1).mean() for model in path]
    assert_allclose(asked, [0, 0.5, 1, 2, 3], atol=0.01)


def test_sizes_of_panels():
    assert some_sizes(0).tolist() == [0]
    assert some_sizes(3).tolist() == [0, 1, 2, 3]
    many = some_sizes(1000)
    assert many[-1] == 1000
    assert len(many) < 30
    assert set(range(9)) < set(many.tolist())


def test_who_has_not_answered_is_expected_to_be_like_the_others():
    X, y, annotations = make_regions(300)
    annotations[:, 2] = -1
    model = TopKDeferral(known_classifier(X, y), n_agents=4, max_epochs=3, random_state=0)
    with pytest.warns(UserWarning, match="their correctness is taken to be that of all experts"):
        model.fit(X, y, annotations=annotations)
    assert model.consult(X).all()
    # right about two items in three, as the others are: ahead of the classifier where that is less sure
    ahead = model.set_params(n_agents=1).consult(np.eye(4), available=[False, False, True])[:, 2]
    assert_array_equal(ahead, RIGHT[:, :2].mean() > SURE)


def test_without_experts_the_classifier_is_all_there_is():
    X, y, _ = make_regions(200)
    model = TopKDeferral(LogisticRegression(), random_state=0).fit(X, y)
    assert model.net_ is model.size_net_ is None
    assert model.answers_ == model.toll_ == 0
    assert_array_equal(model.predict_proba(X), LogisticRegression().fit(X, y).predict_proba(X))


def test_what_is_wrong_is_said_before_any_work(team):
    X, y, annotations = make_regions(50)
    endless = {"max_epochs": 10**9}
    for k, most, words in (
        (annotations.shape[1] + 2, None, "with the classifier there are"),
        (3, 1, "n_agents=3 asks 2 or 3 people about every item, but max_answers=1"),
    ):
        with pytest.raises(ValueError, match=words):
            TopKDeferral(n_agents=k, max_answers=most, **endless).fit(X, y, annotations=annotations)
    with pytest.raises(ValueError, match="n_agents=2 fixes the number of agents"):
        TopKDeferral(n_agents=2, answers=1.0, **endless).fit(X, y, annotations=annotations)
    with pytest.raises(ValueError, match="n_agents=2 fixes the number of agents"):
        team.answers_path([1.0], X)
    with pytest.raises(ValueError, match=r"consultation_cost=\{0: -1\} is negative"):
        TopKDeferral(consultation_cost={0: -1}, **endless).fit(X, y, annotations=annotations)
    with pytest.raises(ValueError, match="answers=4 per item, but 3 experts"):
        TopKDeferral(answers=4.0, **endless).fit(X, y, annotations=annotations)
