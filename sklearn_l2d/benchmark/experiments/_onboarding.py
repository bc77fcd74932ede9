"""Area under the coverage-accuracy curve of every method, for few to many named annotations."""

import numpy as np

from .._curves import COVERAGES, fit_and_judge
from .._methods import METHODS
from .._plan import Experiment
from .._runner import Cell
from .._tables import markdown, mean, names, paired, select, spread, yes
from .._worlds import SETS
from . import _paper

_PAPER = {
    "CIFAR-100": "CIFAR-100, N'=100 / 200",
    "dopanim": "dopanim, N'=100 / 200",
    "Chaoyang": "Chaoyang, N'=50 / 100",
}
_OURS, _PAPERS_OWN = "groups", ("clusters, hard", "clusters, soft")


def cells(plan):
    """All sets, sizes, seeds and methods, without sizes that are too large for a set."""
    return [
        Cell("onboarding", dataset, size, seed, method)
        for dataset in plan.sets
        for seed in plan.seeds
        for size in plan.sizes
        if size <= SETS[dataset].largest
        for method in plan.methods
    ]


def measure(cells):
    """Fit and test every method; the methods of a job share the world, its classifier and its behaviours."""
    dataset = SETS[cells[0].dataset]
    world = dataset.build(cells[0].seed)
    for cell in cells:
        labels = world.identified(cell.size, dataset.same_items)
        yield fit_and_judge(world, labels, METHODS[cell.method])


def report(records):
    """Tables of areas, of single points, of the order of methods, of crossovers, and of run times."""
    parts = []
    for dataset in names(records, "dataset"):
        parts.append(_areas(records, dataset))
    parts += [_points(records), _order(records), _crossover(records), _controls(records), _seconds(records)]
    return "\n".join(part for part in parts if part)


def _areas(records, dataset):
    stands_for = SETS[dataset].stands_for
    paper = next((_PAPER[name] for name in _PAPER if stands_for.startswith(name) or name in stands_for), None)
    sizes = names(records, "size", dataset=dataset)
    rows = []
    for method in names(records, "method"):
        row = [method, *(spread(select(records, "area", dataset=dataset, size=s, method=method)) for s in sizes)]
        if paper:
            theirs = _paper.AREAS[paper].get(METHODS[method].paper_name)
            row.append("" if theirs is None else " / ".join(f"{a / 100:.3f}" for a in theirs))
        rows.append(row)
    ends = [
        ["*people alone, best policy*", *(spread(_ends(records, dataset, s, "people")) for s in sizes)],
        ["*classifier alone*", *(spread(_ends(records, dataset, s, "classifier")) for s in sizes)],
    ]
    rows += [row + [""] * bool(paper) for row in ends]
    columns = ["method", *(f"N'={s}" for s in sizes), *([f"paper: {paper}"] if paper else [])]
    return markdown(f"Area, {dataset}", columns, rows, f"Stands for {stands_for}. Mean and sd over seeds.")


def _ends(records, dataset, size, figure):
    """Accuracy at an end of the curves: of the shared classifier, or of the best policy without it."""
    if figure == "classifier":
        return select(records, figure, dataset=dataset, size=size, method="confidence")
    by_method = [select(records, figure, dataset=dataset, size=size, method=m) for m in names(records, "method")]
    means = [np.mean(values) if values else -np.inf for values in by_method]
    return by_method[int(np.argmax(means))]


def _points(records):
    """The figure of the paper for systems that do not control their coverage."""
    rows = []
    for method in names(records, "method"):
        if METHODS[method].controlled:
            continue
        for dataset in names(records, "dataset"):
            for size in names(records, "size", dataset=dataset):
                where = {"dataset": dataset, "size": size, "method": method}
                figures = [select(records, f, **where) for f in ("coverage", "accuracy", "area_point", "area")]
                if figures[0]:
                    rows.append([method, dataset, size, *map(spread, figures)])
    columns = ["method", "set", "N'", "own coverage", "own accuracy", "area of point and ends", "area by ranking"]
    note = (
        "The paper draws these systems as one point and the two ends; ranking their scores after training gives more."
    )
    return markdown("Systems without coverage control", columns, rows, note) if rows else ""


