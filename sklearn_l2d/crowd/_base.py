"""What classifiers share that learn from votes, and, where it is a net that learns, how they are fitted."""

import math
import numbers
from functools import partial
from typing import ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._annotated_target import matched_target
from .._numerics._crowd_em import answer_matrix, count_answers_of, pooled_counts, vote_shares
from .._numerics._matrices import row_chunks
from .._persistence import Estimator
from .._sklearn import Interval, StrOptions, atomic_fit, take_rows
from .._torch._annotator_modules import AnnotatorNet, ConfusionModule
from .._torch._batches import AnswerRows
from .._torch._crowd_net import learnt_confusion
from .._torch._modules import ensemble_for
from .._torch._net import NET_CONSTRAINTS, build_net, check_net, predict_log_proba, train
from .._validation import answers_among, check_votes_and_truth, seated, votes_beside
from ..aggregation import DawidSkene

_POPULATION = 5.0  # answers that the average annotator counts as in the first row of everybody's matrix


def average_prior(counts):
    """Pseudo-counts (C, C) that hold the annotators of counts (M, C, C) to be alike until they differ."""
    average = pooled_counts(counts)
    return _POPULATION * average / average.sum(1, keepdims=True)


def steps(votes, batch_size):
    """How much faster than the net the matrix of each annotator (M,) moves: as if nobody else answered.

    Who gives less than an answer per batch does not move by more than one answer would.
    """
    n_batches = math.ceil(len(votes) / batch_size)
    return max(len(votes.item), 1) / np.maximum(votes.n_answers, n_batches)


class CrowdMixin:
    """What votes are like, for classifiers with `confusion_matrices_`."""

    def predict_annotation_proba(self, X):
        """Predict what each annotator would answer.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_annotators, n_classes)
            In the order of `annotators_` and `classes_`.
        """
        return np.einsum("nc,acl->nal", self.predict_proba(X), self.confusion_matrices_)

    def log_likelihood(self, X, annotations):
        """Mean log-probability of an answer: higher is better.

        It needs no truth, and tells on items that were held out which method and which parameters explain the answers
        best; see :func:`sklearn_l2d.model_selection.make_votes_scorer`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.
        annotations : array-like or DataFrame of shape (n_samples, n_annotators), or Votes
            Who answered what, one column per annotator in the order of `annotators_`; a DataFrame and votes are matched
            by name, may have fewer annotators, and newcomers are left out.

        Returns
        -------
        log_likelihood : float
            In nats per answer; answers that are no classes are left out.

        Raises
        ------
        ValueError
            If there is no answer, or `annotations` does not fit.
        """
        votes = self._votes(X, annotations)
        total = 0.0
        for rows in row_chunks(len(votes), len(self.annotators_) * len(self.classes_)):
            part = votes[rows]
            if len(part.item):
                proba = self.predict_annotation_proba(take_rows(X, rows))
                total += np.log(np.maximum(proba[part.item, part.annotator, part.label], 1e-12)).sum()
        return float(total / len(votes.item))

    def _votes(self, X, annotations):
        """`Votes` of known annotators for known classes, of items that are given beside them."""
        check_is_fitted(self)
        votes = votes_beside(X, annotations, self.classes_, self.missing_label, extend=True)
        votes = answers_among(votes, self.classes_, self.missing_label, unknown="left out")
        votes = seated(votes, annotations, self, "annotations")
        votes = votes[:, : len(self.annotators_)]  # of newcomers, nothing is known
        if not len(votes.item):
            raise ValueError("annotations holds no answer; pass some.")
        return votes


class BaseNetClassifier(ClassifierMixin, Estimator):
    """Predictions of a classifier whose net is `net_`."""

    def predict_log_proba(self, X):
        """Predict log-probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        return predict_log_proba(self.net_, self._check_array(X))

    def predict_proba(self, X):
        """Predict probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X):
        """Predict labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Most probable labels.
        """
        best = self.predict_log_proba(X).argmax(1)  # raises NotFittedError before `classes_` is read
        return self.classes_[best]

    @property
    def device_(self):
        """Device of the net."""
        return self.net_.device

    def _check_array(self, X, reset=False):
        return validate_data(self, X, reset=reset, dtype=self.dtype, allow_nd=self.module is not None)


