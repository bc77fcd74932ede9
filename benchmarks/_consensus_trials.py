"""Ways to keep the recommended consensus at the majority that were tried, and how it foretells answers left out."""

import numpy as np
from sklearn.base import clone

from sklearn_l2d._numerics._crowd_em import answer_matrix, count_answers_of, log_joint_of, posterior_of, vote_shares
from sklearn_l2d.aggregation import DawidSkene, HierarchicalDawidSkene, MajorityVote, WeightedMajorityVote
from sklearn_l2d.aggregation._hierarchical_dawid_skene import discount_of, evidence_of, population_of, strength_of
from sklearn_l2d.annotations import Votes

_DRAWS = 3  # answers to an item that are left out, one after the other


def foretold(method, votes, random_state=0):
    """How the other answers to an item foretell one of them, where there are several: two arrays (n_several,).

    The first is the probability that the answer is the label of the others, of which tied ones share it, the second its
    log-likelihood. The method is fitted to the other half of the items.
    """
    rng = np.random.default_rng(random_state)
    number, fold = np.diff(votes.starts), rng.permutation(len(votes)) % 2
    several = number > 1
    fitted = [clone(method).fit(votes[fold != f]) for f in range(2)]
    agreed, likelihood = np.zeros((2, len(votes)))
    for _ in range(_DRAWS):
        out = votes.starts[:-1] + (rng.random(len(votes)) * number).astype(int)
        kept = np.ones(len(votes.item), dtype=bool)
        kept[out[several]] = False
        answers = (column[kept] for column in (votes.item, votes.annotator, votes.label))
        rest = Votes(*answers, len(votes), votes.classes, votes.annotators)
        for f, model in enumerate(fitted):
            rows = np.flatnonzero((fold == f) & several)
            proba, label = model.predict_proba(rest[rows]), votes.label[out[rows]]
            best = np.isclose(proba, proba.max(1, keepdims=True))
            agreed[rows] += best[np.arange(len(rows)), label] / best.sum(1) / _DRAWS
            confusion = model.confusion_matrices_[votes.annotator[out[rows]], :, label]
            likelihood[rows] += np.log((proba * confusion).sum(1)) / _DRAWS
    return agreed[several], likelihood[several]


def tempered(votes, max_iter=100, tol=1e-4):
    """Probabilities of `HierarchicalDawidSkene` whose iterations learn from the discounted ones."""
    answers, n_annotators = answer_matrix(votes), len(votes.annotators)
    open_items, weight = np.ones(len(votes), dtype=bool), np.ones(len(votes))
    truth = vote_shares(votes, np.ones((len(votes), len(votes.classes)), dtype=bool))
    for _ in range(max_iter):
        counts = count_answers_of(answers, truth, n_annotators)
        pooled, symmetric = population_of(counts)
        strength = strength_of(counts, pooled)
        evidence = evidence_of(counts, pooled, symmetric, strength, 0.25)
        log_joint = log_joint_of(answers, evidence, 0.0)
        rows = counts + strength * pooled
        confusion = rows / rows.sum(2, keepdims=True)
        discount = discount_of(votes, log_joint, evidence, confusion, open_items, weight)
        before, truth = truth, posterior_of(discount * log_joint)[0]
        if np.abs(truth - before).sum(1).mean() < tol:
            break
    return truth


def best_of(methods, which):
    """Function from votes to probabilities, of the method that foretells answers best; `which` is 0 or 1 of these."""

    def probabilities(votes):
        best = max(methods, key=lambda method: foretold(method, votes)[which].mean())
        return best.fit(votes).predict_proba(votes)

    return probabilities


def trials(shares):
    """Functions from votes to probabilities by name; `shares` are the true ones of the classes."""

    def probabilities(method):
        return lambda votes: method.fit(votes).predict_proba(votes)

    def mean_of(*methods):
        return lambda votes: np.mean([method.fit(votes).predict_proba(votes) for method in methods], axis=0)

    ours, majority, weighted = HierarchicalDawidSkene(), MajorityVote(), WeightedMajorityVote()
    kept = HierarchicalDawidSkene(class_shares="majority")
    return {
        "MajorityVote()": probabilities(majority),
        "HierarchicalDawidSkene()": probabilities(ours),
        "WeightedMajorityVote()": probabilities(weighted),
        "common=0": probabilities(HierarchicalDawidSkene(common=0)),
        "two iterations": probabilities(HierarchicalDawidSkene(max_iter=2)),
        "mean with MajorityVote()": mean_of(ours, majority),
        "mean with WeightedMajorityVote()": mean_of(ours, weighted),
        "iterations on discounted probabilities": tempered,
        "or WeightedMajorityVote(), by agreement": best_of([ours, weighted], 0),
        "or class_shares='majority', by likelihood": best_of([ours, kept], 1),
        "class_shares='majority'": probabilities(kept),
        "class_shares of the truth": probabilities(HierarchicalDawidSkene(class_shares=shares)),
        "DawidSkene(), class_prior of the truth": probabilities(DawidSkene(class_prior=shares)),
    }
