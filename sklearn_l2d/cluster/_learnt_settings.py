"""Settings of `AnnotatorLDA` that the votes decide: the penalty, the concentration and the number of behaviours."""

from functools import partial
from typing import NamedTuple

import numpy as np

from .._folds import hold_out
from .._numerics._concentration import cast_terms, exact_votes, learn_concentration, needed
from .._torch._modules import Behaviours, ensemble_for
from .._torch._net import build_net, predict_batches, train
from ._annotation_net import AnnotationNet, build_annotation_net, gather, keep_behaviours, set_alpha

_PENALTIES = np.geomspace(0.003, 0.02, 5)  # that "auto" tries
USUAL_PENALTY = 0.015  # where there is nothing to choose by: in streams, and for a handful of items


def best_penalty(params, data, seed):
    """L2 penalty with which a consensus net predicts the votes of a tenth of the items, of other groups, best.

    Nets with different penalties are trained at once on the votes of the other items. `params` are those of
    `AnnotatorLDA`.
    """
    held_out = hold_out(len(data.X), len(data.X) // 10, seed, data.groups)
    if not (data.votes[held_out].any() and data.votes[~held_out].any()):
        return USUAL_PENALTY
    module = partial(Behaviours, ensemble_for(params, data.X, len(data.classes)), len(_PENALTIES), True)
    net = build_net(AnnotationNet, module, params | {"weight_decay": 0.0}, seed, alpha=None, decay=_PENALTIES)
    net.module_.phase = "penalty"
    net.module_.members.copy_members_from(net.module_.consensus)  # one start for all
    rows = net.rows(data.X, data.labels, data.votes * ~held_out[:, None])  # no copy of X
    train(net, rows, params["n_consensus_epochs"], seed=seed, verbose=params["verbose"], label="penalty", keep=False)
    score = np.zeros(len(_PENALTIES))
    for batch, log_proba in predict_batches(net.module_.members, data.X, net.device):
        log_f = gather(log_proba, net.tensor(data.labels[batch])).cpu().numpy()
        score += (log_f * (data.votes[batch] * held_out[batch, None])[:, :, None]).sum((0, 1))
    return float(np.exp(peak(np.log(_PENALTIES), score)))


def peak(x, y):
    """Where the parabola through the largest of `y` and its neighbours is largest, for equal steps of `x`.

    The largest itself at either end, and where `y` is flat.
    """
    best = int(y.argmax())
    if best in (0, len(y) - 1):
        return x[best]
    before, here, after = y[best - 1 : best + 2]
    bend = 2 * here - before - after
    return x[best] + (x[1] - x[0]) * (after - before) / (2 * bend) if bend > 0 else x[best]


class AlphaLearner(NamedTuple):
    """What `fit` learns the concentration from, and how.

    Attributes
    ----------
    X, labels, votes : ndarrays
        As in `TrainingData`.
    prior : callable
        Prior of the concentration, as that of `learn_concentration`.
    least : float or None
        Nats that a behaviour must bring on all votes; None keeps all.
    """

    X: np.ndarray
    labels: np.ndarray
    votes: np.ndarray
    prior: object
    least: float | None

    def update(self, net):
        """Learn the concentration of a net, and drop the behaviours that the votes do not need; returns the others.

        The exact likelihood of a few behaviours can afford more votes of an item than that of many, and says more.
        """
        items, votes = exact_votes(self.votes, len(net.alpha), np.random.default_rng(0))
        X, labels, share = self.X[items], self.labels[items], votes.sum() / self.votes.sum()
        log_f = [
            gather(log_proba, net.tensor(labels[rows])).cpu().numpy()
            for rows, log_proba in predict_batches(net.module_.members, X, net.device)
        ]
        terms = cast_terms(np.concatenate(log_f), votes)
        alpha, _ = learn_concentration(terms, self.prior, net.alpha)
        kept = np.arange(len(alpha))
        if self.least is not None:
            kept, alpha = needed(terms, self.prior, alpha, self.least * share)
            if len(kept) < len(net.alpha):
                keep_behaviours(net, kept)
        set_alpha(net, alpha)
        return kept


def start_of_needed(params, net, data, learner, n_epochs, settings):
    """Net of the behaviours that the votes need, at their start from the consensus, and what was recorded.

    All behaviours are held to the consensus for some epochs, and those that are not needed then are left out. The
    others start anew: they had a small part of the votes each.
    """

    def start_epoch(epoch):
        net.module_.phase = "anchor"
        return "anchor"

    rows, alpha = net.rows(data.X, data.labels, data.votes), net.alpha
    history = train(net, rows, n_epochs, on_epoch=start_epoch, keep=False, **settings)
    kept = learner.update(net)
    params = params | {"weight_decay": net.penalty}
    fresh = build_annotation_net(params, data.X, len(data.classes), alpha[kept], settings["seed"])
    for ensemble in (fresh.module_.members, fresh.module_.consensus):
        if ensemble is not None:  # one behaviour needs no consensus to hold to
            ensemble.copy_members_from(net.module_.consensus)
    return fresh, history
