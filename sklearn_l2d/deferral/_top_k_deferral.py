"""Learning to defer to the top k: agents in the order of one net, and how many of them by another."""

import numbers
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from .._folds import FOLDS
from .._numerics._answers import expected_correctness
from .._numerics._keyed import keyed_uniforms, number_keys
from .._numerics._matrices import row_blocks
from .._sklearn import HasMethods, Interval, StrOptions
from .._torch._batches import AnswerTable
from .._torch._losses import curve_loss, softmax_loss
from .._torch._net import NET_CONSTRAINTS, check_net, predict_logits
from .._validation import row_weights
from ._fixed_panel import FixedPanelDeferrer, best_first
from ._settings import of_roster
from ._sight import GATE_FEATURES
from ._surrogate import agent_values, check_prices, train_surrogate

_LEAST = 1e-6  # probability, so that its logarithm is finite
_LOT = 1e-6  # of an error, which an answer is worth more or less by lot
_NO_OUTPUT = -1  # of those who joined later or gave no answer to learn from
_EACH = 8  # up to which all sizes of panels are compared


def some_sizes(most):
    """Sizes of panels, from 0 to `most`: all small ones, and some of the large ones."""
    large = np.geomspace(_EACH, most, 2 * int(np.log2(most / _EACH)) + 2) if most > _EACH else []
    return np.unique(np.append(np.arange(min(most, _EACH) + 1), np.round(large))).astype(int)


def size_basis(sizes):
    """Functions (n_functions, n_sizes) of the size of a panel, whose weighted sum is what answers add to log-odds.

    They are one for nobody, a line in the logarithm of the size, and corrections of it for every small size.
    """
    line = [sizes == 0, sizes > 0, np.log(np.maximum(sizes, 1))]
    return np.stack([*line, *(sizes == size for size in range(2, _EACH + 1))]) * 1.0


def log_odds(sure, right, sizes):
    """Log-odds (n, n_sizes) of a right label by panels of these sizes, before anything is learnt about panels.

    A panel is taken to be as good as the better of two: the classifier, which is `sure` (n,), and the first who is
    asked, whose probability of being right is `right` (n,).
    """
    best = np.where(sizes > 0, np.maximum(sure, right)[:, None], sure[:, None])
    return logit(np.clip(best, _LEAST, 1 - _LEAST))


