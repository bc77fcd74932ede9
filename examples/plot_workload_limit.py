"""
Nobody serves more than a fifth
===============================

A gate that looks for accuracy alone sends everything it can to the best expert. That person has other things to
do. This example asks for a coverage and for a limit per expert, and checks both on items that nobody has seen.
"""

# %%
# The data
# --------
# Six simulated experts and a small classifier look at digits. The archive has no names and serves twice: it shows
# how people behave, and its features calibrate the shares. Columns are scaled, since the gate is a neural net.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatorLDA, ClusterDeferral
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.inspection import CoverageAccuracyDisplay, WorkloadDisplay

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


def fit_team(**limits):
    """Fit a gate; `FrozenEstimator` keeps the behaviours of the archive as they are."""
    team = ClusterDeferral(
        FrozenEstimator(lda),
        classifier=LogisticRegression(C=0.01),
        coverage=0.5,
        random_state=0,
        **limits,
    )
    return team.fit(X, crowd.y_identified, annotations=answers, X_unlabeled=X_archive)


# %%
# Without a limit
# ---------------
# The classifier decides about half of the test items, as requested. Nearly all of the rest goes to one person.

free = fit_team()
WorkloadDisplay.from_estimator(free, X_test)

# %%
# With a limit
# ------------
# Now nobody may serve more than 20 % of the items, and the two best people no more than 15 %. The limits hold on
# the items on which the gate was calibrated; on others they hold up to the noise of 300 items.

limits = dict.fromkeys(crowd.experts, (0, 0.2)) | {"5A": (0, 0.15), "5B": (0, 0.15)}
limited = fit_team(workload=limits)
display = WorkloadDisplay.from_estimator(limited, X_test)
excess = display.workload[:-1] - display.bounds[:-1, 1]
print(f"largest share above its limit: {max(excess.max(), 0):.3f}")

# %%
# What the limit costs
# --------------------
# Work that moves to less able people costs accuracy, most where people decide much.

_, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
for name, team in {"no limit": free, "limits": limited}.items():
    CoverageAccuracyDisplay.from_estimator(
        team,
        X_test,
        crowd.y_test,
        answers_test,
        coverages=[0.3, 0.5, 0.7, 0.9],
        X_unlabeled=X_archive,
        name=name,
        ax=ax,
    )

# %%
# Today's list
# ------------
# ``assign_experts`` and its table form ``route`` draw one member of the chosen group for each item, and heed hard
# capacities of the day: here everybody has time for 40 items, and 5B is away. What finds nobody of the group goes to
# the free colleague with the largest expected gain over the classifier. Where there is none, the classifier decides,
# and a warning says how often; ``on_overflow="raise"`` refuses instead.

import textwrap
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    today = limited.route(
        X_test, available=np.array(crowd.experts) != "5B", capacity=40
    )
print(today["expert"].value_counts())
print(*(textwrap.fill(str(warning.message), 88) for warning in caught), sep="\n")

# %%
# Why an item went where it went: two of those that a bound has moved.

why = limited.explain_deferral(X_test)
print(why[why["forced by"] != ""].head(2).T)
plt.show()
