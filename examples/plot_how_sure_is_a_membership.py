"""
How sure is a membership?
=========================

A newcomer has labelled ten items. How well do we know which behaviour they follow, and how many more labels are worth
asking for? `transform` returns a standard deviation with every membership. Here it is compared with what the same six
people turn out to be when 700 labels of each are known.
"""

# %%
# Memberships from 10 to 200 labels
# ---------------------------------
# The behaviours come from an archive of 797 items. Of the 700 test items, each expert labels a few by name.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatorLDA
from sklearn_l2d.datasets import load_digits_crowd, sample_identified

crowd = load_digits_crowd(n_anonymous=797, n_test=700)
scaler = StandardScaler().fit(crowd.X_anonymous)
X_archive, X = scaler.transform(crowd.X_anonymous), scaler.transform(crowd.X_test)
lda = AnnotatorLDA(n_clusters=2, random_state=0).fit(X_archive, crowd.counts)
from_all_labels = lda.transform(X, crowd.annotations_test)[:, 0]

sizes = [10, 25, 50, 100, 200]
answers = {
    size: sample_identified(crowd.annotations_test, size, random_state=1)
    for size in sizes
}

# %%
# The posterior of a membership is close to a bell around it, so that 1.645 standard deviations to both sides hold
# 90 % of it: a 90 % credible interval. Bars are these intervals, cut at 0 and 1. Black lines are the memberships from
# all 700 labels.

colours = dict(
    zip(sizes, plt.cm.viridis(np.linspace(0, 0.85, len(sizes))), strict=True)
)
people = np.arange(len(crowd.experts))
figure, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
ax.hlines(
    from_all_labels,
    people - 0.4,
    people + 0.4,
    color="black",
    linewidth=1,
    label="from all 700 labels",
)
for shift, size in zip(np.linspace(-0.3, 0.3, len(sizes)), sizes, strict=True):
    membership, std = lda.transform(X, answers[size], return_std=True)
    centre, reach = membership[:, 0], 1.645 * std[:, 0]
    reach = np.array([np.minimum(reach, centre), np.minimum(reach, 1 - centre)])
    ax.errorbar(
        people + shift,
        centre,
        yerr=reach,
        fmt="o",
        color=colours[size],
        capsize=3,
        label=f"{size} labels",
    )
ax.set(
    xlabel="expert, named after the error rate in percent",
    ylabel="share of behaviour 0",
    ylim=(-0.03, 1.03),
)
ax.set_xticks(people, crowd.experts)
figure.legend(loc="outside right center", fontsize="small")

# %%
# Do the intervals keep their word?
# ---------------------------------
# The labels are drawn a hundred times. Left: how often the interval holds the membership from all labels; with 200
# labels these are nearly a third of all, hence more often. Middle: how wide it is on each side. Right: how often two
# experts of different pairs are put into the right order, beside the simple rival, agreement with one net that is
# trained on the same votes. Both need labels more than anything else.

from sklearn_l2d.metrics import consensus_agreement

one_net = (
    AnnotatorLDA(1, random_state=0)
    .fit(X_archive, crowd.counts)
    .predict_annotation_proba(X)[:, 0]
)
better, worse = np.nonzero(crowd.groups[:, None] < crowd.groups)
found = []
for size in sizes:
    for draw in range(100):
        labels = sample_identified(crowd.annotations_test, size, random_state=draw)
        membership, std = lda.transform(X, labels, return_std=True)
        share, reach = membership[:, 0], 1.645 * std[:, 0]
        agreement = consensus_agreement(labels, one_net)
        found.append(
            {
                "labels": size,
                "coverage": np.mean(np.abs(share - from_all_labels) <= reach),
                "half width": reach.mean(),
                "ordered": np.mean(share[better] > share[worse]),
                "ordered by one net": np.mean(agreement[better] > agreement[worse]),
            }
        )
found = pd.DataFrame(found).groupby("labels").mean()
print(found.round(2))

# %%
# What the intervals leave out
# ----------------------------
# They take the behaviours for granted. Another archive would have taught somewhat different behaviours, and no number
# of labels by name makes up for that. The dotted lines are the typical distance between the memberships of one expert,
# from all 700 labels, in two models: taught by the two halves of the archive, or by all of it and by a tenth. With
# enough items the behaviours are the smaller worry; with eighty items their part is half as large as an interval from
# 200 labels, and intervals from more labels are then more certain than the model is.

halves, tenth = [slice(0, None, 2), slice(1, None, 2)], [slice(0, None, 10)]
first, second, small = [
    AnnotatorLDA(2, random_state=0)
    .fit(X_archive[rows], crowd.counts[rows])
    .transform(X, crowd.annotations_test)[:, 0]
    for rows in halves + tenth
]
left_out = {
    "two halves of the archive": np.abs(first - second).mean(),
    "all and a tenth of it": np.abs(from_all_labels - small).mean(),
}
print(pd.Series(left_out).round(3))

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(10.5, 3.4), layout="constrained"
)
found["coverage"].plot(
    ax=left, marker="o", ylim=(0.5, 1.02), title="interval holds the long-run value"
)
left.axhline(0.9, color="0.5", linestyle="--")
left.text(200, 0.88, "promised: 0.9", ha="right", va="top", color="0.4")
found["half width"].plot(
    ax=middle, marker="o", ylim=(0, None), title="half width of the interval"
)
for name, distance in left_out.items():
    middle.axhline(distance, color="C3", linestyle=":")
    middle.text(
        10, distance, name, ha="left", va="bottom", color="C3", fontsize="small"
    )
found[["ordered", "ordered by one net"]].plot(
    ax=right, marker="o", ylim=(0.5, 1.02), title="pairs in the right order"
)
right.legend(["memberships", "one net"])
for ax in (left, middle, right):
    ax.set(xscale="log", xlabel="labels per expert", xticks=sizes, xticklabels=sizes)
    ax.minorticks_off()
plt.show()
