"""Base class of the deferrers."""

import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._annotated_target import matched_target
from .._by_name import available_for, by_name, check_available, expert_places
from .._encoding import Votes, is_frame, known_labels, placed
from .._numerics._answer_model import fit_counts
from .._numerics._answers import expected_correctness, undominated
from .._numerics._assignment import assign_members
from .._numerics._crowdlab import crowdlab_proba, fit_crowdlab
from .._numerics._fusion import Exponents
from .._numerics._keyed import row_keys
from .._numerics._matching import match_many
from .._numerics._matrices import answer_weights, dense_if_small, entries, identity, row_blocks, rows_of
from .._rows import same_rows
from .._sklearn import atomic, atomic_fit, check_weights, not_for_scorers, take_rows, warn
from .._validation import (
    Items,
    check_annotations,
    check_answers,
    check_items,
    check_truth,
    name_list,
    votes_beside,
    warn_of_marker,
)
from ..crowd import NetClassifier
from ..metrics import team_accuracy
from ._answer_model import completed, count_votes, few_answers, fused_proba, learn_weights
from ._classifier import expand, fit_classifier, judge_classifier, own_proba, team_classes, tempered_proba
from ._duel import Duel
from ._roster import answer_table, explanation_table, new_roster, plain_selection, route_table, served_shares
from ._settings import check_nobody, select_members, share_bounds
from ._shift import Shift


@dataclass(frozen=True)
class Team:
    """Checked rows that a deferrer learns from.

    Attributes
    ----------
    items : Items
        Labelled items, n rows.
    y : ndarray of shape (n,)
        True labels.
    y_codes : ndarray of int of shape (n,)
        Their positions in `classes_`.
    votes : Votes
        Annotations of the experts.
    unlabeled : Items or None
        Items of which neither labels nor annotations are given.
    annotated : Items
        The labelled items, and then those of unknown truth that somebody annotated.
    annotations : Votes
        Their annotations.
    known : ndarray of bool
        Which of `annotated` are labelled.
    """

    items: Items
    y: np.ndarray
    y_codes: np.ndarray
    votes: Votes
    unlabeled: Items | None
    annotated: Items
    annotations: Votes
    known: np.ndarray


_FUSIONS = "combine", "crowdlab"  # decisions by the classifier and all answers together
_EXAMPLES = {"classifier": "LogisticRegression()", "clusterer": "AnnotatorLDA()"}  # of the parts of a deferrer


def _has_experts(deferrer):
    return deferrer.__sklearn_is_fitted__() and deferrer.n_experts_ > 0


