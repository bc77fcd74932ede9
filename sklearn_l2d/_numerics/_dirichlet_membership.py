"""The paper's own memberships: a Dirichlet per expert, by variational EM or as an average of posteriors."""

import numpy as np
from scipy.special import gammaln, polygamma, psi


def variational_membership(log_f, expert, n_experts, *, start=50.0, n_iter=200):
    """Mean of the Dirichlet that Algorithm 1 of L2D-Clusters arrives at after some iterations.

    Each iteration runs the E-step of every annotation (Eq. 13 and 16) and one damped Newton step in alpha
    (Eq. 20 to 29, corrected: in alpha itself, since the printed step in its logarithm has the wrong sign and
    diverges). The scale of alpha has no optimum, so that the softness of the result is that of `start` and `n_iter`.

    Parameters
    ----------
    log_f : ndarray of shape (n_annotations, K)
        Log-probability that each behaviour gives to an annotation.
    expert : ndarray of shape (n_annotations,), int
        Who made the annotation.
    n_experts : int
        Number of experts M.
    start : float, default=50.0
        Every entry of alpha before the first iteration.
    n_iter : int, default=200
        Iterations.

    Returns
    -------
    alpha : ndarray of shape (n_experts, K)
        Dirichlet parameters; divide by their sum for the membership. `start` for an expert without annotations.
    """
    f = np.exp(log_f - log_f.max(axis=1, keepdims=True))
    alpha = np.full((n_experts, f.shape[1]), float(start))
    sizes = np.bincount(expert, minlength=n_experts)
    seen = sizes > 0
    rho = alpha[expert] + 1 / f.shape[1]
    for _ in range(n_iter):
        rho = _posteriors(f, alpha[expert], rho, max_sweeps=50, tol=1e-6)
        expected_log = _sums(psi(rho) - psi(rho.sum(1, keepdims=True)), expert, n_experts)
        alpha[seen] = _newton_step(alpha[seen], expected_log[seen] / sizes[seen, None])
    return alpha


def average_membership(log_f, expert, n_experts, alpha):
    """Dirichlet that is nearest, in the sum of KL divergences, to the posteriors of all of an expert's items.

    The minimum of Eq. 30 has a closed form that needs no projected gradient: the divergence is taken from one member
    of an exponential family to others, so that their natural parameters are averaged.

    Parameters
    ----------
    log_f, expert, n_experts
        As in `variational_membership`.
    alpha : ndarray of shape (K,)
        Concentration of the items' mixtures.

    Returns
    -------
    rho : ndarray of shape (n_experts, K)
        Dirichlet parameters; `alpha` for an expert without annotations.
    """
    f = np.exp(log_f - log_f.max(axis=1, keepdims=True))
    prior = np.broadcast_to(np.asarray(alpha, dtype=float), f.shape)
    rho = _posteriors(f, prior, prior + 1 / f.shape[1], max_sweeps=200, tol=1e-10)
    sizes = np.bincount(expert, minlength=n_experts)[:, None]
    return np.where(sizes > 0, _sums(rho, expert, n_experts) / np.maximum(sizes, 1), np.asarray(alpha, dtype=float))


def _posteriors(f, alpha, rho, max_sweeps, tol):
    """Dirichlet parameters of the posterior of every annotation's item."""
    for _ in range(max_sweeps):
        zeta = f * np.exp(psi(rho))
        new = alpha + zeta / zeta.sum(1, keepdims=True)
        moved = np.abs(new - rho).max(initial=0.0)
        rho = new
        if moved <= tol:
            break
    return rho


def _newton_step(alpha, expected_log):
    """Damped Newton step on ``-lnB(alpha) + (alpha - 1) . expected_log`` of every expert."""
    total = alpha.sum(1, keepdims=True)
    gradient = psi(total) - psi(alpha) + expected_log
    q, c = -polygamma(1, alpha), polygamma(1, total)
    b = (gradient / q).sum(1, keepdims=True) / (1 / c + (1 / q).sum(1, keepdims=True))
    step = -(gradient - b) / q
    size, before = np.ones_like(total), _objective(alpha, expected_log)
    for _ in range(60):
        trial = alpha + size * step
        good = (trial > 0).all(1, keepdims=True)
        good &= _objective(np.where(good, trial, alpha), expected_log) >= before - 1e-12 * np.abs(before)
        if good.all():
            return trial
        size = np.where(good, size, size / 2)
    return np.where(good, trial, alpha)


def _objective(alpha, expected_log):
    log_beta = gammaln(alpha).sum(1, keepdims=True) - gammaln(alpha.sum(1, keepdims=True))
    return (alpha * expected_log).sum(1, keepdims=True) - log_beta


def _sums(values, expert, n_experts):
    sums = np.zeros((n_experts, values.shape[1]))
    np.add.at(sums, expert, values)
    return sums
