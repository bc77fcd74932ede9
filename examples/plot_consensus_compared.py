"""
Consensus compared
==================

Nobody knows the truth: there are items, and answers of people, some careful, some careless, one who always
says the same. How much better than a majority can a label be, and what do the features of the items add?
"""

# %%
# A crowd
# -------
# 600 items of three classes. Two people are careful, four careless, and two always give one answer. Everybody
# answers an item with the same probability, which sets the number of answers per item.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

X, y = make_classification(
    600, 8, n_informative=5, n_classes=3, class_sep=1.2, random_state=0
)
skill = np.array([0.95, 0.9, 0.6, 0.55, 0.5, 0.45])


def answers_of(n_per_item, seed):
    rng = np.random.default_rng(seed)
    right = rng.random((len(y), 6)) < skill
    wrong = (y[:, None] + rng.integers(1, 3, right.shape)) % 3
    votes = np.where(right, y[:, None], wrong)
    lazy = np.repeat([[0, 2]], len(y), axis=0)
    votes = np.concatenate([votes, lazy], axis=1)
    return np.where(rng.random(votes.shape) < n_per_item / 8, votes, -1)


# %%
# Votes alone
# -----------
# `MajorityVote` trusts everybody alike. `DawidSkene` learns a confusion matrix for each person, and with
# ``"one_coin"`` a single accuracy, which is enough for few answers; then equal classes are safer than learnt ones,
# which the two who always say the same would pull to their side. `annotator_accuracy_` says whom to trust.

from sklearn_l2d.aggregation import (
    CROWDLAB,
    ConsensusClassifier,
    DawidSkene,
    MajorityVote,
)

votes = answers_of(4, seed=0)
model = DawidSkene().fit(votes)
print("share of right answers, as learnt:", model.annotator_accuracy_.round(2))
print("accuracy of the majority:", np.mean(MajorityVote().fit_predict(votes) == y))
print("accuracy of Dawid and Skene:", np.mean(model.predict(votes) == y))

# %%
# Votes and features
# ------------------
# `CROWDLAB` gives a classifier a vote, too: what it says of an item comes from a fit to the others.
# `ConsensusClassifier` fits the classifier to a consensus, and labels items that nobody has answered.


def labels_of(name, votes):
    if name == "majority":
        return MajorityVote().fit_predict(votes)
    if name == "Dawid and Skene":
        return DawidSkene().fit_predict(votes)
    if name == "one coin":
        return DawidSkene("one_coin", class_prior="uniform").fit_predict(votes)
    if name == "CROWDLAB":
        crowdlab = CROWDLAB(LogisticRegression(), random_state=0)
        return crowdlab.fit_predict(X, annotations=votes)
    classifier = ConsensusClassifier(DawidSkene(), LogisticRegression())
    return classifier.fit(X, annotations=votes).predict(X)


names = ["majority", "Dawid and Skene", "one coin", "CROWDLAB", "classifier alone"]
sizes = [1.5, 2, 3, 4, 6]
accuracy = {
    name: [
        np.mean([np.mean(labels_of(name, answers_of(n, s)) == y) for s in range(3)])
        for n in sizes
    ]
    for name in names
}

# %%
# Which is best depends on how many answers there are
# ---------------------------------------------------
# The majority wastes what the careful people know. With few answers, the features help most: the classifier, fitted to
# an uncertain consensus, is better than the consensus. With many, its limit is that of the features, and the votes
# decide. `CROWDLAB` weighs people by agreement, and does not go as far as Dawid and Skene where many are careless.

fig, ax = plt.subplots(figsize=(7, 4))
for name in names:
    ax.plot(sizes, accuracy[name], "o-", label=name)
ax.set(xlabel="answers per item", ylabel="accuracy of the consensus")
ax.legend()
fig.tight_layout()
plt.show()

# %%
# A consensus is a target
# -----------------------
# A deferrer learns from it as from the truth. Where the consensus is in doubt, its label is best left open: deferrers
# leave out unknown truth, but still learn from the answers.

from sklearn_l2d.deferral import ConfidenceDeferral

votes = answers_of(4, seed=0)
proba = DawidSkene().fit(votes).predict_proba(votes)
target = np.where(proba.max(1) > 0.8, proba.argmax(1), np.nan)
team = ConfidenceDeferral(LogisticRegression(), coverage=0.5, random_state=0)
team.fit(X[:400], target[:400], annotations=votes[:400])
labels = team.predict_team(X[400:], votes[400:], decision="combine")
print("accuracy of the team on the other items:", np.mean(labels == y[400:]))
