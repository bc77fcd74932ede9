"""GeoCrowdNet: coupled cross-entropy, and a volume that makes its solution unique."""

import numbers
from typing import ClassVar

from .._sklearn import Interval, StrOptions
from .._torch._annotator_modules import AnnotatorNet
from .._torch._crowd_net import LogVolume
from ._base import ConfusionNetClassifier

_FLOOR = 0.01  # of the eigenvalues of a Gram matrix


class GeoNet(AnnotatorNet):
    """Net whose loss prefers a large `volume`, with a `volume_weight`."""

    def penalty(self, log_f, learnt):
        if self.volume is None:
            return 0.0
        if self.volume == "F":
            rows, scale = log_f.exp(), log_f.shape[1] / len(log_f)
        else:
            rows, scale = learnt.exp().movedim(-1, 0).flatten(0, 1), 1 / max(1, len(learnt))
        return -self.volume_weight * LogVolume.apply(rows, scale, _FLOOR)


class GeoCrowdNet(ConfusionNetClassifier):
    """Coupled cross-entropy with a penalty that prefers a large volume (GeoCrowdNet, Ibrahim et al. 2023).

    The answers alone often fit as well with the classes mixed. Of the solutions of `CCEMClassifier`, this one is sought
    whose probabilities of the items (F), or whose confusion matrices (W), span the largest volume: the loss of a batch
    is reduced by ``weight * log det``, of the Gram matrix of the classes over the items, or over the annotators and
    their answers (crowd tutorial, part II).


    Parameters
    ----------
    volume : {"F", "W"} or None, default="F"
        "F" suits crowds without experts: it needs items that belong to their class beyond doubt. "W" suits few or
        doubtful items: it needs somebody who knows each class. None is `CCEMClassifier`.

    weight : float, default=0.003
        Weight of the logarithm of the determinant. The matrix is scaled so that a certain classifier of equally
        frequent classes, or annotators without errors, have the determinant 1; eigenvalues have a floor of .01, which
        keeps batches with fewer items than classes from infinity.

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
    CCEMClassifier : Without the penalty.
    COINNet : With deviations of single answers.

    References
    ----------
    Ibrahim, Nguyen and Fu, Deep learning from crowdsourced labels: coupled cross-entropy minimization,
    identifiability, and regularization, ICLR 2023.

    Examples
    --------
    >>> from sklearn_l2d.crowd import GeoCrowdNet
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> model = GeoCrowdNet(max_epochs=20, random_state=0)
    >>> model.fit(crowd.X_identified, annotations=crowd.annotations).score(
    ...     crowd.X_test, crowd.y_test
    ... ) > 0.8
    True
    """

    _parameter_constraints: ClassVar = {
        **ConfusionNetClassifier._parameter_constraints,
        "volume": [StrOptions({"F", "W"}), None],
        "weight": [Interval(numbers.Real, 0, None, closed="left")],
    }
    _kind = GeoNet

    def __init__(
        self,
        volume="F",
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
        self.volume = volume
        self.weight = weight

    def _context(self, votes):
        return {"volume": self.volume, "volume_weight": self.weight}
