"""What all aggregators share: votes in, labels and probabilities out, annotators by name."""

from typing import ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from .._encoding import label_array, some
from .._numerics._crowd_em import answer_matrix, log_joint_of, posterior_of, safe_log, tied_classes
from .._numerics._keyed import keyed_uniforms, number_keys
from .._persistence import Estimator
from .._rows import same_rows
from .._sklearn import StrOptions, atomic_fit, check_weights, transform_output, warn
from .._validation import answers_among, check_truth, seated
from .._votes import Votes, flat_index, make_votes


class BaseAggregator(TransformerMixin, Estimator):
    """The surface of all aggregators.

    A subclass says in `_learn` how annotators answer and how frequent the classes are. Where its labels follow from
    confusion matrices, that is all; else it has a `_log_joint`, or a `_proba`, of its own.
    """

    _parameter_constraints: ClassVar = {
        "ties": [StrOptions({"lowest", "random"})],
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
        "random_state": ["random_state"],
    }

    @atomic_fit(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Learn how the annotators answer.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            Who answered what: labels, one column per annotator, with missing entries; or what
            :func:`sklearn_l2d.annotations.encode_votes` makes of long tables, sparse matrices and files.
        y : array-like of shape (n_items,), default=None
            True labels, missing where the truth is unknown. None knows none of them.
        sample_weight : array-like of shape (n_items,), default=None
            Weights of the items. None gives each of them weight 1.

        Returns
        -------
        self : BaseAggregator
            The fitted estimator. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If `X` is no table of labels of one type, holds no answer or no annotator, or `y` or `sample_weight` does
            not fit it.
        """
        votes, allowed, weight = self._read(X, y, sample_weight)
        self._set(votes, self._learn(votes, allowed, weight))

    def fit_predict(self, X, y=None, sample_weight=None):
        """Learn how the annotators answer, and label the same items.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            As in `fit`.
        y : array-like of shape (n_items,), default=None
            As in `fit`.
        sample_weight : array-like of shape (n_items,), default=None
            As in `fit`.

        Returns
        -------
        labels : ndarray of shape (n_items,)
            As returned by `predict`.
        """
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    def predict(self, X):
        """Most probable label of every item.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            Who answered what. What has names is matched by them: annotators may be absent, and new ones answer as the
            prior has it. Without names, the columns are those of `fit`.

        Returns
        -------
        labels : ndarray of shape (n_items,)
            Members of `classes_`.
        """
        check_is_fitted(self)
        votes = self._votes(X)
        tied = tied_classes(self._proba(votes))
        code = tied.argmax(1)
        if self.ties == "random":
            several = np.flatnonzero(tied.sum(1) > 1)
            draws = np.where(tied[several], self._draws(votes)[several], -1.0)
            code[several] = draws.argmax(1)
        return self.classes_[code]

    def predict_proba(self, X):
        """Probabilities of the labels.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            As in `predict`.

        Returns
        -------
        proba : ndarray of shape (n_items, n_classes)
            In the order of `classes_`; rows sum to 1. An item without votes has the probabilities of the classes.
        """
        check_is_fitted(self)
        return self._proba(self._votes(X))

    def transform(self, X):
        """Probabilities of the labels, as features of a further step.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            As in `predict`.

        Returns
        -------
        proba : ndarray or DataFrame of shape (n_items, n_classes)
            As returned by `predict_proba`.
        """
        check_is_fitted(self)
        votes = self._votes(X)
        proba = self._proba(votes)
        if transform_output(self) != "pandas":
            return proba
        import pandas as pd

        return pd.DataFrame(proba, index=votes.tasks, columns=self.get_feature_names_out())

    def score(self, X, y=None, sample_weight=None):
        """Log-likelihood of the answers, and of the truth where it is known: higher is better.

        The sum over items, in nats, so that the scores of parts of the items add up. It needs no truth, and tells on
        items that were held out which prior, model or method explains the answers best.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_items, n_annotators), or Votes
            As in `predict`.
        y : array-like of shape (n_items,), default=None
            As in `fit`.
        sample_weight : array-like of shape (n_items,), default=None
            As in `fit`.

        Returns
        -------
        score : float
            Log-likelihood.
        """
        check_is_fitted(self)
        votes = self._votes(X)
        weight = item_weights(votes, sample_weight)
        log_joint = self._log_joint(votes)
        allowed = allowed_classes(*self._truth(votes, y), self.classes_)
        return float(weight @ posterior_of(log_joint, allowed)[1])

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: the classes.

        Parameters
        ----------
        input_features : object, default=None
            Ignored.

        Returns
        -------
        names : ndarray of shape (n_classes,), dtype=object
            Class labels as text.
        """
        check_is_fitted(self)
        return np.array([str(label) for label in self.classes_.tolist()], dtype=object)

    @property
    def annotator_accuracy_(self):
        """Probability that an annotator is right on an item, ndarray of shape (n_annotators,)."""
        check_is_fitted(self)
        return np.einsum("acc,c->a", self.confusion_matrices_, self.class_prior_)

    def _learn(self, votes, allowed, weight):
        """Learn from votes on n items.

        Parameters
        ----------
        votes : Votes
            Answers of M annotators, with C classes.
        allowed : ndarray of bool of shape (n, C)
            Classes that an item may have: one where its truth is known.
        weight : ndarray of shape (n,)
            Weights of the items.

        Returns
        -------
        fitted : dict
            Attributes by name, at least those that `_learnt` makes.
        """
        raise NotImplementedError

    def _log_joint(self, votes):
        """Log-probabilities (n, C) of the truth together with all answers to an item."""
        n_new = len(votes.annotators) - len(self.annotators_)
        confusion = self.confusion_matrices_
        if n_new:
            confusion = np.concatenate(
                [confusion, np.broadcast_to(self.prior_confusion_, (n_new, *confusion.shape[1:]))]
            )
        return log_joint_of(answer_matrix(votes), safe_log(confusion), safe_log(self.class_prior_))

    def _proba(self, votes):
        """Probabilities (n, C) of the labels."""
        return posterior_of(self._log_joint(votes))[0]

    def _read(self, X, y, sample_weight, classes=None):
        """`Votes` of a fit, the classes (n, C) that their items may have, and weights (n,) of these."""
        votes = make_votes(X, classes, self.missing_label)
        if not len(votes.annotators):
            raise ValueError(
                f"X has 0 feature(s) (shape={votes.shape}) while a minimum of 1 is required; pass one column per "
                "annotator."
            )
        if not len(votes.item):
            raise ValueError(f"X holds no answer (shape={votes.shape}, n_samples={len(votes)}); pass some.")
        labels, known = self._truth(votes, y)
        weight = item_weights(votes, sample_weight)
        if not weight.all():  # items of weight 0 are left out, and with them the classes that only they show
            counted = weight > 0
            if votes.tasks is None:
                answers = votes.item, votes.annotator, votes.label
                votes = Votes(*answers, len(votes), votes.classes, votes.annotators, np.arange(len(votes)))
            votes = votes[counted]
            labels, known, weight = labels[counted[known]], known[counted], weight[counted]
            if classes is None and not isinstance(X, Votes):
                votes = votes.among(votes.classes[np.unique(votes.label)])
        if len(labels) and classes is None:
            if (labels.dtype.kind in "OUST") != (votes.classes.dtype.kind in "OUST"):
                true, answered = labels.tolist()[0], votes.classes.tolist()[0]
                raise ValueError(f"y holds labels like {true!r}, but X answers like {answered!r}; use the same labels.")
            votes = votes.recode(np.union1d(votes.classes, labels))  # nobody need have voted for a class
        return votes, allowed_classes(labels, known, votes.classes), weight

    def _truth(self, votes, y):
        """Known true labels, and a mask (n_items,) of the items of votes, or rows of counts, they belong to."""
        if y is None:
            return np.empty(0), np.zeros(len(votes), dtype=bool)
        return check_truth(label_array(_beside(votes, y=y)), len(votes), self.unlabeled_label)

    def _set(self, votes, learnt):
        """Set all fitted attributes, those of every aggregator and those that were learnt."""
        silent = np.flatnonzero(np.diff(votes.starts) == 0)
        self.classes_, self.annotators_ = votes.classes, votes.annotators
        self.n_features_in_ = len(votes.annotators)
        self.items_without_votes_ = silent if votes.tasks is None else votes.tasks[silent]
        for name, value in learnt.items():
            setattr(self, name, value)

    def _votes(self, X):
        """`Votes` of the annotators of the fit, who come first, and of new ones; of known classes."""
        votes = answers_among(X, self.classes_, self.missing_label, unknown="left out")
        return seated(votes, X, self)

    def _draws(self, votes):
        """Random numbers (n, C) that belong to an item's answers, so that a row alone gets what it gets in a batch."""
        seed = self.random_state if isinstance(self.random_state, int | np.integer) else 0
        keys = self._item_keys(votes) + number_keys(seed)
        return keyed_uniforms(keys[:, None], number_keys(np.arange(len(self.classes_))))

    def _item_keys(self, votes):
        """Keys (n,) of the answers to the items."""
        keys = np.zeros(len(votes), dtype=np.uint64)
        np.add.at(keys, votes.item, number_keys(votes.annotator.astype(np.int64) * len(self.classes_) + votes.label))
        return keys

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        tags.classifier_tags = ClassifierTags()  # what has predict_proba is asked for them
        return tags


