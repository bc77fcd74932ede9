"""Ensembles of K nets, with logits of shape (K, batch, n_outputs), and modules made of them."""

import numbers
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import nn

_FLOOR = 1e-6  # smallest expected correctness


class MLPEnsemble(nn.Module):
    """K multilayer perceptrons with ReLU units, as batched matrix products over a leading axis of members.

    Parameters
    ----------
    n_members : int
        K.
    n_features, n_outputs : int
        Width of the input and of the logits.
    hidden_layer_sizes : tuple of int
        Units of the hidden layers; empty is a linear model.

    Notes
    -----
    The products have the floating type of the input. Predictions use float64, in which the output of a row does not
    depend on the other rows of the batch; in float32, the order of the sums depends on the shape of the batch.
    """

    predict_dtype = torch.float64

    def __init__(self, n_members, n_features, n_outputs, hidden_layer_sizes):
        super().__init__()
        sizes = [n_features, *check_layers(hidden_layer_sizes), n_outputs]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for fan_in, fan_out in pairwise(sizes):
            bound = (3 / max(fan_in, 1)) ** 0.5  # unit variance of the outputs for unit variance of the inputs
            self.weights.append((2 * torch.rand(n_members, fan_in, fan_out) - 1) * bound)
            self.biases.append(torch.zeros(n_members, 1, fan_out))

    @property
    def row_size(self):
        """Numbers of the largest layer that are computed for a row."""
        return max(weight.shape[0] * weight.shape[2] for weight in self.weights)

    def forward(self, X):
        X = X.flatten(1)
        out = X.expand(len(self.weights[0]), *X.shape)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            out = torch.baddbmm(bias.to(X.dtype), out.relu() if layer else out, weight.to(X.dtype))
        return out

    def copy_members_from(self, single):
        """Start every member from the only member of another ensemble."""
        with torch.no_grad():
            for mine, theirs in zip(self.parameters(), single.parameters(), strict=True):
                mine.copy_(theirs.expand_as(mine))


class ModuleEnsemble(nn.Module):
    """K copies of a user's module, built one after another so that each has its own initial weights.

    Parameters
    ----------
    n_members : int
        K.
    module : callable
        Called with `n_outputs`, returns a module that maps a batch to logits.
    n_outputs : int
        Width of the logits.
    """

    def __init__(self, n_members, module, n_outputs):
        super().__init__()
        self.members = nn.ModuleList(module(n_outputs=n_outputs) for _ in range(n_members))

    @property
    def predict_dtype(self):
        """Floating type of the weights: float64 images are too slow for a convolutional net."""
        return next((p.dtype for p in self.parameters() if p.is_floating_point()), torch.float32)

    @property
    def row_size(self):
        """Number of logits of each class that are computed for a row."""
        return len(self.members)

    def forward(self, X):
        return torch.stack([member(X) for member in self.members])

    def copy_members_from(self, single):
        """Start every member from the only member of another ensemble."""
        for member in self.members:
            member.load_state_dict(single.members[0].state_dict())


def squared_norms(ensemble):
    """Sum of the squared parameters of every member of an ensemble, of shape (K,)."""
    if isinstance(ensemble, ModuleEnsemble):
        return torch.stack([sum(p.square().sum() for p in member.parameters()) for member in ensemble.members])
    return sum(p.square().flatten(1).sum(1) for p in ensemble.parameters())


def kept_members(ensemble, optimizer, kept):
    """Drop the other members of an ensemble in place, with what an optimiser in training knows of them."""
    kept = torch.as_tensor(kept)
    if isinstance(ensemble, ModuleEnsemble):
        before = set(ensemble.parameters())
        ensemble.members = nn.ModuleList(ensemble.members[int(k)] for k in kept)
        dropped = before - set(ensemble.parameters())
        for group in optimizer.param_groups:
            group["params"] = [p for p in group["params"] if p not in dropped]
        for parameter in dropped:
            optimizer.state.pop(parameter, None)
        return
    for parameter in ensemble.parameters():
        state = optimizer.state[parameter]
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                state[name] = value[kept.to(value.device)].clone()
        parameter.data = parameter.data[kept.to(parameter.device)].clone()
        parameter.grad = None


