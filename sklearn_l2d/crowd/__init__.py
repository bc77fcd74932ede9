"""Classifiers learnt from labels and votes."""

from ._aggnet import AggNetClassifier
from ._ccem import CCEMClassifier
from ._coinnet import COINNet
from ._conal import CoNALClassifier
from ._counts import CountsClassifier
from ._crowd_layer import CrowdLayerClassifier
from ._geo_crowd_net import GeoCrowdNet
from ._instance_dependent import InstanceDependentCrowdNet
from ._max_mig import MaxMIGClassifier
from ._net_classifier import NetClassifier
from ._raykar import RaykarClassifier
from ._trace_reg import TraceRegClassifier
from ._union_net import UnionNet

__all__ = [
    "AggNetClassifier",
    "CCEMClassifier",
    "COINNet",
    "CoNALClassifier",
    "CountsClassifier",
    "CrowdLayerClassifier",
    "GeoCrowdNet",
    "InstanceDependentCrowdNet",
    "MaxMIGClassifier",
    "NetClassifier",
    "RaykarClassifier",
    "TraceRegClassifier",
    "UnionNet",
]