def _order(records):
    """Whether groups beat the paper's clusters, and these the baselines, with many experts and few annotations."""
    baselines = [m for m in names(records, "method") if METHODS[m].role == "baseline"]
    rows = []
    for dataset in names(records, "dataset"):
        for size in names(records, "size", dataset=dataset):
            if size > 50:
                continue
            area = {m: mean(records, "area", dataset=dataset, size=size, method=m) for m in names(records, "method")}
            if _OURS not in area or not baselines or not all(c in area for c in _PAPERS_OWN):
                continue
            best = max(baselines, key=lambda m: -np.inf if np.isnan(area[m]) else area[m])
            clusters = max(area[c] for c in _PAPERS_OWN)
            lead = paired(*(select(records, "area", dataset=dataset, size=size, method=m) for m in (_OURS, best)))
            rows.append(
                [dataset, size, area[_OURS], clusters, area[best], best, lead, yes(area[_OURS] > clusters),
                 yes(clusters >= area[best]), yes(area[_OURS] >= area[best])]
            )  # fmt: skip
    columns = ["set", "N'", "groups", "paper's clusters", "best baseline", "which",
               "groups - baseline (standard error)", "groups > clusters",
               "clusters >= baselines", "groups >= baselines"]  # fmt: skip
    return (
        markdown("Order at few labels: groups > the paper's clusters >= every baseline", columns, rows) if rows else ""
    )


def _crossover(records):
    """Number of annotations from which methods for known experts beat the paper's clusters and the groups."""
    specific = [m for m in names(records, "method") if METHODS[m].specific]
    rows = []
    for dataset in names(records, "dataset"):
        sizes = sorted(names(records, "size", dataset=dataset))
        row = [dataset]
        for rivals in (_PAPERS_OWN, (_OURS,)):
            ahead = []
            for size in sizes:

                def area(method, size=size, dataset=dataset):
                    return mean(records, "area", dataset=dataset, size=size, method=method)

                best = max(specific, key=area, default=None)
                if best is not None and area(best) > max(area(r) for r in rivals):
                    ahead.append(f"{size} ({best})")
            row.append(", ".join(ahead) or "never")
        rows.append(row)
    columns = ["set", "N' where a human-specific method leads the paper's clusters", "N' where it leads the groups"]
    return markdown("Human-specific methods overtake (Fig. 8)", columns, rows) if specific else ""


def _controls(records):
    """Gain of groups on the negative controls, at a coverage that is fixed beforehand."""
    rows = []
    for dataset in names(records, "dataset"):
        if not SETS[dataset].stands_for.startswith("negative control"):
            continue
        for size in names(records, "size", dataset=dataset):
            where = {"dataset": dataset, "size": size, "method": _OURS}
            team, alone = (select(records, figure, **where) for figure in ("accuracy", "classifier"))
            rows.append([dataset, size, spread(alone), spread(team), spread(np.subtract(team, alone))])
    columns = ["set", "N'", "classifier alone", "groups at a requested coverage of .5", "gain"]
    return markdown("Negative controls: nothing should be gained", columns, rows) if rows else ""


def _seconds(records):
    sets = names(records, "dataset")
    rows = [
        [method, *(mean(records, "fit_seconds", dataset=d, method=method) for d in sets)]
        for method in names(records, "method")
    ]
    note = "CPU seconds of a fit, mean over sizes and seeds; the behaviours of the archive are trained once for all."
    return markdown("Run times (PL2D Table 3)", ["method", *sets], rows, note)


def draw(records, plt):
    """Curves of all methods at a small and a large number of labels, one figure for each set."""
    for dataset in names(records, "dataset"):
        sizes = sorted(names(records, "size", dataset=dataset))
        chosen = sizes if len(sizes) < 3 else [sizes[0], sizes[len(sizes) // 2], sizes[-1]]
        figure, axes = plt.subplots(1, len(chosen), figsize=(4.2 * len(chosen) + 2.2, 4.2), sharey=True, squeeze=False)
        for ax, size in zip(axes[0], chosen, strict=True):
            for i, method in enumerate(names(records, "method")):
                where = {"dataset": dataset, "size": size, "method": method}
                x = [mean(records, f"coverage@{c}", **where) for c in COVERAGES]
                y = [mean(records, f"accuracy@{c}", **where) for c in COVERAGES]
                ours = method == _OURS
                ax.plot(x, y, color="k" if ours else f"C{i % 10}", lw=2.2 if ours else 1.2,
                        ls="-" if i < 10 else "--", label=method)  # fmt: skip
            ax.set(title=f"N'={size}", xlabel="coverage (share decided by the classifier)")
        axes[0, 0].set_ylabel("accuracy of the team")
        figure.suptitle(dataset)
        axes[0, -1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=8)
        figure.tight_layout()
        yield f"curves-{dataset.replace(', ', '-').replace(' ', '-')}.png", figure


ONBOARDING = Experiment(
    "Onboarding: area under the coverage-accuracy curve (Table 3, Fig. 3, 8, 9)", cells, measure, report, draw
)
