"""Encodings of experts by a net, from examples of their answers."""

import numbers
from typing import ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from .._sklearn import Interval
from .._torch._modules import check_module
from .._torch._net import NET_CONSTRAINTS
from .._torch._population_net import expert_codes, fit_population_net
from ._expert_encoder import ExpertEncoder


class PopulationExpertEncoder(ExpertEncoder):
    """Encode every expert by a code that is learnt for deferral (L2D-Pop).

    An example is an item, its true class and the answer of the expert. One net maps examples to vectors, whose mean is
    the code of the expert, and a second net decides on deferral by the features of an item and a code. Both are trained
    together with a classifier by the softmax surrogate of the team's loss; every training step draws new examples of
    some experts. This is a baseline of L2D-Clusters section 5.1.

    Note the rows: ``transform(X, annotations, y)`` has one row per *expert*. ``transform(X)`` has one row per sample,
    each equal to the encoding of an unknown expert, `mean_code_`.

    Parameters
    ----------
    code_size : int, default=32
        Number of entries of a code.

    context_size : int, default=50
        Largest number of examples that represent an expert in a training step; at most half of the expert's answers are
        used. After training, all examples are used.

    experts_per_step : int, default=10
        Largest number of experts in a training step.

    n_classifier_epochs : int, default=20
        Number of epochs in which the classifier is trained alone, before the other nets join.

    module : callable, default=None
        Class or function called with `n_outputs` that returns a torch module from batches of `X` to features;
        `functools.partial` sets its other arguments. `X` may then have any number of dimensions. None is a multilayer
        perceptron. The last entry of `hidden_layer_sizes` is the number of features.

    hidden_layer_sizes : tuple of int, default=(64,)
        Hidden units of the perceptron. The last layer gives the features.

    context_layer_sizes : tuple of int, default=(64, 64)
        Hidden units of the net that encodes an example.

    rejector_layer_sizes : tuple of int, default=(64,)
        Hidden units of the net that decides on deferral.

    optimizer : {"sgd", "adam"} or callable, default="adam"
        Name, or a class with the signature of torch's optimisers.

    lr : float, default=0.003
        Learning rate at the start of the cosine schedule.

    momentum : float, default=0.9
        Momentum of "sgd".

    weight_decay : float, default=0.0005
        L2 penalty of the optimiser.

    batch_size : int, default=64
        Items per training step.

    max_epochs : int, default=60
        Number of epochs in which all nets are trained.

    classes : array-like of shape (n_classes,), default=None
        Sorted labels of all classes. None takes the labels of `y` and `annotations` in `fit`.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    device : str, default="auto"
        Device of the training: "auto", "cpu", "cuda", "cuda:1", and so on. "auto" is CUDA if there is a CUDA device,
        else the CPU.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights, the shuffling and the examples.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    experts_ : ndarray of shape (n_experts,), dtype=object
        Names of the experts in `fit`.
    mean_code_ : ndarray of shape (code_size,)
        Mean code of the experts in `fit`.
    n_iter_ : int
        Number of epochs of the net, including `n_classifier_epochs`.
    history_ : list of dict
        Phase, loss and duration (seconds) of every epoch.
    device_ : str
        Device of the net.
    net_ : object
        The trained net; its interface is private.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    BetaExpertEncoder : Competence per class, by counting.
    FuzzyCMeans : Clusters the codes.

    Notes
    -----
    As in the paper, an example contains the true class and the answer, and the features are not trained through the
    code. Here the examples of an expert are items that this expert annotated, so that experts may annotate different
    items. The net does not learn from an annotation in the step in which the code contains it: with few annotations per
    expert, it would learn to look the annotation up. A missing annotation is left out of the loss. Codes have no fixed
    scale, and codes of different fits are not comparable.

    The cost of a step grows with ``batch_size * experts_per_step`` and does not depend on the number of experts.

    References
    ----------
    L2D-Pop: Tailor et al., Learning to defer to a population: a meta-learning approach, AISTATS 2024.

    L2D-Clusters: Learning to defer on anonymously-annotated data, section 5.1.

    Examples
    --------
    >>> from sklearn_l2d.cluster import PopulationExpertEncoder
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> crowd = load_digits_crowd(random_state=0)
    >>> encoder = PopulationExpertEncoder(n_classifier_epochs=5, max_epochs=5, random_state=0)
    >>> encoder.fit_transform(crowd.X_identified, crowd.y_identified, crowd.annotations).shape
    (6, 32)
    """

    _parameter_constraints: ClassVar = {
        **NET_CONSTRAINTS,
        "code_size": [Interval(numbers.Integral, 1, None, closed="left")],
        "context_size": [Interval(numbers.Integral, 1, None, closed="left")],
        "experts_per_step": [Interval(numbers.Integral, 1, None, closed="left")],
        "n_classifier_epochs": [Interval(numbers.Integral, 0, None, closed="left")],
        "context_layer_sizes": ["array-like"],
        "rejector_layer_sizes": ["array-like"],
        "classes": ["array-like", None],
        "missing_label": "no_validation",
    }

    def __init__(
        self,
        code_size=32,
        *,
        context_size=50,
        experts_per_step=10,
        n_classifier_epochs=20,
        module=None,
        hidden_layer_sizes=(64,),
        context_layer_sizes=(64, 64),
        rejector_layer_sizes=(64,),
        optimizer="adam",
        lr=0.003,
        momentum=0.9,
        weight_decay=0.0005,
        batch_size=64,
        max_epochs=60,
        classes=None,
        missing_label=None,
        device="auto",
        dtype="float32",
        verbose=0,
        random_state=None,
    ):
        self.code_size = code_size
        self.context_size = context_size
        self.experts_per_step = experts_per_step
        self.n_classifier_epochs = n_classifier_epochs
        self.module = module
        self.hidden_layer_sizes = hidden_layer_sizes
        self.context_layer_sizes = context_layer_sizes
        self.rejector_layer_sizes = rejector_layer_sizes
        self.optimizer = optimizer
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.classes = classes
        self.missing_label = missing_label
        self.device = device
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    @property
    def device_(self):
        """Device of the net."""
        return self.net_.device

    def _check_items(self, X, reset=False):
        check_module(self.module)
        return validate_data(self, X, reset=reset, dtype=self.dtype, allow_nd=self.module is not None)

    def _learn(self, items, y_codes, votes):
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        params = self.get_params(deep=False)
        net, self.history_ = fit_population_net(params, items, y_codes, votes, len(self.classes_), seed)
        self.n_iter_, self.net_ = len(self.history_), net
        vocal = votes.n_answers > 0
        known = self._encode(items, y_codes, votes)[vocal]
        self.mean_code_ = known.mean(0) if vocal.any() else np.zeros(self.code_size)

    def _encode(self, items, y_codes, votes):
        return expert_codes(self.net_, items, y_codes, votes)

    def _nobody(self):
        return self.mean_code_
