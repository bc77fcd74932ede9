"""AnnotatorLDA: what it refuses, how it survives trouble, and what it computes."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from _instances import make_crowd
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma, softmax
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from torch import nn

from sklearn_l2d import AnnotatorLDA
from sklearn_l2d._numerics._concentration import weight_prior
from sklearn_l2d._numerics._mixture_weights import weight_deviations
from sklearn_l2d.cluster._annotation_net import AnnotationNet
from sklearn_l2d.cluster._learnt_settings import peak
from sklearn_l2d.datasets import load_digits_crowd

FAST = {"hidden_layer_sizes": (4,), "max_epochs": 6, "n_anchor_epochs": 3, "n_consensus_epochs": 4, "random_state": 0}
FAST |= {"batch_size": 64}  # two batches an epoch

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def make_lda(n_clusters=2, **params):
    return AnnotatorLDA(n_clusters, **{**FAST, **params})


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(n_samples=120)


@pytest.fixture(scope="module")
def fitted(crowd):
    """Fitted once for the tests that only ask it questions."""
    return make_lda(e_tol=1e-9, max_e_steps=1000, max_epochs=20).fit(crowd.X, crowd.counts)


@pytest.fixture(scope="module")
def digits():
    return load_digits_crowd(n_anonymous=500, n_identified=60, random_state=0)


class TinyResNet(nn.Module):
    """Two convolutions with a shortcut on one-channel images."""

    def __init__(self, n_outputs, width=6):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1, stride=2)
        self.block = nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))
        self.head = nn.Linear(width * 16, n_outputs)

    def forward(self, X):
        out = self.stem(X)
        return self.head((out + self.block(out)).relu().flatten(1))


# ---------------------------------------------------------------------------------------------- bad input


BAD_COUNTS = {
    "negative": (lambda t: np.where(t == 1, -1, t), "y has negative counts"),
    "nan": (lambda t: np.where(t == 1, np.nan, t), "Input y contains NaN"),
    "infinite": (lambda t: np.where(t == 1, np.inf, t), "Input y contains infinity"),
    "one column": (lambda t: t[:, :1], r"y has shape \(120, 1\)"),
    "all zero": (lambda t: 0 * t, "y holds no votes"),
    "one row less": (lambda t: t[1:], "y has 119 rows, but X has 120"),
    "one label for all": (lambda t: np.ones(len(t), dtype=int), "y holds 1 class only"),
    "no target": (lambda t: None, "target y is None"),
}


@pytest.mark.parametrize("fault", BAD_COUNTS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_counts(crowd, fault, method):
    spoil, message = BAD_COUNTS[fault]
    with pytest.raises(ValueError, match=message):
        getattr(make_lda(), method)(crowd.X, spoil(crowd.counts))


BAD_PARAMETERS = {
    "K = 0": ({"n_clusters": 0}, "'n_clusters' parameter"),
    "K = -1": ({"n_clusters": -1}, "'n_clusters' parameter"),
    "K = 1.5": ({"n_clusters": 1.5}, "'n_clusters' parameter"),
    "K above n": ({"n_clusters": 121}, "n_clusters=121 is larger than the number of items in X, 120"),
    "alpha = 0": ({"alpha": 0}, "'alpha' parameter"),
    "alpha < 0": ({"alpha": -3.0}, "'alpha' parameter"),
    "alpha is NaN": ({"alpha": np.nan}, "'alpha' parameter"),
    "alpha has a zero": ({"alpha": [1.0, 0.0]}, r"alpha=\[1.0, 0.0\] has entries that are not positive"),
    "alpha is too long": ({"alpha": [1.0, 2.0, 3.0]}, r"alpha has shape \(3,\)"),
    "alpha has two axes": ({"alpha": [[1.0, 2.0]]}, r"alpha has shape \(1, 2\)"),
    "no units": ({"hidden_layer_sizes": (8, 0)}, r"hidden_layer_sizes=\(8, 0\)"),
    "half a unit": ({"hidden_layer_sizes": [2.5]}, "hidden_layer_sizes"),
    "unknown start": ({"init": "kmeans"}, "'init' parameter"),
    "negative prior": ({"membership_prior": -1.0}, "'membership_prior' parameter"),
    "unknown prior": ({"membership_prior": "flat"}, "'membership_prior' parameter"),
    "unknown penalty": ({"weight_decay": "best"}, "'weight_decay' parameter"),
    "unknown kind": ({"weight_concentration_prior_type": "process"}, "'weight_concentration_prior_type' parameter"),
    "no concentration": ({"weight_concentration_prior": 0.0}, "'weight_concentration_prior' parameter"),
    "no step": ({"lr": 0.0}, "'lr' parameter"),
    "module by name": ({"module": "resnet"}, "'module' parameter"),
}


@pytest.mark.parametrize("fault", BAD_PARAMETERS)
def test_bad_parameters(crowd, fault):
    params, message = BAD_PARAMETERS[fault]
    with pytest.raises(ValueError, match=message):
        make_lda(**params).fit(crowd.X, crowd.counts)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_x_that_is_not_finite(crowd, fitted, value):
    X = crowd.X.copy()
    X[3, 1] = value
    with pytest.raises(ValueError, match="Input X contains"):
        make_lda().fit(X, crowd.counts)
    with pytest.raises(ValueError, match="Input X contains"):
        fitted.transform(X, crowd.annotations)


def test_names_of_columns_are_checked_before_the_training(crowd, monkeypatch):
    monkeypatch.setattr(AnnotationNet, "batch_loss", lambda *args: pytest.fail("training started"))
    with pytest.raises(TypeError, match="Feature names"):
        make_lda().fit(pd.DataFrame(crowd.X, columns=["a", 1, "b", 2]), crowd.counts)


def test_a_module_instance_is_refused(crowd):
    with pytest.raises(TypeError, match="module must be a class or a function"):
        make_lda(module=nn.Linear(4, 3)).fit(crowd.X, crowd.counts)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_cuda_without_cuda_is_refused(crowd, device):
    with pytest.raises(RuntimeError, match=f"device='{device}'"):
        make_lda(device=device).fit(crowd.X, crowd.counts)


def test_images_need_a_module(crowd):
    with pytest.raises(ValueError, match="dim 3"):
        make_lda().fit(crowd.X[:, :, None], crowd.counts)


def test_labels_that_fit_never_saw(crowd, fitted):
    with pytest.raises(ValueError, match=r"annotations of expert .* hold labels .* use labels of one type"):
        fitted.transform(crowd.X, crowd.annotations.astype(str))
    with pytest.raises(ValueError, match=r"y holds labels \[3\]"):
        fitted.score(crowd.X, crowd.y + 1)
    with pytest.raises(ValueError, match="y has 4 columns of counts for the 3 classes"):
        fitted.item_posterior(crowd.X, np.ones((120, 4)))
    with pytest.raises(ValueError, match="columns of y"):
        fitted.score(crowd.X, pd.DataFrame(crowd.counts, columns=list("abc")))


def test_rows_that_do_not_belong_together(crowd, fitted):
    with pytest.raises(ValueError, match="annotations has 119 rows, but X has 120"):
        fitted.transform(crowd.X, crowd.annotations[1:])
    for method in (fitted.score, fitted.perplexity, fitted.item_posterior):
        with pytest.raises(ValueError, match="y has 119 rows, but X has 120"):
            method(crowd.X, crowd.counts[1:])


def test_methods_of_the_perplexity(crowd, fitted):
    with pytest.raises(ValueError, match="method='elbo'"):
        fitted.perplexity(crowd.X, crowd.counts, method="elbo")
    with pytest.raises(ValueError, match="whole numbers of votes"):
        fitted.perplexity(crowd.X, 0.5 * crowd.counts, method="exact")


def test_nothing_works_before_fit(crowd):
    lda = make_lda()
    for call in (
        lambda: lda.transform(crowd.X, crowd.annotations),
        lambda: lda.predict(crowd.X, crowd.annotations),
        lambda: lda.predict_annotation_proba(crowd.X),
        lambda: lda.item_posterior(crowd.X, crowd.counts),
        lambda: lda.score(crowd.X, crowd.counts),
        lambda: lda.perplexity(crowd.X, crowd.counts),
        lambda: lda.used_clusters(crowd.X),
    ):
        with pytest.raises(NotFittedError):
            call()


def test_an_expert_without_annotations_gets_the_cluster_weights_and_a_warning(crowd, fitted):
    annotations = pd.DataFrame(crowd.annotations, columns=list("vwxyz"))
    annotations["x"] = -1
    with pytest.warns(UserWarning, match=r"no annotations of the experts \['x'\]"):
        membership = fitted.transform(crowd.X, annotations)
    assert_array_equal(membership[2], fitted.cluster_weights_)
    others = [0, 1, 3, 4]
    assert_allclose(membership[others], fitted.transform(crowd.X, crowd.annotations)[others], atol=1e-9)


# ------------------------------------------------------------------------------- interrupted and failing fits


def interrupt(monkeypatch, phase, at_batch, error=KeyboardInterrupt):
    """Raise in one batch of a phase; returns what `batch_loss` was called with until then."""
    loss, calls = AnnotationNet.batch_loss, []

    def batch_loss(self, *args):
        calls.append(self.module_.phase)
        if calls.count(phase) == at_batch:
            raise error
        return loss(self, *args)

    monkeypatch.setattr(AnnotationNet, "batch_loss", batch_loss)
    return calls


def state(lda, crowd):
    return {
        "membership": lda.transform(crowd.X, crowd.annotations),
        "proba": lda.predict_annotation_proba(crowd.X),
        "history": str(lda.history_),
        "weights": lda.cluster_weights_,
    }


def assert_same_state(one, other):
    for name in one:
        assert_array_equal(one[name], other[name], err_msg=name)


def test_an_interrupt_keeps_the_last_complete_epoch(crowd, monkeypatch):
    with monkeypatch.context() as patch:
        calls = interrupt(patch, "em", at_batch=4)  # 2 batches an epoch: in the second em epoch
        with pytest.warns(ConvergenceWarning, match="interrupted in the phase 'em'; the net of epoch 4 of 6"):
            lda = make_lda().fit(crowd.X, crowd.counts)
    assert calls.count("em") == 4
    assert [record["phase"] for record in lda.history_] == ["consensus"] * 4 + ["anchor"] * 3 + ["em"]
    # the same steps by hand: a fit whose batches do nothing after that epoch
    with monkeypatch.context() as patch:
        loss, calls = AnnotationNet.batch_loss, []

        def only_until(self, *args):
            calls.append(self.module_.phase)
            value = loss(self, *args)
            return value if calls.count("em") <= 2 else value * float("nan")

        patch.setattr(AnnotationNet, "batch_loss", only_until)
        nets = []
        patch.setattr("sklearn_l2d._torch._net._restore", lambda net, good: nets.append(good))
        with pytest.raises(FloatingPointError):
            make_lda().fit(crowd.X, crowd.counts)
    kept = lda.net_.module_.state_dict()
    assert_array_equal(kept["members.weights.0"].numpy(), nets[0][0]["members.weights.0"].numpy())
    lda.score(crowd.X, crowd.counts)


@pytest.mark.parametrize(
    ("phase", "at_batch"),
    [("consensus", 1), ("consensus", 6), ("anchor", 1), ("anchor", 2)],
    ids=["at once", "in the consensus", "before the first epoch", "within the first epoch"],
)
def test_an_interrupt_with_nothing_to_keep_is_raised_and_leaves_the_last_fit(crowd, monkeypatch, phase, at_batch):
    lda = make_lda().fit(crowd.X, crowd.counts)
    before = state(lda, crowd)
    with monkeypatch.context() as patch:
        calls = interrupt(patch, phase, at_batch)
        with pytest.raises(KeyboardInterrupt):
            lda.fit(crowd.X[:, :3], crowd.counts)
    assert calls.count(phase) == at_batch
    assert calls[-1] == phase
    assert_same_state(state(lda, crowd), before)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_trouble_while_continuing_leaves_the_last_fit(crowd, monkeypatch, method, error):
    lda = make_lda(warm_start=True).fit(crowd.X, crowd.counts)
    before = state(lda, crowd)
    with monkeypatch.context() as patch:
        interrupt(patch, "em", 2, error)
        with pytest.raises(error):
            getattr(lda, method)(crowd.X, crowd.counts)
    assert_same_state(state(lda, crowd), before)


@pytest.mark.parametrize("params", [{"lr": 1e6}, {"lr": 1e38, "max_epochs": 1, "init": "random"}], ids=str)
def test_a_diverging_training_names_lr_and_leaves_the_last_fit(crowd, params):
    lda = make_lda().fit(crowd.X, crowd.counts)
    before = state(lda, crowd)
    lda.set_params(**params)
    with pytest.raises(FloatingPointError, match=r"lower lr \(now 1"):
        lda.fit(crowd.X * 1e3, crowd.counts)
    assert_same_state(state(lda, crowd), before)


def test_clusters_that_answer_alike_are_reported(crowd):
    with pytest.warns(ConvergenceWarning, match=r"clusters of the pairs \[\[0, 1\]\] answer alike"):
        make_lda(lr=1e-9).fit(crowd.X, crowd.counts)
    with pytest.warns(ConvergenceWarning, match=r"clusters \[\d\] carry less than 1 %"):
        make_lda(alpha=[1000.0, 1.0], init="random").fit(crowd.X, crowd.counts)


# --------------------------------------------------------------------------------------- continuing a training


def test_a_stream_of_chunks_reaches_about_the_quality_of_fit(digits):
    params = {"hidden_layer_sizes": (32,), "lr": 0.02, "batch_size": 64, "random_state": 0}
    X, counts = digits.X_anonymous, digits.counts
    whole = AnnotatorLDA(**params, max_epochs=15, n_anchor_epochs=8, n_consensus_epochs=10).fit(X, counts)
    stream = AnnotatorLDA(**params, n_consensus_epochs=18, n_anchor_epochs=18)
    order = np.random.default_rng(0)
    for _ in range(20):
        for chunk in np.array_split(order.permutation(len(X)), 3):
            stream.partial_fit(X[chunk], counts[chunk], classes=np.arange(10))
    identified = digits.X_identified, digits.annotations
    test = digits.X_test, (digits.annotations_test[:, :, None] == np.arange(10)).sum(1)
    uniform = -np.log(10)
    assert whole.score(*test) > uniform + 0.5
    assert stream.score(*test) > whole.score(*test) - 0.1
    both = [lda.transform(*identified)[:, 0] for lda in (whole, stream)]
    assert np.corrcoef(*both)[0, 1] > 0.9
    assert [record["phase"] for record in stream.history_] == ["stream"] * 36 + ["em"] * 24


def test_chunks_may_be_small_lack_classes_and_keep_the_names_of_the_columns(crowd):
    X = pd.DataFrame(crowd.X, columns=list("abcd"))
    lda = make_lda().partial_fit(X[:50], crowd.y[:50], classes=[0, 1, 2])
    lda.partial_fit(X[50:51], crowd.y[50:51])
    assert lda.classes_.tolist() == [0, 1, 2]
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        lda.partial_fit(crowd.X, crowd.counts)
    assert lda.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        lda.partial_fit(X.rename(columns={"a": "z"}), crowd.counts)
    with pytest.raises(ValueError, match="classes="):
        lda.partial_fit(X, crowd.counts, classes=[0, 1, 2, 3])
    assert lda.n_iter_ == 3


def test_warm_start_continues(crowd):
    lda = make_lda(warm_start=True, n_clusters=2).fit(crowd.X, crowd.counts)
    before = lda.score(crowd.X, crowd.counts)
    for _ in range(4):
        lda.fit(crowd.X, crowd.counts)
    assert [record["phase"] for record in lda.history_] == ["consensus"] * 4 + ["anchor"] * 3 + ["em"] * (3 + 4 * 6)
    assert lda.score(crowd.X, crowd.counts) > before + 0.01
    with pytest.raises(ValueError, match="n_clusters=3 cannot change"):
        lda.set_params(n_clusters=3).fit(crowd.X, crowd.counts)


# ------------------------------------------------------------------------------------------ what it computes


def e_step(log_f, votes, alpha, n_sweeps=3000):
    """Independent fixed point over all classes: log_f (n, K, C), votes (n, C)."""
    rho = alpha + votes.sum(1, keepdims=True) / len(alpha)
    for _ in range(n_sweeps):
        zeta = softmax(log_f + digamma(rho)[:, :, None], axis=1)
        rho = alpha + (votes[:, None] * zeta).sum(2)
    return zeta, rho


def test_cluster_weights_and_item_posterior_are_the_e_step_of_the_final_nets(crowd, fitted):
    log_f = np.log(fitted.predict_annotation_proba(crowd.X))
    zeta, rho = e_step(log_f, crowd.counts, fitted.alpha_)
    shares = (crowd.counts[:, None] * zeta).sum((0, 2)) / crowd.counts.sum()
    assert_allclose(fitted.cluster_weights_, shares, rtol=1e-6)
    assert_allclose(fitted.item_posterior(crowd.X, crowd.counts), rho, rtol=1e-6)


def test_item_posterior_with_few_and_real_votes(crowd, fitted):
    weights = crowd.counts * np.random.default_rng(0).random(crowd.counts.shape)
    weights[5] = 0
    _, rho = e_step(np.log(fitted.predict_annotation_proba(crowd.X)), weights, fitted.alpha_)
    got = fitted.item_posterior(crowd.X, weights)
    assert_allclose(got, rho, rtol=1e-6)
    assert_array_equal(got[5], fitted.alpha_)


def test_clusters_are_ordered_by_agreement_with_the_votes(crowd):
    for seed in range(3):
        lda = make_lda(n_clusters=3, init="random", random_state=seed, max_epochs=15).fit(crowd.X, crowd.counts)
        proba = lda.predict_annotation_proba(crowd.X)
        agreement = (crowd.counts[:, None] * proba).sum((0, 2))
        assert (np.diff(agreement) < 0).all()


def test_alpha_follows_its_cluster_through_the_ordering(crowd):
    alphas = [3.0, 4.0, 5.0]
    lda = make_lda(n_clusters=3, alpha=alphas, init="random", max_epochs=15, e_tol=1e-9, max_e_steps=1000)
    lda.fit(crowd.X, crowd.counts)
    assert sorted(lda.alpha_) == alphas
    zeta, _ = e_step(np.log(lda.predict_annotation_proba(crowd.X)), crowd.counts, lda.alpha_)
    assert_allclose(lda.cluster_weights_, (crowd.counts[:, None] * zeta).sum((0, 2)) / crowd.counts.sum(), rtol=1e-6)


def offices(n_votes):
    """Items that are each handled by one of two offices, which call the classes by other names."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    y = (X[:, 0] > 0).astype(int)
    office = rng.integers(2, size=400)
    return X, np.eye(4)[2 * office + y] * n_votes


