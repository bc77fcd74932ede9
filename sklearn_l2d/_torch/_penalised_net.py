"""A gate that pays for its coverage: the soft constraint that other work puts into the loss."""

import torch

from ._target_net import TargetNet


class PenalisedNet(TargetNet):
    """Cross-entropy plus ``penalty * outside ** 2``, `outside` being how far the soft coverage is from its bounds.

    Attributes
    ----------
    penalty : float
        Weight of the second term.
    coverage_bounds : pair of float
        Bounds of the mean probability of the last output over a batch.
    """

    def batch_loss(self, logits, targets, X):
        low, high = self.coverage_bounds
        coverage = torch.softmax(self.with_prior(logits, *targets[1:]), -1)[:, -1].mean()
        outside = (low - coverage).clamp(min=0) + (coverage - high).clamp(min=0)
        return super().batch_loss(logits, targets, X) + self.penalty * outside**2
