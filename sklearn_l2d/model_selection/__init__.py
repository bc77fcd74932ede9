"""Choosing among teams: scorers for searches and cross-validation."""

from ._team_scorer import make_team_scorer

__all__ = ["make_team_scorer"]
