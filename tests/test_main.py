"""The command ``python -m sklearn_l2d``, mostly run in this process on small tables."""

import os
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_l2d import __main__ as command
from sklearn_l2d._cli._asking import (
    BEST_MAJORITY,
    CONFIDENCE,
    PANEL,
    RANDOM_MAJORITY,
    Asking,
    in_turns,
    majority,
    surest_person,
)
from sklearn_l2d._cli._asking_report import tell_asking
from sklearn_l2d._cli._onboarding import Roster, agreement_with_others, group_agreement, rank_correlation
from sklearn_l2d._cli._onboarding_report import tell_roster, tell_verdicts
from sklearn_l2d._cli._routing import Advice, Team, Verdict, consider_coverages, judge_team, measure_ability
from sklearn_l2d._cli._routing_report import tell_advice
from sklearn_l2d.datasets import load_digits_crowd

QUICK = ["--quiet", "--epochs", "3"]


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path, monkeypatch):
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tables(tmp_path):
    """The digits crowd as the CSV files of a user, with class names instead of numbers."""
    crowd = load_digits_crowd(n_identified=12, n_anonymous=120)
    names = [f"d{label}" for label in range(10)]
    archive = pd.Index([f"a{i}" for i in range(120)], name="id")
    known = pd.Index([f"k{i}" for i in range(len(crowd.X_identified))], name="id")
    pixels = [f"p{j}" for j in range(64)]
    rows, experts = np.nonzero(crowd.annotations >= 0)
    labels = [names[label] for label in crowd.annotations[rows, experts]]
    frames = {
        "counts": pd.DataFrame(crowd.counts, index=archive, columns=names),
        "features": pd.DataFrame(crowd.X_anonymous, index=archive, columns=pixels),
        "known": pd.DataFrame(crowd.X_identified, index=known, columns=pixels),
        "identified": pd.DataFrame(
            {"task": known[rows], "annotator": np.array(crowd.experts)[experts], "label": labels}
        ).set_index("task"),
        "truth": pd.DataFrame({"label": [names[label] for label in crowd.y_identified]}, index=known)[3:],
    }
    for name, frame in frames.items():
        frame.to_csv(f"{name}.csv")
    return frames


OWN = ["--counts", "counts.csv", "--features", "features.csv"]
ROSTER = [*OWN, "--identified", "identified.csv", "--identified-features", "known.csv"]


