"""CL2DC: the classifier, an expert, or both; the labels they lead to, their evidence, and bounds on both options."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import logsumexp
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_l2d._numerics import _matrices
from sklearn_l2d._numerics._answer_model import answer_log_likelihood, count_answers, with_experts
from sklearn_l2d._numerics._answers import answer_likelihood
from sklearn_l2d._numerics._evidence import absent_joined_likelihood
from sklearn_l2d._numerics._gate_posterior import gate_posterior
from sklearn_l2d._torch._batches import RowTable
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.deferral import ClusterDeferral, ComplementDeferral, ProbabilisticDeferral, RankedDeferral
from sklearn_l2d.deferral._gate import GateProblem, infer, infer_by_rows
from sklearn_l2d.deferral._settings import ShareBounds
from sklearn_l2d.metrics import coverage_accuracy_points, team_accuracy, team_report

NAMES = ["ann", "bob", "cyd"]


def make_items(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 4)) + 2 * np.eye(3, 4)[y], y


def make_answers(y, seed):
    """Ann takes 2 for 1 and 1 for 2, half of the time; bob is often right; cyd guesses."""
    rng = np.random.default_rng(seed)
    ann = np.where(rng.random(len(y)) < 0.5, y, np.array([0, 2, 1])[y])
    bob = np.where(rng.random(len(y)) < 0.8, y, rng.integers(3, size=len(y)))
    return np.column_stack([ann, bob, rng.integers(3, size=len(y))])


def with_gaps(answers, share, seed):
    return np.where(np.random.default_rng(seed).random(answers.shape) < share, -1, answers)


def named(answers):
    return pd.DataFrame(np.where(answers < 0, np.nan, answers), columns=NAMES)


X, Y = make_items(200, 0)
NEW_X, NEW_Y = make_items(400, 1)
GAPS = with_gaps(make_answers(Y, 2), 0.5, 4)
NEW_ANSWERS = make_answers(NEW_Y, 3)
NEW_GAPS = with_gaps(NEW_ANSWERS, 0.3, 5)
FAST = {"batch_size": 32, "max_epochs": 5, "answer_epochs": 5, "random_state": 0}


@pytest.fixture(scope="module")
def classifier():
    """Weak: it has seen few rows."""
    return FrozenEstimator(LogisticRegression(C=0.05).fit(X[:20], Y[:20]))


@pytest.fixture(scope="module")
def make(classifier):
    return lambda **params: ComplementDeferral(**({"classifier": classifier, "coverage": 0.3} | FAST | params))


@pytest.fixture(scope="module")
def fitted(make):
    return make().fit(X, Y, named(GAPS), X_unlabeled=NEW_X)


def forced(deferrer, *targets):
    """A copy in which some targets share all items."""
    offsets = np.full(len(deferrer.targets_) + 1, -1e3)
    offsets[list(targets)] = 0.0
    return deferrer._copy_with(offsets_=offsets)


def settings_of(deferrer):
    params = deferrer.get_params(deep=False)
    del params["complement"]
    return params


# ------------------------------------------------------------------------------------------------ without the option


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"missing": "naive", "workload": (0.1, 0.4)},
        {"consultation_cost": [0.1, 0.0, 0.2], "prior_weight": 0.0, "coverage": None},
        {"joint_classifier": True, "classifier": None},
    ],
    ids=str,
)
def test_without_the_option_it_is_probabilistic_deferral(make, params):
    one = make(complement=False, **params).fit(X, Y, GAPS)
    two = ProbabilisticDeferral(**settings_of(one)).fit(X, Y, GAPS)
    for method in ("decision_function", "assign_experts"):
        assert_array_equal(getattr(one, method)(NEW_X), getattr(two, method)(NEW_X))
    for method in ("predict_team", "predict_team_proba"):
        assert_array_equal(getattr(one, method)(NEW_X, NEW_GAPS), getattr(two, method)(NEW_X, NEW_GAPS))
    assert one.score(NEW_X, NEW_Y, NEW_GAPS) == two.score(NEW_X, NEW_Y, NEW_GAPS)
    assert_array_equal(one.join_answers(NEW_X, NEW_GAPS).to_codes(), NEW_GAPS)
    assert_array_equal(one.targets_, two.targets_)
    for table in ("explain_deferral", "route"):
        pd.testing.assert_frame_equal(getattr(one, table)(NEW_X), getattr(two, table)(NEW_X))
    assert [h["log_likelihood"] for h in one.history_] == [h["log_likelihood"] for h in two.history_]


# ------------------------------------------------------------------------------------------------------- the labels


def rows_of_answers(deferrer):
    """Probabilities (expert, truth, answer) by the counts of a deferrer, spelt out."""
    model, n_classes = deferrer._roster.answer_model, len(deferrer.classes_)
    own = model.own.toarray().reshape(deferrer.n_experts_, n_classes, n_classes)
    rows = np.empty((deferrer.n_experts_, n_classes, n_classes))
    for m in range(deferrer.n_experts_):
        for truth in range(n_classes):
            given, seen = own[m, :, truth], model.seen[m, truth]
            right = (given[truth] + model.strength * model.accuracy[m, truth]) / (seen + model.strength)
            wrong = given + model.wrong_strength * model.wrong[truth]
            rows[m, truth] = wrong / (seen - given[truth] + model.wrong_strength) * (1 - right)
            rows[m, truth, truth] = right
    assert_allclose(rows.sum(2), 1)
    return rows


def by_hand(deferrer, m, answers, cost=None):
    """Labels by the classifier and the answers of expert m, by Bayes' rule with the learnt exponents."""
    proba, rows = deferrer.predict_team_proba(NEW_X, np.full((len(NEW_X), 3), -1)), rows_of_answers(deferrer)
    labels = []
    for p, answer in zip(proba, answers, strict=True):
        fused = p**deferrer._exponents.prior * rows[m, :, answer] ** deferrer._exponents.answers
        labels.append((fused.argmax() if cost is None else (fused @ cost).argmin()) if answer >= 0 else p.argmax())
    return np.array(labels)


