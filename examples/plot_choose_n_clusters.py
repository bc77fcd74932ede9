"""
How many behaviours, and which alpha?
=====================================

Two settings of `AnnotatorLDA` have to be chosen without any truth: the number of behaviours and `alpha`, which says how
alike the people are who label one item. Held-out votes can judge both. How much they say depends on how the archive
came about.
"""

# %%
# Two archives of the same digits
# -------------------------------
# In the first, each item was handled by one of three teams, and the teams read some digits differently: one is right,
# one swaps 1 with 7 and 3 with 8, one knows even digits only. In the second, the six people of the embedded crowd
# label everything.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatorLDA
from sklearn_l2d.annotations import to_counts
from sklearn_l2d.datasets import load_digits_crowd

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X_teams, y = StandardScaler().fit_transform(X)[:600], y[:600]
reads_as = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [0, 7, 2, 8, 4, 6, 5, 1, 3, 9],
        [0, 0, 2, 2, 4, 4, 6, 6, 8, 8],
    ]
)
team = rng.integers(3, size=600)
slips = rng.random((600, 6)) < 0.1
votes = np.where(slips, rng.integers(10, size=(600, 6)), reads_as[team, y][:, None])
counts_teams = to_counts(votes, classes=np.arange(10))

crowd = load_digits_crowd()
scaler = StandardScaler().fit(crowd.X_anonymous)
X_pool, X_identified = (
    scaler.transform(crowd.X_anonymous),
    scaler.transform(crowd.X_identified),
)
archives = {
    "three teams": (X_teams, counts_teams),
    "one pool": (X_pool[:400], crowd.counts[:400]),
}
lda = AnnotatorLDA(
    n_consensus_epochs=8, n_anchor_epochs=8, max_epochs=22, random_state=0
)

# %%
# The number of behaviours
# ------------------------
# The line is the perplexity of held-out votes: a die with so many sides is as hard to guess as the next vote. Its
# minimum is one rule. The bars are how much it falls per behaviour that is added, and the largest fall is the rule of
# the paper. Grey lines are single folds: they differ in how hard their items are, not in what they say about the
# number. A hollow marker would be a model that leaves behaviours idle, without votes worth the name; here all are used.
#
# Three teams show: the perplexity falls most to three, and the two rules are at most one apart. In the pool, the votes
# for every item come from the same mixture of people; they fix the average answer and little else. Two behaviours span
# the axis of agreement, and more of them do not help to predict the votes.

from sklearn_l2d.inspection import PerplexityDisplay

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
tries = {"three teams": (0.3, range(2, 11)), "one pool": (50, range(1, 6))}
for ax, (name, (alpha, n_clusters)) in zip(axes, tries.items(), strict=True):
    lda.set_params(alpha=alpha)
    PerplexityDisplay.from_estimator(
        lda, *archives[name], n_clusters=n_clusters, cv=2, ax=ax
    )
    ax.set_title(f"{name}, alpha={alpha}", y=1.1)

# %%
# Alpha
# -----
# Left: the same held-out votes judge alpha. Where each item is handled by people of one kind, small values predict
# better; in the pool, alpha hardly matters. Right: what alpha does to the memberships of the pool's six people in two
# behaviours, as their mean dissimilarity. Only the optimal memberships ("map", the default) tell people apart, the more
# so the larger alpha is; Algorithm 1 of the paper ("variational") stops near where it starts, and the average of
# posteriors stays near the archive's mean.

import pandas as pd

from sklearn_l2d.metrics import consensus_agreement, membership_dissimilarity
from sklearn_l2d.model_selection import perplexity_curve

alphas = [0.1, 0.9, 2, 10, 50]
perplexity = pd.DataFrame(
    {
        name: [
            perplexity_curve(
                lda.set_params(alpha=a), *archive, n_clusters=[3], cv=2
            ).perplexity[0]
            for a in alphas
        ]
        for name, archive in archives.items()
    },
    index=alphas,
)
dissimilarity, agreeing = (
    pd.DataFrame(index=alphas, columns=["map", "variational", "average"], dtype=float),
    {},
)
for alpha in alphas:
    lda.set_params(n_clusters=2, alpha=alpha).fit(X_pool, crowd.counts)
    for method in dissimilarity:
        membership = lda.set_params(membership=method).transform(
            X_identified, crowd.annotations
        )
        dissimilarity.loc[alpha, method] = membership_dissimilarity(membership)
        if method == "map":
            agreeing[f"alpha={alpha:g}"] = membership[:, 0]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
perplexity.plot(
    ax=left,
    logx=True,
    marker="o",
    xticks=alphas,
    ylabel="held-out perplexity",
    title="votes, three behaviours",
)
dissimilarity.plot(
    ax=right,
    logx=True,
    marker="o",
    xticks=alphas,
    ylabel="dissimilarity",
    title="six people, two behaviours",
)
for ax in (left, right):
    ax.set(xlabel="alpha", xticklabels=alphas)
    ax.minorticks_off()
plt.show()

# %%
# The table has the shares of behaviour 0 behind the curve of "map", and in the last column the simple rival, agreement
# with one net: whatever alpha is, both order the pairs in the same way.

one_net = (
    AnnotatorLDA(1, random_state=0)
    .fit(X_pool, crowd.counts)
    .predict_annotation_proba(X_identified)[:, 0]
)
agreeing["one net"] = consensus_agreement(crowd.annotations, one_net)
print(pd.DataFrame(agreeing, index=crowd.experts).round(2))
