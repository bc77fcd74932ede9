"""Accuracy of the final label against the number of answers that were asked for."""

import warnings
from functools import partial
from typing import NamedTuple

import numpy as np

from ...annotations import encode_votes
from ...crowd import NetClassifier
from ...deferral import (
    ComplementDeferral,
    ConfidenceDeferral,
    ConformalDeferral,
    LECODUDeferral,
    PanelDeferral,
    ProfileDeferral,
    TopKDeferral,
)
from ...metrics import coverage_accuracy_auc
from .._curves import COVERAGES, fit, team_point
from .._methods import METHODS as DEFERRERS
from .._plan import Experiment
from .._runner import Cell
from .._tables import markdown, mean, names, paired, select, spread, yes
from .._worlds import SETS, World

BUDGETS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
_SIZES = (25, 50)
_BOUNDED, _BOUNDED_SETS = "member of a group", ("music_genre", "cifar10, 100 experts", "cue_conflict")
_WAYS = "area, as it is", "area, fused", "area, combined evidence"


class Task(NamedTuple):
    """What all methods share: a world, labels by name, and the test items that somebody answered.

    Attributes
    ----------
    world : World
    data : dict
        Arguments of `fit`, of `World.labelled`.
    X, y : ndarrays of n rows
        Test items with at least one recorded answer, and their true labels.
    annotations : ndarray of shape (n, n_experts)
        Recorded answers, -1 where there is none. Only they can be asked for.
    team : ConfidenceDeferral
        Fitted to `data`: the shared classifier, and what is known of the experts.
    proba : ndarray of shape (n, C)
        Calibrated probabilities of the classifier.
    net_seconds : float
        CPU seconds of one supervised net on the labelled items.
    """

    world: World
    data: dict
    X: np.ndarray
    y: np.ndarray
    annotations: np.ndarray
    team: ConfidenceDeferral
    proba: np.ndarray
    net_seconds: float

    @classmethod
    def of(cls, world, labels):
        """Task of a world and labels by name, as `World.identified` gives them."""
        data = world.labelled(labels)
        team = ConfidenceDeferral(world.classifier, cv=world.cv, random_state=world.seed)
        fit(team, data)
        rows = world.test[(world.annotations[world.test] >= 0).any(1)]
        X, annotations = world.X[rows], world.annotations[rows]
        proba = team.predict_team_proba(X, np.full_like(annotations, -1))
        net_seconds = fit(NetClassifier(random_state=world.seed), {"X": data["X"], "y": data["y"]})
        return cls(world, data, X, world.y[rows], annotations, team, proba, net_seconds)


class Point(NamedTuple):
    """What a method achieves.

    Attributes
    ----------
    answers : float
        Mean number of answers per item.
    accuracy : float
        Of the labels.
    excess : float or None
        Mean confidence less accuracy.
    beyond : float or None
        Mean number of answers asked for where `answers` were requested, less those, or less all that are on record.
    fit_seconds : float or None
        CPU seconds of the fit, where a deferrer was fitted for this method alone.
    """

    answers: float
    accuracy: float
    excess: float | None = None
    beyond: float | None = None
    fit_seconds: float | None = None

    @classmethod
    def of(cls, task, asked, labels, confidence=None):
        """Point of the people who were asked (n, longest), -1 for nobody, and the labels that they led to."""
        accuracy = (labels == task.y).mean()
        return cls((asked >= 0).sum(1).mean(), accuracy, None if confidence is None else confidence.mean() - accuracy)


# Whom to ask, in turn: people (n, longest), -1 for nobody, and how sure one is of every item before.


def _random_people(task):
    return _ranked(task, np.random.default_rng(task.world.seed).random(task.annotations.shape)), task.proba.max(1)


def _best_people(task):
    return _ranked(task, np.broadcast_to(_competence(task), task.annotations.shape)), task.proba.max(1)


def _surest_person(task):
    right = task.team.predict_expert_correctness(task.X)
    asked = _ranked(task, right)[:, :1]
    return asked, task.proba.max(1) - np.take_along_axis(right, asked, axis=1)[:, 0]


