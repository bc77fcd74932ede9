"""The pages: what fits them, where their links lead, and formulas that need no network."""

import importlib
import re
from pathlib import Path

import pytest
from changelog import render as render_changelog
from check_links import broken_links
from choices import WAYS, WISHES
from docutils.utils.math import latex2mathml
from evidence import CONTROLS, REAL, SIMULATED, answers, areas, read_table
from newcomers import LABELS, SETS, TRUTHS, newcomers
from newcomers import RULES as NEWCOMER_RULES
from scikit_learn import CLASSES, FUNCTIONS
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from sklearn_l2d import AnnotatorLDA, deferral
from sklearn_l2d.benchmark.experiments._newcomers import RULES

ROOT = Path(__file__).parents[1]
GENERATED = "sg_execution_times.rst"
PAGES = [ROOT / "README.md"]
PAGES += [path for folder in ("doc", "doc/user_guide") for path in sorted((ROOT / folder).glob("*.rst"))]
PAGES = [path for path in PAGES if path.name != GENERATED]
MOST_CODE = 96  # columns that fit beside the navigation at 1,440 px; `doc/check_width.py` measures them in a browser
MOST_BESIDE = 66  # columns of code that fit beside the text of a choice
MOST_COLUMNS = 7  # of a table
STORIES = ROOT / "examples" / "plot_three_first_weeks.py"
MOST_OF_A_STORY = 25  # lines of code, from the export to the served queue


def code_lines(text):
    """Lines of literal blocks in reStructuredText, and of fenced blocks in Markdown, without their indentation."""
    lines, inside, margin = text.split("\n"), False, 0
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.startswith("```"):
            inside, margin = not inside, -1
        elif inside and margin >= 0 and line.strip() and indent <= margin:
            inside = False
        elif inside and line.strip():
            yield line if margin < 0 else line[margin + 3 :]
        if not inside and re.search(r"(^ *\.\. code-block:: \w+|^ *[^.\s].*::|^ *::)$", line):
            inside, margin = True, indent


def table_columns(text):
    """Columns of each table: simple tables by their rules, list tables by the items of their first row."""
    rules = [len(line.split()) for line in text.split("\n") if re.fullmatch(r"\s*=+( +=+)+", line)]
    first_rows = re.findall(r"^ *\* -.*\n((?: +[^*\s].*\n| *\n)*)", text, flags=re.MULTILINE)
    return rules + [1 + len(re.findall(r"^ +- ", row, flags=re.MULTILINE)) for row in first_rows]


def test_code_lines_sees_literal_and_fenced_blocks():
    rst = (
        "Text::\n\n    one\n      two\n\nMore.\n\n.. code-block:: python\n\n   three\n\n.. image:: x.png\n   :alt: no\n"
    )
    assert [line.strip() for line in code_lines(rst)] == ["one", "two", "three"]
    assert list(code_lines("no\n```python\nyes\n```\nno")) == ["yes"]


def test_table_columns_sees_both_kinds_of_tables():
    assert table_columns("== ===\na  b\n== ===\n") == [2, 2]
    assert table_columns(".. list-table::\n\n   * - a\n     - b\n     - c\n   * - 1\n     - 2\n     - 3\n") == [3, 3]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_fits_its_page(page):
    text = page.read_text(encoding="utf-8")
    examples = [line.strip() for line in text.split("\n") if line.lstrip().startswith((">>> ", "... "))]
    assert [line for line in [*code_lines(text), *examples] if len(line) > MOST_CODE] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_fit_their_page(page):
    assert max(table_columns(page.read_text(encoding="utf-8")), default=0) <= MOST_COLUMNS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_formulas_become_mathml(page):
    text = page.read_text(encoding="utf-8")
    for formula in re.findall(r":math:`([^`]+)`", text) + re.findall(r"\.\. math::\n\n((?:   .*\n|\n)+)", text):
        assert latex2mathml.tex2mathml(formula).startswith("<math")


def test_broken_links_are_found(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "_static").mkdir()
    (tmp_path / "picture.png").touch()
    (tmp_path / "_static" / "template.html").write_text('<a href="nowhere"></a>', encoding="utf-8")
    (tmp_path / "index.html").write_text(
        '<h1 id="here"></h1><a href="#here"></a><a href="#gone"></a><a href="https://example.org/#x"></a>'
        '<img src="picture.png"><img src="lost.png"><a href="deep/page.html#there"></a>',
        encoding="utf-8",
    )
    (tmp_path / "deep" / "page.html").write_text('<a href="../index.html#here"></a><a href="../x.html">', "utf-8")
    assert set(broken_links(tmp_path)) == {
        ("index.html", "#gone"),
        ("index.html", "lost.png"),
        ("index.html", "deep/page.html#there"),
        ("deep/page.html", "../x.html"),
    }


