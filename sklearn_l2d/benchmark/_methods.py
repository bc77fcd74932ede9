"""The methods of the benchmark by name, with options that were chosen on seeds from 100 on."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..deferral import (
    BestExpert,
    ClassifierOnly,
    ClusterDeferral,
    ConfidenceDeferral,
    ExpertAgnosticDeferral,
    MixtureOfExpertsDeferral,
    OneStageDeferral,
    PopulationDeferral,
    ProbabilisticDeferral,
    RandomExpertDeferral,
    SemiSupervisedDeferral,
    TopKDeferral,
    TwoStageDeferral,
)

_LONG = {"max_epochs": 150, "weight_decay": 0.03}
_TRAININGS = ({}, _LONG, {"weight_decay": 0.03}, {"max_epochs": 150})
_PLAIN = {"prior_weight": 0.0}  # the gate of the papers
_PL2D = _PLAIN | {"answer_shrinkage": 0.0}  # and missing annotations by the expert's net only


@dataclass(frozen=True)
class Method:
    """How the benchmark fits a method.

    Attributes
    ----------
    build : callable
        Returns an unfitted deferrer for a world and options.
    grid : tuple of dict
        Options that were tried, four for every method that trains a net on named annotations.
    chosen : int
        Position of the options that are used.
    role : {"ours", "paper", "baseline", "reference"}
    paper_name : str
        Row of the paper's Table 3.
    joint : bool
        Whether the method trains its own classifier; it then also gets the training rows of the shared classifier.
    controlled : bool
        Whether the method itself controls its coverage, not only by ranking.
    specific : bool
        Whether the method learns about every expert separately.
    """

    build: Callable
    grid: tuple = ({},)
    chosen: int = 0
    role: str = "baseline"
    paper_name: str = ""
    joint: bool = False
    controlled: bool = True
    specific: bool = False

    @property
    def options(self):
        """Chosen options."""
        return self.grid[self.chosen]


def _clusters(world, n_clusters=2, alpha=50.0, **options):
    behaviours = world.behaviours(n_clusters, alpha)
    return ClusterDeferral(behaviours, classifier=world.classifier, coverage=0.5, random_state=world.seed, **options)


def _gated(cls, world, **options):
    return cls(classifier=world.classifier, coverage=0.5, random_state=world.seed, **options)


def _shared(cls, world, **options):
    return cls(classifier=world.classifier, random_state=world.seed, **options)


def _joint(cls, world, **options):
    return cls(random_state=world.seed, **options)


def _groups(world, n_groups=4, **options):
    return _clusters(world, grouping="profile", n_groups=n_groups, **options)


_GROUPS = ({"n_groups": 4}, {"n_groups": 8}, {"n_groups": 16}, {"n_groups": 8} | _LONG)
_PICCE = "most_confident_correct"
_LOOSE = {"role": "baseline", "controlled": False}

METHODS = {
    "groups": Method(_groups, _GROUPS, 3, role="ours"),
    "groups, the papers' gate": Method(partial(_groups, **_PLAIN), _GROUPS, 3, role="ours"),
    "clusters, hard": Method(
        partial(_clusters, grouping="hard", **_PLAIN), _TRAININGS, 1, role="paper", paper_name="clusters, hard"
    ),
    "clusters, soft": Method(
        partial(_clusters, grouping="soft", **_PLAIN), _TRAININGS, 1, role="paper", paper_name="clusters, soft"
    ),
    "random expert": Method(
        partial(_gated, RandomExpertDeferral, **_PLAIN), _TRAININGS, 1, paper_name="random expert"
    ),
    "probabilistic": Method(partial(_gated, ProbabilisticDeferral, **_PL2D), _TRAININGS, 1, specific=True),
    "single experts, our gate": Method(
        partial(_gated, ProbabilisticDeferral), _TRAININGS, 2, role="ours", specific=True
    ),
    "one-stage, softmax": Method(
        partial(_joint, OneStageDeferral, surrogate="softmax"), _TRAININGS, 2, paper_name="one-stage", joint=True,
        specific=True, **_LOOSE,
    ),
    "one-stage, ova": Method(
        partial(_joint, OneStageDeferral, surrogate="ova"), _TRAININGS, 3, paper_name="one-stage", joint=True,
        specific=True, **_LOOSE,
    ),
    "one-stage, softmax, PiCCE": Method(
        partial(_joint, OneStageDeferral, surrogate="softmax", experts=_PICCE), _TRAININGS, 3, joint=True,
        specific=True, **_LOOSE,
    ),
    "one-stage, ova, PiCCE": Method(
        partial(_joint, OneStageDeferral, surrogate="ova", experts=_PICCE), _TRAININGS, 0, joint=True,
        specific=True, **_LOOSE,
    ),
    "two-stage": Method(
        partial(_shared, TwoStageDeferral), _TRAININGS, 1, paper_name="two-stage", specific=True, **_LOOSE
    ),
    "mixture of experts": Method(
        partial(_joint, MixtureOfExpertsDeferral), _TRAININGS, 3, joint=True, specific=True, **_LOOSE
    ),
    "population": Method(
        partial(_joint, PopulationDeferral), _TRAININGS, 1, paper_name="population", joint=True, **_LOOSE
    ),
    "population, attention": Method(
        partial(_joint, PopulationDeferral, pooling="attention"), _TRAININGS, 1, joint=True, **_LOOSE
    ),
    "top k, one agent": Method(
        partial(_shared, TopKDeferral, n_agents=1, gate_features="proba"), _TRAININGS, 3, specific=True, **_LOOSE
    ),
    "expert-agnostic, roles": Method(partial(_shared, ExpertAgnosticDeferral, state="role"), _TRAININGS, 0, **_LOOSE),
    "expert-agnostic": Method(partial(_shared, ExpertAgnosticDeferral), _TRAININGS, 3, **_LOOSE),
    "confidence": Method(partial(_shared, ConfidenceDeferral), specific=True),
    "best expert": Method(partial(_shared, BestExpert), role="reference", controlled=False),
    "classifier only": Method(partial(_shared, ClassifierOnly), role="reference", controlled=False),
}  # fmt: skip


# methods of PL2D Table 1, for missing annotations, with the same training options
MISSING_METHODS = {
    "latent": partial(_gated, ProbabilisticDeferral, **_PL2D, **_LONG),
    "naive": partial(_gated, ProbabilisticDeferral, missing="naive", **_PLAIN, **_LONG),
    "semi-supervised": partial(_gated, SemiSupervisedDeferral, **_PLAIN, **_LONG),
    "MixMatch": partial(_gated, SemiSupervisedDeferral, completion="mixmatch", **_PLAIN, **_LONG),
    "latent, our gate": partial(_gated, ProbabilisticDeferral, **_LONG),
}


def options_table():
    """Tried and chosen options, one row per method."""
    return [[name, _text(m.options), "; ".join(map(_text, m.grid))] for name, m in METHODS.items() if len(m.grid) > 1]


def _text(options):
    return ", ".join(f"{name}={value}" for name, value in options.items()) or "defaults"
