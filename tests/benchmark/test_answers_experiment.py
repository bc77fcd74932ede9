"""Who is asked within a budget, what the methods make of the answers, and the tables about them."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_l2d.benchmark.__main__ import build_parser, make_plan
from sklearn_l2d.benchmark._worlds import SETS, World
from sklearn_l2d.benchmark.experiments._answers import (
    ANSWERS,
    BUDGETS,
    METHODS,
    OURS,
    Task,
    _on_a_path,
    answers_of,
    read_off,
    spend,
)

RIVALS = [name for name in METHODS if name != OURS]


@pytest.fixture(scope="module")
def task():
    """200 test items of three classes, of which every seventh has no answer; the last of five people is the best."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    X = rng.normal(size=(400, 4)) + np.eye(3, 4)[y]
    right = rng.random((400, 5)) < [0.5, 0.6, 0.6, 0.7, 0.95]
    annotations = np.where(right, y[:, None], rng.integers(3, size=(400, 5)))
    annotations[rng.random((400, 5)) < 0.3] = -1
    annotations[200::7] = -1
    rows = np.arange(400)
    classifier = FrozenEstimator(LogisticRegression().fit(X[:100], y[:100]))
    counts = np.ones((400, 3), dtype=int)
    world = World(
        0, X, y, annotations, counts, None, rows[:200], rows[:200], rows[200:], rows[:200], rows[:0], classifier
    )
    return Task.of(world, world.identified(50))


def test_the_first_answers_go_to_the_least_sure_items():
    people = np.array([[3, 1, 0], [2, 0, -1], [4, -1, -1]])
    sure = np.array([0.9, 0.2, 0.5])
    counts = [(spend(people, sure, n) >= 0).sum(1).tolist() for n in range(8)]
    assert counts == [[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1], [1, 2, 1], [2, 2, 1], [3, 2, 1], [3, 2, 1]]
    asked = spend(people, sure, 5)
    assert asked.tolist() == [[3, 1, -1], [2, 0, -1], [4, -1, -1]]
    kept = answers_of(np.arange(15).reshape(3, 5), asked)
    assert kept.tolist() == [[-1, 1, -1, 3, -1], [5, -1, 7, -1, -1], [-1, -1, -1, -1, 14]]


def test_test_items_have_answers(task):
    assert len(task.y) < 200
    assert (task.annotations >= 0).any(1).all()
    assert_array_equal(task.proba, task.team.predict_team_proba(task.X, np.full_like(task.annotations, -1)))


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_ask_what_the_budget_allows(task, name):
    points = list(METHODS[name](task))
    answers = [point.answers for point in points]
    most = 1 if "one answer" in name else (task.annotations >= 0).sum(1).mean()
    most = min(most, answers[-1]) if "group" in name or "gate" in name else most  # who gains is not always there
    assert_allclose(answers, np.minimum(BUDGETS, most), atol=1 / len(task.y))
    on_a_path = METHODS[name].func is _on_a_path
    told = "CROWDLAB" in name or "fused" in name or on_a_path
    assert all((point.excess is not None) == told for point in points)
    assert all((point.fit_seconds is not None) == (on_a_path or name.startswith("gate")) for point in points)
    assert points[-1].accuracy > (task.team.predict(task.X) == task.y).mean()


def test_the_best_person_alone_decides_at_one_answer(task):
    best = np.where(task.annotations[:, 4] >= 0, task.annotations[:, 4], -1)
    point = dict(zip(BUDGETS, METHODS["best people, weighted vote"](task), strict=True))[1.0]
    heard = best >= 0
    assert abs(point.accuracy - (best[heard] == task.y[heard]).mean()) < 0.15
    assert point.accuracy > dict(zip(BUDGETS, METHODS["random people, majority"](task), strict=True))[1.0].accuracy


def test_a_panel_is_read_off_between_its_points(task):
    n = len(task.y)

    def replay(n_asked, n_right):
        asked = np.where(n_asked > np.arange(n * 4).reshape(4, n).T, 0, -1)
        labels = np.where(np.arange(n) < n_right, task.y, task.y - 1)
        return SimpleNamespace(asked=asked, labels=labels, proba=np.full((n, 3), 0.5))

    half = n // 2
    points = list(read_off(task, [replay(2 * n, n), replay(0, half)]))
    assert [point.answers for point in points] == [0.25, 0.5, 1, 1.5, 2, 2]
    start = half / n
    assert_allclose([p.accuracy for p in points], start + (1 - start) * np.minimum(BUDGETS, 2) / 2)
    assert_allclose([p.excess + p.accuracy for p in points], 0.5)


