"""What every deferrer does before it learns: checks of the labelled team, and the case without experts."""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from .._encoding import check_row_count, is_frame, some
from .._numerics._answers import prior_strengths, tally_answers
from .._sklearn import fit_context
from .._torch._modules import check_layers, check_module
from .._torch._seeding import resolve_device
from ..annotations import encode_annotations, split_target
from ..crowd import NetClassifier
from ._bounds import live_shares, plain_selection, share_bounds
from ._classifier import fit_classifier, judge_classifier, team_classes


class Team(NamedTuple):
    """Checked rows that a deferrer learns from.

    Attributes
    ----------
    X : array-like of n rows
        Items as they came, for the classifier: a DataFrame keeps its columns.
    items : ndarray of shape (n, ...)
        The same, checked and in the floating type of the estimator.
    y : ndarray of shape (n,)
        True labels.
    y_codes : ndarray of int of shape (n,)
        Their positions in `classes_`.
    codes : ndarray of int of shape (n, n_experts)
        Encoded annotations, -1 where missing.
    unlabeled : ndarray or None
        Checked items without labels.
    """

    X: np.ndarray
    items: np.ndarray
    y: np.ndarray
    y_codes: np.ndarray
    codes: np.ndarray
    unlabeled: np.ndarray


class FittingMixin:
    """The `fit` of a deferrer; a subclass learns in `_learn`.

    Every change is made on a copy, so that a failure leaves the estimator as it was. `_silence` says what becomes of
    experts without any annotation.
    """

    _silence = "what they would answer is taken from everybody's"

    def set_params(self, **params):
        """Set parameters of the deferrer and, by ``classifier__x`` for instance, of its parts.

        Parameters
        ----------
        **params : dict
            Names and values.

        Returns
        -------
        self : object
            The estimator itself.
        """
        for part, example in (("clusterer", "AnnotatorLDA()"), ("classifier", "LogisticRegression()")):
            nested = [name for name in params if name.startswith(part + "__")]
            if nested and params.get(part, getattr(self, part, "no such parameter")) is None:
                raise ValueError(
                    f"{nested[0]} cannot be set while {part} is None; give one first, for instance {part}={example}."
                )
        return super().set_params(**params)

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, annotations=None, X_unlabeled=None):
        """Fit everything that decides.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Labelled items.
        y : array-like of shape (n_samples,)
            True labels of all rows; an `AnnotatedTarget` brings its annotations along. Rows of unknown truth belong
            into `X_unlabeled`: -1 is a class here, for which missing answers marked -1 would be votes.
        annotations : array-like or DataFrame of shape (n_samples, n_experts), default=None
            What the experts answered, with missing entries. None means that there are no experts: the classifier
            decides everything.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Further items. Shares are calibrated on them where bounds are set, and reported for them.

        Returns
        -------
        self : object
            The fitted deferrer.

        Raises
        ------
        ValueError
            If the data or the bounds are not as described, or the bounds cannot be met.
        """
        y, annotations = split_target(y, annotations)
        return self._fit_draft(X, y, annotations, X_unlabeled)

    def _fit_draft(self, X, y, annotations, X_unlabeled, classes=()):
        draft = self._copy_with()
        draft._fit(X, y, annotations, X_unlabeled, classes)
        return self._take_over(draft)

    def _take_over(self, draft):
        self.__dict__ = vars(draft)
        return self

    def _fit(self, X, y, annotations, X_unlabeled, classes):
        team = self._check_team(X, y, annotations, X_unlabeled, classes)
        self._check_settings()
        self._seed = self._draw_seed()
        self._tally(team)
        if len(self.experts_):
            self._learn(team)
        else:
            self._fit_nobody(team)

    def _draw_seed(self):
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _check_settings(self):
        """Refuse what must fail, before any work; `classes_` and `experts_` are known."""

    def _learn(self, team):
        """Learn from a team with experts."""
        raise NotImplementedError

    def _check_team(self, X, y, annotations, X_unlabeled, classes=()):
        """Checked `Team`; sets `classes_`, `experts_` and what scikit-learn knows about columns."""
        module = getattr(self, "module", None)
        check_module(module)
        items = validate_data(self, X, dtype=getattr(self, "dtype", "float64"), allow_nd=module is not None)
        y = column_or_1d(y, warn=True)
        check_consistent_length(items, y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        classifier, clusterer = getattr(self, "classifier", None), getattr(self, "clusterer", None)
        if len(np.unique(y)) < 2 and not isinstance(classifier, FrozenEstimator):
            raise ValueError(f"y holds one class only, {y[0]!r}; a classifier needs at least two.")
        self.classes_ = team_classes(y, classes=classes, classifier=classifier, clusterer=clusterer)
        if annotations is not None:
            self.classes_ = with_answers(self.classes_, annotations, self.missing_label)
        self._check_nets(y)
        codes, self.experts_ = self._check_experts(annotations, len(items))
        self._fit_experts = self.experts_
        unlabeled = None if X_unlabeled is None else self._check_unlabeled(X_unlabeled)
        X = X if is_frame(X) else np.asarray(X)
        return Team(X, items, y, np.searchsorted(self.classes_, y), codes, unlabeled)

    def _check_nets(self, y):
        """Refuse settings of nets that would come to light only when other parts have been fitted."""
        for name in ("hidden_layer_sizes", "answer_hidden_layer_sizes"):
            check_layers(getattr(self, name, ()), name)
        resolve_device(getattr(self, "device", "cpu"))
        class_weight = getattr(self, "class_weight", None)
        weight = compute_sample_weight(class_weight, y)
        if weight.min() < 0 or weight.max() == 0:
            raise ValueError(
                f"class_weight={class_weight!r} is negative for a class in y, or zero for all; raise it above 0."
            )

    def _check_experts(self, annotations, n_rows):
        """Encoded annotations (n, n_experts) and the experts' names; none without annotations."""
        if annotations is None:
            return np.empty((n_rows, 0), dtype=np.int8), np.empty(0, dtype=object)
        codes, _, experts = encode_annotations(annotations, classes=self.classes_, missing_label=self.missing_label)
        check_row_count(codes, n_rows, "annotations")
        silent = experts[(codes < 0).all(0)]
        if len(silent) and len(silent) == len(experts):
            raise ValueError("annotations are all missing; pass some, or None to go without experts.")
        if len(silent):
            warnings.warn(
                f"the experts {list(silent)} have no annotation: {self._silence}.",
                stacklevel=7,
            )
        return codes, experts

    def _tally(self, team):
        """Remember how often each expert was right on each class."""
        self._right, self._seen = tally_answers(team.codes, np.eye(len(self.classes_))[team.y_codes])
        self._strengths = prior_strengths(self._right, self._seen)

    def _fit_classifier(self, team):
        """Fit the classifier, or take a frozen one; returns the unfitted one."""
        classifier = self.classifier
        if classifier is None:
            options = {name: getattr(self, name) for name in ("class_weight", "device") if hasattr(self, name)}
            classifier = NetClassifier(**options)
        self.classifier_, self.temperature_ = fit_classifier(classifier, team.X, team.y, self._seed), 1.0
        return classifier

    def _judge_classifier(self, team):
        """Fit the classifier; its honest, tempered probabilities (n, C) on the rows of the team."""
        classifier = self._fit_classifier(team)
        proba, self.temperature_ = judge_classifier(
            classifier, self.classifier_, team.X, team.y, self.classes_, self.cv, self._seed
        )
        return proba

    def _fit_nobody(self, team):
        """Without experts there is nobody to defer to."""
        self._fit_classifier(team)
        self._set_targets(self.experts_, np.empty((0, 0)))
        self.n_iter_, self.history_ = 0, []
        self._report_shares(np.ones(1))

    def _bounds(self):
        """Bounds on the shares that the estimator was given: none here."""
        return share_bounds(None, None, None, self.experts_, self.targets_)

    def _set_targets(self, targets, omega):
        """Set the targets and the memberships (n_experts, n_targets) of the experts."""
        self.targets_, self.omega_ = targets, omega
        self.selection_ = plain_selection(omega)

    def _single_targets(self):
        """Every expert is a target."""
        self._set_targets(self.experts_.copy(), np.eye(len(self.experts_)))

    def _measure_shares(self, team, scores=None):
        """Report hard shares on the unlabelled items; without any on the labelled ones, whose `scores` may be known."""
        if team.unlabeled is not None or scores is None:
            scores = self._target_scores(team.items if team.unlabeled is None else team.unlabeled)
        chosen = self._chosen(scores)
        self._report_shares(
            np.bincount(chosen % (len(self.targets_) + 1), minlength=len(self.targets_) + 1) / len(chosen)
        )

    def _report_shares(self, shares):
        """Set what follows from the hard shares (n_targets + 1,) of the targets, the classifier last."""
        self.target_shares_, self.coverage_ = shares, float(shares[-1])
        self.workload_ = live_shares(shares, self.selection_)[:-1] @ self.selection_


def with_answers(classes, annotations, missing_label):
    """The classes and, with a warning, those that only experts have named: few labelled rows rarely show all."""
    named = encode_annotations(annotations, missing_label=missing_label).classes
    if len(named) == 0 or isinstance(named[0], str) != isinstance(classes[0], str):
        return classes  # nothing new, or of another kind, which is refused when the annotations are encoded
    new = np.setdiff1d(named, classes)
    if len(new) == 0:
        return classes
    warnings.warn(
        f"annotations hold labels that y lacks, {some(new.tolist())}; they are taken as classes. If they are "
        "misspelt, correct them.",
        stacklevel=7,
    )
    if new.dtype.kind == "f" and not (new % 1).any():
        new = new.astype(classes.dtype)  # whole numbers beside NaN
    return np.union1d(classes, new)
