"""Deferral to groups of people who answer alike, each with a way of its own to join an answer and the classifier."""

import numbers
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._folds import FOLDS
from .._numerics._answer_groups import fewest_groups, find_groups, held_out_likelihood, match_groups, single_groups
from .._numerics._answer_worth import answer_worth, answering_likelihood, tempered_likelihood, worth_of_some
from .._numerics._answers import expected_correctness
from .._numerics._matrices import one_hot, row_chunks
from .._sklearn import HasMethods, Interval, atomic
from .._votes import placed
from ._fixed_panel import FixedPanelDeferrer

_HAIR = 1e-3  # worth of a nat, in errors: it decides between answers that hardly ever change the label
_MOST_OUTCOMES = 64  # of the answers to an item that are told apart


def worth_of_panels(proba, group, model, exponents):
    """Worth (n, k + 1), in errors, of the answers of the first 0, 1, ..., k of the people of a panel.

    Each answer is worth the expected rise of the accuracy of the label, and a hair for its information, over all that
    those before may have answered. Of more than 64 outcomes, the most probable ones stand for all.

    Parameters
    ----------
    proba : ndarray of shape (n, C)
        Probabilities of the classifier.
    group : ndarray of int of shape (n, k)
        Groups of the people, in turn.
    model : AnswerModel
        Of the groups in place of people.
    exponents : Exponents
        Of the classifier and the answers.
    """
    n_classes, n_most = proba.shape[1], group.shape[1]
    worth = np.zeros((len(proba), n_most + 1))
    likelihood = [tempered_likelihood(model, exponents, turn) for turn in range(n_most - 1)]  # truth, group, answer
    for rows in row_chunks(len(proba), n_classes**2 * (_MOST_OUTCOMES if n_most > 1 else 1)):
        who, chance = group[rows], np.ones((len(proba[rows]), 1))
        told = proba[rows][:, None]  # item, outcome, truth
        for turn in range(n_most):
            each, size = told.reshape(-1, n_classes), told.shape[1]
            asked = np.repeat(who[:, [turn]], size, axis=0)
            gain = worth_of_some(each, np.full(len(each), turn), asked, model, exponents, information=_HAIR)
            worth[rows, turn + 1] = worth[rows, turn] + (chance * gain.reshape(-1, size)).sum(1)
            if turn < n_most - 1:
                chance, told = _outcomes(chance, told, likelihood[turn][:, who[:, turn]].transpose(1, 2, 0))
    return worth


def _outcomes(chance, told, likelihood):
    """Chances (n, size) and probabilities of the truth (n, size, C) after one more answer.

    `likelihood` (n, C, C) is by answer and truth.
    """
    joint = (chance[:, :, None] * told)[:, :, None] * likelihood[:, None]
    joint = joint.reshape(len(joint), -1, told.shape[2])
    after = joint.sum(2)
    if after.shape[1] > _MOST_OUTCOMES:
        kept = np.argsort(-after, axis=1, kind="stable")[:, :_MOST_OUTCOMES]
        after = np.take_along_axis(after, kept, axis=1)
        joint = np.take_along_axis(joint, kept[:, :, None], axis=1)
    return after / after.sum(1, keepdims=True), joint / np.maximum(after, 1e-300)[:, :, None]