def _preferred_group(task):
    """The members of the group that is preferred among those with a member who answered, in a random order."""
    method = DEFERRERS["groups"]
    groups = method.build(task.world, **method.options)
    fit(groups, task.data)
    member = groups.selection_ > 0
    scores = groups.decision_function(task.X)
    scores[:, :-1][(task.annotations >= 0) @ member.T == 0] = -np.inf
    best = scores[:, :-1].argmax(1)
    chance = np.random.default_rng(task.world.seed).random(task.annotations.shape)
    asked = _ranked(task, np.where(member[best], chance, -np.inf))
    return asked, scores[:, -1] - scores[np.arange(len(best)), best]


def _ranked(task, score):
    """Everybody who answered an item, by a falling score (n, n_experts); -inf leaves somebody out."""
    score = np.where(task.annotations >= 0, score, -np.inf)
    order = np.argsort(-score, axis=1, kind="stable")
    return np.where(np.isfinite(np.take_along_axis(score, order, axis=1)), order, -1)


def _competence(task):
    """Accuracy (n_experts,) of every person on the labels by name, with five answers as all give them."""
    annotations, y = task.data["annotations"], task.data["y"]
    right, seen = ((annotations == y[:, None]).sum(0), (annotations >= 0).sum(0))
    return ((right + 5 * right.sum() / seen.sum()) / (seen + 5)).clip(0.02, 0.98)


# Labels and confidence, or None, by answers (n, n_experts).


def _majority(task, answers):
    return _vote(task, answers, np.ones(answers.shape[1]))


def _weighted_vote(task, answers):
    competence = _competence(task)
    return _vote(task, answers, np.log(competence * (task.proba.shape[1] - 1) / (1 - competence)).clip(0))


def _vote(task, answers, weight):
    """Weighted votes; the classifier decides between equal ones, and where there are none."""
    votes = encode_votes(answers, classes=task.team.classes_)
    ballots = 1e-3 * task.proba
    np.add.at(ballots, (votes.item, votes.label), weight[votes.annotator])
    return task.team.classes_[ballots.argmax(1)], None


def _together(decision, task, answers):
    proba = task.team.predict_team_proba(task.X, answers, decision)
    return task.team.classes_[proba.argmax(1)], proba.max(1)


def _in_turn(ask, decide, task):
    """Points of all budgets: everybody's first answer before any second one, the least sure items first."""
    people, sure = ask(task)
    for budget in BUDGETS:
        asked = spend(people, sure, round(budget * len(sure)))
        yield Point.of(task, asked, *decide(task, answers_of(task.annotations, asked)))


def spend(people, sure, n_answers):
    """Whom to ask, of `people` (n, longest) in turn, -1 for nobody, if there are `n_answers` for all items."""
    item, turn = np.nonzero(people >= 0)
    first = np.lexsort((sure[item], turn))[:n_answers]
    asked = np.full_like(people, -1)
    asked[item[first], turn[first]] = people[item[first], turn[first]]
    return asked


def answers_of(annotations, asked):
    """Annotations (n, n_experts) by those who were asked (n, longest), -1 elsewhere."""
    item, turn = np.nonzero(asked >= 0)
    answers = np.full_like(annotations, -1)
    answers[item, asked[item, turn]] = annotations[item, asked[item, turn]]
    return answers


def _panel(world):
    behaviours = world.behaviours(2) if len(np.unique(world.y)) > 2 else None  # two classes have no shape of errors
    return PanelDeferral(world.classifier, clusterer=behaviours, cv=world.cv, random_state=world.seed)


def _conformal(world):
    return ConformalDeferral(world.classifier, cv=world.cv, random_state=world.seed)


def _profiles(world):
    return ProfileDeferral(world.classifier, cv=world.cv, random_state=world.seed)


def _top_k(world):
    return TopKDeferral(world.classifier, gate_features="proba", cv=world.cv, random_state=world.seed)


def _lecodu(world):
    return LECODUDeferral(world.classifier, cv=world.cv, random_state=world.seed)