def test_digits_story(capsys, tmp_path):
    assert command.main([*QUICK, "--labels", "20", "--output", "out.csv"]) == 0
    story = capsys.readouterr().out
    for words in ("5A", "35F", "20 labels", "±", "one net", "majority", "accuracy", "adjusted Rand index"):
        assert words in story
    assert (tmp_path / "membership.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv("out.csv")) == 6
    for words in (
        "How many answers does an item need?",
        "majority of random people",
        "ConfidenceDeferral",
        "the panel asks nobody about",
        "Who should decide?",
        "300 items kept for tests",
        "least sure items",
        "leaves",
        "joins with 20 labels",
    ):
        assert words in story
    for figure in ("answers.png", "team.png"):
        assert (tmp_path / figure).read_bytes().startswith(b"\x89PNG")


def test_same_seed_same_story(capsys):
    stories = []
    for seed in "112":
        assert command.main([*QUICK, "--no-figure", "--seed", seed]) == 0
        stories.append(capsys.readouterr().out)
    assert stories[0] == stories[1] != stories[2]


def test_own_tables(tables, capsys, tmp_path):
    assert command.main([*ROSTER, *QUICK, "--figure", "own.png"]) == 0
    assert (tmp_path / "own.png").is_file()
    story = capsys.readouterr().out
    assert "accuracy" not in story  # no truth is known
    assert "Who should decide cannot be learnt" in story
    assert "nor how many answers an item needs" in story
    assert not (tmp_path / "answers.png").exists()
    assert not (tmp_path / "team.png").exists()
    roster = pd.read_csv("roster.csv", index_col="expert")
    assert_array_equal(roster.index, ["20C", "20D", "35E", "35F", "5A", "5B"])
    assert (roster["labels"] == 12).all()
    membership = roster[["membership_0", "membership_1"]].to_numpy()
    assert_allclose(membership.sum(1), 1, atol=1e-5)
    assert_array_equal(roster["cluster"], membership.argmax(1))
    assert roster["one_net_agreement"].between(0, 1).all()
    assert roster["accuracy"].isna().all()
    assert all(expert in story for expert in roster.index)


def test_own_tables_are_joined_by_id(tables, capsys):
    assert command.main([*ROSTER, *QUICK, "--no-figure", "--output", "first.csv"]) == 0
    tables["features"].sample(frac=1, random_state=0).to_csv("features.csv")
    tables["known"].sample(frac=1, random_state=1).to_csv("known.csv")
    tables["identified"]["annotator"] = tables["identified"]["annotator"].str.lower()
    tables["identified"].to_csv("identified.csv")
    assert command.main([*ROSTER, *QUICK, "--no-figure", "--output", "second.csv"]) == 0
    first, second = pd.read_csv("first.csv"), pd.read_csv("second.csv")
    assert_array_equal(first["expert"].str.lower(), second["expert"])
    pd.testing.assert_frame_equal(first.drop(columns="expert"), second.drop(columns="expert"))


def test_identified_items_can_be_among_the_features(tables):
    pd.concat([tables["features"], tables["known"]]).to_csv("features.csv")
    assert command.main([*ROSTER, *QUICK, "--no-figure", "--output", "first.csv"]) == 0
    assert command.main([*ROSTER[:-2], *QUICK, "--no-figure", "--output", "second.csv"]) == 0
    pd.testing.assert_frame_equal(pd.read_csv("first.csv"), pd.read_csv("second.csv"))


def test_own_tables_with_a_truth(tables, capsys, tmp_path):
    arguments = [*ROSTER, "--truth", "truth.csv", *QUICK, "--coverage", "0.6", "--team-figure", "mine.png"]
    assert command.main(arguments) == 0
    story = capsys.readouterr().out
    n_known = len(tables["known"]) - 3  # the truth of three is not given
    assert f"Accuracy on {n_known // 3} items kept for tests" in story
    assert "decides 60% of the archive" in story
    assert "learnt from" in story
    assert (tmp_path / "mine.png").is_file()
    roster = pd.read_csv("roster.csv")
    kept = roster["labels"].sum()
    assert kept < 6 * 12  # the labels of the items kept for tests are not used
    assert roster["accuracy"].notna().all()


def test_archive_without_a_roster(tables, capsys, tmp_path):
    assert command.main([*OWN, *QUICK, "--clusters", "2"]) == 0
    story = capsys.readouterr().out
    assert "Perplexity of held-out votes" in story
    assert "commonest answers" in story
    assert not (tmp_path / "membership.png").exists()
    assert not (tmp_path / "roster.csv").exists()


def edit(name, change):
    """Damage one of the files before the command runs."""

    def damage(tables):
        change(tables[name].reset_index()).to_csv(f"{name}.csv", index=False)

    return damage


@pytest.mark.parametrize(
    ("damage", "arguments", "message"),
    [
        (None, ["--counts", "nowhere.csv", *OWN[2:]], "nowhere.csv"),
        (None, [*OWN[:2]], "--features belong together"),
        (None, [*OWN, "--data", "cue_conflict"], "exclude each other"),
        (None, ["--identified", "identified.csv"], "--identified needs --counts"),
        (None, [*OWN, "--identified-features", "known.csv"], "--identified-features needs --identified"),
        (None, ROSTER[:-2], "features.csv: lacks"),
        (None, [*ROSTER, "--clusters", "500"], "n_clusters=500"),
        (None, [*ROSTER, "--figure", "no/such/folder.png"], "cannot write"),
        (None, [*ROSTER, "--output", "no/such/folder.csv"], "cannot write"),
        (None, ["--labels", "5000"], "n_identified=5000"),
        (None, ["--data", "cue"], "'cue' is no known set"),
        (edit("counts", lambda t: t.rename(columns={"id": "item"})), ROSTER, "counts.csv: has no column 'id'"),
        (edit("counts", lambda t: t[["id"]]), ROSTER, "counts.csv: holds no votes"),
        (
            edit("counts", lambda t: t.replace({"d3": {1: -1}})),
            ROSTER,
            "counts.csv: has negative counts, first in",
        ),
        (edit("counts", lambda t: t.astype(object).replace({"d3": {0: "many"}})), ROSTER, "'d3' has no finite number"),
        (edit("features", lambda t: t[1:]), ROSTER, "features.csv: lacks 1 ids of counts.csv: ['a0']"),
        (edit("features", lambda t: pd.concat([t, t[:1]])), ROSTER, "features.csv: repeats the ids ['a0']"),
        (edit("features", lambda t: t.assign(p5=np.inf)), ROSTER, "column 'p5' has no finite number for id 'a0'"),
        (edit("features", lambda t: t.assign(id=None)), ROSTER, "rows without an id, first in line 2"),
        (edit("identified", lambda t: t.assign(label="cat")), ROSTER, "identified.csv: holds labels ['cat']"),
        (edit("identified", lambda t: pd.concat([t, t[:1]])), ROSTER, "identified.csv: repeats a pair"),
        (
            edit("identified", lambda t: t.rename(columns={"label": "class"})),
            ROSTER,
            "has no column 'label'",
        ),
        (None, ["--truth", "truth.csv"], "--truth needs --identified"),
        (
            edit("truth", lambda t: t.assign(label="cat")),
            [*ROSTER, "--truth", "truth.csv"],
            "truth.csv: holds labels",
        ),
        (edit("truth", lambda t: t[["id"]]), [*ROSTER, "--truth", "truth.csv"], "truth.csv: has no column 'label'"),
        (edit("known", lambda t: t[["id", "p1"]]), ROSTER, "known.csv: its columns must be those"),
    ],
)
def test_what_cannot_be_used_costs_one_line(damage, arguments, message, tables, capsys, tmp_path):
    if damage is not None:
        damage(tables)
    assert command.main([*arguments, "--quiet"]) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert output.err.count("\n") == 1
    assert not (tmp_path / "membership.png").exists()


def test_damaged_files_cost_one_line(tables, capsys, tmp_path):
    (tmp_path / "counts.csv").write_bytes(b"\xff\xfe\x00PNG")
    assert command.main([*ROSTER, "--quiet"]) == 2
    (tmp_path / "counts.csv").write_text("")
    assert command.main([*ROSTER, "--quiet"]) == 2
    assert capsys.readouterr().err.count("counts.csv: ") == 2


@pytest.mark.parametrize(
    "arguments", [["--alpha", "0"], ["--clusters", "two"], ["--epochs", "-1"], ["--coverage", "1"], ["--colour"]]
)
def test_bad_options_are_refused_by_the_parser(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments)
    assert stopped.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_missing_matplotlib(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert command.main(QUICK) == 2
    assert "--no-figure" in capsys.readouterr().err


def test_missing_data_folder(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("SKLEARN_L2D_DATA", str(tmp_path))
    assert command.main(["--data", "music_genre"]) == 2
    assert "SKLEARN_L2D_DATA" in capsys.readouterr().err


@pytest.mark.data
@pytest.mark.skipif("SKLEARN_L2D_DATA" not in os.environ, reason="SKLEARN_L2D_DATA names no folder of real data")
@pytest.mark.parametrize("name", ["cue_conflict", "music_genre"])
def test_real_sets(name, capsys):
    assert command.main([*QUICK, "--data", name, "--labels", "10"]) == 0
    story = capsys.readouterr().out
    assert "Rank correlation with the true accuracy" in story
    assert "the team: the gate says who" in story
    assert ("shape or texture" in story) == (name == "cue_conflict")


def test_runs_as_a_module(tmp_path):
    arguments = [sys.executable, "-W", "error", "-m", "sklearn_l2d", *QUICK[1:], "--labels", "10"]
    done = subprocess.run(
        arguments, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"MPLBACKEND": "Agg"}
    )
    assert done.returncode == 0, done.stderr
    assert "consensus: 100%" in done.stderr  # the progress bar
    assert "Figure written to membership.png" in done.stdout
    assert "examples:" in command.build_parser().format_help()


def test_agreement_with_others_leaves_the_own_vote_out():
    codes = np.array([[0, 0, 1], [1, 2, -1], [0, -1, -1], [1, 1, 1]])
    # item 0: 0 and 0 each face a tie, 1 faces two votes for 0; item 1: they contradict; item 2: nobody else
    assert_allclose(agreement_with_others(codes, 3), [(0.5 + 0 + 1) / 3, (0.5 + 0 + 1) / 3, (0 + 1) / 2])
    assert np.isnan(agreement_with_others(np.array([[0, -1], [-1, 1]]), 2)).all()


class TwoExperts:
    """A gate that sends the first two of four items to a group of both, and whose classifier always says 0."""

    experts_ = np.array([0, 1], dtype=object)
    selection_ = np.array([[0.5, 0.5]])
    workload_ = np.array([0.25, 0.25])

    def predict(self, X):
        return np.zeros(4, dtype=int)

    def predict_proba(self, X):
        return np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.8, 0.2]])

    def predict_deferral(self, X):
        return np.array([0, 0, -1, -1])

    def score(self, X, y, annotations):
        return 0.0


