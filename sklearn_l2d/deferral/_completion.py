"""Semi-supervised nets, one per expert, that learn to complete missing annotations: FixMatch and MixMatch."""

import math

import numpy as np

from .._torch._batches import Rows
from .._torch._net import Net

_WEAK_NOISE, _STRONG_NOISE, _MASKED = 0.1, 0.3, 0.2  # in standard deviations of a column; share of the columns


class AugmentedRows(Rows):
    """Rows in two views, drawn anew for every batch: the first one is the input, the second one the last target.

    Parameters
    ----------
    X : ndarray of shape (n, ...)
        Items.
    codes : ndarray or AnswerTable of shape (n, M)
        Encoded annotations, -1 missing.
    weight : ndarray of shape (n,)
        Weights of the items.
    views : sequence of pairs
        Names of parameters and functions that are called with a batch (b, ...) and a numpy Generator and return a batch
        of the same shape.
    rng : numpy Generator
        Random numbers for the views.
    **settings
        As in `Rows`.
    """

    def __init__(self, X, codes, weight, *, views, rng, **settings):
        super().__init__(X, codes, weight, **settings)
        self.views, self.rng = views, rng

    def batch(self, X, targets):
        X, given = super().batch(X, targets)
        first, second = (X.new_tensor(augment(X.numpy(), view, name, self.rng)) for name, view in self.views)
        return first, (*given, second)


class MixedRows(AugmentedRows):
    """`AugmentedRows` with one more target (b,): the share of each item in its mixture with another, at least a half.

    Parameters
    ----------
    *args, **settings
        As in `AugmentedRows`.
    mixing : float
        Parameter of the Beta distribution of the share; 0 mixes nothing.
    """

    def __init__(self, *args, mixing, **settings):
        super().__init__(*args, **settings)
        self.mixing = mixing

    def batch(self, X, targets):
        X, targets = super().batch(X, targets)
        share = self.rng.beta(self.mixing, self.mixing, len(X)) if self.mixing > 0 else np.ones(len(X))
        return X, (*targets, X.new_tensor(np.maximum(share, 1 - share)))


def augment(X, view, name, rng):
    """A view of a batch, refused if it is not valid; `name` is its parameter."""
    seen = np.asarray(view(X.copy(), rng))
    if seen.shape != X.shape or seen.dtype.kind not in "fiu" or not np.isfinite(seen).all():
        raise ValueError(
            f"{name} turned a batch of shape {X.shape} into shape {seen.shape} and type {seen.dtype}; it must "
            "return finite numbers of the shape that it was given."
        )
    return seen


def tabular_views(items):
    """Default views of numbers: noise, and masked entries in the strong one."""
    mean, size = items.mean(0, dtype=float), np.maximum(np.abs(items).max(0).astype(float), 1e-300)
    spread = (items / size).std(0) * size  # so that the squares of large columns are finite

    def weak(X, rng):
        return X + _WEAK_NOISE * spread * rng.normal(size=X.shape)

    def strong(X, rng):
        noisy = X + _STRONG_NOISE * spread * rng.normal(size=X.shape)
        return np.where(rng.random(X.shape) < _MASKED, mean, noisy)

    return weak, strong


class CompletionNet(Net):
    """Base of the ensembles of nets, one per expert, that learn from items with and without annotations.

    Attributes
    ----------
    unlabeled_weight : float
        Weight of the loss of the guesses.
    progress : float
        Share of the training that is over, from 0 to 1.
    """

    progress = 0.0

    def begin(self, n_epochs, epoch):
        """Begin an epoch; returns the name of the phase."""
        self.progress = epoch / n_epochs
        return "answers"


class FixMatchNet(CompletionNet):
    """FixMatch: each expert's net learns annotations in the weak view and confident guesses in the strong view.

    Targets are the codes (b, M), -1 missing, row weights (b,) and the strong view.

    Attributes
    ----------
    threshold : float
        Smallest probability of a guess that counts.
    """

    def batch_loss(self, logits, targets, X):
        codes, weight, strong = targets
        codes, weight = codes.T.long(), weight.to(logits.dtype)
        given = codes >= 0
        log_weak = logits.log_softmax(-1)
        surest, guess = log_weak.detach().max(-1)
        sure = ~given & (surest >= math.log(self.threshold))
        log_strong = self.infer(strong).log_softmax(-1)
        known = -log_weak.gather(-1, codes.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        guessed = -log_strong.gather(-1, guess.unsqueeze(-1)).squeeze(-1)
        loss = _mean_loss(known, given * weight, given * weight)
        return loss + self.unlabeled_weight * _mean_loss(guessed, sure * weight, ~given * weight)


class MixMatchNet(CompletionNet):
    """MixMatch: each expert's net learns mixtures of items, whose annotations and sharpened guesses are mixed, too.

    Targets are the codes (b, M), -1 missing, row weights (b,), the second weak view, and the share (b,) of each item in
    its mixture. All nets see the same mixtures.

    Attributes
    ----------
    sharpening : float
        Temperature of the guesses.
    """

    def batch_loss(self, logits, targets, X):
        codes, weight, second, share = targets
        codes, weight = codes.T.long(), weight.to(logits.dtype)
        given, order = codes >= 0, self.order(len(share)).to(self.device)
        guess = (logits.detach().softmax(-1) + self.infer(second).detach().softmax(-1)) / 2
        guess = (guess.clamp(min=1e-30).log() / self.sharpening).softmax(-1)
        label = guess.clone()
        label[given] = self.tensor(np.eye(logits.shape[-1]), logits.dtype)[codes[given]]
        of_row = share.reshape(-1, *[1] * (second.ndim - 1))
        mixed = of_row * X.to(self.device) + (1 - of_row) * second[order]
        label = share[:, None] * label + (1 - share[:, None]) * label[:, order]
        log_proba = self.infer(mixed).log_softmax(-1)
        known, guessed = -(label * log_proba).sum(-1), (log_proba.exp() - label).square().sum(-1)
        loss = _mean_loss(known, given * weight, given * weight)
        rising = self.unlabeled_weight * self.progress
        return loss + rising * _mean_loss(guessed, ~given * weight, ~given * weight)


def _mean_loss(loss, counted, among):
    """Sum of the losses (M, b) by the weights `counted`, divided by the weight of the rows `among`, over all nets."""
    return ((loss * counted).sum(1) / among.sum(1).clamp(min=1)).sum()
