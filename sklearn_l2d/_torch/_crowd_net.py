"""Nets that learn from the votes of several annotators: a classifier, and how each annotator answers."""

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from ._net import Net

_MOST_PAIRS = 16  # of an item and an annotator, for an answer


def log_softmax(scores):
    """`log_softmax` over the last axis, which is computed over the first: a short last axis takes ten times as long."""
    return scores.movedim(-1, 0).log_softmax(0).movedim(0, -1)


def entries(matrices, annotator, label):
    """Columns ``matrices[annotator, :, label]`` (A, C) of matrices (M, C, C), whose gradient is a sum of rows."""
    n_annotators, n_classes, _ = matrices.shape
    rows = matrices.movedim(-1, 0).reshape(-1, n_classes)  # no copy where they come from `log_softmax`
    return rows.index_select(0, label * n_annotators + annotator)


def own_entries(matrices, label):
    """`entries` where every answer has a matrix of its own."""
    return entries(matrices, torch.arange(len(label), device=label.device), label)


def log_proba_of(scores, label):
    """Entries ``log_softmax(scores)[:, label]`` (A,) of scores (A, C)."""
    return scores.T.log_softmax(0).gather(0, label.unsqueeze(0)).squeeze(0)


def mapped(f, matrices, row, who):
    """Rows ``f[row] @ matrices[who]`` (A, L) of f (b, C) and matrices (M, C, L)."""
    n_rows, (n_annotators, n_classes, n_answers) = len(f), matrices.shape
    if n_rows * n_annotators <= _MOST_PAIRS * len(row):  # one product for all pairs takes less time than one for each
        pairs = f @ matrices.transpose(0, 1).flatten(1)
        return pairs.view(n_rows * n_annotators, n_answers).index_select(0, row * n_annotators + who)
    of_who = matrices.flatten(1).index_select(0, who).view(len(who), n_classes, n_answers)
    return (f.index_select(0, row).unsqueeze(2) * of_who).sum(1)


class LogVolume(torch.autograd.Function):
    """Log-determinant of the Gram matrix of rows (n, C), times a scale, whose eigenvalues have a floor.

    The gradient is that of a logarithm, ``2 scale rows gram^-1``, which takes less time than through the determinant.
    """

    @staticmethod
    def forward(ctx, rows, scale, floor):
        gram = rows.T @ rows * scale
        gram.diagonal().add_(floor)
        factor, _ = torch.linalg.cholesky_ex(gram)
        ctx.save_for_backward(rows @ (2 * scale * torch.cholesky_inverse(factor)))
        return 2 * factor.diagonal().log().sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return ctx.saved_tensors[0] * grad, None, None


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
        self.log_confusion = nn.Parameter(torch.tensor(confusion).clamp(min=1e-6).log())

    def forward(self, X):
        """Logits (b, C) of the classifier."""
        return self.members(X)[0]

    def confusion(self):
        """Log-probabilities (M, C, C) of an answer (last axis) given the truth."""
        return log_softmax(self.log_confusion)


def learnt_confusion(net):
    """Confusion matrices (M, C, C) of a trained net, as a float64 array."""
    return net.module_.confusion().exp().detach().cpu().double().contiguous().numpy()


def judged(log_f, truth):
    """What votes are judged by: log-probabilities (b, C) of the truth, which are 0 and -inf where it is known.

    With them, the log-probabilities (b,) of the known truths, 0 elsewhere. `log_f` are those of the classifier, and
    `truth` (b,) is -1 where the truth is unknown.
    """
    known = truth >= 0
    if not known.any():  # as in most crowds, which are spared the rest
        return log_f, log_f.new_zeros(len(log_f))
    place = truth.clamp(min=0).unsqueeze(1)
    one_hot = torch.full_like(log_f, -torch.inf).scatter(1, place, 0.0)
    return torch.where(known.unsqueeze(1), one_hot, log_f), log_f.gather(1, place).squeeze(1) * known


class CrowdNet(Net):
    """Net trained on the likelihood of votes and of known truths.

    Targets are the answers to a batch, as an `AnswerRows` gives them, and the true classes (b,), -1 where the truth is
    unknown. The loss is the mean of ``-ln p(answer)`` and ``-ln p(truth)``, each an entry of its own; where the truth
    of an item is known, its answers are judged by it. A subclass may say what is learnt of annotators (`annotators`),
    what an answer's probability is (`answer_log_proba`), how much an answer weighs against a truth and what else is in
    the loss (`penalty`).

    Attributes
    ----------
    answer_weight : float
        Weight of ``-ln p(answer)``.
    """

    undecayed = ("log_confusion",)
    answer_weight = 1.0

    def batch_loss(self, logits, targets, X):
        answers, truth = targets
        row, annotator, label = answers.T
        log_f = logits.log_softmax(-1)
        log_truth, of_truth = judged(log_f, truth)
        learnt = self.annotators()
        log_answers = self.answer_log_proba(log_truth, learnt, row, annotator, label, X)
        size = len(row) + (truth >= 0).sum()
        total = self.answer_weight * log_answers.sum() + of_truth.sum()
        return self.penalty(log_f, learnt) - total / size.clamp(min=1)

    def annotators(self):
        """What is learnt of the annotators: log-probabilities (M, C, C) of an answer (last axis) given the truth."""
        return self.module_.confusion()

    def answer_log_proba(self, log_truth, learnt, row, annotator, label, X):
        """Log-probability (A,) of each answer.

        Parameters
        ----------
        log_truth : tensor of shape (b, C)
            Log-probabilities of the truth: those of the classifier, or 0 and -inf where it is known.
        learnt : tensor of shape (M, ...)
            Those of `annotators`.
        row, annotator, label : tensors of int of shape (A,)
            Row in the batch, annotator and class of every answer.
        X : tensor of shape (b, ...)
            Items.
        """
        of_answers = entries(learnt, annotator, label)
        return (log_truth.index_select(0, row) + of_answers).logsumexp(-1)

    def penalty(self, log_f, learnt):
        """What joins the loss, from the classifier's log-probabilities (b, C) of a batch and those of `annotators`."""
        return 0.0


class CountsNet(Net):
    """Net trained on the likelihood of anonymous votes and of known truths; `module_` has one confusion matrix.

    Targets are the votes (b, C) for every class, the true classes (b,), -1 where the truth is unknown, and the weights
    (b,) of the known truths. The loss is the mean of ``-ln p(vote)`` and ``-ln p(truth)``, each an entry of its own.
    Where the truth of an item is known, its votes are judged by it.

    Attributes
    ----------
    learn_confusion : bool
        Whether the confusion matrix is trained.
    """

    undecayed = ("log_confusion",)

    def batch_loss(self, logits, targets, X):
        votes, truth, weight = targets
        votes, weight = votes.to(logits.dtype), weight.to(logits.dtype)
        log_f = logits.log_softmax(-1)
        log_truth, of_truth = judged(log_f, truth)
        confusion = self.module_.confusion()[0]
        if not self.learn_confusion:
            confusion = confusion.detach()
        log_votes = (log_truth.unsqueeze(-1) + confusion).logsumexp(1)
        size = votes.sum() + weight.sum()
        return -((votes * log_votes).sum() + (weight * of_truth).sum()) / size.clamp(min=1e-12)
