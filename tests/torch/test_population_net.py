"""The net of L2D-Pop, piece by piece, against loops over items, experts and examples."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_l2d._torch import _population_net
from sklearn_l2d._torch._batches import Rows
from sklearn_l2d._torch._population_net import (
    Contexts,
    build_population_net,
    expert_codes,
    expert_examples,
    fit_population_net,
    predict_population,
)
from sklearn_l2d._torch._seeding import OwnRandom, own_generator
from sklearn_l2d.annotations import encode_votes

N, M, C = 30, 4, 3
PARAMS = {
    "module": None,
    "hidden_layer_sizes": (6, 4),
    "code_size": 2,
    "context_layer_sizes": (5,),
    "rejector_layer_sizes": (3,),
    "dtype": "float64",
    "optimizer": "sgd",
    "lr": 0.1,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "batch_size": 8,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, C, size=(N, M)).astype(np.int8)
    codes[:, 2] = -1
    codes[5, 2], codes[:, 3] = 1, -1  # one answer only, and none
    return rng.normal(size=(N, 5)), rng.integers(0, C, size=N), codes


@pytest.fixture
def net(data):
    return build_population_net(PARAMS, data[0], C, seed=0)


def votes_of(codes):
    return encode_votes(codes, classes=range(C))


def rows_of(data):
    X, y, codes = data
    return Rows(X, y, codes, np.arange(N), np.ones(N), dtype=torch.float64)


def features_of(net, x):
    with torch.no_grad():
        return net.module_(torch.as_tensor(x[None]))[1][0]


def encoded(net, x, y, answer):
    """One example, by hand."""
    module = net.module_
    parts = [features_of(net, x), module.truth.weight[y].double(), module.answer.weight[answer].double()]
    return module.example(torch.cat(parts)[None])[0][0].detach().numpy()


def test_a_code_is_the_mean_over_all_answers(net, data, monkeypatch):
    X, y, codes = data
    expected = [
        np.mean([encoded(net, X[i], y[i], int(codes[i, m])) for i in np.flatnonzero(codes[:, m] >= 0)] or [[0, 0]], 0)
        for m in range(M)
    ]
    assert_allclose(expert_codes(net, X, y, votes_of(codes)), expected, rtol=1e-10)
    monkeypatch.setattr(_population_net, "_CHUNK", 7)
    assert_allclose(expert_codes(net, X, y, votes_of(codes)), expected, rtol=1e-10)
    order = np.random.default_rng(1).permutation(N)
    assert_allclose(expert_codes(net, X[order], y[order], votes_of(codes[order])), expected, rtol=1e-10)
    assert_array_equal(expert_codes(net, X, y, votes_of(np.full_like(codes, -1))), np.zeros((M, 2)))


@pytest.fixture
def attentive(data):
    """A net with attention, whose queries are no longer zero."""
    net = build_population_net(PARAMS, data[0], C, seed=0, pooling="attention")
    net.module_.query.weights[0].data = torch.as_tensor(np.random.default_rng(3).normal(0, 3, size=(1, 4, 2)))
    return net


def attended(net, x, items, examples, weight):
    """Code of an expert as an item sees it, by hand."""
    query = net.module_.query(features_of(net, x)[None])[0][0].detach().numpy()
    keys = np.array([net.module_.key(features_of(net, item)[None])[0][0].detach().numpy() for item in items])
    share = np.exp(keys @ query / np.sqrt(2)) * weight
    return share @ examples / share.sum()


def test_attention_goes_from_the_item_to_the_examples(attentive, data, monkeypatch):
    X, y, codes = data
    weight = np.random.default_rng(0).uniform(0.5, 2, N)
    examples = expert_examples(attentive, X, y, votes_of(codes), weight)
    assert [len(table) for table in examples] == (codes >= 0).sum(0).tolist()
    examples = examples[:3]  # without the silent one
    deferral = predict_population(attentive, X, examples)[1]
    for m in (0, 1, 2):
        rows = np.flatnonzero(codes[:, m] >= 0)
        each = np.array([encoded(attentive, X[i], y[i], int(codes[i, m])) for i in rows])
        seen = np.array([attended(attentive, x, X[rows], each, weight[rows]) for x in X])
        assert m == 2 or np.ptp(seen, 0).min() > 0.02  # it depends on the item; one example has all the weight
        for i in range(0, N, 9):
            alone = predict_population(attentive, X[[i]], seen[[i]])[1]
            assert_allclose(deferral[i, m], alone[0, 0], rtol=1e-9)
    monkeypatch.setattr(_population_net, "_CHUNK", 7)
    assert_allclose(predict_population(attentive, X, examples)[1], deferral, rtol=1e-9)


def test_attention_of_items_that_look_alike_is_pooling_by_one_query(attentive, data):
    X, y, codes = data
    alike = np.tile(X[[4]], (N, 1))
    rows = np.flatnonzero(codes[:, 0] >= 0)
    each = np.array([encoded(attentive, X[i], y[i], int(codes[i, 0])) for i in rows])
    by_one_query = attended(attentive, X[4], X[rows], each, np.ones(len(rows)))
    examples = expert_examples(attentive, X, y, votes_of(codes))
    deferral = predict_population(attentive, alike, examples[:1])[1]
    assert_allclose(deferral, predict_population(attentive, alike, by_one_query[None])[1], rtol=1e-9)
    # an expert whose examples all look alike has the mean code
    answers, examples = codes[:, :1], expert_examples(attentive, alike, y, votes_of(codes[:, :1]))
    mean = expert_codes(attentive, alike, y, votes_of(answers))
    assert_allclose(predict_population(attentive, X, examples)[1], predict_population(attentive, X, mean)[1], rtol=1e-9)


def test_attention_starts_as_the_mean(data):
    X, y, codes = data
    net = build_population_net(PARAMS, X, C, seed=0, pooling="attention")
    arguments = net, X, y, votes_of(codes[:, :3])
    by_mean = predict_population(net, X, expert_codes(*arguments))[1]
    assert_allclose(predict_population(net, X, expert_examples(*arguments))[1], by_mean, rtol=1e-9)


def test_attention_in_training_is_over_the_examples_in_use(attentive, data):
    X, y, codes = data
    rows = np.flatnonzero(codes[:, 0] >= 0)[:6]
    each = np.array([encoded(attentive, X[i], y[i], int(codes[i, 0])) for i in rows])
    attentive.contexts = Contexts(rows_of(data), votes_of(codes), 6, 4)
    items, used = torch.as_tensor(rows).expand(2, 6), torch.tensor([[1, 1, 1, 0, 0, 0], [0] * 6]).bool()
    answers, at = torch.as_tensor(codes[rows, 0].astype(int)).expand(2, 6), torch.as_tensor(X[:3])
    drawn = attentive._codes(attentive.module_(at)[1], items, answers, used)
    expected = [[attended(attentive, x, X[rows[:3]], each[:3], np.ones(3)), [0, 0]] for x in X[:3]]  # there may be none
    assert_allclose(drawn.detach(), expected, rtol=1e-9)
    drawn.sum().backward()
    for part in (attentive.module_.query, attentive.module_.key):
        gradient = part.weights[0].grad
        assert gradient.isfinite().all()
        assert gradient.abs().sum() > 0


def test_the_code_sees_item_class_and_answer(net, data):
    X, y, codes = data
    code = expert_codes(net, X, y, votes_of(codes))[0]
    for changed in ((X + 1, y, codes), (X, (y + 1) % C, codes), (X, y, np.where(codes >= 0, (codes + 1) % C, -1))):
        assert not np.allclose(expert_codes(net, *changed[:2], votes_of(changed[2]))[0], code)


def test_predictions_equal_the_parts(net, data, monkeypatch):
    X, psi = data[0], np.random.default_rng(0).normal(size=(3, 2))
    classes, deferral = predict_population(net, X, psi)
    for i in range(0, N, 7):
        features = features_of(net, X[i])
        assert_allclose(classes[i], net.module_.classifier(features[None])[0][0].detach())
        for e in range(3):
            pair = torch.cat([features, torch.as_tensor(psi[e])])[None]
            assert_allclose(deferral[i, e], net.module_.rejector(pair)[0][0, 0].item())
    monkeypatch.setattr(_population_net, "_CHUNK", 1)
    assert_allclose(predict_population(net, X, psi)[1], deferral, rtol=1e-12)
    assert predict_population(net, X, np.empty((0, 2)))[1].shape == (N, 0)


def test_contexts_are_answers_of_their_expert(data):
    X, y, codes = data
    contexts = Contexts(rows_of(data), votes_of(codes), size=6, n_experts=2)
    counts = (codes >= 0).sum(0)
    met, generator = set(), own_generator(0)
    for _ in range(20):
        experts, items, answers, used = contexts.draw(generator)
        assert len(set(experts.tolist())) == 2
        met |= set(experts.tolist())
        for e, row, answer, use in zip(experts.tolist(), items.numpy(), answers.numpy(), used.numpy(), strict=True):
            assert_array_equal(codes[row, e], answer)
            assert use.sum() == min(6, counts[e] // 2)
    assert met == {0, 1, 2}  # the silent one is never drawn
    taken, truth = contexts.take(torch.tensor([[3, 1], [2, 2]]), "cpu")
    assert_array_equal(taken, X[[3, 1, 2, 2]])
    assert_array_equal(truth, y[[3, 1, 2, 2]])


class Given(Contexts):
    """Contexts that are not random."""

    def __init__(self, rows, codes):
        super().__init__(rows, votes_of(codes), size=3, n_experts=10)

    def draw(self, generator):
        experts = torch.tensor([1, 0, 2])
        start = self.start[experts, None] + torch.arange(3).clamp(max=0)
        drawn = torch.stack([start[0] + torch.arange(3), start[1] + torch.arange(3), start[2].expand(3)])
        used = torch.tensor([[True, True, False], [True, True, True], [False, False, False]])
        return experts, self.item[drawn], self.answer[drawn], used


def loss_by_hand(net, data, rows):
    """Mean over items of the mean over experts of the surrogate with C + 1 outputs, scalar by scalar."""
    X, y, codes = data
    context = {m: np.flatnonzero(codes[:, m] >= 0)[:k] for m, k in ((0, 3), (1, 2), (2, 0))}
    total = 0.0
    for i in rows:
        features = features_of(net, X[i])
        g = net.module_.classifier(features[None])[0][0].detach().numpy()
        terms = []
        for m, examples in context.items():
            if codes[i, m] < 0 or i in examples:
                continue
            psi = (
                np.mean([encoded(net, X[j], y[j], int(codes[j, m])) for j in examples], 0) if len(examples) else [0, 0]
            )
            pair = torch.cat([features, torch.as_tensor(np.array(psi, dtype=float))])[None]
            logits = np.append(g, net.module_.rejector(pair)[0][0, 0].item())
            log_share = logits - np.log(np.exp(logits).sum())
            terms.append(-log_share[y[i]] - (codes[i, m] == y[i]) * log_share[-1])
        total += np.mean(terms) if terms else np.log(np.exp(g).sum()) - g[y[i]]
    return total / len(rows)


def test_the_loss_equals_a_loop(net, data):
    rows = torch.arange(12)
    contexts = Given(rows_of(data), data[2])
    X, targets = contexts.rows[rows]
    net.contexts, net.random = contexts, OwnRandom(own_generator(0))
    loss = net.batch_loss(net.infer(X), targets, X)
    assert loss.item() == pytest.approx(loss_by_hand(net, data, rows.tolist()), rel=1e-10)
    net.contexts = None
    alone = net.batch_loss(net.infer(X), targets, X)
    logits = predict_population(net, data[0][:12], np.empty((0, 2)))[0]
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    assert alone.item() == pytest.approx(-log_p[np.arange(12), data[1][:12]].mean())


def test_features_are_not_trained_through_the_code(net, data):
    contexts = Given(rows_of(data), data[2])
    net.contexts = contexts
    _, items, answers, used = contexts.draw(None)
    net._codes(None, items, answers, used).sum().backward()
    assert all(p.grad is None for p in net.module_.body.parameters())
    assert net.module_.truth.weight.grad.abs().sum() > 0
    assert all(p.grad.abs().sum() > 0 for p in net.module_.example.parameters())


@pytest.mark.parametrize("lr", [0.1, 1e30], ids=["trains", "diverges"])
def test_training_keeps_no_rows(data, lr, monkeypatch):
    nets, settings = [], {"context_size": 4, "experts_per_step": 3, "n_classifier_epochs": 2, "max_epochs": 3}

    def spy(*args, **kwargs):
        nets.append(build_population_net(*args, **kwargs))
        return nets[-1]

    monkeypatch.setattr(_population_net, "build_population_net", spy)
    params = PARAMS | settings | {"lr": lr, "verbose": 0}
    if lr > 1:
        with pytest.raises(FloatingPointError):
            fit_population_net(params | {"n_classifier_epochs": 0}, *data[:2], votes_of(data[2]), C, seed=0)
    else:
        net, history = fit_population_net(params, *data[:2], votes_of(data[2]), C, seed=0)
        assert [epoch["phase"] for epoch in history] == 2 * ["classifier"] + 3 * ["population"]
        assert net is nets[0]
    assert len(nets) == 1
    assert nets[0].contexts is None
