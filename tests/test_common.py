"""What every estimator promises, over the registry of `_instances.py`."""

import contextlib
import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from zipfile import ZipFile

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from _instances import (
    CHECKED,
    INSTANCES,
    expected_failed_checks,
    fit,
    fitted_to,
    make_crowd,
    of_kind,
    outputs,
    with_parameter,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, average_precision_score, get_scorer, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_l2d import AnnotatedTarget, AnnotatorLDA, load
from sklearn_l2d._persistence import Estimator
from sklearn_l2d.cluster import BetaExpertEncoder
from sklearn_l2d.crowd import NetClassifier
from sklearn_l2d.deferral import ConfidenceDeferral, ProfileDeferral
from sklearn_l2d.deferral._base import BaseDeferrer

# the cheap instances train for three epochs, which may leave two clusters alike
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

each_instance = pytest.mark.parametrize("instance", INSTANCES, ids=str)
each_annotator = pytest.mark.parametrize("instance", of_kind("annotator"), ids=str)
each_net = pytest.mark.parametrize("instance", with_parameter(INSTANCES, "hidden_layer_sizes"), ids=str)
each_deferrer = pytest.mark.parametrize("instance", of_kind("deferrer"), ids=str)
each_with_coverage = pytest.mark.parametrize("instance", with_parameter(of_kind("deferrer"), "coverage"), ids=str)


@pytest.fixture(scope="module")
def crowd():
    return make_crowd()


def fitted(instance, crowd, **params):
    return fit(instance, clone(instance.estimator).set_params(**params), crowd)


def copies_of_fitted(crowd):
    learnt = {}

    def copied(instance):
        if str(instance) not in learnt:
            learnt[str(instance)] = fitted(instance, crowd)
        return copy.deepcopy(learnt[str(instance)])

    return copied


@pytest.fixture(scope="module")
def fitted_once(crowd):
    """Copies of instances that are fitted to the crowd once for the whole module."""
    return copies_of_fitted(crowd)


@pytest.fixture(scope="module")
def fitted_large():
    """The same of a crowd of 400 items."""
    return copies_of_fitted(make_crowd(n_samples=400))


def settings(estimator):
    """Parameters without the parts that are estimators: theirs are listed beside them, and two are never equal."""
    return {name: value for name, value in estimator.get_params().items() if not isinstance(value, BaseEstimator)}


def assert_same_outputs(instance, one, other, crowd):
    got, expected = outputs(instance, one, crowd), outputs(instance, other, crowd)
    for name in expected:
        assert_array_equal(got[name], expected[name], err_msg=name)


@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failed_checks)
def test_estimator_checks_of_sklearn(estimator, check):
    check(estimator)


@each_instance
def test_clone_of_a_fitted_estimator_is_unfitted_and_equal(instance, crowd, fitted_once):
    estimator = fitted_once(instance)
    copied = clone(estimator)
    assert [name for name in vars(copied) if name.endswith("_")] == []
    assert str(copied) == str(estimator)
    assert_same_outputs(instance, fit(instance, copied, crowd), estimator, crowd)


@each_instance
def test_pickle_predicts_the_same_and_does_not_grow_with_the_data(instance, crowd, fitted_once, fitted_large):
    small, large = fitted_once(instance), fitted_large(instance)
    sizes = [len(pickle.dumps(estimator)) for estimator in (small, large)]
    if instance.kind != "clusterer":  # which keeps a label for every row, as in scikit-learn
        assert abs(sizes[1] - sizes[0]) < 500  # one column of X alone would add 340 * 4 bytes
    assert_same_outputs(instance, pickle.loads(pickle.dumps(small)), small, crowd)


@each_instance
def test_joblib_predicts_the_same(instance, crowd, fitted_once, tmp_path):
    joblib.dump(fitted_once(instance), tmp_path / "file")
    for mode in (None, "r"):
        restored = joblib.load(tmp_path / "file", mmap_mode=mode)
        assert_same_outputs(instance, restored, fitted_once(instance), crowd)


@each_instance
def test_a_file_predicts_the_same_and_does_not_grow_with_the_data(instance, crowd, fitted_once, fitted_large, tmp_path):
    pytest.importorskip("skops", reason="skops is in the extras named save and test")
    sizes = []
    for estimator in (fitted_large(instance), fitted_once(instance)):
        estimator.save(tmp_path / "file")
        with ZipFile(tmp_path / "file") as archive:
            sizes.append(sum(member.file_size for member in archive.infolist()))
    if instance.kind != "clusterer":
        assert abs(sizes[1] - sizes[0]) < 500
    assert_same_outputs(instance, load(tmp_path / "file"), fitted_once(instance), crowd)


@each_instance
def test_fit_twice_is_fit_once(instance, crowd, fitted_once):
    once = fitted_once(instance)
    twice = fit(instance, fitted(instance, make_crowd(random_state=1)), crowd)
    assert_same_outputs(instance, twice, once, crowd)
    if hasattr(once, "history_"):
        assert twice.n_iter_ == once.n_iter_ == len(twice.history_)


@each_net
def test_the_seed_decides(instance, crowd, fitted_once):
    estimator = fitted_once(instance)
    assert_same_outputs(instance, fitted(instance, crowd), estimator, crowd)
    other, mine = outputs(instance, fitted(instance, crowd, random_state=1), crowd), outputs(instance, estimator, crowd)
    assert any(not np.array_equal(other[name], mine[name]) for name in mine)


