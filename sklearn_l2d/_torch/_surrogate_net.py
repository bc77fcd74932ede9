"""The net of the deferrers that minimise a surrogate loss."""

import numpy as np

from ._net import Net, logit_batches
from ._target_net import build_target_net


class SurrogateNet(Net):
    """Mean of a loss per row; targets are the worth of every option and row weights of mean 1 over the data set.

    Weights are not scaled within a batch, where one without the heavy rows would count as much as any other.

    Attributes
    ----------
    row_loss : callable
        One of `_surrogate_losses`, its other arguments bound.
    """

    def batch_loss(self, logits, targets, X):
        value, weight = (target.to(logits.dtype) for target in targets)
        return (weight * self.row_loss(logits, value)).mean()


def build_surrogate_net(row_loss, **settings):
    """Initialised `SurrogateNet`; the settings are those of `build_target_net`."""
    return build_target_net(net_class=SurrogateNet, row_loss=row_loss, **settings)


def predict_logits(net, X):
    """Logits (n, n_outputs) of a `SurrogateNet`, float64."""
    return np.concatenate([logits[0].cpu().numpy() for _, logits in logit_batches(net.module_.members, X, net.device)])
