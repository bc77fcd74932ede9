"""Probabilistic learning to defer: an EM gate over single experts with missing annotations."""

import math
import numbers
from typing import ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._items import as_array
from .._numerics._answers import fit_temperature, temper
from .._numerics._evidence import absent_likelihood
from .._sklearn import Interval, StrOptions
from .._torch._batches import AnswerTable, RowTable
from .._torch._net import train
from ._imitation import AnswerNet, ImitatingDeferrer, answers_likelihood, predict_answers

NEVER = 1e-30  # likelihood of the truth for a missing annotation: above zero, so that bounds can always be met


class JointClassifier:
    """Ensemble whose first net learns all rows; each other net leaves out one fold, which it predicts.

    Parameters
    ----------
    net : AnswerNet
        Untrained, with one member and one more for each fold.
    classes : ndarray of shape (C,)
        Class labels.
    dtype : str
        Floating type of the items.
    """

    def __init__(self, net, classes, dtype):
        self.net_, self.classes_, self._dtype = net, classes, dtype

    def predict_proba(self, X):
        """Probabilities (n, C) of the classes."""
        return predict_answers(self.net_, np.asarray(as_array(X), dtype=self._dtype))[:, 0]

    def predict(self, X):
        """Most probable labels."""
        return self.classes_[self.predict_proba(X).argmax(1)]

    def judge(self, items, y_codes, fold):
        """Out-of-fold, calibrated probabilities (n, C) on the training rows, and the temperature."""
        proba = predict_answers(self.net_, items)[np.arange(len(items)), 1 + fold]
        log_proba = np.log(np.maximum(proba, np.finfo(float).tiny))
        temperature = fit_temperature(log_proba, y_codes)
        return np.exp(temper(log_proba, temperature)), temperature


def lessons(y_codes, fold):
    """Classes (n, 1 + n_folds) for each net of a `JointClassifier`: all, and without the rows (n,) of each fold, -1."""
    left_out = fold[:, None] == np.arange(-1, fold.max() + 1)
    return np.where(left_out, -1, y_codes[:, None])


def of_people(responsibilities, n_experts):
    """Responsibilities of experts for their answers, the first columns of an array or a `RowTable`."""
    if isinstance(responsibilities, RowTable):
        shape = len(responsibilities), n_experts
        return RowTable(lambda rows: np.asarray(responsibilities[rows])[:, :n_experts], shape)
    return responsibilities[:, :n_experts].copy()


def _imitates(deferrer):
    return deferrer.missing == "latent"