@pytest.mark.parametrize("m", [0, 1, 2])
def test_the_option_says_whose_label_it_is(fitted, m):
    labels = fitted.predict(NEW_X)
    assert_array_equal(forced(fitted, -1).predict_team(NEW_X, NEW_GAPS), labels)
    alone, joined = forced(fitted, m), forced(fitted, 3 + m)
    answered = NEW_GAPS[:, m] >= 0
    assert_array_equal(alone.predict_team(NEW_X, NEW_GAPS)[answered], NEW_GAPS[answered, m])
    expected = by_hand(fitted, m, NEW_GAPS[:, m])
    assert_array_equal(joined.predict_team(NEW_X, NEW_GAPS)[answered], expected[answered])
    assert_array_equal(joined.predict_team(NEW_X, NEW_GAPS, decision="vote"), expected)
    assert joined.score(NEW_X, NEW_Y, NEW_GAPS) == (expected == NEW_Y).mean()
    only = np.where(np.arange(3) == m, NEW_GAPS, -1)
    assert_array_equal(joined.predict_team(NEW_X, only, decision="combine"), expected)
    if m == 0:  # neither the answer nor the classifier alone
        assert (expected != labels)[answered].mean() > 0.1
        assert (expected != NEW_GAPS[:, 0])[answered].mean() > 0.1


def test_both_together_are_better_than_either(fitted):
    alone = max(forced(fitted, target).score(NEW_X, NEW_Y, NEW_ANSWERS) for target in (0, 1, 2, -1))
    assert forced(fitted, 4).score(NEW_X, NEW_Y, NEW_ANSWERS) > alone + 0.02


