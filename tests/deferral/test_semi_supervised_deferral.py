"""Completion of annotations by FixMatch, and the deferrer that learns from them."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.deferral import ProbabilisticDeferral, SemiSupervisedDeferral
from sklearn_l2d.deferral._semi_supervised_deferral import AugmentedRows, CompletionNet, tabular_views


def make_items(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 4)) + 4 * np.eye(3, 4)[y], y


def same(X, rng):
    return X


X, Y = make_items(150, 0)
NEW_X, NEW_Y = make_items(300, 1)
ANSWERS = np.column_stack([Y, (Y + 1) % 3])  # an expert who knows, and one who names the next class
GAPS = np.where(np.random.default_rng(2).random(ANSWERS.shape) < 0.5, -1, ANSWERS)
FAST = {"batch_size": 32, "max_epochs": 10, "answer_epochs": 20, "coverage": 0.3, "dtype": "float64", "random_state": 0}


@pytest.fixture(scope="module")
def make():
    weak = FrozenEstimator(LogisticRegression(C=0.02).fit(X[:20], Y[:20]))
    return lambda **params: SemiSupervisedDeferral(**({"classifier": weak} | FAST | params))


def test_the_loss_by_hand():
    rng = np.random.default_rng(0)
    logits, logits_strong = rng.normal(size=(2, 2, 5, 3)) * 2  # two experts, five items
    codes = np.array([[0, -1], [-1, 2], [-1, -1], [1, 1], [-1, 0]])
    net = CompletionNet.__new__(CompletionNet)
    vars(net).update(threshold=0.6, unlabeled_weight=0.7, infer=lambda X: torch.as_tensor(logits_strong))
    loss = net.batch_loss(torch.as_tensor(logits), (torch.as_tensor(codes), torch.ones(len(codes)), None), None)
    weak, strong = (np.exp(part) / np.exp(part).sum(-1, keepdims=True) for part in (logits, logits_strong))
    expected, n_sure = 0.0, 0
    for m in range(2):
        known = np.flatnonzero(codes[:, m] >= 0)
        expected -= np.mean([np.log(weak[m, i, codes[i, m]]) for i in known])
        unknown = np.flatnonzero(codes[:, m] < 0)
        sure = [i for i in unknown if weak[m, i].max() >= 0.6]
        expected -= 0.7 * sum(np.log(strong[m, i, weak[m, i].argmax()]) for i in sure) / len(unknown)
        n_sure += len(sure)
    assert 0 < n_sure < (codes < 0).sum()
    assert loss.item() == pytest.approx(expected)


def test_default_views_are_noise_and_masks():
    items = np.random.default_rng(0).normal(5, [1, 100, 1e200], size=(4000, 3))
    weak, strong = (view(items, np.random.default_rng(1)) for view in tabular_views(items))
    scale = np.array([1, 100, 1e200])
    assert_allclose(((weak - items) / scale).std(0), 0.1, rtol=0.05)
    masked = strong == items.mean(0)
    assert_allclose(masked.mean(0), 0.2, atol=0.03)
    kept = np.where(masked, np.nan, (strong - items) / scale)
    assert_allclose(np.nanstd(kept, axis=0), 0.3, rtol=0.05)


def test_every_batch_has_fresh_views_of_the_same_rows():
    rows = AugmentedRows(
        X,
        GAPS,
        np.arange(len(X)),
        weak=lambda X, rng: X + rng.normal(size=X.shape),
        strong=lambda X, rng: -X,
        rng=np.random.default_rng(0),
        dtype=torch.float64,
    )
    index = torch.tensor([3, 1])
    (one, (codes, weight, strong)), (two, _) = rows[index], rows[index]
    assert_array_equal(codes, GAPS[[3, 1]])
    assert_array_equal(weight, [3, 1])
    assert_array_equal(strong, -X[[3, 1]])
    assert (one != two).all()
    assert_array_equal(rows.arrays[0], X)


def test_what_is_missing_is_completed_and_the_gate_takes_it_for_given(make):
    model = make(prior_weight=0.0).fit(X, Y, GAPS, X_unlabeled=NEW_X)  # the prior counts given answers only
    guesses = model.predict_annotation_proba(X).argmax(2)
    assert (guesses == ANSWERS).mean(0).min() > 0.9  # the next class is wrong, yet predictable
    complete = np.where(GAPS >= 0, GAPS, guesses)
    rival = ProbabilisticDeferral(missing="naive", classifier=model.classifier, prior_weight=0.0, **FAST)
    rival.fit(X, Y, complete, X_unlabeled=NEW_X)
    assert_allclose(model.predict_deferral_proba(NEW_X), rival.predict_deferral_proba(NEW_X))
    assert (model.predict_deferral(NEW_X) != 1).all()
    assert model.coverage_ == pytest.approx(0.3, abs=0.01)


def test_unlabelled_items_teach_the_nets(make):
    few = np.full_like(ANSWERS, -1)
    labelled = np.random.default_rng(0).permutation(150)[:12]
    few[labelled] = ANSWERS[labelled]
    agreement = {}
    for name, weight in (("supervised", 0.0), ("fixmatch", 1.0)):
        model = make(unlabeled_weight=weight, answer_epochs=30, max_epochs=1).fit(X, Y, few, X_unlabeled=NEW_X)
        proba = model.predict_annotation_proba(NEW_X)[:, 0]
        agreement[name] = proba[np.arange(300), NEW_Y].mean()
    assert agreement["fixmatch"] > agreement["supervised"] + 0.01


def test_own_augmentations_are_used(make):
    seen = []

    def note(X, rng):
        seen.append(len(X))
        return X

    make(weak_augmentation=same, strong_augmentation=note, answer_epochs=2).fit(X, Y, GAPS, X_unlabeled=NEW_X)
    assert sum(seen[1:]) == 2 * 450  # the first call is a trial


@pytest.mark.parametrize("name", ["weak_augmentation", "strong_augmentation"])
def test_augmentations_must_return_items_of_the_same_shape(make, name):
    class Untouched(LogisticRegression):
        def fit(self, X, y):
            raise AssertionError("work has begun")

    with pytest.raises(ValueError, match=rf"{name} turned a batch of shape \(2, 4\) into shape \(2, 3\)"):
        make(classifier=Untouched(), **{name: lambda X, rng: X[:, :3]}).fit(X, Y, GAPS)
    with pytest.raises(ValueError, match=rf"{name} turned a batch of shape \(\d+, 4\)"):
        make(**{name: lambda X, rng: X[:2]}).fit(X, Y, GAPS)  # well for two rows only


def test_feedback_with_gaps_is_completed_too(make):
    model = make().fit(X, Y, GAPS)
    gaps, complete = (make().fit(X, Y, GAPS) for _ in range(2))
    filled = np.where(GAPS >= 0, GAPS, model.predict_annotation_proba(X).argmax(2))
    gaps.partial_fit(X, Y, GAPS)
    complete.partial_fit(X, Y, filled)
    assert_array_equal(gaps.predict_deferral_proba(NEW_X), complete.predict_deferral_proba(NEW_X))
    gaps.offboard(0)
    assert gaps.predict_annotation_proba(NEW_X).shape == (300, 1, 3)
    assert (gaps.partial_fit(X, Y, GAPS[:, 1:]).predict_deferral(NEW_X) != 0).all()


def test_an_expert_without_annotations_is_named(make):
    silent = GAPS.copy()
    silent[:, 0] = -1
    with pytest.warns(UserWarning, match=r"the experts \[0\] have no annotation: their nets learn nothing"):
        make(answer_epochs=1, max_epochs=1).fit(X, Y, silent)
