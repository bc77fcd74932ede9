"""Annotators who depend on one another in groups, each with a hidden answer of its own."""

import numbers
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from .._by_name import by_name
from .._encoding import some
from .._numerics._answer_factors import answer_factors
from .._numerics._crowd_em import answer_matrix, count_answers_of, log_joint_of, posterior_of, run_em, safe_log
from .._numerics._pair_moments import pair_agreement
from .._sklearn import Interval, StrOptions
from ._base import BaseAggregator, learnt, warn_unless
from ._dawid_skene import estimate

_ROUNDS, _TOLERANCE = 200, 1e-3  # of the fit of covariances, whose rest tells who depends on whom
_MIN_OVERLAP = 5  # common items below which a pair tells nothing about dependence


def find_copies(common, alike):
    """Who copies whom: labels (M,) that are equal for annotators who agree on all items, beyond any chance.

    Copies must be known before anything is fitted: five of them would be a truth of their own, and everybody else
    would seem to depend on one another.

    Parameters
    ----------
    common, alike : ndarrays of shape (M, M)
        As returned by `pair_agreement`.
    """
    equal = (alike == common) & (common > 0)
    share = np.where(equal, 0.0, alike / np.maximum(common, 1)).max(1)  # with whoever is no copy
    log_chance = np.log(np.maximum(np.maximum(share[:, None], share), 1e-3))
    beyond = equal & (common * log_chance < -2 * np.log(len(common)) - np.log(100))
    return connected_components(csr_array(beyond), directed=False)[1]


def find_groups(votes, n_groups):
    """Group annotators who agree beyond what the truth explains.

    Covariances of answers that come from the truth alone have rank C - 1; what a fit of this rank leaves over joins
    annotators by average linkage. Copies count as one annotator.

    Parameters
    ----------
    votes : Votes
        Answers of M annotators.
    n_groups : int or None
        Number of groups. None joins groups as long as there is evidence for it.

    Returns
    -------
    groups : ndarray of int of shape (M,)
        Numbered in the order of their first members.
    """
    n_classes = len(votes.classes)
    common, alike = pair_agreement(votes)
    _, first, copy = np.unique(find_copies(common, alike), return_index=True, return_inverse=True)
    if len(first) == 1 or n_groups == 1:
        return np.zeros(len(copy), dtype=np.int64)
    common, alike, votes = common[np.ix_(first, first)], alike[np.ix_(first, first)], votes[:, first]
    factor = answer_factors(votes, _ROUNDS, _TOLERANCE).factor
    share = np.asarray(answer_matrix(votes).sum(0)).reshape(len(first), n_classes)
    share = share / np.maximum(share.sum(1, keepdims=True), 1)
    excess = alike / np.maximum(common, 1) - share @ share.T - np.einsum("acr,bcr->ab", factor, factor)
    spread = np.sqrt(np.maximum(1 - (share**2).sum(1), 0))
    scale = np.outer(spread, spread)
    known = (common >= _MIN_OVERLAP) & (scale > 0) & ~np.eye(len(first), dtype=bool)
    correlation = np.where(known, excess / np.where(known, scale, 1), 0.0)
    if n_groups is None:
        correlation *= np.sqrt(common * max(n_classes - 1, 1))  # standard scores
    largest = correlation.max()
    distance = np.where(np.eye(len(first)), 0.0, largest - correlation)
    tree = linkage(squareform(distance, checks=False), "average")
    if n_groups is not None:
        return numbered(fcluster(tree, n_groups, "maxclust")[copy])
    chance = np.sqrt(2 * np.log(max(known.sum() / 2, 2)))  # about the largest of so many scores without dependence
    return numbered(fcluster(tree, largest - chance, "distance")[copy] if largest > chance else copy)


def numbered(labels):
    """Labels (M,) as integers in the order of their first appearance."""
    _, first, code = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[code]


class Group(NamedTuple):
    """Several annotators who depend on one another.

    Attributes
    ----------
    members : ndarray of int
        Positions of the annotators.
    answers : csr_array of shape (n, len(members) * C)
        What they answered.
    silent : ndarray of bool of shape (n,)
        Items that none of them answered.
    """

    members: np.ndarray
    answers: csr_array
    silent: np.ndarray


