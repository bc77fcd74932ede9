"""Who should decide: the classifier, or a group of experts."""

from ._best_expert import BestExpert
from ._classifier_only import ClassifierOnly
from ._cluster_deferral import ClusterDeferral

__all__ = ["BestExpert", "ClassifierOnly", "ClusterDeferral"]
