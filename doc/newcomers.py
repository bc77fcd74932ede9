"""What the stored benchmark found about newcomers with few labels: the tables of their page."""

from evidence import RESULTS, decimal, read_table, table_row

SETS = ("digits, 100 experts", "cifar10, 100 experts", "music_genre", "cue_conflict")
FIGURES = {"anybody's answer": "Anybody's answer", "half of the items": "Half of the items"}
RULES = (
    "memberships",
    "memberships, groups",
    "profiles",
    "conformal",
    "shrunken accuracy",
    "nobody is told apart",
)
TRUTHS = ("with truth", "without truth")
LABELS = (5, 10, 25)


def newcomers(name):
    """By figure and rule, accuracies with 5, 10, 25 labels with truth, and then without."""
    report = (RESULTS / "newcomers" / "report.md").read_text(encoding="utf-8")
    columns, rows = read_table(report, f"Newcomers with few labels, {name}")
    return {
        figure: {
            rule: [rows[f"{rule}, {truth}"][columns.index(f"{figure}, {n}")] for truth in TRUTHS for n in LABELS]
            for rule in RULES
        }
        for figure in FIGURES
    }


def render():
    """reStructuredText of a table for each figure and set."""
    lines, found = [], {name: newcomers(name) for name in SETS}
    for figure, title in FIGURES.items():
        for name, figures in found.items():
            rows = figures[figure]
            best = [max(column) for column in zip(*rows.values(), strict=True)]
            lines += [f".. list-table:: {title}, {name.replace('_', ' ')}", "   :header-rows: 1"]
            lines += ["   :widths: 34 11 11 11 11 11 11", ""]
            lines += table_row(["rule", *(f"{n}, {truth}" for truth in ("truth", "none") for n in LABELS)])
            for rule, values in rows.items():
                lines += table_row([rule, *(decimal(v, v == b) for v, b in zip(values, best, strict=True))])
            lines.append("")
    return "\n".join(lines)
