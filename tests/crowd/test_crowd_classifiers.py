"""Classifiers learnt from votes: limits in which two methods are one, identifiability, and what held-out votes tell."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from _instances import make_crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_l2d import AnnotatedTarget, load
from sklearn_l2d.aggregation import DawidSkene
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.crowd import (
    AggNetClassifier,
    CCEMClassifier,
    COINNet,
    CoNALClassifier,
    CrowdLayerClassifier,
    GeoCrowdNet,
    InstanceDependentCrowdNet,
    MaxMIGClassifier,
    NetClassifier,
    RaykarClassifier,
    TraceRegClassifier,
    UnionNet,
)
from sklearn_l2d.crowd._geo_crowd_net import GeoNet
from sklearn_l2d.model_selection import make_votes_scorer

TINY = {"hidden_layer_sizes": (), "max_epochs": 5, "random_state": 0}
KERNELS = ["matrix", "scale", "bias", "scale_bias", "scalar"]
NETS = [
    AggNetClassifier(),
    CCEMClassifier(),
    COINNet(),
    CoNALClassifier(),
    *(CrowdLayerClassifier(kernel) for kernel in KERNELS),
    GeoCrowdNet("F"),
    GeoCrowdNet("W"),
    GeoCrowdNet(None),
    InstanceDependentCrowdNet(),
    MaxMIGClassifier(),
    TraceRegClassifier(),
    UnionNet(),
]


def simulate(confusion, n_items=400, spread=3.0, random_state=0):
    """Gaussian classes and answers to all items by annotators with confusion matrices (M, C, C)."""
    rng = np.random.default_rng(random_state)
    n_classes = confusion.shape[1]
    truth = rng.integers(n_classes, size=n_items)
    X = rng.normal(size=(n_items, 5)) + spread * np.eye(n_classes, 5)[truth]
    draws = rng.random((n_items, len(confusion), 1))
    return X, truth, (draws > confusion[:, truth].transpose(1, 0, 2).cumsum(2)[:, :, :-1]).sum(2)


def uneven(n_annotators=6, n_classes=3, random_state=1):
    """Confusion matrices of annotators from good to bad, who err in ways of their own."""
    rng = np.random.default_rng(random_state)
    skill = np.linspace(0.9, 0.2, n_annotators)[:, None, None]
    return skill * np.eye(n_classes) + (1 - skill) * rng.dirichlet(np.ones(n_classes), (n_annotators, n_classes))


@pytest.fixture(scope="module")
def crowd():
    return simulate(uneven(), 300)


def net(model, **params):
    return clone(model).set_params(**{**TINY, "max_epochs": 15, **params})


@pytest.mark.parametrize("model", NETS, ids=str)
def test_votes_teach_classifier_and_annotators(model, crowd):
    X, truth, votes = crowd
    fitted = net(model).fit(X, annotations=votes)
    assert fitted.score(X, truth) > 0.9
    right = np.einsum("acc->a", fitted.confusion_matrices_)
    if getattr(model, "kernel", None) != "bias":  # which cannot tell who is right more often
        assert right[0] > right[-1] + 0.3
    assert_allclose(fitted.confusion_matrices_.sum(2), 1, atol=1e-6)
    assert_allclose(fitted.predict_annotation_proba(X).sum(2), 1, atol=1e-6)


@pytest.mark.parametrize(
    "model", [AggNetClassifier(), CCEMClassifier(), GeoCrowdNet("W"), UnionNet(), TraceRegClassifier()], ids=str
)
def test_confusion_matrices_are_recovered(model):
    confusion = uneven()
    X, _, votes = simulate(confusion, 1000)
    found = net(model).fit(X, annotations=votes).confusion_matrices_
    assert_allclose(found, confusion, atol=0.1)


@pytest.mark.parametrize("model", NETS, ids=str)
def test_what_annotators_answer_is_predicted_better_than_by_their_habits(model, crowd):
    X, _, votes = crowd
    fitted = net(model).fit(X[:200], annotations=votes[:200])
    habits = np.stack([(votes[:200] == label).mean(0) for label in range(3)], axis=1)
    by_habit = np.log(habits[np.arange(6), votes[200:]]).mean()
    assert fitted.log_likelihood(X[200:], votes[200:]) > by_habit + 0.1


@pytest.mark.parametrize("model", [*NETS, RaykarClassifier()], ids=str)
def test_truth_alone_is_enough(model, crowd):
    X, truth, _ = crowd
    fitted = clone(model).set_params(**({} if isinstance(model, RaykarClassifier) else TINY)).fit(X, truth)
    assert fitted.score(X, truth) > 0.9
    assert fitted.confusion_matrices_.shape == (0, 3, 3)


@pytest.mark.parametrize("model", NETS, ids=str)
def test_a_file_and_the_same_seed_predict_the_same(model, crowd, tmp_path):
    X, _, votes = crowd
    one, two = (net(model, max_epochs=2).fit(X[:60], annotations=votes[:60]) for _ in range(2))
    one.save(tmp_path / "file")
    for other in (two, load(tmp_path / "file")):
        assert_array_equal(other.predict_proba(X), one.predict_proba(X))
        assert_array_equal(other.predict_annotation_proba(X), one.predict_annotation_proba(X))


def test_a_truth_that_contradicts_the_votes_is_believed(crowd):
    X, truth, votes = crowd
    y = np.where(np.arange(300) < 150, (truth + 1) % 3, -1)
    for model in (AggNetClassifier(), CCEMClassifier(init="dawid_skene")):
        fitted = net(model, unlabeled_label=-1).fit(X, y, votes)
        assert np.mean(fitted.predict(X) == (truth + 1) % 3) > 0.9


# limits in which two methods are one


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_crowd_layer_starts_as_training_on_all_labels(kernel, crowd):
    """From the identity and a classifier that knows nothing, the first step is that of plain cross-entropy."""
    X, _, votes = crowd
    fitted = CrowdLayerClassifier(kernel, **{**TINY, "lr": 1e-12, "dtype": "float64"}).fit(X, annotations=votes)
    logits = torch.zeros((300, 3), dtype=torch.float64, requires_grad=True)
    answers = torch.tensor([[i, m, votes[i, m]] for i in range(300) for m in range(6)])
    fitted.net_.batch_loss(logits, (answers, torch.full((300,), -1)), None).backward()
    expected = np.stack([np.mean(1 / 3 - np.eye(3)[given], axis=0) for given in votes]) / 300
    assert_allclose(logits.grad, expected, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_loss_and_gradient_of_a_crowd_layer_written_out(kernel, crowd):
    X, _, votes = crowd
    fitted = net(CrowdLayerClassifier(kernel), dtype="float64").fit(X, annotations=votes)
    answers, truth = np.array([[0, 0, 2], [0, 5, 1], [1, 5, 0], [2, 3, 1], [2, 0, 1]]), np.array([-1, -1, 1, 0])
    log_odds = np.random.default_rng(0).normal(size=(4, 3))
    loss, of_log_odds = 0.0, np.zeros((4, 3))
    of_weights, of_biases = np.zeros((6, 3, 3)), np.zeros((6, 3))
    f = np.exp(log_odds) / np.exp(log_odds).sum(1, keepdims=True)
    for i, m, label in answers:
        p = f[i] if truth[i] < 0 else np.eye(3)[truth[i]]
        q = np.exp(p @ fitted.weights_[m] + fitted.biases_[m])
        q /= q.sum()
        loss -= 3 * np.log(q[label])  # an answer weighs as much as there are classes
        error = 3 * (q - np.eye(3)[label])
        of_weights[m] += np.outer(p, error)
        of_biases[m] += error
        if truth[i] < 0:
            of_p = fitted.weights_[m] @ error
            of_log_odds[i] += p * (of_p - p @ of_p)
    for i in (2, 3):
        loss -= np.log(f[i, truth[i]])
        of_log_odds[i] += f[i] - np.eye(3)[truth[i]]
    logits = torch.tensor(log_odds, requires_grad=True)
    fitted.net_.module_.zero_grad()
    got = fitted.net_.batch_loss(logits, (torch.tensor(answers), torch.tensor(truth)), None)
    got.backward()
    assert_allclose(got.item(), loss / 7)
    assert_allclose(logits.grad, of_log_odds / 7, atol=1e-12)
    module, diagonal = fitted.net_.module_, np.einsum("acc->ac", of_weights)
    weights = {"matrix": of_weights, "scalar": diagonal.sum(1, keepdims=True), "bias": None}.get(kernel, diagonal)
    biases = of_biases if kernel in ("bias", "scale_bias") else None
    for part, expected in ((module.layer_weights, weights), (module.layer_biases, biases)):
        if expected is not None:
            assert_allclose(part.moved.grad / part.root, expected / 7, atol=1e-12)


@pytest.mark.parametrize(
    ("general", "special"),
    [
        (CoNALClassifier(0.0), CrowdLayerClassifier("matrix")),
        (GeoCrowdNet(None), CCEMClassifier()),
        (GeoCrowdNet("F", weight=0.0), CCEMClassifier()),
        (GeoCrowdNet("W", weight=0.0), CCEMClassifier()),
        (TraceRegClassifier(weight=0.0), CCEMClassifier()),
        (InstanceDependentCrowdNet(n_components=0), TraceRegClassifier()),
        (COINNet(outlier_weight=1e9), GeoCrowdNet("F")),
    ],
    ids=str,
)
def test_limits(general, special, crowd):
    X, _, votes = crowd
    one, other = (clone(model).set_params(**TINY).fit(X, annotations=votes) for model in (general, special))
    assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-4)
    assert_allclose(one.predict_annotation_proba(X), other.predict_annotation_proba(X), atol=1e-4)


def test_one_annotator_who_never_errs_is_plain_cross_entropy(crowd):
    X, truth, _ = crowd
    plain = NetClassifier(**TINY).fit(X, truth)
    for model in (AggNetClassifier(init=1 - 1e-9), CCEMClassifier(init=1 - 1e-9)):
        fitted = clone(model).set_params(**TINY).fit(X, annotations=truth[:, None])
        assert_allclose(fitted.predict_proba(X), plain.predict_proba(X), atol=1e-3)


# Raykar's model


def em(votes, n_classes, n_rounds):
    """Dawid and Skene's model with one pseudo-count in every cell of a matrix, written out."""
    heard = votes[:, :, None] == np.arange(n_classes)
    q = heard.sum(1) / heard.sum((1, 2))[:, None]
    for _ in range(n_rounds):
        counts = np.einsum("nc,nal->acl", q, heard) + 1
        confusion, prior = counts / counts.sum(2, keepdims=True), q.mean(0)
        joint = prior * np.exp(np.einsum("nal,acl->nc", heard, np.log(confusion)))
        q = joint / joint.sum(1, keepdims=True)
    return confusion, prior


