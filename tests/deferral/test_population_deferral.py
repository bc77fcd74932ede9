"""PopulationDeferral: newcomers by examples, several experts at test time, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from _instances import make_crowd
from joblib import dump
from joblib import load as load_mapped
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from sklearn_l2d import load
from sklearn_l2d.deferral import PopulationDeferral

FAST = {"hidden_layer_sizes": (6,), "context_layer_sizes": (6,), "rejector_layer_sizes": (6,), "random_state": 0}
SHORT = {**FAST, "n_classifier_epochs": 2, "max_epochs": 3}


def make_world(n=400, seed=0):
    """Classes that overlap, and 14 experts: the even ones are always right, the odd ones always wrong."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) + np.eye(3, 4)[y]
    wrong = (y[:, None] + rng.integers(1, 3, size=(n, 14))) % 3
    answers = np.where(np.arange(14) % 2 == 0, y[:, None], wrong)
    return X, y, pd.DataFrame(np.where(rng.random((n, 14)) < 0.5, answers, -1), columns=list("abcdefghijklmn"))


X, Y, ANSWERS = make_world()
SEEN, NEW = list("abcdefghij"), list("klmn")


@pytest.fixture(scope="module", params=["mean", "attention"])
def fitted(request):
    model = PopulationDeferral(8, pooling=request.param, n_classifier_epochs=5, max_epochs=25, **FAST)
    return model.fit(X, Y, annotations=ANSWERS[SEEN])


def copy_of(model):
    return model._copy_with()


def scores(model, names):
    """What is preferred of each expert over the classifier, as log odds."""
    proba = model.predict_deferral_proba(X[:50])
    place = {name: k for k, name in enumerate(model.targets_)}
    return np.log(proba[:, [place[name] for name in names]]) - np.log(proba[:, [-1]])


def test_newcomers_who_are_right_are_asked_and_those_who_are_wrong_are_not(fitted):
    new_X, new_y, answers = make_world(60, seed=1)
    model = copy_of(fitted).onboard(NEW, new_X, answers[NEW], new_y)
    assert model.expert_codes_.shape == (14, 8)
    alone = {}
    for name in NEW:
        single = copy_of(model).offboard([other for other in model.experts_ if other != name])
        assert set(np.unique(single.assign_experts(X))) <= {-1, 0}
        alone[name] = (single.predict_deferral(X) >= 0).mean()
    assert min(alone["k"], alone["m"]) > 0.8
    assert max(alone["l"], alone["n"]) < 0.2
    together = copy_of(model).offboard(SEEN)
    workload = pd.Series(np.bincount(together.assign_experts(X) + 1, minlength=5) / len(X), ["", *NEW])
    assert workload[["k", "m"]].sum() > 0.8
    assert workload[["l", "n"]].sum() < 0.02


def test_the_same_examples_make_the_same_expert(fitted):
    model = copy_of(fitted).onboard("twin of c", X, ANSWERS["c"].to_numpy()[:, None], Y)
    assert_allclose(model.expert_codes_[-1], model.expert_codes_[2], rtol=1e-9)
    assert_allclose(scores(model, ["twin of c"]), scores(model, ["c"]), rtol=1e-9)
    assert_allclose(scores(model, SEEN), scores(fitted, SEEN), rtol=1e-9)  # others do not matter
    # anew under the same name, as somebody else
    model.onboard("twin of c", X, ANSWERS["d"].to_numpy()[:, None], Y)
    assert_allclose(scores(model, ["twin of c"]), scores(model, ["d"]), rtol=1e-9)
    assert model.n_experts_ == 11


def test_order_and_names_of_experts_do_not_matter(fitted):
    order, names = ["m", "k", "n", "l"], ["k", "l", "m", "n"]
    one = copy_of(fitted).onboard(names, X, ANSWERS[names], Y)
    other = copy_of(fitted).onboard(order, X, ANSWERS[order], Y)
    assert_allclose(scores(other, names), scores(one, names), rtol=1e-9)
    renamed = copy_of(fitted).onboard(["p", "q"], X, ANSWERS[["k", "l"]].to_numpy(), Y)
    assert_allclose(scores(renamed, ["p", "q"]), scores(one, ["k", "l"]), rtol=1e-9)


def test_who_has_left_is_not_asked_and_may_come_back(fitted):
    model = copy_of(fitted).offboard("a")
    assert model.expert_codes_.shape == (9, 8)
    assert_array_equal(model.expert_codes_, fitted.expert_codes_[1:])
    assert not (model.predict_deferral(X) == 0).any()
    back = model.onboard("a", X, ANSWERS[["a"]], Y)
    assert_array_equal(back.targets_, fitted.targets_)
    assert_allclose(scores(back, SEEN), scores(fitted, SEEN), rtol=1e-9)


def test_the_largest_logit_decides(fitted):
    deferral = fitted.predict_deferral(X)
    proba = fitted.predict_deferral_proba(X)
    assert_array_equal(deferral, np.where(proba.argmax(1) == 10, -1, proba.argmax(1)))
    classes = fitted.predict_proba(X)
    assert_allclose(classes.sum(1), 1)
    assert_array_equal(fitted.classes_[classes.argmax(1)], fitted.predict(X))
    assert fitted.coverage_ == pytest.approx((deferral == -1).mean())