def item_weights(votes, sample_weight):
    """Weights (n,) of the items of votes, or rows of counts, in their order."""
    return check_weights(_beside(votes, sample_weight=sample_weight), np.empty(len(votes)))


def _beside(votes, **table):
    """A table, by its name, in the order of the items of votes, or of counts whose items may have names."""
    if isinstance(votes, Votes) or votes.tasks is None:
        return same_rows(X=votes, **table)[1]
    import pandas as pd

    return same_rows(X=pd.Series(np.zeros(len(votes)), index=flat_index(votes.tasks)), **table)[1]


def learnt(confusion, prior_confusion, class_prior, history, converged):
    """Attributes that every aggregator has, as `_learn` returns them.

    Parameters
    ----------
    confusion : ndarray of shape (M, C, C)
        Probability of an answer (last axis) given the truth, of every annotator.
    prior_confusion : ndarray of shape (C, C)
        Of an annotator without votes.
    class_prior : ndarray of shape (C,)
        Probabilities of the classes.
    history : list of float
        Objective of every iteration.
    converged : bool
        Whether they ended before `max_iter`.
    """
    return {
        "confusion_matrices_": confusion,
        "prior_confusion_": prior_confusion,
        "class_prior_": class_prior,
        "n_iter_": len(history),
        "history_": np.array(history, dtype=float),
        "converged_": converged,
    }


