"""Base of the deferrers that minimise a surrogate loss: the net, its training, and its classifier."""

from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import log_expit, logsumexp, softmax

from .._items import as_array
from .._sklearn import HasMethods, StrOptions
from .._torch._batches import AnswerTable
from .._torch._modules import Single, ensemble_for
from .._torch._net import NET_CONSTRAINTS, Net, build_net, check_net, predict_logits, train
from .._validation import row_weights
from ._base import BaseDeferrer
from ._settings import expert_prices


def softmax_link(logits, n_classes):
    """Estimates of the softmax parametrisation (Multi-L2D Eq. 12).

    Parameters
    ----------
    logits : ndarray of shape (n, C + M)
        Logits of the classes and the experts.
    n_classes : int
        C.

    Returns
    -------
    log_class : ndarray of shape (n, C)
        ``ln p(y = c | x)``.
    log_right : ndarray of shape (n, M)
        ``ln p(m_j = y | x)``, without an upper bound. ``t_j / (1 - sum t)`` is the share of an expert divided by that
        of all classes: the normaliser cancels, and there is no loss of precision if the experts hold nearly all of it.
    """
    shares = logits - logsumexp(logits[:, :n_classes], axis=1, keepdims=True)
    return shares[:, :n_classes], shares[:, n_classes:]


def one_vs_all_link(logits, n_classes):
    """Estimates of the one-vs-all parametrisation (Multi-L2D Eq. 13); arguments and shapes as in `softmax_link`.

    The class probabilities of a row need not sum to 1.
    """
    shares = log_expit(logits)
    return shares[:, :n_classes], shares[:, n_classes:]


def less_price(log_right, price):
    """``ln(p - price)`` from ``ln p`` (n, M) and costs (M,) of at least 0; -inf where ``p <= price``."""
    with np.errstate(divide="ignore"):
        return log_right + np.log1p(-np.exp(np.minimum(np.log(price) - log_right, 0.0)))


class SurrogateNet(Net):
    """Mean of a loss per row; targets are the values of the options and row weights of mean 1.

    Weights are not normalised within a batch, so that a batch without heavy rows counts less.

    Attributes
    ----------
    row_loss : callable
        Loss of `_torch._losses` with its other arguments bound.
    """

    def batch_loss(self, logits, targets, X):
        value, weight = (target.to(logits.dtype) for target in targets)
        return (weight * self.row_loss(logits, value)).mean()


def train_surrogate(
    params,
    team,
    value,
    row_loss,
    n_outputs,
    seed,
    *,
    shown=None,
    label="surrogate loss",
    from_zero=False,
    first_loss=None,
):
    """Train a net on a loss of the labelled rows of a team.

    Parameters
    ----------
    params : dict
        Parameters of a deferrer that has those of a net and `class_weight`.
    team : Team
        n labelled items.
    value : AnswerTable or ndarray of shape (n, n_values)
        What `row_loss` compares the logits with.
    row_loss : callable
        Of logits and values.
    n_outputs : int
        Number of logits.
    seed : int
        Seed of the initial weights and the batches.
    shown : ndarray of shape (n, ...), default=None
        What the net sees of the items; None is their array.
    label : str
        Name of the phase.
    from_zero : bool
        Whether the outputs of a perceptron begin with 0.
    first_loss : callable or None
        The loss of the first quarter of the epochs, where that is another one.

    Returns
    -------
    net : SurrogateNet
        The trained net.
    history : list of dict
        Phase, loss and duration of every epoch.
    """
    shown = team.items.array if shown is None else shown
    module = partial(Single, ensemble_for(params, shown, n_outputs), from_zero=from_zero)
    net = build_net(SurrogateNet, module, params, seed, row_loss=row_loss)
    weight = row_weights(params["class_weight"], team.y, team.weight_if_any)
    rows = net.rows(shown, value, (weight / weight.mean()).astype(params["dtype"]))
    n_epochs = params["max_epochs"]

    def choose_loss(epoch):
        net.row_loss = row_loss if first_loss is None or epoch >= n_epochs // 4 else first_loss
        return label

    return net, train(net, rows, n_epochs, seed=seed, verbose=params["verbose"], on_epoch=choose_loss)


