"""The answer model and the fusion against dense matrices and enumeration."""

from math import lgamma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, logit, logsumexp
from scipy.stats import beta

from sklearn_l2d._numerics._answer_model import (
    People,
    answer_log_likelihood,
    complete_truth,
    count_answers,
    fit_answer_model,
    fit_people,
    likely_accuracy,
    sum_by_item,
    told,
    with_experts,
)
from sklearn_l2d._numerics._difficulty import Told
from sklearn_l2d._numerics._fusion import Exponents, expected_correlation, fit_exponents, fuse


def crowd(seed, n_items=12, n_experts=4, n_classes=3, soft=False):
    """Item, expert and label of answers, and the truth; small integer types, as votes have."""
    rng = np.random.default_rng(seed)
    item, expert = np.nonzero(rng.random((n_items, n_experts)) < 0.7)
    y = rng.integers(n_classes, size=n_items)
    label = np.where(rng.random(len(item)) < 0.6, y[item], rng.integers(n_classes, size=len(item)))
    truth = rng.dirichlet(np.ones(n_classes), n_items) if soft else np.eye(n_classes)[y]
    return item.astype(np.int8), expert.astype(np.int8), label.astype(np.int8), truth


def dense_counts(item, expert, label, truth, n_experts):
    """(n_experts, n_classes, n_classes): expert, true class, answer."""
    counts = np.zeros((n_experts, truth.shape[1], truth.shape[1]))
    for i, j, m in zip(item, expert, label, strict=True):
        counts[j, :, m] += truth[i]
    return counts


def dense_rows(model, counts, errors):
    """Rows of all experts by the definition, from dense counts and the wrong answers of the roster."""
    n_classes = counts.shape[1]
    even = (1 - np.eye(n_classes)) / (n_classes - 1)
    wrong = errors + model.error_strength * even
    wrong /= wrong.sum(1, keepdims=True)
    right, seen = np.einsum("jmm->j", counts), counts.sum((1, 2))
    own = np.array([posterior_mean(model.people, r, n) for r, n in zip(right, seen, strict=True)])
    accuracy = expit(logit(own)[:, None] + model.offset).clip(1e-3, 1 - 1e-3)
    rows = np.empty(counts.shape)
    for j, c in np.ndindex(accuracy.shape):
        others = np.arange(len(wrong)) != c
        made = counts[j, c, others]
        rows[j, c, c] = (counts[j, c, c] + model.strength * accuracy[j, c]) / (counts[j, c].sum() + model.strength)
        divided = (made + model.wrong_strength * wrong[c, others]) / (made.sum() + model.wrong_strength)
        rows[j, c, others] = (1 - rows[j, c, c]) * divided
    return rows


def posterior_mean(people, right, seen):
    """Expected accuracy of somebody with so many right answers, by Bayes' rule over the kinds of people."""
    weight, mean = [], []
    for share, accuracy, strength in zip(*people, strict=True):
        p, q = accuracy * strength, (1 - accuracy) * strength
        weight.append(share * np.exp(log_beta(p + right, q + seen - right) - log_beta(p, q)))
        mean.append((p + right) / (strength + seen))
    return np.average(mean, weights=weight)


def log_beta(p, q):
    return lgamma(p) + lgamma(q) - lgamma(p + q)


def off_diagonal(counts):
    pooled = counts.sum(0)
    return pooled * (1 - np.eye(len(pooled)))


