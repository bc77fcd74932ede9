"""Learning to defer on anonymously annotated data, the scikit-learn way."""

from . import annotations, cluster, datasets, deferral, inspection, metrics, model_selection
from ._version import __version__
from .annotations import AnnotatedTarget, anonymize, encode_annotations, from_long, to_counts, to_long
from .cluster import AnnotatorLDA
from .deferral import ClusterDeferral

__all__ = [
    "AnnotatedTarget",
    "AnnotatorLDA",
    "ClusterDeferral",
    "__version__",
    "annotations",
    "anonymize",
    "cluster",
    "datasets",
    "deferral",
    "encode_annotations",
    "from_long",
    "inspection",
    "metrics",
    "model_selection",
    "to_counts",
    "to_long",
]
