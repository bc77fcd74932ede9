"""Online EM for K behaviours on anonymous vote counts: the net behind `AnnotatorLDA`."""

from functools import partial

import numpy as np
import torch
from torch import nn

from ._e_steps import responsibilities
from ._modules import build_ensemble
from ._net import Net, predict_batches


class Behaviours(nn.Module):
    """K behaviours and, while the start lasts, the consensus net that anchors them.

    Attributes
    ----------
    phase : {"consensus", "anchor", "stream", "em"}
        What a batch teaches: the consensus net alone; the behaviours, with responsibilities from the tempered
        consensus; both at once, for streams; the behaviours, with their own responsibilities.
    """

    def __init__(self, build, n_members, with_consensus):
        super().__init__()
        self.phase = "em"
        self.consensus = build(n_members=1) if with_consensus else None
        self.members = build(n_members=n_members)

    def forward(self, X):
        """Logits (K, B, C) of the behaviours and (1, B, C) of the consensus; None where the phase needs none."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.phase != "anchor"):
            consensus = None if self.phase == "em" else self.consensus(X)
        return None if self.phase == "consensus" else self.members(X), consensus


class AnnotationNet(Net):
    """EM net on sparse counts: each batch runs an E-step and gives the M-step its loss.

    Attributes
    ----------
    alpha : float64 tensor of shape (K,)
        Dirichlet concentration of the items' mixtures, on the CPU.
    max_e_steps, e_tol : int, float
        Of the E-step.
    """

    def e_step(self, log_f, votes):
        """Responsibilities (B, D, K) of the behaviours for votes (B, D), float64."""
        alpha = self.alpha.to(votes.device)
        return responsibilities(log_f.double(), votes, alpha, max_sweeps=self.max_e_steps, tol=self.e_tol)[0]

    def batch_loss(self, logits, targets, X):
        labels, votes = targets
        members, consensus = logits
        phase, total, loss = self.module_.phase, votes.sum().clamp(min=1e-12), 0.0
        if phase in ("consensus", "stream"):
            log_p = pick(consensus, labels)[..., 0]
            loss = -(votes.to(log_p.dtype) * log_p).sum() / total
        if phase == "consensus":
            return loss
        log_f = pick(members, labels)
        with torch.no_grad():
            source = log_f if phase == "em" else pick(temper(consensus, len(self.alpha)), labels)
            weights = (votes.unsqueeze(-1) * self.e_step(source, votes)).to(log_f.dtype)
        return loss - (weights * log_f).sum() / total


def build_annotation_net(module, n_features, n_outputs, hidden_layer_sizes, alpha, with_consensus, **settings):
    """Initialised `AnnotationNet` with one behaviour per entry of `alpha`.

    With a consensus net, the behaviours start from its weights.
    """
    build = partial(
        build_ensemble,
        module,
        n_features=n_features,
        n_outputs=n_outputs,
        hidden_layer_sizes=tuple(hidden_layer_sizes),
    )
    dtype = settings.pop("dtype")
    net = AnnotationNet.build(
        partial(Behaviours, build, len(alpha), with_consensus), alpha=torch.as_tensor(alpha), **settings
    )
    net.module_.to(dtype)
    if with_consensus:
        net.module_.members.copy_members_from(net.module_.consensus)
    return net


def drop_consensus(net):
    """Forget the consensus net, which has done its work, and with it the state of its optimiser."""
    net.module_.phase, net.module_.consensus = "em", None
    net.initialize_optimizer()


def survey(net, X, labels, votes):
    """One pass over the training rows with the final behaviours.

    Returns
    -------
    summary : dict
        ``weights`` (K,): share of the votes that each behaviour carries, ``sum T zeta / sum T``;
        ``agreement`` (K,): mean probability that it gives to a vote;
        ``distance`` (K, K): largest total variation between two behaviours over all items.
    """
    n_members = len(net.alpha)
    weights, agreement = np.zeros(n_members), np.zeros(n_members)
    distance = np.zeros((n_members, n_members))
    for rows, log_proba in predict_batches(net.module_.members, X, net.device):
        proba = log_proba.exp()
        for k in range(n_members):
            apart = (proba - proba[k]).abs().sum(-1).amax(-1) / 2
            distance[k] = np.maximum(distance[k], apart.cpu().numpy())
        log_f = gather(log_proba, labels[rows])
        batch_votes = torch.as_tensor(votes[rows], device=log_f.device)
        weights += (batch_votes.unsqueeze(-1) * net.e_step(log_f, batch_votes)).sum((0, 1)).cpu().numpy()
        agreement += (batch_votes.unsqueeze(-1) * log_f.exp()).sum((0, 1)).cpu().numpy()
    total = votes.sum(dtype=float)
    return {"weights": weights / total, "agreement": agreement / total, "distance": distance}


def gather(log_proba, labels):
    """Entries (B, D, K) of log-probabilities (K, B, C) at integer labels (B, D)."""
    labels = torch.as_tensor(labels, device=log_proba.device)
    return log_proba.gather(2, labels.expand(len(log_proba), -1, -1)).permute(1, 2, 0)


def pick(logits, labels):
    """Log-probabilities (B, D, K) of the classes `labels` (B, D), from logits (K, B, C)."""
    return gather(torch.log_softmax(logits, 2), labels)


def temper(consensus, n_members):
    """Consensus logits (1, B, C) sharpened for the first behaviours and flattened for the last: (K, B, C).

    The exponents run geometrically from 2 to 1/2: the first behaviour takes the votes that agree with the
    consensus, the last one the dissent, in the same way everywhere in the input space.
    """
    beta = torch.as_tensor(np.geomspace(2.0, 0.5, n_members), dtype=consensus.dtype, device=consensus.device)
    return beta[:, None, None] * torch.log_softmax(consensus, 2)
