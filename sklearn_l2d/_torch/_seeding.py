"""Devices and random numbers: nothing here touches a generator that belongs to the caller."""

from contextlib import contextmanager

import torch


def resolve_device(device):
    """Device name for the parameter `device`: "auto", "cpu", "cuda" or "cuda:i".

    Raises
    ------
    RuntimeError
        If CUDA is asked for by name and there is none.
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
def seeded(seed, device="cpu"):
    """Run a block under its own torch seed; the caller's CPU and CUDA generators are put back afterwards."""
    on_cuda = str(device).startswith("cuda")
    with torch.random.fork_rng(devices=[torch.device(device)] if on_cuda else []):
        # torch.manual_seed would also reseed the CUDA generators that are not forked
        torch.random.default_generator.manual_seed(seed)
        if on_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