def test_rules_of_the_thumb_are_judged_by_hand():
    codes, y = np.array([[0, 1, 0], [1, 1, 1], [1, 0, 1], [0, 0, 1]]), np.array([0, 1, 1, 0])
    gate, ability = TwoExperts(), np.array([0.9, 0.6, 0.8])
    verdict = judge_team(Team(gate, gate, ["ann", "bob", "eve"], ability, None, None, np.zeros((4, 1)), codes, y))
    # classifier right on items 0 and 3, ann on all, bob on 1 and 3; items 1 and 2 are those it is least sure of
    assert verdict.accuracy == {"classifier": 0.5, "random expert": 0.75, "best expert": 1.0, "team": 0.0}
    assert verdict.rivals["random items to a random expert"] == pytest.approx((0.5 + 0.75) / 2)
    assert verdict.rivals["least sure items to a random expert"] == pytest.approx((1 + 1 + 0.5 + 1) / 4)
    assert verdict.rivals["least sure items to the best who answered"] == 1
    assert (verdict.best_expert, verdict.best_answered, verdict.coverage) == ("ann", 1.0, 0.5)
    assert_allclose(verdict.workload, [0.25, 0.25])
    for name in ("least sure items to a random expert", "least sure items to the best who answered"):
        assert_allclose(verdict.rival_curves[name]["accuracy"][4], verdict.rivals[name])
    assert verdict.rival_curves["least sure items to the best who answered"]["human_accuracy"] == 1
    assert verdict.rivals["ConfidenceDeferral"] == 0.0  # the stand-in for it


