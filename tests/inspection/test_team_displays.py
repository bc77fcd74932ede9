import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d.deferral import BestExpert, ClusterDeferral, OneStageDeferral, RankedDeferral
from sklearn_l2d.inspection import AnswersAccuracyDisplay, CoverageAccuracyDisplay, WorkloadDisplay


@pytest.fixture(autouse=True)
def plt():
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = 5 * rng.normal(size=(80, 3)) + 2
    y = (X[:, 1] > 2).astype(int)
    annotations = np.where(rng.random((80, 3)) < [0.9, 0.8, 0.6], y[:, None], 1 - y[:, None])
    annotations[::5, 1] = -1
    return X, y, pd.DataFrame(annotations, columns=["ann", "bob", "eve"])


@pytest.fixture(scope="module")
def team(data):
    X, y, annotations = data
    deferral = ClusterDeferral(
        omega=np.eye(3),
        grouping="hard",
        classifier=LogisticRegression(),
        coverage=0.5,
        workload={"ann": (0, 0.25)},
        max_epochs=10,
        random_state=0,
    )
    return make_pipeline(StandardScaler(), deferral).fit(X, y, clusterdeferral__annotations=annotations)


def texts(labels):
    return [label.get_text() for label in labels]


def test_curve_of_given_points():
    display = CoverageAccuracyDisplay.from_predictions(
        [0.6, 0.2], [0.8, 0.9], human_accuracy=0.85, classifier_accuracy=0.7, name="groups", plot_chance_level=True
    )
    assert display.line_.get_xdata().tolist() == [0, 0.2, 0.6, 1]
    assert display.line_.get_ydata().tolist() == [0.85, 0.9, 0.8, 0.7]
    assert display.area == pytest.approx(0.2 * 0.875 + 0.4 * 0.85 + 0.4 * 0.75)
    assert display.chance_level_.get_ydata().tolist() == [0.85, 0.7]
    assert texts(display.ax_.get_legend().get_texts()) == ["groups (area = 0.815)", "random deferral (area = 0.775)"]
    assert display.figure_ is display.ax_.figure


def test_several_systems_share_axes(plt):
    _, ax = plt.subplots()
    for name, colour in (("one", "red"), ("two", "green")):
        display = CoverageAccuracyDisplay.from_predictions([0, 1], [0.8, 0.6], name=name, ax=ax, color=colour)
        assert display.line_.get_color() == colour
        assert display.chance_level_ is None
    assert len(ax.lines) == 2
    assert texts(ax.get_legend().get_texts()) == ["one (area = 0.700)", "two (area = 0.700)"]
    assert display.plot(name="again").line_.get_label() == "again (area = 0.700)"


def test_curve_of_an_estimator(data, team):
    X, y, annotations = data
    display = CoverageAccuracyDisplay.from_estimator(team, X, y, annotations, coverages=[0.4], X_unlabeled=X)
    items = team[:-1].transform(X)
    (at_40,) = team[-1].coverage_path([0.4], items)
    assert_allclose(display.coverage, [0, 0.4, 1], atol=0.02)
    assert display.accuracy[1] == at_40.score(items, y, annotations=annotations)
    assert display.accuracy[2] == np.mean(team[-1].predict(items) == y)
    preferred = team[-1].predict_deferral_proba(items)[:, :3].argmax(1)  # every expert is a target of her own
    answers = annotations.to_numpy()[np.arange(80), preferred]
    labels = np.where(answers >= 0, answers, team[-1].predict(items))
    assert display.accuracy[0] == pytest.approx(np.mean(labels == y))
    assert display.line_.get_label().startswith("ClusterDeferral (area")
    assert len(CoverageAccuracyDisplay.from_estimator(team, X, y, annotations, X_unlabeled=X).coverage) > 8


def test_a_deferrer_without_a_path_is_one_point(data):
    X, y, annotations = data
    X = StandardScaler().fit_transform(X)
    one = OneStageDeferral(hidden_layer_sizes=(), max_epochs=5, random_state=0).fit(X, y, annotations)
    display = CoverageAccuracyDisplay.from_estimator(one, X, y, annotations)
    assert_allclose(display.coverage, [0, one.coverage_, 1])
    assert display.accuracy[1] == one.score(X, y, annotations=annotations)
    ranked = RankedDeferral(FrozenEstimator(one)).fit(X, y, annotations)
    display = CoverageAccuracyDisplay.from_estimator(ranked, X, y, annotations, coverages=[0.25, 0.5])
    assert_allclose(display.coverage, [0, 0.25, 0.5, 1], atol=0.01)
    assert display.line_.get_label().startswith("RankedDeferral (area")


def test_bars_of_given_shares():
    bounds = [[0, 0.2], [0, 1], [0.6, 0.6]]
    display = WorkloadDisplay.from_predictions([0.1, 0.3, 0.6], experts=["ann", "bob"], bounds=bounds)
    assert [bar.get_height() for bar in display.bars_] == [0.1, 0.3, 0.6]
    assert texts(display.ax_.get_xticklabels()) == ["ann", "bob", "classifier"]
    segments = display.bounds_[2][0].get_segments()  # bob is not bounded
    assert_allclose(segments, [[[0, 0], [0, 0.2]], [[2, 0.6], [2, 0.6]]])
    assert texts(display.ax_.get_legend().get_texts()) == ["requested bounds"]