def build_ensemble(module, n_members, n_features, n_outputs, hidden_layer_sizes):
    """Ensemble of K perceptrons, or of K copies of `module` if it is given."""
    if module is None:
        return MLPEnsemble(n_members, n_features, n_outputs, tuple(hidden_layer_sizes))
    return ModuleEnsemble(n_members, module, n_outputs)


def ensemble_for(params, items, n_outputs, hidden_layer_sizes=None):
    """`build_ensemble` for items of the shape of `items`, to be called with `n_members`.

    `params` are those of an estimator: `module`, and `hidden_layer_sizes` unless others are given.
    """
    sizes = params["hidden_layer_sizes"] if hidden_layer_sizes is None else hidden_layer_sizes
    return partial(
        build_ensemble,
        params.get("module"),
        n_features=int(np.prod(items.shape[1:])),
        n_outputs=n_outputs,
        hidden_layer_sizes=tuple(sizes),
    )


class Single(nn.Module):
    """One net, as an ensemble of one member.

    With a prior, a perceptron initially adds 0 to it, and the weight of the prior is learnt: its logarithm starts at 0,
    relative to the given weight. The offset of the prior is not learnt. `from_zero` lets a perceptron begin with
    outputs of 0 without a prior.
    """

    def __init__(self, build, with_prior=False, from_zero=False):
        super().__init__()
        self.n_features, self.n_outputs = build.keywords["n_features"], build.keywords["n_outputs"]
        self.members = build(n_members=1)
        if with_prior:
            self.log_weight = nn.Parameter(torch.zeros(()))
            self.register_buffer("offset", torch.zeros(self.n_outputs))
        if (with_prior or from_zero) and isinstance(self.members, MLPEnsemble):
            nn.init.zeros_(self.members.weights[-1])

    def forward(self, X):
        return self.members(X)[0]


