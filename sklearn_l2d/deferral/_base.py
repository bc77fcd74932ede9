"""Base class of the deferrers."""

import copy
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._annotated_target import matched_target
from .._anonymous import are_named
from .._by_name import check_available, check_capacity, expert_places
from .._encoding import as_frame, is_frame, known_labels
from .._items import Items, check_items, kind_of_items, made_features
from .._numerics._answers import expected_correctness
from .._numerics._assignment import assign_members
from .._numerics._crowdlab import crowdlab_proba, fit_crowdlab
from .._numerics._fusion import Exponents
from .._numerics._matrices import answer_weights, dense_if_small, entries, identity, row_blocks
from .._persistence import Estimator
from .._rows import same_rows
from .._sklearn import (
    atomic,
    atomic_fit,
    check_weights,
    count_rows,
    get_tags,
    not_for_scorers,
    warn,
)
from .._validation import (
    check_annotations,
    check_answers,
    check_truth,
    name_list,
    of_known_truth,
    votes_beside,
    warn_of_marker,
    weighted_rows,
)
from .._votes import Votes, placed
from ..crowd import CountsClassifier, NetClassifier
from ..metrics import team_accuracy
from ._answer_model import completed, count_votes, few_answers, fused_proba, learn_weights
from ._archive import read_archive
from ._classifier import (
    check_learns_from_votes,
    expand,
    fit_classifier,
    judge_classifier,
    own_labels,
    own_proba,
    team_classes,
    tempered_proba,
)
from ._duel import Duel
from ._overflow import check_overflow, pass_on
from ._roster import (
    answer_table,
    explanation_table,
    index_of,
    new_roster,
    plain_selection,
    reasons_of,
    route_table,
    served_shares,
)
from ._settings import check_nobody, select_members, share_bounds
from ._shift import Shift
from ._team import Sight, Team

_FUSIONS = "combine", "crowdlab"  # decisions by the classifier and all answers together
_MANY_PROBABILITIES = 2**24  # 128 MB of them
_EXAMPLES = {"classifier": "LogisticRegression()", "clusterer": "AnnotatorLDA()"}  # of the parts of a deferrer


def _has_experts(deferrer):
    return deferrer.__sklearn_is_fitted__() and deferrer.n_experts_ > 0


