"""Learning to defer in two stages: a rejector for a fixed classifier."""

import numbers
from typing import ClassVar

from .._folds import FOLDS
from .._sklearn import HasMethods
from .._torch._losses import softmax_loss
from ._sight import GATE_FEATURES
from ._surrogate import SurrogateDeferrer, agent_values, check_prices


class TwoStageDeferral(SurrogateDeferrer):
    """Train a net that chooses between a fixed classifier and the experts by a cost-sensitive loss.

    The net has an output for each expert and one for the classifier. Its loss is the logistic comp-sum surrogate of Mao
    et al. (2023): a log-softmax per output, weighted by 1 if this expert or the classifier is right on the item and by
    0 if not. At the minimum, the softmax is proportional to the probabilities of being right, so that the largest
    output is the best decision.

    Parameters
    ----------
    classifier : classifier, default=None
        Classifier with `predict_proba`. It is cloned and fitted, unless it is a `FrozenEstimator`, which is used as it
        is. None is a small neural net, a `NetClassifier` or, with `votes_unlabeled`, a `CountsClassifier`.

    cv : int, splitter or list of splits, default=5
        Folds of the classifier's out-of-fold probabilities, from which the net learns: their number, a splitter, or
        splits as positions in `X`. On the rows that the classifier was fitted on it would seem better than it is, and
        the net would hardly defer.

    gate_features : {"X", "proba"}, callable or None, default=None
        Numbers by which a gate, net or `AnnotatorLDA` inside the deferrer tells items apart: "X" is `X` itself, "proba"
        the probabilities of the classifier, and a callable is given `X` and returns an array or sparse matrix of a row
        per item, for instance the `transform` of a fitted vectoriser. None is "X" where `X` is numbers without gaps: a
        dense table or, for those with a `module`, an array of more dimensions; and "proba" for text, categories, sparse
        matrices and all else that only the classifier understands. The classifier always sees `X` as it is.

    consultation_cost : float, array-like of shape (n_experts,), mapping or None, default=None
        Cost of asking an expert, in units of one error: one cost for all experts, one per expert, or a mapping from
        names of experts to costs, such as a Series. It is at least 0. In the loss, an answer of expert j is worth
        ``1(right) - cost_j + c`` and the classifier ``1(right) + c``, where c is the largest cost, so that nothing is
        worth less than 0. At the minimum, expert j decides where ``p(m_j = y | x) - cost_j`` is the largest.

    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes in the loss.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    module, hidden_layer_sizes, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the net, as in `AnnotatorLDA`. The defaults are None, (64,), "sgd", 0.05, 0.9, 0.03, 64 and 60.

    device : str, default="auto"
        Device of the training: "auto", "cpu", "cuda", "cuda:1", and so on. "auto" is CUDA if there is a CUDA device,
        else the CPU.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, the net, the draws of `assign_experts`, and the classifier unless it has its own.

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
        Names of the targets: every expert of `fit` is one.
    omega_ : ndarray or csr_array of shape (n_experts, n_targets)
        Memberships of the experts in the targets. Rows sum to 1. It is sparse if every expert is a target and it has
        more than ten million entries.
    selection_ : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members. Rows sum to 1; a target without members has a row of zeros. It
        is sparse if `omega_` is.
    net_ : object
        The trained net, None without experts; its interface is private.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    n_iter_ : int
        Number of epochs of the net.
    history_ : list of dict
        Phase, loss and duration (seconds) of every epoch.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    OneStageDeferral : Trains classifier and rejector together.
    ConfidenceDeferral : Compares confidences, without training.
    ClusterDeferral : Needs fewer annotations per expert, and takes bounds on workloads.

    Notes
    -----
    When not to use it: every expert is an output of its own and is learnt from the annotations of this expert only.
    Items on which neither an expert nor the classifier is right carry no information, so that experts who are seldom
    right are learnt slowly. Time grows with items times experts. Coverage follows from the loss and cannot be
    requested; use `RankedDeferral` for that.

    An expert is left out of the loss and the normaliser of a row if the annotation is missing; it does not count as an
    error. An expert without annotations is never asked.

    References
    ----------
    Mao, Mohri, Mohri and Zhong (2023), Two-stage learning to defer with multiple experts.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import TwoStageDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = TwoStageDeferral(LogisticRegression(C=0.01), random_state=0)
    >>> team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    TwoStageDeferral(classifier=LogisticRegression(C=0.01), random_state=0)
    >>> team.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > 0.8
    True
    """

    _parameter_constraints: ClassVar = {
        **SurrogateDeferrer._parameter_constraints,
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "cv": FOLDS,
        "gate_features": GATE_FEATURES,
        "consultation_cost": [numbers.Real, "array-like", dict, None],
    }

    def __init__(
        self,
        classifier=None,
        *,
        cv=5,
        gate_features=None,
        consultation_cost=None,
        class_weight=None,
        missing_label=None,
        unlabeled_label=None,
        module=None,
        hidden_layer_sizes=(64,),
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        weight_decay=0.03,
        batch_size=64,
        max_epochs=60,
        device="auto",
        dtype="float32",
        verbose=0,
        random_state=None,
    ):
        super().__init__(
            class_weight=class_weight,
            missing_label=missing_label,
            unlabeled_label=unlabeled_label,
            module=module,
            hidden_layer_sizes=hidden_layer_sizes,
            optimizer=optimizer,
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
            batch_size=batch_size,
            max_epochs=max_epochs,
            device=device,
            dtype=dtype,
            verbose=verbose,
            random_state=random_state,
        )
        self.classifier = classifier
        self.cv = cv
        self.gate_features = gate_features
        self.consultation_cost = consultation_cost

    def _check_settings(self, y):
        super()._check_settings(y)
        check_prices(self.consultation_cost, self.experts_)

    def _net_settings(self):
        return {"class_weight": self.class_weight, "device": self.device}

    def _learn(self, team):
        self._prepare_sight(team, self.cv)
        price, proba = check_prices(self.consultation_cost, self.experts_), self._judge_classifier(team, self.cv)
        answers, classifier = agent_values(team, proba, price)
        self._train(team, answers, softmax_loss, self.n_experts_ + 1, after=classifier)
        self._measure_shares(team)

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.net_ = None

    def _option_scores(self, logits):
        return logits
