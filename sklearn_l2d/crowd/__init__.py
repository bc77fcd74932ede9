"""Classifiers learnt from labels and votes."""

from ._net_classifier import NetClassifier

__all__ = ["NetClassifier"]