@each_instance
def test_global_random_numbers_are_left_alone(instance, crowd):
    def state():
        return np.random.get_state()[1].tolist(), np.random.get_state()[2], torch.get_rng_state().tolist()  # noqa: NPY002

    before = state()
    outputs(instance, fitted(instance, crowd), crowd)
    assert state() == before


class Dropped(torch.nn.Sequential):
    """A module of a user, random when it is built and when it is trained."""

    def __init__(self, n_outputs):
        super().__init__(torch.nn.Dropout(0.3), torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, n_outputs))


def variants(instance):
    """The estimator of an instance, trained for a few epochs, and where it takes a module one with a user's."""
    plain = clone(instance.estimator).set_params(max_epochs=3)
    takes_module = "module" in plain.get_params(deep=False)
    return [plain, clone(plain).set_params(module=Dropped)] if takes_module else [plain]


@each_net
def test_fits_in_four_threads_are_fits_alone(instance, crowd):
    def answers(task):
        estimator, seed = task
        return outputs(instance, fit(instance, clone(estimator).set_params(random_state=seed), crowd), crowd)

    tasks = [(estimator, seed) for estimator in variants(instance) for seed in range(2)]
    alone = [answers(task) for task in tasks]
    global_state, done = torch.get_rng_state(), threading.Event()

    def draw():  # somebody else uses torch's global generator meanwhile
        while not done.wait(1e-4):
            torch.rand(10)

    other = threading.Thread(target=draw)
    other.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(answers, tasks))
    finally:
        done.set()
        other.join()
        torch.set_rng_state(global_state)
    for got, expected in zip(together, alone, strict=True):
        for name in expected:
            assert_array_equal(got[name], expected[name], err_msg=name)


@contextlib.contextmanager
def _set(put, value, usual):
    put(value)
    try:
        yield
    finally:
        put(usual)


@each_net
@pytest.mark.parametrize("without_gradients", [torch.no_grad, torch.inference_mode])
def test_what_the_caller_has_set_in_torch_does_not_matter(instance, crowd, without_gradients):
    estimator = variants(instance)[-1]
    expected = outputs(instance, fit(instance, clone(estimator), crowd), crowd)
    with (
        without_gradients(),
        torch.autocast("cpu", torch.bfloat16),
        _set(torch.set_default_dtype, torch.float64, torch.float32),
        _set(torch.set_default_device, "meta", None),
        _set(torch.use_deterministic_algorithms, True, False),
    ):
        got = outputs(instance, fit(instance, clone(estimator), crowd), crowd)
    for name in expected:
        assert_array_equal(got[name], expected[name], err_msg=name)


@each_instance
def test_parameters_and_data_are_not_changed(instance, crowd):
    estimator = clone(instance.estimator)
    if "hidden_layer_sizes" in estimator.get_params():
        estimator.set_params(hidden_layer_sizes=[4])
    params, given = estimator.get_params(), joblib.hash(estimator.get_params())
    data = copy.deepcopy(crowd)
    outputs(instance, fit(instance, estimator, data), data)
    assert joblib.hash(estimator.get_params()) == given
    assert all(estimator.get_params()[name] is value for name, value in params.items())
    for name in ("X", "y", "counts", "annotations"):
        assert_array_equal(data[name], crowd[name])


@each_instance
def test_read_only_input_is_enough(instance, crowd, fitted_once):
    frozen = copy.deepcopy(crowd)
    for array in frozen.values():
        array.flags.writeable = False
    assert_same_outputs(instance, fitted(instance, frozen), fitted_once(instance), frozen)


@each_instance
@pytest.mark.parametrize("fault", ["nan in X", "inf in y", "rows", "unscaled"])
def test_a_fit_that_fails_leaves_the_last_one_usable(instance, crowd, fitted_once, fault):
    if instance not in fitted_to("y" if fault in ("inf in y", "rows") else "X"):
        pytest.skip("is not fitted to the faulty part")
    estimator = fitted_once(instance)
    before = copy.deepcopy(vars(estimator))
    bad = copy.deepcopy(crowd)
    bad.X = pd.DataFrame(bad.X).add_prefix("new ").assign(more=1.0)
    if fault == "nan in X":
        bad.X.iloc[3, 0] = np.nan
    elif fault == "inf in y":
        bad.counts = np.where(bad.counts == 2, np.inf, bad.counts)
        bad.y = np.where(bad.y == 2, np.inf, bad.y)
    elif fault == "rows":
        bad.counts, bad.y = bad.counts[:-1], bad.y[:-1]
    elif "dtype" in instance.estimator.get_params(deep=False):
        bad.X *= {"float32": 1e30, "float64": 1e250}[instance.estimator.dtype]
    else:
        pytest.skip("trains no net that could diverge")
    with pytest.raises((ValueError, FloatingPointError)):
        fit(instance, estimator, bad)
    assert_same_outputs(instance, estimator, fitted_once(instance), crowd)
    assert set(vars(estimator)) == set(before)
    assert estimator.n_features_in_ == 4


