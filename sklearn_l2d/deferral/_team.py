"""What a deferrer learns from."""

from dataclasses import dataclass

import numpy as np

from .._folds import folds_of
from .._items import Items
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
    groups : ndarray of int or None
        Numbers of what `annotated` come from, None if each is drawn by itself.
    fold : ndarray of int of shape (n,) or None
        Number of the fold of each labelled item, where a user gives them.
    """

    items: Items
    y: np.ndarray
    y_codes: np.ndarray
    votes: Votes
    unlabeled: Items | None
    archive: Archive | None
    annotated: Items
    annotations: Votes
    known: np.ndarray
    weights: np.ndarray | None
    groups: np.ndarray | None
    fold: np.ndarray | None = None

    @property
    def counted(self):
        """How many experts gave each answer (n, C) to the labelled items; None without an archive."""
        return None if self.archive is None else self.votes.to_counts()

    def folds(self, cv, seed, stratified=True):
        """Fold (n,) of each labelled item, of `cv` at most: by whole groups, or else stratified by the truth."""
        if self.fold is not None:
            return self.fold
        return folds_of(len(self.y), cv, seed, self.y_codes if stratified else None, self.group_if_any)

    @property
    def group_if_any(self):
        """Numbers (n,) of what the labelled items come from, None if each is drawn by itself."""
        return None if self.groups is None else self.groups[self.known]

    @property
    def weight(self):
        """Weights (n,) of the labelled items."""
        return np.ones(len(self.y)) if self.weights is None else self.weights[self.known]

    @property
    def weight_if_any(self):
        """Weights (n,) of the labelled items; None if all count alike."""
        return None if self.weights is None else self.weight


def new_team(items, y, y_codes, votes, known, weights, groups, unlabeled, archive):
    """`Team` of checked rows; those of unknown truth stay if somebody annotated them.

    Parameters
    ----------
    items : Items
        n rows.
    y, y_codes : ndarrays of shape (n_labelled,)
        True labels of the rows that are labelled.
    votes : Votes
        Annotations of the n rows.
    known : ndarray of bool of shape (n,)
        Which of them are labelled.
    weights : ndarray of shape (n,) or None
        Weights of the n rows; None if all count alike.
    groups : ndarray of int of shape (n,) or None
        Numbers of what the n rows come from.
    unlabeled, archive
        As in `Team`; the archive may still hold items that are in `items`.
    """
    labelled, its_votes = items, votes
    if not known.all():
        labelled, its_votes = items[known], votes[known]
        rows = np.append(np.flatnonzero(known), np.flatnonzero(~known & (np.diff(votes.starts) > 0)))
        items, votes, known = items[rows], votes[rows], known[rows]
        weights, groups = (None if part is None else part[rows] for part in (weights, groups))
    if archive is not None:
        archive = archive.besides(unlabeled, items)
    return Team(labelled, y, y_codes, its_votes, unlabeled, archive, items, votes, known, weights, groups)
