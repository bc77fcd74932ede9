"""Clusters and encodings of experts by their behaviour."""

from ._agreement_clustering import AgreementClustering
from ._annotator_lda import AnnotatorLDA
from ._beta_expert_encoder import BetaExpertEncoder
from ._fuzzy_c_means import FuzzyCMeans
from ._population_expert_encoder import PopulationExpertEncoder

__all__ = ["AgreementClustering", "AnnotatorLDA", "BetaExpertEncoder", "FuzzyCMeans", "PopulationExpertEncoder"]