@each_net
@pytest.mark.parametrize(
    "params",
    [{"lr": 1e30}, {"lr": 1e30, "optimizer": "adam"}, {"lr": 1e4, "weight_decay": 0.0}, {"weight_decay": 1e6}],
    ids=str,
)
def test_a_training_that_diverges_is_refused_or_all_answers_are_numbers(instance, crowd, fitted_once, params):
    estimator, before = fitted_once(instance).set_params(**params), fitted_once(instance)
    why = None
    try:
        fit(instance, estimator, crowd)
    except FloatingPointError as error:
        why = str(error)
    got = outputs(instance, estimator, crowd)
    assert not any(np.isnan(values).any() for values in got.values())
    if why is not None:
        assert "lower lr" in why
        assert "scale the columns of X" in why
        assert_same_outputs(instance, estimator, before, crowd)


class Overflown(LogisticRegression):
    """A classifier whose training went wrong."""

    def predict_proba(self, X):
        """Probabilities that are none."""
        return np.where(np.arange(len(X))[:, None] == 1, np.nan, super().predict_proba(X))


@pytest.mark.parametrize("frozen", [False, True], ids=["given", "frozen"])
@pytest.mark.parametrize(
    "instance",
    [i for i in with_parameter(of_kind("deferrer"), "classifier") if i.estimator.classifier is not None],
    ids=str,
)
def test_probabilities_of_a_classifier_that_are_none_are_refused(instance, crowd, fitted_once, frozen):
    classifier = Overflown()
    if frozen:
        classifier = FrozenEstimator(classifier.fit(crowd.X, crowd.y))
    estimator = fitted_once(instance).set_params(classifier=classifier)
    with pytest.raises(FloatingPointError, match=r"NaN or infinity for \d+ of \d+ items.*scale the columns of X"):
        fit(instance, estimator, crowd).predict_proba(crowd.X)


def rare(annotations, rows=(3, 11), label=7):
    """The same annotations but for a label that training did not see, given by the first expert to some items."""
    answers = annotations.copy()
    answers[list(rows), 0] = label
    return answers


@each_deferrer
def test_a_label_that_training_did_not_see_cannot_be_taken(instance, crowd, fitted_once):
    team, odd, without = fitted_once(instance), rare(crowd.annotations), rare(crowd.annotations, label=-1)
    for decision in ("draw", "vote", "combine", "crowdlab"):
        with pytest.warns(UserWarning, match=r"2 of \d+ answers, by \[0\], are labels that are no.*\[7\]") as told:
            labels = team.predict_team(crowd.X, odd, decision)
        assert len(told) == 1
        assert_array_equal(labels, team.predict_team(crowd.X, without, decision))
    with pytest.warns(UserWarning, match="left out"):
        proba = team.predict_team_proba(crowd.X, odd)
    assert_array_equal(proba, team.predict_team_proba(crowd.X, without))


@each_deferrer
def test_a_label_that_training_did_not_see_cannot_be_right(instance, crowd, fitted_once):
    team, odd = fitted_once(instance), rare(crowd.annotations, range(60))
    y = np.where(np.arange(60) % 2, crowd.y, 7)  # nor is it where it is the truth, which the team cannot say
    with pytest.warns(UserWarning, match=r"60 of \d+ answers, by \[0\].*\[7\]") as told:
        score = team.score(crowd.X, y, odd)
    assert len(told) == 1
    if not hasattr(team, "replay"):  # where people are asked one by one, somebody else is asked
        wrong = np.where(crowd.y == 0, 1, 0)
        odd[:, 0] = wrong
        assert score == pytest.approx(team.score(crowd.X, np.where(y == 7, -5, y), odd))


@each_deferrer
def test_labels_of_another_kind_are_refused(instance, crowd, fitted_once):
    team = fitted_once(instance)
    named, shifted = np.full((60, 5), "cat", dtype=object), np.where(crowd.annotations < 0, -1, crowd.annotations + 10)
    for answers in (named, shifted):
        with pytest.raises(ValueError, match="that are not in classes"):
            team.predict_team(crowd.X, answers)
        with pytest.raises(ValueError, match="that are not in classes"):
            team.score(crowd.X, crowd.y, answers)


@each_instance
def test_frames_and_string_labels_mean_the_same(instance, crowd, fitted_once):
    named = make_crowd(labels=("cat", "dog", "eel"))
    named.X = pd.DataFrame(named.X, columns=list("abcd"), index=np.arange(60) * 7)
    named.counts = pd.DataFrame(named.counts, columns=named.labels)[["eel", "cat", "dog"]]
    named.annotations = pd.DataFrame(named.annotations, columns=[f"expert {m}" for m in range(5)])
    plain, frames = fitted_once(instance), fitted(instance, named)
    if instance in fitted_to("y"):
        assert frames.classes_.tolist() == ["cat", "dog", "eel"]
    if instance in fitted_to("X"):
        assert frames.feature_names_in_.tolist() == list("abcd")
    got, expected = outputs(instance, frames, named), outputs(instance, plain, crowd)
    decoded = {"predict"} if instance.kind in ("aggregator", "classifier", "consensus", "crowd", "deferrer") else set()
    for name in expected:
        want = named.labels[expected[name]] if name in decoded else expected[name]
        assert_array_equal(got[name], want, err_msg=name)


