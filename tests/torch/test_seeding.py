"""Whose random numbers move, and what of torch a block may change."""

import threading

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import binom
from torch import nn

from sklearn_l2d._torch import _seeding
from sklearn_l2d._torch._seeding import OwnRandom, _dropout, own_generator, own_state, resolve_device
from sklearn_l2d.crowd import NetClassifier

ONES = torch.ones(60)
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


class Between(nn.Module):
    """An LSTM with dropout between its layers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.LSTM(2, 30, num_layers=2, dropout=0.5)

    def forward(self, X):
        return self.layers(X)[0]


BETWEEN = Between()
DRAWS = {
    "rand": lambda: torch.rand(4),
    "randn": lambda: torch.randn(2, 3),
    "randperm": lambda: torch.randperm(30),
    "randint": lambda: torch.randint(1000, (9,)),
    "randint from": lambda: torch.randint(5, 1000, (9,)),
    "rand_like": lambda: torch.rand_like(ONES),
    "randn_like": lambda: torch.randn_like(ONES),
    "randint_like": lambda: torch.randint_like(ONES, 1000),
    "randint_like from": lambda: torch.randint_like(ONES, 5, 1000),
    "bernoulli": lambda: torch.bernoulli(ONES / 2),
    "bernoulli of p": lambda: torch.bernoulli(ONES, 0.5),
    "multinomial": lambda: torch.multinomial(ONES, 20),
    "normal": lambda: torch.normal(ONES, ONES),
    "in place": lambda: torch.empty(9).normal_() + torch.empty(9).uniform_() + torch.empty(9).exponential_(),
    "dropout": lambda: nn.Dropout(0.5)(ONES),
    "dropout of channels": lambda: nn.Dropout1d(0.5)(torch.ones(1, 60, 2)),
    "alpha dropout": lambda: nn.AlphaDropout(0.5)(ONES),
    "native dropout": lambda: torch.native_dropout(ONES, 0.5, True)[0],
    "dropout between layers": lambda: BETWEEN(torch.ones(5, 2, 2)),
    "noisy activation": lambda: nn.RReLU()(-ONES),
    "linear": lambda: nn.Linear(3, 2).weight,
    "embedding": lambda: nn.Embedding(3, 2).weight,
    "lstm": lambda: nn.LSTM(2, 3).weight_hh_l0,
    "convolution": lambda: nn.Conv2d(1, 2, 3).weight,
}
each_draw = pytest.mark.parametrize("name", list(DRAWS))


def drawn(name, seed, of_caller=0):
    """What a block draws; the generators of the caller, at some other seed, stay where they are."""
    with torch.random.fork_rng():
        torch.manual_seed(of_caller)
        before = torch.get_rng_state()
        with OwnRandom(own_generator(seed)):
            numbers = DRAWS[name]().detach()
        assert torch.equal(torch.get_rng_state(), before)
    return numbers


# -------------------------------------------------------------------------------------------- one thread by itself


@each_draw
def test_own_random_gives_the_same_numbers_and_leaves_the_generators_alone(name):
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    first = drawn(name, 3)
    assert torch.equal(drawn(name, 3, of_caller=1), first)
    assert not torch.equal(drawn(name, 4), first)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002


@each_draw
def test_own_random_goes_on_where_it_was(name):
    random = OwnRandom(own_generator(3))
    with random:
        first = DRAWS[name]().detach()
    with random:
        assert not torch.equal(DRAWS[name]().detach(), first)
    assert torch.equal(drawn(name, 3), first)


@each_draw
def test_the_global_generator_never_stands_in_on_a_cpu(name, monkeypatch):
    monkeypatch.setattr(_seeding, "_seeded", lambda *args: pytest.fail("it did"))
    drawn(name, 3)


def test_a_block_that_raises_leaves_the_generators_alone():
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    with pytest.raises(RuntimeError), OwnRandom(own_generator(3)):
        torch.rand(2).reshape(3)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
    with torch.random.fork_rng():  # and the block is over
        torch.manual_seed(5)
        numbers = torch.rand(4)
    assert torch.equal(numbers, torch.rand(4, generator=own_generator(5)))


def test_a_generator_that_the_block_names_itself_is_the_one_that_is_used():
    with OwnRandom(own_generator(0)):
        named, other = torch.rand(4, generator=own_generator(7)), torch.rand(4)
    assert torch.equal(named, torch.rand(4, generator=own_generator(7)))
    assert torch.equal(other, torch.rand(4, generator=own_generator(0)))


@pytest.mark.parametrize("factory", [torch.zeros, torch.ones, torch.rand], ids=["zeros", "ones", "rand"])
def test_results_may_be_written_to_a_given_tensor(factory):
    out = torch.full((4,), -1.0, dtype=torch.float64)
    with OwnRandom(own_generator(0)):
        assert factory(4, out=out) is out


def test_plain_draws_are_those_of_the_generator():
    with OwnRandom(own_generator(3)):
        numbers = torch.rand(4), torch.randperm(9), torch.randn(5)
    generator = own_generator(3)
    expected = (f(n, generator=generator) for f, n in ((torch.rand, 4), (torch.randperm, 9), (torch.randn, 5)))
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(numbers, expected, strict=True))


def test_modules_start_in_the_usual_floating_type():
    torch.set_default_dtype(torch.float64)
    try:
        with OwnRandom(own_generator(0)):
            modules = nn.Linear(3, 2), nn.Embedding(3, 2), nn.LSTM(2, 3), nn.BatchNorm1d(3)
            asked = nn.Linear(3, 2, dtype=torch.float64)
    finally:
        torch.set_default_dtype(torch.float32)
    assert {part.dtype for module in modules for part in module.parameters()} == {torch.float32}
    assert asked.weight.dtype == torch.float64
    with OwnRandom(own_generator(0)):
        assert torch.equal(nn.Linear(3, 2).weight, modules[0].weight)


def test_gradients_flow_through_dropout():
    X = torch.ones(60, requires_grad=True)
    for dropout in (nn.Dropout(0.5), lambda X: torch.native_dropout(X, 0.5, True)[0]):
        with OwnRandom(own_generator(0)):
            out = dropout(X)
        (gradient,) = torch.autograd.grad(out.sum(), X)
        assert torch.equal(gradient, out)
        assert set(gradient.tolist()) == {0.0, 2.0}


# --------------------------------------------------------------------------------------------------- other threads


def in_thread(work):
    """Run some work in another thread and wait for it."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@each_draw
