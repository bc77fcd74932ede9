"""Learning to defer to a population of experts, each represented by examples of the expert's answers."""

from typing import ClassVar

import numpy as np

from .._sklearn import StrOptions
from .._torch._net import check_net
from .._torch._population_net import expert_codes, expert_examples, fit_population_net, predict_population
from ..cluster import PopulationExpertEncoder
from ._base import BaseDeferrer
from ._surrogate import FirstOutputs, softmax_link
from ._tally import TallyMixin


class PopulationClassifier(FirstOutputs):
    """The classifier in a `PopulationNet`."""

    def _logits(self, items):
        return predict_population(self.net, items, np.empty((0, 0)))[0]


class PopulationDeferral(TallyMixin, BaseDeferrer):
    """Train one net that defers to any expert, known or new, by examples of the expert's answers (L2D-Pop).

    An example is an item, its true class and the answer of the expert. One net maps examples to vectors, whose mean is
    the code of the expert, and a second net maps the features of an item and a code to the logit of deferral. Both are
    trained together with the classifier by the softmax surrogate over the C classes and one expert; every training step
    draws new examples of some experts. Every expert on the roster is a target. The largest of the experts' logits and
    the classes' logits decides, which is the best rule if ``p(m_j = y | x)`` is learnt. `onboard` needs a few
    annotations and true labels, and trains nothing.

    Parameters
    ----------
    code_size : int, default=32
        Number of entries of a code.

    pooling : {"mean", "attention"}, default="mean"
        How the code of an expert is formed from the examples: "mean" gives all of them the same weight, "attention"
        weights them by the item at hand, whose features make a query that is compared with keys made of the features of
        the examples (cross-attention). The expert then is seen by the answers to items that matter here.

    context_size : int, default=50
        Largest number of examples that represent an expert in a training step; at most half of the expert's answers are
        used. After training, all examples are used.

    experts_per_step : int, default=10
        Largest number of experts in a training step.

    n_classifier_epochs : int, default=20
        Number of epochs in which the classifier is trained alone, before the other nets join.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    module, hidden_layer_sizes
        Parameters of the net of the features, as in `PopulationExpertEncoder`. The defaults are None and (64,).

    context_layer_sizes, rejector_layer_sizes : tuple of int, default=(64, 64) and (64,)
        Hidden units of the net that encodes an example, and of the net that decides on deferral.

    optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the net, as in `PopulationExpertEncoder`. The defaults are "adam", 0.003, 0.9, 0.0005, 64 and 60.

    device : str, default="auto"
        Device of the training: "auto", "cpu", "cuda", "cuda:1", and so on. "auto" is CUDA if there is a CUDA device,
        else the CPU.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the net, the examples and the draws of `assign_experts`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of `y` and `annotations`.
    classifier_ : object
        The classifier in the net, with `predict` and `predict_proba`.
    temperature_ : float
        1: the probabilities of the classifier are used as they are.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    expert_codes_ : ndarray of shape (n_experts, code_size)
        Codes of the experts, with "attention" before any item is seen: means over their examples. An expert without
        answers has the mean code of the other experts in `fit`, whatever the item.
    targets_ : ndarray of shape (n_targets,)
        Names of the targets: every expert of `fit` or `onboard` is one.
    omega_ : ndarray or csr_array of shape (n_experts, n_targets)
        Memberships of the experts in the targets. Rows sum to 1. It is sparse if every expert is a target and it has
        more than ten million entries.
    selection_ : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members. Rows sum to 1; a target without members has a row of zeros. It
        is sparse if `omega_` is.
    net_ : object
        The trained net; its interface is private.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
        Newcomers have 0.
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    n_iter_ : int
        Number of epochs of the net, including `n_classifier_epochs`.
    history_ : list of dict
        Phase, loss and duration (seconds) of every epoch.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    ExpertAgnosticDeferral : Represents experts by their competence per class.
    ClusterDeferral : Newcomers join groups, without true labels.
    sklearn_l2d.cluster.PopulationExpertEncoder : The codes alone.

    Notes
    -----
    When not to use it: the net must learn from the experts of `fit` what a code means. With few experts, it learns
    these by heart and says little about newcomers; with few labelled items, the codes are noise. In Table 3 of
    L2D-Clusters, with 50 to 200 labelled items, it is worse than deferral to clusters in all six columns and worse than
    all other methods in four. The classifier learns from the labelled items only. Coverage follows from the loss and
    cannot be requested; use `RankedDeferral` for that.

    An example contains the true class, the item and the answer, as in the paper and its code. The re-implementation
    behind Table 3 leaves the true class out, so that a code can hardly tell whether the expert is right: those figures
    are probably too low. With "mean", an expert is one code, a stored team holds no examples, and the cost of a
    prediction does not depend on their number. With "attention", a team keeps two vectors of `code_size` numbers for
    every answer of its experts, and a prediction compares the item with all of them. Attention starts as the mean. The
    attention among the examples that comes first in the paper is left out. An item that is itself an example attends to
    its own answer, so that shares are too sure of people without `X_unlabeled`. Attention is for experts whose
    strengths lie in regions of the items. On digits with 6 experts, music_genre and cue_conflict, with 50 annotations
    of each, it is no better than the mean (areas differ by -.001, -.002 and +.002), and training takes a quarter
    longer.

    As in the paper's code, the features are not trained through the codes. Here the examples of an expert are items
    that this expert annotated, so that experts may annotate different items. The net does not learn from an annotation
    in the step in which the code contains it, and never from a missing one: if missing annotations counted as errors,
    the net would learn to distrust experts who skip items.

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
        unlabeled_label=None,
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
        self.unlabeled_label = unlabeled_label
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
            params,
            items,
            team.y_codes,
            team.votes,
            len(self.classes_),
            self._seed,
            pooling=self.pooling,
            sample_weight=team.weight_if_any,
        )
        self.n_iter_ = len(self.history_)
        self.classifier_ = PopulationClassifier(self.net_, self.classes_, softmax_link, self.dtype)
        self.temperature_ = 1.0
        details, vocal = self._details(items, team.y_codes, team.votes, team.weight_if_any), team.votes.n_answers > 0
        self._mean_code = details["codes"][vocal].mean(0) if vocal.any() else np.zeros(self.code_size)
        self._single_targets(**self._with_silent(details, vocal))
        self._measure_shares(team)

    def _fit_nobody(self, team):
        self._learn(team)

    def _describe(self, items, y_codes, votes):
        return self._with_silent(self._details(items.array, y_codes, votes), votes.n_answers > 0)

    def _details(self, *arguments):
        """Codes of experts and, with attention, their examples; arguments after the net as in `expert_codes`."""
        details = {"codes": expert_codes(self.net_, *arguments)}
        if self.pooling == "attention":
            details["examples"] = expert_examples(self.net_, *arguments)
        return details

    def _with_silent(self, details, vocal):
        """Details in which experts without answers have the mean code, whatever the item."""
        alone = np.concatenate([np.zeros(self.code_size), self._mean_code, [1.0]])[None]  # one example has all weight
        for m in np.flatnonzero(~vocal):
            details["codes"][m] = self._mean_code
            if "examples" in details:
                details["examples"][m] = alone
        return details

    def _scores(self, items):
        details = self._roster.details
        classes, deferral = predict_population(self.net_, items.array, details.get("examples", details["codes"]))
        return np.column_stack([deferral @ self._selection.T, classes.max(1)])
