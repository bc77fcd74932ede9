"""PL2D: experts who did not label everything, a classifier that learns beside the gate, and departures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.deferral import ProbabilisticDeferral
from sklearn_l2d.deferral._gate import GateProblem, train_gate
from sklearn_l2d.deferral._settings import ShareBounds


def make_items(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 4)) + 2 * np.eye(3, 4)[y], y


def make_answers(y, seed):
    """Expert 0 knows class 0, expert 1 class 1, expert 2 class 2; where they do not know they name the next class."""
    right = np.random.default_rng(seed).random((len(y), 3)) < np.where(y[:, None] == np.arange(3), 0.98, 0.1)
    return np.where(right, y[:, None], (y[:, None] + 1) % 3)


X, Y = make_items(240, 0)
NEW_X, NEW_Y = make_items(500, 1)
ANSWERS, NEW_ANSWERS = make_answers(Y, 2), make_answers(NEW_Y, 3)
GAPS = np.where(np.random.default_rng(4).random(ANSWERS.shape) < 0.5, -1, ANSWERS)
FAST = {"batch_size": 32, "max_epochs": 20, "answer_epochs": 20, "coverage": 0.3, "random_state": 0}


@pytest.fixture(scope="module")
def classifier():
    """Weak: it has seen few rows."""
    return FrozenEstimator(LogisticRegression(C=0.02).fit(X[:20], Y[:20]))


@pytest.fixture(scope="module")
def make(classifier):
    return lambda **params: ProbabilisticDeferral(**({"classifier": classifier} | FAST | params))


@pytest.fixture(scope="module")
def fitted(make):
    return make().fit(X, Y, GAPS, X_unlabeled=NEW_X)


def test_the_gate_finds_who_knows_what_from_half_of_the_answers(fitted):
    deferral = fitted.predict_deferral(NEW_X)
    assert (deferral == NEW_Y)[deferral >= 0].mean() > 0.75
    assert fitted.score(NEW_X, NEW_Y, NEW_ANSWERS) > np.mean(NEW_Y[:, None] == NEW_ANSWERS) + 0.2
    assert_array_equal(fitted.targets_, fitted.experts_)
    assert_array_equal(fitted.selection_, np.eye(3))


def test_imitations_answer_as_the_experts_do(fitted):
    proba = fitted.predict_annotation_proba(NEW_X)
    assert proba.shape == (500, 3, 3)
    assert_allclose(proba.sum(2), 1)
    agreement = (proba.argmax(2) == NEW_ANSWERS).mean(0)
    assert (agreement > 0.7).all()  # the next class is wrong, yet predictable


def test_every_expert_is_imitated_by_a_net_that_saw_only_their_own_answers(make):
    """Without joint training of shares, what the others answered makes no difference to a net."""
    other = GAPS.copy()
    other[:, 1:] = np.where(GAPS[:, 1:] >= 0, 0, -1)
    settings = {"max_epochs": 1, "dtype": "float64"}
    one, two = (make(**settings).fit(X, Y, answers).predict_annotation_proba(NEW_X) for answers in (GAPS, other))
    assert_allclose(one[:, 0], two[:, 0], rtol=1e-10)
    assert np.abs(one[:, 1] - two[:, 1]).max() > 0.1


def test_responsibility_for_a_missing_answer_teaches_a_net_towards_the_truth(make):
    """Expert 0 answers class 2 alone, always wrong, and is the only one who could be right elsewhere."""
    answers = np.where(Y[:, None] == 2, 0, np.full((len(Y), 1), -1))
    rows = NEW_Y < 2
    right = []
    for max_epochs in (1, 40):  # one epoch leaves the nets as the given answers made them
        model = make(max_epochs=max_epochs, coverage=0.1, answer_shrinkage=0.0).fit(X, Y, answers)
        proba = model.predict_annotation_proba(NEW_X)[:, 0]
        right.append(proba[np.flatnonzero(rows), NEW_Y[rows]].mean())
    assert right[1] > right[0] + 0.1


def test_complete_annotations_leave_nothing_to_imitate(make):
    """Without gaps latent and naive are the same model."""
    latent, naive = (make(missing=missing).fit(X, Y, ANSWERS) for missing in ("latent", "naive"))
    assert_array_equal(latent.predict_deferral_proba(NEW_X), naive.predict_deferral_proba(NEW_X))


def test_naive_ignores_an_expert_who_never_answers_and_has_no_nets(make):
    silent = GAPS.copy()
    silent[:, 0] = -1
    with pytest.warns(UserWarning, match="have no annotation"):
        model = make(missing="naive", coverage=None).fit(X, Y, silent)
    assert model.predict_deferral_proba(NEW_X)[:, 0].max() < 0.2
    assert model.answer_net_ is None
    with pytest.raises(AttributeError, match="predict_annotation_proba"):
        model.predict_annotation_proba(NEW_X)


@pytest.mark.parametrize("missing", ["latent", "naive"])
def test_balanced_workload_is_met(make, missing):
    model = make(missing=missing, coverage=0.25, workload=(0.25, 0.25), max_epochs=5).fit(X, Y, GAPS, X_unlabeled=NEW_X)
    deferral = model.predict_deferral(NEW_X)
    assert_allclose(np.bincount(deferral + 1, minlength=4) / 500, 0.25, atol=0.01)
    assert model.constraint_violation_ < 0.01


def test_own_correctness_is_the_evidence_at_full_shrinkage(make):
    """What the nets say then makes no difference."""
    one, two = (make(answer_shrinkage=1.0, answer_epochs=n).fit(X, Y, GAPS) for n in (1, 20))
    assert_array_equal(one.predict_deferral_proba(NEW_X), two.predict_deferral_proba(NEW_X))
    assert np.abs(one.predict_annotation_proba(NEW_X) - two.predict_annotation_proba(NEW_X)).max() > 0.01


# ------------------------------------------------------------------------------------------ joint classifier


def test_a_joint_classifier_learns_beside_the_gate_and_is_judged_on_unseen_folds(make):
    rng = np.random.default_rng(5)
    noise = rng.integers(3, size=len(Y))  # labels that nothing could predict
    model = make(classifier=None, joint_classifier=True, answer_hidden_layer_sizes=(64,), max_epochs=60, coverage=None)
    honest = model.fit(X, noise, np.where(GAPS >= 0, noise[:, None], -1))
    memorised = np.mean(honest.predict(X) == noise)
    assert memorised > 0.45
    # all experts are always right and the classifier knows nothing: in-sample evidence would let it decide
    assert honest.temperature_ > 1.5
    assert honest.coverage_ < 0.2
    real = make(classifier=None, joint_classifier=True).fit(X, Y, GAPS)
    assert np.mean(real.predict(NEW_X) == NEW_Y) > 0.8
    assert_array_equal(real.predict(NEW_X), real.classes_[real.predict_proba(NEW_X).argmax(1)])


def test_a_joint_classifier_refuses_another_one(make):
    with pytest.raises(ValueError, match="joint_classifier=True trains a net beside the gate"):
        make(joint_classifier=True).fit(X, Y, GAPS)


# ------------------------------------------------------------------------------------------ roster


def test_experts_leave_with_their_imitations_and_nobody_joins(make):
    model = make().fit(X, Y, GAPS, X_unlabeled=NEW_X)
    before = model.predict_annotation_proba(NEW_X)
    model.offboard(1)
    assert_array_equal(model.predict_annotation_proba(NEW_X), before[:, [0, 2]])
    assert set(model.assign_experts(NEW_X)) <= {-1, 0, 1}
    assert not (model.predict_deferral(NEW_X) == 1).any()
    assert not hasattr(model, "onboard")
    gate = model.gate_
    model.partial_fit(X[:50], Y[:50], GAPS[:50, [0, 2]])
    assert model.gate_ is not gate
    assert not (model.predict_deferral(NEW_X) == 1).any()


def test_without_experts_nobody_is_imitated(make):
    model = make(coverage=None).fit(X, Y)
    assert model.predict_annotation_proba(NEW_X).shape == (500, 0, 3)
    assert_array_equal(model.predict_deferral(NEW_X), -1)
    with pytest.raises(NotFittedError):
        make().predict_annotation_proba(X)


# ------------------------------------------------------------------------------------------ refreshed evidence


@pytest.mark.parametrize("changed", ["log_likelihood", "prior"])
def test_what_changes_is_refreshed_before_every_epoch_but_the_first(make, changed):
    """At first all evidence is for the expert; then the evidence, or the prior, turns."""
    start = {"log_likelihood": np.log(np.tile([0.9, 0.1], (240, 1))), "prior": np.zeros((240, 2))}
    later = {"log_likelihood": np.log(np.tile([0.01, 0.99], (240, 1))), "prior": np.tile([0.0, 3.0], (240, 1))}
    seen = []

    def refresh(responsibilities):
        if responsibilities is not None:
            seen.append(responsibilities[:, 0].mean())
        return {changed: later[changed]}

    bounds = ShareBounds(*np.array([[0.0, 1.0]] * 2).T, *np.array([[0.0, 1.0]] * 2).T)
    problem = GateProblem(X=X, omega=np.ones((1, 1)), bounds=bounds, weight=np.ones(240), refresh=refresh, **start)
    model = make()
    model.targets_, model._seed = ["a"], 0
    train_gate(model._new_gate(problem), problem, 4, seed=0)
    assert len(seen) == 3
    assert seen[0] == pytest.approx(0.9, abs=1e-6)  # an untrained gate is undecided
    assert seen[1] < 0.6  # with the old evidence and prior it could only rise
    assert seen[2] < 0.1
    now = problem.rows(np.arange(7))
    assert now.refresh is None
    assert_array_equal(getattr(now, changed), later[changed][:7])


def test_a_joint_classifier_that_would_stay_untrained_is_refused(make):
    with pytest.raises(ValueError, match="max_epochs=1 leaves joint_classifier=True untrained"):
        make(joint_classifier=True, classifier=None, max_epochs=1).fit(X, Y, GAPS)
