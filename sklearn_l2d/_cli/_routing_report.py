"""The sentences and tables of the routing story."""

import numpy as np

from ._onboarding_report import table

_NEARLY_ALL = 0.95  # of the items, of somebody who might decide all of them


def tell_team(team):
    """Who learns to decide, and from what."""
    gate = team.gate
    yield (
        f"Who should decide? A naive Bayes classifier, or one of {gate.n_experts_} experts, in groups of people who "
        "are right in the same\nplaces. Classifier and gate learn from the identified items whose truth is known; "
        f"then the gate is set so that\nthe classifier decides {gate.coverage:.0%} of the archive. "
        f"{team.experts[-1]} is not met yet, and joins later."
    )
    for name, share, members in zip(gate.targets_, gate.target_shares_, _members(team), strict=False):
        yield f"  {name} decides {share:.0%}: {_shorten(members)}"


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
        ["the team: the gate says who", found["team"]],
    ]
    yield f"Accuracy on {len(team.y):,} items kept for tests:"
    yield from table(["who decides", "accuracy"], [[name, "-" if np.isnan(v) else f"{v:.3f}"] for name, v in rows])
    yield f"The classifier decides {verdict.coverage:.0%} of these items; requested were {team.gate.coverage:.0%}."
    alone = max(found["classifier"], found["random expert"])
    rule = max(verdict.rivals, key=verdict.rivals.get)
    yield (
        f"The team is {_compare(found['team'] - alone)} classifier or random expert alone, whichever is better, and\n"
        f"{_compare(found['team'] - verdict.rivals[rule])} the best simple rule, {rule}.\n"
        f"Differences below {np.sqrt(1 / len(team.y)):.2f} may be chance."
    )


def tell_advice(verdict, advice):
    """Whether the classifier decides too much or too little, and what to request instead; nothing where all is well."""
    for (n, classifier, people), much, items in (
        (advice.kept, 1, "the items that it decides"),
        (advice.asked, -1, "the items that people are asked about"),
    ):
        if n == 0 or much * (people - classifier) < np.sqrt(1 / n):
            continue
        best = int(advice.accuracy.argmax())
        requested, accuracy = advice.requested[best], advice.accuracy[best]
        yield (
            f"The classifier decides too {'much' if much > 0 else 'little'}: on {items} it is right on "
            f"{classifier:.3f},\nand the people whom the gate would ask on {people:.3f}."
        )
        if accuracy > verdict.accuracy["team"]:
            yield (
                f"Of the coverages {advice.requested[0]:.1f} to {advice.requested[-1]:.1f}, {requested:.1f} was best "
                f"on these items, with {accuracy:.3f}: request it by --coverage {requested:.1f},\n"
                "and judge it on other items."
            )
        alone = {"the classifier alone": verdict.accuracy["classifier"]}
        if verdict.best_answered >= _NEARLY_ALL:
            alone[f"{verdict.best_expert} alone"] = verdict.accuracy["best expert"]
        simple = max(alone, key=alone.get)
        if alone[simple] > accuracy:
            yield f"No coverage is as good as {simple}, which reaches {alone[simple]:.3f}."


def tell_workload(team, verdict):
    """Who does the work."""
    order = np.argsort(-verdict.workload, kind="stable")[:5]
    served = ", ".join(
        f"{team.experts[int(team.gate.experts_[m])]} {verdict.workload[m]:.0%}"
        for m in order
        if verdict.workload[m] >= 0.005
    )
    yield f"Most of the work: {served or 'the classifier'}.\nClusterDeferral(workload=...) bounds what each one serves."


def tell_change(change):
    """One leaves, one joins."""
    before, left, joined = change.accuracy
    yield (
        f"{change.leaver} leaves, who served {change.served:.0%}: the accuracy goes from {before:.3f} to {left:.3f}.\n"
        f"{change.newcomer} joins with {change.n_labels} labels: {joined:.3f}. Nothing is trained again; the "
        f"classifier decides {change.coverage[1]:.0%}, then {change.coverage[2]:.0%}."
    )


def _members(team):
    belongs = team.gate.omega_.argmax(1)
    return [
        [team.experts[int(name)] for name in team.gate.experts_[belongs == k]] for k in range(len(team.gate.targets_))
    ]


def _shorten(names):
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _compare(gap):
    return "about as good as" if abs(gap) < 0.005 else f"{abs(gap):.3f} {'better' if gap > 0 else 'worse'} than"
