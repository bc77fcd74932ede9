"""``python -m sklearn_l2d``: how many answers an item needs, who behaves alike, and who should decide."""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

from ._cli import _asking_report, _onboarding_report, _routing_report
from ._cli._arguments import add_export_arguments, answers_of, check_writable, positive
from ._cli._asking import CONFIDENCE, PANEL, count_answers
from ._cli._crowds import digits_crowd, real_crowd
from ._cli._file_commands import FILE_COMMANDS
from ._cli._onboarding import (
    Settings,
    compare_sizes,
    describe_behaviours,
    judge,
    learn_behaviours,
    place_experts,
)
from ._cli._routing import MIN_EXPERTS, can_route, change_roster, consider_coverages, form_team, judge_team
from ._cli._tables import read_crowd, write_roster
from .inspection import AnswersAccuracyDisplay, CoverageAccuracyDisplay, MembershipDisplay, WorkloadDisplay
from .inspection._matplotlib import import_pyplot

_SIZES = (1, 2, 3, 4)
_CLUSTERS = {"music_genre": 3}  # where two behaviours are known to be too few

_EXAMPLES = """\
examples:
  python -m sklearn_l2d
      the embedded crowd: digits and six simulated experts
  python -m sklearn_l2d --data cue_conflict --labels 25
      a real set below the folder named by SKLEARN_L2D_DATA, from 25 labels of each expert
  python -m sklearn_l2d --data cifar10
      a real set whose annotators are unknown: how many behaviours there are, and what they are like
  python -m sklearn_l2d --counts votes.csv --features items.csv --identified known.csv
      your own tables; writes roster.csv and membership.png
  python -m sklearn_l2d --counts votes.csv --features items.csv --identified known.csv --truth truth.csv --coverage .7
      with true labels: also how many answers an item needs, and who should decide, when the classifier is to decide
      70 % of the items

commands for a fitted team and a Parquet file of items, which is read in batches (each has its own --help):
  python -m sklearn_l2d route TEAM ITEMS --out FILE
      who decides each item
  python -m sklearn_l2d decide TEAM ITEMS --answers ANSWERS --out FILE
      the labels of the team, once the experts have answered

tables (CSV with a header; items are joined by their id):
  --counts               id,<class>,<class>,...      votes for each class; a row of zeros is an item without votes
  --features             id,<name>,<name>,...        numbers; must cover the ids of --counts
  --identified           task,annotator,label        one row per label: the id of an item, who, and which class;
                                                     --export takes the file of a labelling tool instead
  --identified-features  id,<name>,<name>,...        for the tasks; without it they are looked up in --features
  --truth                id,label                    true classes of tasks; a third of them is kept for tests, by
                                                     whole groups if a third column, group, says what each comes
                                                     from, such as the patient

Names stay as they are written, also None and NA; only empty cells are missing. Decimals have a point.

The experts' items may differ from one another, and should not be in --counts. The roster has one row per expert:
expert, labels, cluster, membership_0, ..., std_0, ..., one_net_agreement, majority_agreement, accuracy (empty where
unknown).
"""


