"""Nets that learn from the votes of several annotators: a classifier, and how each annotator answers."""

import torch
from torch import nn

from ._net import Net


class CrowdModule(nn.Module):
    """A classifier beside the confusion matrices of M annotators.

    Parameters
    ----------
    build : callable
        Called with `n_members`, returns the ensemble of the classifier.
    confusion : ndarray of shape (M, C, C)
        First probabilities of an answer (last axis) given the truth.
    """

    def __init__(self, build, confusion):
        super().__init__()
        self.members = build(n_members=1)
        self.log_confusion = nn.Parameter(torch.from_numpy(confusion).clamp(min=1e-6).log())

    def forward(self, X):
        """Logits (b, C) of the classifier."""
        return self.members(X)[0]

    def confusion(self):
        """Log-probabilities (M, C, C) of an answer (last axis) given the truth."""
        return self.log_confusion.log_softmax(-1)


class CrowdNet(Net):
    """Net trained on the likelihood of votes and of known truths.

    Targets are the answers to a batch, as an `AnswerRows` gives them, and the true classes (b,), -1 where the truth is
    unknown. The loss is the mean of ``-ln p(answer)`` and ``-ln p(truth)``, each an entry of its own; where the truth
    of an item is known, its answers are judged by it. A subclass may say what an answer's probability is
    (`answer_log_proba`) and what else is in the loss (`penalty`).
    """

    undecayed = ("log_confusion",)

    def batch_loss(self, logits, targets, X):
        answers, truth = targets
        row, annotator, label = answers.T
        log_f = logits.log_softmax(-1)
        known = truth >= 0
        of_truth = log_f.gather(1, truth.clamp(min=0).unsqueeze(1)).squeeze(1) * known
        one_hot = torch.full_like(log_f, -torch.inf).scatter(1, truth.clamp(min=0).unsqueeze(1), 0.0)
        log_truth = torch.where(known.unsqueeze(1), one_hot, log_f)
        log_answers = self.answer_log_proba(log_truth, row, annotator, label, X)
        size = len(row) + known.sum()
        return -(log_answers.sum() + of_truth.sum()) / size.clamp(min=1) + self.penalty(log_f)

    def answer_log_proba(self, log_truth, row, annotator, label, X):
        """Log-probability (A,) of each answer.

        Parameters
        ----------
        log_truth : tensor of shape (b, C)
            Log-probabilities of the truth: those of the classifier, or 0 and -inf where it is known.
        row, annotator, label : tensors of int of shape (A,)
            Row in the batch, annotator and class of every answer.
        X : tensor of shape (b, ...)
            Items.
        """
        log_confusion = self.module_.confusion()
        return (log_truth[row] + log_confusion[annotator, :, label]).logsumexp(-1)

    def penalty(self, log_f):
        """What joins the loss, from the classifier's log-probabilities (b, C) of a batch."""
        return 0.0
