"""BetaExpertEncoder, and what all encoders of experts share."""

import numpy as np
import pandas as pd
import pytest
from _instances import make_crowd
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d.annotations import AnnotatedTarget
from sklearn_l2d.cluster import BetaExpertEncoder


@pytest.fixture(scope="module")
def crowd():
    return make_crowd()


def loop(crowd, right_prior, wrong_prior):
    """Beta posterior of every expert and class, cell by cell."""
    return [
        [
            stats.beta(
                right_prior + sum(t == c for t, y in zip(column, crowd.y, strict=True) if y == c and t != -1),
                wrong_prior + sum(t != c for t, y in zip(column, crowd.y, strict=True) if y == c and t != -1),
            )
            for c in crowd.labels
        ]
        for column in crowd.annotations.T
    ]


def test_equals_a_loop_over_cells(crowd):
    encoding = BetaExpertEncoder(prior=(2, 1), with_variance=True).fit_transform(crowd.X, crowd.y, crowd.annotations)
    expected = [[p.mean() for p in row] + [p.var() for p in row] for row in loop(crowd, 2, 1)]
    assert_allclose(encoding, expected, rtol=1e-12)


def test_empirical_bayes_lies_between_the_flat_prior_and_everybody(crowd):
    encoder = BetaExpertEncoder().fit(crowd.X, crowd.y, crowd.annotations)
    answered = crowd.annotations != -1
    everybody = (crowd.annotations == crowd.y[:, None])[answered].mean()
    assert encoder.center_ == pytest.approx(everybody)
    assert_allclose(encoder.transform(crowd.X)[0], everybody)
    # the experts run from good to bad, and the encoding shows it
    means = encoder.transform(crowd.X, crowd.annotations, crowd.y).mean(1)
    assert means[0] > everybody > means[-1]


@pytest.mark.parametrize("annotations", ["none", "all missing"])
def test_without_annotations_the_prior_is_flat(crowd, annotations):
    given = None if annotations == "none" else np.full_like(crowd.annotations, -1)
    encoder = BetaExpertEncoder(with_variance=True).fit(crowd.X, crowd.y, given)
    assert_allclose(encoder.transform(crowd.X[:2]), 2 * [3 * [1 / 2] + 3 * [1 / 12]])
    got = encoder.transform(crowd.X, crowd.annotations, crowd.y)
    assert_allclose(got[:, :3], [[p.mean() for p in row] for row in loop(crowd, 1, 1)])


def test_rows_and_columns_may_come_in_any_order(crowd):
    encoder = BetaExpertEncoder().fit(crowd.X, crowd.y, crowd.annotations)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(60), rng.permutation(5)
    got = encoder.transform(crowd.X[rows], crowd.annotations[rows][:, columns], crowd.y[rows])
    assert_allclose(got, encoder.transform(crowd.X, crowd.annotations, crowd.y)[columns])


# ------------------------------------------------------------------------------------- shared by all encoders


def test_a_silent_expert_is_unknown(crowd):
    encoder = BetaExpertEncoder().fit(crowd.X, crowd.y, crowd.annotations)
    annotations = pd.DataFrame(crowd.annotations, columns=list("abcde"))
    annotations["d"] = -1
    with pytest.warns(UserWarning, match=r"no annotations of the experts \['d'\]"):
        encoding = encoder.transform(crowd.X, annotations, crowd.y)
    assert_array_equal(encoding[3], encoder.transform(crowd.X[:1])[0])


def test_classes_come_from_answers_too_or_by_name(crowd):
    y, annotations = np.array([0, 1, 1]), np.array([[0, 3], [1, 1], [-1, 0]])
    encoder = BetaExpertEncoder().fit(crowd.X[:3], y, annotations)
    assert encoder.classes_.tolist() == [0, 1, 3]
    with pytest.raises(ValueError, match=r"y holds labels \[2\] that are not in classes \[0, 1, 3\]"):
        encoder.transform(crowd.X[:3], annotations, np.array([2, 1, 0]))
    with pytest.raises(ValueError, match=r"annotations of expert \[1\] hold labels \[7\]"):
        encoder.transform(crowd.X[:3], [[0, 7], [1, 1], [1, 1]], y)
    named = BetaExpertEncoder(classes=[0, 1, 2, 3, 7]).fit(crowd.X[:3], y, annotations)
    assert named.transform(crowd.X[:3], [[0, 7], [1, 1], [1, 1]], [2, 1, 0]).shape == (2, 5)