def test_alpha_is_learnt_from_items_that_are_handled_by_one_office_each():
    X, counts = offices(4)
    settings = OFFICES | {"alpha": 50.0}
    given, learnt = [make_lda(**settings, learn_alpha=learn).fit(X[:300], counts[:300]) for learn in (False, True)]
    assert_array_equal(given.alpha_, [50.0, 50.0])
    assert learnt.alpha_.max() < 0.5
    # two answers are as likely for every vote, or for the four votes of an item together: 2 and 2^(1/4) at best
    assert given.perplexity(X[300:], counts[300:]) > 1.9
    assert learnt.perplexity(X[300:], counts[300:]) < 1.5


def test_the_learnt_alpha_has_the_largest_exact_likelihood_with_its_prior(crowd):
    lda = make_lda(learn_alpha=True, alpha=[2.0, 5.0], max_epochs=8).fit(crowd.X, crowd.counts)
    restored = pickle.loads(pickle.dumps(lda))
    assert_array_equal(restored.alpha_, lda.alpha_)
    assert_array_equal(restored.net_.alpha, lda.net_.alpha)
    mean = np.array([2.0, 5.0])[lda._order]

    def log_posterior(alpha):
        model = pickle.loads(pickle.dumps(lda))
        model.alpha_ = alpha
        return model.score(crowd.X, crowd.counts) * crowd.counts.sum() + (np.log(alpha) - alpha / mean).sum()

    best = log_posterior(lda.alpha_)
    for factor in (0.5, 0.9, 1.1, 2.0):
        for which in ([factor, 1], [1, factor], [factor, factor], [factor, 1 / factor]):
            assert log_posterior(lda.alpha_ * which) < best


