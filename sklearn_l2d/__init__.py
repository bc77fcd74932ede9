"""Learning to defer on anonymously annotated data, the scikit-learn way."""

from . import annotations, datasets
from ._version import __version__
from .annotations import AnnotatedTarget, anonymize, encode_annotations, from_long, to_counts, to_long

__all__ = [
    "AnnotatedTarget",
    "__version__",
    "annotations",
    "anonymize",
    "datasets",
    "encode_annotations",
    "from_long",
    "to_counts",
    "to_long",
]
