"""The version, in one place: pyproject.toml and the documentation read it from here."""

__version__ = "0.1.0.dev0"
