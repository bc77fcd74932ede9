"""An entry that several docstrings have is the same in all of them, unless it is listed here with a reason."""

import importlib
import inspect
from collections import defaultdict

import pytest
from api_reference import API_REFERENCE
from sklearn.utils._testing import assert_docstring_consistency

pytest.importorskip("numpydoc", reason="numpydoc is in the extra named doc")
from numpydoc.docscrape import NumpyDocString

MODULES = ("sklearn_l2d.cluster", "sklearn_l2d.crowd", "sklearn_l2d.deferral")
OPTIONS = {"Parameters": "include_params", "Attributes": "include_attrs"}

VOTES = (
    "AggNetClassifier CCEMClassifier COINNet CoNALClassifier CrowdLayerClassifier GeoCrowdNet "
    "InstanceDependentCrowdNet MaxMIGClassifier TraceRegClassifier UnionNet"
)
EM = "ClusterDeferral ComplementDeferral ProbabilisticDeferral RandomExpertDeferral SemiSupervisedDeferral"
NET = "module, hidden_layer_sizes, optimizer, lr, momentum, weight_decay, batch_size, max_epochs"
TRAINING = "optimizer, lr, momentum, weight_decay, batch_size, max_epochs"

# Entries that differ legitimately: the reason, and the objects, whose entries then agree among themselves.
DIFFERENT = {
    ("Parameters", "hidden_layer_sizes, module, optimizer, lr, momentum, weight_decay, batch_size, max_epochs"): {
        "a default is another one": "CountsClassifier",
        "another default is another one": "CoNALClassifier CrowdLayerClassifier",
    },
    ("Parameters", "alpha"): {"weight of a loss, not a concentration": "OneStageDeferral"},
    ("Parameters", "answer_epochs"): {"these nets also learn from items without annotation": "SemiSupervisedDeferral"},
    ("Parameters", "answer_hidden_layer_sizes"): {
        "the classifier can be one of the nets": "ComplementDeferral ProbabilisticDeferral"
    },
    ("Parameters", "classifier"): {"it needs weights": "RaykarClassifier"},
    ("Parameters", "answers"): {
        "at most one answer": "ConformalDeferral",
        "a toll on what a gate prefers": "LECODUDeferral",
        "there is a worth without a request": "ProfileDeferral",
    },
    ("Parameters", "max_answers"): {"one is the default": "ProfileDeferral"},
    ("Parameters", "n_groups"): {"the number can be chosen": "ProfileDeferral"},
    ("Parameters", "clusterer"): {
        "there are no groups": "PanelDeferral",
        "there are no groups, and no shape of errors in the choice": "ConformalDeferral",
    },
    ("Parameters", "class_weight"): {
        "a gate and the default classifier": "ClusterDeferral RandomExpertDeferral SemiSupervisedDeferral",
        "a gate, the experts' nets and the default classifier": "ComplementDeferral ProbabilisticDeferral",
    },
    ("Parameters", "complement"): {"there may be several people": "LECODUDeferral"},
    ("Parameters", "consultation_cost"): {
        "the cost must not be negative, and is not in the loss": "OneStageDeferral",
        "the cost must not be negative, and is in the loss": "TwoStageDeferral",
        "the cost must not be negative, and adds up over a panel": "TopKDeferral",
        "targets have no cost of their own": "PanelDeferral",
        "the cost is in the loss, and people are interchangeable": "LECODUDeferral",
        "options have no cost of their own": "ComplementDeferral",
    },
    ("Parameters", "confidence_level"): {
        "of the share of errors": "PanelDeferral",
        "of prediction sets": "ConformalDeferral",
    },
    ("Parameters", "coverage"): {"without bounds, the deferrer that is wrapped decides": "RankedDeferral"},
    ("Parameters", "cv"): {
        "there is no gate, but a coverage": "ConfidenceDeferral",
        "there is no gate, but prediction sets": "ConformalDeferral",
        "there is no gate, but a weight of the classifier": "PanelDeferral",
        "a number of groups is chosen, too": "ProfileDeferral",
        "the folds are for the training of the net": "ExpertAgnosticDeferral LECODUDeferral TopKDeferral "
        "TwoStageDeferral",
    },
    ("Parameters", "hidden_layer_sizes"): {
        "there is no module that takes their place": "ExpertAgnosticDeferral",
        "the last layer gives features": "PopulationExpertEncoder",
    },
    ("Parameters", "init"): {"clusters have a consensus, annotators have an accuracy": "AnnotatorLDA"},
    ("Parameters", "max_iter"): {"a turn fits a classifier": "RaykarClassifier"},
    ("Parameters", "max_epochs"): {
        "a phase is included": "AnnotatorLDA",
        "a phase is not included": "PopulationExpertEncoder",
    },
    ("Parameters", "missing_label"): {"there are no classes that could have the label -1": "AgreementClustering"},
    ("Parameters", "module"): {
        "there are several copies": "AnnotatorLDA",
        "it gives features": "PopulationExpertEncoder",
    },
    ("Parameters", "momentum"): {"it has a part in online EM": "AnnotatorLDA"},
    ("Parameters", "n_clusters"): {"a cluster is a behaviour": "AnnotatorLDA"},
    ("Parameters", "n_components"): {"of embeddings, and of matrices": "CoNALClassifier"},
    ("Parameters", "prior"): {"of confusion matrices, not of competence": "RaykarClassifier"},
    ("Parameters", "random_state"): {
        "starts and shuffling": "AnnotatorLDA",
        "starts": "FuzzyCMeans",
        "starts, shuffling and a module": "NetClassifier",
        "starts, shuffling and examples": "PopulationExpertEncoder",
        "folds, clusterer, grouping, gate, draws and classifier": "ClusterDeferral",
        "folds, gate, draws and classifier": "RandomExpertDeferral",
        "folds, nets, gate, draws and classifier": "ComplementDeferral ProbabilisticDeferral",
        "folds, nets, views, gate, draws and classifier": "SemiSupervisedDeferral",
        "folds, draws and classifier": "ConfidenceDeferral",
        "folds, clusterer and classifier": "ConformalDeferral",
        "folds, held-out items, clusterer, drawn answers, turns and classifier": "PanelDeferral",
        "folds, net, draws and classifier": "ExpertAgnosticDeferral TwoStageDeferral",
        "folds, nets, order of people and classifier": "LECODUDeferral",
        "folds and classifier": "ProfileDeferral",
        "folds, nets and classifier": "TopKDeferral",
        "net and draws": "MixtureOfExpertsDeferral OneStageDeferral",
        "net, examples and draws": "PopulationDeferral",
        "the deferrer that is wrapped": "RankedDeferral",
    },
    ("Parameters", "warm_start"): {
        "all nets continue": "AnnotatorLDA",
        "some nets do not continue": "ComplementDeferral ProbabilisticDeferral SemiSupervisedDeferral",
    },
    ("Parameters", "tol"): {"the objective has a unit": "RaykarClassifier"},
    ("Parameters", "weight"): {
        "of the distance between maps": "CoNALClassifier",
        "of the volume": "GeoCrowdNet",
        "of the volume, as there": "COINNet",
        "of the diagonal, and 0 is a method of its own": "TraceRegClassifier",
    },
    ("Parameters", "weight_decay"): {"it is averaged over nets": "AnnotatorLDA"},
    ("Parameters", NET): {
        "its own defaults of lr, weight_decay, batch_size and max_epochs": "LECODUDeferral",
        "its own default of batch_size": "MixtureOfExpertsDeferral",
        "its own default of weight_decay": "OneStageDeferral",
        "its own default of hidden_layer_sizes": "TwoStageDeferral",
        "its own defaults of hidden_layer_sizes and weight_decay": "TopKDeferral",
        "the experts' nets have some of them": "ComplementDeferral ProbabilisticDeferral SemiSupervisedDeferral",
    },
    ("Attributes", "classes_"): {
        "a clusterer can be frozen, too": "ClusterDeferral",
        "the classifier cannot be frozen": "MixtureOfExpertsDeferral OneStageDeferral PopulationDeferral",
        "they are those of the deferrer": "RankedDeferral",
        "there are other sources of labels": "AnnotatorLDA BetaExpertEncoder CountsClassifier NetClassifier "
        f"RaykarClassifier {VOTES} PopulationExpertEncoder",
    },
    ("Attributes", "classifier_"): {
        "it is part of a net": "MixtureOfExpertsDeferral",
        "it is part of a net, with several links": "OneStageDeferral",
        "it is part of a net with codes of experts": "PopulationDeferral",
        "it is that of the deferrer": "RankedDeferral",
    },
    ("Attributes", "constraint_violation_"): {"only the coverage is bounded": "RankedDeferral"},
    ("Attributes", "device_"): {"there are several nets": "AnnotatorLDA"},
    ("Attributes", "experts_"): {
        "it does not change after fit": "BetaExpertEncoder PopulationExpertEncoder",
        "there is no transform of other experts": "AgreementClustering",
    },
    ("Attributes", "history_"): {
        "turns have an objective": "RaykarClassifier",
        "nothing is trained": "BestExpert ClassifierOnly ConfidenceDeferral ConformalDeferral PanelDeferral "
        "ProfileDeferral",
        "the E-step has figures, too": EM,
        "it is that of the deferrer": "RankedDeferral",
        "the loss has a unit": "AnnotatorLDA",
        "there are two nets": "TopKDeferral",
        "there are no epochs": "FuzzyCMeans",
    },
    ("Attributes", "labels_"): {"experts are clustered, not rows": "AgreementClustering"},
    ("Attributes", "n_features_in_"): {"the columns are experts": "AgreementClustering"},
    ("Attributes", "n_iter_"): {
        "there are turns": "RaykarClassifier",
        "nothing is trained": "BestExpert ClassifierOnly ConfidenceDeferral ConformalDeferral PanelDeferral "
        "ProfileDeferral",
        "there is a gate": EM,
        "another phase is included": "PopulationDeferral PopulationExpertEncoder",
        "the phase of the consensus is included": "AnnotatorLDA",
        "they are those of the deferrer": "RankedDeferral",
        "there are two nets": "TopKDeferral",
        "there are no epochs": "FuzzyCMeans",
    },
    ("Attributes", "net_"): {
        "there is none without experts": "ExpertAgnosticDeferral LECODUDeferral TwoStageDeferral",
        "there are two": "TopKDeferral",
        "there are several": "AnnotatorLDA",
    },
    ("Attributes", "offsets_"): {
        "probabilities have a unit": "ConfidenceDeferral",
        "only the coverage is bounded": "RankedDeferral",
    },
    ("Attributes", "selection_"): {"workloads can be bounded": f"{EM} ConfidenceDeferral"},
    ("Attributes", "target_shares_"): {
        "newcomers are targets": "ExpertAgnosticDeferral PopulationDeferral",
        "newcomers are targets, and there is recalibrate": "ConfidenceDeferral ConformalDeferral",
        "it is only asked first": "PanelDeferral TopKDeferral",
        "it is only asked first, and no newcomer is a target": "ProfileDeferral",
    },
    ("Attributes", "targets_"): {
        "newcomers are targets": "BestExpert ConfidenceDeferral ConformalDeferral ExpertAgnosticDeferral "
        "PanelDeferral PopulationDeferral TopKDeferral",
        "all experts are one target": "ClassifierOnly LECODUDeferral RandomExpertDeferral",
        "groups are targets": "ClusterDeferral",
        "groups are in order": "ProfileDeferral",
        "experts are two targets": "ComplementDeferral",
        "they are those of the deferrer": "RankedDeferral",
    },
    ("Attributes", "toll_"): {
        "it is not a cost": "ConformalDeferral",
        "it is in logits": "LECODUDeferral",
        "there is no other cost": "ProfileDeferral",
    },
    ("Attributes", "weights_"): {"they are whole matrices": "CoNALClassifier"},
    ("Attributes", "temperature_"): {
        "there is no calibration": "BestExpert ClassifierOnly MixtureOfExpertsDeferral OneStageDeferral "
        "PopulationDeferral"
    },
}

