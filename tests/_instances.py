"""One registry of cheap estimators for the tests that every estimator shares: a new one joins by one line."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch

from sklearn_l2d import AnnotatorLDA
from sklearn_l2d.aggregation import (
    CROWDLAB,
    GLAD,
    KOS,
    MACE,
    MMSR,
    ActiveCrowdsourcing,
    ColluderDetector,
    CommunityDawidSkene,
    ConsensusClassifier,
    CoupledNMF,
    CrowdRegressor,
    DawidSkene,
    GroupAwareDawidSkene,
    HierarchicalDawidSkene,
    MajorityVote,
    MaxMarginMajorityVote,
    MinimaxEntropy,
    MultiSPA,
    OrdinalConsensus,
    ProjectedGradientOneCoin,
    SpammerDetector,
    SpectralDawidSkene,
    SymmetricNMF,
    TensorADMM,
    WeightedMajorityVote,
)
from sklearn_l2d.annotations import Votes, encode_votes
from sklearn_l2d.cluster import AgreementClustering, BetaExpertEncoder, FuzzyCMeans, PopulationExpertEncoder
from sklearn_l2d.crowd import (
    CCEMClassifier,
    COINNet,
    CountsClassifier,
    CrowdLayerClassifier,
    InstanceDependentCrowdNet,
    NetClassifier,
    RaykarClassifier,
)
from sklearn_l2d.deferral import (
    BestExpert,
    ClassifierOnly,
    ClusterDeferral,
    ComplementDeferral,
    ConfidenceDeferral,
    ConformalDeferral,
    ExpertAgnosticDeferral,
    LECODUDeferral,
    MixtureOfExpertsDeferral,
    OneStageDeferral,
    PanelDeferral,
    PopulationDeferral,
    ProbabilisticDeferral,
    ProfileDeferral,
    RandomExpertDeferral,
    RankedDeferral,
    SemiSupervisedDeferral,
    TopKDeferral,
    TwoStageDeferral,
)


@dataclass(frozen=True)
class Instance:
    """An unfitted estimator and how the common tests treat it.

    `kind` says what the estimator is fitted to and what it answers (`fit`, `outputs`): "active", "aggregator",
    "annotator", "classifier", "clusterer", "consensus", "crowd", "deferrer", "encoder", "numbers" or "roster"; `grid`
    holds parameters to search; `expected_failed_checks` gives the reason for each check of scikit-learn that is known
    to fail.
    """

    estimator: BaseEstimator
    # "active", "aggregator", "annotator", "classifier", "clusterer", "consensus", "crowd", "deferrer", "detector",
    # "encoder", "numbers" or "roster"
    kind: str
    grid: dict = field(default_factory=dict)
    expected_failed_checks: dict = field(default_factory=dict)
    n_classes: int | None = None  # None takes any number, 2 no more
    checked: BaseEstimator | None = None  # what scikit-learn's checks get in place of the estimator

    def __str__(self):
        return str(self.estimator)


_FAST = {"hidden_layer_sizes": (4,), "max_epochs": 3, "n_anchor_epochs": 1, "n_consensus_epochs": 2, "random_state": 0}

_SGD = {"optimizer": "sgd", "hidden_layer_sizes": (4,), "max_epochs": 3, "random_state": 0}

_GATE = {
    "classifier": LogisticRegression(),
    "cv": 2,
    "coverage": 0.5,
    "hidden_layer_sizes": (4,),
    "max_epochs": 3,
    "random_state": 0,
}
_TWICE = "check_sample_weight_equivalence_on_dense_data"
_BATCHES = {_TWICE: "a row that is there twice makes other batches"}
_ITEMS = {_TWICE: "weights scale the votes on an item, which is not the same as two items"}
_WEIGHTS = {"check_class_weight_classifiers": "a classifier that is given has a class_weight of its own"}


class BySign:
    """Reads numbers as two classes, those below 0 and the others: scikit-learn's checks know no votes."""

    def _read(self, X, y, sample_weight, classes=None):
        return super()._read(by_sign(X, 2), y, sample_weight, classes)

    def _votes(self, X):
        return super()._votes(by_sign(X, 2))

    def _truth(self, votes, y):
        return super()._truth(votes, y if y is None else by_sign(y, 1))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class KOSBySign(BySign, KOS):
    """KOS for numbers."""


