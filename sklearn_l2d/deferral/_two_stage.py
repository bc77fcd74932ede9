"""Learning to defer in two stages: a rejector around a classifier that stays as it is."""

import numbers
from typing import ClassVar

import numpy as np

from .._sklearn import HasMethods, Interval
from .._torch._losses import softmax_loss
from ..crowd import NetClassifier
from ._surrogate import SurrogateDeferrer, check_prices, right_answers


class TwoStageDeferral(SurrogateDeferrer):
    """Train a net that chooses between a fixed classifier and the experts by a cost-sensitive loss.

    The net has an output per expert and one for the classifier. Its loss is the logistic comp-sum surrogate of Mao et
    al. (2023): a log-softmax per option, weighted by what the option was worth on the item. At its minimum the shares
    of the options are in proportion to how often they are right, so that the largest output is the best decision.

    Parameters
    ----------
    classifier : classifier, default=None
        Any scikit-learn classifier with `predict_proba`, cloned and fitted; a `FrozenEstimator` is taken as it is.
        None is a small neural net.

    cv : int, default=5
        Folds in which a classifier that is fitted here is judged: whether it is right on a row is what a model that
        did not see the row says. On its own training rows it would seem better than it is, and the experts would
        hardly be asked.

    consultation_cost : float, array-like of shape (n_experts,), mapping or None, default=None
        Cost of asking, at least 0, in units of one error; a mapping goes from names to costs. An answer is worth
        ``1(right) - cost_j + c`` in the loss and the classifier ``1(right) + c``, where c is the largest cost, so that
        nothing is worth less than 0. At the minimum expert j decides where ``p(m_j = y | x) - cost_j`` is the largest.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the loss of a row.

    missing_label : object, default=None
        Marker of a missing annotation; None takes NaN, None, pandas.NA, masked entries and -1 unless it is a class.

    module, hidden_layer_sizes, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Of the net, as in `AnnotatorLDA`; defaults None, (64,), "sgd", 0.05, 0.9, 0.03, 64 and 60.

    device : str, default="auto"
        "auto" takes CUDA when there is one.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the net and of the draws of `assign_experts`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in `y`, and those that a frozen classifier knows.
    classifier_ : classifier
        The fitted classifier.
    temperature_ : float
        Temperature that makes the probabilities of the classifier honest; `explain_deferral` uses it.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    targets_ : ndarray of shape (n_targets,)
        The experts of `fit`: everybody is a target.
    omega_ : ndarray of shape (n_experts, n_targets)
        Who is which target.
    selection_ : ndarray of shape (n_targets, n_experts)
        The same, transposed.
    net_ : object
        The trained net, None without experts; private in everything but name.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Shares of the unlabelled items of `fit`, else of the labelled ones, the classifier last.
    coverage_ : float
        The classifier's share.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert serves.
    n_iter_ : int
        Epochs of the net.
    history_ : list of dict
        Loss of every epoch.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    OneStageDeferral : Trains classifier and rejector together.
    ConfidenceDeferral : Compares confidences, without a net.
    ClusterDeferral : Needs fewer labels per expert, and takes bounds on workloads.

    Notes
    -----
    When not to use it: every expert is an output of its own and learns from its own labels only. Rows on which nobody
    is right carry no information, so that experts who are seldom right are learnt slowly. Coverage follows from the
    loss and cannot be requested.

    A missing annotation takes the expert out of the loss of that row and out of its normaliser; it is not an error. An
    expert without any annotation is never asked.

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
        "cv": [Interval(numbers.Integral, 2, None, closed="left")],
        "consultation_cost": [numbers.Real, "array-like", dict, None],
    }

    def __init__(
        self,
        classifier=None,
        *,
        cv=5,
        consultation_cost=None,
        class_weight=None,
        missing_label=None,
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
        self.consultation_cost = consultation_cost

    def _check_settings(self, y):
        super()._check_settings(y)
        check_prices(self.consultation_cost, self.experts_)

    def _parts(self):
        return {"classifier": self.classifier}

    def _default_classifier(self):
        return NetClassifier(class_weight=self.class_weight, device=self.device)

    def _learn(self, team):
        price, proba = check_prices(self.consultation_cost, self.experts_), self._judge_classifier(team, self.cv)
        right = np.column_stack([right_answers(team) - price, proba.argmax(1) == team.y_codes])
        self._train(team, right + price.max(), softmax_loss, right.shape[1])
        self._measure_shares(team)

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.net_ = None

    def _option_scores(self, logits):
        return logits
