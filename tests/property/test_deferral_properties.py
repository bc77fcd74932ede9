from functools import cache

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import log_softmax
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from strategies import annotation_codes, permutations

from sklearn_l2d._numerics._answers import (
    answer_likelihood,
    competence_posterior,
    expected_likelihood,
    fit_temperature,
    log_likelihood_of_answers,
    prior_strengths,
    tally_votes,
)
from sklearn_l2d._torch._modules import AgnosticRejector, RoleRejector
from sklearn_l2d._torch._seeding import OwnRandom, own_generator
from sklearn_l2d.annotations import encode_votes
from sklearn_l2d.deferral import ClusterDeferral

few = settings(max_examples=12)


@st.composite
def answers_and_truth(draw):
    """Codes (n, M), the true classes (n,) and the number of classes."""
    codes, n_classes = draw(annotation_codes())
    return codes, draw(hnp.arrays(np.int64, len(codes), elements=st.integers(0, n_classes - 1))), n_classes


@given(st.data())
def test_order_of_experts_and_classes_does_not_matter_to_profiles(data):
    codes, y, n_classes = data.draw(answers_and_truth())
    experts, classes = data.draw(permutations(codes.shape[1])), data.draw(permutations(n_classes))
    rank = np.append(np.argsort(classes), -1)  # new code of each class; missing stays missing
    plain = tally_votes(encode_votes(codes, classes=range(n_classes)), np.eye(n_classes)[y])
    moved = tally_votes(encode_votes(rank[codes][:, experts], classes=range(n_classes)), np.eye(n_classes)[rank[y]])
    for one, other in zip(plain, moved, strict=True):
        np.testing.assert_array_equal(other, one[np.ix_(experts, classes)])
    center, strengths = prior_strengths(*plain)
    again = prior_strengths(*moved)
    np.testing.assert_allclose([again[0], *again[1]], [center, *strengths], rtol=1e-6)
    there, here = (competence_posterior(*tally, center, strengths) for tally in (moved, plain))
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(other, one[np.ix_(experts, classes)], atol=1e-12)


@st.composite
def profiles_and_classes(draw):
    """Probabilities (n, C) of items, with ties, mean and spread (M, C) of competences, and an order of the classes."""
    n_items, n_experts, n_classes = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(2, 5))
    few_values = st.sampled_from([0.1, 0.2, 0.5])
    proba = draw(hnp.arrays(float, (n_items, n_classes), elements=few_values))
    mean, spread = (draw(hnp.arrays(float, (n_experts, n_classes), elements=few_values)) for _ in range(2))
    return proba / proba.sum(1, keepdims=True), mean, spread, draw(permutations(n_classes))


@few
@given(profiles_and_classes(), st.sampled_from([AgnosticRejector, RoleRejector]))
def test_the_order_of_classes_does_not_matter_to_rejectors_that_do_not_know_experts(problem, kind):
    *arrays, classes = problem
    with OwnRandom(own_generator(0)):
        rejector = kind((4,)).double()
    last = (rejector.of_pair if kind is AgnosticRejector else rejector.of_roles).weights[-1]
    torch.nn.init.normal_(last, generator=own_generator(1))
    plain, moved = (
        rejector.defer(*(torch.as_tensor(np.ascontiguousarray(part[:, order])) for part in arrays)).detach().numpy()
        for order in (slice(None), classes)
    )
    np.testing.assert_allclose(moved, plain, atol=1e-9)


@given(answers_and_truth())
def test_tallies_are_counts_and_profiles_are_probabilities(problem):
    codes, y, n_classes = problem
    right, seen = tally_votes(encode_votes(codes, classes=range(n_classes)), np.eye(n_classes)[y])
    for expert in range(codes.shape[1]):
        for label in range(n_classes):
            shown = codes[y == label, expert]
            assert seen[expert, label] == (shown >= 0).sum()
            assert right[expert, label] == (shown == label).sum()
    center, strengths = prior_strengths(right, seen)
    assert 0 <= center <= 1
    assert all(0.5 <= strength <= 1000 for strength in strengths)
    profile = competence_posterior(right, seen, center, strengths)[0]
    assert ((profile >= 0) & (profile <= 1)).all()
    silent = seen.sum(1) == 0
    np.testing.assert_allclose(profile[silent], center)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(2, 5), st.sampled_from([0.1, 1.0, 8.0]))
def test_a_temperature_is_never_worse_than_none(seed, n, n_classes, scale):
    rng = np.random.default_rng(seed)
    log_proba = log_softmax(scale * rng.normal(size=(n, n_classes)), axis=1)
    y = rng.integers(n_classes, size=n)
    temperature = fit_temperature(log_proba, y)

    def likelihood(t):
        return log_softmax(log_proba / t, axis=1)[np.arange(n), y].mean()

    assert 0.05 <= temperature <= 20
    assert likelihood(temperature) >= likelihood(1.0) - 1e-12