def test_somebody_else_joins_the_classifier_if_whoever_was_chosen_is_away(fitted):
    """Nobody has to beat the classifier to join it, but an answer must be able to change the label."""
    answers, bob = np.where(np.arange(3) == 1, NEW_ANSWERS, -1), [False, True, False]
    sure = fitted.predict_team_proba(NEW_X, np.full_like(answers, -1)).max(1)
    explained = fitted.explain_deferral(NEW_X)
    for target, name in ((0, "bob"), (3, "bob with classifier")):
        gains = explained[f"expected correctness of {name}"].to_numpy() > sure + 1e-12
        for capacity in (None, 1000):
            with pytest.warns(UserWarning, match="found nobody"):
                who = forced(fitted, target).assign_experts(NEW_X, available=bob, capacity=capacity)
            assert_array_equal(who == 1, gains)
    assert_array_equal(
        forced(fitted, 3).predict_team(NEW_X, answers),
        np.where(gains, by_hand(fitted, 1, NEW_ANSWERS[:, 1]), fitted.predict(NEW_X)),
    )


def test_a_reserve_goes_by_what_both_together_gain(fitted):
    """An answer that is joined gains as often as it changes a label, by Bayes' rule; her label alone gains less."""
    sure = fitted.predict_team_proba(NEW_X, np.full_like(NEW_ANSWERS, -1)).max(1)
    for target, joins in ((0, False), (4, True)):
        team = forced(fitted, target)
        shift = team.start_shift(10, X_expected=NEW_X)
        gain = shift._gain(team._check_items(NEW_X), team.predict_deferral(NEW_X))
        for m, name in enumerate(NAMES):
            column = f"expected correctness of {name}" + " with classifier" * joins
            assert_allclose(gain[:, m], fitted.explain_deferral(NEW_X)[column] - sure, atol=1e-9)
        who = shift.assign_experts(NEW_X[:200])
        assert (gain[:200][np.arange(200), who][who >= 0] > 0).all()
        assert joins <= (who >= 0).any()


def test_joint_labels_have_the_least_expected_cost(make):
    cost = np.array([[0, 1, 1], [1, 0, 1], [9, 9, 0.0]])
    deferrer = make(error_cost=cost).fit(X, Y, GAPS)
    expected = by_hand(deferrer, 1, NEW_ANSWERS[:, 1], cost)
    assert_array_equal(forced(deferrer, 4).predict_team(NEW_X, NEW_ANSWERS), expected)
    assert (expected != by_hand(deferrer, 1, NEW_ANSWERS[:, 1])).any()


def test_score_and_reports_judge_joint_labels(fitted):
    mixed = forced(fitted, 1, 4, -1)
    chosen = mixed.predict_deferral(NEW_X)
    labels = mixed.predict_team(NEW_X, NEW_ANSWERS)
    assert mixed.score(NEW_X, NEW_Y, named(NEW_ANSWERS)) == (labels == NEW_Y).mean()
    votes = mixed.join_answers(NEW_X, NEW_ANSWERS)
    assert_array_equal(votes.to_codes()[chosen == 4, 1], labels[chosen == 4])
    assert_array_equal(votes.to_codes()[chosen < 3], NEW_ANSWERS[chosen < 3])
    mine = NEW_Y, chosen, mixed.predict(NEW_X), votes, mixed.selection_
    assert team_accuracy(*mine) == mixed.score(NEW_X, NEW_Y, NEW_ANSWERS)
    report = team_report(mixed, NEW_X, NEW_Y, NEW_ANSWERS)
    assert report["team_accuracy"] == mixed.score(NEW_X, NEW_Y, NEW_ANSWERS)
    coverage, accuracy = coverage_accuracy_points(fitted, NEW_X, NEW_Y, NEW_ANSWERS)
    all_asked = fitted.coverage_path([0.0])[0]
    assert coverage[0] == 0
    assert accuracy[0] == all_asked.score(NEW_X, NEW_Y, NEW_ANSWERS)


@pytest.mark.filterwarnings("ignore:.*are labels that are no classes")
def test_an_answer_that_is_no_class_is_wrong_and_joins_nothing(fitted):
    strange = NEW_ANSWERS.copy()
    strange[:100, 1] = 7
    joined = forced(fitted, 4)
    right = by_hand(fitted, 1, NEW_ANSWERS[:, 1]) == NEW_Y
    assert joined.score(NEW_X, NEW_Y, strange) == right[100:].sum() / len(NEW_Y)
    assert_array_equal(joined.predict_team(NEW_X, strange, decision="vote")[:100], fitted.predict(NEW_X)[:100])


