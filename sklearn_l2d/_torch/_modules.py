"""Ensembles of K nets that answer together: logits of shape (K, batch, n_outputs)."""

import numbers
from itertools import pairwise

import torch
from torch import nn


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
    The products run in the floating type of the input. Predictions ask for float64, in which the answer for a row
    does not depend on the rows beside it; in float32 the order of the sums follows the shape of the batch.
    """

    predict_dtype = torch.float64

    def __init__(self, n_members, n_features, n_outputs, hidden_layer_sizes):
        super().__init__()
        sizes = [n_features, *check_layers(hidden_layer_sizes), n_outputs]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for fan_in, fan_out in pairwise(sizes):
            bound = (3 / max(fan_in, 1)) ** 0.5  # outputs of unit variance for inputs of unit variance
            self.weights.append((2 * torch.rand(n_members, fan_in, fan_out) - 1) * bound)
            self.biases.append(torch.zeros(n_members, 1, fan_out))

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
    """K copies of a user's module, built one after the other so that each has its own random start.

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
        """Floating type of the weights: float64 images would cost a convolutional net too much."""
        return next((p.dtype for p in self.parameters() if p.is_floating_point()), torch.float32)

    def forward(self, X):
        return torch.stack([member(X) for member in self.members])

    def copy_members_from(self, single):
        """Start every member from the only member of another ensemble."""
        for member in self.members:
            member.load_state_dict(single.members[0].state_dict())


def build_ensemble(module, n_members, n_features, n_outputs, hidden_layer_sizes):
    """Ensemble of K perceptrons, or of K copies of `module` where one is given."""
    if module is None:
        return MLPEnsemble(n_members, n_features, n_outputs, tuple(hidden_layer_sizes))
    return ModuleEnsemble(n_members, module, n_outputs)


def check_layers(sizes, name="hidden_layer_sizes"):
    """Numbers of hidden units as a tuple."""
    sizes = tuple(sizes)
    if not all(isinstance(size, numbers.Integral) and size >= 1 for size in sizes):
        raise ValueError(f"{name}={sizes} must be whole numbers of units, at least 1.")
    return sizes


def check_module(module):
    """Refuse what cannot be cloned or built afresh by each fit.

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
