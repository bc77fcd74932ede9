"""From the logits of a surrogate loss to log-probabilities of the classes and of right answers."""

import numpy as np
from scipy.special import log_expit, logsumexp


def softmax_link(logits, n_classes):
    """Estimates of the softmax parametrisation (Multi-L2D Eq. 12).

    Parameters
    ----------
    logits : ndarray of shape (n, C + M)
        Of the classes and the experts.
    n_classes : int
        C.

    Returns
    -------
    log_class : ndarray of shape (n, C)
        ``ln p(y = c | x)``.
    log_right : ndarray of shape (n, M)
        ``ln p(m_j = y | x)``, without an upper bound: ``t_j / (1 - sum t)`` is the share of an expert over that of all
        classes, so that the normaliser cancels and nothing is lost where the experts hold nearly all of it.
    """
    shares = logits - logsumexp(logits[:, :n_classes], axis=1, keepdims=True)
    return shares[:, :n_classes], shares[:, n_classes:]


def one_vs_all_link(logits, n_classes):
    """Estimates of the one-vs-all parametrisation (Multi-L2D Eq. 13); arguments and shapes as in `softmax_link`.

    The class probabilities of a row need not sum to 1.
    """
    shares = log_expit(logits)
    return shares[:, :n_classes], shares[:, n_classes:]


def less_price(log_right, price):
    """``ln(p - price)`` from ``ln p`` (n, M) and prices (M,) of at least 0; -inf where asking is worth nothing."""
    with np.errstate(divide="ignore"):
        return log_right + np.log1p(-np.exp(np.minimum(np.log(price) - log_right, 0.0)))