def test_alpha_is_not_learnt_without_whole_votes_or_in_a_stream(crowd, monkeypatch):
    monkeypatch.setattr(AnnotationNet, "batch_loss", lambda *args: pytest.fail("training started"))
    for params in ({"learn_alpha": True}, {"weight_concentration_prior_type": "dirichlet_process"}):
        with pytest.raises(ValueError, match="y has no item with whole numbers of votes"):
            make_lda(**params).fit(crowd.X, 0.3 * crowd.counts)
        with pytest.raises(ValueError, match=f"{next(iter(params))}=.* needs all votes at once"):
            make_lda(**params).partial_fit(crowd.X, crowd.counts)


OFFICES = {"hidden_layer_sizes": (), "lr": 0.5, "init": "random", "max_epochs": 40, "alpha": 1.0}
MOST = OFFICES | {"init": "consensus", "max_epochs": 30}


@pytest.mark.parametrize("kind", ["dirichlet_process", "dirichlet_distribution"])
@pytest.mark.parametrize("most", [3, 6])
def test_as_many_clusters_as_the_votes_need(kind, most):
    X, counts = offices(4)
    lda = make_lda(n_clusters=most, weight_concentration_prior_type=kind, **MOST).fit(X[:300], counts[:300])
    assert lda.transform(X).shape == (400, 2)
    assert lda.predict_annotation_proba(X[:5]).shape == (5, 2, 4)
    assert_array_equal(lda.get_feature_names_out(), ["annotatorlda0", "annotatorlda1"])
    assert lda.used_clusters(X).all()
    assert lda.perplexity(X[300:], counts[300:]) < 1.6
    restored = pickle.loads(pickle.dumps(lda))
    assert_array_equal(restored.predict_annotation_proba(X), lda.predict_annotation_proba(X))
    restored.set_params(warm_start=True, max_epochs=2).fit(X[:300], counts[:300])
    assert restored.transform(X).shape == (400, 2)


