"""Forms of losses that save time, beside plain ones; losses of nets that learn from votes, written out."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from sklearn_l2d._torch import _crowd_net
from sklearn_l2d._torch._crowd_net import LogVolume, entries, log_proba_of, log_softmax, mapped, own_entries
from sklearn_l2d.crowd import (
    AggNetClassifier,
    CCEMClassifier,
    GeoCrowdNet,
    InstanceDependentCrowdNet,
    TraceRegClassifier,
)

RNG = np.random.default_rng(0)
ROW, WHO, LABEL = RNG.integers(4, size=9), RNG.integers(5, size=9), RNG.integers(3, size=9)
SCORES, F = RNG.normal(size=(5, 3, 3)), RNG.normal(size=(4, 3))


def value_and_gradients(form, *arrays):
    """What a form makes of arrays, and the gradients of a weighted sum of it."""
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    value = form(*tensors)
    weight = torch.linspace(-1, 2, value.numel(), dtype=torch.float64).reshape(value.shape)
    (weight * value).sum().backward()
    return [value.detach().numpy(), *(tensor.grad.numpy() for tensor in tensors)]


def plain_mapped(f, matrices):
    return torch.stack([f[i] @ matrices[m] for i, m in zip(ROW, WHO, strict=True)])


@pytest.mark.parametrize("most_pairs", [0, 100])
def test_rows_by_matrices_are_one_product_each(most_pairs, monkeypatch):
    monkeypatch.setattr(_crowd_net, "_MOST_PAIRS", most_pairs)
    row, who = torch.tensor(ROW), torch.tensor(WHO)
    for matrices in (SCORES, SCORES[:, :, :2]):
        got = value_and_gradients(lambda f, matrices: mapped(f, matrices, row, who), F, matrices)
        for one, other in zip(got, value_and_gradients(plain_mapped, F, matrices), strict=True):
            assert_allclose(one, other, atol=1e-12)


def test_the_axis_over_which_is_normalised_does_not_matter():
    row, who, label = map(torch.tensor, (ROW, WHO, LABEL))
    of_each = SCORES[WHO]
    for got, plain, scores in (
        (log_softmax, lambda s: s.log_softmax(-1), SCORES),
        (lambda s: entries(log_softmax(s), who, label), lambda s: s.log_softmax(-1)[who, :, label], SCORES),
        (lambda s: entries(s, who, label), lambda s: s[who, :, label], SCORES),
        (lambda s: own_entries(s, label), lambda s: s[torch.arange(9), :, label], of_each),
        (lambda s: log_proba_of(s[row], label), lambda s: s[row].log_softmax(-1)[torch.arange(9), label], F),
    ):
        for one, other in zip(value_and_gradients(got, scores), value_and_gradients(plain, scores), strict=True):
            assert_allclose(one, other, atol=1e-12)


def test_the_gradient_of_a_volume_is_that_of_the_determinant():
    rows, scale, floor = RNG.normal(size=(6, 3)), 0.4, 0.01
    gram = scale * rows.T @ rows + floor * np.eye(3)
    value, gradient = value_and_gradients(lambda rows: LogVolume.apply(rows, scale, floor), rows)
    assert_allclose(value, np.linalg.slogdet(gram)[1])
    assert_allclose(gradient, -2 * scale * rows @ np.linalg.inv(gram))  # the weight of a single value is -1
    plain = value_and_gradients(lambda r: (scale * r.T @ r + floor * torch.eye(3)).slogdet().logabsdet, rows)
    assert_allclose(gradient, plain[1])
    none = value_and_gradients(lambda rows: LogVolume.apply(rows, scale, floor), rows[:0])
    assert_allclose(none[0], 3 * np.log(floor))


# losses, written out

TRUTH = np.array([-1, -1, 1, 0, -1, 2])  # of the items of a batch; nobody answered the last two
ANSWERS = np.array([[0, 0, 2], [0, 3, 1], [1, 3, 0], [2, 2, 1], [2, 0, 2], [3, 1, 0]])


def softmax(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def joint_loss(f, matrices):
    """Of AggNet: each item that something is known of has one likelihood."""
    total, heard = 0.0, 0
    for i, truth in enumerate(TRUTH):
        each = f[i].copy()
        for _, m, label in ANSWERS[ANSWERS[:, 0] == i]:
            each *= matrices[(i, m)][:, label]
        if truth >= 0 or i in ANSWERS[:, 0]:
            total, heard = total - np.log(each[truth] if truth >= 0 else each.sum()), heard + 1
    return total / heard


def coupled_loss(f, matrices):
    """Of CCEM: each answer and each known truth has a likelihood."""
    total = sum(-np.log(f[i, truth]) for i, truth in enumerate(TRUTH) if truth >= 0)
    for i, m, label in ANSWERS:
        of_label = matrices[(i, m)][:, label]
        total -= np.log(of_label[TRUTH[i]] if TRUTH[i] >= 0 else f[i] @ of_label)
    return total / (len(ANSWERS) + np.sum(TRUTH >= 0))


def traced(f, matrices):
    people = [matrices[(0, m)] for m in range(4)]
    return coupled_loss(f, matrices) + 0.5 * np.mean([np.diag(matrix).mean() for matrix in people])


def traced_by_answer(f, matrices):
    n = len(ANSWERS) + np.sum(TRUTH >= 0)
    return coupled_loss(f, matrices) + 0.5 * sum(np.diag(matrices[(i, m)]).mean() for i, m, _ in ANSWERS) / n


def spread(f, matrices):
    return coupled_loss(f, matrices) - 0.5 * np.linalg.slogdet(0.01 * np.eye(3) + 3 * f.T @ f / len(f))[1]


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (AggNetClassifier(), joint_loss),
        (CCEMClassifier(), coupled_loss),
        (TraceRegClassifier(0.5), traced),
        (InstanceDependentCrowdNet(0.5, n_components=2), traced_by_answer),
        (GeoCrowdNet("F", weight=0.5), spread),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_loss_and_gradient_written_out(model, loss):
    rng = np.random.default_rng(1)
    X, votes = rng.normal(size=(30, 2)), rng.integers(3, size=(30, 4))
    votes[0, :3] = 0, 1, 2
    model.set_params(hidden_layer_sizes=(), max_epochs=3, dtype="float64", random_state=0)
    model.fit(X, annotations=votes)
    net, items, log_odds = model.net_, torch.tensor(X[:6]), rng.normal(size=(6, 3))
    with torch.no_grad():
        if model.get_params().get("n_components"):
            net.module_.item_effects.copy_(torch.tensor(rng.normal(size=net.module_.item_effects.shape)))
            start, effects = net.module_.log_confusion().numpy(), net.module_.item_effects.numpy()
            parts = np.tanh(net.module_.embed(items)[0].numpy())
            of_pair = {
                (i, m): softmax(start[m] + (parts[i] @ effects[m]).reshape(3, 3)) for i in range(6) for m in range(4)
            }
        else:
            of_pair = {(i, m): model.confusion_matrices_[m] for i in range(6) for m in range(4)}
    logits = torch.tensor(log_odds, requires_grad=True)
    got = net.batch_loss(logits, (torch.tensor(ANSWERS), torch.tensor(TRUTH)), items)
    got.backward()
    assert_allclose(got.item(), loss(softmax(log_odds), of_pair))
    step, expected = 1e-6, np.zeros_like(log_odds)
    for place in np.ndindex(log_odds.shape):
        moved = np.zeros_like(log_odds)
        moved[place] = step
        ends = (loss(softmax(log_odds + sign * moved), of_pair) for sign in (1, -1))
        expected[place] = np.subtract(*ends) / (2 * step)
    assert_allclose(logits.grad, expected, atol=1e-8)
