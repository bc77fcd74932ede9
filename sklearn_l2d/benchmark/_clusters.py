"""Do encodings of experts tell alike experts apart: behaviours against the encoders of the baselines."""

import textwrap

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from ..cluster import FuzzyCMeans
from . import _paper
from ._encoders import ENCODERS
from ._plan import Experiment
from ._runner import Cell
from ._tables import markdown, mean, names, select, spread, yes
from ._worlds import SETS

_SIZE = 100
_SEEDS = 4  # times as many as elsewhere: with six experts, the mean index of five draws moves by a tenth
_OURS = ("AnnotatorLDA", "competence, our prior")


def cells(plan):
    """Three pairs of simulated experts on each set that has them."""
    return _cells("clusters", plan, range(plan.seeds.start, plan.seeds.start + _SEEDS * len(plan.seeds)))


def _cells(experiment, plan, seeds):
    sets = ("digits, 6 experts",) if plan.quick else ("cifar10, 6 experts", "digits, 6 experts")
    return [Cell(experiment, d, _SIZE, seed, e) for d in sets for seed in seeds for e in ENCODERS]


def _world(cells):
    """World of a job, and the labels by name."""
    world = SETS[cells[0].dataset].build(cells[0].seed)
    return world, world.identified(_SIZE, same_items=False)


def measure(cells):
    """Encode, cut into 2 and 3 groups, compare with the true pairs."""
    world, labels = _world(cells)
    for cell in cells:
        figures, codes = {}, ENCODERS[cell.method](world, labels, 2)
        for n_groups in (2, 3):
            found = KMeans(n_groups, n_init=10, random_state=world.seed).fit_predict(codes)
            figures[f"ARI, {n_groups} groups"] = adjusted_rand_score(world.groups, found)
            figures[f"AMI, {n_groups} groups"] = adjusted_mutual_info_score(world.groups, found)
        yield figures


def measure_memberships(cells):
    """Memberships for 2 to 5 clusters."""
    world, labels = _world(cells)
    for cell in cells:
        encode = ENCODERS[cell.method]
        yield {"heat": {k: soft_clusters(encode(world, labels, k), k, world.seed) for k in (2, 3, 4, 5)}}


def soft_clusters(codes, n_clusters, seed):
    """Memberships (n_experts, n_clusters) of encodings: their own, or those of fuzzy c-means."""
    if codes.shape[1] == n_clusters and np.allclose(codes.sum(1), 1):
        return codes.tolist()
    memberships = FuzzyCMeans(n_clusters, random_state=seed).fit(codes).memberships_
    return memberships.tolist()


def report(records):
    """The paper's Table 1 with more seeds and sets."""
    parts = []
    figures = [f"{f}, {n} groups" for n in (2, 3) for f in ("ARI", "AMI")]
    for dataset in names(records, "dataset"):
        rows = []
        for encoder in names(records, "method"):
            theirs = _paper.CLUSTERING.get(encoder)
            paper = "" if theirs is None else f"{theirs[0]:.4f} / {theirs[1]:.4f}"
            rows.append(
                [encoder, *(spread(select(records, f, dataset=dataset, method=encoder)) for f in figures), paper]
            )
        columns = ["encoder", *figures, "paper: ARI / AMI, CIFAR-100, K=3"]
        parts.append(markdown(f"Expert clustering, {dataset}, N'={_SIZE}", columns, rows, _NOTE))
        verdict = []
        for f in figures:
            rival = max(mean(records, f, dataset=dataset, method=e) for e in ("L2D-Pop", "EA-L2D"))
            ours = [mean(records, f, dataset=dataset, method=e) for e in _OURS]
            verdict.append([f, *(cell for own in ours for cell in (own, yes(own > rival))), rival])
        columns = ["figure", *(c for e in _OURS for c in (e, "ahead")), "better of L2D-Pop and EA-L2D"]
        parts.append(markdown(f"Verdict, {dataset}; with 3 groups the ARI is to reach .70", columns, verdict))
    return "\n".join(parts)


_NOTE = (
    "Seeds: four times as many as elsewhere. Three pairs: two groups can reach an ARI of .444 and an AMI of .615 at "
    "most. Encodings are cut by k-means. AnnotatorLDA sees no true label; all others but the agreement do. EA-L2D is "
    "as published, means and variances under a flat prior; our prior is the empirical Bayes of `BetaExpertEncoder` "
    "and of `ClusterDeferral`. L2D-Pop is `PopulationExpertEncoder`."
)


def draw(records, plt):
    """Heat maps of all encoders for 2 to 5 clusters."""
    encoders = names(records, "method")
    for dataset in names(records, "dataset"):
        figure, axes = plt.subplots(len(encoders), 4, figsize=(11, 1.5 * len(encoders) + 0.6), squeeze=False)
        for row, encoder in enumerate(encoders):
            heat = select(records, "heat", dataset=dataset, method=encoder)[0]
            for column, k in enumerate((2, 3, 4, 5)):
                ax = axes[row, column]
                ax.imshow(np.array(heat[k] if k in heat else heat[str(k)]).T, cmap="Blues", vmin=0, aspect="auto")
                ax.set_xticks(range(6), ["5A", "5B", "20C", "20D", "35E", "35F"], fontsize=7)
                ax.set_yticks(range(k), range(k), fontsize=7)
                if row == 0:
                    ax.set_title(f"K = {k}", fontsize=9)
            axes[row, 0].set_ylabel(textwrap.fill(encoder, 16), fontsize=8)
        figure.suptitle(f"Membership of six experts, {dataset}, N'={_SIZE}: neighbours in a pair should look alike")
        figure.tight_layout()
        yield f"encoders-{dataset.split(',')[0]}.png", figure


CLUSTERS = Experiment("Expert clustering (Table 1)", cells, measure, report)
MEMBERSHIPS = Experiment(
    "Memberships of experts (Fig. 2, 6)",
    lambda plan: _cells("memberships", plan, plan.seeds[:1]),
    measure_memberships,
    lambda records: "One draw, see the figures `encoders-*.png`.\n",
    draw,
)
