"""The sentences and tables of the routing story."""

import numpy as np

from ._report import table


def tell_team(team):
    """Who learns to decide, and from what."""
    X, y = team.newcomer[0], team.y
    yield (
        f"Who should decide? The classifier, or one of {team.gate.n_experts_} experts in "
        f"{len(team.gate.targets_)} groups of people who are right in the same places. Classifier and gate learn from "
        "the identified items\nwhose truth is known; the gate is set so that the classifier decides "
        f"{team.gate.coverage:.0%} of the archive. {team.experts[-1]} waits to join, known from {len(X)} labels."
    )
    yield from table(
        ["group", "experts", "share", "members"],
        [
            [str(name), str(len(members)), f"{share:.0%}", _shorten(members)]
            for name, share, members in zip(team.gate.targets_, team.gate.target_shares_, _members(team), strict=False)
        ],
    )
    yield f"On {len(y):,} other items:"


def tell_verdict(team, verdict):
    """Team, its members alone, and the rivals."""
    found = verdict.accuracy
    best = f"best expert, {verdict.best_expert}"
    if verdict.best_answered < 1:
        best += f" (answered {verdict.best_answered:.0%})"
    rows = [
        ["classifier alone", found["classifier"]],
        ["random expert alone", found["random expert"]],
        [best, found["best expert"]],
        *verdict.rivals.items(),
        ["team: the gate decides who decides", found["team"]],
    ]
    yield from table(["who decides", "accuracy"], [[name, "-" if np.isnan(v) else f"{v:.3f}"] for name, v in rows])
    yield f"The classifier decides {verdict.coverage:.0%} of these items; requested were {team.gate.coverage:.0%}."
    noise = 2 * np.sqrt(0.25 / len(team.y))
    best_rival = max(verdict.rivals, key=verdict.rivals.get)
    gap = found["team"] - verdict.rivals[best_rival]
    yield f"{_compare(gap)} the best of the simple rules, {best_rival} ({gap:+.3f}); below {noise:.2f} may be chance."


def tell_workload(team, verdict):
    """Who does the work."""
    order = np.argsort(-verdict.workload, kind="stable")[:5]
    served = ", ".join(
        f"{team.experts[int(team.gate.experts_[m])]} {verdict.workload[m]:.0%}"
        for m in order
        if verdict.workload[m] >= 0.005
    )
    yield f"Most of the work: {served or 'the classifier'}. ClusterDeferral(workload=...) bounds what each one serves."


def tell_change(change):
    """One leaves, one joins."""
    before, left, joined = change.accuracy
    yield (
        f"{change.leaver} leaves, who would have served {change.served:.0%}: the team falls to {left:.3f} from "
        f"{before:.3f}"
        if left < before
        else f"{change.leaver} leaves, who would have served {change.served:.0%}: the team has {left:.3f} after "
        f"{before:.3f}"
    )
    yield (
        f"{change.newcomer} joins with {change.n_labels} labels: {joined:.3f}. Nothing was trained again; the "
        f"classifier decides {change.coverage[1]:.0%}, then {change.coverage[2]:.0%}."
    )


def _members(team):
    belongs = team.gate.omega_.argmax(1)
    return [
        [team.experts[int(name)] for name in team.gate.experts_[belongs == k]] for k in range(len(team.gate.targets_))
    ]


def _shorten(names):
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")


def _compare(gap):
    if abs(gap) < 0.005:
        return "The team does as well as"
    return "The team does better than" if gap > 0 else "The team does worse than"
