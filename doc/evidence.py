"""What the stored benchmark found, read from its reports: the figures of these pages and the tables come from here."""

import re
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
SIMULATED = ("digits, 6 experts", "digits, 100 experts", "cifar10, 6 experts", "cifar10, 100 experts")
REAL = ("cue_conflict", "music_genre", "medical_relation_treat", "sentiment_polarity")
CONTROLS = ("product_match", "recidivism_compas")
DEFERRERS = {  # by the name of the method in the report
    "confidence": "ConfidenceDeferral",
    "single experts, our gate": "ProbabilisticDeferral",
    "groups": "ClusterDeferral",
    "expert-agnostic": "ExpertAgnosticDeferral",
    "population": "PopulationDeferral",
    "one-stage, ova": 'OneStageDeferral("ova")',
    "one-stage, softmax": 'OneStageDeferral("softmax")',
    "two-stage": "TwoStageDeferral",
    "groups, the papers' gate": "ClusterDeferral, no prior",
    "probabilistic": "ProbabilisticDeferral, published",
    "clusters, hard": "hard clusters, no prior",
    "clusters, soft": "soft clusters, no prior",
    "random expert": "RandomExpertDeferral, no prior",
    "mixture of experts": "MixtureOfExpertsDeferral",
    "best expert": "BestExpert",
    "classifier only": "ClassifierOnly",
}
NEWER = {  # what came later, and whom it is to better
    "one-stage, softmax, PiCCE": "one-stage, softmax",
    "one-stage, ova, PiCCE": "one-stage, ova",
    "population, attention": "population",
    "expert-agnostic, roles": "expert-agnostic",
    "top k, one agent": "two-stage",
}
RIVALS = (  # of the panel, in the report of answers
    "random people, majority",
    "best people, weighted vote",
    "a group's vote",
    "confidence, one answer",
    "confidence, one answer, fused",
    "CROWDLAB, random people",
    "CROWDLAB, best people",
)


def read_table(report, heading):
    """Column names and, by method, the means of one table of a report."""
    section = re.split(r"\n#+ ", report.split(f"### {heading}\n", 1)[1], maxsplit=1)[0]
    lines = [line.removeprefix("|").removesuffix("|") for line in section.split("\n") if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    return head[1:], {name: [_mean(cell) for cell in cells] for name, *cells in rows}


def _mean(cell):
    found = re.match(r"-?\d*\.\d+", cell)
    return float(found[0]) if found else None


def areas(which):
    """By set, and by deferrer: areas with the fewest labels by name and with the most, and how many these are."""
    report = (RESULTS / "onboarding" / "report.md").read_text(encoding="utf-8")
    found = {}
    for name in which:
        columns, rows = read_table(report, f"Area, {name}")
        sizes = [column for column in columns if column.startswith("N'=")]
        ends = (sizes[0], sizes[-1])
        at = [columns.index(size) for size in ends]
        found[name] = ends, {title: [rows[method][i] for i in at] for method, title in DEFERRERS.items()}
    return found


def answers(name, n_labels=25):
    """Numbers of answers per item, and accuracies by method."""
    report = (RESULTS / "answers" / "report.md").read_text(encoding="utf-8")
    columns, rows = read_table(report, f"Accuracy by answers per item, {name}, N'={n_labels}")
    return [float(column) for column in columns], rows


def render():
    """reStructuredText of the tables of areas, two sets in each."""
    lines = []
    for first in range(0, len(SIMULATED + REAL), 2):
        pair = areas((SIMULATED + REAL)[first : first + 2])
        heads = [f"{name.replace('_', ' ')}, {size}" for name, (sizes, _) in pair.items() for size in sizes]
        columns = [[row[at] for row in rows.values()] for _, rows in pair.values() for at in (0, 1)]
        lines += [".. list-table::", "   :header-rows: 1", "   :widths: 36 16 16 16 16", ""]
        lines += table_row(["deferrer", *heads])
        for at, title in enumerate(DEFERRERS.values()):
            lines += table_row([title, *(decimal(column[at], column[at] == max(column)) for column in columns)])
        lines.append("")
    return "\n".join(lines)


def render_newer():
    """reStructuredText of what newer methods gain over those before, and over the rule, with few labels by name."""
    report = (RESULTS / "onboarding-few" / "report.md").read_text(encoding="utf-8")
    tables = [read_table(report, f"Area, {name}") for name in SIMULATED + REAL + CONTROLS]
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 24 14 16 16 14 16", ""]
    lines += table_row(["method", "over", "mean, N'=25", "mean, N'=50", "sets ahead", "over the rule"])
    for method, before in NEWER.items():
        few, more = (
            np.array([r[method][i] - r[before][i] for columns, r in tables if size in columns])
            for i, size in enumerate(("N'=25", "N'=50"))  # two sets have not 50 labels of each person
        )
        over_rule = np.mean([rows[method][0] - rows["confidence"][0] for _, rows in tables])
        gains = [f"{gain:+.3f}" for gain in (few.mean(), more.mean())]
        lines += table_row([method, before, *gains, f"{(few > 0).sum()} of {len(few)}", f"{over_rule:+.3f}"])
    return "\n".join([*lines, ""])


def table_row(cells):
    """Lines of a row of a list table."""
    return [f"   {'* ' if at == 0 else '  '}- {cell}" for at, cell in enumerate(cells)]


def decimal(value, best):
    """Text of a figure below one; bold if it is the best."""
    text = f"{value:.3f}".removeprefix("0")
    return f"**{text}**" if best else text
