"""Comparisons: the likelihood by scipy and by hand, the limits of reliability, and flips at a known rate."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad, minimize
from scipy.stats import spearmanr

import sklearn_l2d
from sklearn_l2d.aggregation import BradleyTerry
from sklearn_l2d.aggregation._bradley_terry import comparison_loss


def simulate(n_items=8, reliability=(1.0,), n_each=400, random_state=0):
    rng = np.random.default_rng(random_state)
    scores = np.linspace(-1.5, 1.5, n_items)
    who = np.repeat(np.arange(len(reliability)), n_each)
    pairs = np.array([rng.choice(n_items, 2, replace=False) for _ in who])
    wins = rng.random(len(who)) < 1 / (1 + np.exp(scores[pairs[:, 1]] - scores[pairs[:, 0]]))
    wins ^= rng.random(len(who)) >= np.array(reliability)[who]
    return np.where(wins[:, None], pairs, pairs[:, ::-1]), who, scores


def plain(pairs, n_items, alpha):
    """Maximum of the penalised likelihood, by another optimiser."""

    def loss(s):
        return np.log1p(np.exp(s[pairs[:, 1]] - s[pairs[:, 0]])).sum() + alpha * (s @ s) / 2

    return minimize(loss, np.zeros(n_items), method="BFGS", options={"gtol": 1e-5}).x


def test_honest_people_give_the_plain_maximum():
    pairs, who, _ = simulate()
    expected = plain(pairs, 8, 0.01)
    for model in (BradleyTerry(), BradleyTerry({0: 1.0})):
        assert_allclose(model.fit(pairs, annotators=who).scores_, expected - expected.mean(), atol=1e-3)
    choix = pytest.importorskip("choix")
    assert_allclose(choix.opt_pairwise(8, pairs, alpha=0.005), model.scores_, atol=1e-3)


def test_two_items_have_a_closed_form():
    model = BradleyTerry(alpha=1e-9).fit([["a", "b"]] * 3 + [["b", "a"]])
    assert_allclose(model.predict_proba([["a", "b"], ["b", "a"]]), [0.75, 0.25], atol=1e-4)
    corrected = BradleyTerry(flip_rate=0.1, alpha=1e-9).fit([["a", "b"]] * 3 + [["b", "a"]])
    assert_allclose(corrected.predict_proba([["a", "b"]]), [(0.75 - 0.1) / 0.8], atol=1e-4)


def test_who_knows_nothing_has_no_influence_and_liars_are_reversed():
    pairs, who, _ = simulate(reliability=(1.0, 0.5, 0.0))
    model = BradleyTerry({0: 1.0, 1: 0.5, 2: 0.0}).fit(pairs, annotators=who)
    turned = np.where((who == 2)[:, None], pairs[:, ::-1], pairs)[who != 1]
    assert_allclose(model.scores_, BradleyTerry().fit(turned).scores_, atol=1e-4)


def test_reliabilities_are_recovered():
    pairs, who, scores = simulate(reliability=(0.95, 0.9, 0.55, 0.1), n_each=800)
    names = np.array(["ann", "bob", "eve", "liar"], dtype=object)
    model = BradleyTerry("estimate").fit(pairs, annotators=names[who])
    assert model.annotators_.tolist() == names.tolist()
    assert_allclose(model.reliability_, [0.95, 0.9, 0.55, 0.1], atol=0.12)
    assert np.diff(model.history_).min() > -1e-6
    assert spearmanr(model.scores_, scores)[0] > 0.95
    assert np.abs(model.scores_ - scores).mean() < np.abs(BradleyTerry().fit(pairs).scores_ - scores).mean()


def test_the_corrected_loss_is_unbiased():
    rng = np.random.default_rng(0)
    scores, winner, loser = rng.normal(size=3), np.array([0, 1, 0]), np.array([1, 2, 2])
    clean, gradient = comparison_loss(scores, winner, loser, np.ones(3), 0.0, 0.0)
    mean, slope = 0.0, np.zeros(3)
    for flips in np.ndindex(2, 2, 2):
        turned = np.array(flips, dtype=bool)
        share = np.prod(np.where(turned, 0.2, 0.8))
        sides = np.where(turned, loser, winner), np.where(turned, winner, loser)
        loss, pull = comparison_loss(scores, *sides, np.ones(3), 0.2, 0.0)
        mean, slope = mean + share * loss, slope + share * pull
    assert_allclose(mean, clean)
    assert_allclose(slope, gradient)


@pytest.mark.parametrize("flip_rate", [0.0, 0.3])
def test_the_gradient_is_that_of_the_loss(flip_rate):
    pairs, who, _ = simulate(reliability=(0.9, 0.2), n_each=20)
    arguments = *pairs.T, np.array([0.9, 0.2])[who], flip_rate, 0.1
    point = np.random.default_rng(1).normal(size=8)
    assert check_grad(*(lambda s, k=k: comparison_loss(s, *arguments)[k] for k in (0, 1)), point) < 1e-4


def test_items_that_always_win_stay_finite_and_names_are_kept(tmp_path):
    table = pd.DataFrame([["x", "y"], ["y", "z"], ["x", "z"]], columns=["winner", "loser"])
    model = BradleyTerry(flip_rate=0.2).fit(table)
    assert np.isfinite(model.scores_).all()
    assert model.ranking().tolist() == ["x", "y", "z"]
    pytest.importorskip("skops", reason="skops is in the extras named save and test")
    model.save(tmp_path / "file")
    assert_array_equal(sklearn_l2d.load(tmp_path / "file").predict_proba(table), model.predict_proba(table))


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        (BradleyTerry(), ([["a", "a"]],), "with itself"),
        (BradleyTerry(), ([["a", "b", "c"]],), "names of two items"),
        (BradleyTerry(), ([["a", None]],), "missing item"),
        (BradleyTerry(), ([["a", "b"]], None, ["x", "y"]), "inconsistent"),
        (BradleyTerry({"x": 0.9}), ([["a", "b"]], None, ["y"]), r"lacks \['y'\]"),
        (BradleyTerry({"x": 1.9}), ([["a", "b"]], None, ["x"]), "probabilities"),
        (BradleyTerry("estimate", flip_rate=0.1), ([["a", "b"]],), "leave one out"),
        (BradleyTerry(flip_rate=0.5), ([["a", "b"]],), "flip_rate"),
    ],
)
def test_bad_input_is_refused(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*arguments)
