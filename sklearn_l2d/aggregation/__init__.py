"""What is true, from votes alone: consensus labels with probabilities, and how far each annotator can be trusted."""

from ._coupled_nmf import CoupledNMF
from ._dawid_skene import DawidSkene
from ._kos import KOS
from ._majority_vote import MajorityVote
from ._max_margin_majority_vote import MaxMarginMajorityVote
from ._minimax_entropy import MinimaxEntropy
from ._multi_spa import MultiSPA
from ._projected_gradient_one_coin import ProjectedGradientOneCoin
from ._spectral_dawid_skene import SpectralDawidSkene
from ._symmetric_nmf import SymmetricNMF
from ._tensor_admm import TensorADMM

__all__ = [  # noqa: RUF022 - in the order of the alphabet, as everywhere
    "CoupledNMF",
    "DawidSkene",
    "KOS",
    "MajorityVote",
    "MaxMarginMajorityVote",
    "MinimaxEntropy",
    "MultiSPA",
    "ProjectedGradientOneCoin",
    "SpectralDawidSkene",
    "SymmetricNMF",
    "TensorADMM",
]
