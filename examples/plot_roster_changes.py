"""
A roster that changes
=====================

People leave, and others come who have labelled a handful of items. Targets of the gate are groups and not persons,
so that a newcomer joins a group and the gate stays as it is.
"""

# %%
# Four people to begin with
# -------------------------
# Two of the six simulated experts are not hired yet. Everybody is known from 100 labels on other items.

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatorLDA, ClusterDeferral
from sklearn_l2d.datasets import load_digits_crowd

crowd = load_digits_crowd()
scaler = StandardScaler().fit(crowd.X_anonymous)
X_archive, X, X_test = map(
    scaler.transform, (crowd.X_anonymous, crowd.X_identified, crowd.X_test)
)
answers = pd.DataFrame(crowd.annotations, columns=crowd.experts)
answers_test = pd.DataFrame(crowd.annotations_test, columns=crowd.experts)

lda = AnnotatorLDA(n_clusters=2, max_epochs=60, random_state=0).fit(
    X_archive, crowd.counts
)
team = ClusterDeferral(
    FrozenEstimator(lda),
    n_groups=3,
    classifier=LogisticRegression(C=0.01),
    coverage=0.5,
    random_state=0,
)
team.fit(
    X,
    crowd.y_identified,
    annotations=answers[["5A", "20C", "35E", "35F"]],
    X_unlabeled=X_archive,
)

history = {}


def look(what):
    """Note who is on the roster and what the team achieves."""
    known = answers_test[list(team.experts_)]  # columns are matched by name
    history[what] = team.score(X_test, crowd.y_test, annotations=known)
    print(f"{what}: {', '.join(team.experts_)}; accuracy {history[what]:.3f}")


look("at first")

# %%
# Somebody leaves
# ---------------
# The best person leaves. ``recalibrate`` moves the offsets of the gate, so that the classifier still decides half
# of the items: nothing is trained.

team.offboard("5A").recalibrate(X_archive)
look("5A left")

# %%
# Somebody joins
# --------------
# 5B comes with 25 labels. Where their truth is known, the newcomer joins the group with the most similar record;
# without ``y`` the consensus of the behaviours takes the place of the truth.

rows = answers.index[answers["5B"] >= 0][:25]
team.onboard(
    "5B", X[rows], answers.loc[rows, ["5B"]], y=crowd.y_identified[rows]
).recalibrate(X_archive)
look("5B joined")

rows = answers.index[answers["20D"] >= 0][:25]
team.onboard("20D", X[rows], answers.loc[rows, ["20D"]]).recalibrate(X_archive)
look("20D joined")

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(list(history), list(history.values()), marker="o")
ax.set(ylabel="team accuracy")

# %%
# The tables of a shift
# ---------------------
# A shift is a plain table: who gets what goes out, a long table of answers comes back. Items carry the names in the
# index of the table of features, if it has one.

shift = pd.DataFrame(X_test[:8], index=[f"item{i}" for i in range(8)])
route = team.route(shift)
print(route)

# %%
# The people answer; here we look the answers up.

asked = route[route["expert"] != "classifier"]
long = pd.DataFrame(
    {
        "task": asked.index,
        "annotator": asked["expert"],
        "label": [
            answers_test.loc[int(item.removeprefix("item")), expert]
            for item, expert in asked["expert"].items()
        ],
    }
)
came_back = team.answers_to_annotations(long, route.index)
print("decisions of the team:", team.predict_team(shift, came_back))
print("truth:                ", crowd.y_test[:8])
plt.show()