def build_parser():
    """Parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sklearn_l2d",
        description=(
            "Where true classes are known, say how many answers an item needs until its label is right, and who should "
            "decide: the classifier or which experts. Learn how annotators behave from anonymous votes, and say which "
            "experts behave alike.\n\n"
            "The commands route and decide put a fitted team to work on a file; see below."
        ),
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_argument_group("data")
    source.add_argument("--data", metavar="NAME", help="a set of load_crowd: cue_conflict, music_genre, cifar10, ...")
    source.add_argument("--counts", metavar="FILE", type=Path, help="your anonymous votes")
    source.add_argument("--features", metavar="FILE", type=Path, help="features of your items")
    source.add_argument("--identified", metavar="FILE", type=Path, help="labels of known experts")
    add_export_arguments(source, "--identified")
    source.add_argument("--identified-features", metavar="FILE", type=Path, help="features of the experts' items")
    source.add_argument("--truth", metavar="FILE", type=Path, help="true classes of the experts' items")
    source.add_argument(
        "--labels", metavar="N", type=positive(int), default=100, help="identified labels per expert (default: 100)"
    )
    model = parser.add_argument_group("model")
    model.add_argument("--clusters", metavar="K", type=positive(int), help="number of behaviours (default: 2)")
    model.add_argument(
        "--alpha", type=positive(float), default=50.0, help="concentration of the mixtures (default: 50)"
    )
    model.add_argument("--epochs", type=positive(int), default=60, help="epochs of training (default: 60)")
    model.add_argument(
        "--coverage", metavar="C", type=_share, default=0.5, help="share that the classifier decides (default: 0.5)"
    )
    model.add_argument("--seed", type=int, default=0, help="seed of everything random (default: 0)")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--figure", metavar="FILE", type=Path, default="membership.png", help="heat map (default: membership.png)"
    )
    output.add_argument(
        "--answers-figure",
        metavar="FILE",
        type=Path,
        default="answers.png",
        help="accuracy by answers per item (default: answers.png)",
    )
    output.add_argument(
        "--team-figure", metavar="FILE", type=Path, default="team.png", help="accuracy and workload (default: team.png)"
    )
    output.add_argument("--no-figure", action="store_true", help="draw none of them")
    output.add_argument("--output", metavar="FILE", type=Path, help="roster as CSV (default with --counts: roster.csv)")
    output.add_argument("--quiet", action="store_true", help="no progress bars")
    return parser


def main(argv=None):
    """Run the command.

    Parameters
    ----------
    argv : list of str, default=None
        Arguments; None takes those of the process.

    Returns
    -------
    status : int
        0, or 2 where the data or the arguments cannot be used; the reason is then one line on standard error.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    command = FILE_COMMANDS.get(argv[0]) if argv else None
    parser = build_parser() if command is None else command.build_parser()
    args = parser.parse_args(argv if command is None else argv[1:])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            if command is None:
                check_arguments(args)
                run(args)
            else:
                say(*command.run(args))
        except (ValueError, OSError, ImportError, FloatingPointError) as error:
            print(f"{parser.prog}: error: {' '.join(str(error).split())}", file=sys.stderr)
            return 2
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"Note: {message}")
    return 0


def check_arguments(args):
    """Refuse what cannot work before any time is spent."""
    if args.data is not None and args.counts is not None:
        raise ValueError("--data and --counts exclude each other; give one of them.")
    if (args.counts is None) != (args.features is None):
        raise ValueError("--counts and --features belong together; give both.")
    if args.export is not None and args.counts is None:
        raise ValueError("--export needs --counts.")
    args.identified = answers_of(args, "identified")
    for name, needs in {"identified": "counts", "identified_features": "identified", "truth": "identified"}.items():
        if getattr(args, name) is not None and getattr(args, needs) is None:
            raise ValueError(f"--{name.replace('_', '-')} needs --{needs}.")
    if args.counts is not None and args.identified is not None and args.output is None:
        args.output = Path("roster.csv")
    if args.no_figure:
        args.figure = args.answers_figure = args.team_figure = None
    for path in (args.figure, args.answers_figure, args.team_figure, args.output):
        if path is not None:
            check_writable(path)
    if args.figure is not None:
        try:
            import_pyplot("the figure")
        except ImportError as error:
            raise ImportError(f"{error} Or pass --no-figure.") from error


def run(args):
    """Load the data, then tell the story that they allow."""
    settings = Settings(
        n_clusters=args.clusters or _CLUSTERS.get(args.data, 2),
        alpha=args.alpha,
        epochs=args.epochs,
        seed=args.seed,
        progress=not args.quiet,
    )
    crowd = load(args)
    say(*_onboarding_report.tell_crowd(crowd))
    if crowd.annotations is None:
        tell_archive(crowd, settings)
    else:
        tell_asking(crowd, settings, figure=args.answers_figure)
        behaviours, _ = tell_onboarding(crowd, settings, figure=args.figure, output=args.output)
        tell_routing(behaviours, crowd, settings, args.coverage, figure=args.team_figure)


def load(args):
    """Crowd that the arguments name."""
    if args.counts is not None:
        return read_crowd(args.counts, args.features, args.identified, args.identified_features, args.truth, args.seed)
    if args.data is not None:
        return real_crowd(args.data, args.labels, args.seed)
    return digits_crowd(args.labels, args.seed)


def tell_archive(crowd, settings):
    """Story of an archive without a roster: how many behaviours there are, and what they are like."""
    perplexities = compare_sizes(crowd, settings, sorted({*_SIZES, settings.n_clusters}))
    behaviours = learn_behaviours(crowd, settings)
    say(*_onboarding_report.tell_sizes(perplexities, len(crowd.classes), settings.n_clusters))
    say(*_onboarding_report.tell_behaviours(describe_behaviours(behaviours, crowd)))
    say("There are no known experts to place, hence no roster and no figure.")


