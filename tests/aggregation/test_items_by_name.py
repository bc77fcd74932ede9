"""True labels, weights and whom to ask are matched to the items of answers by name, whatever form these have."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from _instances import make_crowd
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_l2d.aggregation import ActiveCrowdsourcing, DawidSkene, MajorityVote
from sklearn_l2d.annotations import encode_votes

CROWD = make_crowd(40)
CROWD.annotations[:, 0] = np.maximum(CROWD.annotations[:, 0], 0)  # somebody answers every item
IDS = [f"item {n}" for n in np.random.default_rng(0).permutation(40)]
TABLE = pd.DataFrame(CROWD.annotations, index=IDS, columns=list("vwxyz"))
LONG = encode_votes(TABLE).to_long().sample(frac=1, random_state=0)
Y = pd.Series(np.where(np.arange(40) % 2, CROWD.y, np.nan), index=IDS)
WEIGHT = pd.Series(np.arange(40.0), index=IDS)
FORMS = {
    "table": TABLE,
    "long table": LONG,
    "long table of polars": pl.DataFrame({name: LONG[name].to_list() for name in LONG}),
    "votes": encode_votes(TABLE),
    "votes of a long table": encode_votes(LONG),
}


def fitted(X, y, weight):
    return DawidSkene().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("form", FORMS)
def test_true_labels_and_weights_are_found(form):
    expected = fitted(TABLE.to_numpy(), Y.to_numpy(), WEIGHT.to_numpy())
    X, y, weight = FORMS[form], Y.sample(frac=1, random_state=1), WEIGHT.sample(frac=1, random_state=2)
    model = fitted(X, y, weight)
    assert_allclose(model.confusion_matrices_, expected.confusion_matrices_, atol=1e-7)
    assert model.score(X, y, weight) == pytest.approx(expected.score(TABLE.to_numpy(), Y.to_numpy(), WEIGHT.to_numpy()))
    model.partial_fit(X, y, sample_weight=weight)
    expected.partial_fit(TABLE.to_numpy(), Y.to_numpy(), sample_weight=WEIGHT.to_numpy())
    assert_allclose(model.confusion_matrices_, expected.confusion_matrices_, atol=1e-7)


def test_true_labels_and_weights_are_found_by_counts():
    counts, majority = pd.DataFrame(CROWD.counts, index=IDS), MajorityVote(input="counts")
    y, weight = Y.sample(frac=1, random_state=1), WEIGHT.sample(frac=1, random_state=2)
    confusion = majority.fit(counts, y, sample_weight=weight).prior_confusion_
    majority.fit(CROWD.counts, Y.to_numpy(), sample_weight=WEIGHT.to_numpy())
    assert_array_equal(confusion, majority.prior_confusion_)


def test_items_of_weight_zero_may_have_a_name_twice():
    weight = (np.arange(40) % 3 > 0).astype(float)
    expected = DawidSkene().fit(TABLE.to_numpy()[weight > 0]).confusion_matrices_
    model = DawidSkene().fit(TABLE.set_axis(np.arange(40) // 2), sample_weight=weight)
    assert_array_equal(model.confusion_matrices_, expected)


@pytest.mark.parametrize("form", FORMS)
def test_who_is_available_is_found_by_name(form):
    X = FORMS[form]
    active = ActiveCrowdsourcing(DawidSkene(tol=1.0), random_state=0).fit(X)
    asked = {(IDS[i], "vwxyz"[m]) for i, m in np.argwhere(TABLE.to_numpy() < 0)[[3, 11]]}
    free = pd.DataFrame([[(name, m) in asked for m in "vwxyz"] for name in IDS], index=IDS, columns=list("vwxyz"))
    item, who = active.suggest(X, 40, available=free.iloc[::-1])
    assert set(zip(encode_votes(X).tasks[item], who, strict=True)) == asked
