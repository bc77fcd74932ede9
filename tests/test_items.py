"""What X may be: anything for the classifier, and numbers for gates, nets and clusterers."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from _instances import make_crowd, of_kind, with_parameter
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csc_array, csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.utils import get_tags
from skorch import NeuralNetClassifier

from sklearn_l2d import AnnotatorLDA
from sklearn_l2d._items import content_keys, kind_of_items
from sklearn_l2d._sklearn import take_rows
from sklearn_l2d.deferral import (
    BestExpert,
    ClusterDeferral,
    ConfidenceDeferral,
    OneStageDeferral,
    PanelDeferral,
    ProbabilisticDeferral,
    RandomExpertDeferral,
    RankedDeferral,
    TwoStageDeferral,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CROWD = make_crowd()
NAMES = np.array(["cat", "dog", "eel"])
RNG = np.random.default_rng(0)
TEXT = [f"{NAMES[y]} {NAMES[RNG.integers(3)]} item{i}" for i, y in enumerate(CROWD.y)]
TABLE = pd.DataFrame(CROWD.X, columns=list("abcd"))
WORDS = pd.DataFrame({"text": TEXT, "a": CROWD.X[:, 0]})
POSITIVE = CROWD.X * (CROWD.X > 0)


def only(X, kind):
    """The items, if they are of a kind."""
    assert type(X) is kind, type(X)
    return X


def flat(X):
    return np.asarray(X).reshape(len(X), -1)


def seen_as(kind, *steps):
    """A classifier that takes items of one kind only."""
    return make_pipeline(FunctionTransformer(only, kw_args={"kind": kind}), *steps, LogisticRegression())


words = make_column_transformer((TfidfVectorizer(), "text"), remainder="passthrough")
kinds = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
ITEMS = {
    "list of texts": (TEXT, seen_as(list, TfidfVectorizer())),
    "text column, Arrow": (WORDS.convert_dtypes(dtype_backend="pyarrow"), seen_as(pd.DataFrame, words)),
    "text column, polars": (pl.DataFrame(WORDS.to_dict("list")), seen_as(pl.DataFrame, words)),
    "sparse": (csr_array(POSITIVE), seen_as(csr_array)),
    "images": (CROWD.X.reshape(60, 1, 2, 2), seen_as(np.ndarray, FunctionTransformer(flat))),
    "categories": (TABLE.assign(kind=pd.Categorical(NAMES[CROWD.y])), seen_as(pd.DataFrame, kinds)),
    "nullable numbers": (TABLE.convert_dtypes(), seen_as(pd.DataFrame)),
    "polars numbers": (pl.DataFrame(TABLE.to_dict("list")), seen_as(pl.DataFrame)),
}
FIRST = list({type(i.estimator): i for i in reversed(of_kind("deferrer"))}.values())
OWN_NETS = ("OneStageDeferral", "MixtureOfExpertsDeferral", "PopulationDeferral")  # their net is the classifier


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("instance", FIRST, ids=lambda i: type(i.estimator).__name__)
def test_every_deferrer_takes_what_its_classifier_takes(instance, name):
    (X, classifier), team = ITEMS[name], clone(instance.estimator)
    part = {"classifier", "deferrer"} & team.get_params(deep=False).keys()
    if part:
        team.set_params(**{"classifier" if part == {"classifier"} else "deferrer__classifier": classifier})
    if type(team).__name__ in OWN_NETS and not (name.endswith("numbers")):
        with pytest.raises((TypeError, ValueError), match=r"in a Pipeline|Sparse data|Found array with dim 4"):
            team.fit(X, CROWD.y, annotations=CROWD.annotations)
        return
    fast = {"joint_classifier": False, "max_epochs": 2, "answer_epochs": 1}
    if type(team).__name__ not in OWN_NETS:
        team.set_params(**{name: value for name, value in fast.items() if name in team.get_params(deep=False)})
    team.fit(X, CROWD.y, annotations=CROWD.annotations)
    who, scores = team.assign_experts(X), team.decision_function(X)
    some = [take_rows(X, [row]) for row in range(0, 60, 9)]
    assert_array_equal(np.concatenate([team.assign_experts(row) for row in some]), who[::9])
    assert_allclose(np.concatenate([team.decision_function(row) for row in some]), scores[::9], rtol=1e-9, atol=1e-12)
    assert_array_equal(team.route(X)["expert"] == "classifier", who < 0)
    assert len(team.explain_deferral(X)) == 60
    assert team.predict_team_proba(X, CROWD.annotations).shape == (60, 3)
    assert 0.5 < team.score(X, CROWD.y, annotations=CROWD.annotations) <= 1
    if hasattr(team, "onboard"):
        team.onboard(["new"], X, CROWD.annotations[:, [0]], CROWD.y)
        assert team.consult(X).shape == (60, 6)


def counted(texts):
    return CountVectorizer(vocabulary=NAMES).transform(texts)


GATES = with_parameter(FIRST, "gate_features")


@pytest.mark.parametrize("instance", GATES, ids=lambda i: type(i.estimator).__name__)
def test_a_callable_makes_of_text_what_a_table_would_hold(instance):
    team, numbers = clone(instance.estimator), counted(TEXT).toarray().astype(float)
    if hasattr(team, "joint_classifier"):
        team.set_params(joint_classifier=False)
    plain = clone(team).set_params(classifier=LogisticRegression())
    plain.fit(numbers, CROWD.y, annotations=CROWD.annotations, X_unlabeled=numbers[:30])
    team.set_params(classifier=make_pipeline(FunctionTransformer(counted), LogisticRegression()), gate_features=counted)
    team.fit(TEXT, CROWD.y, annotations=CROWD.annotations, X_unlabeled=TEXT[:30])
    assert_allclose(team.decision_function(TEXT), plain.decision_function(numbers), rtol=1e-5, atol=1e-6)


def softened(X, model, temperature):
    proba = model.predict_proba(X) ** (1 / temperature)
    return proba / proba.sum(1, keepdims=True)


@pytest.mark.parametrize("kind", [RandomExpertDeferral, TwoStageDeferral])
def test_the_gate_of_text_sees_the_calibrated_probabilities_of_the_classifier(kind):
    classifier = FrozenEstimator(make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXT, CROWD.y))
    team = kind(classifier, max_epochs=4, random_state=0) if kind is TwoStageDeferral else kind(
        classifier=classifier, max_epochs=4, dtype="float64", random_state=0
    )  # fmt: skip
    team.fit(TEXT, CROWD.y, annotations=CROWD.annotations)
    see = partial(softened, model=classifier, temperature=team.temperature_)
    other = clone(team).set_params(gate_features=see).fit(TEXT, CROWD.y, annotations=CROWD.annotations)
    assert_allclose(other.decision_function(TEXT), team.decision_function(TEXT), rtol=1e-4, atol=1e-4)


class SeeingLDA(AnnotatorLDA):
    """Notes what it is fitted to."""

    def fit(self, X, y):
        self.given_ = X
        return super().fit(X, y)


@pytest.mark.parametrize("kind", [ClusterDeferral, PanelDeferral])
def test_a_clusterer_sees_probabilities_out_of_fold_where_x_is_no_numbers(kind):
    y = np.random.default_rng(1).integers(2, size=60)  # nothing can be learnt, but much remembered
    remembers = make_pipeline(CountVectorizer(), KNeighborsClassifier(1))
    lda = SeeingLDA(hidden_layer_sizes=(3,), max_epochs=2, n_anchor_epochs=1, n_consensus_epochs=1)
    params = {"classifier": remembers, "clusterer": lda, "cv": 3, "random_state": 0}
    team = kind(**params, max_epochs=1) if kind is ClusterDeferral else kind(**params)
    team.fit(TEXT, y, annotations=np.c_[y, y, 1 - y])
    assert team.clusterer_.given_.shape == (60, 2)
    assert_array_equal(team.predict(TEXT), y)
    assert (team.clusterer_.given_.argmax(1) == y).mean() < 0.8
    numbers = clone(team).set_params(classifier=LogisticRegression()).fit(CROWD.X, y, annotations=np.c_[y, y, 1 - y])
    assert numbers.clusterer_.given_ is CROWD.X


def test_a_clusterer_learns_from_unknown_truth_of_text():
    y = np.where(np.arange(60) % 3 == 0, np.nan, CROWD.y)
    lda = SeeingLDA(hidden_layer_sizes=(3,), max_epochs=2, n_anchor_epochs=1, n_consensus_epochs=1)
    team = PanelDeferral(make_pipeline(TfidfVectorizer(), LogisticRegression()), clusterer=lda, random_state=0)
    team.fit(TEXT, y, annotations=CROWD.annotations)
    unknown = take_rows(TEXT, np.flatnonzero(np.isnan(y)))
    assert len(team.clusterer_.given_) == 60
    assert_allclose(team.clusterer_.given_[40:], team.predict_team_proba(unknown), rtol=1e-12)


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"gate_features": lambda X: np.zeros((3, 2))}, "made 3 rows of 60 items"),
        ({"gate_features": lambda X: np.full((len(X), 1), np.nan)}, r"gate_features\(X\) contains NaN"),
        ({"gate_features": "X"}, "X holds no numbers.*or leave gate_features=None"),
        ({"gate_features": "text"}, "gate_features"),
        ({"gate_features": None, "classifier": None}, "classifier=None is a net.*give a classifier"),
    ],
)
def test_features_that_are_none_are_refused(params, error):
    classifier = make_pipeline(TfidfVectorizer(), LogisticRegression())
    team = RandomExpertDeferral(**({"classifier": classifier, "max_epochs": 1} | params))
    with pytest.raises(ValueError, match=error):
        team.fit(TEXT, CROWD.y, annotations=CROWD.annotations)


def test_a_callable_that_learns_from_the_items_is_refused():
    team = RandomExpertDeferral(
        classifier=make_pipeline(TfidfVectorizer(), LogisticRegression()),
        gate_features=lambda X: TfidfVectorizer().fit_transform(X),
        max_epochs=1,
    )
    team.fit(TEXT, CROWD.y, annotations=CROWD.annotations)
    with pytest.raises(ValueError, match=r"gate_features made rows of shape .* in fit; it must not learn"):
        team.predict_deferral(TEXT[:5])


def test_a_joint_classifier_sees_x_itself():
    team = ProbabilisticDeferral(joint_classifier=True, gate_features="proba")
    with pytest.raises(ValueError, match="gate_features='proba' with joint_classifier=True"):
        team.fit(CROWD.X, CROWD.y, annotations=CROWD.annotations)


def test_items_may_lack_values_where_only_the_classifier_sees_them():
    X = np.where(RNG.random(CROWD.X.shape) < 0.1, np.nan, CROWD.X)
    trees = HistGradientBoostingClassifier(max_iter=5)
    for team in (
        ConfidenceDeferral(trees),
        RandomExpertDeferral(classifier=trees, gate_features="proba", max_epochs=1),
    ):
        assert get_tags(team).input_tags.allow_nan
        assert len(team.fit(X, CROWD.y, annotations=CROWD.annotations).route(X)) == 60
    team = RandomExpertDeferral(classifier=trees)
    assert not get_tags(team).input_tags.allow_nan
    with pytest.raises(ValueError, match="contains NaN"):
        team.fit(X, CROWD.y, annotations=CROWD.annotations)


def test_tags_are_those_of_the_classifier():
    for team in (BestExpert(LogisticRegression()), RandomExpertDeferral(classifier=LogisticRegression())):
        assert get_tags(team).input_tags.sparse
        assert get_tags(RankedDeferral(team)).input_tags.sparse
    for team in (OneStageDeferral(), TwoStageDeferral(LogisticRegression(), gate_features="X"), BestExpert()):
        assert not get_tags(team).input_tags.sparse


def test_refitting_to_text_forgets_the_columns():
    team = ConfidenceDeferral(LogisticRegression()).fit(CROWD.X, CROWD.y, annotations=CROWD.annotations)
    assert team.n_features_in_ == 4
    with pytest.raises(ValueError, match="X has 3 features"):
        team.route(CROWD.X[:, :3])
    team.fit(TABLE, CROWD.y, annotations=CROWD.annotations)
    assert team.feature_names_in_.tolist() == list("abcd")
    team.set_params(classifier=make_pipeline(TfidfVectorizer(), LogisticRegression()))
    team.fit(TEXT, CROWD.y, annotations=CROWD.annotations)
    assert not hasattr(team, "n_features_in_")
    assert not hasattr(team, "feature_names_in_")


def test_rows_of_a_text_series_are_named_and_matched():
    X = pd.Series(TEXT, index=[f"item {i}" for i in range(60)])
    annotations = pd.DataFrame(CROWD.annotations, index=X.index, columns=list("vwxyz"))
    team = ConfidenceDeferral(make_pipeline(TfidfVectorizer(), LogisticRegression()), coverage=0.3, random_state=0)
    team.fit(X, CROWD.y, annotations=annotations)
    assert team.route(X).index.tolist() == X.index.tolist()
    assert team.start_shift().route(X[:3]).index.tolist() == X.index[:3].tolist()
    order = np.random.default_rng(0).permutation(60)
    assert team.score(X, CROWD.y, annotations.iloc[order]) == team.score(X, CROWD.y, annotations)


@pytest.mark.parametrize("X", [CROWD.X.tolist(), torch.tensor(CROWD.X), torch.tensor(CROWD.X, requires_grad=True)])
@pytest.mark.parametrize("kind", [ClusterDeferral, OneStageDeferral, ConfidenceDeferral])
def test_lists_and_tensors_are_taken_by_every_method(X, kind):
    flattened = make_pipeline(FunctionTransformer(lambda X: torch.as_tensor(X).detach().numpy()), LogisticRegression())
    params = {} if kind is OneStageDeferral else {"classifier": flattened}
    params |= {} if kind is ConfidenceDeferral else {"max_epochs": 1}
    team = kind(**params, random_state=0).fit(X, CROWD.y, annotations=CROWD.annotations)
    expected = team.route(CROWD.X)
    assert_array_equal(team.route(X), expected)
    assert_array_equal(team.start_shift().route(X), expected)
    assert team.explain_deferral(X)["chosen"].tolist() == expected["target"].tolist()
    assert_array_equal(team.predict(X), team.predict(CROWD.X))


class Reading(ClassifierMixin, BaseEstimator):
    """A classifier that notes the arrays that it is given."""

    seen = ()

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        type(self).seen = (*self.seen, X)
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_a_memory_map_is_not_copied(tmp_path):
    X = np.memmap(tmp_path / "X", dtype="float32", mode="w+", shape=(60, 4))
    X[:] = CROWD.X
    reading = FrozenEstimator(Reading().fit(X, CROWD.y))
    ConfidenceDeferral(reading).fit(X, CROWD.y, annotations=CROWD.annotations).predict_deferral(X)
    assert Reading.seen
    assert all(isinstance(items, np.memmap) and np.shares_memory(items, X) for items in Reading.seen)


class Layers(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))


@pytest.mark.parametrize("frozen", [False, True])
def test_a_net_of_skorch_sees_float64_as_float32(frozen):
    net = NeuralNetClassifier(
        Layers, criterion=torch.nn.CrossEntropyLoss, max_epochs=2, verbose=0, train_split=None, device="cpu"
    )
    y = CROWD.y.astype(np.int64)
    if frozen:
        net = FrozenEstimator(net.fit(CROWD.X.astype(np.float32), y))
    team = ConfidenceDeferral(net, cv=2).fit(CROWD.X, y, annotations=CROWD.annotations)
    expected = team.classifier_.predict_proba(CROWD.X.astype(np.float32))
    assert_array_equal(team.predict_proba(CROWD.X), expected)
    assert_array_equal(team.predict(CROWD.X), expected.argmax(1))


class Nameless(Reading):
    """A classifier that does not tell its classes."""

    def fit(self, X, y):
        self.fitted_ = True
        return self


@pytest.mark.parametrize("frozen", [False, True])
def test_a_classifier_without_classes_is_refused(frozen):
    classifier = FrozenEstimator(Nameless().fit(None, None)) if frozen else Nameless()
    with pytest.raises(ValueError, match=r"classifier=Nameless has no classes_.*set classes_"):
        ConfidenceDeferral(classifier).fit(CROWD.X, CROWD.y, annotations=CROWD.annotations)


NUMBERS = {
    "array": CROWD.X,
    "whole": np.arange(8).reshape(4, 2),
    "objects": CROWD.X.astype(object),
    "list": CROWD.X.tolist(),
    "tensor": torch.tensor(CROWD.X),
    "frame": TABLE,
    "nullable": TABLE.convert_dtypes(),
    "Arrow": TABLE.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame(TABLE.to_dict("list")),
    "flags": pd.DataFrame({"a": [True, False], "b": [1, 2]}),
    "gaps": [[1.0, None], [2.0, 3.0]],
}
NO_NUMBERS = {
    "texts": TEXT,
    "words": np.array([["a", "b"], ["1", "2"]]),
    "objects": np.array([["a", 1.0], ["b", 2.0]], dtype=object),
    "dicts": [{"a": 1}, {"b": 2}],
    "ragged": [[1, 2], [3]],
    "sparse": csr_array(POSITIVE),
    "mixed": WORDS,
    "numbered categories": TABLE.astype("category"),
    "times": pd.DataFrame({"t": pd.date_range("2020", periods=3)}),
    "polars": pl.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_told(name):
    assert kind_of_items(NUMBERS[name]) == (True, 2)


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_what_is_no_numbers_is_told(name):
    assert not kind_of_items(NO_NUMBERS[name])[0]


CONTENT = {
    "texts": TEXT,
    "Series": pd.Series(TEXT),
    "dicts": [{"a": i, "b": [t, 1.5]} for i, t in enumerate(TEXT)],
    "images in a list": list(CROWD.X.reshape(60, 2, 2)),
    "tensors in a list": list(torch.tensor(CROWD.X)),
    "ragged": [list(range(i)) for i in range(60)],
    "frame": WORDS,
    "Arrow": WORDS.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame(WORDS.to_dict("list")),
    "categories": WORDS.astype("category"),
    "sparse": csr_array(CROWD.X * (RNG.random(CROWD.X.shape) < 0.8) + np.eye(60, 4)),
    "times": pd.DataFrame({"t": pd.date_range("2020", periods=60)}),
    "gaps": pd.DataFrame({"a": ["x", None] * 30, "b": pd.array([*range(59), None], "Int64")}),
}


@pytest.mark.parametrize("name", CONTENT)
def test_keys_belong_to_the_content_of_a_row(name):
    X = CONTENT[name]
    keys, order = content_keys(X, 0, False), np.random.default_rng(1).permutation(60)
    assert keys.dtype == np.uint64
    assert len(np.unique(keys)) == 60
    assert_array_equal(content_keys(take_rows(X, order), 0, False), keys[order])
    assert_array_equal(np.concatenate([content_keys(take_rows(X, [row]), 0, False) for row in range(60)]), keys)
    assert not (content_keys(X, 1, False) == keys).any()
    assert_array_equal(content_keys(take_rows(X, [3, 3]), 0, False), keys[[3, 3]])


def test_keys_do_not_depend_on_how_the_content_is_stored():
    sparse, X = csr_array(POSITIVE), np.array(TEXT)
    expected = content_keys(sparse, 0, False)
    stored = csr_array(POSITIVE)
    stored.data[3] = 0  # stored, but no entry
    without = POSITIVE.copy()
    without[np.nonzero(POSITIVE)[0][3], np.nonzero(POSITIVE)[1][3]] = 0
    twice = coo_array((np.tile(sparse.tocoo().data / 2, 2), np.tile(sparse.tocoo().coords, 2)), shape=sparse.shape)
    for other in (csc_array(sparse), twice, sparse.astype(np.float64)):
        assert_array_equal(content_keys(other, 0, False), expected)
    assert_array_equal(content_keys(stored, 0, False), content_keys(csr_array(without), 0, False))
    texts = content_keys(TEXT, 0, False)
    for other in (X, X.astype(object), X.astype("U99"), pd.Series(TEXT), pd.Series(TEXT, dtype="string[pyarrow]")):
        assert_array_equal(content_keys(other, 0, False), texts)
    numbers = content_keys(CROWD.X, 0, True)
    for other in (TABLE, TABLE.convert_dtypes(dtype_backend="pyarrow"), CROWD.X.tolist(), torch.tensor(CROWD.X)):
        assert_array_equal(content_keys(other, 0, True), numbers)


def test_dicts_reach_a_vectoriser():
    X = [{"kind": NAMES[y]} for y in CROWD.y]
    team = TwoStageDeferral(make_pipeline(DictVectorizer(), LogisticRegression()), max_epochs=1, random_state=0)
    team.fit(X, CROWD.y, annotations=CROWD.annotations)
    assert_array_equal(team.predict(X), CROWD.y)
