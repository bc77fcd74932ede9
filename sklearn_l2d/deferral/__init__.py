"""Who should decide: the classifier, or a group of experts."""

from ._best_expert import BestExpert
from ._classifier_only import ClassifierOnly
from ._cluster_deferral import ClusterDeferral
from ._confidence_deferral import ConfidenceDeferral
from ._one_stage import OneStageDeferral

__all__ = ["BestExpert", "ClassifierOnly", "ClusterDeferral", "ConfidenceDeferral", "OneStageDeferral"]
