"""Learning to defer to a population of experts, who are known by examples of their answers."""

from typing import ClassVar

import numpy as np

from .._sklearn import StrOptions
from .._torch._net import check_net
from .._torch._population_net import expert_codes, fit_population_net, predict_population
from ..cluster import PopulationExpertEncoder
from ._base import BaseDeferrer
from ._surrogate import FirstOutputs, softmax_link
from ._tally import TallyMixin


class PopulationClassifier(FirstOutputs):
    """The classifier in a `PopulationNet`."""

    def _logits(self, items):
        return predict_population(self.net, items, np.empty((0, 0)))[0]


class PopulationDeferral(TallyMixin, BaseDeferrer):
    """Train one net that defers to any expert of whom it sees examples, those of training or new ones (L2D-Pop).

    An example is an item, its true class and what the expert answered. A net turns examples into vectors whose mean is
    the expert's code, and a second one gives the logit of deferral from the features of an item and a code. Both are
    trained together with the classifier on the softmax surrogate over the C classes and one expert, with examples of
    some experts drawn afresh for every step. Everybody on the roster is a target: the largest of the experts' logits
    and the classes' logits decides, which is the best rule where ``p(m_j = y | x)`` is learnt. `onboard` needs a few
    answers and the true labels, and trains nothing.

    Parameters
    ----------
    code_size : int, default=32
        Width of a code.

    pooling : {"mean", "attention"}, default="mean"
        How examples make a code: all alike, or weighted by how well they match a learnt query. The query is the same
        for all items.

    context_size : int, default=50
        Largest number of examples that stand for an expert in a step of the training, and never more than half of
        what the expert answered. A fitted deferrer takes all examples that it gets.

    experts_per_step : int, default=10
        Largest number of experts that a step of the training learns from.

    n_classifier_epochs : int, default=20
        Epochs of the classifier alone, before the others join.

    missing_label : object, default=None
        Marker of a missing annotation; None takes NaN, None, pandas.NA, masked entries and -1 unless it is a class.

    module, hidden_layer_sizes
        Of the features, as in `PopulationExpertEncoder`; defaults None and (64,).

    context_layer_sizes, rejector_layer_sizes : tuple of int, default=(64, 64) and (64,)
        Hidden units of the nets that encode an example and that decide on deferral.

    optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Of the training, as in `PopulationExpertEncoder`; defaults "adam", 0.003, 0.9, 0.0005, 64 and 60.

    device : str, default="auto"
        "auto" takes CUDA when there is one.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the net, the examples and the draws of `assign_experts`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in `y`.
    classifier_ : object
        The logits of the classes, with `predict` and `predict_proba`.
    temperature_ : float
        1: the classifier is taken as it is.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    expert_codes_ : ndarray of shape (n_experts, code_size)
        Codes of the experts; one without any answer has the mean code of the others in `fit`.
    targets_ : ndarray of shape (n_targets,)
        Every expert is a target.
    omega_ : ndarray of shape (n_experts, n_targets)
        Which target an expert is.
    selection_ : ndarray of shape (n_targets, n_experts)
        The same the other way round; zeros where an expert has left.
    net_ : object
        The trained net; private in everything but name.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Shares of the unlabelled items of `fit`, else of the labelled ones, the classifier last; 0 for newcomers.
    coverage_ : float
        The classifier's share.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert serves.
    n_iter_ : int
        Epochs run, of both phases.
    history_ : list of dict
        Phase, loss and duration (seconds) of every epoch.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    ExpertAgnosticDeferral : Knows experts by their competence per class.
    ClusterDeferral : Newcomers join groups, and need no true labels to do so.
    sklearn_l2d.cluster.PopulationExpertEncoder : The codes alone.

    Notes
    -----
    When not to use it: the net has to learn what a code means from the experts of `fit`. With a handful of them it
    learns these by heart and says little about newcomers, and with few labelled items the codes are noise. Table 3 of
    L2D-Clusters, with 50 to 200 labelled items, has it behind the deferral to clusters in all six columns and behind
    everything else in four. The classifier learns from the labelled items alone. Coverage follows from the loss and
    cannot be requested; `RankedDeferral` does that.

    An example holds the true class beside the item and the answer, as in the paper and its code. The
    re-implementation behind Table 3 leaves it out, so that a code can hardly say who is right: those figures are
    probably too low. The paper's attention looks from the item at hand at the examples, after these have looked at
    each other, and needs them at every prediction. Here an expert is one code with either pooling, so that a stored
    team holds no examples and a prediction costs the same for any number of them.

    As in the paper's code, the features are not trained through the codes. Here examples are items that the expert did
    answer, so that experts may have answered different ones. An answer that is in the code is not learnt from in the
    same step, and a missing one never: taken for an error, it would teach the net to distrust whoever skips items.

    References
    ----------
    L2D-Pop: Tailor et al., Learning to defer to a population: a meta-learning approach, AISTATS 2024.

    L2D-Clusters: Learning to defer on anonymously-annotated data, section 5.2.

    Examples
    --------
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import PopulationDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = PopulationDeferral(n_classifier_epochs=10, max_epochs=10, random_state=0)
    >>> team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    PopulationDeferral(max_epochs=10, n_classifier_epochs=10, random_state=0)
    >>> answers = crowd.annotations[:, [0]]
    >>> team.onboard(["newcomer"], crowd.X_identified, answers, crowd.y_identified).experts_[-1]
    'newcomer'
    """

    _silence = "they are taken for the mean of the others"

    _parameter_constraints: ClassVar = {
        **{name: c for name, c in PopulationExpertEncoder._parameter_constraints.items() if name != "classes"},
        "pooling": [StrOptions({"mean", "attention"})],
    }

    def __init__(
        self,
        code_size=32,
        *,
        pooling="mean",
        context_size=50,
        experts_per_step=10,
        n_classifier_epochs=20,
        missing_label=None,
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
        device="auto",
        dtype="float32",
        verbose=0,
        random_state=None,
    ):
        self.code_size = code_size
        self.pooling = pooling
        self.context_size = context_size
        self.experts_per_step = experts_per_step
        self.n_classifier_epochs = n_classifier_epochs
        self.missing_label = missing_label
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
        self.device = device
        self.dtype = dtype
        self.verbose = verbose
        self.random_state = random_state

    @property
    def expert_codes_(self):
        """Codes of the experts."""
        return self._roster.details["codes"]

    def _check_settings(self, y):
        super()._check_settings(y)
        check_net(self.get_params(deep=False), ("hidden_layer_sizes", "context_layer_sizes", "rejector_layer_sizes"))

    def _array_form(self):
        return {"dtype": self.dtype, "allow_nd": self.module is not None}

    def _learn(self, team):
        items, params = team.items.array, self.get_params(deep=False)
        self.net_, self.history_ = fit_population_net(
            params, items, team.y_codes, team.codes, len(self.classes_), self._seed, pooling=self.pooling
        )
        self.n_iter_ = len(self.history_)
        self.classifier_ = PopulationClassifier(self.net_, self.classes_, softmax_link, self.dtype)
        self.temperature_ = 1.0
        codes, vocal = expert_codes(self.net_, items, team.y_codes, team.codes), (team.codes >= 0).any(0)
        self._mean_code = codes[vocal].mean(0) if vocal.any() else np.zeros(self.code_size)
        self._single_targets(codes=np.where(vocal[:, None], codes, self._mean_code))
        self._measure_shares(team)

    def _fit_nobody(self, team):
        self._learn(team)

    def _describe(self, items, y_codes, codes):
        known = expert_codes(self.net_, items.array, y_codes, codes)
        return {"codes": np.where((codes >= 0).any(0)[:, None], known, self._mean_code)}

    def _scores(self, items):
        classes, deferral = predict_population(self.net_, items.array, self.selection_ @ self.expert_codes_)
        return np.column_stack([deferral, classes.max(1)])