@pytest.mark.parametrize(
    "container",
    [
        lambda y: y.astype(object),
        lambda y: y.astype(str).astype(object),
        lambda y: y.astype(str).astype(np.dtypes.StringDType()),
        lambda y: pd.Series(y, dtype="Int64"),
        lambda y: pd.Series(y.astype(str), dtype=pd.CategoricalDtype(["9", "2", "1", "0"])),
        lambda y: pl.Series(y.astype(str)),
        lambda y: pl.Series(y),
        lambda y: pl.Series(y.astype(str), dtype=pl.Enum(["2", "1", "0"])),
        torch.tensor,
    ],
    ids=["object", "text", "StringDType", "Int64", "categories", "polars_text", "polars", "polars_enum", "torch"],
)
@pytest.mark.parametrize(
    "instance",
    [i for i in fitted_to("y") if type(i.estimator) in (BetaExpertEncoder, ConfidenceDeferral, NetClassifier)][1:],
    ids=str,
)
def test_true_labels_may_come_in_any_container(instance, crowd, fitted_once, container):
    other = Bunch(**crowd | {"y": container(crowd.y)})
    if isinstance(np.asarray(other.y)[0], str):
        other.annotations = np.where(crowd.annotations < 0, None, crowd.annotations.astype(str))
    estimator = fitted(instance, other)
    kind = str if isinstance(np.asarray(other.y)[0], str) else int
    assert [kind(label) for label in estimator.classes_] == list(map(kind, range(3)))
    expected = outputs(instance, fitted_once(instance), crowd)
    for name, values in outputs(instance, estimator, other).items():
        assert_array_equal(values.astype(int) if name == "predict" else values, expected[name], err_msg=name)


@pytest.mark.parametrize("instance", [i for i in fitted_to("y") if i.kind != "annotator"], ids=str)
def test_the_only_class_is_named_as_it_is_written(instance, crowd):
    with pytest.raises(ValueError, match="one class only, 0; "):
        fitted(instance, Bunch(**crowd | {"y": np.zeros(60, dtype=int)}))


@pytest.mark.parametrize("estimator", [BetaExpertEncoder(), NetClassifier()], ids=str)
def test_a_true_label_that_is_missing_is_named(estimator):
    with pytest.raises(ValueError, match="y holds missing labels, where each must be known"):
        estimator.fit(np.eye(3), np.array(["a", None, "b"], dtype=object))


@each_annotator
@pytest.mark.parametrize("n_rows", [5, 23], ids=["as many rows as experts", "more rows than experts"])
@pytest.mark.parametrize("frame", [False, True], ids=["array", "frame"])
def test_pandas_output_has_a_row_per_expert(instance, crowd, fitted_once, n_rows, frame):
    estimator = fitted_once(instance).set_output(transform="pandas")
    X, annotations = crowd.X[:n_rows], crowd.annotations[:n_rows]
    if frame:
        X = pd.DataFrame(X, index=100 + np.arange(n_rows))
        annotations = pd.DataFrame(annotations, columns=list("vwxyz"), index=X.index)
    membership = estimator.transform(X, annotations)
    assert membership.index.tolist() == (list("vwxyz") if frame else list(range(5)))
    assert membership.columns.tolist() == estimator.get_feature_names_out().tolist()
    assert_array_equal(membership, clone_with_default_output(estimator).transform(X, annotations))
    with_std, std = estimator.transform(X, annotations, return_std=True)
    pd.testing.assert_frame_equal(with_std, membership)
    assert std.shape == membership.shape
    nobody = estimator.transform(X)
    assert nobody.index.tolist() == (X.index.tolist() if frame else list(range(n_rows)))
    assert_array_equal(nobody, np.tile(estimator.cluster_weights_, (n_rows, 1)))
    if frame:
        both = estimator.fit_transform(pd.DataFrame(crowd.X), crowd.counts, annotations=crowd.annotations)
        assert both.index.tolist() == list(range(5))


def clone_with_default_output(estimator):
    return copy.deepcopy(estimator).set_output(transform="default")


class RecordingLDA(AnnotatorLDA):
    """Notes the annotations that reach `transform`."""

    def transform(self, X, annotations=None, return_std=False):
        self.seen_ = None if annotations is None else np.array(annotations)
        return super().transform(X, annotations, return_std)


@each_annotator
def test_annotations_are_routed_through_a_pipeline(instance, crowd):
    recorder = RecordingLDA(**instance.estimator.get_params())
    pipeline = make_pipeline(StandardScaler(), recorder)
    with config_context(enable_metadata_routing=True):
        membership = pipeline.fit_transform(crowd.X, crowd.counts, annotations=crowd.annotations)
        assert_array_equal(recorder.seen_, crowd.annotations)
        assert_array_equal(pipeline.transform(crowd.X[:20], annotations=crowd.annotations[:20]).shape, (5, 2))
        assert_array_equal(recorder.seen_, crowd.annotations[:20])
        assert pipeline.transform(crowd.X[:20]).shape == (20, 2)
        assert recorder.seen_ is None
    scaled = StandardScaler().fit_transform(crowd.X)
    expected = fitted(instance, make_like(crowd, X=scaled)).transform(scaled, crowd.annotations)
    assert_array_equal(membership, expected)


def make_like(crowd, **changes):
    changed = copy.copy(crowd)
    changed.update(changes)
    return changed


