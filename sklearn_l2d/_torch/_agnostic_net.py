"""The net of EA-L2D: deferral from what the classifier thinks and how competent an expert is per class."""

from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn.functional import softplus

from .._numerics._answers import competence_posterior, tally_answers
from ._batches import Rows
from ._modules import MLPEnsemble
from ._net import Net, train

_FLOOR = 1e-6  # of the expected correctness
_CHUNK = 1 << 18  # cells of item, expert and class that are predicted at once


class AgnosticRejector(nn.Module):
    """Logit of deferral for an item, by its class probabilities, and an expert, by a competence per class.

    The classes have a net in common, whose outputs are averaged by their probabilities, so that their order and number
    do not matter, and go through a second net. Its last layer starts at zero, where the logit is that of the expected
    correctness ``ln sum_c p_c r_c``: exact where an expert's errors depend on the class alone.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int
        Hidden units of either net; the last ones of the first are averaged over classes.
    """

    def __init__(self, hidden_layer_sizes):
        super().__init__()
        *hidden, width = hidden_layer_sizes
        self.of_class = MLPEnsemble(1, 3, width, hidden)
        self.of_pair = MLPEnsemble(1, width, 1, hidden_layer_sizes)
        nn.init.zeros_(self.of_pair.weights[-1])

    def forward(self, proba):
        """Probabilities (B, C) as they are: what comes of them depends on the experts, for whom there is `defer`."""
        return proba

    def defer(self, proba, mean, spread):
        """Logits (B, E) of deferral.

        Parameters
        ----------
        proba : tensor of shape (B, C)
            Probabilities of the classes.
        mean, spread : tensors of shape (E, C)
            Mean and standard deviation of the competence.
        """
        shape = (len(proba), *mean.shape)
        cells = torch.stack([part.expand(shape) for part in (proba.unsqueeze(1), mean, spread)], -1)
        each = self.of_class(cells.flatten(0, 2))[0].relu().view(*shape, -1)
        average = (proba[:, None, :, None] * each).sum(2)
        beyond = self.of_pair(average.flatten(0, 1))[0].view(shape[:2])
        return (proba @ mean.T).clamp(min=_FLOOR).log() + beyond


class AgnosticNet(Net):
    """Softmax surrogate over the classes, whose log-probabilities are given, and one expert.

    Targets are (B, M): 1 and 0 where expert m was right and wrong, NaN where nothing is to be learnt.

    Attributes
    ----------
    competence : pair of tensors of shape (M, C) or None
        Mean and standard deviation during training.
    n_experts : int
        Largest number of experts per step.
    """

    competence = None

    def batch_loss(self, proba, targets, X):
        (right,) = targets
        experts = torch.randperm(right.shape[1])[: self.n_experts]
        logit = self.module_.defer(proba, *(part[experts] for part in self.competence))
        right = right[:, experts]
        return pair_loss(logit, right).sum() / (~right.isnan()).sum().clamp(min=1)


def pair_loss(logit, right):
    """`softmax_loss` of an expert beside log-probabilities of classes, less the classifier's own loss; 0 for NaN.

    The probabilities sum to 1, so that the share of the expert is ``sigmoid(logit)``. The minimum is at
    ``logit = ln p(right)``.
    """
    worth = right.nan_to_num()
    return ((1 + worth) * softplus(logit) - worth * logit).masked_fill(right.isnan(), 0.0)


def build_agnostic_net(hidden_layer_sizes, n_experts, **settings):
    """Initialised `AgnosticNet` in float64; further settings are those of `Net.build`."""
    net = AgnosticNet.build(partial(AgnosticRejector, tuple(hidden_layer_sizes)), n_experts=n_experts, **settings)
    net.module_.double()
    return net


def train_agnostic(net, proba, y_codes, codes, *, prior, max_epochs, seed, verbose):
    """Train on answers that are not in the competences, which are counted from a new part of them in every epoch.

    Parameters
    ----------
    net : AgnosticNet
        Initialised; it is trained in place.
    proba : ndarray of shape (n, C)
        Honest probabilities of the classes.
    y_codes : ndarray of int of shape (n,)
        True classes.
    codes : ndarray of shape (n, M)
        Encoded annotations, -1 missing.
    prior : tuple
        Center and strengths, as in `competence_posterior`.
    max_epochs, seed, verbose : int
        As in `train`.

    Returns
    -------
    history : list of dict
        As returned by `train`.
    """
    rng, truth = np.random.default_rng(seed), np.eye(proba.shape[1])[y_codes]
    right = np.where(codes < 0, np.nan, codes == y_codes[:, None])
    rows = Rows(proba, right, dtype=torch.float64, device=net.device)

    def draw(epoch):
        # any share of the answers of each expert, so that the net meets those who are hardly and who are well known
        shown = rng.random(codes.shape) < rng.random(codes.shape[1])
        tally = tally_answers(np.where(shown, codes, -1), truth)
        net.competence = _tensors(competence_moments(*tally, prior), net.device)
        rows.set_target(np.where(shown, np.nan, right))
        return "expert-agnostic"

    try:
        return train(net, rows, max_epochs, seed=seed, verbose=verbose, on_epoch=draw)
    finally:
        net.competence = None


def competence_moments(right, seen, prior):
    """Mean and standard deviation (M, C) of the competence from tallies (M, C)."""
    mean, variance = competence_posterior(right, seen, *prior)
    return mean, np.sqrt(variance)


def predict_agnostic(net, proba, moments):
    """Logits (n, E) of deferral for items with probabilities (n, C) to experts with moments (E, C)."""
    mean, spread = _tensors(moments, net.device)
    logits = np.empty((len(proba), len(mean)))
    step = max(1, _CHUNK // max(1, mean.numel()))
    for start in range(0, len(proba), step):
        rows = slice(start, start + step)
        with torch.no_grad():
            some = net.module_.defer(torch.as_tensor(proba[rows], device=net.device), mean, spread)
        logits[rows] = some.cpu().numpy()
    return logits


def _tensors(arrays, device):
    return tuple(torch.as_tensor(array, dtype=torch.float64, device=device) for array in arrays)