def test_the_next_best_stands_in_for_who_did_not_answer():
    codes, y = np.array([[-1, 0, 0], [-1, 1, 1], [0, 0, 1], [-1, -1, 0]]), np.array([0, 0, 1, 0])
    gate, ability = TwoExperts(), np.array([0.9, 0.6, 0.8])
    found = judge_team(Team(gate, gate, ["ann", "bob", "eve"], ability, None, None, np.zeros((4, 1)), codes, y))
    # least sure are items 1, 2: bob stands in for ann on item 1, ann answers item 2, and both are wrong
    assert found.rivals["least sure items to the best who answered"] == pytest.approx((1 + 0 + 0 + 1) / 4)


def test_ability_is_drawn_to_the_mean():
    codes, y = np.array([[0, -1], [0, 1], [1, -1], [1, 1]]), np.array([0, 1, 1, 1])
    assert_allclose(measure_ability(codes, y), [(3 + 5 * 5 / 6) / 9, (2 + 5 * 5 / 6) / 7])


def test_classifier_and_people_are_compared_on_the_items_of_each():
    class Moved(TwoExperts):
        def coverage_path(self, coverages, X_unlabeled):
            return [self] * len(coverages)

        def decision_function(self, X):
            return np.array([[0.5, 0.0], [0.5, 0.0], [0.2, 0.9], [0.1, 0.9]])

    codes, y = np.array([[0, 1, 0], [1, 1, 1], [1, 0, 1], [0, 0, 1]]), np.array([0, 1, 1, 1])
    gate = Moved()
    team = Team(gate, gate, ["ann", "bob", "eve"], np.ones(3), None, None, np.zeros((4, 1)), codes, y)
    advice = consider_coverages(team)
    # the classifier says 0 always, and is right on item 0; ann is right on items 0, 1 and 2, bob on item 1
    assert advice.kept == (2, 0.0, 0.25)
    assert advice.asked == (2, 0.5, 0.75)
    assert advice.accuracy.tolist() == [0.0] * 9


