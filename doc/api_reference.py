"""The public API as data: one section per public module, from which the reference pages are generated.

`tests/test_public_api.py` compares this list with what the modules export.
"""

API_REFERENCE = [
    {
        "module": "sklearn_l2d.cluster",
        "title": "Who behaves alike",
        "summary": "Learn a few annotation behaviours from anonymous counts and place known experts on them.",
        "names": [
            "AgreementClustering",
            "AnnotatorLDA",
            "BetaExpertEncoder",
            "FuzzyCMeans",
            "PopulationExpertEncoder",
        ],
    },
    {
        "module": "sklearn_l2d.deferral",
        "title": "Who should decide",
        "summary": "Route every item to the classifier or to a group of experts, under workload limits.",
        "names": [
            "BestExpert",
            "ClassifierOnly",
            "ClusterDeferral",
            "ConfidenceDeferral",
            "ExpertAgnosticDeferral",
            "MixtureOfExpertsDeferral",
            "OneStageDeferral",
            "PanelDeferral",
            "PopulationDeferral",
            "ProbabilisticDeferral",
            "RandomExpertDeferral",
            "RankedDeferral",
            "SemiSupervisedDeferral",
            "Shift",
            "TwoStageDeferral",
        ],
    },
    {
        "module": "sklearn_l2d.aggregation",
        "title": "What is true",
        "summary": "Consensus labels and the reliability of annotators, from votes alone.",
        "names": [
            "DawidSkene",
            "MajorityVote",
        ],
    },
    {
        "module": "sklearn_l2d.crowd",
        "title": "Classifiers learnt from labels and votes",
        "summary": "The classifier that deferrers train where none is given.",
        "names": ["CCEMClassifier", "CountsClassifier", "NetClassifier"],
    },
    {
        "module": "sklearn_l2d.annotations",
        "title": "Annotation tables",
        "summary": "Move between wide and long tables, counts and exports of labelling tools; what counts as missing.",
        "names": [
            "AnnotatedTarget",
            "EncodedAnnotations",
            "Votes",
            "anonymize",
            "encode_annotations",
            "encode_counts",
            "encode_votes",
            "from_argilla",
            "from_doccano",
            "from_label_studio",
            "from_long",
            "from_mturk",
            "from_prodigy",
            "from_zooniverse",
            "split_target",
            "to_counts",
            "to_label_studio",
            "to_long",
        ],
    },
    {
        "module": "sklearn_l2d.datasets",
        "title": "Data sets and simulated experts",
        "summary": "An embedded crowd, generators of experts with known behaviour, readers of real crowds.",
        "names": [
            "list_crowds",
            "load_crowd",
            "load_digits_crowd",
            "make_class_experts",
            "make_expert_groups",
            "make_expert_pairs",
            "make_specialists",
            "make_superclass_experts",
            "sample_identified",
            "simulate_annotations",
        ],
    },
    {
        "module": "sklearn_l2d.metrics",
        "title": "Metrics",
        "summary": "How well annotations are predicted, how different experts are, what a team of both achieves.",
        "names": [
            "annotation_perplexity",
            "answers_accuracy_curve",
            "consensus_agreement",
            "coverage_accuracy_auc",
            "coverage_accuracy_curve",
            "coverage_accuracy_points",
            "deferral_report",
            "krippendorff_alpha",
            "membership_dissimilarity",
            "pairwise_agreement",
            "team_accuracy",
            "team_report",
            "workload_distribution",
        ],
    },
    {
        "module": "sklearn_l2d.model_selection",
        "title": "Model selection",
        "summary": "Choose the number of behaviours, and judge teams in searches and cross-validation.",
        "names": ["lowest_perplexity", "make_team_scorer", "perplexity_curve", "rate_of_perplexity_change"],
    },
    {
        "module": "sklearn_l2d.persistence",
        "title": "Files",
        "summary": "Save fitted estimators without pickle, and load them; every estimator also has a method ``save``.",
        "names": ["load", "save"],
    },
    {
        "module": "sklearn_l2d.inspection",
        "title": "Pictures",
        "summary": "Display classes in the style of scikit-learn; matplotlib is imported when one is drawn.",
        "names": [
            "AnswersAccuracyDisplay",
            "CoverageAccuracyDisplay",
            "MembershipDisplay",
            "PerplexityDisplay",
            "WorkloadDisplay",
        ],
    },
]


def render(reference=API_REFERENCE):
    """reStructuredText of the reference page: an autosummary table for each section that has names."""
    title = "API reference"
    lines = [title, "=" * len(title), ""]
    for section in reference:
        if not section["names"]:
            continue
        lines += [
            f".. _{section['module']}_ref:",
            "",
            section["title"],
            "-" * len(section["title"]),
            "",
            f"``{section['module']}``: {section['summary']}",
            "",
            f".. currentmodule:: {section['module']}",
            "",
            ".. autosummary::",
            "   :toctree: api",
            "   :nosignatures:",
            "",
            *(f"   {name}" for name in section["names"]),
            "",
        ]
    return "\n".join(lines)
