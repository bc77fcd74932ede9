"""What a deferrer learns from, and what its parts see of items."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._folds import folds_of
from .._items import Items
from .._sklearn import StrOptions
from .._votes import Votes
from ._archive import Archive


@dataclass(frozen=True)
class Team:
    """Checked rows that a deferrer learns from.

    Attributes
    ----------
    items : Items
        Labelled items, n rows.
    y : ndarray of shape (n,)
        True labels.
    y_codes : ndarray of int of shape (n,)
        Their positions in `classes_`.
    votes : Votes
        Annotations of the experts.
    groups : ndarray of int of shape (n,) or None
        Numbers of what the labelled items come from, None if each is drawn by itself.
    unlabeled : Items or None
        Items of which neither labels nor annotations are given.
    archive : Archive or None
        Those with votes, from which the classifier learns. None of them is in `annotated`.
    annotated : Items
        The labelled items, and then those of unknown truth that somebody annotated.
    annotations : Votes
        Their annotations.
    known : ndarray of bool
        Which of `annotated` are labelled.
    weights : ndarray or None
        Weights of `annotated`; None if all count alike.
    """

    items: Items
    y: np.ndarray
    y_codes: np.ndarray
    votes: Votes
    groups: np.ndarray | None
    unlabeled: Items | None
    archive: Archive | None
    annotated: Items
    annotations: Votes
    known: np.ndarray
    weights: np.ndarray | None

    @property
    def counted(self):
        """How many experts gave each answer (n, C) to the labelled items; None without an archive."""
        return None if self.archive is None else self.votes.to_counts()

    def folds(self, cv, seed):
        """Fold (n,) of each labelled item, of `cv` at most: by whole groups, or else stratified by the truth."""
        return folds_of(len(self.y), cv, seed, self.y_codes, self.groups)

    @property
    def weight(self):
        """Weights (n,) of the labelled items."""
        return np.ones(len(self.y)) if self.weights is None else self.weights[self.known]

    @property
    def weight_if_any(self):
        """Weights (n,) of the labelled items; None if all count alike."""
        return None if self.weights is None else self.weight


class Sight(NamedTuple):
    """What the parts of a deferrer see of items of the kind that it was fitted to.

    Attributes
    ----------
    are_numbers : bool
        Whether the items are numbers in a dense array or table.
    net : {"X", "proba"}, callable or None
        What the gate or net sees: the items as they are, the probabilities of the classifier, or what a callable makes
        of the items. None without a net.
    clusterer : {"X", "proba"}, callable or None
        The same for the clusterer.
    shape : tuple of int, default=None
        Of a row that the callable makes.
    """

    are_numbers: bool
    net: object
    clusterer: object
    shape: tuple | None = None


GATE_FEATURES = [StrOptions({"X", "proba"}), callable, None]  # constraint of the parameter