CHOICES = [choice for way in WAYS for choice in (*way.choices, way.otherwise)] + list(WISHES)


@pytest.mark.parametrize("code", sorted({choice.code for choice in CHOICES}))
def test_the_code_of_a_choice_makes_a_deferrer_and_fits(code):
    names = {name: getattr(deferral, name) for name in deferral.__all__}
    names |= {"FrozenEstimator": FrozenEstimator, "classifier": GaussianNB(), "lda": AnnotatorLDA()}
    assert hasattr(eval(code, names), "predict_deferral")
    assert max(map(len, code.split("\n"))) <= MOST_BESIDE


@pytest.mark.parametrize("choice", [choice for way in WAYS for choice in (*way.choices, way.otherwise)])
def test_picture_and_code_of_a_choice_name_the_same_deferrer(choice):
    assert re.match(r"\w+", choice.take)[0] in choice.code


def test_tables_of_a_report_are_read_by_heading():
    report = "### One\n\n| m | N'=1 | paper |\n| --- | --- | --- |\n| a | 0.5 ± 0.1 |  |\n\n### Two\n\n| m | x |\n"
    assert read_table(report, "One") == (["N'=1", "paper"], {"a": [0.5, None]})


def test_every_figure_of_the_evidence_is_in_the_stored_reports():
    for name, (sizes, rows) in areas(SIMULATED + REAL).items():
        assert (sizes[0], len(rows)) == ("N'=25", 16), name
        assert all(0 < value < 1 for row in rows.values() for value in row), name
    for name in SIMULATED + REAL + CONTROLS:
        numbers, rows = answers(name)
        assert (numbers[-1], len(rows["panel"])) == (3, len(numbers)), name
    # as the report of the stored run has them
    assert areas(["cue_conflict"])["cue_conflict"][1]["ConfidenceDeferral"] == [0.637, 0.671]
    assert answers("digits, 6 experts")[1]["panel"][2] == 0.983


def test_the_figures_of_the_readme_are_in_the_stored_reports():
    report = (ROOT / "benchmarks/results/answer_model.md").read_text(encoding="utf-8")
    section = report.partition("## digits, 6 experts, N'=25\n")[2].partition("\n## ")[0]
    two_answers = {}
    for row in re.findall(r"^\| (\S.*) \|$", section, flags=re.MULTILINE):
        cells = row.split(" | ")
        two_answers[cells[0]] = cells[3].split()[0]
    numbers, rows = answers("digits, 6 experts")
    expected = [two_answers[name] for name in ("classifier and answers", "classifier alone", "majority vote")]
    expected.append(f"{rows['panel'][numbers.index(2)]:.3f}")
    told = (ROOT / "README.md").read_text(encoding="utf-8").partition("two random answers per item")[2][:300]
    assert re.findall(r"\.\d{3}", told) == [figure.removeprefix("0") for figure in expected]


def test_the_changelog_becomes_a_page():
    markdown = "# Changelog\n\n## [Unreleased]\n\n- A [link](https://example.org/a) and `code`.\n"
    expected = "Changelog\n=========\n\nUnreleased\n----------\n\n- A `link <https://example.org/a>`__ and `code`.\n"
    assert render_changelog(markdown) == expected


@pytest.mark.parametrize("name", SETS)
def test_every_figure_about_newcomers_is_in_the_stored_report(name):
    for rows in newcomers(name).values():
        assert list(rows) == list(NEWCOMER_RULES) == list(RULES)
        assert all(0 < v < 1 for row in rows.values() for v in row)
        assert {len(row) for row in rows.values()} == {len(LABELS) * len(TRUTHS)}


@pytest.mark.parametrize("name", CLASSES + FUNCTIONS)
def test_what_pages_link_to_is_in_scikit_learn(name):
    module, _, attribute = name.rpartition(".")
    assert callable(getattr(importlib.import_module(module), attribute))


def cells(path):
    """Titles of the cells of an example, and their lines of code."""
    for cell in path.read_text(encoding="utf-8").split("\n# %%\n")[1:]:
        lines = cell.splitlines()
        yield lines[0].removeprefix("# "), [line for line in lines if line.strip() and not line.startswith("#")]


def test_each_story_of_a_first_week_is_short():
    code = dict(cells(STORIES))
    stories = ["A team by name", "Volunteers, and no truth", "Images, a net of your own, and votes without names"]
    assert [title for title in code if title in stories] == stories
    for title in stories:
        assert 10 < len(code[title]) <= MOST_OF_A_STORY, title
