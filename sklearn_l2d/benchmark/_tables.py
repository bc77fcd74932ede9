"""Figures as Markdown tables."""

import numpy as np


def markdown(title, columns, rows, note="", level=3):
    """One table with a heading; floats get three decimals."""
    lines = [f"{'#' * level} {title}", ""]
    if note:
        lines += [note, ""]
    for row in (columns, ["---"] * len(columns), *rows):
        lines.append(f"| {' | '.join(_cell(value) for value in row)} |")
    return "\n".join([*lines, ""])


def spread(values, style=".3f"):
    """Mean and standard deviation over seeds; empty without values."""
    values = [v for v in values if v is not None and np.isfinite(v)]
    if not values:
        return ""
    deviation = f" ± {np.std(values, ddof=1):{style}}" if len(values) > 1 else ""
    return f"{np.mean(values):{style}}{deviation}"


def paired(ours, theirs):
    """Mean difference of figures of the same seeds, with its standard error."""
    difference = np.subtract(ours, theirs)
    return f"{difference.mean():+.4f} ({standard_error(difference):.4f})"


def standard_error(values):
    """Standard error of the mean; NaN for a single value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def select(records, figure, **fields):
    """Values of a figure in the records with these fields, in the order of the seeds."""
    chosen = [r for r in _having(records, fields) if figure in r]
    return [r[figure] for r in sorted(chosen, key=lambda r: r["seed"])]


def mean(records, figure, **fields):
    """Mean over seeds; NaN without values."""
    values = select(records, figure, **fields)
    return float(np.mean(values)) if values else np.nan


def names(records, field, **fields):
    """Distinct values of a field in the records with these fields, in the order of their first appearance."""
    return list(dict.fromkeys(r[field] for r in _having(records, fields)))


def yes(condition):
    """Text of a condition that is easy to search for."""
    return "yes" if condition else "NO"


def _having(records, fields):
    return [r for r in records if all(r[name] == value for name, value in fields.items())]


def _cell(value):
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.3f}"
    return str(value)