@pytest.mark.parametrize(
    ("kept", "asked", "best", "words"),
    [
        ((100, 0.4, 0.8), (100, 0.2, 0.9), 0.85, ["decides too much", "--coverage 0.1", "0.850"]),
        ((100, 0.9, 0.5), (100, 0.8, 0.6), 0.85, ["decides too little", "--coverage 0.1"]),
        ((100, 0.4, 0.8), (100, 0.2, 0.9), 0.6, ["No coverage is as good as ann alone, which reaches 0.800."]),
        ((100, 0.8, 0.85), (100, 0.5, 0.9), 0.85, []),
        ((0, np.nan, np.nan), (100, 0.5, 0.9), 0.85, []),
    ],
)
def test_advice_is_given_where_the_other_side_is_better(kept, asked, best, words):
    found = {"classifier": 0.3, "random expert": 0.7, "best expert": 0.8, "team": 0.7}
    verdict = Verdict(found, {}, "ann", 1.0, 0.5, np.zeros(3), {})
    advice = Advice(kept, asked, np.array([0.1, 0.5]), np.array([best, 0.5]))
    story = "\n".join(tell_advice(verdict, advice))
    assert all(part in story for part in words)
    assert bool(story) == bool(words)


def test_people_are_asked_in_turns():
    recorded = np.array([[0, 1, 1], [1, -1, 1], [-1, -1, 0]])
    proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    item, expert = in_turns(proba, recorded, np.random.default_rng(0).random((3, 3)))
    assert item.tolist() == [1, 2, 0, 1, 0, 0]  # least sure first, and everybody's first answer before a second one
    assert sorted(zip(item, expert, strict=True)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 2)]
    ranked, best = in_turns(proba, recorded, np.broadcast_to([0.3, 0.1, 0.2], (3, 3)))
    assert list(zip(ranked, best, strict=True)) == [(1, 2), (2, 2), (0, 1), (1, 0), (0, 2), (0, 0)]
    labels = majority(proba, recorded, item[:3], expert[:3], np.array([0, 1]))
    assert labels.tolist() == [recorded[0, expert[2]], 1, 0]
    none = majority(proba, recorded, item[:0], expert[:0], np.array([0, 1]))
    assert none.tolist() == [0, 0, 1]
    tie = majority(proba, recorded, np.array([0, 0]), np.array([0, 1]), np.array([0, 1]))
    assert tie.tolist() == [0, 0, 1]


