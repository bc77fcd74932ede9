"""Sensitivity to the number of clusters and alpha (Table 2), and perplexity (Fig. 7)."""

import numpy as np

from ...inspection import PerplexityDisplay
from ...metrics import membership_dissimilarity
from ...model_selection import perplexity_curve
from .._curves import fit_and_judge
from .._methods import METHODS
from .._plan import Experiment
from .._runner import Cell
from .._tables import markdown, names, select, spread
from .._worlds import SETS
from . import _paper

_SET, _SIZE = "digits, 6 experts", 100
_GROUPINGS = ("clusters, hard", "clusters, soft", "groups")
_ALPHAS = tuple(_paper.AREA_BY_ALPHA)


def cells(plan):
    """One cell for each number of clusters, for each alpha, and for the perplexities of all numbers up to the last."""
    numbers = (2, 3, 4) if plan.quick else tuple(_paper.AREA_BY_CLUSTERS)
    settings = [f"K={k}" for k in numbers] + [f"alpha={a}" for a in _ALPHAS] + [f"perplexity to K={numbers[-1]}"]
    return [Cell("sensitivity", _SET, _SIZE, seed, s) for seed in plan.seeds for s in settings]


def measure(cells):
    """Areas of the three groupings, dissimilarity of the memberships, or held-out perplexities."""
    dataset = SETS[cells[0].dataset]
    world = dataset.build(cells[0].seed)
    labels = world.identified(_SIZE, dataset.same_items)
    for cell in cells:
        name, value = cell.method.split("=")
        if name.startswith("perplexity"):
            yield _perplexities(world, range(1, int(value) + 1))
            continue
        options = {"n_clusters": int(value)} if name == "K" else {"n_clusters": 2, "alpha": float(value)}
        lda = world.behaviours(**options).estimator
        heard = (labels >= 0).any(1)
        X, answers = world.X[world.pool[heard]], labels[heard]
        figures = {"used clusters": float((lda.cluster_weights_ >= 0.01).sum())}
        for membership in ("map", "variational"):
            omega = lda.set_params(membership=membership).transform(X, answers)
            figures[f"dissimilarity, {membership}"] = membership_dissimilarity(omega)
        lda.set_params(membership="map")
        for grouping in _GROUPINGS:
            method = METHODS[grouping]
            figures[f"area, {grouping}"] = fit_and_judge(world, labels, method, method.options | options)["area"]
        yield figures


def _perplexities(world, numbers):
    lda = world.behaviours(2).estimator
    rows = world.archive[:3000]
    curve = perplexity_curve(lda, world.X[rows], world.counts[rows], n_clusters=numbers, cv=3)
    return {
        f"{name}, K={k}": float(value)
        for name, values in (("perplexity", curve.perplexity), ("rate", curve.rate))
        for k, value in zip(numbers, values, strict=True)
        if np.isfinite(value)
    }


def report(records):
    """The two halves of Table 2, and the perplexities."""
    dataset = records[0]["dataset"]
    settings = names(records, "method")
    parts = []
    for prefix, title, paper in (
        ("K=", "Number of clusters (Table 2, left)", _paper.AREA_BY_CLUSTERS),
        ("alpha=", "Alpha, two clusters (Table 2, right)", _paper.AREA_BY_ALPHA),
    ):
        figures = [
            *(f"area, {g}" for g in _GROUPINGS),
            "dissimilarity, map",
            "dissimilarity, variational",
            "used clusters",
        ]
        rows = []
        for setting in (s for s in settings if s.startswith(prefix)):
            value = float(setting.split("=")[1])
            row = [setting, *(spread(select(records, f, method=setting)) for f in figures), f"{paper[value] / 100:.3f}"]
            if prefix == "alpha=":
                row.append(f"{_paper.DISSIMILARITY_BY_ALPHA[value]:.4f}")
            rows.append(row)
        columns = ["", *figures, "paper: area", *(["paper: dissimilarity"] if prefix == "alpha=" else [])]
        parts.append(markdown(f"{title}, {dataset}, N'={_SIZE}", columns, rows, _NOTE))
    numbers = [k for k in range(1, 11) if select(records, f"perplexity, K={k}")]
    rows = []
    for k in numbers:
        perplexity, rate = (select(records, f"{f}, K={k}") for f in ("perplexity", "rate"))
        rows.append([k, spread(perplexity), spread(rate, ".1e")])
    if rows:
        parts.append(markdown(f"Perplexity on held-out votes (Fig. 7), {dataset}",
                              ["K", "perplexity", "rate of perplexity change"], rows))  # fmt: skip
    return "\n".join(parts)


_NOTE = "The paper's column is CIFAR-100. Dissimilarity: mean pairwise cosine dissimilarity of the memberships."


def draw(records, plt):
    """Perplexity and its rate of change over K (Fig. 7)."""
    numbers = [k for k in range(1, 11) if select(records, f"perplexity, K={k}")]
    seeds = [select(records, f"perplexity, K={k}") for k in numbers]
    figure, ax = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    PerplexityDisplay.from_predictions(numbers, np.mean(seeds, 1), fold_perplexity=seeds, ax=ax)
    figure.suptitle(f"{records[0]['dataset']}, mean over seeds")
    yield "perplexity.png", figure


SENSITIVITY = Experiment("Number of clusters and alpha (Table 2, Fig. 7)", cells, measure, report, draw)