def test_constant_features_leave_dawid_and_skene():
    _, _, votes = simulate(uneven(), 300)
    votes[::3, 2] = -1
    confusion, prior = em(votes, 3, 40)
    classifier = LogisticRegression(C=np.inf, tol=1e-8)
    model = RaykarClassifier(classifier, prior=1.0, max_iter=40, tol=0).fit(np.zeros((300, 1)), annotations=votes)
    assert_allclose(model.confusion_matrices_, confusion, atol=2e-4)
    assert_allclose(model.predict_proba(np.zeros((1, 1)))[0], prior, atol=2e-4)
    consensus = DawidSkene(class_prior=prior / prior.sum(), tol=1e-12).fit(votes)
    assert_allclose(model.confusion_matrices_, consensus.confusion_matrices_, atol=1e-3)


@pytest.mark.parametrize("prior", ["average", 1.0, 0.0])
def test_the_objective_never_falls(prior, crowd):
    X, truth, votes = crowd
    model = RaykarClassifier(LogisticRegression(C=np.inf), prior=prior).fit(X, annotations=votes)
    assert len(model.history_) > 2
    assert (np.diff(model.history_) >= 0).all()
    assert model.score(X, truth) > 0.95


def test_a_classifier_without_weights_is_refused(crowd):
    with pytest.raises(ValueError, match="takes no sample_weight"):
        RaykarClassifier(KNeighborsClassifier()).fit(crowd[0], annotations=crowd[2])


