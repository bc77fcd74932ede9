"""Simulated experts, the embedded data set and readers of real annotation sets."""

from ._crowd import list_crowds, load_crowd
from ._digits import load_digits_crowd
from ._experts import make_expert_groups, make_expert_pairs
from ._simulate import sample_identified, simulate_annotations
from ._specialists import make_class_experts, make_specialists, make_superclass_experts

__all__ = [
    "list_crowds",
    "load_crowd",
    "load_digits_crowd",
    "make_class_experts",
    "make_expert_groups",
    "make_expert_pairs",
    "make_specialists",
    "make_superclass_experts",
    "sample_identified",
    "simulate_annotations",
]