@each_annotator
def test_grid_search_in_a_pipeline_without_any_flag(instance, crowd):
    pipeline = make_pipeline(StandardScaler(), clone(instance.estimator))
    step = pipeline.steps[-1][0]
    grid = {f"{step}__{name}": values for name, values in instance.grid.items()}

    def search(n_jobs):
        cv = KFold(2, shuffle=True, random_state=0)
        return GridSearchCV(pipeline, grid, cv=cv, n_jobs=n_jobs, error_score="raise").fit(crowd.X, crowd.counts)

    one = search(1)
    scores = one.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert one.best_score_ == scores.max()
    # the first split by hand
    train, test = next(iter(KFold(2, shuffle=True, random_state=0).split(crowd.X)))
    by_hand = clone(pipeline).set_params(**one.best_params_).fit(crowd.X[train], crowd.counts[train])
    assert one.cv_results_["split0_test_score"][one.best_index_] == by_hand.score(crowd.X[test], crowd.counts[test])
    if instance is INSTANCES[0]:
        two = search(2)
        assert_array_equal(two.cv_results_["mean_test_score"], scores)
        assert_array_equal(two.best_estimator_[-1].cluster_weights_, one.best_estimator_[-1].cluster_weights_)


@each_deferrer
def test_annotations_reach_every_split_of_a_search(instance, crowd):
    pipeline = make_pipeline(StandardScaler(), clone(instance.estimator))
    step = pipeline.steps[-1][0]
    grid = {f"{step}__{name}": values for name, values in instance.grid.items()}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise")
    with config_context(enable_metadata_routing=True):
        routed = clone(search).fit(crowd.X, crowd.y, annotations=crowd.annotations)
        folds = cross_validate(
            clone(routed.best_estimator_), crowd.X, crowd.y, cv=2, params={"annotations": crowd.annotations}
        )
        score = routed.score(crowd.X, crowd.y, annotations=crowd.annotations)
    best = routed.best_index_
    assert_array_equal(folds["test_score"], [routed.cv_results_[f"split{i}_test_score"][best] for i in (0, 1)])
    target = AnnotatedTarget(crowd.y, crowd.annotations)
    chosen = {name: [value] for name, value in routed.best_params_.items()}
    carried = GridSearchCV(pipeline, chosen, cv=2, error_score="raise").fit(crowd.X, target)
    assert_array_equal(carried.cv_results_["mean_test_score"], routed.cv_results_["mean_test_score"][[best]])
    assert carried.score(crowd.X, target) == score
    with pytest.raises(ValueError, match="received no annotations"):
        carried.score(crowd.X, crowd.y)
    # the second split by hand
    train, test = (np.sort(rows) for rows in list(StratifiedKFold(2).split(crowd.X, crowd.y))[1])
    scaler = StandardScaler().fit(crowd.X[train])
    by_hand = clone(routed.best_estimator_[-1])
    by_hand.fit(scaler.transform(crowd.X[train]), crowd.y[train], annotations=crowd.annotations[train])
    got = by_hand.score(scaler.transform(crowd.X[test]), crowd.y[test], annotations=crowd.annotations[test])
    assert got == routed.cv_results_["split1_test_score"][best]


@each_with_coverage
def test_unlabelled_items_reach_the_gate_scaled(instance, crowd):
    others = make_crowd(n_samples=300, random_state=1).X * [1, 10, 100, 1000]
    X = crowd.X * [1, 10, 100, 1000]
    pipeline = make_pipeline(StandardScaler(), clone(instance.estimator))
    with config_context(enable_metadata_routing=True):
        pipeline.set_params(transform_input=["X_unlabeled"])
        pipeline.fit(X, crowd.y, annotations=crowd.annotations, X_unlabeled=others)
    scaler = StandardScaler().fit(X)
    by_hand = clone(instance.estimator)
    by_hand.fit(scaler.transform(X), crowd.y, annotations=crowd.annotations, X_unlabeled=scaler.transform(others))
    assert_array_equal(pipeline[-1].offsets_, by_hand.offsets_)
    assert np.mean(by_hand.predict_deferral(scaler.transform(others)) == -1) == pytest.approx(0.5, abs=0.01)


@each_deferrer
def test_rows_of_weight_zero_do_not_count_in_score(instance, crowd, fitted_once):
    estimator = fitted_once(instance)
    weight = np.arange(60) % 3 > 0
    weighted = estimator.score(crowd.X, crowd.y, annotations=crowd.annotations, sample_weight=2.0 * weight)
    subset = estimator.score(crowd.X[weight], crowd.y[weight], annotations=crowd.annotations[weight])
    assert weighted == pytest.approx(subset)


