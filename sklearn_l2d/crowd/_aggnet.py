"""AggNet: a net and confusion matrices, by the joint likelihood of all answers to an item."""

from .._torch._annotator_modules import AnnotatorNet
from .._torch._crowd_net import entries, judged
from ._base import ConfusionNetClassifier


class JointNet(AnnotatorNet):
    """Net trained on the joint likelihood of the answers to every item."""

    def batch_loss(self, logits, targets, X):
        answers, truth = targets
        row, annotator, label = answers.T
        log_truth, of_truth = judged(logits.log_softmax(-1), truth)
        evidence = log_truth.index_add(0, row, entries(self.annotators(), annotator, label))
        log_likelihood = evidence.logsumexp(-1) + of_truth  # 0 of an item of which nothing is known
        heard = (truth >= 0).index_fill(0, row, True)
        return -log_likelihood.sum() / heard.sum().clamp(min=1)


class AggNetClassifier(ConfusionNetClassifier):
    """Net and confusion matrices that explain all answers to an item together (AggNet, Albarqouni et al. 2016).

    An item's answers have the probability ``sum_c f_c(x) prod_m A_m(c, answer_m)``, of the classifier f and the
    annotators' confusion matrices A: the model of Raykar et al., whose E-step and M-step are here one gradient step of
    its logarithm (crowd tutorial, part II). Annotators are taken to err independently given the truth.


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
    RaykarClassifier : The same by whole E-steps and M-steps, for any classifier.
    CCEMClassifier : Explains every answer for itself, and needs no independence.

    References
    ----------
    Albarqouni et al., AggNet: deep learning from crowds for mitosis detection in breast cancer histology images, IEEE
    TMI 2016.

    Raykar et al., Learning from crowds, JMLR 2010.

    Examples
    --------
    >>> from sklearn_l2d.crowd import AggNetClassifier
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> model = AggNetClassifier(max_epochs=20, random_state=0)
    >>> model.fit(crowd.X_identified, annotations=crowd.annotations).score(
    ...     crowd.X_test, crowd.y_test
    ... ) > 0.8
    True
    """

    _kind = JointNet
