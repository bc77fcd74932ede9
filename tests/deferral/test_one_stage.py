import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.base import clone

from sklearn_l2d import load
from sklearn_l2d.deferral import OneStageDeferral

SURROGATES = ["softmax", "ova", "realizable"]
SETTINGS = {"hidden_layer_sizes": (), "lr": 0.2, "weight_decay": 0.0, "batch_size": 200, "random_state": 0}


def make_regions(n=2000, n_experts=2, seed=0):
    """Four regions, one-hot; who is right where, per expert, and the chance of the likelier of two classes."""
    rng = np.random.default_rng(seed)
    region = rng.integers(4, size=n)
    sure = np.array([0.95, 0.6, 0.6, 0.8])
    right = np.array([[0.7, 0.9, 0.4, 0.6], [0.5, 0.7, 0.95, 0.55]])[:n_experts]
    y = np.where(rng.random(n) < sure[region], region % 2, 1 - region % 2)
    hit = rng.random((n, n_experts)) < right.T[region]
    return np.eye(4)[region], y, np.where(hit, y[:, None], 1 - y[:, None]), right.T, sure


@pytest.mark.parametrize("surrogate", SURROGATES[:2])
def test_learns_the_best_rule_of_every_region_and_who_is_right_there(surrogate):
    X, y, annotations, right, sure = make_regions(4000)
    annotations = np.where(np.random.default_rng(1).random(annotations.shape) < 0.4, -1, annotations)
    model = OneStageDeferral(surrogate, max_epochs=25, **SETTINGS).fit(X, y, annotations=annotations)
    assert model.predict_deferral(np.eye(4)).tolist() == [-1, 0, 1, -1]
    # a missing annotation that counted as a wrong one would take .4 off every estimate
    assert_allclose(model.predict_expert_correctness(np.eye(4)), right, atol=0.05)
    assert_allclose(model.predict_proba(np.eye(4)).max(1), sure, atol=0.05)
    assert model.predict(np.eye(4)).tolist() == [0, 1, 0, 1]


def test_realizable_takes_one_expert():
    X, y, annotations, *_ = make_regions(n_experts=1)
    y = np.where(X[:, 0] == 1, 0, y)  # certain here; elsewhere the expert never errs
    annotations = np.where(X[:, :1] == 1, 1, y[:, None])
    model = OneStageDeferral("realizable", max_epochs=60, **SETTINGS).fit(X, y, annotations=annotations)
    assert model.score(X, y, annotations=annotations) == 1
    assert not hasattr(model, "predict_expert_correctness")
    with pytest.raises(AttributeError) as error:
        _ = model.predict_expert_correctness
    assert "does not estimate how often the expert is right" in str(error.value.__cause__)
    two = np.column_stack([annotations, annotations])
    with pytest.raises(ValueError, match="exactly one expert, but annotations have 2"):
        clone(model).fit(X, y, annotations=two)


@pytest.mark.parametrize("surrogate", SURROGATES[:2])
def test_cost_is_subtracted_where_the_decision_is_made(surrogate):
    X, y, annotations, right, sure = make_regions()
    free = OneStageDeferral(surrogate, max_epochs=20, **SETTINGS).fit(X, y, annotations=annotations)
    correctness = free.predict_expert_correctness(np.eye(4))
    confidence = free.classifier_.link(logits_of(free, np.eye(4)), 2)[0].max(1)
    for cost in ([0.2, 0.0], [0.0, 0.3], [0.5, 0.5]):
        model = clone(free).set_params(consultation_cost=cost).fit(X, y, annotations=annotations)
        assert_array_equal(model.predict_expert_correctness(np.eye(4)), correctness)
        gains = np.column_stack([np.exp(confidence), correctness - cost])
        assert_array_equal(model.predict_deferral(np.eye(4)), gains.argmax(1) - 1)
        truth = np.column_stack([sure, right - cost])
        assert_array_equal(gains.argmax(1), truth.argmax(1))
    by_name = clone(free).set_params(consultation_cost={"b": 0.3})
    by_name.fit(X, y, annotations=pd.DataFrame(annotations, columns=["a", "b"]))
    in_order = clone(free).set_params(consultation_cost=[0.0, 0.3]).fit(X, y, annotations=annotations)
    assert_array_equal(by_name.predict_deferral_proba(X), in_order.predict_deferral_proba(X))
    by_name.offboard("a")  # the cost stays with its expert
    assert_array_equal(by_name.predict_deferral(np.eye(4)) == 1, correctness[:, 1] - 0.3 > np.exp(confidence))
    assert_array_equal(by_name.predict_expert_correctness(np.eye(4)), correctness[:, 1:])