@each_deferrer
def test_scores_decisions_and_consultations_agree(instance, crowd, fitted_once):
    estimator = fitted_once(instance)
    n_targets, n_experts = len(estimator.targets_), estimator.n_experts_
    scores, deferral = estimator.decision_function(crowd.X), estimator.predict_deferral(crowd.X)
    assert scores.shape == (60, n_targets + 1)
    assert_array_equal(np.where(scores.argmax(1) == n_targets, -1, scores.argmax(1)), deferral)
    finite = np.isfinite(scores).all(1)
    order = estimator.predict_deferral_proba(crowd.X)
    assert_array_equal(order[finite].argmax(1), scores[finite].argmax(1))
    asked = estimator.consult(crowd.X)
    assert asked.shape == (60, n_experts)
    assert asked.dtype == bool
    who = estimator.assign_experts(crowd.X)
    if hasattr(estimator, "next_expert"):  # a panel has a threshold of its own, and may be larger
        assert_array_equal(estimator.next_expert(crowd.X), who)
        both = (who >= 0) & asked.any(1)
        assert asked[both, who[both]].all()
    else:
        assert_array_equal(asked.any(1), who >= 0)
        assert asked[who >= 0, who[who >= 0]].all()
        assert hasattr(estimator, "answers_path") or asked.sum(1).max() <= 1
    correctness = estimator.predict_expert_correctness(crowd.X)
    assert correctness.shape == (60, n_experts)
    assert ((correctness >= 0) & (correctness <= 1)).all()
    bounds = estimator.requested_bounds_
    assert len(bounds.target_lower) == n_targets + 1
    assert len(bounds.expert_upper) == n_experts + 1
    request = estimator.get_params(deep=False).get("coverage")
    if request is not None:
        assert (bounds.target_lower[-1], bounds.target_upper[-1]) == (request, request)


@each_deferrer
def test_items_are_served_one_by_one_as_in_a_batch(instance, fitted_once):
    estimator, new = fitted_once(instance), make_crowd(300, random_state=1)
    targets, who, rows = estimator.predict_deferral(new.X), estimator.assign_experts(new.X), range(0, 300, 5)
    for target in np.unique(targets[targets >= 0]) if estimator.n_experts_ else ():
        of_target, weight = targets == target, estimator.selection_[target]
        if isinstance(estimator, ProfileDeferral):  # not a random member, but whoever was right most often
            assert (weight[who[of_target]] > 0).all()
            continue
        expected = of_target.sum() * weight
        served = np.bincount(who[of_target], minlength=estimator.n_experts_)
        assert (np.abs(served - expected) <= 3 * np.sqrt(expected * (1 - weight)) + 1e-9).all()
    order = np.random.default_rng(0).permutation(300)
    assert_array_equal(estimator.assign_experts(new.X[order]), who[order])
    assert_array_equal(np.concatenate([estimator.assign_experts(new.X[[row]]) for row in rows]), who[rows])
    drawn = estimator.predict_team(new.X, new.annotations, decision="draw")
    one_by_one = [estimator.predict_team(new.X[[r]], new.annotations[[r]], decision="draw") for r in rows]
    assert_array_equal(np.concatenate(one_by_one), drawn[rows])
    asked = estimator.consult(new.X)
    assert_array_equal(np.concatenate([estimator.consult(new.X[[row]]) for row in rows]), asked[rows])


@each_deferrer
@pytest.mark.filterwarnings("ignore:.*found nobody")
def test_a_route_gives_label_confidence_and_reason(instance, fitted_once):
    estimator, X = fitted_once(instance), make_crowd(80, random_state=1).X
    plain, route = estimator.route(X, capacity=9), estimator.route(X, capacity=9, explain=True)
    assert route.columns.tolist() == ["target", "expert", "label", "confidence", "reason"]
    assert route[["target", "expert"]].equals(plain)
    assert_array_equal(route["label"], estimator.predict(X))
    explanation, people = estimator.explain_deferral(X), list(estimator.experts_)
    of_classifier = explanation.pop("expected correctness of classifier").to_numpy()
    of_targets = explanation.filter(like="expected correctness of ").max(axis=1).to_numpy()
    assert (route["confidence"] <= of_classifier + 1e-6).all()
    right = estimator.predict_expert_correctness(X)
    for row, (target, expert, _, _, reason) in enumerate(route.itertuples(index=False)):
        if expert != "classifier":
            first, second, name = right[row, people.index(expert)], of_classifier[row], str(expert)
            if str(target).endswith(" with classifier"):  # both decide
                name = f"{expert} with classifier"
                first = explanation[f"expected correctness of {name}"].iloc[row]
            assert f"{name} is expected to be right about {first:.0%} of such items, the classifier about " in reason
            assert reason.startswith(f"{target} is not free; ") or reason.startswith(name)
        else:
            first, second = of_classifier[row], of_targets[row]
            assert f"the classifier is expected to be right about {first:.0%} of such items" in reason
            assert (target != "classifier") == reason.startswith(f"{target} is not free; ")
            if target != "classifier" or not people:
                continue
        assert f" about {second:.0%}" in reason
        assert ("; requested shares, costs" in reason) == (second > first)
    shift = estimator.start_shift()
    first = shift.route(X[:20], explain=True)
    pd.testing.assert_frame_equal(first, estimator.route(X[:20], explain=True))


class Counting(LogisticRegression):
    """A classifier that counts for how many items it is asked for probabilities."""

    n_asked = 0

    def predict_proba(self, X):
        Counting.n_asked += len(X)
        return super().predict_proba(X)