def test_a_wrapper_joins_as_its_deferrer_does(fitted):
    ranked = RankedDeferral(FrozenEstimator(fitted), coverage=0.2).fit(X, Y, named(GAPS), X_unlabeled=NEW_X)
    chosen = ranked.predict_deferral(NEW_X)
    expected = [fitted.join_answers(NEW_X, NEW_ANSWERS, chosen).to_codes()[i, k % 3] for i, k in enumerate(chosen)]
    expected = np.where(chosen < 0, fitted.predict(NEW_X), expected)
    assert_array_equal(ranked.predict_team(NEW_X, NEW_ANSWERS), expected)
    assert team_report(ranked, NEW_X, NEW_Y, NEW_ANSWERS)["team_accuracy"] == (expected == NEW_Y).mean()


# --------------------------------------------------------------------------------------------------------- evidence

TWO = {"C": 2, "y": (Y > 0).astype(int), "answers": np.where(GAPS < 0, -1, GAPS > 0)}


def judged_by_the_others(deferrer, votes, y, weight):
    """Log-likelihood (n_answers, 2) of each answer by a model that has counted all answers to other items."""
    told, truth = [], np.eye(2)[y] * weight[:, None]
    for i in range(len(votes.item)):
        others = votes.item != votes.item[i]
        counts = count_answers(votes.item[others], votes.annotator[others], votes.label[others], 3, truth)
        model = with_experts(deferrer._roster.answering, *counts)
        told.append(answer_log_likelihood(model, votes.annotator[i : i + 1], votes.label[i : i + 1])[0])
    return np.array(told)


@pytest.mark.parametrize("weight", [1.0, 0.25])
@pytest.mark.parametrize("kind", [ComplementDeferral, ClusterDeferral])
def test_evidence_of_an_answer_has_not_seen_it(kind, weight):
    """With two classes, the errors have no shape that an answer could have taught."""
    rows = slice(0, 60)
    X_few, y, answers, weights = X[rows], TWO["y"][rows], TWO["answers"][rows], np.full(60, weight)
    params = {"classifier": LogisticRegression(C=0.1), "max_epochs": 2, "random_state": 0}
    params |= {"evidence": "combined"} if kind is ClusterDeferral else {"answer_epochs": 1}
    deferrer = kind(**params).fit(X_few, y, answers, sample_weight=weights)
    votes = encode_votes(answers, classes=[0, 1])
    nothing = np.zeros(3)
    proba = np.random.default_rng(0).dirichlet([1, 1], 60)
    got = np.asarray(deferrer._log_likelihood(deferrer._check_items(X_few), votes, y, proba, nothing, weights))
    got = got[:, -4:-1][votes.item, votes.annotator]
    told = judged_by_the_others(deferrer, votes, y, weights)
    fused, truth = proba[votes.item] * np.exp(told), y[votes.item]
    if kind is ClusterDeferral:  # how probable the truth is, else whether the label is right
        expected = (fused / fused.sum(1, keepdims=True))[np.arange(len(told)), truth].clip(0.001, 0.999)
    else:
        expected = np.where(fused.argmax(1) == truth, 0.999, 0.001)
        alone = proba[votes.item].argmax(1)
        assert (fused.argmax(1) != alone).any()
        assert (fused.argmax(1) != votes.label).any()
    assert_allclose(np.exp(got), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "cost", [None, np.random.default_rng(1).uniform(size=(4, 4)) * (1 - np.eye(4))], ids=["0-1", "cost"]
)
def test_missing_answers_are_integrated_out_by_the_answer_model(cost):
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(4), 5), rng.integers(4, size=5)
    rows = rng.dirichlet(np.ones(4), (4, 3))  # truth, expert
    likelihood = answer_likelihood(4, 0.01, cost)
    expected = np.zeros((5, 3))
    for i in range(5):
        for m in range(3):
            for answer in range(4):
                fused = proba[i] * rows[:, m, answer]
                label = fused.argmax() if cost is None else (fused @ cost).argmin()
                expected[i, m] += rows[y[i], m, answer] * likelihood[y[i], label]
    assert_allclose(absent_joined_likelihood(proba, y, rows, likelihood, cost), expected)


