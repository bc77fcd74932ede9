"""Estimators that outlive their process: versions in pickles, and files without pickle."""

import importlib
import io
import json
import os
from importlib.metadata import version
from pathlib import Path
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from ._sklearn import warn
from ._version import __version__

_FORMAT = 1
_DESCRIPTION = "sklearn_l2d.json"  # the member of a file that says what it is
_PACKAGES = "numpy", "scikit-learn", "scipy", "skops", "torch"

# Types and functions that `load` builds unasked, beside those of scikit-learn and numpy that skops knows to be safe.
# They are listed one by one: everything that our modules import could be reached by a prefix.
_KNOWN = {
    f"{module}.{name}"
    for module, names in {
        "sklearn_l2d._numerics._answer_model": ["AnswerModel", "People"],
        "sklearn_l2d._numerics._crowdlab": ["Crowdlab"],
        "sklearn_l2d._numerics._fusion": ["Exponents"],
        "sklearn_l2d._torch._annotator_modules": [
            "AnnotatorNet",
            "CommonLayerModule",
            "ConfusionModule",
            "ItemModule",
            "LayerModule",
            "UnionModule",
        ],
        "sklearn_l2d._torch._consultation": ["Consultation", "ConsultationNet"],
        "sklearn_l2d._torch._crowd_net": ["CountsNet", "CrowdModule", "CrowdNet"],
        "sklearn_l2d._torch._losses": [
            "curve_loss",
            "mixture_loss",
            "most_confident_loss",
            "one_vs_all_loss",
            "realizable_loss",
            "softmax_loss",
        ],
        "sklearn_l2d._torch._modules": ["AgnosticRejector", "Behaviours", "RoleRejector", "Single", "build_ensemble"],
        "sklearn_l2d._torch._net": ["TargetNet"],
        "sklearn_l2d._torch._population_net": ["Population", "PopulationNet"],
        "sklearn_l2d.aggregation._active_crowdsourcing": ["ActiveCrowdsourcing"],
        "sklearn_l2d.aggregation._bradley_terry": ["BradleyTerry"],
        "sklearn_l2d.aggregation._colluder_detector": ["ColluderDetector"],
        "sklearn_l2d.aggregation._community_dawid_skene": ["CommunityDawidSkene"],
        "sklearn_l2d.aggregation._consensus_classifier": ["ConsensusClassifier"],
        "sklearn_l2d.aggregation._coupled_nmf": ["CoupledNMF"],
        "sklearn_l2d.aggregation._crowd_clustering": ["CrowdClustering"],
        "sklearn_l2d.aggregation._crowd_regressor": ["CrowdRegressor"],
        "sklearn_l2d.aggregation._crowdlab": ["CROWDLAB"],
        "sklearn_l2d.aggregation._dawid_skene": ["DawidSkene"],
        "sklearn_l2d.aggregation._glad": ["GLAD"],
        "sklearn_l2d.aggregation._group_aware_dawid_skene": ["GroupAwareDawidSkene"],
        "sklearn_l2d.aggregation._hierarchical_dawid_skene": ["HierarchicalDawidSkene"],
        "sklearn_l2d.aggregation._kos": ["KOS"],
        "sklearn_l2d.aggregation._mace": ["MACE"],
        "sklearn_l2d.aggregation._majority_vote": ["MajorityVote"],
        "sklearn_l2d.aggregation._max_margin_majority_vote": ["MaxMarginMajorityVote"],
        "sklearn_l2d.aggregation._minimax_entropy": ["MinimaxEntropy"],
        "sklearn_l2d.aggregation._mmsr": ["MMSR"],
        "sklearn_l2d.aggregation._multi_spa": ["MultiSPA"],
        "sklearn_l2d.aggregation._ordinal_consensus": ["OrdinalConsensus"],
        "sklearn_l2d.aggregation._projected_gradient_one_coin": ["ProjectedGradientOneCoin"],
        "sklearn_l2d.aggregation._spammer_detector": ["SpammerDetector"],
        "sklearn_l2d.aggregation._spectral_dawid_skene": ["SpectralDawidSkene"],
        "sklearn_l2d.aggregation._symmetric_nmf": ["SymmetricNMF"],
        "sklearn_l2d.aggregation._tensor_admm": ["TensorADMM"],
        "sklearn_l2d.aggregation._weighted_majority_vote": ["WeightedMajorityVote"],
        "sklearn_l2d.cluster._agreement_clustering": ["AgreementClustering"],
        "sklearn_l2d.cluster._annotation_net": ["AnnotationNet"],
        "sklearn_l2d.cluster._annotator_lda": ["AnnotatorLDA"],
        "sklearn_l2d.cluster._beta_expert_encoder": ["BetaExpertEncoder"],
        "sklearn_l2d.cluster._fuzzy_c_means": ["FuzzyCMeans"],
        "sklearn_l2d.cluster._population_expert_encoder": ["PopulationExpertEncoder"],
        "sklearn_l2d.crowd._aggnet": ["AggNetClassifier", "JointNet"],
        "sklearn_l2d.crowd._ccem": ["CCEMClassifier"],
        "sklearn_l2d.crowd._coinnet": ["COINNet", "OutlierNet"],
        "sklearn_l2d.crowd._conal": ["CoNALClassifier", "CommonLayerNet"],
        "sklearn_l2d.crowd._counts": ["CountsClassifier"],
        "sklearn_l2d.crowd._crowd_layer": ["CrowdLayerClassifier", "LayerNet"],
        "sklearn_l2d.crowd._geo_crowd_net": ["GeoCrowdNet", "GeoNet"],
        "sklearn_l2d.crowd._instance_dependent": ["InstanceDependentCrowdNet", "ItemNet"],
        "sklearn_l2d.crowd._max_mig": ["AgreementNet", "MaxMIGClassifier"],
        "sklearn_l2d.crowd._net_classifier": ["NetClassifier"],
        "sklearn_l2d.crowd._raykar": ["RaykarClassifier"],
        "sklearn_l2d.crowd._trace_reg": ["TraceNet", "TraceRegClassifier"],
        "sklearn_l2d.crowd._union_net": ["UnionNet"],
        "sklearn_l2d.deferral._sight": ["Sight"],
        "sklearn_l2d.deferral._best_expert": ["BestExpert"],
        "sklearn_l2d.deferral._classifier_only": ["ClassifierOnly"],
        "sklearn_l2d.deferral._cluster_deferral": ["ClusterDeferral", "Grouping"],
        "sklearn_l2d.deferral._completion": ["FixMatchNet", "MixMatchNet"],
        "sklearn_l2d.deferral._complement_deferral": ["ComplementDeferral"],
        "sklearn_l2d.deferral._confidence_deferral": ["ConfidenceDeferral"],
        "sklearn_l2d.deferral._conformal_deferral": ["ConformalDeferral"],
        "sklearn_l2d.deferral._expert_agnostic_deferral": ["AgnosticNet", "ExpertAgnosticDeferral"],
        "sklearn_l2d.deferral._gate": ["GateNet"],
        "sklearn_l2d.deferral._imitation": ["AnswerNet"],
        "sklearn_l2d.deferral._lecodu": ["LECODUDeferral"],
        "sklearn_l2d.deferral._mixture_of_experts": ["MixtureOfExpertsDeferral"],
        "sklearn_l2d.deferral._one_stage": ["OneStageDeferral"],
        "sklearn_l2d.deferral._panel_deferral": ["PanelDeferral"],
        "sklearn_l2d.deferral._population_deferral": ["PopulationClassifier", "PopulationDeferral"],
        "sklearn_l2d.deferral._probabilistic_deferral": ["JointClassifier", "ProbabilisticDeferral"],
        "sklearn_l2d.deferral._profile_deferral": ["ProfileDeferral"],
        "sklearn_l2d.deferral._random_expert_deferral": ["RandomExpertDeferral"],
        "sklearn_l2d.deferral._ranked_deferral": ["RankedDeferral"],
        "sklearn_l2d.deferral._roster": ["Roster"],
        "sklearn_l2d.deferral._semi_supervised_deferral": ["SemiSupervisedDeferral"],
        "sklearn_l2d.deferral._shift": ["Shift"],
        "sklearn_l2d.deferral._surrogate": ["FirstOutputs", "SurrogateNet", "one_vs_all_link", "softmax_link"],
        "sklearn_l2d.deferral._top_k_deferral": ["TopKDeferral"],
        "sklearn_l2d.deferral._two_stage": ["TwoStageDeferral"],
        # what the above consist of, and names of people
        "functools": ["partial"],
        "scipy.sparse._csr": ["csr_array"],
        "sklearn.frozen._frozen": ["FrozenEstimator"],
        "torch.optim.adam": ["Adam"],
        "torch.optim.adamw": ["AdamW"],
        "torch.optim.sgd": ["SGD"],
        "uuid": ["UUID"],
    }.items()
    for name in names
}


