"""Learning to defer without identities: an expert is a table of competence per class."""

import numbers
from typing import ClassVar

import numpy as np

from .._net_parameters import NET_CONSTRAINTS
from .._sklearn import HasMethods, Interval
from .._torch._agnostic_net import build_agnostic_net, competence_moments, predict_agnostic, train_agnostic
from .._torch._seeding import resolve_device, seeded
from ..cluster._population_expert_encoder import check_sizes
from ._base import BaseDeferrer
from ._fitting import FittingMixin
from ._tally_roster import TallyRosterMixin


class ExpertAgnosticDeferral(FittingMixin, TallyRosterMixin, BaseDeferrer):
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
        return self._moments(self._right, self._seen)[0]

    def _check_settings(self):
        check_sizes(self.hidden_layer_sizes, "hidden_layer_sizes")

    def _learn(self, team):
        self._single_targets()
        proba, device = self._judge_classifier(team), resolve_device(self.device)
        with seeded(self._seed, device):
            net = build_agnostic_net(
                self.hidden_layer_sizes,
                self.experts_per_step,
                optimizer=self.optimizer,
                lr=self.lr,
                momentum=self.momentum,
                weight_decay=self.weight_decay,
                batch_size=self.batch_size,
                device=device,
            )
        self.history_ = train_agnostic(
            net,
            proba,
            team.y_codes,
            team.codes,
            prior=self._strengths,
            max_epochs=self.max_epochs,
            seed=self._seed,
            verbose=self.verbose,
        )
        self.net_, self.n_iter_ = net, len(self.history_)
        self._measure_shares(team, self._compare(proba))

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.net_ = None

    def _scores(self, X):
        return self._compare(self._classifier_proba(X))

    def _compare(self, proba):
        """Scores (n, n_targets + 1) from tempered probabilities (n, C)."""
        moments = self._moments(self.selection_ @ self._right, self.selection_ @ self._seen)
        return self._break_ties(np.column_stack([predict_agnostic(self.net_, proba, moments), np.log(proba.max(1))]))

    def _moments(self, right, seen):
        return competence_moments(right, seen, self._strengths)

    def _check_items(self, X):
        # the scores are those of the classifier, which may pick columns by name
        return self._classifier_input(X)
