"""What the deferrers that minimise a surrogate loss share: their net, its training, and the classifier inside it."""

from typing import ClassVar

import numpy as np
import torch
from scipy.special import softmax
from sklearn.utils.class_weight import compute_sample_weight

from .._net_parameters import NET_CONSTRAINTS
from .._sklearn import StrOptions
from .._torch._batches import Rows
from .._torch._net import train
from .._torch._seeding import resolve_device, seeded
from .._torch._surrogate_net import build_surrogate_net, predict_logits
from ._answers import expert_prices
from ._base import BaseDeferrer
from ._fitting import FittingMixin
from ._roster import RosterMixin


class SurrogateDeferrer(FittingMixin, RosterMixin, BaseDeferrer):
    """Base of the deferrers that train one net on a surrogate of the team's loss; every expert is a target.

    A subclass gives `_option_scores`, and `_learn` calls `_train`.
    """

    _silence = "nothing can be learnt about them, and nothing is deferred to them"

    _parameter_constraints: ClassVar = {
        **NET_CONSTRAINTS,
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "missing_label": "no_validation",
    }

    def __init__(
        self,
        *,
        class_weight=None,
        missing_label=None,
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

    def _train(self, team, value, row_loss, n_outputs):
        """Train a net on what each option of each row is worth; sets the targets and everything about the net."""
        self._single_targets()
        self._silent = (team.codes < 0).all(0)
        device, dtype = resolve_device(self.device), getattr(torch, self.dtype)
        with seeded(self._seed, device):
            net = build_surrogate_net(
                row_loss,
                module=self.module,
                n_features=team.items.shape[1],
                n_outputs=n_outputs,
                hidden_layer_sizes=self.hidden_layer_sizes,
                dtype=dtype,
                optimizer=self.optimizer,
                lr=self.lr,
                momentum=self.momentum,
                weight_decay=self.weight_decay,
                batch_size=self.batch_size,
                device=device,
            )
        weight = compute_sample_weight(self.class_weight, team.y)
        targets = (a.astype(self.dtype) for a in (value, weight / weight.mean()))
        rows = Rows(team.items, *targets, dtype=dtype, device=device)
        self.history_ = train(net, rows, self.max_epochs, seed=self._seed, verbose=self.verbose, label="surrogate loss")
        self.net_, self.n_iter_ = net, len(self.history_)

    def _option_scores(self, logits):
        """Scores (n, n_targets + 1) from the logits of the net, the classifier last."""
        raise NotImplementedError

    def _scores(self, X):
        scores = self._option_scores(predict_logits(self.net_, X))
        scores[:, :-1][:, self._silent] = -np.inf
        return scores

    def _prices(self):
        """What asking each expert (n_experts,) costs, in errors."""
        prices = np.broadcast_to(
            expert_prices(self.expert_cost, self.experts_, parameter="expert_cost"), len(self.experts_)
        )
        if (prices < 0).any():
            raise ValueError(f"expert_cost={self.expert_cost!r} is negative for somebody; asking costs at least 0.")
        return prices


class JointDeferrer(SurrogateDeferrer):
    """Base of those whose net is the classifier as well: its first C outputs."""

    def _learn(self, team):
        value = np.column_stack([np.eye(len(self.classes_))[team.y_codes], self._value(team)])
        self._train(team, value, self._row_loss(), self._n_outputs())
        self.classifier_ = FirstOutputs(self.net_, self.classes_, self._link())
        self.temperature_ = 1.0
        self._measure_shares(team)

    def _fit_nobody(self, team):
        self._learn(team)

    def _classifier_input(self, X):
        return self._check_items(X)

    def _value(self, team):
        """What each expert's answers were worth, of shape (n, n_experts), NaN where one is missing."""
        return right_answers(team)

    def _row_loss(self):
        """Loss of `_surrogate_losses`, bound to everything but logits and values."""
        raise NotImplementedError

    def _n_outputs(self):
        return len(self.classes_) + len(self.experts_)

    def _link(self):
        """Function of `_surrogate_links` that belongs to the loss."""
        raise NotImplementedError


class FirstOutputs:
    """The classifier in the first outputs of a net that also decides about deferral.

    Parameters
    ----------
    net : SurrogateNet
        Trained.
    classes : ndarray of shape (n_classes,)
        Labels.
    link : callable
        Function of `_surrogate_links`; its class probabilities are scaled to a sum of 1.
    """

    def __init__(self, net, classes, link):
        self.net, self.classes_, self.link = net, classes, link

    def predict_proba(self, X):
        """Probabilities (n, n_classes) of checked items."""
        return softmax(self._log_class(X), axis=1)

    def predict(self, X):
        """Most probable labels (n,) of checked items."""
        return self.classes_[self._log_class(X).argmax(1)]

    def _log_class(self, X):
        return self.link(predict_logits(self.net, X), len(self.classes_))[0]


def right_answers(team):
    """Who was right on each row of a team: 1, 0, or NaN where an annotation is missing, of shape (n, n_experts)."""
    return np.where(team.codes < 0, np.nan, team.codes == team.y_codes[:, None])
