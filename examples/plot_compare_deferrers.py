"""
All deferrers on one crowd
==========================

Every deferrer of the package learns from the same 100 labels by name of each of six simulated experts. One figure shows
how accurate the team is when the classifier decides few, some or most of the items. It is one draw of one small crowd:
:ref:`which_deferrer_guide` says what to take, and :ref:`benchmark_guide` compares on ten sets and many seeds.
"""

# %%
# The data
# --------
# Digits, of which everybody but the experts sees the first eight principal components only, so that there is something
# to gain from asking. Experts come in pairs that err on about 5, 20 and 35 % of the items.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatorLDA, deferral
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.inspection import CoverageAccuracyDisplay

crowd = load_digits_crowd()
scaler = make_pipeline(PCA(8, random_state=0), StandardScaler()).fit(crowd.X_anonymous)
X_archive, X, X_test = map(
    scaler.transform, (crowd.X_anonymous, crowd.X_identified, crowd.X_test)
)
labelled = {"annotations": crowd.annotations, "X_unlabeled": X_archive}
lda = AnnotatorLDA(n_clusters=2, max_epochs=60, random_state=0).fit(
    X_archive, crowd.counts
)

# %%
# The teams
# ---------
# In four families. Those that train a net for classes and experts at once have a classifier of their own; the others
# are given the same logistic regression. A gate learns best about an even split of the work, hence ``coverage=0.5``.

own = {"random_state": 0}
given = own | {"classifier": LogisticRegression()}
gated = given | {"coverage": 0.5}
behaviours = {"clusterer": FrozenEstimator(lda)}
families = {
    "Gates over groups": {
        "groups by record": deferral.ClusterDeferral(n_groups=3, **behaviours, **gated),
        "paper's clusters, hard": deferral.ClusterDeferral(
            grouping="hard", prior_weight=0, **behaviours, **gated
        ),
        "paper's clusters, soft": deferral.ClusterDeferral(
            grouping="soft", prior_weight=0, **behaviours, **gated
        ),
        "random expert": deferral.RandomExpertDeferral(**gated),
    },
    "Single experts, classifier given": {
        "probabilistic": deferral.ProbabilisticDeferral(**gated),
        "semi-supervised": deferral.SemiSupervisedDeferral(**gated),
        "confidence": deferral.ConfidenceDeferral(**gated),
        "two-stage": deferral.TwoStageDeferral(**given),
    },
    "Single experts, own classifier": {
        "one-stage, softmax": deferral.OneStageDeferral("softmax", **own),
        "one-stage, one-vs-all": deferral.OneStageDeferral("ova", **own),
        "mixture of experts": deferral.MixtureOfExpertsDeferral(**own),
    },
    "Experts known by their answers": {
        "population": deferral.PopulationDeferral(**own),
        "expert-agnostic": deferral.ExpertAgnosticDeferral(**given),
    },
}
references = {
    "best expert": deferral.BestExpert(given["classifier"]),
    "anybody at random": deferral.ClassifierOnly(given["classifier"]),
}
for team in references.values():
    team.fit(X, crowd.y_identified, **labelled)
for family in families.values():
    for name, team in family.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            family[name] = team.fit(X, crowd.y_identified, **labelled)

# %%
# The figure
# ----------
# Each panel shows one family in colour, and all others in grey. Deferrers that cannot be asked for a coverage get it
# from ``RankedDeferral``; a ring marks what they choose themselves. The dashed line is the best expert for a random
# part of the items, the dotted one anybody for a random part.
#
# - **Knowing both sides is what pays.** Gates that start from how often everybody is expected to be right, the rule
#   without training (confidence) and the nets that learn from competence are close together at the top, above both
#   ends: the classifier keeps what it is sure of. Where curves lie on one another, the 300 test items do not tell them
#   apart; on other draws, ``load_digits_crowd(random_state=1)`` for instance, they change places.
# - **Knowing who is good is worth .06 of area here**, the lead of the groups over a random expert with the same gate.
#   The paper's clusters, which come from anonymous votes, have a gate that knows nothing but the item; they come no
#   further than that.
# - **A loss that decides the coverage itself can leave little to rank.** Two-stage sends nine items in ten to people,
#   the mixture of experts all; neither has learnt when not to. The classifier inside the mixture is hardly
#   trained, since it decides nothing.

coverages = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
test = X_test, crowd.y_test, crowd.annotations_test
figure, axes = plt.subplots(
    2, 2, figsize=(9, 7.4), sharex=True, sharey=True, layout="constrained"
)
rows = []
for ax, (family, teams) in zip(axes.flat, families.items(), strict=True):
    for color, (name, team) in zip(
        ["C0", "C1", "C2", "C3"], teams.items(), strict=False
    ):
        ranked = team
        if not hasattr(team, "coverage_path"):
            ranked = deferral.RankedDeferral(FrozenEstimator(team)).fit(
                X, crowd.y_identified, **labelled
            )
            own_coverage = np.mean(team.predict_deferral(X_test) < 0)
            ax.plot(
                own_coverage,
                team.score(*test),
                "o",
                ms=11,
                mfc="none",
                mec=color,
                mew=1.6,
            )
        display = CoverageAccuracyDisplay.from_estimator(
            ranked,
            *test,
            coverages=coverages,
            X_unlabeled=X_archive,
            ax=ax,
            name=name,
            color=color,
            markersize=3,
            lw=2,
        )
        for other in set(axes.flat) - {ax}:
            other.plot(display.coverage, display.accuracy, color="0.88", lw=1, zorder=0)
        at = np.interp([0, 0.25, 0.5, 0.75, 1], display.coverage, display.accuracy)
        rows.append([family, name, display.area, *at])
    for (name, team), style in zip(references.items(), ["--", ":"], strict=True):
        CoverageAccuracyDisplay.from_estimator(
            team, *test, ax=ax, name=name, color="k", marker="", lw=1, ls=style
        )
    ax.set_title(family, loc="left", fontsize=11)
    ax.legend(loc="lower left", fontsize=8, frameon=False)
    ax.label_outer()

# %%
# The same as a table: area, and accuracy at five coverages.

columns = ["family", "deferrer", "area", "0", ".25", ".5", ".75", "1"]
table = pd.DataFrame(rows, columns=columns).set_index("deferrer").drop(columns="family")
print(table.sort_values("area", ascending=False).round(3))
plt.show()
