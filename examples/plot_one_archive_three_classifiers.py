"""
One archive, three classifiers
==============================

An archive holds what people answered, two answers to each item, and no truth. A classifier can be learnt from it in
three ways: from the majority, from the counts of votes without names, and from the votes by name. The names tell how
each person errs, and that is worth a lot.
"""

# %%
# The archive
# -----------
# Handwritten digits, and twelve people. Four are careful; four know only the even digits and guess among all ten where
# they see an odd one; four mostly add one to the digit, as if they had misread the instructions. Any two of them answer
# an item.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from sklearn_l2d.aggregation import ConsensusClassifier, MajorityVote
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.crowd import AggNetClassifier, CountsClassifier, NetClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(
    scale(X), y, test_size=500, random_state=0, stratify=y
)
rng = np.random.default_rng(0)
truth = np.zeros((12, 10, 10))  # person, true digit, answer
truth[:4] = 0.9 * np.eye(10) + 0.01
truth[4:8] = 0.1
truth[4:8, ::2] = 0.9 * np.eye(10)[::2] + 0.01
truth[8:] = 0.55 * np.roll(np.eye(10), 1, axis=1) + 0.35 * np.eye(10) + 0.01
truth /= truth.sum(axis=2, keepdims=True)

answers = np.full((len(y), 12), -1)
for item, digit in enumerate(y):
    for person in rng.choice(12, 2, replace=False):
        answers[item, person] = rng.choice(10, p=truth[person, digit])
votes = encode_votes(answers)
right = (answers == y[:, None]).sum() / (answers >= 0).sum()
print(f"{len(y)} items, {(answers >= 0).sum()} answers, of which {right:.0%} are right")

# %%
# Three classifiers
# -----------------
# All are the same small net. The first learns the majority of each item, where half of the items have a tie. The second
# gets the counts and learns one confusion matrix for everybody. The third learns one for each person, by EM, and then
# knows that an answer of 4 by somebody who adds one speaks for a 3.

majority = ConsensusClassifier(MajorityVote(), NetClassifier(random_state=0))
majority.fit(X, annotations=votes)
anonymous = CountsClassifier(random_state=0).fit(X, counts=votes.to_counts())
by_name = AggNetClassifier(random_state=0).fit(X, annotations=votes)
oracle = NetClassifier(random_state=0).fit(X, y)

found = {
    "majority": majority,
    "counts": anonymous,
    "votes by name": by_name,
    "(the truth)": oracle,
}
accuracy = {
    name: np.mean(model.predict(X_test) == y_test) for name, model in found.items()
}
for name, share in accuracy.items():
    print(f"{name:14} {share:.3f}")

# %%
# How people err
# --------------
# ``confusion_matrices_`` of the third classifier, for one person of each kind, below what is true of them. A row is a
# true digit, a column an answer. Each person gave about 22 answers to each digit, which is why what is learnt is rougher.

fig, axes = plt.subplots(2, 3, figsize=(9, 6.4), layout="constrained")
kinds = {"careful": 0, "knows even digits": 4, "adds one": 8}
for column, (kind, person) in enumerate(kinds.items()):
    for row, matrices in enumerate((truth, by_name.confusion_matrices_)):
        ax = axes[row, column]
        ConfusionMatrixDisplay(matrices[person]).plot(
            ax=ax, include_values=False, colorbar=False, im_kw={"vmin": 0, "vmax": 1}
        )
        ax.set_title(f"{kind}, {'as learnt' if row else 'in truth'}")
        ax.set(xlabel="answer" if row else "", ylabel="" if column else "true digit")

# %%
# Nobody was told what is true, and yet those who add one are found out: they contradict the others in a way that the
# pictures of the digits make sense of. Without names, their answers are noise.

error = np.abs(by_name.confusion_matrices_ - truth).sum(axis=2).mean() / 2
print(f"mean distance of a learnt row from the true one: {error:.2f}")