class ProbabilisticDeferral(ImitatingDeferrer):
    """Train a gate that defers each item to the classifier or to an expert, with missing annotations.

    In PL2D, the choice of the expert and the missing annotations are latent. A mixture of experts is trained by EM. A
    missing annotation is integrated out under a net that imitates the expert, and these nets are trained together with
    the gate.

    Parameters
    ----------
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
        names of experts or targets to costs, such as a Series. It may be negative.

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
    ClusterDeferral : Defers to groups of experts, which newcomers can join.
    SemiSupervisedDeferral : Completes the annotations first.

    Notes
    -----
    With f_m(x) the net of expert m and ``Z_m = sum_c f_mc(x) p(y | c)``, the posterior is exact: ``q(z = m)`` is
    proportional to ``g_m(x) Z_m``, or to ``g_m(x) p(y | t_m)`` if m annotated the item, and
    ``q(t_m = c) = r_m f_mc p(y | c) / Z_m + (1 - r_m) f_mc``. The paper uses a mean field (Eq. 17 and 21 to 23,
    corrected) whose expectation is wrong, and its published code multiplies in the answers of other experts, which can
    lower the objective. Bounds tilt q(z) on all rows at once, not batch by batch, and r is the tilted one (Eq. 8 to
    10), which projects the joint posterior. Shares are then calibrated on hard decisions, which the paper does not do.
    `workload` is the bound of Eq. 7; None is the free workload, and ``(1 / (M + 1), 1 / (M + 1))`` with the same
    `coverage` the balanced workload of Eq. 6.

    With ``joint_classifier=True``, the E-step of the paper uses the classifier's probabilities on its own training
    rows. They approach certainty, so that the gate learns that the classifier is never wrong. Here the net is trained
    together with `cv` further nets, each of which leaves out one fold, and the E-step uses their out-of-fold
    probabilities, calibrated by one temperature.

    The net of an expert sees the item only. With few annotations, it predicts the correctness of the expert less well
    than a count of right answers per class, which knows the truth. `answer_shrinkage` blends both; the paper uses the
    net only (0). The training of the nets follows the M-step of the paper for any shrinkage. Only their penalty keeps
    EM from concluding that a missing annotation would have been right.

    Every expert is a target with its own net: time grows with items times experts. Memory does not: what has an entry
    for each pair is computed for a few items at a time. Only bounds on `workload` need all items at once; `fit` raises
    a MemoryError before it starts if there is no room.

    There is no `onboard`: an expert can join only by a new `fit`. Experts may leave. `ClusterDeferral` pools experts
    and accepts newcomers. `partial_fit` trains the gate; the classifier and the nets do not change.

    References
    ----------
    PL2D: Probabilistic learning to defer: handling missing expert annotations and controlling workload distribution,
    sections 3 to 5, appendices A.2 and B to D.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ProbabilisticDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> annotations = crowd.annotations.copy()
    >>> annotations[
    ...     np.random.default_rng(0).random(annotations.shape) < 0.5
    ... ] = -1  # half of them are missing
    >>> gate = ProbabilisticDeferral(
    ...     coverage=0.5, classifier=LogisticRegression(C=0.01), random_state=0
    ... )
    >>> gate.fit(
    ...     crowd.X_identified,
    ...     crowd.y_identified,
    ...     annotations=annotations,
    ...     X_unlabeled=crowd.X_anonymous,
    ... )
    ProbabilisticDeferral(...)
    >>> print(f"{gate.coverage_:.2f}")
    0.50
    >>> gate.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > 0.8
    True
    >>> gate.predict_annotation_proba(crowd.X_test[:3]).shape == (3, gate.n_experts_, 10)
    True
    """

    _parameter_constraints: ClassVar = {
        **ImitatingDeferrer._parameter_constraints,
        "missing": [StrOptions({"latent", "naive"})],
        "joint_classifier": ["boolean"],
        "answer_shrinkage": [Interval(numbers.Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        *,
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
        self.missing = missing
        self.joint_classifier = joint_classifier
        self.answer_hidden_layer_sizes = answer_hidden_layer_sizes
        self.answer_weight_decay = answer_weight_decay
        self.answer_epochs = answer_epochs
        self.answer_shrinkage = answer_shrinkage

    @available_if(_imitates)
    def predict_annotation_proba(self, X):
        """Predict the answers of every expert, for ``missing="latent"`` only.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_experts, n_classes)
            Probabilities in the order of `experts_` and `classes_`.
        """
        return super().predict_annotation_proba(X)

    def _check_settings(self, y):
        super()._check_settings(y)
        if self.joint_classifier and self.classifier is not None:
            raise ValueError(
                "joint_classifier=True trains a net beside the gate, so that the classifier that was given would go "
                "unused; leave classifier=None, or joint_classifier=False."
            )
        if self.joint_classifier and self.gate_features not in (None, "X"):
            raise ValueError(
                f"gate_features={self.gate_features!r} with joint_classifier=True, whose net learns from X itself; "
                "leave gate_features=None, and put what makes numbers of X before the deferrer in a Pipeline."
            )
        if self.joint_classifier and self.max_epochs < 2:
            raise ValueError(
                f"max_epochs={self.max_epochs} leaves joint_classifier=True untrained, since it learns between the "
                "epochs of the gate; raise it to 2 or more."
            )

    def _learns_from_votes(self):
        return not self.joint_classifier

    def _gate_features(self):
        return "X" if self.joint_classifier else super()._gate_features()

    def _gather_evidence(self, team, weight, price):
        weight = weight / weight.mean()
        proba = None if self.joint_classifier else self._judge_classifier(team, self.cv)
        self.answer_net_, joint, learners = None, None, []
        if self.missing == "latent":
            self.answer_net_, rows = self._imitate(team, weight)
            learners.append((self.answer_net_, rows))
        if self.joint_classifier:
            fold = team.folds(self.cv, self._seed, stratified=False)
            taught = lessons(team.y_codes, fold)
            joint = JointClassifier(self._new_learner(team, taught.shape[1]), self.classes_, self.dtype)
            self.classifier_ = joint
            learners.append((joint.net_, self._rows(joint.net_, team, taught, weight)))
        epoch = 0

        def refresh(responsibilities):
            nonlocal epoch
            if responsibilities is not None:
                epoch += 1
                for net, rows in learners:
                    if net is self.answer_net_:
                        rows.set_target(of_people(responsibilities, self.n_experts_), 2)
                    self._one_epoch(net, rows, epoch)
            if joint is None:
                honest = proba
            else:
                honest, self.temperature_ = joint.judge(team.items.array, team.y_codes, fold)
                self._judged = np.log(honest)
            return self._evidence(team.items, team.votes, team.y_codes, honest, price, team.weight)

        return refresh(None) | {"refresh": refresh if learners else None}

    def _answers(self, items, votes, y_codes):
        codes = AnswerTable(votes, votes.label, -1)
        if self.missing == "naive":
            return codes, lambda _: NEVER
        likelihood, members, shrinkage = self._answer_likelihood(), self._members, self.answer_shrinkage
        known, net = absent_likelihood(likelihood, self._correctness), self.answer_net_.frozen()
        complete = len(votes.item) == votes.shape[0] * votes.shape[1]

        def absent(rows):
            if complete:
                return known[y_codes[rows]]
            imitated = answers_likelihood(net, items.array[rows], y_codes[rows], likelihood)[:, members]
            return shrinkage * known[y_codes[rows]] + (1 - shrinkage) * imitated

        return codes, absent

    def _imitate(self, team, weight):
        """Train the experts' nets on the given annotations; return them and their rows for further epochs."""
        net = self._new_learner(team, self.n_experts_)
        rows = self._rows(net, team, AnswerTable(team.votes, team.votes.label, -1).if_large(), weight)
        train(net, rows, self.answer_epochs, seed=self._seed, verbose=self.verbose, label="answers")
        return net, rows

    def _new_learner(self, team, n_members):
        return self._new_ensemble(AnswerNet, team.items.array, n_members, log_truth=np.log(self._answer_likelihood()))

    @staticmethod
    def _rows(net, team, codes, weight):
        """Training rows, with responsibilities of 0."""
        return net.rows(team.items.array, codes, team.y_codes, np.broadcast_to(0.0, codes.shape), weight)

    def _one_epoch(self, net, rows, epoch):
        """Train a net for one epoch, with the learning rate of the gate's cosine schedule."""
        net.lr = self.lr * (1 + math.cos(math.pi * epoch / self.max_epochs)) / 2
        train(net, rows, 1, seed=self._seed + epoch, cosine=False, label="answers")
