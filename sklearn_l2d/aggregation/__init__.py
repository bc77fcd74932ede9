"""What is true, from votes alone: consensus labels with probabilities, and how far each annotator can be trusted."""

from ._colluder_detector import ColluderDetector
from ._community_dawid_skene import CommunityDawidSkene
from ._dawid_skene import DawidSkene
from ._group_aware_dawid_skene import GroupAwareDawidSkene
from ._majority_vote import MajorityVote
from ._mmsr import MMSR
from ._spammer_detector import SpammerDetector

__all__ = [  # noqa: RUF022 - in plain order, not capitals first
    "ColluderDetector",
    "CommunityDawidSkene",
    "DawidSkene",
    "GroupAwareDawidSkene",
    "MMSR",
    "MajorityVote",
    "SpammerDetector",
]
