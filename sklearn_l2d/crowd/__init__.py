"""Classifiers learnt from labels and votes."""

from ._ccem import CCEMClassifier
from ._counts import CountsClassifier
from ._net_classifier import NetClassifier

__all__ = ["CCEMClassifier", "CountsClassifier", "NetClassifier"]