# what the penalties are for


def penalty(volume, f, confusion):
    """Penalty of GeoCrowdNet for probabilities (n, C) of a classifier and confusion matrices (M, C, C)."""
    net = SimpleNamespace(volume=volume, volume_weight=1.0)
    return float(GeoNet.penalty(net, torch.from_numpy(f).log(), torch.from_numpy(confusion).log()))


@pytest.mark.parametrize("volume", ["F", "W"])
def test_the_volume_tells_solutions_apart_that_the_answers_do_not(volume):
    """Classes that are mixed give the same answers: with anchors but no experts, F is smaller; else, W."""
    rng = np.random.default_rng(0)
    mix = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]])
    anchors, experts = np.eye(3) * (1 - 3e-9) + 1e-9, rng.dirichlet([2, 2, 2], (4, 3))
    if volume == "F":
        f = np.concatenate([anchors, rng.dirichlet([1, 1, 1], 50)])
        confusion = 0.7 * experts + 0.1
        mixed = f @ mix, np.linalg.solve(mix, confusion)
    else:
        f = 0.7 * rng.dirichlet([1, 1, 1], 50) + 0.1
        confusion = np.concatenate([anchors[None], experts])
        mixed = f @ np.linalg.inv(mix), mix @ confusion
    assert min(mixed[0].min(), mixed[1].min()) > 0
    answers = np.einsum("nc,acl->nal", f, confusion)
    assert_allclose(np.einsum("nc,acl->nal", *mixed), answers, atol=1e-12)  # so that CCEM cannot tell
    assert penalty(volume, f, confusion) < penalty(volume, *mixed) - 0.1