def split_groups(answers, groups, n_classes):
    """Who has no group (positions), and every `Group` of two or more."""
    sizes = np.bincount(groups)
    found = []
    for g in np.flatnonzero(sizes > 1):
        members = np.flatnonzero(groups == g)
        mine = answers[:, (members[:, None] * n_classes + np.arange(n_classes)).ravel()]
        found.append(Group(members, mine, np.diff(mine.indptr) == 0))
    return np.flatnonzero(sizes[groups] == 1), found


def heard(group, log_member):
    """Likelihood (n, C) of what a group answered, for every hidden answer, divided by its largest, and this logarithm.

    Parameters
    ----------
    group : Group
        The group.
    log_member : ndarray of shape (len(members), C, C)
        Log-probability of an answer (last axis) given the hidden one.
    """
    log = log_joint_of(group.answers, log_member, 0.0)
    largest = log.max(1, keepdims=True)
    return np.exp(log - largest), largest


def independent(answers, confusion, alone, log_prior):
    """Log-probabilities (n, C) of the truth and the answers of those who have no group."""
    log_confusion = np.zeros_like(confusion)
    log_confusion[alone] = safe_log(confusion[alone])
    return log_joint_of(answers, log_confusion, log_prior)


class GroupAwareDawidSkene(BaseAggregator):
    """Dawid and Skene's model for annotators who depend on one another in groups (crowd tutorial, part III).

    Copies, people who sit together, or models with the same training data share their errors. Plain
    :class:`DawidSkene` takes them for independent witnesses and believes them against everybody else. Here every group
    j has a hidden answer z to an item: it depends on the truth by a matrix of the group, and the answers of its members
    depend on z only, each by an own matrix. So a group counts as one witness, however large it is. A group of one
    answers by itself: with nobody in a group the model is that of :class:`DawidSkene`.

    Groups are given, or found by agreement beyond what the truth explains.

    Parameters
    ----------
    n_groups : int, default=None
        Number of groups to find. None joins annotators only where the evidence for dependence is strong; with few items
        nobody may be joined.

    groups : array-like of shape (n_annotators,) or mapping, default=None
        Group of every annotator: labels in the order of the columns, or by name, where those who are left out have no
        group. None finds them; else `n_groups` is ignored.

    prior : float, default=0.1
        Pseudo-count of every answer in each distribution that is learnt. It counts twice here, for the matrices of the
        groups and of their members, and has to be smaller than for one level.

    class_prior : {"estimate", "uniform"}, default="estimate"
        Probabilities of the classes: learnt with one pseudo-count each, or equal.

    max_iter : int, default=200
        Largest number of iterations.

    tol : float, default=1e-6
        Gain of the objective, in nats per item, below which the iterations end.

    ties : {"lowest", "random"}, default="lowest"
        What `predict` answers where several classes are equally probable: the first of them, or one that is drawn by
        `random_state` and the answers to the item. Where ties are many, either is partly luck: see
        :func:`sklearn_l2d.metrics.consensus_accuracy`.

    missing_label : object, default=None
        Marker of a missing annotation. None stands for NaN, None, pandas.NA, masked entries and -1.

    unlabeled_label : object, default=None
        Marker of an unknown truth in `y`, beside NaN, None and pandas.NA.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws among tied classes; they are the same in every call, and all but an integer stand for 0.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    annotators_ : ndarray of shape (n_annotators,), dtype=object
        Names of the annotators.
    groups_ : ndarray of int of shape (n_annotators,)
        Group of every annotator.
    group_confusion_matrices_ : ndarray of shape (n_groups, n_classes, n_classes)
        Probability of the hidden answer (last axis) given the true class, of every group.
    member_confusion_matrices_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability of an answer (last axis) given the hidden one of the group; the identity in a group of one.
    confusion_matrices_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability of an answer (last axis) given the true class, of every annotator.
    prior_confusion_ : ndarray of shape (n_classes, n_classes)
        The same for an annotator without votes.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities of the classes before any answer.
    items_without_votes_ : ndarray
        Items of the fit that nobody answered, by name where they have names.
    n_iter_ : int
        Number of iterations.
    history_ : ndarray of shape (`n_iter_`,)
        Objective of every iteration.
    converged_ : bool
        Whether the iterations ended before their limit.
    n_features_in_ : int
        Number of annotators, the columns of `X`.

    See Also
    --------
    DawidSkene : Nobody depends on anybody.
    ColluderDetector : Finds one group that answers by appointment.

    References
    ----------
    Traganitis and Giannakis, Unsupervised ensemble classification with sequential and networked data, 2020, and the
    crowd tutorial, part III; groups by second moments after Jaffe et al., Unsupervised ensemble learning with dependent
    classifiers, 2016.

    Examples
    --------
    Five copies of one annotator do not outvote three good ones:

    >>> import numpy as np
    >>> from sklearn_l2d.aggregation import DawidSkene, GroupAwareDawidSkene
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(400, 1))
    >>> good, bad = (
    ...     np.where(rng.random((400, m)) < p, truth, 1 - truth)
    ...     for m, p in ((3, 0.85), (1, 0.6))
    ... )
    >>> X = np.hstack([good, np.repeat(bad, 5, axis=1)])
    >>> bool(np.mean(DawidSkene().fit_predict(X) == truth[:, 0]) < 0.65)
    True
    >>> consensus = GroupAwareDawidSkene().fit(X)
    >>> consensus.groups_
    array([0, 1, 2, 3, 3, 3, 3, 3])
    >>> bool(np.mean(consensus.predict(X) == truth[:, 0]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar = {
        **BaseAggregator._parameter_constraints,
        "n_groups": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "groups": "no_validation",
        "prior": [Interval(numbers.Real, 0, None, closed="left")],
        "class_prior": [StrOptions({"estimate", "uniform"})],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_groups=None,
        *,
        groups=None,
        prior=0.1,
        class_prior="estimate",
        max_iter=200,
        tol=1e-6,
        ties="lowest",
        missing_label=None,
        unlabeled_label=None,
        random_state=None,
    ):
        self.n_groups = n_groups
        self.groups = groups
        self.prior = prior
        self.class_prior = class_prior
        self.max_iter = max_iter
        self.tol = tol
        self.ties = ties
        self.missing_label = missing_label
        self.unlabeled_label = unlabeled_label
        self.random_state = random_state

    def _learn(self, votes, allowed, weight):
        n_annotators, n_classes = len(votes.annotators), len(votes.classes)
        labels = self._given(votes.annotators.tolist())
        labels = find_groups(votes, self.n_groups) if labels is None else labels
        answers = answer_matrix(votes)
        alone, groups = split_groups(answers, labels, n_classes)
        pseudo, uniform = np.full(n_classes, float(self.prior)), np.full(n_classes, 1 / n_classes)

        heard_of = []  # of every group in the last E-step: counts of truth and hidden answer, and of the members

        def maximise(truth):
            class_prior, log_prior, gain = estimate(truth.sum(0), np.ones(n_classes), False)
            if self.class_prior == "uniform":
                class_prior, log_prior, gain = uniform, np.log(uniform), 0.0
            counts = count_answers_of(answers, truth, n_annotators)
            everybody, between, member = np.empty_like(counts), [], []
            everybody[alone], _, more = estimate(counts[alone], pseudo, False)
            gain += more
            for group, (pairs, hidden) in zip(groups, heard_of, strict=True):
                mine, _, more = estimate(pairs, pseudo, False)
                theirs, _, again = estimate(hidden, pseudo, False)
                everybody[group.members], gain = mine @ theirs, gain + more + again
                between.append(mine)
                member.append(theirs)
            return (everybody, between, member, class_prior, log_prior), gain

        def expect(parameters):
            everybody, between, member, _, log_prior = parameters
            log_joint, parts = independent(answers, everybody, alone, log_prior), []
            for group, mine, theirs in zip(groups, between, member, strict=True):
                likelihood, largest = heard(group, safe_log(theirs))
                total = likelihood @ mine.T
                log_joint = log_joint + safe_log(total) + largest
                parts.append((likelihood, np.maximum(total, np.finfo(float).tiny)))
            truth, evidence = posterior_of(log_joint, allowed)
            heard_of.clear()
            for group, mine, (likelihood, total) in zip(groups, between, parts, strict=True):
                ratio = np.where(group.silent[:, None], 0.0, truth / total * weight[:, None])
                hidden = count_answers_of(group.answers, likelihood * (ratio @ mine), len(group.members))
                heard_of.append((mine * (ratio.T @ likelihood), hidden))
            return truth, evidence

        start, shares = self._start(answers, labels, groups, allowed)
        for group, share in zip(groups, shares, strict=True):
            share = share * weight[:, None]
            heard_of.append((start.T @ share, count_answers_of(group.answers, share, len(group.members))))
        (everybody, between, member, class_prior, _), _, history, converged = run_em(
            start, maximise, expect, weight, self.max_iter, self.tol
        )
        warn_unless(converged, self.max_iter)
        of_group = everybody[np.unique(labels, return_index=True)[1]]
        members = np.tile(np.eye(n_classes), (n_annotators, 1, 1))
        for group, mine, theirs in zip(groups, between, member, strict=True):
            of_group[labels[group.members[0]]] = mine
            members[group.members] = theirs
        return {
            **learnt(everybody, np.full((n_classes, n_classes), 1 / n_classes), class_prior, history, converged),
            "groups_": labels,
            "group_confusion_matrices_": of_group,
            "member_confusion_matrices_": members,
        }

    def _given(self, annotators):
        """Groups (M,) that were given, as numbers; None if they are to be found."""
        given = by_name(self.groups, annotators, "groups")
        if given is None:
            return None
        if hasattr(given, "items"):
            unknown = [name for name in given if name not in set(annotators)]
            if unknown:
                raise ValueError(
                    f"groups names {some(unknown)}, who are no annotators; they are {some(annotators)}. Correct the "
                    "names."
                )
            place = {}
            # those without a group are told apart by their own position
            keys = [("group", given[name]) if name in given else ("alone", i) for i, name in enumerate(annotators)]
            return np.array([place.setdefault(key, len(place)) for key in keys], dtype=np.int64)
        given = np.asarray(given)
        if given.shape != (len(annotators),):
            raise ValueError(
                f"groups has shape {given.shape}, but there are {len(annotators)} annotators; give one label per "
                "column of X, or a mapping from names to labels."
            )
        return numbered(given)

    def _start(self, answers, labels, groups, allowed):
        """First truth (n, C), and shares (n, C) of the votes in every group: each, of one or more, has one vote."""
        n_classes = allowed.shape[1]
        by_class = [answers[:, c::n_classes] for c in range(n_classes)]
        sizes = np.bincount(labels)
        alone = (sizes[labels] == 1).astype(float)
        votes = np.stack([column @ alone for column in by_class], axis=1)
        shares = []
        for group in groups:
            counts = np.stack([group.answers[:, c::n_classes].sum(1) for c in range(n_classes)], axis=1)
            shares.append(counts / np.maximum(counts.sum(1, keepdims=True), 1))
            votes = votes + shares[-1]
        votes = votes * allowed
        truth = np.where(votes.sum(1, keepdims=True) > 0, votes, allowed)
        return truth / truth.sum(1, keepdims=True), shares

    def _log_joint(self, votes):
        answers, n_classes = answer_matrix(votes), len(self.classes_)
        n_new = len(votes.annotators) - len(self.annotators_)
        labels = np.append(self.groups_, self.groups_.max() + 1 + np.arange(n_new))
        confusion = np.concatenate([self.confusion_matrices_, np.tile(self.prior_confusion_, (n_new, 1, 1))])
        alone, groups = split_groups(answers, labels, n_classes)
        log_joint = independent(answers, confusion, alone, safe_log(self.class_prior_))
        for group in groups:
            likelihood, largest = heard(group, safe_log(self.member_confusion_matrices_[group.members]))
            mine = self.group_confusion_matrices_[labels[group.members[0]]]
            log_joint = log_joint + safe_log(likelihood @ mine.T) + largest
        return log_joint
