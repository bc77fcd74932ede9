"""What annotators do, learnt beside a classifier: modules of the nets that learn from votes."""

import numpy as np
import torch
from torch import nn

from ._crowd_net import CrowdNet, log_softmax, mapped
from ._modules import MLPEnsemble


class Steps(nn.Module):
    """Values of M annotators that move as fast as if nobody else answered.

    The loss is a mean over the answers of all, in which an annotator's part is small where there are many. What is
    learnt is therefore multiplied by the root of a step, once in the value and once in its gradient.

    Parameters
    ----------
    start : tensor of shape (M, ...)
        First values.
    step : ndarray of shape (M,)
        How much faster than the net the values of each annotator move.
    """

    def __init__(self, start, step):
        super().__init__()
        root = torch.tensor(step).sqrt().view(-1, *[1] * (start.ndim - 1))
        self.register_buffer("start", start)
        self.register_buffer("root", root)
        self.moved = nn.Parameter(torch.zeros_like(start))

    def forward(self):
        """Values (M, ...)."""
        return self.start + self.root * self.moved


class ConfusionModule(nn.Module):
    """A classifier beside the confusion matrices of M annotators.

    Parameters
    ----------
    build : callable
        Called with `n_members`, returns the ensemble of the classifier.
    confusion : ndarray of shape (M, C, C)
        First probabilities of an answer (last axis) given the truth.
    step : ndarray of shape (M,)
        As in `Steps`.
    """

    def __init__(self, build, confusion, step):
        super().__init__()
        self.members = build(n_members=1)
        self.log_confusion = Steps(torch.tensor(confusion).clamp(min=1e-6).log(), step)

    def forward(self, X):
        """Logits (b, C) of the classifier."""
        return self.members(X)[0]

    def confusion(self):
        """Log-probabilities (M, C, C) of an answer (last axis) given the truth."""
        return log_softmax(self.log_confusion())


class UnionModule(ConfusionModule):
    """The same with one distribution over all annotators and answers for every class, as in UnionNet."""

    def confusion(self):
        """Log-probabilities (M, C, C) of an answer by an annotator (first and last axis) given the truth."""
        scores = self.log_confusion().movedim(-1, 0)
        return scores.flatten(0, 1).log_softmax(0).view(scores.shape).movedim(0, -1)


class LayerModule(nn.Module):
    """A classifier below a linear map of its probabilities for every annotator, as in CrowdLayer.

    Parameters
    ----------
    build : callable
        Called with `n_members`, returns the ensemble of the classifier.
    n_classes : int
        C.
    step : ndarray of shape (M,)
        As in `Steps`.
    kernel : {"matrix", "scale", "bias", "scale_bias", "scalar"}
        What is learnt: weights of shape (C, C), (C,) or (1,), with biases or without.
    """

    def __init__(self, build, n_classes, step, kernel):
        super().__init__()
        self.members, self.kernel = build(n_members=1), kernel
        n_annotators = len(step)
        weights = {
            "matrix": torch.eye(n_classes),
            "scale": torch.ones(n_classes),
            "bias": torch.ones(0),
            "scale_bias": torch.ones(n_classes),
            "scalar": torch.ones(1),
        }[kernel]
        biases = torch.zeros(n_classes if kernel in ("bias", "scale_bias") else 0)
        self.layer_weights = Steps(weights.expand(n_annotators, *weights.shape).double(), step)
        self.layer_biases = Steps(biases.expand(n_annotators, *biases.shape).double(), step)

    def forward(self, X):
        """Logits (b, C) of the classifier."""
        return self.members(X)[0]

    def maps(self):
        """Weights (M, ...) and biases (M, ...), None for those that the kernel does not have."""
        return (
            self.layer_weights() if self.kernel != "bias" else None,
            self.layer_biases() if self.kernel in ("bias", "scale_bias") else None,
        )

    @staticmethod
    def scores(f, maps, row, who):
        """Logits (A, C) of answers to items `row` (A,) by annotators `who` (A,), from probabilities (b, C)."""
        weights, biases = maps
        if weights is not None and weights.ndim == 3:
            scores = mapped(f, weights, row, who)
        else:
            scores = f.index_select(0, row)
            if weights is not None:
                scores = scores * weights.index_select(0, who)
        return scores if biases is None else scores + biases.index_select(0, who)


class CommonLayerModule(LayerModule):
    """A map that all annotators share beside their own, and how much each item and annotator use it, as in CoNAL.

    Parameters
    ----------
    build, n_classes, step
        As in `LayerModule`, whose kernel is "matrix".
    n_components : int
        Width of the embeddings of items and annotators, whose product decides.
    """

    def __init__(self, build, n_classes, step, n_components):
        super().__init__(build, n_classes, step, "matrix")
        # As fast as by an answer of weight 1, since it is everybody's answers that move it.
        self.layer_common = Steps(torch.eye(n_classes).unsqueeze(0).double(), np.array([1 / n_classes]))
        n_features = build.keywords["n_features"]
        self.embed = MLPEnsemble(1, n_features, n_components, ())
        self.layer_annotators = Steps(torch.randn(len(step), n_components).double(), step)

    def share(self, X, row, who):
        """Logits (A,) of the share of the common map in answers to items `row` (A,) by annotators `who` (A,)."""
        annotators = self.layer_annotators()
        embedded = self.embed(X.flatten(1).to(annotators.dtype))[0]
        return (embedded.index_select(0, row) * annotators.index_select(0, who)).sum(1)


class ItemModule(ConfusionModule):
    """Confusion matrices whose logits depend on the item through a few components.

    Parameters
    ----------
    build, confusion, step
        As in `ConfusionModule`.
    n_components : int
        Number of components; with 0, the matrices are those of `ConfusionModule`.
    """

    def __init__(self, build, confusion, step, n_components):
        super().__init__(build, confusion, step)
        n_annotators, n_classes, _ = confusion.shape
        if n_components:
            self.embed = MLPEnsemble(1, build.keywords["n_features"], n_components, ())
        self.item_effects = nn.Parameter(torch.zeros(n_annotators, n_components, n_classes * n_classes))

    def confusion_of(self, X, row, who):
        """Log-probabilities (A, C, C) of answers to items `row` (A,) by annotators `who` (A,)."""
        scores = self.log_confusion().index_select(0, who)
        parts = self.embed(X.flatten(1).to(scores.dtype))[0].tanh().index_select(0, row)
        effects = self.item_effects.index_select(0, who)
        scores = torch.baddbmm(scores.flatten(1).unsqueeze(1), parts.unsqueeze(1), effects).view(scores.shape)
        return log_softmax(scores)


class AnnotatorNet(CrowdNet):
    """`CrowdNet` whose `module_` is one of the above: what belongs to annotators is spared `weight_decay`."""

    undecayed = ("log_confusion*", "layer_*")
