"""Crowds in the form of the story: an anonymous archive and, where there is one, a roster of known experts."""

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from .._folds import hold_out
from ..annotations import to_counts
from ..datasets import load_crowd, load_digits_crowd, sample_identified

MAX_ITEMS = 6000  # of an archive: more would take longer than a demonstration should
MIN_LABELS = 5  # below which an expert of a real set says too little
_SHARED_BY = ("shape_id", "patient", "slide")  # items that share one of these must not be split


@dataclass
class Crowd:
    """What the story is about; labels are positions in `classes`, -1 where there is none.

    Attributes
    ----------
    title : str
        What the items and the experts are.
    X, counts : ndarrays of shape (n, d) and (n, C)
        The anonymous archive.
    classes : list of str
        Names of the classes.
    y : ndarray of shape (n,), or None
        True classes of the archive; used to judge, never to fit.
    X_identified, annotations : ndarrays of shape (n', d) and (n', M), or None
        Items whose annotators are known.
    experts : list of str
        Names of the experts.
    y_identified : ndarray of shape (n',), or None
        True classes of the identified items.
    X_test, annotations_test, y_test : ndarrays of shape (n'', d), (n'', M) and (n'',), or None
        Items on which routing is judged: known annotators, known truth, at least one label each.
    accuracy : ndarray of shape (M,), or None
        Share of right answers of each expert, as far as possible from labels that are not among the identified ones.
    sources : ndarray of int of shape (n',), or None
        What the identified items come from, such as the patient, where several come from one. Those of the test items
        are others.
    groups : ndarray of shape (M,), or None
        Who truly belongs together.
    groups_are : str
        What the groups are, after "experts who".
    """

    title: str
    X: np.ndarray
    counts: np.ndarray
    classes: list
    y: np.ndarray | None = None
    X_identified: np.ndarray | None = None
    annotations: np.ndarray | None = None
    experts: list = ()
    y_identified: np.ndarray | None = None
    X_test: np.ndarray | None = None
    annotations_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    accuracy: np.ndarray | None = None
    sources: np.ndarray | None = None
    groups: np.ndarray | None = None
    groups_are: str = ""

    def sources_of(self, rows):
        """What some of the identified items come from, None if nobody says."""
        return None if self.sources is None else self.sources[rows]


def digits_crowd(n_labels, seed):
    """The embedded crowd."""
    data = load_digits_crowd(n_identified=n_labels, random_state=seed)
    return Crowd(
        title="handwritten digits, labelled by three pairs of simulated experts who err rarely, sometimes and often",
        X=data.X_anonymous,
        counts=data.counts,
        classes=list(data.target_names),
        y=data.y_anonymous,
        X_identified=data.X_identified,
        annotations=data.annotations,
        experts=list(data.experts),
        y_identified=data.y_identified,
        X_test=data.X_test,
        annotations_test=data.annotations_test,
        y_test=data.y_test,
        accuracy=1 - np.asarray(data.realized_rates),
        groups=np.asarray(data.groups),
        groups_are="err equally often",
    )


def real_crowd(name, n_labels, seed):
    """A set of `load_crowd`; where its annotators are known, a quarter is identified, a fifth kept for tests."""
    data = load_crowd(name)
    if data.X is None:
        raise ValueError(f"the set {name!r} has labels only, and behaviours are learnt from features; choose another.")
    if data.ann_item is None:
        return _anonymous_crowd(data, seed)
    if data.annotations is None:
        raise ValueError(f"the set {name!r} is too large for this command; use load_crowd and AnnotatorLDA.")
    return _identified_crowd(data, n_labels, seed)


def _anonymous_crowd(data, seed):
    # a second part of such a set was labelled by another crowd
    wanted = np.flatnonzero((data.counts.sum(1) > 0) & (True if data.split is None else data.split == 0))
    rows = _some(wanted, MAX_ITEMS, seed)
    return Crowd(
        title=f"the set {data.name}, whose annotators are unknown",
        X=data.X[rows],
        counts=data.counts[rows],
        classes=list(data.target_names),
        y=_known(data.y[rows]),
    )


