"""From the labels of experts to encodings (n_experts, n_dimensions), for the comparison of clusterings."""

from ..cluster import BetaExpertEncoder, PopulationExpertEncoder
from ..metrics import consensus_agreement


def _rows(world, labels):
    heard = (labels >= 0).any(1)
    return world.X[world.pool[heard]], labels[heard], world.y[world.pool[heard]]


def _behaviours(world, labels, n_clusters):
    X, annotations, _ = _rows(world, labels)
    return world.behaviours(n_clusters).estimator.transform(X, annotations)


def _encoder(cls):
    def encode(world, labels, n_clusters):
        X, annotations, y = _rows(world, labels)
        options = {"random_state": world.seed} if "random_state" in cls().get_params() else {}
        return cls(**options).fit(X, y, annotations=annotations).transform(X, annotations, y)

    return encode


def _one_net(world, labels, n_clusters):
    X, annotations, _ = _rows(world, labels)
    return consensus_agreement(annotations, world.behaviours(1).estimator.predict_annotation_proba(X)[:, 0])[:, None]


def _accuracy(world, labels, n_clusters):
    _, annotations, y = _rows(world, labels)
    return ((annotations == y[:, None]).sum(0) / (annotations >= 0).sum(0))[:, None]


# by name: from a world, labels by name and a number of clusters; the rivals' encodings do not depend on the last
ENCODERS = {
    "AnnotatorLDA": _behaviours,
    "L2D-Pop": _encoder(PopulationExpertEncoder),
    "EA-L2D": _encoder(BetaExpertEncoder),
    "agreement with one net": _one_net,
    "accuracy on the labelled rows": _accuracy,
}