def test_of_somebody_without_answers_the_mean_is_expected():
    crowd = make_crowd()
    crowd.annotations[:, 2] = -1
    with pytest.warns(UserWarning, match="taken for the mean of the others"):
        model = PopulationDeferral(3, **SHORT).fit(crowd.X, crowd.y, annotations=crowd.annotations)
    mean = model.expert_codes_[[0, 1, 3, 4]].mean(0)
    assert_allclose(model.expert_codes_[2], mean)
    model.onboard("silent", crowd.X, crowd.annotations[:, [2]], crowd.y)
    assert_allclose(model.expert_codes_[-1], mean)


def test_without_experts_there_is_a_classifier():
    crowd = make_crowd()
    model = PopulationDeferral(3, lr=0.03, **{**SHORT, "max_epochs": 30}).fit(crowd.X, crowd.y)
    assert model.score(crowd.X, crowd.y) > 0.7
    assert model.coverage_ == 1
    assert model.expert_codes_.shape == (0, 3)
    with pytest.raises(ValueError, match="fitted without experts"):
        model.onboard("a", crowd.X, crowd.annotations[:, [0]], crowd.y)


def make_halves(n, good, seed):
    """Classes that nobody can guess, and experts who are right on the halves of the items where `good` (M, 2) is 1."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 4)), rng.integers(3, size=n)
    right = rng.random((n, len(good))) < np.where(good[:, (X[:, 0] > 0).astype(int)].T, 0.95, 0.05)
    return X, y, np.where(right, y[:, None], (y[:, None] + 1) % 3)


def test_attention_sees_on_which_half_of_the_items_a_newcomer_is_right():
    X, y, answers = make_halves(300, np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (4, 1)), seed=0)
    new_X, new_y, new_answers = make_halves(60, np.array([[1, 0], [0, 1]]), seed=1)
    grid = np.column_stack([np.linspace(-2, 2, 100), np.zeros((100, 3))])
    agreement = {}
    for pooling in ("mean", "attention"):
        model = PopulationDeferral(4, pooling=pooling, lr=0.01, n_classifier_epochs=1, max_epochs=30, random_state=0)
        model.fit(X, y, annotations=answers).onboard(["low", "high"], new_X, new_answers, new_y)
        model.offboard(list(range(16)))
        low, high = (copy_of(model).offboard(other).predict_deferral(grid) >= 0 for other in ("high", "low"))
        agreement[pooling] = np.mean([low == (grid[:, 0] <= 0), high == (grid[:, 0] > 0)])
    assert agreement["attention"] > 0.9
    assert agreement["mean"] < 0.75


def test_with_attention_an_item_alone_is_as_in_a_batch_and_a_team_is_saved(tmp_path):
    crowd = make_crowd()
    model = PopulationDeferral(3, pooling="attention", **SHORT)
    model.fit(crowd.X, crowd.y, annotations=crowd.annotations)
    together = model.decision_function(crowd.X)
    assert_allclose(np.concatenate([model.decision_function(crowd.X[[i]]) for i in range(9)]), together[:9], rtol=1e-9)
    model.save(tmp_path / "team")
    restored = load(tmp_path / "team")
    assert_allclose(restored.decision_function(crowd.X), together, rtol=1e-12)
    dump(model, tmp_path / "mapped")  # whose arrays are read-only
    assert_allclose(load_mapped(tmp_path / "mapped", mmap_mode="r").decision_function(crowd.X), together, rtol=1e-12)
    restored.onboard("more", np.tile(crowd.X, (2, 1)), np.tile(crowd.annotations[:, [0]], (2, 1)), np.tile(crowd.y, 2))
    assert_allclose(restored.decision_function(crowd.X)[:, 5], together[:, 0], rtol=1e-6)  # twice the same examples


class Convolutions(nn.Module):
    """One convolution on one-channel images."""

    def __init__(self, n_outputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(3, n_outputs))

    def forward(self, X):
        return self.layers(X)


def test_images():
    crowd = make_crowd()
    images = crowd.X.reshape(60, 1, 2, 2)
    model = PopulationDeferral(3, module=Convolutions, **SHORT).fit(images, crowd.y, annotations=crowd.annotations)
    model.onboard("new", images[:20], crowd.annotations[:20, [0]], crowd.y[:20])
    assert model.predict_deferral_proba(images).shape == (60, 7)


def test_what_is_wrong_is_said(fitted):
    crowd = make_crowd()
    with pytest.raises(ValueError, match="y is None, but newcomers are judged by what they got right"):
        fitted.onboard(["k"], X, ANSWERS[["k"]])
    with pytest.raises(ValueError, match="hidden_layer_sizes is empty"):
        PopulationDeferral(hidden_layer_sizes=(), max_epochs=10**9).fit(crowd.X, crowd.y, crowd.annotations)
    with pytest.raises(ValueError, match="'pooling' parameter"):
        PopulationDeferral(pooling="max").fit(crowd.X, crowd.y, crowd.annotations)
