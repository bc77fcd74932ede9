"""What `_sklearn.py` adds: warnings that name the line of the caller, and methods that fail without a trace."""

import inspect
import warnings

import numpy as np
import pytest
from _instances import make_crowd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatedTarget, AnnotatorLDA
from sklearn_l2d._sklearn import atomic, warn
from sklearn_l2d.cluster import BetaExpertEncoder, FuzzyCMeans
from sklearn_l2d.deferral import BestExpert, ClusterDeferral, ConfidenceDeferral, RankedDeferral

FAST = {"max_epochs": 3, "n_anchor_epochs": 1, "n_consensus_epochs": 1, "hidden_layer_sizes": (4,), "random_state": 0}


@pytest.fixture(scope="module")
def crowd():
    crowd = make_crowd()
    crowd.annotations[:, 1] = -1  # somebody who never answered
    return crowd


def transform(crowd):
    lda = quiet(lambda: AnnotatorLDA(**FAST).fit(crowd.X, crowd.counts))
    return lambda: lda.transform(crowd.X, crowd.annotations)


def encode(crowd):
    encoder = BetaExpertEncoder().fit(crowd.X, crowd.y, crowd.annotations)
    return lambda: encoder.transform(crowd.X, crowd.annotations, crowd.y)


def stop_early(crowd):
    return lambda: FuzzyCMeans(3, max_iter=1, tol=0, random_state=0).fit(crowd.X)


def fit_silent(crowd):
    return lambda: BestExpert(LogisticRegression()).fit(crowd.X, crowd.y, annotations=crowd.annotations)


def fit_silent_inside(crowd):
    ranked = RankedDeferral(ConfidenceDeferral(LogisticRegression(), cv=2), coverage=0.5)
    return lambda: ranked.fit(crowd.X, crowd.y, annotations=crowd.annotations)


def fit_in_a_pipeline(crowd):
    pipeline = make_pipeline(StandardScaler(), BestExpert(LogisticRegression()))
    return lambda: pipeline.fit(crowd.X, AnnotatedTarget(crowd.y, crowd.annotations))


def fit_in_a_search(crowd):
    target = AnnotatedTarget(crowd.y, crowd.annotations)
    return lambda: cross_val_score(BestExpert(LogisticRegression()), crowd.X, target, cv=2)


def find_nobody(crowd):
    team = quiet(lambda: fit_silent(crowd)())
    return lambda: team.assign_experts(crowd.X, available=np.zeros(5, dtype=bool))


def break_a_bound(crowd):
    team = ConfidenceDeferral(LogisticRegression(), cv=2, coverage=0.1, workload=(0, 0.3))
    quiet(lambda: team.fit(crowd.X, crowd.y, annotations=crowd.annotations[:, [0, 2, 3, 4]]))
    return lambda: team.offboard([0, 1])


def interrupt(crowd):
    def module(n_outputs):
        import torch

        class Interrupted(torch.nn.Linear):
            calls = 0

            def forward(self, X):
                Interrupted.calls += 1
                if Interrupted.calls > 3:
                    raise KeyboardInterrupt
                return super().forward(X)

        return Interrupted(4, n_outputs)

    lda = AnnotatorLDA(n_clusters=1, module=module, weight_decay=0.015, batch_size=60, max_epochs=5)
    return lambda: partial_survey(lda, crowd)


def partial_survey(lda, crowd):
    with pytest.raises(KeyboardInterrupt):  # the training keeps what it has; the pass over the rows after it does not
        lda.fit(crowd.X, crowd.counts)


def quiet(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


@pytest.mark.parametrize(
    "prepare",
    [
        transform,
        encode,
        stop_early,
        fit_silent,
        fit_silent_inside,
        fit_in_a_pipeline,
        fit_in_a_search,
        find_nobody,
        break_a_bound,
        interrupt,
    ],
)
def test_warnings_name_the_line_of_the_caller(crowd, prepare):
    call = prepare(crowd)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    assert {warning.filename for warning in caught} == {__file__}
    lines, start = inspect.getsourcelines(partial_survey if prepare is interrupt else prepare)
    assert all(start <= warning.lineno < start + len(lines) for warning in caught)


def test_without_a_caller_outside_the_outermost_line_is_named():
    namespace = {"__file__": "nowhere", "warn": warn, "ConvergenceWarning": ConvergenceWarning}
    with pytest.warns(ConvergenceWarning, match="alone") as caught:
        exec("warn('alone', ConvergenceWarning)", namespace)
    assert caught[0].filename == "<string>"


class Counter(BaseEstimator):
    """Counts, and fails where it is told to."""

    @atomic
    def count(self, fail=False):
        """Count one more."""
        self.n_ = getattr(self, "n_", 0) + 1
        self.last_ = "failed" if fail else "counted"
        if fail:
            raise ValueError("no")


def test_an_atomic_method_changes_all_or_nothing():
    counter = Counter()
    assert counter.count() is counter
    with pytest.raises(ValueError, match="no"):
        counter.count(fail=True)
    assert vars(counter) == {"n_": 1, "last_": "counted"}
    with pytest.raises(ValueError, match="no"):
        Counter().count(fail=True)


@pytest.mark.parametrize(
    ("change", "arguments"),
    [
        ("partial_fit", lambda c: (c.X, c.y[:-1], c.annotations)),
        ("recalibrate", lambda c: (c.X[:, :2],)),
        ("offboard", lambda c: (["nobody"],)),
        ("onboard", lambda c: (["new"], c.X, c.annotations)),
    ],
)
def test_a_change_that_fails_leaves_the_team_as_it_was(crowd, change, arguments):
    team = ClusterDeferral(
        AnnotatorLDA(**FAST), classifier=LogisticRegression(), cv=2, coverage=0.5, max_epochs=2, random_state=0
    )
    quiet(lambda: team.fit(crowd.X, crowd.y, annotations=crowd.annotations))
    before, proba = dict(vars(team)), team.predict_deferral_proba(crowd.X)
    with pytest.raises(ValueError, match=r"\w"):
        getattr(team, change)(*arguments(crowd))
    assert vars(team).keys() == before.keys()
    assert all(vars(team)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(team.predict_deferral_proba(crowd.X), proba)


def test_the_scores_of_a_team_have_the_signature_of_a_method(crowd):
    team = quiet(fit_silent(crowd))
    assert list(inspect.signature(team.decision_function).parameters) == ["X"]
    assert inspect.signature(type(team).decision_function) == inspect.signature(type(team).predict)
    nobody = BestExpert(LogisticRegression()).fit(crowd.X, crowd.y)
    with pytest.raises(AttributeError, match="'BestExpert' has no attribute 'decision_function'"):
        _ = nobody.decision_function


def test_bounds_of_a_team_without_experts_are_those_of_the_classifier(crowd):
    team = ClusterDeferral(classifier=LogisticRegression(), coverage=(0.2, 1)).fit(crowd.X, crowd.y)
    bounds = team.set_params(cluster_workload=[(0, 0.5)] * 2).requested_bounds_
    assert (bounds.target_lower.tolist(), bounds.target_upper.tolist()) == ([0.2], [1.0])


def test_somebody_may_be_taken_off_twice_at_once(crowd):
    team = quiet(fit_silent(crowd))
    assert team.offboard([0, 0]).experts_.tolist() == [1, 2, 3, 4]
