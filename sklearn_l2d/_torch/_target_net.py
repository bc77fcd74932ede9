"""A net that learns soft targets: the gate of a deferrer, and the default classifier."""

from functools import partial

import numpy as np
import torch
from scipy.special import log_softmax
from torch import nn

from ._modules import MLPEnsemble, build_ensemble
from ._net import Net, predict_batches


class Single(nn.Module):
    """One net, as an ensemble of one member.

    With a prior, a perceptron starts by adding nothing to it, and the weight of the prior is learnt: its logarithm
    starts at zero, relative to the weight that was given. The offset of the prior is not learnt.
    """

    def __init__(self, build, with_prior=False):
        super().__init__()
        self.n_features, self.n_outputs = build.keywords["n_features"], build.keywords["n_outputs"]
        self.members = build(n_members=1)
        if with_prior:
            self.log_weight = nn.Parameter(torch.zeros(()))
            self.register_buffer("offset", torch.zeros(self.n_outputs))
            if isinstance(self.members, MLPEnsemble):
                nn.init.zeros_(self.members.weights[-1])

    def forward(self, X):
        return self.members(X)[0]


class TargetNet(Net):
    """Cross-entropy with one row of non-negative targets per item; a row that sums to w has weight w.

    Attributes
    ----------
    prior_weight : float
        Above zero, every item comes with prior logits, to which the net adds its own.
    """

    def batch_loss(self, logits, targets, X):
        q, *prior = targets
        q = q.to(logits.dtype)
        return -(q * torch.log_softmax(self.with_prior(logits, *prior), -1)).sum() / q.sum().clamp(min=1e-12)

    def with_prior(self, logits, prior=None):
        """Logits (B, n_outputs) with those of the prior added."""
        if prior is None:
            return logits
        module = self.module_
        return logits + self.prior_weight * module.log_weight.exp() * prior.to(logits) + module.offset.to(logits)


def build_target_net(
    module, n_features, n_outputs, hidden_layer_sizes, dtype, net_class=TargetNet, prior_weight=0.0, **settings
):
    """Initialised `TargetNet`, or another `Net` of one member; further settings are those of `Net.build`."""
    build = partial(
        build_ensemble,
        module,
        n_features=n_features,
        n_outputs=n_outputs,
        hidden_layer_sizes=tuple(hidden_layer_sizes),
    )
    net = net_class.build(partial(Single, build, prior_weight > 0), prior_weight=prior_weight, **settings)
    net.module_.to(dtype)
    return net


def predict_log_proba(net, X, prior=None):
    """Log-probabilities (n, n_outputs) of a `TargetNet`, float64; prior logits of that shape where it was built so."""
    own = np.concatenate(
        [log_proba[0].cpu().numpy() for _, log_proba in predict_batches(net.module_.members, X, net.device)]
    )
    if prior is None:
        return own
    with torch.no_grad():
        logits = net.with_prior(torch.from_numpy(own).to(net.device), torch.from_numpy(prior))
    return log_softmax(logits.cpu().numpy(), axis=1)
