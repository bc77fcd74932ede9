"""What is true, from votes alone: consensus labels with probabilities, and how far each annotator can be trusted.

:class:`HierarchicalDawidSkene` is recommended where nothing is known of a crowd: on 26 crowds that have labels only, or
features, it had the best mean accuracy, and was never more than .003 below a majority whose ties are shared. On seven
others it was up to .055 below, most where people foretold an event; the shares of the classes, if known, turn that into
a gain. :class:`WeightedMajorityVote` never lost more than .011 on any of the 33. :class:`DawidSkene` gains more where
annotators are independent given the truth.
"""

from ._active_crowdsourcing import ActiveCrowdsourcing
from ._bradley_terry import BradleyTerry
from ._colluder_detector import ColluderDetector
from ._community_dawid_skene import CommunityDawidSkene
from ._consensus_classifier import ConsensusClassifier
from ._coupled_nmf import CoupledNMF
from ._crowd_clustering import CrowdClustering
from ._crowd_regressor import CrowdRegressor
from ._crowdlab import CROWDLAB
from ._dawid_skene import DawidSkene
from ._glad import GLAD
from ._group_aware_dawid_skene import GroupAwareDawidSkene
from ._hierarchical_dawid_skene import HierarchicalDawidSkene
from ._kos import KOS
from ._mace import MACE
from ._majority_vote import MajorityVote
from ._max_margin_majority_vote import MaxMarginMajorityVote
from ._minimax_entropy import MinimaxEntropy
from ._mmsr import MMSR
from ._multi_spa import MultiSPA
from ._ordinal_consensus import OrdinalConsensus
from ._projected_gradient_one_coin import ProjectedGradientOneCoin
from ._spammer_detector import SpammerDetector
from ._spectral_dawid_skene import SpectralDawidSkene
from ._symmetric_nmf import SymmetricNMF
from ._tensor_admm import TensorADMM
from ._weighted_majority_vote import WeightedMajorityVote

__all__ = [  # noqa: RUF022 - in plain order, not capitals first
    "ActiveCrowdsourcing",
    "BradleyTerry",
    "CROWDLAB",
    "ColluderDetector",
    "CommunityDawidSkene",
    "ConsensusClassifier",
    "CoupledNMF",
    "CrowdClustering",
    "CrowdRegressor",
    "DawidSkene",
    "GLAD",
    "GroupAwareDawidSkene",
    "HierarchicalDawidSkene",
    "KOS",
    "MACE",
    "MMSR",
    "MajorityVote",
    "MaxMarginMajorityVote",
    "MinimaxEntropy",
    "MultiSPA",
    "OrdinalConsensus",
    "ProjectedGradientOneCoin",
    "SpammerDetector",
    "SpectralDawidSkene",
    "SymmetricNMF",
    "TensorADMM",
    "WeightedMajorityVote",
]
