"""CrowdLayer: a net, and a linear map of its output for every annotator."""

from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import softmax

from .._numerics._matrices import row_chunks
from .._sklearn import StrOptions
from .._torch._annotator_modules import AnnotatorNet, LayerModule
from .._torch._crowd_net import log_proba_of
from .._torch._net import predict_log_proba
from ._base import CrowdNetClassifier, steps

_SLOWER = 0.03


class LayerNet(AnnotatorNet):
    """Net whose `module_` maps probabilities of the truth to logits of answers."""

    def annotators(self):
        return self.module_.maps()

    def answer_log_proba(self, log_truth, learnt, row, annotator, label, X):
        return log_proba_of(self.module_.scores(log_truth.exp(), learnt, row, annotator), label)


def layer_steps(votes, batch_size):
    """`steps` of maps, which start as the identity, whoever it is, and must not run ahead of the net."""
    return np.maximum(1.0, _SLOWER * steps(votes, batch_size))


def layer_of(net, n_classes):
    """Weights (M, C, C) and biases (M, C) of a trained net, as arrays."""
    weights, biases = (
        part().detach().cpu().double().numpy() for part in (net.module_.layer_weights, net.module_.layer_biases)
    )
    if weights.ndim == 2:
        weights = (weights if weights.shape[1] else np.ones((len(weights), 1)))[:, :, None] * np.eye(n_classes)
    return weights, biases if biases.shape[1] else np.zeros((len(weights), n_classes))


def answers_of(f, weights, biases):
    """Probabilities (n, M, C) of answers, from probabilities (n, C) of the classifier."""
    return softmax(np.einsum("nc,acl->nal", f, weights) + biases, axis=2)


def mean_confusion(f, answers):
    """Mean answers (M, C, C) to items of every class, of which an item has one with its probability.

    Parameters
    ----------
    f : ndarray of shape (n, C)
        Probabilities of the classifier.
    answers : callable
        ``answers(rows)`` returns the probabilities (n, M, C) of answers to a slice of the items.
    """
    total, (n_items, n_classes) = 1e-12, f.shape  # a class may have no item
    for rows in row_chunks(n_items, n_classes**2):
        total = total + np.einsum("nc,nal->acl", f[rows], answers(rows))
    return total / total.sum(2, keepdims=True)


class CrowdLayerClassifier(CrowdNetClassifier):
    """Net below a linear map of its output for every annotator (CrowdLayer, Rodrigues & Pereira 2018).

    An annotator's answer has the probabilities ``softmax(W_m f(x) + b_m)``; all maps start as the identity, with which
    the net learns from all answers alike (crowd tutorial, part II). As long as the maps are small, no answer is much
    more probable than the others, which keeps the net from following wrong ones. Corrected: an answer weighs
    ``n_classes`` in the loss, since the softmax of probabilities hands on that much less of a gradient than that of
    logits does, and a net trained as in `NetClassifier` would be far from done. A known truth weighs 1.


    Parameters
    ----------
    kernel : {"matrix", "scale", "bias", "scale_bias", "scalar"}, default="matrix"
        What is learnt of everybody: a matrix, a weight for each class, a bias for each class, both, or one weight: how
        sharply the annotator tells classes apart. Where items are few for the number of classes, "scale_bias" was more
        accurate than "matrix".

    hidden_layer_sizes, module, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the net, as in `NetClassifier`, but for a `weight_decay` of 0.01.

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
    weights_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Maps of the annotators, diagonal unless `kernel` is "matrix".
    biases_ : ndarray of shape (n_annotators, n_classes)
        Their biases.
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
    CCEMClassifier : Maps that are confusion matrices.
    CoNALClassifier : With a map that all annotators share.

    References
    ----------
    Rodrigues and Pereira, Deep learning from crowds, AAAI 2018.

    Examples
    --------
    >>> from sklearn_l2d.crowd import CrowdLayerClassifier
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> model = CrowdLayerClassifier(random_state=0)
    >>> model.fit(crowd.X_identified, annotations=crowd.annotations).score(
    ...     crowd.X_test, crowd.y_test
    ... ) > 0.8
    True
    """

    _parameter_constraints: ClassVar = {
        **CrowdNetClassifier._parameter_constraints,
        "kernel": [StrOptions({"matrix", "scale", "bias", "scale_bias", "scalar"})],
    }
    _kind = LayerNet

    def __init__(
        self,
        kernel="matrix",
        *,
        hidden_layer_sizes=(64,),
        module=None,
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        weight_decay=0.01,
        batch_size=64,
        max_epochs=60,
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
            missing_label=missing_label,
            unlabeled_label=unlabeled_label,
            device=device,
            dtype=dtype,
            verbose=verbose,
            random_state=random_state,
        )
        self.kernel = kernel

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
        return answers_of(self.predict_proba(X), self.weights_, self.biases_)

    def _make_module(self, build, votes, truth):
        return partial(LayerModule, build, len(votes.classes), layer_steps(votes, self.batch_size), self.kernel)

    def _context(self, votes):
        return {"answer_weight": float(len(votes.classes))}

    def _learnt(self, net, items, votes):
        f = np.exp(predict_log_proba(net, items))
        weights, biases = layer_of(net, len(votes.classes))
        confusion = mean_confusion(f, lambda rows: answers_of(f[rows], weights, biases))
        return {"confusion_matrices_": confusion, "weights_": weights, "biases_": biases}