def tell_asking(crowd, settings, figure=None):
    """Story of the answers: what each is worth, if people are asked one after the other."""
    if not can_route(crowd):
        return
    asking = count_answers(crowd, settings)
    say(*_asking_report.tell_asking(asking))
    if figure is not None:
        draw_answers(asking, figure)
        say(f"Figure written to {figure}.")


def tell_onboarding(crowd, settings, figure=None, output=None):
    """Story of a roster: behaviours from the archive, memberships of the experts, and what simpler scores say.

    Returns
    -------
    behaviours, roster : Behaviours, Roster
        What was learnt, for the steps that come after.
    """
    behaviours = learn_behaviours(crowd, settings)
    roster = place_experts(behaviours, crowd)
    say(*_onboarding_report.tell_behaviours(describe_behaviours(behaviours, crowd)))
    say(*_onboarding_report.tell_roster(roster))
    say(*_onboarding_report.tell_ends(roster))
    verdicts = judge(crowd, roster)
    if verdicts:
        say(*_onboarding_report.tell_verdicts(crowd, verdicts))
    else:
        say(*_onboarding_report.tell_without_truth(roster))
    if output is not None:
        write_roster(output, roster)
        say(f"Roster written to {output}.")
    if figure is not None:
        draw(roster, figure)
        say(f"Figure written to {figure}.")
    return behaviours, roster


def tell_routing(behaviours, crowd, settings, coverage, figure=None):
    """Story of a team: who decides at a requested coverage, what that is worth, and a roster that changes."""
    if not can_route(crowd):
        say(
            "Who should decide cannot be learnt here, nor how many answers an item needs: that takes true classes and "
            f"{MIN_EXPERTS} experts or more."
        )
        return
    team = form_team(behaviours, crowd, settings, coverage)
    verdict = judge_team(team)
    say(*_routing_report.tell_team(team))
    say(*_routing_report.tell_verdict(team, verdict))
    say(*_routing_report.tell_advice(verdict, consider_coverages(team)))
    say(*_routing_report.tell_workload(team, verdict))
    say(*_routing_report.tell_change(change_roster(team, verdict)))
    if figure is not None:
        draw_team(team, verdict, figure)
        say(f"Figure written to {figure}.")


def draw_answers(asking, path):
    """Save accuracy over answers per item."""
    plt = import_pyplot("the figure")
    figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
    alone = asking.classifier_right.mean()
    for name, answers in asking.answers.items():
        style = {"linewidth": 2.2} if name == PANEL else {"linestyle": "--", "marker": "s"}
        points = np.column_stack([np.append(0, answers), np.append(alone, asking.right[name].mean(1))])
        points = points[np.append(True, np.diff(points[:, 0]) > 0)]  # a rival that asks for no more stays where it is
        name = f"{name}, one answer at most" if name == CONFIDENCE else name
        AnswersAccuracyDisplay.from_predictions(*points.T, name=name, ax=ax, **style)
    ax.axhline(alone, color="gray", linestyle=":", label="classifier alone")
    ax.legend(loc="lower right", fontsize="small")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_team(team, verdict, path):
    """Save the coverage-accuracy curves beside the workload."""
    plt = import_pyplot("the figure")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    CoverageAccuracyDisplay.from_estimator(
        team.gate, team.X, team.y, team.answers(team.gate), X_unlabeled=team.X_archive, name="team", ax=left
    )
    curves = {name: CoverageAccuracyDisplay(**points) for name, points in verdict.rival_curves.items()}
    for linestyle, (name, curve) in zip((":", "-."), curves.items(), strict=True):
        curve.plot(name=name, linestyle=linestyle, ax=left)
    rule = {"X_unlabeled": team.X_archive, "name": "ConfidenceDeferral", "linestyle": "--", "ax": left}
    CoverageAccuracyDisplay.from_estimator(team.rule, team.X, team.y, team.answers(team.rule), **rule)
    WorkloadDisplay.from_predictions(
        [*verdict.workload, 1 - verdict.workload.sum()],
        experts=[team.experts[int(name)] for name in team.gate.experts_],
        ax=right,
    )
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw(roster, path):
    """Save the heat map, with the experts in order where there are many."""
    plt = import_pyplot("the figure")
    display = MembershipDisplay.from_predictions(
        roster.membership, experts=roster.experts, std=roster.std, sort=len(roster.experts) > 10
    )
    display.figure_.savefig(path, dpi=150)
    plt.close(display.figure_)


def say(*lines):
    """Print a paragraph."""
    if lines:
        print(*lines, sep="\n", end="\n\n")


def _share(text):
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


if __name__ == "__main__":
    torch.set_num_threads(1)  # for nets this small more threads cost time, above all on a busy machine
    sys.exit(main())
