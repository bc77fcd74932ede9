"""Labels by everybody: whom to ask next about an item, until it is sure."""

import numbers
from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._by_name import check_capacity
from .._folds import FOLDS, folds_left, hold_out
from .._numerics._keyed import number_keys
from .._numerics._prices import find_prices
from .._numerics._risk_control import confidence_bound, n_items_needed
from .._sklearn import HasMethods, Interval, atomic, warn
from .._validation import check_answers, check_several_groups
from ._asking import FEW, Asker, Panel, Sample, Talk, draw_questions, hear_recorded
from ._behaviours import KnownByBehaviours
from ._duel import Duel
from ._roster import new_roster, plain_selection
from ._settings import error_costs, expert_prices, of_roster, share_bounds
from ._several_answers import SeveralAnswersDeferrer, rows_by_weight
from ._sight import GATE_FEATURES

_STOPS = "answers", "target_accuracy", "consultation_cost"
_ONE_ANSWER = 1.0  # per item, where nothing else is requested
_ENOUGH_ROWS = 200, 10_000  # on which thresholds are calibrated, at least and at most,
_ENOUGH_PAIRS = 20_000_000  # by the number of experts, answers and true classes that are compared
_ROWS_OF_PANELS = 250  # the same for panels, each with several scenarios
_VIOLATION = 0.02  # of a bound on the workload, from which there is a warning