class Behaviours(nn.Module):
    """K behaviours and, at the start of the training, the consensus net that anchors them.

    Attributes
    ----------
    phase : {"penalty", "consensus", "anchor", "stream", "em"}
        Nets that a batch trains: the members, each on all votes; the consensus net only; the behaviours, with
        responsibilities of the tempered consensus; both, for streams; the behaviours, with their own responsibilities.
    """

    def __init__(self, build, n_members, with_consensus):
        super().__init__()
        self.phase = "em"
        self.consensus = build(n_members=1) if with_consensus else None
        self.members = build(n_members=n_members)

    def forward(self, X):
        """Logits (K, B, C) of the behaviours and (1, B, C) of the consensus; None if the phase does not need them."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.phase != "anchor"):
            consensus = None if self.phase in ("em", "penalty") else self.consensus(X)
        return None if self.phase == "consensus" else self.members(X), consensus

    def get_extra_state(self):
        """The phase belongs to the state of the module, as the weights do."""
        return self.phase

    def set_extra_state(self, state):
        """Inverse of `get_extra_state`."""
        self.phase = state


class AgnosticRejector(nn.Module):
    """Logit of deferral for an item, by its class probabilities, and an expert, by a competence per class.

    One net is applied to every class, and its outputs are averaged with the class probabilities as weights, so that the
    order and number of the classes do not matter. A second net maps the average to the logit. Its last layer starts at
    0, where the logit is the log of the expected correctness, ``ln sum_c p_c r_c``; it is exact if an expert's errors
    depend on the class only.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int
        Hidden units of both nets; the last layer of the first net is averaged over classes.
    """

    def __init__(self, hidden_layer_sizes):
        super().__init__()
        *hidden, width = hidden_layer_sizes
        self.of_class = MLPEnsemble(1, 3, width, hidden)
        self.of_pair = MLPEnsemble(1, width, 1, hidden_layer_sizes)
        nn.init.zeros_(self.of_pair.weights[-1])

    def forward(self, proba):
        """Return the probabilities (B, C); the logits depend on the experts, see `defer`."""
        return proba

    def defer(self, proba, mean, spread):
        """Logits (B, E) of deferral.

        Parameters
        ----------
        proba : tensor of shape (B, C)
            Probabilities of the classes.
        mean, spread : tensors of shape (E, C)
            Mean and standard deviation of the competence.
        """
        shape = (len(proba), *mean.shape)
        cells = torch.stack([part.expand(shape) for part in (proba.unsqueeze(1), mean, spread)], -1)
        each = self.of_class(cells.flatten(0, 2))[0].relu().view(*shape, -1)
        average = (proba[:, None, :, None] * each).sum(2)
        beyond = self.of_pair(average.flatten(0, 1))[0].view(shape[:2])
        return (proba @ mean.T).clamp(min=_FLOOR).log() + beyond


class RoleRejector(nn.Module):
    """Logit of deferral for an item and an expert, by what the classifier's first and second class are like (IFD).

    One net sees, for the most probable class, for the second one, and for all others together, the probability and the
    mean and standard deviation of the competence. Which classes these are does not matter. Equally probable classes are
    in the order of the competence. The last layer starts at 0, where the logit is the log of the expected correctness,
    ``ln sum_c p_c r_c``.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int
        Hidden units.
    """

    n_roles = 2  # before "all others"

    def __init__(self, hidden_layer_sizes):
        super().__init__()
        self.of_roles = MLPEnsemble(1, 3 * (self.n_roles + 1), 1, hidden_layer_sizes)
        nn.init.zeros_(self.of_roles.weights[-1])

    def forward(self, proba):
        """Return the probabilities (B, C); the logits depend on the experts, see `defer`."""
        return proba

    def defer(self, proba, mean, spread):
        """Logits (B, E) of deferral; arguments as in `AgnosticRejector.defer`."""
        state = self.roles(proba, mean, spread)
        beyond = self.of_roles(state.flatten(0, 1))[0].view(state.shape[:2])
        return (proba @ mean.T).clamp(min=_FLOOR).log() + beyond

    def roles(self, proba, mean, spread):
        """What the net sees, (B, E, 9)."""
        by_competence = spread.argsort(dim=-1, descending=True, stable=True)
        by_competence = by_competence.gather(
            -1, mean.gather(-1, by_competence).argsort(dim=-1, descending=True, stable=True)
        )
        mean, spread = mean.gather(-1, by_competence), spread.gather(-1, by_competence)
        of_pairs = proba[:, by_competence]
        order = of_pairs.argsort(dim=-1, descending=True, stable=True)
        cells = torch.stack([of_pairs, mean.expand_as(of_pairs), spread.expand_as(of_pairs)], -1)
        cells = cells.gather(2, order.unsqueeze(-1).expand_as(cells))
        first, others = cells[:, :, : self.n_roles], cells[:, :, self.n_roles :]
        left = others[..., :1].sum(2)
        average = (others[..., :1] * others[..., 1:]).sum(2) / left.clamp(min=_FLOOR)
        return torch.cat([first.flatten(2), left, average], -1)


def check_layers(sizes, name="hidden_layer_sizes"):
    """Numbers of hidden units as a tuple."""
    sizes = tuple(sizes)
    if not all(isinstance(size, numbers.Integral) and size >= 1 for size in sizes):
        raise ValueError(f"{name}={sizes} must be whole numbers of units, at least 1.")
    return sizes


def check_feature_layers(sizes, name="hidden_layer_sizes"):
    """Like `check_layers`, for a net whose last hidden layer gives features; it needs at least one layer."""
    sizes = check_layers(sizes, name)
    if not sizes:
        raise ValueError(f"{name} is empty, but its last layer gives the features; name at least one layer.")
    return sizes


def check_module(module):
    """Refuse a module that cannot be cloned or built anew by each fit.

    Raises
    ------
    TypeError
        If `module` is an instance of a torch module, or cannot be called.
    """
    if isinstance(module, nn.Module):
        raise TypeError(
            "module must be a class or a function that is called with n_outputs, not a module instance: an instance "
            "would be trained in place and copied with its weights. Pass the class, or functools.partial(...) of it."
        )
    if module is not None and not callable(module):
        raise TypeError(f"module must be a class or a function that returns a torch module, got {module!r}.")