@each_deferrer
@pytest.mark.filterwarnings("ignore:.*found nobody")
def test_an_explanation_asks_the_classifier_once(instance, crowd):
    estimator = clone(instance.estimator)
    part = "deferrer__classifier" if "deferrer" in estimator.get_params(deep=False) else "classifier"
    if not isinstance(estimator.get_params().get(part), LogisticRegression):
        pytest.skip("its classifier is a net")
    team = fit(instance, estimator.set_params(**{part: Counting(C=0.1)}), crowd)
    X, shift, reserve = make_crowd(60, random_state=1).X, team.start_shift(4), team.start_shift(4)
    if not hasattr(team, "replay"):
        reserve = team.start_shift(4, X_expected=X)
    plain = team.route(X, capacity=4)
    for call in (
        lambda: team.route(X, explain=True),
        lambda: team.route(X, capacity=4, explain=True),
        lambda: shift.route(X, explain=True),
        lambda: reserve.route(X, explain=True),
        lambda: team.explain_deferral(X),
    ):
        Counting.n_asked = 0
        call()
        assert Counting.n_asked == 60
    pd.testing.assert_frame_equal(team.route(X, capacity=4, explain=True)[["target", "expert"]], plain)


@each_deferrer
@pytest.mark.filterwarnings("ignore:.*found nobody")
def test_a_shift_remembers_what_each_expert_was_given(instance, fitted_once):
    estimator, X = fitted_once(instance), make_crowd(60, random_state=1).X
    capacity = np.full(estimator.n_experts_, 4)
    shift = estimator.start_shift(capacity)
    assert_array_equal(shift.capacity_left_, capacity)
    who = np.concatenate([shift.assign_experts(X[[row]]) for row in range(20)])
    other = pickle.loads(pickle.dumps(shift))
    for one in (shift, other):
        rest = one.route(X[20:])["expert"]
        served = np.bincount(who[who >= 0], minlength=estimator.n_experts_)
        served = served + [(rest == name).sum() for name in estimator.experts_]
        assert_array_equal(one.served_, served)
        assert_array_equal(one.served_.index, estimator.experts_)
        assert_array_equal(one.capacity_left_, capacity - served)
        assert (served <= 4).all()
    if served.any():
        assert served.max() == 4
        shift = estimator.start_shift(available=np.arange(estimator.n_experts_) != 0)
        shift.assign_experts(X)
        assert shift.served_.iloc[0] == 0
        assert np.isinf(shift.capacity_left_).all()
        shift.available = np.arange(estimator.n_experts_) == 0
        before = shift.served_
        shift.assign_experts(X)
        assert_array_equal((shift.served_ - before).iloc[1:], 0)
        with pytest.raises(ValueError, match="available has shape"):
            shift.available = [True]


@each_deferrer
def test_a_shift_keeps_a_reserve_or_says_why_not(instance, fitted_once):
    estimator, coming, X = fitted_once(instance), make_crowd(100, random_state=1).X, make_crowd(30, random_state=2).X
    capacity = np.arange(estimator.n_experts_)
    if hasattr(estimator, "replay") and not hasattr(estimator, "next_expert"):
        with pytest.raises(ValueError, match="chooses several people about an item at once; leave out X_expected"):
            estimator.start_shift(capacity, X_expected=coming)
        return
    shift = estimator.start_shift(capacity, available={0: False}, X_expected=coming, n_expected=30)
    routes = [shift.route(X[[row]], explain=True) for row in range(30)]
    who = pd.concat(routes)["expert"].to_numpy()
    assert_array_equal(shift.served_, [(who == name).sum() for name in estimator.experts_])
    assert (shift.served_ <= capacity).all()
    assert shift.served_[0] == 0
    assert (estimator.predict_deferral(X)[who != "classifier"] >= 0).all()


@each_deferrer
def test_the_order_of_base_classes_decides_nothing(instance, crowd):
    """Bases in another order give the same results, or no class at all."""
    expected = outputs(instance, fitted(instance, crowd), crowd)
    kinds = [c for c in type(instance.estimator).__mro__ if c.__module__.startswith("sklearn_l2d.")]
    for kind in kinds:
        bases = kind.__bases__
        if not any(base.__module__.startswith("sklearn_l2d.") and base is not Estimator for base in bases):
            continue  # the order of scikit-learn's own bases, of which `Estimator` replaces one, is scikit-learn's
        for order in set(permutations(bases)) - {bases}:
            try:
                kind.__bases__ = order
            except TypeError:
                continue
            try:
                got = outputs(instance, fitted(instance, crowd), crowd)
            finally:
                kind.__bases__ = bases
            for name in expected:
                assert_array_equal(got[name], expected[name], err_msg=f"{name}, {kind.__name__}{order}")


@each_deferrer
def test_mixins_only_add(instance):
    kinds = [c for c in type(instance.estimator).__mro__ if c.__module__.startswith("sklearn_l2d.")]
    mixins = [kind for kind in kinds if kind.__name__.endswith("Mixin")]
    base = {name for kind in kinds if issubclass(BaseDeferrer, kind) for name in vars(kind)}
    own = [{name for name in vars(mixin) if not name.startswith("__")} for mixin in mixins]
    assert all(not names & base for names in own)
    assert len(set().union(*own)) == sum(map(len, own))


@each_deferrer
def test_row_by_row_gives_what_a_batch_gives(instance, crowd, fitted_once):
    estimator = fitted_once(instance)
    whole = outputs(instance, estimator, crowd)
    for name in ("predict_proba", "decision_function", "predict_expert_correctness"):
        one_by_one = np.concatenate([getattr(estimator, name)(row[None]) for row in crowd.X])
        assert_allclose(one_by_one, whole[name], rtol=1e-9, atol=1e-12, err_msg=name)


