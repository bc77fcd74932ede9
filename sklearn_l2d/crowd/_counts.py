"""A classifier learnt from votes of which nobody knows who gave them."""

import numbers
from functools import partial
from typing import ClassVar

import numpy as np

from .._annotated_target import matched_target
from .._anonymous import anonymous_counts, are_named, named_votes
from .._encoding import check_classes, some
from .._sklearn import Interval, atomic_fit
from .._torch._crowd_net import CountsNet, CrowdModule, learnt_confusion
from .._torch._modules import ensemble_for
from .._torch._net import check_net
from .._validation import check_known_truth, truth_codes, weighted_rows
from ._base import CrowdNetClassifier

_PRIOR_VOTES = 8  # chosen on the seeds 100 and 101 of the benchmark


def _judged_confusion(counts, truth, accuracy):
    """Confusion matrix (C, C) by the votes on items of known truth, shrunk towards equally likely errors.

    The accuracy of all votes is shrunk towards `accuracy`, and the votes of each class towards that.
    """
    n_classes, known = counts.shape[1], truth >= 0
    table = np.zeros((n_classes, n_classes))
    np.add.at(table, truth[known], counts[known])
    accuracy = (np.trace(table) + _PRIOR_VOTES * accuracy) / (table.sum() + _PRIOR_VOTES)
    alike = np.full((n_classes, n_classes), (1 - accuracy) / (n_classes - 1))
    np.fill_diagonal(alike, accuracy)
    table += _PRIOR_VOTES * alike
    return table / table.sum(1, keepdims=True)


class CountsClassifier(CrowdNetClassifier):
    """Net trained on anonymous votes, and on true labels where there are some.

    Nobody knows who gave a vote, so that all votes are taken to be answers of one average annotator: a vote has the
    probability ``sum_c f_c(x) A(c, vote)``, of the classifier f and one common confusion matrix A. The net learns from
    its logarithm, and from ``ln f_y(x)`` where the truth y is known. The average annotator is called "anybody".

    Parameters
    ----------
    hidden_layer_sizes, module, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the net, as in `NetClassifier`, but for a `weight_decay` of 0.003.

    vote_accuracy : float, default=0.8
        Probability of a right vote before votes on items of known truth are seen, from which the confusion matrix
        follows: it counts as much as eight such votes, and as eight in each class. Without any, wrong votes are equally
        likely, and 1 takes votes at their word: the loss is the cross-entropy with their shares.

    learn_confusion : bool, default=False
        Whether the net goes on to learn the confusion matrix from all votes. It pays where thousands of votes show how
        unlike the classes are; elsewhere, the net learns the items by heart and takes the rest for confusion.

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
    CCEMClassifier : Knows who gave which answer.
    sklearn_l2d.cluster.AnnotatorLDA : Behaviours behind anonymous votes.

    Notes
    -----
    Without any truth, classifier and a matrix that is learnt are identified as far as most votes are right: a
    permutation of the classes explains votes as well, and the start decides. A matrix that stays as it is was as good
    or better on most of eight sets (held-out votes and test accuracy). A matrix by votes on items of known truth keeps
    the net from imitating the mistakes of the crowd, by which it would confirm the wrong answers of a team. A greater
    weight of the truths, and the trace penalty of Tanno et al. (2019), who learn matrices of single annotators,
    changed nothing.

    References
    ----------
    Tanno, Saeedi, Sankaranarayanan, Alexander and Silberman, Learning from noisy labels by regularized estimation of
    annotator confusion, CVPR 2019.

    Examples
    --------
    >>> from sklearn_l2d.crowd import CountsClassifier
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> net = CountsClassifier(max_epochs=20, random_state=0)
    >>> net.fit(crowd.X_anonymous, counts=crowd.counts).score(crowd.X_test, crowd.y_test) > 0.9
    True
    """

    __metadata_request__fit: ClassVar = {"annotations": True, "counts": True, "classes": True}
    _parameter_constraints: ClassVar = {
        **CrowdNetClassifier._parameter_constraints,
        "vote_accuracy": [Interval(numbers.Real, 0, 1, closed="right")],
        "learn_confusion": ["boolean"],
    }
    _kind = CountsNet

    def __init__(
        self,
        hidden_layer_sizes=(64,),
        *,
        module=None,
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        weight_decay=0.003,
        batch_size=64,
        max_epochs=60,
        vote_accuracy=0.8,
        learn_confusion=False,
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
        self.vote_accuracy = vote_accuracy
        self.learn_confusion = learn_confusion

    @atomic_fit(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, annotations=None, counts=None, classes=None, sample_weight=None):
        """Fit the classifier to votes, to true labels, or to both.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items, best with columns of similar sizes (see `StandardScaler`).
        y : array-like of shape (n_samples,), default=None
            True labels, missing where the truth is unknown; an `AnnotatedTarget` also brings the annotations. None
            knows none of them.
        annotations : array-like or DataFrame of shape (n_samples, n_annotators), or Votes, default=None
            Who answered what, one column per annotator, with missing entries. Only how many gave each answer counts.
        counts : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape (n_samples,), \
                default=None
            Votes for each class, or one label per item, as `encode_counts` reads them, in place of `annotations`. The
            columns of a DataFrame name the classes; columns without names are `classes`, or those of `y` if they are as
            many, else 0, 1, ... A row of zeros is an item without votes. `Votes` are counted.
        classes : array-like of shape (n_classes,), default=None
            Sorted class labels, if `y` and `counts` may not name all of them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the items in the loss. Items of weight 0 are left out.

        Returns
        -------
        self : CountsClassifier
            The fitted classifier. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If `y`, `annotations` and `counts` hold no label, there is one class only, a table does not fit the others,
            or votes come both ways.
        FloatingPointError
            If the loss is not finite.
        """
        params = self.get_params(deep=False)
        check_net(params)
        y, annotations = matched_target(X, y, annotations)
        if annotations is not None and counts is not None:
            raise ValueError("annotations and counts are both given; pass one of the two.")
        X, y, votes, weight, *_ = weighted_rows(X, y, counts if annotations is None else annotations, sample_weight)
        items = self._check_array(X, reset=True)
        counts, truth, classes = self._count(items, X, y, votes, annotations is not None, classes)
        of_truth = np.where(truth >= 0, 1.0, 0.0)
        if weight is not None:
            counts, of_truth = counts * weight[:, None], of_truth * weight
        start = _judged_confusion(counts, truth, self.vote_accuracy)[None]
        module = partial(CrowdModule, ensemble_for(params, items, len(classes)), start)
        net = self._train(params, module, {"learn_confusion": self.learn_confusion}, items, counts, truth, of_truth)
        self.classes_, self.annotators_ = classes, np.array(["anybody"], dtype=object)
        self.confusion_matrices_ = learnt_confusion(net)

    def _count(self, items, X, y, votes, by_name, classes):
        """Votes (n, C), codes (n,) of the known truths, -1 elsewhere, and the classes."""
        labels, known = check_known_truth(self, y, len(items), votes)
        if classes is None:
            classes = np.unique(labels)
        elif not np.isin(labels, classes := check_classes(classes)).all():
            raise ValueError(f"y holds labels that are not among classes={some(classes.tolist())}; name all of them.")
        if votes is None:
            counts = np.zeros((len(items), len(classes)))
        elif by_name or are_named(votes):
            votes = named_votes(votes, X, classes, self.missing_label, "annotations" if by_name else "counts")
            counts, classes = votes.to_counts().astype(float), votes.classes
        else:
            counts, classes = anonymous_counts(votes, X, classes)
        return counts, truth_codes(labels, known, classes), classes
