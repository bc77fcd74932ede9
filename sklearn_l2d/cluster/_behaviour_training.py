"""How the behaviours of `AnnotatorLDA` are trained: checks, phases, and what a fit leaves behind."""

import copy
import warnings
from typing import NamedTuple

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from .._encoding import check_row_count, sparse_counts
from .._numerics._marginal_likelihood import check_alpha, likelihood_method
from .._torch._annotation_net import build_annotation_net, drop_consensus, survey
from .._torch._batches import Rows
from .._torch._modules import check_module
from .._torch._net import train
from .._torch._seeding import resolve_device, seeded
from ..annotations import encode_counts


class BehaviourTrainingMixin:
    """Training of K behaviours on anonymous counts."""

    def _fit(self, X, y):
        """Consensus, anchored epochs, then EM; or more EM with a warm start."""
        warm = self.warm_start and self.__sklearn_is_fitted__()
        data = self._check_training_data(X, y, self.classes_ if warm else None, fresh=not warm)
        net, seed, calls = self._continued_net() if warm else self._new_net(data)
        history, n_anchor_epochs = list(self.history_) if warm else [], 0
        settings = {"seed": seed + calls, "verbose": self.verbose}
        rows = Rows(data.X, data.labels, data.votes, dtype=getattr(torch, self.dtype), device=net.device)
        if net.module_.consensus is not None:
            net.module_.phase = "consensus"
            history += train(net, rows, self.n_consensus_epochs, label="consensus", keep=False, **settings)
            net.module_.members.copy_members_from(net.module_.consensus)
            net.initialize_optimizer()
            n_anchor_epochs = self.n_anchor_epochs

        def start_epoch(epoch):
            net.module_.phase = "anchor" if epoch < n_anchor_epochs else "em"
            return net.module_.phase

        history += train(net, rows, self.max_epochs, on_epoch=start_epoch, **settings)
        drop_consensus(net)
        return self._finish(X, data, net, history, seed, calls + 1)

    def _learn_chunk(self, X, y, classes):
        """One epoch on a chunk of a stream."""
        started = self.__sklearn_is_fitted__()
        if started and classes is not None and not np.array_equal(np.asarray(classes), self.classes_):
            raise ValueError(
                f"classes={list(classes)!r} is not the same as in the first call, {self.classes_.tolist()!r}; leave "
                "it out after the first call."
            )
        data = self._check_training_data(X, y, self.classes_ if started else classes, fresh=not started)
        net, seed, calls = self._continued_net() if started else self._new_net(data)
        if net.module_.consensus is not None:
            if calls >= self.n_consensus_epochs + self.n_anchor_epochs:
                drop_consensus(net)
            else:
                net.module_.phase = "stream"
        rows = Rows(data.X, data.labels, data.votes, dtype=getattr(torch, self.dtype), device=net.device)
        history = list(self.history_) if started else []
        history += train(net, rows, 1, seed=seed + calls, cosine=False, verbose=self.verbose, label=net.module_.phase)
        return self._finish(X, data, net, history, seed, calls + 1)

    def _check_items(self, X, reset=False):
        return validate_data(self, X, reset=reset, dtype=self.dtype, allow_nd=self.module is not None)

    def _check_training_data(self, X, y, classes, fresh):
        """Checked rows of a fit; nothing is written to the estimator, so that a failure leaves it as it was."""
        check_module(self.module)
        X = copy.copy(self)._check_items(X, reset=fresh)
        counts, classes = encode_counts(y, classes=classes)
        check_row_count(counts, len(X), "y")
        if fresh and self.n_clusters > len(X):
            raise ValueError(
                f"n_clusters={self.n_clusters} is larger than the number of items in X, {len(X)}; lower it."
            )
        if not fresh and self.n_clusters != len(self.cluster_weights_):
            raise ValueError(
                f"n_clusters={self.n_clusters} cannot change while the training of {len(self.cluster_weights_)} "
                "clusters goes on; set it back, or fit a clone."
            )
        return TrainingData(X, *sparse_counts(counts), classes, fresh)

    def _new_net(self, data):
        """Untrained net, its seed and the number of training calls so far."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        device = resolve_device(self.device)
        with seeded(seed, device):
            net = build_annotation_net(
                self.module,
                n_features=int(np.prod(data.X.shape[1:])),
                n_outputs=len(data.classes),
                hidden_layer_sizes=self.hidden_layer_sizes,
                alpha=check_alpha(self.alpha, self.n_clusters),
                with_consensus=self.init == "consensus" and self.n_clusters > 1,
                max_e_steps=self.max_e_steps,
                e_tol=self.e_tol,
                optimizer=self.optimizer,
                lr=self.lr,
                momentum=self.momentum,
                weight_decay=self.weight_decay / self.n_clusters,
                batch_size=self.batch_size,
                dtype=getattr(torch, self.dtype),
                device=device,
            )
        return net, seed, 0

    def _continued_net(self):
        return copy.deepcopy(self.net_), self._seed, self._n_calls

    def _finish(self, X, data, net, history, seed, n_calls):
        """Set all fitted attributes together, clusters in the order of their agreement with the votes."""
        summary = survey(net, data.X, data.labels, data.votes)
        order = np.argsort(-summary["agreement"], kind="stable")
        weights, distance = summary["weights"][order], summary["distance"][np.ix_(order, order)]
        if net.module_.phase == "em":  # clusters start alike
            warn_of_collapse(weights, distance)
        if data.fresh:
            validate_data(self, X, skip_check_array=True)
        self.classes_ = data.classes
        self.cluster_weights_ = weights
        self.alpha_ = net.alpha.numpy()[order]
        self.likelihood_ = likelihood_method(data.votes, len(weights))
        self.history_ = history
        self.n_iter_ = len(history)
        self._order, self._seed, self._n_calls = order, seed, n_calls
        self.net_ = net
        return self


class TrainingData(NamedTuple):
    """Checked rows of a fit."""

    X: np.ndarray
    labels: np.ndarray
    votes: np.ndarray
    classes: np.ndarray
    fresh: bool


def warn_of_collapse(weights, distance):
    """Warn of clusters that carry less than 1 % of the votes, and of pairs that answer alike everywhere."""
    idle = np.flatnonzero(weights < 0.01)
    twins = np.argwhere(np.triu(distance < 0.01, k=1))
    problems = []
    if len(idle):
        problems.append(f"clusters {idle.tolist()} carry less than 1 % of the votes")
    if len(twins):
        problems.append(f"the clusters of the pairs {twins.tolist()} answer alike everywhere")
    if problems:
        warnings.warn(
            "clusters collapsed: " + "; ".join(problems) + ". Lower n_clusters, raise alpha, or train longer.",
            ConvergenceWarning,
            stacklevel=4,
        )