def warn_unless(converged, max_iter):
    """Warn that the iterations of a fit ended too early."""
    if not converged:
        warn(f"no convergence after max_iter={max_iter} iterations; raise max_iter or tol.", ConvergenceWarning)


def check_distribution(proba, n_classes, name):
    """Positive probabilities (C,) that sum to 1, one for every class; `name` is that of the parameter."""
    try:
        values = np.asarray(proba, dtype=float)
    except (TypeError, ValueError):  # no numbers, or rows of unlike lengths
        values = np.empty(0)
    if values.shape != (n_classes,) or not (values > 0).all() or abs(values.sum() - 1) > 1e-6:
        raise ValueError(
            f"{name}={proba!r} must hold {n_classes} positive probabilities that sum to 1, one per class; correct it."
        )
    return values


def allowed_classes(labels, known, classes):
    """Classes (n, C) that items may have: all, or one where the truth is known.

    Parameters
    ----------
    labels : ndarray of shape (n_known,)
        Known true labels.
    known : ndarray of bool of shape (n,)
        Which items they belong to.
    classes : ndarray of shape (C,)
        Sorted classes.
    """
    allowed = np.ones((len(known), len(classes)), dtype=bool)
    if len(labels):
        unknown = np.setdiff1d(labels, classes)
        if len(unknown):
            raise ValueError(
                f"y holds {some(unknown.tolist())}, which are no classes; the classes are {some(classes.tolist())}. "
                "Correct them, or fit with them."
            )
        allowed[known] = labels[:, None] == classes
    return allowed
