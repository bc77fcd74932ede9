"""A net that learns soft targets: the gate of a deferrer, and the default classifier."""

from functools import partial

import numpy as np
import torch
from torch import nn

from ._modules import build_ensemble
from ._net import Net, predict_batches


class Single(nn.Module):
    """One net, as an ensemble of one member."""

    def __init__(self, build):
        super().__init__()
        self.n_features, self.n_outputs = build.keywords["n_features"], build.keywords["n_outputs"]
        self.members = build(n_members=1)

    def forward(self, X):
        return self.members(X)[0]


class TargetNet(Net):
    """Cross-entropy with one row of non-negative targets per item; a row that sums to w has weight w."""

    def batch_loss(self, logits, targets, X):
        (q,) = targets
        q = q.to(logits.dtype)
        return -(q * torch.log_softmax(logits, -1)).sum() / q.sum().clamp(min=1e-12)


def build_target_net(module, n_features, n_outputs, hidden_layer_sizes, dtype, net_class=TargetNet, **settings):
    """Initialised `TargetNet`, or another `Net` of one member; the settings are those of `Net.build`."""
    build = partial(
        build_ensemble,
        module,
        n_features=n_features,
        n_outputs=n_outputs,
        hidden_layer_sizes=tuple(hidden_layer_sizes),
    )
    net = net_class.build(partial(Single, build), **settings)
    net.module_.to(dtype)
    return net


def predict_log_proba(net, X):
    """Log-probabilities (n, n_outputs) of a `TargetNet`, float64."""
    return np.concatenate(
        [log_proba[0].cpu().numpy() for _, log_proba in predict_batches(net.module_.members, X, net.device)]
    )
