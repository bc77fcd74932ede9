"""The nets: ensembles against separate nets, and the training loop against a plain one."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from sklearn_l2d._encoding import sparse_counts
from sklearn_l2d._torch._batches import Rows, shuffled_batches
from sklearn_l2d._torch._modules import MLPEnsemble, ModuleEnsemble, check_module
from sklearn_l2d._torch._net import predict_batches, train
from sklearn_l2d._torch._seeding import OwnRandom, own_generator
from sklearn_l2d.cluster._annotation_net import build_annotation_net, drop_consensus, pick, temper

ITEMS = np.empty((0, 5))  # a net is built for their shape
SETTINGS = {
    "module": None,
    "hidden_layer_sizes": (6, 3),
    "init": "random",
    "optimizer": "sgd",
    "lr": 0.1,
    "momentum": 0.9,
    "weight_decay": 0.01,
    "batch_size": 16,
    "max_e_steps": 10,
    "e_tol": 1e-3,
    "device": "cpu",
    "dtype": "float64",
}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(50, 5)), rng.multinomial(3, [0.4, 0.3, 0.2, 0.1], size=50).astype(float)


class Dropped(nn.Sequential):
    """A net that needs random numbers in training."""

    def __init__(self, n_outputs):
        super().__init__(nn.Dropout(0.5), nn.Linear(5, n_outputs))


def build(n_members, seed=0, **changes):
    return build_annotation_net(SETTINGS | changes, ITEMS, 4, np.full(n_members, 5.0), seed)


def rows_of(data, dtype=torch.float64):
    X, counts = data
    return Rows(X, *sparse_counts(counts), dtype=dtype)


def separate_nets(ensemble):
    """The members of an `MLPEnsemble` as ordinary nets with the same weights."""
    nets = []
    for k in range(len(ensemble.weights[0])):
        layers = []
        for weight, bias in zip(ensemble.weights, ensemble.biases, strict=True):
            linear = nn.Linear(*weight.shape[1:], dtype=weight.dtype)
            linear.weight.data, linear.bias.data = weight[k].T.detach().clone(), bias[k, 0].detach().clone()
            layers += [linear, nn.ReLU()]
        nets.append(nn.Sequential(*layers[:-1]))
    return nets


# ------------------------------------------------------------------------------------------------ random numbers


def test_training_and_prediction_leave_the_generators_alone(data):
    before = torch.get_rng_state()
    net = build(2, module=Dropped, dtype="float32")
    torch.manual_seed(7)
    state = torch.get_rng_state()
    train(net, rows_of(data, torch.float32), 2, seed=0)
    list(predict_batches(net.module_.members, data[0], "cpu"))
    assert torch.equal(torch.get_rng_state(), state)
    torch.set_rng_state(before)


def test_generators_of_the_caller_do_not_matter(data):
    weights = []
    for seed in (1, 2):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            net = build(2, module=Dropped, dtype="float32")
            train(net, rows_of(data, torch.float32), 2, seed=0)
        assert net.random is None  # a pickle holds no generator
        weights.append(nn.utils.parameters_to_vector(net.module_.parameters()).detach())
    assert torch.equal(*weights)


# ------------------------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("batch_size", [1, 7, 50, 1000])
def test_batches_are_the_rows_in_a_random_order(data, batch_size):
    X, counts = data
    parts = list(shuffled_batches(Rows(X, counts, dtype=torch.float32), batch_size, own_generator(0)))
    assert len(parts) == -(-50 // batch_size)
    assert all(len(part) <= batch_size for part, _ in parts)
    order = torch.randperm(50, generator=own_generator(0)).numpy()
    assert_array_equal(torch.cat([part for part, _ in parts]).numpy(), X[order].astype(np.float32))
    assert_array_equal(torch.cat([target for _, (target,) in parts]).numpy(), counts[order])


def test_shuffled_batches_keep_rows_together_and_visit_each_once(data):
    X, _ = data
    rows = Rows(X, X.sum(1), np.arange(50), dtype=torch.float64)
    parts = list(shuffled_batches(rows, 8, own_generator(0)))
    order = torch.cat([index for _, (_, index) in parts]).numpy()
    assert sorted(order) == list(range(50))
    assert order.tolist() != list(range(50))
    assert_array_equal(torch.cat([part for part, _ in parts]).numpy(), X[order])
    assert_array_equal(torch.cat([total for _, (total, _) in parts]).numpy(), X.sum(1)[order])


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_memory_maps_and_read_only_arrays_are_read_without_a_copy_or_a_warning(data, tmp_path, mode):
    X, counts = data
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
    frozen = counts.copy()
    frozen.flags.writeable = False
    rows = Rows(mapped, frozen, np.arange(50), dtype=torch.float64)
    assert rows.arrays[0] is mapped
    seen = []
    for part, (target, index) in shuffled_batches(rows, 20, own_generator(0)):
        part += 1  # a batch is its own memory
        target += 1
        assert_array_equal(part.numpy(), X[index] + 1)
        assert_array_equal(target.numpy(), counts[index] + 1)
        seen.append(index.tolist())
    assert [len(index) for index in seen] == [20, 20, 10]
    assert sorted(row for index in seen for row in index) == list(range(50))
    assert_array_equal(mapped, X)
    assert_array_equal(frozen, counts)


# ----------------------------------------------------------------------------------------------------- ensembles


@pytest.mark.parametrize("hidden_layer_sizes", [(), (6,), (6, 3)], ids=str)
def test_an_ensemble_is_as_many_separate_nets(data, hidden_layer_sizes):
    X = torch.from_numpy(data[0])
    with OwnRandom(own_generator(0)):
        ensemble = MLPEnsemble(3, 5, 4, hidden_layer_sizes).double()
    nets = separate_nets(ensemble)
    expected = torch.stack([net(X) for net in nets])
    assert_allclose(ensemble(X).detach(), expected.detach(), rtol=1e-12, atol=1e-12)
    assert not torch.allclose(expected[0], expected[1])
    log_proba = torch.cat([part for _, part in predict_batches(ensemble, data[0], "cpu")], 1)
    assert_allclose(log_proba, torch.log_softmax(expected, 2).detach(), rtol=1e-12, atol=1e-12)


def test_predictions_do_not_depend_on_the_rows_beside(data):
    net = build(3, dtype="float32")
    ((_, whole),) = predict_batches(net.module_.members, data[0], "cpu")
    for rows in (slice(0, 1), slice(13, 20)):
        ((_, part),) = predict_batches(net.module_.members, data[0][rows], "cpu")
        assert_allclose(part, whole[:, rows], rtol=1e-12)


def test_members_copied_from_one_net_answer_alike_and_share_no_memory(data):
    X = torch.from_numpy(data[0])
    single, many = MLPEnsemble(1, 5, 4, (6,)).double(), MLPEnsemble(3, 5, 4, (6,)).double()
    many.copy_members_from(single)
    assert_array_equal(many(X).detach(), single(X).detach().expand(3, -1, -1))
    with torch.no_grad():
        many.weights[0][0] += 1
    assert not torch.equal(many(X)[0], many(X)[1])
    assert torch.equal(many(X)[1], single(X)[0])


def test_modules_are_built_once_per_member():
    class Small(nn.Module):
        def __init__(self, n_outputs, width=2):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(5, width), nn.Linear(width, n_outputs))

        def forward(self, X):
            return self.layers(X)

    ensemble = ModuleEnsemble(2, partial(Small, width=3), n_outputs=4)
    X = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    assert ensemble(X).shape == (2, 6, 4)
    assert not torch.equal(ensemble(X)[0], ensemble(X)[1])
    assert_array_equal(ensemble(X)[1].detach(), ensemble.members[1](X).detach())
    single = ModuleEnsemble(1, partial(Small, width=3), n_outputs=4)
    ensemble.copy_members_from(single)
    assert_array_equal(ensemble(X).detach(), single(X).detach().expand(2, -1, -1))
    assert ensemble.double().predict_dtype == torch.float64


def test_modules_that_cannot_be_built_afresh():
    check_module(None)
    check_module(nn.Linear)
    with pytest.raises(TypeError, match="not a module instance"):
        check_module(nn.Linear(2, 2))
    with pytest.raises(TypeError, match="module must be a class or a function"):
        check_module("linear")


# ------------------------------------------------------------------------------------------------------ training


def plain_loop(net, rows, n_epochs, seed, cosine):
    """Supervised training on the label distribution by a loop that shares nothing but the batches."""
    (model,) = separate_nets(net.module_.members)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    n_steps = n_epochs * -(-len(rows) // 16)
    losses, step, generator = [], 0, own_generator(seed)
    for _ in range(n_epochs):
        total = 0.0
        for X, (labels, votes) in shuffled_batches(rows, 16, generator):
            if cosine:
                optimizer.param_groups[0]["lr"] = 0.05 * (1 + np.cos(np.pi * step / n_steps))
            optimizer.zero_grad()
            log_p = torch.log_softmax(model(X), 1).gather(1, labels)
            loss = -(votes * log_p).sum() / votes.sum()
            loss.backward()
            optimizer.step()
            total, step = total + loss.item() * len(X), step + 1
        losses.append(total / len(rows))
    return model, losses


@pytest.mark.parametrize("cosine", [True, False])
def test_one_behaviour_trains_as_a_plain_loop_does(data, cosine):
    net, rows = build(1), rows_of(data)
    model, losses = plain_loop(copy.deepcopy(net), rows, 3, seed=5, cosine=cosine)
    history = train(net, rows, 3, seed=5, cosine=cosine)
    assert_allclose([record["loss"] for record in history], losses, rtol=1e-10)
    X = torch.from_numpy(data[0])
    assert_allclose(net.module_.members(X)[0].detach(), model(X).detach(), rtol=1e-8, atol=1e-10)


def test_a_member_learns_from_its_own_votes_only(data):
    """With the responsibilities fixed by the consensus, member k trains as it would with any other members."""
    net, rows = build(3, init="consensus"), rows_of(data)
    net.module_.phase = "anchor"
    other = copy.deepcopy(net)
    with torch.no_grad():
        for parameter in other.module_.members.parameters():
            parameter[0].normal_(generator=torch.Generator().manual_seed(1))
    for each in (net, other):
        each.initialize_optimizer()
        train(each, rows, 2, seed=0)
    for mine, theirs in zip(net.module_.members.parameters(), other.module_.members.parameters(), strict=True):
        assert_allclose(mine[1:].detach(), theirs[1:].detach(), rtol=1e-12, atol=1e-14)
        assert not torch.allclose(mine[0], theirs[0])


def test_the_loss_is_the_weighted_log_likelihood_and_its_gradient_stops_at_the_weights(data):
    net, rows = build(3), rows_of(data)
    X, (labels, votes) = rows[torch.arange(50)]
    loss = net.batch_loss(net.module_(X), (labels, votes), X)
    nets = separate_nets(net.module_.members)
    log_f = torch.stack([torch.log_softmax(each(X), 1).gather(1, labels) for each in nets], -1)
    rho = 5 + votes.sum(1, keepdim=True) / 3
    with torch.no_grad():
        for _ in range(200):
            zeta = torch.softmax(log_f + torch.digamma(rho).unsqueeze(1), -1)
            rho = 5 + (votes.unsqueeze(-1) * zeta).sum(1)
    expected = -(votes.unsqueeze(-1) * zeta * log_f).sum() / votes.sum()
    assert_allclose(loss.item(), expected.item(), rtol=1e-4)
    loss.backward()
    expected.backward()
    weight = net.module_.members.weights[0].grad
    assert_allclose(weight, torch.stack([each[0].weight.grad.T for each in nets]), atol=1e-4)


def test_the_consensus_phase_moves_the_consensus_alone_and_the_anchor_phase_the_members(data):
    net, rows = build(2, init="consensus"), rows_of(data)
    for phase, still in (("consensus", "members"), ("anchor", "consensus")):
        net.module_.phase = phase
        before = copy.deepcopy(dict(net.module_.named_parameters()))
        train(net, rows, 1, seed=0)
        moved = {name for name, value in net.module_.named_parameters() if not torch.equal(value, before[name])}
        assert moved
        assert not any(name.startswith(still) for name in moved)
    drop_consensus(net)
    assert not any(name.startswith("consensus") for name in net.module_.state_dict())
    assert train(net, rows, 1, seed=0)[0]["phase"] == "train"


def test_tempered_consensus_goes_from_agreement_to_dissent():
    consensus = torch.tensor([[[2.0, 0.0, 1.0]]])
    log_f = pick(temper(consensus, 3), torch.tensor([[0, 1, 2]]))[0].exp()
    p = torch.softmax(consensus[0, 0], 0)
    for k, beta in enumerate((2.0, 1.0, 0.5)):
        assert_allclose(log_f[:, k], p**beta / (p**beta).sum(), rtol=1e-6)


def test_failures_put_the_last_good_epoch_back(data):
    net, rows = build(2), rows_of(data)
    good = copy.deepcopy(net)
    train(good, rows, 2, seed=0, cosine=False)

    def explode(epoch):
        if epoch == 2:
            net.optimizer_.param_groups[0]["lr"] = float("inf")
        return "em"

    with pytest.raises(FloatingPointError, match="in epoch 3 of the phase 'em'"):
        train(net, rows, 5, seed=0, cosine=False, on_epoch=explode)
    for mine, expected in zip(net.module_.parameters(), good.module_.parameters(), strict=True):
        assert torch.equal(mine, expected)
    assert net.optimizer_.param_groups[0]["lr"] == 0.1
    assert net.schedule_ is None


def test_verbosity(data, capsys):
    train(build(1), rows_of(data), 2, seed=0)
    assert capsys.readouterr() == ("", "")
    train(build(1), rows_of(data), 2, seed=0, verbose=1, label="warm up")
    assert capsys.readouterr().out.splitlines()[1].startswith("warm up epoch 2/2: loss ")
    train(build(1), rows_of(data), 2, seed=0, verbose=2, label="warm up")
    assert "warm up: 100%" in capsys.readouterr().err
