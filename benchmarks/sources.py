"""Several items of one source, such as a patient: what a team believes with and without the `groups` of its items.

    python benchmarks/sources.py [TABLE ...] [--seeds 10] > benchmarks/results/sources.md

The real set is found through SKLEARN_L2D_DATA. Seeds of `views` are from 0, those of `shapes` from 100.
"""

import numpy as np
from _report import run, table
from sklearn.ensemble import RandomForestClassifier

from sklearn_l2d.benchmark._worlds import SETS
from sklearn_l2d.deferral import ConfidenceDeferral, PanelDeferral

N_OBJECTS, N_VIEWS = 40, 5
REQUESTS = (0.5, 1.0, 1.5, 2.0)


def draw_views(n_objects, rng):
    """Views of objects, alike but for noise; the truth of an object is a coin."""
    truth, center = rng.integers(2, size=n_objects), rng.normal(size=(n_objects, 2))
    source = np.repeat(np.arange(n_objects), N_VIEWS)
    return center[source] + 0.01 * rng.normal(size=(len(source), 2)), truth[source], source


def views(seeds):
    """A classifier that can do no more than recognise objects, and four people who are right in .8 of the views."""
    rows = []
    for name, knows in (("no groups", False), ("groups", True)):
        figures = []
        for seed in seeds:
            rng = np.random.default_rng(seed)
            X, y, source = draw_views(N_OBJECTS, rng)
            answers = np.where(rng.random((len(y), 4)) < 0.8, y[:, None], 1 - y[:, None])
            X_new, y_new, _ = draw_views(200, rng)
            team = ConfidenceDeferral(RandomForestClassifier(50, random_state=0), random_state=0)
            team.fit(X, y, annotations=answers, groups=source if knows else None)
            alone = team.predict_team_proba(X_new, np.full((len(X_new), 4), -1))
            right, deferred = team.predict(X_new) == y_new, team.predict_deferral(X_new) >= 0
            figures.append((right.mean(), alone.max(1).mean(), deferred.mean()))
        rows.append([name, *np.mean(figures, axis=0)])
    title = f"A random forest on {N_VIEWS} views of each of {N_OBJECTS} objects, on views of others, {len(seeds)} seeds"
    table(title, ["", "accuracy", "confidence", "share that ConfidenceDeferral defers"], rows)


def shapes(seeds):
    """cue_conflict: answers beyond those requested, confidence less accuracy, and accuracy, on images of new shapes."""
    data = SETS["cue_conflict"]
    for size in (25, 50):
        rows = []
        for name, knows, cv in (("no groups", False, 5), ("groups, 5 folds", True, 5), ("groups, 20 folds", True, 20)):
            figures = []
            for seed in range(100, 100 + len(seeds)):
                world = data.build(seed)
                given = world.labelled(world.identified(size, data.same_items))
                if not knows:
                    del given["groups"]
                panel = PanelDeferral(world.classifier, cv=cv, random_state=seed).fit(**given)
                X, y, recorded = (part[world.test] for part in (world.X, world.y, world.annotations))
                path = panel.answers_path(REQUESTS, X_unlabeled=X, available=recorded >= 0)
                replays = [system.replay(X, recorded) for system in path]
                beyond = [r.n_answers.mean() - asked for r, asked in zip(replays, REQUESTS, strict=True)]
                right = [(r.labels == y).mean() for r in replays]
                excess = [r.proba.max(1).mean() - a for r, a in zip(replays, right, strict=True)]
                figures.append([*beyond, *excess, *right])
            rows.append([name, *np.mean(figures, axis=0)])
        columns = [f"{what}, {b:g}" for what in ("beyond", "excess", "accuracy") for b in REQUESTS]
        table(f"cue_conflict, N'={size}, by the requested answers per item, {len(seeds)} seeds", ["", *columns], rows)


TABLES = {f.__name__: f for f in (views, shapes)}


if __name__ == "__main__":
    run(TABLES, "Several items of one source")
