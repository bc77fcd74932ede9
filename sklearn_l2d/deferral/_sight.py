"""What the parts of a deferrer see of items."""

from typing import NamedTuple

from .._items import kind_of_items
from .._sklearn import StrOptions

GATE_FEATURES = [StrOptions({"X", "proba"}), callable, None]  # constraint of the parameter


class Sight(NamedTuple):
    """What the parts of a deferrer see of items of the kind that it was fitted to.

    Attributes
    ----------
    are_numbers : bool
        Whether the items are numbers in a dense array or table.
    net : {"X", "proba"}, callable or None
        What the gate or net sees: the items as they are, the probabilities of the classifier, or what a callable makes
        of the items. None without a net.
    clusterer : {"X", "proba"}, callable or None
        The same for the clusterer.
    shape : tuple of int, default=None
        Of a row that the callable makes.
    """

    are_numbers: bool
    net: object
    clusterer: object
    shape: tuple | None = None


def sight_of(X, gate_features, form, parts):
    """`Sight` of a deferrer that is fitted to `X`.

    Parameters
    ----------
    X : array-like of n rows
        Items as given.
    gate_features : {"X", "proba"}, callable or None
        What gate and clusterer shall see; None for what `X` allows.
    form : dict or None
        Of the arrays that the gate or net takes; None without one.
    parts : dict
        Estimators among the parameters, by name.
    """
    are_numbers, n_dims = kind_of_items(X)

    def sees(takes_nd):
        if gate_features is not None:
            return gate_features
        return "X" if are_numbers and (n_dims <= 2 or takes_nd) else "proba"

    clusterer = parts.get("clusterer")
    module = getattr(getattr(clusterer, "estimator", clusterer), "module", None)
    return Sight(
        are_numbers,
        None if form is None else sees(form["allow_nd"]),
        sees(module is not None) if "clusterer" in parts else None,
    )