def records(accuracy, n_seeds=2):
    """Records of all sets, with `accuracy(method, budget)` at N'=25 and areas of members."""
    plan = make_plan(build_parser().parse_args(["--seeds", str(n_seeds)]))
    found = []
    for cell in ANSWERS.cells(plan):
        figures = {"area, as it is": 0.6, "area, fused": 0.62, "area, combined evidence": 0.65}
        if cell.method in METHODS:
            figures = {f"accuracy@{b}": accuracy(cell.method, b) for b in BUDGETS}
            figures |= {f"excess@{b}": 0.02 for b in BUDGETS}
            figures |= {f"beyond@{b}": 0.1 * b for b in BUDGETS if cell.method == OURS}
        found.append(cell._asdict() | figures)
    return found


def table(text, title):
    """Cells of the table with a title."""
    lines = text.split(f"### {title}")[1].split("###")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [rows[0], *rows[2:]]


def test_every_set_has_its_cells():
    places = {(r["dataset"], r["size"]) for r in records(lambda m, b: 0.9)}
    assert places == {(name, size) for name, s in SETS.items() for size in (25, 50) if size <= s.largest}
    members = {r["dataset"] for r in records(lambda m, b: 0.9) if r["method"] not in METHODS}
    assert members == {"music_genre", "cifar10, 100 experts", "cue_conflict"}


def test_what_must_be_shown():
    def accuracy(method, budget):
        if method == OURS:
            return 0.9 - 0.01 * (budget == 2.0)
        return 0.892 if method == "CROWDLAB, best people" else 0.5

    text = ANSWERS.report(records(accuracy))
    (head, *leads) = table(text, "The panel minus its best rival")
    assert head[-2:] == ["behind by 0.005 at most", "ahead in the mean"]
    assert all(row[2].startswith("+0.0080 (0.0000) CROWDLAB, best people") for row in leads)
    assert all(row[-3:] == ["0.006", "yes", "yes"] for row in leads)
    (_, *losses) = table(text, "More answers never cost")
    assert all(row[2:] == ["0.010", "1.5 to 2", "NO"] for row in losses)
    (_, *must) = table(text, "What the panel must reach")
    reached = {(row[0], row[1]): row[-1] for row in must}
    assert reached["medical_relation_treat", "1"] == "yes"
    assert reached["medical_relation_treat", "2"] == "NO"
    assert len(reached) == 13
    (_, *members) = table(text, "A random member's answer")
    assert {tuple(row[-2:]) for row in members} == {("NO", "+0.0300 (0.0000)")}
    (_, *calibration) = table(text, "Mean confidence minus accuracy")
    assert {row[-1] for row in calibration if row[2] == OURS} == {"yes"}
    (_, *requests) = table(text, "Answers that the panel asks for beyond")
    assert {row[-1] for row in requests} == {"0.300 ± 0.000"}


def test_answers_beyond_a_request_are_those_that_its_replay_asks(task):
    panel = METHODS[OURS].args[0](task.world).set_params(clusterer=None, answers=1.0)
    points = list(_on_a_path(lambda _: panel, 4, task))
    panel.recalibrate(task.X, available=task.annotations >= 0)
    alone = panel.replay(task.X, task.annotations).n_answers.mean()
    assert_allclose(points[BUDGETS.index(1.0)].beyond, alone - 1.0)
    task = task._replace(annotations=np.where(np.arange(5) < 2, task.annotations, -1))  # fewer answers than 3 each
    assert_allclose(list(_on_a_path(lambda _: panel, 4, task))[-1].beyond, 0)


def test_rivals_alone_have_tables_too():
    text = ANSWERS.report([r for r in records(lambda m, b: 0.9, 1) if r["method"] == RIVALS[0]])
    assert "Accuracy by answers per item, digits, 6 experts, N'=25" in text
    assert "The panel" not in text