class MinimaxEntropyBySign(BySign, MinimaxEntropy):
    """Minimax entropy for numbers, which as classes of their own would take long."""


def by_sign(values, ndim):
    """Numbers as booleans, entries of a sparse matrix, of which some are above 0.8, as 1 or 2; others as they are."""
    if issparse(values):
        values = values.tocsr().astype(float)
        values.data = 1 + (values.data > 0.8)
        return values
    try:
        numbers = np.asarray(values)
        numbers = numbers if np.iscomplexobj(numbers) else numbers.astype(float)
    except (TypeError, ValueError):
        return values
    real = numbers.ndim == ndim and not np.iscomplexobj(numbers) and np.isfinite(numbers).all()
    return numbers >= 0 if real else values


_VOTES = {
    "check_sample_weight_equivalence_on_dense_data": "labels that only items of weight 0 have are told by a warning",
    "check_sample_weight_equivalence_on_sparse_data": "a sparse matrix holds positions of classes, not any floats",
}

_CROWD = [COINNet, CrowdLayerClassifier, InstanceDependentCrowdNet]  # those whose annotators are more than matrices

INSTANCES = [
    Instance(AnnotatorLDA(dtype="float32", **_FAST), "annotator", {"n_clusters": [1, 2], "alpha": [1.0, 20.0]}, _ITEMS),
    Instance(AnnotatorLDA(dtype="float64", **_FAST), "annotator", {"n_clusters": [1, 3], "alpha": [5.0]}, _ITEMS),
    Instance(BetaExpertEncoder(), "encoder"),
    Instance(BetaExpertEncoder(prior=(1, 2), with_variance=True), "encoder"),
    Instance(PopulationExpertEncoder(4, context_layer_sizes=(4,), n_classifier_epochs=2, **_SGD), "encoder"),
    Instance(FuzzyCMeans(3, n_init=2, random_state=0), "clusterer"),
    Instance(
        AgreementClustering(2),
        "roster",
        expected_failed_checks={"check_complex_data": "its one column is refused before its type"},
    ),
    Instance(MajorityVote(), "aggregator", expected_failed_checks=_VOTES),
    Instance(MajorityVote(ties="random", random_state=0), "aggregator", expected_failed_checks=_VOTES),
    Instance(WeightedMajorityVote(), "aggregator", expected_failed_checks=_VOTES),
    Instance(
        WeightedMajorityVote("zero_based_skill", ties="random", random_state=1),
        "aggregator",
        grid={"weights": ["agreement", "zero_based_skill"]},
        expected_failed_checks=_VOTES,
    ),
    Instance(DawidSkene(), "aggregator", grid={"prior": [0.1, 1.0]}, expected_failed_checks=_VOTES),
    Instance(
        DawidSkene("one_coin", class_prior="uniform", inference="variational"),
        "aggregator",
        grid={"prior": [0.1, 1.0]},
        expected_failed_checks=_VOTES,
    ),
    Instance(HierarchicalDawidSkene(), "aggregator", grid={"common": [0.0, 1.0]}, expected_failed_checks=_VOTES),
    Instance(GLAD(), "aggregator", grid={"spread": [0.0, 1.0]}, expected_failed_checks=_VOTES),
    Instance(GLAD(difficulty="estimated"), "aggregator", grid={"spread": [0.0, 1.0]}, expected_failed_checks=_VOTES),
    Instance(MACE(), "aggregator", grid={"prior": [0.5, 2.0]}, expected_failed_checks=_VOTES),
    Instance(MACE(inference="map"), "aggregator", grid={"answer_prior": [1.0]}, expected_failed_checks=_VOTES),
    Instance(SpectralDawidSkene(), "aggregator", grid={"prior": [0.1, 1.0]}, expected_failed_checks=_VOTES),
    Instance(MultiSPA(), "aggregator", grid={"prior": [0.1, 1.0]}, expected_failed_checks=_VOTES),
    Instance(CoupledNMF(max_iter=20), "aggregator", grid={"prior": [0.1, 1.0]}, expected_failed_checks=_VOTES),
    Instance(
        ProjectedGradientOneCoin(max_iter=20), "aggregator", grid={"prior": [0.1, 1.0]}, expected_failed_checks=_VOTES
    ),
    Instance(KOS(), "aggregator", grid={"tol": [1e-3, 1e-6]}, n_classes=2, checked=KOSBySign()),
    Instance(MaxMarginMajorityVote(), "aggregator", grid={"C": [0.01, 1.0]}, expected_failed_checks=_VOTES),
    Instance(
        MinimaxEntropy(strength=0.5, max_iter=10),
        "aggregator",
        grid={"strength": [0.1, 1.0]},
        checked=MinimaxEntropyBySign(strength=0.5, max_iter=10),
    ),
    Instance(SymmetricNMF(max_iter=20), "aggregator", grid={"prior": [0.1, 1.0]}, expected_failed_checks=_VOTES),
    Instance(TensorADMM(max_iter=20), "aggregator", grid={"prior": [0.1, 1.0]}, expected_failed_checks=_VOTES),
    Instance(
        GroupAwareDawidSkene(1, tol=0.01), "aggregator", grid={"prior": [0.1, 1.0]}, expected_failed_checks=_VOTES
    ),
    Instance(
        CommunityDawidSkene(2, tol=0.01),
        "aggregator",
        grid={"n_communities": [1, 2]},
        expected_failed_checks=_VOTES,
    ),
    Instance(MMSR(tol=0.05), "aggregator", grid={"trim": [0.0, 0.3]}, expected_failed_checks=_VOTES),
    Instance(SpammerDetector(0.4, min_answers=2), "detector"),
    Instance(ColluderDetector(min_excess=0.9, min_overlap=2), "detector"),
    Instance(ActiveCrowdsourcing(DawidSkene(tol=1.0), random_state=0), "active", grid={"price": [None, 0.1]}),
    Instance(OrdinalConsensus(tol=1.0), "aggregator", grid={"prior": [0.1, 1.0]}, expected_failed_checks=_VOTES),
    Instance(
        CrowdRegressor("low_rank", bias=True, tol=0.1),
        "numbers",
        grid={"method": ["gaussian", "mean"]},
        expected_failed_checks={"check_supervised_y_no_nan": "NaN marks an unknown truth"},
    ),
    Instance(ConsensusClassifier(MajorityVote()), "consensus", grid={"aggregator": [None, MajorityVote()]}),
    Instance(CROWDLAB(cv=2, random_state=0), "consensus", grid={"cv": [2, 3]}),
    Instance(
        NetClassifier((16,), max_epochs=20, random_state=0),
        "classifier",
        grid={"weight_decay": [0.0, 0.1]},
    ),
    Instance(CCEMClassifier((16,), max_epochs=20, random_state=0), "crowd", grid={"weight_decay": [0.0, 0.1]}),
    Instance(RaykarClassifier(), "crowd", grid={"prior": [1.0, "average"]}),
    *(Instance(kind(hidden_layer_sizes=(4,), max_epochs=12, random_state=0), "crowd") for kind in _CROWD),
    Instance(CountsClassifier((16,), max_epochs=20, random_state=0), "crowd", grid={"vote_accuracy": [0.6, 0.9]}),
    Instance(
        ClusterDeferral(AnnotatorLDA(**_FAST), n_groups=2, **_GATE),
        "deferrer",
        grid={"clusterer__n_clusters": [1, 2], "n_groups": [1, 2]},
        expected_failed_checks=_WEIGHTS,
    ),
    Instance(
        ClusterDeferral(
            AnnotatorLDA(membership_prior=1.0, dtype="float64", **_FAST),
            grouping="hard",
            evidence="combined",
            dtype="float64",
            **_GATE,
        ),
        "deferrer",
        grid={"coverage": [0.2, 0.8], "annotation_smoothing": [0.001, 0.1]},
        expected_failed_checks=_WEIGHTS,
    ),
    Instance(
        ProbabilisticDeferral(answer_hidden_layer_sizes=(4,), answer_epochs=3, **_GATE),
        "deferrer",
        grid={"missing": ["latent", "naive"], "answer_shrinkage": [0.0, 0.5]},
        expected_failed_checks=_WEIGHTS,
    ),
    Instance(
        ProbabilisticDeferral(
            joint_classifier=True,
            answer_hidden_layer_sizes=(4,),
            answer_epochs=3,
            dtype="float64",
            **(_GATE | {"classifier": None, "max_epochs": 12, "lr": 0.2, "batch_size": 32}),
        ),
        "deferrer",
        grid={"coverage": [0.2, 0.8]},
        expected_failed_checks=_BATCHES,
    ),
    Instance(
        ComplementDeferral(answer_hidden_layer_sizes=(4,), answer_epochs=3, **_GATE),
        "deferrer",
        grid={"complement": [False, True], "coverage": [0.2, 0.8]},
        expected_failed_checks=_WEIGHTS,
    ),
    Instance(
        SemiSupervisedDeferral(
            threshold=0.5,
            answer_hidden_layer_sizes=(4,),
            answer_epochs=6,
            **(_GATE | {"max_epochs": 8, "lr": 0.1, "batch_size": 32}),
        ),
        "deferrer",
        grid={"completion": ["fixmatch", "mixmatch"], "unlabeled_weight": [0.0, 1.0]},
        expected_failed_checks=_WEIGHTS,
    ),
    Instance(
        RandomExpertDeferral(**_GATE),
        "deferrer",
        grid={"coverage": [0.2, 0.8], "classifier__C": [0.01, 1.0]},
        expected_failed_checks=_WEIGHTS,
    ),
    Instance(ClassifierOnly(LogisticRegression(), random_state=0), "deferrer", grid={"classifier__C": [0.01, 1.0]}),
    Instance(
        ConfidenceDeferral(LogisticRegression(), cv=2, coverage=0.5, random_state=0),
        "deferrer",
        grid={"coverage": [0.2, 0.8], "classifier__C": [0.01, 1.0]},
    ),
    Instance(
        RankedDeferral(ConfidenceDeferral(LogisticRegression(), cv=2), coverage=0.5, random_state=0),
        "deferrer",
        grid={"coverage": [0.2, 0.8], "deferrer__consultation_cost": [0.0, 0.1]},
    ),
    Instance(
        PanelDeferral(LogisticRegression(), answers=0.5, cv=2, random_state=0),
        "deferrer",
        grid={"answers": [0.2, 1.5], "classifier__C": [0.01, 1.0]},
    ),
    Instance(
        PanelDeferral(
            LogisticRegression(),
            consultation_cost=0.02,
            max_answers=3,
            clusterer=AnnotatorLDA(**_FAST),
            cv=2,
            random_state=0,
        ),
        "deferrer",
        grid={"max_answers": [1, 2], "clusterer__n_clusters": [1, 2]},
    ),
    Instance(
        LECODUDeferral(
            LogisticRegression(),
            answers=0.5,
            max_answers=2,
            cv=2,
            fusion_layer_sizes=(4,),
            hidden_layer_sizes=(4,),
            max_epochs=12,
            random_state=0,
        ),
        "deferrer",
        grid={"answers": [0.2, 1.5], "complement": [True, False]},
    ),
    Instance(
        ProfileDeferral(LogisticRegression(), max_groups=3, answers=0.5, cv=2, random_state=0),
        "deferrer",
        grid={"answers": [0.2, 0.8], "n_groups": [1, 2]},
    ),
    Instance(
        ConformalDeferral(LogisticRegression(), clusterer=AnnotatorLDA(**_FAST), cv=2, random_state=0),
        "deferrer",
        grid={"confidence_level": [0.7, 0.9], "classifier__C": [0.01, 1.0]},
    ),
    Instance(BestExpert(LogisticRegression(), random_state=0), "deferrer", grid={"classifier__C": [0.01, 1.0]}),
    Instance(
        OneStageDeferral(hidden_layer_sizes=(4,), lr=0.1, batch_size=16, max_epochs=20, random_state=0),
        "deferrer",
        grid={"surrogate": ["softmax", "ova"], "consultation_cost": [None, 0.1]},
        expected_failed_checks=_BATCHES,
    ),
    Instance(
        OneStageDeferral("ova", hidden_layer_sizes=(4,), batch_size=16, max_epochs=20, dtype="float64", random_state=0),
        "deferrer",
        grid={"experts": ["all", "most_confident_correct"]},
        expected_failed_checks=_BATCHES,
    ),
    Instance(
        TwoStageDeferral(LogisticRegression(C=0.01), cv=2, hidden_layer_sizes=(4,), max_epochs=12, random_state=0),
        "deferrer",
        grid={"classifier__C": [0.01, 1.0], "consultation_cost": [None, 0.1]},
        expected_failed_checks=_WEIGHTS,
    ),
    Instance(
        TopKDeferral(
            LogisticRegression(C=0.01), answers=0.5, cv=2, hidden_layer_sizes=(4,), max_epochs=12, random_state=0
        ),
        "deferrer",
        grid={"answers": [0.2, 1.5], "classifier__C": [0.01, 1.0]},
        expected_failed_checks=_WEIGHTS,
    ),
    Instance(
        MixtureOfExpertsDeferral(hidden_layer_sizes=(4,), lr=0.1, batch_size=16, max_epochs=12, random_state=0),
        "deferrer",
        grid={"lr": [0.05, 0.1]},
        expected_failed_checks=_BATCHES,
    ),
    Instance(
        PopulationDeferral(4, context_layer_sizes=(4,), lr=0.05, batch_size=32, **(_SGD | {"max_epochs": 15})),
        "deferrer",
        grid={"context_size": [5, 10], "pooling": ["mean", "attention"]},
        expected_failed_checks=_BATCHES,
    ),
    Instance(
        ExpertAgnosticDeferral(
            LogisticRegression(C=0.01),
            cv=2,
            hidden_layer_sizes=(4,),
            lr=0.1,
            batch_size=16,
            max_epochs=20,
            random_state=0,
        ),
        "deferrer",
        grid={"state": ["class", "role"], "experts_per_step": [2, 10]},
    ),
]


