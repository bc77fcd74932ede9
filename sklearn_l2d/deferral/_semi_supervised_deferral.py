"""Deferral after semi-supervised nets, one per expert, have completed the missing annotations."""

import numbers
from functools import partial
from typing import ClassVar

import numpy as np

from .._sklearn import Interval, StrOptions
from .._torch._batches import AnswerTable
from .._torch._net import train
from .._validation import check_memory
from .._votes import Votes
from ._completion import AugmentedRows, FixMatchNet, MixedRows, MixMatchNet, augment, tabular_views
from ._imitation import ImitatingDeferrer, answer_batches


class SemiSupervisedDeferral(ImitatingDeferrer):
    """Complete the annotations of every expert, then train a gate on the completed annotations.

    One net per expert learns from the annotations of the expert and, by FixMatch or MixMatch, from the items without
    annotation (Hemmer et al., 2023). Its most probable answers replace the missing annotations. The gate is that of
    PL2D for complete annotations.

    Parameters
    ----------
    completion : {"fixmatch", "mixmatch"}, default="fixmatch"
        "fixmatch" guesses a missing annotation from a weak view of the item and learns confident guesses from a strong
        view. "mixmatch" guesses it from two weak views together, sharpens the guess, and learns from items that are
        mixed with one another, as are their annotations and guesses.

    threshold : float, default=0.95
        Smallest probability of a guessed annotation from which a net learns, with "fixmatch".

    sharpening : float, default=0.5
        Temperature of the guesses with "mixmatch", above 0: the lower, the surer they are made; 1 leaves them as they
        are.

    mixing : float, default=0.75
        With "mixmatch", both parameters of the Beta distribution of the share of the other item in a mixture, of which
        the smaller share is taken. 0 mixes nothing.

    unlabeled_weight : float, default=1.0
        Weight of the loss of the guessed annotations; with "mixmatch", it rises from 0 to this over the training. 0
        trains supervised nets.

    weak_augmentation, strong_augmentation : callable, default=None
        Functions that are called with a batch of items and a numpy Generator and return a view of the batch of the same
        shape. A net learns the annotations from the weak view and guesses missing ones from it; with "fixmatch", it
        then learns the guesses from the strong view. None adds normal noise, whose standard deviation is a tenth (weak)
        or three tenths (strong) of that of the column; the strong view also sets each entry to the mean of its column
        with probability 0.2. These views suit tables of numbers. For images, use shifts and flips, and strong changes
        that keep the class.

    answer_hidden_layer_sizes : tuple of int, default=(32,)
        Hidden units of the net of each expert.

    answer_weight_decay : float, default=0.01
        L2 penalty of the experts' nets.

    answer_epochs : int, default=60
        Number of epochs in which the experts' nets are trained on all items, before the gate is trained.

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
        `module`, `optimizer`, `lr`, `momentum` and `batch_size` are also those of the experts' nets.

    warm_start : bool, default=False
        Whether `fit` continues the training of the previous gate, if the numbers of features and targets and
        `prior_weight` are the same. The experts' nets start anew.

    device : str, default="auto"
        Device of the training: "auto", "cpu", "cuda", "cuda:1", and so on. "auto" is CUDA if there is a CUDA device,
        else the CPU.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, the nets and their views, the gate, the draws of `assign_experts`, and the classifier unless
        it has its own.

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
        Weights by which each target selects its members, within the bounds of `workload`. Rows sum to 1; a target
        without members has a row of zeros. It is sparse if `omega_` is.
    answer_net_ : object
        The trained nets of the experts, None if there are none; their interface is private.
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
    ProbabilisticDeferral : Keeps the uncertainty about missing annotations.

    Notes
    -----
    With FixMatch, the loss of a net is ``mean ln 1/f(t | weak x)`` over the items that its expert labelled, plus
    `unlabeled_weight` times the mean over the others of ``1(max f(. | weak x) >= threshold) ln 1/f(guess | strong x)``;
    no gradient passes through the guess. All nets are one batched ensemble. The nets also learn from `X_unlabeled`, as
    items without annotation. Two parts are left out: the moving average of the weights, and the embedding that Hemmer
    et al. train on the true labels first; if there is an embedding, pass embedded items as `X`.

    With MixMatch, ``q`` is the mean of ``f(. | weak x)`` over two views, to the power ``1 / sharpening`` and scaled to
    a sum of 1. Every item is mixed with another one of the batch, ``x' = l x + (1 - l) x_other``, where
    ``l = max(b, 1 - b)`` for ``b ~ Beta(mixing, mixing)``, and so are their annotations, where given, and guesses q,
    where not. The loss is the cross-entropy of the mixed labels over the items that the expert labelled, plus the
    weight times the squared distance of the probabilities from them over the others. PL2D compares both (Table 1).

    A guess is used as an annotation: the gate does not know how uncertain it is. If a net cannot tell the classes
    apart, its expert seems worse than he or she is on items without annotation, and in PL2D Table 1 this baseline is
    often worse than ignoring missing annotations. Prefer `ProbabilisticDeferral`.

    Every expert has a net: time grows with items times experts. So does the memory of the completed annotations, one
    byte each; all else is computed for a few items at a time, unless bounds on `workload` need all items at once.
    `fit` raises a MemoryError before it starts if there is no room. There is no `onboard`: an expert can join only by a
    new `fit`. Experts may leave. In `partial_fit`, the nets complete missing annotations but are not trained.

    References
    ----------
    Hemmer et al. (2023): Learning to defer with limited expert predictions. AAAI. FixMatch: Sohn et al. (2020).
    MixMatch: Berthelot et al. (2019).
    PL2D: Probabilistic learning to defer, section 5.1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import SemiSupervisedDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> annotations = crowd.annotations.copy()
    >>> annotations[
    ...     np.random.default_rng(0).random(annotations.shape) < 0.5
    ... ] = -1  # half of them are missing
    >>> gate = SemiSupervisedDeferral(
    ...     answer_epochs=10,
    ...     coverage=0.5,
    ...     classifier=LogisticRegression(C=0.01),
    ...     random_state=0,
    ... )
    >>> gate.fit(
    ...     crowd.X_identified,
    ...     crowd.y_identified,
    ...     annotations=annotations,
    ...     X_unlabeled=crowd.X_anonymous,
    ... )
    SemiSupervisedDeferral(...)
    >>> print(f"{gate.coverage_:.2f}")
    0.50
    >>> gate.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > 0.75
    True
    """

    _parameter_constraints: ClassVar = {
        **ImitatingDeferrer._parameter_constraints,
        "completion": [StrOptions({"fixmatch", "mixmatch"})],
        "threshold": [Interval(numbers.Real, 0, 1, closed="right")],
        "sharpening": [Interval(numbers.Real, 0, None, closed="neither")],
        "mixing": [Interval(numbers.Real, 0, None, closed="left")],
        "unlabeled_weight": [Interval(numbers.Real, 0, None, closed="left")],
        "weak_augmentation": [callable, None],
        "strong_augmentation": [callable, None],
    }
    _silence = "their nets learn nothing, and their completed annotations are arbitrary; leave them out"

    def __init__(
        self,
        *,
        completion="fixmatch",
        threshold=0.95,
        sharpening=0.5,
        mixing=0.75,
        unlabeled_weight=1.0,
        weak_augmentation=None,
        strong_augmentation=None,
        answer_hidden_layer_sizes=(32,),
        answer_weight_decay=0.01,
        answer_epochs=60,
        classifier=None,
        cv=5,
        coverage=None,
        workload=None,
        gate_features=None,
        prior_weight=5.0,
        annotation_smoothing=0.001,
        consultation_cost=None,
        error_cost=None,
        class_weight=None,
        missing_label=None,
        unlabeled_label=None,
        module=None,
        hidden_layer_sizes=(32,),
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        weight_decay=0.01,
        batch_size=128,
        max_epochs=60,
        warm_start=False,
        device="auto",
        dtype="float32",
        verbose=0,
        random_state=None,
    ):
        super().__init__(
            classifier=classifier,
            cv=cv,
            coverage=coverage,
            workload=workload,
            gate_features=gate_features,
            prior_weight=prior_weight,
            annotation_smoothing=annotation_smoothing,
            consultation_cost=consultation_cost,
            error_cost=error_cost,
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
            warm_start=warm_start,
            device=device,
            dtype=dtype,
            verbose=verbose,
            random_state=random_state,
        )
        self.completion = completion
        self.threshold = threshold
        self.sharpening = sharpening
        self.mixing = mixing
        self.unlabeled_weight = unlabeled_weight
        self.weak_augmentation = weak_augmentation
        self.strong_augmentation = strong_augmentation
        self.answer_hidden_layer_sizes = answer_hidden_layer_sizes
        self.answer_weight_decay = answer_weight_decay
        self.answer_epochs = answer_epochs

    def _check_settings(self, y):
        super()._check_settings(y)
        check_memory(
            len(y) * self.n_experts_,
            f"completing the annotations of {self.n_experts_} experts on {len(y)} items",
            "people are the cost of this deferrer: pass fewer items, or let ClusterDeferral pool the experts",
        )

    def _learn(self, team):
        self._prepare_sight(team, self.cv)
        for name in ("weak_augmentation", "strong_augmentation"):
            if (view := getattr(self, name)) is not None:  # tested before the classifier is fitted
                augment(team.items.array[:2], view, name, np.random.default_rng(self._seed))
        super()._learn(team)

    def _gather_evidence(self, team, weight, price):
        items, votes = team.annotated.array, team.annotations  # they need no truth
        weights = np.ones(len(items)) if team.weights is None else team.weights / team.weights.mean()
        if team.unlabeled is not None:
            items = np.concatenate([items, team.unlabeled.array])
            weights = np.append(weights, np.ones(len(team.unlabeled)))
            votes = Votes(votes.item, votes.annotator, votes.label, len(items), votes.classes, votes.annotators)
        codes, rng = AnswerTable(votes, votes.label, -1).if_large(), np.random.default_rng(self._seed)
        weak, strong = tabular_views(items)
        weak, strong = self.weak_augmentation or weak, self.strong_augmentation or strong
        given = {"unlabeled_weight": self.unlabeled_weight}
        if self.completion == "fixmatch":
            net = self._new_ensemble(FixMatchNet, items, self.n_experts_, threshold=self.threshold, **given)
            views = {"weak_augmentation": weak, "strong_augmentation": strong}
            rows = AugmentedRows(items, codes, weights, views=views.items(), rng=rng, dtype=net.dtype)
        else:
            net = self._new_ensemble(MixMatchNet, items, self.n_experts_, sharpening=self.sharpening, **given)
            views = [("weak_augmentation", weak)] * 2
            rows = MixedRows(items, codes, weights, mixing=self.mixing, views=views, rng=rng, dtype=net.dtype)
        on_epoch = partial(net.begin, self.answer_epochs)
        train(net, rows, self.answer_epochs, seed=self._seed, verbose=self.verbose, on_epoch=on_epoch)
        self.answer_net_ = net
        return super()._gather_evidence(team, weight, price)

    def _answers(self, items, votes, y_codes):
        codes = votes.to_codes()
        if len(votes.item) < codes.size:
            for rows, proba in answer_batches(self.answer_net_, items.array):
                guesses = proba[:, self._members].argmax(2)
                codes[rows] = np.where(codes[rows] >= 0, codes[rows], guesses)
        return codes, lambda _: None
