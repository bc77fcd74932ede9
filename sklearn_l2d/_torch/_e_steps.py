"""Mean-field E-step of the Dirichlet-categorical mixture behind `AnnotatorLDA`.

The functions take torch tensors because the E-step runs on every training batch, on the device of the nets;
`torch.as_tensor` passes a numpy array without a copy.
"""

import torch


def responsibilities(log_f, votes, alpha, *, max_sweeps=100, tol=1e-8):
    """Variational posterior of the mixtures of a batch of items, from their vote counts.

    Votes for the same class of an item have the same posterior, so that it is computed once per distinct class of an
    item (L2D-Clusters Eq. 13 and 16, collapsed from annotations to counts).

    Parameters
    ----------
    log_f : tensor of shape (n, D, K)
        Log-probability that each of the K behaviours gives to the d-th distinct class of an item.
    votes : tensor of shape (n, D)
        Votes for that class, real-valued; 0 pads items with fewer distinct classes.
    alpha : tensor of shape (K,)
        Dirichlet concentration of the items' mixtures.
    max_sweeps : int, default=100
        Largest number of coordinate-ascent sweeps.
    tol : float, default=1e-8
        The updates of an item stop when no entry of its `rho` changes by more than this many votes. Each item stops on
        its own, so that the result does not depend on the batches.

    Returns
    -------
    zeta : tensor of shape (n, D, K)
        Probability that a vote for the d-th class came from each behaviour.
    rho : tensor of shape (n, K)
        Dirichlet parameters of the items' mixtures, ``alpha + sum_d votes_d zeta_d``.
    """
    # behaviours are the first axis, so that reductions over them are vectorised
    log_f, alpha = log_f.permute(2, 0, 1), alpha.unsqueeze(-1)
    rho = alpha + votes.sum(1) / len(alpha)
    for _ in range(max_sweeps):
        zeta = torch.softmax(log_f + torch.digamma(rho).unsqueeze(-1), 0)
        new_rho = alpha + (votes * zeta).sum(-1)
        moved = (new_rho - rho).abs().amax(0) > tol
        if not moved.any():
            break
        rho = torch.where(moved, new_rho, rho)  # a converged item repeats its last update
    return zeta.permute(1, 2, 0), new_rho.T


def answer_posterior(log_f, codes, share, log_truth):
    """Posterior of the answers of every expert, given the truth (PL2D Eq. 16 to 23, corrected).

    The paper approximates it by a mean field whose expectation is wrong. Given the expert who decides, the answers of
    different experts are independent, so that the posterior has a closed form: with ``Z_m = sum_c f_mc p(y | c)``, a
    missing answer has ``q(t_m = c) = r_m f_mc p(y | c) / Z_m + (1 - r_m) f_mc``. A given answer has probability 1.

    Parameters
    ----------
    log_f : tensor of shape (n, M, C)
        Log-probability that an expert answers a class.
    codes : tensor of shape (n, M)
        Encoded annotations, -1 missing.
    share : tensor of shape (n, M)
        Posterior probability r that the expert decided the item.
    log_truth : tensor of shape (n, C)
        ``ln p(y | answer)`` of the item's true class, for every answer.

    Returns
    -------
    posterior : tensor of shape (n, M, C)
    """
    share = share.unsqueeze(-1)
    absent = share * torch.softmax(log_f + log_truth.unsqueeze(1), -1) + (1 - share) * log_f.exp()
    given = torch.nn.functional.one_hot(codes.long().clamp(min=0), log_f.shape[-1]).to(log_f.dtype)
    return torch.where(codes.unsqueeze(-1) >= 0, given, absent)
