"""Base of the deferrers that imitate each expert by a net, which predicts the expert's answers."""

import numbers
from functools import partial
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._numerics._answers import expected_likelihood, team_log_likelihood
from .._numerics._matrices import is_small
from .._sklearn import Interval
from .._torch._batches import RowTable
from .._torch._e_steps import answer_posterior
from .._torch._modules import check_layers, ensemble_for
from .._torch._net import Net, build_net, predict_batches
from .._validation import check_memory
from ._gate import GatedDeferrer
from ._settings import share_bounds

_TABLES = 8  # of items and experts that an E-step under bounds on people holds at once, roughly


class AnswerNet(Net):
    """M nets, one per expert, trained on annotations and on the posterior of missing annotations.

    Targets are the codes (b, M), -1 missing, the true classes (b,), the responsibilities (b, M) and row weights (b,) of
    mean 1. The nets do not influence one another.

    Attributes
    ----------
    log_truth : ndarray of shape (C, C)
        ``ln p(y | answer)``, the row is the true class.
    """

    def batch_loss(self, logits, targets, X):
        codes, y_codes, share, weight = targets
        log_f = logits.log_softmax(-1).transpose(0, 1)
        log_truth = self.tensor(self.log_truth)[y_codes]
        q = answer_posterior(log_f.detach().double(), codes, share, log_truth) * weight[:, None, None]
        return -(q.to(log_f.dtype) * log_f).sum() / len(X)


def predict_answers(net, X):
    """Probabilities (n, M, C) of the experts' answers, float64."""
    return np.concatenate([proba for _, proba in answer_batches(net, X)])


def answers_likelihood(net, X, y_codes, likelihood):
    """Likelihood (n, M) of the true class, integrated over the experts' answers.

    `likelihood` (C, C) is that of the true class, the row, given an answer. Probabilities are computed batch by batch.
    """
    return np.concatenate(
        [expected_likelihood(proba, y_codes[rows], likelihood) for rows, proba in answer_batches(net, X)]
    )


def answer_batches(net, X):
    """Yield rows and the probabilities (b, M, C) of the experts' answers to them."""
    for rows, log_proba in predict_batches(net.module_, X, net.device):
        yield rows, log_proba.exp().transpose(0, 1).cpu().numpy()


class ImitatingDeferrer(GatedDeferrer):
    """Base of the EM deferrers over single experts, with an ensemble of one net per expert.

    A subclass returns the codes of all answers, and the likelihood of those that are missing, in `_answers`. Large
    tables of items and experts are made for a few rows at a time, unless bounds on people need all rows at once.
    """

    _parameter_constraints: ClassVar = {
        **GatedDeferrer._parameter_constraints,
        "answer_hidden_layer_sizes": ["array-like"],
        "answer_weight_decay": [Interval(numbers.Real, 0, None, closed="left")],
        "answer_epochs": [Interval(numbers.Integral, 1, None, closed="left")],
    }

    _n_options = 1  # to use an expert

    def _check_settings(self, y):
        super()._check_settings(y)
        check_layers(self.answer_hidden_layer_sizes, "answer_hidden_layer_sizes")
        if share_bounds(None, self.workload, None, self.experts_, []).bind_experts:
            check_memory(
                _TABLES * 8 * len(y) * (self._n_options * self.n_experts_ + 1),
                f"meeting bounds on {self.n_experts_} experts by {len(y)} items",
                "people are the cost of this deferrer: pass fewer items, bound the coverage only, or let "
                "ClusterDeferral pool the experts",
            )

    def _form_targets(self, team):
        self._single_targets(members=np.arange(self.n_experts_))

    def _fit_nobody(self, team):
        super()._fit_nobody(team)
        self.answer_net_ = None

    @property
    def _members(self):
        """Index of the net of each expert on the roster."""
        return self._roster.details["members"]

    def predict_annotation_proba(self, X):
        """Predict the answers of every expert.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Items.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_experts, n_classes)
            Probabilities in the order of `experts_` and `classes_`.
        """
        check_is_fitted(self)
        items = self._check_items(X).array
        if self.n_experts_ == 0:
            return np.empty((len(items), 0, len(self.classes_)))
        return predict_answers(self.answer_net_, items)[:, self._members]

    def _answers(self, items, votes, y_codes):
        """Codes (n, n_experts) of the answers, and a function of rows: the likelihood of the missing ones, or None."""
        raise NotImplementedError

    def _evidence(self, items, votes, y_codes, proba, price, counted=None):
        log_likelihood, prior = self._log_likelihood(items, votes, y_codes, proba, price, counted), None
        if self.prior_weight > 0:
            prior = self._table(lambda rows: self._prior(proba[rows]), (len(items), len(self.targets_) + 1))
        return {"log_likelihood": log_likelihood, "prior": prior}

    def _log_likelihood(self, items, votes, y_codes, proba, price, counted=None):
        likelihood = self._answer_likelihood()
        codes, absent = self._answers(items, votes, y_codes)

        def make(rows):
            log_likelihood = team_log_likelihood(codes[rows], y_codes[rows], proba[rows], likelihood, absent(rows))
            log_likelihood[:, :-1] -= price
            return log_likelihood

        return self._table(make, (votes.shape[0], votes.shape[1] + 1))

    def _table(self, make, shape):
        """`RowTable`; an array if it is small, or if bounds on people need all rows."""
        table = RowTable(make, shape)
        return np.asarray(table) if is_small(shape) or self._bind_people(self._bounds(self._roster)) else table

    def _new_ensemble(self, kind, items, n_members, **context):
        """Untrained nets of a `kind`, with the module, optimiser and batch size of the gate."""
        params = self.get_params(deep=False) | {"weight_decay": self.answer_weight_decay}
        build = ensemble_for(params, items, len(self.classes_), self.answer_hidden_layer_sizes)
        return build_net(kind, partial(build, n_members=n_members), params, self._seed, **context)
