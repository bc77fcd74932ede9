"""Who behaves alike: behaviours of annotators, from anonymous votes."""

from ._annotator_lda import AnnotatorLDA

__all__ = ["AnnotatorLDA"]
