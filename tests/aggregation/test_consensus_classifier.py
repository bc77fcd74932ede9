"""Classifiers that learn from a consensus: limits, doubt, unknown truth, and every deferrer fitted to a consensus."""

import numpy as np
import pytest
from _instances import make_crowd, of_kind
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d.aggregation import CROWDLAB, ConsensusClassifier, DawidSkene, MajorityVote

BOTH = [ConsensusClassifier(), CROWDLAB(cv=2, random_state=0)]


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(n_samples=300)


@pytest.mark.parametrize("model", BOTH, ids=str)
def test_known_truth_leaves_the_classifier_alone(model, crowd):
    plain = LogisticRegression().fit(crowd.X, crowd.y).predict_proba(crowd.X)
    for annotations in (None, crowd.annotations):
        fitted = clone(model).fit(crowd.X, crowd.y, annotations)
        assert_allclose(fitted.predict_proba(crowd.X), plain, atol=1e-5)  # but for a floor


def test_doubt_is_weight(crowd):
    proba = DawidSkene().fit(crowd.annotations).predict_proba(crowd.annotations)
    rows = np.repeat(np.arange(300), 3)
    expected = GaussianNB().fit(crowd.X[rows], np.tile([0, 1, 2], 300), sample_weight=proba.ravel())
    got = ConsensusClassifier(DawidSkene(), GaussianNB()).fit(crowd.X, annotations=crowd.annotations)
    assert_allclose(got.predict_proba(crowd.X), expected.predict_proba(crowd.X), atol=0.01)
    assert np.mean(got.predict(crowd.X) == crowd.y) > 0.85


@pytest.mark.parametrize(
    "classifier", [KNeighborsClassifier(), make_pipeline(StandardScaler(), LogisticRegression())], ids=str
)
def test_without_weights_the_most_probable_label_teaches(classifier, crowd):
    got = ConsensusClassifier(MajorityVote(), classifier).fit(crowd.X, annotations=crowd.annotations)
    told = (crowd.annotations >= 0).any(1)
    labels = MajorityVote().fit_predict(crowd.annotations)
    expected = clone(classifier).fit(crowd.X[told], labels[told])
    assert_array_equal(got.predict(crowd.X), expected.predict(crowd.X))


@pytest.mark.parametrize("model", BOTH, ids=str)
def test_items_that_nobody_labelled_teach_nothing(model, crowd):
    votes, y = crowd.annotations.copy(), np.full(300, np.nan)
    votes[:50], y[:20] = -1, crowd.y[:20]
    told = np.r_[:20, 50:300]
    whole, part = clone(model).fit(crowd.X, y, votes), clone(model).fit(crowd.X[told], y[told], votes[told])
    assert_array_equal(whole.predict_proba(crowd.X), part.predict_proba(crowd.X))


def test_a_class_that_is_nobodys_first_choice_is_kept():
    X, votes = np.arange(6.0)[:, None], [[0, 0, 2], [0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1], [1, 1, 2]]
    model = ConsensusClassifier(MajorityVote(), KNeighborsClassifier(1)).fit(X, annotations=votes)
    assert model.predict_proba(X).shape == (6, 3)
    assert_allclose(model.predict_proba(X)[:, 2], 0, atol=1e-5)


def test_a_frozen_classifier_stays(crowd):
    frozen = FrozenEstimator(GaussianNB().fit(crowd.X, crowd.y))
    for model in (ConsensusClassifier(classifier=frozen), CROWDLAB(frozen)):
        assert_allclose(
            clone(model).fit(crowd.X, annotations=crowd.annotations).predict_proba(crowd.X),
            frozen.predict_proba(crowd.X),
            atol=1e-5,
        )
    with pytest.raises(ValueError, match=r"classifier knows the classes \[0, 1, 2\]"):
        ConsensusClassifier(classifier=frozen).fit(crowd.X, annotations=np.minimum(crowd.annotations, 1))


def test_bad_input_is_refused(crowd):
    with pytest.raises(ValueError, match="there are no annotations; pass one or both"):
        ConsensusClassifier().fit(crowd.X)
    with pytest.raises(ValueError, match="annotations has 299 rows, but X has 300"):
        ConsensusClassifier().fit(crowd.X, annotations=crowd.annotations[:-1])
    with pytest.raises(ValueError, match="'aggregator' parameter"):
        ConsensusClassifier("majority").fit(crowd.X, crowd.y)
    with pytest.raises(ValueError, match="no item has two answers"):
        CROWDLAB(cv=2).fit(crowd.X, annotations=crowd.annotations[:, :1])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("instance", of_kind("deferrer"), ids=str)
def test_every_deferrer_fits_where_the_truth_is_unknown(instance):
    """The consensus takes the place of the truth; where it is in doubt, the truth is left open."""
    crowd = make_crowd(n_samples=120)
    consensus = DawidSkene().fit(crowd.annotations)
    proba = consensus.predict_proba(crowd.annotations)
    y = np.where(proba.max(1) > 0.9, consensus.classes_[proba.argmax(1)], np.nan)
    assert 0.02 < np.isnan(y).mean() < 0.5
    team = clone(instance.estimator).fit(crowd.X, y, annotations=crowd.annotations)
    assert_array_equal(team.classes_, [0, 1, 2])
    right = team.predict_team(crowd.X, crowd.annotations, decision="combine") == crowd.y
    assert right.mean() > 0.85
