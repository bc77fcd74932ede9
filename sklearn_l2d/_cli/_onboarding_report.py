"""The sentences and tables of the story; nothing is computed here that is not a comparison of given numbers."""

import numpy as np

from ._onboarding import NEEDS_TRUTH, rank_correlation

_LONGEST = 30  # rows of a table of experts; longer rosters show both ends
_NOTICEABLE = {"groups": 0.05, "ability": 0.02}  # differences that count


def tell_crowd(crowd):
    """What is given."""
    votes = crowd.counts.sum()
    yield f"Data: {crowd.title}."
    yield (
        f"Archive: {len(crowd.X):,} items with {crowd.X.shape[1]} features and {votes:,.0f} votes for "
        f"{len(crowd.classes)} classes, {votes / len(crowd.X):.1f} per item. Nobody knows who voted."
    )
    if crowd.annotations is not None:
        sizes = (crowd.annotations >= 0).sum(0)
        yield (
            f"Roster: {len(crowd.experts)} experts, each known from {_span(sizes)} labels on "
            f"{len(crowd.annotations):,} other items."
        )


def tell_behaviours(rows):
    """What each behaviour is like."""
    yield "Behaviours found in the archive, from the one that agrees most with the crowd to the one that dissents:"
    for k, row in enumerate(rows):
        truth = "" if row["truth"] is None else f", to the true class {row['truth']:.2f}"
        yield (
            f"  {k}: {row['share']:.0%} of the votes; gives the majority's answer a probability of "
            f"{row['majority']:.2f}{truth}"
        )
        slips = ", ".join(f"{j} for {i} ({share:.2f})" for i, j, share in row["slips"] if share >= 0.01)
        if slips:
            yield f"     commonest answers against the majority: {slips}"


def tell_sizes(perplexities, n_classes, chosen):
    """How many behaviours the votes ask for."""
    yield f"Perplexity of held-out votes by number of behaviours (1 is perfect, {n_classes} is guessing):"
    yield from table(["behaviours", "perplexity"], [[str(k), f"{value:.4f}"] for k, value in perplexities.items()])
    best = min(perplexities, key=perplexities.get)
    gain = 1 - perplexities[best] / perplexities[min(perplexities)]
    yield f"{_behaviours(best)} predict{'s' if best == 1 else ''} the votes best" + (
        f", {gain:.1%} better than 1." if best > 1 else ": the archive alone asks for no more."
    )
    yield f"What {_behaviours(chosen)} look{'s' if chosen == 1 else ''} like comes next (--clusters sets the number)."


def tell_roster(roster):
    """The table of experts."""
    n_experts, n_clusters = roster.membership.shape
    header = ["expert", "labels", *(f"behaviour {k}" for k in range(n_clusters)), "cluster", "| one net", "majority"]
    known = np.isfinite(roster.accuracy).any()
    order = np.arange(n_experts)
    if n_experts > _LONGEST:
        order = np.argsort(-roster.position, kind="stable")
    rows = [
        [
            str(roster.experts[m]),
            str(roster.n_labels[m]),
            *(f"{w:.2f} ± {s:.2f}" for w, s in zip(roster.membership[m], roster.std[m], strict=True)),
            str(roster.membership[m].argmax()),
            *(_number(score[m]) for score in (roster.one_net, roster.majority, *([roster.accuracy] if known else []))),
        ]
        for m in order
    ]
    if n_experts > _LONGEST:
        half = _LONGEST // 2
        rows = [*rows[:half], ["..."] * len(rows[0]), *rows[-half:]]
    yield "Membership of each expert (± standard deviation), and beside it what is simpler to compute:"
    yield from table([*header, *(["accuracy"] if known else [])], rows)
    yield (
        "  one net: mean probability that one classifier of the votes gives to the expert's labels;\n"
        "  majority: agreement with most of the other experts, where they labelled the same item"
        + (";\n  accuracy: share of these labels that are right." if known else ".")
    )


def tell_verdicts(crowd, verdicts):
    """Memberships and rivals against what is truly known."""
    for measure, found in verdicts.items():
        if measure == "groups":
            yield f"Experts who {crowd.groups_are}, found again by k-means (adjusted Rand index, 1 is perfect):"
        else:
            yield "Rank correlation with the true accuracy of the experts on other items:"
        yield from (f"  {value:6.2f}  {name}" for name, value in found.items())
        yield "  " + _verdict(found, _NOTICEABLE[measure])


def tell_without_truth(roster):
    """What can be said where nothing is truly known."""
    correlation = rank_correlation(roster.position, roster.one_net)
    if np.isnan(correlation):
        return
    yield f"Rank correlation of membership with agreement with one net: {correlation:.2f}."
    if correlation > 0.95:
        yield "Both order the experts in the same way; if an order is all you need, the simpler one will do."
    else:
        gap = _ranks(roster.position) - _ranks(roster.one_net)
        names = [str(roster.experts[m]) for m in np.argsort(-np.abs(gap), kind="stable")[:3]]
        yield f"They disagree most about {', '.join(names)}: read some of their labels before you decide."


def tell_ends(roster):
    """Who is at either end."""
    top, bottom = np.argmax(roster.position), np.argmin(roster.position)
    last = roster.membership.shape[1] - 1
    yield (
        f"{roster.experts[top]} answers most like behaviour 0, {roster.experts[bottom]} most like behaviour {last}.\n"
        f"A difference between two experts below about {2 * np.sqrt(2) * np.median(roster.std):.2f} may be chance."
    )


def table(header, rows):
    """Lines of a table with aligned columns, the first one to the left."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, ["-" * width for width in widths], *rows):
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield "  " + "  ".join([first.strip().ljust(widths[0]), *rest])


def _verdict(found, noticeable):
    """What the numbers of one measure say, and apart from it what true classes would add."""
    rivals = {name: value for name, value in found.items() if name.startswith("agreement") and np.isfinite(value)}
    if np.isnan(found["membership"]) or not rivals:
        return "There is nothing to compare."
    best = max(rivals, key=rivals.get)
    comparison = _compare(found["membership"], rivals[best], noticeable)
    verdict = {
        "more": f"Membership does better than either agreement; the nearer one is {best}.",
        "same": f"{best.capitalize()} does as well: here the simpler score is enough.",
        "less": f"{best.capitalize()} does better: here the simpler score is to be preferred.",
    }[comparison]
    if np.isfinite(found.get(NEEDS_TRUTH, np.nan)):
        comparison = _compare(found["membership"], found[NEEDS_TRUTH], noticeable)
        truth = {"more": "worse than membership", "same": "as well as membership", "less": "better than membership"}
        verdict += f"\n  {NEEDS_TRUTH.capitalize()}, which needs the true classes, does {truth[comparison]}."
    return verdict


def _compare(value, other, noticeable):
    return "more" if value > other + noticeable else "same" if value >= other - noticeable else "less"


def _ranks(values):
    return np.argsort(np.argsort(values))


def _number(value):
    return "-" if np.isnan(value) else f"{value:.2f}"


def _span(sizes):
    low, high = sizes.min(), sizes.max()
    return f"{low}" if low == high else f"{low} to {high}"


def _behaviours(n):
    return f"{n} behaviour{'' if n == 1 else 's'}"
