"""Save fitted estimators to files without pickle, and load them."""

from ._persistence import load, save

__all__ = ["load", "save"]