def _gate(world, complement):
    given = {"classifier": world.classifier, "coverage": 0.5, "cv": world.cv, "random_state": world.seed}
    return ComplementDeferral(complement=complement, **given, **DEFERRERS["single experts, our gate"].options)


def _budgets(most):
    """Mean numbers of answers on a path; those achieved are not quite those that are requested."""
    grid = np.r_[0:2:0.05, 2:4.1:0.25]
    return grid[grid < most + 0.01]


def _by_coverage(build, task):
    """Points of all budgets of a gate that asks one person at most, by its path of coverages."""
    deferrer, points = build(task.world), []
    seconds = fit(deferrer, task.data)
    for system in deferrer.coverage_path(1 - _budgets(1), X_unlabeled=task.X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of items about which nobody who gains anything can be asked
            asked = system.assign_experts(task.X, available=task.annotations >= 0)[:, None]
        labels = system.predict_team(task.X, answers_of(task.annotations, asked))
        points.append(Point.of(task, asked, labels))
    for point in _read_off(points):
        yield point._replace(fit_seconds=seconds)


def _on_a_path(build, most, task):
    """Points of all budgets of a deferrer that may ask `most` people about an item, by its path of budgets.

    Nothing but its threshold differs along the path. The last figure is the CPU seconds of its fit.
    """
    deferrer = build(task.world)
    seconds = fit(deferrer, task.data)
    budgets = _budgets(min(most, task.world.n_experts))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of more answers than are on record
        path = deferrer.answers_path(budgets, X_unlabeled=task.X, available=task.annotations >= 0)
    replays = [system.replay(task.X, task.annotations) for system in path]
    on_record = (task.annotations >= 0).sum(1).mean()
    for point, budget in zip(read_off(task, replays), BUDGETS, strict=True):
        asked = replays[np.abs(budgets - budget).argmin()].n_answers.mean()
        yield point._replace(beyond=asked - min(budget, on_record), fit_seconds=seconds)


def read_off(task, replays):
    """Points of all budgets, on the line between the achieved numbers of answers of replays."""
    yield from _read_off([Point.of(task, r.asked, r.labels, r.proba.max(1)) for r in replays])


def _read_off(points):
    """Points of all budgets on the line between given ones."""
    points = sorted(points, key=lambda point: point[:2])
    answers, accuracy, excess = np.array([point[:3] for point in points], dtype=float).T
    for budget in BUDGETS:
        sure = None if np.isnan(excess).any() else np.interp(budget, answers, excess)
        yield Point(min(budget, answers[-1]), np.interp(budget, answers, accuracy), sure)


OURS = "panel"
# functions of a `Task` that return a `Point` for each of the budgets; a learnt method joins by one entry
METHODS = {
    "random people, majority": partial(_in_turn, _random_people, _majority),
    "best people, weighted vote": partial(_in_turn, _best_people, _weighted_vote),
    "a group's vote": partial(_in_turn, _preferred_group, _majority),
    "confidence, one answer": partial(_in_turn, _surest_person, _majority),
    "confidence, one answer, fused": partial(_in_turn, _surest_person, partial(_together, "combine")),
    "CROWDLAB, random people": partial(_in_turn, _random_people, partial(_together, "crowdlab")),
    "CROWDLAB, best people": partial(_in_turn, _best_people, partial(_together, "crowdlab")),
    "conformal, one answer": partial(_on_a_path, _conformal, 1),
    "profiles, one answer": partial(_on_a_path, _profiles, 1),
    "gate, one answer": partial(_by_coverage, partial(_gate, complement=False)),
    "gate, one answer, complement": partial(_by_coverage, partial(_gate, complement=True)),
    "top k": partial(_on_a_path, _top_k, 4),
    "LECODU": partial(_on_a_path, _lecodu, 4),
    OURS: partial(_on_a_path, _panel, 4),
}


def cells(plan):
    """All methods on all sets, and the members of groups on two of them."""
    sizes = _SIZES[:1] if plan.quick else _SIZES
    return [
        Cell("answers", dataset, size, seed, method)
        for dataset in plan.sets
        for seed in plan.seeds
        for size in sizes
        if size <= SETS[dataset].largest
        for method in (*METHODS, *([_BOUNDED] if dataset in _BOUNDED_SETS else []))
    ]


def measure(cells):
    """Answers, accuracy and excess of confidence at every budget."""
    dataset = SETS[cells[0].dataset]
    world = dataset.build(cells[0].seed)
    size = task = None
    for cell in cells:
        if cell.size != size:
            size, task = cell.size, Task.of(world, world.identified(cell.size, dataset.same_items))
        if cell.method == _BOUNDED:
            yield _members(task)
            continue
        figures = {}
        for budget, point in zip(BUDGETS, METHODS[cell.method](task), strict=True):
            told = {name: float(value) for name, value in point._asdict().items() if value is not None}
            if "fit_seconds" in told:
                figures |= {"fit_seconds": told.pop("fit_seconds"), "net_seconds": task.net_seconds}
            figures |= {f"{name}@{budget}": value for name, value in told.items()}
        yield figures


def _members(task):
    """Areas if a random member of the chosen group decides, and if the answer is fused with the classifier.

    The last one is that of a gate whose evidence is the fused label.
    """
    (as_it_is, fused), (_, combined) = (_areas_of_members(task, evidence) for evidence in ("answer", "combined"))
    return dict(zip(_WAYS, (as_it_is, fused, combined), strict=True))


def _areas_of_members(task, evidence):
    """Areas by the answers of members as they are, and fused."""
    world, method = task.world, DEFERRERS["groups"]
    groups = method.build(world, **method.options).set_params(workload=(0.0, 1 / world.n_experts), evidence=evidence)
    fit(groups, task.data)
    path = groups.coverage_path(COVERAGES, X_unlabeled=task.data["X_unlabeled"])
    y, annotations = world.y[world.test], world.annotations[world.test]
    item, expert = np.nonzero(annotations >= 0)
    alone = np.full((len(item), world.n_experts), -1)  # a row for every answer
    alone[np.arange(len(item)), expert] = annotations[item, expert]
    fused = np.zeros(annotations.shape, dtype=bool)
    fused[item, expert] = groups.predict_team(world.X[world.test][item], alone, decision="combine") == y[item]
    for right in (annotations == y[:, None], fused):
        yield coverage_accuracy_auc(*zip(*(team_point(world, system, right) for system in path), strict=True))


# What the panel must reach with 25 labels by name, by the number of answers per item.
_MUST_REACH = {
    1.0: {
        "digits, 6 experts": 0.978,
        "digits, 100 experts": 0.988,
        "cifar10, 6 experts": 0.955,
        "cifar10, 100 experts": 0.965,
        "cue_conflict": 0.86,
        "music_genre": 0.825,
        "medical_relation_treat": 0.90,
        "sentiment_polarity": 0.90,
        "product_match": 0.963,
        "recidivism_compas": 0.672,
    },
    2.0: {"cue_conflict": 0.905, "music_genre": 0.835, "medical_relation_treat": 0.93},
}
_LEAD, _BEHIND, _LOSS, _EXCESS = 0.03, 0.005, 0.003, 0.03
_HEAD = [f"{b:g}" for b in BUDGETS]


def report(records):
    """Accuracy, calibration, the lead over the best rival, losses from budget to budget, and what must be shown."""
    members = [r for r in records if r["method"] == _BOUNDED]
    records = [r for r in records if r["method"] != _BOUNDED]
    parts = [f"{_NOTE}\n"]
    for dataset, size in _places(records):
        where = {"dataset": dataset, "size": size}
        rows = [
            [m, *(spread(select(records, f"accuracy@{b}", method=m, **where)) for b in BUDGETS)]
            for m in names(records, "method", **where)
        ]
        parts.append(markdown(f"Accuracy by answers per item, {dataset}, N'={size}", ["method", *_HEAD], rows))
    parts.append(_calibration(records))
    if OURS in names(records, "method"):
        parts += [_leads(records), _areas(records), _losses(records), _must_reach(records), _requests(records)]
    parts.append(_seconds(records))
    if members:
        parts.append(_members_table(members))
    return "\n".join(part for part in parts if part)


def _places(records):
    return [(d, s) for d in names(records, "dataset") for s in names(records, "size", dataset=d)]


def _means(records, figure, dataset, size, method):
    return np.array([mean(records, f"{figure}@{b}", dataset=dataset, size=size, method=method) for b in BUDGETS])


def _calibration(records):
    rows = []
    for dataset, size in _places(records):
        for method in names(records, "method", dataset=dataset, size=size):
            excess = _means(records, "excess", dataset, size, method)
            if not np.isnan(excess).all():
                kept = yes(np.abs(excess).max() <= _EXCESS) if method == OURS else ""
                rows.append([dataset, size, method, *excess, kept])
    columns = ["set", "N'", "method", *_HEAD, f"within {_EXCESS}"]
    return markdown("Mean confidence minus accuracy by answers per item", columns, rows) if rows else ""


def _leads(records):
    """The panel against the rival that is best at the budget."""
    rows = []
    for dataset, size in _places(records):
        methods = names(records, "method", dataset=dataset, size=size)
        accuracy = {m: _means(records, "accuracy", dataset, size, m) for m in methods}
        leads, row = [], [dataset, size]
        for at, budget in enumerate(BUDGETS):
            best = max((m for m in accuracy if m != OURS), key=lambda m, at=at: accuracy[m][at])
            pair = (select(records, f"accuracy@{budget}", dataset=dataset, size=size, method=m) for m in (OURS, best))
            leads.append(accuracy[OURS][at] - accuracy[best][at])
            row.append(f"{paired(*pair)} {best}")
        rows.append([*row, np.mean(leads), yes(min(leads) >= -_BEHIND), yes(np.mean(leads) > 0)])
    columns = ["set", "N'", *_HEAD, "mean", f"behind by {_BEHIND} at most", "ahead in the mean"]
    note = "Difference of the same seeds (standard error), and the rival with the largest mean accuracy there."
    return markdown("The panel minus its best rival, by answers per item", columns, rows, note)


def _areas(records):
    """Area under the accuracy by answers per item, and the panel's lead in it over every rival."""
    rows, width = [], BUDGETS[-1] - BUDGETS[0]
    for dataset, size in _places(records):
        area = {
            method: np.trapezoid(
                [select(records, f"accuracy@{b}", dataset=dataset, size=size, method=method) for b in BUDGETS],
                BUDGETS,
                axis=0,
            )
            / width
            for method in names(records, "method", dataset=dataset, size=size)
        }
        for method, values in area.items():
            lead = "" if method == OURS else paired(area[OURS], values)
            ahead = np.subtract(values, area[OURS])
            error = ahead.std(ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else 0.0
            rows.append([dataset, size, method, spread(values), lead, yes(ahead.mean() <= 2 * error)])
    columns = ["set", "N'", "method", "area", "panel - method (standard error)", "not ahead by two standard errors"]
    note = f"Mean accuracy over {BUDGETS[0]:g} to {BUDGETS[-1]:g} answers per item, by the trapezoidal rule."
    return markdown("Area under accuracy by answers per item", columns, rows, note)


def _seconds(records):
    """CPU seconds of a fit, and their ratio to those of one supervised net on the same labelled items."""
    fitted = [r for r in records if "fit_seconds" in r]
    if not fitted:
        return ""
    sets, rows = names(fitted, "dataset"), []
    for method in names(fitted, "method"):
        row = [method]
        for dataset in sets:
            ours, net = (select(fitted, f, dataset=dataset, method=method) for f in ("fit_seconds", "net_seconds"))
            row.append(f"{np.mean(ours):.1f} ({np.median(np.divide(ours, net)):.1f})")
        rows.append(row)
    note = (
        "CPU seconds, and in brackets the median ratio to one supervised net on the labelled items; mean over sizes "
        "and seeds. The behaviours of the archive are trained once for all."
    )
    return markdown("Time of a fit", ["method", *sets], rows, note)


def _losses(records):
    rows = []
    for dataset, size in _places(records):
        steps = np.diff(_means(records, "accuracy", dataset, size, OURS))
        worst = int(steps.argmin())
        loss = max(0.0, -steps[worst])
        rows.append([dataset, size, loss, f"{_HEAD[worst]} to {_HEAD[worst + 1]}" if loss else "", yes(loss <= _LOSS)])
    columns = ["set", "N'", "largest loss", "from a budget to the next", f"{_LOSS} at most"]
    return markdown("More answers never cost the panel accuracy", columns, rows)


def _must_reach(records):
    rows = []
    for budget, least in _MUST_REACH.items():
        for dataset in names(records, "dataset", size=25):
            values = select(records, f"accuracy@{budget}", dataset=dataset, size=25, method=OURS)
            if dataset in least and values:
                reached = np.mean(values) >= least[dataset]
                rows.append([dataset, f"{budget:g}", spread(values), least[dataset], yes(reached)])
    columns = ["set", "answers per item", "panel", "must reach", "reached"]
    return markdown("What the panel must reach, N'=25", columns, rows) if rows else ""


def _requests(records):
    """How many more answers than requested the panel asks for on new items."""
    rows = []
    for dataset, size in _places(records):
        beyond = [select(records, f"beyond@{b}", dataset=dataset, size=size, method=OURS) for b in BUDGETS]
        if all(beyond):
            rows.append([dataset, size, *map(spread, beyond)])
    note = "Mean and sd over seeds. Where fewer answers than requested are on record, beyond those on record."
    return markdown("Answers that the panel asks for beyond those requested", ["set", "N'", *_HEAD], rows, note)


def _members_table(records):
    rows = []
    for dataset, size in _places(records):
        alone, fused, combined = (select(records, way, dataset=dataset, size=size) for way in _WAYS)
        lead = np.subtract(fused, alone).mean()
        areas = map(spread, (alone, fused, combined))
        rows.append([dataset, size, *areas, paired(fused, alone), yes(lead >= _LEAD), paired(combined, fused)])
    columns = ["set", "N'", "as it is", "fused", "fused, combined evidence", "fused - as it is (standard error)",
               f"ahead by {_LEAD}", "combined evidence - fused"]  # fmt: skip
    note = (
        "Area under the curve of coverage against accuracy, groups, expected over the member of the chosen group, if "
        "nobody may serve more than an even share of all items: the answer is the label, or is fused with the "
        "classifier, by a gate that learns from answers or from fused labels."
    )
    return markdown("A random member's answer under a workload bound", columns, rows, note)


def draw(records, plt):
    """Accuracy over answers per item, one picture for each number of labels by name."""
    records = [r for r in records if r["method"] != _BOUNDED]
    for size in names(records, "size"):
        datasets = names(records, "dataset", size=size)
        n_columns = min(5, len(datasets))
        n_rows = -(-len(datasets) // n_columns)
        shape = {"figsize": (3.2 * n_columns + 2, 2.9 * n_rows), "squeeze": False, "layout": "constrained"}
        figure, axes = plt.subplots(n_rows, n_columns, **shape)
        for ax in axes.flat[len(datasets) :]:
            ax.set_axis_off()
        for ax, dataset in zip(axes.flat, datasets, strict=False):
            for i, method in enumerate(names(records, "method", dataset=dataset, size=size)):
                ours = method == OURS
                style = (
                    {"color": "k", "lw": 2.2} if ours else {"color": f"C{i}", "lw": 1.2, "ls": "-" if i < 10 else "--"}
                )
                accuracy = _means(records, "accuracy", dataset, size, method)
                ax.plot(BUDGETS, accuracy, marker=".", label=method, **style)
            ax.set(title=dataset, xlabel="answers per item")
        axes[0, 0].set_ylabel("accuracy of the label")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
        yield f"answers-{size}.png", figure


_NOTE = (
    "On test items with at least one recorded answer; only recorded answers are asked for. Everybody's first answer "
    "comes before any second one, the items first of which the method is least sure. A method that runs out of people "
    "to ask stays where it is; the panel is read off between its achieved numbers of answers. Mean and sd over seeds."
)

ANSWERS = Experiment("Accuracy of the label by answers per item", cells, measure, report, draw)