def test_cost_of_the_realizable_loss_discourages_asking():
    X, y, annotations, *_ = make_regions(n_experts=1)
    shares = [
        OneStageDeferral("realizable", consultation_cost=cost, max_epochs=30, **SETTINGS)
        .fit(X, y, annotations=annotations)
        .predict_deferral_proba(X)[:, 0]
        .mean()
        for cost in (0.0, 0.3, 1.0)
    ]
    assert shares[0] > shares[1] + 0.05
    assert shares[1] > shares[2] + 0.05
    assert shares[2] < 0.1


def logits_of(model, X):
    with torch.no_grad():
        return model.net_.module_(torch.tensor(X.astype(np.float32)).double()).numpy()


@pytest.mark.parametrize("surrogate", SURROGATES[:2])
def test_answers_follow_from_the_logits(surrogate):
    rng = np.random.default_rng(0)
    X, y, annotations, *_ = make_regions(200)
    model = OneStageDeferral(surrogate, max_epochs=2, **SETTINGS).fit(X, y, annotations=annotations)
    X = 8 * rng.normal(size=(50, 4))
    g = logits_of(model, X)
    assert_array_equal(model.predict_deferral(X), np.column_stack([g[:, :2].max(1), g[:, 2:]]).argmax(1) - 1)
    assert_array_equal(model.predict(X), g[:, :2].argmax(1))
    correctness, clipped = model.predict_expert_correctness(X, return_clipped=True)
    if surrogate == "ova":
        assert_allclose(correctness, expit(g[:, 2:]), rtol=1e-9)
        assert not clipped.any()
        chances = expit(g[:, :2])
        assert_allclose(model.predict_proba(X), chances / chances.sum(1, keepdims=True), rtol=1e-9, atol=1e-12)
    else:
        t = softmax(g, axis=1)[:, 2:]
        raw = t / (1 - t.sum(1, keepdims=True))
        assert_allclose(correctness, np.minimum(raw, 1), rtol=1e-6)
        assert_array_equal(clipped, raw > 1)
        assert clipped.any()
        assert_allclose(model.predict_proba(X), softmax(g[:, :2], axis=1), rtol=1e-9, atol=1e-12)


def test_a_realizable_team_explains_its_route():
    X, y, annotations, *_ = make_regions(200, n_experts=1)
    model = OneStageDeferral("realizable", max_epochs=5, **SETTINGS).fit(X, y, annotations=annotations)
    route = model.route(X, explain=True)
    assert route["reason"].str.contains("expected to be right").all()


@pytest.mark.parametrize("surrogate", SURROGATES[:2])
def test_the_most_confident_alone_teach_who_is_best_but_not_how_good_the_others_are(surrogate):
    X, y, annotations, right, sure = make_regions(4000)
    model = OneStageDeferral(surrogate, experts="most_confident_correct", max_epochs=25, **SETTINGS)
    model.fit(X, y, annotations=annotations)
    assert model.predict_deferral(np.eye(4)).tolist() == [-1, 0, 1, -1]
    assert_allclose(model.predict_proba(np.eye(4)).max(1), sure, atol=0.05)
    # errors are independent here: the second is right where the first is wrong in 1 - right of all cases
    first = right.max(1, keepdims=True)
    alone = np.where(right == first, right, (1 - first) * right)
    assert_allclose(np.exp(model.decision_function(np.eye(4))[:, :2]), alone, atol=0.06)
    # how often somebody is right is then counted by class, as in deferrers whose nets do not estimate it
    correctness, clipped = model.predict_expert_correctness(np.eye(4), return_clipped=True)
    by_class = np.array([(annotations == y[:, None])[y == c].mean(0) for c in (0, 1)])
    assert_allclose(correctness, model.predict_proba(np.eye(4)) @ by_class, atol=0.02)
    assert not clipped.any()