class TopKDeferral(FixedPanelDeferrer):
    """Rank classifier and experts by one net, and ask the first k of them, all before anybody answers.

    This is two-stage learning to defer to the top k (Montreuil et al., 2025). A net has an output for each agent: the
    experts and the classifier. Its loss, that of `TwoStageDeferral`, weighs the log-softmax of an agent by what it is
    worth on the item. At the minimum, the outputs rank all agents by their expected cost, so that the loss does not
    depend on k: one fit serves every k, and the order of the experts is learnt once.

    How many are asked, k(x), is learnt by a second net, from how often the label of the first 0, 1, 2, ... people is
    right; it tells items apart by the classifier's probabilities. Without a request, people are asked about an item as
    long as another answer is expected to prevent more errors than it costs (`consultation_cost`); `answers` requests a
    mean number of answers instead, and `n_agents` the same k for all items.

    Parameters
    ----------
    classifier : classifier, default=None
        Classifier with `predict_proba`. It is cloned and fitted, unless it is a `FrozenEstimator`, which is used as it
        is. None is a small neural net, a `NetClassifier` or, with `votes_unlabeled`, a `CountsClassifier`.

    answers : float, default=None
        Mean number of answers per item. They go where they are worth most: many items need none.

    n_agents : int, default=None
        The same k for all items, from 1 to the number of experts and the classifier: the k agents of the largest scores
        are consulted. They are k experts, or k - 1 of them and the classifier where it is among the k. None stands for
        k(x).

    consultation_cost : float, array-like of shape (n_experts,), mapping or None, default=None
        Cost of asking an expert, in units of one error: one cost for all experts, one per expert, or a mapping from
        names of experts to costs, such as a Series. It is at least 0. In the loss, agents are worth what they are in
        `TwoStageDeferral`, and panels cost the sum over their members. None is 0: everybody is asked who is expected
        to prevent an error, however seldom.

    max_answers : int, default=None
        Largest number of answers to an item; None sets no limit.

    label : {"posterior", "vote"}, default="posterior"
        How answers and the classifier are joined, in training and by ``decision="combine"``. "posterior" takes the
        posterior of `predict_team_proba`, as other deferrers do. "vote" is the vote of the paper: each agent weighs by
        its share of the softmax of the scores. The classifier, which costs nothing, takes part also where it is not
        among the first k, and divides its vote by its probabilities of the classes.

    cv : int, splitter or list of splits, default=5
        Folds of the classifier's out-of-fold probabilities, from which the net learns: their number, a splitter, or
        splits as positions in `X`. On the rows that the classifier was fitted on it would seem better than it is, and
        the net would hardly defer.

    gate_features : {"X", "proba"}, callable or None, default=None
        Numbers by which a gate, net or `AnnotatorLDA` inside the deferrer tells items apart: "X" is `X` itself, "proba"
        the probabilities of the classifier, and a callable is given `X` and returns an array or sparse matrix of a row
        per item, for instance the `transform` of a fitted vectoriser. None is "X" where `X` is numbers without gaps: a
        dense table or, for those with a `module`, an array of more dimensions; and "proba" for text, categories, sparse
        matrices and all else that only the classifier understands. The classifier always sees `X` as it is.

    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes in the loss.

    missing_label : object, default=None
        Marker of a missing annotation, or a list, tuple or set of several. None stands for NaN, None, pandas.NA and
        masked entries, and for -1 unless -1 is a class.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None, pandas.NA and masked entries, which always mark one. A -1
        in `y` is a class unless it is the marker.

    module, hidden_layer_sizes, optimizer, lr, momentum, weight_decay, batch_size, max_epochs
        Parameters of the net, as in `AnnotatorLDA`. The defaults are None, (64,), "sgd", 0.05, 0.9, 0.1, 64 and 60.

    device : str, default="auto"
        Device of the training: "auto", "cpu", "cuda", "cuda:1", and so on. "auto" is CUDA if there is a CUDA device,
        else the CPU.

    dtype : {"float32", "float64"}, default="float32"
        Floating type of the training.

    verbose : int, default=0
        1 prints a line per epoch, 2 shows progress bars.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds, the nets, and the classifier unless it has its own.

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
    targets_ : ndarray of shape (n_targets,)
        Names of the targets: every expert of `fit` or `onboard` is one.
    omega_ : ndarray or csr_array of shape (n_experts, n_targets)
        Memberships of the experts in the targets. Rows sum to 1. It is sparse if every expert is a target and it has
        more than ten million entries.
    selection_ : ndarray or csr_array of shape (n_targets, n_experts)
        Weights by which each target selects its members. Rows sum to 1; a target without members has a row of zeros. It
        is sparse if `omega_` is.
    net_ : object
        The trained net that ranks the agents, None without experts; its interface is private.
    size_net_ : object
        The trained net that tells what panels of all sizes are worth, None without experts; its interface is private.
    toll_ : float
        What is added to the cost of every answer so that `answers` is met; 0 without it.
    answers_ : float
        Expected number of answers per item, on `X_unlabeled` or else the labelled items.
    target_shares_ : ndarray of shape (n_targets + 1,)
        Share of the items that each target decides, the classifier last, for `X_unlabeled` or else the labelled items.
        A target decides an item here if it is asked first. Newcomers have 0 until `recalibrate`.
    coverage_ : float
        Share of the items that the classifier decides, the last entry of `target_shares_`.
    workload_ : ndarray of shape (n_experts,)
        Share of the items that each expert is expected to serve.
    n_iter_ : int
        Number of epochs of both nets.
    history_ : list of dict
        Phase, loss and duration (seconds) of every epoch of both nets.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, where it has string names.

    See Also
    --------
    TwoStageDeferral : The same net, for one agent per item.
    PanelDeferral : Asks people one after the other, and learns from few labels.
    ConfidenceDeferral : Compares confidences, without training.

    Notes
    -----
    When not to use it: if people can be asked one by one, `PanelDeferral` needs fewer answers, and chosen at once, too,
    it is as good or better. Accuracy over .25 to 3 answers per item with 25 labels per expert (mean area, seeds 0 to 4,
    ``gate_features="proba"`` here) on the digits, music_genre and cue_conflict: .966, .811 and .808; the panel one by
    one .984, .822 and .850, and chosen at once .964, .822 and .834; one answer by `ConfidenceDeferral`, fused, .939,
    .810 and .809; the best people's weighted vote .908, .762 and .826; the vote of the paper, ``label="vote"``, .944,
    .777 and .808. With up to one answer per item, `ConfidenceDeferral`, fused, is about as good or better. Ranking by
    the items themselves, the default, had .963, .811 and .813. Every expert is an output of its own, learnt from the
    annotations of this expert only, and time grows with items times experts. Sizes of panels that few rows of training
    show are guessed from the smaller ones. k(x) does not see where people err on items that look alike to the
    classifier.

    Departures from the paper. The cost of agent j enters the loss as the weight ``1 - cost_j`` of its own term, as in
    `TwoStageDeferral`, instead of the sum of the costs of all others: the ranking at the minimum is the same, and
    missing annotations of others do not change the weight. The paper trains k(x) for one cost of consultation, as a
    classification of sizes. Here the second net estimates the probability that the label of k people is right, for all
    k, by a logistic loss; k(x) is where it is largest less the costs, so that one fit also serves every cost and every
    mean number of answers (`answers_path`). It sees the classifier's probabilities instead of the item, which was
    better on all four sets that were tried, with 25 labels per expert. Its log-odds are what is known before and what
    the net adds: a number for nobody, a line in the logarithm of k, and a correction for each k from 2 to 8. Known
    before are the classifier's confidence and, if somebody is asked, how often the first is expected to be right
    (`predict_expert_correctness`), if that is more.

    An expert is left out of the loss and the normaliser of a row if the annotation is missing. The first k people of a
    row in training are those among the ones who answered. A newcomer has no output. Until the next `fit`, the score is
    the classifier's, and the logarithm of how many times as likely the newcomer is to be right
    (`predict_expert_correctness`).

    Work is not shared out: whoever is best according to the net is asked first about most items, unless `capacity`
    limits that. With a single expert, k(x) is a cascade: the expert is asked where the classifier is not sure enough.

    References
    ----------
    Montreuil, Carlier, Ng and Ooi (2025), Why ask one when you can ask k? Two-stage learning-to-defer to the top-k
    experts. Mao, Mohri, Mohri and Zhong (2023), Two-stage learning to defer with multiple experts.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import TopKDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = TopKDeferral(LogisticRegression(C=0.01), answers=1.0, random_state=0)
    >>> team.fit(
    ...     crowd.X_identified,
    ...     crowd.y_identified,
    ...     annotations=crowd.annotations,
    ...     X_unlabeled=crowd.X_anonymous,
    ... )
    TopKDeferral(...)
    >>> print(f"{team.answers_:.2f} answers per item")
    1.00 answers per item
    >>> team.score(crowd.X_test, crowd.y_test, annotations=crowd.annotations_test) > 0.9
    True
    >>> team.consult(crowd.X_test[:4]).shape
    (4, 6)
    """

    _parameter_constraints: ClassVar = {
        **NET_CONSTRAINTS,
        **FixedPanelDeferrer._parameter_constraints,
        "classifier": [HasMethods(["fit", "predict", "predict_proba"]), None],
        "n_agents": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "label": [StrOptions({"posterior", "vote"})],
        "cv": FOLDS,
        "gate_features": GATE_FEATURES,
        "consultation_cost": [numbers.Real, "array-like", dict, None],
        "class_weight": [dict, HasMethods(["items"]), StrOptions({"balanced"}), None],
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
    }

    def __init__(
        self,
        classifier=None,
        *,
        answers=None,
        n_agents=None,
        consultation_cost=None,
        max_answers=None,
        label="posterior",
        cv=5,
        gate_features=None,
        class_weight=None,
        missing_label=None,
        unlabeled_label=None,
        module=None,
        hidden_layer_sizes=(64,),
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        weight_decay=0.1,
        batch_size=64,
        max_epochs=60,
        device="auto",
        dtype="float32",
        verbose=0,
        random_state=None,
    ):
        self.classifier = classifier
        self.answers = answers
        self.n_agents = n_agents
        self.consultation_cost = consultation_cost
        self.max_answers = max_answers
        self.label = label
        self.cv = cv
        self.gate_features = gate_features
        self.class_weight = class_weight
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.module = module
        self.hidden_layer_sizes = hidden_layer_sizes
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

    # Hooks of the base classes.

    def _check_settings(self, y):
        super()._check_settings(y)
        check_net(self.get_params(deep=False))
        row_weights(self.class_weight, y)
        check_prices(self.consultation_cost, self.experts_)

    def _check_request(self):
        super()._check_request()
        if self.n_agents is not None and self.answers is not None:
            raise ValueError(
                f"n_agents={self.n_agents} fixes the number of agents of every item, but answers={self.answers:g} asks "
                "for a mean number of answers; leave n_agents or answers out."
            )
        if self.n_agents is None or not self.n_experts_:
            return
        if self.n_agents > self.n_experts_ + 1:
            raise ValueError(
                f"n_agents={self.n_agents}, but with the classifier there are {self.n_experts_ + 1} agents; change it, "
                "or the experts."
            )
        if self.max_answers is not None and self.n_agents > self.max_answers + 1:
            raise ValueError(
                f"n_agents={self.n_agents} asks {self.n_agents - 1} or {self.n_agents} people about every item, but "
                f"max_answers={self.max_answers}; change one of them."
            )

    def _array_form(self):
        return {"dtype": self.dtype, "allow_nd": self.module is not None}

    def _net_settings(self):
        return {"class_weight": self.class_weight, "device": self.device}

    def _learn(self, team):
        self._prepare_sight(team, self.cv)
        price, proba = self._prices(), self._judge_classifier(team, self.cv)
        self._dearest = price.max()
        worth, after = agent_values(team, proba, price)
        value = AnswerTable(team.votes, worth.astype(self.dtype), np.nan, after=after).if_large()
        params = self.get_params(deep=False)
        self.net_, self.history_ = train_surrogate(params, team, value, softmax_loss, self.n_experts_ + 1, self._seed)
        output = np.where(team.votes.n_answers > 0, np.arange(self.n_experts_), _NO_OUTPUT)
        self._single_targets(load=np.zeros(self.n_experts_), output=output)
        self.n_iter_, self._honest = len(self.history_), proba

    def _learn_worth(self, team):
        proba, votes = vars(self).pop("_honest"), team.votes
        score = self._scores_of_answers(team.items, proba, votes)[0]
        turn, n_heard = np.empty(len(score), dtype=int), np.diff(votes.starts)
        order = np.lexsort((-score, votes.item))
        turn[order] = np.arange(len(order)) - votes.starts[votes.item[order]]
        sizes = some_sizes(n_heard.max(initial=0))
        first = np.full(len(votes), -1)
        first[votes.item[turn == 0]] = votes.annotator[turn == 0]
        value = np.full((len(votes), 2 * len(sizes)), np.nan, dtype=self.dtype)
        value[:, : len(sizes)] = log_odds(proba.max(1), self._right_of(proba, first), sizes)
        for column, size in enumerate(sizes, start=len(sizes)):
            rows = n_heard >= size
            heard = votes.select(turn < size)[rows]
            label = self._fused(team.items[rows], proba[rows], heard).argmax(1)
            value[rows, column] = label == team.y_codes[rows]
        basis, params = size_basis(sizes), self.get_params(deep=False) | {"module": None}
        loss = partial(curve_loss, basis=basis)
        self.size_net_, history = train_surrogate(
            params, team, value, loss, len(basis), self._seed, shown=self._shown(proba), label="sizes", from_zero=True
        )
        self.history_, self.n_iter_ = self.history_ + history, self.n_iter_ + len(history)

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.net_ = self.size_net_ = None

    def _order(self, items, available, n_most):
        score = self._agent_scores(items, self._classifier_proba(items))[:, :-1]
        return best_first(np.where(available, score, -np.inf), n_most)

    def _worth(self, items, order):
        proba, sizes = self._classifier_proba(items), np.arange(order.shape[1] + 1)
        if self.n_agents is not None:
            score = self._agent_scores(items, proba)
            ahead = np.take_along_axis(score, order, axis=1) >= score[:, -1:]
            n_ahead = (ahead & (order >= 0)).sum(1, keepdims=True)
            return -1.0 * np.abs(sizes - np.where(n_ahead >= self.n_agents, self.n_agents, self.n_agents - 1))
        curve = predict_logits(self.size_net_, self._shown(proba)) @ size_basis(sizes)
        worth = expit(log_odds(proba.max(1), self._right_of(proba, order[:, 0]), sizes) + curve)
        worth[:, 1:] -= np.cumsum(np.append(self._prices(), 0.0)[order], axis=1)
        lots = keyed_uniforms(self._keys(items), number_keys(0))  # between items of equal probabilities
        return worth + _LOT * lots[:, None] * sizes

    def _fused(self, items, proba, votes):
        if self.label == "posterior":
            return super()._fused(items, proba, votes)
        of_answers, of_classifier = self._scores_of_answers(items, proba, votes)
        best = of_classifier.copy()
        np.maximum.at(best, votes.item, of_answers)
        ballots = np.exp(of_classifier - best)[:, None] * proba
        np.add.at(ballots, (votes.item, votes.label), np.exp(of_answers - best[votes.item]))
        return ballots / ballots.sum(1, keepdims=True)

    def _describe(self, items, y_codes, votes):
        return super()._describe(items, y_codes, votes) | {"output": np.full(votes.shape[1], _NO_OUTPUT)}

    def _shown(self, proba):
        """What the net of the sizes sees of items: the probabilities (n, C) of the classifier."""
        return proba.astype(self.dtype)

    def _right_of(self, proba, who):
        """Expected correctness (n,) of one expert for each item with probabilities (n, C), 0 for -1."""
        return np.where(who >= 0, (proba * self._correctness[who]).sum(1), 0.0)

    # Scores.

    def _prices(self):
        """Costs (n_experts,) of asking."""
        cost = of_roster(self.consultation_cost, "consultation_cost", self._fit_experts, self._roster, 0)
        return check_prices(cost, self.experts_)

    def _agent_scores(self, items, proba):
        """Scores (n, n_experts + 1) of the experts and, last, the classifier with these probabilities (n, C)."""
        logits, output = predict_logits(self.net_, items.array), self._roster.details["output"]
        scores, new = logits[:, np.append(output, -1)], np.flatnonzero(output == _NO_OUTPUT)
        if len(new):
            value = expected_correctness(proba, self._correctness[new]) + self._dearest
            value[:, :-1] -= self._prices()[new]
            scores[:, new] = logits[:, -1:] + np.log(np.maximum(value[:, :-1], _LEAST) / value[:, -1:])
        return scores

    def _scores_of_answers(self, items, proba, votes):
        """Scores (n_answers,) of those who answered about items, and (n,) of the classifier."""
        of_answers, of_classifier, starts = np.empty(len(votes.item)), np.empty(len(votes)), votes.starts
        for rows in row_blocks(len(votes), self.n_experts_ + 1):
            first, last = starts[[rows.start, min(rows.stop, len(votes))]]
            scores = self._agent_scores(items[rows], proba[rows])
            of_classifier[rows] = scores[:, -1]
            of_answers[first:last] = scores[votes.item[first:last] - rows.start, votes.annotator[first:last]]
        return of_answers, of_classifier