@each_net
def test_nothing_is_printed_unless_asked(instance, crowd, capsys):
    fitted(instance, crowd)
    assert capsys.readouterr() == ("", "")
    fitted(instance, crowd, verbose=1)
    assert "epoch 1/" in capsys.readouterr().out


@each_deferrer
def test_scorers_of_sklearn_judge_the_classifier(instance):
    two = make_crowd(labels=(0, 1))
    team = fitted(instance, two)
    proba, labels = team.predict_proba(two.X), team.predict(two.X)
    expected = {
        "accuracy": accuracy_score(two.y, labels),
        "roc_auc": roc_auc_score(two.y, proba[:, 1]),
        "average_precision": average_precision_score(two.y, proba[:, 1]),
        "neg_log_loss": -log_loss(two.y, proba),
    }
    scores = {scoring: get_scorer(scoring)(team, two.X, two.y) for scoring in expected}
    assert scores == pytest.approx(expected)
    calibrated = CalibratedClassifierCV(FrozenEstimator(team)).fit(two.X, two.y)
    assert calibrated.predict_proba(two.X).shape == (60, 2)


def with_unknown(crowd, annotated=True, between=False):
    """The crowd with further items of unknown truth, which follow the others or lie between them."""
    more = make_crowd(n_samples=40, random_state=1)
    order = np.arange(100)
    if between:  # both in their order
        unknown = np.random.default_rng(0).permutation(order >= 60)
        order[~unknown], order[unknown] = np.arange(60), np.arange(60, 100)
    annotations = more.annotations if annotated else np.full_like(more.annotations, -1)
    parts = {"X": more.X, "y": np.full(40, np.nan), "annotations": annotations}
    return Bunch(**{name: np.concatenate([crowd[name], part])[order] for name, part in parts.items()})


def params_of_marker(estimator, marker):
    return {f"{'deferrer__' if 'deferrer' in estimator.get_params() else ''}unlabeled_label": marker}


@each_deferrer
def test_answers_to_items_of_unknown_truth_count(instance, crowd, fitted_once):
    more = with_unknown(crowd)
    team, known = fitted(instance, more), fitted_once(instance)
    new = make_crowd(n_samples=30, random_state=2)
    assert_allclose(team._roster.seen.sum(1), (more.annotations >= 0).sum(0))
    proba = team.predict_team_proba(new.X, new.annotations)
    assert np.abs(proba - known.predict_team_proba(new.X, new.annotations)).max() > 1e-6
    assert_array_equal(team.predict(new.X), known.predict(new.X))  # the classifier learns nothing from them
    assert_array_equal(team.classes_, known.classes_)
    outputs(instance, team, crowd)
    # where they lie among the others does not matter, nor how they are marked
    between = fitted(instance, with_unknown(crowd, between=True))
    assert_allclose(between.predict_team_proba(new.X, new.annotations), proba, atol=1e-5)
    assert_allclose(between.predict_deferral_proba(new.X), team.predict_deferral_proba(new.X), atol=1e-5)
    marked = Bunch(**(more | {"y": np.where(np.isnan(more.y), -7, more.y).astype(int)}))
    again = fitted(instance, marked, **params_of_marker(instance.estimator, -7))
    assert_same_outputs(instance, again, team, crowd)
    assert_array_equal(again.predict_team_proba(new.X, new.annotations), proba)


@each_deferrer
@pytest.mark.parametrize("between", [False, True])
def test_items_without_truth_and_annotations_add_nothing(instance, crowd, fitted_once, between):
    estimator = fitted(instance, with_unknown(crowd, annotated=False, between=between))
    expected = fitted_once(instance)
    assert_same_outputs(instance, estimator, expected, crowd)
    assert_array_equal(
        estimator.predict_team_proba(crowd.X, crowd.annotations),
        expected.predict_team_proba(crowd.X, crowd.annotations),
    )


@each_deferrer
@pytest.mark.parametrize("marker", [-7, "unknown", np.nan])
def test_a_marker_that_does_not_occur_changes_nothing(instance, crowd, fitted_once, marker):
    estimator = fitted(instance, crowd, **params_of_marker(instance.estimator, marker))
    assert_same_outputs(instance, estimator, fitted_once(instance), crowd)


@each_deferrer
def test_score_and_fit_need_a_truth(instance, crowd, fitted_once):
    estimator, half = fitted_once(instance), np.where(np.arange(60) % 2, crowd.y, np.nan)
    rows = np.arange(60) % 2 == 1
    known = estimator.score(crowd.X[rows], crowd.y[rows], crowd.annotations[rows], np.arange(60)[rows])
    assert estimator.score(crowd.X, half, crowd.annotations, np.arange(60)) == known
    with pytest.raises(ValueError, match="y knows the truth of no item; score compares with it"):
        estimator.score(crowd.X, np.full(60, np.nan), annotations=crowd.annotations)
    with pytest.raises(ValueError, match="y knows the truth of no item"):
        estimator.fit(crowd.X, np.full(60, np.nan), annotations=crowd.annotations)
    assert_same_outputs(instance, estimator, fitted_once(instance), crowd)
