"""A small neural net with scikit-learn's interface, the default classifier of the deferrers."""

from functools import partial
from typing import ClassVar

import numpy as np
from sklearn.utils import check_random_state

from .._rows import same_rows
from .._sklearn import HasMethods, StrOptions, atomic_fit
from .._torch._modules import Single, ensemble_for
from .._torch._net import NET_CONSTRAINTS, TargetNet, build_net, check_net, train
from .._validation import check_labels, row_weights, weighted_rows
from ._base import BaseNetClassifier


class NetClassifier(BaseNetClassifier):
    """Multilayer perceptron or torch module, trained by gradient descent on the cross-entropy.

    This is the default classifier of the deferrers. It is fast on few labelled items.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(64,)
        Hidden units of the perceptron.

    module : callable, default=None
        Class or function called with `n_outputs` that returns a torch module from batches of `X` to logits;
        `functools.partial` sets its other arguments. `X` may then have any number of dimensions. None is a multilayer
        perceptron.

    optimizer : {"sgd", "adam"} or callable, default="sgd"
        Name, or a class with the signature of torch's optimisers.

    lr : float, default=0.05
        Learning rate at the start of the cosine schedule.

    momentum : float, default=0.9
        Momentum of "sgd".

    weight_decay : float, default=0.001
        L2 penalty of the optimiser.

    batch_size : int, default=64
        Items per training step.

    max_epochs : int, default=60
        Number of epochs.

    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes in the loss.

    device : str, default="auto"
        Device of the training: "auto", "cpu", "cuda", "cuda:1", and so on. "auto" is CUDA if there is a CUDA device,
        else the CPU.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights, the shuffling and anything random in a `module`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    n_iter_ : int
        Number of epochs of the net.
    history_ : list of dict
        Phase, loss and duration (seconds) of every epoch.
    net_ : object
        The trained net; its interface is private.
    device_ : str
        Device of the net.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    sklearn.neural_network.MLPClassifier : Scikit-learn's multilayer perceptron, on the CPU.
    sklearn_l2d.deferral.ClusterDeferral : Takes any classifier.

    Notes
    -----
    The probabilities are those of the net. Deferrers calibrate them by out-of-fold predictions and one temperature;
    otherwise, see `sklearn.calibration.CalibratedClassifierCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_l2d.crowd import NetClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> net = NetClassifier(max_epochs=20, random_state=0).fit(X[:1000] / 16, y[:1000])
    >>> net.score(X[1000:] / 16, y[1000:]) > 0.9
    True
    """

    _parameter_constraints: ClassVar = {
        **NET_CONSTRAINTS,
        "class_weight": [dict, HasMethods(["items"]), StrOptions({"balanced"}), None],
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
        class_weight=None,
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
        self.class_weight = class_weight
        self.device = device
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    @atomic_fit(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the classifier to labelled items.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_samples, ...) with a `module`
            Items, best with columns of similar sizes (see `StandardScaler`).
        y : array-like of shape (n_samples,)
            True labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the items in the loss. Items of weight 0 are left out.

        Returns
        -------
        self : NetClassifier
            The fitted classifier. If fitting fails, it stays as it was before.

        Raises
        ------
        ValueError
            If `X` or `y` is not as described.
        FloatingPointError
            If the loss is not finite.
        """
        params = self.get_params(deep=False)
        check_net(params)
        _, y = same_rows(X=X, y=y)
        X, y, _, weights, *_ = weighted_rows(X, y, None, sample_weight)
        X = self._check_array(X, reset=True)
        if y is None:
            raise ValueError("NetClassifier requires y to be passed, but the target y is None.")
        y = check_labels(y, len(X))
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y holds one class only, {classes.tolist()[0]!r}; a classifier needs at least two.")
        targets = np.eye(len(classes))[codes] * row_weights(self.class_weight, y, weights)[:, None]
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        net = build_net(TargetNet, partial(Single, ensemble_for(params, X, len(classes))), params, seed)
        self.history_ = train(net, net.rows(X, targets), self.max_epochs, seed=seed, verbose=self.verbose)
        self.classes_, self.n_iter_, self.net_ = classes, len(self.history_), net
