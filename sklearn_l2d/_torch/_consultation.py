"""The nets of LECODU: whom to ask about an item, the classifier, k people or both, and the label by what they say."""

import math
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn.functional import one_hot

from ._batches import AnswerRows
from ._modules import MLPEnsemble, ensemble_for
from ._net import Net, build_net, check_outputs, predict_logits, train
from ._seeding import own_state

_TAU = 5.0  # temperature of the relaxed choice, through which the gate learns
_TINY = 1e-20  # of a uniform random number, whose logarithm is taken twice
_SUREST = -1e-6  # largest log-probability of a class that a classifier is believed
_LOWEST = -30.0  # log-probability of a class, where it is multiplied by weights
_LEAST, _MOST = 0.1, 5.0  # logit that an answer adds to its class before the training


class Consultation(nn.Module):
    """A choice between the classifier, the first k people, and both; and labels by the classifier and answers.

    Parameters
    ----------
    build : callable
        Called with `n_members`, returns the ensemble that maps items to logits of the options: the classifier alone,
        then 1, 2, ... people alone, then 1, 2, ... people and the classifier.
    n_classes : int
        C.
    n_most : int
        Largest number of people K.
    n_ways : {1, 2}
        2 if people and the classifier may decide together.
    fusion_layer_sizes : tuple of int
        Hidden units of the net that joins the classifier and answers.
    accuracy : float
        Share of right answers.
    price : float
        Cost of an answer, in nats.
    """

    def __init__(self, build, n_classes, n_most, n_ways, fusion_layer_sizes, accuracy, price):
        super().__init__()
        self.n_most, self.n_ways, self.accuracy, self.price = n_most, n_ways, accuracy, price
        self.members = build(n_members=1)
        if isinstance(self.members, MLPEnsemble):
            nn.init.zeros_(self.members.weights[-1])
        self.sureness = nn.Parameter(torch.zeros(build.keywords["n_outputs"]))
        self.fusion = MLPEnsemble(1, 2 * n_classes + 1, n_classes, fusion_layer_sizes)
        nn.init.zeros_(self.fusion.weights[-1])
        of_answer = math.log(accuracy * (n_classes - 1) / (1 - accuracy))  # where errors are spread evenly
        of_answer = math.log(min(max(of_answer, _LEAST), _MOST))
        # of the classifier, of one of several answers, and of the only one
        self.log_weights = nn.Parameter(torch.tensor([0.0, of_answer, of_answer], dtype=torch.float32))

    def forward(self, X):
        """Logits (b, O) of the options by the items alone."""
        return self.members(X)[0]

    def choose(self, own, log_p):
        """Logits (b, O) of the options by `forward` and log-probabilities (b, C) of the classifier.

        What the nets say of k people is what they say of the k-th one and of those before, so that what few items show,
        many answers, is learnt from all. Before the training, a logit is the log of the probability that anybody of the
        option is right, less the price.
        """
        sure = log_p.max(-1, keepdim=True).values.clamp(max=_SUREST)
        own = own + sure * self.sureness.to(own.dtype)
        of_classifier, steps = own[:, :1], own[:, 1:].unflatten(1, (self.n_ways, self.n_most))
        n_people = torch.arange(1, self.n_most + 1, device=own.device).to(own.dtype)
        both = torch.arange(self.n_ways, device=own.device).to(own.dtype)[:, None]
        all_wrong = both * (-sure.expm1()).log()[:, None] + n_people * math.log1p(-self.accuracy)
        of_people = steps.cumsum(2) + both * of_classifier[:, None]
        of_people = of_people + (-all_wrong.expm1()).log() - self.price * n_people
        return torch.cat([of_classifier + sure, of_people.flatten(1)], 1)

    def fuse(self, log_p, counts, both):
        """Logits (b, C) by log-probabilities (b, C) of the classifier and counts (b, C) of at least one answer.

        `both` (b, 1) is 1 where the classifier counts, and 0 elsewhere. A net adds to a weighted sum. Its first layer
        is a sum of one embedding per answer, whoever gave it, so that the order of people cannot matter. The only
        answer without the classifier is the label: there is nothing to join.
        """
        of_classifier, of_several, of_one = self.log_weights.to(log_p.dtype).exp()
        alone = (both == 0) & (counts.sum(-1, keepdim=True) <= 1)
        told = torch.cat([both * log_p.exp(), counts / self.n_most, both], -1)
        beyond = self.fusion(told)[0].masked_fill(alone, 0.0)
        of_answer = torch.where(alone, of_one, of_several)
        return of_classifier * both * log_p.clamp(min=_LOWEST) + of_answer * counts + beyond