def of_kind(kind):
    """Instances of one kind."""
    return [instance for instance in INSTANCES if instance.kind == kind]


def fitted_to(*data):
    """Instances that are fitted to "X", to "y" (labels or counts), or to both."""
    given = {
        "active": set(),
        "clusterer": {"X"},
        "roster": set(),
        "detector": set(),
        "aggregator": set(),
        "consensus": {"X"},
        "crowd": {"X"},
        "numbers": set(),
    }
    return [instance for instance in INSTANCES if given.get(instance.kind, {"X", "y"}) >= set(data)]


def with_parameter(instances, name):
    """Those whose estimator has a parameter: "hidden_layer_sizes" for what trains a net of its own."""
    return [instance for instance in instances if name in instance.estimator.get_params(deep=False)]


def without_people(estimator):
    """A clone that requests nothing of people, so that it fits without annotations."""
    requests = {"coverage", "workload", "cluster_workload", "answers"} & estimator.get_params(deep=False).keys()
    return clone(estimator).set_params(**dict.fromkeys(requests))


# scikit-learn's checks know no annotations
CHECKED = [without_people(instance.checked or instance.estimator) for instance in INSTANCES]


def expected_failed_checks(estimator):
    """Reasons of the known failures of an estimator in `CHECKED`, as scikit-learn asks for them."""
    return next(i.expected_failed_checks for i, checked in zip(INSTANCES, CHECKED, strict=True) if checked is estimator)