@given(st.integers(2, 12), st.floats(1e-6, 0.49))
def test_default_costs_are_the_smoothed_one_hot(n_classes, smoothing):
    expected = np.full((n_classes, n_classes), smoothing / (n_classes - 1))
    np.fill_diagonal(expected, 1 - smoothing)
    np.testing.assert_allclose(answer_likelihood(n_classes, smoothing), expected, rtol=1e-12)
    np.testing.assert_array_equal(
        answer_likelihood(n_classes, smoothing, 1.0 - np.eye(n_classes)), answer_likelihood(n_classes, smoothing)
    )


@given(answers_and_truth(), st.integers(0, 2**32 - 1), st.floats(0.001, 0.4))
def test_missing_answers_equal_enumeration(problem, seed, smoothing):
    codes, y, n_classes = problem
    n, n_experts = codes.shape
    rng = np.random.default_rng(seed)
    likelihood = answer_likelihood(n_classes, smoothing, rng.random((n_classes, n_classes)))
    would_answer = rng.dirichlet(np.ones(n_classes), size=(n, n_experts))
    got = log_likelihood_of_answers(codes, y, likelihood, expected_likelihood(would_answer, y, likelihood))
    for item, expert in np.ndindex(n, n_experts):
        answer = codes[item, expert]
        proba = would_answer[item, expert] if answer < 0 else np.eye(n_classes)[answer]
        total = sum(proba[c] * likelihood[y[item], c] for c in range(n_classes))
        np.testing.assert_allclose(got[item, expert], np.log(total))


# ------------------------------------------------------------------------------------------ the estimator


@cache
def crowd():
    """Items, truth, answers of five experts with gaps, and a frozen classifier."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=80)
    X = rng.normal(size=(80, 3)) + 1.5 * np.eye(3)[y]
    answers = np.where(rng.random((80, 5)) < np.linspace(0.3, 0.95, 5), y[:, None], rng.integers(3, size=(80, 5)))
    answers[rng.random(answers.shape) < 0.2] = -1
    return X, y, answers, FrozenEstimator(LogisticRegression(C=0.05).fit(X[:20], y[:20]))


OMEGA = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [1.0, 0.0], [0.3, 0.7]])


@few
@given(permutations(5), st.sampled_from(["soft", "hard"]), st.sampled_from([None, 0.4]))
def test_order_of_experts_does_not_matter(experts, grouping, coverage):
    X, y, answers, classifier = crowd()
    workload = np.array([[0, 1], [0, 0.1], [0, 1], [0.05, 1], [0, 1]])

    def fitted(order):
        model = ClusterDeferral(
            omega=OMEGA[order],
            grouping=grouping,
            classifier=classifier,
            coverage=coverage,
            workload=workload[order],
            max_epochs=2,
            cv=2,
            dtype="float64",
            random_state=0,
        )
        return model.fit(X, y, answers[:, order])

    plain, moved = fitted(np.arange(5)), fitted(experts)
    np.testing.assert_allclose(moved.omega_, plain.omega_[experts], atol=1e-12)
    np.testing.assert_allclose(moved.predict_deferral_proba(X), plain.predict_deferral_proba(X), atol=1e-5)
    np.testing.assert_array_equal(moved.predict_deferral(X), plain.predict_deferral(X))
    np.testing.assert_allclose(moved.selection_, plain.selection_[:, experts], atol=1e-5)
    np.testing.assert_allclose(moved.workload_, plain.workload_[experts], atol=1e-5)
    np.testing.assert_allclose(moved.score(X, y, answers[:, experts]), plain.score(X, y, answers), atol=1e-5)


@few
@given(permutations(80))
def test_order_of_items_does_not_matter_to_decisions(rows):
    X, _, answers, _ = crowd()
    model = trained()
    np.testing.assert_array_equal(model.predict_deferral(X[rows]), model.predict_deferral(X)[rows])
    np.testing.assert_array_equal(
        model.predict_team(X[rows], answers[rows], decision="vote"),
        model.predict_team(X, answers, decision="vote")[rows],
    )


@few
@given(st.floats(0, 1))
def test_any_coverage_is_met_on_the_rows_it_is_calibrated_on(coverage):
    X = crowd()[0]
    (model,) = trained().coverage_path([coverage], X_unlabeled=X)
    assert abs(np.mean(model.predict_deferral(X) == -1) - coverage) <= 0.5 / 80 + 1e-9


@few
@given(st.sets(st.integers(0, 4)))
def test_whoever_has_left_is_not_asked(gone):
    X, y, answers, classifier = crowd()
    model = trained().coverage_path([0.3])[0].offboard(sorted(gone))
    stay = [expert for expert in range(5) if expert not in gone]
    who = model.assign_experts(X)
    assert set(who) <= {-1, *range(len(stay))}
    assert model.experts_.tolist() == stay
    score = model.score(X, y, answers[:, stay])
    assert 0 <= score <= 1
    if not stay:
        assert score == classifier.score(X, y)


@cache
def trained():
    X, y, answers, classifier = crowd()
    model = ClusterDeferral(omega=OMEGA, grouping="soft", classifier=classifier, max_epochs=5, random_state=0)
    return model.fit(X, y, answers)
