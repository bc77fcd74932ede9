"""What holds for every archive and roster that a fitted `AnnotatorLDA` is asked about."""

import functools
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import permutations

from sklearn_l2d import AnnotatorLDA

N_FEATURES, N_CLASSES = 3, 3


@functools.cache
def fitted(dtype="float64", likelihood="auto"):
    """A model whose two behaviours differ."""
    rng = np.random.default_rng(0)
    truth = rng.integers(N_CLASSES, size=80)
    X = rng.normal(size=(80, N_FEATURES)) + 2 * np.eye(N_CLASSES)[truth]
    counts = np.array([rng.multinomial(4, np.full(N_CLASSES, 0.15) + 0.55 * np.eye(N_CLASSES)[t]) for t in truth])
    return AnnotatorLDA(
        2, alpha=2.0, hidden_layer_sizes=(4,), max_epochs=8, n_consensus_epochs=3, n_anchor_epochs=3, dtype=dtype,
        likelihood=likelihood, random_state=0,
    ).fit(X, counts)  # fmt: skip


@st.composite
def archives(draw, max_votes=3):
    """Items and votes, at least one of them, some items without any."""
    n = draw(st.integers(1, 6))
    X = np.random.default_rng(draw(st.integers(0, 2**16))).normal(size=(n, N_FEATURES))
    counts = np.array(
        draw(st.lists(st.lists(st.integers(0, max_votes), min_size=3, max_size=3), min_size=n, max_size=n))
    )
    counts[0, draw(st.integers(0, 2))] += 1
    return X, counts


@st.composite
def rosters(draw):
    """Items and annotations of at least one expert; -1 is missing, nobody is silent."""
    n, n_experts = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    codes = rng.integers(-1, N_CLASSES, size=(n, n_experts))
    codes[rng.integers(n), :] = rng.integers(N_CLASSES, size=n_experts)
    return rng.normal(size=(n, N_FEATURES)), codes


each_likelihood = pytest.mark.parametrize("likelihood", ["exact", "sobol"])


@each_likelihood
@given(archive=archives(), times=st.integers(2, 4))
def test_repeated_items_leave_the_score(likelihood, archive, times):
    X, counts = archive
    model = fitted(likelihood=likelihood)
    again = model.score(np.repeat(X, times, axis=0), np.repeat(counts, times, axis=0))
    assert again == pytest.approx(model.score(X, counts), rel=1e-10)


@each_likelihood
@given(archive=archives(), extra=st.integers(1, 4))
def test_items_without_votes_leave_the_score(likelihood, archive, extra):
    X, counts = archive
    model = fitted(likelihood=likelihood)
    more_X = np.vstack([X, np.zeros((extra, N_FEATURES))])
    more_counts = np.vstack([counts, np.zeros((extra, N_CLASSES), dtype=int)])
    assert model.score(more_X, more_counts) == pytest.approx(model.score(X, counts), rel=1e-10)
    assert_allclose(model.item_posterior(more_X, more_counts)[-extra:], np.tile(model.alpha_, (extra, 1)))


@each_likelihood
@given(archive=archives(), data=st.data())
def test_order_of_items_and_of_named_classes_leaves_the_score(likelihood, archive, data):
    X, counts = archive
    model = fitted(likelihood=likelihood)
    rows = data.draw(permutations(len(X)))
    columns = data.draw(permutations(N_CLASSES))
    named = pd.DataFrame(counts[rows][:, columns], columns=columns)
    assert model.score(X[rows], named) == pytest.approx(model.score(X, counts), rel=1e-10)


@each_likelihood
@given(archive=archives(), cut=st.integers(0, 6))
def test_chunks_weighted_by_their_votes_make_the_score(likelihood, archive, cut):
    X, counts = archive
    model = fitted(likelihood=likelihood)
    chunks = [rows for rows in (slice(0, cut), slice(cut, None)) if counts[rows].sum()]
    weights = [counts[rows].sum() for rows in chunks]
    scores = [model.score(X[rows], counts[rows]) for rows in chunks]
    assert np.average(scores, weights=weights) == pytest.approx(model.score(X, counts), rel=1e-10)


@given(rosters())
def test_memberships_lie_on_the_simplex(roster):
    membership, std = fitted().transform(*roster, return_std=True)
    assert (membership >= 0).all()
    assert_allclose(membership.sum(1), 1, atol=1e-9)
    assert (std > 0).all()
    assert np.isfinite(std).all()


@given(rosters(), st.data())
def test_order_of_experts_and_of_their_items_leaves_memberships(roster, data):
    X, codes = roster
    rows, people = data.draw(permutations(len(X))), data.draw(permutations(codes.shape[1]))
    expected = fitted().transform(X, codes)[people]
    assert_allclose(fitted().transform(X[rows], codes[rows][:, people]), expected, atol=1e-5)


@given(rosters(), st.sampled_from([np.nan, None, pd.NA, "mask"]))
def test_markers_of_missing_annotations_mean_the_same(roster, marker):
    X, codes = roster
    if isinstance(marker, str):
        marked = np.ma.masked_array(codes, mask=codes < 0)
    else:
        marked = codes.astype(object)
        marked[codes < 0] = marker
    assert_array_equal(fitted().transform(X, marked), fitted().transform(X, codes))


@given(rosters(), archives())
def test_a_pickle_answers_the_same(roster, archive):
    copied = pickle.loads(pickle.dumps(fitted()))
    assert_array_equal(copied.transform(*roster), fitted().transform(*roster))
    assert copied.score(*archive) == fitted().score(*archive)


@given(rosters(), archives())
def test_single_precision_trains_nearly_the_same_model(roster, archive):
    assert_allclose(fitted("float32").transform(*roster), fitted("float64").transform(*roster), atol=2e-3)
    assert fitted("float32").score(*archive) == pytest.approx(fitted("float64").score(*archive), abs=2e-3)