def make_crowd(n_samples=60, n_experts=5, labels=(0, 1, 2), random_state=0):
    """Gaussian classes and experts from very good to erratic, one annotation in four missing (-1 or None)."""
    rng = np.random.default_rng(random_state)
    labels = np.array(labels)
    truth = rng.integers(len(labels), size=n_samples)
    X = rng.normal(size=(n_samples, 4)) + 2 * np.eye(len(labels), 4)[truth]
    wrong = rng.random((n_samples, n_experts)) < np.linspace(0.05, 0.6, n_experts)
    codes = np.where(wrong, rng.integers(len(labels), size=wrong.shape), truth[:, None])
    codes[rng.random(codes.shape) < 0.25] = -1
    counts = (codes[:, :, None] == np.arange(len(labels))).sum(1)
    missing = -1 if labels.dtype.kind in "iu" else None
    annotations = np.where(codes < 0, missing, labels.astype(object)[codes])
    return Bunch(
        X=X,
        y=labels[truth],
        counts=counts,
        annotations=annotations.astype(int) if missing == -1 else annotations,
        labels=labels,
    )


def votes_for(instance, crowd):
    """Annotations of a crowd; the third class is taken for the second where an estimator takes no more."""
    if instance.n_classes is None:
        return crowd.annotations
    _, second, third = crowd.labels
    if isinstance(crowd.annotations, Votes):
        votes = crowd.annotations
        two = votes.with_labels(np.minimum(votes.label, 1))
        return two.among(votes.classes[:2])
    if isinstance(crowd.annotations, pd.DataFrame):
        return crowd.annotations.replace(third, second)
    return np.where(crowd.annotations == third, second, crowd.annotations)


