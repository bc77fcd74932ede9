"""The steps of the routing story: who decides, what rivals reach, what to request, who leaves and who joins."""

import copy
from dataclasses import dataclass

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from ..deferral import ClusterDeferral, ConfidenceDeferral
from ..metrics import team_accuracy, workload_distribution

MIN_EXPERTS = 3  # somebody has to stay when one leaves and another has not yet joined
N_NEWCOMER = 25  # labels from which the newcomer is placed
_PRIOR = 5.0  # labels of average quality, lest the best expert be somebody who was right once
_COVERAGES = np.arange(1, 10) / 10
_RANDOM_RULE, _BEST_RULE = "least sure items to a random expert", "least sure items to the best who answered"


@dataclass
class Team:
    """A fitted gate, the rule without training that it is compared with, and the items on which both are judged.

    The experts of the gate are named by their columns; the last one is the newcomer, whom it has not met.
    """

    gate: ClusterDeferral
    rule: ConfidenceDeferral
    experts: list
    ability: np.ndarray
    X_archive: np.ndarray
    newcomer: tuple
    X: np.ndarray
    codes: np.ndarray
    y: np.ndarray

    def answers(self, gate):
        """Test labels of the roster of a gate."""
        return self.codes[:, gate.experts_.astype(int)]

    def accuracy(self, gate):
        """Team accuracy of a gate on the test items."""
        return gate.score(self.X, self.y, annotations=self.answers(gate))

    def coverage(self, gate):
        """Share of the test items that the classifier decides."""
        return float(np.mean(gate.predict_deferral(self.X) < 0))


@dataclass
class Verdict:
    """Accuracies on the test items by who decides, and who did how much of the work.

    Attributes
    ----------
    accuracy : dict of str to float
        "classifier", "random expert", "best expert" and "team".
    rivals : dict of str to float
        At the coverage of the team.
    best_expert, best_answered : str, float
        Who is best on the identified items, and the share of the test items that this expert answered.
    coverage : float
        Of the team, achieved on the test items.
    workload : ndarray of shape (n_experts,)
        Shares of the test items.
    rival_curves : dict of str to dict
        Arguments of `CoverageAccuracyDisplay.from_predictions` for the rules that take the least sure items.
    """

    accuracy: dict
    rivals: dict
    best_expert: str
    best_answered: float
    coverage: float
    workload: np.ndarray
    rival_curves: dict


@dataclass
class Advice:
    """What another coverage would give, and who is right where now.

    Attributes
    ----------
    kept, asked : tuple of (int, float, float)
        Of the items that the classifier decides, and of the others: how many there are, and how often the classifier
        and the people whom the gate prefers would be right on them.
    requested, accuracy : ndarray of shape (n_coverages,)
        Coverages, and the accuracy of the team when each is requested.
    """

    kept: tuple
    asked: tuple
    requested: np.ndarray
    accuracy: np.ndarray


@dataclass
class Change:
    """What became of the team when one expert left and another joined."""

    leaver: str
    newcomer: str
    n_labels: int
    served: float
    accuracy: tuple
    coverage: tuple


def can_route(crowd):
    """Whether there is a truth to learn routing from, and enough experts."""
    return crowd.X_test is not None and len(with_truth(crowd)[1]) >= MIN_EXPERTS


def measure_ability(codes, y):
    """How often each expert is right on items of known truth, drawn towards the mean of all."""
    answered, right = codes >= 0, codes == y[:, None]
    mean = right.sum() / answered.sum()
    return (right.sum(0) + _PRIOR * mean) / (answered.sum(0) + _PRIOR)


def form_team(behaviours, crowd, settings, coverage):
    """Fit a gate to the identified items whose truth is known, with all experts but one."""
    rows, active = with_truth(crowd)
    codes, y = crowd.annotations[np.ix_(rows, active)], crowd.y_identified[rows]
    ability = measure_ability(codes, y)
    second = np.argsort(-ability, kind="stable")[1]  # somebody who is worth taking in
    order = np.append(np.delete(np.arange(len(active)), second), second)
    codes, active, ability = codes[:, order], active[order], ability[order]

    groups = crowd.sources_of(rows)
    X, X_archive = behaviours.scaler.transform(crowd.X_identified[rows]), behaviours.scaler.transform(crowd.X)
    classifier = GaussianNB(var_smoothing=0.1)  # at once, on any number of items and features
    gate = ClusterDeferral(
        FrozenEstimator(behaviours.lda),
        classifier=classifier,
        coverage=coverage,
        max_epochs=2 * settings.epochs,
        verbose=2 if settings.progress else 0,
        random_state=settings.seed,
    )
    rule = ConfidenceDeferral(classifier, coverage=coverage, random_state=settings.seed)
    for deferrer in (gate, rule):
        deferrer.fit(X, y, annotations=codes[:, :-1], X_unlabeled=X_archive, groups=groups)

    known = np.flatnonzero(codes[:, -1] >= 0)[:N_NEWCOMER]
    test = (crowd.annotations_test[:, active] >= 0).any(1)
    return Team(
        gate,
        rule,
        experts=[crowd.experts[m] for m in active],
        ability=ability,
        X_archive=X_archive,
        newcomer=(X[known], codes[known, -1:], y[known]),
        X=behaviours.scaler.transform(crowd.X_test[test]),
        codes=crowd.annotations_test[np.ix_(test, active)],
        y=crowd.y_test[test],
    )


