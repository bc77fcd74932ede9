"""Learning to defer on anonymously annotated data, the scikit-learn way."""

from . import annotations, cluster, datasets, inspection, metrics
from ._version import __version__
from .annotations import AnnotatedTarget, anonymize, encode_annotations, from_long, to_counts, to_long
from .cluster import AnnotatorLDA

__all__ = [
    "AnnotatedTarget",
    "AnnotatorLDA",
    "__version__",
    "annotations",
    "anonymize",
    "cluster",
    "datasets",
    "encode_annotations",
    "from_long",
    "inspection",
    "metrics",
    "to_counts",
    "to_long",
]
