"""Routes, explanations and answers as tables."""

import numpy as np

from .._encoding import unique_names
from .._rows import has_index
from .._votes import flat_index
from ..annotations import from_long


def index_of(X):
    """Names of the items, None if they have none."""
    return X.index if has_index(X) else None


def route_table(targets, experts, deferral, assignment, index):
    """Who decides each item, as a table with the columns ``target`` and ``expert``."""
    import pandas as pd

    columns = np.append(targets, "classifier")[deferral], np.append(experts, "classifier")[assignment]
    # one array becomes a table in half the time that two take, which counts where items come one by one
    return pd.DataFrame(np.column_stack(columns), index=index, columns=["target", "expert"])


def reasons_of(targets, names, target, who, passed_on, right, sure, others):
    """Why items go where they go, in words.

    Parameters
    ----------
    targets : sequence
        Names.
    names : sequence of n entries
        Name of the expert who is asked about each item, as it decides.
    target, who : ndarrays of int of shape (n,)
        Target of each item, and expert who is asked; -1 for the classifier.
    passed_on : ndarray of bool of shape (n,)
        Whether nobody of the target could be asked.
    right, sure : ndarrays of shape (n,)
        Expected correctness of this expert, and of the classifier.
    others : ndarray of shape (n, n_targets)
        Expected correctness of the targets.

    Returns
    -------
    reasons : list of str
    """
    best = others.argmax(1) if len(targets) else np.full(len(who), -1)
    reasons = []
    for i, person in enumerate(who):
        lead = f"{targets[target[i]]} is not free; " if passed_on[i] else ""
        if person >= 0:
            first, second = (names[i], right[i]), ("the classifier", sure[i])
        else:
            first, second = ("the classifier", sure[i]), None
            if not passed_on[i] and best[i] >= 0 and np.isfinite(others[i, best[i]]):
                second = targets[best[i]], others[i, best[i]]
        reason = f"{lead}{first[0]} is expected to be right about {first[1]:.0%} of such items"
        if second is not None:
            reason += f", {second[0]} about {second[1]:.0%}"
            if second[1] > first[1]:
                reason += "; requested shares, costs and what was learnt from the answers count, too"
        reasons.append(reason)
    return reasons


def explanation_table(names, chosen, labels, scored, correctness, index):
    """Explanation of the decisions as a table, with the columns `scored`; `names` are the targets and "classifier"."""
    import pandas as pd

    return pd.DataFrame(
        {"chosen": np.array(names, dtype=object)[chosen], "prediction": labels}
        | scored
        | {f"expected correctness of {n}": c for n, c in zip(names, correctness.T, strict=True)},
        index=index,
    )


def answer_table(answers, tasks, experts):
    """Annotations of these items by these experts, from a long table of answers."""
    index = tasks if hasattr(tasks, "get_indexer") else flat_index(unique_names(tasks, "tasks"))
    tasks = unique_names(index, "tasks")
    try:
        wide = from_long(answers)
    except ValueError as error:
        raise ValueError(f"answers cannot be used: {error} (from_long has these options.)") from error
    for name, given, known in (("tasks", wide.index, tasks), ("experts", wide.columns, experts)):
        unknown = sorted(set(given) - set(known), key=str)
        if unknown:
            raise ValueError(f"answers holds unknown {name} {unknown}; drop these rows or correct them.")
    return wide.reindex(index=flat_index(tasks), columns=flat_index(experts)).set_axis(index)