class BaseDeferrer(ClassifierMixin, Estimator):
    """Base of the deferrers.

    A subclass learns in `_learn(team)`, which sets `classifier_`, `temperature_`, `n_iter_`, `history_`, the targets by
    `_set_targets` and the shares by `_report_shares`, and scores items in `_scores(items)`. Experts are compared by all
    their answers after `_judge_classifier` or, without it, `_count_answers`. A subclass may override
    `_check_settings` to refuse parameters, `_array_form` to say which numbers its net sees, `_bounds` to bound the
    shares of the targets and experts, and `_silence` to say how experts without any annotation are treated. One with a
    parameter `gate_features` calls `_prepare_sight` first of all in `_learn`.
    """

    __metadata_request__fit: ClassVar = {"annotations": True, "X_unlabeled": True, "votes_unlabeled": True}
    __metadata_request__partial_fit: ClassVar = {"annotations": True}
    __metadata_request__score: ClassVar = {"annotations": True}

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
    def fit(self, X, y, annotations=None, X_unlabeled=None, votes_unlabeled=None, sample_weight=None):
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

        Returns
        -------
        self : object
            The fitted deferrer. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If the data, the weights or the bounds are not as described, or the bounds cannot be met; without
            annotations, no work by people can be requested.
        MemoryError
            If a table of items and experts is needed, for bounds on single experts or completed annotations, and there
            is not enough memory free for it.
        """
        self._fit(X, y, annotations, X_unlabeled, votes_unlabeled, sample_weight)

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
        return own_labels(self.classifier_, self._check_items(X).given)

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
            `predict_expert_correctness` less the calibrated confidence of the classifier. Within `capacity`, the sum of
            the gains is as large as possible or, where these items times the free places are more than two million,
            those with the largest gains come first, thousands of items at a time; of more than 1,000 people who are
            free, items are then compared with those who are best for a sample of them. The classifier decides where
            nobody free promises a gain, and a warning says how many these items are. "classifier" lets it decide all of
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
        votes = self._as_taken(items, deferral, check_answers(annotations, items.given, self, "predict_team"))
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
        ``(a ln p(y | x) + b ln p(answers | y)) / (1 + r (T - 1))``. People err alike: r is the correlation of the
        answers to an item, and in ``p(answers | y)`` a difficulty of the item, by which everybody is right less often,
        is integrated out; where people contradict one another, the item is probably hard. All of it is learnt from the
        rows of `fit`, where each answer is judged by the others: first the deviation of difficulties, by how often
        people are right about the same items; then the exponents a and b and r, by the truth, where those who are asked
        first come first. Few rows hardly move the deviation away from one logit, or r from what goes with it: nothing
        where items are equally difficult or there are two classes, up to the correlation of being right elsewhere.

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
        return self._fused(items, proba, votes)

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
        votes = self._as_taken(items, deferral, votes)
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
        names = name_list(experts, self.experts_, repeats=True)
        self._roster.check_names(names)
        self._set_roster(self._roster.without(names))

    def route(self, X, available=None, capacity=None, on_overflow="next", explain=False):
        """Assign items to experts and return the route as a table.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Items; the index of a DataFrame names them.
        available, capacity, on_overflow
            As in `assign_experts`.
        explain : bool, default=False
            Whether to add what the classifier says, and why the item goes where it goes.

        Returns
        -------
        route : DataFrame
            One row per item with the columns ``target`` and ``expert``, both "classifier" if the classifier decides.
            `answers_to_annotations` turns the experts' answers, a long table of task, annotator and label, into
            annotations. With `explain`, also ``label`` (of the classifier), ``confidence`` (its calibrated probability
            of this label) and ``reason``, in words: how often whoever decides is expected to be right about such items,
            and how often the classifier, or the best target if it decides.

        Raises
        ------
        ValueError
            As in `assign_experts`.
        """
        check_is_fitted(self)
        items = self._asked_once(X) if explain else self._check_items(X)
        deferral, assignment = self._assign(items, available, capacity, on_overflow)
        return self._route(X, items, deferral, assignment, explain)

    def start_shift(self, capacity=None, available=None, X_expected=None, n_expected=None):
        """Start a shift, which remembers what each expert has been given while items come one by one or in batches.

        Parameters
        ----------
        capacity : array-like of int of shape (n_experts,), int, or mapping by name, default=None
            Largest number of items per expert in the whole shift; unlimited by default.
        available : array-like of bool of shape (n_experts,), default=None
            Experts who are in; by default all experts. The shift's attribute of this name can be changed later.
        X_expected : array-like of shape (n_expected, n_features), default=None
            Items such as those to come. With them, the shift keeps a reserve: the time of each expert has a price, at
            which items such as these would need the capacities just up, and a deferred item goes to whoever gains most
            on it beyond the price, whatever its target and `workload`. A `PanelDeferral` adds the price to what its
            answers cost. Without them, the first items take what they want. Where capacities are tight, the reserve
            gains about what a plan for all items at once would.
        n_expected : int, default=None
            Number of items to come; by default that of `X_expected`.

        Returns
        -------
        shift : Shift
            With `assign_experts`, `route`, and `served_`, the number of items of each expert.

        Raises
        ------
        ValueError
            If `capacity` or `available` does not fit the experts, or a reserve is asked for without a capacity, or of a
            team that chooses panels at once or has promised an accuracy.
        """
        check_is_fitted(self)
        return Shift(self, capacity, available, X_expected, n_expected)

    def answers_to_annotations(self, answers, tasks):
        """Turn the answers to a route into annotations for `predict_team` and `score`.

        Parameters
        ----------
        answers : DataFrame
            Long table, of pandas, polars or Arrow, with the columns task, annotator and label.
        tasks : sequence
            Names of the items in the order of `X`, the index of the route.

        Returns
        -------
        annotations : DataFrame of shape (n_samples, n_experts)
            Columns in the order of `experts_`, with missing entries for experts who were not asked.

        Raises
        ------
        ValueError
            If an answer is by an expert who is not on the roster, or about an item that is not in `tasks`, if somebody
            answers an item twice, or `tasks` holds a name twice.
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
            classifier's probabilities. Where a coverage or workloads are requested, ``without bounds`` is who has the
            largest score before they are calibrated, and ``forced by`` names the parameters that made the difference,
            "" where none did.
        """
        check_is_fitted(self)
        items = self._asked_once(X)
        scores, proba = self._target_scores(items), self._classifier_proba(items)
        correctness = self._target_right(proba)
        names = [*self.targets_, "classifier"]
        labels = own_labels(self.classifier_, items.given)
        chosen = Duel.of(scores).chosen
        scored = self._explain_bounds(names, items, chosen) | self._explain_scores(names, scores)
        return explanation_table(names, chosen, labels, scored, correctness, index_of(X))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "classifier_")

    def __sklearn_tags__(self):
        tags, classifier = super().__sklearn_tags__(), getattr(self, "classifier", None)
        if hasattr(classifier, "__sklearn_tags__"):
            mine, its = tags.input_tags, get_tags(classifier).input_tags
            alone = self._array_form() is None and getattr(self, "clusterer", None) is None
            asked = self._gate_features()
            mine.string, mine.sparse = its.string, its.sparse and (alone or asked != "X")
            mine.allow_nan = its.allow_nan and (alone or asked not in (None, "X"))
        return tags

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
        """Floating type of what a gate or net sees, and whether it takes more than two dimensions; None without one."""
        return None

    def _net_settings(self):
        """Parameters of a net that is the classifier because the parameter is None."""
        return {}

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

    def _fused(self, items, proba, votes):
        """Probabilities (n, C) of the truth by those of the classifier and all votes on the items."""

        def shape_of(rows, some):
            return self._answer_shape(items[rows], some)

        model, votes = self._counted_as(votes)
        return fused_proba(model, self._exponents, np.log(proba), votes, shape_of)

    def _counted_as(self, votes):
        """`AnswerModel` by which answers are joined, and the votes as by those whom it knows: mostly the experts."""
        return self._roster.answer_model, votes

    def _as_taken(self, items, deferral, votes):
        """Answers to items as their targets, by codes (n,), take them: each with the label that it leads to."""
        return votes

    def _target_right(self, proba):
        """Probability (n, n_targets + 1) that each target and, last, the classifier is right about items."""
        return expected_correctness(proba, self._selection @ self._correctness)

    def _names_for(self, target, who):
        """Names of experts `who`, as they decide items for targets."""
        return self.experts_[who]

    def _decision_cost(self):
        """Cost (C, C) of deciding for the class of the column where that of the row is true; None if errors cost 1."""
        return None

    def _bounds(self, roster):
        """`ShareBounds` of the targets and experts of a roster; by default there are none."""
        return share_bounds(None, None, None, roster.experts, self.targets_)

    def _explain_scores(self, names, scores):
        """Columns of `explain_deferral` that follow from the scores of targets and classifier with these names."""
        return {f"preference of {n}": p for n, p in zip(names, preferences(scores).T, strict=True)}

    def _explain_bounds(self, names, items, chosen):
        """Columns of `explain_deferral` that say where a requested bound changed who of `names` is chosen."""
        return {}

    # Fitting.

    def _fit(self, X, y, annotations, X_unlabeled=None, votes_unlabeled=None, sample_weight=None, classes=()):
        X, y, annotations, weights = weighted_rows(X, *matched_target(X, y, annotations), sample_weight)
        if annotations is None:
            check_nobody(**self.get_params(deep=False))
        team = self._check_team(X, y, annotations, X_unlabeled, votes_unlabeled, weights, classes)
        self._check_settings(team.y)
        self._seed = self._draw_seed()
        if self.n_experts_:
            self._learn(team)
            self._learn_answers(team)
        else:
            self._fit_nobody(team)
            self._exponents, self._crowdlab = Exponents(), None
        return team

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

    def _parts(self):
        """Estimators among the parameters, which a user may have frozen, by name."""
        params = self.get_params(deep=False)
        return {name: params[name] for name in _EXAMPLES if name in params}

    def _draw_seed(self):
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _check_team(self, X, y, annotations, X_unlabeled, votes_unlabeled, weights, classes):
        """Checked `Team`; sets `classes_`, the roster, `n_features_in_` and `feature_names_in_`."""
        if votes_unlabeled is not None:
            self._check_votes_unlabeled(X_unlabeled, votes_unlabeled)
        items, parts = self._check_items(X, reset=True), self._parts()
        y, known = check_truth(y, len(items), self.unlabeled_label)
        if not known.any():
            raise ValueError(
                "y knows the truth of no item; label some, for the classifier and the experts are judged by them."
            )
        if self.unlabeled_label is None:
            warn_of_marker(y)
        if len(np.unique(y)) < 2 and not isinstance(parts.get("classifier"), FrozenEstimator):
            raise ValueError(f"y holds one class only, {y.tolist()[0]!r}; a classifier needs at least two.")
        self.classes_ = team_classes(y, classes, parts)
        votes = check_annotations(annotations, self.classes_, self.missing_label, items.given, self._silence)
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
        labelled, its_votes = items, votes
        if not known.all():
            labelled, its_votes = items[known], votes[known]
            rows = np.append(np.flatnonzero(known), np.flatnonzero(~known & (np.diff(votes.starts) > 0)))
            items, votes, known = items[rows], votes[rows], known[rows]
            weights = None if weights is None else weights[rows]
        if archive is not None:
            archive = self._without_known(archive, unlabeled, items)
        team = Team(labelled, y, y_codes, its_votes, unlabeled, archive, items, votes, known, weights)
        self._roster = new_roster(its_votes, y_codes, team.weight)
        return team

    def _learns_from_votes(self):
        """Whether there is a classifier of its own, which can learn from the votes of an archive."""
        return "classifier" in self._parts()

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

    def _without_known(self, archive, unlabeled, annotated):
        """The archive's items that have votes, and are not among the labelled and annotated items."""
        kept = archive.counts.any(1) & ~np.isin(unlabeled.keys(0), annotated.keys(0))
        if not kept.any():
            raise ValueError(
                "votes_unlabeled hold no vote on items that are not also in X, with a label or annotations; leave them "
                "out."
            )
        return archive.on(np.flatnonzero(kept))

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
        proba, self.temperature_, of_archive = judge_classifier(
            classifier, self.classifier_, team.items.given, team.y, self.classes_, cv, self._seed, *given
        )
        if archive is not None:  # shares are calibrated on them
            team.unlabeled.proba = self._classifier_proba(team.unlabeled)
            team.unlabeled.proba[archive.rows] = of_archive
        return proba

    def _set_targets(self, targets, omega, **details):
        """Set the targets and the memberships (n_experts, n_targets) and further details of the experts of `fit`."""
        self.targets_ = targets
        self._roster = self._roster.replace(omega=omega, details=details)
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
        weights = team.weight_if_any if team.unlabeled is None else None
        self._report_shares(duel.shares(len(self.targets_), weights))

    def _report_shares(self, shares):
        """Set the hard shares (n_targets + 1,), the classifier last, and what follows from them."""
        self.target_shares_, self.coverage_ = shares, float(shares[-1])
        self.workload_ = served_shares(shares, self._selection)

    # Deciding.

    def _check_items(self, X, reset=False):
        if isinstance(X, Items):
            return X
        if reset:
            self._sight = self._look(X)
        form = self._array_form() if self._sight.net == "X" else None
        try:
            return check_items(self, X, reset=reset, form=form, see=self._see, are_numbers=self._sight.are_numbers)
        except (TypeError, ValueError) as error:
            if not reset or form is None or issparse(X) or kind_of_items(X)[0]:
                raise
            raise type(error)(
                f"X holds no numbers, from which the net of {type(self).__name__} learns ({error}). Put what makes "
                "numbers of it, such as a TfidfVectorizer, before the deferrer in a Pipeline"
                + (", or leave gate_features=None." if hasattr(self, "gate_features") else ".")
            ) from error

    def _asked_once(self, X):
        """Checked items about which the classifier is asked once, unless they are too many to keep what it says."""
        items = self._check_items(X)
        if items.proba is None and len(items) * len(self.classes_) <= _MANY_PROBABILITIES:
            items.proba = self._classifier_proba(items)
        return items

    def _look(self, X):
        """`Sight` of a deferrer that is fitted to `X`."""
        are_numbers, n_dims = kind_of_items(X)
        asked, form, parts = self._gate_features(), self._array_form(), self._parts()

        def sees(takes_nd):
            if asked is not None:
                return asked
            return "X" if are_numbers and (n_dims <= 2 or takes_nd) else "proba"

        clusterer = parts.get("clusterer")
        module = getattr(getattr(clusterer, "estimator", clusterer), "module", None)
        return Sight(
            are_numbers,
            None if form is None else sees(form["allow_nd"]),
            sees(module is not None) if "clusterer" in parts else None,
        )

    def _gate_features(self):
        """What gate and clusterer shall see: "X", "proba", a callable, or None for what `X` allows."""
        return getattr(self, "gate_features", "X")  # a net that is the classifier sees the items themselves

    def _see(self, items):
        """Numbers (n, ...) by which the net, or else the clusterer, tells apart items that it does not see as given."""
        sees = self._sight.net or self._sight.clusterer
        if sees == "proba":
            return self._classifier_proba(items)
        made = made_features(sees, items.given, self._array_form() or {"dtype": "float64", "allow_nd": True})
        if self._sight.shape not in (None, made.shape[1:]):
            raise ValueError(
                f"gate_features made rows of shape {made.shape[1:]}, but {self._sight.shape} in fit; it must not learn "
                "from the items that it is given."
            )
        return made

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
        return items, self._duel(items).chosen, own_labels(self.classifier_, items.given)

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
        """Temperature-scaled probabilities (n, C) of the classifier; those of the rows of `fit` may be out of fold."""
        if items.proba is not None:
            return items.proba
        proba = tempered_proba(self.classifier_, items.given, self.classes_, self.temperature_)
        if "proba" in self._sight:  # a net sees them, too
            items.proba = proba
        return proba

    def _assign(self, X, available, capacity, on_overflow, tell=True):
        """Target codes and experts of items; arguments as in `assign_experts`. `tell` warns of an overflow."""
        check_overflow(on_overflow)
        check_is_fitted(self)
        items = self._check_items(X)
        available, capacity = self._check_available(available, items), check_capacity(capacity, self.experts_)
        deferral = self._duel(items).chosen
        assignment = self._choose_experts(items, deferral, available, capacity)
        who = "of their target available within capacity"
        if on_overflow == "next":
            assignment = self._pass_on(items, deferral, assignment, available, capacity)
            who = "available within capacity who is expected to beat the classifier"
        overflow = int(((deferral >= 0) & (assignment < 0)).sum())
        if overflow and (tell or on_overflow == "raise"):
            message = f"{overflow} of {int((deferral >= 0).sum())} deferred items found nobody {who}"
            if on_overflow == "raise":
                raise ValueError(message + "; raise `capacity` or make more experts `available`.")
            warn(message + "; the classifier decides them.")
        return deferral, assignment

    def _route(self, X, items, deferral, assignment, explain):
        """The route of checked items by their target codes and experts; other arguments as in `route`."""
        route = route_table(self.targets_, self.experts_, deferral, assignment, index_of(X))
        if not explain:
            return route
        label, reasons = own_labels(self.classifier_, items.given), []
        place, confidence = np.searchsorted(self.classes_, label), np.empty(len(items))
        members = csr_array(self._selection)
        for block in row_blocks(len(items), len(self.targets_) + len(self.classes_)):
            some, target, who = items[block], deferral[block], assignment[block]
            proba, rows = self._classifier_proba(some), np.flatnonzero(who >= 0)
            confidence[block] = proba[np.arange(len(some)), place[block]]
            names, right = np.full(len(some), None, dtype=object), np.full(len(some), np.nan)
            names[rows] = self._names_for(target[rows], who[rows])
            right[rows] = self._right(some, proba, rows, who[rows], target[rows])
            passed_on = np.zeros(len(some), dtype=bool)
            passed_on[rows] = entries(members, target[rows], who[rows]) == 0
            passed_on[(target >= 0) & (who < 0)] = True
            others = np.where(self._live, self._target_right(proba)[:, :-1], -np.inf)
            reasons += reasons_of(self.targets_, names, target, who, passed_on, right, proba.max(1), others)
        return route.assign(label=label, confidence=confidence, reason=reasons)

    def _choose_experts(self, items, deferral, available, capacity):
        """Experts of items, by their target codes; -1 for the classifier's and where nobody can serve."""
        return assign_members(deferral, self._selection, self._keys(items), available, capacity)

    def _keys(self, items):
        """Keys (n,) of items, from which all that is random about one of them comes."""
        return items.keys(self._seed)

    def _pass_on(self, items, deferral, assignment, available, capacity):
        """The assignment where deferred items without anybody go to whoever else is free and gains most."""
        return pass_on(self, items, deferral, assignment, available, capacity)

    def _right(self, items, proba, rows, who, target):
        """Probability that experts `who` are right if they decide some rows of items (n, C) for these targets."""
        if self._by_class:
            return (proba[rows] * self._correctness[who]).sum(1)
        return self.predict_expert_correctness(items.given)[rows, who]

    def _right_of_all(self, items, proba, target):
        """Probability (n, n_experts) that each expert is right if they decide items (n, C) for these targets."""
        if self._by_class:
            return proba @ self._correctness.T
        return self.predict_expert_correctness(items.given)

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

    def _of_known_truth(self, X, y, annotations, sample_weight):
        """The matched arguments of `score`, without the items of unknown truth, of which a split may hold some."""
        check_is_fitted(self)
        return of_known_truth(X, y, annotations, sample_weight, self.unlabeled_label)

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


def preferences(scores):
    """Scores as probabilities; an infinite score has all of them."""
    certain = np.isposinf(scores)
    return softmax(np.where(certain.any(1, keepdims=True), np.where(certain, 0.0, -np.inf), scores), axis=1)
