"""Learning to defer on anonymously annotated data, the scikit-learn way."""

from ._version import __version__

__all__ = ["__version__"]