def test_the_determinant_is_that_of_the_gram_matrix():
    f = np.random.default_rng(0).dirichlet([1, 1, 1], 20)
    expected = -np.log(np.linalg.det(3 * f.T @ f / 20 + 0.01 * np.eye(3)))
    assert_allclose(penalty("F", f, np.empty((0, 3, 3))), expected)


def test_planted_outliers_are_ranked():
    X, truth, votes = simulate(np.array([np.eye(4) * 0.6 + 0.1] * 6), 400)
    rng = np.random.default_rng(0)
    planted = rng.random(400) < 0.1
    votes[planted] = ((truth + rng.integers(1, 4, 400)) % 4)[planted][:, None]
    model = net(COINNet(), max_epochs=20).fit(X, annotations=votes)
    assert roc_auc_score(planted, model.outlier_scores(X, votes)) >= 0.9
    one_by_one = [model.outlier_scores(X[[i]], votes[[i]])[0] for i in range(5)]
    assert_allclose(one_by_one, model.outlier_scores(X, votes)[:5], atol=1e-9)


def test_many_annotators_learn_as_fast_as_few():
    """The loss is a mean over answers: a hundred people who answer a hundredth each must not stay where they start."""
    confusion = np.array([[[0.2, 0.8], [0.8, 0.2]]])
    X, _, votes = simulate(confusion, 1000, spread=4.0)
    whole = net(CCEMClassifier(init=0.4)).fit(X, annotations=votes)
    split = np.full((1000, 20), -1)
    split[np.arange(1000), np.arange(1000) % 20] = votes[:, 0]
    parts = net(CCEMClassifier(init=0.4)).fit(X, annotations=split)
    assert_allclose(parts.confusion_matrices_.mean(0), whole.confusion_matrices_[0], atol=0.1)
    assert_allclose(whole.confusion_matrices_[0], confusion[0], atol=0.1)


# held-out votes


def test_log_likelihood_is_the_mean_over_answers(crowd):
    X, _, votes = crowd
    votes = np.where(np.random.default_rng(0).random(votes.shape) < 0.5, -1, votes)
    model = net(CCEMClassifier()).fit(X, annotations=votes)
    proba = model.predict_annotation_proba(X)
    given = [np.log(proba[i, m, votes[i, m]]) for i, m in zip(*np.nonzero(votes >= 0), strict=True)]
    assert_allclose(model.log_likelihood(X, votes), np.mean(given))
    by_name = encode_votes(votes, classes=np.arange(3))[:, [4, 1]]
    some = [np.log(proba[i, m, votes[i, m]]) for i in range(300) for m in (1, 4) if votes[i, m] >= 0]
    assert_allclose(model.log_likelihood(X, by_name), np.mean(some))
    with pytest.raises(ValueError, match="holds no answer"):
        model.log_likelihood(X, np.full_like(votes, -1))


def test_a_search_needs_no_true_label(crowd):
    X, _, votes = crowd
    pipeline = make_pipeline(StandardScaler(), net(CCEMClassifier(), max_epochs=5))
    grid = {"ccemclassifier__lr": [1e-6, 0.05]}
    search = GridSearchCV(pipeline, grid, scoring=make_votes_scorer(), cv=KFold(2), error_score="raise")
    carried = clone(search).fit(X, AnnotatedTarget(np.full(300, np.nan), votes))
    assert carried.best_params_ == {"ccemclassifier__lr": 0.05}
    with config_context(enable_metadata_routing=True):
        routed = clone(search).fit(X, annotations=votes)
    assert_array_equal(routed.cv_results_["mean_test_score"], carried.cv_results_["mean_test_score"])
    train, test = next(iter(KFold(2).split(X)))
    by_hand = clone(carried.best_estimator_).fit(X[train], None, ccemclassifier__annotations=votes[train])
    got = by_hand[-1].log_likelihood(by_hand[0].transform(X[test]), votes[test])
    assert_allclose(got, carried.cv_results_["split0_test_score"][1])
    with pytest.raises(ValueError, match="received no annotations"):
        make_votes_scorer()(by_hand, X)
    with pytest.raises(TypeError, match="no log_likelihood"):
        make_votes_scorer()(LogisticRegression().fit(X, votes[:, 0]), X, None, votes)


def test_votes_of_other_forms_mean_the_same():
    crowd = make_crowd()
    table = net(AggNetClassifier()).fit(crowd.X, annotations=crowd.annotations)
    votes = net(AggNetClassifier()).fit(crowd.X, annotations=encode_votes(crowd.annotations))
    assert_array_equal(table.predict_proba(crowd.X), votes.predict_proba(crowd.X))
