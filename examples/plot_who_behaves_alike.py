"""
Who behaves alike?
==================

Six people label handwritten digits. Two of them rarely err, two err now and then, two often. The archive
they left behind holds only votes: how many of them said "3", how many said "8", but not who. Can the
archive still tell us what kinds of annotators there are, and can a handful of labels tell us which kind a
person is?
"""

# %%
# The data
# --------
# ``load_digits_crowd`` ships with the package. Its anonymous part has features and counts; its identified
# part is small and has one column per expert, with -1 where an expert did not see the item.

import matplotlib.pyplot as plt
import pandas as pd

from sklearn_l2d.datasets import load_digits_crowd

crowd = load_digits_crowd()
print("votes on the first items:", crowd.counts[:3], sep="\n")
answers = pd.DataFrame(crowd.annotations, columns=crowd.experts)
print("answers of the six experts:", answers.head(3), sep="\n")

# %%
# Two behaviours from anonymous votes
# -----------------------------------
# The model never sees a name. Each of its two networks becomes a typical annotator: cluster 0 the one that
# answers as the crowd does, cluster 1 the one that dissents. Nets want columns of one size, hence the scaler: on
# the raw grey values the two behaviours stay so alike that every expert lands in cluster 0.

from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatorLDA

scaler = StandardScaler().fit(crowd.X_anonymous)
X_archive = scaler.transform(crowd.X_anonymous)
lda = AnnotatorLDA(n_clusters=2, random_state=0).fit(X_archive, crowd.counts)
print(f"perplexity on the archive: {lda.perplexity(X_archive, crowd.counts):.2f} of 10 classes")

# %%
# Which of them does each expert follow?
# --------------------------------------
# Each column of the heat map is one expert, named after the error rate that was simulated, in percent. The more
# often an expert errs, the less of cluster 0 is in the column, although the training data could not name
# anyone. Two clusters span one axis of agreement, and the three pairs lie along it; with a hundred labels each,
# neighbours are not always told apart.

from sklearn_l2d.inspection import MembershipDisplay

MembershipDisplay.from_estimator(lda, scaler.transform(crowd.X_identified), answers)

# %%
# How sure is that?
# -----------------
# The same picture from 25 labels of each expert instead of 100, with the standard deviation of every entry.

few = load_digits_crowd(n_identified=25)
few_answers = pd.DataFrame(few.annotations, columns=few.experts)
MembershipDisplay.from_estimator(lda, scaler.transform(few.X_identified), few_answers, std=True)
plt.show()
