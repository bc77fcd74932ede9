"""UnionNet: one distribution over all annotators and their answers for every class."""

from functools import partial

import numpy as np

from .._torch._annotator_modules import UnionModule
from ._base import ConfusionNetClassifier, steps


class UnionNet(ConfusionNetClassifier):
    """Net that explains who answers what (UnionNet, Wei et al. 2022).

    All answers are one draw after another from a distribution over annotators and labels together, one for each class:
    an answer has the probability ``sum_c f_c(x) T(c, annotator, answer)``. Who answers an item therefore tells about
    its class, as where people choose what they answer; elsewhere, `CCEMClassifier` is the same with less to learn.


    Parameters
    ----------
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
    CCEMClassifier : What is answered, given who answers.

    References
    ----------
    Wei, Xie, Feng, Han and An, Deep learning from multiple noisy annotators as a union, IEEE TNNLS 2022.

    Examples
    --------
    >>> from sklearn_l2d.crowd import UnionNet
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> model = UnionNet(max_epochs=20, random_state=0)
    >>> model.fit(crowd.X_identified, annotations=crowd.annotations).score(
    ...     crowd.X_test, crowd.y_test
    ... ) > 0.8
    True
    """

    def _make_module(self, build, votes, truth):
        share = votes.n_answers[:, None, None] / max(1, len(votes.item))
        union = self._start(votes, truth) * np.maximum(share, 1e-3 / max(1, len(share)))
        return partial(UnionModule, build, union, steps(votes, self.batch_size))

    def _learnt(self, net, items, votes):
        given_annotator = net.module_.log_confusion().detach().cpu().double().softmax(-1)
        return {"confusion_matrices_": given_annotator.numpy()}
