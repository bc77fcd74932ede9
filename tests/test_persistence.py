"""Files without pickle, and versions in pickles; `test_common.py` saves every estimator."""

import contextlib
import copy
import json
import os
import pickle
import sys
import uuid
import warnings
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import torch
from _instances import INSTANCES, fit, make_crowd
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted
from torch import nn

from sklearn_l2d import AnnotatorLDA, ClusterDeferral, _persistence, load, save
from sklearn_l2d._sklearn import StrOptions
from sklearn_l2d.crowd import NetClassifier
from sklearn_l2d.deferral import ConfidenceDeferral

skops = pytest.importorskip("skops.io", reason="skops is in the extras named save and test")

# the cheap instances train for three epochs, which may leave two clusters alike
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class OwnClassifier(LogisticRegression):
    """A classifier that this package does not know."""


class OwnModule(nn.Module):
    """A net with a part that is drawn when it is built, and one that learns without gradients."""

    def __init__(self, n_outputs, width=3):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.BatchNorm1d(width), nn.Linear(width, n_outputs))
        self.register_buffer("drawn", nn.init.normal_(self.layers[0].weight.new_empty(n_outputs)))

    def forward(self, X):
        return self.layers(X) + self.drawn


@pytest.fixture(scope="module")
def crowd():
    return make_crowd()


@pytest.fixture(scope="module")
def team(crowd):
    team = ConfidenceDeferral(LogisticRegression(), coverage=0.5, cv=2, random_state=0)
    return team.fit(crowd.X, crowd.y, annotations=crowd.annotations)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "team.skops"


def test_training_goes_on_as_if_it_had_not_been_saved(crowd, file):
    sizes = {"hidden_layer_sizes": (4,), "max_epochs": 3}
    lda = AnnotatorLDA(2, n_consensus_epochs=2, n_anchor_epochs=1, random_state=0, **sizes)
    for _ in range(2):  # while behaviours are still anchored, and later
        lda.partial_fit(crowd.X, crowd.counts)
        lda.save(file)
        restored = load(file)
        for estimator in (lda, restored):
            estimator.partial_fit(crowd.X, crowd.counts)
        assert_array_equal(restored.predict_annotation_proba(crowd.X), lda.predict_annotation_proba(crowd.X))
    team = ClusterDeferral(lda, classifier=LogisticRegression(), cv=2, coverage=0.5, random_state=0, **sizes)
    team.fit(crowd.X, crowd.y, annotations=crowd.annotations)
    team.save(file)
    restored = load(file)
    for estimator in (team, restored):
        estimator.partial_fit(crowd.X, crowd.y, annotations=crowd.annotations)
    assert_array_equal(restored.decision_function(crowd.X), team.decision_function(crowd.X))


def test_types_of_the_user_are_built_only_if_they_are_trusted(crowd, file):
    net = NetClassifier(module=OwnModule, max_epochs=2, random_state=0).fit(crowd.X, crowd.y)
    net.save(file)
    with pytest.raises(ValueError, match=r"not known to be safe.* pass trusted=\['test_persistence.OwnModule'\]"):
        load(file)
    for trusted in ([OwnModule], ["test_persistence.OwnModule"]):
        assert_array_equal(load(file, trusted=trusted).predict_proba(crowd.X), net.predict_proba(crowd.X))

    team = ConfidenceDeferral(OwnClassifier(), cv=2, random_state=0)
    team.fit(crowd.X, crowd.y, annotations=crowd.annotations).save(file)
    with pytest.raises(ValueError, match="OwnClassifier"):
        load(file)
    assert type(load(file, trusted=[OwnClassifier]).classifier_) is OwnClassifier


def test_a_function_of_another_package_is_not_found_by_loading(file):
    save(ConfidenceDeferral(missing_label=os.getcwd), file)
    with pytest.raises(ValueError, match=r"not known to be safe.*getcwd"):
        load(file)


def test_what_is_known_to_be_safe_exists_and_is_no_module():
    for name in _persistence._KNOWN:
        module, _, name = name.rpartition(".")
        value = getattr(pytest.importorskip(module), name)
        assert (value.__module__, value.__name__) == (module, name)  # not what the module imports from another one


def options(estimator):
    """Names and values of the parameters that take one of a few words, or True and False, beside those that are set."""
    for name, constraints in estimator._parameter_constraints.items():
        words = set().union(*(each.options for each in constraints if isinstance(each, StrOptions)))
        words |= {True, False} if "boolean" in constraints else set()
        if name not in ("device", "input"):  # what the machine has, and what `fit` is given
            yield from ((name, word) for word in sorted(words - {getattr(estimator, name)}, key=str))


ONE_OF_EACH = list({type(instance.estimator): instance for instance in reversed(INSTANCES)}.values())[::-1]
BESIDE = {"joint_classifier": {"classifier": None}}  # what an option needs of another parameter


@pytest.mark.parametrize("instance", ONE_OF_EACH, ids=lambda instance: type(instance.estimator).__name__)
def test_whatever_option_is_taken_can_be_loaded(instance):
    people = [make_crowd(30), make_crowd(30, n_experts=1), make_crowd(30, labels=(0, 1))]
    for name, value in options(instance.estimator):
        estimator = clone(instance.estimator).set_params(**{name: value}, **BESIDE.get(name, {}))
        for crowd in people:  # some options are for one expert, and some for two classes
            with contextlib.suppress(ValueError):
                fit(instance, estimator, crowd)
                break
        check_is_fitted(estimator)
        held = set(skops.get_untrusted_types(data=skops.dumps(estimator)))
        assert held <= _persistence._KNOWN, name