# What all descriptions have in common where they may differ.
PATTERNS = {
    ("Parameters", "consultation_cost"): (
        "^Cost of asking an expert, in (units of one error: one cost for all experts, one per expert, or a mapping "
        "from names of experts |nats )"
    ),
    ("Parameters", "coverage"): "^Share of the items that the classifier decides, or a pair of a lower and an upper ",
    ("Parameters", "cv"): "^Folds of the classifier's out-of-fold probabilities",
    ("Parameters", "hidden_layer_sizes"): "^Hidden units of the ",
    ("Parameters", "max_epochs"): "^Number of epochs",
    ("Parameters", "missing_label"): "^Marker of a missing annotation, or a list, tuple or set of several. None stands",
    ("Parameters", "module"): "^Class or function called with `n_outputs` that returns a torch module from batches ",
    ("Parameters", "momentum"): '^Momentum of "sgd"',
    ("Parameters", "random_state"): "^Seed of the ",
    ("Parameters", "warm_start"): "^Whether `fit` continues the training of the previous (gate|nets)",
    ("Parameters", "weight_decay"): "^L2 penalty",
    ("Parameters", NET): r"^Parameters of the (gate|net), as in `AnnotatorLDA`\. The defaults are ",
    ("Parameters", TRAINING): r"^Parameters of the net, as in `PopulationExpertEncoder`\. The defaults are ",
    ("Attributes", "classes_"): "^Sorted (class )?labels",
    ("Attributes", "net_"): "^The trained nets?.* interface is private.$",
    ("Attributes", "offsets_"): "^Offsets that are added to the .* so that the (shares meet their|coverage meets its) ",
    ("Attributes", "selection_"): "^Weights by which each target selects its members",
    ("Attributes", "target_shares_"): "^Share of the items that each target decides, the classifier last",
    ("Attributes", "targets_"): "^Names of the targets: ",
}

