"""The nets of LECODU: drawn answers, the choice, and the fusion, against closed forms."""

from collections import Counter
from functools import partial
from itertools import permutations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from sklearn_l2d._torch._consultation import Consultation, ConsultationNet, first_answers
from sklearn_l2d._torch._modules import build_ensemble
from sklearn_l2d._torch._net import build_net
from sklearn_l2d._torch._seeding import own_generator

RNG = np.random.default_rng(0)
SETTINGS = {
    "optimizer": "sgd",
    "lr": 0.1,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "batch_size": 8,
    "dtype": "float64",
    "device": "cpu",
}


def untrained(n_classes=3, n_most=4, n_ways=2, accuracy=0.7, price=0.05):
    build = partial(build_ensemble, None, n_features=2, n_outputs=1 + n_ways * n_most, hidden_layer_sizes=(3,))
    module = partial(Consultation, build, n_classes, n_most, n_ways, (5,), accuracy, price)
    return build_net(ConsultationNet, module, SETTINGS, 0)


def tensors(*arrays):
    return [torch.tensor(array, dtype=torch.float64) for array in arrays]


def test_the_first_answers_are_drawn_in_every_order():
    answers = torch.tensor([[1, 0, 0], [1, 1, 1], [1, 2, 2], [2, 0, 1]])
    generator, orders = own_generator(0), Counter()
    for _ in range(600):
        counts, are_so_many = first_answers(answers, 3, 3, 3, generator)
        assert_array_equal(counts[0], 0)
        assert_array_equal(counts[1, 2], 1)
        assert_array_equal(counts[2, 0], [0, 1, 0])
        orders[counts[1, 0].argmax().item(), (counts[1, 1] - counts[1, 0]).argmax().item()] += 1
    assert_array_equal(are_so_many, [[False] * 3, [True] * 3, [True, False, False]])
    assert_allclose([orders[pair] / 600 for pair in permutations(range(3), 2)], 1 / 6, atol=0.06)


def test_a_drawn_choice_is_one_option_and_its_gradient_that_of_a_softmax():
    net, logits = untrained(), torch.tensor([[0.0, 1.0, 2.0, -torch.inf]], requires_grad=True)
    net.random = type("Random", (), {"generators": {"cpu": own_generator(0)}})
    choice = net.draw(logits.expand(4000, 4))
    assert_allclose(choice.sum(1).detach(), 1, atol=1e-6)
    # the Gumbel-max trick: options are drawn by the softmax of their logits
    expected = softmax([0.0, 1.0, 2.0, -np.inf])
    assert_allclose((choice > 0.5).double().mean(0), expected, atol=0.03)
    (gradient,) = torch.autograd.grad((choice * torch.tensor([1.0, 0.0, 0.0, 9.0])).sum(), logits)
    assert gradient[0, 0] > 0
    assert gradient[0, 2] < 0
    assert gradient[0, 3] == 0


def test_before_the_training_the_label_is_the_posterior_of_alike_people():
    net, accuracy, n_classes = untrained(accuracy=0.7), 0.7, 3
    proba, counts = softmax(RNG.normal(size=(6, 3)), axis=1), RNG.integers(1, 4, size=(6, 3))
    error = (1 - accuracy) / (n_classes - 1)
    likelihood = accuracy**counts * error ** (counts.sum(1, keepdims=True) - counts)
    for both in (0.0, 1.0):
        fused = net.module_.fuse(*tensors(np.log(proba), counts, np.full((6, 1), both))).softmax(1)
        posterior = likelihood * proba**both
        assert_allclose(fused.detach(), posterior / posterior.sum(1, keepdims=True), rtol=1e-6)


def test_the_only_answer_without_the_classifier_is_the_label():
    net = untrained()
    with torch.no_grad():
        net.module_.fusion.weights[-1].normal_(std=9.0, generator=own_generator(0))
    proba = softmax(RNG.normal(size=(3, 3)), axis=1)
    told = tensors(np.log(proba), np.eye(3), np.zeros((3, 1)))
    fused = net.module_.fuse(*told)
    assert_array_equal(fused.argmax(1), [0, 1, 2])
    joined = net.module_.fuse(*told[:2], torch.ones(3, 1, dtype=torch.float64))
    assert (joined.argmax(1) != torch.arange(3)).any()


@pytest.mark.parametrize("n_ways", [1, 2])
def test_before_the_training_the_choice_is_by_who_may_be_right_and_the_price(n_ways):
    net, proba = untrained(n_ways=n_ways), np.array([[0.5, 0.3, 0.2], [0.98, 0.01, 0.01]])
    own, log_p = tensors(np.zeros((2, 1 + 4 * n_ways)), np.log(proba))
    with torch.no_grad():
        logits = net.module_.choose(own, log_p).numpy()
    k = np.arange(1, 5)
    of_people = np.tile(np.log(1 - 0.3**k) - 0.05 * k, (2, 1))
    with_classifier = np.log(1 - (1 - proba.max(1)[:, None]) * 0.3**k) - 0.05 * k
    expected = [np.log(proba.max(1))[:, None], of_people, with_classifier][: 1 + n_ways]
    assert_allclose(logits, np.hstack(expected), atol=1e-9)


def test_what_is_learnt_of_the_first_people_holds_for_more():
    net = untrained()
    own, log_p = tensors(np.zeros((1, 9)), np.log([[0.5, 0.3, 0.2]]))
    with torch.no_grad():
        before = net.module_.choose(own, log_p)
        own[0, 0], own[0, 2], own[0, 5] = 10.0, 1.0, 2.0  # the classifier, the second person, the first one beside it
        change = net.module_.choose(own, log_p) - before
    assert_allclose(change[0], [10, 0, 1, 1, 1, 12, 12, 12, 12], atol=1e-9)
