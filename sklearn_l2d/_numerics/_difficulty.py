"""Items that are hard for everybody: how sure a label is where people contradict one another.

An item has a difficulty, normal with mean 0 and the same for all people, by which the logit of everybody's chance to be
right falls. It is integrated out on a few nodes. Where people contradict one another, the item is probably hard, and
each of their answers tells less than it would alone; where they agree, it is probably easy.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, logit, softmax

from ._matrices import log_sum_exp

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_LOG_WEIGHTS = np.log(_WEIGHTS)
_LEAST = 1e-4  # probability of a right and of a wrong answer
_LOGITS = np.linspace(logit(_LEAST), -logit(_LEAST), 2001)


class Told(NamedTuple):
    """What answers tell of the truth of their items.

    Attributes
    ----------
    log_likelihood : ndarray of shape (n_answers, n_classes)
        ``ln p(answer | truth)`` in nats, over all difficulties; the column is the truth.
    accuracy : ndarray of shape (n_answers, n_classes)
        Probability that the author of the answer is right, for each truth, over all difficulties.
    label : ndarray of int of shape (n_answers,)
        The answers.
    """

    log_likelihood: np.ndarray
    accuracy: np.ndarray
    label: np.ndarray

    def at_difficulties(self, spread):
        """Log-likelihood (n_answers, `n_difficulties`, n_classes) at each difficulty of the item.

        Over difficulties, as `over_difficulties` takes it, this is what it was: one answer alone tells what it did. Of
        the wrong answers, each is as frequent among all wrong ones as it was.
        """
        if spread == 0:
            return self.log_likelihood[:, None]
        known = logit(np.clip(self.accuracy, _LEAST, 1 - _LEAST))
        moved = np.interp(known, _LOGITS, _typical_logits(spread))[:, None] - spread * _NODES[:, None]
        change = log_expit(-moved) - log_expit(-known)[:, None]
        rows = np.arange(len(self.label))  # ln p = ln (1 - p) + logit p
        change[rows, :, self.label] += moved[rows, :, self.label] - known[rows, self.label][:, None]
        change += self.log_likelihood[:, None]
        return change


def n_difficulties(spread):
    """Number of difficulties over which answers are integrated."""
    return len(_NODES) if spread else 1


def over_difficulties(log_likelihood):
    """Log-likelihood (n, n_classes) of answers to n items over all difficulties.

    `log_likelihood` (n, n_difficulties, n_classes) is the sum over answers, which are independent at each difficulty.
    """
    if log_likelihood.shape[1] == 1:
        return log_likelihood[:, 0]
    return log_sum_exp(log_likelihood + _LOG_WEIGHTS[:, None], axis=1)


def difficulty_given(log_likelihood):
    """Probabilities (n, n_difficulties, n_classes) of each difficulty given the answers to an item, for each truth."""
    if log_likelihood.shape[1] == 1:
        return np.ones(log_likelihood.shape)
    return softmax(log_likelihood + _LOG_WEIGHTS[:, None], axis=1)


@lru_cache
def _typical_logits(spread):
    """Logits, at a difficulty of 0, of people whose accuracy over all items has the logits `_LOGITS`."""
    mean, found = expit(_LOGITS), _LOGITS
    for _ in range(20):  # steps of Newton's method
        chance = expit(found[:, None] - spread * _NODES)
        found = found - (chance @ _WEIGHTS - mean) / ((chance * (1 - chance)) @ _WEIGHTS)
    return found