def test_draws_of_another_thread_neither_change_a_block_nor_are_changed(name):
    expected = drawn(name, 3), drawn(name, 4)
    theirs = []

    def caller():
        theirs.append(torch.rand(1000))

    def another_block():
        with OwnRandom(own_generator(4)):
            theirs.append(DRAWS[name]().detach())

    with torch.random.fork_rng():
        torch.manual_seed(5)
        random = OwnRandom(own_generator(3))
        with random:
            in_thread(caller)
            in_thread(another_block)
            mine = DRAWS[name]().detach()
    assert torch.equal(mine, expected[0])
    assert torch.equal(theirs[0], torch.rand(1000, generator=own_generator(5)))
    assert torch.equal(theirs[1], expected[1])


def test_blocks_at_the_same_time_draw_what_each_would_alone():
    together, results = threading.Barrier(3), {}

    def work(seed):
        generator = own_generator(seed)
        together.wait()
        with OwnRandom(generator):
            results[seed] = torch.cat([nn.Dropout(0.5)(torch.rand(20)) for _ in range(100)])

    def caller():
        together.wait()
        results["caller"] = torch.cat([torch.rand(20) for _ in range(100)])

    with torch.random.fork_rng():
        torch.manual_seed(5)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in (0, 1)] + [threading.Thread(target=caller)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    generator = own_generator(5)
    assert torch.equal(results["caller"], torch.cat([torch.rand(20, generator=generator) for _ in range(100)]))
    for seed in (0, 1):
        expected = []
        with OwnRandom(own_generator(seed)):
            for _ in range(100):
                expected.append(nn.Dropout(0.5)(torch.rand(20)))
        assert torch.equal(results[seed], torch.cat(expected))


# --------------------------------------------------------------------------------------------------------- dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("p", [0.0, 0.3, 0.9, 1.0])
def test_dropout_is_that_of_torch(p, dtype):
    X = torch.randn(40, 50, generator=own_generator(1), dtype=dtype)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs, their_mask = torch.native_dropout(X, p, True)
    mine, mask = _dropout(X, p, True, generator=own_generator(0))
    for out, kept in ((theirs, their_mask), (mine, mask)):
        assert (out.shape, out.dtype, kept.shape, kept.dtype) == (X.shape, dtype, X.shape, torch.bool)
        assert_allclose(out, X * kept * (0 if p == 1 else 1 / (1 - p)), rtol=1e-6)
        low, high = binom.interval(1 - 1e-6, X.numel(), 1 - p)
        assert low <= kept.sum() <= high
    assert torch.equal(_dropout(X, p, True, generator=own_generator(0))[1], mask)
    if 0 < p < 1:
        assert not torch.equal(_dropout(X, p, True, generator=own_generator(1))[1], mask)


@pytest.mark.parametrize("train", [True, False, None])
def test_dropout_outside_of_training(train):
    theirs = torch.native_dropout(ONES, 0.5, train)
    mine = _dropout(ONES, 0.5, train, generator=own_generator(0))
    for my_part, their_part in zip(mine, theirs, strict=True):
        assert (my_part == 1).all() == (their_part == 1).all() == (train is False)
        assert my_part.dtype == their_part.dtype
    assert mine[0].data_ptr() != ONES.data_ptr()


# ----------------------------------------------------------------------------------------------- state and devices


def test_own_state_is_that_of_the_block_alone():
    with torch.inference_mode():
        with own_state():
            weight = nn.Linear(2, 1).weight
            (weight.sum() ** 2).backward()
            assert weight.grad is not None
            with own_state(grad=False):
                assert not (2 * weight).requires_grad
            assert (2 * weight).requires_grad
        assert torch.is_inference_mode_enabled()
    with torch.no_grad(), own_state():
        assert torch.is_grad_enabled()
    with own_state(grad=False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    with torch.device("meta"):
        with own_state():
            assert torch.empty(2).device.type == "cpu"
        assert torch.empty(2).device.type == "meta"


def test_own_state_ends_with_an_error():
    with torch.device("meta"), torch.inference_mode():
        with pytest.raises(RuntimeError), own_state():
            torch.rand(2).reshape(3)
        assert torch.is_inference_mode_enabled()
        assert torch.empty(2).device.type == "meta"


def test_devices(monkeypatch):
    assert resolve_device("cpu") == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto") == "cpu"
    with pytest.raises(RuntimeError, match="device='cuda:1'"):
        resolve_device("cuda:1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == "cuda"
    assert resolve_device("cuda:1") == "cuda:1"


@needs_cuda
@pytest.mark.cuda
@pytest.mark.parametrize("kind", ["dropout", "attention", "rand"])
def test_own_random_on_the_gpu(kind):
    X = torch.ones(4, 16, 32, device="cuda")
    draw = {
        "dropout": lambda: nn.Dropout(0.5)(X),
        "attention": lambda: nn.functional.scaled_dot_product_attention(X, X, X * torch.arange(32.0).cuda(), None, 0.5),
        "rand": lambda: torch.rand(4, device="cuda"),
    }[kind]

    def numbers(seed, of_caller):
        with torch.random.fork_rng():
            torch.manual_seed(of_caller)  # of the GPU, too
            before = torch.get_rng_state(), torch.cuda.get_rng_state()
            with OwnRandom(own_generator(seed)):
                out = draw().detach()
            assert torch.equal(torch.get_rng_state(), before[0])
            assert torch.equal(torch.cuda.get_rng_state(), before[1])
        return out

    first = numbers(0, 0)
    assert torch.equal(numbers(0, 1), first)
    assert not torch.equal(numbers(1, 0), first)


class Noisy(torch.optim.SGD):
    """An optimizer of a user that draws random numbers."""

    def step(self, closure=None):
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad += 0.1 * torch.randn_like(parameter)
        return super().step(closure)


class NoisyGradient(torch.nn.Module):
    """A module of a user whose backward pass draws random numbers."""

    def __init__(self, n_outputs):
        super().__init__()
        self.layer = torch.nn.Linear(4, n_outputs)
        self.layer.weight.register_hook(lambda gradient: gradient + 0.1 * torch.randn_like(gradient))

    def forward(self, X):
        return self.layer(X)


@pytest.mark.parametrize("settings", [{"optimizer": Noisy}, {"module": NoisyGradient}], ids=str)
def test_optimizers_and_backward_passes_draw_from_the_training_too(settings):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 3

    def proba(global_seed):
        torch.manual_seed(global_seed)
        before = torch.get_rng_state()
        net = NetClassifier(max_epochs=3, random_state=0, **settings).fit(X, y)
        assert torch.equal(torch.get_rng_state(), before)
        return net.predict_proba(X)

    state = torch.get_rng_state()
    try:
        np.testing.assert_array_equal(proba(1), proba(2))
    finally:
        torch.set_rng_state(state)


def test_tensors_filled_with_floats_have_the_usual_type():
    torch.set_default_dtype(torch.float64)
    try:
        with OwnRandom(own_generator(0)):
            assert torch.full((2,), 0.1).dtype == torch.arange(0.0, 1.0, 0.5).dtype == torch.float32
            assert torch.full((2,), 1).dtype == torch.int64
    finally:
        torch.set_default_dtype(torch.float32)
