"""Surrogate losses of learning to defer: one loss per row, from logits and values of the options.

The options are the classes, the experts and the classifier. ``value`` is 1 where an option is right, 0 where it is
wrong, and NaN where the annotation is missing. The loss of a row with a missing annotation is the loss without this
expert: the logit is left out of the normaliser too, since with a value of 0 a missing annotation would count as an
error. All computations are in log space, so that logits of any size give finite losses and gradients.
"""

import torch
from torch.nn.functional import logsigmoid, softplus


def softmax_loss(logits, value):
    """``-sum_k value_k log softmax_k`` (Multi-L2D Eq. 8, and the comp-sum loss of the two-stage approach).

    Parameters
    ----------
    logits, value : tensors of shape (b, O)
        C classes and M experts, or M experts and the classifier.

    Returns
    -------
    loss : tensor of shape (b,)
    """
    missing = value.isnan()
    log_share = torch.log_softmax(logits.masked_fill(missing, -torch.inf), -1)
    return -(value.nan_to_num() * log_share.masked_fill(missing, 0.0)).sum(-1)


def one_vs_all_loss(logits, value):
    """One logistic loss per option (Multi-L2D Eq. 9).

    Parameters
    ----------
    logits, value : tensors of shape (b, C + M)
        Of the classes and the experts.

    Returns
    -------
    loss : tensor of shape (b,)
    """
    worth = value.nan_to_num()
    each = -worth * logsigmoid(logits) - (1 - worth) * logsigmoid(-logits)
    return each.masked_fill(value.isnan(), 0.0).sum(-1)


def curve_loss(logits, value, *, basis):
    """`one_vs_all_loss` of points on a curve that is linear in the outputs, added to given logits.

    Parameters
    ----------
    logits : tensor of shape (b, B)
        Coefficients of the basis.
    value : tensor of shape (b, 2 P)
        Given logits of all points, and 1, 0 or NaN for each of them.
    basis : ndarray of shape (B, P)
        Basis functions at the points.

    Returns
    -------
    loss : tensor of shape (b,)
    """
    given, value = value.chunk(2, dim=1)
    return one_vs_all_loss(given + logits @ logits.new_tensor(basis), value)


def most_confident_loss(logits, value, *, loss, n_classes):
    """Loss of a row in which only the expert who has the largest logit of those who are right counts as right (PiCCE).

    Everybody else who answered counts as wrong: their logits stay in the normaliser of `softmax_loss`, and
    `one_vs_all_loss` pushes them down. If nobody is right, the loss is that of the row as it is. Of equal logits the
    first is kept, and the loss is the same whichever it is.

    Parameters
    ----------
    logits, value : tensors of shape (b, C + M)
        The classes and at least one expert.
    loss : callable
        `softmax_loss` or `one_vs_all_loss`.
    n_classes : int
        C.

    Returns
    -------
    loss : tensor of shape (b,)
    """
    of_classes, people = value[:, :n_classes], value[:, n_classes:]
    of_right = logits[:, n_classes:].detach().masked_fill(~(people > 0), -torch.inf)  # NaN is not above 0
    kept = torch.zeros_like(people).scatter(-1, of_right.argmax(-1, keepdim=True), 1.0)
    return loss(logits, torch.cat([of_classes, people * kept], -1))


def realizable_loss(logits, value, *, n_classes, alpha):
    """``-alpha log(share of y or of a right expert) - (1 - alpha) log p(y)`` for at most one expert.

    If asking has a cost, the value of a right answer is below 1, and the loss is a mixture of the losses of a right and
    a wrong expert with this weight.

    Parameters
    ----------
    logits, value : tensors of shape (b, C + 1) or (b, C)
        The classes, one-hot in `value`, and the expert.
    n_classes : int
        C.
    alpha : float
        Weight of the first term; the second term trains the classifier only.

    Returns
    -------
    loss : tensor of shape (b,)
    """
    log_share = torch.log_softmax(logits.masked_fill(value.isnan(), -torch.inf), -1)
    truth, worth = value[:, :n_classes], value[:, n_classes:].nan_to_num().sum(-1)
    of_truth = (truth * log_share[:, :n_classes]).sum(-1)
    either = torch.cat([of_truth.unsqueeze(-1), log_share[:, n_classes:]], -1).logsumexp(-1)
    team = -worth * either - (1 - worth) * of_truth
    alone = -(truth * torch.log_softmax(logits[:, :n_classes], -1)).sum(-1)
    return alpha * team + (1 - alpha) * alone


def mixture_loss(logits, value, *, n_classes):
    """``-ln(w_0 p(y) + sum_j w_j 1(m_j = y))``, the mixture of experts of Hemmer et al. (2022).

    Parameters
    ----------
    logits : tensor of shape (b, C + M + 1)
        The classes, and the allocator's logits of the experts and, last, the classifier.
    value : tensor of shape (b, C + M)
        The classes, one-hot, and the experts, 0 or 1.
    n_classes : int
        C.

    Returns
    -------
    loss : tensor of shape (b,)
        It is finite without smoothing, since the term of the classifier is finite in log space.
    """
    truth, right = value[:, :n_classes], value[:, n_classes:]
    log_truth = (truth * torch.log_softmax(logits[:, :n_classes], -1)).sum(-1, keepdim=True)
    people, classifier = logits[:, n_classes:-1], logits[:, -1:]
    allocated = torch.cat([people.masked_fill(right.isnan(), -torch.inf), classifier], -1)
    log_weight = torch.log_softmax(allocated, -1)
    explained = log_weight[:, :-1].masked_fill(right != 1, -torch.inf)
    return -torch.cat([explained, log_weight[:, -1:] + log_truth], -1).logsumexp(-1)


def pair_loss(logit, right):
    """`softmax_loss` of an expert beside log-probabilities of classes, less the classifier's own loss; 0 for NaN.

    The probabilities sum to 1, so that the softmax of the expert is ``sigmoid(logit)``. The minimum is at
    ``logit = ln p(right)``.
    """
    worth = right.nan_to_num()
    return ((1 + worth) * softplus(logit) - worth * logit).masked_fill(right.isnan(), 0.0)