# Their types differ in the default.
ANY_TYPE = ("batch_size", "hidden_layer_sizes", "lr", "optimizer", "weight_decay")

# The same for the descriptions of parameters of methods. Their types differ in what may be None or may have a module.
METHODS_DIFFERENT = {
    "classes": {"all data come at once": "CountsClassifier.fit"},
    "capacity": {
        "it is that of the shift": "DecidingDeferrer.start_shift",
        "no call is remembered": "PanelDeferral.next_expert",
    },
    "on_overflow": {"the team says it": "Shift.assign_experts", "the shift says it": "Shift.route"},
    "available": {
        "the items are not known yet": "DecidingDeferrer.start_shift",
        "the items are for calibration": "FixedPanelDeferrer.answers_path FixedPanelDeferrer.recalibrate "
        "PanelDeferral.answers_path PanelDeferral.recalibrate",
    },
    "X": {
        "sizes of the columns matter to a net": "AnnotatorLDA.fit AnnotatorLDA.partial_fit CountsClassifier.fit "
        "CrowdNetClassifier.fit NetClassifier.fit RaykarClassifier.fit",
        "there may be none": "AnnotatorLDA.suggest_items",
        "they come one by one": "Shift.assign_experts Shift.next_expert",
        "clusters are compared, not predicted": "AnnotatorLDA.used_clusters",
        "the rows are points": "FuzzyCMeans.predict FuzzyCMeans.transform",
        "the rows are points, mostly encodings": "FuzzyCMeans.fit",
        "there are unlabelled items, too": "BaseDeferrer.fit",
        "newcomers annotated them": "ClusterDeferral.onboard DeferrerWrapper.onboard KnownByBehaviours.onboard "
        "LECODUDeferral.onboard ProfileDeferral.onboard RandomExpertDeferral.onboard TallyMixin.onboard",
        "the index is kept": "DecidingDeferrer.route Shift.route",
    },
    "X_unlabeled": {
        "they are optional": "BaseDeferrer.fit",
        "margins can take their place": "CoverageMixin.coverage_path",
        "several thresholds are calibrated": "PanelDeferral.answers_path",
        "a toll is calibrated": "FixedPanelDeferrer.answers_path",
    },
    "annotations": {
        "another method says it": "AnnotatorLDA.fit_transform AnnotatorLDA.predict ExpertEncoder.fit_transform",
        "fit says it": "AgreementClustering.fit_predict",
        "they are those of one expert": "AnnotatorLDA.suggest_items",
        "they can bring labels": "ExpertEncoder.transform",
        "there may be no experts": "BaseDeferrer.fit",
        "a classifier learns from them": "CrowdNetClassifier.fit RaykarClassifier.fit",
        "they judge a classifier": "CrowdMixin.log_likelihood",
        "they are judged": "COINNet.outlier_scores",
        "only their number counts": "CountsClassifier.fit",
        "they are those of newcomers": "ClusterDeferral.onboard DeferrerWrapper.onboard KnownByBehaviours.onboard "
        "LECODUDeferral.onboard ProfileDeferral.onboard RandomExpertDeferral.onboard TallyMixin.onboard",
        "they may be some of those to come": "PanelDeferral.next_expert SeveralAnswersDeferrer.predict_team "
        "SeveralAnswersDeferrer.predict_team_proba",
        "another method says that they may be some": "PanelDeferral.explain_deferral",
        "they say who can be asked": "SeveralAnswersDeferrer.replay",
        "a panel says that they may be some": "Shift.next_expert",
        "the experts are known": "SeveralAnswersDeferrer.score LabellingDeferrer.predict_team "
        "LabellingDeferrer.predict_team_proba LabellingDeferrer.score "
        "GatedDeferrer.partial_fit ComplementDeferral.join_answers DeferrerWrapper.join_answers",
    },
    "decision": {
        "there are probabilities": "LabellingDeferrer.predict_team_proba",
        "answers are joined unless another decision is asked for": "SeveralAnswersDeferrer.predict_team",
        "another class says it": "SeveralAnswersDeferrer.predict_team_proba",
    },
    "experts": {"they leave": "BaseDeferrer.offboard"},
    "sample_weight": {
        "all that is learnt is listed": "BaseDeferrer.fit",
        "votes have weights": "AnnotatorLDA.fit",
        "fit says it": "GatedDeferrer.partial_fit",
        "only a loss is weighted": "CountsClassifier.fit NetClassifier.fit",
    },
    "y": {
        "it is ignored": "AgreementClustering.fit AgreementClustering.fit_predict FuzzyCMeans.fit",
        "it holds votes": "AnnotatorLDA.fit",
        "it holds votes, and fit says it": "AnnotatorLDA.item_posterior AnnotatorLDA.partial_fit "
        "AnnotatorLDA.perplexity AnnotatorLDA.score",
        "it holds votes, and can bring annotations": "AnnotatorLDA.fit_transform",
        "it is needed with annotations only": "ExpertEncoder.transform",
        "unlabelled items have another place": "BaseDeferrer.fit",
        "items of unknown truth are left out": "LabellingDeferrer.score SeveralAnswersDeferrer.score",
        "newcomers are known by their correctness": "TallyMixin.onboard",
        "newcomers join groups": "ClusterDeferral.onboard",
        "newcomers are matched to groups": "ProfileDeferral.onboard",
        "newcomers may be known by their memberships": "KnownByBehaviours.onboard",
        "newcomers need no labels": "RandomExpertDeferral.onboard",
        "newcomers need no labels, and there is no partial_fit": "LECODUDeferral.onboard",
        "the deferrer that is wrapped decides": "DeferrerWrapper.onboard",
        "there are no annotations": "NetClassifier.fit",
        "annotations can take its place": "CountsClassifier.fit CrowdNetClassifier.fit RaykarClassifier.fit",
    },
}
METHODS_PATTERNS = {
    "annotations": "^(Annotations of |Who answered what|As in `(fit|transform)`)",
    "experts": "^Names of the experts.",
}


