"""Learning to defer by the competence of experts per class, without their identities."""

import numbers
from functools import partial
from typing import ClassVar

import numpy as np

from .._folds import FOLDS
from .._numerics._answers import competence_posterior, prior_strengths, tally_votes
from .._sklearn import HasMethods, Interval, StrOptions
from .._torch._batches import AnswerTable, RowTable
from .._torch._losses import pair_loss
from .._torch._modules import AgnosticRejector, RoleRejector, check_feature_layers
from .._torch._net import NET_CONSTRAINTS, Net, build_net, check_net, check_outputs, train
from .._torch._seeding import own_state
from ._base import BaseDeferrer
from ._duel import Duel
from ._tally import TallyMixin

_REJECTORS = {"class": AgnosticRejector, "role": RoleRejector}
_CHUNK = 1 << 18  # cells of item, expert and class that are predicted at once


class AgnosticNet(Net):
    """Softmax surrogate over the classes, whose log-probabilities are given, and one expert.

    Targets are (B, M), 1 where expert m is right, 0 where m is wrong, NaN where nothing is learnt, or the probability
    that m is right; and weights (B,).

    Attributes
    ----------
    competence : pair of tensors of shape (M, C) or None
        Mean and standard deviation, during training.
    n_experts : int
        Largest number of experts in a training step.
    """

    competence = None

    def batch_loss(self, proba, targets, X):
        right, weight = targets
        experts = self.order(right.shape[1])[: self.n_experts]
        logit = self.module_.defer(proba, *(part[experts] for part in self.competence))
        right = right[:, experts]
        weight = weight.to(logit.dtype)[:, None]
        return (weight * pair_loss(logit, right)).sum() / (weight * ~right.isnan()).sum().clamp(min=1)


def train_agnostic(
    net, proba, y_codes, votes, *, prior, max_epochs, seed, verbose, sample_weight=None, from_counts=False
):
    """Train a net; each epoch counts the competences from some answers and learns from the others.

    Parameters
    ----------
    net : AgnosticNet
        Initialised; it is trained in place.
    proba : ndarray of shape (n, C)
        Out-of-fold, calibrated probabilities of the classes.
    y_codes : ndarray of int of shape (n,)
        True classes.
    votes : Votes
        Annotations of the experts.
    prior : tuple
        Center and strengths, as in `competence_posterior`.
    max_epochs, seed, verbose : int
        As in `train`.
    sample_weight : ndarray of shape (n,), default=None
        Weights of the items; equal by default.
    from_counts : bool, default=False
        Whether to learn, instead of the other answers, that any expert is right about an item of class c with the mean
        of the competence in c.

    Returns
    -------
    history : list of dict
        As returned by `train`.
    """
    weight = np.ones(len(proba)) if sample_weight is None else sample_weight
    rng, truth = np.random.default_rng(seed), np.eye(proba.shape[1])[y_codes] * weight[:, None]
    right = (votes.label == y_codes[votes.item]) * 1.0
    rows = net.rows(proba, AnswerTable(votes, right, np.nan).if_large(), weight / weight.mean())

    def draw(epoch):
        # a random share of the answers of each expert, so that the net sees experts with few and with many
        number = random_numbers(rng, votes)
        shown = number < rng.random(votes.shape[1])[votes.annotator]
        tally = tally_votes(votes.select(shown), truth)
        moments = competence_moments(*tally, prior)
        net.competence = _tensors(net, moments)
        if from_counts:
            rows.set_target(RowTable(lambda some: moments[0].T[y_codes[some]], votes.shape))
        else:
            rows.set_target(AnswerTable(votes, np.where(shown, np.nan, right), np.nan).if_large())
        return "expert-agnostic"

    try:
        return train(net, rows, max_epochs, seed=seed, verbose=verbose, on_epoch=draw)
    finally:
        net.competence = None


