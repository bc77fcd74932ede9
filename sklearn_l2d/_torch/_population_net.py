"""The net of L2D-Pop: a classifier, codes of experts from examples, and deferral by the codes."""

from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn.functional import one_hot

from ._batches import AnswerTable
from ._losses import softmax_loss
from ._modules import MLPEnsemble, check_feature_layers, check_layers, ensemble_for
from ._net import Net, build_net, check_outputs, logit_batches, train
from ._seeding import own_state

_CHUNK = 1 << 16  # rows per prediction of the small nets
_NO_WEIGHT = 1e-6  # below the weight of any example
_LOWEST = -1e30  # largest match where no example is in use


class Population(nn.Module):
    """Features of items, logits of their classes, codes of experts, and a logit of deferral for an item and a code.

    With attention, the code of an expert depends on the item: the features of the item make a query, those of each
    example a key, and examples whose keys match the query have more weight.

    Parameters
    ----------
    build_body : callable
        Called with `n_members`, returns the ensemble that maps items to features.
    n_features : int
        Width of the features.
    n_classes : int
        C.
    code_size : int
        Width of a code, and of the embeddings of labels.
    context_layer_sizes, rejector_layer_sizes : tuple of int
        Hidden units of the net that encodes an example, and of the net that decides on deferral.
    pooling : {"mean", "attention"}
        Whether all examples of an expert have the same weight, or weights by the item at hand. Queries start at zero,
        which is the mean.
    """

    def __init__(
        self, build_body, n_features, n_classes, code_size, context_layer_sizes, rejector_layer_sizes, pooling
    ):
        super().__init__()
        self.body = build_body(n_members=1)
        self.classifier = MLPEnsemble(1, n_features, n_classes, ())
        self.truth, self.answer = nn.Embedding(n_classes, code_size), nn.Embedding(n_classes, code_size)
        self.example = MLPEnsemble(1, n_features + 2 * code_size, code_size, context_layer_sizes)
        self.rejector = MLPEnsemble(1, n_features + code_size, 1, rejector_layer_sizes)
        self.query = self.key = None
        if pooling == "attention":
            self.query, self.key = (MLPEnsemble(1, n_features, code_size, ()) for _ in range(2))
            nn.init.zeros_(self.query.weights[0])

    def forward(self, X):
        """Logits (B, C) of the classes, and features (B, W)."""
        features = self.body(X)[0].relu()
        return self.classifier(features)[0], features

    def encode(self, features, truth, answer):
        """Codes (T, code_size) of single examples: features (T, W) of items, true classes and answers."""
        labels = (self.truth(truth), self.answer(answer))
        return self.example(torch.cat([features, *(label.to(features.dtype) for label in labels)], -1))[0]

    def attend(self, features, keys, examples, weight):
        """Codes (B, E, code_size) of experts, as items with features (B, W) see them.

        Parameters
        ----------
        features : tensor of shape (B, W)
            Features of the items.
        keys, examples : tensors of shape (E, T, code_size)
            Keys and encodings of the examples of each expert.
        weight : tensor of shape (E, T)
            Weights of the examples, 0 for those that are not in use. The code of an expert without any is 0.
        """
        match = torch.einsum("bd,etd->bet", self.query(features)[0], keys) / keys.shape[-1] ** 0.5
        match = match.masked_fill(weight == 0, -torch.inf)
        share = weight * (match - match.detach().amax(-1, keepdim=True).clamp(min=_LOWEST)).exp()
        share = share / share.sum(-1, keepdim=True).clamp(min=_NO_WEIGHT)
        return torch.einsum("bet,etd->bed", share, examples)

    def defer(self, features, codes):
        """Logits (B, E) of deferral for items with features (B, W) and experts with codes (E, code_size).

        Codes of shape (B, E, code_size) belong to one item each.
        """
        codes = codes.expand(len(features), *codes.shape[-2:])
        pairs = torch.cat([features.unsqueeze(1).expand(*codes.shape[:2], -1), codes], -1)
        return self.rejector(pairs.flatten(0, 1))[0].view(codes.shape[:2])


class Contexts:
    """Examples of the answers of each expert, drawn anew for every training step.

    Parameters
    ----------
    rows : Rows
        Items and targets; the first target is the true class.
    votes : Votes
        Answers of the experts to these items.
    size : int
        Largest number of examples per expert.
    n_experts : int
        Largest number of experts per training step.
    """

    def __init__(self, rows, votes, size, n_experts):
        by_expert, answers = np.argsort(votes.annotator, kind="stable"), votes.n_answers
        self.rows, self.size, self.n_experts = rows, size, n_experts
        self.item, self.answer = (
            torch.as_tensor(part[by_expert].astype(np.int64)) for part in (votes.item, votes.label)
        )
        self.n_answers, self.start = torch.as_tensor(answers), torch.as_tensor(answers.cumsum() - answers)
        self.vocal = torch.as_tensor(np.flatnonzero(answers))

    def draw(self, generator):
        """Draw experts (S,), items and answers (S, size) of each, and a mask (S, size) of the used ones.

        Examples are drawn with replacement, and at most half as many as the expert has answers; the net learns from the
        others.
        """
        experts = self.vocal[torch.randperm(len(self.vocal), generator=generator)[: self.n_experts]]
        n_answers = self.n_answers[experts, None]
        place = torch.rand(len(experts), self.size, dtype=torch.float64, generator=generator) * n_answers
        drawn = place.long() + self.start[experts, None]
        used = torch.arange(self.size) < n_answers // 2
        return experts, self.item[drawn], self.answer[drawn], used

    def take(self, items, device):
        """Inputs and true classes of items (S, size), flattened; `items` is on the CPU, where the rows may be."""
        X, (truth, *_) = self.rows[items.flatten()]
        return X.to(device), truth.to(device)