def test_minus_one_is_a_vote_where_it_is_a_class():
    X, y = np.zeros((4, 1)), np.array([-1, -1, 1, 1])
    annotations = np.array([[-1], [1], [1], [1]])
    assert_allclose(BetaExpertEncoder(prior=(1, 1)).fit_transform(X, y, annotations), [[2 / 4, 3 / 4]])


BAD = {
    "no y": (lambda c: (c.X, c.annotations, None), "annotations came without y"),
    "rows of y": (lambda c: (c.X, c.annotations, c.y[1:]), "y has 59 rows, but X has 60"),
    "rows of annotations": (lambda c: (c.X, c.annotations[1:], c.y), "annotations has 59 rows, but X has 60"),
    "columns of X": (lambda c: (c.X[:, :2], c.annotations, c.y), "X has 2 features"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_input_of_transform(crowd, fault):
    spoil, message = BAD[fault]
    encoder = BetaExpertEncoder().fit(crowd.X, crowd.y, crowd.annotations)
    with pytest.raises(ValueError, match=message):
        encoder.transform(*spoil(crowd))


@pytest.mark.parametrize("prior", [(0, 1), (1, np.inf), (1,), (1, 2, 3)])
def test_bad_priors(crowd, prior):
    with pytest.raises(ValueError, match="two positive pseudo-counts"):
        BetaExpertEncoder(prior=prior).fit(crowd.X, crowd.y, crowd.annotations)


def test_one_class_and_mixed_labels(crowd):
    with pytest.raises(ValueError, match="y holds one class only"):
        BetaExpertEncoder().fit(crowd.X, np.ones(60), crowd.annotations)
    with pytest.raises(ValueError, match="y and annotations together mixes labels of types"):
        BetaExpertEncoder().fit(crowd.X, crowd.y, np.where(crowd.annotations == -1, None, "cat"))


def test_true_labels_travel_with_the_annotations(crowd):
    target = AnnotatedTarget(crowd.y, crowd.annotations)
    pipeline = make_pipeline(StandardScaler(), BetaExpertEncoder())
    expected = BetaExpertEncoder().fit_transform(crowd.X, crowd.y, crowd.annotations)
    assert_array_equal(pipeline.fit_transform(crowd.X, target), expected)
    with config_context(enable_metadata_routing=True):
        assert_array_equal(pipeline.transform(crowd.X, annotations=target), expected)
        routed = pipeline.fit_transform(crowd.X, crowd.y, annotations=crowd.annotations)
    assert_array_equal(routed, expected)


def test_pandas_output_is_indexed_by_expert(crowd):
    annotations = pd.DataFrame(crowd.annotations, columns=list("vwxyz"))
    encoder = BetaExpertEncoder().set_output(transform="pandas")
    encoding = encoder.fit_transform(pd.DataFrame(crowd.X), crowd.y, annotations)
    assert encoding.index.tolist() == list("vwxyz")
    assert encoding.columns.tolist() == [f"betaexpertencoder{c}" for c in range(3)]
    assert encoder.transform(pd.DataFrame(crowd.X[:2], index=[7, 8])).index.tolist() == [7, 8]


def test_images_are_accepted(crowd):
    images = crowd.X.reshape(60, 1, 2, 2)
    expected = BetaExpertEncoder().fit_transform(crowd.X, crowd.y, crowd.annotations)
    assert_array_equal(BetaExpertEncoder().fit_transform(images, crowd.y, crowd.annotations), expected)
