"""The net of `AnnotatorLDA`: behaviours trained by EM on sparse counts, and what changes it between epochs."""

from functools import partial

import numpy as np

from .._torch._e_steps import responsibilities
from .._torch._modules import Behaviours, ensemble_for, kept_members, squared_norms
from .._torch._net import Net, build_net


class AnnotationNet(Net):
    """Net trained by EM on sparse counts: the loss of a batch is that of the M-step after an E-step.

    Attributes
    ----------
    alpha : ndarray of shape (K,)
        Dirichlet concentration of the items' mixtures.
    max_e_steps, e_tol : int, float
        Of the E-step.
    penalty : float
        L2 penalty of all behaviours together.
    decay : ndarray of shape (K,) or None
        Penalty of each behaviour, instead of that of the optimiser.
    """

    decay = None

    def e_step(self, log_f, votes):
        """Responsibilities (B, D, K) of the behaviours for votes (B, D), float64."""
        return responsibilities(
            log_f.double(), votes, self.tensor(self.alpha), max_sweeps=self.max_e_steps, tol=self.e_tol
        )[0]

    def batch_loss(self, logits, targets, X):
        labels, votes = targets
        members, consensus = logits
        phase, total, loss = self.module_.phase, votes.sum().clamp(min=1e-12), 0.0
        if self.decay is not None:
            loss = (self.tensor(self.decay, members.dtype) * squared_norms(self.module_.members)).sum() / 2
        if phase == "penalty":
            return loss - (votes.to(members.dtype).unsqueeze(-1) * pick(members, labels)).sum() / total
        if phase in ("consensus", "stream"):
            log_p = pick(consensus, labels)[..., 0]
            loss = loss - (votes.to(log_p.dtype) * log_p).sum() / total
        if phase == "consensus":
            return loss
        log_f = pick(members, labels)
        source = log_f if phase == "em" else pick(temper(consensus, len(self.alpha)), labels)
        weights = (votes.unsqueeze(-1) * self.e_step(source.detach(), votes)).to(log_f.dtype)
        return loss - (weights * log_f).sum() / total


def gather(log_proba, labels):
    """Entries (B, D, K) of log-probabilities (K, B, C) at integer labels (B, D)."""
    return log_proba.gather(2, labels.expand(len(log_proba), -1, -1)).permute(1, 2, 0)


def pick(logits, labels):
    """Log-probabilities (B, D, K) of the classes `labels` (B, D), from logits (K, B, C)."""
    return gather(logits.log_softmax(2), labels)


def temper(consensus, n_members):
    """Consensus logits (1, B, C) sharpened for the first behaviours and flattened for the last: (K, B, C).

    The exponents run geometrically from 2 to 1/2: the first behaviour takes the votes that agree with the
    consensus, the last one the dissent, in the same way everywhere in the input space.
    """
    beta = consensus.new_tensor(np.geomspace(2.0, 0.5, n_members))
    return beta[:, None, None] * consensus.log_softmax(2)


def build_annotation_net(params, items, n_classes, alpha, seed):
    """Untrained `AnnotationNet` with one behaviour per entry of `alpha`.

    `params` are those of `AnnotatorLDA`, with the penalty as a number. With a consensus net, the behaviours start from
    its weights.
    """
    build, n_clusters = ensemble_for(params, items, n_classes), len(alpha)
    with_consensus = params["init"] == "consensus" and n_clusters > 1
    net = build_net(
        AnnotationNet,
        partial(Behaviours, build, n_clusters, with_consensus),
        params | {"weight_decay": params["weight_decay"] / n_clusters},
        seed,
        alpha=alpha,
        penalty=params["weight_decay"],
        max_e_steps=params["max_e_steps"],
        e_tol=params["e_tol"],
    )
    if with_consensus:
        net.module_.members.copy_members_from(net.module_.consensus)
    return net


def drop_consensus(net):
    """Remove the consensus net and the state of its optimiser."""
    net.module_.phase, net.module_.consensus = "em", None
    net.module = partial(Behaviours, *net.module.args[:2], False)  # from which a pickle builds it anew
    net.initialize_optimizer()


def set_alpha(net, alpha):
    """Change the concentration of a net, and with it the shares of the behaviours in the penalty.

    A behaviour has the share in the penalty that it has in the votes. Behaviours that answer alike have the penalty of
    one then, however the votes are shared between them.
    """
    net.alpha = alpha
    net.decay = net.penalty * alpha / alpha.sum()
    net.context = net.context | {"alpha": alpha, "decay": net.decay}  # from which a pickle builds it anew
    net.optimizer__weight_decay = 0.0
    for group in net.optimizer_.param_groups:
        group["weight_decay"] = 0.0


def keep_behaviours(net, kept):
    """Drop the other behaviours of a net, whose training goes on."""
    kept_members(net.module_.members, net.optimizer_, kept)
    build, _, with_consensus = net.module.args
    net.module = partial(Behaviours, build, len(kept), with_consensus)