class PopulationNet(Net):
    """Net trained by the softmax surrogate given codes (L2D-Pop), or by cross-entropy without contexts.

    Targets are the true classes (B,), the encoded annotations (B, M), the numbers of the rows (B,) and their weights
    (B,) of mean 1.

    Attributes
    ----------
    contexts : Contexts or None
        Examples for the codes during training.
    """

    contexts = None

    def batch_loss(self, outputs, targets, X):
        logits, features = outputs
        y, codes, rows, weight = targets
        weight = weight.to(logits.dtype)
        truth = one_hot(y, logits.shape[-1]).to(logits.dtype)
        loss = softmax_loss(logits, truth)
        if self.contexts is None or len(self.contexts.vocal) == 0:
            return (weight * loss).mean()
        drawn = self.contexts.draw(self.generator)
        deferral = self.module_.defer(features, self._codes(features, *drawn[1:]))
        experts, items, _, used = (part.to(self.device) for part in drawn)
        answered = codes[:, experts]
        right = (answered == y[:, None]).to(logits.dtype)
        # the net does not learn from missing answers and from answers that are in the code
        shown = ((rows[:, None, None] == items) & used).any(-1)
        right = right.masked_fill((answered < 0) | shown, torch.nan)
        shape = (len(y), len(experts), -1)
        pairs = softmax_loss(
            torch.cat([logits.unsqueeze(1).expand(shape), deferral.unsqueeze(-1)], -1),
            torch.cat([truth.unsqueeze(1).expand(shape), right.unsqueeze(-1)], -1),
        )
        known = (~right.isnan()).to(logits.dtype)
        of_experts = (pairs * known).sum(1) / known.sum(1).clamp(min=1)
        return (weight * torch.where(known.any(1), of_experts, loss)).mean()

    def _codes(self, at, items, answers, used):
        """Codes of experts from the used examples, as `Population.defer` takes them, for items with features `at`.

        Features are not trained through the examples.
        """
        X, truth = self.contexts.take(items, self.device)
        with torch.no_grad():
            _, features = self.infer(X)
        answers, used = answers.flatten().to(self.device), used.to(self.device, features.dtype)
        each = self.module_.encode(features, truth, answers).view(*items.shape, -1)
        if self.module_.query is not None:
            return self.module_.attend(at, self.module_.key(features)[0].view(each.shape), each, used)
        return (each * used.unsqueeze(-1)).sum(1) / used.sum(1, keepdim=True).clamp(min=_NO_WEIGHT)


def build_population_net(params, items, n_classes, seed, pooling="mean"):
    """Untrained `PopulationNet`; arguments as in `fit_population_net`."""
    *hidden, width = check_feature_layers(params["hidden_layer_sizes"])
    sizes = (check_layers(params[name], name) for name in ("context_layer_sizes", "rejector_layer_sizes"))
    body = ensemble_for(params, items, width, hidden)
    module = partial(Population, body, width, n_classes, params["code_size"], *sizes, pooling)
    return build_net(PopulationNet, module, params, seed)


@own_state()
def fit_population_net(params, items, y_codes, votes, n_classes, seed, pooling="mean", sample_weight=None):
    """Train the classifier, then all nets; a step computes ``batch_size * experts_per_step`` deferral logits.

    Parameters
    ----------
    params : dict
        Parameters of `PopulationExpertEncoder` or `PopulationDeferral`.
    items : ndarray of shape (n, ...)
        Items.
    y_codes : ndarray of int of shape (n,)
        True classes.
    votes : Votes
        Annotations of the M experts.
    n_classes : int
        C.
    seed : int
        Seed of all random numbers.
    pooling : {"mean", "attention"}, default="mean"
        As in `Population`.
    sample_weight : ndarray of shape (n,), default=None
        Weights of the items; equal by default.

    Returns
    -------
    net : PopulationNet
        Trained net. The last hidden layer, or a `module`, gives the features.
    history : list of dict
        As returned by `train`.
    """
    net = build_population_net(params, items, n_classes, seed, pooling)
    codes = AnswerTable(votes, votes.label, -1).if_large()
    weight = np.ones(len(items)) if sample_weight is None else sample_weight / sample_weight.mean()
    rows = net.rows(items, y_codes, codes, np.arange(len(items)), weight)
    settings = {"seed": seed, "verbose": params["verbose"]}
    history = train(net, rows, params["n_classifier_epochs"], label="classifier", keep=False, **settings)
    net.contexts = Contexts(rows, votes, params["context_size"], params["experts_per_step"])
    try:
        return net, history + train(net, rows, params["max_epochs"], label="population", **settings)
    finally:
        net.contexts = None  # a pickle holds no training rows


