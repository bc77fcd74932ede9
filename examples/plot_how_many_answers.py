"""
How many answers does an item need
==================================

Most items need none, some need several, and it takes the answers to find out which. This example lets a team ask one
person after the other and stop where the label is sure enough, looks at what that is worth beside simpler ways of
spending as many answers, and follows the item that took the most of them.
"""

# %%
# The team
# --------
# Six simulated people and a simple classifier look at digits. Each person labelled 25 items whose truth is known; that
# is all that is known about people. The archive has no labels here: it shows what items look like, so that the mean
# number of answers can be met.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.naive_bayes import GaussianNB

from sklearn_l2d.annotations import to_counts
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.deferral import ConfidenceDeferral, PanelDeferral
from sklearn_l2d.inspection import AnswersAccuracyDisplay

crowd = load_digits_crowd(n_identified=25)
X, y, recorded = crowd.X_test, crowd.y_test, crowd.annotations_test
known = {
    "X": crowd.X_identified,
    "y": crowd.y_identified,
    "annotations": pd.DataFrame(crowd.annotations, columns=crowd.experts),
}

classifier = GaussianNB(var_smoothing=0.1)
panel = PanelDeferral(classifier, answers=1.0, random_state=0).fit(
    **known, X_unlabeled=crowd.X_anonymous
)
print(f"classifier alone: {np.mean(panel.predict(X) == y):.3f}")
print(f"one answer per item on average: {panel.score(X, y, annotations=recorded):.3f}")

# %%
# What an answer is worth
# -----------------------
# ``answers_path`` gives the panel at other numbers of answers, from the same fit. Each is replayed on the recorded
# answers of the test items.

budgets = [0, 0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 3]
path = panel.answers_path(budgets, crowd.X_anonymous)
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
AnswersAccuracyDisplay.from_estimators(
    path, X, y, recorded, name="panel", linewidth=2, ax=ax
)

# %%
# The simplest rival asks random people and takes the majority; the classifier breaks ties. Between whole numbers of
# answers, the items of which the classifier is least sure get one more. The same people asked in the same order, but
# their answers joined with the classifier, show how much comes from joining and how much from choosing whom to ask.

sure = panel.predict_proba(X).max(axis=1)
unsure = sure.argsort(kind="stable").argsort()  # 0 for the least sure item
order = np.random.default_rng(0).random(recorded.shape).argsort(axis=1).argsort(axis=1)


def random_answers(budget):
    """Answers of random people to the test items, -1 where nobody was asked."""
    whole = int(budget)
    n_answers = whole + (unsure < round((budget - whole) * len(X)))
    return np.where(order < n_answers[:, None], recorded, -1)


def by_majority(answers):
    """Labels by most votes."""
    votes = to_counts(answers, classes=panel.classes_)
    return panel.classes_[(votes + 0.5 * panel.predict_proba(X)).argmax(axis=1)]


joined = [np.mean(panel.predict_team(X, random_answers(b)) == y) for b in budgets]
majority = [np.mean(by_majority(random_answers(b)) == y) for b in budgets]
AnswersAccuracyDisplay.from_predictions(
    budgets,
    joined,
    name="random people, joined with the classifier",
    linestyle="--",
    ax=ax,
)
AnswersAccuracyDisplay.from_predictions(
    budgets, majority, name="random people, majority", linestyle="--", ax=ax
)

# %%
# :class:`~sklearn_l2d.deferral.ConfidenceDeferral` takes one answer or none: it asks whoever is likeliest to be right
# where that is likelier than that the classifier is, and believes the answer.

one = ConfidenceDeferral(classifier, coverage=0.5, random_state=0).fit(
    **known, X_unlabeled=crowd.X_anonymous
)
shares, accuracy = [], []
for deferrer in one.coverage_path([1, 0.875, 0.75, 0.5, 0.25, 0], crowd.X_anonymous):
    shares.append(np.mean(deferrer.predict_deferral(X) >= 0))
    accuracy.append(deferrer.score(X, y, annotations=recorded))
AnswersAccuracyDisplay.from_predictions(
    shares,
    accuracy,
    name="ConfidenceDeferral, one answer at most",
    linestyle="--",
    ax=ax,
)
ax.legend(loc="lower right", fontsize="small")

# %%
# The first answers are worth most. Up to a quarter of an answer per item it hardly matters who is asked, as long as the
# answer is joined with the classifier; beyond that, the panel gains by choosing whom to ask about what. The majority
# falls up to one answer per item: a random person then stands in for a classifier that is right more often.
# Differences below .025 may be chance on 300 items.
#
# Which items get many answers
# ----------------------------
# At one answer per item on average, most items get one, a quarter none, and a few get three.

replay = panel.replay(X, recorded)
sure_before = panel.predict_team_proba(X, np.full_like(recorded, -1)).max(axis=1)
for n_answers in range(replay.n_answers.max() + 1):
    items = replay.n_answers == n_answers
    print(
        f"{n_answers} answers: {items.sum():3d} items, "
        f"the classifier is sure by {sure_before[items].mean():.2f}, "
        f"right on {np.mean(panel.predict(X)[items] == y[items]):.2f}; "
        f"in the end {np.mean(replay.labels[items] == y[items]):.2f}"
    )

order_of = {
    "no answer": np.flatnonzero(replay.n_answers == 0),
    "most answers": np.lexsort((sure_before, -replay.n_answers)),
}
figure = plt.figure(figsize=(7.5, 4), layout="constrained")
for part, (name, items) in zip(figure.subfigures(2), order_of.items(), strict=True):
    part.suptitle(name, fontsize="medium")
    for ax, item in zip(part.subplots(1, 7), items, strict=False):
        ax.imshow(X[item].reshape(8, 8), cmap="gray_r")
        ax.set_title(
            f"{replay.n_answers[item]} answers:\nit is a {replay.labels[item]}",
            fontsize="small",
        )
        ax.set_axis_off()

# %%
# The history of one item
# -----------------------
# The loop of a system that serves items one by one: ask, take in the answer, ask again, until the panel has heard
# enough. ``explain_deferral`` says at every step whom it would ask next, the label so far and how sure it is.

item = order_of["most answers"][0]
answers = np.full((1, len(crowd.experts)), -1)
while True:
    told = panel.explain_deferral(X[[item]], answers).iloc[0]
    print(
        f"label {told['label']}, sure by {told['confidence']:.2f}; next: {told['next']}"
    )
    who = panel.next_expert(X[[item]], answers)[0]
    if who < 0:
        break
    answers[0, who] = recorded[item, who]
    print(f"    {crowd.experts[who]} answers {answers[0, who]}")
print(f"the truth is {y[item]}")

# %%
# What each answer changed: by how much the probability of the label would fall without it. A negative number is an
# answer that speaks against the label.

changes = told[[name for name in told.index if name.startswith("change by")]].dropna()
print(changes.astype(float).round(2).to_string())
plt.show()
