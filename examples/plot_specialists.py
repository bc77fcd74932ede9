"""
Specialists found
=================

Twelve people are equally able overall, but four of them are good at some digits, four at others, and four at the
rest. Anonymous counts cannot show this, and neither can anybody's total. A few identified labels with known truth
can: ``grouping="profile"`` groups people by where they are right.
"""

# %%
# The data
# --------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from sklearn_l2d import ClusterDeferral
from sklearn_l2d.datasets import make_specialists
from sklearn_l2d.inspection import CoverageAccuracyDisplay

X, y = load_digits(return_X_y=True)
roster = make_specialists(X, y, n_experts=12, n_groups=3, random_state=0)
answers = pd.DataFrame(roster.annotations, columns=roster.experts)
print("accuracy of everybody:", (roster.annotations == y[:, None]).mean(0).round(2))
print("who is good at what:", *roster.specialties)

X, X_test, y, y_test, answers, answers_test = train_test_split(
    X, y, answers, train_size=150, random_state=0
)
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)

# %%
# Three ways of grouping
# ----------------------
# The same 150 items, labelled by everybody, and the same weak classifier. ``omega`` brings ready memberships: here
# one single group of everybody, which is a random expert, and one group for each person.

teams = {
    "profile groups": {"n_groups": 3},
    "single experts": {"omega": np.eye(12), "grouping": "hard"},
    "one group of all": {"omega": np.ones((12, 1)), "grouping": "hard"},
}
for name, how in teams.items():
    team = ClusterDeferral(
        classifier=LogisticRegression(C=1e-3),
        coverage=0.5,
        max_epochs=100,
        random_state=0,
        **how,
    )
    teams[name] = team.fit(X, y, annotations=answers)

# %%
# Who belongs together
# --------------------
# Experts are named after their true group. Each row of the picture is a group that was found, each column a digit,
# and the colour says how often its members are right.

found = teams["profile groups"]
for target, members in zip(found.targets_, found.omega_.T > 0, strict=True):
    print(target, *found.experts_[members])

right = (answers_test[list(found.experts_)].to_numpy() == y_test[:, None]).astype(float)
by_class = np.array([right[y_test == digit].mean(0) for digit in range(10)])
figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
image = ax.imshow(
    found.selection_ @ by_class.T, vmin=0, vmax=1, cmap="Blues", aspect="auto"
)
ax.set(
    xlabel="digit", ylabel="group", xticks=range(10), yticks=range(len(found.targets_))
)
figure.colorbar(image, ax=ax, label="share right")

# %%
# What it is worth
# ----------------
# A group pools what its members' labels say about where they are right, so that the gate learns faster than with
# twelve separate targets; and unlike the group of everybody it has somebody to turn to for each digit.

_, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
for name, team in teams.items():
    CoverageAccuracyDisplay.from_estimator(
        team, X_test, y_test, answers_test, name=name, ax=ax
    )
plt.show()
