"""Errors of confusion matrices by number of items: methods of moments beside maximum likelihood.

    python benchmarks/identifiability.py [TABLE ...] [--seeds 5] > benchmarks/results/identifiability.md

Crowds of ten annotators and three classes, of whom each answers an item with probability 0.5. In a separable crowd
there are two annotators for each class who say it only where it is true; in a crowd that is not, nobody is sure.
"""

import numpy as np
from _report import run, table

from sklearn_l2d.aggregation import (
    CoupledNMF,
    DawidSkene,
    MajorityVote,
    MultiSPA,
    SpectralDawidSkene,
    SymmetricNMF,
    TensorADMM,
)
from sklearn_l2d.datasets import load_crowd

N_ANNOTATORS, PRIOR = 10, np.array([0.2, 0.3, 0.5])
N_ITEMS = 100, 300, 1000, 10_000, 100_000
METHODS = {
    "majority": MajorityVote(),
    "MultiSPA": MultiSPA(),
    "CoupledNMF": CoupledNMF(),
    "SymmetricNMF": SymmetricNMF(),
    "spectral": SpectralDawidSkene(),
    "TensorADMM": TensorADMM(),
    "EM": DawidSkene(),
    "EM, spectral start": DawidSkene(init="spectral"),
}
SETS = "bluebird", "rte", "dog", "web"


def draw_crowd(n_items, separable, honest, seed):
    """Confusion matrices, and votes with the truth behind them."""
    rng = np.random.default_rng(seed)
    n_classes = len(PRIOR)
    confusion = rng.dirichlet(np.ones(n_classes), (N_ANNOTATORS, n_classes))
    confusion = (1 - honest) * confusion + honest * np.eye(n_classes)
    if separable:
        for annotator in range(2 * n_classes):
            sure, others = annotator % n_classes, np.arange(n_classes) != annotator % n_classes
            confusion[annotator, others, sure] = 0
            confusion[annotator, others] /= confusion[annotator, others].sum(1, keepdims=True)
    truth = rng.choice(n_classes, n_items, p=PRIOR)
    draws = rng.random((n_items, N_ANNOTATORS, 1))
    votes = (draws > confusion[:, truth].transpose(1, 0, 2).cumsum(2)[:, :, :-1]).sum(2)
    return confusion, np.where(rng.random(votes.shape) < 0.5, -1, votes), truth


def of_crowds(title, separable, honest):
    """Print the mean absolute error of an entry of a confusion matrix, and the accuracy of labels, by items."""

    def print_tables(seeds):
        errors, right = np.empty((2, len(METHODS), len(N_ITEMS), len(seeds)))
        for j, n_items in enumerate(N_ITEMS):
            for k, seed in enumerate(seeds):
                confusion, votes, truth = draw_crowd(n_items, separable, honest, seed)
                for i, method in enumerate(METHODS.values()):
                    method.fit(votes)
                    errors[i, j, k] = np.abs(method.confusion_matrices_ - confusion).mean()
                    right[i, j, k] = np.mean(method.predict(votes) == truth)
        columns = ["method", *(f"{n_items:,} items" for n_items in N_ITEMS)]
        for what, figures in (("mean absolute error of the matrices", errors), ("accuracy of the labels", right)):
            rows = [[name, *(f"{x:.3f}" for x in row)] for name, row in zip(METHODS, figures.mean(2), strict=True)]
            table(f"{title}: {what}", columns, rows)

    return print_tables


def real(_):
    """Print the accuracy of labels on real votes."""
    rows = []
    for name, method in METHODS.items():
        row = [name]
        for key in SETS:
            crowd = load_crowd(f"label_only_{key}")
            known = crowd.y >= 0
            row.append(f"{np.mean(method.fit_predict(crowd.annotations)[known] == crowd.y[known]):.3f}")
        rows.append(row)
    table("Real votes: accuracy of the labels, all annotators", ["method", *SETS], rows)


TABLES = {
    "separable": of_crowds("Separable crowd", True, 0.5),
    "mixed": of_crowds("Nobody is sure", False, 0.5),
    "hard": of_crowds("Nobody is sure, most answers are guesses", False, 0.25),
    "real": real,
}

if __name__ == "__main__":
    run(TABLES, "Identifiability: confusion matrices from votes alone")
