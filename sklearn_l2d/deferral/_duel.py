"""The best human target of every item against the classifier: all that a decision needs of many scores."""

from itertools import chain
from typing import NamedTuple

import numpy as np


class Duel(NamedTuple):
    """Scores of the best human target of every item and of the classifier.

    Attributes
    ----------
    target : ndarray of int of shape (n,)
        The best human target.
    human, classifier : ndarrays of shape (n,)
        Scores of this target, -inf where nobody can be asked, and of the classifier.
    """

    target: np.ndarray
    human: np.ndarray
    classifier: np.ndarray

    @classmethod
    def of(cls, scores):
        """The duel in scores (n, n_targets + 1), the classifier last."""
        return cls.between(scores[:, :-1], scores[:, -1])

    @classmethod
    def between(cls, human, classifier):
        """The duel between the targets with scores `human` (n, n_targets) and the classifier (n,)."""
        if human.shape[1] == 0:
            return cls(np.full(len(human), -1), np.full(len(human), -np.inf), classifier)
        target = human.argmax(1)
        return cls(target, human[np.arange(len(human)), target], classifier)

    @classmethod
    def joined(cls, duels, n):
        """The duels of consecutive items, n in all, from a generator as one."""
        first = next(duels)
        if len(first.target) == n:
            return first
        duels = chain([first], duels)
        whole, start = cls(np.empty(n, dtype=np.intp), np.empty(n), np.empty(n)), 0
        for duel in duels:  # kept one by one, they would leave holes in the memory between the scores of the blocks
            rows = slice(start, start + len(duel.target))
            for all_of_it, part in zip(whole, duel, strict=True):
                all_of_it[rows] = part
            start = rows.stop
        return whole

    def shifted(self, offset):
        """The same duel with an offset on the classifier's scores."""
        return self._replace(classifier=self.classifier + offset)

    @property
    def chosen(self):
        """Target codes (n,) of the largest scores, -1 for the classifier."""
        asked = (self.human >= self.classifier) & (self.human > -np.inf)
        return np.where(asked, self.target, -1)

    def shares(self, n_targets, sample_weight=None):
        """Shares (n_targets + 1,) of the items that the targets and, last, the classifier decide."""
        total = len(self.target) if sample_weight is None else sample_weight.sum()
        return np.bincount(self.chosen % (n_targets + 1), sample_weight, n_targets + 1) / total
