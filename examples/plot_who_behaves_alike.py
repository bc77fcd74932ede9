"""
Who behaves alike?
==================

Six people label handwritten digits. Two of them rarely err, two err now and then, two often. The archive
they left behind holds only votes: how many of them said "3", how many said "8", but not who. Can the
archive still tell us what behaviours there are, and can a handful of labels tell us which kind a
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
# The model never sees a name. Each of its two networks becomes a behaviour: behaviour 0 the one that
# answers as the crowd does, behaviour 1 the one that dissents. Nets want columns of one size, hence the scaler: on
# the raw grey values the two behaviours stay so alike that every expert lands in behaviour 0.

from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatorLDA

scaler = StandardScaler().fit(crowd.X_anonymous)
X_archive = scaler.transform(crowd.X_anonymous)
lda = AnnotatorLDA(n_clusters=2, random_state=0).fit(X_archive, crowd.counts)
print(
    f"perplexity on the archive: {lda.perplexity(X_archive, crowd.counts):.2f} of 10 classes"
)

# %%
# Which of them does each expert follow?
# --------------------------------------
# Each column of the heat map is one expert, named after the error rate that was simulated, in percent. The more
# often an expert errs, the less of behaviour 0 is in the column, although the training data could not name
# anyone. Two behaviours span one axis of agreement, and the three pairs lie along it; with a hundred labels each,
# neighbours are not always told apart.

from sklearn_l2d.inspection import MembershipDisplay

MembershipDisplay.from_estimator(lda, scaler.transform(crowd.X_identified), answers)

# %%
# More behaviours, and the simple rivals
# --------------------------------------
# From two to five behaviours, side by side. The axis stays the same: behaviour 0 agrees most, the last behaviour dissents,
# and what lies between is shared out among more rows. No further kinds of people appear, because these votes hold none.
# But the more rows there are, the less a hundred labels can say about each of them, and members of a pair that look
# alike in two behaviours part in three. Fewer are easier to read.

models = {2: lda} | {
    k: AnnotatorLDA(k, random_state=0).fit(X_archive, crowd.counts) for k in (3, 4, 5)
}
X_team = scaler.transform(crowd.X_identified)
figure, axes = plt.subplots(2, 2, figsize=(9, 5.2), layout="constrained")
for (k, model), ax in zip(models.items(), axes.flat, strict=True):
    MembershipDisplay.from_estimator(model, X_team, answers, ax=ax, colorbar=False)
    ax.set(title=f"{k} behaviours", xlabel="")

# %%
# These experts differ in ability only. Then simpler scores order them as well: how well each agrees with one net that
# is trained on the same votes, and how often they give its most likely answer. Compare with them before you believe in
# behaviours. Accuracy on the identified items needs the truth, which the others do not.

from sklearn_l2d.metrics import consensus_agreement

one_net = (
    AnnotatorLDA(n_clusters=1, random_state=0)
    .fit(X_archive, crowd.counts)
    .predict_annotation_proba(X_team)[:, 0]
)
seen = crowd.annotations >= 0
table = pd.DataFrame(
    {
        "behaviour 0": lda.transform(X_team, answers)[:, 0],
        "one net": consensus_agreement(answers, one_net),
        "its top answer": (
            (crowd.annotations == one_net.argmax(1)[:, None]) & seen
        ).sum(0)
        / seen.sum(0),
        "accuracy": ((crowd.annotations == crowd.y_identified[:, None]) & seen).sum(0)
        / seen.sum(0),
    },
    index=crowd.experts,
)
print(table.round(2).to_string())

# %%
# How sure is that?
# -----------------
# The same picture from 25 labels of each expert instead of 100, with the standard deviation of every entry.
# :ref:`sphx_glr_auto_examples_plot_how_sure_is_a_membership.py` goes on from here.

few = load_digits_crowd(n_identified=25)
few_answers = pd.DataFrame(few.annotations, columns=few.experts)
MembershipDisplay.from_estimator(
    lda, scaler.transform(few.X_identified), few_answers, std=True
)
plt.show()
