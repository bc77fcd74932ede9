"""Devices and random numbers, independent of the caller's state of torch."""

import threading
from contextlib import ExitStack, contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_FACTORIES = ("empty", "eye", "linspace", "logspace", "ones", "rand", "randn", "zeros")  # of the default dtype
_OF_VALUES = ("arange", "full")  # of that type where a value is a float
_GLOBAL_GENERATOR = threading.Lock()


def resolve_device(device):
    """Device name for the parameter `device`: "auto", "cpu", "cuda" or "cuda:i".

    Raises
    ------
    RuntimeError
        If `device` is CUDA and there is no CUDA device.
    """
    has_cuda = torch.cuda.is_available()
    if device == "auto":
        return "cuda" if has_cuda else "cpu"
    if str(device).startswith("cuda") and not has_cuda:
        raise RuntimeError(
            f"device={device!r} was asked for, but no CUDA device is available; use device='auto' or 'cpu'."
        )
    return str(device)


@contextmanager
def own_state(grad=True):
    """Run a block with gradients on or off and tensors on the CPU, independent of the thread's settings."""
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.set_grad_enabled(grad))
        if torch.is_autocast_enabled("cpu"):
            stack.enter_context(torch.autocast("cpu", enabled=False))
        if torch.is_autocast_enabled("cuda"):
            stack.enter_context(torch.autocast("cuda", enabled=False))
        if torch.get_default_device().type != "cpu":  # the context slows every call of torch a little
            stack.enter_context(torch.device("cpu"))
        yield


class OwnRandom(TorchDispatchMode):
    """Context in which random operations draw from own generators, which no other thread shares.

    Modules use torch's global generator for their initial weights and for dropout. A dispatch mode belongs to one
    thread and intercepts every random operation below autograd. An operation with a generator keeps it. New weights are
    float32, whatever default type the caller has set.

    Activation checkpointing repeats a forward pass outside of the context, and cannot repeat its dropout.

    Parameters
    ----------
    generator : torch.Generator
        Generator on the CPU. Generators of other devices are seeded by it when they are first used.
    """

    def __init__(self, generator):
        super().__init__()
        self.generators = {"cpu": generator}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        packet, names = func.overloadpacket, [argument.name for argument in func._schema.arguments]
        if packet.__name__ in _FACTORIES and "dtype" in names and kwargs.get("dtype") is None:
            kwargs["dtype"] = torch.float32
        if packet.__name__ in _OF_VALUES and kwargs.get("dtype") is None and any(isinstance(a, float) for a in args):
            kwargs["dtype"] = torch.float32
        given = dict(zip(names, args, strict=False)) | kwargs
        if torch.Tag.nondeterministic_seeded not in func.tags or given.get("generator") is not None:
            return func(*args, **kwargs)
        if "generator" in names:
            args = args[: names.index("generator")]  # drops a positional None
        device = next((a.device for a in args if isinstance(a, torch.Tensor)), kwargs.get("device") or "cpu")
        generator = self._generator(torch.device(device))
        if packet is torch.ops.aten.native_dropout:
            return _dropout(*args, generator=generator)
        drawing = _with_generator(func)
        if drawing is not None:
            return drawing(*args, **kwargs | {"generator": generator})
        # A fused kernel of a GPU takes no generator: the global one is seeded while it runs.
        with _GLOBAL_GENERATOR, _seeded(self._seed(), device):
            return func(*args, **kwargs)

    def _generator(self, device):
        name = "cpu" if device.type == "cpu" else str(device)
        if name not in self.generators:
            self.generators[name] = torch.Generator(device).manual_seed(self._seed())
        return self.generators[name]

    def _seed(self):
        return int(torch.randint(2**62, (), generator=self.generators["cpu"], device="cpu"))


def own_generator(seed):
    """Seeded generator on the CPU."""
    return torch.Generator("cpu").manual_seed(seed)


def _with_generator(func):
    """The overload of a random operation that takes a generator, or None."""
    packet, (_, _, overload) = func.overloadpacket, str(func).rpartition(".")
    with_one = {"default": "generator", "low_dtype": "low_generator_dtype"}.get(overload, f"{overload}_generator")
    for name in (overload, with_one):
        if name in packet.overloads():
            candidate = getattr(packet, name)
            if any(argument.name == "generator" for argument in candidate._schema.arguments):
                return candidate
    return None


def _dropout(X, p, train, *, generator):
    """Result of `torch.native_dropout`, drawn from a generator."""
    if train is False or p == 0:
        return X.clone(), torch.ones_like(X, dtype=torch.bool)
    mask = torch.empty_like(X).bernoulli_(1 - p, generator=generator).bool()
    return X * mask / max(1 - p, 1e-12), mask


@contextmanager
def _seeded(seed, device):
    on_cuda = str(device).startswith("cuda")
    with torch.random.fork_rng(devices=[torch.device(device)] if on_cuda else []):
        # torch.manual_seed would also reseed the CUDA generators that are not forked
        torch.random.default_generator.manual_seed(seed)
        if on_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
