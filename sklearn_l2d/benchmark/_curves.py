"""Coverage against accuracy of one deferrer on the test rows of a world."""

import time
import warnings

import numpy as np
from sklearn.frozen import FrozenEstimator

from ..deferral import RankedDeferral
from ..metrics import coverage_accuracy_auc

COVERAGES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


def fit(deferrer, data):
    """Fit a deferrer to `data`, as `World.labelled` gives it; returns the CPU seconds of the fit alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many short trainings, whose warnings are of no interest here
        start = time.process_time()
        deferrer.fit(**data)
        return time.process_time() - start


def fit_and_measure(world, deferrer, data):
    """Fit a deferrer to `data`; returns the figures of `measure`, and ``fit_seconds``, the result of `fit`."""
    seconds = fit(deferrer, data)
    return measure(world, deferrer, data) | {"fit_seconds": seconds}


def fit_and_judge(world, labels, method, options=None):
    """Figures of a `Method` on one world, with its chosen options unless others are given."""
    deferrer = method.build(world, **(method.options if options is None else options))
    return fit_and_measure(world, deferrer, world.labelled(labels, with_known=method.joint))


def measure(world, deferrer, data):
    """Area and points of a deferrer that was fitted to `data`, as `World.labelled` gives it.

    Returns
    -------
    figures : dict
        ``area``: area under the path of requested coverages, by offsets of the gate or by ranking. ``area_point``: area
        under the deferrer's own point and the two ends, as in the paper for systems without control of the coverage
        (L2D-Clusters 5.2). ``coverage`` and ``accuracy``: the own point. ``classifier`` and ``people``: accuracies at
        the two ends. ``coverage@c`` and ``accuracy@c``: points of the path.
    """
    points = [team_point(world, system) for system in _path(world, deferrer, data)]
    own, ends = team_point(world, deferrer), (points[0], points[-1])
    figures = {
        "area": coverage_accuracy_auc(*zip(*points, strict=True)),
        "area_point": coverage_accuracy_auc(*zip(ends[0], own, ends[1], strict=True)),
        "coverage": own[0],
        "accuracy": own[1],
        "people": points[0][1],
        "classifier": points[-1][1],
    }
    for request, (coverage, accuracy) in zip(COVERAGES, points, strict=True):
        figures |= {f"coverage@{request}": coverage, f"accuracy@{request}": accuracy}
    return figures


def _path(world, deferrer, data):
    if not hasattr(deferrer, "coverage_path"):
        deferrer = RankedDeferral(FrozenEstimator(deferrer), random_state=world.seed)
        fit(deferrer, data)
    return deferrer.coverage_path(COVERAGES, X_unlabeled=data["X_unlabeled"])


def team_point(world, deferrer, right=None):
    """Achieved coverage and expected accuracy on the test rows with annotations.

    A deferred item goes to the most preferred target among those with a member who annotated it: most items have no
    annotation by most of the real experts. `right` (n_test, n_experts) says whether the label is right if this expert
    is asked; None takes the answer for the label.
    """
    X, y, annotations = world.X[world.test], world.y[world.test], world.annotations[world.test]
    answered = (annotations >= 0) @ deferrer.selection_.T
    right = (annotations == y[:, None] if right is None else right) @ deferrer.selection_.T
    right = np.divide(right, answered, where=answered > 0, out=np.zeros(answered.shape))
    own = deferrer.predict(X) == y
    scores = deferrer.decision_function(X)
    deferred = scores.argmax(1) < len(deferrer.targets_)
    best = np.where(answered > 0, scores[:, :-1], -np.inf).argmax(1)
    rows = np.flatnonzero((annotations >= 0).any(1))
    correct = np.where(deferred, right[np.arange(len(y)), best], own)
    return 1 - deferred[rows].mean(), correct[rows].mean()