class PanelDeferral(KnownByBehaviours, SeveralAnswersDeferrer):
    """Ask people about an item one after the other, whoever is worth most, and label it by everybody together.

    The classifier and all answers are joined in one posterior of the truth (see `predict_team_proba`). The next person
    is whoever is expected to improve the decision most, and people are asked until the answers cost more than they are
    worth, a mean number of answers is reached, or the label is sure enough. At most one of `answers`,
    `target_accuracy` and `consultation_cost` says which; without any of them, there is one answer per item on average.

    `next_expert` is the loop of a system that serves items one by one; `consult` chooses all people about an item
    before anybody answers.

    Parameters
    ----------
    classifier : classifier, default=None
        Classifier with `predict_proba`. It is cloned and fitted, unless it is a `FrozenEstimator`, which is used as it
        is. None is a small neural net, a `NetClassifier` or, with `votes_unlabeled`, a `CountsClassifier`.

    answers : float, default=None
        Mean number of answers per item. They go where they are worth most: many items need none.

    target_accuracy : float, default=None
        Share of correct labels that must be reached. Asking goes on until the label is sure enough. How sure that is
        follows from a share `validation_fraction` of the labelled items, which nothing else is learnt from, so that
        the accuracy on future items is at least `target_accuracy` with probability `confidence_level`, whatever their
        distribution (Angelopoulos et al., 2021). It holds for items that are drawn like the labelled ones and can be
        answered by as many people; where more people can be asked, the label is more often sure enough.

    consultation_cost : float, array-like of shape (n_experts,), mapping or None, default=None
        Cost of asking an expert, in units of one error: one cost for all experts, one per expert, or a mapping from
        names of experts to costs, such as a Series. Somebody is asked as long as the answer is worth as much: the fall
        of the expected errors, and a tenth of an error for each nat of information, which may overturn the label later.

    max_answers : int, default=None
        Largest number of answers to an item; None sets no limit.

    clusterer : AnnotatorLDA, FrozenEstimator or None, default=None
        Estimator of the experts' behaviours. An `AnnotatorLDA` is cloned and fitted to the counts of the annotations;
        ``FrozenEstimator(lda)`` is one that was trained on a larger anonymous archive. What behaviours answer at an
        item shapes the wrong answers that are expected there. None leaves that to the roster.

    gate_features : {"X", "proba"}, callable or None, default=None
        Numbers by which a gate, net or `AnnotatorLDA` inside the deferrer tells items apart: "X" is `X` itself, "proba"
        the probabilities of the classifier, and a callable is given `X` and returns an array or sparse matrix of a row
        per item, for instance the `transform` of a fitted vectoriser. None is "X" where `X` is numbers without gaps: a
        dense table or, for those with a `module`, an array of more dimensions; and "proba" for text, categories, sparse
        matrices and all else that only the classifier understands. The classifier always sees `X` as it is.

    error_cost : array-like of shape (n_classes, n_classes), default=None
        Cost, in units of one error, of deciding for the class of the column where the class of the row is true, in the
        order of `classes_`; a DataFrame may name the classes instead. None is 0 on the diagonal and 1 elsewhere.

    workload : pair, array-like of shape (n_experts, 2), mapping or None, default=None
        Lower and upper bound of the share of all items that each expert serves: one pair for all experts, one pair per
        expert, or a mapping from names to pairs, such as a Series or DataFrame. None sets no bound.

    cv : int, splitter or list of splits, default=5
        Folds of the classifier's out-of-fold probabilities, by which the temperature and the weight of the classifier
        among the answers are learnt: their number, a splitter, or splits as positions in `X`.

    validation_fraction : float, default=0.5
        Share of the labelled items that is held out for `target_accuracy`; not used without it.

    confidence_level : float, default=0.9
        Probability with which `target_accuracy` is kept.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, the held-out items, the clusterer unless it has its own, the drawn answers of the
        calibration, the turns of people whose answers are worth the same, and the classifier unless it has its own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of `y` and `annotations`, and those that a frozen classifier knows.
    classifier_ : classifier
        The fitted classifier.
    temperature_ : float
        Temperature that calibrates the probabilities of the classifier.
    clusterer_ : AnnotatorLDA or None
        The fitted or frozen clusterer.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    targets_ : ndarray of shape (n_targets,)
        Names of the targets: every expert of `fit` or `onboard` is one.
    omega_ : ndarray or csr_array of shape (n_experts, n_targets)
        Memberships of the experts in the targets. Rows sum to 1. It is sparse if every expert is a target and it has
        more than ten million entries.
    selection_ : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members. Rows sum to 1; a target without members has a row of zeros. It
        is sparse if `omega_` is.
    threshold_ : float
        Worth of an answer, in units of one error and less its price, from which it is asked for.
    panel_threshold_ : float
        The same for panels that are chosen before any answer.
    confidence_threshold_ : float
        Largest probability of a class from which nobody else is asked; inf without `target_accuracy`, or if it takes
        all answers.
    prices_ : ndarray of shape (n_experts,)
        Price of asking each expert: `consultation_cost`, and a toll that keeps the bounds of `workload`. Newcomers have
        the toll of whoever is as accurate until `recalibrate`.
    answers_ : float
        Expected number of answers per item, on `X_unlabeled` or else the labelled items.
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
        A target decides an item here if it is asked first. Newcomers have 0 until `recalibrate`.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    constraint_violation_ : float
        Largest distance of a share from its bounds; 0 if all bounds are met.
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
    ConfidenceDeferral : One decider per item, by the same comparison, without joining answers.
    ClusterDeferral : Groups of like-minded experts, whose members change.

    Notes
    -----
    An answer is worth the expected fall of the cost of the decision, and a tenth of an error for each nat of its mutual
    information with the truth, since one answer rarely overturns a decision on its own. Both count the answer by the
    power of its likelihood that it will have among the others: people err alike, and the more have answered, the less
    another one tells. Of more than 100 experts, the 100 who are most likely to be right about an item are compared.

    A mean number of answers is met by a threshold on the worth, which is found on unlabelled items with answers drawn
    from what is expected of people. Up to one answer per item it is met within a few hundredths. Where nearly all
    labels are sure, more answers hang on small differences of worth: with two or three per item, and a few hundred
    answers to learn from, the number can be off by .1 to .4, and where many people disagree about hard items, more are
    asked: 3.7 instead of three in one set of the benchmark. If fewer people can be asked than `fit` is told of, fewer
    answers are worth it: `recalibrate` and `answers_path` take who is `available`.

    References
    ----------
    Angelopoulos, Bates, Candes, Jordan and Lei: Learn then test, calibrating predictive algorithms to achieve risk
    control, 2021. Dawid and Skene: Maximum likelihood estimation of observer error-rates using the EM algorithm, 1979.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import PanelDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = PanelDeferral(LogisticRegression(C=0.01), answers=1.0, random_state=0)
    >>> team.fit(
    ...     crowd.X_identified,
    ...     crowd.y_identified,
    ...     annotations=crowd.annotations,
    ...     X_unlabeled=crowd.X_anonymous,
    ... )
    PanelDeferral(...)
    >>> print(f"{team.answers_:.2f} answers per item")
    1.00 answers per item
    >>> team.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > 0.95
    True
    >>> who = team.next_expert(crowd.X_test[:4])
    >>> who.shape
    (4,)
    """

    _parameter_constraints: ClassVar = {
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "answers": [Interval(numbers.Real, 0, None, closed="left"), None],
        "target_accuracy": [Interval(numbers.Real, 0, 1, closed="neither"), None],
        "consultation_cost": [numbers.Real, "array-like", dict, None],
        "max_answers": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "clusterer": [HasMethods(["fit", "transform"]), None],
        "gate_features": GATE_FEATURES,
        "error_cost": ["array-like", None],
        "workload": ["array-like", dict, None],
        "cv": FOLDS,
        "validation_fraction": [Interval(numbers.Real, 0, 1, closed="neither")],
        "confidence_level": [Interval(numbers.Real, 0, 1, closed="neither")],
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        classifier=None,
        *,
        answers=None,
        target_accuracy=None,
        consultation_cost=None,
        max_answers=None,
        clusterer=None,
        gate_features=None,
        error_cost=None,
        workload=None,
        cv=5,
        validation_fraction=0.5,
        confidence_level=0.9,
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.classifier = classifier
        self.answers = answers
        self.target_accuracy = target_accuracy
        self.consultation_cost = consultation_cost
        self.max_answers = max_answers
        self.clusterer = clusterer
        self.gate_features = gate_features
        self.error_cost = error_cost
        self.workload = workload
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.confidence_level = confidence_level
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    # Asking.

    def next_expert(self, X, annotations=None, available=None, capacity=None):
        """Whom to ask next about each item, given what has been answered.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts so far, one column per expert, with missing entries. The rows and columns of
            a DataFrame are matched by name. None: nobody has answered.
        available : array-like of bool of shape (n_experts,) or (n_samples, n_experts), or mapping, default=None
            Experts who are available, for all items or for each item; by default all experts. A mapping, a Series and
            the columns of a DataFrame are matched by name; experts whom they leave out are available. For each item,
            it may be a sparse array.
        capacity : array-like of int of shape (n_experts,), int, or mapping by name, default=None
            Largest number of items per expert; unlimited by default. A Series with names is a mapping.

        Returns
        -------
        expert : ndarray of int of shape (n_samples,)
            Positions in `experts_`; -1 where it is time to decide by `predict_team`. Where capacities are full, an item
            goes to whoever is worth most among the others; without them, an item alone gets what it gets in a batch.

        Raises
        ------
        ValueError
            If `annotations`, `available` or `capacity` do not fit the experts.
        """
        items, votes = self._so_far(X, annotations)
        available, capacity = self._check_available(available, items), check_capacity(capacity, self.experts_)
        return self._next(items, votes, available, capacity)

    def _so_far(self, X, annotations):
        """Checked arguments of `next_expert`: items, and what has been answered, or None."""
        check_is_fitted(self)
        items = self._check_items(X)
        votes = None if annotations is None else check_answers(annotations, items.given, self, "next_expert", "wrong")
        return items, votes

    def _next(self, items, votes, available, capacity):
        """`next_expert` of checked arguments."""
        if self.n_experts_ == 0:
            return np.full(len(items), -1)
        talk = self._talk(items, available)
        if votes is not None:
            talk.hear_votes(votes)
        return talk.next(np.arange(len(items)), capacity)

    def consult(self, X, available=None, capacity=None):
        """Panel of experts about each item, chosen before any of them answers, for work that goes out once.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        available, capacity
            As in `assign_experts`.

        Returns
        -------
        asked : ndarray of bool of shape (n_samples, n_experts)
            Columns in the order of `experts_`. The classifier decides the items of rows without True. With `answers`,
            panels have about this mean size, too; the same number of answers one by one tells more.

        Raises
        ------
        ValueError
            If `available` or `capacity` do not fit the experts, or with `target_accuracy`, which is only promised if
            people are asked one by one.
        """
        check_is_fitted(self)
        if self._promised is not None:
            raise ValueError(
                "target_accuracy holds where people are asked one by one, not for panels that are chosen at once; call "
                "next_expert, or fit with answers or consultation_cost."
            )
        items = self._check_items(X)
        available, capacity = self._check_available(available, items), check_capacity(capacity, self.experts_)
        asked = np.zeros((len(items), self.n_experts_), dtype=bool)
        if self.n_experts_:
            price = self._consultation_prices() + self._roster.details["panel_toll"]
            panel = self._talk(items, available, kind=Panel, threshold=self.panel_threshold_, price=price)
            found = draw_questions(panel, capacity=capacity)
            asked[found.item, found.expert] = True
        return asked

    def explain_deferral(self, X, annotations=None):
        """Explain whom to ask about each item, and what each answer has changed.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            Annotations of the experts so far, as in `next_expert`. None explains the first question.

        Returns
        -------
        explanation : DataFrame
            One row per item with the columns ``chosen`` (whom to ask first, or "classifier"), ``prediction`` (the
            label of the classifier), ``worth of ...`` (of the first answer of each expert, less the price, in errors),
            ``least worth`` (from which somebody is asked) and ``expected correctness of ...`` for everybody. With
            annotations, also ``next`` (whom to ask now, or "nobody"), ``label`` and ``confidence`` of the team, and
            ``change by ...``: by how much the probability of this label would fall without this expert's answer, NaN
            for experts who have not answered.
        """
        explanation = super().explain_deferral(X)
        if annotations is None or self.n_experts_ == 0:
            return explanation
        items, rows = self._check_items(X), np.arange(len(explanation))
        votes, talk = check_answers(annotations, items.given, self, "explain_deferral", "wrong"), self._talk(items)
        talk.hear_votes(votes)
        votes, proba = votes.select(votes.label < len(self.classes_)), talk.proba(rows)
        label = self._decided(proba)
        code = np.searchsorted(self.classes_, label)
        change = np.full(votes.shape, np.nan)
        without = talk.without_each(votes)[np.arange(len(votes.item)), code[votes.item]]
        change[votes.item, votes.annotator] = proba[votes.item, code[votes.item]] - without
        explanation["next"] = np.append(self.experts_, "nobody")[talk.next(rows)]
        explanation["label"], explanation["confidence"] = label, proba[rows, code]
        names = [f"change by {name}" for name in self.experts_]
        return explanation.join(type(explanation)(change, index=explanation.index, columns=names))

    def _ask_recorded(self, items, votes):
        talk = self._talk(items)
        for _ in hear_recorded(talk, votes.to_sparse()):
            pass
        return talk.open.asked, talk.proba(np.arange(len(items)))

    # Budgets.

    def answers_path(self, budgets, X_unlabeled, available=None):
        """Copies of the deferrer at several mean numbers of answers, which share all that is learnt.

        Parameters
        ----------
        budgets : array-like of float
            Mean numbers of answers per item.
        X_unlabeled : array-like of shape (n_unlabeled, n_features)
            Items on which the thresholds are calibrated.
        available : array-like of bool of shape (n_experts,) or (n_unlabeled, n_experts), or mapping, default=None
            Who can be asked about these items; by default everybody about all of them. Names as in `assign_experts`.

        Returns
        -------
        deferrers : list of PanelDeferral
            Fitted copies, in the order of `budgets`; each has its own thresholds and `answers_`, and neither
            `target_accuracy` nor `consultation_cost`.

        Raises
        ------
        ValueError
            If a budget is negative or more than people can answer.
        """
        check_is_fitted(self)
        items, budgets = self._check_unlabeled(X_unlabeled), [float(b) for b in budgets]
        available = self._check_available(available, items)
        path = [
            self._copy_with(
                answers=b, target_accuracy=None, consultation_cost=None, confidence_threshold_=np.inf, _promised=None
            )
            for b in budgets
        ]
        for deferrer in path:
            deferrer._check_request()
        if self.n_experts_ == 0:
            for deferrer in path:
                deferrer._report_nobody()
            return path
        sample, drawn = self._sample(items, available), None
        if path and not self.requested_bounds_.bind_experts:
            drawn = path[0]._draw_twice(sample, max(budgets))
        for deferrer in path:
            deferrer._set_thresholds(sample, drawn)
        return path

    @atomic
    def recalibrate(self, X_unlabeled, available=None):
        """Change the thresholds so that the mean number of answers and the workloads are met on other items.

        Parameters
        ----------
        X_unlabeled : array-like of shape (n_unlabeled, n_features)
            Items from the distribution of future items.
        available : array-like of bool of shape (n_experts,) or (n_unlabeled, n_experts), or mapping, default=None
            Who can be asked about these items; by default everybody about all of them. Names as in `assign_experts`.

        Returns
        -------
        self : PanelDeferral
            The deferrer with new thresholds. With `target_accuracy`, nothing changes but what is reported, such as
            `answers_`: who is asked is part of what is promised.

        Raises
        ------
        ValueError
            If `target_accuracy` is not that of `fit`, or more is requested than people can answer.
        """
        check_is_fitted(self)
        items = self._check_unlabeled(X_unlabeled)
        available = self._check_available(available, items)
        self._check_request()
        request = self._request()
        if request != self._promised:
            if request is not None:
                raise ValueError(
                    f"target_accuracy={self.target_accuracy} and its settings are not those of fit; they need labelled "
                    "items: fit again."
                )
            self._promised, self.confidence_threshold_ = None, np.inf
        if self.n_experts_ == 0:
            self._report_nobody()
        elif self._promised is None:
            self._set_thresholds(self._sample(items, available))
        else:
            self._measure_questions(self._sample(items, available))

    @property
    def prices_(self):
        """Price of asking each expert."""
        return self._consultation_prices() + self._roster.details["toll"]

    # Hooks of the base class.

    def _check_settings(self, y):
        super()._check_settings(y)
        error_costs(self.error_cost, self.classes_)
        self._consultation_prices()
        self._check_request()

    def _check_request(self):
        """Refuse two rules to stop, and a mean number of answers or bounds that nobody can meet."""
        given = [name for name in _STOPS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are given, but only one can say when to stop; drop the rest.")
        bounds, n_experts, budget = self._bounds(self._roster), self.n_experts_, self._budget()
        if not n_experts:
            return
        most = min(n_experts, self.max_answers or n_experts)
        if budget is not None and not 0 <= budget <= most:
            raise ValueError(
                f"answers={budget:g} per item, but {n_experts} experts and max_answers={self.max_answers} make 0 to "
                f"{most}; change one of them."
            )
        low, high = bounds.expert_lower[:-1].sum(), bounds.expert_upper[:-1].sum()
        if budget is None and low > most + 1e-9:
            raise ValueError(
                f"workload asks all {n_experts} experts together for {low:g} answers per item or more, but there can "
                f"be {most}; lower its bounds, or raise max_answers."
            )
        if budget is not None and not low - 1e-9 <= budget <= high + 1e-9:
            raise ValueError(
                f"answers={budget:g} per item, but workload lets all {n_experts} experts together give {low:g} to "
                f"{high:g}; change one of them."
            )

    def _check_team(self, rows, X_unlabeled, votes_unlabeled, classes):
        """Without the items that are held out for the bound on the error."""
        team = super()._check_team(rows, X_unlabeled, votes_unlabeled, classes)
        if self.target_accuracy is None or not self.n_experts_:
            return team
        n_wanted = round(self.validation_fraction * len(team.y))
        is_held = hold_out(len(team.y), n_wanted, self._draw_seed(), team.group_if_any)
        held, learnt = np.flatnonzero(is_held), np.flatnonzero(~is_held)
        n_held = len(held)
        needed = n_items_needed(1 - self.target_accuracy, self.confidence_level)
        if n_held < needed:
            raise ValueError(
                f"target_accuracy={self.target_accuracy} with confidence_level={self.confidence_level} takes {needed} "
                f"held-out items or more, but validation_fraction={self.validation_fraction} of {len(team.y)} labelled "
                f"items are {n_held}; give more labelled items, or lower one of the two."
            )
        if len(np.unique(team.y[learnt])) < len(np.unique(team.y)):
            raise ValueError(
                f"y holds classes that only the {n_held} held-out items for target_accuracy show; give more labelled "
                "items of each class, or lower validation_fraction."
            )
        self._held_out = team.items[held], team.y[held], team.votes[held]
        rest = np.append(learnt, np.arange(len(team.y), len(team.known)))  # items of unknown truth come last
        team = replace(
            team,
            items=team.items[learnt],
            y=team.y[learnt],
            y_codes=team.y_codes[learnt],
            votes=team.votes[learnt],
            annotated=team.annotated[rest],
            annotations=team.annotations[rest],
            known=team.known[rest],
            weights=None if team.weights is None else team.weights[rest],
            groups=None if team.groups is None else team.groups[rest],
            fold=None if team.fold is None else folds_left(team.fold[learnt]),
        )
        check_several_groups(team.group_if_any, " beside those that are held out for target_accuracy")
        self._roster = new_roster(team.votes, team.y_codes, team.weight)
        return team

    def _bounds(self, roster):
        workload = of_roster(self.workload, "workload", self._fit_experts, roster, 1)
        return share_bounds(None, workload, None, roster.experts, self.targets_ if hasattr(self, "targets_") else [])

    def _learn(self, team):
        self._single_targets(**_new_details(self.n_experts_), **self._learn_behaviours(team, self.cv))
        self._judge_classifier(team, self.cv)
        self.n_iter_, self.history_ = 0, []

    def _learn_answers(self, team):
        log_prior, items, self._promised = self._judged, team.items, self._request()
        super()._learn_answers(team)
        if team.unlabeled is not None:
            items, log_prior = team.unlabeled, None
        elif team.weights is not None:
            rows = rows_by_weight(team.weight)
            items, log_prior = items[rows], log_prior[rows]
        # tolls, which decide who is asked, are fixed before the held-out items are looked at
        self.confidence_threshold_ = np.inf if self._promised is None else self.target_accuracy
        sample = self._sample(items, None, log_prior)
        self._set_thresholds(sample)
        if self._promised is not None:
            self.confidence_threshold_ = self._bound_error(*vars(self).pop("_held_out"))
            self._measure_questions(sample)

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self._roster = self._roster.replace(details=_new_details(0))
        self._report_nobody()
        self.clusterer_ = None
        self.threshold_ = self.panel_threshold_ = self.confidence_threshold_ = np.inf
        self._promised = None

    def _scores(self, items):
        if self.n_experts_ == 0:
            return np.full((len(items), len(self.targets_) + 1), -np.inf)
        talk, rows = self._talk(items), np.arange(len(items))
        scores, start = np.full((len(items), len(self.targets_) + 1), -np.inf), 0
        for who, net, sure in talk.compare(rows):
            block = scores[start : start + len(net)]
            who = np.tile(np.arange(self.n_experts_), (len(net), 1)) if who is None else who
            np.put_along_axis(block, self._target_of(who), net, axis=1)
            block[:, -1] = np.where(sure, np.inf, talk.asker.threshold)
            start += len(net)
        return scores

    def _duel(self, items):
        if self.n_experts_ == 0:
            return super()._duel(items)
        talk = self._talk(items)
        who, net, sure = talk.best(np.arange(len(items)))
        return Duel(self._target_of(who), net, np.where(sure, np.inf, talk.asker.threshold))

    def _choose_experts(self, items, deferral, available, capacity):
        return self._next(items, None, available, capacity)

    def _answer_shape(self, items, votes):
        shape = self._shape_at(items)
        return None if shape is None else shape[votes.item]

    def _decision_cost(self):
        return error_costs(self.error_cost, self.classes_)

    def _describe(self, items, y_codes, votes):
        details = _new_details(votes.shape[1], first=self._roster.details["turn"].max(initial=-1) + 1)
        return details | dict.fromkeys(("toll", "panel_toll"), np.full(votes.shape[1], np.nan))  # see `_set_roster`

    def _set_roster(self, roster):
        accuracy = roster.correctness.mean(1)
        tolls = {name: _like_others(roster.details[name], accuracy) for name in ("toll", "panel_toll")}
        roster = roster.replace(details=roster.details | tolls)
        self._set_selection(plain_selection(roster.omega))
        self._roster, self.workload_ = roster, roster.details["load"]
        self.answers_ = float(self.workload_.sum())
        if self._bounds(roster).bind_experts:
            warn("workload: its bounds were met by another roster; call recalibrate.")

    # Thresholds.

    def _consultation_prices(self):
        cost = of_roster(self.consultation_cost, "consultation_cost", self._fit_experts, self._roster, 0)
        return expert_prices(cost, self.experts_)

    def _budget(self):
        """Mean number of answers that is requested, None where another rule stops."""
        if self.target_accuracy is not None or self.consultation_cost is not None:
            return None
        return _ONE_ANSWER if self.answers is None else float(self.answers)

    def _log_prior(self, items):
        return np.log(self._classifier_proba(items))

    def _asker(self, **changes):
        most = self.n_experts_ if self.max_answers is None else self.max_answers
        asker = Asker(
            model=self._roster.answer_model,
            exponents=self._exponents,
            cost=self._decision_cost(),
            price=self.prices_,
            turns=number_keys(self._roster.details["turn"]),
            threshold=vars(self).get("threshold_"),
            sure=self.confidence_threshold_,
            most=most,
            told=self._roster.all_answers,
        )
        return asker._replace(**changes)

    def _talk(self, items, available=None, kind=Talk, **changes):
        """`Talk` about items before any question."""
        return kind(self._asker(**changes), self._log_prior(items), self._keys(items), self._shape_at(items), available)

    def _sample(self, items, available, log_prior=None):
        """`Sample` of enough items to calibrate on: some of many, or a few several times.

        `log_prior` is that of the classifier, which is computed if it is None.
        """
        pairs = min(self.n_experts_, FEW) * len(self.classes_) ** 2
        n_enough, n_rows = int(np.clip(_ENOUGH_PAIRS // pairs, *_ENOUGH_ROWS)), len(items)
        rows = np.arange(n_rows)
        if n_rows > n_enough:
            rows = np.sort(np.random.default_rng(self._seed).choice(n_rows, n_enough, replace=False))
        items = items[rows]
        log_prior = self._log_prior(items) if log_prior is None else log_prior[rows]
        each = np.tile(np.arange(len(rows)), max(1, n_enough // (2 * len(rows))))
        time, shape = (np.arange(len(each)) // len(rows)).astype(np.uint64), self._shape_at(items)
        if available is not None and available.ndim == 2:
            available = available[rows][each]
        keys = self._keys(items)[each]
        return Sample(log_prior[each], keys, None if shape is None else shape[each], available, keys + time)

    def _draw_twice(self, sample, budget):
        """`Questions` about a sample without tolls, one after the other and as panels."""
        asker = self._asker(price=self._consultation_prices(), threshold=self._fixed_threshold())
        few = sample.at_most(_ROWS_OF_PANELS)
        return draw_questions(Talk(asker, *sample), budget), draw_questions(Panel(asker, *few), budget)

    def _set_thresholds(self, sample, drawn=None):
        """Set the thresholds and tolls, and what follows from them; the questions of `_draw_twice` may be given."""
        bounds, no_toll = self._bounds(self._roster), np.zeros(self.n_experts_)
        if bounds.bind_experts:
            lower, upper = bounds.expert_lower[:-1], bounds.expert_upper[:-1]
            toll, questions = self._bounded(Talk, sample, lower, upper, no_toll)
            few = sample.at_most(_ROWS_OF_PANELS)
            panel_toll, panels = (toll, questions) if self._promised else self._bounded(Panel, few, lower, upper, toll)
        else:
            toll = panel_toll = no_toll
            questions, panels = self._draw_twice(sample, self._budget()) if drawn is None else drawn
        self.threshold_, self.panel_threshold_ = self._threshold_of(questions), self._threshold_of(panels)
        tolls = {"toll": toll, "panel_toll": panel_toll}
        self._roster = self._roster.replace(details=self._roster.details | tolls)
        self._report_questions(questions, panels)

    def _measure_questions(self, sample):
        """Report what the present thresholds and tolls ask about a sample."""
        self._report_questions(draw_questions(Talk(self._asker(), *sample)))

    def _report_questions(self, questions, panels=None):
        """Set what follows from questions that were drawn about a sample, and warn of workloads out of their bounds."""
        bounds = self._bounds(self._roster)
        load = questions.loads(self.threshold_, self.n_experts_)
        self._roster = self._roster.replace(details=self._roster.details | {"load": load})
        self._report_shares(self._first_shares(questions, self.threshold_))
        self.workload_, self.answers_ = load, float(load.sum())
        loads = [load] if panels is None else [load, panels.loads(self.panel_threshold_, self.n_experts_)]
        violations = [
            np.maximum(some - bounds.expert_upper[:-1], bounds.expert_lower[:-1] - some).max(initial=0.0)
            for some in loads
        ]
        self.constraint_violation_ = float(violations[0])
        if max(violations) > _VIOLATION:
            warn(
                f"workload: the expected workloads are up to {max(violations):.3f} outside of their bounds, since no "
                "prices were found that keep them; loosen the bounds, or give more X_unlabeled."
            )
        budget = self._budget()
        if budget is not None and self.answers_ < budget - _VIOLATION:
            warn(
                f"answers={budget:g} per item, but the available experts give {self.answers_:.2f} at most; everybody "
                "who is available will be asked."
            )

    def _report_nobody(self):
        super()._report_nobody()
        self.constraint_violation_ = 0.0

    def _request(self):
        """What a promise depends on, None without `target_accuracy`."""
        if self.target_accuracy is None:
            return None
        return self.target_accuracy, self.confidence_level, self.max_answers, str(self.workload)

    def _bounded(self, kind, sample, lower, upper, start):
        """Tolls that keep the workloads of a kind of `Talk` about a sample within bounds, and the questions then."""
        price, threshold = self._consultation_prices(), self._fixed_threshold()
        never = np.where(upper > 0, 0.0, np.inf)

        def draw(toll):
            asker = self._asker(price=price + never + toll, threshold=threshold)
            return draw_questions(kind(asker, *sample), self._budget())

        def loads_of(toll):
            drawn = draw(toll)
            return drawn.loads(self._threshold_of(drawn), self.n_experts_)

        toll = find_prices(loads_of, lower, upper, start=np.where(np.isfinite(start), start, 0.0))
        return never + toll, draw(toll)

    def _tolls_for(self, sample, upper, start):
        """Tolls (M,) beside the prices by which nobody is asked about more than a share `upper` (M,) of a sample."""

        def loads_of(toll):
            asked = draw_questions(Talk(self._asker(price=self.prices_ + toll), *sample))
            return asked.loads(-np.inf, self.n_experts_)

        return find_prices(loads_of, np.zeros(len(upper)), upper, start=start)

    def _at_toll(self, toll):
        """A copy with tolls (M,) beside its own."""
        details = self._roster.details
        return self._copy_with(_roster=self._roster.replace(details=details | {"toll": details["toll"] + toll}))

    def _fixed_threshold(self):
        """Threshold that does not depend on a budget: any worth above the price, or any worth at all."""
        return 0.0 if self.target_accuracy is None else -np.inf

    def _threshold_of(self, questions):
        budget = self._budget()
        return self._fixed_threshold() if budget is None else questions.threshold(budget)

    def _bound_error(self, items, y, votes):
        """Confidence to stop at, by held-out items."""
        talk = self._talk(items, threshold=-np.inf, sure=np.inf)
        confidence, wrong = [], []
        for rows in hear_recorded(talk, votes.to_sparse()):
            proba, sure, missed = talk.proba(rows), np.full(len(talk), np.nan), np.zeros(len(talk), dtype=bool)
            sure[rows], missed[rows] = proba.max(1), self._decided(proba) != y[rows]
            confidence.append(sure)
            wrong.append(missed)
        error, level = 1 - self.target_accuracy, self.confidence_level
        threshold, n_wrong = confidence_bound(np.column_stack(confidence), np.column_stack(wrong), error, level)
        if threshold is None:
            raise ValueError(
                f"target_accuracy={self.target_accuracy} cannot be promised with confidence_level={level}: with all "
                f"recorded answers, {n_wrong} of {len(talk)} held-out items are labelled wrongly; lower one of the "
                "two, or give more labelled items or more answers to each."
            )
        return threshold


def _new_details(n_experts, first=0):
    """Details of a roster: what the workload adds to prices, expected workloads, and numbers of turns."""
    nothing = dict.fromkeys(("toll", "panel_toll", "load"), np.zeros(n_experts))
    return nothing | {"turn": first + np.arange(n_experts)}


def _like_others(toll, accuracy):
    """Tolls (M,) where NaN, those of newcomers, is replaced by the toll of the expert of the nearest accuracy (M,)."""
    old = np.flatnonzero(np.isfinite(toll))
    if not len(old):
        return np.where(np.isnan(toll), 0.0, toll)
    nearest = old[np.abs(accuracy[:, None] - accuracy[old]).argmin(1)]
    return np.where(np.isnan(toll), toll[nearest], toll)