def test_what_cannot_be_saved_is_named_and_the_older_file_stays(team, file):
    team.save(file)
    before = file.read_bytes()
    for params, words in [
        ({"workload": pd.DataFrame({"from": [0.0] * 5, "to": [1.0] * 5})}, "parameter workload, a DataFrame"),
        ({"consultation_cost": pd.Series([0.1] * 5)}, "parameter consultation_cost, a Series"),
        ({"classifier": LogisticRegression(C=lambda: 1)}, "parameter classifier__C, a function"),
    ]:
        with pytest.raises(ValueError, match=f"ConfidenceDeferral cannot be saved because of its {words}"):
            clone(team).set_params(**params).save(file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_damaged_and_foreign_files_are_refused(team, file):
    with pytest.raises(FileNotFoundError):
        load(file)
    team.save(file)
    whole = file.read_bytes()
    middle = len(whole) // 3
    for data, words in [
        (b"", "no zip archive"),
        (pickle.dumps(team), "no zip archive"),
        (whole[:middle], "no zip archive"),
        (whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :], "damaged"),
    ]:
        file.write_bytes(data)
        with pytest.raises(ValueError, match=words):
            load(file)
    np.savez(file.with_suffix(".npz"), weights=np.zeros(2))
    with pytest.raises(ValueError, match=r"has no sklearn_l2d\.json, but weights\.npy"):
        load(file.with_suffix(".npz"))


def rewrite(file, member, change):
    """Change one member of a file."""
    with ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[member] = change(parts[member])
    with ZipFile(file, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def test_a_newer_format_is_refused_and_what_cannot_be_built_says_who_wrote_it(team, file):
    team.save(file)
    rewrite(file, "schema.json", lambda data: data.replace(b'"BisectingKMeans"', b"").replace(b"Roster", b"Squad"))
    with pytest.raises(ValueError, match=r"not known to be safe.*Squad"):
        load(file)
    team.save(file)
    rewrite(file, "schema.json", lambda data: data[:-10])
    with pytest.raises(ValueError, match=r"cannot be built .*written by sklearn_l2d .*, numpy .*, skops "):
        load(file)
    team.save(file)

    def newer(data):
        description = json.loads(data) | {"format": 2}
        description["versions"]["sklearn_l2d"] = "9.9"
        return json.dumps(description).encode()

    rewrite(file, "sklearn_l2d.json", newer)
    with pytest.raises(ValueError, match=r"has format 2, written by sklearn_l2d 9\.9; .* reads format 1"):
        load(file)


def test_another_version_of_the_package_is_told(team, crowd, file, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr(_persistence, "__version__", "0.0.1")
        team.save(file)
        data = pickle.dumps(team)
    for restore in (lambda: load(file), lambda: pickle.loads(data)):
        with pytest.warns(InconsistentVersionWarning, match=r"ConfidenceDeferral from version 0\.0\.1 of sklearn_l2d"):
            restored = restore()
        assert "_sklearn_l2d_version" not in vars(restored)
        assert_array_equal(restored.predict(crowd.X), team.predict(crowd.X))
    state = {name: value for name, value in team.__getstate__().items() if name != "_sklearn_l2d_version"}
    with pytest.warns(InconsistentVersionWarning, match="version unknown of sklearn_l2d"):
        ConfidenceDeferral.__new__(ConfidenceDeferral).__setstate__(state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(team))


def test_a_net_of_a_gpu_goes_on_without_one(crowd, file, monkeypatch):
    net = NetClassifier((4,), max_epochs=2, device="cpu", random_state=0).fit(crowd.X, crowd.y)
    state = net.net_.__getstate__()
    state["settings"]["device"] = "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    restored = type(net.net_).__new__(type(net.net_))
    with pytest.warns(UserWarning, match="cpu"):
        restored.__setstate__(state)
    assert restored.device == "cpu"
    net_again = copy.copy(net)
    net_again.net_ = restored
    net_again.save(file)
    assert_array_equal(load(file).predict_proba(crowd.X), net.predict_proba(crowd.X))


def test_pipelines_shifts_and_names_of_any_kind(crowd, file):
    names = [uuid.UUID(int=3), ("night", 2), 5, "Ana", 1.5]
    annotations = pd.DataFrame(crowd.annotations, columns=pd.Index(names, dtype=object, tupleize_cols=False))
    team = ConfidenceDeferral(LogisticRegression(), coverage=0.5, cv=2, random_state=0)
    pipeline = make_pipeline(StandardScaler(), team)
    pipeline.fit(crowd.X, crowd.y, confidencedeferral__annotations=annotations)
    save(pipeline, str(file))
    restored = load(str(file))
    assert restored[-1].experts_.tolist() == names
    assert_array_equal(restored.predict(crowd.X), pipeline.predict(crowd.X))

    shift = pipeline[-1].start_shift(capacity=2, available={5: False})
    shift.assign_experts(crowd.X[:5])
    save(shift, file)
    restored = load(file)
    pd.testing.assert_series_equal(restored.served_, shift.served_)
    assert_array_equal(restored.assign_experts(crowd.X[5:8]), shift.assign_experts(crowd.X[5:8]))


def test_without_skops_the_error_says_what_to_install(team, file, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    for call in (lambda: team.save(file), lambda: load(file)):
        with pytest.raises(ImportError, match=r'pip install "sklearn-l2d\[save\]"'):
            call()
