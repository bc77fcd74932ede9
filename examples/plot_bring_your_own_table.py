"""
Bring your own tables
=====================

From two files, as labelling tools export them, to a picture of who behaves alike: a table of items with their features,
and a long table with one row per label.
"""

# %%
# Two tables
# ----------
# This cell makes them up, so that the page can run, and writes and reads them as CSV. In the long table some labels
# have no annotator: the archive of last year, in which nobody kept the names. The others are from this year's team of
# three.

import io

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
kind = np.repeat(["cat", "dog", "fox"], 150)
corner = {"cat": (0, 0), "dog": (2, 0), "fox": (1, 2)}
items = pd.DataFrame(
    np.array([corner[k] for k in kind]) + rng.normal(0, 0.6, (450, 2)),
    columns=["size", "colour"],
)
items.insert(0, "task", [f"img{i:03d}" for i in range(450)])


def look(rows, chance_of_slip):
    """Labels of somebody who slips so often."""
    slips = rng.random(len(rows)) < chance_of_slip
    return np.where(slips, rng.choice(["cat", "dog", "fox"], len(rows)), kind[rows])


old, new = np.split(rng.permutation(450), [350])
long = [
    pd.DataFrame({"task": items.task[old], "annotator": None, "label": look(old, p)})
    for p in (0.05, 0.1, 0.6, 0.7)
]
for name, chance_of_slip in {"ann": 0.05, "bob": 0.1, "eve": 0.7}.items():
    rows = rng.choice(new, 40, replace=False)
    long.append(
        pd.DataFrame(
            {
                "task": items.task[rows],
                "annotator": name,
                "label": look(rows, chance_of_slip),
            }
        )
    )
labels_csv, items_csv = pd.concat(long).to_csv(index=False), items.to_csv(index=False)

items = pd.read_csv(io.StringIO(items_csv), index_col="task")
labels = pd.read_csv(io.StringIO(labels_csv))
print(items.head(3), labels.iloc[[0, 1, -2, -1]], sep="\n\n")

# %%
# The archive becomes counts
# --------------------------
# One row per item, one column per class. ``reindex`` puts the features into the same order: rows of different items
# must never meet.

named = labels.annotator.notna()
counts = pd.crosstab(labels.task[~named], labels.label[~named])
X_archive = items.reindex(counts.index)
print(counts.head(3))

# %%
# The team becomes a wide table
# -----------------------------
# `from_long` makes one row per item and one column per person. Cells of items that a person did not see stay empty.

from sklearn_l2d.annotations import from_long

answers = from_long(labels[named])
X_team = items.reindex(answers.index)
print(answers.head(4))

# %%
# Who behaves alike?
# ------------------
# The columns of the counts name the classes, so that the strings of both tables fit together.

from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatorLDA

scaler = StandardScaler().set_output(transform="pandas").fit(X_archive)
lda = AnnotatorLDA(n_clusters=2, random_state=0).set_output(transform="pandas")
lda.fit(scaler.transform(X_archive), counts)
team = lda.transform(scaler.transform(X_team), answers)

# %%
# Beside it stand the simple rivals: agreement with one net trained on the same votes, and how many labels there are.
# Ann and Bob answer as the crowd does; Eve dissents, and no true label was needed to see it. People who differ in
# ability only, like these, are also told apart by the rival.

from sklearn_l2d.metrics import consensus_agreement

one_net = AnnotatorLDA(1, random_state=0).fit(scaler.transform(X_archive), counts)
proba = one_net.predict_annotation_proba(scaler.transform(X_team))[:, 0]
team["one net"] = consensus_agreement(answers, proba, classes=counts.columns)
team["labels"] = answers.notna().sum()
print(team.round(2))

# %%
# The picture has the standard deviation of every entry: with 40 labels of each, Eve is clearly different.

import matplotlib.pyplot as plt

from sklearn_l2d.inspection import MembershipDisplay

display = MembershipDisplay.from_estimator(
    lda, scaler.transform(X_team), answers, std=True
)
display.ax_.set_title("Who answers like the crowd (behaviour 0)?")
plt.show()