class Estimator(BaseEstimator):
    """Base of all estimators: a pickle says which version wrote it, and `save` writes a file without pickle."""

    def __getstate__(self):
        return {**super().__getstate__(), "_sklearn_l2d_version": __version__}

    def __setstate__(self, state):
        state = dict(state)
        written = state.pop("_sklearn_l2d_version", "unknown")
        if written != __version__:
            warn(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=f"{__version__} of sklearn_l2d",
                    original_sklearn_version=f"{written} of sklearn_l2d",
                )
            )
        super().__setstate__(state)

    def save(self, path):
        """Save the estimator to a file without pickle, as `sklearn_l2d.save` does.

        Parameters
        ----------
        path : str or path-like
            File, for instance "team.skops"; an older one is replaced.

        Raises
        ------
        ImportError
            If skops is not installed.
        ValueError
            If the estimator holds what cannot be saved; the older file stays.
        """
        save(self, path)


def save(estimator, path):
    """Save a fitted estimator to a file without pickle, which `load` reads.

    Parameters
    ----------
    estimator : estimator or Shift
        An estimator of this package, a pipeline or a search around one, or a shift with its team.
    path : str or path-like
        File, for instance "team.skops"; an older one is replaced.

    Raises
    ------
    ImportError
        If skops is not installed.
    ValueError
        If the estimator holds what cannot be saved: a function or a class without a name in a module, a pandas object,
        or whatever only pickle could store. The older file stays.

    See Also
    --------
    load : Read the file.

    Notes
    -----
    The file is a zip archive in the format of `skops <https://skops.readthedocs.io>`_, whose tools read it, too:
    ``schema.json`` describes the estimator, and every array is a ``.npy`` file. ``sklearn_l2d.json`` holds the version
    of the format and those of the packages. Nets are stored as their settings and weights.

    Examples
    --------
    >>> import tempfile
    >>> import sklearn_l2d
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_l2d.datasets import load_digits_crowd
    >>> from sklearn_l2d.deferral import ConfidenceDeferral
    >>> crowd = load_digits_crowd(random_state=0)
    >>> team = ConfidenceDeferral(LogisticRegression(C=0.01), coverage=0.2, random_state=0)
    >>> team.fit(crowd.X_identified, crowd.y_identified, annotations=crowd.annotations)
    ConfidenceDeferral(...)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sklearn_l2d.save(team, f"{folder}/team.skops")
    ...     again = sklearn_l2d.load(f"{folder}/team.skops")
    >>> bool((again.assign_experts(crowd.X_test) == team.assign_experts(crowd.X_test)).all())
    True
    """
    skops, path = _skops(), Path(path)
    kind, buffer = type(estimator).__name__, io.BytesIO()
    try:
        buffer.write(_round_trip(skops, estimator))
    except Exception as error:  # of many kinds, among them those of pickle
        raise ValueError(f"this {kind} cannot be saved{_culprit(skops, estimator)}: {error}") from error
    versions = {"sklearn_l2d": __version__, **{package: version(package) for package in _PACKAGES}}
    with ZipFile(buffer, "a") as archive:
        archive.writestr(_DESCRIPTION, json.dumps({"format": _FORMAT, "class": kind, "versions": versions}, indent=1))
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")  # nobody may read half a file
    try:
        draft.write_bytes(buffer.getvalue())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def load(path, trusted=()):
    """Load an estimator that `save` wrote.

    Only types are built that are known to be safe: estimators of this package and of scikit-learn, arrays, and those
    that you trust. Whatever a pickle would run is not run.

    Parameters
    ----------
    path : str or path-like
        File.
    trusted : sequence of type, function or str, default=()
        What else may be built, for instance a classifier or a torch module of your own, or their names: the error of a
        refused file lists them. Trust only what you know.

    Returns
    -------
    estimator : object
        The estimator, which predicts what the saved one did. Where a net was on a GPU and there is none, it is on the
        CPU, with a warning.

    Raises
    ------
    ImportError
        If skops is not installed.
    ValueError
        If the file is damaged, was not written by `save`, has a newer format, or holds types that are not trusted.

    Warns
    -----
    InconsistentVersionWarning
        If another version of this package or of scikit-learn wrote the file.

    See Also
    --------
    save : Write the file, with an example.

    Examples
    --------
    >>> import sklearn_l2d
    >>> sklearn_l2d.load("pyproject.toml")
    Traceback (most recent call last):
    ...
    ValueError: pyproject.toml is no file that sklearn_l2d.save wrote: it is no zip archive.
    """
    skops, data = _skops(), Path(path).read_bytes()
    versions = _check_description(data, path)
    names = {name if isinstance(name, str) else f"{name.__module__}.{name.__name__}" for name in trusted} | _KNOWN
    try:
        strange = sorted(set(skops.get_untrusted_types(data=data)) - names)
    except Exception as error:
        raise _unreadable(path, versions, error) from error
    if strange:
        raise ValueError(
            f"{path} holds types that are not known to be safe. If you know where it comes from, and what they are, "
            f"pass trusted={strange}."
        )
    try:
        return skops.loads(data, trusted=sorted(names))
    except Warning:  # where warnings are errors
        raise
    except Exception as error:
        raise _unreadable(path, versions, error) from error


