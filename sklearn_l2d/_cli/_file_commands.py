"""The commands on files: ``python -m sklearn_l2d route`` and ``decide``."""

import argparse
from pathlib import Path
from typing import NamedTuple

from ._arguments import add_export_arguments, answers_of, positive
from ._files import BATCH_SIZE, DECISIONS, decide_file, load_team, route_file

_EPILOG = """\
TEAM is a file of sklearn_l2d.save, or of joblib.dump: that is a pickle, and loading it runs code, so use such files
only of people you trust. A pipeline or search that ends in a deferrer will do; it keeps the scaling of the items
with the team. ITEMS has one column per feature. A team that was fitted to a DataFrame finds them by name.

{more}

example:
  {example}
"""
_MANY = 20  # experts, of whom a summary shows no more


class FileCommand(NamedTuple):
    """A command: `build_parser()` makes its parser, `run(args)` does it and returns lines to print."""

    build_parser: object
    run: object


def build_route_parser():
    """Parser of ``route``."""
    parser = _build_parser(
        "route",
        "Say who decides each item of a Parquet file: the classifier, or which expert.",
        "FILE gets the columns id, target, expert, label, confidence and reason, one row per item. Target and expert\n"
        "are classifier where it decides. The label is that of the classifier, and the confidence how sure it is.",
        "python -m sklearn_l2d route team.joblib items.parquet --out routes.csv --queues today --available Ann,Bob",
    )
    parser.add_argument(
        "--queues", metavar="FOLDER", type=Path, help="also write one CSV file per expert, with the expert's items"
    )
    parser.add_argument("--available", metavar="NAMES", type=_names, help="experts who are in, as Ann,Bob")
    parser.add_argument(
        "--capacity",
        metavar="N",
        type=_whole,
        help="most items per expert, over the whole file; the first rows come first (default: no limit)",
    )
    return parser


def build_decide_parser():
    """Parser of ``decide``."""
    parser = _build_parser(
        "decide",
        "Give each item of a Parquet file the label of the team: of the classifier, or of experts who answered.",
        "FILE gets the columns id, target, expert and label, one row per item. The column expert says who decided.\n"
        "Where nobody of the target answered, that is the classifier or, with draw, somebody else who should beat it.",
        "python -m sklearn_l2d decide team.joblib items.parquet --answers answers.csv --out labels.parquet",
    )
    parser.add_argument(
        "--answers",
        metavar="FILE",
        type=Path,
        help="columns task (the name of an item), annotator and label, one row per answer; CSV or Parquet",
    )
    add_export_arguments(parser, "--answers")
    parser.add_argument(
        "--decision",
        choices=DECISIONS,
        default="draw",
        help="take one answer, drawn among those of the target, the vote of all of them, or the classifier and all "
        "answers together, with a column confidence (default: draw)",
    )
    return parser


def run_route(args):
    """Route a file."""
    asked = {name: getattr(args, name) for name in ("available", "capacity", "queues")}
    lines = tell_summary(args, route_file(load_team(args.team), args.items, **asked, **_common(args)))
    return lines if args.queues is None else [*lines, f"Queues written to {args.queues}."]


def run_decide(args):
    """Decide a file."""
    answers = answers_of(args, "answers")
    if answers is None:
        raise ValueError("there are no answers; give --answers or --export.")
    summary = decide_file(load_team(args.team), args.items, answers, decision=args.decision, **_common(args))
    return tell_summary(args, summary)


FILE_COMMANDS = {
    "route": FileCommand(build_route_parser, run_route),
    "decide": FileCommand(build_decide_parser, run_decide),
}


def tell_summary(args, summary):
    """Lines on what was decided, and by whom."""
    n_experts = summary.n_deferred - summary.n_unserved
    n_classifier = summary.n_items - n_experts
    share = f" ({n_classifier / summary.n_items:.1%})" if summary.n_items else ""
    busiest = sorted(summary.workload.items(), key=lambda item: -item[1])
    more = f", and {len(busiest) - _MANY} more" if len(busiest) > _MANY else ""
    return [
        f"{summary.n_items:,} items: the classifier decides {n_classifier:,}{share}, experts {n_experts:,}.",
        *([f"Items per expert: {', '.join(f'{name} {n:,}' for name, n in busiest[:_MANY])}{more}."] if busiest else []),
        f"Written to {args.out}.",
    ]


def _build_parser(name, description, columns, example):
    parser = argparse.ArgumentParser(
        prog=f"python -m sklearn_l2d {name}",
        description=description,
        epilog=_EPILOG.format(more=columns, example=example),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "team", metavar="TEAM", type=Path, help="fitted deferrer, written by sklearn_l2d.save or joblib.dump"
    )
    parser.add_argument("items", metavar="ITEMS", type=Path, help="Parquet file, one row per item")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, required=True, help="file to write or replace: Parquet, or CSV if called so"
    )
    parser.add_argument(
        "--id",
        metavar="COLUMN",
        dest="id_column",
        help="names of the items (default: id, task, or the index of a DataFrame; else rows are numbered from 0)",
    )
    parser.add_argument(
        "--features",
        metavar="NAMES",
        type=_names,
        help="columns as a,b,c, for a team that was fitted without names (default: all but the names of the items)",
    )
    parser.add_argument(
        "--batch-size",
        metavar="N",
        type=positive(int),
        default=BATCH_SIZE,
        help=f"rows at once; the result depends on it only where --capacity binds (default: {BATCH_SIZE})",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser


def _common(args):
    return {name: getattr(args, name) for name in ("out", "id_column", "features", "batch_size")} | {
        "progress": not args.quiet
    }


def _names(text):
    return [name.strip() for name in text.split(",") if name.strip()]


def _whole(text):
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value
