"""COINNet: GeoCrowdNet, with deviations for the answers to items on which people err otherwise than elsewhere."""

import numbers
from typing import ClassVar

import numpy as np

from .._sklearn import Interval
from .._torch._batches import AnswerRows
from .._torch._crowd_net import mapped
from ._base import ConfusionNetClassifier
from ._geo_crowd_net import GeoNet

_POWER, _SMOOTH = 0.4, 0.01  # of the size of an item's deviations in the loss
_LEAST = 1e-3  # probability of an answer
_RATE = 0.02  # of the deviations, per visit
_N_VISITS = 60  # for scores of items


def rate(outlier_weight):
    """Step of the deviations, which stays stable for any weight."""
    return _RATE / (1 + 0.5 * outlier_weight)


class NumberedAnswers(AnswerRows):
    """`AnswerRows` with a fourth column, the position of an answer among all of them."""

    def _columns(self, row, answer):
        return *super()._columns(row, answer), answer


class OutlierNet(GeoNet):
    """Net with a deviation for every answer, which moves by plain gradient descent as the answer is visited.

    Attributes
    ----------
    n_answers : int
        Number of answers.
    outlier_weight : float
        Weight of the deviations.
    """

    deviations = None

    def batch_loss(self, logits, targets, X):
        answers, truth = targets
        row, annotator, label, number = answers.T
        log_f = logits.log_softmax(-1)
        known, place = truth >= 0, truth.clamp(min=0).unsqueeze(1)
        of_truth = log_f.gather(1, place).squeeze(1) * known
        f = log_f.exp()
        f = f.new_zeros(f.shape).scatter(1, place, 1.0).where(known.unsqueeze(1), f)
        if self.deviations is None:
            vars(self)["deviations"] = f.new_zeros((self.n_answers, f.shape[1]))
        deviation = self.deviations[number].requires_grad_(self.module_.training)
        learnt = self.annotators()
        clean = mapped(f, learnt.exp(), row, annotator)
        proba = (clean + deviation).clamp(min=_LEAST)
        log_answers = (proba.gather(1, label.unsqueeze(1)).squeeze(1) / proba.sum(1)).log()
        sizes = f.new_zeros(len(f)).index_add(0, row, deviation.square().sum(1))
        total = self.outlier_weight * (sizes + _SMOOTH).pow(_POWER / 2).sum() - log_answers.sum()
        size = (len(row) + known.sum()).clamp(min=1)
        step = rate(self.outlier_weight) * size * self.optimizer_.param_groups[0]["lr"] / self.lr

        def move(gradient):
            self.deviations[number] -= step * gradient

        if deviation.requires_grad:
            deviation.register_hook(move)
        return (total - of_truth.sum()) / size + self.penalty(log_f, learnt)


def deviations_of(clean, item, label, outlier_weight):
    """Deviations (A, C) of answers with probabilities (A, C), of the items (A,), from what was answered (A,)."""
    e, own = np.zeros_like(clean), np.arange(len(clean))
    for visit in range(_N_VISITS):
        raw = clean + e
        proba = np.maximum(raw, _LEAST)
        gradient = np.tile(1 / proba.sum(1, keepdims=True), proba.shape[1])
        gradient[own, label] -= 1 / proba[own, label]
        gradient *= raw > _LEAST
        size = np.bincount(item, (e**2).sum(1), minlength=item.max(initial=-1) + 1)[item]
        gradient += outlier_weight * _POWER * (size[:, None] + _SMOOTH) ** (_POWER / 2 - 1) * e
        e -= rate(outlier_weight) * (1 + np.cos(np.pi * visit / _N_VISITS)) / 2 * gradient
    return e


class COINNet(ConfusionNetClassifier):
    """GeoCrowdNet with outliers, on which annotators err otherwise than elsewhere (COINNet, Nguyen et al. 2024).

    The answers to some items follow no confusion matrix: a blurred picture confuses everybody in its own way. The
    distribution of an answer is ``A_m f(x) + e``, clipped and scaled to one, with a deviation e of its own, and the
    loss has ``outlier_weight * (sum_m |e|^2 + .01)^.2`` for each item, which few large deviations cost less than many
    small ones; the volume of F is that of `GeoCrowdNet` (crowd tutorial, part II). Deviations exist for answers that
    were given, not for a table of items and annotators, and only while the net is trained. `outlier_scores` finds them
    for any items, given the net.

    Parameters
    ----------
    outlier_weight : float, default=10.0
        Weight of the deviations. With a large one there are none, as in `GeoCrowdNet`.

    weight : float, default=0.003
        Weight of the volume, as in `GeoCrowdNet`.

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
    GeoCrowdNet : Without outliers.

    References
    ----------
    Nguyen, Ibrahim and Fu, Noisy label learning with instance-dependent outliers: identifiability via crowd wisdom,
    NeurIPS 2024.

    Examples
    --------
    >>> from sklearn_l2d.crowd import COINNet
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> model = COINNet(max_epochs=20, random_state=0)
    >>> model.fit(crowd.X_identified, annotations=crowd.annotations).score(
    ...     crowd.X_test, crowd.y_test
    ... ) > 0.8
    True
    """

    _parameter_constraints: ClassVar = {
        **ConfusionNetClassifier._parameter_constraints,
        "outlier_weight": [Interval(numbers.Real, 0, None, closed="left")],
        "weight": [Interval(numbers.Real, 0, None, closed="left")],
    }
    _kind = OutlierNet

    def __init__(
        self,
        outlier_weight=10.0,
        *,
        weight=0.003,
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
        self.outlier_weight = outlier_weight
        self.weight = weight

    def outlier_scores(self, X, annotations):
        """How far the answers to each item deviate from what the annotators answer elsewhere.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_annotators), or Votes
            Who answered what, as in `log_likelihood`.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Sum of the squared deviations, 0 without answers; the largest belong to outliers.
        """
        votes = self._votes(X, annotations)
        f = self.predict_proba(X)
        clean = np.einsum("ac,acl->al", f[votes.item], self.confusion_matrices_[votes.annotator])
        item = votes.item.astype(np.int64)
        e = deviations_of(clean, item, votes.label.astype(np.int64), self.outlier_weight)
        return np.bincount(item, (e**2).sum(1), minlength=len(votes))

    def _answers(self, votes):
        return NumberedAnswers(votes)

    def _context(self, votes):
        return {
            "volume": "F",
            "volume_weight": self.weight,
            "outlier_weight": self.outlier_weight,
            "n_answers": len(votes.item),
        }

    def _learnt(self, net, items, votes):
        vars(net).pop("deviations", None)
        return super()._learnt(net, items, votes)
