"""
A grid search over teams
========================

A scaler and a gate in a pipeline, and a search over the gate's settings. Annotations have to follow the rows into
every fold. There are two ways: metadata routing, or a target that carries them. The settings of the behaviours are
chosen from the archive alone, see :ref:`sphx_glr_auto_examples_plot_choose_n_clusters.py`.
"""

# %%
# The pipeline
# ------------
# ``score`` of a deferrer is the accuracy of the team, so that a search maximises the right thing by itself. The
# behaviours are fitted within each fold here; with many anonymous votes, bring a ``FrozenEstimator`` instead.

import pandas as pd
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatorLDA, ClusterDeferral
from sklearn_l2d.annotations import AnnotatedTarget
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.model_selection import make_team_scorer

crowd = load_digits_crowd()
answers = pd.DataFrame(crowd.annotations, columns=crowd.experts)
team = ClusterDeferral(
    AnnotatorLDA(2, max_epochs=20),
    classifier=LogisticRegression(C=0.003),
    coverage=0.5,
    max_epochs=40,
    random_state=0,
)
pipeline = make_pipeline(StandardScaler(), team)


def show(search, *scores):
    """Print what was tried and the mean scores."""
    results = pd.DataFrame(search.cv_results_)
    results["params"] = [
        ", ".join(f"{k.split('__')[-1]}={v}" for k, v in row.items())
        for row in results["params"]
    ]
    print(
        results[["params", *(f"mean_test_{score}" for score in scores)]]
        .round(3)
        .to_string(index=False)
    )


# %%
# Without any setting: an annotated target
# ----------------------------------------
# `AnnotatedTarget` is an array of labels whose rows bring their annotations along.

search = GridSearchCV(
    pipeline, {"clusterdeferral__grouping": ["profile", "hard"]}, cv=2
)
search.fit(crowd.X_identified, AnnotatedTarget(crowd.y_identified, answers))
show(search, "score")

# %%
# With metadata routing: annotations by name
# ------------------------------------------
# The flag is all that is needed; the requests are part of the class. It also carries unlabelled items for the
# calibration: ``transform_input`` has them scaled on their way. Several scores at once show what the team adds to
# its classifier.

routed = make_pipeline(StandardScaler(), team, transform_input=["X_unlabeled"])
scoring = {
    "classifier": "accuracy",
    "team": make_team_scorer(decision="expected"),
    "vote": make_team_scorer(decision="vote"),
}
with config_context(enable_metadata_routing=True):
    search = GridSearchCV(
        routed,
        {"clusterdeferral__coverage": [0.3, 0.7]},
        scoring=scoring,
        refit="team",
        cv=2,
    )
    search.fit(
        crowd.X_identified,
        crowd.y_identified,
        annotations=answers,
        X_unlabeled=crowd.X_anonymous,
    )
show(search, *scoring)

# %%
# The fitted team
# ---------------
# A search and a pipeline know `predict`, which is the classifier alone. For the team, take the parts.

scaler, best = search.best_estimator_[:-1], search.best_estimator_[-1]
labels = best.predict_team(scaler.transform(crowd.X_test), crowd.annotations_test)
print(f"team on the test items: {(labels == crowd.y_test).mean():.3f}")
print(
    f"its classifier alone:   {(search.predict(crowd.X_test) == crowd.y_test).mean():.3f}"
)
