"""Choosing the number of behaviours, and choosing among teams."""

from ._n_clusters import lowest_perplexity, rate_of_perplexity_change
from ._team_scorer import make_team_scorer

__all__ = ["lowest_perplexity", "make_team_scorer", "rate_of_perplexity_change"]
