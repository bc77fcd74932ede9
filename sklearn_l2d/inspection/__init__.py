"""Display classes in the style of scikit-learn; matplotlib is imported when one is drawn."""

from ._membership import MembershipDisplay

__all__ = ["MembershipDisplay"]
