"""Nets that imitate experts who have not labelled everything: one batched ensemble, trained by EM."""

from functools import partial

import numpy as np
import torch

from .._numerics._answers import expected_likelihood
from ._e_steps import answer_posterior
from ._modules import build_ensemble
from ._net import Net, predict_batches


class AnswerNet(Net):
    """M nets, one per expert; a batch teaches what they answered and, where they did not, what they may have.

    Targets are the codes (b, M), -1 missing, the true classes (b,), the responsibilities (b, M) and row weights (b,)
    of mean 1. Each net learns as if it were alone.

    Attributes
    ----------
    log_truth : float64 tensor of shape (C, C)
        ``ln p(y | answer)``, the row is the true class; on the CPU.
    """

    def batch_loss(self, logits, targets, X):
        codes, y_codes, share, weight = targets
        log_f = torch.log_softmax(logits, -1).transpose(0, 1)
        with torch.no_grad():
            log_truth = self.log_truth.to(log_f.device)[y_codes]
            q = answer_posterior(log_f.double(), codes, share, log_truth) * weight[:, None, None]
        return -(q.to(log_f.dtype) * log_f).sum() / len(X)


def build_answer_net(
    module, n_experts, n_features, n_outputs, hidden_layer_sizes, dtype, net_class=AnswerNet, **settings
):
    """Initialised net of one member per expert; the settings are those of `Net.build` and attributes of the net."""
    build = partial(build_ensemble, module, n_experts, n_features, n_outputs, tuple(hidden_layer_sizes))
    net = net_class.build(build, **settings)
    net.module_.to(dtype)
    return net


def predict_answers(net, X):
    """Probabilities (n, M, C) of what the experts answer, float64."""
    return np.concatenate([proba for _, proba in _answer_batches(net, X)])


def answers_likelihood(net, X, y_codes, likelihood):
    """Likelihood (n, M) of the true class, integrated over what the experts answer.

    `likelihood` (C, C) is that of the true class, the row, given an answer. Probabilities are never held for more than
    a batch of rows.
    """
    return np.concatenate(
        [expected_likelihood(proba, y_codes[rows], likelihood) for rows, proba in _answer_batches(net, X)]
    )


def _answer_batches(net, X):
    for rows, log_proba in predict_batches(net.module_, X, net.device):
        yield rows, log_proba.exp().transpose(0, 1).cpu().numpy()
