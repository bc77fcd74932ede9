"""What the commands ask of their arguments."""

import argparse
import os
from pathlib import Path
from typing import NamedTuple

from .. import annotations
from .._exports import FORMATS, MULTIPLE, as_text, guess_format


def positive(kind):
    """Parser of positive, finite numbers of a kind, for `add_argument(type=...)`."""

    def parse(text):
        value = kind(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not positive and finite")
        return value

    parse.__name__ = kind.__name__  # named in the message of argparse
    return parse


def check_writable(path):
    """Refuse a file that cannot be written."""
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder.")
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise ValueError(f"cannot write {path}: {path.parent} is not a folder that can be written to.")


class Export(NamedTuple):
    """A file that a labelling tool exported, and how to read it.

    Attributes
    ----------
    path : path
        The file.
    format : str or None
        Name of the tool; None guesses it from the content.
    question, task : str or None
        What the reader of the tool takes.
    multiple : str
        Likewise.
    """

    path: Path
    format: str | None = None
    question: str | None = None
    task: str | None = None
    multiple: str = "error"

    def __fspath__(self):
        return str(self.path)

    def __str__(self):
        return str(self.path)

    def read(self):
        """Long table of text with the columns task, annotator and label."""
        name = self.format or guess_format(self.path)
        options = {"question": self.question, "task": self.task, "multiple": self.multiple}
        if name == "doccano" and options.pop("question") is not None:
            raise ValueError("is an export of doccano, which asks one question; leave out --question.")
        table = getattr(annotations, f"from_{name}")(self.path, **options)
        nobody = table["annotator"].isna()
        if nobody.any():
            raise ValueError(
                f"does not say who gave {int(nobody.sum())} of {len(table)} answers, first to item "
                f"{as_text(table['task'][nobody.idxmax()])!r}; export it with the names of the annotators."
            )
        return table[["task", "annotator", "label"]].map(as_text)


def add_export_arguments(group, instead_of):
    """Add the arguments by which a file of a labelling tool stands in for a table of answers."""
    group.add_argument(
        "--export",
        metavar="FILE",
        type=Path,
        help=f"what a labelling tool exported, instead of {instead_of}: {', '.join(FORMATS)}",
    )
    group.add_argument("--format", choices=FORMATS, help="tool of --export (default: guessed from its content)")
    group.add_argument("--question", metavar="NAME", help="question whose answers to take, if --export has several")
    group.add_argument(
        "--task", metavar="FIELD", help="field of --export that names the items (default: the numbers of the tool)"
    )
    group.add_argument(
        "--multiple",
        choices=MULTIPLE,
        default="error",
        help="what to do with answers of several labels in --export (default: error)",
    )


def answers_of(args, instead_of):
    """The file with answers that arguments name: a path, an `Export` or None."""
    table = getattr(args, instead_of)
    if args.export is not None:
        if table is not None:
            raise ValueError(f"--{instead_of} and --export exclude each other; give one of them.")
        return Export(args.export, args.format, args.question, args.task, args.multiple)
    for name in ("format", "question", "task"):
        if getattr(args, name) is not None:
            raise ValueError(f"--{name} says how to read --export; give that, too.")
    return table
