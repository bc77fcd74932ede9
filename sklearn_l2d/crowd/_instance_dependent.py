"""Confusion matrices that depend on the item, with a penalty on the annotators' accuracy."""

import numbers
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import softmax

from .._numerics._matrices import row_chunks
from .._sklearn import Interval
from .._torch._annotator_modules import ItemModule
from .._torch._crowd_net import own_entries
from .._torch._net import logit_batches, predict_log_proba
from ._base import ConfusionNetClassifier, steps
from ._trace_reg import TraceNet, diagonals


class ItemNet(TraceNet):
    """Net whose `module_` has a confusion matrix for every answer, with a `trace_weight` on their diagonals."""

    def annotators(self):
        return None if self.n_components else super().annotators()

    def answer_log_proba(self, log_truth, learnt, row, annotator, label, X):
        if learnt is not None:
            return super().answer_log_proba(log_truth, learnt, row, annotator, label, X)
        log_confusion = self.module_.confusion_of(X, row, annotator)
        joint = log_truth.index_select(0, row) + own_entries(log_confusion, label)
        return joint.logsumexp(-1) - self.trace_weight * diagonals(log_confusion).mean(-1)

    def penalty(self, log_f, learnt):
        return 0.0 if learnt is None else super().penalty(log_f, learnt)


def scores_of(net, X):
    """Components (n, R) of items, their effects (M, R, C, C) and the constant logits (M, C, C) of a net."""
    module = net.module_
    constant = module.log_confusion().detach().cpu().double().numpy()
    effects = module.item_effects.detach().cpu().double().numpy()
    effects = effects.reshape(*effects.shape[:2], *constant.shape[1:])
    if not effects.shape[1]:
        return np.zeros((len(X), 0)), effects, constant
    parts = [np.tanh(part[0].cpu().numpy()) for _, part in logit_batches(module.embed, X, net.device)]
    return np.concatenate(parts), effects, constant


def matrices_of(parts, effects, constant):
    """Confusion matrices (n, M, C, C) of items with components (n, R)."""
    return softmax(constant + np.einsum("nr,arcl->nacl", parts, effects), axis=3)


class InstanceDependentCrowdNet(ConfusionNetClassifier):
    """Net and confusion matrices that depend on the item (Zhang et al. 2020).

    The logits of an annotator's matrix are a constant and a few components of the item, each with an effect of the
    annotator's own; the loss has the penalty of `TraceRegClassifier`, on the matrices of the items that were answered
    (crowd tutorial, part II). Corrected: the components, instead of a net with ``n_annotators * n_classes ** 2``
    outputs, keep the work in proportion to the answers.


    Parameters
    ----------
    weight : float, default=0.01
        Weight of the mean diagonal entry, at least 0.

    n_components : int, default=4
        Number of components of the item, linear in its features and bounded by the hyperbolic tangent. With 0, the
        classifier is `TraceRegClassifier`.

    hidden_layer_sizes, module, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the net, as in `NetClassifier`.

    init : {"majority", "dawid_skene"} or float, default="majority"
        Where the annotators start: at their agreement with the majority, or with the consensus of Dawid and Skene,
        which goes astray where people have few votes; a number between 0 and 1 is everybody's accuracy.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    device, dtype, verbose, random_state
        As in `NetClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    confusion_matrices_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability of an answer (last axis) given the true class, of every annotator.
    n_iter_ : int
        Number of epochs of the net.
    history_ : list of dict
        Phase, loss and duration (seconds) of every epoch.
    net_ : object
        The trained net; its interface is private.
    device_ : str
        Device of the net.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    TraceRegClassifier : With the same matrices for all items.

    References
    ----------
    Zhang et al., Disentangling human error from the ground truth in segmentation of medical images, NeurIPS 2020.

    Examples
    --------
    >>> from sklearn_l2d.crowd import InstanceDependentCrowdNet
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> model = InstanceDependentCrowdNet(max_epochs=20, random_state=0)
    >>> model.fit(crowd.X_identified, annotations=crowd.annotations).score(
    ...     crowd.X_test, crowd.y_test
    ... ) > 0.8
    True
    """

    _parameter_constraints: ClassVar = {
        **ConfusionNetClassifier._parameter_constraints,
        "weight": [Interval(numbers.Real, 0, None, closed="left")],
        "n_components": [Interval(numbers.Integral, 0, None, closed="left")],
    }
    _kind = ItemNet

    def __init__(
        self,
        weight=0.01,
        *,
        n_components=4,
        hidden_layer_sizes=(64,),
        module=None,
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        weight_decay=0.001,
        batch_size=64,
        max_epochs=60,
        init="majority",
        missing_label=None,
        unlabeled_label=None,
        device="auto",
        dtype="float32",
        verbose=0,
        random_state=None,
    ):
        super().__init__(
            hidden_layer_sizes,
            module=module,
            optimizer=optimizer,
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
            batch_size=batch_size,
            max_epochs=max_epochs,
            init=init,
            missing_label=missing_label,
            unlabeled_label=unlabeled_label,
            device=device,
            dtype=dtype,
            verbose=verbose,
            random_state=random_state,
        )
        self.weight = weight
        self.n_components = n_components

    def predict_annotation_proba(self, X):
        """Predict what each annotator would answer.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_annotators, n_classes)
            In the order of `annotators_` and `classes_`.
        """
        f = self.predict_proba(X)
        parts, effects, constant = scores_of(self.net_, self._check_array(X))
        proba = np.empty((len(f), *constant.shape[::2]))
        for rows in row_chunks(len(f), constant.size):
            proba[rows] = np.einsum("nc,nacl->nal", f[rows], matrices_of(parts[rows], effects, constant))
        return proba

    def _make_module(self, build, votes, truth):
        speed = steps(votes, self.batch_size)
        return partial(ItemModule, build, self._start(votes, truth), speed, self.n_components)

    def _context(self, votes):
        return {"trace_weight": self.weight, "n_components": self.n_components}

    def _learnt(self, net, items, votes):
        f = np.exp(predict_log_proba(net, items))
        parts, effects, constant = scores_of(net, items)
        total = 1e-12
        for rows in row_chunks(len(f), constant.size):
            total = total + np.einsum("nc,nacl->acl", f[rows], matrices_of(parts[rows], effects, constant))
        return {"confusion_matrices_": total / total.sum(2, keepdims=True)}