def test_what_is_left_learns_from_all_votes():
    """Six clusters can afford eight votes of an item; the two that are left can afford all twenty."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    first = rng.binomial(20, rng.beta(0.5, 0.2, size=200))  # of the votes, by one office; the others by the other one
    counts = np.zeros((200, 4))
    counts[np.arange(200), (X[:, 0] > 0).astype(int)] = first
    counts[np.arange(200), (X[:, 0] > 0) + 2] = 20 - first
    lda = make_lda(n_clusters=6, weight_concentration_prior_type="dirichlet_process", **MOST).fit(X, counts)
    assert len(lda.alpha_) == 2
    prior = weight_prior("dirichlet_process", 1 / 6, 6.0)

    def log_posterior(alpha):
        model = pickle.loads(pickle.dumps(lda))
        model.alpha_ = alpha
        return model.score(X, counts) * counts.sum() + prior(alpha)[0]

    best = log_posterior(lda.alpha_)
    for which in ([0.98, 1], [1, 0.98], [1.02, 1], [1, 1.02], [0.98, 0.98], [1.02, 1.02]):
        assert log_posterior(lda.alpha_ * which) < best


def test_a_concentration_near_zero_leaves_one_cluster():
    X, counts = offices(4)
    settings = {"weight_concentration_prior_type": "dirichlet_process", **MOST}
    lda = make_lda(n_clusters=3, weight_concentration_prior=1e-300, **settings).fit(X[:300], counts[:300])
    assert_array_equal(lda.cluster_weights_, [1.0])
    assert 2 < lda.perplexity(X[300:], counts[300:]) < 2.6  # two names at random


class Affine(nn.Module):
    def __init__(self, n_outputs):
        super().__init__()
        self.layer = nn.Linear(2, n_outputs)

    def forward(self, X):
        return self.layer(X)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("module", [None, Affine])
def test_the_training_goes_on_with_the_clusters_that_are_left(monkeypatch, optimizer, module):
    """Also with the moving averages of the optimiser, and from the right state after an interrupt."""
    X, counts = offices(4)
    lr = {"sgd": 0.5, "adam": 0.05}[optimizer]
    settings = OFFICES | {"optimizer": optimizer, "module": module, "lr": lr, "max_epochs": 25}
    lda = make_lda(n_clusters=4, weight_concentration_prior_type="dirichlet_process", **settings)
    with monkeypatch.context() as patch:
        interrupt(patch, "em", at_batch=7 * 22)  # 400 items are 7 batches
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            lda.fit(X, counts)
    assert 1 < len(lda.cluster_weights_) < 4
    assert lda.perplexity(X, counts) < 1.7
    assert all(len(group["params"]) for group in lda.net_.optimizer_.param_groups)


def test_the_better_experts_are_nearer_to_cluster_0(digits):
    lda = make_lda(hidden_layer_sizes=(32,), max_epochs=15, n_anchor_epochs=8, n_consensus_epochs=10)
    membership = lda.fit(digits.X_anonymous, digits.counts).transform(digits.X_identified, digits.annotations)
    assert_allclose(membership.sum(1), 1)
    pairs = membership[:, 0].reshape(3, 2).mean(1)  # 5 %, 20 % and 35 % of mistakes
    assert pairs[0] > pairs[1] > pairs[2]
    assert_array_equal(lda.predict(digits.X_identified, digits.annotations), membership.argmax(1))


@pytest.mark.parametrize("method", ["exact", "sobol"])
def test_scores_of_chunks_combine_to_the_score_of_all(crowd, fitted, method):
    lda = pickle.loads(pickle.dumps(fitted)).set_params(likelihood=method)
    counts = crowd.counts * (1 if method == "exact" else 0.7)
    total = 0.0
    for chunk in np.split(np.arange(120), [1, 8, 39, 40, 119]):
        total += lda.score(crowd.X[chunk], counts[chunk]) * counts[chunk].sum()
    assert_allclose(total / counts.sum(), lda.score(crowd.X, counts), rtol=1e-10)
    assert_allclose(lda.perplexity(crowd.X, counts), np.exp(-total / counts.sum()), rtol=1e-10)


def test_score_of_one_vote_per_item_is_the_log_of_the_mean_behaviour(crowd, fitted):
    mean = np.tensordot(fitted.predict_annotation_proba(crowd.X), fitted.alpha_ / fitted.alpha_.sum(), (1, 0))
    expected = np.log(mean[np.arange(120), crowd.y]).mean()
    assert_allclose(fitted.score(crowd.X, crowd.y), expected, rtol=1e-10)
    assert_allclose(fitted.perplexity(crowd.X, crowd.y, method="sobol"), np.exp(-expected), rtol=1e-3)


def test_one_cluster_is_one_classifier(crowd):
    lda = make_lda(n_clusters=1).fit(crowd.X, crowd.counts)
    assert_allclose(lda.cluster_weights_, [1.0])
    assert_array_equal(lda.transform(crowd.X, crowd.annotations), np.ones((5, 1)))
    log_p = np.log(lda.predict_annotation_proba(crowd.X)[:, 0])
    assert_allclose(lda.score(crowd.X, crowd.counts), (crowd.counts * log_p).sum() / crowd.counts.sum(), rtol=1e-10)


def test_items_without_votes_are_no_evidence(crowd, fitted):
    more_X = np.vstack([crowd.X, crowd.X[:30] + 5])
    more_counts = np.vstack([crowd.counts, np.zeros((30, 3))])
    assert_allclose(fitted.score(more_X, more_counts), fitted.score(crowd.X, crowd.counts), rtol=1e-12)
    more_annotations = np.vstack([crowd.annotations, np.full((30, 5), -1)])
    expected = fitted.transform(crowd.X, crowd.annotations)
    assert_allclose(fitted.transform(more_X, more_annotations), expected, atol=1e-9)
    # a training with them differs by nothing but the batches, and weights of votes only by their scale
    lda = make_lda().fit(more_X, more_counts)
    assert np.isfinite(lda.score(crowd.X, crowd.counts))


def test_a_batch_without_votes_is_no_trouble(crowd):
    counts = crowd.counts.copy()
    counts[1:] = 0
    with pytest.warns(ConvergenceWarning):
        lda = make_lda(batch_size=8, lr=1e-9).fit(crowd.X, counts)
    assert np.isfinite([record["loss"] for record in lda.history_]).all()


def test_real_valued_votes(crowd):
    plain, halved = [make_lda(alpha=a).fit(crowd.X, w * crowd.counts) for w, a in ((1, 8.0), (0.5, 4.0))]
    # the responsibilities depend on alpha and votes only through digamma(rho), nearly a logarithm here
    assert_allclose(halved.predict_annotation_proba(crowd.X), plain.predict_annotation_proba(crowd.X), atol=0.02)
    assert (plain.likelihood_, halved.likelihood_) == ("exact", "sobol")
    assert np.isfinite(halved.score(crowd.X, 0.5 * crowd.counts))


def test_prior_softens_the_membership(crowd, fitted):
    lda = pickle.loads(pickle.dumps(fitted))
    distance = [
        np.abs(lda.set_params(membership_prior=b).transform(crowd.X, crowd.annotations) - lda.cluster_weights_).sum()
        for b in (0.0, 1.0, 100.0, 1e6)
    ]
    assert (np.diff(distance) < 0).all()
    assert distance[-1] < 1e-2


def test_std_is_the_laplace_approximation_of_the_annotations(crowd, fitted):
    proba = fitted.predict_annotation_proba(crowd.X)
    membership, std = fitted.transform(crowd.X, crowd.annotations, return_std=True)
    assert_allclose(membership, fitted.transform(crowd.X, crowd.annotations))
    for m in range(5):
        rows = np.flatnonzero(crowd.annotations[:, m] >= 0)
        log_f = np.log(proba[rows, :, crowd.annotations[rows, m]])
        expected = weight_deviations(log_f, np.zeros(len(rows), int), 1, 0.1 * len(rows) * fitted.cluster_weights_)
        assert_allclose(std[m], expected[0], rtol=1e-5)
    nobody, prior_std = fitted.transform(crowd.X[:2], return_std=True)
    assert_array_equal(nobody, np.tile(fitted.cluster_weights_, (2, 1)))
    assert_allclose(prior_std, np.full((2, 2), np.sqrt(1 / 12)))  # of the uniform distribution
    fixed = pickle.loads(pickle.dumps(fitted)).set_params(membership_prior=1.0)
    a = 1 + fitted.cluster_weights_
    prior_std = fixed.transform(crowd.X[:2], return_std=True)[1]
    assert_allclose(prior_std, np.tile(np.sqrt(a / 3 * (1 - a / 3) / 4), (2, 1)))


def test_people_with_few_labels_keep_their_place(crowd, fitted):
    """One person gives the same labels as another, to each item once instead of four times."""
    lda = pickle.loads(pickle.dumps(fitted))
    few = np.arange(120) < 30
    answers = np.column_stack([np.where(few, crowd.y[np.arange(120) % 30], -1), crowd.y[np.arange(120) % 30]])
    X = np.tile(crowd.X[:30], (4, 1))
    auto = lda.transform(X, answers)
    assert_allclose(auto[0], auto[1], atol=1e-4)
    alone = lda.transform(X[few], answers[few, :1])  # whoever else is there
    assert_allclose(alone[0], auto[0], atol=1e-9)
    fixed = lda.set_params(membership_prior=10.0).transform(X, answers)
    distance = np.abs(fixed - lda.cluster_weights_).sum(1)
    assert distance[0] < 0.9 * distance[1]  # drawn to the average


# -------------------------------------------------------------------------------------------------- used clusters


def used_by_hand(lda, X):
    """Clusters with some votes that answer unlike all earlier ones of this kind, by a loop over pairs."""
    proba, carries = lda.predict_annotation_proba(X), lda.cluster_weights_ >= 0.01
    used = carries.copy()
    for later in range(len(used)):
        for earlier in np.flatnonzero(carries[:later]):
            total_variation = np.abs(proba[:, later] - proba[:, earlier]).sum(1) / 2
            used[later] &= total_variation.max() >= 0.01
    return used


def check_used(lda, X, expected):
    used = lda.used_clusters(X)
    assert used.dtype == bool
    assert_array_equal(used, used_by_hand(lda, X))
    assert_array_equal(used, expected)


@pytest.fixture
def three(crowd):
    """Three linear behaviours that answer unlike one another, and their members in the order of the clusters."""
    lda = make_lda(n_clusters=3, init="random", max_epochs=15, hidden_layer_sizes=()).fit(crowd.X, crowd.counts)
    probabilities, members = lda.predict_annotation_proba(crowd.X), lda.net_.module_.members
    with torch.no_grad():
        own = members(torch.as_tensor(crowd.X)).softmax(-1).numpy()
    order = [np.abs(own - probabilities[:, k]).sum((1, 2)).argmin() for k in range(3)]
    assert sorted(order) == [0, 1, 2]
    return lda, order


def make_alike(three, cluster, other, bias=0.0, weight=0.0):
    """Let a cluster answer like another one, but for a bias and the weight of the last column in the first class."""
    lda, order = three
    members = lda.net_.module_.members
    with torch.no_grad():
        for parameter in members.parameters():
            parameter[order[cluster]] = parameter[order[other]]
        members.biases[0][order[cluster], 0, 0] += bias
        members.weights[0][order[cluster], -1, 0] += weight


def test_clusters_that_answer_apart_are_all_used(crowd, fitted, three):
    check_used(fitted, crowd.X, [True, True])
    check_used(three[0], crowd.X, [True, True, True])
    check_used(make_lda(n_clusters=1).fit(crowd.X, crowd.counts), crowd.X, [True])


@pytest.mark.parametrize(("cluster", "other"), [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)])
def test_a_copy_of_an_earlier_cluster_is_not_used(crowd, three, cluster, other):
    make_alike(three, cluster, other)
    check_used(three[0], crowd.X, np.arange(3) != max(cluster, other))


def test_of_three_copies_the_first_is_used(crowd, three):
    make_alike(three, 1, 0)
    make_alike(three, 2, 0)
    check_used(three[0], crowd.X, [True, False, False])


@pytest.mark.parametrize(("bias", "unlike"), [(0.01, False), (0.5, True)])
def test_a_cluster_that_is_nearly_a_copy(crowd, three, bias, unlike):
    make_alike(three, 2, 1, bias)
    check_used(three[0], crowd.X, [True, True, unlike])


def test_an_idle_cluster_is_not_used_and_hides_no_other(crowd, three):
    make_alike(three, 2, 1)
    lda = three[0]
    for weights, expected in (
        ([0.5, 0.3, 0.2], [True, True, False]),
        ([0.5, 0.495, 0.005], [True, True, False]),
        ([0.5, 0.005, 0.495], [True, False, True]),
        ([0.5, 0.01, 0.49], [True, True, False]),
        ([0.005, 0.5, 0.495], [False, True, False]),
    ):
        lda.cluster_weights_ = np.array(weights)
        check_used(lda, crowd.X, expected)


def test_one_item_tells_two_clusters_apart_in_whichever_batch_it_is(crowd, three):
    make_alike(three, 2, 1, weight=5.0)
    many = np.tile(crowd.X, (20, 1))
    many[:, -1] = 0
    check_used(three[0], many, [True, True, False])
    for row in (0, 1023, 1024, len(many) - 1):
        one = many.copy()
        one[row, -1] = 2.0
        check_used(three[0], one, [True, True, True])


def test_collapsed_clusters_are_not_used(crowd):
    with pytest.warns(ConvergenceWarning, match=r"clusters of the pairs \[\[0, 1\]\] answer alike"):
        alike = make_lda(lr=1e-9).fit(crowd.X, crowd.counts)
    check_used(alike, crowd.X, [True, False])
    with pytest.warns(ConvergenceWarning, match=r"clusters \[\d\] carry less than 1 %"):
        idle = make_lda(alpha=[1000.0, 1.0], init="random").fit(crowd.X, crowd.counts)
    check_used(idle, crowd.X, idle.cluster_weights_ >= 0.01)
    assert idle.used_clusters(crowd.X).sum() == 1


# ------------------------------------------------------------------------------------------------------- labels


def test_frames_of_counts_name_the_classes(crowd):
    names = ["no", "perhaps", "yes"]
    frame = pd.DataFrame(crowd.counts, columns=names)[["yes", "no", "perhaps"]]
    answers = pd.DataFrame(crowd.annotations, columns=list("vwxyz")).replace(dict(enumerate(names)) | {-1: None})
    named, plain = make_lda().fit(crowd.X, frame), make_lda().fit(crowd.X, crowd.counts)
    assert named.classes_.tolist() == names
    assert_array_equal(named.transform(crowd.X, answers), plain.transform(crowd.X, crowd.annotations))
    assert named.score(crowd.X, frame) == plain.score(crowd.X, crowd.counts)
    assert named.score(crowd.X, np.array(names)[crowd.y]) == plain.score(crowd.X, crowd.y)


def test_minus_one_can_be_a_class(crowd):
    labels = np.array([-1, 0, 1])[crowd.y]
    lda = make_lda().fit(crowd.X, labels)
    assert lda.classes_.tolist() == [-1, 0, 1]
    annotations = pd.DataFrame({"ann": labels, "bob": np.where(np.arange(120) < 60, labels, np.nan)})
    plain = make_lda().fit(crowd.X, crowd.y)
    expected = plain.transform(crowd.X, np.stack([crowd.y, np.where(np.arange(120) < 60, crowd.y, -1)], 1))
    assert_allclose(lda.transform(crowd.X, annotations), expected)


# --------------------------------------------------------------------------------------------- nets and devices


def test_a_convolutional_net_on_images(digits):
    images = digits.X_anonymous.reshape(-1, 1, 8, 8)
    lda = AnnotatorLDA(
        module=TinyResNet, lr=0.02, batch_size=64, n_consensus_epochs=5, n_anchor_epochs=3, max_epochs=4, random_state=0
    )
    lda.fit(images, digits.counts)
    assert [type(member) for member in lda.net_.module_.members.members] == [TinyResNet, TinyResNet]
    held_out = digits.X_test.reshape(-1, 1, 8, 8), digits.annotations_test
    counts = (held_out[1][:, :, None] == np.arange(10)).sum(1)
    assert lda.perplexity(held_out[0], counts) < 7  # 10 is a guess
    membership = lda.transform(*held_out)
    assert membership[:2, 0].mean() > membership[4:, 0].mean()
    restored = pickle.loads(pickle.dumps(lda))
    assert_array_equal(restored.transform(*held_out), membership)


def test_behaviours_that_answer_alike_pay_the_penalty_of_one(crowd):
    """Otherwise a search over the number of behaviours would compare penalties."""
    whole = {"hidden_layer_sizes": (), "batch_size": 200, "weight_decay": 0.2}
    one = make_lda(n_clusters=1, max_epochs=300, **whole).fit(crowd.X, crowd.counts)
    alike = make_lda(n_clusters=3, init="random", warm_start=True, max_epochs=1, **whole).fit(crowd.X, crowd.counts)
    alike.net_.module_.members.copy_members_from(one.net_.module_.members)
    alike.net_.initialize_optimizer()
    with pytest.warns(ConvergenceWarning, match="answer alike"):
        alike.set_params(max_epochs=100).fit(crowd.X, crowd.counts)
    expected = one.predict_annotation_proba(crowd.X)
    assert_allclose(alike.predict_annotation_proba(crowd.X), np.repeat(expected, 3, axis=1), atol=1e-3)


def test_the_penalty_is_that_of_the_best_of_nets_that_are_trained_one_by_one(crowd):
    settings = {"dtype": "float64", "lr": 0.3, "n_consensus_epochs": 15, "batch_size": 40}
    auto = make_lda(weight_decay="auto", **settings, max_epochs=1, n_anchor_epochs=0, random_state=4)
    with pytest.warns(ConvergenceWarning):
        auto.fit(crowd.X, crowd.counts)
    seed = np.random.RandomState(4).randint(2**31 - 1)
    held_out = np.isin(np.arange(120), np.random.default_rng(seed).permutation(120)[:12])
    rest, penalties, scores = np.where(held_out[:, None], 0, crowd.counts), np.geomspace(0.003, 0.02, 5), []
    for penalty in penalties:
        alone = make_lda(1, weight_decay=penalty, max_epochs=15, **settings, random_state=4).fit(crowd.X, rest)
        scores.append(alone.score(crowd.X[held_out], crowd.counts[held_out]))
    best = np.argmax(scores)
    expected = np.log(penalties[best])
    if 0 < best < 4:
        curve = np.polyfit(np.log(penalties[best - 1 : best + 2]), scores[best - 1 : best + 2], 2)
        expected = -curve[1] / (2 * curve[0])
    assert_allclose(np.log(auto.weight_decay_), expected, atol=1e-3)


def test_more_noise_has_more_penalty(crowd):
    rng = np.random.default_rng(0)
    noise = np.column_stack([crowd.X, rng.standard_normal((120, 60))])
    settings = {"weight_decay": "auto", "max_epochs": 1, "n_anchor_epochs": 0, "n_consensus_epochs": 20, "lr": 0.2}
    with pytest.warns(ConvergenceWarning):
        penalty = [make_lda(**settings).fit(X, crowd.counts).weight_decay_ for X in (crowd.X, noise)]
    assert penalty[0] < penalty[1]


def test_a_stream_and_a_handful_of_items_have_the_usual_penalty(crowd):
    assert make_lda(weight_decay="auto").partial_fit(crowd.X, crowd.counts).weight_decay_ == 0.015
    assert make_lda(weight_decay="auto").fit(crowd.X[:9], crowd.counts[:9]).weight_decay_ == 0.015
    assert make_lda(weight_decay=0.2).fit(crowd.X, crowd.counts).weight_decay_ == 0.2


def test_where_a_parabola_is_largest():
    x = np.log([0.1, 0.2, 0.4, 0.8])
    assert_allclose(peak(x, -((x - np.log(0.3)) ** 2)), np.log(0.3))
    assert peak(x, x) == x[3]
    assert peak(x, -x) == x[0]
    assert peak(x, np.zeros(4)) == x[0]


@pytest.mark.parametrize("optimizer", ["adam", torch.optim.RMSprop], ids=str)
def test_other_optimisers(crowd, optimizer):
    lda = make_lda(optimizer=optimizer, lr=0.01, weight_decay=0.0, max_epochs=10).fit(crowd.X, crowd.counts)
    assert lda.perplexity(crowd.X, crowd.counts) < 2.9  # 3 is a guess


@needs_cuda
@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cuda_fits_as_the_cpu_does(crowd, dtype):
    # the starts are drawn on the CPU; the shuffling is too
    on_cpu, on_gpu = [
        make_lda(device=device, dtype=dtype, max_epochs=20).fit(crowd.X, crowd.counts) for device in ("cpu", "cuda")
    ]
    assert on_gpu.device_ == "cuda"
    tolerance = {"float32": 5e-3, "float64": 1e-8}[dtype]
    expected = on_cpu.predict_annotation_proba(crowd.X)
    assert_allclose(on_gpu.predict_annotation_proba(crowd.X), expected, atol=tolerance)
    assert_allclose(on_gpu.score(crowd.X, crowd.counts), on_cpu.score(crowd.X, crowd.counts), atol=tolerance)


@needs_cuda
@pytest.mark.cuda
def test_a_pickle_from_the_gpu_loads_on_a_cpu(crowd, monkeypatch):
    lda = make_lda(device="cuda").fit(crowd.X, crowd.counts)
    data = pickle.dumps(lda)
    expected = lda.predict_annotation_proba(crowd.X)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.warns(UserWarning, match="cpu"):
        restored = pickle.loads(data)
    assert restored.device_ == "cpu"
    assert_allclose(restored.predict_annotation_proba(crowd.X), expected, atol=1e-10)


@needs_cuda
@pytest.mark.cuda
def test_the_generator_of_the_gpu_is_left_alone(crowd):
    before = torch.cuda.get_rng_state()
    make_lda(device="cuda").fit(crowd.X, crowd.counts).transform(crowd.X, crowd.annotations)
    assert torch.equal(torch.cuda.get_rng_state(), before)
