"""Deferral to a random expert."""

from sklearn.utils.validation import check_is_fitted

from .._sklearn import atomic
from ._anybody import form_anybody, join_anybody
from ._gate import GatedDeferrer


class RandomExpertDeferral(GatedDeferrer):
    """Train a gate that defers each item to the classifier or to a random expert.

    All experts are in one group. This baseline learns which items are hard for the classifier, but does not tell
    experts apart. The team accuracy is the expectation over the draw of the expert.

    Parameters
    ----------
    classifier : classifier, default=None
        Classifier with `predict_proba`. It is cloned and fitted, unless it is a `FrozenEstimator`, which is used as it
        is. None is a small neural net, a `NetClassifier` or, with `votes_unlabeled`, a `CountsClassifier`.

    cv : int, splitter or list of splits, default=5
        Folds of the classifier's out-of-fold probabilities and, without `X_unlabeled`, of the gate's: their number, a
        splitter, or splits as positions in `X`.

    coverage : float, pair of float or None, default=None
        Share of the items that the classifier decides, or a pair of a lower and an upper bound. None sets no bound.

    workload : pair, array-like of shape (n_experts, 2), mapping or None, default=None
        Lower and upper bound of the share of all items that each expert serves: one pair for all experts, one pair per
        expert, or a mapping from names to pairs, such as a Series or DataFrame. None sets no bound.

    gate_features : {"X", "proba"}, callable or None, default=None
        Numbers by which a gate, net or `AnnotatorLDA` inside the deferrer tells items apart: "X" is `X` itself, "proba"
        the probabilities of the classifier, and a callable is given `X` and returns an array or sparse matrix of a row
        per item, for instance the `transform` of a fitted vectoriser. None is "X" where `X` is numbers without gaps: a
        dense table or, for those with a `module`, an array of more dimensions; and "proba" for text, categories, sparse
        matrices and all else that only the classifier understands. The classifier always sees `X` as it is.

    prior_weight : float, default=5.0
        Weight of the gate's prior before training. The prior logit of a target is the log of the probability that the
        target is right, given its correctness per class and the classifier's probabilities of the classes; that of the
        classifier is the log of its largest probability. The net learns what to add to the prior, and the weight. Where
        shares are bounded, the logits are offset so that they start within the bounds. 0 is the gate of the papers,
        which sees the item only.

    annotation_smoothing : float, default=0.001
        Probability, in the E-step, that the true label is not what an expert answered.

    consultation_cost : float, array-like of shape (n_experts,), mapping or None, default=None
        Cost of asking an expert, in units of one error: one cost for all experts, one per expert, or a mapping from
        names of experts or targets to costs, such as a Series. It may be negative.

    error_cost : array-like of shape (n_classes, n_classes), default=None
        Cost, in units of one error, of deciding for the class of the column where the class of the row is true, in the
        order of `classes_`; a DataFrame may name the classes instead. None is 0 on the diagonal and 1 elsewhere.

    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes in the training of the gate and of the default classifier.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    module, hidden_layer_sizes, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the gate, as in `AnnotatorLDA`. The defaults are None, (32,), "sgd", 0.05, 0.9, 0.01, 128 and 60.

    warm_start : bool, default=False
        Whether `fit` continues the training of the previous gate, if the numbers of features and targets and
        `prior_weight` are the same.

    device : str, default="auto"
        Device of the training: "auto", "cpu", "cuda", "cuda:1", and so on. "auto" is CUDA if there is a CUDA device,
        else the CPU.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, the gate, the draws of `assign_experts`, and the classifier unless it has its own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of `y` and `annotations`, and those that a frozen classifier knows.
    classifier_ : classifier
        The fitted classifier.
    temperature_ : float
        Temperature that calibrates the probabilities of the classifier.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    targets_ : ndarray of shape (n_targets,)
        Names of the targets: "anybody", or none without experts.
    omega_ : ndarray or csr_array of shape (n_experts, n_targets)
        Memberships of the experts in the targets. Rows sum to 1. It is sparse if every expert is a target and it has
        more than ten million entries.
    selection_ : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members, within the bounds of `workload`. Rows sum to 1; a target
        without members has a row of zeros. It is sparse if `omega_` is.
    gate_ : object
        The trained gate, None without experts; its interface is private.
    offsets_ : ndarray of shape (n_targets + 1,)
        Offsets that are added to the logits of the gate so that the shares meet their bounds.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    constraint_violation_ : float
        Largest distance of a share from its bounds; 0 if all bounds are met.
    n_iter_ : int
        Number of epochs of the gate.
    history_ : list of dict
        Phase, loss, duration (seconds), log-likelihood and constraint violation of every epoch.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    ClusterDeferral : Several groups of similar experts.
    LECODUDeferral : Several people, beside the classifier or without it.

    Notes
    -----
    This is LECODU (Zhang et al., 2024) as reduced in L2D-Clusters section 5.2, where experts are interchangeable and at
    most one decision maker is asked per item: the choice is between the classifier and one random expert.
    `LECODUDeferral` is the method itself, which may ask several and joins what they say.

    If the classifier cannot tell where it errs, the accuracy is on a straight line between the mean of the experts and
    the classifier. Use this baseline to see how much is gained by telling experts apart, not as a deferrer.

    References
    ----------
    L2D-Clusters: Learning to defer on anonymously-annotated data, section 5.2.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import RandomExpertDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> gate = RandomExpertDeferral(
    ...     coverage=0.5, classifier=LogisticRegression(C=0.01), random_state=0
    ... )
    >>> gate.fit(
    ...     crowd.X_identified,
    ...     crowd.y_identified,
    ...     annotations=crowd.annotations,
    ...     X_unlabeled=crowd.X_anonymous,
    ... )
    RandomExpertDeferral(...)
    >>> print(f"{gate.coverage_:.2f}")
    0.50
    >>> gate.onboard("newcomer").experts_[-1]
    'newcomer'
    """

    def _form_targets(self, team):
        form_anybody(self)

    @atomic
    def onboard(self, experts, X=None, annotations=None, y=None):
        """Add experts to the group, without training and without knowledge about them.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names of the experts. An expert who is already on the roster is replaced.
        X : array-like of shape (n_samples, n_features), default=None
            Items that they annotated.
        annotations : array-like or DataFrame of shape (n_samples, len(experts)), default=None
            Annotations of these experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        y : array-like of shape (n_samples,), default=None
            True labels, with which the annotations are counted for `explain_deferral`, `partial_fit` and
            `predict_team_proba`. Some may be unknown, as in `fit`: answers to these items count by the probability of
            the truth given the classifier and the newcomers' answers.

        Returns
        -------
        self : RandomExpertDeferral
            The deferrer with a larger roster.

        Raises
        ------
        ValueError
            If the deferrer was fitted without experts, or if shapes or labels do not match.
        """
        check_is_fitted(self)
        join_anybody(self, experts, X, annotations, y)