def encoded_answers(net, X, y_codes, votes, sample_weight):
    """Yield annotators (A,), features (A, W), encodings (A, code_size) and weights (A, 1) of some answers at a time."""
    starts = votes.starts
    for rows, features in logit_batches(net.module_.body, X, net.device):
        answers = slice(starts[rows.start], starts[rows.stop])
        item, who, answer = (
            torch.as_tensor(part[answers].astype(np.int64)) for part in (votes.item, votes.annotator, votes.label)
        )
        item -= rows.start
        truth = torch.as_tensor(np.asarray(y_codes[rows], dtype=np.int64))[item]
        weight = torch.ones(len(features[0])) if sample_weight is None else torch.as_tensor(sample_weight[rows])
        for part in torch.arange(len(item)).split(_CHUNK):
            seen = features[0].relu()[item[part].to(net.device)]
            each = net.module_.encode(seen, truth[part].to(net.device), answer[part].to(net.device))
            check_outputs(each)
            yield who[part], seen, each, weight[item[part], None].to(net.device, each.dtype)


@own_state(grad=False)
def expert_codes(net, X, y_codes, votes, sample_weight=None):
    """Mean codes (M, code_size) of experts from all their answers, float64; 0 for an expert without answers.

    `sample_weight` (n,) are weights of the items, equal by default.
    """
    total = torch.zeros(votes.shape[1], net.module_.truth.embedding_dim, dtype=torch.float64)
    mass = torch.zeros(votes.shape[1], 1, dtype=torch.float64)
    for who, _, each, weight in encoded_answers(net, X, y_codes, votes, sample_weight):
        total.index_add_(0, who, (each * weight).cpu().double())
        mass.index_add_(0, who, weight.cpu().double())
    return (total / mass.clamp(min=_NO_WEIGHT)).numpy()


@own_state(grad=False)
def expert_examples(net, X, y_codes, votes, sample_weight=None):
    """Examples of each expert, what attention needs of their answers: an object array of arrays (T, 2 code_size + 1).

    The columns are keys, encodings and weights; arguments are those of `expert_codes`.
    """
    parts = [(np.empty(0, dtype=int), np.empty((0, 2 * net.module_.truth.embedding_dim + 1)))]
    for who, features, each, weight in encoded_answers(net, X, y_codes, votes, sample_weight):
        key = net.module_.key(features)[0]
        check_outputs(key)
        parts.append((who.numpy(), torch.cat([key, each, weight], -1).cpu().double().numpy()))
    who, table = (np.concatenate(part) for part in zip(*parts, strict=True))
    by_expert = np.split(
        table[np.argsort(who, kind="stable")], np.bincount(who, minlength=votes.shape[1]).cumsum()[:-1]
    )
    examples = np.empty(votes.shape[1], dtype=object)
    for m in range(len(examples)):
        examples[m] = by_expert[m]
    return examples


@own_state(grad=False)
def predict_population(net, X, experts):
    """Logits (n, C) of the classes and logits (n, E) of deferral to some experts, float64.

    `experts` are their codes (E, code_size) or, with attention, their `expert_examples`, at least one of each.
    """
    n_classes = net.module_.truth.num_embeddings
    defer = _defer_by_examples if experts.dtype == object else _defer_by_codes
    classes, deferral = np.empty((len(X), n_classes)), np.empty((len(X), len(experts)))
    for rows, features in logit_batches(net.module_.body, X, net.device):
        features = features[0].relu()
        logits = net.module_.classifier(features)[0]
        check_outputs(logits)
        classes[rows] = logits.cpu().numpy()
        for columns, some in defer(net, features, experts):
            check_outputs(some)
            deferral[rows, columns] = some.cpu().numpy()
    return classes, deferral


def _defer_by_codes(net, features, codes):
    """Yield slices of experts and their logits (b, e) of deferral."""
    codes, step = net.tensor(codes, dtype=torch.float64), max(1, _CHUNK // len(features))
    for start in range(0, len(codes), step):
        columns = slice(start, start + step)
        yield columns, net.module_.defer(features, codes[columns])


def _defer_by_examples(net, features, examples):
    """Yield experts, one at a time, and their logits (b,) of deferral."""
    for m, table in enumerate(examples):
        table = net.tensor(table, dtype=torch.float64).unsqueeze(0)
        keys, each = table[..., :-1].chunk(2, -1)
        parts = features.split(max(1, _CHUNK // max(1, table.shape[1])))
        seen = [net.module_.attend(part, keys, each, table[..., -1]) for part in parts]
        yield m, net.module_.defer(features, torch.cat(seen))[:, 0]
