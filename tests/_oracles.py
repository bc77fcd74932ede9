"""Independent computations with which several tests compare the package."""

import torch


def evidence_lower_bound(log_f, votes, zeta, rho, alpha):
    """Lower bound of ln Pr(t | x, alpha) of every item, in nats (minus L2D-Clusters Eq. 9).

    Parameters
    ----------
    log_f, votes, zeta, rho, alpha : tensors
        As in `responsibilities`; `rho` must be the update by `zeta`.

    Returns
    -------
    elbo : tensor of shape (n,)
        Lower bounds, without the multinomial coefficient.
    """
    per_class = (zeta * log_f - torch.xlogy(zeta, zeta)).sum(-1)
    return (votes * per_class).sum(1) + _log_beta(rho) - _log_beta(alpha)


def _log_beta(a):
    return torch.lgamma(a).sum(-1) - torch.lgamma(a.sum(-1))
