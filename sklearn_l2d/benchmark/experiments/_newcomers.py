"""What a newcomer with a few labels is worth, by what each rule makes of the labels, with and without truth."""

import copy
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...deferral import ClusterDeferral, ConfidenceDeferral, ConformalDeferral, PanelDeferral, ProfileDeferral
from .._curves import fit
from .._plan import Experiment
from .._runner import Cell
from .._tables import markdown, mean, names, paired, select, spread
from .._worlds import SETS

SIZES = (5, 10, 25)
_SETS = ("digits, 100 experts", "cifar10, 100 experts", "music_genre", "cue_conflict")
_BY_NAME = 25  # labels by name of everybody on the roster
_ANSWERS = 0.5  # per item, where the team chooses whom to ask
_EACH = 5  # newcomers at most whose answers to an item are joined with the classifier, one at a time
_WITH, _WITHOUT = "with truth", "without truth"
OURS = "profiles"


class Rule(NamedTuple):
    """What is made of the labels of newcomers.

    Attributes
    ----------
    build : callable
        Returns an unfitted deferrer for a world; its `onboard` is the rule.
    needs_truth : bool
        Whether `onboard` takes no labels without truth: the classifier's labels then stand for it.
    """

    build: Callable
    needs_truth: bool = False


def _panel(world):
    return PanelDeferral(
        world.classifier, max_answers=1, answers=_ANSWERS, clusterer=world.behaviours(2), random_state=world.seed
    )


def _groups(world):
    return ClusterDeferral(
        world.behaviours(2), classifier=world.classifier, n_groups=8, coverage=1 - _ANSWERS, random_state=world.seed
    )


def _profiles(world, n_groups=None):
    return ProfileDeferral(world.classifier, n_groups=n_groups, random_state=world.seed)


def _conformal(world):
    return ConformalDeferral(world.classifier, clusterer=world.behaviours(2), random_state=world.seed)


def _accuracy(world):
    return ConfidenceDeferral(world.classifier, coverage=1 - _ANSWERS, random_state=world.seed)


RULES = {  # another rule joins by one entry
    "memberships": Rule(_panel),
    "memberships, groups": Rule(_groups),
    OURS: Rule(_profiles),
    "conformal": Rule(_conformal),
    "shrunken accuracy": Rule(_accuracy, needs_truth=True),
    "nobody is told apart": Rule(lambda world: _profiles(world, n_groups=1)),
}


