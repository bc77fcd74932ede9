"""What holds for every consensus: order and form of the votes, single rows, weights, known truth, and searches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from strategies import annotation_codes, permutations

from sklearn_l2d.aggregation import (
    GLAD,
    MACE,
    DawidSkene,
    HierarchicalDawidSkene,
    MajorityVote,
    WeightedMajorityVote,
)
from sklearn_l2d.annotations import encode_votes

ROUNDS = {"max_iter": 4, "tol": 0}  # a fixed number, so that rounding does not decide when they end
METHODS = [
    MajorityVote(),
    WeightedMajorityVote(),
    WeightedMajorityVote("zero_based_skill"),
    DawidSkene(**ROUNDS),
    DawidSkene("confusion_vector", class_prior="uniform", **ROUNDS),
    DawidSkene("one_coin", inference="variational", **ROUNDS),
    HierarchicalDawidSkene(**ROUNDS),
    GLAD(**ROUNDS),
    GLAD(difficulty="estimated", **ROUNDS),
    MACE(**ROUNDS),
]
EACH = pytest.mark.parametrize("method", METHODS, ids=repr)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FEW = settings(max_examples=6, deadline=None)


@st.composite
def answers(draw):
    """Codes of which every class occurs, with the number of classes."""
    codes, n_classes = draw(annotation_codes(min_samples=2, max_samples=8, min_experts=2, max_experts=4))
    return np.vstack([codes, np.resize(np.arange(n_classes), (n_classes, codes.shape[1]))]), n_classes


@EACH
@FEW
@given(answers(), st.data())
def test_order_of_items_annotators_and_classes_does_not_matter(method, codes_and_classes, data):
    codes, n_classes = codes_and_classes
    proba = clone(method).fit(codes).predict_proba(codes)
    items, people, classes = (data.draw(permutations(n)) for n in (*codes.shape, n_classes))
    other = np.where(codes < 0, -1, classes[codes])[items][:, people]
    consensus = clone(method).fit(other)
    assert_allclose(consensus.predict_proba(other)[:, classes], proba[items], atol=1e-4)


@EACH
@FEW
@given(answers())
def test_rows_are_distributions_and_do_not_depend_on_their_batch(method, codes_and_classes):
    codes, _ = codes_and_classes
    consensus = clone(method).fit(codes)
    proba = consensus.predict_proba(codes)
    assert_allclose(proba.sum(1), 1)
    assert proba.min() >= 0
    assert_allclose(consensus.confusion_matrices_.sum(2), 1)
    alone = [consensus.predict_proba(codes[i : i + 1]) for i in range(len(codes))]
    assert_allclose(np.concatenate(alone), proba, atol=1e-12)
    scores = [consensus.score(codes[i : i + 1]) for i in range(len(codes))]
    assert_allclose(sum(scores), consensus.score(codes))


@EACH
@FEW
@given(answers())
def test_votes_are_the_table(method, codes_and_classes):
    codes, _ = codes_and_classes
    votes = encode_votes(codes)
    wide, sparse = clone(method).fit(codes), clone(method).fit(votes)
    assert_array_equal(wide.predict_proba(codes), sparse.predict_proba(votes))
    assert_array_equal(wide.predict(votes), sparse.predict(codes))


@EACH
@FEW
@given(answers(), st.data())
def test_weights_repeat_items(method, codes_and_classes, data):
    codes, n_classes = codes_and_classes
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(codes), max_size=len(codes))))
    weight[-n_classes:] += 1  # these show all classes
    weighed = clone(method).fit(codes, sample_weight=weight)
    repeated = clone(method).fit(np.repeat(codes, weight, axis=0))
    assert_allclose(weighed.predict_proba(codes), repeated.predict_proba(codes), atol=1e-4)
    assert_allclose(
        weighed.score(codes, sample_weight=weight), repeated.score(np.repeat(codes, weight, axis=0)), rtol=1e-4
    )


@EACH
@FEW
@given(answers(), st.data())
def test_known_truth_can_only_lower_the_likelihood(method, codes_and_classes, data):
    codes, n_classes = codes_and_classes
    truth = np.array(data.draw(st.lists(st.integers(-1, n_classes - 1), min_size=len(codes), max_size=len(codes))))
    consensus = clone(method).set_params(unlabeled_label=-1).fit(codes, truth)
    assert consensus.score(codes, truth) <= consensus.score(codes) + 1e-9
    by_truth = [consensus.score(codes[:1], [c]) for c in range(n_classes)]
    assert_allclose(np.logaddexp.reduce(by_truth), consensus.score(codes[:1]), atol=1e-9)


def test_prior_by_held_out_likelihood():
    """The pseudo-counts that a search finds without any truth are those that votes were drawn with."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=120)
    confusion = rng.dirichlet([1, 1], (40, 2)) / 2 + np.eye(2) / 2
    votes = (rng.random((120, 40)) > confusion[:, truth, 0].T).astype(int)
    votes[rng.random(votes.shape) < 0.8] = -1
    search = GridSearchCV(DawidSkene(), {"prior": [1e-3, 1.0, 300.0]}, cv=KFold(3)).fit(votes)
    assert search.best_params_ == {"prior": 1.0}
    by_hand = [DawidSkene().fit(votes[train]).score(votes[test]) for train, test in KFold(3).split(votes)]
    assert_allclose(search.best_score_, np.mean(by_hand))
