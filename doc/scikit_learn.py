"""What these pages link to at scikit-learn, as a local inventory: a build needs no network."""

import zlib

URL = "https://scikit-learn.org/stable/"
CLASSES = (
    "sklearn.calibration.CalibratedClassifierCV",
    "sklearn.cluster.KMeans",
    "sklearn.decomposition.PCA",
    "sklearn.frozen.FrozenEstimator",
    "sklearn.linear_model.LogisticRegression",
    "sklearn.model_selection.GridSearchCV",
    "sklearn.naive_bayes.GaussianNB",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing.StandardScaler",
)
FUNCTIONS = (
    "sklearn.datasets.load_digits",
    "sklearn.model_selection.cross_validate",
    "sklearn.pipeline.make_pipeline",
    "sklearn.set_config",
)
TERMS = ("array-like", "callable", "classifier", "estimator", "random_state")
ALIASES = {  # words of our docstrings' types that become links
    "array-like": ":term:`array-like <sklearn:array-like>`",
    "callable": ":term:`callable <sklearn:callable>`",
    "classifier": ":term:`classifier <sklearn:classifier>`",
    "estimator": ":term:`estimator <sklearn:estimator>`",
    "RandomState": ":term:`RandomState <sklearn:random_state>`",
    "Votes": ":class:`~sklearn_l2d.annotations.Votes`",
}


def render():
    """Bytes of an inventory of Sphinx, version 2."""
    pages = {"py:class": CLASSES, "py:function": FUNCTIONS}
    lines = [f"{name} {kind} 1 modules/generated/{name}.html#$ -" for kind, names in pages.items() for name in names]
    lines += [f"{term} std:term -1 glossary.html#term-$ -" for term in TERMS]
    head = "# Sphinx inventory version 2\n# Project: scikit-learn\n# Version: stable\n# zlib below\n"
    return head.encode() + zlib.compress("\n".join([*lines, ""]).encode())
