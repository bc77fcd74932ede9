import itertools
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV, KFold

from sklearn_l2d import AnnotatorLDA
from sklearn_l2d.inspection import PerplexityDisplay
from sklearn_l2d.model_selection import perplexity_curve

PERPLEXITY = [4.0, 3.0, 2.9, 2.95]


@pytest.fixture(autouse=True)
def plt():
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture(scope="module")
def archive():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), rng.integers(0, 4, (40, 3))


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_line_bars_and_choices():
    display = PerplexityDisplay.from_predictions([1, 2, 3, 4], PERPLEXITY)
    assert_array_equal(display.line_.get_xydata(), np.column_stack([[1, 2, 3, 4], PERPLEXITY]))
    assert_allclose([bar.get_height() for bar in display.bars_], [1.0, 0.1, 0.0])
    assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in display.bars_], [2, 3, 4])
    assert_array_equal(display.lowest_.get_xydata(), [[3, 2.9]])
    assert legend(display) == ["perplexity", "lowest: 3", "largest fall: 2"]
    first, *others = [to_rgba(bar.get_facecolor()) for bar in display.bars_]
    assert first not in others
    assert display.fold_lines_ == display.text_ == []
    assert "perplexity" in display.ax_.get_ylabel()


def test_any_order_gives_the_same_picture():
    folds, used = np.add.outer(PERPLEXITY, [0.1, -0.1]), np.array([1, 2, 2, 3])
    order = [2, 0, 3, 1]
    display = PerplexityDisplay.from_predictions(
        np.arange(1, 5)[order], np.array(PERPLEXITY)[order], fold_perplexity=folds[order], n_used=used[order]
    )
    assert_array_equal(display.line_.get_ydata(), PERPLEXITY)
    assert_array_equal([line.get_ydata() for line in display.fold_lines_], folds.T)
    assert [(text.xy[0], text.get_text()) for text in display.text_] == [(3, "2\nused"), (4, "3\nused")]


def test_models_that_do_not_use_all_are_hollow():
    display = PerplexityDisplay.from_predictions([1, 2, 3, 4], PERPLEXITY, n_used=[1, 2, 2.6, 4])
    hollow = [
        line.get_xdata().tolist()
        for line in display.ax_.lines
        if line.get_marker() == "o" and line.get_markerfacecolor() == "white"
    ]
    assert hollow == [[3]]
    assert [text.get_text() for text in display.text_] == ["2.6\nused"]


def test_no_bars_where_nothing_falls(plt):
    for perplexity in ([2.0, 2.1, 2.3], [2.0]):
        display = PerplexityDisplay.from_predictions(np.arange(1, 1 + len(perplexity)), perplexity)
        assert display.bars_ is None
        assert display.rate_ax_ is None
        assert legend(display) == ["perplexity", "lowest: 1"]


def test_texts_do_not_overlap():
    display = PerplexityDisplay.from_predictions(np.arange(1, 11), 3 - np.arange(10) / 10, n_used=np.ones(10) * 0.4)
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.text_]
    assert len(boxes) == 10
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    legend_box = display.ax_.get_legend().get_window_extent()
    assert legend_box.x0 >= 0
    assert legend_box.y1 <= display.figure_.bbox.y1
    assert not any(legend_box.overlaps(box) for box in boxes)


def test_it_draws_the_curve_of_an_estimator_and_of_a_search(archive, plt):
    lda = AnnotatorLDA(max_epochs=2, n_consensus_epochs=1, n_anchor_epochs=1, likelihood="exact", random_state=0)
    curve = perplexity_curve(lda, *archive, n_clusters=[1, 3], cv=2)
    _, ax = plt.subplots()
    display = PerplexityDisplay.from_estimator(lda, *archive, n_clusters=[1, 3], cv=2, ax=ax, line_kw={"color": "k"})
    assert display.ax_ is ax
    assert display.line_.get_color() == "k"
    assert_array_equal(display.perplexity, curve.perplexity)
    assert_array_equal(display.n_used, curve.n_used)
    folds = KFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(lda, {"n_clusters": [1, 3], "alpha": [0.5, 50.0]}, cv=folds).fit(*archive)
    display = PerplexityDisplay.from_search(search)
    scores = search.cv_results_["mean_test_score"].reshape(2, 2)  # alpha varies first
    assert_allclose(display.perplexity, np.exp(-scores.max(0)))
    assert display.fold_perplexity.shape == (2, 2)
    assert display.n_used is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_clusters": [1, 1], "perplexity": [2.0, 3.0]}, "each number once"),
        ({"n_clusters": [1, 2], "perplexity": [2.0]}, "each number once"),
        ({"n_clusters": [1, 2], "perplexity": [2.0, np.nan]}, "not positive and finite"),
        ({"n_clusters": [1, 2], "perplexity": [2.0, 0.0]}, "not positive and finite"),
        ({"n_clusters": [1, 2], "perplexity": [2.0, 3.0], "n_used": [1]}, "n_used has 1 rows"),
        ({"n_clusters": [1, 2], "perplexity": [2.0, 3.0], "fold_perplexity": [[1.0]]}, "fold_perplexity has 1 rows"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        PerplexityDisplay(**arguments)


def test_a_search_with_several_scores_is_refused(archive):
    lda = AnnotatorLDA(max_epochs=2, n_consensus_epochs=1, n_anchor_epochs=1, random_state=0)
    scoring = {"vote": lambda estimator, X, y: estimator.score(X, y)}
    search = GridSearchCV(lda, {"n_clusters": [1, 2]}, scoring=scoring, refit=False, cv=2).fit(*archive)
    with pytest.raises(ValueError, match="lacks mean_test_score"):
        PerplexityDisplay.from_search(search)


def test_says_how_to_get_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"sklearn-l2d\[plot\]"):
        PerplexityDisplay.from_predictions([1, 2], [3.0, 2.0])
