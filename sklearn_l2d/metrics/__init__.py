"""How well annotations are predicted, how different experts are, and what a team of both achieves."""

from ._agreement import krippendorff_alpha, pairwise_agreement
from ._annotators import annotation_perplexity, consensus_agreement, membership_dissimilarity
from ._answers import answers_accuracy_curve
from ._consensus import consensus_accuracy
from ._coverage import (
    coverage_accuracy_auc,
    coverage_accuracy_curve,
    deferral_report,
    team_accuracy,
    workload_distribution,
)
from ._parity import confusion_by_group, consensus_parity
from ._points import coverage_accuracy_points
from ._team_report import team_report

__all__ = [
    "annotation_perplexity",
    "answers_accuracy_curve",
    "confusion_by_group",
    "consensus_accuracy",
    "consensus_agreement",
    "consensus_parity",
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
]
