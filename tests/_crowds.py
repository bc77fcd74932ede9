"""Crowds whose confusion matrices are known: enumerated, so that their moments are exact, and simulated."""

from itertools import product

import numpy as np


def draw_confusion(n_annotators, n_classes, random_state=0, honest=0.5):
    """Confusion matrices (n_annotators, n_classes, n_classes), a share of which is the identity."""
    rng = np.random.default_rng(random_state)
    drawn = rng.dirichlet(np.ones(n_classes), (n_annotators, n_classes))
    return (1 - honest) * drawn + honest * np.eye(n_classes)


def enumerate_crowd(confusion, prior):
    """All possible rows of answers, and how probable each of them is: weights that make moments exact."""
    n_annotators, n_classes, _ = confusion.shape
    votes = np.array(list(product(range(n_classes), repeat=n_annotators)))
    given = confusion[np.arange(n_annotators)[:, None], :, votes.T]  # annotator, row, truth
    return votes, given.prod(0) @ np.asarray(prior)


def simulate_crowd(confusion, prior, n_items, random_state=0, missing=0.0):
    """Answers (n_items, n_annotators), -1 where they are missing, and the truth."""
    rng = np.random.default_rng(random_state)
    truth = rng.choice(len(prior), n_items, p=prior)
    draws = rng.random((n_items, len(confusion), 1))
    votes = (draws > confusion[:, truth].transpose(1, 0, 2).cumsum(2)[:, :, :-1]).sum(2)
    return np.where(rng.random(votes.shape) < missing, -1, votes), truth
