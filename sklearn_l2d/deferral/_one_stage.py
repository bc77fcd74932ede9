"""Learning to defer in one stage: classifier and rejector are one net with a surrogate loss."""

import numbers
from functools import partial
from typing import ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._sklearn import Interval, StrOptions
from .._torch._losses import most_confident_loss, one_vs_all_loss, realizable_loss, softmax_loss
from .._torch._net import predict_logits
from ._surrogate import JointDeferrer, check_prices, less_price, one_vs_all_link, softmax_link

_LINKS = {"softmax": softmax_link, "ova": one_vs_all_link, "realizable": softmax_link}


def _estimates_correctness(deferrer):
    if deferrer.surrogate == "realizable":
        raise AttributeError(
            "surrogate='realizable' does not estimate how often the expert is right; use 'ova' or 'softmax'."
        )
    return True


class OneStageDeferral(JointDeferrer):
    """Train one net with an output per class and per expert; the largest output decides.

    The loss is a surrogate of the team's errors. "softmax" and "ova" are the multi-expert losses of Multi-L2D, after
    Mozannar and Sontag (2020) and Verma and Nalisnick (2022). If the net can represent it, their minimum is the best
    rule: the classifier decides where ``max_c p(c | x)`` is above ``p(m_j = y | x)`` of every expert, else the expert
    who is most likely right. "realizable" is the loss of Mozannar et al. (2023) for a single expert. With
    ``experts="most_confident_correct"``, a row teaches that one expert is right instead of all who are (PiCCE).

    Parameters
    ----------
    surrogate : {"softmax", "ova", "realizable"}, default="softmax"
        "softmax" is Eq. 8 of Multi-L2D. "ova" is Eq. 9, one logistic loss per class and expert; its estimates of the
        experts' correctness are better calibrated. "realizable" needs exactly one expert; it finds a rule without
        errors if the net has one, but see Notes.

    experts : {"all", "most_confident_correct"}, default="all"
        Who counts as right in the loss of a row with "softmax" and "ova": "all" experts who are right or, of these,
        only the one with the largest output at this step of the training. The second leaves more of the loss to the
        classifier where experts are many; only the largest output of an expert then estimates a correctness, see Notes.

    alpha : float, default=0.5
        Weight of the team's loss with "realizable": ``alpha * team + (1 - alpha) * cross-entropy of the classifier``.

    consultation_cost : float, array-like of shape (n_experts,), mapping or None, default=None
        Cost of asking an expert, in units of one error: one cost for all experts, one per expert, or a mapping from
        names of experts to costs, such as a Series. It is at least 0. With "softmax" and "ova" the cost does not enter
        the loss and is subtracted when a decision is made: expert j decides where ``p(m_j = y | x) - cost_j``, by
        `predict_expert_correctness` before clipping, is above ``max_c p(c | x)``. With "realizable" the cost enters the
        loss: a right answer that costs less than 1 has the loss of a right answer with weight 1 - cost and that of a
        wrong answer with weight cost. With ``experts="most_confident_correct"``, all costs must be equal.

    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes in the loss.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    module, hidden_layer_sizes, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the net, as in `AnnotatorLDA`. The defaults are None, (32,), "sgd", 0.05, 0.9, 0.003, 64 and 60.

    device : str, default="auto"
        Device of the training: "auto", "cpu", "cuda", "cuda:1", and so on. "auto" is CUDA if there is a CUDA device,
        else the CPU.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the net and of the draws of `assign_experts`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of `y` and `annotations`.
    classifier_ : object
        The classifier in the first outputs of the net, with `predict` and `predict_proba`: the softmax over the
        classes, or with "ova" the sigmoids of the classes scaled to a sum of 1.
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
        The trained net; its interface is private.
    temperature_ : float
        1: the probabilities of the classifier are used as they are.
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
    TwoStageDeferral : A rejector for a classifier that is given or trained first.
    MixtureOfExpertsDeferral : An older joint loss, which is not consistent.
    ClusterDeferral : Needs fewer annotations per expert, and takes bounds on workloads.

    Notes
    -----
    When not to use it: every expert is an output of its own and is learnt from the annotations of this expert only,
    which may be few. The loss is a sum over experts, so that the classifier has a smaller part of it the more experts
    there are. Time grows with items times experts. Coverage follows from the loss and cannot be requested; use
    `RankedDeferral` for that.

    With ``experts="most_confident_correct"``, all experts count in the first quarter of the epochs. From then on the
    loss of a row is that of the true class and of one right expert, or of the true class alone if nobody is right; the
    others who answered count as wrong. At the minimum, the output of an expert estimates the probability that this
    expert is right and nobody with a larger output is, which is ``p(m_j = y | x)`` for the largest output alone, and
    less for all others. This is all that a decision needs. But costs must be equal for all; after `offboard` of
    somebody who was often ahead, the others are underrated until the next `fit`; and `predict_expert_correctness`
    counts by class. What is proved has gaps: (1) the best expert is sure to have the largest output only if adding this
    expert to any set of others makes it more probable that somebody is right than adding anybody else would (Condition
    1 of the paper), which redundant good experts violate. (2) Theorem 6(A) is false as printed: the share of the best
    expert is ``p / (1 + V)``, with V the probability that somebody is right, not ``p V / (1 + V)``; experts who are
    right with 3/4 and 1/2 have 2/5 instead of 7/20. Eq. 12 remains right for the largest output. (3) It is about the
    global minimum, but the loss is not convex: whoever is ahead takes the rows on which both are right and stays ahead,
    for instance the worse of two independent experts who are right with .9 and .7. The first epochs with all experts
    start it in the right order, which the paper does not do. (4) Who did not answer takes no row from others, so that
    with missing annotations an output estimates something between the two probabilities. (5) In Table 2 of the paper it
    is not always better: 15.23 % errors instead of 15.17 % on MiceBone with two experts. In our benchmark of 10, 50 and
    100 weak experts on CIFAR-10, the classifier loses at most .003 of its accuracy without experts (.009 with all), but
    the team still defers far too much, and is worse than the classifier alone with either. Beside able experts, "ova"
    gains at most .006 in area, and "softmax" loses up to .010.

    "realizable" is consistent only if some rule of the net makes no errors. For C equally likely classes and an expert
    who is right with probability p on each, it defers above ``p = 2 / (C + 1)``; the best rule defers above ``1 / C``.

    A missing annotation is left out of the loss and, with "softmax", of the normaliser. Published code treats it as a
    wrong answer, which lowers the estimated correctness of an expert by the share of missing annotations. An expert
    without annotations is never asked. Losses are computed in log space; published code can overflow or multiply 0 by
    infinity. The denominators of Multi-L2D Eq. 25 and 26 are corrected to ``1 + sum``, as in Eq. 11.

    References
    ----------
    Multi-L2D: Learning to defer to multiple experts: consistent surrogate losses, confidence calibration, and conformal
    ensembles, sections 3 and 4. Mozannar and Sontag (2020), Consistent estimators for learning to defer to an expert.
    Verma and Nalisnick (2022), Calibrated learning to defer with one-vs-all classifiers. Mozannar et al. (2023), Who
    should predict? Exact algorithms for learning to defer to humans. Mao, Mohri and Zhong (2024), Realizable
    H-consistent and Bayes-consistent loss functions for learning to defer. PiCCE: Liu et al. (2026), When more experts
    hurt: underfitting in multi-expert learning to defer.

    Examples
    --------
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import OneStageDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = OneStageDeferral("ova", random_state=0)
    >>> team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    OneStageDeferral(random_state=0, surrogate='ova')
    >>> team.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > 0.8
    True
    >>> correctness = team.predict_expert_correctness(crowd.X_test)
    >>> correctness.shape
    (300, 6)
    """

    _parameter_constraints: ClassVar = {
        **JointDeferrer._parameter_constraints,
        "surrogate": [StrOptions(set(_LINKS))],
        "experts": [StrOptions({"all", "most_confident_correct"})],
        "alpha": [Interval(numbers.Real, 0, 1, closed="right")],
        "consultation_cost": [numbers.Real, "array-like", dict, None],
    }

    def __init__(
        self,
        surrogate="softmax",
        *,
        experts="all",
        alpha=0.5,
        consultation_cost=None,
        class_weight=None,
        missing_label=None,
        unlabeled_label=None,
        module=None,
        hidden_layer_sizes=(32,),
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        weight_decay=0.003,
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
        self.surrogate = surrogate
        self.experts = experts
        self.alpha = alpha
        self.consultation_cost = consultation_cost

    @available_if(_estimates_correctness)
    def predict_expert_correctness(self, X, return_clipped=False):
        """Predict the probability that each expert is right about each item.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        return_clipped : bool, default=False
            Whether to also return which estimates were clipped.

        Returns
        -------
        correctness : ndarray of shape (n_samples, n_experts)
            Probabilities in the order of `experts_`. With "ova", it is the sigmoid of the expert's output (Multi-L2D
            Eq. 13). With "softmax", it is ``t_j / (1 - sum t)`` of the experts' shares t (Eq. 12), which has no upper
            bound and is clipped to 1. An expert without annotations in `fit` has the mean correctness of all experts.
            With ``experts="most_confident_correct"``, whose outputs are no correctness, it is the correctness of an
            expert per class, shrunk by empirical Bayes and weighted by the classifier's probabilities of the classes.
        clipped : ndarray of bool of shape (n_samples, n_experts)
            True where the estimate was above 1 and was clipped. Only returned if `return_clipped` is True.
        """
        check_is_fitted(self)
        if self._by_class:
            correctness = super().predict_expert_correctness(X)
            return (correctness, np.zeros(correctness.shape, dtype=bool)) if return_clipped else correctness
        logits = predict_logits(self.net_, self._check_items(X).array)
        log_right = self.classifier_.link(logits, len(self.classes_))[1]
        correctness, clipped = np.exp(np.minimum(log_right, 0.0)), (log_right > 0) & ~self._silent
        if self._silent.any():
            correctness[:, self._silent] = self._mean_correctness
        member = self._roster.omega.T
        correctness, clipped = correctness @ member, clipped @ member > 0  # experts on the roster
        return (correctness, clipped) if return_clipped else correctness

    def _check_settings(self, y):
        super()._check_settings(y)
        if self.surrogate == "realizable" and len(self.experts_) > 1:
            raise ValueError(
                f"surrogate='realizable' takes exactly one expert, but annotations have {len(self.experts_)}; use "
                "'ova' or 'softmax', or pass the column of one expert."
            )
        prices = check_prices(self.consultation_cost, self.experts_)
        if self.experts == "most_confident_correct" and len(np.unique(prices)) > 1:
            raise ValueError(
                f"consultation_cost={self.consultation_cost!r} differs between experts, but with "
                "experts='most_confident_correct' only the largest output of an expert is a correctness from which a "
                "cost can be taken; use one cost for all, or experts='all'."
            )

    @property
    def _by_class(self):
        return self.experts == "most_confident_correct" or self.surrogate == "realizable"

    def _learn(self, team):
        in_loss = self.surrogate == "realizable"
        self._prices = np.zeros(self.n_experts_) if in_loss else check_prices(self.consultation_cost, self.experts_)
        super()._learn(team)

    def _learn_answers(self, team):
        super()._learn_answers(team)
        self._mean_correctness = self._roster.right.sum() / self._roster.seen.sum()

    def _worth(self, team):
        right = super()._worth(team)
        if self.surrogate != "realizable":
            return right
        return right * np.maximum(1 - check_prices(self.consultation_cost, self.experts_), 0)[team.votes.annotator]

    def _row_loss(self):
        loss = self._first_loss()
        if self.experts == "all" or self.surrogate == "realizable" or len(self.experts_) == 0:
            return loss
        return partial(most_confident_loss, loss=loss, n_classes=len(self.classes_))

    def _first_loss(self):
        # of all experts: whoever is ahead stays ahead with `most_confident_loss`, and initial outputs are random
        if self.surrogate == "realizable":
            return partial(realizable_loss, n_classes=len(self.classes_), alpha=self.alpha)
        return {"softmax": softmax_loss, "ova": one_vs_all_loss}[self.surrogate]

    def _link(self):
        return _LINKS[self.surrogate]

    def _option_scores(self, logits):
        log_class, log_right = self.classifier_.link(logits, len(self.classes_))
        return np.column_stack([less_price(log_right, self._prices), log_class.max(1)])
