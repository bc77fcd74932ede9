"""Properties of the E-step, the likelihood and the membership that hold for any model and any votes."""

import numpy as np
import torch
from _oracles import evidence_lower_bound
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import permutations, vote_models

from sklearn_l2d._encoding import sparse_counts
from sklearn_l2d._numerics._marginal_likelihood import log_marginal
from sklearn_l2d._numerics._mixture_weights import mixture_weights
from sklearn_l2d._torch._e_steps import responsibilities


def e_step(model, **options):
    zeta, rho = responsibilities(*map(torch.as_tensor, (model.log_f, model.votes, model.alpha)), **options)
    return zeta.numpy(), rho.numpy()


def bound(model, zeta, rho):
    tensors = map(torch.as_tensor, (model.log_f, model.votes, zeta, rho, model.alpha))
    return evidence_lower_bound(*tensors).numpy()


def single_votes(model):
    """Every item as an expert who gave its votes one by one."""
    item, slot = np.nonzero(model.votes)
    repeat = np.maximum(1, model.votes[item, slot].astype(int))
    return np.repeat(model.log_f[item, slot], repeat, axis=0), np.repeat(item, repeat)


def objective(weights, log_f, prior):
    with np.errstate(divide="ignore"):
        penalty = (prior[prior > 0] * np.log(weights[prior > 0])).sum() / len(log_f)
    return np.log(np.exp(log_f - log_f.max(1, keepdims=True)) @ weights).mean() + penalty


@given(vote_models(real_votes=True))
def test_bound_never_falls_and_stays_below_the_likelihood(model):
    bounds = [bound(model, *e_step(model, max_sweeps=n, tol=0.0)) for n in (1, 2, 3, 10, 40)]
    slack = 1e-9 * (1 + np.abs(bounds[-1]))
    assert (np.diff(bounds, axis=0) >= -slack).all()
    if (model.votes == np.round(model.votes)).all():  # draws are too coarse in the tails of the prior
        assert (bounds[-1] <= log_marginal(model.log_f, model.votes, model.alpha, "exact") + slack).all()


@given(vote_models(real_votes=True))
def test_posteriors_are_distributions_that_account_for_every_vote(model):
    zeta, rho = e_step(model)
    assert (zeta >= 0).all()
    assert_allclose(zeta.sum(-1), 1, rtol=1e-12)
    assert (rho >= model.alpha - 1e-12).all()
    assert_allclose(rho.sum(1), model.alpha.sum() + model.votes.sum(1), rtol=1e-12)


@given(vote_models(), st.data())
def test_order_of_items_slots_and_behaviours_means_nothing(model, data):
    n, n_slots, n_components = model.log_f.shape
    items, slots, components = (data.draw(permutations(size)) for size in (n, n_slots, n_components))
    moved = model._replace(
        log_f=model.log_f[items][:, slots][:, :, components],
        votes=model.votes[items][:, slots],
        alpha=model.alpha[components],
    )
    options = {"max_sweeps": 50, "tol": 0.0}
    assert_allclose(e_step(moved, **options)[1], e_step(model, **options)[1][items][:, components], rtol=1e-7)
    got, expected = (log_marginal(m.log_f, m.votes, m.alpha, "exact") for m in (moved, model))
    assert_allclose(got, expected[items], rtol=1e-10, atol=1e-10)


@given(vote_models(), st.data())
def test_membership_follows_experts_and_behaviours(model, data):
    log_f, expert = single_votes(model)
    n_experts, n_components = len(model.votes), len(model.alpha)
    weights, gap = mixture_weights(log_f, expert, n_experts, prior=model.alpha)
    present = np.bincount(expert, minlength=n_experts) > 0
    assert_allclose(weights[present].sum(1), 1, rtol=1e-12)
    assert (weights[present] > 0).all()
    assert (gap[present] <= 1e-6).all()
    assert np.isnan(weights[~present]).all()
    rows, components = data.draw(permutations(len(log_f))), data.draw(permutations(n_components))
    names = data.draw(permutations(n_experts))  # expert m becomes names[m]
    moved, _ = mixture_weights(
        log_f[rows][:, components], names[expert[rows]], n_experts, prior=model.alpha[components]
    )
    for m in np.flatnonzero(present):
        mine = log_f[expert == m]
        back = np.empty(n_components)
        back[components] = moved[names[m]]
        assert abs(objective(back, mine, model.alpha) - objective(weights[m], mine, model.alpha)) <= 2e-6


@given(vote_models(), st.integers(2, 4))
def test_repeated_annotations_say_nothing_new_to_maximum_likelihood(model, times):
    log_f, expert = single_votes(model)
    n_experts, prior = len(model.votes), np.zeros(len(model.alpha))
    once, _ = mixture_weights(log_f, expert, n_experts)
    again, _ = mixture_weights(np.tile(log_f, (times, 1)), np.tile(expert, times), n_experts)
    scaled, _ = mixture_weights(
        np.tile(log_f, (times, 1)), np.tile(expert, times), n_experts, prior=times * model.alpha
    )
    softened, _ = mixture_weights(log_f, expert, n_experts, prior=model.alpha)
    for m in np.unique(expert):
        mine = log_f[expert == m]
        assert abs(objective(once[m], mine, prior) - objective(again[m], mine, prior)) <= 2e-6
        assert abs(objective(softened[m], mine, model.alpha) - objective(scaled[m], mine, model.alpha)) <= 2e-6


@given(vote_models(real_votes=True), st.integers(1, 4))
def test_chunks_make_the_whole(model, size):
    _, rho = e_step(model)
    method = "exact" if (model.votes == np.round(model.votes)).all() else "sobol"
    whole = log_marginal(model.log_f, model.votes, model.alpha, method)
    for start in range(0, len(whole), size):
        rows = slice(start, start + size)
        part = model._replace(log_f=model.log_f[rows], votes=model.votes[rows])
        assert_allclose(e_step(part)[1], rho[rows], rtol=1e-12)
        assert_allclose(log_marginal(part.log_f, part.votes, part.alpha, method), whole[rows], rtol=1e-10, atol=1e-12)


@given(vote_models(), st.data())
def test_sparse_counts_keep_every_vote(model, data):
    counts = model.votes
    labels, votes = sparse_counts(counts)
    back = np.zeros_like(counts)
    np.add.at(back, (np.arange(len(counts))[:, None], labels), votes)
    np.testing.assert_array_equal(back, counts)
    assert labels.shape[1] == max(1, (counts > 0).sum(1).max())
    assert labels.dtype == np.int64