# Aggregators have annotations for X and annotators in place of experts: their entries agree among themselves.
AGGREGATION = ("sklearn_l2d.aggregation",)

FEATURES = "CROWDLAB ConsensusClassifier"

AGGREGATION_DIFFERENT = {
    ("Parameters", "inference"): {"its default is variational": "MACE"},
    ("Attributes", "strength_"): {"there are penalties": "MinimaxEntropy"},
    ("Attributes", "history_"): {
        "there is no single objective": "HierarchicalDawidSkene",
        "it has no objective": "MMSR",
    },
    ("Attributes", "n_features_in_"): {"there may be counts": "MajorityVote", "the columns are features": FEATURES},
    ("Parameters", "prior"): {
        "answers are numbers": "CrowdRegressor",
        "items are compared": "BradleyTerry",
        "it counts on two levels": "GroupAwareDawidSkene",
        "there are no coins": "CommunityDawidSkene OrdinalConsensus",
        "outcomes are knowing and spamming": "MACE",
        "they join what moments told": "CoupledNMF MultiSPA ProjectedGradientOneCoin SpectralDawidSkene SymmetricNMF "
        "TensorADMM",
    },
    ("Parameters", "tol"): {
        "items are compared": "BradleyTerry",
        "it is told by skills": "MMSR",
        "changes are probabilities": "HierarchicalDawidSkene",
        "the objective is that of pairs": "CoupledNMF",
        "it is a square": "ProjectedGradientOneCoin TensorADMM",
        "it is a share": "SymmetricNMF",
        "there is no objective": "KOS",
    },
    ("Parameters", "max_iter"): {
        "rounds are cheap": "CrowdClustering MMSR",
        "they are many and cheap": "CrowdRegressor",
    },
    ("Parameters", "min_answers"): {"people with few answers are not judged": "SpammerDetector"},
    ("Parameters", "class_prior"): {"it cannot be given": "CommunityDawidSkene GroupAwareDawidSkene"},
    ("Attributes", "labels_"): {"they are those of items": "CrowdClustering"},
    ("Attributes", "scores_"): {
        "another thing is suspicious": "ColluderDetector",
        "items have scores": "BradleyTerry",
    },
    ("Parameters", "method"): {"answers are numbers": "CrowdRegressor"},
    ("Parameters", "classifier"): {"its probabilities are taken out of fold": "CROWDLAB"},
    ("Parameters", "alpha"): {"memberships have logits": "CrowdClustering"},
    ("Attributes", "annotators_"): {"they are optional": "BradleyTerry"},
    ("Parameters", "aggregator"): {"it learns online": "ActiveCrowdsourcing"},
    ("Parameters", "random_state"): {
        "it draws folds": "CROWDLAB",
        "it draws whom to ask": "ActiveCrowdsourcing",
        "it draws starts": "CrowdClustering",
    },
    ("Attributes", "aggregator_"): {"there are always votes": "ActiveCrowdsourcing"},
}

