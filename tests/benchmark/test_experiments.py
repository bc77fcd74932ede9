"""Every experiment of the benchmark: one cell of it is measured, and its report and pictures stand gaps."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from sklearn_l2d.benchmark.__main__ import EXPERIMENTS, build_parser, make_plan
from sklearn_l2d.benchmark._worlds import SETS
from sklearn_l2d.benchmark.experiments._newcomers import Meeting

ONE_CELL = {
    "onboarding": "confidence",
    "answers": "best people, weighted vote",
    "newcomers": "shrunken accuracy, with truth",
    "bounded": "confidence",
    "clusters": "accuracy on the labelled rows",
    "memberships": "EA-L2D",
    "sensitivity": "alpha=50.0",
    "missing": "latent, our gate @ 0.5",
    "control": "ranking afterwards",
    "calibration": "ova, 4 experts at 0.95",
}


def quick_cells(name):
    return EXPERIMENTS[name].cells(make_plan(build_parser().parse_args(["--quick"])))


class AnyFigure(dict):
    """A record that has whatever figure is asked for."""

    def __contains__(self, name):
        return True

    def __missing__(self, name):
        if name == "heat":
            return {k: np.full((6, k), 1 / k).tolist() for k in (2, 3, 4, 5)}
        return 0.5 + len(name) / 1000 + self["seed"] / 100


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("n_seeds", [1, 2])
def test_reports_and_pictures_of_any_figures(name, n_seeds):
    experiment, cells = EXPERIMENTS[name], quick_cells(name)
    seeds = sorted({cell.seed for cell in cells})[:n_seeds]
    records = [AnyFigure(cell._asdict()) for cell in cells if cell.seed in seeds]
    text = experiment.report(records)
    if name != "memberships":
        assert text.count("### ") == text.count("| --- |\n") > 0
        for table in text.split("### ")[1:]:
            assert len({line.count("|") for line in table.splitlines() if line.startswith("|")}) == 1
    if experiment.draw is not None:
        for file, figure in experiment.draw(records, plt):
            assert file.endswith(".png")
            plt.close(figure)


@pytest.fixture(scope="module")
def measured():
    def measure(name):
        cell = next(cell for cell in quick_cells(name) if cell.method == ONE_CELL[name])
        return next(EXPERIMENTS[name].measure([cell]))

    return measure


def test_onboarding_improves_on_the_classifier(measured):
    figures = measured("onboarding")
    assert max(figures["classifier"], figures["people"]) - 0.05 < figures["area"] < 1


def test_more_of_the_best_people_are_right_more_often(measured):
    figures = measured("answers")
    assert figures["accuracy@3.0"] > figures["accuracy@0.25"] > 0.8
    assert [figures[f"answers@{b}"] for b in (0.25, 3.0)] == [0.25, 3]


def test_an_answer_of_a_newcomer_helps(measured):
    figures = measured("newcomers")
    assert figures["anybody"] > figures["classifier"] + 0.05
    assert figures["chosen"] > figures["classifier"] + 0.05


def test_newcomers_are_unknown_and_bring_few_labels():
    meeting = Meeting.of(SETS["digits, 100 experts"].build(0), same_items=True)
    assert sorted(meeting.newcomers) != list(meeting.newcomers)  # the order says nothing about ability
    labels, team = meeting.labels(10), meeting.team["annotations"]
    assert labels.shape == (len(meeting.met), 50)
    assert ((labels >= 0).sum(0) == 10).all()
    assert team.shape[1] == 50
    assert ((team >= 0).sum(0) == 25).all()
    assert not np.intersect1d(meeting.met, meeting.test).size
    assert not np.isin(meeting.world.pool, np.append(meeting.met, meeting.test)).any()


def test_bounded_teams_keep_within_capacity(measured):
    figures = measured("bounded")
    assert abs(figures["coverage"] - 0.5) < 0.1
    assert figures["kept"] > 0.8  # the classifier alone .8, people alone .9
    assert 0 <= figures["above"] < 0.2


def test_accuracy_tells_some_of_the_pairs_apart(measured):
    assert measured("clusters")["ARI, 2 groups"] > 0.2


def test_memberships_are_on_the_simplex(measured):
    for k, heat in measured("memberships")["heat"].items():
        assert np.shape(heat) == (6, k)
        np.testing.assert_allclose(np.sum(heat, axis=1), 1)


def test_memberships_differ_with_a_large_alpha(measured):
    figures = measured("sensitivity")
    assert figures["dissimilarity, map"] > figures["dissimilarity, variational"] > 0


def test_half_of_the_annotations_suffice(measured):
    figures = measured("missing")
    assert figures["area"] > figures["classifier"]


def test_a_ranking_hits_its_requests(measured):
    figures = measured("control")
    assert max(abs(figures[f"error@{c}"]) for c in (0.1, 0.25, 0.5, 0.75, 0.9)) < 0.12


def test_able_experts_are_known_to_be(measured):
    assert measured("calibration")["ECE"] < 0.1
