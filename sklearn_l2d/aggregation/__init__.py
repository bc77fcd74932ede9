"""What is true, from votes alone: consensus labels with probabilities, and how far each annotator can be trusted."""

from ._consensus_classifier import ConsensusClassifier
from ._crowd_regressor import CrowdRegressor
from ._crowdlab import CROWDLAB
from ._dawid_skene import DawidSkene
from ._majority_vote import MajorityVote

__all__ = ["CROWDLAB", "ConsensusClassifier", "CrowdRegressor", "DawidSkene", "MajorityVote"]