AGGREGATION_METHODS_DIFFERENT = {
    "X": {
        "answers are numbers": "CrowdRegressor.fit",
        "the first item is the winner": "BradleyTerry.fit",
        "two items are compared": "BradleyTerry.predict_proba CrowdClustering.fit",
        "two items of the fit are compared": "CrowdClustering.predict_proba",
        "everybody has a column": "ActiveCrowdsourcing.fit",
        "there are no answers but these": "ActiveCrowdsourcing.is_done ActiveCrowdsourcing.predict "
        "ActiveCrowdsourcing.predict_proba",
        "old answers count, too": "ActiveCrowdsourcing.partial_fit",
        "there are items without answers": "ActiveCrowdsourcing.suggest",
        "annotators come by name": "BaseAggregator.predict CrowdRegressor.predict",
        "as there": "BaseAggregator.predict_proba BaseAggregator.score BaseAggregator.transform GLAD.item_difficulty",
        "as in a fit": "BaseAggregator.fit_predict BaseDetector.fit_predict",
        "annotators are judged": "BaseDetector.remove_flagged",
        "the items have features": "BaseConsensusClassifier.fit CROWDLAB.fit_predict CROWDLAB.fit_predict_proba "
        "CROWDLAB.predict ConsensusClassifier.predict ConsensusClassifier.predict_proba",
        "they are other items than in fit": "CROWDLAB.predict_proba",
        "the items are new": "DawidSkene.partial_fit",
    },
    "sample_weight": {"it is described there": "BaseAggregator.fit"},
    "annotations": {
        "as in a fit": "CROWDLAB.fit_predict CROWDLAB.fit_predict_proba",
        "as there": "CROWDLAB.predict",
        "annotators come by name": "CROWDLAB.predict_proba",
    },
    "y": {
        "it is described there": "ActiveCrowdsourcing.fit BaseAggregator.fit",
        "it is ignored": "BaseDetector.fit BaseDetector.fit_predict BradleyTerry.fit",
        "it holds votes": "CrowdClustering.fit",
        "an AnnotatedTarget is one, too": "BaseConsensusClassifier.fit",
        "the truth is a number": "CrowdRegressor.fit",
    },
}


