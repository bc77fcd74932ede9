"""CoNAL: CrowdLayer with a map that all annotators share."""

import numbers
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import expit

from .._sklearn import Interval
from .._torch._annotator_modules import AnnotatorNet, CommonLayerModule
from .._torch._crowd_net import log_proba_of, log_softmax, mapped
from .._torch._net import logit_batches, predict_log_proba
from ._base import CrowdNetClassifier
from ._crowd_layer import answers_of, layer_of, layer_steps, mean_confusion


class CommonLayerNet(AnnotatorNet):
    """Net whose `module_` has maps of annotators and a common one, with a `fixed_share` of the latter or None."""

    def annotators(self):
        """Weights (M, C, C) of the maps of annotators, and the common one (C, C)."""
        return self.module_.layer_weights(), self.module_.layer_common()[0]

    def answer_log_proba(self, log_truth, learnt, row, annotator, label, X):
        f, (weights, common_weights) = log_truth.exp(), learnt
        own = log_proba_of(mapped(f, weights, row, annotator), label)
        if self.fixed_share == 0:
            return own
        log_common = log_softmax(f @ common_weights)
        common = log_common.flatten().index_select(0, row * f.shape[1] + label)
        if self.fixed_share is not None:
            share = common.new_tensor(self.fixed_share)
            return (own + (1 - share).log()).logaddexp(common + share.log())
        logit = self.module_.share(X, row, annotator)
        # ln(share) is less than ln(1 - share) by the logit
        return own.logaddexp(common + logit) - logit.logaddexp(logit.new_zeros(()))

    def penalty(self, log_f, learnt):
        if self.fixed_share == 0:
            return 0.0
        weights, common_weights = learnt
        apart = weights - common_weights
        return -self.distance_weight * apart.flatten(1).norm(dim=1).sum()


def shares_of(net, X):
    """Share (n, M) of the common map in the answers to items."""
    module = net.module_
    if net.fixed_share is not None:
        return np.full((len(X), len(module.layer_annotators.start)), float(net.fixed_share))
    embedded = np.concatenate([part[0].cpu().numpy() for _, part in logit_batches(module.embed, X, net.device)])
    return expit(embedded @ module.layer_annotators().detach().cpu().double().numpy().T)


def mixed_answers(f, share, weights, common):
    """Probabilities (n, M, C) of answers, from probabilities (n, C) and shares (n, M) of the common map."""
    own = answers_of(f, weights, np.zeros(weights.shape[:2]))
    shared = answers_of(f, common[None], np.zeros((1, len(common))))
    return own + share[:, :, None] * (shared - own)


class CoNALClassifier(CrowdNetClassifier):
    """CrowdLayer with errors that all annotators have in common (CoNAL, Chu et al. 2021).

    An answer comes from the map that all share with a probability that depends on the item and the annotator, the
    logistic function of the product of their embeddings, and else from the annotator's own, as in
    `CrowdLayerClassifier`. A penalty keeps own maps apart from the common one (crowd tutorial, part II). Corrected: as
    there, an answer weighs ``n_classes`` in the loss.


    Parameters
    ----------
    common_share : float or None, default=None
        Share of the answers that come from the common map: a number from 0, which is `CrowdLayerClassifier`, to 1, or
        learnt for each item and annotator.

    weight : float, default=1e-5
        Weight of the penalty, minus the sum of the distances between own maps and the common one.

    n_components : int, default=8
        Width of the embeddings.

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
        Maps of the annotators.
    common_weights_ : ndarray of shape (n_classes, n_classes)
        Map that they share.
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
    CrowdLayerClassifier : Without common errors.

    References
    ----------
    Chu, Ma and Wang, Learning from crowds by modeling common confusions, AAAI 2021.

    Examples
    --------
    >>> from sklearn_l2d.crowd import CoNALClassifier
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> model = CoNALClassifier(random_state=0)
    >>> model.fit(crowd.X_identified, annotations=crowd.annotations).score(
    ...     crowd.X_test, crowd.y_test
    ... ) > 0.8
    True
    """

    _parameter_constraints: ClassVar = {
        **CrowdNetClassifier._parameter_constraints,
        "common_share": [Interval(numbers.Real, 0, 1, closed="both"), None],
        "weight": [Interval(numbers.Real, 0, None, closed="left")],
        "n_components": [Interval(numbers.Integral, 1, None, closed="left")],
    }
    _kind = CommonLayerNet

    def __init__(
        self,
        common_share=None,
        *,
        weight=1e-5,
        n_components=8,
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
        self.common_share = common_share
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
        share = shares_of(self.net_, self._check_array(X))
        return mixed_answers(f, share, self.weights_, self.common_weights_)

    def _make_module(self, build, votes, truth):
        speed = layer_steps(votes, self.batch_size)
        return partial(CommonLayerModule, build, len(votes.classes), speed, self.n_components)

    def _context(self, votes):
        n_classes = float(len(votes.classes))
        return {"answer_weight": n_classes, "fixed_share": self.common_share, "distance_weight": self.weight}

    def _learnt(self, net, items, votes):
        f, share = np.exp(predict_log_proba(net, items)), shares_of(net, items)
        weights, _ = layer_of(net, len(votes.classes))
        common = net.module_.layer_common()[0].detach().cpu().double().numpy()
        confusion = mean_confusion(f, lambda rows: mixed_answers(f[rows], share[rows], weights, common))
        return {"confusion_matrices_": confusion, "weights_": weights, "common_weights_": common}
