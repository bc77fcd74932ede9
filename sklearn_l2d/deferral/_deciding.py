"""Who decides an item: the scores of a fitted deferrer, whom it asks, and why."""

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._by_name import check_available, check_capacity
from .._items import Items, check_items, kind_of_items, made_features
from .._numerics._answers import expected_correctness
from .._numerics._assignment import assign_members
from .._numerics._matrices import dense_if_small, entries, row_blocks
from .._persistence import Estimator
from .._sklearn import not_for_scorers, warn
from ._classifier import expand, own_labels, own_proba, tempered_proba
from ._duel import Duel
from ._overflow import check_overflow, pass_on
from ._settings import share_bounds
from ._shift import Shift
from ._tables import answer_table, explanation_table, index_of, reasons_of, route_table

_MANY_PROBABILITIES = 2**24  # 128 MB of them


def preferences(scores):
    """Scores as probabilities; an infinite score has all of them."""
    certain = np.isposinf(scores)
    return softmax(np.where(certain.any(1, keepdims=True), np.where(certain, 0.0, -np.inf), scores), axis=1)


def _has_experts(deferrer):
    return deferrer.__sklearn_is_fitted__() and deferrer.n_experts_ > 0


class DecidingDeferrer(ClassifierMixin, Estimator):
    """First layer of `BaseDeferrer`: who decides an item, once the classifier, targets and roster are known."""

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
        return type(self).predict_expert_correctness is DecidingDeferrer.predict_expert_correctness

    # Hooks of a subclass.

    def _array_form(self):
        """Floating type of what a gate or net sees, and whether it takes more than two dimensions; None without one."""
        return None

    def _gate_features(self):
        """What gate and clusterer shall see: "X", "proba", a callable, or None for what `X` allows."""
        return getattr(self, "gate_features", "X")  # a net that is the classifier sees the items themselves

    def _scores(self, items):
        """Scores (n, n_targets + 1) of items, the classifier last; there is at least one target."""
        raise NotImplementedError

    def _bounds(self, roster):
        """`ShareBounds` of the targets and experts of a roster; by default there are none."""
        return share_bounds(None, None, None, roster.experts, self.targets_)

    def _target_right(self, proba):
        """Probability (n, n_targets + 1) that each target and, last, the classifier is right about items."""
        return expected_correctness(proba, self._selection @ self._correctness)

    def _names_for(self, target, who):
        """Names of experts `who`, as they decide items for targets."""
        return self.experts_[who]

    def _explain_scores(self, names, scores):
        """Columns of `explain_deferral` that follow from the scores of targets and classifier with these names."""
        return {f"preference of {n}": p for n, p in zip(names, preferences(scores).T, strict=True)}

    def _explain_bounds(self, names, items, chosen):
        """Columns of `explain_deferral` that say where a requested bound changed who of `names` is chosen."""
        return {}

    # Items.

    def _check_items(self, X, reset=False):
        if isinstance(X, Items):
            return X
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

    def _classifier_proba(self, items):
        """Temperature-scaled probabilities (n, C) of the classifier; those of the rows of `fit` may be out of fold."""
        if items.proba is not None:
            return items.proba
        proba = tempered_proba(self.classifier_, items.given, self.classes_, self.temperature_)
        if "proba" in self._sight:  # a net sees them, too
            items.proba = proba
        return proba

    # Scores.

    def _target_scores(self, items):
        """Scores (n, n_targets + 1) of items, the classifier last; the largest one decides."""
        if len(self.targets_) == 0:
            return np.zeros((len(items), 1))
        return self._masked(self._scores(items))

    def _masked(self, scores):
        """Mask the scores of targets without members, in place."""
        scores[:, :-1][:, ~self._live] = -np.inf  # a target without members
        scores[np.isneginf(scores).all(1), -1] = 0.0  # no other target can decide
        return scores

    def _duel(self, items):
        """`Duel` by the final scores of items, which are computed for some rows at a time."""
        blocks = items.blocks(len(self.targets_) + 1)
        return Duel.joined((Duel.of(self._target_scores(block)) for block in blocks), len(items))

    # Experts.

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

    def _check_available(self, available, items):
        return check_available(available, self.experts_, None if items is None else items.given)

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

    def _right_of_all(self, items, proba, target, people=slice(None)):
        """Probability (n, n_people) that each of some experts is right if they decide items (n, C) for targets."""
        if self._by_class:
            return proba @ self._correctness[people].T
        return self.predict_expert_correctness(items.given)[:, people]
