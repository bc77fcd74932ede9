"""Base class of the deferrers, the last of three layers: how a deferrer is fitted, and how its roster changes.

Read them from the bottom: `_deciding.py` says who decides an item, `_labelling.py` which label the team gives it, and
this file how both are learnt. A layer calls what is below it, and hooks of subclasses, which `BaseDeferrer` lists.
"""

import copy
import numbers
from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._annotated_target import matched_target
from .._anonymous import are_named
from .._by_name import expert_places
from .._encoding import as_frame, is_frame, known_labels
from .._folds import given_folds
from .._numerics._crowdlab import fit_crowdlab
from .._numerics._fusion import Exponents
from .._numerics._matrices import identity
from .._rows import same_rows
from .._sklearn import atomic, atomic_fit, count_rows, get_tags, warn
from .._validation import (
    check_annotations,
    check_several_groups,
    check_truth,
    name_list,
    votes_beside,
    warn_of_marker,
    weighted_rows,
)
from .._votes import Votes, placed
from ..crowd import CountsClassifier, NetClassifier
from ._answer_model import completed, count_votes, few_answers, learn_weights
from ._archive import read_archive
from ._classifier import check_learns_from_votes, fit_classifier, judge_classifier, team_classes
from ._labelling import LabellingDeferrer
from ._roster import new_roster, plain_selection, served_shares
from ._settings import check_nobody, select_members
from ._sight import sight_of
from ._team import new_team

_EXAMPLES = {"classifier": "LogisticRegression()", "clusterer": "AnnotatorLDA()"}  # of the parts of a deferrer


