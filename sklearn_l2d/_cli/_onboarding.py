"""The steps of the onboarding story; each takes what the one before returned, and none of them prints."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._encoding import count_votes
from .._numerics._marginal_likelihood import likelihood_method
from ..cluster import AnnotatorLDA
from ..metrics import consensus_agreement

NEEDS_TRUTH = "accuracy on the identified rows"  # the one rival that uses the true classes
_WIDE = 512  # columns from which on whitened components predict held-out votes no worse than the columns do
_N_COMPONENTS = 128


@dataclass
class Settings:
    """What the command line sets about the learning."""

    n_clusters: int = 2
    alpha: float = 50.0
    epochs: int = 60
    seed: int = 0
    progress: bool = False

    def lda(self, n_clusters, n_items):
        """Untrained behaviours for an archive of so many items."""
        start = max(1, self.epochs // 3)
        return AnnotatorLDA(
            n_clusters,
            alpha=self.alpha,
            max_epochs=self.epochs,
            n_consensus_epochs=start,
            n_anchor_epochs=start,
            batch_size=64 if n_items < 3000 else 256,
            verbose=2 if self.progress else 0,
            random_state=self.seed,
        )


@dataclass
class Behaviours:
    """What an archive taught: the behaviours, one net of the mean label distribution, and how features are scaled."""

    scaler: object
    lda: AnnotatorLDA
    one_net: AnnotatorLDA


@dataclass
class Roster:
    """One row per expert.

    Attributes
    ----------
    experts : list of str
        Names.
    n_labels : ndarray of shape (M,)
        Identified labels.
    membership, std : ndarrays of shape (M, K)
        Shares of the behaviours and their standard deviations.
    one_net, majority, accuracy : ndarray of shape (M,)
        The rivals, from the same identified labels: agreement with one net, agreement with what most of the other
        experts said, share of right answers. NaN where unknown.
    """

    experts: list
    n_labels: np.ndarray
    membership: np.ndarray
    std: np.ndarray
    one_net: np.ndarray
    majority: np.ndarray
    accuracy: np.ndarray

    @property
    def position(self):
        """Where each expert lies between the last behaviour (0) and behaviour 0 (1)."""
        n_clusters = self.membership.shape[1]
        return self.membership @ np.linspace(1, 0, n_clusters) if n_clusters > 1 else np.ones(len(self.membership))

    @property
    def rivals(self):
        """The rivals that are known, by name."""
        found = {
            "agreement with one net": self.one_net,
            "agreement with the others' majority": self.majority,
            NEEDS_TRUTH: self.accuracy,
        }
        return {name: score for name, score in found.items() if np.isfinite(score).sum() > 1}


def fit_scaler(X):
    """Columns of one size; very wide features become whitened components, few enough for the number of items."""
    steps = [StandardScaler()]
    if X.shape[1] > _WIDE:
        steps.append(PCA(max(2, min(_N_COMPONENTS, len(X) // 5)), whiten=True, random_state=0))
    return make_pipeline(*steps).fit(X)


def learn_behaviours(crowd, settings):
    """Fit the behaviours, and the net of the simplest rival, to the anonymous archive."""
    scaler = fit_scaler(crowd.X)
    X = scaler.transform(crowd.X)
    lda = settings.lda(settings.n_clusters, len(X)).fit(X, crowd.counts)
    one_net = lda if settings.n_clusters == 1 else settings.lda(1, len(X)).fit(X, crowd.counts)
    return Behaviours(scaler, lda, one_net)


def place_experts(behaviours, crowd):
    """Membership of every expert and, from the same labels, the rivals."""
    X, codes = behaviours.scaler.transform(crowd.X_identified), crowd.annotations
    membership, std = behaviours.lda.transform(X, codes, return_std=True)
    one_net = consensus_agreement(codes, behaviours.one_net.predict_annotation_proba(X)[:, 0])
    n_labels = (codes >= 0).sum(0)
    accuracy = np.full(len(n_labels), np.nan)
    if crowd.y_identified is not None:
        accuracy = share_of(codes, (codes == crowd.y_identified[:, None]), crowd.y_identified[:, None] >= 0)
    majority = agreement_with_others(codes, len(crowd.classes))
    return Roster(list(crowd.experts), n_labels, membership, std, one_net, majority, accuracy)


def share_of(codes, score, usable=True):
    """Mean of `score` over the labels of each expert that are `usable`; NaN without any."""
    used = (codes >= 0) & usable
    total = np.where(used, score, 0).sum(0)
    return np.divide(total, used.sum(0), out=np.full(codes.shape[1], np.nan), where=used.any(0))


def agreement_with_others(codes, n_classes):
    """How often each expert says what most of the other experts say about the same item; ties count in part."""
    counts = count_votes(codes, n_classes)
    score, usable = np.zeros(codes.shape), np.zeros(codes.shape, dtype=bool)
    for expert, column in enumerate(codes.T):
        rows = np.flatnonzero(column >= 0)
        others = counts[rows]
        others[np.arange(len(rows)), column[rows]] -= 1
        leading = (others == others.max(1, keepdims=True)) & (others > 0)
        usable[rows, expert] = leading.any(1)
        score[rows, expert] = leading[np.arange(len(rows)), column[rows]] / np.maximum(leading.sum(1), 1)
    return share_of(codes, score, usable)


def rank_correlation(a, b):
    """Spearman's correlation over the experts for whom both are known; NaN where either is constant."""
    known = np.isfinite(a) & np.isfinite(b)
    ranks = np.array([rankdata(a[known]), rankdata(b[known])]) if known.any() else np.zeros((2, 0))
    if known.sum() < 3 or (np.ptp(ranks, axis=1) == 0).any():
        return np.nan
    return float(np.corrcoef(ranks)[0, 1])