def shaped(rows, label, shape, share):
    """Rows (n_answers, n_classes, n_classes) with a share of the wrong answers as in `shape`."""
    out = rows.copy()
    for row, p, m in zip(out, shape, label, strict=True):
        for y in range(len(p)):
            if y != m:
                row[y, m] = (1 - share) * row[y, m] + share * (1 - row[y, y]) * p[m] / (p.sum() - p[y])
    return out


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_sparse_rows_are_the_dense_ones(seed, n_classes, soft):
    item, expert, label, truth = crowd(seed, n_classes=n_classes, soft=soft)
    model = fit_answer_model(item, expert, label, 5, truth)
    counts = dense_counts(item, expert, label, truth, 5)
    rows = dense_rows(model, counts, off_diagonal(counts))
    assert_allclose(rows.sum(2), 1)
    found = answer_log_likelihood(model, np.repeat(np.arange(5), n_classes), np.tile(np.arange(n_classes), 5))
    assert_allclose(np.exp(found).reshape(5, n_classes, n_classes).transpose(0, 2, 1), rows, atol=1e-10)
    assert_allclose(model.correctness, np.diagonal(rows, axis1=1, axis2=2), atol=1e-10)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_left_out_answers_are_judged_by_the_model_without_them(seed, soft):
    item, expert, label, truth = crowd(seed, soft=soft)
    shape = np.random.default_rng(seed).dirichlet(np.ones(3), len(item))
    model = fit_answer_model(item, expert, label, 4, truth)._replace(share=0.3)
    found = answer_log_likelihood(model, expert, label, shape, truth[item])
    for a in range(len(item)):
        rest = np.arange(len(item)) != a
        counts = dense_counts(item[rest], expert[rest], label[rest], truth, 4)
        rows = dense_rows(model, counts, off_diagonal(counts))
        row = shaped(rows[expert[a], None], label[[a]], shape[[a]], 0.3)[0]
        assert_allclose(np.exp(found[a]), row[:, label[a]], atol=1e-10)


def test_the_shape_divides_its_share_of_the_wrong_answers():
    item, expert, label, truth = crowd(0)
    shape = np.random.default_rng(0).dirichlet(np.ones(3), len(item))
    model = fit_answer_model(item, expert, label, 4, truth, shape)
    assert 0 <= model.share <= 0.3
    model = model._replace(share=0.2)
    mass = np.zeros((len(item), 3))
    for answer in range(3):
        told = np.full_like(label, answer)
        mass += np.exp(answer_log_likelihood(model, expert, told, shape))
        counts = dense_counts(item, expert, label, truth, 4)
        rows = shaped(dense_rows(model, counts, off_diagonal(counts))[expert], told, shape, 0.2)
        assert_allclose(np.exp(answer_log_likelihood(model, expert, told, shape)), rows[:, :, answer], atol=1e-8)
    assert_allclose(mass, 1, atol=1e-8)


def test_behaviours_that_know_the_wrong_answers_take_the_largest_share():
    rng = np.random.default_rng(0)
    y, lure = rng.integers(5, size=(2, 400))
    item, expert = np.arange(800) // 2, rng.integers(4, size=800)
    label = np.where(rng.random(800) < 0.5, y[item], lure[item])
    tempting = 0.8 * np.eye(5)[lure] + 0.04
    args = item, expert, label, 4, np.eye(5)[y]
    assert fit_answer_model(*args, tempting[item]).share == pytest.approx(0.3, abs=1e-3)
    assert fit_answer_model(*args, tempting[rng.permutation(400)][item]).share < 0.05


def test_two_classes_have_no_shape():
    item, expert, label, truth = crowd(1, n_classes=2)
    shape = np.random.default_rng(0).dirichlet(np.ones(2), len(item))
    model = fit_answer_model(item, expert, label, 4, truth, shape)
    for left_out in (None, truth[item]):
        plain = answer_log_likelihood(model, expert, label, None, left_out)
        assert_allclose(answer_log_likelihood(model, expert, label, shape, left_out), plain, rtol=0)


def test_posterior_by_enumeration_of_the_truth():
    item, expert, label, truth = crowd(2)
    model = fit_answer_model(item, expert, label, 4, truth)
    counts = dense_counts(item, expert, label, truth, 4)
    rows = dense_rows(model, counts, off_diagonal(counts))
    prior = np.random.default_rng(2).dirichlet(np.ones(3), 13)  # nobody answers the last item
    posterior = np.exp(fuse(np.log(prior), item, told(model, expert, label), Exponents()))
    for i in range(13):
        joint = [prior[i, y] * np.prod(rows[expert[item == i], y, label[item == i]]) for y in range(3)]
        assert_allclose(posterior[i], joint / np.sum(joint), atol=1e-12)