def judge_team(team):
    """Measure the team, its members alone, and simpler rules for whom to ask."""
    gate, codes = team.gate, team.answers(team.gate)
    labels, n_experts = gate.predict(team.X), codes.shape[1]
    right = labels == team.y

    def decided_by(asked, who):
        """Accuracy where some items go to experts of these weights, and the others to the classifier."""
        return team_accuracy(team.y, np.where(asked, 0, -1), labels, codes, who[None], missing_label=-1)

    everybody, everywhere = np.ones(n_experts), np.ones(len(right), dtype=bool)
    best = int(team.ability[:-1].argmax())
    answered = codes[:, best] >= 0
    unsure = np.argsort(gate.predict_proba(team.X).max(1), kind="stable")
    there = _best_who_answered(codes, team.ability[:-1])

    def least_sure(coverage):
        asked = np.zeros(len(right), dtype=bool)
        asked[unsure[: len(right) - round(coverage * len(right))]] = True
        return asked

    coverage = team.coverage(gate)
    people = decided_by(everywhere, everybody)
    rules = {
        _RANDOM_RULE: lambda c: decided_by(least_sure(c), everybody),
        _BEST_RULE: lambda c: float(np.mean(np.where(least_sure(c) & (there >= 0), there == team.y, right))),
    }
    return Verdict(
        accuracy={
            "classifier": float(right.mean()),
            "random expert": people,
            "best expert": float((codes[answered, best] == team.y[answered]).mean()) if answered.any() else np.nan,
            "team": team.accuracy(gate),
        },
        rivals={
            "random items to a random expert": coverage * right.mean() + (1 - coverage) * people,
            **{name: rule(coverage) for name, rule in rules.items()},
            "ConfidenceDeferral": team.accuracy(team.rule),
        },
        best_expert=team.experts[best],
        best_answered=float(answered.mean()),
        coverage=coverage,
        workload=workload_distribution(gate.predict_deferral(team.X), gate.selection_, codes, missing_label=-1)[:-1],
        rival_curves={
            name: {
                "coverage": _COVERAGES,
                "accuracy": [rule(c) for c in _COVERAGES],
                "human_accuracy": rule(0.0),
                "classifier_accuracy": right.mean(),
            }
            for name, rule in rules.items()
        },
    )


def _best_who_answered(codes, ability):
    """Answers of the ablest expert who gave one to each item, -1 where nobody did."""
    order = np.argsort(-ability, kind="stable")
    first = (codes[:, order] >= 0).argmax(1)
    return codes[np.arange(len(codes)), order[first]]


def consider_coverages(team):
    """Compare the classifier with people on the items of each, and try other coverages; nothing is trained."""
    gate, codes = team.gate, team.answers(team.gate)
    labels, keeps = gate.predict(team.X), gate.predict_deferral(team.X) < 0
    preferred = gate.decision_function(team.X)[:, :-1].argmax(1)

    def right_on(where):
        if not where.any():
            return 0, np.nan, np.nan
        found = team.y[where], preferred[where], labels[where], codes[where]
        people = team_accuracy(*found, gate.selection_, missing_label=-1)
        return int(where.sum()), float(np.mean(labels[where] == team.y[where])), people

    path = gate.coverage_path(_COVERAGES, team.X_archive)
    accuracy = np.array([team.accuracy(moved) for moved in path])
    return Advice(right_on(keeps), right_on(~keeps), _COVERAGES, accuracy)


def change_roster(team, verdict):
    """Let the busiest expert leave, then take the newcomer in; the gate is not trained again."""
    before, gate = team.gate, copy.copy(team.gate)
    busiest = int(verdict.workload.argmax())
    steps = [before]
    gate.offboard(before.experts_[busiest]).recalibrate(team.X_archive)
    steps.append(copy.copy(gate))
    X, answers, y = team.newcomer
    gate.onboard(len(team.experts) - 1, X, answers, y).recalibrate(team.X_archive)
    steps.append(gate)
    return Change(
        leaver=team.experts[busiest],
        newcomer=team.experts[-1],
        n_labels=len(y),
        served=float(verdict.workload[busiest]),
        accuracy=tuple(team.accuracy(step) for step in steps),
        coverage=tuple(team.coverage(step) for step in steps),
    )


def with_truth(crowd):
    """Identified rows whose truth is known, and the experts who labelled some of them and of the test rows."""
    rows = np.flatnonzero((crowd.y_identified >= 0) & (crowd.annotations >= 0).any(1))
    return rows, np.flatnonzero((crowd.annotations[rows] >= 0).any(0))