def _identified_crowd(data, n_labels, seed):
    annotations = data.annotations
    if data.name == "cue_conflict":  # the other two stimulus sets leave no conflict to resolve
        annotations = np.where(data.stimulus_set[:, None] == 0, annotations, -1)
    labelled = np.flatnonzero((annotations >= 0).any(axis=1))
    key = next((key for key in _SHARED_BY if key in data), None)
    units = np.arange(len(annotations)) if key is None else data[key]
    archive, rest = _split(labelled, units, 0.25, seed)
    archive, test = _split(archive, units, 0.25, seed)
    archive = _some(archive, MAX_ITEMS, seed)

    present = np.flatnonzero((annotations[rest] >= 0).sum(0) >= MIN_LABELS)
    identified = annotations[np.ix_(rest, present)]
    kept_labels = np.minimum((identified >= 0).sum(0), n_labels)
    identified = sample_identified(identified, kept_labels, random_state=seed)
    kept = (identified >= 0).any(axis=1)
    names = data.annotator_names
    others = annotations[:, present].copy()
    others[rest] = np.where(identified >= 0, -1, others[rest])
    right = _share_equal(others, data.y)
    crowd = Crowd(
        title=f"the set {data.name}; experts with fewer than {MIN_LABELS} identified labels are left out",
        X=data.X[archive],
        counts=to_counts(annotations[archive], classes=range(len(data.target_names))),
        classes=list(data.target_names),
        y=_known(data.y[archive]),
        X_identified=data.X[rest[kept]],
        annotations=identified[kept],
        experts=[str(m) if names is None else str(names[m]) for m in present],
        y_identified=_known(data.y[rest[kept]]),
        accuracy=right if np.isfinite(right).any() else None,
        sources=None if key is None else units[rest[kept]],
    )
    test = test[(annotations[np.ix_(test, present)] >= 0).any(1) & (data.y[test] >= 0)]
    if len(test) and crowd.y_identified is not None:
        crowd.X_test, crowd.annotations_test, crowd.y_test = (
            data.X[test],
            annotations[np.ix_(test, present)],
            data.y[test],
        )
    if data.name == "cue_conflict":
        crowd.groups = (_share_equal(others, data.y_texture) > right).astype(int)
        crowd.groups_are = "answer by the same cue, shape or texture"
    return crowd


def keep_for_tests(crowd, seed):
    """Keep a third of the identified items whose truth is known for tests, with all of their sources, in place."""
    known = np.flatnonzero((crowd.y_identified >= 0) & (crowd.annotations >= 0).any(1))
    if crowd.sources is None:
        test = left_out = _some(known, len(known) // 3, seed)
    else:
        test = known[hold_out(len(known), len(known) // 3, seed, crowd.sources[known])]
        left_out = np.flatnonzero(np.isin(crowd.sources, crowd.sources[test]))
        crowd.sources = np.delete(crowd.sources, left_out)
    crowd.X_test, crowd.annotations_test, crowd.y_test = (
        part[test] for part in (crowd.X_identified, crowd.annotations, crowd.y_identified)
    )
    crowd.X_identified, crowd.annotations, crowd.y_identified = (
        np.delete(part, left_out, axis=0) for part in (crowd.X_identified, crowd.annotations, crowd.y_identified)
    )
    right = _share_equal(crowd.annotations_test, crowd.y_test)
    crowd.accuracy = right if np.isfinite(right).any() else None


def _split(rows, units, share, seed):
    """Rows to keep and a share of them to take away, whole units at a time."""
    kept, taken = next(GroupShuffleSplit(1, test_size=share, random_state=seed).split(rows, groups=units[rows]))
    return rows[kept], rows[taken]


def _known(y):
    return y if (y >= 0).any() else None


def _some(rows, limit, seed):
    """At most `limit` of the rows, drawn without replacement."""
    return rows if len(rows) <= limit else np.sort(np.random.default_rng(seed).choice(rows, limit, replace=False))


def _share_equal(annotations, answer):
    """Share of each expert's labels that equal `answer`, over items where both are known; NaN without any."""
    both = (annotations >= 0) & (answer >= 0)[:, None]
    equal = (annotations == answer[:, None]) & both
    return np.divide(equal.sum(0), both.sum(0), out=np.full(annotations.shape[1], np.nan), where=both.any(0))