class BaseDeferrer(LabellingDeferrer):
    """Base of the deferrers.

    A subclass learns in `_learn(team)`, which sets `classifier_`, `temperature_`, `n_iter_`, `history_`, the targets by
    `_set_targets` and the shares by `_report_shares`, and scores items in `_scores(items)`. Experts are compared by all
    their answers after `_judge_classifier` or, without it, `_count_answers`. One with a parameter `gate_features` calls
    `_prepare_sight` first of all in `_learn`. Beside `_learn` and `_scores`, a subclass may override these hooks:

    - on what it learns: `_check_settings` refuses parameters, `_array_form` and `_net_settings` say which numbers its
      net sees and how it is set up, `_fit_nobody` learns where there are no experts, and `_silence` says how experts
      without any annotation are treated;
    - on who decides: `_bounds` bounds the shares of targets and experts, `_target_right` and `_names_for` say how often
      targets are right and what their experts are called, `_explain_scores` and `_explain_bounds` add to
      `explain_deferral`;
    - on labels: `_answer_shape`, `_counted_as` and `_fused` say how answers are joined, `_as_taken` to which labels
      they lead, and `_decision_cost` what errors cost.
    """

    __metadata_request__fit: ClassVar = {
        "annotations": True,
        "X_unlabeled": True,
        "votes_unlabeled": True,
        "groups": True,
    }
    __metadata_request__partial_fit: ClassVar = {"annotations": True}

    _silence = "their correctness is taken to be that of all experts"

    def set_params(self, **params):
        """Set parameters of the deferrer and of its parts, for instance ``classifier__C``.

        Parameters
        ----------
        **params : dict
            Names and values of parameters.

        Returns
        -------
        self : object
            The estimator itself.
        """
        given = self.get_params(deep=False) | params
        for nested in params:
            part, separator, _ = nested.partition("__")
            if separator and part in _EXAMPLES and part in given and given[part] is None:
                raise ValueError(
                    f"{nested} cannot be set while {part} is None; give one first, for instance "
                    f"{part}={_EXAMPLES[part]}."
                )
        return super().set_params(**params)

    @atomic_fit(prefer_skip_nested_validation=False)
    def fit(self, X, y, annotations=None, X_unlabeled=None, votes_unlabeled=None, sample_weight=None, groups=None):
        """Fit the deferrer to labelled and annotated items.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Labelled items. Rows of pandas objects and votes are matched by their ids, in whatever order they are; other
            ids are refused, and a default index is none.
        y : array-like of shape (n_samples,)
            True labels; an `AnnotatedTarget` also brings the annotations. NaN, None, pandas.NA, masked entries and
            `unlabeled_label` stand for an unknown truth. The classifier, and when to defer, are learnt from the items
            of known truth; how experts answer, from all that they annotated, where an unknown truth counts by its
            probability given the classifier and all answers. Items of unknown truth without annotations add nothing:
            pass them as `X_unlabeled`. -1 is a class unless it is `unlabeled_label`, and missing annotations marked -1
            would then be votes for it.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts, one column per expert, with missing entries. None means that there are no
            experts: the classifier decides all items, unless a coverage below 1, a workload or answers are requested.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Items without labels. The shares are calibrated on them if bounds are set, and measured on them.
        votes_unlabeled : array-like or DataFrame of shape (n_unlabeled, n_classes), array-like of shape \
                (n_unlabeled,), or Votes, default=None
            Votes on `X_unlabeled`, from which the classifier learns beside the true labels: counts for each class or
            one label per item, as `encode_counts` reads them, or answers by name, of people who need not be experts
            here. `classifier=None` then is a `CountsClassifier`; one that is given must learn from votes. Columns of
            counts without names are the classes of `y` and `annotations` if they are as many, else 0, 1, ... Votes on
            items that also are in `X` with a label or annotations are left out: the experts may have given them, and
            their answers would count twice. A classifier that takes counts is also told what the experts answered to
            the labelled items, as votes on items of known truth, which show how people err.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the labelled and annotated items, in all that is learnt and in the shares that are measured on
            them. An item of weight 2 counts as if it were there twice, one of weight 0 as if it were absent. A
            classifier whose `fit` takes no weights learns without them, which a warning tells.
        groups : array-like of shape (n_samples,), default=None
            What several items come from, such as the patient, where they resemble one another; these are groups of
            items, not of experts. What is held out to judge what was learnt is held out by whole groups, so that it is
            judged on patients whom it does not know, as future ones. By default every item is drawn by itself.

        Returns
        -------
        self : object
            The fitted deferrer. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If the data, the weights, the groups or the bounds are not as described, or the bounds cannot be met;
            without annotations, no work by people can be requested.
        MemoryError
            If a table of items and experts is needed, for bounds on single experts or completed annotations, and there
            is not enough memory free for it.
        """
        self._fit(X, y, annotations, X_unlabeled, votes_unlabeled, sample_weight, groups)

    @atomic
    def offboard(self, experts):
        """Remove experts from the roster, without training.

        Parameters
        ----------
        experts : sequence of hashable, or one name
            Names of the experts.

        Returns
        -------
        self : object
            The deferrer with a smaller roster. No item is deferred to a target without members until an expert joins
            it.

        Raises
        ------
        ValueError
            If a name is unknown.
        """
        check_is_fitted(self)
        names = name_list(experts, self.experts_, repeats=True)
        self._roster.check_names(names)
        self._set_roster(self._roster.without(names))

    def __sklearn_tags__(self):
        tags, classifier = super().__sklearn_tags__(), getattr(self, "classifier", None)
        if hasattr(classifier, "__sklearn_tags__"):
            mine, its = tags.input_tags, get_tags(classifier).input_tags
            alone = self._array_form() is None and getattr(self, "clusterer", None) is None
            asked = self._gate_features()
            mine.string, mine.sparse = its.string, its.sparse and (alone or asked != "X")
            mine.allow_nan = its.allow_nan and (alone or asked not in (None, "X"))
        return tags

    # Hooks of a subclass.

    def _check_settings(self, y):
        """Refuse invalid parameters before anything is fitted; `classes_` and `experts_` are known.

        A subclass checks its own parameters and calls ``super()``.
        """

    def _net_settings(self):
        """Parameters of a net that is the classifier because the parameter is None."""
        return {}

    def _learns_from_votes(self):
        """Whether there is a classifier of its own, which can learn from the votes of an archive."""
        return "classifier" in self._parts()

    def _learn(self, team):
        """Learn from a team with experts."""
        raise NotImplementedError

    def _fit_nobody(self, team):
        """Learn from a team without experts."""
        self._fit_classifier(team)
        self._set_targets(self.experts_, np.empty((0, 0)))
        self.n_iter_, self.history_ = 0, []
        self._report_shares(np.ones(1))

    # Fitting.

    def _fit(
        self, X, y, annotations, X_unlabeled=None, votes_unlabeled=None, sample_weight=None, groups=None, classes=()
    ):
        rows = weighted_rows(X, *matched_target(X, y, annotations), sample_weight, groups)
        if rows.annotations is None:
            check_nobody(**self.get_params(deep=False))
        team = self._check_team(rows, X_unlabeled, votes_unlabeled, classes)
        self._check_settings(team.y)
        self._seed = self._draw_seed()
        if self.n_experts_:
            self._learn(team)
            self._learn_answers(team)
        else:
            self._fit_nobody(team)
            self._exponents, self._crowdlab = Exponents(), None
        return team

    def _parts(self):
        """Estimators among the parameters, which a user may have frozen, by name."""
        params = self.get_params(deep=False)
        return {name: params[name] for name in _EXAMPLES if name in params}

    def _draw_seed(self):
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _check_team(self, rows, X_unlabeled, votes_unlabeled, classes):
        """Checked `Team` of `WeightedRows`; sets `classes_`, the roster, `n_features_in_` and `feature_names_in_`."""
        if votes_unlabeled is not None:
            self._check_votes_unlabeled(X_unlabeled, votes_unlabeled)
        parts = self._parts()
        self._sight = sight_of(rows.X, self._gate_features(), self._array_form(), parts)
        items = self._check_items(rows.X, reset=True)
        y, known = check_truth(rows.y, len(items), self.unlabeled_label)
        if not known.any():
            raise ValueError(
                "y knows the truth of no item; label some, for the classifier and the experts are judged by them."
            )
        if self.unlabeled_label is None:
            warn_of_marker(y)
        if len(np.unique(y)) < 2 and not isinstance(parts.get("classifier"), FrozenEstimator):
            raise ValueError(f"y holds one class only, {y.tolist()[0]!r}; a classifier needs at least two.")
        self.classes_ = team_classes(y, classes, parts)
        votes = check_annotations(rows.annotations, self.classes_, self.missing_label, items.given, self._silence)
        self._fit_experts, archive = votes.annotators, None
        if votes_unlabeled is not None:
            archive = read_archive(X_unlabeled, votes_unlabeled, votes.classes, self.missing_label)
            votes = votes.recode(archive.classes)
        self.classes_ = votes.classes
        if not known_labels(self.classes_, self.unlabeled_label)[1].all():
            raise ValueError(
                f"unlabeled_label={self.unlabeled_label!r} marks an unknown truth in y, but somebody answered it or a "
                "frozen part knows it as a class; use another marker, or name it missing_label if it is no answer."
            )
        y_codes = np.searchsorted(self.classes_, y)
        unlabeled = None if X_unlabeled is None else self._check_unlabeled(X_unlabeled)
        team = new_team(items, y, y_codes, votes, known, rows.weights, rows.groups, unlabeled, archive)
        check_several_groups(team.group_if_any)
        team = replace(team, fold=self._given_folds(team, known, rows.place))
        self._roster = new_roster(team.votes, y_codes, team.weight)
        return team

    def _given_folds(self, team, known, place):
        """Numbers (n,) of the folds of the labelled items where `cv` gives them, else None."""
        cv = getattr(self, "cv", None)
        if cv is None or isinstance(cv, numbers.Integral):
            return None
        place = np.arange(len(known)) if place is None else place
        return given_folds(cv, place[known], team.y_codes, team.group_if_any)

    def _check_unlabeled(self, X_unlabeled):
        """Checked unlabelled items; an error names `X_unlabeled`, not `X`."""
        try:
            return self._check_items(X_unlabeled)
        except (TypeError, ValueError) as error:
            raise type(error)(f"X_unlabeled cannot be used: {error}") from error

    def _check_votes_unlabeled(self, X_unlabeled, votes):
        """Refuse votes of an archive without items, and those from which nobody could learn."""
        if X_unlabeled is None:
            raise ValueError("votes_unlabeled are given without X_unlabeled, the items that they are on; pass both.")
        if not self._learns_from_votes():
            raise ValueError(
                f"votes_unlabeled train the classifier, but that of {type(self).__name__} is part of a net that learns "
                "from labelled items only; leave them out, or use a deferrer with a parameter classifier, such as "
                "TwoStageDeferral."
            )
        classifier = self._parts()["classifier"]
        if classifier is not None:
            check_learns_from_votes(classifier, are_named(votes))
        elif self._net_settings().get("class_weight") is not None:
            raise ValueError(
                "class_weight weighs classes by the truth, which is unknown for votes_unlabeled; leave it None, or "
                "give a classifier, for instance CountsClassifier()."
            )

    # What gate and clusterer see.

    def _prepare_sight(self, team, cv):
        """Make what gate and clusterer see of the rows of `fit`: of the classifier, its probabilities out of fold."""
        items, annotated = team.items, team.annotated
        if "proba" in self._sight and items.proba is None:
            items.proba = self._honest_proba(team, cv)
            annotated.proba = self._proba_of_annotated(team, items.proba)
        if callable(self._sight.net or self._sight.clusterer):
            self._sight = self._sight._replace(shape=items.array.shape[1:])

    def _proba_of_annotated(self, team, proba):
        """Probabilities (n, C) of the classifier on annotated items, from those on the labelled ones out of fold."""
        if team.annotated is team.items:
            return proba
        whole = np.empty((len(team.annotated), len(self.classes_)))
        whole[team.known], whole[~team.known] = proba, self._classifier_proba(team.annotated[~team.known])
        return whole

    # The classifier.

    def _fit_classifier(self, team):
        """Fit the classifier unless it is frozen, and return it unfitted."""
        classifier = self._parts()["classifier"]
        if classifier is None:
            if not self._sight.are_numbers:
                raise ValueError(
                    "classifier=None is a net, which cannot learn from X, since X is no table of numbers; give a "
                    "classifier that takes it, for instance make_pipeline(TfidfVectorizer(), LogisticRegression())."
                )
            kind = NetClassifier if team.archive is None else CountsClassifier
            classifier = kind(**{name: value for name, value in self._net_settings().items() if value is not None})
        X, weights = team.items.given, team.weight_if_any
        self.classifier_ = fit_classifier(classifier, X, team.y, self._seed, weights, team.archive, team.counted)
        self.temperature_ = 1.0
        return classifier

    def _judge_classifier(self, team, cv):
        """Fit the classifier and return its out-of-fold, calibrated probabilities (n, C) on the team's rows.

        What needs them to compare experts is prepared, too.
        """
        proba = self._honest_proba(team, cv) if team.items.proba is None else team.items.proba
        self._judged = np.log(proba)  # for `_learn_answers`
        self._count_answers(team)
        return proba

    def _honest_proba(self, team, cv):
        classifier = self._fit_classifier(team)
        archive, given = team.archive, (team.weight_if_any, team.archive, team.counted)
        fold = None if isinstance(classifier, FrozenEstimator) else team.folds(cv, self._seed)
        proba, self.temperature_, of_archive = judge_classifier(
            classifier, self.classifier_, team.items.given, team.y, self.classes_, fold, self._seed, *given
        )
        if archive is not None:  # shares are calibrated on them
            team.unlabeled.proba = self._classifier_proba(team.unlabeled)
            team.unlabeled.proba[archive.rows] = of_archive
        return proba

    # How people answer.

    def _learn_answers(self, team):
        """Learn how the experts answer, and how much the classifier and their answers count."""
        if self._roster.answering is None:
            self._count_answers(team)
        model, votes, weight = self._roster.answer_model, team.votes, team.weight
        truth = np.eye(len(self.classes_))[team.y_codes] * weight[:, None]
        rows, some = few_answers(votes, self._seed)
        log_prior = vars(self).pop("_judged", None)
        log_prior = None if log_prior is None else log_prior[rows]
        # who trains classifier and experts together has no probabilities out of fold
        proba = self._classifier_proba(team.items[rows]) if log_prior is None else np.exp(log_prior)
        center = model.people.center
        self._crowdlab = fit_crowdlab(some.item, some.label, proba, team.y_codes[rows], center, weight[rows])
        shape = self._answer_shape(team.items[rows], some)
        model, some = self._counted_as(some)
        model, self._exponents = learn_weights(model, some, truth[rows], log_prior, shape)
        self._roster = self._roster.who_answer(self._roster.answering._replace(share=model.share))

    def _count_answers(self, team):
        """Learn how the experts answer by all their answers, as soon as the classifier and its temperature are known.

        Whatever compares experts from then on compares them by all answers.
        """
        roster = self._roster
        if not team.known.all():
            truth = self._truth_before_answers(team.annotated, team.known, team.y_codes)
            truth = completed(team.annotations, truth, sample_weight=team.weights)
            if team.weights is not None:
                truth = truth * team.weights[:, None]
            roster = roster.recounted(team.annotations, truth)
        self._roster = roster.who_answer(roster.answer_model)

    def _truth_before_answers(self, items, known, y_codes):
        """Distribution (n, C) of the truth of items: one-hot where it is known, else that of the classifier."""
        truth = np.zeros((len(items), len(self.classes_)))
        truth[known, y_codes] = 1
        if not known.all():
            truth[~known] = self._classifier_proba(items[~known])
        return truth

    # Targets and shares.

    def _set_targets(self, targets, omega, **details):
        """Set the targets and the memberships (n_experts, n_targets) and further details of the experts of `fit`."""
        self.targets_ = targets
        self._roster = self._roster.replace(omega=omega, details=details)
        self._set_selection(plain_selection(omega))

    def _single_targets(self, **details):
        """Make every expert a target."""
        self._set_targets(self.experts_.copy(), identity(self.n_experts_), **details)

    def _set_selection(self, selection):
        """Set the weights (n_targets, n_experts) by which targets select members, and which targets have any."""
        self._selection, self._live = selection, selection.sum(1) > 0

    def _plain_selection(self):
        """Selection weights (n_targets, n_experts) by membership alone, without bounds."""
        return plain_selection(self._roster.omega)

    def _measure_shares(self, team, duel=None):
        """Report the hard shares of the unlabelled items, or else of the labelled ones, whose `duel` may be given."""
        if team.unlabeled is not None or duel is None:
            duel = self._duel(team.items if team.unlabeled is None else team.unlabeled)
        weights = team.weight_if_any if team.unlabeled is None else None
        self._report_shares(duel.shares(len(self.targets_), weights))

    def _report_shares(self, shares):
        """Set the hard shares (n_targets + 1,), the classifier last, and what follows from them."""
        self.target_shares_, self.coverage_ = shares, float(shares[-1])
        self.workload_ = served_shares(shares, self._selection)

    # A roster that changes.

    def _set_roster(self, roster):
        """Change the roster and its selection weights."""
        self._set_selection(self._share_work(roster))
        self._roster, self.workload_ = roster, served_shares(self.target_shares_, self._selection)

    def _share_work(self, roster):
        """Selection weights (n_targets, n_experts) of a roster; zero rows for targets without members."""
        plain, bounds = plain_selection(roster.omega), self._bounds(roster)
        if not bounds.bind_experts:
            return plain
        try:
            return select_members(plain, self.target_shares_, bounds, names=[*roster.experts, "classifier"])
        except ValueError as error:
            warn(
                f"the workload bounds cannot be kept by this roster ({error}); its members share the work by their "
                "memberships. Call recalibrate, which also moves work between targets, or onboard more experts."
            )
            return plain

    def _check_newcomers(self, experts, X, annotations, y=None):
        """Names, checked items and votes of newcomers, and `y` in the order of `X`."""
        names, items = name_list(experts, self.experts_), self._check_items(X)
        annotations = as_frame(annotations)
        _, y, annotations = same_rows(X=X, y=y, annotations=annotations)
        votes = votes_beside(X, annotations, self.classes_, self.missing_label)
        if len(votes.annotators) != len(names):
            raise ValueError(
                f"annotations has shape {votes.shape}; pass one column for each of the {len(names)} experts."
            )
        if len(names) > 1 and (is_frame(annotations) or isinstance(annotations, Votes)):  # one cannot be mixed up
            places = expert_places(votes.annotators, names, "annotations")
            votes = placed(votes, np.arange(len(names)) if places is None else places, names)
        return names, items, votes, y

    def _count_newcomers(self, votes, truth, known, likely=None):
        """What `count_votes` counts of newcomers, with all priors those of the roster.

        `truth` (n, C) is the distribution of the truth before they answer; `likely` is that of `Roster`.
        """
        if not known.all():
            truth = completed(votes, truth, self._roster.answering, likely)
        return count_votes(votes, truth)

    def _check_truth(self, X, y):
        """Positions of known labels in `classes_`, and a mask (n,) of their rows."""
        y, known = check_truth(y, count_rows(X), self.unlabeled_label)
        if not np.isin(y, self.classes_).all():
            raise ValueError(
                f"y holds labels that are not among classes_ {self.classes_.tolist()}; leave their items out."
            )
        return np.searchsorted(self.classes_, y), known

    def _copy_with(self, **fitted):
        """Copy with other values of some fitted attributes."""
        other = copy.copy(self)
        vars(other).update(fitted)
        return other