class SurrogateDeferrer(BaseDeferrer):
    """Base of the deferrers that train one net on a surrogate of the team's loss; every expert is a target.

    A subclass defines `_option_scores`, and its `_learn` calls `_train`.
    """

    _silence = "nothing can be learnt about them, and nothing is deferred to them"

    _parameter_constraints: ClassVar = {
        **NET_CONSTRAINTS,
        "class_weight": [dict, HasMethods(["items"]), StrOptions({"balanced"}), None],
        "missing_label": "no_validation",
        "unlabeled_label": "no_validation",
    }

    def __init__(
        self,
        *,
        class_weight=None,
        missing_label=None,
        unlabeled_label=None,
        module=None,
        hidden_layer_sizes=(32,),
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        weight_decay=0.01,
        batch_size=64,
        max_epochs=60,
        device="auto",
        dtype="float32",
        verbose=0,
        random_state=None,
    ):
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

    def _check_settings(self, y):
        super()._check_settings(y)
        check_net(self.get_params(deep=False))
        row_weights(self.class_weight, y)

    def _array_form(self):
        return {"dtype": self.dtype, "allow_nd": self.module is not None}

    def _train(self, team, worth, row_loss, n_outputs, before=None, after=None, first_loss=None):
        """Train a net on the value of each option on each row; set the targets and the attributes of the net.

        `worth` are the values (n_answers,) of the answers, `before` and `after` those of the other options. The first
        quarter of the epochs has the loss `first_loss`, if it is given.
        """
        self._single_targets()
        self._silent = team.votes.n_answers == 0
        value = AnswerTable(team.votes, worth.astype(self.dtype), np.nan, before, after).if_large()
        params = self.get_params(deep=False)
        self.net_, self.history_ = train_surrogate(
            params, team, value, row_loss, n_outputs, self._seed, first_loss=first_loss
        )
        self.n_iter_ = len(self.history_)

    def _option_scores(self, logits):
        """Scores (n, n_targets + 1) from the logits of the net, the classifier last."""
        raise NotImplementedError

    def _scores(self, items):
        scores = self._option_scores(predict_logits(self.net_, items.array))
        scores[:, :-1][:, self._silent] = -np.inf
        return scores


def check_prices(cost, experts):
    """Cost of asking each expert (n_experts,), in errors, refused if negative."""
    prices = expert_prices(cost, experts)
    if (prices < 0).any():
        raise ValueError(f"consultation_cost={cost!r} is negative for somebody; asking costs at least 0.")
    return prices


class JointDeferrer(SurrogateDeferrer):
    """Base of the surrogate deferrers whose classifier is the first C outputs of the net."""

    def _learn(self, team):
        truth = np.eye(len(self.classes_), dtype=self.dtype)[team.y_codes]
        self._train(
            team, self._worth(team), self._row_loss(), self._n_outputs(), before=truth, first_loss=self._first_loss()
        )
        self.classifier_ = FirstOutputs(self.net_, self.classes_, self._link(), self.dtype)
        self.temperature_ = 1.0
        self._measure_shares(team)

    def _fit_nobody(self, team):
        self._learn(team)

    def _worth(self, team):
        """Values (n_answers,) of the experts' answers."""
        return right_answers(team)

    def _row_loss(self):
        """Loss of `_torch._losses` as a function of logits and values."""
        raise NotImplementedError

    def _first_loss(self):
        """Loss of the first quarter of the epochs."""
        return self._row_loss()

    def _n_outputs(self):
        return len(self.classes_) + len(self.experts_)

    def _link(self):
        """Link that belongs to the loss."""
        raise NotImplementedError


class FirstOutputs:
    """The classifier in the first outputs of a net that also decides on deferral.

    Parameters
    ----------
    net : SurrogateNet
        Trained net.
    classes : ndarray of shape (n_classes,)
        Labels.
    link : callable
        `softmax_link` or `one_vs_all_link`; its class probabilities are scaled to a sum of 1.
    dtype : str
        Floating type of the items.
    """

    def __init__(self, net, classes, link, dtype):
        self.net, self.classes_, self.link, self.dtype = net, classes, link, dtype

    def predict_proba(self, X):
        """Probabilities (n, n_classes) of items."""
        return softmax(self._log_class(X), axis=1)

    def predict(self, X):
        """Most probable labels (n,) of items."""
        return self.classes_[self._log_class(X).argmax(1)]

    def _log_class(self, X):
        return self.link(self._logits(np.asarray(as_array(X), dtype=self.dtype)), len(self.classes_))[0]

    def _logits(self, items):
        return predict_logits(self.net, items, len(self.classes_))


def agent_values(team, proba, price):
    """What experts and a classifier are worth in a loss that is to be weighed by values of at least 0.

    Parameters
    ----------
    team : Team
        n labelled items with n_answers answers.
    proba : ndarray of shape (n, C)
        Probabilities of the classifier on items that it does not know.
    price : ndarray of shape (M,)
        Costs of asking, in errors.

    Returns
    -------
    answers : ndarray of shape (n_answers,)
        ``1(right) - price_j + c``, with c the largest price.
    classifier : ndarray of shape (n, 1)
        ``1(right) + c``.
    """
    dearest = price.max(initial=0.0)  # keeps the values from being negative
    right = proba.argmax(1) == team.y_codes
    return right_answers(team) - price[team.votes.annotator] + dearest, right[:, None] + dearest


def right_answers(team):
    """Correctness (n_answers,) of the answers of a team, 1 or 0."""
    return (team.votes.label == team.y_codes[team.votes.item]) * 1.0
