"""
Who is a spammer?
=================

Some people of a crowd click without a look, one is always wrong on purpose, and six agree on
their answers beforehand. Nobody knows the truth. Who is who, and what does it change?
"""

# %%
# A crowd
# -------
# 300 items of three classes and 34 people, each of whom answers half of the items. The truth is
# kept for the end.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_l2d.aggregation import (
    ColluderDetector,
    DawidSkene,
    MajorityVote,
    SpammerDetector,
)

rng = np.random.default_rng(0)
truth = rng.integers(3, size=300)


def careful(accuracy):
    wrong = (truth + rng.integers(1, 3, 300)) % 3
    return np.where(rng.random(300) < accuracy, truth, wrong)


plan = rng.integers(3, size=300)  # what the colluders agreed on, whatever the item is
crowd = {f"careful {j}": careful(rng.uniform(0.6, 0.9)) for j in range(20)}
crowd |= {f"spammer {j}": rng.integers(3, size=300) for j in range(5)}
crowd |= {f"always {c}": np.full(300, c) for c in range(2)}
crowd |= {"malicious": (truth + 1) % 3}
crowd |= {
    f"colluder {j}": np.where(rng.random(300) < 0.9, plan, rng.integers(3, size=300))
    for j in range(6)
}
votes = pd.DataFrame(crowd).astype(float)
votes = votes.where(rng.random(votes.shape) < 0.5)
print(votes.iloc[:3, [0, 20, 25, 27, 28]])

# %%
# Flags
# -----
# A spammer's answers do not vary with those of anybody else; colluders agree with one another more
# than the truth can explain. Both detectors answer -1 or 1 for each person, as scikit-learn's
# outlier detectors do for each sample.

spam, collusion = SpammerDetector().fit(votes), ColluderDetector().fit(votes)
flags = pd.DataFrame(
    {
        "spammer": spam.labels_ == -1,
        "colluder": collusion.labels_ == -1,
        "score": spam.scores_.round(2),
    },
    index=spam.annotators_,
)
print(flags.loc[list(crowd)])

# %%
# The malicious one is no spammer: whoever is always wrong tells the truth, once it is known how to
# read it. Colluders can be told from the others as long as these are the majority, and more than
# the square of the number of classes. With three colluders instead of six, the detector mistakes
# others for them in this crowd: look at the suspects before you drop them.
#
# What it changes
# ---------------

kept = collusion.remove_flagged(spam.remove_flagged(votes))


def accuracy(aggregator, votes):
    return np.mean(aggregator.fit_predict(votes) == truth)


table = pd.DataFrame(
    {
        name: [accuracy(MajorityVote(), some), accuracy(DawidSkene(), some)]
        for name, some in {"everybody": votes, "without those flagged": kept}.items()
    },
    index=["majority", "Dawid and Skene"],
)
print(table.round(3))

kinds = pd.Series(list(crowd)).str.split().str[0].to_numpy()
fig, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
for kind in dict.fromkeys(kinds):
    ax.scatter(spam.scores_[kinds == kind], [kind] * (kinds == kind).sum(), alpha=0.7)
ax.axvline(spam.offset_, ls=":", color="0.3")
ax.invert_yaxis()
ax.set(xlabel="score of SpammerDetector; left of the line, people are flagged")
plt.show()

# %%
# The majority needs the flags; Dawid and Skene's model finds out by itself whom to trust. Three
# careless people are flagged beside the spammers: what they answer is hardly worth more.
