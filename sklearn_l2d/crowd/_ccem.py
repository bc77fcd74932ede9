"""Coupled cross-entropy: a classifier and confusion matrices, trained together on the votes."""

from ._base import ConfusionNetClassifier


class CCEMClassifier(ConfusionNetClassifier):
    """Net and confusion matrices that explain the votes together (coupled cross-entropy, Ibrahim et al. 2023).

    An answer has the probability ``sum_c f_c(x) A_m(c, answer)``, of the classifier f and the annotator's confusion
    matrix A; both learn from its logarithm (crowd tutorial, part II). They are identified where every class has
    items that belong to it beyond doubt, and annotators who know it beyond doubt; elsewhere, a penalty on the volume
    helps.

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

    References
    ----------
    Ibrahim, Nguyen and Fu, Deep learning from crowdsourced labels: coupled cross-entropy minimization,
    identifiability, and regularization, ICLR 2023.

    Examples
    --------
    >>> from sklearn_l2d.crowd import CCEMClassifier
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> net = CCEMClassifier(max_epochs=20, random_state=0)
    >>> net.fit(crowd.X_identified, annotations=crowd.annotations).score(
    ...     crowd.X_test, crowd.y_test
    ... ) > 0.6
    True
    """
