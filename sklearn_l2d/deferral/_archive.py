"""The archive: items of unknown truth with votes on them, from which a classifier learns beside the labelled items."""

from dataclasses import dataclass

import numpy as np

from .._anonymous import anonymous_counts, are_named, named_votes
from .._encoding import some
from .._items import stacked
from .._sklearn import take_rows, warn
from .._votes import Votes

ARCHIVE = {"name": "votes_unlabeled", "of": "X_unlabeled"}  # what errors call them


@dataclass(frozen=True)
class Archive:
    """Items of unknown truth with votes on them.

    Attributes
    ----------
    rows : ndarray of int of shape (n,)
        Their positions in `X_unlabeled`.
    X : array-like of n rows
        Items as given.
    counts : ndarray of shape (n, C)
        Votes for each class.
    votes : Votes or None
        The same with their authors, where these are known.
    classes : ndarray of shape (C,)
        Class labels.
    """

    rows: np.ndarray
    X: object
    counts: np.ndarray
    votes: Votes | None
    classes: np.ndarray

    def __len__(self):
        return len(self.counts)

    def on(self, rows):
        """The archive of some rows, by position."""
        votes = None if self.votes is None else self.votes[rows]
        return Archive(self.rows[rows], take_rows(self.X, rows), self.counts[rows], votes, self.classes)

    def besides(self, unlabeled, annotated):
        """The items that have votes and are not among `annotated`; `unlabeled` are the `Items` of `X_unlabeled`."""
        kept = self.counts.any(1) & ~np.isin(unlabeled.keys(0), annotated.keys(0))
        if not kept.any():
            raise ValueError(
                "votes_unlabeled hold no vote on items that are not also in X, with a label or annotations; leave them "
                "out."
            )
        return self.on(np.flatnonzero(kept))

    def behind(self, X, y, sample_weight):
        """Items, labels and weights of labelled items, and then of the archive, whose labels are missing."""
        labels = np.append(np.asarray(y, dtype=object), np.full(len(self), None))
        weights = None if sample_weight is None else np.append(sample_weight, np.ones(len(self)))
        return stacked(X, self.X), labels, weights

    def counts_behind(self, of_labelled):
        """Votes for each class: those on labelled items (n_labelled, C), and then those of the archive."""
        return np.vstack([of_labelled, self.counts])

    def votes_behind(self, n_labelled):
        """`Votes`, none of them on labelled items, which come first."""
        votes, n_items = self.votes, n_labelled + len(self)
        item = votes.item + np.int64(n_labelled)
        return Votes(item, votes.annotator, votes.label, n_items, votes.classes, votes.annotators)


def read_archive(unlabeled, votes, classes, missing_label):
    """The archive's votes and all classes: those that are known, and those that it adds.

    Parameters
    ----------
    unlabeled : array-like of n rows
        Items as given.
    votes : array-like, DataFrame or Votes
        Votes on them, as `fit` of a deferrer takes them.
    classes : ndarray of shape (n_known,)
        Known classes.
    missing_label : object
        As in `annotations.encode_annotations`.
    """
    if are_named(votes):
        named = named_votes(votes, unlabeled, classes, missing_label, **ARCHIVE)
        counts, every = named.to_counts().astype(float), named.classes
    else:
        named, (counts, every) = None, anonymous_counts(votes, unlabeled, classes, **ARCHIVE)
    new = np.setdiff1d(every[counts.any(0)], classes)
    if len(new):
        warn(
            f"votes_unlabeled hold labels that y and annotations lack, {some(new.tolist())}; they are taken as "
            "classes. If they are misspelt, correct them."
        )
    return Archive(np.arange(len(counts)), unlabeled, counts, named, every)
