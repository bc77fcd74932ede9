"""Mixture weights of known components: the membership of an expert (L2D-Clusters Eq. 2 and 3)."""

import numpy as np

_BLOCK = 100_000  # floats in one padded block of experts: the work of a Newton step stays in the cache
_GAP = 1e-6  # nats per annotation within which the maximum is certified
_MAX_STEPS = 200


def mixture_weights(log_f, expert, n_experts, *, prior=None):
    """Maximum a posteriori mixture weights of every expert, with a certificate of optimality.

    With one annotation per item the likelihood of an expert depends on the Dirichlet parameter of Eq. 2 only
    through its mean, and is concave in it: ``mean_j ln sum_k a_k f_jk + sum_k (b_k / N) ln a_k``. A log-barrier
    Newton method solves all experts at once (K x K systems) and drops an expert once its gap is certified.

    Parameters
    ----------
    log_f : ndarray of shape (n_annotations, K)
        Log-probability that each behaviour gives to an annotation.
    expert : ndarray of shape (n_annotations,), int
        Who made the annotation.
    n_experts : int
        Number of experts M.
    prior : ndarray of shape (K,) or (n_experts, K), default=None
        Dirichlet pseudo-counts b, of all experts or of each; None is maximum likelihood.

    Returns
    -------
    weights : ndarray of shape (n_experts, K)
        Rows on the simplex; NaN for an expert without annotations.
    gap : ndarray of shape (n_experts,)
        Certified gap ``max_k grad_k - 1 - sum(b) / N`` of each expert, in nats per annotation: the objective is within
        this distance of its maximum. At most 1e-6, or what 200 Newton steps reach; NaN without annotations.
    """
    n_components = log_f.shape[1]
    prior = np.broadcast_to(0.0 if prior is None else np.asarray(prior, dtype=float), (n_experts, n_components))
    weights, gap = np.full((n_experts, n_components), np.nan), np.full(n_experts, np.nan)
    for members, ratio, present in padded_blocks(log_f, expert, n_experts):
        weights[members], gap[members] = _solve(ratio, present, prior[members])
    return weights, gap


def weight_posterior(log_f, expert, n_experts, prior):
    """Posterior of the mixture weights, by Laplace's approximation in the softmax basis.

    The prior is a Dirichlet with parameters ``1 + prior``: flat beside the pseudo-counts. In the softmax basis its
    mode is inside the simplex, so that the approximation holds for few annotations and for weights near zero.

    Parameters
    ----------
    log_f, expert, n_experts, prior
        As in `mixture_weights`.

    Returns
    -------
    weights : ndarray of shape (n_experts, K)
        Mode in the softmax basis; the mean of the prior for an expert without annotations.
    covariance : ndarray of shape (n_experts, K, K)
        Of the weights; it vanishes along the vector of ones.
    """
    concentration = 1 + np.broadcast_to(np.asarray(prior, dtype=float), (n_experts, log_f.shape[1]))
    weights, _ = mixture_weights(log_f, expert, n_experts, prior=concentration)
    total = concentration.sum(1, keepdims=True)
    weights = np.where(np.isnan(weights), concentration / total, weights)
    to_simplex = _categorical_covariance(weights)
    sizes = np.bincount(expert, minlength=n_experts)[:, None]
    precision = (sizes + total)[:, :, None] * to_simplex
    for members, f, present in padded_blocks(log_f, expert, n_experts):
        posterior = f * weights[members][:, :, None]
        posterior = posterior / posterior.sum(1, keepdims=True) * present[:, None]
        precision[members] -= _diagonal(posterior.sum(2)) - posterior @ posterior.transpose(0, 2, 1)
    # nothing depends on a constant added to all logits: fix it, for rounding hides the zero eigenvalue from a pinv
    return weights, to_simplex @ np.linalg.solve(precision + 1, to_simplex)


def weight_deviations(log_f, expert, n_experts, prior):
    """Posterior standard deviation of the mixture weights, from `weight_posterior`.

    Laplace's approximation gives a Dirichlet posterior of m counts the variance ``p (1 - p) / m``; the m it implies
    is put into the right ``p (1 - p) / (m + 1)``.

    Parameters
    ----------
    log_f, expert, n_experts, prior
        As in `mixture_weights`.

    Returns
    -------
    std : ndarray of shape (n_experts, K)
        Of the posterior; of the prior for an expert without annotations.
    """
    weights, covariance = weight_posterior(log_f, expert, n_experts, prior)
    variance = np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0)
    spread = weights * (1 - weights)
    return np.sqrt(variance / (1 + variance / np.maximum(spread, 1e-300)))


