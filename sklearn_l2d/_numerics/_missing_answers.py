"""What experts may have answered where they did not: the E-step of PL2D, in closed form.

The function takes torch tensors because it runs on every training batch, on whichever device the nets are;
`torch.as_tensor` lends it a numpy array without a copy.
"""

import torch


def answer_posterior(log_f, codes, share, log_truth):
    """Posterior of every expert's answer, given the truth and who decided (PL2D Eq. 16 to 23, corrected).

    The print approximates it by a mean field whose expectation is wrong. Given who decides, the answers of different
    experts are independent, so that it has a closed form: with ``Z_m = sum_c f_mc p(y | c)`` an absent answer is
    ``q(t_m = c) = r_m f_mc p(y | c) / Z_m + (1 - r_m) f_mc``. An answer that was given is what it is.

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