def test_the_most_confident_of_one_expert_or_none_is_everybody():
    X, y, annotations, *_ = make_regions(300, n_experts=1)
    for surrogate in SURROGATES:
        for answers in (annotations, None):
            one, other = (
                OneStageDeferral(surrogate, experts=experts, max_epochs=3, **SETTINGS).fit(X, y, annotations=answers)
                for experts in ("all", "most_confident_correct")
            )
            assert_array_equal(one.predict_deferral_proba(X), other.predict_deferral_proba(X))


def test_the_most_confident_have_one_cost():
    X, y, annotations, *_ = make_regions(400)
    model = OneStageDeferral(experts="most_confident_correct", consultation_cost=[0.1, 0.2], max_epochs=2, **SETTINGS)
    with pytest.raises(ValueError, match=r"consultation_cost=\[0.1, 0.2\] differs between experts"):
        model.fit(X, y, annotations=annotations)
    model.set_params(consultation_cost=0.9).fit(X, y, annotations=annotations)
    assert (model.predict_deferral(X) == -1).all()


def test_without_experts_it_is_a_classifier():
    X, y, *_ = make_regions(500)
    for surrogate in SURROGATES:
        model = OneStageDeferral(surrogate, max_epochs=20, **SETTINGS).fit(X, y)
        assert (model.predict_deferral(X) == -1).all()
        assert model.predict(np.eye(4)).tolist() == [0, 1, 0, 1]
        assert model.n_iter_ == len(model.history_) == 20
        assert model.coverage_ == 1
    assert OneStageDeferral("ova", max_epochs=2, **SETTINGS).fit(X, y).predict_expert_correctness(X).shape == (500, 0)


def test_class_weights_multiply_the_loss_of_a_row():
    X, y, annotations, *_ = make_regions(400)
    settings = SETTINGS | {"batch_size": 1000, "max_epochs": 15, "dtype": "float64"}
    weighted = OneStageDeferral("ova", class_weight={0: 1, 1: 3}, **settings).fit(X, y, annotations=annotations)
    rows = np.repeat(np.arange(400), np.where(y == 1, 3, 1))
    repeated = OneStageDeferral("ova", **settings).fit(X[rows], y[rows], annotations=annotations[rows])
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)
    assert_allclose(weighted.predict_expert_correctness(X), repeated.predict_expert_correctness(X), rtol=1e-9)


@pytest.mark.parametrize("surrogate", SURROGATES[:2])
def test_an_expert_without_annotations_is_never_asked(surrogate):
    X, y, annotations, *_ = make_regions(300)
    silent = np.column_stack([np.full(300, -1), annotations])
    model = OneStageDeferral(surrogate, max_epochs=5, **SETTINGS)
    with pytest.warns(UserWarning, match=r"experts \[0\] have no annotation: nothing can be learnt about them"):
        model.fit(X, y, annotations=silent)
    everywhere = np.random.default_rng(0).normal(size=(500, 4)) * 10
    assert set(model.predict_deferral(everywhere)) == {-1, 1, 2}
    correctness, clipped = model.predict_expert_correctness(everywhere, return_clipped=True)
    assert_allclose(correctness[:, 0], (annotations == y[:, None]).mean())
    assert not clipped[:, 0].any()


def test_what_is_wrong_is_said_before_any_work():
    X, y, annotations, *_ = make_regions(50)
    for cost, message in (
        (-0.1, "consultation_cost=-0.1 is negative"),
        ([0.1] * 3, "consultation_cost has shape"),
        ({"nobody": 1.0}, "consultation_cost names 'nobody'"),
        (np.inf, "not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            OneStageDeferral(consultation_cost=cost, max_epochs=10**9).fit(X, y, annotations=annotations)


def test_pickled_classifier_and_net_are_one():
    X, y, annotations, *_ = make_regions(50)
    model = OneStageDeferral(max_epochs=2, **SETTINGS).fit(X, y, annotations=annotations)
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.classifier_.net is loaded.net_
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_the_most_confident_are_saved_and_loaded(tmp_path):
    X, y, annotations, *_ = make_regions(50)
    model = OneStageDeferral("ova", experts="most_confident_correct", max_epochs=4, **SETTINGS)
    model.fit(X, y, annotations=annotations).save(tmp_path / "team")
    assert_array_equal(load(tmp_path / "team").predict_deferral_proba(X), model.predict_deferral_proba(X))