def group_agreement(groups, score):
    """Adjusted Rand index between the true groups and k-means of a score into as many groups; NaN if too few."""
    score = np.asarray(score, dtype=float).reshape(len(groups), -1)
    known = np.isfinite(score).all(1)
    groups, score = groups[known], score[known]
    n_groups = len(np.unique(groups))
    if n_groups < 2 or len(np.unique(score, axis=0)) < n_groups:
        return np.nan
    labels = KMeans(n_groups, n_init=10, random_state=0).fit_predict(score)
    return float(adjusted_rand_score(groups, labels))


def judge(crowd, roster):
    """How well memberships and rivals reproduce what is truly known.

    Returns
    -------
    verdicts : dict of str to dict of str to float
        For every measure that the crowd allows, the value of "membership" and of each rival, all scores being cut into
        groups in the same way; for groups also that of the "hard clusters".
    """
    verdicts = {}
    if crowd.groups is not None:
        found = {"membership": group_agreement(crowd.groups, roster.membership)}
        found["hard clusters"] = float(adjusted_rand_score(crowd.groups, roster.membership.argmax(1)))
        found |= {name: group_agreement(crowd.groups, score) for name, score in roster.rivals.items()}
        verdicts["groups"] = found
    if crowd.accuracy is not None:
        found = {"membership": rank_correlation(roster.position, crowd.accuracy)}
        found |= {name: rank_correlation(score, crowd.accuracy) for name, score in roster.rivals.items()}
        verdicts["ability"] = found
    return verdicts


def compare_sizes(crowd, settings, sizes):
    """Perplexity of a fifth of the archive under different numbers of behaviours, all by the same likelihood."""
    train, test = next(ShuffleSplit(1, test_size=0.2, random_state=settings.seed).split(crowd.X))
    scaler = fit_scaler(crowd.X[train])
    X, held_out = scaler.transform(crowd.X[train]), scaler.transform(crowd.X[test])
    method = likelihood_method(crowd.counts, max(sizes))
    return {
        size: settings.lda(size, len(X)).fit(X, crowd.counts[train]).perplexity(held_out, crowd.counts[test], method)
        for size in sizes
    }


def describe_behaviours(behaviours, crowd):
    """What tells the behaviours apart on the archive.

    Returns
    -------
    rows : list of dict
        For every behaviour: ``share`` of the votes, ``majority`` (mean probability of the majority vote of an item),
        ``truth`` (the same of the true class, None if unknown), ``slips`` (the commonest answers against the
        majority, as (majority class, answer, mean probability)).
    """
    proba = behaviours.lda.predict_annotation_proba(behaviours.scaler.transform(crowd.X))
    voted = np.flatnonzero(crowd.counts.any(axis=1))
    top = crowd.counts[voted].argmax(1)
    known = np.flatnonzero(crowd.y >= 0) if crowd.y is not None else []
    rows = []
    for k, share in enumerate(behaviours.lda.cluster_weights_):
        slips = np.zeros((len(crowd.classes), len(crowd.classes)))
        for c in np.unique(top):
            slips[c] = proba[voted[top == c], k].mean(0)
        np.fill_diagonal(slips, 0)
        worst = np.dstack(np.unravel_index(np.argsort(-slips, axis=None)[:3], slips.shape))[0]
        rows.append(
            {
                "share": float(share),
                "majority": float(proba[voted, k, top].mean()),
                "truth": float(proba[known, k, crowd.y[known]].mean()) if len(known) else None,
                "slips": [(crowd.classes[i], crowd.classes[j], float(slips[i, j])) for i, j in worst],
            }
        )
    return rows
