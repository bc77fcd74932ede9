"""Agreement of annotators, against scikit-learn, a published table and loops over pairs."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from property.strategies import annotation_codes
from sklearn.metrics import cohen_kappa_score

from sklearn_l2d._numerics import _agreement
from sklearn_l2d.metrics import krippendorff_alpha, pairwise_agreement

# Krippendorff 2011, section D: nominal data, four observers, twelve units, 0 is missing
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
).T


def coincidence_alpha(table):
    """Krippendorff's alpha by the matrix of coincidences, pair by pair; -1 is missing."""
    n_classes = table.max() + 1
    coincidences = np.zeros((n_classes, n_classes))
    for row in table:
        values = row[row >= 0]
        for a, b in itertools.permutations(range(len(values)), 2):
            coincidences[values[a], values[b]] += 1 / (len(values) - 1)
    n_c, n = coincidences.sum(1), coincidences.sum()
    off = ~np.eye(n_classes, dtype=bool)
    expected = np.outer(n_c, n_c)[off].sum() / (n - 1) if n > 1 else 0.0
    return 1 - coincidences[off].sum() / expected if expected > 0 else np.nan


def pair_values(measure, a, b):
    """Coefficient of two columns by a loop."""
    both = (a >= 0) & (b >= 0)
    a, b = a[both], b[both]
    if len(a) < 2:
        return np.nan
    if measure == "accuracy":
        return np.mean(a == b)
    if measure == "alpha":
        return coincidence_alpha(np.column_stack([a, b]))
    if len(set(a) | set(b)) == 1:
        return np.nan
    return cohen_kappa_score(a, b)


def test_published_alpha():
    assert round(krippendorff_alpha(PUBLISHED, missing_label=0), 3) == 0.743


@pytest.mark.parametrize("dense", [0.0, 2.0], ids=["dense products", "sparse products"])
@pytest.mark.parametrize("measure", ["kappa", "alpha", "accuracy"])
def test_pairs_equal_a_loop(monkeypatch, measure, dense):
    monkeypatch.setattr(_agreement, "_DENSE", dense)
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 4, size=(40, 7))
    codes[:, 1] = np.where(rng.random(40) < 0.7, codes[:, 0], codes[:, 1])
    codes[3:, 6] = -1
    got = pairwise_agreement(codes, measure=measure)
    for i, j in itertools.combinations(range(7), 2):
        assert_allclose(got[i, j], pair_values(measure, codes[:, i], codes[:, j]), atol=1e-12, err_msg=f"{i}, {j}")
    assert_array_equal(got, got.T)
    assert_array_equal(np.diag(got), 1)


@given(annotation_codes(max_experts=4))
@settings(max_examples=80, deadline=None)
def test_alpha_equals_the_coincidence_matrix(problem):
    codes, _ = problem
    if ((codes >= 0).sum(1) < 2).all():
        with pytest.raises(ValueError, match="no item has two annotations"):
            krippendorff_alpha(codes)
    else:
        assert_allclose(krippendorff_alpha(codes), coincidence_alpha(codes), atol=1e-9)
    got = pairwise_agreement(codes, measure="alpha")
    for i, j in itertools.combinations(range(codes.shape[1]), 2):
        assert_allclose(got[i, j], pair_values("alpha", codes[:, i], codes[:, j]), atol=1e-9)


def test_alpha_of_two_complete_columns_is_that_of_the_pair():
    codes = np.random.default_rng(1).integers(0, 3, size=(30, 2))
    assert krippendorff_alpha(codes) == pytest.approx(pairwise_agreement(codes, measure="alpha")[0, 1])


def test_pairs_that_cannot_be_compared():
    table = pd.DataFrame({"a": ["x", "x", "y", None], "b": ["x", "x", None, "y"], "c": [None, None, "y", "y"]})
    accuracy = pairwise_agreement(table, measure="accuracy", min_overlap=2)
    assert_array_equal(accuracy, [[1, 1, np.nan], [1, 1, np.nan], [np.nan, np.nan, 1]])
    assert_array_equal(pairwise_agreement(table, measure="accuracy", min_overlap=1), np.ones((3, 3)))
    # a and b gave the same answer twice: chance explains that too
    for measure in ("kappa", "alpha"):
        assert np.isnan(pairwise_agreement(table, measure=measure)[0, 1])
    nobody = pairwise_agreement([[0, -1], [1, -1], [0, -1]])
    assert_array_equal(nobody, [[1, np.nan], [np.nan, np.nan]])
    assert np.isnan(krippendorff_alpha([[0, 0], [0, 0]]))


def test_bad_arguments():
    with pytest.raises(ValueError, match="measure='pearson' is unknown"):
        pairwise_agreement([[0, 1]], measure="pearson")
    for overlap in (0, 1.5):
        with pytest.raises(ValueError, match=r"min_overlap=.* must be a whole number"):
            pairwise_agreement([[0, 1]], min_overlap=overlap)
