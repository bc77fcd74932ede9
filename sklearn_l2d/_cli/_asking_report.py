"""The sentences and the table of the story of answers."""

import numpy as np

from ._asking import BEST_MAJORITY, CONFIDENCE, PANEL, RANDOM_MAJORITY
from ._onboarding_report import table

_LEVEL = 0.005  # differences of accuracy that are called none


def tell_asking(asking):
    """What was asked, the accuracy by answers per item, and where a rival is as good or better."""
    alone, answers = asking.classifier_right.mean(), asking.answers[PANEL]
    yield (
        f"How many answers does an item need? A naive Bayes classifier and {asking.n_experts} experts label items "
        "together. The panel\nasks one person after the other, whoever is worth most, and joins all answers with the "
        f"classifier. It learnt from\n{asking.n_labelled:,} identified items whose truth is known. Accuracy on "
        f"{len(asking.classifier_right):,} items kept for tests:"
    )
    names = [PANEL, BEST_MAJORITY, RANDOM_MAJORITY, CONFIDENCE]
    rows = [["0.00", *[f"{alone:.3f}"] * len(names)]]
    for at, mean in enumerate(answers):
        rows.append([f"{mean:.2f}", *(_cell(asking, name, at) for name in names)])
    yield from table(["answers per item", *names], rows)
    yield (
        "Without answers the classifier decides. Majorities leave ties, and items that nobody is asked about, to the\n"
        "classifier; the best people are those who were right most often. ConfidenceDeferral takes one answer at "
        "most,\nand only from somebody who is likelier to be right than the classifier; in brackets where it asks for "
        "fewer."
    )
    yield from _verdict(asking)
    none, one, two, more = (f"{share:.0%}" for share in asking.one_answer)
    yield (
        f"With {answers[_at_one(asking)]:.2f} answers per item on average, the panel asks nobody about {none} of the "
        f"items, one person about {one},\ntwo about {two} and more about {more}."
    )


def _cell(asking, name, at):
    answers, accuracy = asking.answers[name][at], asking.right[name][at].mean()
    fewer = f" ({answers:.2f})" if answers < asking.answers[PANEL][at] - 0.005 else ""
    return f"{accuracy:.3f}{fewer}"


def _verdict(asking):
    """Every number of answers at which something simpler is better, or no worse."""
    panel, answers = asking.right[PANEL], asking.answers[PANEL]
    majorities = (BEST_MAJORITY, RANDOM_MAJORITY)
    rivals = {f"The {name}": asking.right[name] for name in majorities} | {CONFIDENCE: asking.right[CONFIDENCE]}
    rivals["The classifier alone"] = np.broadcast_to(asking.classifier_right, panel.shape)
    difference = np.array([panel.astype(float) - right for right in rivals.values()])  # rivals, budgets, items
    lead = difference.mean(2)
    for name, gap in zip(rivals, lead, strict=True):
        for words, where in (("better than", gap <= -_LEVEL), ("about as good as", abs(gap) < _LEVEL)):
            if where.any():
                much = f", by up to {-gap.min():.3f}" if words == "better than" else ""
                yield f"{name} is {words} the panel at {_listed(answers[where])} answers per item{much}."
    best, budgets = lead.argmin(0), np.arange(len(answers))
    least, ahead = lead[best, budgets], lead.min(0) >= _LEVEL
    if ahead.any():
        at = "every number of answers" if ahead.all() else f"{_listed(answers[ahead])} answers per item"
        yield f"The panel is better than all of them by {least[ahead].min():.3f} to {least[ahead].max():.3f} at {at}."
    chance = 2 * difference[best, budgets].std(1) / np.sqrt(difference.shape[2])
    yield f"A difference from the best of them below {chance.max():.3f} may be chance."
    one = _at_one(asking)
    needs = []
    for name in majorities:
        enough = np.flatnonzero(asking.right[name].mean(1) >= panel[one].mean())
        needs.append(f"a {name} {answers[enough[0]]:.2f}" if len(enough) else f"a {name} more than {answers[-1]:.2f}")
    yield f"What the panel reaches with {answers[one]:.2f} answers per item takes\n{' and '.join(needs)}."


def _listed(answers):
    return ", ".join(f"{mean:.2f}" for mean in answers)


def _at_one(asking):
    """Position of about one answer per item."""
    return int(np.abs(asking.answers[PANEL] - 1).argmin())