class CrowdNetClassifier(CrowdMixin, BaseNetClassifier):
    """Base of the classifiers whose net learns from the votes of annotators.

    A subclass names its net (`_kind`), what the net has to know (`_context`), its torch module (`_make_module`) and
    what follows from a trained one (`_learnt`); and, where it is not confusion matrices that it learns, what annotators
    answer (`predict_annotation_proba`).
    """

    __metadata_request__fit: ClassVar = {"annotations": True}
    _parameter_constraints: ClassVar = {
        **NET_CONSTRAINTS,
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
    }
    _kind = AnnotatorNet

    def __init__(
        self,
        hidden_layer_sizes=(64,),
        *,
        module=None,
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        weight_decay=0.001,
        batch_size=64,
        max_epochs=60,
        missing_label=None,
        unlabeled_label=None,
        device="auto",
        dtype="float32",
        verbose=0,
        random_state=None,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.module = module
        self.optimizer = optimizer
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.device = device
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    @atomic_fit(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, annotations=None):
        """Fit the classifier to votes, to true labels, or to both.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items, best with columns of similar sizes (see `StandardScaler`).
        y : array-like of shape (n_samples,), default=None
            True labels, missing where the truth is unknown; an `AnnotatedTarget` also brings the annotations. None
            knows none of them.
        annotations : array-like or DataFrame of shape (n_samples, n_annotators), or Votes, default=None
            Who answered what, one column per annotator, with missing entries. None leaves `y` alone.

        Returns
        -------
        self : CrowdNetClassifier
            The fitted classifier. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If neither `y` nor `annotations` holds a label, there is one class only, or a table does not fit the others.
        FloatingPointError
            If the loss is not finite.
        """
        params = self.get_params(deep=False)
        check_net(params)
        y, annotations = matched_target(X, y, annotations)
        items = self._check_array(X, reset=True)
        votes, truth = check_votes_and_truth(self, X, y, annotations, len(items))
        module = self._make_module(ensemble_for(params, items, len(votes.classes)), votes, truth)
        net = self._train(params, module, self._context(votes), items, self._answers(votes), truth)
        self.classes_, self.annotators_ = votes.classes, votes.annotators
        for name, value in self._learnt(net, items, votes).items():
            setattr(self, name, value)

    def _train(self, params, module, context, items, *targets):
        """Train a net on items and what its loss needs of them, and return it; `context` are attributes of the net."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        net = build_net(self._kind, module, params, seed, **context)
        history = train(net, net.rows(items, *targets), self.max_epochs, seed=seed, verbose=self.verbose)
        self.n_iter_, self.history_, self.net_ = len(history), history, net
        return net

    def _make_module(self, build, votes, truth):
        """What makes the torch module when it is called; `build` makes the ensemble of the classifier."""
        raise NotImplementedError

    def _answers(self, votes):
        """Rows of the answers, as the net takes them."""
        return AnswerRows(votes)

    def _context(self, votes):
        """Attributes of the net."""
        return {}

    def _learnt(self, net, items, votes):
        """Fitted attributes of a trained net, at least `confusion_matrices_` (M, C, C)."""
        raise NotImplementedError


class ConfusionNetClassifier(CrowdNetClassifier):
    """Base of those whose net learns confusion matrices."""

    _parameter_constraints: ClassVar = {
        **CrowdNetClassifier._parameter_constraints,
        "init": [StrOptions({"majority", "dawid_skene"}), Interval(numbers.Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        hidden_layer_sizes=(64,),
        *,
        module=None,
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        weight_decay=0.001,
        batch_size=64,
        max_epochs=60,
        init="majority",
        missing_label=None,
        unlabeled_label=None,
        device="auto",
        dtype="float32",
        verbose=0,
        random_state=None,
    ):
        super().__init__(
            hidden_layer_sizes,
            module=module,
            optimizer=optimizer,
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
            batch_size=batch_size,
            max_epochs=max_epochs,
            missing_label=missing_label,
            unlabeled_label=unlabeled_label,
            device=device,
            dtype=dtype,
            verbose=verbose,
            random_state=random_state,
        )
        self.init = init

    def _start(self, votes, truth):
        """First confusion matrices (M, C, C), as `init` has them."""
        n_annotators, n_classes = len(votes.annotators), len(votes.classes)
        if not isinstance(self.init, str):
            wrong = np.full((n_classes, n_classes), (1 - self.init) / (n_classes - 1))
            np.fill_diagonal(wrong, self.init)
            return np.broadcast_to(wrong, (n_annotators, n_classes, n_classes)).copy()
        if self.init == "dawid_skene" and len(votes.item):
            y = np.append(votes.classes.astype(object), None)[truth]
            return DawidSkene().fit(votes, y).confusion_matrices_
        allowed = (truth < 0)[:, None] | (truth[:, None] == np.arange(n_classes))
        counts = count_answers_of(answer_matrix(votes), vote_shares(votes, allowed), n_annotators)
        rows = counts + average_prior(counts)
        return rows / rows.sum(2, keepdims=True)

    def _make_module(self, build, votes, truth):
        """What makes the torch module when it is called; `build` makes the ensemble of the classifier."""
        return partial(ConfusionModule, build, self._start(votes, truth), steps(votes, self.batch_size))

    def _learnt(self, net, items, votes):
        return {"confusion_matrices_": learnt_confusion(net)}
