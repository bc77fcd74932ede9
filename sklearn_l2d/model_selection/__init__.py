"""Choosing the number of behaviours, and choosing among teams."""

from ._n_clusters import lowest_perplexity, rate_of_perplexity_change
from ._perplexity_curve import perplexity_curve
from ._team_scorer import make_team_scorer
from ._votes_scorer import make_votes_scorer

__all__ = [
    "lowest_perplexity",
    "make_team_scorer",
    "make_votes_scorer",
    "perplexity_curve",
    "rate_of_perplexity_change",
]
