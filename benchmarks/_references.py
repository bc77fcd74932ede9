"""Data of the benchmarks, and plain ways to compute what the package computes."""

from itertools import product

import numpy as np
import torch
from scipy.optimize import minimize
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from sklearn_l2d._torch._modules import MLPEnsemble
from sklearn_l2d.datasets import load_crowd


def digits_roster(make, seed, n_anonymous):
    """Digits with simulated experts; rows whose annotators are forgotten, and rows to identify experts on."""
    X, y = load_digits(return_X_y=True)
    roster = make(X, y, random_state=seed)
    rows = np.random.default_rng(seed).permutation(len(y))
    return StandardScaler().fit_transform(X), y, roster, rows[:n_anonymous], rows[n_anonymous:]


def cue_sessions():
    """Items of the cue_conflict shapes with textures, their truth, shape and the answers of 30 sessions."""
    crowd = load_crowd("cue_conflict")
    items = crowd.stimulus_set == 0
    X = PCA(128, whiten=True, random_state=0).fit_transform(crowd.X[items])
    return X, crowd.y[items], crowd.shape_id[items], crowd.annotations[items][:, :30], crowd.counts.shape[1]


def synthetic_counts(n, n_features, n_distinct, n_classes, seed):
    """Inputs, and counts with a fixed number of distinct classes per item."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features)).astype(np.float32)
    chosen = (rng.integers(n_classes, size=(n, 1)) + np.arange(n_distinct) * (n_classes // n_distinct)) % n_classes
    counts = np.zeros((n, n_classes))
    counts[np.arange(n)[:, None], chosen] = rng.integers(1, 4, size=chosen.shape)
    return X, counts


def plain_epoch(X, counts):
    """A supervised epoch of three of the same nets on one label per item, as written in plain torch."""
    X, y = torch.from_numpy(X), torch.from_numpy(counts.argmax(1))
    nets = MLPEnsemble(3, X.shape[1], counts.shape[1], (128,))
    optimizer = torch.optim.SGD(nets.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)

    def epoch():
        for rows in torch.randperm(len(X)).split(256):
            optimizer.zero_grad()
            logits = nets(X[rows]).flatten(0, 1)
            torch.nn.functional.cross_entropy(logits, y[rows].repeat(3)).backward()
            optimizer.step()

    return epoch


def slsqp_weights(f):
    """Maximum-likelihood mixture weights of one expert by scipy."""
    found = minimize(
        lambda a: -np.log(f @ a).mean(),
        np.full(f.shape[1], 1 / f.shape[1]),
        jac=lambda a: -(f / (f @ a)[:, None]).mean(0),
        bounds=[(0, 1)] * f.shape[1],
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones_like(a)},
        method="SLSQP",
        options={"ftol": 1e-12},  # at its default it certifies one expert in a hundred
    )
    return found.x / found.x.sum()


def gap_of(f, weights):
    """Certified distance from the maximum likelihood, in nats per label."""
    return (f / (f @ weights)[:, None]).mean(0).max() - 1


def enumerated(log_f, votes, alpha):
    """ln Pr of one item by summing over the behaviours of all votes."""
    labels = np.repeat(np.arange(len(votes)), votes)
    total = 0.0
    for z in product(range(len(alpha)), repeat=len(labels)):
        grown, prior = alpha.copy(), 1.0
        for k in z:  # Polya's urn
            prior *= grown[k] / grown.sum()
            grown[k] += 1
        total += prior * np.exp(sum(log_f[label, k] for label, k in zip(labels, z, strict=True)))
    return np.log(total)
