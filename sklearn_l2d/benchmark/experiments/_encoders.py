"""Encodings (n_experts, n_dimensions) of three pairs of experts, and the cells that compare them."""

from functools import partial

from ...cluster import BetaExpertEncoder, PopulationExpertEncoder
from ...metrics import consensus_agreement
from .._runner import Cell
from .._worlds import SETS

SIZE = 100  # named annotations per expert


def _rows(world, labels):
    heard = (labels >= 0).any(1)
    return world.X[world.pool[heard]], labels[heard], world.y[world.pool[heard]]


def _behaviours(world, labels, n_clusters):
    X, annotations, _ = _rows(world, labels)
    return world.behaviours(n_clusters).estimator.transform(X, annotations)


def _population(world, labels, n_clusters):
    return _encode(PopulationExpertEncoder(random_state=world.seed), *_rows(world, labels))


def _competence(world, labels, n_clusters, **options):
    return _encode(BetaExpertEncoder(**options), *_rows(world, labels))


def _encode(encoder, X, annotations, y):
    return encoder.fit(X, y, annotations=annotations).transform(X, annotations, y)


def _one_net(world, labels, n_clusters):
    X, annotations, _ = _rows(world, labels)
    return consensus_agreement(annotations, world.behaviours(1).estimator.predict_annotation_proba(X)[:, 0])[:, None]


def _accuracy(world, labels, n_clusters):
    _, annotations, y = _rows(world, labels)
    return ((annotations == y[:, None]).sum(0) / (annotations >= 0).sum(0))[:, None]


# functions of a world, named annotations and a number of clusters, which the baselines do not use
ENCODERS = {
    "AnnotatorLDA": _behaviours,
    "L2D-Pop": _population,
    "EA-L2D": partial(_competence, prior=(1.0, 1.0), with_variance=True),
    "competence, our prior": _competence,
    "agreement with one net": _one_net,
    "accuracy on the labelled rows": _accuracy,
}


def encoder_cells(experiment, plan, seeds):
    """Every encoder on each set with three pairs of simulated experts."""
    sets = ("digits, 6 experts",) if plan.quick else ("cifar10, 6 experts", "digits, 6 experts")
    return [Cell(experiment, d, SIZE, seed, e) for d in sets for seed in seeds for e in ENCODERS]


def encoder_world(cells):
    """World of a job, and the named annotations."""
    world = SETS[cells[0].dataset].build(cells[0].seed)
    return world, world.identified(SIZE, same_items=False)
