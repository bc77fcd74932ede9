"""Learning to defer on anonymously annotated data, the scikit-learn way."""

import importlib

from ._version import __version__

__all__ = [
    "AnnotatedTarget",
    "AnnotatorLDA",
    "ClusterDeferral",
    "PanelDeferral",
    "__version__",
    "aggregation",
    "annotations",
    "anonymize",
    "cluster",
    "crowd",
    "datasets",
    "deferral",
    "encode_annotations",
    "from_long",
    "inspection",
    "load",
    "metrics",
    "model_selection",
    "persistence",
    "save",
    "to_counts",
    "to_long",
]

# Modules and shortcuts are loaded on first use: who only converts annotations does not wait for torch.
_SHORTCUTS = {
    "AnnotatedTarget": "annotations",
    "AnnotatorLDA": "cluster",
    "ClusterDeferral": "deferral",
    "PanelDeferral": "deferral",
    "anonymize": "annotations",
    "encode_annotations": "annotations",
    "from_long": "annotations",
    "load": "persistence",
    "save": "persistence",
    "to_counts": "annotations",
    "to_long": "annotations",
}


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{_SHORTCUTS.get(name, name)}", __name__)
    value = getattr(module, name) if name in _SHORTCUTS else module
    globals()[name] = value
    return value


def __dir__():
    return __all__
