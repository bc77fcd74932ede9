"""Asking people one after the other."""

import copy

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from sklearn_l2d import AnnotatorLDA
from sklearn_l2d._numerics._difficulty import difficulty_given
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import ConfidenceDeferral, PanelDeferral, _asking

N_EXPERTS = 6


def make_team(n, seed, n_classes=3, share=1.0):
    """Items, truths and answers of people who err independently, as the answer model has it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, :n_classes] + rng.gumbel(size=(n, n_classes))).argmax(1)
    right = rng.random((n, N_EXPERTS)) < np.linspace(0.55, 0.9, N_EXPERTS)
    answers = np.where(right, y[:, None], (y[:, None] + rng.integers(1, n_classes, size=(n, N_EXPERTS))) % n_classes)
    answers[rng.random(answers.shape) > share] = -1
    return X, y, answers


def fit(seed=0, n=400, share=0.5, unlabeled=4000, **params):
    team = PanelDeferral(LogisticRegression(), random_state=0, **params)
    X, y, answers = make_team(n, seed, share=share)
    return team.fit(X, y, annotations=answers, X_unlabeled=make_team(unlabeled, seed + 100)[0])


@pytest.fixture(scope="module")
def fitted():
    return fit()


@pytest.fixture
def team(fitted):
    return copy.deepcopy(fitted)


@pytest.fixture(scope="module")
def future():
    return make_team(8000, 7)


@pytest.mark.parametrize("answers", [0.25, 1.0, 2.5])
def test_new_items_get_the_requested_mean_number_of_answers(answers):
    X, y, given = make_team(30_000, 7)  # so many that chance is within .02
    team = fit(answers=answers, n=2000, unlabeled=10_000)
    assert team.answers_ == pytest.approx(answers, abs=0.001)
    replay = team.replay(X, given)
    # beyond one answer most labels are sure, and small errors of what is known of people count
    assert replay.n_answers.mean() == pytest.approx(answers, abs=0.03 if answers <= 1 else 0.08)
    assert team.score(X, y, annotations=given) == (replay.labels == y).mean()
    assert replay.proba.max(1).mean() == pytest.approx((replay.labels == y).mean(), abs=0.03)


def test_replay_is_the_loop_of_a_serving_system(team, future):
    X, _, given = (part[:60] for part in future)
    replay, order = team.replay(X, given), []
    for row in range(60):
        so_far = np.full((1, N_EXPERTS), -1)
        asked = []
        while (who := team.next_expert(X[[row]], so_far)[0]) >= 0:
            so_far[0, who] = given[row, who]
            asked.append(who)
        order.append(asked)
        assert_allclose(replay.proba[[row]], team.predict_team_proba(X[[row]], so_far))
        assert replay.labels[row] == team.predict_team(X[[row]], so_far)[0]
    assert [list(asked[asked >= 0]) for asked in replay.asked] == order
    assert_array_equal(replay.n_answers, [len(asked) for asked in order])
    assert max(replay.n_answers) > 1


def test_a_batch_with_answers_gives_what_rows_give(team, future):
    X, _, given = (part[:200] for part in future)
    some = np.where(np.random.default_rng(0).random(given.shape) < 0.3, given, -1)
    batch = team.next_expert(X, some)
    assert_array_equal(np.concatenate([team.next_expert(X[[i]], some[[i]]) for i in range(200)]), batch)
    assert (some[batch >= 0, batch[batch >= 0]] == -1).all()  # nobody is asked twice


def test_more_answers_label_more_items_correctly(future):
    X, y, given = future
    path = fit().answers_path([0, 0.5, 1, 2, 4], make_team(4000, 100)[0])
    assert_allclose([team.answers_ for team in path], [0, 0.5, 1, 2, 4], atol=0.001)
    scores = [team.score(X, y, annotations=given) for team in path]
    assert (np.diff(scores) > 0).all()
    assert scores[0] == (path[0].predict(X) == y).mean()


def test_a_path_is_fits_that_share_what_is_learnt(team):
    X_unlabeled = make_team(4000, 100)[0]
    for other, answers in zip(team.answers_path([0.5, 2.0], X_unlabeled), [0.5, 2.0], strict=True):
        by_itself = fit(answers=answers)
        assert (other.threshold_, other.panel_threshold_) == (by_itself.threshold_, by_itself.panel_threshold_)
        assert_allclose(other.workload_, by_itself.workload_)
        assert other.classifier_ is team.classifier_
    again = copy.deepcopy(team).recalibrate(X_unlabeled)
    assert again.threshold_ == team.threshold_


def test_a_path_knows_who_can_be_asked(team, future):
    X, _, given = future
    given = np.where(np.random.default_rng(0).random(given.shape) < 0.3, given, -1)
    for available in (given >= 0, csr_array(given >= 0)):
        (other,) = team.answers_path([1.0], X, available=available)
        assert other.replay(X, given).n_answers.mean() == pytest.approx(1.0, abs=0.03)


def test_joined_answers_beat_the_best_single_decider():
    crowd = load_digits_crowd(random_state=0)
    data = (crowd.X_identified, crowd.y_identified, crowd.annotations, crowd.X_anonymous)
    test = (crowd.X_test, crowd.y_test, crowd.annotations_test)
    one = ConfidenceDeferral(LogisticRegression(C=0.01), random_state=0).fit(*data)
    panel = PanelDeferral(LogisticRegression(C=0.01), answers=1 - one.coverage_, random_state=0).fit(*data)
    assert 1 - panel.score(*test) < 0.6 * (1 - one.score(*test))
    # adaptive questions tell more than panels that are chosen before
    asked = np.where(panel.consult(crowd.X_test), crowd.annotations_test, -1)
    assert panel.score(*test) > (panel.predict_team(crowd.X_test, asked) == crowd.y_test).mean()


def test_workloads_are_kept_by_the_sum_of_all_answers(future):
    X, y, given = future
    team = fit(workload={5: (0, 0.25), 4: (0, 0.25), 0: (0.15, 1), 3: (0, 0)}, answers=1.0)
    assert team.constraint_violation_ <= 0.005
    assert_allclose(team.workload_.sum(), 1.0, atol=0.01)
    replay = team.replay(X, given)
    load = np.bincount(replay.asked[replay.asked >= 0], minlength=N_EXPERTS) / len(X)
    assert load[[4, 5]].max() < 0.25 + 0.03
    assert load[0] > 0.15 - 0.03
    assert load[3] == 0
    assert_allclose(load, team.workload_, atol=0.03)
    panels = team.consult(X).mean(0)
    assert panels[[4, 5]].max() < 0.25 + 0.05  # calibrated on fewer items
    assert panels[0] > 0.15 - 0.05
    assert panels[3] == 0
    assert team.score(X, y, annotations=given) > (team.predict(X) == y).mean()


def test_like_people_share_the_work():
    X, y, answers = make_team(400, 0)
    twins = np.repeat(answers[:, [5]], 4, axis=1)
    team = PanelDeferral(LogisticRegression(), max_answers=1, random_state=0).fit(X, y, annotations=twins)
    served = np.bincount(team.next_expert(make_team(2000, 3)[0]), minlength=4)
    assert served.min() > 400


def test_capacities_and_availability(team, future):
    X = future[0][:500]
    free = team.next_expert(X)
    capacity = {5: 20, 4: 0}
    held = team.next_expert(X, capacity=capacity)
    load = np.bincount(held[held >= 0], minlength=N_EXPERTS)
    assert load[5] == 20
    assert load[4] == 0
    others = [0, 1, 2, 3]
    assert np.isin(held, others).sum() > np.isin(free, others).sum() + 100  # who take the items instead
    assert (team.next_expert(X, capacity=0) == -1).all()
    available = np.random.default_rng(0).random((500, N_EXPERTS)) < 0.5
    who = team.next_expert(X, available=available)
    assert available[who >= 0, who[who >= 0]].all()
    assert_array_equal(team.next_expert(X, available=csr_array(available)), who)
    panel = team.consult(X, available=available, capacity=30)
    assert panel.sum(0).max() <= 30
    assert not (panel & ~available).any()


def test_panels_have_the_requested_mean_size(future):
    X, y, given = future
    team = fit(answers=1.5)
    panel = team.consult(X)
    assert panel.sum(1).mean() == pytest.approx(1.5, abs=0.1)  # calibrated on 250 items
    assert panel.sum(1).max() > 1
    accuracy = (team.predict_team(X, np.where(panel, given, -1)) == y).mean()
    assert (team.predict(X) == y).mean() < accuracy
    assert_array_equal(np.concatenate([team.consult(X[[i]]) for i in range(50)]), panel[:50])


def test_a_shift_counts_all_questions(team, future):
    X, _, given = future
    shift, heard = team.start_shift(capacity=30), np.full((100, team.n_experts_), -1)
    asked = []
    for _ in range(3):
        who = shift.next_expert(X[:100], heard)
        rows = np.flatnonzero(who >= 0)
        heard[rows, who[rows]] = given[rows, who[rows]]
        asked.append(who[rows])
    assert_array_equal(shift.served_, np.bincount(np.concatenate(asked), minlength=team.n_experts_))
    assert shift.served_.max() == 30


def test_no_more_than_the_largest_number_of_answers():
    X, _, given = make_team(30_000, 7)
    team = fit(answers=1.5, max_answers=2, unlabeled=10_000)
    replay = team.replay(X, given)
    assert replay.n_answers.max() == 2
    assert replay.n_answers.mean() == pytest.approx(1.5, abs=0.05)
    assert team.consult(X[:100]).sum(1).max() <= 2
    with pytest.raises(ValueError, match=r"answers=3 per item, but 6 experts and max_answers=2 make 0 to 2"):
        fit(answers=3, max_answers=2)


def test_a_price_buys_answers_that_are_worth_it(future):
    X, _, given = future
    teams = [fit(consultation_cost=cost) for cost in (0.01, 0.05, 0.2, 1.0)]
    answers = [team.replay(X, given).n_answers.mean() for team in teams]
    assert answers == sorted(answers, reverse=True)
    assert answers[0] > 1
    assert answers[-1] == 0
    dear = fit(consultation_cost={5: 0.5})
    assert dear.workload_[5] < 0.05
    assert_array_equal(dear.prices_, [0, 0, 0, 0, 0, 0.5])


def test_errors_that_cost_more_get_more_answers(future):
    X, y, given = future
    cost = 1 - np.eye(3)
    cost[0] *= 10  # to miss class 0
    team, plain = fit(error_cost=cost), fit()
    missed = [(p.replay(X, given).labels[y == 0] != 0).mean() for p in (team, plain)]
    assert missed[0] < 0.5 * missed[1]
    paid = [cost[y, p.replay(X, given).labels].mean() for p in (team, plain)]
    assert paid[0] < paid[1]


def test_the_promised_accuracy_is_kept_as_often_as_promised():
    X, y, given = make_team(12_000, 1)
    team = PanelDeferral(LogisticRegression(), target_accuracy=0.85, confidence_level=0.8, random_state=0)
    rng, missed, n_draws = np.random.default_rng(0), 0, 40
    for _ in range(n_draws):
        rows = rng.choice(len(X), 240, replace=False)
        team.fit(X[rows], y[rows], annotations=given[rows])
        future = np.setdiff1d(np.arange(len(X)), rows)[:4000]
        missed += team.score(X[future], y[future], annotations=given[future]) < 0.85
    assert missed / n_draws <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / n_draws)
    replay = team.replay(X[future], given[future])
    sure = replay.proba.max(1) >= team.confidence_threshold_
    assert (replay.n_answers[~sure] == N_EXPERTS).all()
    assert replay.n_answers.mean() < 0.7 * N_EXPERTS


def test_what_cannot_be_promised_is_refused():
    with pytest.raises(ValueError, match=r"takes 230 held-out items or more, but validation_fraction=0.5 of 400"):
        fit(target_accuracy=0.99)
    with pytest.raises(ValueError, match=r"cannot be promised .* of 200 held-out items are labelled wrongly"):
        fit(target_accuracy=0.985, confidence_level=0.5, share=0.2)


def test_the_explanation_tells_what_each_answer_changed(team, future):
    X, _, given = (part[:30] for part in future)
    some = np.where(np.random.default_rng(1).random(given.shape) < 0.4, given, -1)
    table = team.explain_deferral(pd.DataFrame(X, index=np.arange(30) + 5), some)
    assert table.index[0] == 5
    proba = team.predict_team_proba(X, some)
    assert_array_equal(table["label"], team.predict_team(X, some))
    assert_allclose(table["confidence"], proba.max(1))
    scores = team.decision_function(X)
    assert_allclose(table[[f"worth of {j}" for j in range(N_EXPERTS)]], scores[:, :-1])
    assert_array_equal(table["least worth"], np.full(30, team.threshold_))
    who = team.next_expert(X, some)
    assert table["next"].tolist() == ["nobody" if j < 0 else j for j in who]
    for j in range(N_EXPERTS):
        without = some.copy()
        without[:, j] = -1
        change = proba.max(1) - team.predict_team_proba(X, without)[np.arange(30), proba.argmax(1)]
        assert_allclose(table[f"change by {j}"], np.where(some[:, j] >= 0, change, np.nan))
    assert "next" not in team.explain_deferral(X)


def test_a_roster_changes_without_training(team, future):
    X, y, given = (part[:500] for part in future)
    threshold = team.threshold_
    team.offboard([5])
    assert team.experts_.tolist() == [0, 1, 2, 3, 4]
    assert len(team.prices_) == len(team.workload_) == 5
    who = team.next_expert(X)
    assert set(who) <= {-1, 0, 1, 2, 3, 4}
    deferral = team.predict_deferral(X)
    assert_array_equal(team.targets_[deferral[who >= 0]], team.experts_[who[who >= 0]])
    team.onboard(["new"], X[:200], given[:200, [5]], y[:200])
    assert team.experts_.tolist() == [0, 1, 2, 3, 4, "new"]
    assert (team.experts_[team.next_expert(X[200:])] == "new").mean() > 0.3
    deferral, who = team.predict_deferral(X), team.next_expert(X)
    assert_array_equal(team.targets_[deferral[who >= 0]], team.experts_[who[who >= 0]])
    assert team.threshold_ == threshold
    assert team.recalibrate(X).answers_ == pytest.approx(1.0, abs=0.01)
    assert team.replay(X, given).n_answers.mean() > 0


def test_of_many_people_the_most_promising_are_compared(monkeypatch, future):
    X, _, given = (part[:300] for part in future)
    everybody = fit(answers=2.0, unlabeled=300)
    monkeypatch.setattr(_asking, "FEW", 5)
    team = fit(answers=2.0, unlabeled=300)
    scores = team.decision_function(X)
    assert (np.isfinite(scores[:, :-1]).sum(1) == 5).all()
    assert_array_equal(np.where(scores.argmax(1) == N_EXPERTS, -1, scores.argmax(1)), team.predict_deferral(X))
    assert (team.next_expert(X) == everybody.next_expert(X)).mean() > 0.95
    assert team.replay(X, given).n_answers.max() <= 6
    load = np.bincount(team.next_expert(X, capacity=40) + 1, minlength=N_EXPERTS + 1)[1:]
    assert load.max() <= 40
    assert team.consult(X[:50], capacity=10).sum(0).max() <= 10


def test_behaviours_shape_the_errors(future):
    X, y, given = future
    lda = AnnotatorLDA(2, hidden_layer_sizes=(4,), max_epochs=3, random_state=0)
    team = fit(clusterer=lda)
    assert isinstance(team.clusterer_, AnnotatorLDA)
    assert team.score(X[:500], y[:500], annotations=given[:500]) > 0.8


def test_before_any_answer_the_classifier_speaks(team, future):
    X = future[0][:20]
    nobody = np.full((20, N_EXPERTS), -1)
    assert_allclose(team.predict_team_proba(X), team.predict_team_proba(X, nobody))
    assert_array_equal(team.predict_team(X), team.predict(X))
    with pytest.raises(ValueError, match="predict_team received no annotations"):
        team.predict_team(X, decision="draw")


def test_newcomers_of_unknown_truth_are_like_those_who_answer_like_them():
    X, y, answers = make_team(600, 0)
    answers = answers[:, [0, 0, 0, 5, 5, 5]]  # three poor and three good people
    lda = AnnotatorLDA(2, hidden_layer_sizes=(8,), random_state=0)
    team = PanelDeferral(LogisticRegression(), clusterer=lda, random_state=0).fit(X[:300], y[:300], answers[:300])
    team.onboard(["poor", "good"], X[300:340], answers[300:340][:, [0, 5]])
    right = team.predict_expert_correctness(X[340:]).mean(0)
    assert right[-1] > right[-2] + 0.05
    known = copy.deepcopy(team).onboard(["good"], X[300:], answers[300:, [5]], y[300:])
    assert known.predict_expert_correctness(X).mean(0)[-1] > right[-2]
    with pytest.raises(ValueError, match="y is None"):
        fit().onboard(["new"], X[:5], answers[:5, [0]])


def test_answers_to_items_of_unknown_truth_count():
    X, y, answers = make_team(400, 0)
    known = np.arange(400) < 60
    team = PanelDeferral(LogisticRegression(), random_state=0).fit(X, np.where(known, y, np.nan), answers)
    alone = PanelDeferral(LogisticRegression(), random_state=0).fit(X[known], y[known], answers[known])
    assert team.classes_.tolist() == alone.classes_.tolist() == [0, 1, 2]
    assert_array_equal(team.predict(X), alone.predict(X))
    truth = np.linspace(0.55, 0.9, N_EXPERTS)
    error = [np.abs(t.predict_expert_correctness(X).mean(0) - truth).mean() for t in (team, alone)]
    assert error[0] < error[1]


def test_without_experts_the_classifier_decides():
    X, y, _ = make_team(100, 0)
    team = PanelDeferral(LogisticRegression(), random_state=0).fit(X, y)
    assert (team.next_expert(X) == -1).all()
    assert team.consult(X).shape == (100, 0)
    assert team.score(X, y) == (team.predict(X) == y).mean()
    assert team.replay(X, None).n_answers.sum() == 0
    assert [t.answers_ for t in team.answers_path([0.0], X)] == [0.0]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"answers": 1.0, "consultation_cost": 0.1}, "answers and consultation_cost are given, but only one"),
        ({"answers": 7}, r"answers=7 per item, but 6 experts and max_answers=None make 0 to 6"),
        ({"answers": 2.0, "workload": (0, 0.2)}, r"answers=2 per item, but workload lets all 6 .* 0 to 1.2"),
        ({"workload": {"who": (0, 1)}}, r"workload names \['who'\]"),
        ({"error_cost": [[0, 1], [1, 0]]}, "error_cost of shape"),
        ({"consultation_cost": 0.1, "max_answers": 1, "workload": (0.5, 1)}, "for 3 answers per item or more"),
        ({"answers": -1}, "'answers' parameter"),
        ({"target_accuracy": 1.0}, "'target_accuracy' parameter"),
        ({"max_answers": 0}, "'max_answers' parameter"),
    ],
)
def test_bad_settings_are_refused_before_work(params, message, monkeypatch):
    monkeypatch.setattr(LogisticRegression, "fit", lambda *_: pytest.fail("a classifier is fitted before"))
    with pytest.raises(ValueError, match=message):
        fit(**params)


def test_what_is_promised_is_what_is_asked():
    """Tolls are part of the rule that the held-out items have tested."""
    rng = np.random.default_rng(0)

    def crowd(n):
        y = rng.integers(2, size=n)
        X = 0.7 * y[:, None] + rng.normal(size=(n, 4))
        right = rng.random((n, 6)) < [0.6, 0.6, 0.6, 0.97, 0.97, 0.97]
        return X, y, np.where(right, y[:, None], 1 - y[:, None])

    X, y, given = crowd(600)
    away = {3: (0, 0), 4: (0, 0), 5: (0, 0)}
    team = PanelDeferral(LogisticRegression(), target_accuracy=0.7, workload=away, random_state=0).fit(X, y, given)
    Xt, yt, at = crowd(4000)
    assert team.score(Xt, yt, at) >= 0.7
    assert set(np.unique(team.replay(Xt, at).asked)) == {-1, 0, 1, 2}
    with pytest.raises(ValueError, match="cannot be promised"):
        clone(team).set_params(target_accuracy=0.95).fit(X, y, given)
    before = team.threshold_, team.confidence_threshold_, team.prices_.tolist()
    team.recalibrate(Xt)
    assert (team.threshold_, team.confidence_threshold_, team.prices_.tolist()) == before
    with pytest.raises(ValueError, match="are not those of fit; they need labelled"):
        copy.deepcopy(team).set_params(target_accuracy=0.9).recalibrate(Xt)
    with pytest.raises(ValueError, match="holds where people are asked one by one"):
        team.consult(Xt)
    team.set_params(target_accuracy=None, workload=None, answers=1.0).recalibrate(Xt)
    assert team.replay(Xt, at).n_answers.mean() == pytest.approx(1.0, abs=0.05)
    with pytest.raises(ValueError, match="only one can say when to stop"):
        team.set_params(consultation_cost=0.1).recalibrate(Xt)


def test_a_team_of_nobody_goes_on(team, future):
    X, y, _ = (part[:50] for part in future)
    team.offboard(list(range(N_EXPERTS)))
    assert team.score(X, y) == (team.predict(X) == y).mean()
    assert (team.predict_deferral(X) == -1).all()
    assert len(team.route(X)) == len(team.explain_deferral(X)) == 50
    assert team.recalibrate(X).answers_ == 0
    assert team.coverage_ == 1
    assert [t.answers_ for t in team.answers_path([1.0], X)] == [0]
    team.onboard(["new"], X, y[:, None], y)
    assert (team.next_expert(X) >= 0).any()


def test_lists_of_many_people_go_on_where_their_capacity_ends(monkeypatch, future):
    X = future[0][:200]
    team = fit(max_answers=1, answers=1.0)
    capacity = np.array([200, 200, 200, 200, 0, 0])
    everybody = team.next_expert(X, capacity=capacity)
    monkeypatch.setattr(_asking, "FEW", 2)
    assert_array_equal(team.next_expert(X, capacity=capacity) >= 0, everybody >= 0)
    held = team.next_expert(X, capacity=60)
    assert np.bincount(held[held >= 0]).max() <= 60
    assert (held >= 0).sum() == 200


def test_who_recorded_an_answer_is_a_short_list(monkeypatch, future):
    X, _, given = (part[:300] for part in future)
    given = np.where(np.random.default_rng(0).random(given.shape) < 0.5, given, -1)
    team = fit(answers=1.5)
    expected = team.replay(X, given)
    monkeypatch.setattr(_asking, "FEW", 2)
    got = team.replay(X, given)
    assert_array_equal(got.asked, expected.asked)
    assert_allclose(got.proba, expected.proba)


def test_repeated_items_are_counted_as_they_are_asked():
    rng = np.random.default_rng(0)
    X, y, answers = make_team(300, 0)
    kind = rng.integers(0, 5, size=300)
    X = np.eye(5)[kind]
    team = PanelDeferral(LogisticRegression(), answers=0.5, random_state=0).fit(X, y, answers, X_unlabeled=X)
    future = np.eye(5)[rng.integers(0, 5, size=4000)]
    who = team.next_expert(future)
    assert_allclose(np.bincount(who[who >= 0], minlength=N_EXPERTS) / 4000, team.workload_, atol=0.25)
    assert 1 - (who >= 0).mean() == pytest.approx(team.coverage_, abs=0.1)


def test_drawn_answers_do_not_depend_on_turns():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    answers = np.where(np.arange(600) % 10 < 2, 1 - y, y)
    X = rng.normal(size=(600, 3))
    team = PanelDeferral(DummyClassifier(strategy="prior"), random_state=0)
    team.fit(X, y, np.column_stack([answers, answers]))
    talk = team._talk(team._check_items(rng.normal(size=(20_000, 3))), threshold=-np.inf)
    rows = np.arange(20_000)
    who = talk.next(rows)
    joint = talk.proba(rows)[:, None] * difficulty_given(talk.by_difficulty)
    drawn = talk.asker.drawn(joint, who, None, talk._uniform(rows, 0))
    assert_allclose([drawn[who == k].mean() for k in (0, 1)], 0.5, atol=0.02)


def test_nobody_is_asked_about_a_label_that_is_certain(team, future):
    """As after a promise that certain labels alone keep: a confidence of 1 is reached."""
    talk = team._talk(team._check_items(future[0][:2]), threshold=-np.inf, sure=1.0)
    talk.log_prior = np.array([[0.0, -800.0, -800.0], np.log([0.5, 0.3, 0.2])])
    assert (talk.next(np.arange(2)) == -1).tolist() == [True, False]


def test_settings_may_name_people_who_have_left(team, future):
    X, y, given = (part[:100] for part in future)
    team.onboard(["new"], X, given[:, [5]], y)
    team.set_params(consultation_cost={"new": 0.05, 5: 0.1}, answers=None).recalibrate(X)
    team.offboard(["new", 5])
    assert set(team.next_expert(X)) <= {-1, 0, 1, 2, 3, 4}
    team.set_params(consultation_cost={"nobody": 0.05})
    with pytest.raises(ValueError, match="names 'nobody'"):
        team.next_expert(X)


def test_newcomers_do_not_take_all_the_work(future):
    X, y, given = (part[:1000] for part in future)
    team = fit(workload=(0, 0.25), answers=1.0)
    with pytest.warns(UserWarning, match="call recalibrate"):
        team.onboard(["new"], X[:300], given[:300, [5]], y[:300])
    assert (team.next_expert(X) == N_EXPERTS).mean() < 0.8  # .95 without a toll
    team.recalibrate(X)
    assert team.workload_.max() <= 0.26


def test_too_few_people_for_a_budget_are_told(team, future):
    X = future[0][:500]
    team.set_params(answers=3.0)
    with pytest.warns(UserWarning, match=r"answers=3 per item, but the available experts give 2.00 at most"):
        team.recalibrate(X, available=np.arange(N_EXPERTS) < 2)


def test_a_route_names_who_is_asked(team, future):
    X = future[0][:200]
    route = team.route(X, available=np.arange(N_EXPERTS) != 5)
    assert (route["target"] == route["expert"]).all()
    assert 5 not in set(route["expert"])
    with pytest.raises(ValueError, match="items found nobody free who is worth asking"):
        team.route(X, capacity=1, on_overflow="raise")


def test_bad_questions_are_refused(team, future):
    X = future[0][:5]
    with pytest.raises(ValueError, match=r"answers=9 per item"):
        team.answers_path([9.0], X)
    with pytest.raises(ValueError, match="replay received no annotations"):
        team.replay(X, None)
    with pytest.raises(ValueError, match="annotations has 2 columns"):
        team.next_expert(X, np.zeros((5, 2), dtype=int))
    with pytest.raises(ValueError, match="available has shape"):
        team.answers_path([1.0], X, available=np.ones((4, 6), dtype=bool))
    with pytest.raises(ValueError, match="score received no annotations"):
        team.score(X, np.zeros(5, dtype=int))
    fresh = clone(team)
    assert fresh.get_params() == team.get_params() | {"classifier": fresh.classifier}


def test_who_gave_a_label_that_training_did_not_see_is_not_asked_again(team, future):
    X, _, given = (part[:40] for part in future)
    first = team.next_expert(X)
    asked = first >= 0
    so_far = np.full((40, N_EXPERTS), -1)
    so_far[asked, first[asked]] = 9
    with pytest.warns(UserWarning, match=rf"{asked.sum()} of {asked.sum()} answers, .* no classes, \[9\]") as told:
        second = team.next_expert(X, so_far)
    assert len(told) == 1
    assert (second[asked] >= 0).any()
    assert (second[asked] != first[asked]).all()
    with pytest.warns(UserWarning, match="no classes"):
        explained = team.explain_deferral(X, so_far)
    assert explained.filter(like="change by").isna().all(axis=None)
    assert_allclose(explained["confidence"], team.predict_team_proba(X).max(1))
    given[given == 2] = -1
    odd = np.where(given == -1, 9, given)
    odd[:, 1:] = given[:, 1:]
    with pytest.warns(UserWarning, match="left out"):
        replay = team.replay(X, odd)
    assert_array_equal(replay.labels, team.replay(X, given).labels)