def estimators(modules):
    """Public classes of the modules."""
    sections = [section for section in API_REFERENCE if section["module"] in modules]
    return [getattr(importlib.import_module(s["module"]), name) for s in sections for name in s["names"]]


def public_methods(modules):
    """Public methods of the classes that are written in this package, each once and under its full name."""
    found = {}
    for cls in estimators(modules):
        for name, value in inspect.getmembers(cls, inspect.isroutine):
            method = inspect.unwrap(value)
            if not name.startswith("_") and getattr(method, "__module__", "").startswith("sklearn_l2d"):
                found[method.__qualname__] = documented(method)
    return list(found.values())


def documented(method):
    """A function with the full name and the docstring of a method: names tell the objects of a comparison apart."""

    def stand_in():
        pass

    stand_in.__name__, stand_in.__doc__ = method.__qualname__, method.__doc__
    return stand_in


def repeated(objects, *sections):
    """Entries, as section and name, that several of the objects have, and these objects."""
    having = defaultdict(list)
    for value in objects:
        parsed = NumpyDocString(inspect.getdoc(value))
        for section in sections:
            for entry in parsed[section]:
                having[section, entry.name].append(value)
    return {entry: values for entry, values in having.items() if len(values) > 1}


def check(entry, values, different, pattern, ignored):
    """Compare an entry of all objects, group by group, and with a pattern; the types of some names are ignored."""
    section, name = entry
    of_name = {value.__name__: value for value in values}
    groups = [names.split() for names in different.values()]
    listed = [member for group in groups for member in group]
    assert len(set(listed)) == len(listed), "an object is listed twice"
    assert set(listed) <= set(of_name), "an object is listed that lacks the entry"
    groups.append([member for member in of_name if member not in listed])
    options = {OPTIONS[section]: [name], "ignore_types": ignored}
    for group in groups:
        if len(group) > 1:
            assert_docstring_consistency([of_name[member] for member in group], **options)
    descriptions = {description(entry, of_name[group[0]], ignored) for group in groups if group}
    assert len(descriptions) == sum(map(bool, groups)), "an exception is listed that is none"
    if pattern is not None:
        options["ignore_types"] = (name,)
        assert_docstring_consistency(values, **options, descr_regex_pattern=pattern)