def first_answers(answers, n_rows, n_classes, n_most, generator):
    """Counts (b, K, C) of the first 1, ..., K answers to each row, in a random order, and whether there are so many.

    `answers` (A, 3) are rows of `AnswerRows`. The second result has the shape (b, K).
    """
    turn = torch.rand(len(answers), dtype=torch.float64, generator=generator).to(answers.device)
    row, _, label = answers[(answers[:, 0] + turn).argsort()].T
    size = torch.bincount(row, minlength=n_rows)
    place = torch.arange(len(row), device=row.device) - (size.cumsum(0) - size)[row]
    kept = place < n_most
    each = torch.zeros(n_rows, n_most, n_classes, device=row.device)
    each[row[kept], place[kept], label[kept]] = 1.0
    return each.cumsum(1), torch.arange(n_most, device=row.device) < size[:, None]


class ConsultationNet(Net):
    """`Consultation` trained by the error of the chosen option and its price.

    Targets are log-probabilities (b, C) of the classifier, classes (b,), `AnswerRows`, and weights (b,) of mean 1.
    """

    undecayed = ("log_weights", "sureness")

    def batch_loss(self, own, targets, X):
        log_p, y, answers, weight = targets
        log_p, weight, module = log_p.to(own.dtype), weight.to(own.dtype), self.module_
        (b, n_classes), n_most, n_ways = log_p.shape, module.n_most, module.n_ways
        counts, are_so_many = first_answers(answers, b, n_classes, n_most, self.generator)
        n_people = torch.arange(1, n_most + 1, device=own.device).repeat(n_ways)
        counts = counts.to(own.dtype).repeat(1, n_ways, 1)
        both = torch.arange(n_ways, device=own.device).repeat_interleave(n_most).to(own.dtype)[:, None]
        shape = (b, n_ways * n_most, -1)
        fused = module.fuse(*(part.expand(shape).flatten(0, 1) for part in (log_p[:, None], counts, both)))
        fused = fused.log_softmax(-1).view(b, n_ways * n_most, n_classes)
        log_proba = torch.cat([log_p[:, None], fused], 1)
        error = -log_proba.gather(2, y[:, None, None].expand(b, log_proba.shape[1], 1)).squeeze(-1)
        price = module.price * torch.cat([n_people.new_zeros(1), n_people]).to(own.dtype)
        is_there = torch.cat([are_so_many.new_ones(b, 1), are_so_many.repeat(1, n_ways)], 1)
        choice = self.draw(module.choose(own, log_p).masked_fill(~is_there, -torch.inf))
        return (weight * (choice * (error + price)).sum(-1)).mean()

    def draw(self, logits):
        """One-hot choices (b, O) drawn by their logits; the gradient is that of relaxed choices (Gumbel-softmax)."""
        uniform = torch.rand(logits.shape, dtype=logits.dtype, generator=self.generator).clamp(min=_TINY)
        uniform = uniform.to(logits.device)
        soft = ((logits - (-uniform.log()).log()) / _TAU).softmax(-1)
        return one_hot(soft.argmax(-1), soft.shape[1]) + soft - soft.detach()


def fit_consultation(params, items, proba, y_codes, votes, n_most, *, accuracy, seed, sample_weight):
    """Train the choice and the fusion together.

    Parameters
    ----------
    params : dict
        Parameters of `LECODUDeferral`.
    items : ndarray of shape (n, ...)
        Items.
    proba : ndarray of shape (n, C)
        Probabilities of the classifier on items that it was not fitted on.
    y_codes : ndarray of int of shape (n,)
        Classes to learn.
    votes : Votes
        Answers to the items.
    n_most : int
        K of `Consultation`.
    accuracy : float
        As in `Consultation`.
    seed : int
        Seed of all random numbers.
    sample_weight : ndarray of shape (n,)
        Weights of the items.

    Returns
    -------
    net : ConsultationNet
    history : list of dict
        As returned by `train`.
    """
    n_ways = 1 + params["complement"]
    module = partial(
        Consultation,
        ensemble_for(params, items, 1 + n_ways * n_most),
        proba.shape[1],
        n_most,
        n_ways,
        tuple(params["fusion_layer_sizes"]),
        accuracy,
        float(params["consultation_cost"]),
    )
    net = build_net(ConsultationNet, module, params, seed)
    rows = net.rows(items, np.log(proba), y_codes, AnswerRows(votes), sample_weight / sample_weight.mean())
    history = train(net, rows, params["max_epochs"], seed=seed, verbose=params["verbose"], label="consultation")
    return net, history


@own_state(grad=False)
def predict_choice(net, X, proba):
    """Logits (n, O) of the options of items with probabilities (n, C) by the classifier, float64."""
    logits = net.module_.choose(net.tensor(predict_logits(net, X)), net.tensor(np.log(proba)))
    check_outputs(logits)
    return logits.cpu().numpy()


@own_state(grad=False)
def predict_joined(net, proba, counts, both):
    """Probabilities (n, C) by those of the classifier, counts (n, C) of answers, and whether it counts (n,)."""
    told = (net.tensor(part, torch.float64) for part in (np.log(proba), counts, both[:, None]))
    logits = net.module_.fuse(*told)
    check_outputs(logits)
    return logits.softmax(-1).cpu().numpy()
