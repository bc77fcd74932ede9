"""Latent truth from the votes of several annotators: posteriors, counts and EM (Dawid & Skene 1979).

Everything is a product with one sparse matrix, the answers: a row for every item, a column for every annotator and
label, an entry 1 for every answer. Confusion matrices lie beside it as rows (annotator and label) of columns (truth).
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp

_POOLED_START = 0.5, 2.0  # pseudo-counts of the wrong and right answers of all annotators together
_LEAST = 1e-12  # probability below which an answer counts as impossible, but not as proof
_TIED = 1e-9  # difference of probabilities below which classes are tied


def answer_matrix(votes):
    """Answers as a sparse matrix of ones.

    Parameters
    ----------
    votes : Votes
        L answers to n items by M annotators, with C classes.

    Returns
    -------
    answers : csr_array of shape (n, M * C)
        Column ``annotator * C + label``.
    """
    n_classes = len(votes.classes)
    column = votes.annotator.astype(np.int64) * n_classes + votes.label
    return csr_array(
        (np.ones(len(column)), column, votes.starts), shape=(votes.n_items, len(votes.annotators) * n_classes)
    )


def vote_shares(votes, allowed, prior=None):
    """Share of the votes for every class, of those that are allowed.

    Parameters
    ----------
    votes : Votes
        Answers to n items, with C classes.
    allowed : ndarray of bool of shape (n, C)
        Classes that an item may have: one where its truth is known.
    prior : ndarray of shape (C,), default=None
        Distribution for items without votes for an allowed class. None is uniform.

    Returns
    -------
    shares : ndarray of shape (n, C)
        Rows sum to 1.
    """
    prior = np.ones(allowed.shape[1]) if prior is None else prior
    counts = votes.to_counts() * allowed
    shares = np.where(counts.sum(1, keepdims=True) > 0, counts, np.where(allowed, prior, 0.0))
    return shares / shares.sum(1, keepdims=True)


def count_answers_of(answers, truth, n_annotators):
    """Expected numbers (n_annotators, C, C) of answers (last axis) for every true class, from truths (n, C)."""
    n_classes = truth.shape[1]
    return (answers.T @ truth).reshape(n_annotators, n_classes, n_classes).transpose(0, 2, 1)


def pooled_counts(counts):
    """Answers (C, C) of all annotators together, with pseudo-counts that hold the right answer for likelier.

    `counts` (M, C, C) are those of `count_answers_of`.
    """
    wrong, right = _POOLED_START
    return counts.sum(0) + np.where(np.eye(counts.shape[1], dtype=bool), right, wrong)


def log_joint_of(answers, log_confusion, log_prior):
    """Log-probabilities (n, C) of the truth together with all answers to every item.

    Parameters
    ----------
    answers : csr_array of shape (n, M * C)
        As returned by `answer_matrix`.
    log_confusion : ndarray of shape (M, C, C)
        Log-probability of an answer (last axis) given the truth.
    log_prior : ndarray of shape (C,)
        Log-probabilities of the truth.
    """
    n_annotators, n_classes, _ = log_confusion.shape
    return answers @ log_confusion.transpose(0, 2, 1).reshape(n_annotators * n_classes, n_classes) + log_prior


def posterior_of(log_joint, allowed=None):
    """Distribution (n, C) of the truth, and log-probability (n,) of all that is known of every item."""
    if allowed is not None:
        log_joint = np.where(allowed, log_joint, -np.inf)
    evidence = logsumexp(log_joint, axis=1)
    return np.exp(log_joint - evidence[:, None]), evidence


def tied_classes(proba):
    """Classes (n, C) that are as probable as the most probable one, up to rounding."""
    return proba >= proba.max(1, keepdims=True) - _TIED


def safe_log(proba):
    """Logarithm of probabilities, with a floor that no single answer can make a proof."""
    return np.log(np.maximum(proba, _LEAST))


def run_em(start, maximise, expect, weight, max_iter, tol):
    """Repeat M-steps and E-steps until the objective stands still.

    Parameters
    ----------
    start : ndarray of shape (n, C)
        First distribution of the truth.
    maximise : callable
        ``maximise(truth)`` returns parameters, and the logarithm of their prior; `truth` is weighted.
    expect : callable
        ``expect(parameters)`` returns the distribution of the truth (n, C) and the log-evidence (n,).
    weight : ndarray of shape (n,)
        Weights of the items.
    max_iter : int
        Largest number of rounds.
    tol : float
        Gain in nats per item, by weight, below which the rounds end.

    Returns
    -------
    parameters : object
        Of the last M-step.
    truth : ndarray of shape (n, C)
        Under these parameters.
    history : list of float
        Objective of every round: log-evidence and log-prior.
    converged : bool
        Whether the rounds ended before `max_iter`.
    """
    truth, history, total = start, [], weight.sum()
    for _ in range(max_iter):
        parameters, log_prior = maximise(truth * weight[:, None])
        truth, evidence = expect(parameters)
        history.append(float(weight @ evidence + log_prior))
        if len(history) > 1 and history[-1] - history[-2] < tol * total:
            return parameters, truth, history, True
    return parameters, truth, history, False
