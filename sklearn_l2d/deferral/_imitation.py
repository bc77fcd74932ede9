"""Deferrers that imitate their experts: a net for each, which says what the expert would answer."""

import numbers
from typing import ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from .._sklearn import Interval
from .._torch._answer_net import build_answer_net, predict_answers
from .._torch._seeding import resolve_device, seeded
from ._gated import GatedDeferrer


class ImitatingDeferrer(GatedDeferrer):
    """Base of the EM deferrers over single experts that have a net for each of them, all in one ensemble."""

    _per_expert = (*GatedDeferrer._per_expert, "_members")  # which net imitates whom

    _parameter_constraints: ClassVar = {
        **GatedDeferrer._parameter_constraints,
        "answer_hidden_layer_sizes": ["array-like"],
        "answer_weight_decay": [Interval(numbers.Real, 0, None, closed="left")],
        "answer_epochs": [Interval(numbers.Integral, 1, None, closed="left")],
    }

    def _form_targets(self, team):
        self._single_targets()
        self._members = np.arange(len(self.experts_))

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.answer_net_, self._members = None, np.empty(0, dtype=int)

    def predict_annotation_proba(self, X):
        """What every expert would answer.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_experts, n_classes)
            In the order of `experts_` and `classes_`.
        """
        check_is_fitted(self)
        items = self._check_array(X)
        if self.n_experts_ == 0:
            return np.empty((len(items), 0, len(self.classes_)))
        return predict_answers(self.answer_net_, items)[:, self._members]

    def _new_ensemble(self, items, n_members, **settings):
        """Untrained nets beside the gate, which share its module, optimiser and batches."""
        device = resolve_device(self.device)
        with seeded(self._seed, device):
            return build_answer_net(
                self.module,
                n_members,
                items.shape[1],
                len(self.classes_),
                self.answer_hidden_layer_sizes,
                getattr(torch, self.dtype),
                optimizer=self.optimizer,
                lr=self.lr,
                momentum=self.momentum,
                weight_decay=self.answer_weight_decay,
                batch_size=self.batch_size,
                device=device,
                **settings,
            )