def test_the_gate_starts_from_how_often_each_option_is_expected_to_be_right(fitted):
    proba, rows = fitted.predict_team_proba(NEW_X, np.full((len(NEW_X), 3), -1)), rows_of_answers(fitted)
    alone = proba @ fitted._correctness.T
    joined = [[sum((p * rows[m, :, answer]).max() for answer in range(3)) for m in range(3)] for p in proba]
    expected = np.column_stack([alone, joined, proba.max(1)])
    assert_allclose(np.exp(fitted._prior(proba)), expected)
    explained = fitted.explain_deferral(NEW_X)
    assert_allclose(
        explained[[f"expected correctness of {name}" for name in [*fitted.targets_, "classifier"]]], expected
    )


# ----------------------------------------------------------------------------------------------- bounds on both options


class KnownGate(GateProblem):
    """Problem of a gate that is known."""

    def log_gate(self, net):
        return RowTable(lambda rows: self.X[rows], self.X.shape)


class NoNet:
    def frozen(self):
        return self


def make_problem(bounds, as_table=np.asarray):
    rng = np.random.default_rng(1)
    log_gate, log_likelihood = rng.normal(size=(6, 5)), np.log(rng.uniform(0.05, 1, (6, 5)))
    log_gate -= logsumexp(log_gate, axis=1, keepdims=True)
    omega, weight = np.vstack([np.eye(2), np.eye(2)]), np.ones(6)
    return KnownGate(log_gate, as_table(log_likelihood), omega, bounds, weight, of_targets=True)


