"""Deferrers: they decide whether the classifier or an expert labels an item."""

from ._best_expert import BestExpert
from ._classifier_only import ClassifierOnly
from ._cluster_deferral import ClusterDeferral
from ._complement_deferral import ComplementDeferral
from ._confidence_deferral import ConfidenceDeferral
from ._conformal_deferral import ConformalDeferral
from ._expert_agnostic_deferral import ExpertAgnosticDeferral
from ._lecodu import LECODUDeferral
from ._mixture_of_experts import MixtureOfExpertsDeferral
from ._one_stage import OneStageDeferral
from ._panel_deferral import PanelDeferral
from ._population_deferral import PopulationDeferral
from ._probabilistic_deferral import ProbabilisticDeferral
from ._profile_deferral import ProfileDeferral
from ._random_expert_deferral import RandomExpertDeferral
from ._ranked_deferral import RankedDeferral
from ._semi_supervised_deferral import SemiSupervisedDeferral
from ._shift import Shift
from ._top_k_deferral import TopKDeferral
from ._two_stage import TwoStageDeferral

__all__ = [
    "BestExpert",
    "ClassifierOnly",
    "ClusterDeferral",
    "ComplementDeferral",
    "ConfidenceDeferral",
    "ConformalDeferral",
    "ExpertAgnosticDeferral",
    "LECODUDeferral",
    "MixtureOfExpertsDeferral",
    "OneStageDeferral",
    "PanelDeferral",
    "PopulationDeferral",
    "ProbabilisticDeferral",
    "ProfileDeferral",
    "RandomExpertDeferral",
    "RankedDeferral",
    "SemiSupervisedDeferral",
    "Shift",
    "TopKDeferral",
    "TwoStageDeferral",
]
