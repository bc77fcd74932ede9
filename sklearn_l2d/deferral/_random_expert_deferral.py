"""Deferral to a random expert."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._numerics._answers import tally_answers
from .._sklearn import atomic
from .._validation import name_list
from ._gate import GatedDeferrer


class RandomExpertDeferral(GatedDeferrer):
    """Let a gate decide per item between the classifier and anybody: one group that holds all experts.

    A baseline that knows which items are hard, and nothing about who is good at them. Team accuracy is the expectation
    over the draw of the expert.

    Parameters
    ----------
    classifier : classifier, default=None
        Any scikit-learn classifier with `predict_proba`, cloned and fitted; a `FrozenEstimator` is taken as it is.
        None is a small neural net.

    cv : int, default=5
        Folds of the classifier's out-of-fold probabilities, and of the gate's where no unlabelled rows are given.

    coverage : float, pair of float or None, default=None
        Share of the items that the classifier is to decide, or its lower and upper bound. None leaves it free.

    workload : pair, array-like of shape (n_experts, 2), mapping or None, default=None
        Lower and upper bound of the share of all items that each expert serves, for everybody, in order, or by name.

    prior_weight : float, default=5.0
        Weight, before training, of what is expected of everybody: the gate's logits start from this weight times the
        log of the probability that a target, by its correctness per class and the classifier's probabilities of the
        classes, or the classifier, by its largest probability, is right. The net learns what it adds, and the weight.
        0 is the gate of the papers, which knows nothing but the item.

    annotation_smoothing : float, default=0.001
        Probability that the truth is not what an expert answered, in the E-step.

    consultation_cost : float, array-like of shape (n_experts,), mapping or None, default=None
        Cost of asking, in units of one error; a mapping has names of experts as keys.

    error_cost : array-like of shape (n_classes, n_classes), default=None
        Cost of deciding for the column where the row is true, in units of one error. None is 0 on the diagonal and 1
        elsewhere.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the training of the gate and of the default classifier.

    missing_label : object, default=None
        Marker of a missing annotation; None takes NaN, None, pandas.NA, masked entries and -1 unless it is a class.

    module, hidden_layer_sizes, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Of the gate, as in `AnnotatorLDA`; defaults None, (32,), "sgd", 0.05, 0.9, 0.01, 128 and 60.

    warm_start : bool, default=False
        Continue with the previous gate.

    device : str, default="auto"
        "auto" takes CUDA when there is one.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training of the gate.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, the gate and the draws of `assign_experts`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in `y`, and those that a frozen classifier knows.
    classifier_ : classifier
        The fitted classifier.
    temperature_ : float
        Temperature of the classifier's probabilities in the E-step.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    targets_ : ndarray of shape (n_targets,)
        The one target, "anybody".
    omega_ : ndarray of shape (n_experts, n_targets)
        Ones: everybody is a member.
    selection_ : ndarray of shape (n_targets, n_experts)
        Weights with which a member is drawn, equal unless the workload bounds ask for others.
    gate_ : object
        The trained gate; private in everything but name.
    offsets_ : ndarray of shape (n_targets + 1,)
        Calibrated offsets of the gate's logits.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Achieved hard shares on the calibration rows, the classifier last.
    coverage_ : float
        Achieved share of the classifier on the calibration rows.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    constraint_violation_ : float
        Largest amount by which an achieved share leaves its bounds.
    n_iter_ : int
        Epochs of the gate.
    history_ : list of dict
        Loss, log-likelihood and constraint violation of every epoch.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    ClusterDeferral : Several groups, whose members are right in the same places.

    Notes
    -----
    It stands for LECODU (Zhang et al., 2024) as L2D-Clusters section 5.2 reduces it, where experts are interchangeable.
    LECODU itself asks the classifier alone, the classifier and the first i of the shuffled experts, or i experts alone,
    with a Gumbel-softmax choice, and merges all their answers in a further net; it is trained without ground truth, on
    the consensus of a co-trained twin. When at most one decision maker is consulted per item, one random expert beside
    the classifier is what is left of it. As published its code does not run, and it draws its choice at test time too,
    so that a prediction is random; here only the expert within the group is drawn, from `random_state`.

    With a classifier that knows no better than chance where it errs, the accuracy falls on a straight line between the
    mean of the experts and the classifier. Use it to see what telling experts apart is worth, not as a deferrer.

    References
    ----------
    L2D-Clusters: Learning to defer on anonymously-annotated data, section 5.2.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import RandomExpertDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> gate = RandomExpertDeferral(coverage=0.5, classifier=LogisticRegression(C=0.01), random_state=0)
    >>> gate.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations, X_unlabeled=crowd.X_anonymous)
    RandomExpertDeferral(...)
    >>> print(f"{gate.coverage_:.2f}")
    0.50
    >>> gate.onboard("newcomer").experts_[-1]
    'newcomer'
    """

    def _form_targets(self, team):
        self._set_targets(np.array(["anybody"], dtype=object), np.ones((self.n_experts_, 1)))

    @atomic
    def onboard(self, experts, X=None, annotations=None, y=None):
        """Take experts into the one group; nothing need be known about them.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names; an expert who is known already is taken on anew.
        X : array-like of shape (n_samples, n_features), default=None
            Items that they labelled.
        annotations : array-like or DataFrame of shape (n_samples, len(experts)), default=None
            Their answers, with missing entries. With `y` they are counted, for `explain_deferral` and `partial_fit`.
        y : array-like of shape (n_samples,), default=None
            True labels.

        Returns
        -------
        self : RandomExpertDeferral
            The deferrer with a larger roster.

        Raises
        ------
        ValueError
            If the deferrer was fitted without experts, or the shapes or labels do not go together.
        """
        check_is_fitted(self)
        if len(self.targets_) == 0:
            raise ValueError("fitted without experts: there is no group to join; call fit with annotations.")
        names = name_list(experts)
        right = seen = np.zeros((len(names), len(self.classes_)))
        if annotations is not None:
            if X is None:
                raise ValueError("X is None, but annotations are answers to items; pass these items, or neither.")
            _, _, codes = self._check_newcomers(names, X, annotations)
            if y is not None:
                right, seen = tally_answers(codes, self._known_truth(X, y))
        newcomers = self._roster._replace(experts=names, omega=np.ones((len(names), 1)), right=right, seen=seen)
        self._set_roster(self._roster.joined_by(newcomers))
