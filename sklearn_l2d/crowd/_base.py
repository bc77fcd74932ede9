"""What classifiers that train a net share: predictions; and, for those that learn from votes, how they are fitted."""

from functools import partial
from typing import ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._annotated_target import matched_target
from .._encoding import Votes, label_array
from .._persistence import Estimator
from .._sklearn import atomic_fit
from .._torch._batches import AnswerRows
from .._torch._crowd_net import CrowdModule, CrowdNet
from .._torch._modules import ensemble_for
from .._torch._net import NET_CONSTRAINTS, build_net, check_net, predict_log_proba, train
from .._validation import check_truth, votes_beside
from ..aggregation import DawidSkene


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


class CrowdNetClassifier(BaseNetClassifier):
    """Base of the classifiers whose net learns from the votes of annotators.

    A subclass names its net (`_kind`), what the net has to know (`_context`), and, where it is not confusion matrices
    that it learns, its torch module (`_module`, a class) and what follows from it (`_learnt`).
    """

    __metadata_request__fit: ClassVar = {"annotations": True}
    _parameter_constraints: ClassVar = {
        **NET_CONSTRAINTS,
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
    }
    _kind, _module = CrowdNet, CrowdModule

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
        votes, truth = self._read(items, X, y, annotations)
        start, answers = self._start(votes, truth), AnswerRows(votes)
        self._train(params, votes.classes, votes.annotators, start, self._context(votes), items, answers, truth)

    def _train(self, params, classes, annotators, start, context, items, *targets):
        """Train the net and set what was learnt; `start` are the first confusion matrices."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        module = partial(self._module, ensemble_for(params, items, len(classes)), start)
        net = build_net(self._kind, module, params, seed, **context)
        history = train(net, net.rows(items, *targets), self.max_epochs, seed=seed, verbose=self.verbose)
        self.confusion_matrices_ = self._learnt(net)
        self.classes_, self.annotators_ = classes, annotators
        self.n_iter_, self.history_, self.net_ = len(history), history, net

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

    def _read(self, items, X, y, annotations):
        """`Votes` on the items, and the codes (n,) of their true classes, -1 where they are unknown."""
        labels, known = self._known_truth(y, len(items), annotations)
        classes = np.unique(labels)
        if annotations is None:
            votes = Votes([], [], [], len(items), classes, [])
        else:
            votes = votes_beside(X, annotations, classes if len(classes) else None, self.missing_label, extend=True)
        return votes, truth_codes(labels, known, votes.classes)

    def _known_truth(self, y, n_items, votes):
        """The known labels, and a mask (n,) of their items; `y` may be None where there are votes."""
        if y is None and votes is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None, and there are no "
                "annotations; pass one or both."
            )
        if y is None:
            return np.empty(0), np.zeros(n_items, dtype=bool)
        return check_truth(label_array(y), n_items, self.unlabeled_label)

    def _start(self, votes, truth):
        """First confusion matrices (M, C, C): those of Dawid and Skene."""
        if not len(votes.item):
            return np.full((len(votes.annotators), len(votes.classes), len(votes.classes)), 1 / len(votes.classes))
        y = np.append(votes.classes.astype(object), None)[truth]
        return DawidSkene().fit(votes, y).confusion_matrices_

    def _context(self, votes):
        """Attributes of the net."""
        return {}

    def _learnt(self, net):
        """Confusion matrices (M, C, C) of a trained net."""
        return net.module_.confusion().exp().detach().cpu().double().numpy()


def truth_codes(labels, known, classes):
    """Codes (n,) of the true classes, -1 where `known` (n,) says that they are unknown; refused for a single class."""
    if len(classes) < 2:
        raise ValueError(
            f"y and annotations hold {len(classes)} class(es), {classes.tolist()}; a classifier needs at least two."
        )
    truth = np.full(len(known), -1, dtype=np.int64)
    truth[known] = np.searchsorted(classes, labels)
    return truth