def test_one_answer_and_an_even_prior_give_the_posterior_predictive():
    item, expert, label, truth = crowd(3)
    model = fit_answer_model(item, expert, label, 4, truth)
    likelihood = np.exp(answer_log_likelihood(model, expert[:1], label[:1]))
    for exponents in (Exponents(), Exponents(correlation=0.3, difficulty=1.0)):
        posterior = np.exp(fuse(np.zeros((1, 3)), np.zeros(1, int), told(model, expert[:1], label[:1]), exponents))
        assert_allclose(posterior, likelihood / likelihood.sum(), atol=1e-6)


def test_correlated_answers_count_as_fewer_and_decide_alike():
    rng = np.random.default_rng(0)
    log_prior, item = np.log(rng.dirichlet(np.ones(4), 6)), np.repeat(np.arange(5), [1, 2, 3, 4, 5])
    heard = Told(
        np.log(rng.dirichlet(np.ones(4), len(item))), rng.random((len(item), 4)), rng.integers(4, size=len(item))
    )
    independent = fuse(log_prior, item, heard, Exponents(0.8, 0.9, 0.0))
    for r in (0.3, 1.0):
        found = fuse(log_prior, item, heard, Exponents(0.8, 0.9, r))
        for i, n_answers in enumerate([1, 2, 3, 4, 5]):
            tempered = independent[i] / (1 + r * (n_answers - 1))
            assert_allclose(found[i], tempered - logsumexp(tempered))
        assert_allclose(found[5], log_prior[5])


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.booleans())
def test_order_does_not_matter_and_posteriors_are_distributions(seed, n_classes, soft):
    item, expert, label, truth = crowd(seed, n_classes=n_classes, soft=soft)
    rng = np.random.default_rng(seed)
    shape = rng.dirichlet(np.ones(n_classes), len(item))
    model = fit_answer_model(item, expert, label, 4, truth, shape)
    log_prior = np.log(rng.dirichlet(np.ones(n_classes), 12))
    heard, exponents = told(model, expert, label, shape), Exponents(0.9, 0.8, 0.2, 1.0)
    posterior = np.exp(fuse(log_prior, item, heard, exponents))
    assert_allclose(posterior.sum(1), 1)
    answers, people, classes = rng.permutation(len(item)), rng.permutation(4), rng.permutation(n_classes)
    place = np.argsort(classes)  # of every class among the permuted ones
    moved = item[answers], people[expert[answers]], place[label[answers]]
    moved_shape = shape[np.ix_(answers, classes)]
    model = fit_answer_model(*moved, 4, truth[:, classes], moved_shape)
    moved_heard = told(model, *moved[1:], moved_shape)
    assert_allclose(moved_heard.log_likelihood, heard.log_likelihood[np.ix_(answers, classes)], atol=1e-6)
    found = np.exp(fuse(log_prior[:, classes], moved[0], moved_heard, exponents))
    assert_allclose(found, posterior[:, classes], atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(0, 12))
def test_em_never_falls_and_keeps_what_is_known(seed, n_classes, n_known):
    item, expert, label, truth = crowd(seed, n_classes=n_classes)
    log_prior = np.log(np.random.default_rng(seed).dirichlet(np.full(n_classes, 2.0), 12))
    with np.errstate(divide="ignore"):
        log_prior[:n_known] = np.log(truth[:n_known])
    found, model, objective = complete_truth(log_prior, item, expert, label, 4, tol=1e-9)
    assert (np.diff(objective) >= -1e-8).all()
    assert_allclose(found.sum(1), 1)
    assert_allclose(found[:n_known], truth[:n_known])
    assert_allclose(model.seen.sum(), len(item))


