import itertools
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from sklearn_l2d import AnnotatorLDA
from sklearn_l2d.annotations import to_long
from sklearn_l2d.datasets import load_digits_crowd
from sklearn_l2d.inspection import MembershipDisplay

PAIR = np.array([[0.9, 0.1], [0.25, 0.75], [0.6, 0.4]])


@pytest.fixture(autouse=True)
def plt():
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def expert_labels(display):
    return [label.get_text() for label in display.ax_.get_xticklabels()]


def written(display):
    return [[text.get_text() for text in row] for row in display.text_]


def test_clusters_are_rows_and_experts_columns():
    display = MembershipDisplay.from_predictions(PAIR, experts=["ann", "bob", "eve"])
    assert_array_equal(display.im_.get_array(), PAIR.T)
    assert expert_labels(display) == ["ann", "bob", "eve"]
    assert written(display) == [["0.90", "0.25", "0.60"], ["0.10", "0.75", "0.40"]]
    assert display.ax_.get_xlabel() == "expert"
    assert display.ax_.get_ylabel() == "cluster"
    assert display.figure_ is display.ax_.figure
    assert len(display.figure_.axes) == 2  # the colour bar


def test_numbers_stand_in_their_cells_and_can_be_read():
    display = MembershipDisplay.from_predictions(PAIR)
    for (cluster, expert), text in np.ndenumerate(display.text_):
        assert text.get_position() == (expert, cluster)
        ground = display.im_.cmap(display.im_.norm(PAIR[expert, cluster]))[:3]
        ink = {"white": 1.0, "black": 0.0}[text.get_color()]
        assert abs(np.mean(ground) - ink) > 0.3


def test_sorted_experts_keep_their_names_numbers_and_deviations():
    display = MembershipDisplay.from_predictions(PAIR, experts=["ann", "bob", "eve"], std=PAIR / 10, sort=True)
    assert expert_labels(display) == ["ann", "eve", "bob"]
    assert_array_equal(display.im_.get_array()[0], [0.9, 0.6, 0.25])
    assert written(display)[1] == ["0.10\n±0.01", "0.40\n±0.04", "0.75\n±0.07"]


def test_colours_span_zero_to_one_unless_told_otherwise():
    narrow = np.array([[0.4, 0.6], [0.6, 0.4]])
    assert MembershipDisplay.from_predictions(narrow).im_.get_clim() == (0, 1)
    assert MembershipDisplay.from_predictions(narrow, im_kw={"vmin": None, "vmax": None}).im_.get_clim() == (0.4, 0.6)


@pytest.mark.parametrize("n_experts", [1, 6, 30, 100, 300])
def test_names_and_numbers_do_not_overlap(n_experts):
    membership = np.random.default_rng(0).dirichlet([1, 1, 1], n_experts)
    display = MembershipDisplay.from_predictions(membership, experts=[f"expert {m}" for m in range(n_experts)])
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_xticklabels()]
    assert all(left.x1 <= right.x0 for left, right in itertools.pairwise(boxes))
    assert len(boxes) == n_experts or n_experts > 100
    assert (display.text_ is not None) == (n_experts <= 30)
    if display.text_ is not None:
        boxes = [text.get_window_extent() for text in display.text_[0]]
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_draws_into_given_axes(plt):
    figure, (left, right) = plt.subplots(1, 2)
    display = MembershipDisplay.from_predictions(PAIR, ax=right, colorbar=False, include_values=False)
    assert display.ax_ is right
    assert display.figure_ is figure
    assert len(figure.axes) == 2
    assert display.text_ is None
    assert not left.images


def test_plot_can_be_repeated(plt):
    display = MembershipDisplay(PAIR)
    assert not plt.get_fignums()
    first = display.plot().ax_
    assert display.plot(values_format=".0%", text_kw={"color": "red"}).ax_ is not first
    assert display.text_[0, 0].get_text() == "90%"
    assert display.text_[0, 0].get_color() == "red"


def test_index_of_a_frame_names_the_experts():
    display = MembershipDisplay.from_predictions(pd.DataFrame(PAIR, index=["x", "y", "z"]))
    assert expert_labels(display) == ["x", "y", "z"]


def test_from_estimator_places_the_experts():
    crowd = load_digits_crowd(n_identified=10, n_anonymous=60)
    answers = pd.DataFrame(crowd.annotations, columns=crowd.experts)
    lda = AnnotatorLDA(2, max_epochs=2, n_anchor_epochs=1, n_consensus_epochs=1, random_state=0)
    lda.fit(crowd.X_anonymous, crowd.counts)
    membership, std = lda.transform(crowd.X_identified, crowd.annotations, return_std=True)
    display = MembershipDisplay.from_estimator(lda, crowd.X_identified, answers, std=True)
    assert_array_equal(display.membership, membership)
    assert_array_equal(display.std, std)
    assert expert_labels(display) == list(crowd.experts)
    assert MembershipDisplay.from_estimator(lda, crowd.X_identified, answers).std is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"membership": [0.5, 0.5]}, "2D"),
        ({"membership": [[np.nan, 0.5]]}, "membership contains NaN"),
        ({"membership": PAIR, "experts": ["ann"]}, "one name per row"),
        ({"membership": PAIR, "std": PAIR[:2]}, "std has shape"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        MembershipDisplay(**arguments)


def test_says_how_to_get_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"sklearn-l2d\[plot\]"):
        MembershipDisplay.from_predictions(PAIR)


def test_a_long_table_names_the_experts():
    crowd = load_digits_crowd(random_state=0)
    lda = AnnotatorLDA(n_clusters=1, n_consensus_epochs=1, n_anchor_epochs=1, max_epochs=1, random_state=0)
    lda.fit(crowd.X_anonymous[:100], crowd.counts[:100])
    wide = pd.DataFrame(crowd.annotations, columns=crowd.experts)
    X = pd.DataFrame(crowd.X_identified)
    display = MembershipDisplay.from_estimator(lda, X, to_long(wide))
    assert expert_labels(display) == sorted(crowd.experts)
