"""
How many answers does an item need
==================================

Two answers cost twice as much as one. This example asks random people for one answer, then two, then more, and looks
at what the label is worth: by the majority, and by the classifier and the answers together. Then it looks at whether
the probabilities can be trusted, since these say where another answer is still needed.
"""

# %%
# The team
# --------
# Six simulated people and a small classifier look at digits. Each person labelled 50 items whose truth is known; that
# is all the team learns about them. :class:`~sklearn_l2d.deferral.ConfidenceDeferral` trains nothing else, but any
# deferrer can put answers together.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.annotations import to_counts
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import ConfidenceDeferral
from sklearn_l2d.metrics import deferral_report

crowd = load_digits_crowd(n_identified=50, n_anonymous=500)
team = ConfidenceDeferral(LogisticRegression(C=0.01), random_state=0)
team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
X, y = crowd.X_test, crowd.y_test

# %%
# One answer, two answers, ...
# ----------------------------
# For every item the people are put in a random order, and the first few of them answer. A majority needs a rule for
# ties: here the classifier breaks them.

order = np.random.default_rng(0).random(crowd.annotations_test.shape).argsort(axis=1).argsort(axis=1)
alone = team.predict_proba(X)
rows = []
for n_answers in range(crowd.annotations_test.shape[1] + 1):
    answers = np.where(order < n_answers, crowd.annotations_test, -1)
    votes = to_counts(answers, classes=team.classes_) if n_answers else np.zeros(alone.shape)
    majority = team.classes_[(votes + 0.5 * alone).argmax(axis=1)]
    proba = team.predict_team_proba(X, answers)
    rows.append(
        {
            "answers": n_answers,
            "majority": np.mean(majority == y),
            "together": np.mean(team.classes_[proba.argmax(axis=1)] == y),
            "confidence": proba.max(axis=1).mean(),
        }
    )
table = pd.DataFrame(rows).set_index("answers")
print(table.round(3))

# %%
# With one answer the majority is that answer, and the classifier has no say; together they are right more often. The
# more people answer, the less there is to gain: from three on, the difference is within the chance of 300 items.

_, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
ax.plot(table.index, table["together"], marker="o", label="classifier and answers together")
ax.plot(table.index, table["majority"], marker="s", linestyle="--", label="majority, ties to the classifier")
ax.plot(table.index, table["confidence"], color="gray", linestyle=":", label="mean confidence of the former")
ax.set(xlabel="answers per item", ylabel="accuracy")
ax.legend()

# %%
# Can the confidence be trusted?
# ------------------------------
# Two answers each. In ten groups from the least to the most sure items, mean confidence should be the accuracy. A
# group has 30 items, so that differences of .1 are chance; that all the unsure groups are too sure is not.

answers = np.where(order < 2, crowd.annotations_test, -1)
proba = team.predict_team_proba(X, answers)
report = deferral_report(
    y, team.predict_deferral(X), team.predict(X), answers, team.selection_, team_proba=proba, classes=team.classes_
)
print(f"accuracy {report['combined_accuracy']:.3f}, confidence {report['combined_confidence']:.3f}")
print(pd.DataFrame(report["calibration"]).round(2))

# %%
# So ask again only where it is needed
# ------------------------------------
# Most items are sure after two answers. Asking a third person about the others only costs a fraction of what asking
# about all of them does.

unsure = proba.max(axis=1) < 0.95
third = np.where((order < 2) | (unsure[:, None] & (order < 3)), crowd.annotations_test, -1)
labels = team.predict_team(X, third, decision="combine")
print(f"{2 + unsure.mean():.2f} answers per item: {np.mean(labels == y):.3f}")
print(f"3.00 answers per item: {table.loc[3, 'together']:.3f}")
plt.show()
