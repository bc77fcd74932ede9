"""The default classifier of the deferrers: a small net behind scikit-learn's interface."""

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._torch._batches import Rows
from .._torch._net import train
from .._torch._seeding import resolve_device, seeded
from .._torch._target_net import build_target_net, predict_log_proba


class NetClassifier(ClassifierMixin, BaseEstimator):
    """Multilayer perceptron trained by stochastic gradient descent on the cross-entropy.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(64,)
        Hidden units.
    lr, momentum, weight_decay : float, default=0.05, 0.9, 0.001
        Of stochastic gradient descent with a cosine schedule.
    batch_size, max_epochs : int, default=64, 60
        Rows per step and passes over the rows.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the loss.
    device : str, default="auto"
        "auto" takes CUDA when there is one.
    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_iter_ : int
        Epochs run.
    net_ : object
        The trained net.
    """

    def __init__(
        self,
        hidden_layer_sizes=(64,),
        *,
        lr=0.05,
        momentum=0.9,
        weight_decay=0.001,
        batch_size=64,
        max_epochs=60,
        class_weight=None,
        device="auto",
        dtype="float32",
        random_state=None,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.class_weight = class_weight
        self.device = device
        self.dtype = dtype
        self.random_state = random_state

    def fit(self, X, y):
        """Train on labelled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        self : NetClassifier
        """
        X, y = validate_data(self, X, y, dtype=self.dtype)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y holds one class only, {classes[0]!r}; a classifier needs at least two.")
        targets = np.eye(len(classes))[codes] * compute_sample_weight(self.class_weight, y)[:, None]
        seed, device = int(check_random_state(self.random_state).randint(2**31 - 1)), resolve_device(self.device)
        dtype = getattr(torch, self.dtype)
        with seeded(seed, device):
            net = build_target_net(
                None,
                X.shape[1],
                len(classes),
                self.hidden_layer_sizes,
                dtype,
                optimizer="sgd",
                lr=self.lr,
                momentum=self.momentum,
                weight_decay=self.weight_decay,
                batch_size=self.batch_size,
                device=device,
            )
        history = train(net, Rows(X, targets, dtype=dtype, device=device), self.max_epochs, seed=seed)
        self.classes_, self.n_iter_, self.net_ = classes, len(history), net
        return self

    def predict_log_proba(self, X):
        """Log-probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return predict_log_proba(self.net_, validate_data(self, X, reset=False, dtype=self.dtype))

    def predict_proba(self, X):
        """Probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X):
        """Most probable labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        best = self.predict_log_proba(X).argmax(1)
        return self.classes_[best]
