"""Completion of annotations by FixMatch and MixMatch, and the deferrer that learns from them."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.deferral import ProbabilisticDeferral, SemiSupervisedDeferral
from sklearn_l2d.deferral._completion import AugmentedRows, FixMatchNet, MixedRows, MixMatchNet, tabular_views


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
    net = FixMatchNet.__new__(FixMatchNet)
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


def mixmatch_loss(codes, share, order, sharpening, weight=0.7):
    """Loss of two nets, linear in the items, by the class and by hand."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 5, 4))
    coef = rng.normal(size=(2, 4, 3))
    net = MixMatchNet.__new__(MixMatchNet)
    vars(net).update(
        sharpening=sharpening,
        unlabeled_weight=2 * weight,
        progress=0.5,
        device="cpu",
        infer=lambda X: X @ torch.as_tensor(coef),
        order=lambda n: torch.as_tensor(order),
    )
    targets = (torch.as_tensor(part) for part in (codes, np.ones(5), second, share))
    loss = net.batch_loss(net.infer(torch.as_tensor(first)), tuple(targets), torch.as_tensor(first))

    def softmax(logits):
        return np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)

    expected, mixed = 0.0, share[:, None] * first + (1 - share[:, None]) * second[order]
    for m in range(2):
        labels = (softmax(first @ coef[m]) + softmax(second @ coef[m])) / 2
        labels = labels ** (1 / sharpening) / (labels ** (1 / sharpening)).sum(1, keepdims=True)
        known = codes[:, m] >= 0
        labels[known] = np.eye(3)[codes[known, m]]
        labels = share[:, None] * labels + (1 - share[:, None]) * labels[order]
        proba = softmax(mixed @ coef[m])
        if known.any():
            expected -= (labels * np.log(proba)).sum(1)[known].mean()
        if not known.all():
            expected += weight * ((proba - labels) ** 2).sum(1)[~known].mean()
    return loss.item(), expected


SHARES, ORDER = np.array([0.9, 0.6, 0.5, 1.0, 0.75]), np.array([2, 0, 1, 4, 3])


def test_the_loss_of_mixmatch_by_hand():
    codes = np.array([[0, -1], [-1, 2], [-1, -1], [1, 1], [-1, 0]])
    loss, expected = mixmatch_loss(codes, SHARES, ORDER, 0.5)
    assert loss == pytest.approx(expected)


def test_mixmatch_without_gaps_is_supervised_mixup():
    codes = np.array([[0, 1], [2, 2], [1, 0], [1, 1], [2, 0]])
    losses = {mixmatch_loss(codes, SHARES, ORDER, sharpening, weight) for sharpening, weight in ((0.5, 0.7), (1, 9.0))}
    assert len(losses) == 1  # neither guesses nor their weight matter
    loss, expected = losses.pop()
    assert loss == pytest.approx(expected)


def test_mixmatch_that_mixes_and_sharpens_nothing_learns_plain_guesses():
    codes = np.full((5, 2), -1)
    alone = mixmatch_loss(codes, np.ones(5), ORDER, 1.0)
    assert alone[0] == pytest.approx(alone[1])
    rows = MixedRows(
        X, GAPS, np.ones(150), mixing=0.0, views=[("weak", same)] * 2, rng=np.random.default_rng(0), dtype=torch.float64
    )
    assert_array_equal(rows[torch.arange(9)][1][-1], np.ones(9))


def test_shares_of_mixtures_are_the_larger_part_of_a_beta_variable():
    rows = MixedRows(
        X, GAPS, np.ones(150), mixing=0.75, views=[("weak", same)] * 2, rng=np.random.default_rng(0),
        dtype=torch.float64,
    )  # fmt: skip
    share = np.concatenate([rows[torch.arange(150)][1][-1] for _ in range(40)])
    drawn = stats.beta(0.75, 0.75)
    assert stats.kstest(share, lambda x: drawn.cdf(x) - drawn.cdf(1 - x)).pvalue > 0.01


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
        views=[("weak", lambda X, rng: X + rng.normal(size=X.shape)), ("strong", lambda X, rng: -X)],
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
    labelled = np.random.default_rng(0).permutation(150)[:6]
    few[labelled] = ANSWERS[labelled]
    agreement = {}
    for completion in ("fixmatch", "mixmatch"):
        for weight in (0.0, 1.0):
            model = make(completion=completion, unlabeled_weight=weight, answer_epochs=30, max_epochs=1)
            proba = model.fit(X, Y, few, X_unlabeled=NEW_X).predict_annotation_proba(NEW_X)[:, 0]
            agreement[completion, weight] = proba[np.arange(300), NEW_Y].mean()
        assert agreement[completion, 1.0] > agreement[completion, 0.0] + 0.01


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