def test_no_brackets_without_bounds(plt):
    _, ax = plt.subplots()
    display = WorkloadDisplay.from_predictions([0.4, 0.6], bounds=[[0, 1], [0, 1]], ax=ax, bar_kw={"color": "red"})
    assert display.ax_ is ax
    assert display.bounds_ is None
    assert ax.get_legend() is None
    assert texts(ax.get_xticklabels()) == ["0", "classifier"]


def test_bars_of_an_estimator(data, team):
    X, _, annotations = data
    display = WorkloadDisplay.from_estimator(team, X)
    items = team[:-1].transform(X)
    deferral = team[-1].predict_deferral(items)
    assert_allclose(display.workload[:-1], team[-1].selection_.T @ [np.mean(deferral == k) for k in range(3)])
    assert display.workload[-1] == np.mean(deferral < 0)
    assert_array_equal(display.bounds, [[0, 0.25], [0, 1], [0, 1], [0.5, 0.5]])
    assert display.experts.tolist() == ["ann", "bob", "eve"]
    shuffled = annotations[["eve", "bob", "ann"]]
    served = WorkloadDisplay.from_estimator(team, X, shuffled).workload
    assert_allclose(served.sum(), 1)
    absent = np.mean((deferral == 1) & (annotations["bob"] == -1))
    assert_allclose(served - display.workload, [0, -absent, 0, absent], atol=1e-12)


class Panel:
    """Asks everybody who answered, or nobody, and is right about the first items."""

    def __init__(self, asks, n_right):
        self.asks, self.n_right = asks, n_right

    def replay(self, X, annotations):
        asked = np.where(self.asks & (np.asarray(annotations) >= 0), np.arange(3), -1)
        return SimpleNamespace(asked=asked, labels=np.arange(len(X)) < self.n_right)


def test_accuracy_of_panels_over_their_answers(data):
    X, _, annotations = data
    panels = [Panel(True, 60), Panel(False, 40)]
    display = AnswersAccuracyDisplay.from_estimators(panels, X, np.ones(80), annotations)
    assert display.line_.get_xdata().tolist() == [0, 2.8]  # the second expert skips every fifth item
    assert display.line_.get_ydata().tolist() == [0.5, 0.75]
    assert_allclose(display.standard_error, np.sqrt([0.25 / 79, 0.1875 / 79]))
    edges = display.band_.get_paths()[0].vertices[:, 1]
    assert edges.max() == pytest.approx(0.75 + display.standard_error[1])
    assert display.ax_.get_xlabel() == "answers per item"
    rival = AnswersAccuracyDisplay.from_predictions([3, 1], [0.7, 0.6], name="majority", ax=display.ax_, color="red")
    assert rival.line_.get_xdata().tolist() == [1, 3]
    assert rival.band_ is None
    assert rival.line_.get_color() == "red"
    assert texts(display.ax_.get_legend().get_texts()) == ["Panel", "majority"]
    assert rival.plot(name="again").line_.get_label() == "again"
    assert AnswersAccuracyDisplay.from_predictions([1], [0.5]).ax_.get_legend() is None


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (AnswersAccuracyDisplay, {"answers": [-1], "accuracy": [0.8]}, "answers: every mean number"),
        (AnswersAccuracyDisplay, {"answers": [1], "accuracy": [80]}, "accuracy: every value must lie"),
        (AnswersAccuracyDisplay, {"answers": [1, 2], "accuracy": [0.8]}, "inconsistent numbers of samples"),
        (CoverageAccuracyDisplay, {"coverage": [0.5], "accuracy": [0.8]}, "Add one or give human_accuracy"),
        (CoverageAccuracyDisplay, {"coverage": [0, 1], "accuracy": [80, 60]}, "accuracy: every value must lie"),
        (WorkloadDisplay, {"workload": [3, 7]}, "workload: every share must lie"),
        (WorkloadDisplay, {"workload": [0.5, 0.5], "experts": ["ann", "bob"]}, "one name per expert"),
        (WorkloadDisplay, {"workload": [0.5, 0.5], "bounds": [[0, 1]]}, r"it must be \(2, 2\)"),
    ],
)
def test_bad_input(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    "display",
    [AnswersAccuracyDisplay([1], [0.5]), CoverageAccuracyDisplay([0, 1], [0.5, 0.6]), WorkloadDisplay([0.5, 0.5])],
)
def test_says_how_to_get_matplotlib(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"sklearn-l2d\[plot\]"):
        display.plot()


def test_bars_of_deferrers_without_bounds(data):
    X, y, annotations = data
    best = BestExpert(LogisticRegression()).fit(X, y, annotations)
    display = WorkloadDisplay.from_estimator(best, X)
    assert display.workload.tolist() == [1, 0, 0, 0]
    assert display.bounds_ is None
    ranked = RankedDeferral(FrozenEstimator(best), coverage=(0, 0.5)).fit(X, y, annotations)
    assert_array_equal(WorkloadDisplay.from_estimator(ranked, X).bounds, [[0, 1], [0, 1], [0, 1], [0, 0.5]])