def random_numbers(rng, votes):
    """A random number for every answer: those of a table of all pairs, which is drawn for some rows at a time."""
    n_items, n_experts = votes.shape
    step, starts, numbers = max(1, _CHUNK // max(1, n_experts)), votes.starts, []
    for start in range(0, n_items, step):
        stop = min(start + step, n_items)
        answers = slice(starts[start], starts[stop])
        table = rng.random((stop - start, n_experts))
        numbers.append(table[votes.item[answers] - start, votes.annotator[answers]])
    return np.concatenate(numbers)


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
        check_outputs(some)
        logits[rows] = some.cpu().numpy()
    return logits


def _tensors(net, arrays):
    return tuple(net.tensor(array, dtype=net.dtype) for array in arrays)


class ExpertAgnosticDeferral(TallyMixin, BaseDeferrer):
    """Train one net that defers by the classifier's probabilities and experts' competences per class (EA-L2D).

    The competence of an expert in a class is a Beta posterior of the counts of right answers. For each class, the net
    sees the calibrated probability of the classifier and the mean and standard deviation of the competence; it returns
    a logit of deferral and does not know the identity of the expert. It is trained on all pairs of a labelled item and
    an expert who annotated it, by the softmax surrogate over the C classes, whose log-probabilities are given, and the
    expert. At the minimum, the logit is ``ln p(m_j = y | x)``. The largest of the experts' logits and the classifier's
    ``max_c ln p(c | x)`` decides. `onboard` needs a few annotations and true labels, and trains nothing.

    Parameters
    ----------
    classifier : classifier, default=None
        Classifier with `predict_proba`. It is cloned and fitted, unless it is a `FrozenEstimator`, which is used as it
        is. None is a small neural net, a `NetClassifier` or, with `votes_unlabeled`, a `CountsClassifier`.

    cv : int, splitter or list of splits, default=5
        Folds of the classifier's out-of-fold probabilities, from which the net learns: their number, a splitter, or
        splits as positions in `X`. On the rows that the classifier was fitted on it would seem better than it is, and
        the net would hardly defer.

    state : {"class", "role"}, default="class"
        What the net sees, and what it learns from. "class" has one entry per class, and the net learns from the answers
        to the labelled items (EA-L2D). "role" has one entry for the classifier's most probable class, one for the
        second and one for all others together, and the net learns from the competences alone: an item of class c
        teaches that an expert is right with the expert's mean competence in c, whoever has answered it (after IFD).

    experts_per_step : int, default=10
        Largest number of experts in a training step.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    hidden_layer_sizes : tuple of int, default=(32,)
        Hidden units of the net.

    optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the net, as in `PopulationExpertEncoder`. The defaults are "adam", 0.003, 0.9, 0.0005, 64 and 60.

    device : str, default="auto"
        Device of the training: "auto", "cpu", "cuda", "cuda:1", and so on. "auto" is CUDA if there is a CUDA device,
        else the CPU.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, the net, the draws of `assign_experts`, and the classifier unless it has its own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of `y` and `annotations`, and those that a frozen classifier knows.
    classifier_ : classifier
        The fitted classifier.
    temperature_ : float
        Temperature that calibrates the probabilities of the classifier.
    experts_ : ndarray of shape (n_experts,)
        Names of the experts.
    n_experts_ : int
        Number of experts.
    competence_ : ndarray of shape (n_experts, n_classes)
        Posterior mean of how often each expert is right on each class, shrunk by empirical Bayes as in
        `BetaExpertEncoder`.
    targets_ : ndarray of shape (n_targets,)
        Names of the targets: every expert of `fit` or `onboard` is one.
    omega_ : ndarray or csr_array of shape (n_experts, n_targets)
        Memberships of the experts in the targets. Rows sum to 1. It is sparse if every expert is a target and it has
        more than ten million entries.
    selection_ : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members. Rows sum to 1; a target without members has a row of zeros. It
        is sparse if `omega_` is.
    net_ : object
        The trained net, None without experts; its interface is private.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
        Newcomers have 0.
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    n_iter_ : int
        Number of epochs of the net.
    history_ : list of dict
        Phase, loss and duration (seconds) of every epoch.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    ConfidenceDeferral : The rule from which the net starts.
    PopulationDeferral : Learns its own representation of an expert, which also depends on the items.
    sklearn_l2d.cluster.BetaExpertEncoder : The competences alone.

    Notes
    -----
    No code was published; this implementation follows the description. The net starts at ``ln sum_c p(c | x) r_jc``,
    the rule of `ConfidenceDeferral`, and learns what to add to it; on six experts of the digits it stays close to that
    rule and is no better. Its output does not depend on the order of the classes. In every epoch, the competences are
    counted from a random part of each expert's answers, and the net learns from the others: if it also learnt from the
    counted answers, it would learn that high counts are right. A missing annotation is neither counted nor learnt from.
    Without `X_unlabeled`, the shares are measured with out-of-fold probabilities.

    ``state="role"`` follows IFD, of which we know the description only. The net sees which competence belongs to the
    class that the classifier prefers, instead of an average over all classes; with either state, other numbers of the
    classes change nothing. It needs no answers but the counted ones, so that every pair of a labelled item and an
    expert is learnt from. But what a pair teaches is the mean competence in the true class. At the minimum the logit is
    ``ln sum_c p(c | state) r_jc``, the rule from which the net starts with the probability of each role learnt once
    more, and nothing about experts. That somebody is right where the classifier is unsure can only be learnt with
    ``state="class"``. The weight of uncertainty in the objective of the paper is not reproduced. Neither state learns
    much: on digits with 6 experts, music_genre and cue_conflict, 50 annotations of each, five seeds, the area under the
    curve of coverage and accuracy differs from that of `ConfidenceDeferral` by less than .001, whichever state is
    combined with whichever teacher.

    When not to use it: the net knows an expert by class only. It does not see that an expert is right on some images of
    a class and wrong on others, and if all competences are below the confidence of the classifier, the classifier
    decides everything. L2D-Clusters reports this of EA-L2D, and calls it "zero coverage"; by its own definition, it is
    a coverage of 1. What the net learns from few experts may not hold for others. Coverage follows from the loss and
    cannot be requested; use `RankedDeferral` for that.

    References
    ----------
    EA-L2D: Strong et al., Expert-agnostic learning to defer, 2025. IFD: Strong et al., Identity-free deferral for
    unseen experts, ICLR 2026.

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
        "cv": FOLDS,
        "state": [StrOptions(set(_REJECTORS))],
        "experts_per_step": [Interval(numbers.Integral, 1, None, closed="left")],
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
    }

    def __init__(
        self,
        classifier=None,
        *,
        cv=5,
        state="class",
        experts_per_step=10,
        missing_label=None,
        unlabeled_label=None,
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
        self.state = state
        self.experts_per_step = experts_per_step
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
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

    def _net_settings(self):
        return {"device": self.device}

    def _learn(self, team):
        self._single_targets()
        proba = self._judge_classifier(team, self.cv)
        self._prior = prior_strengths(self._roster.right, self._roster.seen)
        module = partial(_REJECTORS[self.state], tuple(self.hidden_layer_sizes))
        params = self.get_params(deep=False) | {"dtype": "float64"}
        net = build_net(AgnosticNet, module, params, self._seed, n_experts=self.experts_per_step)
        self.history_ = train_agnostic(
            net,
            proba,
            team.y_codes,
            team.votes,
            prior=self._prior,
            max_epochs=self.max_epochs,
            seed=self._seed,
            verbose=self.verbose,
            sample_weight=team.weight_if_any,
            from_counts=self.state == "role",
        )
        self.net_, self.n_iter_ = net, len(self.history_)
        self._measure_shares(team, None if team.unlabeled is not None else Duel.of(self._masked(self._compare(proba))))

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.net_, self._prior = None, prior_strengths(self._roster.right, self._roster.seen)

    def _scores(self, items):
        return self._compare(self._classifier_proba(items))

    def _compare(self, proba):
        """Scores (n, n_targets + 1) from calibrated probabilities (n, C)."""
        moments = self._moments(self._selection @ self._roster.right, self._selection @ self._roster.seen)
        deferral = predict_agnostic(self.net_, proba, moments) - self._handicap()
        return np.column_stack([deferral, np.log(proba.max(1))])

    def _moments(self, right, seen):
        return competence_moments(right, seen, self._prior)
