"""Nets, data and timed training loops of the throughput tables: EM beside plain torch, and what limits both."""

import contextlib
import time
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from sklearn_l2d.cluster import AnnotatorLDA

K, N_CLASSES = 3, 10


def em_epochs(X, counts, device, batch_size, n_epochs, **settings):
    """Seconds of each epoch of EM."""
    settings |= {"lr": 1e-3, "batch_size": batch_size, "max_epochs": n_epochs, "device": device}
    lda = AnnotatorLDA(K, init="random", random_state=0, **settings).fit(X, counts)
    return [record["duration"] for record in lda.history_]


def plain_epochs(build, X, counts, device, batch_size, n_epochs):
    """Seconds of each supervised epoch of K nets, one after the other on every batch, rows on the device."""
    nets = nn.ModuleList(build(n_outputs=N_CLASSES) for _ in range(K)).to(device)
    optimizer = torch.optim.SGD(nets.parameters(), lr=1e-3, momentum=0.9, weight_decay=0.01)
    X, y = torch.from_numpy(X).to(device), torch.from_numpy(counts.argmax(1)).to(device)
    durations = []
    for _ in range(n_epochs):
        wait(device)
        start = time.perf_counter()
        for rows in torch.randperm(len(X), device=device).split(batch_size):
            optimizer.zero_grad()
            batch, labels = X[rows], y[rows]
            for net in nets:
                nn.functional.cross_entropy(net(batch), labels).backward()
            optimizer.step()
        wait(device)
        durations.append(time.perf_counter() - start)
    return durations


@cache
def matmul_ceiling(device, size, tf32):
    """Floating-point operations per second of a large float32 matrix product."""
    a, b = torch.randn(2, size, size, device=device)
    times = []
    with allow_tf32(tf32):
        for _ in range(10):
            wait(device)
            start = time.perf_counter()
            a @ b
            wait(device)
            times.append(time.perf_counter() - start)
    return 2 * size**3 / np.median(times[3:])


def flops_per_item(build, X, n=4):
    """Operations of a training step of K nets, forward and backward, per item."""
    net = build(n_outputs=N_CLASSES)
    with FlopCounterMode(display=False) as counter:
        net(torch.from_numpy(X[:n])).sum().backward()
    return K * counter.get_total_flops() / n


def with_peak(function, *args, device="cuda"):
    """Result of a call and its peak device memory in MiB above what was allocated before; None on the CPU."""
    if device == "cpu":
        return function(*args), None
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = function(*args)
    return result, (torch.cuda.max_memory_allocated() - before) / 2**20


def device_work(function, *args):
    """Kernels and copies of a call, the microseconds that they took, and the waits of the host for the device."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        function(*args)
    events = profiler.events()
    # annotations such as Optimizer.step are drawn on the device's time line too
    work = [e for e in events if e.device_type == torch.autograd.DeviceType.CUDA and "Optimizer" not in e.name]
    waits = sum(e.name in ("cudaStreamSynchronize", "cudaDeviceSynchronize") for e in events)
    return np.array([len(work), sum(e.time_range.elapsed_us() for e in work), waits], dtype=float)


@contextlib.contextmanager
def allow_tf32(on):
    """Matrix products and convolutions with 10-bit mantissas, or in full float32."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = on
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def wait(device):
    """Let the device finish what it was given."""
    if device != "cpu":
        torch.cuda.synchronize()


def votes_for(*shape):
    """Random items of a shape and the votes of five annotators, each right with probability 0.73."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape, dtype=np.float32)
    truth = (X.reshape(len(X), -1) @ rng.standard_normal((X[0].size, N_CLASSES), dtype=np.float32)).argmax(1)
    guesses = rng.integers(N_CLASSES, size=(len(X), 5))
    answers = np.where(rng.random(guesses.shape) < 0.7, truth[:, None], guesses)
    return X, (answers[:, :, None] == np.arange(N_CLASSES)).sum(1)


def mlp(n_features, hidden_layer_sizes, n_outputs):
    """Perceptron of the same shape as those of `AnnotatorLDA`."""
    layers = []
    for fan_in, fan_out in pairwise([n_features, *hidden_layer_sizes, n_outputs]):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


def resnet(n_outputs, width):
    """Four stages of two residual blocks, as in the 18-layer net, with a stem for small images."""
    layers, n_in = [*_convolution(3, width, 3, 1), nn.ReLU(inplace=True)], width
    for stage in range(4):
        n_out = width * 2**stage
        layers += [_Residual(n_in, n_out, 1 if stage == 0 else 2), _Residual(n_out, n_out, 1)]
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, n_outputs))


class _Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, n_in, n_out, stride):
        super().__init__()
        first, second = _convolution(n_in, n_out, 3, stride), _convolution(n_out, n_out, 3, 1)
        self.body = nn.Sequential(*first, nn.ReLU(inplace=True), *second)
        same = n_in == n_out and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(*_convolution(n_in, n_out, 1, stride))

    def forward(self, X):
        return torch.relu(self.body(X) + self.shortcut(X))


def _convolution(n_in, n_out, size, stride):
    return nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=False), nn.BatchNorm2d(n_out)
