"""Classifiers that learn from a consensus: limits, doubt, unknown truth, and every deferrer fitted to a consensus."""

import numpy as np
import pandas as pd
import pytest
from _instances import make_crowd, of_kind
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d._numerics._crowdlab import crowdlab_consensus
from sklearn_l2d.aggregation import CROWDLAB, ConsensusClassifier, DawidSkene, HierarchicalDawidSkene, MajorityVote
from sklearn_l2d.annotations import encode_votes

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


def test_annotators_of_crowdlab_come_by_name(crowd):
    table = pd.DataFrame(crowd.annotations, columns=list("abcde"))
    model = CROWDLAB(cv=2, random_state=0).fit(crowd.X, annotations=table)
    proba = model.predict_proba(crowd.X, table.assign(new=1))
    assert_allclose(model.predict_proba(crowd.X, table[list("edcba")].assign(new=1)), proba)
    assert_array_equal(model.predict_proba(crowd.X, table * 0 - 1), model.predict_proba(crowd.X))
    assert np.abs(proba - model.predict_proba(crowd.X, table)).max() > 0.01  # a newcomer counts as people do on average
    with pytest.raises(ValueError, match="annotations has 4 features, but CROWDLAB is expecting 5"):
        model.predict(crowd.X, crowd.annotations[:, :4])


def test_items_of_the_fit_are_labelled_out_of_fold(crowd):
    """A classifier that knows the votes by heart must not confirm them."""
    parrot = KNeighborsClassifier(1)
    model = CROWDLAB(parrot, cv=5, random_state=0)
    labels = model.fit_predict(crowd.X, annotations=crowd.annotations)
    shares = MajorityVote().fit(crowd.annotations).predict_proba(crowd.annotations)
    folds = StratifiedKFold(5, shuffle=True, random_state=np.random.RandomState(0).randint(2**31 - 1))
    told = (crowd.annotations >= 0).any(1)
    X, best = crowd.X[told], shares[told].argmax(1)
    proba = np.zeros((told.sum(), 3))
    for seen, unseen in folds.split(X, best):
        proba[unseen] = clone(parrot).fit(X[seen], best[seen]).predict_proba(X[unseen])
    consensus = crowdlab_consensus(encode_votes(crowd.annotations[told]), proba, np.full(told.sum(), -1))[3]
    assert np.mean(labels[told] == consensus.argmax(1)) > 0.99  # but for a floor, which may break ties


@pytest.fixture(scope="module")
def consensus():
    """A crowd without truth: who fits a classifier to it knows its probable labels, and where they are in doubt."""
    crowd = make_crowd(n_samples=120)
    model = ConsensusClassifier(HierarchicalDawidSkene(), LogisticRegression())
    model.fit(crowd.X, annotations=crowd.annotations)
    proba = model.aggregator_.predict_proba(crowd.annotations)
    return crowd, model, np.where(proba.max(1) > 0.9, model.classes_[proba.argmax(1)], np.nan)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("instance", of_kind("deferrer"), ids=str)
def test_every_deferrer_fits_where_the_truth_is_unknown(instance, consensus):
    """The consensus takes the place of the truth, and its classifier that of one that would have to learn from it."""
    crowd, model, y = consensus
    assert 0.02 < np.isnan(y).mean() < 0.5
    team = clone(instance.estimator)
    if team.get_params(deep=False).get("classifier") is not None:
        team.set_params(classifier=FrozenEstimator(model))
    team.fit(crowd.X, y, annotations=crowd.annotations)
    assert_array_equal(team.classes_, [0, 1, 2])
    right = team.predict_team(crowd.X, crowd.annotations, decision="combine") == crowd.y
    assert right.mean() > 0.85
    if isinstance(team.get_params(deep=False).get("classifier"), FrozenEstimator):
        assert_array_equal(team.predict(crowd.X), model.predict(crowd.X))
