"""What is true, from votes alone: consensus labels with probabilities, and how far each annotator can be trusted."""

from ._active_crowdsourcing import ActiveCrowdsourcing
from ._bradley_terry import BradleyTerry
from ._consensus_classifier import ConsensusClassifier
from ._crowd_clustering import CrowdClustering
from ._crowd_regressor import CrowdRegressor
from ._crowdlab import CROWDLAB
from ._dawid_skene import DawidSkene
from ._majority_vote import MajorityVote
from ._ordinal_consensus import OrdinalConsensus

__all__ = [  # noqa: RUF022 - in the order of the alphabet, as everywhere
    "ActiveCrowdsourcing",
    "BradleyTerry",
    "CROWDLAB",
    "ConsensusClassifier",
    "CrowdClustering",
    "CrowdRegressor",
    "DawidSkene",
    "MajorityVote",
    "OrdinalConsensus",
]
