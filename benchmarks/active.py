"""Accuracy of a consensus by the number of answers: asked by uncertainty and reliability, or at random.

    python benchmarks/active.py --seeds 20 > benchmarks/results/active.md

Both start from the same random answers and ask for answers that were given in the archive; the consensus of what they
have is that of Dawid and Skene with one coin for each annotator. The area is the mean accuracy over the budgets.
"""

import numpy as np
from _report import run, table

from sklearn_l2d.aggregation import ActiveCrowdsourcing, DawidSkene
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.benchmark._tables import standard_error, yes
from sklearn_l2d.datasets import load_crowd

BUDGETS = 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9
START, BATCHES = 0.05, 100  # share of the answers at the start, and number of batches for all of them
POLICIES = {"active": (0.5, 0.05), "random": (1.0, 1.0)}


def dog(seeds):
    """Four classes, ten answers to every item."""
    compare("dog", seeds)


def web(seeds):
    """Five classes, six answers to most items."""
    compare("web", seeds)


def compare(name, seeds):
    """Accuracy at every budget, and the area."""
    crowd = load_crowd(f"label_only_{name}")
    votes, truth = encode_votes(crowd.annotations).without_tasks(), np.asarray(crowd.y)
    curves = {policy: np.array([curve(votes, truth, eps, seed) for seed in seeds]) for policy, eps in POLICIES.items()}
    rows = [[policy, *figures.mean(0), figures.mean()] for policy, figures in curves.items()]
    gain = curves["active"] - curves["random"]
    rows.append(["difference", *gain.mean(0), gain.mean()])
    error = [standard_error(column) for column in [*gain.T, gain.mean(1)]]
    rows.append(["standard error", *error])
    rows.append(["3 standard errors above", *[yes(d > 3 * e) for d, e in zip(rows[2][1:], error, strict=True)]])
    n_answers = len(votes.item)
    table(f"{name}: {len(votes)} items, {n_answers} answers", ["", *[f"{b:.0%}" for b in BUDGETS], "area"], rows)


def curve(votes, truth, epsilon, seed):
    """Accuracy of the consensus at every budget."""
    n_answers = len(votes.item)
    rng = np.random.default_rng(seed)
    asked = np.zeros(n_answers, dtype=bool)
    asked[rng.permutation(n_answers)[: int(START * n_answers)]] = True
    place = {pair: k for k, pair in enumerate(zip(votes.item.tolist(), votes.annotator.tolist(), strict=True))}
    column = {name: m for m, name in enumerate(votes.annotators.tolist())}
    active = ActiveCrowdsourcing(epsilon=epsilon, random_state=seed).fit(votes.select(asked))
    available = votes.to_sparse() > 0
    known, accuracy, budgets = truth >= 0, [], list(BUDGETS)
    while budgets:
        so_far = votes.select(asked)
        if asked.sum() >= budgets[0] * n_answers:
            labels = DawidSkene("one_coin", class_prior="uniform").fit_predict(so_far)
            accuracy.append(np.mean(labels[known] == truth[known]))
            budgets.pop(0)
        item, annotator = active.suggest(so_far, n_answers // BATCHES, available)
        asked[[place[i, column[a]] for i, a in zip(item.tolist(), annotator.tolist(), strict=True)]] = True
        active.partial_fit(votes.select(asked)[np.sort(item)])
    return np.array(accuracy)


if __name__ == "__main__":
    run({"dog": dog, "web": web}, "Active crowdsourcing")
