"""Who should decide: the classifier, or a group of experts."""

from ._cluster_deferral import ClusterDeferral

__all__ = ["ClusterDeferral"]
