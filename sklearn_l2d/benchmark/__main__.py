"""``python -m sklearn_l2d.benchmark``: every method on every set, as tables and figures."""

import argparse
import csv
import sys
from pathlib import Path

import joblib

from .._version import __version__
from ._machine import machine
from ._methods import METHODS, options_table
from ._plan import Plan
from ._runner import Cell, run
from ._tables import markdown
from ._worlds import SETS
from .experiments._registry import EXPERIMENTS

_SIZES = (25, 50, 100, 200, 500)

_EPILOG = """\
examples:
  python -m sklearn_l2d.benchmark --quick
      two small sets, two sizes, two seeds: a few minutes
  python -m sklearn_l2d.benchmark --jobs 2 --output results
      everything; run it again after an interruption and it goes on where it was
  python -m sklearn_l2d.benchmark --experiments onboarding --sets "digits, 6 experts" --methods groups two-stage
      some of it

The real sets are found through the environment variable SKLEARN_L2D_DATA. Seeds from 0 are reported; options were
chosen on seeds from 100 up (--experiments tuning --first-seed 100 --seeds 3). The folder has results.csv, report.md,
the figures, and the finished cells below parts/.
"""


def build_parser():
    """Parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sklearn_l2d.benchmark",
        description="Compare methods of learning to defer when experts have few labels by name.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--experiments",
        nargs="+",
        choices=EXPERIMENTS,
        default=[name for name in EXPERIMENTS if name != "tuning"],
        metavar="NAME",
        help=f"of {', '.join(EXPERIMENTS)}; default: all but tuning",
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, metavar="SET", help=f"of {', '.join(map(repr, SETS))}")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, metavar="METHOD", help=f"of {', '.join(map(repr, METHODS))}"
    )
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N", help=f"labels by name; default: {_SIZES}")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many; default: 5")
    parser.add_argument("--first-seed", type=int, default=0, metavar="SEED", help="default: 0")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="workers, as in joblib; default: 1")
    parser.add_argument("--backend", default="loky", help="of joblib; default: loky")
    parser.add_argument("--output", type=Path, default=Path("benchmark-results"), metavar="DIR",
                        help="folder of results; default: benchmark-results")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="two small sets, sizes 25 and 100, two seeds")
    parser.add_argument("--finished", action="store_true", help="report the cells that are finished, and run nothing")
    parser.add_argument("--no-figures", action="store_true", help="tables only")
    return parser


def make_plan(args):
    """What the arguments ask for."""
    quick_sets = ("digits, 6 experts", "digits, 100 experts")
    return Plan(
        seeds=range(args.first_seed, args.first_seed + (args.seeds or (2 if args.quick else 5))),
        sizes=tuple(args.sizes or ((25, 100) if args.quick else _SIZES)),
        sets=tuple(args.sets or (quick_sets if args.quick else SETS)),
        methods=tuple(args.methods or METHODS),
        quick=args.quick,
    )


def main(arguments=None):
    """Run what is missing and write tables and figures."""
    args = build_parser().parse_args(arguments)
    plan = make_plan(args)
    args.output.mkdir(parents=True, exist_ok=True)
    _claim(args.output)
    sections, rows = [], []
    for name in args.experiments:
        experiment = EXPERIMENTS[name]
        print(experiment.title, file=sys.stderr)
        cells = experiment.cells(plan)
        with joblib.parallel_config(args.backend):
            records = run(cells, experiment.measure, args.output, args.jobs, args.finished)
        if not records:
            continue
        unfinished = f"{len(records)} of {len(cells)} cells are finished.\n\n" if len(records) < len(cells) else ""
        sections.append(f"## {experiment.title}\n\n{unfinished}{experiment.report(records)}")
        rows += [(*(r[f] for f in Cell._fields), figure, r[figure]) for r in records for figure in _numbers(r)]
        if experiment.draw is not None and not args.no_figures:
            _draw(experiment, records, args.output)
    command = "python -m sklearn_l2d.benchmark " + " ".join(sys.argv[1:] if arguments is None else arguments)
    text = "\n".join([_head(command, plan), *sections, _closing()])
    (args.output / "report.md").write_text(text)
    with (args.output / "results.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*Cell._fields, "figure", "value"])
        writer.writerows(rows)
    print(text)


def _claim(output):
    """Refuse a folder whose finished cells were measured with other options or another version."""
    options = "\n".join(" | ".join(row) for row in options_table())
    mine, file = f"sklearn_l2d {__version__}\n{options}\n", output / "parts.txt"
    if file.exists() and file.read_text() != mine:
        raise SystemExit(
            f"{output} holds cells that were measured with other options or another version, see {file}; choose "
            "another --output, or delete the folder."
        )
    file.write_text(mine)


def _numbers(record):
    return [name for name, value in record.items() if name not in Cell._fields and isinstance(value, int | float)]


def _draw(experiment, records, output):
    from ..inspection._matplotlib import import_pyplot

    plt = import_pyplot("the benchmark")
    for name, figure in experiment.draw(records, plt):
        figure.savefig(output / name, dpi=110, bbox_inches="tight")
        plt.close(figure)


def _head(command, plan):
    return (
        f"# Onboarding benchmark\n\n`{command.strip()}`\n\n{machine('one thread per worker')} Seeds "
        f"{plan.seeds[0]} to {plan.seeds[-1]}. Areas lie between 0 and 1 and include both ends; mean ± standard "
        "deviation over seeds. The papers' figures come from other data sets: the order of the rows is what compares.\n"
    )


def _closing():
    sets = [[name, world.stands_for, "same" if world.same_items else "own"] for name, world in SETS.items()]
    return "\n".join(
        [
            "## How it was done\n",
            markdown("Which set stands for which", ["set", "in place of", "items that experts label"], sets, _STANDS),
            markdown("Options of the methods", ["method", "chosen", "tried"], options_table(), _TUNING),
        ]
    )


_STANDS = (
    "The papers' images (CIFAR-100, dopanim, Chaoyang, MiceBone, NIH-AO) need large networks and a GPU. The sets here "
    "are features or tabular rows of the same kind: simulated experts under the same noise where the papers simulate, "
    "and real people where they have people."
)
_TUNING = (
    "All methods share seeds, splits, labels by name, unlabelled items and classifier; methods that train a classifier "
    "of their own also get the rows that trained the shared one. Every method that trains a net had the same number of "
    "settings to choose from, by mean area on both digits sets with N'=50, seeds 100 to 102. These are other draws of "
    "the same 1,797 images, so that only the other sets are independent of the choice. Coverage is calibrated on "
    "items that nobody labelled by name; on simulated sets, 200 or 300 of them trained the shared classifier. "
    "`probabilistic` is PL2D as published, and `single experts, our gate` has our prior and our inference of missing "
    "annotations."
)


if __name__ == "__main__":
    main()