class ProfileDeferral(FixedPanelDeferrer):
    """Ask a member of a group of like-minded people, and join the answer and the classifier as the group's answers do.

    In the manner of L2CU (learning to complement unseen users, 2026): few labels of a person tell how a whole group of
    people answers, the person's *profile*, far sooner than how this person does. People are grouped by what they
    answered to items of known truth. A group has one fusion model: how its members together answer items of each true
    class, by which the answer of any of them is joined with the classifier's probabilities. Somebody unseen needs a few
    labels, with or without truth, to be matched to a group, and is from then on asked, and believed, as its members
    are.

    Parameters
    ----------
    classifier : classifier, default=None
        Classifier with `predict_proba`. It is cloned and fitted, unless it is a `FrozenEstimator`, which is used as it
        is. None is a small neural net, a `NetClassifier` or, with `votes_unlabeled`, a `CountsClassifier`.

    n_groups : int, default=None
        Number of groups; there may be fewer, if fewer explain the answers as well, and there are never more than
        experts. With as many, each expert is alone. None chooses the number, up to `max_groups`, under which answers
        that are held out are likeliest.

    max_groups : int, default=10
        Largest number of groups for ``n_groups=None``.

    answers : float, default=None
        Mean number of answers per item. None asks wherever an answer is expected to improve the label.

    max_answers : int, default=1
        Largest number of answers to an item; None sets no limit.

    cv : int, splitter or list of splits, default=5
        Folds of the classifier's out-of-fold probabilities, by which the temperature and the weight of the classifier
        among the answers are learnt, and of the answers by which the number of groups is chosen: their number, a
        splitter, or splits as positions in `X`.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, and of the classifier unless it has its own.

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
        Names of the targets: the groups of experts, the most accurate one first.
    omega_ : ndarray or csr_array of shape (n_experts, n_targets)
        Memberships of the experts in the targets. Rows sum to 1. It is sparse if every expert is a target and it has
        more than ten million entries.
    selection_ : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members. Rows sum to 1; a target without members has a row of zeros. It
        is sparse if `omega_` is.
    confusion_ : ndarray of shape (n_targets, n_classes, n_classes)
        Probability that a member of each group gives an answer (last axis) to an item of a true class.
    group_likelihood_ : ndarray of shape (max_groups,)
        Log-likelihood, per answer in nats, of answers that are held out, for 1, 2, ... groups; empty if `n_groups` is
        given.
    toll_ : float
        Expected gain in accuracy, per answer, from which people are asked.
    answers_ : float
        Expected number of answers per item, on `X_unlabeled` or else the labelled items.
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
        A target decides an item here if it is asked first.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    n_iter_ : int
        0: only the classifier is trained.
    history_ : list
        Empty.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    PanelDeferral : Everybody answers in their own way, more or less like the others; asks one person after the other.
    ClusterDeferral : Groups that decide alone, behind a trained gate.

    Notes
    -----
    The groups are a mixture, fitted by EM to what everybody answered for each true class; each expert then belongs to
    the likeliest group. Of several numbers of groups, the smallest is chosen that is within a standard error, over
    people, of the best. The fusion model of a group is that of `predict_team_proba`, with the answers of all members
    counted as those of one person. A regression on the classifier's log-probabilities and the answer, one for each
    group, was tried in its place: with 25 labels of each, its labels were right less often by .06 on music_genre and by
    .1 on cue_conflict (seeds 100 to 103).

    All members of a group are believed alike, so that the one who was right most often on such items, by the record per
    class, is asked, and not a random one: that gained .01 to .03 in accuracy. Those whose record is best get most of
    the work; `capacity` spreads it.

    When not to use it: as soon as each newcomer has ten labels or more, or if people differ in ability only. A record
    of one's own, shrunken towards others, as `PanelDeferral` and `ConfidenceDeferral` keep it, is then as good or
    better: on music_genre, with 25 labels, by .02. With five labels of known truth the two differed by less than .01 on
    real people, which is within chance. Nor for a team that stays, if people can be asked again: with one answer per
    item on average, `PanelDeferral` was right more often by .01 on cue_conflict and by .04 on the digits with six
    experts; on music_genre the two were even.

    Of the paper, only the idea was at hand, and no code.

    References
    ----------
    L2CU: Learning to complement unseen users, 2026.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ProfileDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = ProfileDeferral(
    ...     LogisticRegression(C=0.01), n_groups=3, answers=0.5, random_state=0
    ... )
    >>> team.fit(
    ...     crowd.X_identified,
    ...     crowd.y_identified,
    ...     annotations=crowd.annotations,
    ...     X_unlabeled=crowd.X_anonymous,
    ... )
    ProfileDeferral(...)
    >>> print(f"{team.answers_:.2f} answers per item")
    0.50 answers per item
    >>> alone = (team.predict(crowd.X_test) == crowd.y_test).mean()
    >>> bool(team.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > alone)
    True

    Ten labels without truth are enough to find a newcomer's group:

    >>> like_5A = crowd.annotations[:10, :1]
    >>> team.onboard("newcomer", crowd.X_identified[:10], like_5A).omega_[-1]
    array([1., 0., 0.])
    """

    _parameter_constraints: ClassVar = {
        **FixedPanelDeferrer._parameter_constraints,
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "n_groups": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "max_groups": [Interval(numbers.Integral, 1, None, closed="left")],
        "cv": FOLDS,
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
        "random_state": ["random_state"],
    }

    _silence = "they join the largest group"

    def __init__(
        self,
        classifier=None,
        *,
        n_groups=None,
        max_groups=10,
        answers=None,
        max_answers=1,
        cv=5,
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.classifier = classifier
        self.n_groups = n_groups
        self.max_groups = max_groups
        self.answers = answers
        self.max_answers = max_answers
        self.cv = cv
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    @atomic
    def onboard(self, experts, X, annotations, y=None):
        """Match newcomers to the groups, without training.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names of the experts. An expert who is already on the roster is replaced.
        X : array-like of shape (n_samples, n_features)
            Items that they annotated.
        annotations : array-like or DataFrame of shape (n_samples, len(experts))
            Annotations of these experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        y : array-like of shape (n_samples,), default=None
            True labels, of which some may be unknown, as in `fit`; None means that all are. An answer to an item of
            unknown truth speaks for the groups that would give it there, whatever the truth, which is as probable as
            the classifier says.

        Returns
        -------
        self : ProfileDeferral
            The deferrer with a larger roster. How groups answer stays as it was in `fit`.

        Raises
        ------
        ValueError
            If the deferrer was fitted without experts, or if shapes or labels do not match.
        """
        check_is_fitted(self)
        if len(self.targets_) == 0:
            raise ValueError("fitted without experts: there are no groups to join; call fit with annotations.")
        names, items, votes, y = self._check_newcomers(experts, X, annotations, y)
        y_codes, known = self._check_truth(X, np.full(len(items), np.nan) if y is None else y)
        truth, n_new = self._truth_before_answers(items, known, y_codes), len(names)
        answers = votes.item, votes.annotator, votes.label
        group = match_groups(self._group_model, self._group_weight, *answers, n_new, truth)
        likely = None if known.all() else self._group_model.correctness[group]
        counts = self._count_newcomers(votes, truth, known, likely)
        omega, details = one_hot(group, len(self.targets_)), self._describe(items, y_codes, votes)
        self._set_roster(self._roster.joined_by(self._roster.newcomers(names, omega, counts, details, likely)))

    @property
    def confusion_(self):
        """Probability (n_targets, n_classes, n_classes) that a member of each group gives an answer (last axis)."""
        if len(self.targets_) == 0:
            return np.empty((0, len(self.classes_), len(self.classes_)))
        return answering_likelihood(self._group_model).transpose(1, 0, 2)

    # Hooks of the base classes.

    def _learn(self, team):
        self._judge_classifier(team, self.cv)
        self.group_likelihood_, n_groups = np.empty(0), self.n_groups
        if n_groups is None:
            votes, truth = team.votes, np.eye(len(self.classes_))[team.y_codes] * team.weight[:, None]
            if team.groups is None and team.fold is None:
                fold = team.items.keys(self._seed) % np.uint64(self.cv)  # an item that is there twice is in one fold
            else:
                fold = team.folds(self.cv, self._seed)
            answers = votes.item, votes.annotator, votes.label
            told = held_out_likelihood(fold, *answers, self.n_experts_, truth, self.max_groups)
            self.group_likelihood_, n_groups = told.sum(0) / max(truth[votes.item].sum(), 1e-300), fewest_groups(told)
        counts = self._roster.answers
        alone = n_groups >= self.n_experts_
        member, self._group_model = single_groups(counts) if alone else find_groups(counts, n_groups)[-1]
        n_groups = len(self._group_model.seen)
        self._group_weight = np.bincount(member, minlength=n_groups) / len(member)
        names = np.array([f"group{k}" for k in range(n_groups)], dtype=object)
        self._set_targets(names, one_hot(member, n_groups), load=np.zeros(self.n_experts_))
        self.n_iter_, self.history_ = 0, []

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.group_likelihood_, self._group_model, self._group_weight = np.empty(0), None, np.empty(0)

    def _counted_as(self, votes):
        return self._group_model, placed(votes, self._target_of(np.arange(self.n_experts_)), self.targets_)

    def _order(self, items, available, n_most):
        proba, group = self._classifier_proba(items), self._target_of(np.arange(self.n_experts_))
        worth = answer_worth(
            proba, np.zeros(len(proba), dtype=int), self._group_model, self._exponents, information=_HAIR
        )
        worth = np.where(available, worth[:, group], -np.inf)
        own = expected_correctness(proba, self._correctness)[:, :-1]
        order = np.lexsort((-own, -worth), axis=1)[:, :n_most]  # of a group, first who was right most often
        return np.where(np.isfinite(np.take_along_axis(worth, order, axis=1)), order, -1)

    def _worth(self, items, order):
        proba, group = self._classifier_proba(items), self._target_of(np.maximum(order, 0))
        worth = worth_of_panels(proba, group, self._group_model, self._exponents)
        return worth - _HAIR * np.log(proba.shape[1]) * np.arange(worth.shape[1])  # a hair alone is no reason to ask