def _skops():
    try:
        return importlib.import_module("skops.io")
    except ImportError as error:
        raise ImportError('files without pickle need skops: pip install "sklearn-l2d[save]".') from error


def _round_trip(skops, value):
    """The bytes of a value, which can be loaded again."""
    data = skops.dumps(value, compression=ZIP_DEFLATED)  # the description is long
    skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    return data


def _culprit(skops, estimator):
    """Words about the parameter because of which an estimator cannot be saved, if it is one."""
    params = estimator.get_params() if hasattr(estimator, "get_params") else {}
    for name in sorted(params, key=len, reverse=True):  # `classifier__module` before `classifier`
        try:
            _round_trip(skops, params[name])
        except Exception:
            return (
                f" because of its parameter {name}, a {type(params[name]).__name__} (pandas objects can be given as a "
                "dict or an array, and functions and classes need a name at the top level of a module)"
            )
    return ""


def _check_description(data, path):
    """Versions of the packages that wrote a file, which is refused unless it is whole and its format is known."""
    start = f"{path} is no file that sklearn_l2d.save wrote"
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            if _DESCRIPTION not in archive.namelist():
                raise ValueError(f"{start}: it has no {_DESCRIPTION}, but {', '.join(archive.namelist()[:5])}.")
            damaged = archive.testzip()
            description = None if damaged else json.loads(archive.read(_DESCRIPTION))
    except BadZipFile as error:
        raise ValueError(f"{start}: it is no zip archive.") from error
    if damaged:
        raise ValueError(f"{path} is damaged: {damaged} is not what was written. Save it again.")
    found, versions = description["format"], description["versions"]
    if found != _FORMAT:
        raise ValueError(
            f"{path} has format {found}, written by sklearn_l2d {versions['sklearn_l2d']}; sklearn_l2d {__version__} "
            f"reads format {_FORMAT}. Install the version that wrote it, or a newer one."
        )
    return versions


def _unreadable(path, versions, error):
    wrote = ", ".join(f"{package} {number}" for package, number in versions.items())
    return ValueError(f"{path} cannot be built ({type(error).__name__}: {error}). It was written by {wrote}.")
