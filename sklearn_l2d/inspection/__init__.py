"""Display classes in the style of scikit-learn; matplotlib is imported when one is drawn."""

from ._answers_accuracy import AnswersAccuracyDisplay
from ._coverage_accuracy import CoverageAccuracyDisplay
from ._membership import MembershipDisplay
from ._perplexity import PerplexityDisplay
from ._workload import WorkloadDisplay

__all__ = [
    "AnswersAccuracyDisplay",
    "CoverageAccuracyDisplay",
    "MembershipDisplay",
    "PerplexityDisplay",
    "WorkloadDisplay",
]
