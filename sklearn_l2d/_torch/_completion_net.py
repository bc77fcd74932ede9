"""Semi-supervised nets of experts: FixMatch on all of them at once."""

import math

import numpy as np
import torch

from ._batches import Rows
from ._net import Net


class AugmentedRows(Rows):
    """Rows in two views that are drawn anew for every batch: the input is the weak one, the last target the strong one.

    Parameters
    ----------
    X : ndarray of shape (n, ...)
        Items.
    codes : ndarray of shape (n, M)
        Encoded annotations, -1 missing.
    weak, strong : callables
        Called with a batch (b, ...) and a numpy Generator, return a batch of the same shape.
    rng : numpy Generator
        Of the views.
    dtype : torch.dtype
        Floating type of the batches.
    """

    def __init__(self, X, codes, *, weak, strong, rng, dtype):
        super().__init__(X, codes, dtype=dtype)
        self.views = {"weak_augmentation": weak, "strong_augmentation": strong}
        self.rng = rng

    def __getitem__(self, rows):
        X, (codes,) = super().__getitem__(rows)
        weak, strong = (
            torch.as_tensor(augment(X.numpy(), view, name, self.rng), dtype=self.dtype)
            for name, view in self.views.items()
        )
        return weak, (codes, strong)


def augment(X, view, name, rng):
    """A view of a batch, refused where it is not one; `name` is the parameter that it comes from."""
    seen = np.asarray(view(X.copy(), rng))
    if seen.shape != X.shape or seen.dtype.kind not in "fiu" or not np.isfinite(seen).all():
        raise ValueError(
            f"{name} turned a batch of shape {X.shape} into shape {seen.shape} and type {seen.dtype}; it must "
            "return finite numbers of the shape that it was given."
        )
    return seen


class CompletionNet(Net):
    """FixMatch: labels teach the weak view, and confident guesses about it the strong view, of each expert's net.

    Attributes
    ----------
    threshold : float
        Probability from which a guess counts.
    unlabeled_weight : float
        Of the loss of the guesses.
    """

    def batch_loss(self, logits, targets, X):
        codes, strong = targets
        codes = codes.T.long()
        given = codes >= 0
        log_weak = torch.log_softmax(logits, -1)
        surest, guess = log_weak.detach().max(-1)
        sure = ~given & (surest >= math.log(self.threshold))
        log_strong = torch.log_softmax(self.infer(strong), -1)
        loss = _mean_loss(log_weak, codes.clamp(min=0), given, given)
        return loss + self.unlabeled_weight * _mean_loss(log_strong, guess, sure, ~given)


def _mean_loss(log_proba, codes, counted, among):
    """Cross-entropy summed over nets: of each the mean over the rows `among`, of which some are `counted`."""
    loss = -log_proba.gather(-1, codes.unsqueeze(-1)).squeeze(-1) * counted
    return (loss.sum(1) / among.sum(1).clamp(min=1)).sum()
