"""Memberships of three pairs of experts for several numbers of clusters."""

import textwrap

import numpy as np

from ...cluster import FuzzyCMeans
from .._plan import Experiment
from .._tables import names, select
from ._encoders import ENCODERS, SIZE, encoder_cells, encoder_world

_NUMBERS = (2, 3, 4, 5)


def cells(plan):
    """Cells of one seed, which is enough for a figure."""
    return encoder_cells("memberships", plan, plan.seeds[:1])


def measure(cells):
    """Memberships for 2 to 5 clusters."""
    world, labels = encoder_world(cells)
    for cell in cells:
        encode = ENCODERS[cell.method]
        yield {"heat": {k: soft_clusters(encode(world, labels, k), k, world.seed) for k in _NUMBERS}}


def soft_clusters(codes, n_clusters, seed):
    """Memberships (n_experts, n_clusters) of encodings: their own, or those of fuzzy c-means."""
    if codes.shape[1] == n_clusters and np.allclose(codes.sum(1), 1):
        return codes.tolist()
    memberships = FuzzyCMeans(n_clusters, random_state=seed).fit(codes).memberships_
    return memberships.tolist()


def report(records):
    """Names of the figures."""
    return "One draw, see the figures `encoders-*.png`.\n"


def draw(records, plt):
    """Heat maps of all encoders for 2 to 5 clusters."""
    encoders = names(records, "method")
    for dataset in names(records, "dataset"):
        figure, axes = plt.subplots(
            len(encoders), len(_NUMBERS), figsize=(11, 1.5 * len(encoders) + 0.6), squeeze=False
        )
        for row, encoder in enumerate(encoders):
            heat = select(records, "heat", dataset=dataset, method=encoder)[0]
            for column, k in enumerate(_NUMBERS):
                ax = axes[row, column]
                ax.imshow(np.array(heat[k] if k in heat else heat[str(k)]).T, cmap="Blues", vmin=0, aspect="auto")
                ax.set_xticks(range(6), ["5A", "5B", "20C", "20D", "35E", "35F"], fontsize=7)
                ax.set_yticks(range(k), range(k), fontsize=7)
                if row == 0:
                    ax.set_title(f"K = {k}", fontsize=9)
            axes[row, 0].set_ylabel(textwrap.fill(encoder, 16), fontsize=8)
        figure.suptitle(f"Membership of six experts, {dataset}, N'={SIZE}: neighbours in a pair should look alike")
        figure.tight_layout()
        yield f"encoders-{dataset.split(',')[0]}.png", figure


MEMBERSHIPS = Experiment("Memberships of experts (Fig. 2, 6)", cells, measure, report, draw)