def test_the_posterior_of_options_is_the_nearest_within_bounds_on_experts():
    """By a general solver: the smallest divergence from the free posterior, the classifier at .4, nobody above .25."""
    bounds = ShareBounds(
        np.array([0, 0, 0, 0, 0.4]), np.array([1, 1, 1, 1, 0.4]), np.zeros(3), np.array([0.25, 0.4, 1])
    )
    problem = make_problem(bounds)
    found = infer(NoNet(), problem, problem.evidence(), {}, gate_posterior)
    joint = np.exp(problem.X + problem.log_likelihood)
    free = joint / joint.sum(1, keepdims=True)
    assert free.mean(0)[[0, 2]].sum() > 0.3
    assert found.record["log_likelihood"] == pytest.approx(np.log(joint.sum(1)).mean())
    each = {"type": "eq", "fun": lambda q: q.reshape(6, 5).sum(1) - 1}
    coverage = {"type": "eq", "fun": lambda q: q.reshape(6, 5)[:, 4].mean() - 0.4}
    first = {"type": "ineq", "fun": lambda q: 0.25 - q.reshape(6, 5)[:, [0, 2]].sum(1).mean()}
    nearest = minimize(
        lambda q: (q * np.log(q / free.ravel())).sum(),
        np.full(30, 0.2),
        jac=lambda q: np.log(q / free.ravel()) + 1,
        bounds=[(1e-9, 1)] * 30,
        constraints=[each, coverage, first],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert nearest.success
    assert_allclose(found.targets, nearest.x.reshape(6, 5), atol=1e-5)
    assert_array_equal(found.experts, found.targets)


def test_a_few_rows_at_a_time_give_the_same_posterior():
    bounds = ShareBounds(np.array([0, 0, 0, 0, 0.6]), np.ones(5), np.zeros(3), np.ones(3))
    whole = make_problem(bounds)
    rows = make_problem(bounds, lambda table: RowTable(lambda rows: table[rows], table.shape))
    one = infer(NoNet(), whole, whole.evidence(), {}, gate_posterior)
    two = infer_by_rows(NoNet(), rows, rows.evidence(), {})
    assert_allclose(np.asarray(two.targets), one.targets, atol=1e-8)
    assert one.targets[:, 4].mean() == pytest.approx(0.6)


def test_large_tables_are_never_made_and_change_nothing(make, monkeypatch):
    expected = make(dtype="float64").fit(X, Y, GAPS, X_unlabeled=NEW_X)
    monkeypatch.setattr(_matrices, "LARGEST_DENSE", 0)
    monkeypatch.setattr(_matrices, "LARGEST_FAST", 0)
    got = make(dtype="float64").fit(X, Y, GAPS, X_unlabeled=NEW_X)
    assert issparse(got.selection_)
    assert_allclose(got.decision_function(NEW_X), expected.decision_function(NEW_X), atol=1e-6)
    assert_array_equal(got.predict_team(NEW_X, NEW_GAPS), expected.predict_team(NEW_X, NEW_GAPS))
    bounded = {"workload": (0, 0.3), "dtype": "float64"}
    got = make(**bounded).fit(X, Y, GAPS, X_unlabeled=NEW_X)
    monkeypatch.undo()
    expected = make(**bounded).fit(X, Y, GAPS, X_unlabeled=NEW_X)
    assert_allclose(got.decision_function(NEW_X), expected.decision_function(NEW_X), atol=1e-6)
    assert_allclose(got.workload_, expected.workload_)


@pytest.mark.parametrize("prior_weight", [0.0, 5.0])
def test_workload_bounds_both_options_of_an_expert_together(make, prior_weight):
    params = {"coverage": 0.25, "workload": {"bob": (0, 0.2), "cyd": (0.1, 1)}, "prior_weight": prior_weight}
    deferrer = make(max_epochs=30, **params).fit(X, Y, named(GAPS), X_unlabeled=NEW_X)
    chosen = deferrer.decision_function(NEW_X).argmax(1)
    shares = np.bincount(chosen, minlength=7) / len(NEW_X)
    assert shares[[1, 4]].sum() <= 0.2 + 1e-9
    assert shares[[2, 5]].sum() >= 0.1 - 1e-9
    assert shares[6] == pytest.approx(0.25, abs=0.005)
    assert_allclose(deferrer.target_shares_, shares)
    assert_allclose(deferrer.workload_, shares[:3] + shares[3:6])
    assert_allclose(deferrer.consult(NEW_X).mean(0), deferrer.workload_)
    # which of the two options is the better one is not for the bounds to say
    assert_array_equal(deferrer.offsets_[:3], deferrer.offsets_[3:6])
    free = deferrer._free_scores(deferrer._check_items(NEW_X))
    kind = np.where(free[:, :3] > free[:, 3:6], np.arange(3), np.arange(3, 6))
    people = chosen < 6
    assert_array_equal(chosen[people], kind[np.arange(len(chosen)), chosen % 3][people])


def test_work_of_somebody_who_may_not_serve_goes_to_others(make):
    deferrer = make(workload={"bob": (0, 0)}).fit(X, Y, named(GAPS), X_unlabeled=NEW_X)
    assert deferrer.workload_[1] == 0
    assert deferrer.coverage_ == pytest.approx(0.3, abs=0.005)
    again = deferrer.set_params(workload={"ann": (0, 0)}).recalibrate(NEW_X)
    assert_array_equal(again.workload_ > 0, [False, again.workload_[1] > 0, again.workload_[2] > 0])


# ------------------------------------------------------------------------------------------------------ the rest


def test_route_says_which_kind_of_option(fitted):
    mixed = forced(fitted, 1, 4, -1)
    index = pd.Index([f"item{i}" for i in range(len(NEW_X))])
    route = mixed.route(pd.DataFrame(NEW_X, index=index), explain=True)
    kinds = {"classifier": "classifier", "bob": "bob", "bob with classifier": "bob"}
    assert set(route["target"]) == set(kinds)
    assert_array_equal(route["expert"], route["target"].map(kinds))
    joined = (route["target"] == "bob with classifier").to_numpy()
    assert route["reason"][joined].str.startswith("bob with classifier is expected to be right about ").all()
    assert route["reason"][route["target"] == "bob"].str.startswith("bob is expected to be right about ").all()
    expected = mixed.explain_deferral(NEW_X)["expected correctness of bob with classifier"].to_numpy()
    told = route["reason"].str.extract(r"about (\d+)%")[0].astype(float).to_numpy() / 100
    assert_allclose(told[joined], expected[joined], atol=0.0051)


def test_capacity_counts_both_options(fitted):
    mixed = forced(fitted, 1, 4)
    assert_array_equal(np.unique(mixed.predict_deferral(NEW_X)), [1, 4])
    with pytest.warns(UserWarning, match="found nobody"):
        who = mixed.assign_experts(NEW_X, capacity={"ann": 0, "bob": 50, "cyd": 0})
    assert (who == 1).sum() == 50


def test_experts_leave_both_of_their_targets(fitted):
    smaller = fitted._copy_with()
    smaller.offboard("bob")
    assert_array_equal(np.isneginf(smaller.decision_function(NEW_X)).all(0), [False, True, False] * 2 + [False])
    before, after = fitted.decision_function(NEW_X), smaller.decision_function(NEW_X)
    assert_array_equal(after[:, [0, 2, 3, 5, 6]], before[:, [0, 2, 3, 5, 6]])
    answers = NEW_ANSWERS[:, [0, 2]]
    joined = forced(smaller, 5)
    assert joined.score(NEW_X, NEW_Y, answers) == forced(fitted, 5).score(NEW_X, NEW_Y, NEW_ANSWERS)
    assert smaller.explain_deferral(NEW_X)["expected correctness of bob with classifier"].eq(0).all()
    smaller.partial_fit(NEW_X, NEW_Y, answers).recalibrate(NEW_X)
    assert smaller.coverage_ == pytest.approx(0.3, abs=0.005)
    assert np.isfinite(smaller.decision_function(NEW_X)[:, [0, 2, 3, 5, 6]]).all()


def test_answers_to_items_of_unknown_truth_teach_how_people_answer(make):
    hidden = np.where(np.arange(len(Y)) < 60, Y.astype(float), np.nan)
    few = make().fit(X[:60], Y[:60], GAPS[:60])
    more = make().fit(X, hidden, GAPS)
    assert more._roster.seen.sum() == pytest.approx((GAPS >= 0).sum())
    truth = rows_of_answers(make().fit(X, Y, GAPS))
    far, near = (np.abs(rows_of_answers(model) - truth).mean() for model in (few, more))
    assert near < far


def test_naive_never_joins_an_answer_that_is_missing(make):
    silent = GAPS.copy()
    silent[:, 1] = -1
    with pytest.warns(UserWarning, match="have no annotation"):
        deferrer = make(missing="naive", coverage=None, max_epochs=30).fit(X, Y, silent)
    assert not np.isin(deferrer.predict_deferral(NEW_X), [1, 4]).any()


def test_the_classifier_can_learn_beside_the_gate(make):
    deferrer = make(joint_classifier=True, classifier=None, max_epochs=30).fit(X, Y, GAPS, X_unlabeled=NEW_X)
    assert deferrer.coverage_ == pytest.approx(0.3, abs=0.005)
    assert deferrer.score(NEW_X, NEW_Y, NEW_ANSWERS) > 0.8


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"complement": "yes"}, "'complement' parameter of ComplementDeferral must be"),
        ({"consultation_cost": {"bob with classifier": 0.1}}, "consultation_cost names 'bob with classifier'"),
        ({"workload": {"bob with classifier": (0, 0.1)}}, "workload"),
    ],
    ids=str,
)
def test_bad_settings_are_refused_before_any_work(make, params, message):
    deferrer = make(classifier=None, **params)
    with pytest.raises(ValueError, match=message):
        deferrer.fit(X, Y, named(GAPS))
    assert not hasattr(deferrer, "classifier_")


def test_bad_answers_and_options_are_refused(fitted):
    with pytest.raises(ValueError, match="join_answers received no annotations"):
        fitted.join_answers(NEW_X, None)
    with pytest.raises(ValueError, match="deferral"):
        fitted.join_answers(NEW_X, NEW_ANSWERS, np.full(len(NEW_X), 6))
    with pytest.raises(ValueError, match="deferral"):
        fitted.join_answers(NEW_X, NEW_ANSWERS, [0])