def test_em_objective_by_its_definition():
    item, expert, label, _ = crowd(4)
    log_prior = np.log(np.random.default_rng(4).dirichlet(np.ones(3), 12))
    found, model, objective = complete_truth(log_prior, item, expert, label, 4, n_rounds=1, n_iter=1)
    start = np.exp(log_prior) + np.array([np.bincount(label[item == i], minlength=3) for i in range(12)])
    first = fit_answer_model(item, expert, label, 4, start / start.sum(1, keepdims=True))
    counts = dense_counts(item, expert, label, start / start.sum(1, keepdims=True), 4)
    rows = dense_rows(first, counts, off_diagonal(counts))
    log_joint = log_prior.copy()
    np.add.at(log_joint, item, np.log(rows[expert, :, label]))
    expected = logsumexp(log_joint, axis=1).sum()
    for j, c in np.ndindex(4, 3):
        others, p, q = np.arange(3) != c, first.accuracy[j, c], rows[j, c, c]
        expected -= first.strength * (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)))
        w, v = first.wrong[c, others], rows[j, c, others] / (1 - q)
        expected -= first.wrong_strength * (w * np.log(w / v)).sum()
    assert_allclose(objective, [expected])
    assert_allclose(found, np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True)))
    assert_allclose(model.accuracy, first.accuracy)


def test_em_finds_the_truth_from_answers_alone():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=500)
    skill = np.array([0.95, 0.9, 0.5, 0.4, 0.4])
    item, expert = np.divmod(np.arange(2500), 5)
    label = np.where(rng.random(2500) < skill[expert], y[item], (y[item] + rng.integers(1, 3, size=2500)) % 3)
    truth, model, _ = complete_truth(np.full((500, 3), -np.log(3)), item, expert, label, 5)
    majority = sum_by_item(np.eye(3)[label], item, 500).argmax(1)
    assert (truth.argmax(1) == y).mean() > (majority == y).mean() + 0.05
    assert_allclose(model.correctness.mean(1), skill, atol=0.06)


def test_all_known_is_the_plain_fit():
    item, expert, label, truth = crowd(5)
    with np.errstate(divide="ignore"):
        found, model, _ = complete_truth(np.log(truth), item, expert, label, 4)
    assert_allclose(found, truth)
    plain = fit_answer_model(item, expert, label, 4, truth)
    assert_allclose(model.correctness, plain.correctness)


TWO_KINDS = People((0.3, 0.7), (0.15, 0.8), (12.0, 25.0))


@pytest.mark.parametrize(("right", "seen"), [(0.0, 0.0), (3.0, 5.0), (1.5, 9.25), (40.0, 41.0)])
def test_accuracy_of_somebody_of_unknown_kind_by_integration(right, seen):
    def density(accuracy, power=0):
        prior = sum(s * beta.pdf(accuracy, a * n, (1 - a) * n) for s, a, n in zip(*TWO_KINDS, strict=True))
        return prior * accuracy ** (right + power) * (1 - accuracy) ** (seen - right)

    expected = quad(density, 0, 1, (1,), epsabs=0)[0] / quad(density, 0, 1, epsabs=0)[0]
    assert_allclose(TWO_KINDS.expected(np.array([right]), np.array([seen])), [expected], rtol=1e-6)


def test_two_kinds_have_the_mean_and_variance_of_one():
    draws = [beta(a * n, (1 - a) * n) for a, n in zip(*TWO_KINDS[1:], strict=True)]
    mean = np.dot(TWO_KINDS.share, [d.mean() for d in draws])
    variance = np.dot(TWO_KINDS.share, [d.var() + (d.mean() - mean) ** 2 for d in draws])
    assert_allclose(TWO_KINDS.center, mean)
    strength = TWO_KINDS.overall_strength
    assert_allclose(beta(mean * strength, (1 - mean) * strength).var(), variance)


