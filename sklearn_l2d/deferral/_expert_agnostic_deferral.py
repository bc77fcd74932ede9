"""Learning to defer without identities: an expert is a table of competence per class."""

import numbers
from functools import partial
from typing import ClassVar

import numpy as np

from .._numerics._answers import competence_posterior, tally_answers
from .._sklearn import HasMethods, Interval
from .._torch._losses import pair_loss
from .._torch._modules import AgnosticRejector, check_feature_layers
from .._torch._net import NET_CONSTRAINTS, Net, build_net, check_net, train
from .._torch._seeding import own_state
from ..crowd import NetClassifier
from ._base import BaseDeferrer
from ._tally import TallyMixin

_CHUNK = 1 << 18  # cells of item, expert and class that are predicted at once


class AgnosticNet(Net):
    """Softmax surrogate over the classes, whose log-probabilities are given, and one expert.

    Targets are (B, M): 1 and 0 where expert m was right and wrong, NaN where nothing is to be learnt.

    Attributes
    ----------
    competence : pair of tensors of shape (M, C) or None
        Mean and standard deviation during training.
    n_experts : int
        Largest number of experts per step.
    """

    competence = None

    def batch_loss(self, proba, targets, X):
        (right,) = targets
        experts = self.order(right.shape[1])[: self.n_experts]
        logit = self.module_.defer(proba, *(part[experts] for part in self.competence))
        right = right[:, experts]
        return pair_loss(logit, right).sum() / (~right.isnan()).sum().clamp(min=1)


def train_agnostic(net, proba, y_codes, codes, *, prior, max_epochs, seed, verbose):
    """Train on answers that are not in the competences, which are counted from a new part of them in every epoch.

    Parameters
    ----------
    net : AgnosticNet
        Initialised; it is trained in place.
    proba : ndarray of shape (n, C)
        Honest probabilities of the classes.
    y_codes : ndarray of int of shape (n,)
        True classes.
    codes : ndarray of shape (n, M)
        Encoded annotations, -1 missing.
    prior : tuple
        Center and strengths, as in `competence_posterior`.
    max_epochs, seed, verbose : int
        As in `train`.

    Returns
    -------
    history : list of dict
        As returned by `train`.
    """
    rng, truth = np.random.default_rng(seed), np.eye(proba.shape[1])[y_codes]
    right = np.where(codes < 0, np.nan, codes == y_codes[:, None])
    rows = net.rows(proba, right)

    def draw(epoch):
        # any share of the answers of each expert, so that the net meets those who are hardly and who are well known
        shown = rng.random(codes.shape) < rng.random(codes.shape[1])
        tally = tally_answers(np.where(shown, codes, -1), truth)
        net.competence = _tensors(net, competence_moments(*tally, prior))
        rows.set_target(np.where(shown, np.nan, right))
        return "expert-agnostic"

    try:
        return train(net, rows, max_epochs, seed=seed, verbose=verbose, on_epoch=draw)
    finally:
        net.competence = None


def competence_moments(right, seen, prior):
    """Mean and standard deviation (M, C) of the competence from tallies (M, C)."""
    mean, variance = competence_posterior(right, seen, *prior)
    return mean, np.sqrt(variance)