class Meeting(NamedTuple):
    """Half of the people of a world are on the roster; the others come with labels for half of the test items.

    Attributes
    ----------
    world : World
    team : dict
        Arguments of `fit`, by the roster.
    newcomers : ndarray of int
        Columns of the annotations, in a random order.
    met, test : ndarrays of int
        Rows that newcomers may bring labels for, and on which they are tested.
    """

    world: object
    team: dict
    newcomers: np.ndarray
    met: np.ndarray
    test: np.ndarray

    @classmethod
    def of(cls, world, same_items):
        """Meeting of a world, by its seed."""
        rng = np.random.default_rng(world.seed)
        newcomers = rng.permutation(world.n_experts)[: world.n_experts // 2]  # or the abler would come first in ties
        labels = world.identified(_BY_NAME, same_items)
        labels[:, newcomers] = -1
        team = world.labelled(labels)
        team["annotations"] = np.delete(team["annotations"], newcomers, axis=1)
        met, test = np.array_split(rng.permutation(world.test), 2)
        return cls(world, team, newcomers, met, test[(world.annotations[test][:, newcomers] >= 0).any(1)])

    def labels(self, size):
        """Annotations of the items that are met: the first `size` of each newcomer, or all, and -1 elsewhere."""
        annotations = self.world.annotations[self.met][:, self.newcomers]
        place = np.cumsum(annotations >= 0, axis=0)
        return np.where(place <= size, annotations, -1)


def cells(plan):
    """All rules, with and without truth, at every number of labels."""
    return [
        Cell("newcomers", dataset, size, seed, f"{rule}, {truth}")
        for dataset in (_SETS[:1] if plan.quick else _SETS)
        if dataset in plan.sets
        for seed in plan.seeds
        for size in SIZES
        for rule in RULES
        for truth in (_WITH, _WITHOUT)
    ]


def measure(cells):
    """Accuracies after newcomers have joined and everybody else has left; each rule is fitted once."""
    dataset = SETS[cells[0].dataset]
    meeting, teams = Meeting.of(dataset.build(cells[0].seed), dataset.same_items), {}
    for cell in cells:
        name, _, truth = cell.method.rpartition(", ")
        if name not in teams:
            teams[name] = RULES[name].build(meeting.world)
            fit(teams[name], meeting.team)
        yield _judge(meeting, _joined(meeting, teams[name], cell.size, truth == _WITH, RULES[name].needs_truth))


def _joined(meeting, team, size, knows_truth, needs_truth):
    """Copy of a team that consists of the newcomers only."""
    world, labels = meeting.world, meeting.labels(size)
    heard = (labels >= 0).any(1)
    X, y = world.X[meeting.met[heard]], world.y[meeting.met[heard]]
    if not knows_truth:
        y = team.predict(X) if needs_truth else None
    there = list(team.experts_)
    return copy.copy(team).onboard([f"new{m}" for m in meeting.newcomers], X, labels[heard], y).offboard(there)


def _judge(meeting, team):
    """Accuracies of the classifier, with one answer by anybody, and with half an answer where it is asked for."""
    world = meeting.world
    X, y = world.X[meeting.test], world.y[meeting.test]
    annotations = world.annotations[meeting.test][:, meeting.newcomers]
    row, who = _some_answers(annotations, world.seed)
    one = np.full((len(row), annotations.shape[1]), -1)
    one[np.arange(len(row)), who] = annotations[row, who]
    share = 1 / np.bincount(row)[row]
    given = team.predict_team(X[row], one, decision="combine") == y[row]
    chosen = _chosen(team, X, annotations)
    return {
        "classifier": float((team.predict(X) == y).mean()),
        "anybody": float(np.average(given, weights=share)),
        "chosen": float((chosen == y).mean()),
    }


def _some_answers(annotations, seed):
    """Items and people of a few answers to every item."""
    chance = np.where(annotations >= 0, np.random.default_rng(seed).random(annotations.shape), np.inf)
    first = np.sort(chance, axis=1)[:, min(_EACH, chance.shape[1]) - 1]
    return np.nonzero((chance <= first[:, None]) & np.isfinite(chance))


def _chosen(team, X, annotations):
    """Labels where half of the items get an answer of whom the team chooses, joined with the classifier."""
    there = annotations >= 0
    if hasattr(team, "answers_path"):
        (team,) = team.answers_path([_ANSWERS], X_unlabeled=X, available=there)
        return team.replay(X, annotations).labels
    (team,) = team.coverage_path([1 - _ANSWERS], X_unlabeled=X)
    asked = team.assign_experts(X, available=there)[:, None] == np.arange(annotations.shape[1])
    return team.predict_team(X, np.where(asked, annotations, -1), decision="combine")


_FIGURES = {"anybody": "anybody's answer", "chosen": "half of the items"}
_NOTE = (
    "Half of the people are on the roster, with 25 labels by name each. The others come with 5, 10 or 25 labels for "
    "items that are not seen again, with or without truth, and the roster leaves. Anybody's answer: accuracy of the "
    "label by the classifier and the answer of a random newcomer. Half of the items: the team chooses half an answer "
    "per item. Where a rule needs truth and there is none, the labels of the classifier stand for it. Mean and sd over "
    "seeds."
)


def report(records):
    """Accuracies by set, and what profiles gain over each other rule."""
    parts = [f"{_NOTE}\n"]
    sizes = names(records, "size")
    columns = ["rule", *(f"{title}, {n}" for title in _FIGURES.values() for n in sizes)]
    for dataset in names(records, "dataset"):
        rows = [
            [
                method,
                *(
                    spread(select(records, figure, dataset=dataset, size=n, method=method))
                    for figure in _FIGURES
                    for n in sizes
                ),
            ]
            for method in names(records, "method")
        ]
        alone = f"Classifier alone: {mean(records, 'classifier', dataset=dataset):.3f}."
        parts.append(markdown(f"Newcomers with few labels, {dataset}", columns, rows, alone))
    parts.append(_leads(records))
    return "\n".join(parts)


def _leads(records):
    """Profiles minus the other rules on the same seeds."""
    rows, sizes = [], names(records, "size")
    for dataset in names(records, "dataset"):
        for method in names(records, "method"):
            rule, _, truth = method.rpartition(", ")
            if rule == OURS:
                continue
            row = [dataset, method]
            for figure in _FIGURES:
                for n in sizes:
                    both = (
                        select(records, figure, dataset=dataset, size=n, method=m) for m in (f"{OURS}, {truth}", method)
                    )
                    row.append(paired(*both))
            rows.append(row)
    columns = ["set", "rule", *(f"{title}, {n}" for title in _FIGURES.values() for n in sizes)]
    note = "Difference of the same seeds (standard error)."
    return markdown("Profiles minus other rules", columns, rows, note)


NEWCOMERS = Experiment("Newcomers with 5, 10, 25 labels, with and without truth", cells, measure, report)