def people_of_two_kinds(rng, n_experts, n_seen=25):
    """Accuracy of people of whom about a third do something else, and their right answers."""
    knows = rng.random(n_experts) < 0.7
    accuracy = np.where(knows, rng.beta(20, 5, n_experts), rng.beta(3, 27, n_experts))
    return accuracy, rng.binomial(n_seen, accuracy).astype(float)


def test_two_kinds_of_people_are_found():
    people = fit_people(people_of_two_kinds(np.random.default_rng(0), 3000)[1], np.full(3000, 25.0))
    order = np.argsort(people.accuracy)
    assert_allclose(np.take(people.accuracy, order), [0.1, 0.8], atol=0.02)
    assert_allclose(np.take(people.share, order), [0.3, 0.7], atol=0.03)
    assert_allclose(np.take(people.strength, order), [30, 25], rtol=0.3)


def test_the_prior_of_people_has_the_largest_likelihood():
    right, seen = people_of_two_kinds(np.random.default_rng(1), 40)[1], np.full(40, 25.0)
    people = fit_people(right, seen)
    assert len(people.share) == 2

    def objective(point):
        share, accuracy, strength = [point[0], 1 - point[0]], point[1:3], np.exp(point[3:])
        prior = np.log(share).sum() + np.log(accuracy * (1 - accuracy)).sum()
        prior -= (((point[3:] - np.log(10)) / 1.5) ** 2).sum() / 2
        for r, n in zip(right, seen, strict=True):
            kinds = zip(share, accuracy, strength, strict=True)
            terms = [np.log(w) + log_beta(a * s + r, (1 - a) * s + n - r) - log_beta(a * s, (1 - a) * s)
                     for w, a, s in kinds]  # fmt: skip
            prior += logsumexp(terms)
        return prior

    best = np.array([people.share[0], *people.accuracy, *np.log(people.strength)])
    for step in 0.01 * np.vstack([np.eye(5), -np.eye(5)]):
        assert objective(best + step) < objective(best)


def test_the_best_of_two_kinds_of_people_are_as_good_as_expected():
    rng, excess = np.random.default_rng(2), []
    for _ in range(40):
        accuracy, right = people_of_two_kinds(rng, 30)
        seen = np.full(30, 25.0)
        people = fit_people(right, seen)
        wide = People((1.0,), (people.center,), (people.overall_strength,))
        for prior in (people, wide):
            expected = prior.expected(right, seen)
            excess.append(expected.max() - accuracy[expected.argmax()])
    mixed, single = np.mean(np.reshape(excess, (-1, 2)), axis=0)
    assert abs(mixed) < 0.02
    assert single > 0.04


@pytest.mark.parametrize("seed", range(3))
def test_people_who_differ_by_degrees_are_of_one_kind(seed):
    rng = np.random.default_rng(seed)
    people = fit_people(rng.binomial(20, rng.beta(6, 3, 60)).astype(float), np.full(60, 20.0))
    assert people.share == (1.0,)
    assert_allclose(people.center, 2 / 3, atol=0.06)


def test_newcomers_answer_like_those_they_belong_to_until_their_own_answers_take_over():
    item, expert, label, truth = crowd(6, n_items=60)
    model = fit_answer_model(item, expert, label, 4, truth)
    omega, omega_new = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]), np.array([[1.0, 0], [0.5, 0.5]])
    likely = likely_accuracy(model, omega, omega_new)

    def joined_by(label):
        """The newcomers, the first of whom gave these answers to items of class 0."""
        expert = np.zeros(len(label), dtype=int)
        return with_experts(model, *count_answers(expert, expert, label, 2, np.eye(3)[:1]), likely)

    joined = joined_by(np.zeros(0, dtype=int))
    means = np.array([model.correctness[:2].mean(0), model.correctness[2:].mean(0)])
    assert_allclose(joined.correctness, [means[0], means.mean(0)], atol=1e-6)
    shares = [joined.correctness]
    for n in (5, 50, 5000):  # the first newcomer is always right about class 0
        shares.append(joined_by(np.zeros(n, dtype=int)).correctness)
        assert_allclose(shares[-1][1], joined.correctness[1])
    assert (np.diff([s[0] for s in shares], axis=0) > 0).all()  # and is believed to be good at the others, too
    assert shares[-1][0, 0] > 0.99