def answers_in_numbers(crowd):
    """The annotations of a crowd as a table of floats, NaN where they are missing."""
    votes = encode_votes(crowd.annotations, classes=crowd.labels)
    codes = votes.to_codes().astype(float)
    codes[codes < 0] = np.nan
    frame = hasattr(crowd.annotations, "columns")
    return type(crowd.annotations)(codes, columns=votes.annotators) if frame else codes


def fit(instance, estimator, crowd):
    """Fit an estimator of the kind of `instance` to the crowd."""
    if instance.kind == "annotator":
        return estimator.fit(crowd.X, crowd.counts)
    if instance.kind == "clusterer":
        return estimator.fit(crowd.X)
    if instance.kind == "numbers":
        return estimator.fit(answers_in_numbers(crowd))
    if instance.kind in ("active", "aggregator", "detector", "roster"):
        return estimator.fit(votes_for(instance, crowd))
    if instance.kind == "classifier":
        return estimator.fit(crowd.X, crowd.y)
    if instance.kind in ("consensus", "crowd"):
        return estimator.fit(crowd.X, annotations=crowd.annotations)
    return estimator.fit(crowd.X, crowd.y, annotations=crowd.annotations)


def outputs(instance, estimator, crowd):
    """All answers of a fitted estimator, as arrays."""
    X, annotations = crowd.X, crowd.annotations
    if instance.kind == "annotator":
        return {
            "transform": np.asarray(estimator.transform(X, annotations)),
            "predict": estimator.predict(X, annotations),
            "predict_annotation_proba": estimator.predict_annotation_proba(X),
            "item_posterior": estimator.item_posterior(X, crowd.counts),
            "score": np.array(estimator.score(X, crowd.counts)),
        }
    if instance.kind == "clusterer":
        return {"transform": estimator.transform(X), "predict": estimator.predict(X)}
    if instance.kind == "aggregator":
        annotations = votes_for(instance, crowd)
        return {
            "predict": estimator.predict(annotations),
            "predict_proba": estimator.predict_proba(annotations),
            "transform": np.asarray(estimator.transform(annotations)),
            "score": np.array(estimator.score(annotations)),
            "confusion_matrices": estimator.confusion_matrices_,
        }
    if instance.kind == "detector":
        return {"labels": estimator.labels_, "scores": estimator.scores_}
    if instance.kind == "numbers":
        return {"predict": estimator.predict(answers_in_numbers(crowd)), "sigma": estimator.sigma_}
    if instance.kind == "active":
        item, annotator = estimator.suggest(annotations, 10)
        who = np.searchsorted(estimator.annotators_.astype(str), annotator.astype(str))
        return {"item": item, "annotator": who, "predict_proba": estimator.predict_proba(annotations)}
    if instance.kind == "roster":
        return {"labels": estimator.labels_, "agreement": estimator.agreement_}
    if instance.kind in ("classifier", "consensus"):
        return {"predict": estimator.predict(X), "predict_proba": estimator.predict_proba(X)}
    if instance.kind == "crowd":
        return {
            "predict": estimator.predict(X),
            "predict_proba": estimator.predict_proba(X),
            "predict_annotation_proba": estimator.predict_annotation_proba(X),
            "confusion_matrices": estimator.confusion_matrices_,
        }
    if instance.kind == "encoder":
        return {
            "transform": np.asarray(estimator.transform(X, annotations, crowd.y)),
            "transform of nobody": np.asarray(estimator.transform(X)),
        }
    return {
        "predict": estimator.predict(X),
        "predict_proba": estimator.predict_proba(X),
        "predict_deferral": estimator.predict_deferral(X),
        "predict_deferral_proba": estimator.predict_deferral_proba(X),
        "decision_function": estimator.decision_function(X),
        "consult": estimator.consult(X),
        "predict_expert_correctness": estimator.predict_expert_correctness(X),
        "score": np.array(estimator.score(X, crowd.y, annotations=annotations)),
    }
