"""The changelog as a page: what it uses of Markdown, headings and links, as reStructuredText."""

import re
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
_UNDERLINES = {1: "=", 2: "-", 3: "~"}


def render(text=None):
    """reStructuredText of the changelog; code stays as it is, since a single backtick means code in these pages."""
    text = CHANGELOG.read_text(encoding="utf-8") if text is None else text
    lines = []
    for line in text.split("\n"):
        heading = re.fullmatch(r"(#+) \[?(.+?)\]?", line)
        if heading:
            lines += [heading[2], _UNDERLINES[len(heading[1])] * len(heading[2])]
        else:
            lines.append(re.sub(r"\[([^\]]+)\]\((\S+?)\)", r"`\1 <\2>`__", line))
    return "\n".join(lines)
