"""Groups of people who answer alike."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from sklearn_l2d._numerics._answer_groups import (
    counts_by_person,
    fewest_groups,
    find_groups,
    held_out_likelihood,
    match_groups,
)
from sklearn_l2d._numerics._answer_model import answer_log_likelihood, fit_answer_model

N_CLASSES = 4
SHIFTED = np.roll(np.eye(N_CLASSES), 1, axis=1)  # the next class
PLANTED = np.stack(
    [
        0.9 * np.eye(N_CLASSES) + 0.025,  # able
        0.25 * np.eye(N_CLASSES) + 0.6 * SHIFTED + 0.0375,  # who mostly name the next class
        np.full((N_CLASSES, N_CLASSES), 0.25),  # who guess
    ]
)


def answers_of(confusion, n_labels, seed):
    """Answers of people with confusion matrices (M, C, C) to `n_labels` items each, out of 200."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(N_CLASSES, size=200)
    item = np.concatenate([rng.permutation(200)[:n_labels] for _ in confusion])
    person = np.repeat(np.arange(len(confusion)), n_labels)
    label = (rng.random((len(item), 1)) > confusion[person, truth[item]].cumsum(1)[:, :-1]).sum(1)
    return (item, person, label), np.eye(N_CLASSES)[truth]


def planted(n_labels, n_each=15, seed=0):
    group = np.tile(np.arange(3), n_each)
    answers, truth = answers_of(PLANTED[group], n_labels, seed)
    return group, answers, truth, counts_by_person(*answers, len(group), truth)


def test_one_group_answers_as_everybody_together():
    _, (item, _, label), truth, counts = planted(8)
    ((member, model),) = find_groups(counts, 1)
    assert_array_equal(member, 0)
    pooled = np.zeros((N_CLASSES, N_CLASSES))
    np.add.at(pooled, (truth.argmax(1)[item], label), 1)
    for y, a in product(range(N_CLASSES), repeat=2):
        right = (pooled[y, y] + model.strength * model.accuracy[0, y]) / (pooled[y].sum() + model.strength)
        size = pooled[y].sum() - pooled[y, y] + model.wrong_strength
        wrong = (pooled[y, a] + model.wrong_strength * model.wrong[y, a]) / size
        expected = right if a == y else (1 - right) * wrong
        told = answer_log_likelihood(model, np.array([0]), np.array([a]))[0, y]
        assert np.exp(told) == pytest.approx(expected)
    assert_allclose(np.exp(told), pooled[y, a] / pooled[y].sum(), atol=0.05)


def test_as_many_groups_as_people_are_the_people_themselves():
    _, (item, person, label), truth, counts = planted(8, n_each=3)
    member, model = find_groups(counts, 20)[-1]
    assert sorted(member) == list(range(9))
    own = fit_answer_model(item, person, label, 9, truth)
    who, answer = np.repeat(np.arange(9), N_CLASSES), np.tile(np.arange(N_CLASSES), 9)
    told, expected = (answer_log_likelihood(m, w, answer) for m, w in ((model, member[who]), (own, who)))
    assert_allclose(told, expected, rtol=1e-4)
    accuracy = model.right.sum(1) / model.seen.sum(1)
    assert (np.diff(accuracy) <= 0).all()  # the most accurate one first


@pytest.mark.parametrize("seed", range(3))
def test_planted_groups_are_found_from_sparse_labels(seed):
    group, answers, truth, counts = planted(25, seed=seed)
    likelihood = held_out_likelihood(np.arange(200) % 5, *answers, len(group), truth, 6)
    assert likelihood.shape == (45, 6)
    assert fewest_groups(likelihood) == 3
    member, model = find_groups(counts, 3)[-1]
    assert adjusted_rand_score(group, member) == 1
    near = np.array([group[member == k][0] for k in range(3)])
    for k, (y, a) in product(range(3), product(range(N_CLASSES), repeat=2)):
        told = np.exp(answer_log_likelihood(model, np.array([k]), np.array([a]))[0, y])
        assert told == pytest.approx(PLANTED[near[k]][y, a], abs=0.15)


def test_alike_people_are_one_group():
    answers, truth = answers_of(np.repeat(PLANTED[:1], 30, axis=0), 12, 1)
    likelihood = held_out_likelihood(np.arange(200) % 5, *answers, 30, truth, 4)
    assert fewest_groups(likelihood) == 1


def test_the_fewest_groups_that_are_hardly_worse():
    likelihood = np.array([[-9.0, -3, -3, -3.1], [-9.0, -3, -2, -2.9], [-9.0, -3, -4, -3.0]])
    assert fewest_groups(likelihood) == 2  # the last two gain or lose by person, and 0 together
    assert fewest_groups(likelihood - np.array([0, 1.5, 0, 0])) == 3


@pytest.mark.parametrize("knows_truth", [True, False])
def test_newcomers_join_the_group_that_they_come_from(knows_truth):
    group, _, _, counts = planted(25)
    member, model = find_groups(counts, 3)[-1]
    name = {k: np.bincount(group[member == k]).argmax() for k in range(3)}
    came_from = np.tile(np.arange(3), 30)
    answers, truth = answers_of(PLANTED[came_from], 10, 7)
    if not knows_truth:  # what a fair classifier says
        truth = 0.8 * truth + 0.2 / N_CLASSES
    joined = match_groups(model, np.ones(3), *answers, len(came_from), truth)
    assert np.mean([name[k] for k in joined] == came_from) > (0.9 if knows_truth else 0.8)


def test_matching_sums_over_what_the_truth_may_be():
    rng = np.random.default_rng(3)
    _, _, _, counts = planted(8)
    model, weight = find_groups(counts, 3)[-1].model, np.array([0.2, 0.5, 0.3])
    (item, person, label), _ = answers_of(PLANTED, 6, 4)
    truth = rng.dirichlet(np.full(N_CLASSES, 0.3), 200)
    truth[:100] = np.eye(N_CLASSES)[rng.integers(N_CLASSES, size=100)]
    score = np.tile(np.log(weight), (4, 1))
    for i, m, a in zip(item, person, label, strict=True):
        for k in range(3):
            given = np.exp(answer_log_likelihood(model, np.array([k]), np.array([a]))[0])
            score[m, k] += np.log(sum(truth[i, y] * given[y] for y in range(N_CLASSES)))
    joined = match_groups(model, weight, item, person, label, 4, truth)
    assert_array_equal(joined[:3], score[:3].argmax(1))
    assert joined[3] == 1  # who has not answered joins the largest group


@settings(max_examples=10)
@given(st.permutations(range(24)), st.integers(2, 5))
def test_order_of_people_changes_nothing(order, n_groups):
    group = np.arange(24) % 3
    (item, person, label), truth = answers_of(PLANTED[group], 9, 11)
    place = np.argsort(order)
    moved = item, place[person], label
    one, other = (counts_by_person(*answers, 24, truth) for answers in ((item, person, label), moved))
    plain, permuted = (find_groups(counts, n_groups)[-1] for counts in (one, other))
    assert_array_equal(permuted.member[place], plain.member)
    assert_allclose(permuted.model.correctness, plain.model.correctness)