def _categorical_covariance(p):
    return _diagonal(p) - p[:, :, None] * p[:, None]


def _diagonal(v):
    return v[:, :, None] * np.eye(v.shape[1])


def padded_blocks(log_f, expert, n_experts):
    """Yield ``(members, f, present)``: experts of similar size with their annotations in one padded array.

    `f` of shape (m, K, J) is scaled so that the largest behaviour of each annotation is 1, which leaves the
    weights as they are; `present` of shape (m, J) marks the columns that are not padding.
    """
    order = np.argsort(expert, kind="stable")
    sizes = np.bincount(expert, minlength=n_experts)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    by_size = np.argsort(sizes, kind="stable")
    by_size = by_size[sizes[by_size] > 0]
    while len(by_size):
        # blocks are taken from the largest expert downwards, so that padding stays small
        width = sizes[by_size[-1]]
        members = by_size[-max(1, _BLOCK // (width * log_f.shape[1])) :]
        by_size = by_size[: -len(members)]
        rows = starts[members, None] + np.arange(width)
        present = np.arange(width) < sizes[members, None]
        f = log_f[order[np.where(present, rows, 0)]].transpose(2, 0, 1).copy()
        f = np.exp(f - f.max(axis=0))  # behaviours lead: numpy is slow along a short last axis
        yield members, f.transpose(1, 0, 2).copy(), present


def _solve(f, present, prior):
    """Weights and certified gaps of one padded block."""
    n, n_components, _ = f.shape
    root = np.sqrt(present / present.sum(1, keepdims=True))
    b = prior / present.sum(1)[:, None]
    a = np.full((n, n_components), 1 / n_components)
    barrier = np.full((n, 1), 0.1)
    slack = barrier / a
    mix = (a[:, None] @ f)[:, 0]
    floor = _GAP / (5 * n_components)
    weights, gap, left = a.copy(), np.full(n, np.inf), np.arange(n)
    for _ in range(_MAX_STEPS):
        scaled = f * (root / mix)[:, None]
        slope = (scaled @ root[:, :, None])[:, :, 0]
        certified = (slope + b / a).max(1) * a.sum(1) - 1 - b.sum(1)  # of a / sum(a)
        better = certified < gap[left]
        weights[left[better]], gap[left[better]] = a[better], certified[better]
        open_ = certified > _GAP
        if not open_.any():
            break
        if open_.mean() < 0.7:  # dropping costs a copy, so it waits until it pays
            f, root, b, a, barrier, slack, mix, scaled, slope, left = (
                v[open_] for v in (f, root, b, a, barrier, slack, mix, scaled, slope, left)
            )
        a, slack, barrier, mix = _newton_step(f, b, a, slack, barrier, mix, scaled, slope, floor)
    return weights / weights.sum(1, keepdims=True), gap


def _newton_step(f, b, a, slack, barrier, mix, scaled, slope, floor):
    """One damped primal-dual Newton step on the barrier objective, and the next barrier.

    The objective is taken on the positive orthant with the multiplier ``1 + sum(c)`` of ``sum(a) = 1``: it is
    homogeneous up to that term, so that its maximum lies on the simplex without a constraint.
    """
    c = b + barrier
    multiplier = 1 + c.sum(1, keepdims=True)
    gradient = slope + c / a - multiplier
    curvature = scaled @ scaled.transpose(0, 2, 1)
    diagonal = np.arange(a.shape[1])
    curvature[:, diagonal, diagonal] += b / a**2 + slack / a
    step = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
    change, relative = (step[:, None] @ f)[:, 0] / mix, step / a
    slack_step = barrier * (1 - relative) / a - slack
    size = _to_boundary(relative)
    mix = mix * (1 + size * change)
    a = a + size * step
    slack = slack + _to_boundary(slack_step / slack) * slack_step
    central = barrier / a
    slack = np.clip(slack, 1e-3 * central, 1e3 * central)  # else some variables jam at the boundary
    barrier = np.minimum(barrier, np.maximum(0.03 * (a * slack).mean(1, keepdims=True), floor))
    return a, slack, barrier, mix


def _to_boundary(relative):
    """Longest step, at most 1, that keeps a twentieth of every positive variable."""
    return np.minimum(1.0, 0.95 / np.maximum(-relative.min(1, keepdims=True), 1e-300))