def test_priors_of_a_roster_hold_for_people_whose_answers_are_completed():
    item, expert, label, truth = crowd(7, n_items=120)
    priors = fit_answer_model(item, expert, label, 4, truth)._replace(own=None, right=None, seen=None, accuracy=None)
    item, expert, label, truth = crowd(8, n_items=60)
    with np.errstate(divide="ignore"):
        log_prior = np.log(np.where(np.arange(60)[:, None] < 30, truth, 0.8 * truth + 0.2 / 3))
    likely = np.full((4, 3), np.nan)
    likely[1] = 0.99
    found, model, _ = complete_truth(log_prior, item, expert, label, 4, priors, likely)
    assert_allclose(found[:30], truth[:30])
    assert (found.argmax(1) == truth.argmax(1)).mean() > 0.9
    for name in ("strength", "people", "offset", "errors"):
        assert_allclose(getattr(model, name), getattr(priors, name))
    plain = complete_truth(log_prior, item, expert, label, 4, priors)[1]
    assert model.accuracy[1].min() > plain.accuracy[1].max()
    assert_allclose(model.accuracy[[0, 2, 3]], plain.accuracy[[0, 2, 3]], atol=0.05)
    exact = with_experts(priors, *count_answers(item, expert, label, 4, found))
    assert_allclose(plain.accuracy, exact.accuracy, atol=0.05)


def test_nearly_impossible_truths_take_no_entries():
    rng = np.random.default_rng(0)
    y = rng.integers(50, size=400)
    item, expert = np.divmod(np.arange(2000), 5)
    label = np.where(rng.random(2000) < 0.8, y[item], rng.integers(50, size=2000))
    truth, model, _ = complete_truth(np.log(0.5 * np.eye(50)[y] + 0.01), item, expert, label, 5)
    assert (truth.argmax(1) == y).mean() > 0.99
    assert (truth > 0).sum() < 2 * 400
    assert model.own.nnz < 2 * 2000


def test_without_answers():
    nothing = np.zeros(0, dtype=int)
    model = fit_answer_model(nothing, nothing, nothing, 3, np.eye(4)[:2])
    assert_allclose(np.exp(answer_log_likelihood(model, np.array([2]), np.array([1]))).sum(), 1, atol=0.5)
    exponents = fit_exponents(np.zeros((2, 4)), nothing, nothing, told(model, nothing, nothing), np.eye(4)[:2])
    intraclass = 1 / (
        1 + np.pi**2 / 3
    )  # of a logistic model at the prior's difficulty of 1; of 3 wrong classes, 2 differ
    assert_allclose(exponents, (1, 1, intraclass * 2 / 3, 1))
    log_prior = np.log([[0.1, 0.2, 0.3, 0.4]])
    assert_allclose(fuse(log_prior, nothing, told(model, nothing, nothing), exponents), log_prior)


def test_people_who_are_always_right_stay_below_certainty():
    item, expert = np.divmod(np.arange(60), 3)
    y = np.arange(20) % 2
    model = fit_answer_model(item, expert, y[item], 3, np.eye(2)[y])
    assert (model.correctness > 0.9).all()
    assert (model.correctness < 1).all()


def votes_on_shared_difficulty(rng, n_items, n_answers, spread):
    """Answers of people of skill 2 (logit) to items whose difficulty all of them share."""
    y = rng.integers(2, size=n_items)
    ease = rng.normal(2.0, spread, n_items)
    item = np.repeat(np.arange(n_items), n_answers)
    label = np.where(rng.random(len(item)) < expit(ease)[item], y[item], 1 - y[item])
    expert = rng.permuted(np.tile(np.arange(5), (n_items, 1)), axis=1)[:, :n_answers].ravel()
    return item, expert, label, np.eye(2)[y]