def description(entry, value, ignored):
    """Type, unless it is ignored, and text of an entry."""
    section, name = entry
    (found,) = [e for e in NumpyDocString(inspect.getdoc(value))[section] if e.name == name]
    return None if name in ignored else found.type, " ".join(" ".join(found.desc).split())


ENTRIES = repeated(estimators(MODULES), "Parameters", "Attributes")
METHOD_ENTRIES = repeated(public_methods(MODULES), "Parameters")
AGGREGATION_ENTRIES = repeated(estimators(AGGREGATION), "Parameters", "Attributes")
AGGREGATION_METHOD_ENTRIES = repeated(public_methods(AGGREGATION), "Parameters")


@pytest.mark.parametrize("entry", ENTRIES, ids=":".join)
def test_entry_of_estimators(entry):
    check(entry, ENTRIES[entry], DIFFERENT.get(entry, {}), PATTERNS.get(entry), ANY_TYPE)


@pytest.mark.parametrize("name", [name for _, name in METHOD_ENTRIES])
def test_entry_of_methods(name):
    entry = "Parameters", name
    different, pattern = METHODS_DIFFERENT.get(name, {}), METHODS_PATTERNS.get(name)
    check(entry, METHOD_ENTRIES[entry], different, pattern, (name,))


@pytest.mark.parametrize("entry", AGGREGATION_ENTRIES, ids=":".join)
def test_entry_of_aggregators(entry):
    check(entry, AGGREGATION_ENTRIES[entry], AGGREGATION_DIFFERENT.get(entry, {}), None, ())


@pytest.mark.parametrize("name", [name for _, name in AGGREGATION_METHOD_ENTRIES])
def test_entry_of_methods_of_aggregators(name):
    entry = "Parameters", name
    check(entry, AGGREGATION_METHOD_ENTRIES[entry], AGGREGATION_METHODS_DIFFERENT.get(name, {}), None, (name,))


def test_listed_entries_are_repeated():
    assert {*DIFFERENT, *PATTERNS} <= set(ENTRIES)
    assert {*METHODS_DIFFERENT, *METHODS_PATTERNS} <= {name for _, name in METHOD_ENTRIES}
    assert set(AGGREGATION_DIFFERENT) <= set(AGGREGATION_ENTRIES)
    assert set(AGGREGATION_METHODS_DIFFERENT) <= {name for _, name in AGGREGATION_METHOD_ENTRIES}