def test_the_surest_person_is_asked_where_the_classifier_is_less_sure():
    class Scores:
        def decision_function(self, X):
            return np.array([[0.9, 0.8, 0.7], [0.9, 0.6, 0.5], [0.4, 0.3, 0.5]])

    item, expert = surest_person(Scores(), None, np.array([[0, 0], [-1, 0], [0, 0]]))
    assert (item.tolist(), expert.tolist()) == ([0, 1], [0, 1])


@pytest.mark.parametrize(
    ("panel", "majority_right", "one_right", "words"),
    [
        (9, 5, 7, ["better than all of them by 0.200 to 0.200 at every number", "random people more than 2.00"]),
        (6, 5, 8, ["ConfidenceDeferral is better than the panel at 1.00, 2.00 answers per item, by up to 0.200"]),
        (7, 7, 5, ["The majority of random people is about as good as the panel", "random people 1.00"]),
        (4, 4, 4, ["The classifier alone is better than the panel at 1.00, 2.00 answers per item, by up to 0.200"]),
    ],
)
def test_where_something_simpler_is_better_the_story_says_so(panel, majority_right, one_right, words):
    def right(n):
        return np.tile(np.arange(10) < n, (2, 1))

    asking = Asking(
        n_experts=3,
        n_labelled=20,
        answers={
            **dict.fromkeys([PANEL, RANDOM_MAJORITY, BEST_MAJORITY], np.array([1.0, 2.0])),
            CONFIDENCE: np.array([0.6, 0.6]),
        },
        right={
            PANEL: right(panel),
            RANDOM_MAJORITY: right(majority_right),
            BEST_MAJORITY: right(4),
            CONFIDENCE: right(one_right),
        },
        classifier_right=np.arange(10) < 6,
        one_answer=np.array([0.3, 0.5, 0.1, 0.1]),
    )
    story = "\n".join(tell_asking(asking))
    assert all(part in story for part in words)
    assert "(0.60)" in story


def test_rank_correlation():
    assert rank_correlation(np.array([1, 2, 9, np.nan]), np.array([3, 4, 5, 0])) == pytest.approx(1)
    assert rank_correlation(np.array([1, 2, 2.0]), np.array([3, 1, 2])) == pytest.approx(-np.sqrt(3) / 2)
    assert np.isnan(rank_correlation(np.ones(4), np.arange(4)))
    assert np.isnan(rank_correlation(np.full(3, np.nan), np.arange(3)))


def test_group_agreement():
    groups = np.array([0, 0, 1, 1, 2])
    assert group_agreement(groups, np.array([0.1, 0.12, 0.5, 0.51, 0.9])) == 1
    assert group_agreement(groups, np.array([0.9, np.nan, 0.1, 0.12, 0.5])) == 1
    assert np.isnan(group_agreement(groups, np.ones(5)))


@pytest.mark.parametrize(
    ("rival", "truth", "words"),
    [
        (0.5, np.nan, ["Membership does better than either agreement"]),
        (0.8, 0.5, ["Agreement with one net does as well", "needs the true classes, does worse"]),
        (0.95, 0.8, ["Agreement with one net does better", "does as well as membership"]),
        (0.5, 0.95, ["Membership does better", "does better than membership"]),
    ],
)
def test_verdicts_say_what_the_numbers_say(rival, truth, words):
    found = {"membership": 0.8, "agreement with one net": rival, "accuracy on the identified rows": truth}
    verdict = "\n".join(tell_verdicts(None, {"ability": found}))
    assert all(part in verdict for part in words)


def test_long_rosters_show_both_ends():
    n, unknown = 100, np.full(100, np.nan)
    membership = np.column_stack([np.linspace(0, 1, n), np.linspace(1, 0, n)])
    names = [f"e{m:02d}" for m in range(n)]
    roster = Roster(names, np.arange(n), membership, membership, np.linspace(0, 1, n), unknown, unknown)
    lines = "\n".join(tell_roster(roster)).splitlines()
    header, _, *rows = lines[1:34]
    assert [line.split()[0] for line in rows] == [*names[:84:-1], "...", *names[14::-1]]
    assert {len(line) for line in rows} == {len(header)}