def test_exponents_calibrate_answers_that_depend_on_one_another():
    rng = np.random.default_rng(0)
    item, expert, label, truth = votes_on_shared_difficulty(rng, 1500, 5, spread=2.5)
    model = fit_answer_model(item, expert, label, 5, truth)
    log_prior = np.full((1500, 2), np.log(0.5))
    exponents = fit_exponents(log_prior, item, expert, told(model, expert, label, None, truth[item]), truth)
    assert exponents.difficulty >= 1.5
    item, expert, label, truth = votes_on_shared_difficulty(rng, 4000, 5, spread=2.5)
    for n_answers in (1, 2, 3, 5):
        kept = np.arange(len(item)) % 5 < n_answers
        heard = told(model, expert[kept], label[kept])
        excess = []
        for chosen in (exponents, Exponents()):
            posterior = np.exp(fuse(np.full((4000, 2), np.log(0.5)), item[kept], heard, chosen))
            right = truth[np.arange(4000), posterior.argmax(1)]
            excess.append(abs(posterior.max(1).mean() - right.mean()))
        assert excess[0] < 0.03
        assert n_answers < 3 or excess[0] < excess[1]


def test_exponents_of_independent_answers_are_those_of_bayes():
    rng = np.random.default_rng(1)
    item, expert, label, truth = votes_on_shared_difficulty(rng, 3000, 4, spread=0.0)
    model = fit_answer_model(item, expert, label, 5, truth)
    unseen = told(model, expert, label, None, truth[item])
    found = fit_exponents(np.full((3000, 2), np.log(0.5)), item, expert, unseen, truth)
    assert_allclose(found.answers, 1, atol=0.1)
    assert found.correlation < 0.05
    assert found.difficulty <= 0.25


def test_answers_of_equals_come_in_an_order_that_does_not_follow_their_labels():
    """Of 30 equals, who are right in .85 of their answers, anybody may be asked first, and so each answer counts."""
    rng = np.random.default_rng(0)
    y, item = rng.integers(5, size=60), np.repeat(np.arange(60), 30)
    label = np.where(rng.random(1800) < 0.85, y[item], (y[item] + rng.integers(1, 5, size=1800)) % 5)
    truth, nobody = np.eye(5)[y], np.zeros(1800, dtype=int)
    model = fit_answer_model(item, nobody, label, 1, truth)
    log_prior = np.log(np.full((60, 5), 0.15) + 0.25 * np.eye(5)[rng.integers(5, size=60)])
    heard = told(model, nobody, label, left_out=truth[item])
    found = fit_exponents(log_prior, item, nobody, heard, truth)
    assert 0.8 < found.answers < 1.3


def test_answers_that_count_as_one_expert_are_taken_in_no_order_of_their_own():
    """Judged by the others of the group, whoever is wrong seems better than whoever is right."""
    rng = np.random.default_rng(5)
    item, _, label, truth = votes_on_shared_difficulty(rng, 400, 4, spread=0.0)
    together = np.zeros_like(item)
    model = fit_answer_model(item, together, label, 1, truth)
    unseen = told(model, together, label, None, truth[item])
    found = fit_exponents(np.full((400, 2), np.log(0.5)), item, together, unseen, truth)
    assert_allclose(found.answers, 1, atol=0.15)