@own_state(grad=False)
def predict_agnostic(net, proba, moments):
    """Logits (n, E) of deferral for items with probabilities (n, C) to experts with moments (E, C)."""
    mean, spread = _tensors(net, moments)
    logits = np.empty((len(proba), len(mean)))
    step = max(1, _CHUNK // max(1, mean.numel()))
    for start in range(0, len(proba), step):
        rows = slice(start, start + step)
        some = net.module_.defer(net.tensor(proba[rows]), mean, spread)
        logits[rows] = some.cpu().numpy()
    return logits


def _tensors(net, arrays):
    return tuple(net.tensor(array, dtype=net.dtype) for array in arrays)


class ExpertAgnosticDeferral(TallyMixin, BaseDeferrer):
    """Train one net that defers by the classifier's probabilities and an expert's competence per class (EA-L2D).

    The competence of an expert in a class is a Beta posterior, by counts of right answers. The net sees, class by
    class, the tempered probability that the classifier gives it and the mean and standard deviation of the competence,
    and returns a logit of deferral; it never learns who the expert is. It is trained over all pairs of a labelled item
    and an expert who answered it, on the softmax surrogate over the C classes, whose log-probabilities are given, and
    the expert, so that at its minimum the logit is ``ln p(m_j = y | x)``. The largest of the experts' logits and the
    classifier's ``max_c ln p(c | x)`` decides. `onboard` needs a few answers and the true labels, and trains nothing.

    Parameters
    ----------
    classifier : classifier, default=None
        Any scikit-learn classifier with `predict_proba`, cloned and fitted; a `FrozenEstimator` is taken as it is.
        None is a small neural net.

    cv : int, default=5
        Folds of the classifier's out-of-fold probabilities, from which the net learns: on its own training rows a
        classifier seems better than it is, and the experts would hardly be asked.

    experts_per_step : int, default=10
        Largest number of experts that a step of the training learns from.

    missing_label : object, default=None
        Marker of a missing annotation; None takes NaN, None, pandas.NA, masked entries and -1 unless it is a class.

    hidden_layer_sizes : tuple of int, default=(32,)
        Hidden units of the net.

    optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Of the net, as in `PopulationExpertEncoder`; defaults "adam", 0.003, 0.9, 0.0005, 64 and 60.

    device : str, default="auto"
        "auto" takes CUDA when there is one.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, of the classifier where it has none, of the net and of the draws of `assign_experts`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in `y`, and those that a frozen classifier knows.
    classifier_ : classifier
        The fitted classifier.
    temperature_ : float
        Temperature of the classifier's probabilities.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    competence_ : ndarray of shape (n_experts, n_classes)
        Posterior mean of how often each expert is right on each class, shrunk by empirical Bayes as in
        `BetaExpertEncoder`.
    targets_ : ndarray of shape (n_targets,)
        Every expert is a target.
    omega_ : ndarray of shape (n_experts, n_targets)
        Which target an expert is.
    selection_ : ndarray of shape (n_targets, n_experts)
        The same the other way round; zeros where an expert has left.
    net_ : object
        The trained net, None without experts; private in everything but name.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Shares of the unlabelled items of `fit`, else of the labelled ones by out-of-fold probabilities, the classifier
        last; 0 for newcomers.
    coverage_ : float
        The classifier's share.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert serves.
    n_iter_ : int
        Epochs of the net.
    history_ : list of dict
        Loss of every epoch.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    ConfidenceDeferral : The rule from which the net starts, without training.
    PopulationDeferral : Learns what to know about an expert, from items as well.
    sklearn_l2d.cluster.BetaExpertEncoder : The competences alone.

    Notes
    -----
    No code was published; this follows the description. The net starts at ``ln sum_c p(c | x) r_jc``, the rule of
    `ConfidenceDeferral`, and learns what to add; on six experts of the digits it stays close to that rule and is no
    better. Its answer does not depend on the order of the classes. In every epoch the
    competences are counted from a random part of each expert's answers and the net learns from the others: an answer
    that is in the count as well would tell the net that high counts are right. A missing annotation is neither counted
    nor learnt from.

    When not to use it: an expert is known by class only. Who is right on some images of a class and wrong on others
    looks alike on all of them, and where all competences are below what the classifier is sure of, it decides
    everything. L2D-Clusters reports that of EA-L2D, and calls it "zero coverage"; by its own definition of coverage
    that is a coverage of 1. What a net of few training experts adds is learnt from these and may not hold for others.
    Coverage follows from the loss and cannot be requested; `RankedDeferral` does that.

    References
    ----------
    EA-L2D: Strong et al., Expert-agnostic learning to defer, 2025.

    L2D-Clusters: Learning to defer on anonymously-annotated data, section 5.2.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ExpertAgnosticDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = ExpertAgnosticDeferral(LogisticRegression(C=0.01), max_epochs=20, random_state=0)
    >>> team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    ExpertAgnosticDeferral(...)
    >>> alone = (team.predict(crowd.X_test) == crowd.y_test).mean()
    >>> bool(team.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > alone)
    True
    >>> answers = crowd.annotations[:, [0]]
    >>> team.onboard("newcomer", crowd.X_identified, answers, crowd.y_identified).experts_[-1]
    'newcomer'
    """

    _parameter_constraints: ClassVar = {
        **{name: c for name, c in NET_CONSTRAINTS.items() if name not in ("module", "dtype")},
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "cv": [Interval(numbers.Integral, 2, None, closed="left")],
        "experts_per_step": [Interval(numbers.Integral, 1, None, closed="left")],
        "missing_label": "no_validation",
    }

    def __init__(
        self,
        classifier=None,
        *,
        cv=5,
        experts_per_step=10,
        missing_label=None,
        hidden_layer_sizes=(32,),
        optimizer="adam",
        lr=0.003,
        momentum=0.9,
        weight_decay=0.0005,
        batch_size=64,
        max_epochs=60,
        device="auto",
        verbose=0,
        random_state=None,
    ):
        self.classifier = classifier
        self.cv = cv
        self.experts_per_step = experts_per_step
        self.missing_label = missing_label
        self.hidden_layer_sizes = hidden_layer_sizes
        self.optimizer = optimizer
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    @property
    def competence_(self):
        """Posterior mean of how often each expert is right on each class."""
        return self._moments(self._roster.right, self._roster.seen)[0]

    def _check_settings(self, y):
        super()._check_settings(y)
        check_net(self.get_params(deep=False))
        check_feature_layers(self.hidden_layer_sizes)

    def _parts(self):
        return {"classifier": self.classifier}

    def _default_classifier(self):
        return NetClassifier(device=self.device)

    def _learn(self, team):
        self._single_targets()
        proba = self._judge_classifier(team, self.cv)
        module = partial(AgnosticRejector, tuple(self.hidden_layer_sizes))
        params = self.get_params(deep=False) | {"dtype": "float64"}
        net = build_net(AgnosticNet, module, params, self._seed, n_experts=self.experts_per_step)
        self.history_ = train_agnostic(
            net,
            proba,
            team.y_codes,
            team.codes,
            prior=self._roster.prior,
            max_epochs=self.max_epochs,
            seed=self._seed,
            verbose=self.verbose,
        )
        self.net_, self.n_iter_ = net, len(self.history_)
        self._measure_shares(team, self._compare(proba))

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.net_ = None

    def _scores(self, items):
        return self._compare(self._classifier_proba(items))

    def _compare(self, proba):
        """Scores (n, n_targets + 1) from tempered probabilities (n, C)."""
        moments = self._moments(self.selection_ @ self._roster.right, self.selection_ @ self._roster.seen)
        return self._break_ties(np.column_stack([predict_agnostic(self.net_, proba, moments), np.log(proba.max(1))]))

    def _moments(self, right, seen):
        return competence_moments(right, seen, self._roster.prior)
