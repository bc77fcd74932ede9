"""PopulationExpertEncoder: codes that tell experts apart, newcomers, images, and what it refuses."""

import numpy as np
import pytest
from _instances import make_crowd
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from sklearn_l2d._torch._population_net import predict_population
from sklearn_l2d.cluster import FuzzyCMeans, PopulationExpertEncoder

FAST = {"n_classifier_epochs": 2, "max_epochs": 3, "random_state": 0}


@pytest.fixture(scope="module")
def crowd():
    return make_crowd()


@pytest.fixture(scope="module")
def schools():
    """Sixteen experts: the even ones are always right, the odd ones guess; half of the answers are missing."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=300)
    X = rng.normal(size=(300, 4)) + 0.5 * np.eye(3, 4)[y]
    annotations = np.where(np.arange(16) % 2 == 0, y[:, None], rng.integers(0, 3, size=(300, 16)))
    return X, y, np.where(rng.random((300, 16)) < 0.5, annotations, -1)


@pytest.fixture(scope="module")
def fitted(schools):
    X, y, annotations = schools
    return PopulationExpertEncoder(8, max_epochs=30, random_state=0).fit(X, y, annotations[:, :12])


def test_codes_tell_newcomers_apart(schools, fitted):
    X, y, annotations = schools
    newcomers = fitted.transform(X[:100], annotations[:100, 12:], y[:100])
    clusters = FuzzyCMeans(2, random_state=0).fit(fitted.transform(X, annotations[:, :12], y))
    assert_array_equal(clusters.labels_, clusters.labels_[0] ^ (np.arange(12) % 2))
    assert_array_equal(clusters.predict(newcomers), clusters.labels_[:4])
    # and the net defers to those who are always right
    logits, deferral = predict_population(fitted.net_, X[100:], newcomers)
    shares = (deferral > logits.max(1, keepdims=True)).mean(0)
    assert shares[[0, 2]].min() > 0.8
    assert shares[[1, 3]].max() < 0.5


def test_an_unknown_expert_has_the_mean_code(schools, fitted):
    X, y, annotations = schools
    known = fitted.transform(X, annotations[:, :12], y)
    assert_allclose(fitted.transform(X[:2]), np.tile(known.mean(0), (2, 1)))
    silent = annotations[:, :2].copy()
    silent[:, 1] = -1
    with pytest.warns(UserWarning, match=r"no annotations of the experts \[1\]"):
        codes = fitted.transform(X, silent, y)
    assert_allclose(codes, [known[0], known.mean(0)])


def test_without_annotations_the_classifier_is_trained_alone(crowd):
    encoder = PopulationExpertEncoder(code_size=3, **FAST).fit(crowd.X, crowd.y)
    assert_array_equal(encoder.transform(crowd.X[:2]), np.zeros((2, 3)))
    assert encoder.history_[-1]["loss"] < encoder.history_[0]["loss"]
    assert encoder.transform(crowd.X, crowd.annotations, crowd.y).shape == (5, 3)


def test_more_experts_than_a_step_takes(crowd):
    one = PopulationExpertEncoder(experts_per_step=1, context_size=2, **FAST)
    codes = one.fit_transform(crowd.X, crowd.y, crowd.annotations)
    all_of_them = PopulationExpertEncoder(experts_per_step=5, context_size=2, **FAST)
    assert not np.allclose(codes, all_of_them.fit_transform(crowd.X, crowd.y, crowd.annotations))


class Convolutions(nn.Module):
    """One convolution on one-channel images."""

    def __init__(self, n_outputs):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 3, 2), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(3, n_outputs)
        )

    def forward(self, X):
        return self.layers(X)


def test_images(crowd):
    images = crowd.X.reshape(60, 1, 2, 2)
    encoder = PopulationExpertEncoder(6, module=Convolutions, hidden_layer_sizes=(7,), **FAST)
    codes = encoder.fit_transform(images, crowd.y, crowd.annotations)
    assert codes.shape == (5, 6)
    assert encoder.net_.module_.body.members[0].layers[-1].out_features == 7
    half = encoder.transform(images[:30], crowd.annotations[:30], crowd.y[:30])
    assert np.isfinite(half).all()


BAD = {
    "no features": ({"hidden_layer_sizes": ()}, "hidden_layer_sizes is empty"),
    "half a unit": ({"context_layer_sizes": (2.5,)}, r"context_layer_sizes=\(2.5,\) must be whole"),
    "no units": ({"rejector_layer_sizes": [0]}, r"rejector_layer_sizes=\(0,\) must be whole"),
    "no code": ({"code_size": 0}, "'code_size' parameter"),
    "no context": ({"context_size": 0}, "'context_size' parameter"),
    "nobody": ({"experts_per_step": 0}, "'experts_per_step' parameter"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_parameters(crowd, fault):
    params, message = BAD[fault]
    with pytest.raises(ValueError, match=message):
        PopulationExpertEncoder(**params).fit(crowd.X, crowd.y, crowd.annotations)


def test_a_module_instance_is_refused(crowd):
    with pytest.raises(TypeError, match="module must be a class or a function"):
        PopulationExpertEncoder(module=nn.Linear(4, 3)).fit(crowd.X, crowd.y, crowd.annotations)