class BaseDeferrer(ClassifierMixin, BaseEstimator):
    """Base of the deferrers.

    A subclass learns in `_learn(team)`, which sets `classifier_`, `temperature_`, `n_iter_`, `history_`, the targets by
    `_set_targets` and the shares by `_report_shares`, and scores items in `_scores(items)`. Experts are compared by all
    their answers after `_judge_classifier` or, without it, `_count_answers`. A subclass may override
    `_check_settings` to refuse parameters, `_array_form` to describe `X`, `_bounds` to bound the shares of the targets
    and experts, and `_silence` to say how experts without any annotation are treated.
    """

    __metadata_request__fit: ClassVar = {"annotations": True, "X_unlabeled": True}
    __metadata_request__partial_fit: ClassVar = {"annotations": True}
    __metadata_request__score: ClassVar = {"annotations": True}

    _unlimited = np.iinfo(np.int64).max // 2  # capacity of those whom a mapping does not name
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
    def fit(self, X, y, annotations=None, X_unlabeled=None):
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

        Returns
        -------
        self : object
            The fitted deferrer. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If the data or the bounds are not as described, or the bounds cannot be met; without annotations, no work by
            people can be requested.
        MemoryError
            If a table of items and experts is needed, for bounds on single experts or completed annotations, and there
            is not enough memory free for it.
        """
        self._fit(X, y, annotations, X_unlabeled)

    def predict(self, X):
        """Predict labels by the classifier alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels that the classifier predicts.
        """
        check_is_fitted(self)
        return self.classifier_.predict(self._check_items(X).given)

    def predict_proba(self, X):
        """Predict class probabilities by the classifier alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`.
        """
        check_is_fitted(self)
        proba = own_proba(self.classifier_, self._check_items(X).given)
        if np.array_equal(self.classifier_.classes_, self.classes_):
            return proba
        return expand(proba, self.classifier_.classes_, self.classes_)

    @not_for_scorers(_has_experts)
    def decision_function(self, X):
        """Scores of the targets and the classifier; the largest score of an item decides who labels it.

        The columns are targets, not classes: scorers of scikit-learn such as "roc_auc" rank by `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_targets + 1)
            The classifier is the last column. A target without members has -inf. The method does not exist without
            experts.
        """
        check_is_fitted(self)
        return self._target_scores(self._check_items(X))

    def predict_deferral(self, X):
        """Predict who decides each item.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        deferral : ndarray of int of shape (n_samples,)
            -1 if the classifier decides, k if the item is deferred to target k.
        """
        check_is_fitted(self)
        return self._duel(self._check_items(X)).chosen

    def predict_deferral_proba(self, X):
        """Scores of the targets and the classifier as probabilities; the largest probability decides.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_targets + 1)
            The classifier is the last column. Rows sum to 1.
        """
        check_is_fitted(self)
        return preferences(self._target_scores(self._check_items(X)))

    def predict_expert_correctness(self, X):
        """Predict the probability that each expert is right about each item.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        correctness : ndarray of shape (n_samples, n_experts)
            Probabilities in the order of `experts_`: the correctness of an expert per class, shrunk by empirical Bayes
            and weighted by the classifier's calibrated probabilities of the classes.
        """
        check_is_fitted(self)
        return expected_correctness(self._classifier_proba(self._check_items(X)), self._correctness)[:, :-1]

    def assign_experts(self, X, available=None, capacity=None, on_overflow="next"):
        """Assign each deferred item to one expert of its target.

        Within a target, experts are drawn by the weights of `selection_`. The draw belongs to the item: it follows from
        its content and `random_state`, so that without `capacity` an item gets the same expert alone, in a batch and in
        any order, and equal items get the same expert. Over many different items, the shares of the members are
        `selection_` up to chance, in one call or in many. Who draws somebody away or full draws again among the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        available : array-like of bool of shape (n_experts,) or (n_samples, n_experts), or mapping, default=None
            Experts who are available, for all items or for each item; by default all experts. A mapping, a Series and
            the columns of a DataFrame are matched by name; experts whom they leave out are available. For each item,
            it may be a sparse array.
        capacity : array-like of int of shape (n_experts,), int, or mapping by name, default=None
            Largest number of items per expert in this call; unlimited by default. A Series with names is a mapping.
            `start_shift` remembers it over many calls.
        on_overflow : {"next", "classifier", "raise"}, default="next"
            What happens to deferred items that no member of their target can take. "next" passes each on to the free
            colleague, of any target with a share of the work, with the largest expected gain over the classifier:
            `predict_expert_correctness` less the calibrated confidence of the classifier. Of several items, thousands
            at a time, those with the largest gains come first. Within `capacity`, of more than 1,000 people who are
            free, items are compared with those who are best for a sample of them. The classifier decides where nobody
            free promises a gain, and a warning says how many these items are. "classifier" lets it decide all of
            them, with a warning. "raise" raises a ValueError.

        Returns
        -------
        assignment : ndarray of int of shape (n_samples,)
            Positions in `experts_`, -1 for the classifier.

        Raises
        ------
        ValueError
            If `available` or `capacity` does not fit the experts, or on overflow with ``on_overflow="raise"``.
        """
        return self._assign(X, available, capacity, on_overflow)[1]

    def consult(self, X, available=None, capacity=None):
        """Experts who are asked about each item: one expert per deferred item.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        available, capacity
            As in `assign_experts`.

        Returns
        -------
        asked : ndarray of bool of shape (n_samples, n_experts)
            Columns in the order of `experts_`. The classifier decides the items of rows without True.
        """
        return self.assign_experts(X, available, capacity)[:, None] == np.arange(self.n_experts_)

    def predict_team(self, X, annotations=None, decision="draw"):
        """Predict labels by the team.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        decision : {"draw", "vote", "combine", "crowdlab"}, default="draw"
            "draw" takes the annotation of the expert to whom `assign_experts` gives the item if only those who
            annotated it are available: somebody else than a member of the target if no member did, and the classifier
            if nobody promises a gain. "vote" takes the vote of all members of the target who annotated it, weighted by
            `selection_`, and the label of the classifier if no member did. "combine" and "crowdlab" take the most
            probable label of
            `predict_team_proba`, or that of the least expected cost if there is an `error_cost`: the classifier and all
            answers to an item together, whoever its target is.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels by the expert or the classifier that decides the item.

        Raises
        ------
        ValueError
            If `decision` is unknown, or annotations are missing or do not fit the experts.
        """
        if decision in _FUSIONS:
            return self._decided(self.predict_team_proba(X, annotations, decision))
        if decision not in ("draw", "vote"):
            raise ValueError(f"decision={decision!r} is none of 'draw', 'vote', 'combine' and 'crowdlab'.")
        items, deferral, labels = self._decide(X)
        if self.n_experts_ == 0:
            return labels
        votes = check_answers(annotations, items.given, self, "predict_team")
        if decision == "draw":
            given = votes.to_sparse()
            who = self._pass_on(items, deferral, self._choose_experts(items, deferral, given, None), given, None)
            rows = np.flatnonzero(who >= 0)
            answers = entries(given, rows, who[rows]) - 1
        else:
            rows, answers = self._vote(deferral, votes)
        labels = labels.astype(np.result_type(labels, self.classes_), copy=True)
        labels[rows] = self.classes_[answers]
        return labels

    def predict_team_proba(self, X, annotations=None, decision="combine"):
        """Predict class probabilities by the classifier and all answers together.

        By default, every answer counts by how its author answers items of each true class, learnt in `fit` by empirical
        Bayes (Dawid and Skene, 1979). With T answers, ``ln p(y | x, answers)`` is, up to a constant,
        ``(a ln p(y | x) + b sum_j ln p(answer_j | y)) / (1 + r (T - 1))``. The exponents a and b, and the correlation r
        of the answers to an item, since people err alike, are learnt from the rows of `fit`, where each answer is
        judged by the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        decision : {"combine", "crowdlab"}, default="combine"
            "crowdlab" takes the weighted average of CROWDLAB (Goh, Tkachenko and Mueller, 2022) instead: everybody, the
            classifier too, weighs by how much less they err on the rows of `fit` than the most frequent class would. It
            is simpler, and less sure than it could be.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`. Where nobody answered, they are the calibrated probabilities of
            the classifier.

        Raises
        ------
        ValueError
            If `decision` is unknown, or annotations are missing or do not fit the experts.
        """
        check_is_fitted(self)
        if decision not in _FUSIONS:
            raise ValueError(f"decision={decision!r} is neither 'combine' nor 'crowdlab', which have probabilities.")
        items = self._check_items(X)
        proba = self._classifier_proba(items)
        if self.n_experts_ == 0:
            return proba
        votes = check_answers(annotations, items.given, self, "predict_team_proba")
        if decision == "crowdlab":
            right, seen = self._roster.right.sum(1), self._roster.seen.sum(1)
            return crowdlab_proba(self._crowdlab, right, seen, votes.item, votes.annotator, votes.label, proba)

        def shape_of(rows, some):
            return self._answer_shape(items[rows], some)

        return fused_proba(self._roster.answer_model, self._exponents, np.log(proba), votes, shape_of)

    def score(self, X, y, annotations=None, sample_weight=None):
        """Expected accuracy of the team over the draw of a member of the target (L2D-Clusters 5.2).

        The selection weights are renormalised over the members who annotated an item; if no member did, the classifier
        decides. Without experts, the score is the accuracy of the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples,)
            True labels; an `AnnotatedTarget` also brings the annotations. Items of unknown truth, as in `fit`, are left
            out.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts, one column per expert, with missing entries. The rows and columns of a
            DataFrame are matched by name.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the items.

        Returns
        -------
        score : float
            Expected weighted share of the items that are decided correctly.

        Raises
        ------
        ValueError
            If the deferrer was fitted with experts and `annotations` is None, if no truth is known, if lengths differ,
            if a weight is negative, or if no weight is positive.
        """
        X, y, annotations, sample_weight = self._of_known_truth(X, y, annotations, sample_weight)
        items, deferral, labels = self._decide(X)
        if self.n_experts_ == 0:
            return float(np.average(labels == y, weights=check_weights(sample_weight, labels)))
        votes = check_answers(annotations, items.given, self, "score", unknown="wrong")
        return team_accuracy(y, deferral, labels, votes, self._selection, sample_weight)

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
        names = [experts] if np.isscalar(experts) else list(experts)
        self._roster.check_names(names)
        self._set_roster(self._roster.without(names))

    def route(self, X, available=None, capacity=None, on_overflow="next"):
        """Assign items to experts and return the route as a table.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Items; the index of a DataFrame names them.
        available, capacity, on_overflow
            As in `assign_experts`.

        Returns
        -------
        route : DataFrame
            One row per item with the columns ``target`` and ``expert``, both "classifier" if the classifier decides.
            `answers_to_annotations` turns the experts' answers, a long table of task, annotator and label, into
            annotations.

        Raises
        ------
        ValueError
            As in `assign_experts`.
        """
        deferral, assignment = self._assign(X, available, capacity, on_overflow)
        return route_table(self.targets_, self.experts_, deferral, assignment, _index(X))

    def start_shift(self, capacity=None, available=None):
        """Start a shift, which remembers what each expert has been given while items come one by one or in batches.

        Parameters
        ----------
        capacity : array-like of int of shape (n_experts,), int, or mapping by name, default=None
            Largest number of items per expert in the whole shift; unlimited by default.
        available : array-like of bool of shape (n_experts,), default=None
            Experts who are in; by default all experts. The shift's attribute of this name can be changed later.

        Returns
        -------
        shift : Shift
            With `assign_experts`, `route`, and `served_`, the number of items of each expert.

        Raises
        ------
        ValueError
            If `capacity` or `available` does not fit the experts.
        """
        check_is_fitted(self)
        return Shift(self, capacity, available)

    def answers_to_annotations(self, answers, tasks):
        """Turn the answers to a route into annotations for `predict_team` and `score`.

        Parameters
        ----------
        answers : DataFrame
            Long table with the columns task, annotator and label.
        tasks : sequence
            Names of the items in the order of `X`, the index of the route.

        Returns
        -------
        annotations : DataFrame of shape (n_samples, n_experts)
            Columns in the order of `experts_`, with missing entries for experts who were not asked.

        Raises
        ------
        ValueError
            If an answer is by an expert who is not on the roster, or about an item that is not in `tasks`.
        """
        check_is_fitted(self)
        return answer_table(answers, tasks, self.experts_)

    def explain_deferral(self, X):
        """Explain who decides each item.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Items.

        Returns
        -------
        explanation : DataFrame
            One row per item with the columns ``chosen``, ``prediction`` (the label of the classifier) and, for every
            target and the classifier, ``preference of ...`` (`predict_deferral_proba`) and ``expected correctness of
            ...``. The expected correctness of a target is the correctness of its members per class, weighted by the
            classifier's probabilities.
        """
        check_is_fitted(self)
        items = self._check_items(X)
        scores, proba = self._target_scores(items), self._classifier_proba(items)
        correctness = expected_correctness(proba, self._selection @ self._correctness)
        names = [*self.targets_, "classifier"]
        labels = self.classifier_.predict(items.given)
        chosen = Duel.of(scores).chosen
        return explanation_table(names, chosen, labels, self._explain_scores(names, scores), correctness, _index(X))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "classifier_")

    @property
    def experts_(self):
        """Names of the experts."""
        return self._roster.experts

    @property
    def n_experts_(self):
        """Number of experts."""
        return len(self.experts_)

    @property
    def omega_(self):
        """Memberships of the experts."""
        return dense_if_small(self._roster.omega)

    @property
    def selection_(self):
        """Weights by which each target selects its members."""
        return dense_if_small(self._selection)

    @property
    def requested_bounds_(self):
        """Requested bounds on the shares of targets and experts, the classifier last."""
        return self._bounds(self._roster)

    @property
    def _correctness(self):
        """Shrunken correctness (n_experts, n_classes) of the experts on the roster."""
        return self._roster.correctness

    @property
    def _by_class(self):
        """Whether `predict_expert_correctness` follows from `_correctness` and the probabilities of the classes."""
        return type(self).predict_expert_correctness is BaseDeferrer.predict_expert_correctness

    def _plain_selection(self):
        """Selection weights (n_targets, n_experts) by membership alone, without bounds."""
        return plain_selection(self._roster.omega)

    # Hooks of a subclass.

    def _check_settings(self, y):
        """Refuse invalid parameters before anything is fitted; `classes_` and `experts_` are known.

        A subclass checks its own parameters and calls ``super()``.
        """

    def _array_form(self):
        """Floating types that the items may keep, and whether they may have more than two dimensions."""
        return {"dtype": ["float64", "float32"], "allow_nd": False}

    def _default_classifier(self):
        """The classifier if the parameter is None."""
        return NetClassifier()

    def _learn(self, team):
        """Learn from a team with experts."""
        raise NotImplementedError

    def _fit_nobody(self, team):
        """Learn from a team without experts."""
        self._fit_classifier(team)
        self._set_targets(self.experts_, np.empty((0, 0)))
        self.n_iter_, self.history_ = 0, []
        self._report_shares(np.ones(1))

    def _scores(self, items):
        """Scores (n, n_targets + 1) of items, the classifier last; there is at least one target."""
        raise NotImplementedError

    def _answer_shape(self, items, votes):
        """Probabilities (n_answers, C) of what people answer at the items of votes, or None if that is unknown."""
        return None

    def _decision_cost(self):
        """Cost (C, C) of deciding for the class of the column where that of the row is true; None if errors cost 1."""
        return None

    def _bounds(self, roster):
        """`ShareBounds` of the targets and experts of a roster; by default there are none."""
        return share_bounds(None, None, None, roster.experts, self.targets_)

    def _explain_scores(self, names, scores):
        """Columns of `explain_deferral` that follow from the scores of targets and classifier with these names."""
        return {f"preference of {n}": p for n, p in zip(names, preferences(scores).T, strict=True)}

    # Fitting.

    def _fit(self, X, y, annotations, X_unlabeled=None, classes=()):
        y, annotations = matched_target(X, y, annotations)
        if annotations is None:
            check_nobody(**self.get_params(deep=False))
        team = self._check_team(X, y, annotations, X_unlabeled, classes)
        self._check_settings(team.y)
        self._seed = self._draw_seed()
        if self.n_experts_:
            self._learn(team)
            self._learn_answers(team)
        else:
            self._fit_nobody(team)
            self._exponents, self._crowdlab = Exponents(), None

    def _learn_answers(self, team):
        """Learn how the experts answer, and how much the classifier and their answers count."""
        if self._roster.answering is None:
            self._count_answers(team)
        model, votes, truth = self._roster.answer_model, team.votes, np.eye(len(self.classes_))[team.y_codes]
        rows, some = few_answers(votes, self._seed)
        log_prior = vars(self).pop("_judged", None)
        log_prior = None if log_prior is None else log_prior[rows]
        # who trains classifier and experts together has no probabilities out of fold
        proba = self._classifier_proba(team.items[rows]) if log_prior is None else np.exp(log_prior)
        self._crowdlab = fit_crowdlab(some.item, some.label, proba, team.y_codes[rows], model.center)
        shape = self._answer_shape(team.items[rows], some)
        model, self._exponents = learn_weights(model, some, truth[rows], log_prior, shape, self._seed)
        self._roster = self._roster.who_answer(model)

    def _count_answers(self, team):
        """Learn how the experts answer by all their answers, as soon as the classifier and its temperature are known.

        Whatever compares experts from then on compares them by all answers.
        """
        roster = self._roster
        if not team.known.all():
            truth = self._truth_before_answers(team.annotated, team.known, team.y_codes)
            roster = roster.recounted(team.annotations, completed(team.annotations, truth))
        self._roster = roster.who_answer(fit_counts(*roster.counts))

    def _truth_before_answers(self, items, known, y_codes):
        """Distribution (n, C) of the truth of items: one-hot where it is known, else that of the classifier."""
        truth = np.zeros((len(items), len(self.classes_)))
        truth[known, y_codes] = 1
        if not known.all():
            truth[~known] = self._classifier_proba(items[~known])
        return truth

    def _parts(self):
        """Estimators among the parameters, which a user may have frozen, by name."""
        params = self.get_params(deep=False)
        return {name: params[name] for name in _EXAMPLES if name in params}

    def _draw_seed(self):
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _check_team(self, X, y, annotations, X_unlabeled, classes):
        """Checked `Team`; sets `classes_`, the roster, `n_features_in_` and `feature_names_in_`."""
        items, parts = self._check_items(X, reset=True), self._parts()
        y, known = check_truth(y, len(items), self.unlabeled_label)
        if not known.any():
            raise ValueError(
                "y knows the truth of no item; label some, for the classifier and the experts are judged by them."
            )
        if self.unlabeled_label is None:
            warn_of_marker(y)
        if len(np.unique(y)) < 2 and not isinstance(parts.get("classifier"), FrozenEstimator):
            raise ValueError(f"y holds one class only, {y[0]!r}; a classifier needs at least two.")
        self.classes_ = team_classes(y, classes, parts)
        votes = check_annotations(annotations, self.classes_, self.missing_label, items.given, self._silence)
        self.classes_, self._fit_experts = votes.classes, votes.annotators
        if not known_labels(self.classes_, self.unlabeled_label)[1].all():
            raise ValueError(
                f"unlabeled_label={self.unlabeled_label!r} marks an unknown truth in y, but somebody answered it or a "
                "frozen part knows it as a class; use another marker, or name it missing_label if it is no answer."
            )
        y_codes = np.searchsorted(self.classes_, y)
        unlabeled = None if X_unlabeled is None else self._check_unlabeled(X_unlabeled)
        labelled, its_votes = items, votes
        if not known.all():
            labelled, its_votes = items[known], votes[known]
            rows = np.append(np.flatnonzero(known), np.flatnonzero(~known & (np.diff(votes.starts) > 0)))
            items, votes, known = items[rows], votes[rows], known[rows]
        self._roster = new_roster(its_votes, y_codes)
        return Team(labelled, y, y_codes, its_votes, unlabeled, items, votes, known)

    def _fit_classifier(self, team):
        """Fit the classifier unless it is frozen, and return it unfitted."""
        classifier = self._parts()["classifier"]
        if classifier is None:
            classifier = self._default_classifier()
        self.classifier_ = fit_classifier(classifier, team.items.given, team.y, self._seed)
        self.temperature_ = 1.0
        return classifier

    def _judge_classifier(self, team, cv):
        """Fit the classifier and return its out-of-fold, calibrated probabilities (n, C) on the team's rows."""
        classifier = self._fit_classifier(team)
        proba, self.temperature_ = judge_classifier(
            classifier, self.classifier_, team.items.given, team.y, self.classes_, cv, self._seed
        )
        self._judged = np.log(proba)  # for `_learn_answers`
        self._count_answers(team)
        return proba

    def _set_targets(self, targets, omega, **details):
        """Set the targets and the memberships (n_experts, n_targets) and further details of the experts of `fit`."""
        self.targets_ = targets
        self._roster = self._roster._replace(omega=omega, details=details)
        self._set_selection(plain_selection(omega))

    def _set_selection(self, selection):
        """Set the weights (n_targets, n_experts) by which targets select members, and which targets have any."""
        self._selection, self._live = selection, selection.sum(1) > 0

    def _single_targets(self, **details):
        """Make every expert a target."""
        self._set_targets(self.experts_.copy(), identity(self.n_experts_), **details)

    def _measure_shares(self, team, duel=None):
        """Report the hard shares of the unlabelled items, or else of the labelled ones, whose `duel` may be given."""
        if team.unlabeled is not None or duel is None:
            duel = self._duel(team.items if team.unlabeled is None else team.unlabeled)
        self._report_shares(duel.shares(len(self.targets_)))

    def _report_shares(self, shares):
        """Set the hard shares (n_targets + 1,), the classifier last, and what follows from them."""
        self.target_shares_, self.coverage_ = shares, float(shares[-1])
        self.workload_ = served_shares(shares, self._selection)

    # Deciding.

    def _check_items(self, X, reset=False):
        return check_items(self, X, reset=reset, **self._array_form())

    def _check_unlabeled(self, X_unlabeled):
        """Checked unlabelled items; an error names `X_unlabeled`, not `X`."""
        try:
            return self._check_items(X_unlabeled)
        except (TypeError, ValueError) as error:
            raise type(error)(f"X_unlabeled cannot be used: {error}") from error

    def _target_scores(self, items):
        """Scores (n, n_targets + 1) of items, the classifier last; the largest one decides."""
        if len(self.targets_) == 0:
            return np.zeros((len(items), 1))
        return self._masked(self._scores(items))

    def _decide(self, X):
        """Checked items, their target codes, and their labels by the classifier."""
        check_is_fitted(self)
        items = self._check_items(X)
        return items, self._duel(items).chosen, self.classifier_.predict(items.given)

    def _decided(self, proba):
        """Labels by probabilities (n, C) of the truth: the most probable ones, or those of the least expected cost."""
        cost = self._decision_cost()
        return self.classes_[proba.argmax(1) if cost is None else (proba @ cost).argmin(1)]

    def _duel(self, items):
        """`Duel` by the final scores of items, which are computed for some rows at a time."""
        blocks = items.blocks(len(self.targets_) + 1)
        return Duel.joined((Duel.of(self._target_scores(block)) for block in blocks), len(items))

    def _masked(self, scores):
        """Mask the scores of targets without members, in place."""
        scores[:, :-1][:, ~self._live] = -np.inf  # a target without members
        scores[np.isneginf(scores).all(1), -1] = 0.0  # no other target can decide
        return scores

    def _classifier_proba(self, items):
        """Temperature-scaled probabilities (n, C) of the classifier."""
        return tempered_proba(self.classifier_, items.given, self.classes_, self.temperature_)

    def _assign(self, X, available, capacity, on_overflow):
        """Target codes and experts of items; arguments as in `assign_experts`."""
        check_overflow(on_overflow)
        check_is_fitted(self)
        items = self._check_items(X)
        available, capacity = self._check_available(available, items), self._check_capacity(capacity)
        deferral = self._duel(items).chosen
        assignment = self._choose_experts(items, deferral, available, capacity)
        who = "of their target available within capacity"
        if on_overflow == "next":
            assignment = self._pass_on(items, deferral, assignment, available, capacity)
            who = "available within capacity who is expected to beat the classifier"
        overflow = int(((deferral >= 0) & (assignment < 0)).sum())
        if overflow:
            message = f"{overflow} of {int((deferral >= 0).sum())} deferred items found nobody {who}"
            if on_overflow == "raise":
                raise ValueError(message + "; raise `capacity` or make more experts `available`.")
            warn(message + "; the classifier decides them.")
        return deferral, assignment

    def _choose_experts(self, items, deferral, available, capacity):
        """Experts of items, by their target codes; -1 for the classifier's and where nobody can serve."""
        return assign_members(deferral, self._selection, self._keys(items), available, capacity)

    def _keys(self, items):
        """Keys (n,) of items, from which all that is random about one of them comes."""
        return row_keys(items.array, self._seed)

    def _pass_on(self, items, deferral, assignment, available, capacity):
        """The assignment where deferred items without anybody go to whoever else is free and gains most."""
        rows = np.flatnonzero((deferral >= 0) & (assignment < 0))
        if not rows.size:
            return assignment
        assignment, left = assignment.copy(), None
        available = csr_array(available) if issparse(available) else available
        if capacity is not None:
            left = capacity - np.bincount(assignment[assignment >= 0], minlength=self.n_experts_)
            rows = rows[np.argsort(self._keys(items[rows]))]  # the order of items decides nothing
        # whom a bound excludes is not asked here, either
        bounds = self.requested_bounds_
        working = self._selection[bounds.target_upper[:-1] > 0].sum(0) * bounds.expert_upper[:-1] > 0
        if issparse(available) and left is None:
            return self._pass_on_among(items, rows, available, working, assignment)
        by_row, by_class, correctness = np.ndim(available) == 2, self._by_class, self._correctness
        if available is not None and not by_row:
            working = working & available

        def gain(some, people):
            of_some = items[rows[some]]
            proba = self._classifier_proba(of_some)
            if by_class:
                gained = proba @ correctness[people].T - proba.max(1)[:, None]
            else:
                gained = self.predict_expert_correctness(of_some.given)[:, people] - proba.max(1)[:, None]
            if by_row:
                gained[~available_for(available, rows[some])[:, people]] = -np.inf
            return gained

        def most(some, people):
            proba = self._classifier_proba(items[rows[some]])
            return proba @ correctness[people].max(0) - proba.max(1)

        if left is not None:
            comparable = by_class and not by_row
            assignment[rows] = match_many(gain, len(rows), np.where(working, left, 0), most if comparable else None)
            return assignment
        people = np.flatnonzero(working)
        if by_class and not by_row and len(rows) > len(people):  # else a search for the best is not worth its time
            people = people[undominated(correctness[people])]
        for block in row_blocks(len(rows), len(people)) if len(people) else ():
            gained = gain(block, people)
            assignment[rows[block]] = np.where(gained.max(1) > 0, people[gained.argmax(1)], -1)
        return assignment

    def _pass_on_among(self, items, rows, available, working, assignment):
        """As `_pass_on`, among the few who are listed as available for each of some items."""
        for block in row_blocks(len(rows), len(self.classes_)):
            listed, some = available[rows[block]], items[rows[block]]
            proba, row = self._classifier_proba(some), rows_of(listed)
            if self._by_class:
                right = (proba[row] * self._correctness[listed.indices]).sum(1)
            else:
                right = self.predict_expert_correctness(some.given)[row, listed.indices]
            gain = np.where(listed.data.astype(bool) & working[listed.indices], right - proba.max(1)[row], -np.inf)
            best = np.lexsort((listed.indices, -gain, row))  # the largest gain first, and the first of equals
            best = best[np.searchsorted(row, np.flatnonzero(np.diff(listed.indptr)))]
            best = best[gain[best] > 0]
            assignment[rows[block][row[best]]] = listed.indices[best]
        return assignment

    def _vote(self, deferral, votes):
        """Rows that a target decides and its weighted vote."""
        weight = answer_weights(self._selection, deferral, votes)
        n_classes = len(self.classes_)
        cells = votes.item * np.int64(n_classes) + votes.label
        ballots = np.bincount(cells, weight, minlength=len(votes) * n_classes).reshape(-1, n_classes)
        decided = np.flatnonzero(ballots.sum(1) > 0)
        return decided, ballots[decided].argmax(1)

    def _check_available(self, available, items):
        return check_available(available, self.experts_, None if items is None else items.given)

    def _check_capacity(self, capacity):
        if capacity is None:
            return None
        capacity = by_name(capacity, self.experts_, "capacity")
        if hasattr(capacity, "items"):
            expert_places(capacity, self.experts_, "capacity")
            capacity = [capacity.get(name, self._unlimited) for name in self.experts_]
        values = np.asarray(capacity)
        if values.ndim == 0:
            values = np.full(self.n_experts_, values)
        if values.shape != (self.n_experts_,) or values.dtype.kind not in "iu" or (values < 0).any():
            raise ValueError(
                f"capacity={capacity!r} is not a non-negative whole number for each of {self.n_experts_} experts."
            )
        return values

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
        names, items = name_list(experts), self._check_items(X)
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

    def _of_known_truth(self, X, y, annotations, sample_weight):
        """The matched arguments of `score`, without the items of unknown truth, of which a split may hold some."""
        check_is_fitted(self)
        y, annotations = matched_target(X, y, annotations)
        *_, sample_weight = same_rows(X=X, y=y, sample_weight=sample_weight)
        check_consistent_length(X, y, sample_weight)
        y = column_or_1d(y) if getattr(y, "ndim", 1) == 2 else y  # without a warning
        labels, known = check_truth(y, len(y), self.unlabeled_label)
        if not known.any():
            raise ValueError("y knows the truth of no item; score compares with it.")
        if known.all():
            return X, labels, annotations, sample_weight
        rows = np.flatnonzero(known)
        some = [None if part is None else take_rows(part, rows) for part in (X, annotations, sample_weight)]
        return some[0], labels, *some[1:]

    def _check_truth(self, X, y):
        """Positions of known labels in `classes_`, and a mask (n,) of their rows."""
        y, known = check_truth(y, len(X), self.unlabeled_label)
        if not np.isin(y, self.classes_).all():
            raise ValueError(f"y holds labels that are not among classes_ {self.classes_.tolist()}.")
        return np.searchsorted(self.classes_, y), known

    def _copy_with(self, **fitted):
        """Copy with other values of some fitted attributes."""
        other = copy.copy(self)
        vars(other).update(fitted)
        return other


def preferences(scores):
    """Scores as probabilities; an infinite score has all of them."""
    certain = np.isposinf(scores)
    return softmax(np.where(certain.any(1, keepdims=True), np.where(certain, 0.0, -np.inf), scores), axis=1)


def check_overflow(on_overflow):
    """Refuse an unknown way to treat items that their target cannot take."""
    if on_overflow not in ("next", "classifier", "raise"):
        raise ValueError(f"on_overflow={on_overflow!r} is none of 'next', 'classifier' and 'raise'.")


def _index(X):
    return X.index if is_frame(X) else None
