"""Which deferrer when, as data: the picture of the page, and the lines with code beneath it, come from here.

`tests/test_documentation.py` makes every estimator that the lines name.
"""

from typing import NamedTuple


class Choice(NamedTuple):
    """A question, asked if those before it got a no; a yes leads to `take`."""

    question: str
    take: str
    why: str
    code: str


class Way(NamedTuple):
    """One of the two ways to use people, and its questions from the top."""

    title: str
    choices: tuple
    otherwise: Choice


JOINED = Way(
    "Answers may be joined",
    (
        Choice(
            "Must labels reach\nan accuracy?",
            "PanelDeferral\n(target_accuracy=…)",
            "Takes 100 to 500 items of known truth that several people answered.",
            "PanelDeferral(classifier, target_accuracy=0.95)",
        ),
        Choice(
            "Does an answer\nhave a price?",
            "PanelDeferral\n(consultation_cost=…)",
            "The price is in units of one error.",
            "PanelDeferral(classifier, consultation_cost=0.05)",
        ),
        Choice(
            "Many people, who serve\na small share each?",
            'ClusterDeferral\n(evidence="combined")',
            "Any member of a group may answer. Groups are chosen for what they add to the classifier, which gained .01 "
            "to .03 of area over the default under tight limits.",
            'ClusterDeferral(\n    classifier=classifier, evidence="combined", workload=(0, 0.02)\n)',
        ),
        Choice(
            "Room for a quarter of an\nanswer per item at most?",
            "ConfidenceDeferral",
            "The simple rule and the panel are even there.",
            "ConfidenceDeferral(classifier, coverage=0.8)",
        ),
    ),
    Choice(
        "otherwise:",
        "PanelDeferral\n(answers=…)",
        "The mean number of answers per item. ``team.consult(X)`` says whom to ask where all have to be asked at once.",
        "PanelDeferral(classifier, answers=1.0)",
    ),
)

ALONE = Way(
    "One person decides alone",
    (
        Choice(
            "Is there an archive of\nvotes without names?",
            "ClusterDeferral\n(FrozenEstimator(lda))",
            "Votes teach the behaviours, a few labels by name place the people, and newcomers can join even where the "
            "truth of their items is unknown. If neither matters to you, go on: with few labels the simple rule below "
            "is as good.",
            "ClusterDeferral(\n    FrozenEstimator(lda), classifier=classifier, coverage=0.5\n)",
        ),
        Choice(
            "Limits on the work of\nmany, or a changing team?",
            "ClusterDeferral\n(workload=…)",
            "Groups nearly keep a limit on new items, and the gate knows groups, not names. With a few people "
            "``ConfidenceDeferral(workload=...)`` is simpler.",
            "ClusterDeferral(\n    classifier=classifier, coverage=0.5, workload=(0, 0.1)\n)",
        ),
        Choice(
            "Fewer than 50 labels\nby name of each?",
            "ConfidenceDeferral",
            "Nothing is trained, and with few labels no gate is better where nothing limits the work.",
            "ConfidenceDeferral(classifier, coverage=0.5)",
        ),
        Choice(
            "Hundreds of labels, and the\nclassifier may be trained?",
            'OneStageDeferral\n("ova")',
            "Leads with hundreds of labels of a few people on simulated sets; with real people hardly. "
            "``RankedDeferral`` gives it a coverage.",
            'RankedDeferral(OneStageDeferral("ova"), coverage=0.5)',
        ),
        Choice(
            "Are most answers\nmissing?",
            "ProbabilisticDeferral",
            "What somebody would have answered is integrated out.",
            "ProbabilisticDeferral(classifier=classifier, coverage=0.5)",
        ),
    ),
    Choice(
        "otherwise:",
        "ConfidenceDeferral,\nthen compare",
        "It is the rule to beat: draw its curve beside that of any gate, on held-out items.",
        "ConfidenceDeferral(classifier, coverage=0.5)",
    ),
)
WAYS = (JOINED, ALONE)

WISHES = (
    Choice(
        "The classifier is in use and stays.",
        "any with `classifier`",
        "All but ``OneStageDeferral``, ``MixtureOfExpertsDeferral`` and ``PopulationDeferral`` take it.",
        "PanelDeferral(FrozenEstimator(classifier), answers=1.0)",
    ),
    Choice(
        "Classifier and deferral are to be trained together.",
        "OneStageDeferral, ProbabilisticDeferral",
        "``OneStageDeferral`` does nothing else.",
        "ProbabilisticDeferral(joint_classifier=True, coverage=0.5)",
    ),
    Choice(
        "Training had dozens of experts, and newcomers are like them.",
        "PopulationDeferral",
        "Leads on the features of CIFAR-10, and is far behind on three of four sets of real people.",
        "RankedDeferral(PopulationDeferral(), coverage=0.5)",
    ),
    Choice(
        "Newcomers bring five or ten labels each.",
        "PanelDeferral with behaviours, ProfileDeferral",
        "Behaviours of an archive place them best: .85 of the labels right against .80, with five labels of each and "
        "half an answer per item on the features of CIFAR-10. Without an archive take ``ProfileDeferral``, which needs "
        "no truth either.",
        "PanelDeferral(classifier, clusterer=FrozenEstimator(lda))",
    ),
    Choice(
        "One answer per item has to do, is joined, and work is bounded.",
        "ComplementDeferral",
        "Where nobody may serve more than an even share it leads on music_genre, .73 against .71 of area. Without a "
        "bound it is even with ``ConfidenceDeferral``, which trains nothing.",
        "ComplementDeferral(\n    classifier=classifier, coverage=0.5, workload=(0, 0.1)\n)",
    ),
    Choice(
        "A paper needs the published ways of asking several people.",
        "LECODUDeferral, TopKDeferral, ConformalDeferral",
        "On none of ten sets is one of them ahead of the panel by two standard errors of the area.",
        'TopKDeferral(classifier, gate_features="proba")',
    ),
    Choice(
        "There is one expert.",
        "ConfidenceDeferral, OneStageDeferral",
        "``ConfidenceDeferral`` with few labels, a net with many. This surrogate is for problems where some rule of "
        "the net makes no errors.",
        'OneStageDeferral(surrogate="realizable")',
    ),
    Choice(
        "Asking has a price, and no coverage is prescribed.",
        "any with `consultation_cost`",
        "See the table of capabilities.",
        "ConfidenceDeferral(\n    classifier, coverage=None, consultation_cost=0.05\n)",
    ),
    Choice(
        "The deferrer that you like cannot be asked for a coverage.",
        "RankedDeferral",
        "A threshold on its preference for the best person over the classifier.",
        "RankedDeferral(TwoStageDeferral(classifier), coverage=0.5)",
    ),
)


def render():
    """reStructuredText of the lines: what it is for at the left, code at the right, one above the other on a phone."""
    parts = {way.title: (*way.choices, way.otherwise) for way in WAYS} | {"Further wishes": WISHES}
    lines = []
    for title, choices in parts.items():
        lines += [title, "~" * len(title), "", ".. grid:: 1 1 2 2", "   :gutter: 2", ""]
        for choice in choices:
            question = choice.question.replace("\n", " ")
            lines += ["   .. grid-item::", "      :columns: 12 12 4 4", ""]
            lines += [f"      **{question[0].upper()}{question[1:]}** {choice.why}", ""]
            lines += ["   .. grid-item::", "      :columns: 12 12 8 8", "", "      .. code-block:: python", ""]
            lines += [*(f"         {line}" for line in choice.code.split("\n")), ""]
    return "\n".join(lines)
