"""The command line of the benchmark, on as little as it takes."""

import csv
import re

import pytest

from sklearn_l2d.benchmark.__main__ import EXPERIMENTS, build_parser, main, make_plan
from sklearn_l2d.benchmark._methods import METHODS

ONE = ["--sets", "digits, 6 experts", "--seeds", "1", "--sizes", "25", "--methods", "groups", "clusters, hard",
       "clusters, soft", "two-stage", "best expert"]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("benchmark")
    main(["--experiments", "onboarding", *ONE, "--output", str(path)])
    return path


def test_the_report_has_a_figure_for_every_method(folder):
    text = (folder / "report.md").read_text()
    for method in ("groups", "clusters, hard", "clusters, soft", "two-stage", "best expert"):
        area = float(re.search(rf"^\| {method} \| (0\.\d+)", text, re.M)[1])
        assert 0.5 < area < 1
    assert "two-stage" in text.split("### Order at few labels")[1].split("###")[0]
    assert "scikit-learn" in text
    assert "Seeds 0 to 0" in text


def test_results_are_a_long_table(folder):
    with (folder / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    areas = {r["method"]: float(r["value"]) for r in rows if r["figure"] == "area"}
    assert len(areas) == 5
    own = {(r["method"], r["figure"]): float(r["value"]) for r in rows}
    # the reference line defers everything to one person: a line from that point to the classifier
    assert own["best expert", "coverage"] == 0
    assert own["best expert", "area_point"] == pytest.approx(
        (own["best expert", "people"] + own["best expert", "classifier"]) / 2
    )


def test_curves_are_drawn(folder):
    assert (folder / "curves-digits-6-experts.png").stat().st_size > 10_000


def test_a_second_run_measures_nothing(folder, capsys):
    before = {path: path.stat().st_mtime_ns for path in (folder / "parts").iterdir()}
    main(["--experiments", "onboarding", *ONE, "--output", str(folder), "--no-figures"])
    assert {path: path.stat().st_mtime_ns for path in (folder / "parts").iterdir()} == before
    assert "Area, digits, 6 experts" in capsys.readouterr().out


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_is_less_of_the_same(name):
    quick, full = (make_plan(build_parser().parse_args(arguments)) for arguments in (["--quick"], []))
    some, everything = EXPERIMENTS[name].cells(quick), EXPERIMENTS[name].cells(full)
    assert 0 < len(some) < len(everything)
    assert len(set(everything)) == len(everything)


def test_every_method_that_is_tuned_had_as_many_settings():
    assert {len(m.grid) for m in METHODS.values()} == {1, 4}


def test_unknown_names_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--methods", "magic"])
    assert "magic" in capsys.readouterr().err


def test_cells_of_other_options_are_not_mixed_in(tmp_path):
    (tmp_path / "parts.txt").write_text("sklearn_l2d 0.0.0 with other options")
    with pytest.raises(SystemExit, match="other options"):
        main([*ONE, "--finished", "--output", str(tmp_path)])
