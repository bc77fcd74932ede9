"""The classifier alone, an expert alone, or both together: a gate over three kinds of options."""

from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._numerics._answer_model import answer_log_likelihood
from .._numerics._answer_worth import accuracy_with_answer, accuracy_with_each, answering_likelihood
from .._numerics._evidence import absent_joined_likelihood, joined_likelihood
from .._numerics._fusion import posterior
from .._numerics._matrices import row_blocks, stacked
from .._torch._batches import AnswerRows
from .._validation import check_answers
from ._coverage import Calibration, calibrate
from ._duel import Duel
from ._probabilistic_deferral import NEVER, ProbabilisticDeferral
from ._settings import ShareBounds, expert_prices

_ROUNDING = 1e-12  # an answer that cannot change the label must not seem to gain anything


class ComplementDeferral(ProbabilisticDeferral):
    """Train a gate that leaves an item to the classifier, defers it to an expert, or joins both.

    As in CL2DC, there are three kinds of options: the classifier alone; deferring to expert j, whose answer is the
    label; and complementing the classifier with expert j, where the label is the most probable one given the classifier
    and the answer. It is a `ProbabilisticDeferral` in which every expert is a target twice. `coverage` bounds the share
    of the classifier alone, and `workload` the share of both options of an expert together.

    Parameters
    ----------
    complement : bool, default=True
        Whether to offer the third kind of options. Without it, the estimator is a `ProbabilisticDeferral`.

    missing : {"latent", "naive"}, default="latent"
        "latent" integrates missing annotations out. "naive" never holds an expert responsible for an item without an
        annotation of that expert: the extension of Madras et al. (2018) in PL2D appendix A.2.

    joint_classifier : bool, default=False
        False uses `classifier`, which is fitted before the gate unless it is frozen. True trains one more net beside
        the gate from the second epoch of the gate on, as in PL2D; `classifier` must then be None.

    answer_hidden_layer_sizes : tuple of int, default=(32,)
        Hidden units of the net of each expert, and of the classifier if it is trained jointly.

    answer_weight_decay : float, default=0.01
        L2 penalty of the experts' nets.

    answer_epochs : int, default=60
        Number of epochs in which the experts' nets learn the given annotations before the gate is trained.

    answer_shrinkage : float, default=0.5
        Weight of the expert's own correctness on the true class, shrunk by empirical Bayes, in the evidence of a
        missing annotation; the net of the expert has the rest of the weight. 0 is PL2D.

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
        names of experts to costs, such as a Series. It may be negative, and is the same for both options of an expert.

    error_cost : array-like of shape (n_classes, n_classes), default=None
        Cost, in units of one error, of deciding for the class of the column where the class of the row is true, in the
        order of `classes_`; a DataFrame may name the classes instead. None is 0 on the diagonal and 1 elsewhere.

    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes in the training of the gate, of the experts' nets and of the default classifier.

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
        Seed of the folds, the nets, the gate, the draws of `assign_experts`, and the classifier unless it has its own.

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
        Names of the targets: every expert of `fit`, then, unless `complement` is False, every expert with the
        classifier, as ``"... with classifier"``.
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
    ProbabilisticDeferral : Without the third kind of options.
    PanelDeferral : Joins the classifier with as many answers as an item is worth.
    ConfidenceDeferral : Trains no gate; ``predict_team(decision="combine")`` joins its answers, too.

    Notes
    -----
    The label of an expert with the classifier is that of ``predict_team(decision="combine")`` for this one answer; the
    probabilities ``p(answer | y)`` are learnt by empirical Bayes. The evidence of this option in the E-step is the
    likelihood of the truth given that label, as it is for a label by the expert alone. The label is found from
    ``p(y | x) p(answer | y)``, where every answer is judged by all others; a missing answer is integrated out. CL2DC
    trains a net that takes the classifier's output and the answer. With 25 and 50 labels by name, nets were far behind
    (one random answer to each item, seeds 100 and 101: music_genre .71 and .74 against .66 and .67 for the best of two
    nets with three penalties each; cue_conflict .71 and .71 against .67 and .67). The probability of the truth as the
    evidence, in place of the label, made no difference (areas within .003 on three sets).

    Bounds tilt the posterior of the options on all rows at once, both options of an expert alike, and the hard
    decisions are calibrated by one offset for both, as in `ProbabilisticDeferral`; CL2DC adds a penalty to the loss.
    Where whoever was chosen is away, somebody else joins the classifier. `join_answers` returns the labels that answers
    lead to, for metrics that take answers.

    When to use it: where nobody may serve much and one answer has to do. With 25 labels by name and at most an even
    share of all items for everybody, the area under the curve of coverage is .733 on music_genre (seeds 0 to 4), with
    `ConfidenceDeferral` .710 and with `ProbabilisticDeferral` .698 where their answers are joined as well, .666 and
    .648 where they are not; on digits with six experts .899, .903, .891, .863 and .854.

    When not to use it: where work is not bounded, `ConfidenceDeferral` with joined answers, which trains nothing, is as
    good: .808 against .813 on music_genre at .75 answers per item, .942 against .934 on digits. Where more than one
    person can be asked about an item, `PanelDeferral` is better: .978 on digits at the same number of answers. Experts
    are hardly ever asked to decide alone: a label that may be joined is rarely better alone.

    There is no `onboard`: an expert can join only by a new `fit`. Experts may leave. `partial_fit` trains the gate; the
    classifier and the nets do not change.

    References
    ----------
    Zhang, Nguyen, Wells, Do, Rosewarne and Carneiro (2026), Coverage-constrained human-AI cooperation with multiple
    experts, AAAI. PL2D: Probabilistic learning to defer: handling missing expert annotations and controlling workload
    distribution, sections 3 to 5.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ComplementDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> gate = ComplementDeferral(
    ...     coverage=0.5,
    ...     classifier=LogisticRegression(C=0.01),
    ...     max_epochs=20,
    ...     answer_epochs=20,
    ...     random_state=0,
    ... )
    >>> gate.fit(
    ...     crowd.X_identified,
    ...     crowd.y_identified,
    ...     annotations=crowd.annotations,
    ...     X_unlabeled=crowd.X_anonymous,
    ... )
    ComplementDeferral(...)
    >>> print(f"{gate.coverage_:.2f}")
    0.50
    >>> gate.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > 0.8
    True
    >>> gate.n_experts_, len(gate.targets_), str(gate.targets_[-1])
    (6, 12, '...')
    """

    _parameter_constraints: ClassVar = {**ProbabilisticDeferral._parameter_constraints, "complement": ["boolean"]}

    def __init__(
        self,
        *,
        complement=True,
        missing="latent",
        joint_classifier=False,
        answer_hidden_layer_sizes=(32,),
        answer_weight_decay=0.01,
        answer_epochs=60,
        answer_shrinkage=0.5,
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
            missing=missing,
            joint_classifier=joint_classifier,
            answer_hidden_layer_sizes=answer_hidden_layer_sizes,
            answer_weight_decay=answer_weight_decay,
            answer_epochs=answer_epochs,
            answer_shrinkage=answer_shrinkage,
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
        self.complement = complement

    def join_answers(self, X, annotations, deferral=None):
        """Labels to which the answers of experts lead, by the option that each item goes to.

        An answer to an item that is complemented becomes the most probable label, or that of the least expected cost if
        there is an `error_cost`, given the classifier and this answer; all others are labels as they are. So metrics
        that take answers, such as `team_accuracy`, can judge this deferrer.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts)
            Annotations of the experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        deferral : array-like of int of shape (n_samples,), default=None
            Targets of the items, -1 for the classifier. None is `predict_deferral`.

        Returns
        -------
        labels : Votes
            One label for every answer, with the experts as annotators.

        Raises
        ------
        ValueError
            If annotations are missing or do not fit the experts, or `deferral` holds no targets.
        """
        check_is_fitted(self)
        items = self._check_items(X)
        votes = check_answers(annotations, items.given, self, "join_answers", unknown="wrong")
        deferral = self._duel(items).chosen if deferral is None else self._check_deferral(deferral, len(items))
        return self._as_taken(items, deferral, votes)

    @property
    def _n_options(self):
        return 1 + self.complement

    def _check_deferral(self, deferral, n_items):
        deferral = column_or_1d(deferral)
        if len(deferral) != n_items or deferral.dtype.kind not in "iu":
            raise ValueError(
                f"deferral={deferral!r} must hold the code of a target, or -1, for each of {n_items} items."
            )
        if (deferral < -1).any() or (deferral >= len(self.targets_)).any():
            raise ValueError(
                f"deferral holds codes from {deferral.min()} to {deferral.max()}, but there are {len(self.targets_)} "
                "targets; codes are their positions in targets_, and -1 for the classifier."
            )
        return deferral

    def _check_settings(self, y):
        super()._check_settings(y)
        if self.complement:  # an expert has one price, whatever the option
            expert_prices(self._of_roster("consultation_cost", self._roster, 0), self.experts_)

    def _form_targets(self, team):
        super()._form_targets(team)
        self._n_alone = len(self.experts_)
        if self.complement:
            joined = np.array([f"{name} with classifier" for name in self.experts_], dtype=object)
            member = self._roster.omega
            omega = stacked(member, member).T / 2
            self._set_targets(np.concatenate([self.targets_, joined]), omega, **self._roster.details)

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self._n_alone, self._answering = 0, None

    @property
    def _joins(self):
        """Whether there are options to complement."""
        return self._n_alone < len(self.targets_)

    def _set_target_correctness(self):
        super()._set_target_correctness()
        # beside a given classifier, nobody uses this before all answers are counted
        ready = self.joint_classifier or self._roster.answering is not None
        self._answering = answering_likelihood(self._roster.answer_model) if self._joins and ready else None

    def _known_at_fit(self, proba):
        right = super()._known_at_fit(proba)
        if self._joins:
            right[:, self._n_alone : -1] = accuracy_with_answer(proba, self._answering)
        return right

    def _evidence(self, items, votes, y_codes, proba, price, counted=None):
        return super()._evidence(items, votes, y_codes, proba, price, counted) | {"of_targets": self._joins}

    def _log_likelihood(self, items, votes, y_codes, proba, price, counted=None):
        alone = super()._log_likelihood(items, votes, y_codes, proba, price, counted)
        if not self._joins:
            return alone
        n_targets, members, n_alone = len(self.targets_), self._members, self._n_alone
        joined = self._joined(votes, y_codes, proba, counted)

        def make(rows):
            people = np.asarray(alone[rows])
            log_likelihood = np.full((len(people), n_targets + 1), -np.inf)  # of targets without members
            log_likelihood[:, members] = people[:, :-1]
            log_likelihood[:, n_alone + members] = np.log(joined(rows)) - price
            log_likelihood[:, -1] = people[:, -1]
            return log_likelihood

        return self._table(make, (len(y_codes), n_targets + 1))

    def _joined(self, votes, y_codes, proba, counted):
        """Function of rows: the likelihood of the truth given the label by the classifier and each expert."""
        likelihood, model = self._answer_likelihood(), self._roster.answer_model
        answering, left_out = answering_likelihood(model), self._left_out(y_codes, counted)
        log_proba, answers = np.log(proba), AnswerRows(votes)
        n_experts, cost = votes.shape[1], self._decision_cost()

        def make(rows):
            row, who, label = answers[rows].T
            y_of, proba_of = y_codes[rows], proba[rows]
            if self.missing == "naive":
                joined = np.full((len(y_of), n_experts), NEVER)
            elif len(row) < len(y_of) * n_experts:
                joined = absent_joined_likelihood(proba_of, y_of, answering, likelihood, cost)
            else:
                joined = np.empty((len(y_of), n_experts))
            told = answer_log_likelihood(model, who, label, None, None if left_out is None else left_out[rows][row])
            joined[row, who] = joined_likelihood(log_proba[rows], row, told, y_of, likelihood, cost)
            return joined

        return make

    def _meet_bounds(self, scores, omega, bounds, sample_weight):
        if not self._joins:
            return super()._meet_bounds(scores, omega, bounds, sample_weight)
        # an expert is bounded, not an option: the better of both options competes, and both have the same offset
        n_alone, best = self._n_alone, scores[:, self._n_alone :].copy()
        np.maximum(best[:, :-1], scores[:, :n_alone], out=best[:, :-1])
        lower, upper = (bound[n_alone:] for bound in bounds.targets)
        people = ShareBounds(lower, upper, *bounds.experts).with_lone_experts(omega[n_alone:])
        found = calibrate(best, omega[n_alone:], people, sample_weight)
        offsets = np.concatenate([found.offsets[:-1], found.offsets])
        scores = scores + offsets
        scores[:, :-1][:, omega.sum(1) <= 0] = -np.inf
        shares = Duel.of(scores).shares(omega.shape[0], sample_weight)
        return Calibration(offsets, shares, stacked(found.selection, found.selection), None)

    def _as_taken(self, items, deferral, votes):
        n_classes, label = len(self.classes_), votes.label.copy()
        mine = np.flatnonzero((deferral >= self._n_alone)[votes.item] & (votes.label < n_classes))
        if not mine.size:
            return votes
        log_proba, model = np.log(self._classifier_proba(items)), self._roster.answer_model
        for some in row_blocks(len(mine), n_classes):
            answers = mine[some]
            told = answer_log_likelihood(model, votes.annotator[answers], votes.label[answers])
            fused = posterior(log_proba[votes.item[answers]], told, np.ones(len(answers)), self._exponents)
            label[answers] = np.searchsorted(self.classes_, self._decided(np.exp(fused)))
        return votes.with_labels(label)

    def _target_right(self, proba):
        right = super()._target_right(proba)
        if self._joins:
            each = accuracy_with_each(proba, self._roster.answer_model)
            right[:, self._n_alone : -1] = each @ self._selection[self._n_alone :].T
        return right

    def _names_for(self, target, who):
        names, joined = super()._names_for(target, who), np.flatnonzero(target >= self._n_alone)
        names[joined] = [f"{name} with classifier" for name in names[joined]]
        return names

    @property
    def _by_class(self):
        return not self._joins

    def _right(self, items, proba, rows, who, target):
        right = (proba[rows] * self._correctness[who]).sum(1)
        joined = np.flatnonzero(target >= self._n_alone)
        if joined.size:
            answering = answering_likelihood(self._roster.answer_model)[:, who[joined]].transpose(1, 0, 2)
            right[joined] = (proba[rows[joined]][:, :, None] * answering).max(1).sum(1) - _ROUNDING
        return right

    def _right_of_all(self, items, proba, target, people=slice(None)):
        right, joined = proba @ self._correctness[people].T, np.flatnonzero(target >= self._n_alone)
        if joined.size:
            right[joined] = accuracy_with_each(proba[joined], self._roster.answer_model)[:, people] - _ROUNDING
        return right