def test_exponents_maximise_the_likelihood_under_their_priors():
    """All answers to an item tell the same, so that their order does not matter."""
    rng = np.random.default_rng(3)
    y, size = rng.integers(3, size=60), rng.integers(1, 4, size=60)
    log_prior, accuracy = np.log(rng.dirichlet(np.ones(3), 60)), rng.uniform(0.2, 0.95, size=(60, 3))
    label = np.where(rng.random(60) < 0.7, y, rng.integers(3, size=60))
    likelihood = np.where(label[:, None] == np.arange(3), accuracy, (1 - accuracy) / 2)
    item = np.repeat(np.arange(60), size)
    heard = Told(np.log(likelihood)[item], accuracy[item], label[item])
    found = fit_exponents(log_prior, item, np.arange(len(item)), heard, np.eye(3)[y])
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)

    def chance(mean, spread):
        """Of people who are right with this mean, at each difficulty."""
        at = brentq(lambda x: weights @ expit(x + spread * nodes) / weights.sum() - mean, -20, 20)
        return expit(at + spread * nodes)

    def objective(a, b, r, spread):
        usual = spread**2 / (spread**2 + np.pi**2 / 3) / 2
        total = -2 * np.log(a) ** 2 - 2 * np.log(b) ** 2 - np.log1p(((r - usual) / 0.12) ** 2)
        for i in range(60):
            right = np.array([chance(p, spread) for p in accuracy[i]])  # classes, nodes
            one = np.where(np.arange(3)[:, None] == label[i], right, (1 - right) / 2)
            weight = 1 / np.arange(1, size[i] + 1)
            for t, w in enumerate(weight / weight.sum(), start=1):
                evidence = np.log(one**t @ weights / weights.sum())
                log_joint = (a * log_prior[i] + b * evidence) / (1 + r * (t - 1))
                total += w * (log_joint[y[i]] - logsumexp(log_joint))
        return total

    def likelihood(spread):
        """Of all answers to an item, which are alike."""
        right = [np.array(chance(accuracy[i, y[i]], spread)) for i in range(60)]
        each = [np.where(y[i] == label[i], right[i], (1 - right[i]) / 2) ** size[i] for i in range(60)]
        return np.log(each @ weights / weights.sum()).sum() - np.log1p((spread - 1) ** 2)

    best = objective(*found)
    for step in 0.01 * np.vstack([np.eye(3, 4), -np.eye(3, 4)]):
        moved = np.array(found) + step
        assert moved[2] < 0 or objective(*moved) < best
    for spread in {0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0} - {found.difficulty}:
        assert likelihood(spread) < likelihood(found.difficulty)


@pytest.mark.parametrize("n_items", [3, 3000])
def test_a_few_items_hardly_change_what_is_known_of_their_difficulty(n_items):
    rng = np.random.default_rng(4)
    item, expert, label, truth = votes_on_shared_difficulty(rng, n_items, 3, spread=0.0)  # independent answers
    model = fit_answer_model(item, expert, label, 5, truth)
    unseen = told(model, expert, label, None, truth[item])
    found = fit_exponents(np.full((n_items, 2), np.log(0.5)), item, expert, unseen, truth)
    assert found.correlation < 0.05  # of two classes, the difficulty says everything
    assert (found.difficulty >= 1) == (n_items == 3)


def test_who_err_on_the_same_items_are_told_from_those_who_do_not():
    """Answers tell it where the truth of so few items would not; simulated people share no difficulty."""
    rng = np.random.default_rng(6)
    for spread in (0.0, 2.0):
        item, expert, label, truth = votes_on_shared_difficulty(rng, 60, 5, spread)
        model = fit_answer_model(item, expert, label, 5, truth)
        unseen = told(model, expert, label, None, truth[item])
        found = fit_exponents(np.full((60, 2), np.log(0.5)), item, expert, unseen, truth).difficulty
        assert (found >= 1) == (spread == 2)


def test_a_correlation_is_expected_where_people_err_on_the_same_items_in_more_than_one_way():
    assert expected_correlation(0.0, 10) == expected_correlation(3.0, 2) == 0
    rng = np.random.default_rng(7)
    noise = rng.logistic(size=(2, 400_000)) + rng.normal(0, 1.5, 400_000)  # logits of two people on the same items
    assert_allclose(expected_correlation(1.5, 1000), np.corrcoef(noise)[0, 1], atol=0.01)
